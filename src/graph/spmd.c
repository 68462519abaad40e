/* The division pass: nodes, arguments and results in program order. See spmd.h and spmd_pass.h. */
#include "graph/spmd.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"
#include "graph/passes/passes.h"
#include "graph/spmd_pass.h"

/* ---- Nodes ---- */

/* Whether the node computes with the statistics of its replica's part. */
static bool sees_parts(const sx_spmd_pass *s, const sx_node *n)
{
    return s->replicas > 1 && n->op->own_part != NULL &&
           *(const bool *)((const char *)n->attrs + n->op->own_part->offset);
}

static sx_value input_of(sx_spmd_pass *s, const sx_node *n, int i, int part)
{
    const sx_value v = n->inputs[i];
    if (sx_type_has_batch(sx_graph_type(s->g, v))) {
        return sx_spmd_part_of(s, part, v);
    }
    const bool partial = sees_parts(s, n) || (n->n_outputs > 0 && s->accumulates != NULL &&
                                              s->accumulates[n->first_output.id]);
    const sx_value own = *sx_spmd_part_at(s, part, v);
    return partial && sx_value_is(own) ? own : sx_spmd_whole_of(s, v);
}

/* Attributes with c times `batch` for c*N. */
static const void *attrs_for(sx_spmd_pass *s, const sx_node *n, int64_t batch)
{
    char *copy = NULL;
    for (int i = 0; i < n->op->n_attrs; i++) {
        const sx_attr_def *def = &n->op->attrs[i];
        const sx_ints *shape = (const void *)((const char *)n->attrs + def->offset);
        for (int d = 0; def->kind == SX_ATTR_SHAPE && d < shape->n; d++) {
            if (!sx_dim_is_batch(shape->v[d])) {
                continue;
            }
            if (copy == NULL) {
                copy = sx_arena_memdup(s->arena, n->attrs, n->op->attrs_bytes);
            }
            if (copy == NULL) {
                sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
                return n->attrs;
            }
            ((sx_ints *)(void *)(copy + def->offset))->v[d] = -shape->v[d] * batch;
        }
    }
    return copy != NULL ? copy : n->attrs;
}

/* A node computed alike by all: on the whole batch, if it has any. */
static void compute_whole(sx_spmd_pass *s, const sx_node *n)
{
    enum { MOST_ROWS = 32 };
    sx_value *in = sx_arena_array(s->arena, n->n_inputs + 1, sx_value);
    const void *attrs = attrs_for(s, n, s->o->batch);
    sx_graph *made[MOST_ROWS] = {NULL};
    char *copy = in != NULL && sx_op_has_regions(n->op)
                     ? sx_arena_memdup(s->arena, attrs, n->op->attrs_bytes)
                     : NULL;
    if (in == NULL || (copy == NULL && sx_op_has_regions(n->op))) {
        sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
        return;
    }
    for (int i = 0; i < n->n_inputs; i++) {
        in[i] = sx_spmd_whole_of(s, n->inputs[i]);
    }
    for (int row = 0; copy != NULL && row < n->op->n_attrs && !sx_builder_failed(s->b); row++) {
        if (n->op->attrs[row].kind == SX_ATTR_BODY) {
            sx_status status = sx_pass_fix_batch(sx_node_body(n, row), s->o->batch, &made[row]);
            memcpy(copy + n->op->attrs[row].offset, &made[row], sizeof(made[row]));
            if (status != SX_OK) {
                sx_builder_fail(s->b, status);
            }
        }
    }
    const sx_value first = sx_spmd_emit(s, n, NULL, 0, n->op, copy != NULL ? copy : attrs, in,
                                        n->n_inputs, (n->op->flags & SX_OP_BY_REPLICA) != 0);
    for (int i = 0; i < n->n_outputs; i++) {
        s->whole[sx_node_output(n, i).id] = sx_output_of(first, i);
    }
    for (int row = 0; row < MOST_ROWS; row++) {
        sx_graph_destroy(made[row]);
    }
}

/* The constant that follows from the types of a node's operands in a batch of that size. */
static sx_value constant_of_types(sx_spmd_pass *s, const sx_node *n, int64_t batch, bool own)
{
    sx_host_tensor *in = sx_arena_array(s->arena, n->n_inputs + 1, sx_host_tensor);
    sx_host_tensor y = {.type = sx_type_with_batch(*sx_graph_type(s->g, n->first_output), batch)};
    const int64_t elems = sx_type_elems(&y.type);
    void *bytes = elems >= 0 ? sx_arena_alloc(s->arena, (size_t)elems + 1, sizeof(double)) : NULL;
    y.data = bytes != NULL ? sx_arena_alloc(s->arena, (size_t)elems + 1, sizeof(double)) : NULL;
    if (in == NULL || y.data == NULL) {
        sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
        return SX_NO_VALUE;
    }
    for (int i = 0; i < n->n_inputs; i++) {
        in[i].type = sx_type_with_batch(*sx_graph_type(s->g, n->inputs[i]), batch);
    }
    sx_status status = sx_host_run_carried(n->op, n->attrs, in, n->n_inputs, &y, 1, NULL, false);
    if (status != SX_OK) {
        sx_builder_fail(s->b, status);
        return SX_NO_VALUE;
    }
    sx_host_store(&y, bytes);
    const sx_constant_attrs attrs = {.value = {.type = y.type, .data = bytes}};
    return sx_spmd_emit(s, n, own ? "own" : NULL, 0, &sx_op_constant, &attrs, NULL, 0, own);
}

static sx_status divide_region(sx_spmd_pass *s, const sx_graph *region, int part,
                               const bool *partial, bool *out_exchanges, sx_graph **out);

/* A node of which each part computes its examples. False: its regions need other replicas, where
 * they cannot have them. */
static bool divide(sx_spmd_pass *s, const sx_node *n)
{
    enum { MOST_ROWS = 32 };
    const bool regions = sx_op_has_regions(n->op);
    const int n_in = n->n_inputs + (n->op->batch_rule == SX_RULE_ROWS &&
                                    s->replicas * s->n_parts + s->is_region > 1);
    bool partial[SX_MAX_OUTPUTS] = {false};
    sx_value *in = sx_arena_array(s->arena, n_in + 1, sx_value);
    const void *attrs = attrs_for(s, n, s->part);
    char *copy =
        in != NULL && regions ? sx_arena_memdup(s->arena, attrs, n->op->attrs_bytes) : NULL;
    if (in == NULL || (copy == NULL && regions)) {
        sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
        return true;
    }
    if (n->op == &sx_op_while) {
        sx_spmd_find_accumulators(s->g, n, partial);
    }
    for (int c = 0; c < s->n_parts && !sx_builder_failed(s->b); c++) {
        sx_graph *made[MOST_ROWS] = {NULL};
        bool exchanges = false;
        for (int row = 0; regions && row < n->op->n_attrs; row++) {
            if (n->op->attrs[row].kind == SX_ATTR_BODY && !sx_builder_failed(s->b)) {
                const sx_graph *body = sx_node_body(n, row);
                const bool sums =
                    n->op == &sx_op_while && body == ((const sx_while_attrs *)n->attrs)->body;
                sx_status status = divide_region(s, body, s->is_region ? s->first_part : c,
                                                 sums ? partial : NULL, &exchanges, &made[row]);
                memcpy(copy + n->op->attrs[row].offset, &made[row], sizeof(made[row]));
                if (status != SX_OK) {
                    sx_builder_fail(s->b, sx_status_annotate(status, __FILE__, __LINE__,
                                                             "%s \"%s\"", n->op->name, n->name));
                }
            }
        }
        const bool refused = exchanges && (!s->o->exchange_in_regions || s->strict ||
                                           s->n_parts > 1 || s->is_region);
        if (!refused) {
            s->exchanges |= exchanges;
            for (int i = 0; i < n->n_inputs; i++) {
                in[i] = input_of(s, n, i, c);
            }
            if (n_in > n->n_inputs) {
                in[n->n_inputs] = sx_spmd_first_row(s, n, c);
            }
            s->making = c + 1;
            const sx_value first = sx_spmd_emit(s, n, s->n_parts > 1 ? "part" : NULL, c + 1, n->op,
                                                regions ? copy : attrs, in, n_in, true);
            s->making = 0;
            for (int i = 0; i < n->n_outputs; i++) {
                const sx_value v = sx_node_output(n, i);
                const bool whole =
                    regions && !partial[i] && !sx_type_has_batch(sx_graph_type(s->g, v));
                *(whole ? &s->whole[v.id] : sx_spmd_part_at(s, c, v)) = sx_output_of(first, i);
            }
        }
        for (int row = 0; row < MOST_ROWS; row++) {
            sx_graph_destroy(made[row]);
        }
        if (refused) {
            return false;
        }
    }
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_value v = sx_node_output(n, i);
        if (partial[i]) {
            sx_spmd_combine_later(s, v, SX_COMBINE_SUM, 0);
        }
    }
    return true;
}

static void rewrite(sx_spmd_pass *s, const sx_node *n)
{
    if (s->accumulates != NULL && n->n_outputs > 0 && s->accumulates[n->first_output.id]) {
        divide(s, n); /* stays partial */
        return;
    }
    switch (sx_node_division(s->g, n)) {
    case SX_COMMON:
        if (n->op->batch_rule == SX_RULE_TYPES && sx_reads_batch(s->g, n)) {
            const sx_value v = n->first_output;
            s->whole[v.id] = constant_of_types(s, n, s->o->batch, false);
            if (s->sees_parts[v.id]) {
                const sx_value own = constant_of_types(s, n, s->part, true);
                for (int c = 0; c < s->n_parts; c++) {
                    *sx_spmd_part_at(s, c, v) = own;
                }
            }
            return;
        }
        break;
    case SX_COMBINED:
        divide(s, n);
        sx_spmd_combine_outputs(s, n);
        return;
    case SX_DIVIDED:
        if (divide(s, n)) {
            return;
        }
        break;
    case SX_GATHERED:
        break;
    }
    compute_whole(s, n);
}

/* ---- Arguments and results ---- */

/* Whether it is passed in parts, each a range of bytes if need be. */
static bool is_cut(const sx_spmd_pass *s, const sx_type *type)
{
    return s->o->byte_ranges ? sx_spmd_is_byte_range(type) : sx_type_has_batch(type);
}

static void copy_arg(sx_spmd_pass *s, const sx_arg *arg)
{
    const sx_type type = *sx_graph_type(s->g, arg->value);
    const sx_node *n = sx_graph_maker(s->g, arg->value);
    const bool cut = s->is_region ? sx_type_has_batch(&type) : is_cut(s, &type);
    sx_builder_at(s->b, n->file, n->line);
    if (!sx_spmd_note_own(s, cut)) {
        return;
    }
    const sx_value v =
        sx_build_arg(s->b, arg, sx_type_with_batch(type, cut ? s->part * s->n_parts : s->o->batch));
    if (!cut) {
        s->whole[arg->value.id] = v;
        return;
    }
    const int axis = sx_batch_axis(&type);
    const int64_t size = -type.dims[axis] * s->part;
    for (int c = 0; c < s->n_parts; c++) {
        s->making = c + 1;
        *sx_spmd_part_at(s, c, arg->value) =
            s->n_parts == 1 ? v : sx_spmd_slice(s, n, "part", c + 1, v, axis, c * size, size, true);
    }
    s->making = 0;
}

/* The first replica's value, on all replicas. */
static sx_value of_first_replica(sx_spmd_pass *s, const sx_node *n, int i, sx_value x)
{
    const sx_type type = sx_type_of_value(s->b, x);
    uint32_t zero_id = 0;
    uint64_t zero_bits = 0;
    const sx_constant_attrs first = {.value = {.type = sx_scalar_type(SX_U32), .data = &zero_id}};
    const sx_constant_attrs zero = {
        .value = {.type = sx_scalar_type(type.dtype), .data = &zero_bits}};
    const sx_shape_attrs shape = {.shape = sx_ints_of(type.rank, type.dims)};
    const sx_all_reduce_attrs sum = {.how = SX_COMBINE_SUM, .replicas = s->o->copies};
    sx_value id = sx_spmd_emit(s, n, "replica_id", i, &sx_op_replica_id, NULL, NULL, 0, true);
    sx_value k = sx_spmd_emit(s, n, "first", i, &sx_op_constant, &first, NULL, 0, false);
    sx_value is_first =
        sx_spmd_emit(s, n, "is_first", i, &sx_op_equal, NULL, (const sx_value[]){id, k}, 2, true);
    sx_value zeros = sx_spmd_emit(s, n, "zero", i, &sx_op_constant, &zero, NULL, 0, false);
    zeros = sx_spmd_emit(s, n, "zeros", i, &sx_op_broadcast_to, &shape, &zeros, 1, false);
    sx_value own = sx_spmd_emit(s, n, "of_first", i, &sx_op_select, NULL,
                                (const sx_value[]){is_first, x, zeros}, 3, true);
    return sx_spmd_emit(s, n, "all_reduce", i, &sx_op_all_reduce, &sum, &own, 1, false);
}

static void copy_results(sx_spmd_pass *s, const bool *partial)
{
    for (int i = 0; i < s->g->n_results && !sx_builder_failed(s->b); i++) {
        const sx_result *r = &s->g->results[i];
        const sx_type *type = sx_graph_type(s->g, r->value);
        const sx_node *n = sx_graph_maker(s->g, r->value);
        const bool cut =
            s->is_region ? sx_type_has_batch(type) : !s->o->whole_results && is_cut(s, type);
        sx_value y;
        if (partial != NULL && partial[i]) {
            y = *sx_spmd_part_at(s, 0, r->value);
        } else if (!cut) {
            y = sx_spmd_whole_of(s, r->value);
        } else {
            for (int c = 0; c < s->n_parts; c++) {
                (void)sx_spmd_part_of(s, c, r->value);
            }
            sx_value *x = sx_spmd_list_parts(s, r->value);
            y = x != NULL
                    ? sx_spmd_concat(s, n, "result", i, x, s->n_parts, sx_batch_axis(type), true)
                    : SX_NO_VALUE;
        }
        if (r->arg == SX_RESULT_IS_OUTPUT) {
            sx_output(s->b, r->name, y);
        } else {
            sx_assign(s->b, r->name, s->o->copies > s->replicas ? of_first_replica(s, n, i, y) : y);
        }
    }
}

/* ---- Graphs ---- */

/* Who reads each value. */
static void find_uses(sx_spmd_pass *s)
{
    const sx_graph *g = s->g;
    for (int i = 0; i < g->n_values; i++) {
        s->first_use[i] = INT32_MAX;
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_inputs; i++) {
            s->first_use[n->inputs[i].id] = k;
            s->sees_parts[n->inputs[i].id] |= sees_parts(s, n);
        }
    }
}

/* With s's fields up to `part` set. `partial`, of a region: its results that stay partial. */
static sx_status run(sx_spmd_pass *s, const bool *partial, sx_graph **out)
{
    const sx_graph *g = s->g;
    sx_arena *arena = s->arena;
    s->whole = sx_arena_array(arena, g->n_values, sx_value);
    s->parts = sx_arena_alloc(arena, (size_t)g->n_values * (size_t)s->n_parts, sizeof(sx_value));
    s->first_use = sx_arena_array(arena, g->n_values, int);
    s->first_examples = sx_arena_array(arena, s->n_parts, sx_value);
    s->waiting = sx_arena_array(arena, g->n_values, sx_spmd_waiter);
    s->sees_parts = sx_arena_array(arena, g->n_values, bool);
    if (partial != NULL) {
        s->accumulates = sx_arena_array(arena, g->n_values, bool);
    }
    if (s->whole == NULL || s->parts == NULL || s->first_use == NULL || s->first_examples == NULL ||
        s->waiting == NULL || s->sees_parts == NULL ||
        (partial != NULL && s->accumulates == NULL)) {
        return sx_no_memory("dividing a graph");
    }
    find_uses(s);
    for (int i = 0; partial != NULL && i < g->n_results; i++) {
        if (partial[i]) {
            sx_spmd_mark_accumulated(g, g->results[i].value, s->accumulates);
        }
    }
    SX_TRY(sx_builder_create_like(g, &s->b));
    for (int k = 0, arg = 0; k < g->n_nodes && !sx_builder_failed(s->b); k++) {
        if (arg < g->n_args && g->args[arg].value.id == g->nodes[k].first_output.id) {
            copy_arg(s, &g->args[arg++]);
        } else {
            rewrite(s, &g->nodes[k]);
        }
    }
    copy_results(s, partial);
    sx_status status = sx_builder_finish(s->b, out);
    sx_builder_destroy(s->b);
    return status;
}

static sx_status divide_region(sx_spmd_pass *s, const sx_graph *region, int part,
                               const bool *partial, bool *out_exchanges, sx_graph **out)
{
    sx_spmd_pass inner = {.o = s->o,
                          .g = region,
                          .arena = s->arena,
                          .replicas = s->replicas,
                          .n_parts = 1,
                          .first_part = part,
                          .strict = s->strict,
                          .is_region = true,
                          .part = s->part};
    SX_TRY(run(&inner, partial, out));
    *out_exchanges |= inner.exchanges;
    return SX_OK;
}

/* Every c*N of the graph is in the type of a value; attributes have no others. */
static sx_status check_options(const sx_graph *g, const sx_spmd_options *o)
{
    const int replicas = SX_MAX(o->replicas, 1), parts = o->parts > 0 ? o->parts : replicas;
    bool batched = false;
    for (int i = 0; i < g->n_args; i++) {
        batched |= sx_type_has_batch(sx_graph_type(g, g->args[i].value));
    }
    if (o->larger == 0 && batched && o->batch % replicas != 0) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "batch size %lld is not a multiple of %d replicas; the nearest are %lld and %lld",
            (long long)o->batch, replicas, (long long)(o->batch / replicas * replicas),
            (long long)((o->batch / replicas + 1) * replicas));
    }
    if (parts % replicas != 0 || (o->larger == 0 && batched && o->batch % parts != 0)) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "%d shards of a batch of %lld on %d replicas: the shards must be a multiple "
            "of the replicas and divide the batch",
            parts, (long long)o->batch, replicas);
    }
    for (int i = 1; i < g->n_values; i++) {
        const sx_type whole = sx_type_with_batch(g->values[i].type, o->batch);
        if (sx_type_has_batch(&g->values[i].type) && sx_type_elems(&whole) < 0) {
            char text[SX_TYPE_TEXT];
            const sx_node *n = &g->nodes[g->values[i].node];
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "%s \"%s\" is %s, which is too large for a batch of %lld", n->op->name,
                            n->name, sx_type_format(&g->values[i].type, text, sizeof(text)),
                            (long long)o->batch);
        }
    }
    return SX_OK;
}

sx_status sx_pass_spmd(const sx_graph *g, const sx_spmd_options *options, sx_spmd *out)
{
    sx_arena arena;
    SX_TRY(check_options(g, options));
    const int replicas = SX_MAX(options->replicas, 1);
    const int parts = options->parts > 0 ? options->parts : replicas;
    *out = (sx_spmd){.graph = NULL};
    if (parts == 1 && options->copies <= 1) {
        return sx_pass_fix_batch(g, options->batch, &out->graph);
    }
    sx_arena_init(&arena, 0);
    sx_spmd_pass s = {.o = options,
                      .g = g,
                      .arena = &arena,
                      .replicas = replicas,
                      .n_parts = parts / replicas,
                      .strict = options->parts > 0,
                      .part = options->largest > 0 ? options->largest : options->batch / parts};
    sx_status status = run(&s, NULL, &out->graph);
    if (status == SX_OK) {
        const sx_graph *made = out->graph;
        out->own = sx_alloc((size_t)made->n_values, sizeof(bool));
        out->part = sx_alloc((size_t)made->n_values, sizeof(int));
        if (out->own == NULL || out->part == NULL) {
            status = sx_no_memory("dividing a graph");
        }
        for (int i = 1; i < made->n_values && status == SX_OK; i++) {
            out->own[i] = s.own[made->values[i].node];
            out->part[i] = s.part_of[made->values[i].node];
        }
    }
    if (status != SX_OK) {
        sx_spmd_deinit(out);
    }
    sx_arena_deinit(&arena);
    return status;
}

void sx_spmd_deinit(sx_spmd *p)
{
    sx_graph_destroy(p->graph);
    sx_free(p->own);
    sx_free(p->part);
    *p = (sx_spmd){.graph = NULL};
}
