/* sparse_reorder: the values of a sparse tensor in the order of their indices, row by row.
 *
 *   indices, values, shape   a sparse tensor
 *   returns   indices int64 [n, rank], values [n]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) an index outside of the shape
 * Source   TensorFlow SparseReorder */
#include "graph/ops/sparse.h"

static sx_status sparse_reorder_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    c->outputs[0] = c->inputs[0];
    c->outputs[1] = c->inputs[1];
    return SX_OK;
}

static void sparse_reorder_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_value in[] = {g->x[0], sx_numbers_to(b, sx_type_of_value(b, g->x[1]).dims[0]),
                           g->x[2]};
    if (sx_value_is(g->dy[1])) {
        const sx_value from = sx_output_of(sx_build(b, &sx_op_sparse_reorder, NULL, in, 3), 1);
        g->dx[1] = sx_add_rows(b, g->x[1], from, g->dy[1]);
    }
}

static sx_status sparse_reorder_host(const sx_kernel_call *c)
{
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
    const int64_t *order = sx_order_indices(c, t.indices, t.n, t.rank);
    if (order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < t.n; k++) {
        memcpy(c->out[0].i + k * t.rank, t.indices + order[k] * t.rank,
               (size_t)t.rank * sizeof(int64_t));
        sx_copy_element(&c->out[1], k, t.values, order[k]);
    }
    return SX_OK;
}

const sx_op_def sx_op_sparse_reorder = {
    SX_OP_NAMED(sparse_reorder),
    .n_in = 3,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    .infer = sparse_reorder_infer,
    .grad = sparse_reorder_gradient,
    .host = sparse_reorder_host,
    SX_FROM_TF({.op = "SparseReorder"}),
};
