/* Combining partial results (spmd_pass.h): by the device's all_reduce, or in a fixed tree. */
#include "graph/spmd_pass.h"

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"

enum { BUCKET_BYTES = 4 << 20 };

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

static sx_value join_parts(sx_spmd_pass *s, const sx_node *n, int32_t how, const sx_value *x,
                           int first, int count, int *number)
{
    if (count == 1) {
        return x[first];
    }
    const int half = (count + 1) / 2;
    const sx_value sides[2] = {join_parts(s, n, how, x, first, half, number),
                               join_parts(s, n, how, x, first + half, count - half, number)};
    return sx_spmd_emit(s, n, "tree", (*number)++,
                        how == SX_COMBINE_AND    ? &sx_op_logical_and
                        : how == SX_COMBINE_OR   ? &sx_op_logical_or
                        : how == SX_COMBINE_MAX  ? &sx_op_maximum
                        : how == SX_COMBINE_MIN  ? &sx_op_minimum
                        : how == SX_COMBINE_PROD ? &sx_op_mul
                                                 : &sx_op_add,
                        NULL, sides, 2, true);
}

/* Combines them in the fixed tree over all parts. Replicas, if a power of two, own whole subtrees,
 * whose sums they exchange; else they exchange the partial results. */
static void combine_strictly(sx_spmd_pass *s, const sx_spmd_waiter *list, int n)
{
    const int32_t how = list[0].how;
    const bool sums = how != SX_COMBINE_MEAN && how != SX_COMBINE_MOMENTS;
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
        sx_value *x = sx_spmd_list_parts(s, v);
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
            x[c] = sx_spmd_reshape(s, maker, "row", output * rows + c, x[c], &row, true);
        }
        stacks[i] = sx_spmd_concat(s, maker, "stack", output, x, rows, 0, true);
    }
    if ((subtrees && s->replicas == 1) || sx_builder_failed(s->b)) {
        return;
    }
    const bool moments = how == SX_COMBINE_MOMENTS; /* joined together, the others one by one */
    const int n_stacks = moments ? pieces : 1;
    if (s->replicas > 1 || !moments) {
        sx_value all = sx_spmd_concat(s, first, "bucket", 0, stacks, pieces, 1, true);
        if (s->replicas > 1) {
            const sx_all_gather_attrs gather = {.replicas = s->replicas,
                                                .size = (int64_t)rows * s->replicas};
            all =
                sx_spmd_emit(s, first, "all_gather", 0, &sx_op_all_gather, &gather, &all, 1, false);
        }
        const int64_t size = sx_type_elems(&types[0]);
        for (int i = 0; i < n_stacks; i++) {
            stacks[i] =
                moments ? sx_spmd_slice(s, first, "of_moments", i, all, 1, i * size, size, false)
                        : all;
        }
    }
    sx_value joined = sx_spmd_emit(s, first, "reduce_tree", 0, &sx_op_reduce_tree,
                                   &(sx_reduce_tree_attrs){.how = how}, stacks, n_stacks, false);
    int64_t offset = 0;
    for (int i = 0; i < pieces && !sx_builder_failed(s->b); i++) {
        const sx_node *maker = sx_graph_maker(s->g, at[i]);
        const int output = s->g->values[at[i].id].output;
        const int64_t size = sx_type_elems(&types[i]);
        sx_value y = sx_output_of(joined, moments ? i : 0);
        if (!moments && pieces > 1) {
            y = sx_spmd_slice(s, maker, "of_bucket", output, y, 0, offset, size, false);
            offset += size;
        }
        s->whole[at[i].id] = sx_spmd_reshape(s, maker, "whole", output, y, &types[i], false);
    }
}

/* Combines the partial results of list[n], which are of one kind, in one exchange. */
static void combine(sx_spmd_pass *s, const sx_spmd_waiter *list, int n)
{
    const int32_t how = list[0].how;
    if (s->is_region) {
        s->exchanges = true;
    }
    if (s->strict || s->n_parts > 1 || s->o->ordered) {
        combine_strictly(s, list, n);
        return;
    }
    sx_value in[SX_MAX_OUTPUTS], of[SX_MAX_OUTPUTS];
    const int count = how == SX_COMBINE_MOMENTS ? 2 : n;
    for (int i = 0; i < count; i++) {
        of[i] = how == SX_COMBINE_MOMENTS ? sx_output_of(list[0].v, i) : list[i].v;
        in[i] = *sx_spmd_part_at(s, 0, of[i]);
    }
    const sx_all_reduce_attrs attrs = {.how = how, .replicas = s->replicas, .elems = list[0].elems};
    const sx_value first = sx_spmd_emit(s, sx_graph_maker(s->g, list[0].v), "all_reduce",
                                        s->g->values[list[0].v.id].output, &sx_op_all_reduce,
                                        &attrs, in, count, false);
    for (int i = 0; i < count; i++) {
        s->whole[of[i].id] = sx_output_of(first, i);
    }
}

static sx_dtype dtype_of(const sx_spmd_pass *s, const sx_spmd_waiter *p)
{
    return sx_graph_type(s->g, p->v)->dtype;
}

static bool same_kind(const sx_spmd_pass *s, const sx_spmd_waiter *a, const sx_spmd_waiter *b)
{
    return a->how == b->how && a->how != SX_COMBINE_MOMENTS && dtype_of(s, a) == dtype_of(s, b);
}

/* Combines those of the kind of waiting[of] that are first needed by node `last` or earlier. */
static void flush(sx_spmd_pass *s, int of, int last)
{
    const sx_spmd_waiter like = s->waiting[of];
    sx_spmd_waiter list[SX_MAX_OUTPUTS];
    int n = 0, kept = 0;
    for (int i = 0; i < s->n_waiting; i++) {
        const sx_spmd_waiter *p = &s->waiting[i];
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

void sx_spmd_combine_of(sx_spmd_pass *s, sx_value v)
{
    const bool second = s->g->values[v.id].output == 1;
    for (int i = 0; i < s->n_waiting; i++) {
        const sx_spmd_waiter *p = &s->waiting[i];
        if (p->v.id == v.id || (p->how == SX_COMBINE_MOMENTS && second && p->v.id + 1 == v.id)) {
            flush(s, i, p->first_use);
            return;
        }
    }
}

void sx_spmd_combine_later(sx_spmd_pass *s, sx_value v, int32_t how, int64_t elems)
{
    const int at = s->n_waiting++;
    const sx_spmd_waiter *p = &s->waiting[at];
    s->waiting[at] = (sx_spmd_waiter){
        .v = v,
        .how = how,
        .first_use = how == SX_COMBINE_MOMENTS ? SX_MIN(s->first_use[v.id], s->first_use[v.id + 1])
                                               : s->first_use[v.id],
        .bytes = sx_type_bytes(sx_graph_type(s->g, v)),
        .elems = elems};
    int64_t bytes = 0;
    for (int i = 0; i <= at; i++) {
        bytes += i == at || same_kind(s, &s->waiting[i], p) ? s->waiting[i].bytes : 0;
    }
    if (bytes >= BUCKET_BYTES && p->first_use < INT32_MAX) {
        flush(s, at, INT32_MAX - 1);
    }
}

static int32_t combination_of(const sx_spmd_pass *s, const sx_node *n)
{
    switch (n->op->batch_rule) {
    case SX_RULE_MAX:
        return SX_COMBINE_MAX;
    case SX_RULE_MIN:
        return SX_COMBINE_MIN;
    case SX_RULE_AND:
        return SX_COMBINE_AND;
    case SX_RULE_OR:
        return SX_COMBINE_OR;
    case SX_RULE_PROD:
        return SX_COMBINE_PROD;
    case SX_RULE_MOMENTS:
        return s->sees_parts[n->first_output.id] ? SX_COMBINE_MEAN : SX_COMBINE_MOMENTS;
    default:
        return SX_COMBINE_SUM;
    }
}

void sx_spmd_combine_outputs(sx_spmd_pass *s, const sx_node *n)
{
    const int32_t how = combination_of(s, n);
    const sx_type part = sx_type_with_batch(*sx_graph_type(s->g, n->inputs[0]), s->part);
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_value v = sx_node_output(n, i);
        const sx_type *type = sx_graph_type(s->g, v);
        if (!sx_type_has_batch(type) && !(how == SX_COMBINE_MOMENTS && i > 0)) {
            const int64_t out = sx_type_elems(type);
            sx_spmd_combine_later(s, v, how, out > 0 ? sx_type_elems(&part) / out : 0);
        }
    }
}
