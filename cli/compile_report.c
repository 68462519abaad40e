#include "compile_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/json_text.h"
#include "terminal.h"

enum { SHOWN_HOSTS = 4, SHOWN_WASTEFUL = 5, MIN_NAME_COLUMNS = 34 };

static const sx_aot_result *result_of(const sx_compile_report *r)
{
    return &r->plan->asked;
}

/* Peak bfloat16 FLOP/s of one device; 0 = unknown. */
static double peak(const sx_compile_report *r)
{
    const sx_tpu_generation *g = r->target->tpu;
    return g == NULL ? 0 : g->peak_bf16 * r->target->n_chips / result_of(r)->devices;
}

/* ---- Text output ---- */

static void put_row(sx_buf *out, const char *name, double bytes)
{
    sx_buf_printf(out, "  %-12s ", name);
    sx_buf_put_size(out, bytes);
    sx_buf_putc(out, '\n');
}

static void put_head(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_result *a = result_of(r);
    sx_buf_printf(out, "%s, %s step", r->model, r->mode);
    if (r->steps > 1) {
        sx_buf_printf(out, " in launches of %" PRId64, r->steps);
    }
    sx_buf_printf(out, ", %s, for %s", r->precision, r->target_text);
    if (r->target->tpu != NULL) {
        sx_buf_printf(out, " (%s, %s)", r->target->type, r->target->topology);
    }
    sx_buf_printf(out, ": %d × %s on %d host%s\nbatch ", a->devices, a->kind, a->hosts,
                  a->hosts == 1 ? "" : "s");
    sx_put_grouped(out, (double)a->batch);
    sx_buf_puts(out, ": ");
    sx_put_grouped(out, (double)(a->batch / a->devices));
    sx_buf_printf(out, " examples per device; compiled in %.1f s\n", a->compile_seconds);
}

static void put_hosts(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_result *a = result_of(r);
    int64_t first = 0, each = a->batch / a->devices;
    if (a->hosts < 2) {
        return;
    }
    sx_buf_puts(out, "input of each host per step\n");
    for (int h = 0; h < SX_MIN(a->hosts, SHOWN_HOSTS); h++) {
        int64_t n = each * a->host_devices[h];
        sx_buf_printf(
            out, "  host %-3d %d device%s, examples %" PRId64 " … %" PRId64 " (%" PRId64 ")\n", h,
            a->host_devices[h], a->host_devices[h] == 1 ? "" : "s", first, first + n - 1, n);
        first += n;
    }
    if (a->hosts > SHOWN_HOSTS) {
        sx_buf_printf(out, "  … %d hosts in total\n", a->hosts);
    }
}

static void put_memory(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_result *a = result_of(r);
    double total = (double)sx_aot_total_bytes(a), limit = (double)a->hbm_bytes;
    sx_buf_puts(out, "memory per device\n");
    put_row(out, "arguments", (double)a->facts.argument_bytes);
    sx_buf_puts(out, "  outputs      ");
    sx_buf_put_size(out, (double)a->facts.output_bytes);
    if (a->facts.alias_bytes > 0) {
        sx_buf_puts(out, ", of which ");
        sx_buf_put_size(out, (double)a->facts.alias_bytes);
        sx_buf_puts(out, " alias arguments");
    }
    sx_buf_putc(out, '\n');
    put_row(out, "temporaries", (double)a->facts.temporary_bytes);
    put_row(out, "code", (double)a->facts.code_bytes);
    sx_buf_puts(out, "  total        ");
    sx_buf_put_size(out, total);
    if (limit > 0) {
        sx_buf_puts(out, " of ");
        sx_buf_put_size(out, limit);
        sx_buf_printf(out, " (%.0f %%): %s", 100 * total / limit,
                      total <= limit ? "fits" : "does not fit");
    }
    sx_buf_putc(out, '\n');
}

static void put_compute(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_result *a = result_of(r);
    double flops = a->facts.flops, at = peak(r);
    if (flops <= 0) {
        return;
    }
    sx_buf_printf(out, "compute\n  %.4g GFLOP per step and device", flops * 1e-9);
    if (at > 0) {
        double seconds = flops / at;
        sx_buf_printf(out, "; at the bfloat16 peak of %.4g TFLOP/s %.3g ms, at most ", at * 1e-12,
                      seconds * 1e3);
        sx_put_grouped(out, (double)a->batch / seconds);
        sx_buf_puts(out, " examples/s in total");
    }
    sx_buf_putc(out, '\n');
}

static void put_pair(sx_buf *out, const char *name, int width, const sx_aot_bytes *b)
{
    double waste = b->padded > 0 ? 100.0 * (double)(b->padded - b->bytes) / (double)b->padded : 0;
    sx_buf_printf(out, "  %-*s ", width, name);
    sx_buf_put_size(out, (double)b->bytes);
    sx_buf_puts(out, " padded to ");
    sx_buf_put_size(out, (double)b->padded);
    sx_buf_printf(out, ": %.0f %% padding\n", waste);
}

/* "conv2d/conv2d bf16[4,26,26,32]" */
static int name_of(const sx_aot_result *a, int i, size_t size, char *out)
{
    const sx_aot_array *w = &a->wasteful[i];
    return snprintf(out, size, "%s %s", w->name[0] != '\0' ? w->name : "(unnamed)", w->type);
}

static void put_layouts(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_result *a = result_of(r);
    if (!a->has_layouts) {
        sx_buf_puts(out, "layouts: not reported by the plugin\n");
        return;
    }
    char name[2 * SX_AOT_NAME + 2];
    int n = SX_MIN(a->n_wasteful, SHOWN_WASTEFUL), width = MIN_NAME_COLUMNS;
    for (int i = 0; i < n; i++) {
        width = SX_MAX(width, name_of(a, i, sizeof(name), name));
    }
    sx_buf_puts(out, "layouts (arrays as tiled by the compiler, per device)\n");
    put_pair(out, "arguments", width, &a->arguments);
    put_pair(out, "intermediate values of a step", width, &a->activations);
    for (int i = 0; i < n; i++) {
        name_of(a, i, sizeof(name), name);
        put_pair(out, name, width, &a->wasteful[i].size);
    }
    sx_buf_puts(out, "largest layers (parameters with optimizer slots; intermediate values)\n");
    for (int i = 0; i < a->n_layers; i++) {
        sx_buf_printf(out, "  %-*s ", width, a->layers[i].name);
        sx_buf_put_size(out, (double)a->layers[i].parameters.padded);
        sx_buf_puts(out, "; ");
        sx_buf_put_size(out, (double)a->layers[i].activations.padded);
        sx_buf_putc(out, '\n');
    }
}

/* Whether the search ended before finding a batch that does not fit. */
static bool is_bound(const sx_aot_plan *p)
{
    return p->largest + p->asked.devices > SX_AOT_MOST_BATCH;
}

/* " (extrapolated from 4,096 and 32,768: 61,440; compiled, fits)" */
static void put_line(sx_buf *out, const sx_aot_plan *p)
{
    sx_buf_puts(out, " (extrapolated from ");
    sx_put_grouped(out, (double)p->points[0]);
    sx_buf_puts(out, " and ");
    sx_put_grouped(out, (double)p->points[1]);
    sx_buf_puts(out, ": ");
    sx_put_grouped(out, (double)p->by_line);
    sx_buf_printf(out, "; %s)",
                  p->largest == p->by_line  ? "compiled, fits"
                  : p->largest < p->by_line ? "that does not fit, this compiles and fits"
                                            : "this compiles and fits");
}

void sx_put_compile_largest(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_plan *p = r->plan;
    if (p->largest == 0) {
        return;
    }
    sx_buf_puts(out, "largest batch that fits: ");
    sx_put_grouped(out, (double)p->largest);
    if (is_bound(p)) {
        sx_buf_puts(out, " (the search ends here; larger batches may fit)");
    } else if (p->points[0] > 0) {
        put_line(out, p);
    }
    sx_buf_putc(out, '\n');
}

void sx_put_compile_report(sx_buf *out, const sx_compile_report *r)
{
    put_head(out, r);
    put_hosts(out, r);
    put_memory(out, r);
    put_compute(out, r);
    put_layouts(out, r);
}

void sx_put_compile_trial(sx_buf *out, int64_t batch, const sx_aot_result *a, bool fits)
{
    sx_buf_puts(out, "batch size ");
    sx_put_grouped(out, (double)batch);
    sx_buf_puts(out, ": ");
    if (a->batch == 0) {
        sx_buf_puts(out, "does not fit");
        return;
    }
    sx_buf_put_size(out, (double)sx_aot_total_bytes(a));
    if (a->hbm_bytes > 0) {
        sx_buf_puts(out, " of ");
        sx_buf_put_size(out, (double)a->hbm_bytes);
    }
    sx_buf_printf(out, " per device, %s; compiled in %.1f s", fits ? "fits" : "does not fit",
                  a->compile_seconds);
}

void sx_put_compile_misfit(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_plan *p = r->plan;
    sx_buf_printf(out, "a batch of %" PRId64 " does not fit on %s", r->batch, r->target_text);
    if (p->asked_bytes > 0 && p->asked.hbm_bytes > 0) {
        sx_buf_puts(out, ": it needs about ");
        sx_buf_put_size(out, p->asked_bytes);
        sx_buf_puts(out, " per device, which has ");
        sx_buf_put_size(out, (double)p->asked.hbm_bytes);
    }
    if (p->largest > 0) {
        sx_buf_printf(out, "; the largest batch that fits is about %" PRId64 "%s", p->largest,
                      is_bound(p) ? " or more" : "");
    }
    if (p->words[0] != '\0') {
        sx_buf_printf(out, "; compiler message: %.*s", (int)strcspn(p->words, "\n"), p->words);
    }
}

/* ---- JSON output ---- */

static json_t *bytes_json(const sx_aot_bytes *b)
{
    return json_pack("{s:I, s:I}", "bytes", (json_int_t)b->bytes, "padded_bytes",
                     (json_int_t)b->padded);
}

static json_t *memory_json(const sx_aot_result *a)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "argument_bytes",
        (json_int_t)a->facts.argument_bytes, "output_bytes", (json_int_t)a->facts.output_bytes,
        "alias_bytes", (json_int_t)a->facts.alias_bytes, "temporary_bytes",
        (json_int_t)a->facts.temporary_bytes, "code_bytes", (json_int_t)a->facts.code_bytes,
        "total_bytes", (json_int_t)sx_aot_total_bytes(a), "limit_bytes", (json_int_t)a->hbm_bytes);
}

static json_t *hosts_json(const sx_aot_result *a)
{
    json_t *hosts = json_array();
    int64_t first = 0, each = a->batch / a->devices;
    for (int h = 0; h < SX_MIN(a->hosts, SX_AOT_HOSTS); h++) {
        json_array_append_new(hosts, json_pack("{s:i, s:I, s:I}", "devices", a->host_devices[h],
                                               "first_example", (json_int_t)first, "examples",
                                               (json_int_t)(each * a->host_devices[h])));
        first += each * a->host_devices[h];
    }
    return hosts;
}

static json_t *layers_json(const sx_aot_result *a)
{
    json_t *layers = json_array();
    for (int i = 0; i < a->n_layers; i++) {
        json_array_append_new(layers,
                              json_pack("{s:s, s:o, s:o}", "name", a->layers[i].name, "parameters",
                                        bytes_json(&a->layers[i].parameters), "activations",
                                        bytes_json(&a->layers[i].activations)));
    }
    return layers;
}

static json_t *padding_json(const sx_aot_result *a)
{
    json_t *rows = json_array();
    for (int i = 0; i < a->n_wasteful; i++) {
        json_array_append_new(rows, json_pack("{s:s, s:s, s:o}", "name", a->wasteful[i].name,
                                              "type", a->wasteful[i].type, "size",
                                              bytes_json(&a->wasteful[i].size)));
    }
    return json_pack("{s:o, s:o, s:o}", "arguments", bytes_json(&a->arguments), "values",
                     bytes_json(&a->activations), "most", rows);
}

static void add_result(json_t *object, const sx_compile_report *r)
{
    const sx_aot_result *a = result_of(r);
    json_object_set_new(object, "device_kind", json_string(a->kind));
    json_object_set_new(object, "devices", json_integer(a->devices));
    json_object_set_new(object, "iterations_per_loop", json_integer(r->steps));
    json_object_set_new(object, "compiled_batch", json_integer(a->batch));
    json_object_set_new(object, "compile_seconds", json_real(a->compile_seconds));
    json_object_set_new(object, "hosts", hosts_json(a));
    json_object_set_new(object, "memory", memory_json(a));
    json_object_set_new(object, "flops", json_real(a->facts.flops));
    if (peak(r) > 0) {
        json_object_set_new(object, "peak_flops_per_second", json_real(peak(r)));
        json_object_set_new(object, "seconds_at_peak", json_real(a->facts.flops / peak(r)));
    }
    if (a->has_layouts) {
        json_object_set_new(object, "padding", padding_json(a));
        json_object_set_new(object, "layers", layers_json(a));
    }
}

sx_status sx_put_compile_json(sx_buf *out, const sx_compile_report *r)
{
    const sx_aot_plan *p = r->plan;
    char *text = NULL;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:I, s:b}", "model", r->model, "mode", r->mode,
                               "precision", r->precision, "target", r->target_text, "batch",
                               (json_int_t)r->batch, "fits", p->fits);
    if (p->asked.devices > 0) {
        add_result(object, r);
    }
    if (p->largest > 0) {
        json_object_set_new(object, "largest_batch", json_integer(p->largest));
        json_object_set_new(object, "largest_by_line", json_integer(p->by_line));
        json_object_set_new(object, "larger_may_fit", json_boolean(is_bound(p)));
    }
    sx_status status = sx_json_text(object, JSON_INDENT(2) | JSON_ENSURE_ASCII, &text);
    json_decref(object);
    if (status == SX_OK) {
        sx_buf_printf(out, "%s\n", text);
    }
    sx_free(text);
    return status != SX_OK ? status : sx_buf_status(out);
}
