/* Commands as rows: cli/commands.def names them, one file each (cmd_NAME.c) defines one sx_command.
 */
#ifndef SX_CLI_COMMAND_H
#define SX_CLI_COMMAND_H

#include "option.h"

typedef struct sx_command {
    const char *name;     /* "train", "data from-images" */
    const char *summary;  /* one line for `sextant help` */
    const char *words;    /* "MODEL", "RUN_DIR [CHECKPOINT]": what --help shows after the name */
    const char *about;    /* a paragraph, or NULL */
    const char *examples; /* lines, or NULL */
    int min_words, max_words; /* max_words −1 = any */
    bool takes_rest;          /* words after -- are the command's own */
    const sx_option *options;
    int n_options;
    size_t options_bytes; /* of the options struct */
    const void *defaults; /* NULL = all zero */
    sx_status (*run)(const sx_invocation *inv);
} sx_command;

#define SX_COMMAND_OPTIONS(rows, struct_type)                                \
    .options = (rows), .n_options = (int)(sizeof(rows) / sizeof((rows)[0])), \
    .options_bytes = sizeof(struct_type)

extern const sx_command *const sx_commands[]; /* NULL-terminated, in the order of commands.def */
#define SX_COMMAND(name) extern const sx_command sx_command_##name;
#include "commands.def"
#undef SX_COMMAND

/* Runs argv[0 .. argc) (without the program's name) and returns the process's exit code. */
int sx_cli_run(int argc, const char *const *argv);

/* --- What the process says -------------------------------------------------------------------- */

/* Exit codes; `sextant help exit-codes` prints the table. */
typedef enum sx_exit {
    SX_EXIT_OK = 0,
    SX_EXIT_ERROR = 1,
    SX_EXIT_USAGE = 2,
    SX_EXIT_DATA = 3,
    SX_EXIT_NOT_FINITE = 4,
    SX_EXIT_RESOURCES = 5,
    SX_EXIT_SIGINT = 130,
    SX_EXIT_SIGTERM = 143,
} sx_exit;

/* The signal that asked to stop (SIGINT, SIGTERM), 0 while none did. A second one ends the process.
 */
int sx_stop_signal(void);
const volatile int *sx_stop_flag(void);

/* Help texts, to stdout. */
void sx_help_overview(void);
void sx_help_command(const sx_command *command);
void sx_help_exit_codes(void);
/* By name, in one or two words; NULL if there is none. */
const sx_command *sx_command_find(const char *first, const char *second, int *out_words);
/* The nearest command's name, or NULL if none is near. */
const char *sx_command_nearest(const char *name);

#endif
