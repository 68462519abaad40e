/* How calls are merged: the defaults, tensorflow_model_server's --batching_parameters_file, and
 * what is derived of them: the batcher's rules, and the sizes that models run. */
#ifndef SX_SERVE_BATCH_CONFIG_H
#define SX_SERVE_BATCH_CONFIG_H

#include "serve/batcher.h"

typedef struct sx_batch_config {
    sx_batcher_config batcher;
    int64_t sizes[SX_BATCH_SIZES]; /* [size_count]: of the runs of a model, ascending */
    int size_count;                /* 0: the model's own */
} sx_batch_config;

enum {
    SX_BATCH_DEFAULT_ROWS = 16, /* of a batch, where nothing says how many */
    SX_BATCH_MAX_ROWS = 64,     /* that a model runs at once, unless an allowed size is larger */
};

/* Without any option: calls that find all run states busy are merged into batches of at most
 * SX_BATCH_DEFAULT_ROWS. */
sx_batch_config sx_batch_config_default(void);
/* --enable_batching without a file: TensorFlow Serving's parameters. */
sx_batch_config sx_batch_config_enabled(sx_batch_policy policy);
/* No call is merged with another. */
sx_batch_config sx_batch_config_off(void);
/* Each run has `rows` rows, which may be padding: 1 to SX_BATCH_MAX_EXACT. */
enum { SX_BATCH_MAX_EXACT = 4096 };
void sx_batch_config_pin(sx_batch_config *config, int64_t rows);

/* Reads a BatchingParameters in protobuf's text format. INVALID_ARGUMENT, with file, line and
 * field. */
SX_MUST_USE sx_status sx_batch_config_read(const char *path, sx_batch_policy policy,
                                           sx_batch_config *out);

#endif
