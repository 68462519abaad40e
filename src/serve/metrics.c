/* Counters of the server and their Prometheus text; see metrics.h. */
#include "serve/metrics.h"

#include <inttypes.h>
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

static void print_head(sx_buf *out, const char *name, const char *type, const char *help)
{
    sx_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_series(sx_buf *out, const char *name, const char *suffix, const char *model,
                         const char *more)
{
    sx_buf_printf(out, "%s%s{model_name=\"", name, suffix);
    print_label(out, model);
    sx_buf_printf(out, "\"%s", more);
}

static void print_requests(sx_buf *out, const struct sx_metrics_row *row)
{
    for (int code = 0; code < SX_METRIC_CODES; code++) {
        const uint64_t count = load(&row->metrics->requests[code]);
        if (count > 0) {
            print_series(out, ":tensorflow:serving:request_count", "", row->model, "");
            sx_buf_printf(out, ",status=\"%s\"} %" PRIu64 "\n", sx_code_name((sx_code)code), count);
        }
    }
}

static void print_latency(sx_buf *out, const char *name, const char *labels, const char *model,
                          const sx_latency *latency)
{
    double bound = first_bound_us;
    uint64_t below = 0;
    for (int i = 0; i < SX_LATENCY_BUCKETS; i++, bound *= bound_growth) {
        below += load(&latency->buckets[i]);
        print_series(out, name, "_bucket", model, labels);
        sx_buf_printf(out, ",le=\"%g\"} %" PRIu64 "\n", bound, below);
    }
    below += load(&latency->buckets[SX_LATENCY_BUCKETS]);
    print_series(out, name, "_bucket", model, labels);
    sx_buf_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n", below);
    print_series(out, name, "_sum", model, labels);
    sx_buf_printf(out, "} %.3f\n", (double)load(&latency->sum_ns) / 1000);
    print_series(out, name, "_count", model, labels);
    sx_buf_printf(out, "} %" PRIu64 "\n", below);
}

void sx_metrics_print(const struct sx_metrics_row *rows, size_t count, sx_buf *out)
{
    print_head(out, ":tensorflow:serving:request_count", "counter", "Requests by status.");
    for (size_t i = 0; i < count; i++) {
        print_requests(out, &rows[i]);
    }
    print_head(
        out, ":tensorflow:serving:request_latency", "histogram",
        "Microseconds from the arrival of a request to its response; successful requests only.");
    for (size_t i = 0; i < count; i++) {
        print_latency(out, ":tensorflow:serving:request_latency",
                      ",API=\"predict\",entrypoint=\"REST\"", rows[i].model,
                      &rows[i].metrics->request_latency);
    }
    print_head(out, ":tensorflow:serving:runtime_latency", "histogram",
               "Microseconds spent running the model.");
    for (size_t i = 0; i < count; i++) {
        print_latency(out, ":tensorflow:serving:runtime_latency",
                      ",API=\"predict\",runtime=\"sextant\"", rows[i].model,
                      &rows[i].metrics->run_latency);
    }
}

void sx_metrics_print_value(sx_buf *out, const char *name, const char *type, const char *help,
                            uint64_t value)
{
    print_head(out, name, type, help);
    sx_buf_printf(out, "%s %" PRIu64 "\n", name, value);
}
