/* Warm-up records: requests that a version answers before it is served, so that what only the first
 * of their shape does is done.
 *
 *   VERSION_DIR/assets.extra/tf_serving_warmup_requests    a TFRecord file of PredictionLogs
 *
 * A request of Predict, Classify, Regress or MultiInference is run as it is and, if calls of its
 * signature may be merged, with as many rows as each larger size of a batch. */
#ifndef SX_SERVE_WARMUP_H
#define SX_SERVE_WARMUP_H

#include "base/cancel.h"
#include "serve/model.h"

enum {
    SX_WARMUP_RECORDS = 1000,           /* of a file at most */
    SX_WARMUP_RECORD_BYTES = 64 << 20,  /* of a record */
    SX_WARMUP_MEMORY_BYTES = 512 << 20, /* of the tensors of one of its runs */
};

typedef struct sx_warmup_options {
    int iterations;   /* runs of each; 0 = 1 */
    int64_t max_rows; /* of a batch, as in sx_batch_rules */
} sx_warmup_options;

/* Without such a file, nothing happens. Errors, with the number of the record: of reading the file;
 * INVALID_ARGUMENT: more records than allowed, a record that is no request of the model; those of
 * its run; CANCELLED, DEADLINE_EXCEEDED: `cancel` is checked before each run. */
SX_MUST_USE sx_status sx_warmup(const char *version_dir, const sx_serve_model_ops *ops, void *model,
                                const sx_warmup_options *options, const sx_cancel *cancel);

#endif
