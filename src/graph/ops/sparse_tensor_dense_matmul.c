/* sparse_tensor_dense_matmul: the product of a sparse matrix and a dense one.
 *
 *   indices    int32 or int64 [n, 2]
 *   values     [n], float32, float64, int32 or int64
 *   shape      int64 [2]
 *   b          [k, m] of values' dtype
 *   adjoint_a, adjoint_b   transpose a, b first
 *   returns    of values' dtype, [rows, m]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) sizes that do not match, an index out of
 *                              range
 *          RESOURCE_EXHAUSTED  (running) too many rows
 * Numbers  accumulates in double
 * Source   TensorFlow SparseTensorDenseMatMul */
#include "graph/ops/linear_algebra.h"

typedef struct sx_sparse_matmul_attrs {
    bool adjoint_a, adjoint_b;
} sx_sparse_matmul_attrs;

static const sx_attr_def sparse_tensor_dense_matmul_attrs[] = {
    SX_ATTR_TF(sx_sparse_matmul_attrs, adjoint_a, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_sparse_matmul_attrs, adjoint_b, SX_ATTR_BOOL),
};

static sx_status sparse_tensor_dense_matmul_infer(sx_infer_context *c)
{
    const sx_sparse_matmul_attrs *attrs = c->attrs;
    const sx_dtype d = c->inputs[1].dtype;
    const sx_type *b = &c->inputs[3];
    if (d != SX_F32 && d != SX_F64 && d != SX_I32 && d != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, expected 32-bit or 64-bit numbers",
                        SX_TEXT(&c->inputs[1]));
    }
    SX_TRY(sx_require_integers("indices", &c->inputs[0], 2, "[n, 2]"));
    SX_TRY(sx_require_maybe("values", &c->inputs[1], d, 1, "[n]"));
    SX_TRY(sx_require_maybe("shape", &c->inputs[2], SX_I64, 1, "[2]"));
    SX_TRY(sx_require_maybe("b", b, d, 2, "[k, m]"));
    c->outputs[0] = sx_type_of(d, SX_UNKNOWN_DIM,
                               b->rank == 2 ? b->dims[attrs->adjoint_b ? 0 : 1] : SX_UNKNOWN_DIM);
    return SX_OK;
}

/* dvalues = rows of dy times columns of b; db = aT dy, at the places where a has values. */
static void sparse_tensor_dense_matmul_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_sparse_matmul_attrs *attrs = g->attrs;
    const sx_gather_attrs take = {.axis = 0};
    const sx_value row = sx_index_column(b, g->x[0], attrs->adjoint_a),
                   inner = sx_index_column(b, g->x[0], !attrs->adjoint_a);
    const sx_value dense = attrs->adjoint_b ? sx_transposed(b, g->x[3]) : g->x[3];
    const sx_value dy = sx_build_op(b, gather, &take, g->dy[0], row);
    if (g->needed[1]) {
        const sx_value by = sx_build_op(b, gather, &take, dense, inner);
        g->dx[1] = sx_build_op(b, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {1}}}),
                               sx_build_op(b, mul, NULL, dy, by));
    }
    if (g->needed[3]) {
        const int64_t column[] = {sx_type_of_value(b, g->x[1]).dims[0], 1};
        const sx_value part = sx_build_op(b, mul, NULL, dy, sx_reshape_dims(b, g->x[1], 2, column));
        const sx_value db = sx_add_rows(b, dense, inner, part);
        g->dx[3] = attrs->adjoint_b ? sx_transposed(b, db) : db;
    }
}

static sx_status sparse_tensor_dense_matmul_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_sparse_matmul_attrs *attrs = c->attrs;
    const sx_type *indices = &c->in[0].type, *b = &c->in[3].type;
    const int64_t n = indices->dims[0];
    bool sound = indices->dims[1] == 2 && c->in[1].type.dims[0] == n && c->in[2].type.dims[0] == 2;
    const int64_t *shape = c->in[2].i;
    sound = sound && shape[0] >= 0 && shape[1] >= 0 &&
            shape[attrs->adjoint_a ? 0 : 1] == b->dims[attrs->adjoint_b ? 1 : 0];
    for (int64_t k = 0; k < 2 * n && sound; k++) {
        sound = c->in[0].i[k] >= 0 && c->in[0].i[k] < shape[k % 2];
    }
    if (!sound) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "indices are %s, values %s, b %s: sizes do not match shape, or an index is "
                        "out of range",
                        SX_TEXT(indices), SX_TEXT(&c->in[1].type), SX_TEXT(b));
    }
    out_types[0] = sx_type_of(c->in[1].type.dtype, shape[attrs->adjoint_a ? 1 : 0],
                              b->dims[attrs->adjoint_b ? 0 : 1]);
    return sx_require_made("the result", &out_types[0]);
}

static sx_status sparse_tensor_dense_matmul_host(const sx_kernel_call *c)
{
    const sx_sparse_matmul_attrs *attrs = c->attrs;
    const sx_type *b = &c->in[3].type;
    const int64_t m = c->out[0].type.dims[1];
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0; k < c->in[0].type.dims[0]; k++) {
        const int64_t row = c->in[0].i[2 * k + attrs->adjoint_a],
                      inner = c->in[0].i[2 * k + !attrs->adjoint_a];
        for (int64_t j = 0; j < m; j++) {
            const int64_t from = attrs->adjoint_b ? j * b->dims[1] + inner : inner * m + j;
            const int64_t to = row * m + j;
            if (sx_carrier_of(b->dtype) == SX_CARRIER_F) {
                c->out[0].f[to] += c->in[1].f[k] * c->in[3].f[from];
            } else {
                c->out[0].i[to] =
                    SX_WRAP(c->out[0].i[to], +, SX_WRAP(c->in[1].i[k], *, c->in[3].i[from]));
            }
        }
    }
    return SX_OK;
}

static void sparse_tensor_dense_matmul_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_sparse_tensor_dense_matmul, "SparseTensorDenseMatMul",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype),
                           sx_tf_attr_type("Tindices", (int)op->in_types[0].dtype)));
}

static const double places[] = {0, 1, 1, 0, 1, 2}, shape[] = {2, 3};
static const sx_op_sample sparse_tensor_dense_matmul_samples[] = {
    {.name = "plain",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                SX_SAMPLE_LIST(SX_I64, shape, 2), SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 4)},
     .n_inputs = 4},
    {.name = "adjoint",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                SX_SAMPLE_LIST(SX_I64, shape, 2), SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 2)},
     .n_inputs = 4,
     .attrs = &(const sx_sparse_matmul_attrs){.adjoint_a = true, .adjoint_b = true}},
};

const sx_op_def sx_op_sparse_tensor_dense_matmul = {
    SX_OP_NAMED(sparse_tensor_dense_matmul),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_sparse_matmul_attrs, sparse_tensor_dense_matmul_attrs),
    .infer = sparse_tensor_dense_matmul_infer,
    .grad = sparse_tensor_dense_matmul_gradient,
    .host = sparse_tensor_dense_matmul_host,
    .host_types = sparse_tensor_dense_matmul_host_types,
    .to_tf = sparse_tensor_dense_matmul_to_tf,
    SX_FROM_TF({.op = "SparseTensorDenseMatMul"}),
    SX_OP_SAMPLES(sparse_tensor_dense_matmul_samples),
};
