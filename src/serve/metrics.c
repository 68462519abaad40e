/* Counters of the server and their Prometheus text; see metrics.h. */
#include "serve/metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/checked.h"

static const double first_bound_us = 10, bound_growth = 1.8;

void sx_metrics_count(sx_model_metrics *metrics, sx_code code)
{
    const int index = (int)code >= 0 && (int)code < SX_METRIC_CODES ? (int)code : SX_UNKNOWN;
    atomic_fetch_add_explicit(&metrics->requests[index], 1, memory_order_relaxed);
}

void sx_latency_add(sx_latency *latency, int64_t duration_ns)
{
    const double us = (double)duration_ns / 1000;
    double bound = first_bound_us;
    int bucket = 0;
    for (; bucket < SX_LATENCY_BUCKETS && us > bound; bucket++) {
        bound *= bound_growth;
    }
    atomic_fetch_add_explicit(&latency->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&latency->sum_ns, (uint64_t)SX_MAX(duration_ns, (int64_t)0),
                              memory_order_relaxed);
}

double sx_latency_quantile_ms(const sx_latency *latency, double share)
{
    uint64_t total = 0;
    for (int i = 0; i <= SX_LATENCY_BUCKETS; i++) {
        total += atomic_load_explicit(&latency->buckets[i], memory_order_relaxed);
    }
    double below = 0, low_us = 0, high_us = first_bound_us;
    for (int i = 0; i <= SX_LATENCY_BUCKETS && total > 0; i++) {
        const double count =
            (double)atomic_load_explicit(&latency->buckets[i], memory_order_relaxed);
        if (count > 0 && below + count >= share * (double)total) {
            return (low_us + (high_us - low_us) * (share * (double)total - below) / count) / 1000;
        }
        below += count;
        low_us = high_us;
        high_us *= bound_growth;
    }
    return 0;
}

void sx_rate_add(sx_rate *rate, int64_t now_ns)
{
    const uint64_t second = (uint64_t)now_ns / 1000000000;
    atomic_uint_fast64_t *slot = &rate->slots[second % SX_COUNT(rate->slots)];
    uint_fast64_t before = atomic_load_explicit(slot, memory_order_relaxed), after;
    do {
        after = before >> 32 == second ? before + 1 : second << 32 | 1;
    } while (!atomic_compare_exchange_weak_explicit(slot, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
}

double sx_rate_per_second(const sx_rate *rate, int64_t now_ns)
{
    const uint64_t now = (uint64_t)now_ns / 1000000000;
    uint64_t count = 0;
    for (size_t i = 0; i < SX_COUNT(rate->slots); i++) {
        const uint64_t slot = atomic_load_explicit(&rate->slots[i], memory_order_relaxed);
        const uint64_t second = slot >> 32;
        count += second < now && now - second <= SX_RATE_SECONDS ? slot & UINT32_MAX : 0;
    }
    return (double)count / SX_RATE_SECONDS;
}

void sx_metrics_add_examples(sx_model_metrics *metrics, size_t count)
{
    int bucket = 0;
    while (bucket < SX_EXAMPLE_BUCKETS && count > (size_t)1 << bucket) {
        bucket++;
    }
    atomic_fetch_add_explicit(&metrics->example_buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&metrics->examples, count, memory_order_relaxed);
}

void sx_metrics_add_load(sx_model_metrics *metrics, bool succeeded, int64_t duration_ns)
{
    atomic_fetch_add_explicit(&metrics->loads[succeeded], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&metrics->load_us, (uint64_t)SX_MAX(duration_ns, (int64_t)0) / 1000,
                              memory_order_relaxed);
}

static uint64_t load(const atomic_uint_fast64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* A label's value: backslash, quote and newline escaped. */
static void print_label(sx_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n') {
            sx_buf_puts(out, "\\n");
            continue;
        }
        if (*text == '\\' || *text == '"') {
            sx_buf_putc(out, '\\');
        }
        sx_buf_putc(out, *text);
    }
}

void sx_metrics_print_head(sx_buf *out, const char *name, const char *type, const char *help)
{
    sx_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void sx_metrics_print_series(sx_buf *out, const char *name, const char *suffix, const char *label,
                             const char *model, const char *more)
{
    sx_buf_printf(out, "%s%s{%s=\"", name, suffix, label);
    print_label(out, model);
    sx_buf_printf(out, "\"%s", more);
}

static void print_requests(sx_buf *out, const struct sx_metrics_row *row)
{
    for (int code = 0; code < SX_METRIC_CODES; code++) {
        const uint64_t count = load(&row->metrics->requests[code]);
        if (count > 0) {
            sx_metrics_print_series(out, ":tensorflow:serving:request_count", "", "model_name",
                                    row->model, "");
            sx_buf_printf(out, ",status=\"%s\"} %" PRIu64 "\n", sx_code_name((sx_code)code), count);
        }
    }
}

/* The buckets of a histogram with bounds first * growth^k, then its sum and count. */
static void print_histogram(sx_buf *out, const char *name, const char *label, const char *model,
                            const char *more, const atomic_uint_fast64_t *buckets, int bounds,
                            double first, double growth, double sum)
{
    double bound = first;
    uint64_t below = 0;
    for (int i = 0; i <= bounds; i++, bound *= growth) {
        below += load(&buckets[i]);
        sx_metrics_print_series(out, name, "_bucket", label, model, more);
        if (i < bounds) {
            sx_buf_printf(out, ",le=\"%g\"} %" PRIu64 "\n", bound, below);
        } else {
            sx_buf_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n", below);
        }
    }
    sx_metrics_print_series(out, name, "_sum", label, model, more);
    sx_buf_printf(out, "} %.10g\n", sum);
    sx_metrics_print_series(out, name, "_count", label, model, more);
    sx_buf_printf(out, "} %" PRIu64 "\n", below);
}

static bool is_empty(const atomic_uint_fast64_t *buckets, int count)
{
    for (int i = 0; i < count; i++) {
        if (load(&buckets[i]) > 0) {
            return false;
        }
    }
    return true;
}

static void print_latency(sx_buf *out, const char *name, const char *more, const char *model,
                          const sx_latency *latency)
{
    if (!is_empty(latency->buckets, SX_LATENCY_BUCKETS + 1)) {
        print_histogram(out, name, "model_name", model, more, latency->buckets, SX_LATENCY_BUCKETS,
                        first_bound_us, bound_growth, (double)load(&latency->sum_ns) / 1000);
    }
}

static void print_request_latency(sx_buf *out, const struct sx_metrics_row *row)
{
    /* TensorFlow Serving has them so: capitals from gRPC, none from REST. */
    static const char *const labels[SX_METRIC_APIS][SX_ENTRYPOINTS] = {
        [SX_API_PREDICT] = {",API=\"Predict\",entrypoint=\"GRPC\"",
                            ",API=\"predict\",entrypoint=\"REST\""},
        [SX_API_CLASSIFY] = {",API=\"Classify\",entrypoint=\"GRPC\"",
                             ",API=\"classify\",entrypoint=\"REST\""},
        [SX_API_REGRESS] = {",API=\"Regress\",entrypoint=\"GRPC\"",
                            ",API=\"regress\",entrypoint=\"REST\""},
    };
    for (int api = 0; api < SX_METRIC_APIS; api++) {
        for (int entry = 0; entry < SX_ENTRYPOINTS; entry++) {
            print_latency(out, ":tensorflow:serving:request_latency", labels[api][entry],
                          row->model, &row->metrics->request_latency[api][entry]);
        }
    }
}

static void print_run_latency(sx_buf *out, const struct sx_metrics_row *row)
{
    static const char *const labels[SX_METRIC_APIS] = {
        [SX_API_PREDICT] = ",API=\"Predict\",runtime=\"TF1\"",
        [SX_API_CLASSIFY] = ",API=\"Classify\",runtime=\"TF1\"",
        [SX_API_REGRESS] = ",API=\"Regress\",runtime=\"TF1\"",
    };
    for (int api = 0; api < SX_METRIC_APIS; api++) {
        print_latency(out, ":tensorflow:serving:runtime_latency", labels[api], row->model,
                      &row->metrics->run_latency[api]);
    }
}

static void print_example_counts(sx_buf *out, const struct sx_metrics_row *row)
{
    if (!is_empty(row->metrics->example_buckets, SX_EXAMPLE_BUCKETS + 1)) {
        print_histogram(out, ":tensorflow:serving:request_example_counts", "model", row->model, "",
                        row->metrics->example_buckets, SX_EXAMPLE_BUCKETS, 1, 2,
                        (double)load(&row->metrics->examples));
    }
}

static void print_example_total(sx_buf *out, const struct sx_metrics_row *row)
{
    if (load(&row->metrics->examples) > 0) {
        sx_metrics_print_series(out, ":tensorflow:serving:request_example_count_total", "", "model",
                                row->model, "");
        sx_buf_printf(out, "} %" PRIu64 "\n", load(&row->metrics->examples));
    }
}

static void print_loads(sx_buf *out, const struct sx_metrics_row *row)
{
    static const char *const labels[] = {",status=\"fail\"", ",status=\"success\""};
    for (int i = 0; i < 2; i++) {
        const uint64_t count = load(&row->metrics->loads[i]);
        if (count > 0) {
            sx_metrics_print_series(out, ":tensorflow:cc:saved_model:load_attempt_count", "",
                                    "model_path", row->model, labels[i]);
            sx_buf_printf(out, "} %" PRIu64 "\n", count);
        }
    }
}

static void print_load_latency(sx_buf *out, const struct sx_metrics_row *row)
{
    if (load(&row->metrics->load_us) > 0) {
        sx_metrics_print_series(out, ":tensorflow:cc:saved_model:load_latency", "", "model_path",
                                row->model, "");
        sx_buf_printf(out, "} %" PRIu64 "\n", load(&row->metrics->load_us));
    }
}

static void print_shared_out(sx_buf *out, const struct sx_metrics_row *row)
{
    static const char *const labels[] = {",to=\"stable\"", ",to=\"canary\""};
    for (int i = 0; i < 2; i++) {
        const uint64_t count = load(&row->metrics->shared_out[i]);
        if (count > 0) {
            sx_metrics_print_series(out, "sextant_canary_requests_total", "", "model_name",
                                    row->model, labels[i]);
            sx_buf_printf(out, "} %" PRIu64 "\n", count);
        }
    }
}

static void print_shadowed(sx_buf *out, const struct sx_metrics_row *row)
{
    static const char *const labels[SX_SHADOW_RESULTS] = {
        [SX_SHADOW_EQUAL] = ",result=\"equal\"",
        [SX_SHADOW_DIFFERENT] = ",result=\"different\"",
        [SX_SHADOW_FAILED] = ",result=\"failed\"",
        [SX_SHADOW_DROPPED] = ",result=\"dropped\"",
    };
    for (int i = 0; i < SX_SHADOW_RESULTS; i++) {
        const uint64_t count = load(&row->metrics->shadowed[i]);
        if (count > 0) {
            sx_metrics_print_series(out, "sextant_shadow_requests_total", "", "model_name",
                                    row->model, labels[i]);
            sx_buf_printf(out, "} %" PRIu64 "\n", count);
        }
    }
}

/* The runs of all models and the time that they took. */
static void print_runs(const struct sx_metrics_row *rows, size_t count, sx_buf *out)
{
    uint64_t runs = 0, run_ns = 0;
    for (size_t i = 0; i < count; i++) {
        for (int api = 0; api < SX_METRIC_APIS; api++) {
            const sx_latency *latency = &rows[i].metrics->run_latency[api];
            run_ns += load(&latency->sum_ns);
            for (int k = 0; k <= SX_LATENCY_BUCKETS; k++) {
                runs += load(&latency->buckets[k]);
            }
        }
    }
    sx_metrics_print_value(out, ":tensorflow:core:graph_runs", "counter", "Runs of models.", runs);
    sx_metrics_print_value(out, ":tensorflow:core:graph_run_time_usecs", "counter",
                           "Microseconds of these runs together.", run_ns / 1000);
    sx_metrics_print_value(out, ":tensorflow:core:direct_session_runs", "counter",
                           "Runs of models.", runs);
}

void sx_metrics_print(const struct sx_metrics_row *rows, size_t count, sx_buf *out)
{
    static const struct {
        const char *name, *type, *help;
        void (*print)(sx_buf *out, const struct sx_metrics_row *row); /* NULL: has no values */
    } families[] = {
        {":tensorflow:serving:request_count", "counter", "Requests by status.", print_requests},
        {":tensorflow:serving:request_latency", "histogram",
         "Microseconds from the arrival of a request to its response; successful requests only.",
         print_request_latency},
        {":tensorflow:serving:runtime_latency", "histogram",
         "Microseconds spent running the model.", print_run_latency},
        {":tensorflow:serving:request_example_counts", "histogram",
         "tf.Examples per request of Classify, Regress and MultiInference.", print_example_counts},
        {":tensorflow:serving:request_example_count_total", "counter",
         "tf.Examples of these requests together.", print_example_total},
        {":tensorflow:serving:model_warmup_latency", "histogram", "Microseconds of warming up.",
         NULL},
        {":tensorflow:serving:model_warmup_records_read", "counter", "Warm-up records.", NULL},
        {":tensorflow:serving:mlmd_map", "gauge", "Identifiers of ML Metadata.", NULL},
        {":tensorflow:cc:saved_model:load_attempt_count", "counter",
         "Versions that were loaded, or could not be.", print_loads},
        {":tensorflow:cc:saved_model:load_latency", "counter",
         "Microseconds of loading versions, together.", print_load_latency},
        {"sextant_canary_requests_total", "counter",
         "Requests without a version that were shared out between the canary and others.",
         print_shared_out},
        {"sextant_shadow_requests_total", "counter",
         "Copies of requests for the shadow, by how its answers compare.", print_shadowed},
    };
    for (size_t i = 0; i < SX_COUNT(families); i++) {
        sx_metrics_print_head(out, families[i].name, families[i].type, families[i].help);
        for (size_t k = 0; k < count && families[i].print != NULL; k++) {
            families[i].print(out, &rows[k]);
        }
    }
    print_runs(rows, count, out);
}

void sx_metrics_print_value(sx_buf *out, const char *name, const char *type, const char *help,
                            uint64_t value)
{
    sx_metrics_print_head(out, name, type, help);
    sx_buf_printf(out, "%s %" PRIu64 "\n", name, value);
}
