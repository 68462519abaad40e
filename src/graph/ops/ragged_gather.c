/* ragged_gather: rows of a ragged tensor.
 *
 *   splits...  int32 or int64 [rows + 1] of each ragged dimension, from the outermost on
 *   values     [k, ...] of any dtype
 *   indices    int32 or int64 [n, ...], the last input, of rows
 *   rank       how many splits the result has: those of the indices' dimensions but the first, and
 *              one for each of the splits
 *   returns    splits... of the splits' dtype, then values [m, ...]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) splits that contradict each other, an index
 *                              of no row
 *          RESOURCE_EXHAUSTED  (running) a result that is too large
 *          UNIMPLEMENTED       a single index, a scalar
 * Source   TensorFlow RaggedGather */
#ifdef SX_ATTRS
typedef struct sx_ragged_gather_attrs {
    int64_t rank;
} sx_ragged_gather_attrs;
#endif

#include "base/memory.h"
#include "graph/ops/host_ops.h"

static const sx_attr_def ragged_gather_attrs[] = {
    SX_ATTR(sx_ragged_gather_attrs, rank, SX_ATTR_INT),
};

static sx_status ragged_gather_infer(sx_infer_context *c)
{
    const sx_ragged_gather_attrs *attrs = c->attrs;
    const int n_splits = c->n_inputs - 2;
    const sx_type *values = &c->inputs[SX_MAX(n_splits, 0)], *indices = values + 1;
    if (n_splits < 1 || attrs->rank < n_splits || attrs->rank >= SX_MAX_RANK) {
        return sx_error(n_splits > 0 && attrs->rank == n_splits - 1 ? SX_UNIMPLEMENTED
                                                                    : SX_INVALID_ARGUMENT,
                        "%d inputs and a ragged rank of %lld, expected splits, values and indices "
                        "that are no scalar",
                        c->n_inputs, (long long)attrs->rank);
    }
    for (int i = 0; i < n_splits; i++) {
        SX_TRY(sx_require_integers("splits", &c->inputs[i], 1, "[rows + 1]"));
        SX_TRY(sx_require_dtype("splits", &c->inputs[i], c->inputs[0].dtype));
    }
    SX_TRY(sx_require_integers("indices", indices, (int)attrs->rank - n_splits + 1, "[n, ...]"));
    if (values->rank == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, expected [k, ...]", SX_TEXT(values));
    }
    for (int i = 0; i < attrs->rank; i++) {
        c->outputs[i] = sx_type_of(c->inputs[0].dtype, SX_UNKNOWN_DIM);
    }
    if (sx_vector_size(indices) >= 0 && sx_vector_size(indices) < INT64_MAX) {
        c->outputs[0].dims[0] = sx_vector_size(indices) + 1;
    }
    c->outputs[attrs->rank] = *values;
    if (values->rank > 0) {
        c->outputs[attrs->rank].dims[0] = SX_UNKNOWN_DIM;
    }
    c->n_outputs = (int)attrs->rank + 1;
    return SX_OK;
}

/* Walks the splits from the outermost: at each of them a chosen row is a range of rows. Without
 * c->out sets the types, with it writes the splits and the values. */
static sx_status gather(const sx_kernel_call *c, sx_type *out_types)
{
    const int n_splits = c->n_in - 2;
    const sx_host_tensor *values = &c->in[n_splits], *indices = &c->in[n_splits + 1];
    const int64_t n = sx_type_elems(&indices->type);
    const sx_dtype dtype = c->in[0].type.dtype;
    int64_t *from = sx_arena_array(c->arena, n + 1, int64_t);
    int64_t *to = sx_arena_array(c->arena, n + 1, int64_t);
    int64_t rows = indices->type.dims[0], total = n;
    int at = 0;
    if (from == NULL || to == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (; at + 1 < indices->type.rank; at++) {
        const int64_t length = indices->type.dims[at + 1];
        if (c->out == NULL) {
            out_types[at] = sx_type_of(dtype, rows + 1);
            SX_TRY(sx_require_made("splits", &out_types[at]));
        }
        for (int64_t k = 0; k <= rows && c->out != NULL; k++) {
            c->out[at].i[k] = k * length;
        }
        rows *= length;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t row = indices->i[k], most = sx_type_elems(&c->in[0].type) - 1;
        if (row < 0 || row >= most) {
            return sx_error(SX_INVALID_ARGUMENT, "indices[%lld] = %lld is not in [0, %lld)",
                            (long long)k, (long long)row, (long long)most);
        }
        from[k] = row;
        to[k] = row + 1;
    }
    for (int i = 0; i < n_splits; i++, at++) {
        const int64_t *splits = c->in[i].i;
        int64_t next = 0, row = 0;
        if (c->out == NULL) {
            out_types[at] = sx_type_of(dtype, total + 1);
            SX_TRY(sx_require_made("splits", &out_types[at]));
        } else {
            c->out[at].i[0] = 0;
        }
        for (int64_t k = 0; k < n; k++) {
            for (int64_t r = from[k]; r < to[k] && c->out != NULL; r++, row++) {
                c->out[at].i[row + 1] = c->out[at].i[row] + splits[r + 1] - splits[r];
            }
            const bool empty = from[k] == to[k];
            from[k] = splits[from[k]];
            to[k] = empty ? from[k] : splits[to[k]];
            if (!sx_add_i64(next, to[k] - from[k], &next)) {
                return sx_error(SX_RESOURCE_EXHAUSTED, "too many rows");
            }
        }
        total = next;
    }
    if (c->out == NULL) {
        out_types[at] = values->type;
        out_types[at].dims[0] = total;
        return sx_require_made("the values", &out_types[at]);
    }
    const size_t bytes = sx_carrier_bytes(values->type.dtype) *
                         (size_t)sx_dims_product(&values->type, 1, values->type.rank);
    char *out = c->out[at].data;
    for (int64_t k = 0; k < n; k++) {
        const size_t size = (size_t)(to[k] - from[k]) * bytes;
        if (size > 0) {
            memcpy(out, (const char *)values->data + (size_t)from[k] * bytes, size);
            out += size;
        }
    }
    return SX_OK;
}

static void ragged_gather_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const int values = g->n_inputs - 2, last = g->n_outputs - 1;
    sx_value *in = sx_arena_memdup(sx_builder_arena(b), g->x, (size_t)g->n_inputs * sizeof(*in));
    sx_type types[SX_MAX_OUTPUTS];
    if (in == NULL) {
        sx_builder_fail(b, sx_no_memory("for gradients"));
        return;
    }
    for (int i = 0; i <= last; i++) {
        types[i] = sx_type_of_value(b, g->y[i]);
    }
    types[last] = sx_type_of(SX_I64, types[last].dims[0]);
    in[values] = sx_numbers_to(b, sx_type_of_value(b, g->x[values]).dims[0]);
    const sx_value from = sx_output_of(
        sx_build_typed(b, &sx_op_ragged_gather, g->attrs, in, g->n_inputs, types, last + 1), last);
    g->dx[values] = sx_add_rows(b, g->x[values], from, g->dy[last]);
}

static sx_status ragged_gather_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const int n_splits = c->n_in - 2;
    for (int i = 0; i < n_splits; i++) {
        const sx_host_tensor *t = &c->in[i];
        const int64_t n = sx_type_elems(&t->type);
        const int64_t below =
            i + 1 < n_splits ? sx_type_elems(&c->in[i + 1].type) - 1 : c->in[n_splits].type.dims[0];
        bool sound = n > 0 && t->i[0] == 0 && t->i[n - 1] <= below;
        for (int64_t k = 1; k < n && sound; k++) {
            sound = t->i[k] >= t->i[k - 1];
        }
        if (!sound) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "splits %d, %s, do not ascend from 0 to at most %lld, the rows below",
                            i, SX_TEXT(&t->type), (long long)below);
        }
    }
    return gather(c, out_types);
}

static sx_status ragged_gather_host(const sx_kernel_call *c)
{
    return gather(c, NULL);
}

static sx_status ragged_gather_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_ragged_gather_attrs *)out)->rank = sx_tf_read_int(n, "OUTPUT_RAGGED_RANK", 0);
    return SX_OK;
}

static const double outer[] = {0, 2, 2, 3}, splits[] = {0, 2, 2, 6}, rows[] = {2, 0, 0, 1};
static const sx_op_sample ragged_gather_samples[] = {
    {.name = "rows",
     .inputs = {SX_SAMPLE_LIST(SX_I64, splits, 4), SX_SAMPLE_TEXT(6),
                SX_SAMPLE_LIST(SX_I32, rows, 4)},
     .n_inputs = 3,
     .attrs = &(const sx_ragged_gather_attrs){1}},
    {.name = "table",
     .inputs = {SX_SAMPLE_LIST(SX_I64, outer, 4), SX_SAMPLE_LIST(SX_I64, splits, 4),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 2), SX_SAMPLE_LIST(SX_I32, rows, 2, 2)},
     .n_inputs = 4,
     .attrs = &(const sx_ragged_gather_attrs){3}},
};

const sx_op_def sx_op_ragged_gather = {
    SX_OP_NAMED(ragged_gather),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_ragged_gather_attrs, ragged_gather_attrs),
    .infer = ragged_gather_infer,
    .grad = ragged_gather_gradient,
    .host = ragged_gather_host,
    .host_types = ragged_gather_host_types,
    SX_FROM_TF({.op = "RaggedGather", .attrs = ragged_gather_from_tf}),
    SX_OP_SAMPLES(ragged_gather_samples),
};
