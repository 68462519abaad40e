/* Counters of the server and their Prometheus text. Names, labels and bounds of buckets are
 * TensorFlow Serving's, so that its dashboards keep working; label values are only the configured
 * models, so that clients cannot make the page grow. A label model_path has the model's name, too:
 * paths of the server are not told. */
#ifndef SX_SERVE_METRICS_H
#define SX_SERVE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sextant/status.h>

#include "base/buffer.h"

enum {
    SX_METRIC_CODES = 17,    /* sx_code */
    SX_LATENCY_BUCKETS = 33, /* 10 us * 1.8^k */
    SX_EXAMPLE_BUCKETS = 15, /* 2^k */
};

typedef struct sx_latency {
    atomic_uint_fast64_t buckets[SX_LATENCY_BUCKETS + 1]; /* the last: above all bounds */
    atomic_uint_fast64_t sum_ns;
} sx_latency;

/* How many requests ended in each of the last seconds. */
enum { SX_RATE_SECONDS = 60 };
typedef struct sx_rate {
    atomic_uint_fast64_t slots[SX_RATE_SECONDS + 1]; /* second << 32 | count */
} sx_rate;

/* What a request asks for, and how it came. */
typedef enum sx_metric_api { SX_API_PREDICT, SX_API_CLASSIFY, SX_API_REGRESS } sx_metric_api;
typedef enum sx_entrypoint { SX_ENTRY_GRPC, SX_ENTRY_REST } sx_entrypoint;

enum { SX_METRIC_APIS = 3, SX_ENTRYPOINTS = 2 };

/* What became of a copy of a request for another version. */
typedef enum sx_shadow_result {
    SX_SHADOW_EQUAL,
    SX_SHADOW_DIFFERENT,
    SX_SHADOW_FAILED,
    SX_SHADOW_DROPPED, /* there was no room */
    SX_SHADOW_RESULTS,
} sx_shadow_result;

/* Of one model; zero-initialized. All functions may be called from any thread. */
typedef struct sx_model_metrics {
    atomic_uint_fast64_t requests[SX_METRIC_CODES]; /* requests by outcome */
    /* successful requests: from arrival to response */
    sx_latency request_latency[SX_METRIC_APIS][SX_ENTRYPOINTS];
    sx_latency run_latency[SX_METRIC_APIS];                       /* running the model only */
    atomic_uint_fast64_t example_buckets[SX_EXAMPLE_BUCKETS + 1]; /* the last: above all */
    atomic_uint_fast64_t examples;
    atomic_uint_fast64_t loads[2]; /* of versions: failed, succeeded */
    atomic_uint_fast64_t load_us;  /* of both */
    /* Of a model with a canary: requests that named no version, to others and to the canary. */
    atomic_uint_fast64_t shared_out[2];
    atomic_uint_fast64_t shadowed[SX_SHADOW_RESULTS];
} sx_model_metrics;

void sx_metrics_count(sx_model_metrics *metrics, sx_code code);
void sx_latency_add(sx_latency *latency, int64_t duration_ns);
/* Below which a share of them lies, about: 0.5 = the median. 0: there are none. */
double sx_latency_quantile_ms(const sx_latency *latency, double share);
/* `now_ns`: of sx_now_ns(). */
void sx_rate_add(sx_rate *rate, int64_t now_ns);
/* A second, over the last SX_RATE_SECONDS whole ones. */
double sx_rate_per_second(const sx_rate *rate, int64_t now_ns);
/* The examples of one request of Classify, Regress or MultiInference. */
void sx_metrics_add_examples(sx_model_metrics *metrics, size_t count);
/* A version was loaded, or could not be. */
void sx_metrics_add_load(sx_model_metrics *metrics, bool succeeded, int64_t duration_ns);

struct sx_metrics_row {
    const char *model;
    const sx_model_metrics *metrics;
};
/* Appends TensorFlow Serving's metric families of all models of a page, each with one HELP and TYPE
 * line; those of what there is not have no values. */
void sx_metrics_print(const struct sx_metrics_row *rows, size_t count, sx_buf *out);

/* The HELP and TYPE lines of a family. */
void sx_metrics_print_head(sx_buf *out, const char *name, const char *type, const char *help);
/* NAME_suffix{label="model",more without the closing brace. */
void sx_metrics_print_series(sx_buf *out, const char *name, const char *suffix, const char *label,
                             const char *model, const char *more);
/* One counter or gauge with HELP and TYPE. `type` is "counter" or "gauge". */
void sx_metrics_print_value(sx_buf *out, const char *name, const char *type, const char *help,
                            uint64_t value);

#endif
