/* See spmd.h.
 *
 * A value of the old graph has up to two forms in the new one:
 *
 *   whole   equal on all replicas
 *   parts   one for each part that this program computes: its examples of a value with the batch, a
 *           partial result of one without
 *
 * Either is made from the other when a node first needs it. Partial results wait until then, or
 * until there are enough of them for an exchange of their own: those of one kind go together. */
#include "graph/spmd.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"
#include "graph/passes/passes.h"

bool sx_reads_batch(const sx_graph *g, const sx_node *n)
{
    for (int i = 0; i < n->n_inputs; i++) {
        if (sx_type_has_batch(sx_graph_type(g, n->inputs[i]))) {
            return true;
        }
    }
    return false;
}

sx_division sx_node_division(const sx_graph *g, const sx_node *n)
{
    bool reads = sx_reads_batch(g, n), makes = false, loses = false;
    for (int i = 0; i < n->n_outputs; i++) {
        bool batch = sx_type_has_batch(sx_graph_type(g, sx_node_output(n, i)));
        makes = makes || batch;
        loses = loses || !batch;
    }
    loses = loses && reads;
    if (!(reads || makes) || n->op->batch_rule == SX_RULE_TYPES) {
        return SX_COMMON;
    }
    if (n->op->batch_rule == SX_RULE_NONE) {
        return SX_GATHERED;
    }
    if (n->op->batch_rule == SX_RULE_REGIONS) {
        return SX_DIVIDED;
    }
    if (!loses) {
        return SX_DIVIDED;
    }
    return n->op->batch_rule >= SX_RULE_SUM ? SX_COMBINED : SX_GATHERED;
}

/* ---- The pass ---- */

enum { BUCKET_BYTES = 4 << 20 };

/* Partial results that wait to be combined. */
typedef struct waiter {
    sx_value v;    /* of the old graph; mean, followed by variance, for moments */
    int32_t how;   /* sx_combine */
    int first_use; /* the first node that reads it whole; n_nodes: a result */
    int64_t bytes, elems;
} waiter;

typedef struct spmd {
    const sx_spmd_options *o;
    const sx_graph *g;
    sx_builder *b;
    sx_arena *arena;
    int replicas;      /* that share the batch */
    int n_parts;       /* of this program */
    int first_part;    /* in a region: the part that it belongs to */
    bool strict;       /* combine in the fixed tree */
    bool is_region;    /* of a node: n_parts is 1 */
    bool exchanges;    /* the region needs other replicas */
    int64_t part;      /* examples of each part */
    sx_value *whole;   /* [n_values]; SX_NO_VALUE = not made */
    sx_value *parts;   /* [n_parts * n_values] */
    bool *accumulates; /* [n_values]: stays partial, until after the loop (find_accumulators) */
    int *first_use;    /* [n_values] */
    sx_value *first_examples; /* [n_parts]: the place of the part's first example in the batch */
    waiter *waiting;          /* [n_values] */
    int n_waiting;
    bool *own; /* [max_own], by node of the new graph */
    int max_own;
} spmd;

static sx_value *part_at(const spmd *s, int part, sx_value v)
{
    return &s->parts[(size_t)part * (size_t)s->g->n_values + v.id];
}

/* Notes whether replicas differ in the node that is added next. */
static bool note_own(spmd *s, bool own)
{
    const int at = s->b->graph->n_nodes;
    if (at >= s->max_own) {
        const int max = 2 * at + 64;
        bool *grown = sx_arena_array(s->arena, max, bool);
        if (grown == NULL) {
            sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
            return false;
        }
        if (at > 0) {
            memcpy(grown, s->own, (size_t)at * sizeof(*grown));
        }
        s->own = grown;
        s->max_own = max;
    }
    s->own[at] = own;
    return true;
}

/* Appends a node with the source line of `n`; `suffix` is appended to its name, which is n's if
 * NULL, and `number` if it is not 0. */
static sx_value emit(spmd *s, const sx_node *n, const char *suffix, int number, const sx_op_def *op,
                     const void *attrs, const sx_value *in, int n_in, bool own)
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
    if (name == NULL || !note_own(s, own)) {
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

static sx_value u32(spmd *s, const sx_node *n, const char *suffix, int number, int64_t value)
{
    uint32_t word = (uint32_t)value;
    const sx_constant_attrs attrs = {.value = {.type = sx_scalar_type(SX_U32), .data = &word}};
    return emit(s, n, suffix, number, &sx_op_constant, &attrs, NULL, 0, false);
}

/* x op y, of values in which replicas differ. */
static sx_value zip(spmd *s, const sx_node *n, const char *suffix, int number, const sx_op_def *op,
                    sx_value x, sx_value y)
{
    return emit(s, n, suffix, number, op, NULL, (const sx_value[]){x, y}, 2, true);
}

static sx_value reshape(spmd *s, const sx_node *n, const char *suffix, int number, sx_value x,
                        const sx_type *to, bool own)
{
    const sx_shape_attrs attrs = {.shape = sx_ints_of(to->rank, to->dims)};
    return emit(s, n, suffix, number, &sx_op_reshape, &attrs, &x, 1, own);
}

/* Elements [begin, begin + size) along an axis. */
static sx_value slice(spmd *s, const sx_node *n, const char *suffix, int number, sx_value x,
                      int axis, int64_t begin, int64_t size, bool own)
{
    const sx_type type = sx_type_of_value(s->b, x);
    sx_slice_attrs attrs = {.begin = {.n = type.rank}, .size = sx_ints_of(type.rank, type.dims)};
    attrs.begin.v[axis] = begin;
    attrs.size.v[axis] = size;
    return emit(s, n, suffix, number, &sx_op_slice, &attrs, &x, 1, own);
}

static sx_value concat(spmd *s, const sx_node *n, const char *suffix, int number,
                       const sx_value *xs, int count, int axis, bool own)
{
    return count == 1 ? xs[0]
                      : emit(s, n, suffix, number, &sx_op_concat, &(sx_axis_attrs){.axis = axis},
                             xs, count, own);
}

/* The values of this program's parts in one list, which the arena owns. */
static sx_value *list_parts(spmd *s, sx_value v)
{
    sx_value *list = sx_arena_array(s->arena, s->n_parts, sx_value);
    for (int c = 0; list != NULL && c < s->n_parts; c++) {
        list[c] = *part_at(s, c, v);
    }
    if (list == NULL) {
        sx_builder_fail(s->b, sx_no_memory("dividing a graph"));
    }
    return list;
}

/* ---- Combining partial results ---- */

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

static sx_value join_parts(spmd *s, const sx_node *n, int32_t how, const sx_value *x, int first,
                           int count, int *number)
{
    if (count == 1) {
        return x[first];
    }
    const int half = (count + 1) / 2;
    const sx_value sides[2] = {join_parts(s, n, how, x, first, half, number),
                               join_parts(s, n, how, x, first + half, count - half, number)};
    return emit(s, n, "tree", (*number)++,
                how == SX_COMBINE_AND   ? &sx_op_logical_and
                : how == SX_COMBINE_MAX ? &sx_op_maximum
                                        : &sx_op_add,
                NULL, sides, 2, true);
}

/* Combines them in the fixed tree over all parts. Replicas, if a power of two, own whole subtrees,
 * whose sums they exchange; else they exchange the partial results. */
static void combine_strictly(spmd *s, const waiter *list, int n)
{
    const int32_t how = list[0].how;
    const bool sums = how == SX_COMBINE_SUM || how == SX_COMBINE_MAX || how == SX_COMBINE_AND;
    const bool subtrees = sums && is_power_of_two(s->replicas);
    const int pieces = how == SX_COMBINE_MOMENTS ? 2 : n;
    const int rows = subtrees ? 1 : s->n_parts;
    const sx_node *first = sx_graph_maker(s->g, list[0].v);
    sx_value stacks[SX_MAX_OUTPUTS], at[SX_MAX_OUTPUTS];
    sx_type types[SX_MAX_OUTPUTS];
    for (int i = 0; i < pieces && !sx_builder_failed(s->b); i++) {
        const sx_value v = how == SX_COMBINE_MOMENTS ? sx_output_of(list[0].v, i) : list[i].v;
        const sx_node *maker = sx_graph_maker(s->g, v);
        const int output = s->g->values[v.id].output;
        sx_value *x = list_parts(s, v);
        int number = output * s->n_parts;
        at[i] = v;
        if (x == NULL) {
            return;
        }
        types[i] = sx_type_of_value(s->b, x[0]);
        if (subtrees) {
            x[0] = join_parts(s, maker, how, x, 0, s->n_parts, &number);
            s->whole[v.id] = x[0]; /* where there is one replica */
        }
        const sx_type row = sx_type_of(types[i].dtype, 1, sx_type_elems(&types[i]));
        for (int c = 0; c < rows && !(subtrees && s->replicas == 1); c++) {
            x[c] = reshape(s, maker, "row", output * rows + c, x[c], &row, true);
        }
        stacks[i] = concat(s, maker, "stack", output, x, rows, 0, true);
    }
    if ((subtrees && s->replicas == 1) || sx_builder_failed(s->b)) {
        return;
    }
    const bool together = how != SX_COMBINE_MOMENTS;
    if (together) {
        stacks[0] = concat(s, first, "bucket", 0, stacks, pieces, 1, true);
    }
    const int n_stacks = together ? 1 : pieces;
    for (int i = 0; i < n_stacks && s->replicas > 1; i++) {
        const sx_all_gather_attrs gather = {.replicas = s->replicas,
                                            .size = (int64_t)rows * s->replicas};
        stacks[i] =
            emit(s, first, "all_gather", i, &sx_op_all_gather, &gather, &stacks[i], 1, false);
    }
    sx_value joined = emit(s, first, "reduce_tree", 0, &sx_op_reduce_tree,
                           &(sx_reduce_tree_attrs){.how = how}, stacks, n_stacks, false);
    int64_t offset = 0;
    for (int i = 0; i < pieces && !sx_builder_failed(s->b); i++) {
        const sx_node *maker = sx_graph_maker(s->g, at[i]);
        const int output = s->g->values[at[i].id].output;
        const int64_t size = sx_type_elems(&types[i]);
        sx_value y = sx_output_of(joined, together ? 0 : i);
        if (together && pieces > 1) {
            y = slice(s, maker, "of_bucket", output, y, 0, offset, size, false);
            offset += size;
        }
        s->whole[at[i].id] = reshape(s, maker, "whole", output, y, &types[i], false);
    }
}

/* Combines the partial results of list[n], which are of one kind, in one exchange. */
static void combine(spmd *s, const waiter *list, int n)
{
    const int32_t how = list[0].how;
    if (s->is_region) {
        s->exchanges = true;
    }
    if (s->strict || s->n_parts > 1) {
        combine_strictly(s, list, n);
        return;
    }
    sx_value in[SX_MAX_OUTPUTS], of[SX_MAX_OUTPUTS];
    const int count = how == SX_COMBINE_MOMENTS ? 2 : n;
    for (int i = 0; i < count; i++) {
        of[i] = how == SX_COMBINE_MOMENTS ? sx_output_of(list[0].v, i) : list[i].v;
        in[i] = *part_at(s, 0, of[i]);
    }
    const sx_all_reduce_attrs attrs = {.how = how, .replicas = s->replicas, .elems = list[0].elems};
    const sx_value first =
        emit(s, sx_graph_maker(s->g, list[0].v), "all_reduce", s->g->values[list[0].v.id].output,
             &sx_op_all_reduce, &attrs, in, count, false);
    for (int i = 0; i < count; i++) {
        s->whole[of[i].id] = sx_output_of(first, i);
    }
}

static sx_dtype dtype_of(const spmd *s, const waiter *p)
{
    return sx_graph_type(s->g, p->v)->dtype;
}

static bool same_kind(const spmd *s, const waiter *a, const waiter *b)
{
    return a->how == b->how && a->how != SX_COMBINE_MOMENTS && dtype_of(s, a) == dtype_of(s, b);
}

/* Combines those of the kind of waiting[of] that are first needed by node `last` or earlier. */
static void flush(spmd *s, int of, int last)
{
    const waiter like = s->waiting[of];
    waiter list[SX_MAX_OUTPUTS];
    int n = 0, kept = 0;
    for (int i = 0; i < s->n_waiting; i++) {
        const waiter *p = &s->waiting[i];
        const bool goes = p->v.id == like.v.id || (same_kind(s, p, &like) && p->first_use <= last);
        if (goes && n < SX_MAX_OUTPUTS) {
            list[n++] = *p;
        } else {
            s->waiting[kept++] = *p;
        }
    }
    s->n_waiting = kept;
    combine(s, list, n);
}

static void wait_for(spmd *s, const waiter *p)
{
    const int at = s->n_waiting++;
    int64_t bytes = 0;
    s->waiting[at] = *p;
    for (int i = 0; i <= at; i++) {
        bytes += s->waiting[i].v.id == p->v.id || same_kind(s, &s->waiting[i], p)
                     ? s->waiting[i].bytes
                     : 0;
    }
    if (bytes >= BUCKET_BYTES && p->first_use < INT32_MAX) {
        flush(s, at, INT32_MAX - 1);
    }
}

/* ---- The two forms of a value ---- */

static sx_value whole_of(spmd *s, sx_value v)
{
    const sx_node *maker = sx_graph_maker(s->g, v);
    const int output = s->g->values[v.id].output, axis = sx_batch_axis(sx_graph_type(s->g, v));
    if (sx_value_is(s->whole[v.id]) || sx_builder_failed(s->b)) {
        return s->whole[v.id];
    }
    if (axis < 0) {
        const bool second = s->g->values[v.id].output == 1;
        for (int i = 0; i < s->n_waiting; i++) {
            const waiter *p = &s->waiting[i];
            if (p->v.id == v.id ||
                (p->how == SX_COMBINE_MOMENTS && second && p->v.id + 1 == v.id)) {
                flush(s, i, p->first_use);
                break;
            }
        }
        return s->whole[v.id];
    }
    sx_value *x = list_parts(s, v);
    if (x == NULL) {
        return SX_NO_VALUE;
    }
    sx_value y = concat(s, maker, "parts", output, x, s->n_parts, axis, true);
    if (s->replicas > 1) {
        const int64_t c = -sx_graph_type(s->g, v)->dims[axis];
        const sx_all_gather_attrs attrs = {
            .axis = axis, .replicas = s->replicas, .size = c * s->o->batch};
        s->exchanges = true;
        y = emit(s, maker, "all_gather", output, &sx_op_all_gather, &attrs, &y, 1, false);
    }
    return s->whole[v.id] = y;
}

/* Of a value with the batch. */
static sx_value part_of(spmd *s, int part, sx_value v)
{
    const sx_node *maker = sx_graph_maker(s->g, v);
    const int output = s->g->values[v.id].output, axis = sx_batch_axis(sx_graph_type(s->g, v));
    const int64_t c = -sx_graph_type(s->g, v)->dims[axis];
    if (sx_value_is(*part_at(s, part, v)) || sx_builder_failed(s->b)) {
        return *part_at(s, part, v);
    }
    sx_value x = s->whole[v.id];
    if (s->replicas > 1) {
        const sx_all_gather_attrs attrs = {
            .axis = axis, .replicas = s->replicas, .size = c * s->part * s->n_parts};
        s->exchanges = true;
        x = emit(s, maker, "all_slice", output, &sx_op_all_slice, &attrs, &x, 1, true);
    }
    for (int i = 0; i < s->n_parts; i++) {
        *part_at(s, i, v) = s->n_parts == 1 ? x
                                            : slice(s, maker, "part", output * s->n_parts + i, x,
                                                    axis, i * c * s->part, c * s->part, true);
    }
    return *part_at(s, part, v);
}

/* The place of a part's first example in the whole batch: uint32. */
static sx_value first_example(spmd *s, const sx_node *n, int part)
{
    const int64_t before = (s->is_region ? s->first_part : part) * s->part; /* of this replica's */
    sx_value first = SX_NO_VALUE;
    if (s->replicas > 1) {
        const int64_t most = (s->o->batch + s->replicas - 1) / s->replicas;
        const sx_value id = emit(s, n, "replica_id", part, &sx_op_replica_id, NULL, NULL, 0, true);
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

/* The place of the first row of the node's first operand, which has c rows for each example. */
static sx_value first_row(spmd *s, const sx_node *n, int part)
{
    const sx_type *x = sx_graph_type(s->g, n->inputs[0]);
    const int64_t c = -x->dims[sx_batch_axis(x)];
    if (!sx_value_is(s->first_examples[part])) {
        s->first_examples[part] = first_example(s, n, part);
    }
    const sx_value first = s->first_examples[part];
    return c == 1 ? first
                  : zip(s, n, "first_row", part, &sx_op_mul, first, u32(s, n, "rows", part, c));
}

/* ---- Nodes ---- */

/* Batch norm of each replica: what these compute with is of their part. */
static bool sees_parts(const spmd *s, const sx_node *n)
{
    return s->replicas > 1 &&
           (n->op->id == SX_OPID_batch_norm_train ||
            n->op->id == SX_OPID_batch_norm_train_grad_sums ||
            n->op->id == SX_OPID_batch_norm_train_grad_input) &&
           ((const sx_batch_norm_attrs *)n->attrs)->own_moments;
}

static bool normalizes(const spmd *s, const sx_node *moments)
{
    for (int k = 0; k < s->g->n_nodes; k++) {
        const sx_node *n = &s->g->nodes[k];
        if (sees_parts(s, n) && n->op->id == SX_OPID_batch_norm_train &&
            n->inputs[3].id == moments->first_output.id) {
            return true;
        }
    }
    return false;
}

/* Whether a node of these reads a value that follows from types: the number of elements. */
static bool counts_parts(const spmd *s, sx_value v)
{
    for (int k = 0; k < s->g->n_nodes; k++) {
        const sx_node *n = &s->g->nodes[k];
        for (int i = 0; i < n->n_inputs && sees_parts(s, n); i++) {
            if (n->inputs[i].id == v.id) {
                return true;
            }
        }
    }
    return false;
}

static sx_value input_of(spmd *s, const sx_node *n, int i, int part)
{
    const sx_value v = n->inputs[i];
    if (sx_type_has_batch(sx_graph_type(s->g, v))) {
        return part_of(s, part, v);
    }
    const bool partial = sees_parts(s, n) || (n->n_outputs > 0 && s->accumulates != NULL &&
                                              s->accumulates[n->first_output.id]);
    const sx_value own = *part_at(s, part, v);
    return partial && sx_value_is(own) ? own : whole_of(s, v);
}

/* Attributes with c times `batch` for c*N. */
static const void *attrs_for(spmd *s, const sx_node *n, int64_t batch)
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
static void compute_whole(spmd *s, const sx_node *n)
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
        in[i] = whole_of(s, n->inputs[i]);
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
    const sx_value first = emit(s, n, NULL, 0, n->op, copy != NULL ? copy : attrs, in, n->n_inputs,
                                (n->op->flags & SX_OP_BY_REPLICA) != 0);
    for (int i = 0; i < n->n_outputs; i++) {
        s->whole[sx_node_output(n, i).id] = sx_output_of(first, i);
    }
    for (int row = 0; row < MOST_ROWS; row++) {
        sx_graph_destroy(made[row]);
    }
}

/* The constant that follows from the types of a node's operands in a batch of that size. */
static sx_value constant_of_types(spmd *s, const sx_node *n, int64_t batch, bool own)
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
    return emit(s, n, own ? "own" : NULL, 0, &sx_op_constant, &attrs, NULL, 0, own);
}

static int32_t combination_of(const spmd *s, const sx_node *n)
{
    return n->op->batch_rule == SX_RULE_MAX   ? SX_COMBINE_MAX
           : n->op->batch_rule == SX_RULE_AND ? SX_COMBINE_AND
           : n->op->batch_rule == SX_RULE_MOMENTS
               ? normalizes(s, n) ? SX_COMBINE_MEAN : SX_COMBINE_MOMENTS
               : SX_COMBINE_SUM;
}

static void wait_for_outputs(spmd *s, const sx_node *n)
{
    const int32_t how = combination_of(s, n);
    const sx_type part = sx_type_with_batch(*sx_graph_type(s->g, n->inputs[0]), s->part);
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_value v = sx_node_output(n, i);
        const sx_type *type = sx_graph_type(s->g, v);
        if (sx_type_has_batch(type) || (how == SX_COMBINE_MOMENTS && i > 0)) {
            continue;
        }
        const int64_t out = sx_type_elems(type);
        int first = s->first_use[v.id];
        if (how == SX_COMBINE_MOMENTS) {
            first = SX_MIN(first, s->first_use[v.id + 1]);
        }
        wait_for(s, &(waiter){.v = v,
                              .how = how,
                              .first_use = first,
                              .bytes = sx_type_bytes(type),
                              .elems = out > 0 ? sx_type_elems(&part) / out : 0});
    }
}

static sx_status divide_region(spmd *s, const sx_graph *region, int part, const bool *partial,
                               bool *out_exchanges, sx_graph **out);

/* Whether every use of `v` in a body is one; v then is only read by what makes it. */
static int count_uses(const sx_graph *g, sx_value v)
{
    int uses = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            uses += g->nodes[k].inputs[i].id == v.id;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        uses += g->results[i].value.id == v.id;
    }
    return uses;
}

/* Whether `v` is a sum of partial sums that nothing else reads. */
static bool is_partial_sum(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    if (count_uses(g, v) != 1 || !sx_dtype_is_float(sx_graph_type(g, v)->dtype)) {
        return false;
    }
    if (n->op == &sx_op_add) {
        return is_partial_sum(g, n->inputs[0]) && is_partial_sum(g, n->inputs[1]);
    }
    return n->op->batch_rule == SX_RULE_SUM && sx_node_division(g, n) == SX_COMBINED;
}

static bool is_zero(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    while (n->op == &sx_op_broadcast_to || n->op == &sx_op_reshape || n->op == &sx_op_identity) {
        n = sx_graph_maker(g, n->inputs[0]);
    }
    if (n->op != &sx_op_constant) {
        return false;
    }
    const sx_tensor *t = &((const sx_constant_attrs *)n->attrs)->value;
    const int64_t bytes = sx_type_bytes(&t->type);
    for (int64_t i = 0; i < bytes; i++) {
        if (((const char *)t->data)[i] != 0) {
            return false;
        }
    }
    return bytes >= 0;
}

/* Sums over a loop's trips of partial sums over the batch, as in the gradient of a loop: only the
 * last one is combined, after the loop, instead of one in each trip. */
static void find_accumulators(const spmd *s, const sx_node *n, bool *out)
{
    const sx_while_attrs *attrs = n->attrs;
    const sx_graph *g = attrs->body;
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_value arg = g->args[i].value, y = g->results[i].value;
        const sx_node *sum = sx_graph_maker(g, y);
        out[i] = !sx_type_has_batch(sx_graph_type(g, y)) && sum->op == &sx_op_add &&
                 sum->inputs[0].id == arg.id && count_uses(g, arg) == 1 && count_uses(g, y) == 1 &&
                 is_partial_sum(g, sum->inputs[1]) &&
                 count_uses(attrs->condition, attrs->condition->args[i].value) == 0 &&
                 is_zero(s->g, n->inputs[i]);
    }
}

/* A node of which each part computes its examples. False: its regions need other replicas, where
 * they cannot have them. */
static bool divide(spmd *s, const sx_node *n)
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
        find_accumulators(s, n, partial);
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
                in[n->n_inputs] = first_row(s, n, c);
            }
            const sx_value first = emit(s, n, s->n_parts > 1 ? "part" : NULL, c + 1, n->op,
                                        regions ? copy : attrs, in, n_in, true);
            for (int i = 0; i < n->n_outputs; i++) {
                const sx_value v = sx_node_output(n, i);
                const bool whole =
                    regions && !partial[i] && !sx_type_has_batch(sx_graph_type(s->g, v));
                *(whole ? &s->whole[v.id] : part_at(s, c, v)) = sx_output_of(first, i);
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
            const sx_type *type = sx_graph_type(s->g, v);
            wait_for(s, &(waiter){.v = v,
                                  .how = SX_COMBINE_SUM,
                                  .first_use = s->first_use[v.id],
                                  .bytes = sx_type_bytes(type)});
        }
    }
    return true;
}

static void rewrite(spmd *s, const sx_node *n)
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
            if (counts_parts(s, v)) {
                const sx_value own = constant_of_types(s, n, s->part, true);
                for (int c = 0; c < s->n_parts; c++) {
                    *part_at(s, c, v) = own;
                }
            }
            return;
        }
        break;
    case SX_COMBINED:
        divide(s, n);
        wait_for_outputs(s, n);
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

bool sx_spmd_is_byte_range(const sx_type *type)
{
    const int axis = sx_batch_axis(type);
    return axis >= 0 && sx_dims_product(type, 0, axis) == 1;
}

/* Whether it is passed in parts, each a range of bytes if need be. */
static bool is_cut(const spmd *s, const sx_type *type)
{
    return s->o->byte_ranges ? sx_spmd_is_byte_range(type) : sx_type_has_batch(type);
}

static void copy_arg(spmd *s, const sx_arg *arg)
{
    const sx_type type = *sx_graph_type(s->g, arg->value);
    const sx_node *n = sx_graph_maker(s->g, arg->value);
    const bool cut = s->is_region ? sx_type_has_batch(&type) : is_cut(s, &type);
    sx_builder_at(s->b, n->file, n->line);
    if (!note_own(s, cut)) {
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
        *part_at(s, c, arg->value) =
            s->n_parts == 1 ? v : slice(s, n, "part", c + 1, v, axis, c * size, size, true);
    }
}

/* The first replica's value, on all replicas. */
static sx_value of_first_replica(spmd *s, const sx_node *n, int i, sx_value x)
{
    const sx_type type = sx_type_of_value(s->b, x);
    uint32_t zero_id = 0;
    uint64_t zero_bits = 0;
    const sx_constant_attrs first = {.value = {.type = sx_scalar_type(SX_U32), .data = &zero_id}};
    const sx_constant_attrs zero = {
        .value = {.type = sx_scalar_type(type.dtype), .data = &zero_bits}};
    const sx_shape_attrs shape = {.shape = sx_ints_of(type.rank, type.dims)};
    const sx_all_reduce_attrs sum = {.how = SX_COMBINE_SUM, .replicas = s->o->copies};
    sx_value id = emit(s, n, "replica_id", i, &sx_op_replica_id, NULL, NULL, 0, true);
    sx_value k = emit(s, n, "first", i, &sx_op_constant, &first, NULL, 0, false);
    sx_value is_first =
        emit(s, n, "is_first", i, &sx_op_equal, NULL, (const sx_value[]){id, k}, 2, true);
    sx_value zeros = emit(s, n, "zero", i, &sx_op_constant, &zero, NULL, 0, false);
    zeros = emit(s, n, "zeros", i, &sx_op_broadcast_to, &shape, &zeros, 1, false);
    sx_value own = emit(s, n, "of_first", i, &sx_op_select, NULL,
                        (const sx_value[]){is_first, x, zeros}, 3, true);
    return emit(s, n, "all_reduce", i, &sx_op_all_reduce, &sum, &own, 1, false);
}

static void copy_results(spmd *s, const bool *partial)
{
    for (int i = 0; i < s->g->n_results && !sx_builder_failed(s->b); i++) {
        const sx_result *r = &s->g->results[i];
        const sx_type *type = sx_graph_type(s->g, r->value);
        const sx_node *n = sx_graph_maker(s->g, r->value);
        const bool cut = s->is_region ? sx_type_has_batch(type) : is_cut(s, type);
        sx_value y;
        if (partial != NULL && partial[i]) {
            y = *part_at(s, 0, r->value);
        } else if (!cut) {
            y = whole_of(s, r->value);
        } else {
            for (int c = 0; c < s->n_parts; c++) {
                (void)part_of(s, c, r->value);
            }
            sx_value *x = list_parts(s, r->value);
            y = x != NULL ? concat(s, n, "result", i, x, s->n_parts, sx_batch_axis(type), true)
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

static void find_first_uses(const sx_graph *g, int *first_use)
{
    for (int i = 0; i < g->n_values; i++) {
        first_use[i] = INT32_MAX;
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            first_use[g->nodes[k].inputs[i].id] = k;
        }
    }
}

static void mark_accumulated(spmd *s, sx_value v)
{
    const sx_node *n = sx_graph_maker(s->g, v);
    s->accumulates[v.id] = true;
    for (int i = 0; n->op == &sx_op_add && i < n->n_inputs; i++) {
        if (sx_graph_maker(s->g, n->inputs[i])->op != &sx_op_parameter) {
            mark_accumulated(s, n->inputs[i]);
        }
    }
}

/* With s's fields up to `part` set. `partial`, of a region: its results that stay partial. */
static sx_status run(spmd *s, const bool *partial, sx_graph **out)
{
    const sx_graph *g = s->g;
    sx_arena *arena = s->arena;
    s->whole = sx_arena_array(arena, g->n_values, sx_value);
    s->parts = sx_arena_alloc(arena, (size_t)g->n_values * (size_t)s->n_parts, sizeof(sx_value));
    s->first_use = sx_arena_array(arena, g->n_values, int);
    s->first_examples = sx_arena_array(arena, s->n_parts, sx_value);
    s->waiting = sx_arena_array(arena, g->n_values, waiter);
    if (partial != NULL) {
        s->accumulates = sx_arena_array(arena, g->n_values, bool);
    }
    if (s->whole == NULL || s->parts == NULL || s->first_use == NULL || s->first_examples == NULL ||
        s->waiting == NULL || (partial != NULL && s->accumulates == NULL)) {
        return sx_no_memory("dividing a graph");
    }
    find_first_uses(g, s->first_use);
    for (int i = 0; partial != NULL && i < g->n_results; i++) {
        if (partial[i]) {
            mark_accumulated(s, g->results[i].value);
        }
    }
    SX_TRY(sx_builder_create(&s->b));
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

static sx_status divide_region(spmd *s, const sx_graph *region, int part, const bool *partial,
                               bool *out_exchanges, sx_graph **out)
{
    spmd inner = {.o = s->o,
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
    spmd s = {.o = options,
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
        if (out->own == NULL) {
            status = sx_no_memory("dividing a graph");
        }
        for (int i = 1; i < made->n_values && status == SX_OK; i++) {
            out->own[i] = s.own[made->values[i].node];
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
    *p = (sx_spmd){.graph = NULL};
}
