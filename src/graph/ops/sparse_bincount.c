/* sparse_bincount: how often each number is among the values of a sparse tensor, or of each of its
 * rows, or the sum of its weights.
 *
 *   indices, values, shape   a sparse tensor of int32 or int64, [n] or [rows, n]
 *   size           of values' dtype, a scalar; numbers of `size` and more do not count
 *   weights        int32, int64, float32 or float64: one for each value, or none: all 1
 *   binary_output  1 for each number that is there
 *   returns        of weights' dtype: [size] or [rows, size]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) a negative number or size
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow SparseBincount */
#include "graph/ops/sparse.h"

typedef struct sx_sparse_bincount_attrs {
    bool binary_output;
} sx_sparse_bincount_attrs;

static const sx_attr_def sparse_bincount_attrs[] = {
    SX_ATTR_TF(sx_sparse_bincount_attrs, binary_output, SX_ATTR_BOOL)};

static sx_status sparse_bincount_infer(sx_infer_context *c)
{
    const sx_type *weights = &c->inputs[4];
    const int64_t rank = sx_vector_size(&c->inputs[2]);
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_require_index("values", &c->inputs[1]));
    SX_TRY(sx_require_dtype("size", &c->inputs[3], c->inputs[1].dtype));
    if (c->inputs[3].rank > 1 || (rank >= 0 && rank != 1 && rank != 2) ||
        (weights->dtype != SX_F32 && weights->dtype != SX_F64 && weights->dtype != SX_I32 &&
         weights->dtype != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT, "shape is %s, size %s, weights are %s",
                        SX_TEXT(&c->inputs[2]), SX_TEXT(&c->inputs[3]), SX_TEXT(weights));
    }
    c->outputs[0] = rank == 1   ? sx_type_of(weights->dtype, SX_UNKNOWN_DIM)
                    : rank == 2 ? sx_type_of(weights->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM)
                                : sx_unknown_shape(weights->dtype);
    return SX_OK;
}

static sx_status sparse_bincount_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *weights = &c->in[4].type;
    const int64_t size = sx_type_elems(&c->in[3].type) == 1 ? c->in[3].i[0] : -1,
                  n_weights = sx_type_elems(weights);
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
    if (size < 0 || (n_weights != 0 && n_weights != t.n) || (t.rank != 1 && t.rank != 2)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "size is %lld, there are %lld values in %lld dimensions and %lld weights; "
                        "expected a size from 0 on, 1 or 2 dimensions, and a weight of each value "
                        "or none",
                        (long long)size, (long long)t.n, (long long)t.rank, (long long)n_weights);
    }
    out_types[0] = t.rank == 1 ? sx_type_of(weights->dtype, size)
                               : sx_type_of(weights->dtype, t.shape[0], size);
    return sx_require_made("the result", &out_types[0]);
}

static sx_status sparse_bincount_host(const sx_kernel_call *c)
{
    const sx_sparse_bincount_attrs *a = c->attrs;
    const sx_host_tensor *weights = &c->in[4], *y = &c->out[0];
    const int64_t size = c->in[3].i[0];
    const bool weighted = sx_type_elems(&weights->type) > 0;
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0; k < t.n; k++) {
        const int64_t bin = t.values->i[k];
        if (bin < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "value %lld is %lld, expected 0 or more",
                            (long long)k, (long long)bin);
        }
        if (bin >= size) {
            continue;
        }
        const int64_t at = t.rank == 1 ? bin : t.indices[k * 2] * size + bin;
        if (a->binary_output) {
            sx_host_set(y, at, 1);
        } else if (sx_carrier_of(y->type.dtype) == SX_CARRIER_F) {
            y->f[at] += weighted ? weights->f[k] : 1;
        } else {
            y->i[at] = SX_WRAP(y->i[at], +, weighted ? weights->i[k] : 1);
        }
    }
    return SX_OK;
}

const sx_op_def sx_op_sparse_bincount = {
    SX_OP_NAMED(sparse_bincount),
    .n_in = 5,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sparse_bincount_attrs, sparse_bincount_attrs),
    .infer = sparse_bincount_infer,
    .host = sparse_bincount_host,
    .host_types = sparse_bincount_host_types,
    SX_FROM_TF({.op = "SparseBincount"}),
};
