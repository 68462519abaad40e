/* deserialize_sparse: the sparse tensors that serialize_sparse wrote, as one, whose first
 * dimensions are those of the strings.
 *
 *   x         strings [..., 3]: indices, values, shape of each
 *   dtype     of the values
 *   returns   indices int64 [n, rank], values [n], shape int64 [rank]: of each dimension of the
 *             tensors the greatest
 *
 * Errors   INVALID_ARGUMENT    another shape; (running) bytes that are no tensors, tensors that do
 *                              not match
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow DeserializeSparse, DeserializeManySparse */
#include "graph/ops/sparse.h"
#include "graph/ops/tensor_proto.h"

enum { STRINGS = 3 };

typedef struct sx_deserialize_sparse_attrs {
    sx_dtype dtype;
} sx_deserialize_sparse_attrs;

static const sx_attr_def deserialize_sparse_attrs[] = {
    SX_ATTR_TF(sx_deserialize_sparse_attrs, dtype, SX_ATTR_DTYPE)};

static sx_status deserialize_sparse_infer(sx_infer_context *c)
{
    const sx_deserialize_sparse_attrs *a = c->attrs;
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_dtype("x", x, SX_STRING));
    if (x->rank == 0 || sx_carrier_of(a->dtype) == SX_CARRIER_NONE ||
        (x->rank > 0 && !sx_dim_is_unknown(x->dims[x->rank - 1]) &&
         x->dims[x->rank - 1] != STRINGS)) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s of tensors of %s, expected [..., 3]",
                        SX_TEXT(x), sx_dtype_name(a->dtype));
    }
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(a->dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, SX_UNKNOWN_DIM);
    return SX_OK;
}

/* The tensors, as the operands of a sparse one; what they have together. */
typedef struct tensors {
    sx_host_tensor *parts; /* three of each */
    int64_t count, n, rank, shape[SX_MAX_RANK];
} tensors;

static sx_status read(const sx_kernel_call *c, tensors *out)
{
    static const sx_dtype dtypes[STRINGS] = {SX_I64, SX_DTYPE_NONE, SX_I64};
    const sx_deserialize_sparse_attrs *a = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int64_t all = sx_type_elems(x);
    *out = (tensors){.parts = sx_arena_array(c->arena, all + 1, sx_host_tensor)};
    if (out->parts == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    if (x->rank < 1 || x->dims[x->rank - 1] != STRINGS || all == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected [..., 3] with a tensor or more",
                        SX_TEXT(x));
    }
    out->count = all / STRINGS;
    for (int64_t k = 0; k < all; k++) {
        const sx_dtype dtype =
            dtypes[k % STRINGS] != SX_DTYPE_NONE ? dtypes[k % STRINGS] : a->dtype;
        SX_TRY(sx_tensor_get(c, &c->in[0].s[k], dtype, &out->parts[k]));
    }
    for (int64_t k = 0; k < out->count; k++) {
        const sx_host_tensor *t = &out->parts[k * STRINGS];
        const sx_kernel_call of = {.in = t, .n_in = STRINGS};
        const bool ranks = t[0].type.rank == 2 && t[1].type.rank == 1 && t[2].type.rank == 1;
        const int64_t rank = ranks ? t[2].type.dims[0] : -1;
        sx_sparse s;
        if (!ranks || (k > 0 && rank != out->rank) || rank + x->rank - 1 > SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "tensor %lld has indices %s, values %s and shape %s, expected a sparse "
                            "tensor of the others' rank, at most %d together",
                            (long long)k, SX_TEXT(&t[0].type), SX_TEXT(&t[1].type),
                            SX_TEXT(&t[2].type), SX_MAX_RANK);
        }
        SX_TRY(sx_read_sparse(&of, 0, 1, 2, &s));
        out->rank = rank;
        out->n += s.n; /* each has that many bytes */
        for (int64_t d = 0; d < rank; d++) {
            out->shape[d] = SX_MAX(out->shape[d], s.shape[d]);
        }
    }
    return SX_OK;
}

static sx_status deserialize_sparse_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_deserialize_sparse_attrs *a = c->attrs;
    tensors t;
    SX_TRY(read(c, &t));
    const int64_t rank = t.rank + c->in[0].type.rank - 1;
    out_types[0] = sx_type_of(SX_I64, t.n, rank);
    out_types[1] = sx_type_of(a->dtype, t.n);
    out_types[2] = sx_type_of(SX_I64, rank);
    return sx_require_made("the indices", &out_types[0]);
}

static sx_status deserialize_sparse_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    const int outer = x->rank - 1;
    tensors t;
    SX_TRY(read(c, &t));
    for (int64_t k = 0, at = 0; k < t.count; k++) {
        const sx_host_tensor *parts = &t.parts[k * STRINGS];
        for (int64_t j = 0, n = parts[1].type.dims[0]; j < n; j++, at++) {
            int64_t *to = c->out[0].i + at * (outer + t.rank), rest = k;
            for (int d = outer - 1; d >= 0; d--) {
                to[d] = rest % x->dims[d];
                rest /= x->dims[d];
            }
            memcpy(to + outer, parts[0].i + j * t.rank, (size_t)t.rank * sizeof(int64_t));
            sx_copy_element(&c->out[1], at, &parts[1], j);
        }
    }
    memcpy(c->out[2].i, x->dims, (size_t)outer * sizeof(int64_t));
    memcpy(c->out[2].i + outer, t.shape, (size_t)t.rank * sizeof(int64_t));
    return SX_OK;
}

const sx_op_def sx_op_deserialize_sparse = {
    SX_OP_NAMED(deserialize_sparse),
    .n_in = 1,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_deserialize_sparse_attrs, deserialize_sparse_attrs),
    .infer = deserialize_sparse_infer,
    .host = deserialize_sparse_host,
    .host_types = deserialize_sparse_host_types,
    SX_FROM_TF({.op = "DeserializeSparse"}, {.op = "DeserializeManySparse"}),
};
