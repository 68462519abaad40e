/* See compile_memory.h. */
#include "compile_memory.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pool.h"
#include "io/json_text.h"
#include "terminal.h"

enum { SHOWN = 12 };

/* ---- Planning ---- */

static int64_t bytes_with_batch(const sx_graph *g, sx_value v, int64_t batch)
{
    const sx_type type = sx_type_with_batch(*sx_graph_type(g, v), batch);
    return SX_MAX(sx_type_bytes(&type), 0);
}

sx_status sx_memory_report_make(const sx_memory_request *request, sx_memory_report *out)
{
    const sx_graph *g = request->graph;
    const sx_cpu_plan_options options = {.batch = request->batch,
                                         .workers = request->threads > 0 ? request->threads
                                                                         : sx_cpu_count(),
                                         .frozen = request->frozen,
                                         .eval_shards = request->eval_shards,
                                         .memory_limit_bytes = request->limit,
                                         .map = true};
    *out = (sx_memory_report){.of = request};
    SX_TRY(sx_cpu_plan_create(g, &options, &out->plan));
    SX_TRY(sx_cpu_find_critical_path(out->plan, &out->work));
    for (int i = 0; i < g->n_args; i++) {
        const bool variable = g->args[i].kind == SX_ARG_VARIABLE;
        *(variable ? &out->variables : &out->inputs) +=
            bytes_with_batch(g, g->args[i].value, request->batch);
    }
    for (int i = 0; i < g->n_results; i++) {
        out->outputs +=
            g->results[i].arg < 0 ? bytes_with_batch(g, g->results[i].value, request->batch) : 0;
    }
    out->constants = out->plan->const_bytes + out->plan->kept_bytes + out->plan->large_bytes;
    out->temporaries = out->plan->map->bytes;
    out->least = out->plan->map->least_bytes;
    return SX_OK;
}

void sx_memory_report_end(sx_memory_report *r)
{
    sx_cpu_plan_destroy(r->plan);
}

double sx_memory_excess(const sx_memory_report *r)
{
    return r->least > 0 ? 100 * ((double)r->temporaries / (double)r->least - 1) : 0;
}

/* How many operations are computed again for the limit, in percent of the others. */
static double again_percent(const sx_memory_report *r)
{
    const double again = r->plan->map->again_flops * r->plan->shards;
    return r->plan->flops > 0 ? 100 * again / r->plan->flops : 0;
}

static int by_size(const void *a, const void *b)
{
    const sx_cpu_mapped *x = *(const sx_cpu_mapped *const *)a;
    const sx_cpu_mapped *y = *(const sx_cpu_mapped *const *)b;
    if (x->life.bytes != y->life.bytes) {
        return x->life.bytes > y->life.bytes ? -1 : 1;
    }
    return (x > y) - (x < y);
}

/* The blocks that are alive where most is, the largest first; of shards, those of one. */
static const sx_cpu_mapped **find_at_peak(const sx_memory_report *r, sx_arena *arena,
                                          int *out_count)
{
    const sx_cpu_memory_map *map = r->plan->map;
    const sx_cpu_mapped **alive = sx_arena_array(arena, map->n + 1, const sx_cpu_mapped *);
    int n = 0;
    for (int i = 0; i < map->n && alive != NULL; i++) {
        const sx_cpu_life *l = &map->blocks[i].life;
        if (l->first <= map->least_step && map->least_step <= l->last) {
            alive[n++] = &map->blocks[i];
        }
    }
    if (n > 0) {
        qsort(alive, (size_t)n, sizeof(const sx_cpu_mapped *), by_size);
    }
    *out_count = n;
    return alive;
}

/* ---- Text ---- */

static void put_work(sx_buf *out, const sx_cpu_work *w)
{
    sx_buf_printf(out, "%" PRId64 " step%s, ", w->steps, w->steps == 1 ? "" : "s");
    sx_buf_put_size(out, w->bytes);
    sx_buf_printf(out, " and %.3g GFLOP", w->flops * 1e-9);
}

/* How the work is divided among as many processors as there are threads. */
static void put_critical_path(sx_buf *out, const sx_memory_report *r)
{
    sx_buf_printf(out, "work, in %d stage%s\n  all          ", r->work.stages,
                  r->work.stages == 1 ? "" : "s");
    put_work(out, &r->work.all);
    sx_buf_printf(out, "\n  busiest      ");
    put_work(out, &r->work.path);
    sx_buf_printf(out, ": one of %d thread%s\n  alone        ", r->plan->workers,
                  r->plan->workers == 1 ? "" : "s");
    put_work(out, &r->work.alone);
    sx_buf_puts(out, " of these in steps that are not divided\n");
}

void sx_put_memory_title(sx_buf *out, const sx_memory_report *r)
{
    const int shards = r->plan->shards;
    sx_buf_printf(out, "%s, %s step, %s, batch ", r->of->model, r->of->mode, r->of->precision);
    sx_put_grouped(out, (double)r->of->batch);
    sx_buf_printf(out, ", on the CPU: %d shard%s", shards, shards == 1 ? "" : "s");
}

static void put_row(sx_buf *out, const char *name, int64_t bytes)
{
    sx_buf_printf(out, "  %-12s ", name);
    sx_buf_put_size(out, (double)bytes);
}

static const char *step_layer(const sx_memory_report *r)
{
    const sx_cpu_memory_map *map = r->plan->map;
    return map->least_step < map->n_steps ? map->step_layers[map->least_step] : "";
}

static void put_alive(sx_buf *out, const sx_memory_report *r)
{
    const sx_cpu_memory_map *map = r->plan->map;
    sx_arena arena;
    int n = 0;
    sx_arena_init(&arena, 0);
    const sx_cpu_mapped **alive = find_at_peak(r, &arena, &n);
    sx_buf_printf(out, "most is alive in step %d of %d, %.80s:\n", map->least_step + 1,
                  map->n_steps, step_layer(r));
    int64_t rest = 0;
    for (int i = 0; i < n; i++) {
        const bool own = !alive[i]->common && map->shards > 1;
        if (i >= SHOWN) {
            rest += alive[i]->life.bytes * (own ? map->shards : 1);
            continue;
        }
        sx_buf_puts(out, "  ");
        if (own) {
            sx_buf_printf(out, "%d × ", map->shards);
        }
        sx_buf_put_size(out, (double)alive[i]->life.bytes);
        sx_buf_printf(out, "  %s (steps %d … %d)%s\n", alive[i]->what, alive[i]->life.first + 1,
                      alive[i]->life.last + 1, alive[i]->again ? ", computed again" : "");
    }
    if (n > SHOWN) {
        sx_buf_puts(out, "  ");
        sx_buf_put_size(out, (double)rest);
        sx_buf_printf(out, "  in %d other%s\n", n - SHOWN, n - SHOWN == 1 ? "" : "s");
    }
    sx_arena_deinit(&arena);
}

void sx_put_memory_report(sx_buf *out, const sx_memory_report *r)
{
    sx_put_memory_title(out, r);
    sx_buf_puts(out, "\nmemory\n");
    put_row(out, "variables", r->variables);
    sx_buf_putc(out, '\n');
    put_row(out, "inputs", r->inputs);
    sx_buf_putc(out, '\n');
    put_row(out, "outputs", r->outputs);
    sx_buf_putc(out, '\n');
    put_row(out, "constants", r->constants);
    sx_buf_puts(out, r->of->frozen ? ", packed weights among them\n" : "\n");
    put_row(out, "temporaries", r->temporaries);
    sx_buf_printf(out, ", %.1f %% more than the ", sx_memory_excess(r));
    sx_buf_put_size(out, (double)r->least);
    sx_buf_puts(out, " that are alive at once\n");
    if (r->plan->map->again_steps > 0) {
        const sx_cpu_memory_map *map = r->plan->map;
        sx_buf_printf(out, "  again        %d of %d steps, %.1f %% of what the others compute\n",
                      map->again_steps, map->n_steps, again_percent(r));
    }
    put_row(out, "total", r->variables + r->inputs + r->outputs + r->constants + r->temporaries);
    sx_buf_putc(out, '\n');
    put_critical_path(out, r);
    put_alive(out, r);
}

/* ---- JSON ---- */

static json_t *one_work_json(const sx_cpu_work *w)
{
    return json_pack("{s:I, s:f, s:f}", "steps", (json_int_t)w->steps, "bytes", w->bytes, "flops",
                     w->flops);
}

static json_t *work_json(const sx_cpu_critical_path *p)
{
    return json_pack("{s:i, s:o, s:o, s:o}", "stages", p->stages, "all", one_work_json(&p->all),
                     "busiest", one_work_json(&p->path), "alone", one_work_json(&p->alone));
}

sx_status sx_put_memory_json(sx_buf *out, const sx_memory_report *r)
{
    const sx_cpu_memory_map *map = r->plan->map;
    sx_arena arena;
    int n = 0;
    char *text = NULL;
    sx_arena_init(&arena, 0);
    const sx_cpu_mapped **alive = find_at_peak(r, &arena, &n);
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:b, s:b, s:i, s:i}", "value", alive[i]->what, "layer",
                            alive[i]->layer, "bytes", (json_int_t)alive[i]->life.bytes,
                            "of_each_shard", !alive[i]->common, "again", alive[i]->again,
                            "first_step", alive[i]->life.first, "last_step", alive[i]->life.last));
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:i, s:{s:I, s:I, s:I, s:I, s:I}, s:I, s:f, s:i, s:f, s:i, s:i, "
        "s:s, s:o}",
        "model", r->of->model, "mode", r->of->mode, "precision", r->of->precision, "target", "cpu",
        "batch", (json_int_t)r->of->batch, "shards", map->shards, "memory", "variable_bytes",
        (json_int_t)r->variables, "input_bytes", (json_int_t)r->inputs, "output_bytes",
        (json_int_t)r->outputs, "constant_bytes", (json_int_t)r->constants, "temporary_bytes",
        (json_int_t)r->temporaries, "least_temporary_bytes", (json_int_t)r->least,
        "percent_above_least", sx_memory_excess(r), "again_steps", map->again_steps,
        "again_percent", again_percent(r), "steps", map->n_steps, "peak_step", map->least_step,
        "peak_layer", step_layer(r), "alive_at_peak", list);
    json_object_set_new(object, "work", work_json(&r->work));
    sx_status status = sx_json_text(object, JSON_INDENT(2) | JSON_ENSURE_ASCII, &text);
    json_decref(object);
    sx_arena_deinit(&arena);
    if (status == SX_OK) {
        sx_buf_printf(out, "%s\n", text);
    }
    sx_free(text);
    return status != SX_OK ? status : sx_buf_status(out);
}
