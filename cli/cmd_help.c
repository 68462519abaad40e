/* sextant help [COMMAND] */
#include <string.h>

#include "command.h"

static sx_status run(sx_invocation *inv)
{
    if (inv->words.count == 0) {
        sx_help_overview(NULL);
        return SX_OK;
    }
    const char *first = inv->words.items[0];
    const char *second = inv->words.count > 1 ? inv->words.items[1] : NULL;
    if (strcmp(first, "exit-codes") == 0) {
        sx_help_exit_codes();
        return SX_OK;
    }
    if (second == NULL && sx_command_is_family(first)) {
        sx_help_overview(first);
        return SX_OK;
    }
    int words;
    const sx_command *c = sx_command_find(first, second, &words);
    if (c == NULL) {
        return sx_command_unknown(first, second);
    }
    sx_help_command(c);
    return SX_OK;
}

const sx_command sx_command_help = {
    .name = "help",
    .summary = "show help for a command",
    .words = "[COMMAND]",
    .examples = "  sextant help train\n  sextant help exit-codes",
    .max_words = 2,
    .run = run,
};
