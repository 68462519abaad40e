/* Options as rows. A command lists its options in a table; parsing, ranges, defaults, `--help` and
 * the nearest match of a misspelt flag all come from the rows.
 *
 *   --batch-size 32   --batch_size=32   --fresh   --no-fresh   --image a.jpg b.jpg   -- the rest
 *
 * `-` and `_` in names are alike. A list takes every word up to the next option. */
#ifndef SX_CLI_OPTION_H
#define SX_CLI_OPTION_H

#include <sextant/types.h>

typedef enum sx_option_kind {
    SX_OPTION_FLAG,   /* bool */
    SX_OPTION_INT,    /* int64_t */
    SX_OPTION_FLOAT,  /* double */
    SX_OPTION_STRING, /* const char *, into argv */
    SX_OPTION_CHOICE, /* const char *, one of .choices */
    SX_OPTION_LIST,   /* sx_words; may be given several times */
} sx_option_kind;

typedef struct sx_words {
    const char **items; /* into argv; the array is the invocation's */
    int count;
} sx_words;

typedef struct sx_option {
    const char *name; /* "batch-size" */
    sx_option_kind kind;
    size_t offset;       /* of the field in the command's options struct */
    const char *help;    /* one sentence, with units; the default is added */
    const char *value;   /* "N", "SECONDS", "PATH": what --help shows; NULL for flags */
    const char *choices; /* SX_OPTION_CHOICE: "a|b|c" */
    double min, max;     /* INT and FLOAT; both 0 = any */
    bool required;
} sx_option;

#define SX_OPT(struct_type, field) .offset = offsetof(struct_type, field)

enum { SX_MAX_WORDS = 4096 };

/* What was asked: the words that are no options, and what follows `--`. */
typedef struct sx_invocation {
    sx_words words, rest;
    void *options; /* the command's struct, defaults filled in */
    bool *given;   /* [n_options]: which the user gave */
    const char *word_items[SX_MAX_WORDS];
    const char *list_items[SX_MAX_WORDS]; /* storage of the lists */
    int n_list_items;
    bool help; /* --help was given: nothing else was checked */
} sx_invocation;

/* Parses argv[0 .. argc) into `inv`, whose options and given are set by the caller.
 * INVALID_ARGUMENT says which option, expected, got; an unknown one names the nearest. */
SX_MUST_USE sx_status sx_options_parse(const sx_option *options, int n_options, int argc,
                                       const char *const *argv, sx_invocation *inv);

/* Edit distance of two names with `_` as `-`, for nearest matches. */
int sx_name_distance(const char *a, const char *b);

#endif
