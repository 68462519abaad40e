/* sextant help [COMMAND] */
#include <string.h>

#include "command.h"

static sx_status run(const sx_invocation *inv)
{
    if (inv->words.count == 0) {
        sx_help_overview();
        return SX_OK;
    }
    if (strcmp(inv->words.items[0], "exit-codes") == 0) {
        sx_help_exit_codes();
        return SX_OK;
    }
    int words;
    const char *second = inv->words.count > 1 ? inv->words.items[1] : NULL;
    const sx_command *c = sx_command_find(inv->words.items[0], second, &words);
    if (c == NULL) {
        const char *nearest = sx_command_nearest(inv->words.items[0]);
        return sx_error(SX_NOT_FOUND, "no command \"%s\"%s%s", inv->words.items[0],
                        nearest != NULL ? "; did you mean " : "; `sextant help` lists them",
                        nearest != NULL ? nearest : "");
    }
    sx_help_command(c);
    return SX_OK;
}

const sx_command sx_command_help = {
    .name = "help",
    .summary = "what a command does and takes",
    .words = "[COMMAND]",
    .examples = "  sextant help train\n  sextant help exit-codes",
    .max_words = 2,
    .run = run,
};
