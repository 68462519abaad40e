/* sextant help [COMMAND] */
#include <string.h>

#include "command.h"

typedef struct options {
    bool man;
} options;

static const sx_option rows[] = {
    {"man", SX_OPTION_FLAG, SX_OPT(options, man),
     "print the manual page instead, as roff source for man(1)"},
};

/* A topic is `words` words: those that follow name nothing. */
static sx_status refuse_beyond(const sx_invocation *inv, int words)
{
    return inv->words.count > words ? sx_error(SX_INVALID_ARGUMENT, "unexpected argument \"%s\"",
                                               inv->words.items[words])
                                    : SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } topics[] = {{"exit-codes", sx_help_exit_codes}, {"environment", sx_help_environment}};
    const options *o = inv->options;
    if (inv->words.count == 0) {
        if (o->man) {
            sx_print_manual(NULL);
        } else {
            sx_help_overview(NULL);
        }
        return SX_OK;
    }
    const char *first = inv->words.items[0];
    const char *second = inv->words.count > 1 ? inv->words.items[1] : NULL;
    for (size_t i = 0; i < SX_COUNT(topics) && !o->man; i++) {
        if (strcmp(first, topics[i].name) == 0) {
            SX_TRY(sx_usage(inv, refuse_beyond(inv, 1)));
            topics[i].print();
            return SX_OK;
        }
    }
    if (second == NULL && !o->man && sx_command_is_family(first)) {
        sx_help_overview(first);
        return SX_OK;
    }
    int words;
    const sx_command *c = sx_command_find(first, second, &words);
    if (c == NULL) {
        return sx_usage(inv, sx_command_unknown(first, second));
    }
    SX_TRY(sx_usage(inv, refuse_beyond(inv, words)));
    if (o->man) {
        sx_print_manual(c);
    } else {
        sx_help_command(c);
    }
    return SX_OK;
}

const sx_command sx_command_help = {
    .name = "help",
    .summary = "show help for a command",
    .words = "[COMMAND|exit-codes|environment]",
    .examples = "  sextant help train\n  sextant help data show\n  sextant help exit-codes\n"
                "  sextant help --man train | man -l -",
    .max_words = -1,
    SX_COMMAND_OPTIONS(rows, options),
    .run = run,
};
