/* sextant version */
#include <stdio.h>

#include "command.h"

static sx_status run(sx_invocation *inv)
{
    (void)inv;
    printf("sextant %s\n", SX_VERSION);
    return SX_OK;
}

const sx_command sx_command_version = {
    .name = "version",
    .summary = "print the version",
    .words = "",
    .run = run,
};
