/* sparse_add: the sum of two sparse tensors of one shape, whose values are in the order of their
 * indices; where both have one, a sum nearer to 0 than a
 * threshold is left out.
 *
 *   a, b      sparse tensors of numbers: indices, values, shape of each
 *   least     scalar
 *   returns   indices int64 [n, rank], values [n], shape int64 [rank]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) shapes that differ
 * Source   TensorFlow SparseAdd */
#include "graph/ops/sparse.h"

static sx_status sparse_add_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_infer_sparse(c, 3, 4, 5));
    SX_TRY(sx_require_number("values", &c->inputs[1]));
    SX_TRY(sx_require_dtype("values of b", &c->inputs[4], c->inputs[1].dtype));
    SX_TRY(sx_require_number("the threshold", &c->inputs[6]));
    const int64_t rank = sx_vector_size(&c->inputs[2]);
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
    c->outputs[1] = sx_type_of(c->inputs[1].dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

/* Counts the sums that are kept; writes them where there are outputs. */
static sx_status run(const sx_kernel_call *c, int64_t *out_n, int64_t *out_rank)
{
    sx_sparse a, b;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &a));
    SX_TRY(sx_read_sparse(c, 3, 4, 5, &b));
    if (a.rank != b.rank || memcmp(a.shape, b.shape, (size_t)a.rank * sizeof(int64_t)) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the two shapes differ");
    }
    const bool integers = sx_carrier_of(a.values->type.dtype) != SX_CARRIER_F;
    const double least = sx_host_get(&c->in[6], 0);
    int64_t i = 0, k = 0, n = 0;
    while (i < a.n || k < b.n) {
        const int64_t *at_a = a.indices + i * a.rank, *at_b = b.indices + k * b.rank;
        const int order = i == a.n ? 1 : k == b.n ? -1 : sx_compare_indices(at_a, at_b, a.rank);
        double sum = 0, magnitude;
        int64_t whole = 0;
        if (integers) {
            whole = SX_WRAP(order <= 0 ? a.values->i[i] : 0, +, order >= 0 ? b.values->i[k] : 0);
            magnitude = a.values->type.dtype == SX_U64 ? (double)(uint64_t)whole
                        : whole == INT64_MIN           ? -1 /* as abs() has it */
                                                       : fabs((double)whole);
        } else {
            sum = (order <= 0 ? a.values->f[i] : 0) + (order >= 0 ? b.values->f[k] : 0);
            magnitude = fabs(sum);
        }
        if (order != 0 || magnitude >= least) {
            if (c->out != NULL) {
                memcpy(c->out[0].i + n * a.rank, order <= 0 ? at_a : at_b,
                       (size_t)a.rank * sizeof(int64_t));
                if (integers) {
                    c->out[1].i[n] = whole;
                } else {
                    c->out[1].f[n] = sum;
                }
            }
            n++;
        }
        i += order <= 0;
        k += order >= 0;
    }
    if (c->out != NULL) {
        memcpy(c->out[2].i, a.shape, (size_t)a.rank * sizeof(int64_t));
    }
    *out_n = n;
    *out_rank = a.rank;
    return SX_OK;
}

static void sparse_add_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    for (int i = 0; i < 6 && sx_value_is(g->dy[1]); i += 3) {
        if (g->needed[i + 1]) {
            g->dx[i + 1] = sx_take_places(b, g->dy[1], sx_flat_places(b, g->y[0], g->y[2]),
                                          sx_flat_places(b, g->x[i], g->y[2]));
        }
    }
}

static sx_status sparse_add_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    int64_t n = 0, rank = 0;
    SX_TRY(run(c, &n, &rank));
    out_types[0] = sx_type_of(SX_I64, n, rank);
    out_types[1] = sx_type_of(c->in[1].type.dtype, n);
    out_types[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

static sx_status sparse_add_host(const sx_kernel_call *c)
{
    int64_t n = 0, rank = 0;
    return run(c, &n, &rank);
}

const sx_op_def sx_op_sparse_add = {
    SX_OP_NAMED(sparse_add),
    .n_in = 7,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    .infer = sparse_add_infer,
    .grad = sparse_add_gradient,
    .host = sparse_add_host,
    .host_types = sparse_add_host_types,
    SX_FROM_TF({.op = "SparseAdd"}),
};
