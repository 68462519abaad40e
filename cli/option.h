/* Options as rows. A command lists its options in a table; parsing, ranges, defaults, `--help`, the
 * keys of a configuration file and the nearest match of a misspelt flag all come from the rows.
 *
 *   --batch-size 32   --batch_size=32   --fresh   --no-fresh   --image a.jpg b.jpg   -- the rest
 *
 * `-` and `_` in names are alike. A list takes every word up to the next option. */
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
    SX_OPTION_EACH,   /* sx_words: one word each time that it is given */
} sx_option_kind;

typedef struct sx_words {
    const char **items;
    int count;
} sx_words;

/* A word with a number's meaning: `--steps-per-eval 500` or `--steps-per-eval epoch`. */
typedef struct sx_option_word {
    const char *word;
    int64_t value;
} sx_option_word;

typedef struct sx_option {
    const char *name; /* "batch-size" */
    sx_option_kind kind;
    size_t offset;       /* of the field in the command's options struct: SX_OPT */
    const char *help;    /* one sentence, with units; the default is added */
    const char *value;   /* "N", "SECONDS", "PATH": what --help shows; NULL for flags */
    const char *choices; /* SX_OPTION_CHOICE: "a|b|c" */
    double min, max;     /* INT and FLOAT; both 0 = any; max 0 = no upper end */
    sx_option_word word; /* INT, SIZE: what one word stands for */
    bool required;
    const char *group; /* heading in --help over this row and those after it */
    char letter;       /* of a flag: 'q' for -q; 0 = none */
} sx_option;

#define SX_OPT(struct_type, field) .offset = offsetof(struct_type, field)

/* Rows, and where their values go. */
typedef struct sx_option_table {
    const sx_option *rows;
    int n;
    void *values; /* the struct of the rows' offsets, defaults filled in */
    bool *given;  /* [n]: which the user gave */
} sx_option_table;

/* What was asked: the words that are no options, and what follows `--`. Texts are argv's, the
 * configuration file's or the arena's, and last as long as the invocation. */
typedef struct sx_invocation {
    sx_words words, rest;
    sx_option_table tables[2]; /* the command's own, those that all commands have */
    void *options;             /* = tables[0].values */
    bool underscores;          /* an option was typed with _ where its row has - */
    bool help;                 /* --help was given: nothing else was checked */
    bool usage;                /* what failed is a mistake on the command line */
    bool left_behind;          /* a thread is still running: end without exit()'s handlers */
    json_t *config;            /* of --config; texts of options point into it */
    sx_arena arena;
} sx_invocation;

/* Parses argv[0 .. argc) into `inv`, whose tables are set by the caller.
 * INVALID_ARGUMENT says which option, expected, got; an unknown one names the nearest. */
SX_MUST_USE sx_status sx_options_parse(sx_invocation *inv, int argc, const char *const *argv);

/* Parses the options in front of a command's name, those of inv->tables[1] only. *out_used: how
 * many words they are. Stops before --help, -h, --version, -V. Errors as above. */
SX_MUST_USE sx_status sx_options_parse_leading(sx_invocation *inv, int argc,
                                               const char *const *argv, int *out_used);

/* Sets options of the command by their names from a JSON object in a file; those given in argv
 * stay as they are. Keeps the object in inv->config. INVALID_ARGUMENT as above. */
SX_MUST_USE sx_status sx_options_from_file(sx_invocation *inv, const char *path);

/* The name of a row as this user types names: with _ if they do. A text of the arena. */
const char *sx_option_typed(sx_invocation *inv, const char *name);

/* Whether the user gave this option of the command. */
bool sx_option_given(const sx_invocation *inv, const char *name);

/* "; did you mean "--epochs"?" for a misspelt name, or `otherwise`; a text of the arena. */
const char *sx_did_you_mean(sx_arena *arena, const char *name, const char *const *names,
                            size_t count, const char *otherwise);

#endif
