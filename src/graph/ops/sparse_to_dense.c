/* sparse_to_dense: values at places of a tensor that is `default` elsewhere.
 *
 *   indices    int32 or int64: [n, rank], [n] of a vector, or a scalar of a vector
 *   shape      of their dtype, [rank]
 *   values     any dtype: [n], or a scalar for all
 *   default    a scalar of that dtype
 *   validate_indices   they ascend, and none is there twice; else later ones count
 *   returns    of values' dtype, shape `shape`
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) an index out of range or, if validated, out
 *                              of order
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow SparseToDense */
#include "graph/ops/host_ops.h"

typedef struct sx_sparse_to_dense_attrs {
    bool validate_indices;
} sx_sparse_to_dense_attrs;

static const sx_attr_def sparse_to_dense_attrs[] = {
    SX_ATTR_TF(sx_sparse_to_dense_attrs, validate_indices, SX_ATTR_BOOL, .tf_number = 1)};

static sx_status sparse_to_dense_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_index("indices", &c->inputs[0]));
    SX_TRY(sx_require_maybe("shape", &c->inputs[1], c->inputs[0].dtype, 1, "[rank]"));
    SX_TRY(sx_require_maybe("default", &c->inputs[3], c->inputs[2].dtype, 0, "a scalar"));
    if (c->inputs[0].rank > 2 || c->inputs[2].rank > 1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "indices are %s and values %s, expected [n, rank], [n]",
                        SX_TEXT(&c->inputs[0]), SX_TEXT(&c->inputs[2]));
    }
    return sx_infer_shaped("shape", &c->inputs[1], c->inputs[2].dtype, &c->outputs[0]);
}

/* Of a place that occurs twice both values get the gradient, as in TensorFlow. */
static void sparse_to_dense_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type indices = sx_type_of_value(b, g->x[0]), values = sx_type_of_value(b, g->x[2]);
    const int64_t column[] = {indices.rank == 1 ? indices.dims[0] : 1, 1};
    const sx_value at = indices.rank == 2 ? g->x[0] : sx_reshape_dims(b, g->x[0], 2, column);
    const sx_value taken =
        sx_build_op(b, gather_nd, (&(sx_gather_nd_attrs){.skip_negative = false}), g->dy[0], at);
    const sx_value all = sx_sum_all(b, taken);
    g->dx[2] = values.rank == 0 ? all : taken;
    g->dx[3] = sx_build_op(b, sub, NULL, sx_sum_all(b, g->dy[0]), all);
}

static sx_status sparse_to_dense_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *indices = &c->in[0].type, *values = &c->in[2].type;
    const int64_t rank = c->in[1].type.dims[0];
    const int64_t count = indices->rank == 0 ? 1 : indices->dims[0];
    if ((indices->rank < 2 ? rank != 1 : indices->dims[1] != rank) ||
        (values->rank > 0 && values->dims[0] != count)) {
        return sx_error(SX_INVALID_ARGUMENT, "indices are %s, values %s, shape has %lld dimensions",
                        SX_TEXT(indices), SX_TEXT(values), (long long)rank);
    }
    return sx_shaped_type("shape", &c->in[1], values->dtype, &out_types[0]);
}

static sx_status sparse_to_dense_host(const sx_kernel_call *c)
{
    const sx_sparse_to_dense_attrs *attrs = c->attrs;
    const sx_type *indices = &c->in[0].type, *y = &c->out[0].type;
    const int64_t count = indices->rank == 0 ? 1 : indices->dims[0];
    int64_t last = -1;
    for (int64_t k = 0, n = sx_type_elems(y); k < n; k++) {
        sx_host_move(c, k, 3, 0, 1);
    }
    for (int64_t k = 0; k < count; k++) {
        const int64_t *at = &c->in[0].i[k * y->rank];
        bool inside = true;
        for (int d = 0; d < y->rank; d++) {
            inside = inside && at[d] >= 0 && at[d] < y->dims[d];
        }
        const int64_t to = inside ? sx_ravel(y, at) : -1;
        if (!inside || (attrs->validate_indices && to <= last)) {
            return sx_error(SX_INVALID_ARGUMENT, "index %lld is %s %s", (long long)k,
                            inside ? "not after the one before it, in" : "outside of", SX_TEXT(y));
        }
        last = to;
        sx_host_move(c, to, 2, c->in[2].type.rank == 0 ? 0 : k, 1);
    }
    return SX_OK;
}

static void sparse_to_dense_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_sparse_to_dense, "SparseToDense",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[2].dtype),
                           sx_tf_attr_type("Tindices", (int)op->in_types[0].dtype)));
}

static const double places[] = {0, 1, 1, 0, 1, 2}, shape[] = {2, 3};
static const sx_op_sample sparse_to_dense_samples[] = {
    {.name = "strings",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_LIST(SX_I64, shape, 2),
                SX_SAMPLE_TEXT(3), SX_SAMPLE_SCALAR(SX_STRING, SX_FILL_TEXT)},
     .n_inputs = 4,
     .attrs = &(const sx_sparse_to_dense_attrs){.validate_indices = true}},
    {.name = "one_value",
     .inputs = {SX_SAMPLE_LIST(SX_I32, places, 3, 2), SX_SAMPLE_LIST(SX_I32, shape, 2),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL)},
     .n_inputs = 4},
};

const sx_op_def sx_op_sparse_to_dense = {
    SX_OP_NAMED(sparse_to_dense),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_sparse_to_dense_attrs, sparse_to_dense_attrs),
    .moved = 0xC,
    .infer = sparse_to_dense_infer,
    .grad = sparse_to_dense_gradient,
    .host = sparse_to_dense_host,
    .host_types = sparse_to_dense_host_types,
    .to_tf = sparse_to_dense_to_tf,
    SX_FROM_TF({.op = "SparseToDense"}),
    SX_OP_SAMPLES(sparse_to_dense_samples),
};
