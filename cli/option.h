/* Options as rows. A command lists its options in a table; parsing, ranges, defaults, `--help`, the
 * keys of a configuration file and suggestions for misspelled options all come from the rows.
 *
 *   --batch-size 32   --batch_size=32   --fresh   --no-fresh   --image a.jpg b.jpg   -- the rest
 *
 * `-` and `_` in names are equivalent. A list takes every word up to the next option. */
#ifndef SX_CLI_OPTION_H
#define SX_CLI_OPTION_H

#include <jansson.h>

#include "base/arena.h"

typedef enum sx_option_kind {
    SX_OPTION_FLAG,   /* bool */
    SX_OPTION_INT,    /* int64_t */
    SX_OPTION_SIZE,   /* int64_t: bytes, or with K, M, G, T: 512M */
    SX_OPTION_FLOAT,  /* double */
    SX_OPTION_STRING, /* const char * */
    SX_OPTION_CHOICE, /* const char *, one of .choices */
    SX_OPTION_LIST,   /* sx_words: the words up to the next option; may be given several times */
    SX_OPTION_EACH,   /* sx_words: one word each time it is given */
} sx_option_kind;

typedef struct sx_words {
    const char **items;
    int count;
} sx_words;

/* A word that stands for a number: `--steps-per-eval 500` or `--steps-per-eval epoch`. */
typedef struct sx_option_word {
    const char *word;
    int64_t value;
} sx_option_word;

typedef struct sx_option {
    const char *name; /* "batch-size" */
    sx_option_kind kind;
    size_t offset;       /* of the field in the command's options struct: SX_OPT */
    const char *help;    /* one sentence, with units; the default is added */
    const char *value;   /* shown by --help: "N", "SECONDS", "PATH"; NULL for flags */
    const char *choices; /* SX_OPTION_CHOICE: "a|b|c" */
    double min, max;     /* INT and FLOAT; both 0 = any; max 0 = no maximum */
    sx_option_word word; /* INT, SIZE: a word that may be given instead */
    bool required;
    bool empty_is_none; /* STRING: an empty word is as if it had not been given */
    bool no_effect;     /* accepted for the sake of another program's users; `help` says why */
    const char *group;  /* heading in --help above this row */
    char letter;        /* of a flag: 'q' for -q; 0 = none */
} sx_option;

#define SX_OPT(struct_type, field) .offset = offsetof(struct_type, field)

/* An option that this command does not have, but other programs or commands do. */
typedef struct sx_option_hint {
    const char *name, *hint; /* "examples", "use --count" */
} sx_option_hint;

/* Rows and their values. */
typedef struct sx_option_table {
    const sx_option *rows;
    int n;
    void *values;       /* the options struct, initialized with defaults */
    bool *given;        /* [n]: whether the user gave it */
    const char **typed; /* [n]: its name as the user wrote it; NULL if not given */
} sx_option_table;

/* The parsed command line: the words that are not options, and those after `--`. Texts belong to
 * argv, the configuration file or the arena, and are valid as long as the invocation. */
typedef struct sx_invocation {
    sx_words words, rest;
    sx_option_table tables[2];   /* those of the command, those of all commands */
    const sx_option_hint *hints; /* of the command; may be NULL */
    int n_hints;
    void *options;    /* = tables[0].values */
    bool underscores; /* an option was typed with _ instead of - */
    bool help;        /* --help was given: nothing else was checked */
    bool usage;       /* the error is a usage error */
    bool left_behind; /* a thread is still running: end without exit()'s handlers */
    json_t *config;   /* of --config; texts of options point into it */
    sx_arena arena;
} sx_invocation;

/* Parses argv[0 .. argc) into `inv`, whose tables are set by the caller. INVALID_ARGUMENT names the
 * option, the expected value and the actual one; for an unknown option, the nearest. */
SX_MUST_USE sx_status sx_options_parse(sx_invocation *inv, int argc, const char *const *argv);

/* Parses the options before a command's name, only those of inv->tables[1]. *out_used is the number
 * of words. Stops before --help, -h, --version, -V. Errors as above. */
SX_MUST_USE sx_status sx_options_parse_leading(sx_invocation *inv, int argc,
                                               const char *const *argv, int *out_used);

/* Sets the command's options from a JSON object in a file; options given in argv take precedence.
 * Keeps the object in inv->config. INVALID_ARGUMENT as above. */
SX_MUST_USE sx_status sx_options_from_file(sx_invocation *inv, const char *path);

/* The name of an option in the user's spelling, with _ or -; in the arena. */
const char *sx_option_typed(sx_invocation *inv, const char *name);

/* Whether the user gave this option of the command. */
bool sx_option_given(const sx_invocation *inv, const char *name);

/* INVALID_ARGUMENT if the user gave more than one of these options; `names` ends with NULL. The
 * message has the names as typed. */
SX_MUST_USE sx_status sx_options_exclusive(sx_invocation *inv, const char *const *names);

/* Whether the option's values name files or directories, as its .value says. */
bool sx_option_is_path(const sx_option *o);

/* 1536K, 64M; of other numbers of bytes, the digits. */
const char *sx_option_size_text(int64_t bytes, char text[32]);

/* "; did you mean "--epochs"?" for a misspelled name, or `otherwise`; in the arena. */
const char *sx_did_you_mean(sx_arena *arena, const char *name, const char *const *names,
                            size_t count, const char *otherwise);

#endif
