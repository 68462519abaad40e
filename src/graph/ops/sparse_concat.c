/* sparse_concat: sparse tensors side by side along an axis; values in the order of their indices.
 *
 *   indices..., values..., shapes...   `count` of each: sparse tensors
 *   axis      -rank <= axis < rank
 *   returns   indices int64 [n, rank], values [n], shape int64 [rank]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) other dimensions that differ
 * Source   TensorFlow SparseConcat */
#include "base/memory.h"
#include "graph/ops/sparse.h"

typedef struct sx_sparse_concat_attrs {
    int64_t axis, count;
} sx_sparse_concat_attrs;

static const sx_attr_def sparse_concat_attrs[] = {
    SX_ATTR(sx_sparse_concat_attrs, axis, SX_ATTR_INT),
    SX_ATTR(sx_sparse_concat_attrs, count, SX_ATTR_INT),
};

static sx_status sparse_concat_infer(sx_infer_context *c)
{
    const sx_sparse_concat_attrs *a = c->attrs;
    const int n = (int)a->count;
    if (a->count < 1 || a->count > SX_TF_MAX_INPUTS || c->n_inputs != 3 * n) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands for %lld sparse tensors", c->n_inputs,
                        (long long)a->count);
    }
    for (int k = 0; k < n; k++) {
        SX_TRY(sx_infer_sparse(c, k, n + k, 2 * n + k));
        SX_TRY(sx_require_dtype("values", &c->inputs[n + k], c->inputs[n].dtype));
    }
    const int64_t rank = sx_vector_size(&c->inputs[2 * n]);
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
    c->outputs[1] = sx_type_of(c->inputs[n].dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

static void sparse_concat_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const int n = g->n_inputs / 3;
    sx_value *in = sx_arena_memdup(sx_builder_arena(b), g->x, (size_t)g->n_inputs * sizeof(*in));
    sx_type types[3];
    int64_t count = 0;
    if (in == NULL) {
        sx_builder_fail(b, sx_no_memory("for gradients"));
        return;
    }
    if (!sx_value_is(g->dy[1])) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        types[i] = sx_type_of_value(b, g->y[i]);
    }
    types[1].dtype = SX_I64;
    const sx_value numbers = sx_numbers_to(b, types[1].dims[0]);
    for (int i = 0; i < n; i++) {
        const int64_t size = sx_type_of_value(b, g->x[n + i]).dims[0];
        in[n + i] = sx_build_op(b, slice, (&(sx_slice_attrs){{1, {count}}, {1, {size}}}), numbers);
        count += size;
    }
    const sx_value from = sx_output_of(
        sx_build_typed(b, &sx_op_sparse_concat, g->attrs, in, g->n_inputs, types, 3), 1);
    const sx_value all = sx_add_rows(b, g->dy[1], from, g->dy[1]);
    count = 0;
    for (int i = 0; i < n; i++) {
        const int64_t size = sx_type_of_value(b, g->x[n + i]).dims[0];
        g->dx[n + i] = sx_build_op(b, slice, (&(sx_slice_attrs){{1, {count}}, {1, {size}}}), all);
        count += size;
    }
}

static sx_status sparse_concat_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_sparse_concat_attrs *a = c->attrs;
    const int n = (int)a->count;
    sx_sparse first, t;
    int64_t all = 0;
    SX_TRY(sx_read_sparse(c, 0, n, 2 * n, &first));
    const int64_t axis = a->axis < 0 ? a->axis + first.rank : a->axis;
    for (int k = 0; k < n; k++) {
        SX_TRY(sx_read_sparse(c, k, n + k, 2 * n + k, &t), "tensor %d", k);
        bool same = t.rank == first.rank && axis >= 0 && axis < t.rank;
        for (int64_t d = 0; d < t.rank && same; d++) {
            same = d == axis || t.shape[d] == first.shape[d];
        }
        if (!same) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "tensor %d does not fit to tensor 0 along axis %lld", k,
                            (long long)a->axis);
        }
        all += t.n;
    }
    out_types[0] = sx_type_of(SX_I64, all, first.rank);
    out_types[1] = sx_type_of(c->in[n].type.dtype, all);
    out_types[2] = sx_type_of(SX_I64, first.rank);
    return SX_OK;
}

static sx_status sparse_concat_host(const sx_kernel_call *c)
{
    const sx_sparse_concat_attrs *a = c->attrs;
    const int n = (int)a->count;
    const int64_t all = c->out[0].type.dims[0], rank = c->out[0].type.dims[1];
    const int64_t axis = a->axis < 0 ? a->axis + rank : a->axis;
    int64_t *indices = sx_arena_array(c->arena, all * rank + 1, int64_t), at = 0, offset = 0;
    int64_t *tensor = sx_arena_array(c->arena, all + 1, int64_t),
            *number = sx_arena_array(c->arena, all + 1, int64_t);
    if (indices == NULL || tensor == NULL || number == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int k = 0; k < n; k++) {
        sx_sparse t;
        SX_TRY(sx_read_sparse(c, k, n + k, 2 * n + k, &t));
        for (int64_t i = 0; i < t.n; i++, at++) {
            memcpy(indices + at * rank, t.indices + i * rank, (size_t)rank * sizeof(int64_t));
            indices[at * rank + axis] += offset;
            tensor[at] = k;
            number[at] = i;
        }
        if (!sx_add_i64(offset, t.shape[axis], &offset)) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %lld overflows", (long long)axis);
        }
        memcpy(c->out[2].i, t.shape, (size_t)rank * sizeof(int64_t));
    }
    c->out[2].i[axis] = offset;
    const int64_t *order = sx_order_indices(c, indices, all, rank);
    if (order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < all; k++) {
        memcpy(c->out[0].i + k * rank, indices + order[k] * rank, (size_t)rank * sizeof(int64_t));
        sx_copy_element(&c->out[1], k, &c->in[n + tensor[order[k]]], number[order[k]]);
    }
    return SX_OK;
}

static sx_status concat_from_tf(const sx_tf_node *n, void *out)
{
    *(sx_sparse_concat_attrs *)out = (sx_sparse_concat_attrs){
        .axis = sx_tf_read_int(n, "concat_dim", 0), .count = sx_tf_read_int(n, "N", 0)};
    return SX_OK;
}

const sx_op_def sx_op_sparse_concat = {
    SX_OP_NAMED(sparse_concat),
    .n_in = SX_VARIADIC,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sparse_concat_attrs, sparse_concat_attrs),
    .infer = sparse_concat_infer,
    .grad = sparse_concat_gradient,
    .host = sparse_concat_host,
    .host_types = sparse_concat_host_types,
    SX_FROM_TF({.op = "SparseConcat", .attrs = concat_from_tf}),
};
