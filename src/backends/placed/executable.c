/* Compiling: the graph is placed, settled as a whole where all devices are cpus, cut, and each
 * segment compiled for its device. */
#include <string.h>

#include "backends/placed/placed.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "graph/spmd.h"

static sx_placed_platform *platform_of(const sx_executable *e)
{
    return (sx_placed_platform *)e->platform;
}

static void log_placement(const sx_graph *placed)
{
    sx_buf lines;
    sx_buf_init(&lines, 1 << 26);
    sx_placement_print(placed, &lines);
    for (const char *line = sx_buf_text(&lines); *line != '\0';) {
        const size_t size = strcspn(line, "\n");
        sx_log(SX_LOG_INFO, "%.*s", (int)size, line);
        line += size + (line[size] == '\n');
    }
    sx_buf_deinit(&lines);
}

/* A list of devices is of no use to a program that names none. */
static void warn_of_silence(sx_placed_platform *p, const sx_graph *g)
{
    bool says = p->n_subs == 1;
    for (int k = 0; k < g->n_nodes && !says; k++) {
        says = g->nodes[k].device[0] != '\0';
    }
    if (!says && !atomic_exchange(&p->warned, true)) {
        sx_log(
            SX_LOG_WARN,
            "the program names no devices (sx_device_scope_begin, or tf.device in a SavedModel): "
            "all of it runs on %s; replicas or virtual devices would share its batches",
            p->names[0]);
    }
}

static bool assigns(const sx_graph *g)
{
    bool any = false;
    for (int i = 0; i < g->n_results; i++) {
        any = any || g->results[i].arg != SX_RESULT_IS_OUTPUT;
    }
    return any;
}

/* The segments' options. `shards` are those of a settled graph, 0 = it is not. A batch of one
 * example has no shards: the device may use its threads otherwise. */
static sx_compile_options options_of(const sx_placed_executable *e, const sx_compile_options *from,
                                     int shards)
{
    const sx_placed_platform *p = platform_of(&e->head);
    sx_compile_options o = *from;
    o.steps = 1;
    o.ok_output = NULL;
    o.donate_inputs = false;
    o.of_training = e->assigns;
    o.settled = shards > 0;
    o.parts = e->parts;
    o.shards = from->shards > 0                     ? from->shards
               : p->micro_batches > 1 && e->assigns ? p->micro_batches
               : from->batch > 1                    ? shards
                                                    : 0;
    return o;
}

/* Whether a training step's batch is divided into micro-batches; one that they do not divide has as
 * many shards, which is said unless it is the last of an epoch, smaller than the others. */
static bool has_parts(const sx_placed_executable *e, const sx_compile_options *options)
{
    sx_placed_platform *p = platform_of(&e->head);
    const int n = p->micro_batches;
    if (n <= 1 || !e->assigns || options->batch <= 0) {
        return false;
    }
    if (options->batch % n == 0) {
        p->divided = SX_MAX(p->divided, options->batch);
    } else if (options->batch >= p->divided) {
        sx_log(SX_LOG_WARN,
               "%d micro-batches do not divide a batch of %lld: it goes through the devices whole, "
               "in as many shards",
               n, (long long)options->batch);
    }
    return options->batch % n == 0;
}

static sx_status cut(sx_placed_executable *e, const sx_graph *g, const sx_compile_options *options)
{
    const sx_placed_platform *p = platform_of(&e->head);
    sx_partition_options o = {
        .devices = p->names, .n_devices = p->n_subs, .memory = options->memory};
    if (!has_parts(e, options)) {
        return sx_partition_create(g, &o, &e->partition);
    }
    sx_spmd divided;
    e->parts = p->micro_batches;
    SX_TRY(sx_pass_spmd(
        g,
        &(sx_spmd_options){.batch = options->batch, .parts = p->micro_batches, .byte_ranges = true},
        &divided));
    o.part = divided.part;
    sx_status status = sx_partition_create(divided.graph, &o, &e->partition);
    sx_spmd_deinit(&divided);
    return status;
}

/* Cuts the graph as it is to be compiled. */
static sx_status divide(sx_placed_executable *e, const sx_graph *graph,
                        const sx_compile_options *options, int *out_shards)
{
    sx_placed_platform *p = platform_of(&e->head);
    const sx_placement_options placement = {
        .devices = p->placing, .n_devices = p->n_subs, .strict = p->strict};
    sx_graph *placed = NULL, *settled = NULL;
    sx_platform *first = p->subs[0]->platform;
    warn_of_silence(p, graph);
    SX_TRY(sx_pass_place(graph, &placement, &placed));
    sx_status status = SX_OK;
    if (p->logs) {
        log_placement(placed);
    }
    if (p->alike && first->backend->settle != NULL) {
        sx_compile_options o = *options;
        o.steps = 1;
        status = first->backend->settle(first, placed, &o, p->threads, &settled, out_shards);
    }
    if (status == SX_OK) {
        status = cut(e, settled != NULL ? settled : placed, options);
    }
    sx_graph_destroy(placed);
    sx_graph_destroy(settled);
    return status;
}

/* Who waits for whom, seen from those that are waited for. */
static sx_status turn_around(sx_placed_executable *e)
{
    for (int s = 0; s < e->n_segments; s++) {
        const sx_segment *from = &e->partition.segments[s];
        for (int i = 0; i < from->n_after; i++) {
            e->segments[from->after[i]].n_next++;
        }
    }
    for (int s = 0; s < e->n_segments; s++) {
        sx_placed_segment *segment = &e->segments[s];
        segment->next = sx_arena_array(&e->partition.arena, segment->n_next + 1, int);
        if (segment->next == NULL) {
            return sx_no_memory("for a program");
        }
        segment->n_next = 0;
    }
    for (int s = 0; s < e->n_segments; s++) {
        const sx_segment *from = &e->partition.segments[s];
        e->segments[s].n_before = from->n_after;
        for (int i = 0; i < from->n_after; i++) {
            sx_placed_segment *before = &e->segments[from->after[i]];
            before->next[before->n_next++] = s;
        }
    }
    return SX_OK;
}

static sx_status compile_segments(sx_placed_executable *e, const sx_compile_options *options)
{
    const sx_placed_platform *p = platform_of(&e->head);
    e->n_segments = e->partition.n_segments;
    e->segments = sx_arena_array(&e->partition.arena, e->n_segments + 1, sx_placed_segment);
    if (e->segments == NULL) {
        e->n_segments = 0;
        return sx_no_memory("for a program");
    }
    for (int s = 0; s < e->n_segments; s++) {
        sx_segment *from = &e->partition.segments[s];
        sx_placed_segment *to = &e->segments[s];
        *to = (sx_placed_segment){.device = from->device, .in = from->in, .out = from->out};
        sx_compile_options own = *options;
        own.memory = sx_placed_budget(p, to->device, options->memory);
        SX_TRY(sx_compile(p->subs[to->device]->platform, from->graph, &own, &to->executable),
               "for %s", p->names[to->device]);
        sx_graph_destroy(from->graph);
        from->graph = NULL;
    }
    return turn_around(e);
}

/* The numerics of the segments of device `sub`, or ALL of them, are those of the one with the most
 * shards: one without the batch has none. NULL: there is no segment. */
enum { ALL = -1 };
static sx_status numerics_of(const sx_placed_executable *e, int sub, const char **out)
{
    int most = -1;
    *out = NULL;
    for (int s = 0; s < e->n_segments; s++) {
        sx_executable_info part;
        SX_TRY(sx_executable_get_info(e->segments[s].executable, &part));
        if ((sub == ALL || e->segments[s].device == sub) && part.shards > most) {
            most = part.shards;
            *out = part.numerics;
        }
    }
    return SX_OK;
}

/* What determines the bits: cpus compute like one with as many shards, other devices each in its
 * own way. */
static sx_status take_numerics(sx_placed_executable *e)
{
    const sx_placed_platform *p = platform_of(&e->head);
    if (p->alike) {
        return numerics_of(e, ALL, &e->numerics);
    }
    for (int sub = 0; sub < p->n_subs; sub++) {
        const char *own;
        SX_TRY(numerics_of(e, sub, &own));
        if (own != NULL) {
            e->numerics = sx_arena_printf(&e->partition.arena, "%s%s%s %s",
                                          e->numerics != NULL ? e->numerics : "",
                                          e->numerics != NULL ? "; " : "", p->names[sub], own);
            if (e->numerics == NULL) {
                return sx_no_memory("for a program");
            }
        }
    }
    return SX_OK;
}

static int runs_at_once(const sx_placed_executable *e)
{
    bool bounded = false;
    for (int s = 0; s < e->n_segments; s++) {
        bounded = bounded || e->segments[s].executable->max_runs > 0;
    }
    return bounded ? platform_of(&e->head)->n_subs : 0;
}

sx_status sx_placed_compile(sx_platform *platform, const sx_graph *graph,
                            const sx_compile_options *options, sx_executable **out)
{
    sx_placed_executable *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_no_memory("for an executable");
    }
    e->head.platform = platform;
    e->head.memory = options->memory; /* the segments are charged */
    e->assigns = assigns(graph);
    atomic_init(&e->head.refs, 1);
    int shards = 0;
    sx_status status = sx_executable_describe(&e->head, graph, options->batch);
    status = status == SX_OK ? divide(e, graph, options, &shards) : status;
    if (status == SX_OK) {
        const sx_compile_options o = options_of(e, options, shards);
        status = compile_segments(e, &o);
    }
    status = status == SX_OK ? take_numerics(e) : status;
    if (status != SX_OK) {
        sx_executable_release(&e->head);
        return status;
    }
    e->head.max_runs = runs_at_once(e);
    *out = &e->head;
    return SX_OK;
}

void sx_placed_executable_destroy(sx_executable *head)
{
    sx_placed_executable *e = (sx_placed_executable *)head;
    for (int s = 0; s < e->n_segments; s++) {
        sx_executable_release(e->segments[s].executable);
    }
    sx_partition_deinit(&e->partition);
    sx_executable_deinit(head);
    sx_free(e);
}

sx_status sx_placed_info(const sx_executable *head, sx_executable_info *out)
{
    const sx_placed_executable *e = (const sx_placed_executable *)head;
    out->numerics = e->numerics;
    for (int s = 0; s < e->n_segments; s++) {
        sx_executable_info part;
        SX_TRY(sx_executable_get_info(e->segments[s].executable, &part));
        out->shards = SX_MAX(out->shards, SX_MAX(part.shards, e->parts));
        out->temporary_bytes += part.temporary_bytes;
        out->code_bytes += part.code_bytes;
        out->flops += part.flops;
        out->kernels += part.kernels;
    }
    return SX_OK;
}
