/* sparse_slice: a box of a sparse tensor.
 *
 *   indices, values, shape   a sparse tensor
 *   start, size   int64 [rank]; what would lie outside of the shape is left out
 *   returns       indices int64 [k, rank], values [k], shape int64 [rank]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) sizes that differ, a negative start or size
 * Source   TensorFlow SparseSlice */
#include "graph/ops/sparse.h"

static sx_status sparse_slice_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_require_maybe("start", &c->inputs[3], SX_I64, 1, "[rank]"));
    SX_TRY(sx_require_maybe("size", &c->inputs[4], SX_I64, 1, "[rank]"));
    const int64_t rank = sx_vector_size(&c->inputs[2]);
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
    c->outputs[1] = sx_type_of(c->inputs[1].dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

static bool is_inside(const sx_kernel_call *c, const sx_sparse *t, int64_t k)
{
    bool inside = true;
    for (int64_t d = 0; d < t->rank && inside; d++) {
        const int64_t at = t->indices[k * t->rank + d] - c->in[3].i[d];
        inside = at >= 0 && at < c->in[4].i[d];
    }
    return inside;
}

static sx_status read(const sx_kernel_call *c, sx_sparse *t, int64_t *out_count)
{
    SX_TRY(sx_read_sparse(c, 0, 1, 2, t));
    bool sound =
        sx_type_elems(&c->in[3].type) == t->rank && sx_type_elems(&c->in[4].type) == t->rank;
    for (int64_t d = 0; d < t->rank && sound; d++) {
        sound = c->in[3].i[d] >= 0 && c->in[4].i[d] >= 0;
    }
    if (!sound) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "start is %s and size %s, expected counts for each of %lld dimensions",
                        SX_TEXT(&c->in[3].type), SX_TEXT(&c->in[4].type), (long long)t->rank);
    }
    *out_count = 0;
    for (int64_t k = 0; k < t->n; k++) {
        *out_count += is_inside(c, t, k);
    }
    return SX_OK;
}

static void sparse_slice_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    sx_type types[3];
    for (int i = 0; i < 3; i++) {
        types[i] = sx_type_of_value(b, g->y[i]);
    }
    types[1].dtype = SX_I64;
    const sx_value in[] = {g->x[0], sx_numbers_to(b, sx_type_of_value(b, g->x[1]).dims[0]), g->x[2],
                           g->x[3], g->x[4]};
    if (sx_value_is(g->dy[1])) {
        const sx_value from =
            sx_output_of(sx_build_typed(b, &sx_op_sparse_slice, NULL, in, 5, types, 3), 1);
        g->dx[1] = sx_add_rows(b, g->x[1], from, g->dy[1]);
    }
}

static sx_status sparse_slice_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    sx_sparse t;
    int64_t n = 0;
    SX_TRY(read(c, &t, &n));
    out_types[0] = sx_type_of(SX_I64, n, t.rank);
    out_types[1] = sx_type_of(c->in[1].type.dtype, n);
    out_types[2] = sx_type_of(SX_I64, t.rank);
    return SX_OK;
}

static sx_status sparse_slice_host(const sx_kernel_call *c)
{
    sx_sparse t;
    int64_t n = 0, at = 0;
    SX_TRY(read(c, &t, &n));
    for (int64_t k = 0; k < t.n; k++) {
        if (is_inside(c, &t, k)) {
            for (int64_t d = 0; d < t.rank; d++) {
                c->out[0].i[at * t.rank + d] = t.indices[k * t.rank + d] - c->in[3].i[d];
            }
            sx_copy_element(&c->out[1], at++, t.values, k);
        }
    }
    for (int64_t d = 0; d < t.rank; d++) {
        const int64_t left = SX_MAX(t.shape[d] - c->in[3].i[d], (int64_t)0);
        c->out[2].i[d] = SX_MIN(left, c->in[4].i[d]);
    }
    return SX_OK;
}

const sx_op_def sx_op_sparse_slice = {
    SX_OP_NAMED(sparse_slice),
    .n_in = 5,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    .infer = sparse_slice_infer,
    .grad = sparse_slice_gradient,
    .host = sparse_slice_host,
    .host_types = sparse_slice_host_types,
    SX_FROM_TF({.op = "SparseSlice"}),
};
