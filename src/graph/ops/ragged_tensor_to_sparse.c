/* ragged_tensor_to_sparse: a ragged tensor's values with their places.
 *
 *   splits...  int32 or int64 [rows + 1] of each ragged dimension, from the outermost on
 *   values     [k, ...] of any dtype, the last input
 *   returns    a sparse tensor: indices int64 [n, rank], values [n], shape int64 [rank]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) splits that contradict each other
 * Source   TensorFlow RaggedTensorToSparse */
#include "graph/ops/host_ops.h"

static sx_status ragged_tensor_to_sparse_infer(sx_infer_context *c)
{
    const int n_splits = c->n_inputs - 1;
    if (n_splits < 1 || n_splits >= SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected splits and values", c->n_inputs);
    }
    for (int i = 0; i < n_splits; i++) {
        SX_TRY(sx_require_integers("splits", &c->inputs[i], 1, "[rows + 1]"));
    }
    const sx_type *values = &c->inputs[n_splits];
    if (values->rank == 0 || values->rank + n_splits > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, expected [k, ...]", SX_TEXT(values));
    }
    const int64_t rank = values->rank > 0 ? values->rank + n_splits : SX_UNKNOWN_DIM;
    const int64_t n = values->rank == 1 ? values->dims[0] : SX_UNKNOWN_DIM;
    c->outputs[0] = sx_type_of(SX_I64, n, rank);
    c->outputs[1] = sx_type_of(values->dtype, n);
    c->outputs[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

static void ragged_tensor_to_sparse_gradient(sx_grad *g)
{
    if (sx_value_is(g->dy[1])) {
        const sx_type values = sx_type_of_value(g->b, g->x[g->n_inputs - 1]);
        g->dx[g->n_inputs - 1] = sx_reshape_to(g->b, g->dy[1], &values);
    }
}

static sx_status ragged_tensor_to_sparse_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const int n_splits = c->n_in - 1;
    const sx_type *values = &c->in[n_splits].type;
    SX_TRY(sx_require_splits(c, n_splits, values->dims[0]));
    const int64_t n = sx_type_elems(values), rank = values->rank + n_splits;
    out_types[0] = sx_type_of(SX_I64, n, rank);
    out_types[1] = sx_type_of(values->dtype, n);
    out_types[2] = sx_type_of(SX_I64, rank);
    return sx_require_made("the indices", &out_types[0]);
}

static sx_status ragged_tensor_to_sparse_host(const sx_kernel_call *c)
{
    const int n_splits = c->n_in - 1;
    const sx_type *values = &c->in[n_splits].type;
    const int64_t n = sx_type_elems(values), rank = values->rank + n_splits,
                  inner = sx_dims_product(values, 1, values->rank);
    int64_t row[SX_MAX_RANK] = {0}; /* of each splits, the one with the current value */
    memcpy(c->out[1].data, c->in[n_splits].data, (size_t)n * sx_carrier_bytes(values->dtype));
    for (int64_t k = 0; k < n; k++) {
        int64_t *at = &c->out[0].i[k * rank], item = k / inner, rest = k % inner;
        for (int d = values->rank - 1; d > 0; d--) {
            at[n_splits + d] = rest % values->dims[d];
            rest /= values->dims[d];
        }
        for (int i = n_splits - 1; i >= 0; i--) {
            while (c->in[i].i[row[i] + 1] <= item) {
                row[i]++;
            }
            at[i + 1] = item - c->in[i].i[row[i]];
            item = row[i];
        }
        at[0] = item;
    }
    c->out[2].i[0] = sx_type_elems(&c->in[0].type) - 1;
    for (int i = 0; i < n_splits; i++) {
        int64_t longest = 0;
        for (int64_t k = 1; k < sx_type_elems(&c->in[i].type); k++) {
            longest = SX_MAX(longest, c->in[i].i[k] - c->in[i].i[k - 1]);
        }
        c->out[2].i[i + 1] = longest;
    }
    for (int d = 1; d < values->rank; d++) {
        c->out[2].i[n_splits + d] = values->dims[d];
    }
    return SX_OK;
}

static void ragged_tensor_to_sparse_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_ragged_tensor_to_sparse, "RaggedTensorToSparse",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[op->n_in - 1].dtype),
                           sx_tf_attr_type("Tsplits", (int)op->in_types[0].dtype),
                           sx_tf_attr_int("RAGGED_RANK", op->n_in - 1)));
}

static const double outer[] = {0, 2, 2, 3}, splits[] = {0, 2, 2, 6};
static const sx_op_sample ragged_tensor_to_sparse_samples[] = {
    {.name = "one",
     .inputs = {SX_SAMPLE_LIST(SX_I64, splits, 4), SX_SAMPLE_TEXT(6)},
     .n_inputs = 2},
    {.name = "two",
     .inputs = {SX_SAMPLE_LIST(SX_I64, outer, 4), SX_SAMPLE_LIST(SX_I64, splits, 4),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 2)},
     .n_inputs = 3},
};

const sx_op_def sx_op_ragged_tensor_to_sparse = {
    SX_OP_NAMED(ragged_tensor_to_sparse),
    .n_in = SX_VARIADIC,
    .n_out = 3,
    .flags = SX_OP_HOST,
    .infer = ragged_tensor_to_sparse_infer,
    .grad = ragged_tensor_to_sparse_gradient,
    .host = ragged_tensor_to_sparse_host,
    .host_types = ragged_tensor_to_sparse_host_types,
    .to_tf = ragged_tensor_to_sparse_to_tf,
    SX_FROM_TF({.op = "RaggedTensorToSparse"}),
    SX_OP_SAMPLES(ragged_tensor_to_sparse_samples),
};
