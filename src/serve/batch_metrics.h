/* What the batcher has done, as TensorFlow Serving's metrics of batching: how long calls waited,
 * how large they and their batches were, how much was padding. Not thread-safe. */
#ifndef SX_SERVE_BATCH_METRICS_H
#define SX_SERVE_BATCH_METRICS_H

#include <stdint.h>

#include "base/buffer.h"

enum {
    SX_QUEUE_BUCKETS = 52,     /* 100 us * 1.2^k */
    SX_BATCH_ROW_BUCKETS = 14, /* 2^k */
    SX_PADDED_SIZES = 32, /* different sizes of batches; what is padded to others is left out */
};

typedef struct sx_rows_histogram {
    uint64_t buckets[SX_BATCH_ROW_BUCKETS + 1]; /* the last: above all bounds */
    uint64_t sum;
} sx_rows_histogram;

/* Zero-initialized. */
typedef struct sx_batch_metrics {
    uint64_t queued[SX_QUEUE_BUCKETS + 1]; /* calls by their time in the queue; likewise */
    double queued_us;
    uint64_t runs;
    sx_rows_histogram calls, batches; /* their rows; a batch's with its padding */
    struct sx_padding {
        int64_t size; /* of the batch */
        sx_rows_histogram rows;
    } padding[SX_PADDED_SIZES];
    int padding_count;
} sx_batch_metrics;

/* A call of so many rows began to run after it had waited. */
void sx_batch_metrics_add_call(sx_batch_metrics *metrics, int64_t rows, int64_t waited_ns);
/* A run of `size` rows, some of them padding. */
void sx_batch_metrics_add_run(sx_batch_metrics *metrics, int64_t rows, int64_t size);
/* Appends the families, each with a HELP and a TYPE line. */
void sx_batch_metrics_print(const sx_batch_metrics *metrics, sx_buf *out);

#endif
