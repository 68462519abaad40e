/* sextant devices */
#include <stdio.h>

#include "backends/backend.h"
#include "command.h"

/* A backend whose library is not installed has no devices, and says why. */
static sx_status print_platform(const sx_backend *backend)
{
    sx_platform *platform;
    sx_status status = sx_platform_open(backend->name, NULL, &platform);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        printf("%-6s %-18s %s\n", backend->name, "none", sx_status_message(status));
        sx_status_free(status);
        return SX_OK;
    }
    SX_TRY(status);
    for (int i = 0; i < platform->n_devices; i++) {
        printf("%-6s %-18s %s\n", backend->name, platform->devices[i]->name,
               platform->devices[i]->kind);
    }
    sx_platform_close(platform);
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    (void)inv;
    for (int i = 0; sx_backends[i] != NULL; i++) {
        SX_TRY(print_platform(sx_backends[i]));
    }
    return SX_OK;
}

const sx_command sx_command_devices = {
    .name = "devices",
    .summary = "the devices that this machine offers",
    .words = "",
    .run = run,
};
