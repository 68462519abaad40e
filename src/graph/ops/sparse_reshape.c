/* sparse_reshape: the indices of a sparse tensor's values in another shape.
 *
 *   indices    int64 [n, rank]
 *   shape      int64 [rank]
 *   new_shape  int64 [new rank]; one of its numbers may be -1: what is left
 *   returns    indices int64 [n, new rank], shape int64 [new rank]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) the numbers of elements differ
 * Source   TensorFlow SparseReshape */
#include "graph/ops/host_ops.h"

static sx_status sparse_reshape_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_maybe("indices", &c->inputs[0], SX_I64, 2, "[n, rank]"));
    SX_TRY(sx_require_maybe("shape", &c->inputs[1], SX_I64, 1, "[rank]"));
    SX_TRY(sx_require_maybe("new_shape", &c->inputs[2], SX_I64, 1, "[rank]"));
    const int64_t n = c->inputs[0].rank == 2 ? c->inputs[0].dims[0] : SX_UNKNOWN_DIM;
    c->outputs[0] = sx_type_of(SX_I64, n, sx_vector_size(&c->inputs[2]));
    c->outputs[1] = sx_type_of(SX_I64, sx_vector_size(&c->inputs[2]));
    return SX_OK;
}

/* The number of elements; false if a size is negative or they are too many. */
static bool count_elements(const int64_t *dims, int64_t n, int64_t skip, int64_t *out)
{
    *out = 1;
    bool sound = true;
    for (int64_t d = 0; d < n && sound; d++) {
        sound = d == skip || (dims[d] >= 0 && sx_mul_i64(*out, dims[d], out));
    }
    return sound;
}

static sx_status sparse_reshape_host(const sx_kernel_call *c)
{
    const int64_t rank = c->in[1].type.dims[0], to_rank = c->in[2].type.dims[0],
                  n = c->in[0].type.dims[0];
    const int64_t *from = c->in[1].i;
    int64_t *to = c->out[1].i, rest = -1, all, others;
    bool sound = c->in[0].type.dims[1] == rank;
    for (int64_t d = 0; d < to_rank; d++) {
        to[d] = c->in[2].i[d];
        sound = sound && (to[d] != -1 || rest < 0);
        rest = to[d] == -1 ? d : rest;
    }
    sound =
        sound && count_elements(from, rank, -1, &all) && count_elements(to, to_rank, rest, &others);
    if (sound && rest >= 0) {
        sound = others > 0 && all % others == 0;
        to[rest] = sound ? all / others : 0;
        others = all;
    }
    if (!sound || all != others) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "indices are %s, shape has %lld dimensions, and new_shape %lld: the numbers "
            "of elements differ, or a size is not valid",
            SX_TEXT(&c->in[0].type), (long long)rank, (long long)to_rank);
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        for (int64_t d = 0; d < rank; d++) {
            const int64_t index = c->in[0].i[k * rank + d];
            if (index < 0 || index >= from[d]) {
                return sx_error(SX_INVALID_ARGUMENT, "index %lld of value %lld is out of range",
                                (long long)index, (long long)k);
            }
            at = at * from[d] + index;
        }
        for (int64_t d = to_rank - 1; d >= 0; d--) {
            c->out[0].i[k * to_rank + d] = at % to[d];
            at /= to[d];
        }
    }
    return SX_OK;
}

static void sparse_reshape_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_sparse_reshape, "SparseReshape", SX_TF_NO_ATTRS);
}

static const double places[] = {0, 1, 1, 0, 1, 2}, shape[] = {2, 3}, column[] = {-1, 1};
static const sx_op_sample sparse_reshape_samples[] = {
    {.name = "column",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_LIST(SX_I64, shape, 2),
                SX_SAMPLE_LIST(SX_I64, column, 2)},
     .n_inputs = 3},
    {.name = "vector",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_LIST(SX_I64, shape, 2),
                SX_SAMPLE_LIST(SX_I64, column, 1)},
     .n_inputs = 3},
};

const sx_op_def sx_op_sparse_reshape = {
    SX_OP_NAMED(sparse_reshape),
    .n_in = 3,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = sparse_reshape_infer,
    .host = sparse_reshape_host,
    .to_tf = sparse_reshape_to_tf,
    SX_FROM_TF({.op = "SparseReshape"}),
    SX_OP_SAMPLES(sparse_reshape_samples),
};
