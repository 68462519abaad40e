/* How a command reads its data: rows and values shared by all that take some.
 *
 *     struct options { sx_data_words data; ... };
 *     static const sx_option options[] = { SX_DATA_OPTIONS(struct options, data), ... }; */
#ifndef SX_CLI_DATA_OPTIONS_H
#define SX_CLI_DATA_OPTIONS_H

#include <sextant/data.h>

#include "option.h"

typedef struct sx_data_words {
    int64_t label_base; /* INT64_MIN = not given; set it in the defaults: SX_DATA_WORDS_DEFAULT */
    sx_words features;  /* image=KEY label=KEY */
    const char *compression;
    bool skip_corrupt;
} sx_data_words;

#define SX_DATA_WORDS_DEFAULT   \
    {                           \
        .label_base = INT64_MIN \
    }

#define SX_DATA_OPTIONS(struct_type, field)                                                        \
    {.name = "label-base",                                                                         \
     .kind = SX_OPTION_INT,                                                                        \
     SX_OPT(struct_type, field.label_base),                                                        \
     .value = "N",                                                                                 \
     .help = "number of the first class in the records (default: what their schema says, else 0)", \
     .min = -1e6,                                                                                  \
     .max = 1e6},                                                                                  \
        {.name = "feature",                                                                        \
         .kind = SX_OPTION_LIST,                                                                   \
         SX_OPT(struct_type, field.features),                                                      \
         .value = "image=KEY label=KEY",                                                           \
         .help = "features of the records that hold image and label"},                             \
        {.name = "compression",                                                                    \
         .kind = SX_OPTION_CHOICE,                                                                 \
         SX_OPT(struct_type, field.compression),                                                   \
         .value = "KIND",                                                                          \
         .choices = "none|gzip|zlib",                                                              \
         .help = "of record files (default: recognised)"},                                         \
    {                                                                                              \
        .name = "skip-corrupt", .kind = SX_OPTION_FLAG, SX_OPT(struct_type, field.skip_corrupt),   \
        .help = "leave out and count records that fail their checksum or do not parse"             \
    }

/* The words as options of sx_data_open(). INVALID_ARGUMENT for a --feature that is neither image=
 * nor label=. */
SX_MUST_USE sx_status sx_data_words_read(const sx_data_words *words, sx_data_options *out_options);

/* Words as one specification: "a b" -> "a,b" (a shell has expanded a pattern). Free with sx_free.
 */
SX_MUST_USE sx_status sx_data_words_join(const sx_words *words, char **out_spec);

/* The progress of a long command: "label: 37 %" on one line of a terminal's stderr, nothing
 * elsewhere; false once a signal asked to stop. The signature of sx_progress_fn; `user` is a
 * sx_data_progress. */
typedef struct sx_data_progress {
    const char *label;
    bool bytes; /* counts bytes: shown as MiB */
    int64_t shown_ns;
} sx_data_progress;

bool sx_data_progress_show(void *user, int64_t done, int64_t total);
/* Wipes the line. */
void sx_data_progress_end(sx_data_progress *progress);

#endif
