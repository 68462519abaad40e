/* See batch_metrics.h. */
#include "serve/batch_metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "serve/metrics.h"

#define SESSION ":tensorflow:serving:batching_session:"

static const double first_us = 100, growth = 1.2;
static const char pool[] = "thread_pool_name=\"model_server_batch_threads\"";

static void add_rows(sx_rows_histogram *histogram, int64_t rows)
{
    int bucket = 0;
    while (bucket < SX_BATCH_ROW_BUCKETS && rows > (int64_t)1 << bucket) {
        bucket++;
    }
    histogram->buckets[bucket]++;
    histogram->sum += (uint64_t)rows;
}

void sx_batch_metrics_add_call(sx_batch_metrics *metrics, int64_t rows, int64_t waited_ns)
{
    const double us = (double)SX_MAX(waited_ns, (int64_t)0) / 1000;
    double bound = first_us;
    int bucket = 0;
    for (; bucket < SX_QUEUE_BUCKETS && us > bound; bucket++) {
        bound *= growth;
    }
    metrics->queued[bucket]++;
    metrics->queued_us += us;
    add_rows(&metrics->calls, rows);
}

void sx_batch_metrics_add_run(sx_batch_metrics *metrics, int64_t rows, int64_t size)
{
    int i = 0;
    metrics->runs++;
    add_rows(&metrics->batches, size);
    while (i < metrics->padding_count && metrics->padding[i].size != size) {
        i++;
    }
    if (i < SX_PADDED_SIZES) {
        metrics->padding_count = SX_MAX(metrics->padding_count, i + 1);
        metrics->padding[i].size = size;
        add_rows(&metrics->padding[i].rows, size - rows);
    }
}

/* `labels` without braces; empty: none. */
static void print_histogram(sx_buf *out, const char *name, const char *labels,
                            const uint64_t *buckets, int bounds, double first, double factor,
                            double sum)
{
    const char *comma = labels[0] != '\0' ? "," : "";
    double bound = first;
    uint64_t below = 0;
    for (int i = 0; i <= bounds; i++, bound *= factor) {
        below += buckets[i];
        sx_buf_printf(out, "%s_bucket{%s%sle=\"", name, labels, comma);
        sx_buf_printf(out, i < bounds ? "%.10g" : "+Inf", bound);
        sx_buf_printf(out, "\"} %" PRIu64 "\n", below);
    }
    sx_buf_printf(out, "%s_sum{%s} %.10g\n%s_count{%s} %" PRIu64 "\n", name, labels, sum, name,
                  labels, below);
}

static void print_rows(sx_buf *out, const char *name, const char *help,
                       const sx_rows_histogram *rows)
{
    sx_metrics_print_head(out, name, "histogram", help);
    print_histogram(out, name, "", rows->buckets, SX_BATCH_ROW_BUCKETS, 1, 2, (double)rows->sum);
}

void sx_batch_metrics_print(const sx_batch_metrics *m, sx_buf *out)
{
    sx_metrics_print_head(out, SESSION "queuing_latency", "histogram",
                          "Microseconds of waiting for a batch.");
    print_histogram(out, SESSION "queuing_latency", pool, m->queued, SX_QUEUE_BUCKETS, first_us,
                    growth, m->queued_us);
    sx_metrics_print_value(out, SESSION "wrapped_run_count", "counter", "Runs of batches.",
                           m->runs);
    print_rows(out, SESSION "input_batch_size", "Examples of requests that were batched.",
               &m->calls);
    print_rows(out, SESSION "processed_batch_size", "Examples of batches, with padding.",
               &m->batches);
    sx_metrics_print_head(out, SESSION "padding_size", "histogram", "Padding of batches.");
    for (int i = 0; i < m->padding_count; i++) {
        const struct sx_padding *padding = &m->padding[i];
        char label[64];
        snprintf(label, sizeof(label), "execution_batch_size=\"%" PRId64 "\"", padding->size);
        print_histogram(out, SESSION "padding_size", label, padding->rows.buckets,
                        SX_BATCH_ROW_BUCKETS, 1, 2, (double)padding->rows.sum);
    }
}
