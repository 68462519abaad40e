/* Commands as rows: cli/commands.def names them, one file each (cmd_NAME.c) defines one sx_command.
 */
#ifndef SX_CLI_COMMAND_H
#define SX_CLI_COMMAND_H

#include <signal.h>
#include <stdio.h>

#include "base/checked.h"
#include "option.h"

typedef struct sx_command {
    const char *name;         /* "train", "data from-images" */
    const char *summary;      /* one line for `sextant help` */
    const char *words;        /* arguments shown by --help: "MODEL", "RUN_DIR [CHECKPOINT]" */
    const char *about;        /* a paragraph, or NULL */
    const char *examples;     /* lines, or NULL */
    int min_words, max_words; /* max_words −1 = any */
    const char *rest;  /* meaning of the words after --: "model parameters"; NULL = not allowed */
    bool stops_itself; /* Ctrl-C, SIGTERM and SIGHUP only set sx_stop_flag(); the command checks it
                        * and returns CANCELLED
                        */
    const sx_option *options;
    int n_options;
    const sx_option_hint *hints; /* for options that it does not have; may be NULL */
    int n_hints;
    size_t options_bytes; /* of the options struct */
    const void *defaults; /* NULL = all zero */
    sx_status (*run)(sx_invocation *inv);
} sx_command;

#define SX_COMMAND_OPTIONS(option_rows, struct_type)                   \
    .options = (option_rows), .n_options = (int)SX_COUNT(option_rows), \
    .options_bytes = sizeof(struct_type)

#define SX_COMMAND_HINTS(rows) .hints = (rows), .n_hints = (int)SX_COUNT(rows)

extern const sx_command *const sx_commands[]; /* NULL-terminated, in the order of commands.def */
#define SX_COMMAND(name) extern const sx_command sx_command_##name;
#include "commands.def"
#undef SX_COMMAND

/* Runs argv[0 .. argc) (without the program's name) and returns the process's exit code. */
int sx_cli_run(int argc, const char *const *argv);

/* The options of all commands; the values of inv->tables[1]. */
typedef struct sx_common {
    const char *verbosity, *color;
    bool quiet;
} sx_common;
extern const sx_option_table sx_common_options; /* values: the defaults */
static inline const sx_common *sx_common_of(const sx_invocation *inv)
{
    return inv->tables[1].values;
}
/* Prints text that may quote foreign files: control characters but newline and tab as '?'. */
void sx_print_visible(FILE *stream, const char *text);
/* Whether to print neither progress nor informational messages: --quiet, or --verbosity warn or
 * error. */
bool sx_is_quiet(const sx_invocation *inv);

/* ---- Exit codes, signals, help ---- */

/* Exit codes; `sextant help exit-codes` prints the table. */
typedef enum sx_exit {
    SX_EXIT_OK = 0,
    SX_EXIT_ERROR = 1,
    SX_EXIT_USAGE = 2,
    SX_EXIT_DATA = 3,
    SX_EXIT_NOT_FINITE = 4,
    SX_EXIT_RESOURCES = 5,
    SX_EXIT_UNAVAILABLE = 6,
    SX_EXIT_SIGHUP = 129,
    SX_EXIT_SIGINT = 130,
    SX_EXIT_SIGTERM = 143,
} sx_exit;

/* Marks the error as a usage error found by the command itself: exit code 2. Returns the status. */
sx_status sx_usage(sx_invocation *inv, sx_status status);

/* The signal that requested a stop (SIGINT, SIGTERM, SIGHUP), or 0. A second SIGINT or SIGTERM ends
 * the process at once. */
int sx_stop_signal(void);
const volatile sig_atomic_t *sx_stop_flag(void);

/* Help texts, to stdout. `family`: only commands of that first word; NULL = all. */
void sx_help_overview(const char *family);
/* Whether there are commands with that first word and a second one. */
bool sx_command_is_family(const char *first);
void sx_help_command(const sx_command *command);
void sx_help_exit_codes(void);
void sx_help_environment(void);

/* The rows of those two tables; the last has no name. */
typedef struct sx_help_row {
    const char *name, *text;
} sx_help_row;
extern const sx_help_row sx_exit_codes[], sx_environment[];

/* Properties of an option for help, manual and completion: whether it is a flag that is on by
 * default (so that --no-NAME turns it off), its value ("N", "a|b|c", NULL), its help text with the
 * default.
 */
bool sx_option_is_on(const sx_option *o, const void *values);
const char *sx_option_value(const sx_option *o);
void sx_option_help(const sx_option *o, const void *values, char *out, size_t capacity);
/* The options of a command with their defaults, which are only read. */
sx_option_table sx_option_table_of(const sx_command *command);

/* The manual page of a command, or of the program (NULL), as roff for man(7), to stdout. */
void sx_print_manual(const sx_command *command);
/* Completion scripts, to stdout. */
void sx_print_bash_completion(void);
void sx_print_zsh_completion(void);

/* By name, in one or two words; NULL if there is none. */
const sx_command *sx_command_find(const char *first, const char *second, int *out_words);
/* NOT_FOUND, with the nearest names. `second` may be NULL. */
SX_MUST_USE sx_status sx_command_unknown(const char *first, const char *second);

#endif
