/* sparse_softmax: softmax over the values of each row of the last dimension; what is not there
 * counts as minus infinity.
 *
 *   indices, values, shape   a sparse tensor of floats, rank 2 or more
 *   returns   values [n]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) an index outside of the shape
 * Source   TensorFlow SparseSoftmax */
#include "graph/ops/linear_algebra.h"
#include "graph/ops/sparse.h"

static sx_status sparse_softmax_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_require_float("values", &c->inputs[1]));
    c->outputs[0] = c->inputs[1];
    return SX_OK;
}

/* dx = (dy - the sum of dy y in its row) y; the values are in the order of their rows. */
static void sparse_softmax_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type indices = sx_type_of_value(b, g->x[0]);
    const int64_t n = indices.dims[0], rank = indices.dims[1];
    const sx_slice_attrs outer = {.begin = {2, {0, 0}}, .size = {2, {n, rank - 1}}},
                         sizes = {.begin = {1, {0}}, .size = {1, {rank - 1}}};
    const sx_value row = sx_flat_places(b, sx_build_op(b, slice, &outer, g->x[0]),
                                        sx_build_op(b, slice, &sizes, g->x[2]));
    const sx_value same = sx_cast_like(
        b, sx_build_op(b, equal, NULL, sx_as_column(b, row), sx_as_row(b, row)), g->dy[0]);
    const sx_value weighted = sx_build_op(b, mul, NULL, g->dy[0], g->y[0]);
    const sx_value sum = sx_build_op(b, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {1}}}),
                                     sx_build_op(b, mul, NULL, same, sx_as_row(b, weighted)));
    g->dx[1] = sx_build_op(b, mul, NULL, sx_build_op(b, sub, NULL, g->dy[0], sum), g->y[0]);
}

static sx_status sparse_softmax_host(const sx_kernel_call *c)
{
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
    if (t.rank < 2) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld dimensions, expected 2 or more",
                        (long long)t.rank);
    }
    const int64_t *order = sx_order_indices(c, t.indices, t.n, t.rank);
    if (order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t from = 0, to; from < t.n; from = to) {
        const int64_t *row = t.indices + order[from] * t.rank;
        double most = -INFINITY, sum = 0;
        for (to = from;
             to < t.n && sx_compare_indices(row, t.indices + order[to] * t.rank, t.rank - 1) == 0;
             to++) {
            most = fmax(most, t.values->f[order[to]]);
        }
        for (int64_t k = from; k < to; k++) {
            c->out[0].f[order[k]] = exp(t.values->f[order[k]] - most);
            sum += c->out[0].f[order[k]];
        }
        for (int64_t k = from; k < to; k++) {
            c->out[0].f[order[k]] /= sum;
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_sparse_softmax = {
    SX_OP_NAMED(sparse_softmax),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    .infer = sparse_softmax_infer,
    .grad = sparse_softmax_gradient,
    .host = sparse_softmax_host,
    SX_FROM_TF({.op = "SparseSoftmax"}),
};
