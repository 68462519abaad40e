/* Counters of the server and their Prometheus text. Names, labels and buckets of the first two
 * families are TensorFlow Serving's, so that its dashboards go on working; the labels' values are
 * the configured models only, so that clients cannot make the page grow. */
#ifndef SX_SERVE_METRICS_H
#define SX_SERVE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include <sextant/status.h>

#include "base/buffer.h"

enum {
    SX_METRIC_CODES = 17,    /* sx_code */
    SX_LATENCY_BUCKETS = 33, /* 10 us * 1.8^k */
};

typedef struct sx_latency {
    atomic_uint_fast64_t buckets[SX_LATENCY_BUCKETS + 1]; /* the last one: beyond all bounds */
    atomic_uint_fast64_t sum_ns;
} sx_latency;

/* Of one model; zero-initialised. All functions from any thread. */
typedef struct sx_model_metrics {
    atomic_uint_fast64_t requests[SX_METRIC_CODES]; /* predict requests by outcome */
    sx_latency request_latency;                     /* successful ones: arrived to answered */
    sx_latency run_latency;                         /* the model alone */
} sx_model_metrics;

void sx_metrics_count(sx_model_metrics *metrics, sx_code code);
void sx_latency_add(sx_latency *latency, int64_t duration_ns);

/* Appends one model's families. The first model also gets the families' HELP and TYPE lines, so all
 * models of a page are printed in one call. */
struct sx_metrics_row {
    const char *model;
    const sx_model_metrics *metrics;
};
void sx_metrics_print(const struct sx_metrics_row *rows, size_t count, sx_buf *out);

/* One counter or gauge with HELP and TYPE. `type` is "counter" or "gauge". */
void sx_metrics_print_value(sx_buf *out, const char *name, const char *type, const char *help,
                            uint64_t value);

#endif
