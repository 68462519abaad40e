/* Nodes that the division pass adds, and the two forms of a value (spmd_pass.h). */
#include "graph/spmd_pass.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"

sx_value *sx_spmd_part_at(const sx_spmd_pass *s, int part, sx_value v)
{
    return &s->parts[(size_t)part * (size_t)s->g->n_values + v.id];
}

bool sx_spmd_note_own(sx_spmd_pass *s, bool own)
{
    const int at = s->b->graph->n_nodes;
    if (at >= s->max_own) {
        const int max = 2 * at + 64;
        bool *grown = sx_arena_array(s->arena, max, bool);
        int *part_of = sx_arena_array(s->arena, max, int);
        if (grown == NULL || part_of == NULL) {
            sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
            return false;
        }
        if (at > 0) {
            memcpy(grown, s->own, (size_t)at * sizeof(*grown));
            memcpy(part_of, s->part_of, (size_t)at * sizeof(*part_of));
        }
        s->own = grown;
        s->part_of = part_of;
        s->max_own = max;
    }
    s->own[at] = own;
    s->part_of[at] = s->making;
    return true;
}

sx_value sx_spmd_emit(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                      const sx_op_def *op, const void *attrs, const sx_value *in, int n_in,
                      bool own)
{
    char text[24] = "";
    if (number > 0) {
        snprintf(text, sizeof(text), "%d", number);
    }
    const char *name =
        suffix == NULL ? n->name : sx_arena_printf(s->arena, "%s/%s%s", n->name, suffix, text);
    if (name == NULL) {
        sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
    }
    if (name == NULL || !sx_spmd_note_own(s, own)) {
        return SX_NO_VALUE;
    }
    return sx_build_node(s->b, &(sx_node_spec){.op = op,
                                               .attrs = attrs,
                                               .inputs = in,
                                               .n_inputs = n_in,
                                               .name = name,
                                               .device = n->device,
                                               .file = n->file,
                                               .line = n->line});
}

static sx_value u32(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                    int64_t value)
{
    uint32_t word = (uint32_t)value;
    const sx_constant_attrs attrs = {.value = {.type = sx_scalar_type(SX_U32), .data = &word}};
    return sx_spmd_emit(s, n, suffix, number, &sx_op_constant, &attrs, NULL, 0, false);
}

/* x op y, of values in which replicas differ. */
static sx_value zip(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                    const sx_op_def *op, sx_value x, sx_value y)
{
    return sx_spmd_emit(s, n, suffix, number, op, NULL, (const sx_value[]){x, y}, 2, true);
}

sx_value sx_spmd_reshape(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                         sx_value x, const sx_type *to, bool own)
{
    const sx_shape_attrs attrs = {.shape = sx_ints_of(to->rank, to->dims)};
    return sx_spmd_emit(s, n, suffix, number, &sx_op_reshape, &attrs, &x, 1, own);
}

sx_value sx_spmd_slice(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                       sx_value x, int axis, int64_t begin, int64_t size, bool own)
{
    const sx_type type = sx_type_of_value(s->b, x);
    sx_slice_attrs attrs = {.begin = {.n = type.rank}, .size = sx_ints_of(type.rank, type.dims)};
    attrs.begin.v[axis] = begin;
    attrs.size.v[axis] = size;
    return sx_spmd_emit(s, n, suffix, number, &sx_op_slice, &attrs, &x, 1, own);
}

sx_value sx_spmd_concat(sx_spmd_pass *s, const sx_node *n, const char *suffix, int number,
                        const sx_value *xs, int count, int axis, bool own)
{
    return count == 1 ? xs[0]
                      : sx_spmd_emit(s, n, suffix, number, &sx_op_concat,
                                     &(sx_axis_attrs){.axis = axis}, xs, count, own);
}

sx_value *sx_spmd_list_parts(sx_spmd_pass *s, sx_value v)
{
    sx_value *list = sx_arena_array(s->arena, s->n_parts, sx_value);
    for (int c = 0; list != NULL && c < s->n_parts; c++) {
        list[c] = *sx_spmd_part_at(s, c, v);
    }
    if (list == NULL) {
        sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
    }
    return list;
}

/* ---- The two forms of a value ---- */

sx_value sx_spmd_whole_of(sx_spmd_pass *s, sx_value v)
{
    const sx_node *maker = sx_graph_maker(s->g, v);
    const int output = s->g->values[v.id].output, axis = sx_batch_axis(sx_graph_type(s->g, v));
    if (sx_value_is(s->whole[v.id]) || sx_builder_failed(s->b)) {
        return s->whole[v.id];
    }
    if (axis < 0) {
        sx_spmd_combine_of(s, v);
        return s->whole[v.id];
    }
    sx_value *x = sx_spmd_list_parts(s, v);
    if (x == NULL) {
        return SX_NO_VALUE;
    }
    sx_value y = sx_spmd_concat(s, maker, "parts", output, x, s->n_parts, axis, true);
    if (s->replicas > 1) {
        const int64_t c = -sx_graph_type(s->g, v)->dims[axis];
        const sx_all_gather_attrs attrs = {
            .axis = axis, .replicas = s->replicas, .size = c * s->o->batch};
        s->exchanges = true;
        y = sx_spmd_emit(s, maker, "all_gather", output, &sx_op_all_gather, &attrs, &y, 1, false);
    }
    return s->whole[v.id] = y;
}

sx_value sx_spmd_part_of(sx_spmd_pass *s, int part, sx_value v)
{
    const sx_node *maker = sx_graph_maker(s->g, v);
    const int output = s->g->values[v.id].output, axis = sx_batch_axis(sx_graph_type(s->g, v));
    const int64_t c = -sx_graph_type(s->g, v)->dims[axis];
    if (sx_value_is(*sx_spmd_part_at(s, part, v)) || sx_builder_failed(s->b)) {
        return *sx_spmd_part_at(s, part, v);
    }
    sx_value x = s->whole[v.id];
    if (s->replicas > 1) {
        const sx_all_gather_attrs attrs = {
            .axis = axis, .replicas = s->replicas, .size = c * s->part * s->n_parts};
        s->exchanges = true;
        x = sx_spmd_emit(s, maker, "all_slice", output, &sx_op_all_slice, &attrs, &x, 1, true);
    }
    const int making = s->making;
    for (int i = 0; i < s->n_parts; i++) {
        s->making = i + 1;
        *sx_spmd_part_at(s, i, v) =
            s->n_parts == 1 ? x
                            : sx_spmd_slice(s, maker, "part", output * s->n_parts + i, x, axis,
                                            i * c * s->part, c * s->part, true);
    }
    s->making = making;
    return *sx_spmd_part_at(s, part, v);
}

/* The place of a part's first example in the whole batch: uint32. */
static sx_value first_example(sx_spmd_pass *s, const sx_node *n, int part)
{
    const int64_t before = (s->is_region ? s->first_part : part) * s->part; /* of this replica's */
    sx_value first = SX_NO_VALUE;
    if (s->replicas > 1) {
        const int64_t most = (s->o->batch + s->replicas - 1) / s->replicas;
        const sx_value id =
            sx_spmd_emit(s, n, "replica_id", part, &sx_op_replica_id, NULL, NULL, 0, true);
        first = zip(s, n, "stride", part, &sx_op_mul, id, u32(s, n, "most", part, most));
        if (s->o->larger > 0) { /* id * most - (max(id, larger) - larger) */
            const sx_value larger = u32(s, n, "larger", part, s->o->larger);
            sx_value fewer = zip(s, n, "reached", part, &sx_op_maximum, id, larger);
            fewer = zip(s, n, "fewer", part, &sx_op_sub, fewer, larger);
            first = zip(s, n, "first_example", part, &sx_op_sub, first, fewer);
        }
    }
    if (before == 0 && sx_value_is(first)) {
        return first;
    }
    const sx_value k = u32(s, n, "before", part, before);
    return sx_value_is(first) ? zip(s, n, "first_of_part", part, &sx_op_add, first, k) : k;
}

sx_value sx_spmd_first_row(sx_spmd_pass *s, const sx_node *n, int part)
{
    const sx_type *y = sx_graph_type(s->g, n->first_output);
    const int64_t c = -y->dims[sx_batch_axis(y)];
    if (!sx_value_is(s->first_examples[part])) {
        s->first_examples[part] = first_example(s, n, part);
    }
    const sx_value first = s->first_examples[part];
    return c == 1 ? first
                  : zip(s, n, "first_row", part, &sx_op_mul, first, u32(s, n, "rows", part, c));
}
