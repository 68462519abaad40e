/* See profile_report.h. */
#include "profile_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "io/json_text.h"

enum { KERNEL_COLUMNS = 42, OPS_COLUMNS = 26, NODE_COLUMNS = 48 };

/* ---- Text ---- */

void sx_put_profile_title(sx_buf *out, const sx_profile_report *r)
{
    const sx_profiled *p = r->run;
    sx_buf_printf(out, "%s, ", r->model);
    if (p->signature != NULL) {
        sx_buf_printf(out, "signature %s", p->signature);
    } else {
        sx_buf_puts(out, p->train ? "train step" : "predict step");
    }
    sx_buf_printf(out, ", %s, batch %" PRId64, p->precision, p->batch);
    if (sx_profiled_on_cpu(p)) {
        sx_buf_printf(out, ", %d thread%s", p->threads, p->threads == 1 ? "" : "s");
    } else {
        sx_buf_printf(out, ", %s", p->device);
    }
}

double sx_profile_per_step(const sx_profile_report *r, double seconds, const char **out_unit)
{
    const double steps = r->run->threads * (double)r->run->steps;
    const bool micro = r->causes->total < 1e-3 * steps;
    *out_unit = micro ? "µs" : "ms";
    return seconds * (micro ? 1e6 : 1e3) / steps;
}

static double per_step(const sx_profile_report *r, double seconds)
{
    const char *unit;
    return sx_profile_per_step(r, seconds, &unit);
}

/* The beginning of a table's heading: "   ms/step   share". */
static void put_step_heading(sx_buf *out, const sx_profile_report *r)
{
    const char *unit;
    (void)sx_profile_per_step(r, 0, &unit);
    sx_buf_printf(out, "\n   %s/step %7s", unit, "share");
}

/* On a busy machine threads wait for their turn, too. */
static void put_load(sx_buf *out)
{
    double load = 0;
    const int processors = sx_cpu_count();
    if (getloadavg(&load, 1) == 1 && load > 1.25 * processors) {
        sx_buf_printf(
            out,
            "this machine is busy (load %.1f, %d processors): a thread that waits for its "
            "turn counts as waiting, or as a slow kernel\n",
            load, processors);
    }
}

static void put_limits(sx_buf *out, const sx_profile_report *r)
{
    const sx_cpu_limits *l = r->limits;
    if (l == NULL) {
        return;
    }
    sx_buf_printf(out, "%s; at most, per thread: %.0f GFLOP/s float32", r->cpu, l->f32 * 1e-9);
    if (l->bf16 > 0) {
        sx_buf_printf(out, ", %.0f bfloat16", l->bf16 * 1e-9);
    }
    sx_buf_printf(out, ", %.0f Gop/s int8; %.1f GB/s of second-level cache (", l->int8 * 1e-9,
                  l->cache * 1e-9);
    sx_buf_put_size(out, (double)l->cache_bytes);
    sx_buf_printf(out, "); %.1f GB/s of memory, shared by %d (%s)\n", l->memory * 1e-9, l->threads,
                  l->measured ? "measured now" : "measured before");
}

/* At most `columns` characters, with "…" if it is not all. */
static void put_cell(sx_buf *out, const char *text, int columns)
{
    const int length = (int)strlen(text);
    if (length <= columns) {
        sx_buf_printf(out, "%-*s", columns, text);
    } else {
        sx_buf_printf(out, "%.*s…", (int)sx_utf8_prefix(text, (size_t)columns - 1), text);
    }
}

static bool exceeds(double amount, double seconds, double limit)
{
    return limit > 0 && amount > 1.005 * limit * seconds;
}

/* A rate, and its share of the limit: "182.4  78 %". */
static void put_rate(sx_buf *out, double amount, double seconds, double limit)
{
    const double rate = seconds > 0 ? amount / seconds : 0;
    if (seconds > 0 && exceeds(amount, seconds, limit)) {
        sx_buf_printf(out, " %8.1f %6s", rate * 1e-9, ">100 %");
    } else if (limit > 0) {
        sx_buf_printf(out, " %8.1f %4.0f %%", rate * 1e-9, 100 * rate / limit);
    } else {
        sx_buf_printf(out, " %8.1f %6s", rate * 1e-9, "");
    }
}

static void put_row(sx_buf *out, const sx_profile_report *r, const sx_profile_kernel *k)
{
    sx_buf_printf(out, "%10.3f %5.1f %% %7" PRId64, per_step(r, k->seconds),
                  100 * k->seconds / r->causes->whole, k->calls);
    put_rate(out, k->flops, k->seconds, k->flops_limit);
    put_rate(out, k->bytes, k->seconds, k->bytes_limit);
    sx_buf_puts(out, "  ");
}

static void put_heading(sx_buf *out, const sx_profile_report *r)
{
    put_step_heading(out, r);
    const bool has_limits = sx_profiled_on_cpu(r->run);
    sx_buf_printf(out, " %7s %-15s %-15s  ", "calls", has_limits ? " GFLOP/s of max" : "  GFLOP/s",
                  has_limits ? "    GB/s of max" : "     GB/s");
}

/* The sum of what a table leaves out. */
static void put_rest(sx_buf *out, const sx_profile_report *r, const sx_profile_kernel *items, int n,
                     int rows, const char *what)
{
    double seconds = 0;
    for (int i = rows; i < n; i++) {
        seconds += items[i].seconds;
    }
    if (n > rows) {
        sx_buf_printf(out, "%10.3f %5.1f %%  in %d %s%s more\n", per_step(r, seconds),
                      100 * seconds / r->causes->whole, n - rows, what, n - rows == 1 ? "" : "s");
    }
}

static void put_groups(sx_buf *out, const sx_profile_report *r, const sx_profile_groups *groups,
                       int rows, const char *what)
{
    if (groups->n == 0) {
        return;
    }
    put_heading(out, r);
    sx_buf_printf(out, "%s\n", what);
    for (int i = 0; i < groups->n && i < rows; i++) {
        const sx_profile_kernel *k = &groups->items[i];
        put_row(out, r, k);
        sx_buf_printf(out, "%s", k->kernel);
        if (k->count > 1) {
            sx_buf_printf(out, " (%d)", k->count);
        }
        sx_buf_putc(out, '\n');
    }
    put_rest(out, r, groups->items, groups->n, rows, what);
}

/* What the rows are of the tables that know most. */
static const char *row_name(const sx_profile_report *r)
{
    return sx_profiled_on_cpu(r->run) ? "kernel" : "operation";
}

static void put_kernels(sx_buf *out, const sx_profile_report *r, int rows)
{
    const sx_profile_causes *c = r->causes;
    put_heading(out, r);
    sx_buf_printf(out, "%-*s %-*s layer\n", KERNEL_COLUMNS, row_name(r), OPS_COLUMNS, "operators");
    for (int i = 0; i < c->n && i < rows; i++) {
        const sx_profile_kernel *k = &c->kernels[i];
        put_row(out, r, k);
        put_cell(out, k->kernel, KERNEL_COLUMNS);
        sx_buf_putc(out, ' ');
        put_cell(out, k->ops, OPS_COLUMNS);
        sx_buf_putc(out, ' ');
        put_cell(out, k->node, NODE_COLUMNS);
        while (out->size > 0 && out->data[out->size - 1] == ' ') {
            out->size--;
        }
        sx_buf_putc(out, '\n');
    }
    put_rest(out, r, c->kernels, c->n, rows, row_name(r));
}

/* What it means that a kernel is above a limit. */
static void put_excess(sx_buf *out, const sx_profile_report *r)
{
    const sx_profile_causes *c = r->causes;
    bool computes = false, moves = false;
    for (int i = 0; i < c->n; i++) {
        const sx_profile_kernel *k = &c->kernels[i];
        computes = computes || exceeds(k->flops, k->seconds, k->flops_limit);
        moves = moves || exceeds(k->bytes, k->seconds, k->bytes_limit);
    }
    if (moves) {
        sx_buf_puts(out, "GB/s >100 %: a nearer cache had the data, or other threads left more of "
                         "the memory to this one\n");
    }
    if (computes) {
        sx_buf_puts(
            out,
            "GFLOP/s >100 %: max was measured while the processor was slower; measure it again "
            "with --measure-limits\n");
    }
}

/* Bytes that kernels read and write for an example: those of convolutions and products of matrices,
 * and of all others but the optimizer's. */
static void count_bytes(const sx_profile_report *r, double *products, double *between)
{
    static const char *const of_products[] = {"conv2d", "matmul", "stem"};
    const double examples = (double)r->run->steps * (double)r->run->batch;
    *products = *between = 0;
    for (int i = 0; i < r->causes->by_kernel.n; i++) {
        const sx_profile_kernel *k = &r->causes->by_kernel.items[i];
        bool is_product = false;
        for (size_t p = 0; p < SX_COUNT(of_products); p++) {
            is_product =
                is_product || strncmp(k->kernel, of_products[p], strlen(of_products[p])) == 0;
        }
        const bool is_update =
            strncmp(k->kernel, "apply_", 6) == 0 || strcmp(k->kernel, "all_finite") == 0;
        *products += is_product ? k->bytes / examples : 0;
        *between += is_product || is_update ? 0 : k->bytes / examples;
    }
}

static void put_bytes(sx_buf *out, const sx_profile_report *r)
{
    double products, between;
    count_bytes(r, &products, &between);
    sx_buf_puts(out, "bytes read and written for an example: ");
    sx_buf_put_size(out, products);
    sx_buf_puts(out, " by convolutions and products, ");
    sx_buf_put_size(out, between);
    sx_buf_puts(out, " between them\n");
}

static void put_causes(sx_buf *out, const sx_profile_report *r)
{
    const sx_profile_causes *c = r->causes;
    put_step_heading(out, r);
    sx_buf_printf(out, "  where the time of %d thread%s goes\n", r->run->threads,
                  r->run->threads == 1 ? "" : "s");
    for (int i = 0; i < SX_CAUSES; i++) {
        sx_buf_printf(out, "%10.3f %5.1f %%  %s\n", per_step(r, c->causes[i]),
                      100 * c->causes[i] / c->total, sx_cause_names[i].name);
    }
    sx_buf_printf(out, "%10.3f %5.1f %%  a step\n\n", per_step(r, c->total), 100.0);
}

bool sx_profile_tells_loop(const sx_profiled *p)
{
    return p->loop.n > 0 && (p->data != NULL || !sx_profiled_on_cpu(p));
}

void sx_put_profile_verdict(sx_buf *out, const sx_profile_report *r)
{
    const sx_profiled *p = r->run;
    const bool has_causes = sx_profiled_on_cpu(p);
    if (!sx_profile_tells_loop(p)) {
        sx_buf_puts(out, "what bounds this run: ");
        if (has_causes) {
            sx_put_profile_cause(out, r->causes, r->limits);
        } else {
            sx_buf_printf(out, "unknown%s%s", p->why_no_loop != NULL ? ": " : "",
                          p->why_no_loop != NULL ? p->why_no_loop : "");
        }
        return;
    }
    sx_put_bound(out, &p->loop,
                 &(sx_bound_about){.input_rate = p->input_rate,
                                   .unit = p->unit,
                                   .loops = p->train && !has_causes});
    if (has_causes && p->loop.bound == SX_BOUND_COMPUTE) {
        sx_buf_puts(out, "; most of its threads' time: ");
        sx_put_profile_cause(out, r->causes, r->limits);
    }
}

/* What the program as a whole does, by the counts of our own graph. */
static void put_program(sx_buf *out, const sx_profile_report *r)
{
    const sx_profiled *p = r->run;
    const double seconds =
        p->loop.all.seconds[SX_SPAN_COMPUTE] / (double)SX_MAX(p->loop.all.steps, 1);
    sx_buf_printf(out, "%s", p->kind);
    if (p->nodes.flops > 0 && seconds > 0) {
        sx_buf_printf(out, "; a step has %.3g GFLOP", p->nodes.flops * 1e-9);
        if (p->program.flops > 0) {
            sx_buf_printf(out, " (%.3g as its compiler counts)", p->program.flops * 1e-9);
        }
        sx_buf_printf(out, ", computed at %.3g GFLOP/s", p->nodes.flops / seconds * 1e-9);
        if (r->limits != NULL) {
            const double most = r->limits->f32 * r->limits->threads;
            sx_buf_printf(out, ", %.0f %% of what %d threads can do",
                          100 * p->nodes.flops / seconds / most, r->limits->threads);
        }
    }
    sx_buf_putc(out, '\n');
    if (r->why_none != NULL) {
        sx_buf_printf(out, "no times of operators: %s\n", r->why_none);
    }
}

void sx_put_profile_report(sx_buf *out, const sx_profile_report *r, int rows, unsigned by)
{
    const char *unit;
    const sx_profiled *p = r->run;
    const sx_profile_causes *c = r->causes;
    by = by != 0 ? by : SX_PROFILE_BY_OP | SX_PROFILE_BY_LAYER | SX_PROFILE_BY_KERNEL;
    sx_put_profile_title(out, r);
    const double step = sx_profile_per_step(r, c->total, &unit);
    sx_buf_printf(out, ": %.3f %s a step, %" PRId64 " steps\n", step, unit, p->steps);
    if (!sx_profiled_on_cpu(p)) {
        put_program(out, r);
    }
    put_limits(out, r);
    put_load(out);
    if (sx_profile_tells_loop(p)) {
        sx_put_timeline(out, &p->loop);
    }
    if (by & SX_PROFILE_BY_OP) {
        put_groups(out, r, &c->by_op, rows, "operator");
    }
    if (by & SX_PROFILE_BY_LAYER) {
        put_groups(out, r, &c->by_layer, rows, "layer");
    }
    if (by & SX_PROFILE_BY_KERNEL && c->n > 0) {
        put_groups(out, r, &c->by_kernel, sx_profiled_on_cpu(p) ? INT32_MAX : rows, row_name(r));
        put_kernels(out, r, rows);
    }
    put_excess(out, r);
    if (sx_profiled_on_cpu(p)) {
        put_causes(out, r);
        put_bytes(out, r);
    }
    sx_put_profile_verdict(out, r);
    sx_buf_putc(out, '\n');
}

/* ---- JSON ---- */

/* Null of a device that is not cpu: they are unknown. */
static json_t *causes_json(const sx_profile_report *r, const double *causes, int n)
{
    const double ms = 1e3 / r->run->threads / (double)r->run->steps;
    if (!sx_profiled_on_cpu(r->run)) {
        return json_null();
    }
    json_t *object = json_object();
    for (int i = 0; i < n; i++) {
        json_object_set_new(object, sx_cause_names[i].key, json_real(causes[i] * ms));
    }
    return object;
}

static json_t *kernel_json(const sx_profile_report *r, const char *key, const sx_profile_kernel *k)
{
    const double ms = 1e3 / r->run->threads / (double)r->run->steps;
    const double seconds = SX_MAX(k->seconds, 1e-12);
    json_t *object =
        json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", key, k->kernel, "calls",
                  (json_int_t)k->calls, "ms_per_step", k->seconds * ms, "share",
                  k->seconds / r->causes->whole, "flops_per_second_and_thread", k->flops / seconds,
                  "flops_limit", k->flops_limit, "bytes_per_second_and_thread", k->bytes / seconds,
                  "bytes_limit", k->bytes_limit, "causes_ms_per_step",
                  causes_json(r, k->causes, SX_CAUSE_WAITING));
    if (k->node != NULL) {
        json_object_set_new(object, "operators", json_string(k->ops));
        json_object_set_new(object, "layer", json_string(k->node));
    } else {
        json_object_set_new(object, "kernels", json_integer(k->count));
    }
    return object;
}

static json_t *limits_json(const sx_profile_report *r)
{
    const sx_cpu_limits *l = r->limits;
    if (l == NULL) {
        return json_null();
    }
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:I, s:b}", "processor", r->cpu,
                     "f32_flops_per_second_and_thread", l->f32, "bf16_flops_per_second_and_thread",
                     l->bf16, "int8_operations_per_second_and_thread", l->int8,
                     "memory_bytes_per_second", l->memory, "cache_bytes_per_second_and_thread",
                     l->cache, "cache_bytes", (json_int_t)l->cache_bytes, "measured_now",
                     l->measured);
}

/* `key`: what the rows are called by. */
static json_t *kernels_json(const sx_profile_report *r, const char *key,
                            const sx_profile_kernel *kernels, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(list, kernel_json(r, key, &kernels[i]));
    }
    return list;
}

static json_t *groups_json(const sx_profile_report *r, const char *key, const sx_profile_groups *g)
{
    return kernels_json(r, key, g->items, g->n);
}

/* Milliseconds by what was done. */
static json_t *spans_json(const sx_timeline_row *row, double ms)
{
    json_t *object = json_object();
    for (int kind = 0; kind < SX_SPANS; kind++) {
        json_object_set_new(object, sx_span_names[kind].key, json_real(row->seconds[kind] * ms));
    }
    return object;
}

static json_t *timeline_json(const sx_timeline_sums *s, double input_rate)
{
    if (s->n == 0) {
        return json_null();
    }
    json_t *launches = json_array();
    for (int i = 0; i < s->n; i++) {
        const sx_timeline_row *row = &s->rows[i];
        json_array_append_new(launches,
                              json_pack("{s:i, s:I, s:I, s:f, s:f, s:o}", "launch", row->launch,
                                        "steps", (json_int_t)row->steps, "examples",
                                        (json_int_t)row->examples, "transfer_bytes", row->bytes,
                                        "ms", (double)(row->end_ns - row->start_ns) * 1e-6, "ms_of",
                                        spans_json(row, 1e3)));
    }
    const double total = SX_MAX(s->total, 1e-12);
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "bound", sx_bound_key(s->bound),
                     "examples_per_second", (double)s->all.examples / total,
                     "input_examples_per_second", input_rate, "idle_share", s->idle / total,
                     "ms_per_step", 1e3 * total / (double)SX_MAX(s->all.steps, 1), "transfer_bytes",
                     s->all.bytes, "ms_per_step_of",
                     spans_json(&s->all, 1e3 / (double)SX_MAX(s->all.steps, 1)), "launches",
                     launches);
}

sx_status sx_put_profile_json(sx_buf *out, const sx_profile_report *r)
{
    const sx_profile_causes *c = r->causes;
    const double ms = 1e3 / r->run->threads / (double)r->run->steps;
    double products, between;
    char *text = NULL;
    sx_buf verdict;
    count_bytes(r, &products, &between);
    sx_buf_init(&verdict, 1 << 12);
    sx_put_profile_verdict(&verdict, r);
    const sx_profiled *p = r->run;
    json_t *object = json_pack(
        "{s:s, s:s, s:s?, s:s, s:I, s:i, s:I, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:s, s:s?, s:s?, s:f, s:f, s:s?, s:s}",
        "model", r->model, "mode", p->train ? "train" : "predict", "signature", p->signature,
        "precision", p->precision, "batch", (json_int_t)p->batch, "threads", p->threads, "steps",
        (json_int_t)p->steps, "ms_per_step", c->total * ms, "product_bytes_per_example", products,
        "other_bytes_per_example", between, "limits", limits_json(r), "causes_ms_per_step",
        causes_json(r, c->causes, SX_CAUSES), "groups", groups_json(r, "kernel", &c->by_kernel),
        "operators", groups_json(r, "operator", &c->by_op), "layers",
        groups_json(r, "layer", &c->by_layer), "kernels",
        kernels_json(r, "kernel", c->kernels, c->n), "timeline",
        timeline_json(&p->loop, p->input_rate), "device", p->device, "device_kind",
        sx_profiled_on_cpu(p) ? r->cpu : p->kind, "data", p->data, "flops_per_step", p->nodes.flops,
        "program_flops", p->program.flops, "no_operators_because", r->why_none, "verdict",
        sx_buf_text(&verdict));
    sx_status status = sx_json_text(object, JSON_INDENT(2) | JSON_ENSURE_ASCII, &text);
    json_decref(object);
    sx_buf_deinit(&verdict);
    if (status == SX_OK) {
        sx_buf_printf(out, "%s\n", text);
    }
    sx_free(text);
    return status != SX_OK ? status : sx_buf_status(out);
}
