/* sextant completion bash|zsh */
#include <string.h>

#include "command.h"

static sx_status run(sx_invocation *inv)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", sx_print_bash_completion}, {"zsh", sx_print_zsh_completion}};
    for (size_t i = 0; i < SX_COUNT(shells); i++) {
        if (strcmp(inv->words.items[0], shells[i].shell) == 0) {
            shells[i].print();
            return SX_OK;
        }
    }
    return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, "unknown shell \"%s\"; expected bash or zsh",
                                  inv->words.items[0]));
}

const sx_command sx_command_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .words = "bash|zsh",
    .about = "`make install` installs both scripts where bash-completion and zsh find them.",
    .examples = "  source <(sextant completion bash)\n"
                "  sextant completion zsh >~/.zsh/completions/_sextant",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
