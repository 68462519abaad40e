/* Options on how data are read, for every command that reads data. */
#ifndef SX_CLI_DATA_ARGS_H
#define SX_CLI_DATA_ARGS_H

#include <sextant/data.h>

#include "option.h"

typedef struct sx_data_args {
    int64_t label_base;
    sx_words feature; /* "image=KEY", "label=KEY" */
    const char *compression;
    bool skip_corrupt, recursive;
    int64_t max_unpacked_size;
} sx_data_args;

/* clang-format off */
/* The rows, for a command whose options struct has the field `data_args`. */
#define SX_DATA_ARGS_ROWS(type)                                                                  \
    SX_RECORD_ARGS_ROWS(type),                                                                   \
    {"recursive", SX_OPTION_FLAG, SX_OPT(type, data_args.recursive),                             \
     "include images in subfolders of class folders"},                                           \
    {"max-unpacked-size", SX_OPTION_SIZE, SX_OPT(type, data_args.max_unpacked_size),             \
     "bytes that an archive may be decompressed to; default: 100 times its size, at least 256M",  \
     "SIZE", .min = 1}

/* Of these, the rows for a command that reads record files only. */
#define SX_RECORD_ARGS_ROWS(type)                                                                \
    {"label-base", SX_OPTION_INT, SX_OPT(type, data_args.label_base),                            \
     "label of the first class in record files: 0, or 1 in TPU-style files; default: from the "  \
     "data's schema file, else 0",                                                               \
     "N", .min = 0, .max = 1, .group = "Input data"},                                            \
    {"feature", SX_OPTION_EACH, SX_OPT(type, data_args.feature),                                 \
     "feature to read from records: image=KEY or label=KEY; default: detected", "NAME=KEY"},     \
    {"compression", SX_OPTION_CHOICE, SX_OPT(type, data_args.compression),                       \
     "compression of record files; default: detected", .choices = "none|gzip|zlib"},             \
    {"skip-corrupt", SX_OPTION_FLAG, SX_OPT(type, data_args.skip_corrupt),                       \
     "skip and count corrupt records, and images in class folders that cannot be decoded"}
/* clang-format on */

/* A usage error for an invalid --feature. */
SX_MUST_USE sx_status sx_data_args_options(sx_invocation *inv, const sx_data_args *args,
                                           sx_data_options *out_options);

/* The value of --data, words joined by commas (the shell expands an unquoted pattern to several
 * words); in the invocation's arena. */
SX_MUST_USE sx_status sx_data_spec(sx_invocation *inv, const sx_words *words,
                                   const char **out_spec);

/* Calls sx_data_open(); logs the description of the data and returns it in *out_description (if not
 * NULL), to be freed with sx_text_free. */
SX_MUST_USE sx_status sx_data_args_open(const char *spec, const sx_data_options *options,
                                        sx_dataset **out_dataset, char **out_description);

/* A progress function for long work on data: draws a line on stderr if that is a terminal and the
 * invocation is not quiet, and requests a stop after Ctrl-C. `user` is an sx_work_line, initially
 * {.inv = inv, .what = "images"}. */
typedef struct sx_work_line {
    const sx_invocation *inv;
    const char *what;
    bool in_bytes;
    int64_t next_ns;
    bool drawn;
} sx_work_line;
bool sx_work_progress(void *user, int64_t done, int64_t total);
/* Clears the line. */
void sx_work_end(sx_work_line *line);

/* Prints the result of a command, unless it is quiet. */
void sx_print_done(const sx_invocation *inv, const char *text);

#endif
