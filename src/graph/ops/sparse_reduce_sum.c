/* sparse_reduce_sum: the sum of a sparse tensor along axes, as a dense tensor.
 *
 *   indices, values, shape   a sparse tensor of numbers
 *   axes        int32 scalar or vector, negative ones from the end
 *   keep_dims   reduced axes stay, with size 1
 *   returns     the shape that is left
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) an axis out of range
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow SparseReduceSum */
#include "graph/ops/sparse.h"

typedef struct sx_sparse_reduce_attrs {
    bool keep_dims;
} sx_sparse_reduce_attrs;

static const sx_attr_def sparse_reduce_sum_attrs[] = {
    SX_ATTR_TF(sx_sparse_reduce_attrs, keep_dims, SX_ATTR_BOOL)};

static sx_status sparse_reduce_sum_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_require_number("values", &c->inputs[1]));
    SX_TRY(sx_require_dtype("axes", &c->inputs[3], SX_I32));
    c->outputs[0] = sx_unknown_shape(c->inputs[1].dtype);
    return SX_OK;
}

/* reduced[rank]; the result's type. */
static sx_status read(const sx_kernel_call *c, sx_sparse *t, bool *reduced, sx_type *out)
{
    const sx_sparse_reduce_attrs *a = c->attrs;
    const int64_t n = sx_type_elems(&c->in[3].type);
    SX_TRY(sx_read_sparse(c, 0, 1, 2, t));
    if (t->rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld dimensions, at most %d are supported",
                        (long long)t->rank, SX_MAX_RANK);
    }
    for (int64_t d = 0; d < t->rank; d++) {
        reduced[d] = false;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t axis = c->in[3].i[k] + (c->in[3].i[k] < 0 ? t->rank : 0);
        if (axis < 0 || axis >= t->rank) {
            return sx_error(SX_INVALID_ARGUMENT, "axis %lld, the tensor has %lld dimensions",
                            (long long)c->in[3].i[k], (long long)t->rank);
        }
        reduced[axis] = true;
    }
    *out = sx_scalar_type(t->values->type.dtype);
    for (int64_t d = 0; d < t->rank; d++) {
        if (!reduced[d] || a->keep_dims) {
            out->dims[out->rank++] = reduced[d] ? 1 : t->shape[d];
        }
    }
    return sx_require_made("the sum", out);
}

static sx_status sparse_reduce_sum_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    sx_sparse t;
    bool reduced[SX_MAX_RANK];
    return read(c, &t, reduced, &out_types[0]);
}

static sx_status sparse_reduce_sum_host(const sx_kernel_call *c)
{
    sx_sparse t;
    bool reduced[SX_MAX_RANK];
    sx_type type;
    SX_TRY(read(c, &t, reduced, &type));
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0; k < t.n; k++) {
        int64_t at = 0;
        for (int64_t d = 0; d < t.rank; d++) {
            at = reduced[d] ? at : at * t.shape[d] + t.indices[k * t.rank + d];
        }
        if (sx_carrier_of(type.dtype) == SX_CARRIER_F) {
            c->out[0].f[at] += t.values->f[k];
        } else {
            c->out[0].i[at] = SX_WRAP(c->out[0].i[at], +, t.values->i[k]);
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_sparse_reduce_sum = {
    SX_OP_NAMED(sparse_reduce_sum),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sparse_reduce_attrs, sparse_reduce_sum_attrs),
    .infer = sparse_reduce_sum_infer,
    .host = sparse_reduce_sum_host,
    .host_types = sparse_reduce_sum_host_types,
    SX_FROM_TF({.op = "SparseReduceSum"}),
};
