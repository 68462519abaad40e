/* serialize_sparse: a sparse tensor, or each of its rows, as three strings: its indices, values and
 * shape as TensorProto messages.
 *
 *   indices, values, shape   a sparse tensor, values of any dtype
 *   rows      of each row along axis 0: a sparse tensor of one dimension less
 *   returns   strings [3] or [rows, 3]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) rows of a vector, that are not in order
 *          RESOURCE_EXHAUSTED  (running) too many rows
 * Source   TensorFlow SerializeSparse, SerializeManySparse */
#include "graph/ops/sparse.h"
#include "graph/ops/tensor_proto.h"

enum { STRINGS = 3 };

typedef struct sx_serialize_sparse_attrs {
    bool rows;
} sx_serialize_sparse_attrs;

static const sx_attr_def serialize_sparse_attrs[] = {
    SX_ATTR(sx_serialize_sparse_attrs, rows, SX_ATTR_BOOL)};

static sx_status serialize_sparse_infer(sx_infer_context *c)
{
    const sx_serialize_sparse_attrs *a = c->attrs;
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    c->outputs[0] =
        a->rows ? sx_type_of(SX_STRING, SX_UNKNOWN_DIM, STRINGS) : sx_type_of(SX_STRING, STRINGS);
    return SX_OK;
}

static sx_status serialize_sparse_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_serialize_sparse_attrs *a = c->attrs;
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
    if (a->rows && t.rank < 2) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld dimensions, expected 2 or more",
                        (long long)t.rank);
    }
    for (int64_t k = 1; a->rows && k < t.n; k++) {
        if (t.indices[k * t.rank] < t.indices[(k - 1) * t.rank]) {
            return sx_error(SX_INVALID_ARGUMENT, "the rows are not in order, at value %lld",
                            (long long)k);
        }
    }
    out_types[0] =
        a->rows ? sx_type_of(SX_STRING, t.shape[0], STRINGS) : sx_type_of(SX_STRING, STRINGS);
    return sx_require_made("the strings", &out_types[0]);
}

static sx_status serialize_sparse_host(const sx_kernel_call *c)
{
    const sx_serialize_sparse_attrs *a = c->attrs;
    sx_sparse t;
    SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
    const int64_t rank = t.rank - a->rows, rows = a->rows ? t.shape[0] : 1;
    int64_t room = 0;
    if (!sx_mul_i64(t.n, rank, &room)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "too many indices");
    }
    int64_t *indices = sx_arena_array(c->arena, room + 1, int64_t), from = 0;
    if (indices == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t row = 0; row < rows && status == SX_OK; row++) {
        int64_t to = a->rows ? from : t.n;
        while (a->rows && to < t.n && t.indices[to * t.rank] == row) {
            to++;
        }
        for (int64_t k = from; k < to; k++) {
            memcpy(indices + (k - from) * rank, t.indices + k * t.rank + a->rows,
                   (size_t)rank * sizeof(int64_t));
        }
        const sx_type *v = &t.values->type;
        const sx_host_tensor parts[STRINGS] = {
            {.type = sx_type_of(SX_I64, to - from, rank), .i = indices},
            {.type = sx_type_of(v->dtype, to - from),
             .data = t.values->b + (size_t)from * sx_carrier_bytes(v->dtype)},
            {.type = sx_type_of(SX_I64, rank), .data = c->in[2].i + a->rows}};
        for (int i = 0; i < STRINGS && status == SX_OK; i++) {
            sx_tensor_put_content(&parts[i], &text);
            status = sx_string_put(c, 0, row * STRINGS + i, &text);
        }
        from = to;
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status many_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_serialize_sparse_attrs *)out)->rows = true;
    return SX_OK;
}

const sx_op_def sx_op_serialize_sparse = {
    SX_OP_NAMED(serialize_sparse),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_serialize_sparse_attrs, serialize_sparse_attrs),
    .infer = serialize_sparse_infer,
    .host = serialize_sparse_host,
    .host_types = serialize_sparse_host_types,
    SX_FROM_TF({.op = "SerializeSparse"}, {.op = "SerializeManySparse", .attrs = many_from_tf}),
};
