/* sparse_fill_empty_rows: each row of a sparse tensor without a value gets `default` in its first
 * place.
 *
 *   indices   int64 [n, rank]
 *   values    [n] of any dtype
 *   shape     int64 [rank]
 *   default   a scalar of values' dtype
 *   returns   indices int64 [m, rank] and values [m], row after row; bool [rows]: was the row
 * empty; int64 [n]: where each value went
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) a row out of range
 *          RESOURCE_EXHAUSTED  (running) too many rows
 * Source   TensorFlow SparseFillEmptyRows */
#include "graph/ops/host_ops.h"

static sx_status sparse_fill_empty_rows_infer(sx_infer_context *c)
{
    const sx_type *indices = &c->inputs[0];
    SX_TRY(sx_require_maybe("indices", indices, SX_I64, 2, "[n, rank]"));
    SX_TRY(sx_require_maybe("values", &c->inputs[1], c->inputs[1].dtype, 1, "[n]"));
    SX_TRY(sx_require_maybe("shape", &c->inputs[2], SX_I64, 1, "[rank]"));
    SX_TRY(sx_require_maybe("default", &c->inputs[3], c->inputs[1].dtype, 0, "a scalar"));
    c->outputs[0] =
        sx_type_of(SX_I64, SX_UNKNOWN_DIM, indices->rank == 2 ? indices->dims[1] : SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(c->inputs[1].dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_BOOL, SX_UNKNOWN_DIM);
    c->outputs[3] = sx_type_of(SX_I64, indices->rank == 2 ? indices->dims[0] : SX_UNKNOWN_DIM);
    return SX_OK;
}

/* counts[row + 1] = how many values row has. */
static sx_status count_rows(const sx_kernel_call *c, int64_t **out_counts, int64_t *out_empty)
{
    const int64_t rank = c->in[0].type.dims[1], n = c->in[0].type.dims[0];
    const int64_t rows = c->in[2].type.dims[0] > 0 ? c->in[2].i[0] : -1;
    const sx_type all = sx_type_of(SX_I64, SX_MAX(rows, 0));
    if (rows < 0 || rank != c->in[2].type.dims[0] || c->in[1].type.dims[0] != n) {
        return sx_error(SX_INVALID_ARGUMENT, "indices are %s, values %s, shape %s of %lld rows",
                        SX_TEXT(&c->in[0].type), SX_TEXT(&c->in[1].type), SX_TEXT(&c->in[2].type),
                        (long long)rows);
    }
    SX_TRY(sx_require_made("a number for each row", &all));
    int64_t *counts = sx_arena_array(c->arena, rows + 2, int64_t);
    if (counts == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t row = c->in[0].i[k * rank];
        if (row < 0 || row >= rows) {
            return sx_error(SX_INVALID_ARGUMENT, "value %lld is in row %lld of %lld", (long long)k,
                            (long long)row, (long long)rows);
        }
        counts[row + 1]++;
    }
    *out_empty = 0;
    for (int64_t row = 0; row < rows; row++) {
        *out_empty += counts[row + 1] == 0;
    }
    *out_counts = counts;
    return SX_OK;
}

static void sparse_fill_empty_rows_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    if (sx_value_is(g->dy[1])) {
        const sx_value taken =
            sx_build_op(b, gather, (&(sx_gather_attrs){.axis = 0}), g->dy[1], g->y[3]);
        g->dx[1] = taken;
        g->dx[3] = sx_build_op(b, sub, NULL, sx_sum_all(b, g->dy[1]), sx_sum_all(b, taken));
    }
}

static sx_status sparse_fill_empty_rows_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const int64_t n = c->in[0].type.dims[0];
    int64_t *counts, empty;
    SX_TRY(count_rows(c, &counts, &empty));
    out_types[0] = sx_type_of(SX_I64, n + empty, c->in[0].type.dims[1]);
    out_types[1] = sx_type_of(c->in[1].type.dtype, n + empty);
    out_types[2] = sx_type_of(SX_BOOL, c->in[2].i[0]);
    out_types[3] = sx_type_of(SX_I64, n);
    return sx_require_made("the indices", &out_types[0]);
}

static sx_status sparse_fill_empty_rows_host(const sx_kernel_call *c)
{
    const int64_t n = c->in[0].type.dims[0], rank = c->in[0].type.dims[1], rows = c->in[2].i[0];
    const size_t bytes = sx_carrier_bytes(c->in[1].type.dtype);
    int64_t *next, empty; /* next[row]: where the row's next value goes */
    SX_TRY(count_rows(c, &next, &empty));
    for (int64_t row = 0, at = 0; row < rows; row++) {
        const int64_t count = next[row + 1];
        c->out[2].b[row] = count == 0;
        next[row] = at; /* of row + 1 only the count is read after this */
        if (count == 0) {
            memset(&c->out[0].i[at * rank], 0, (size_t)rank * sizeof(int64_t));
            c->out[0].i[at * rank] = row;
            memcpy((char *)c->out[1].data + (size_t)at * bytes, c->in[3].data, bytes);
        }
        at += SX_MAX(count, 1);
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t to = next[c->in[0].i[k * rank]]++;
        memcpy(&c->out[0].i[to * rank], &c->in[0].i[k * rank], (size_t)rank * sizeof(int64_t));
        memcpy((char *)c->out[1].data + (size_t)to * bytes,
               (const char *)c->in[1].data + (size_t)k * bytes, bytes);
        c->out[3].i[k] = to;
    }
    return SX_OK;
}

static void sparse_fill_empty_rows_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_sparse_fill_empty_rows, "SparseFillEmptyRows",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype)));
}

static const double places[] = {0, 1, 2, 0, 2, 2}, shape[] = {5, 3};
static const sx_op_sample sparse_fill_empty_rows_samples[] = {
    {.name = "strings",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_TEXT(3),
                SX_SAMPLE_LIST(SX_I64, shape, 2), SX_SAMPLE_SCALAR(SX_STRING, SX_FILL_TEXT)},
     .n_inputs = 4},
    {.name = "floats",
     .inputs = {SX_SAMPLE_LIST(SX_I64, places, 3, 2), SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                SX_SAMPLE_LIST(SX_I64, shape, 2), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL)},
     .n_inputs = 4},
};

const sx_op_def sx_op_sparse_fill_empty_rows = {
    SX_OP_NAMED(sparse_fill_empty_rows),
    .n_in = 4,
    .n_out = 4,
    .flags = SX_OP_HOST,
    .infer = sparse_fill_empty_rows_infer,
    .grad = sparse_fill_empty_rows_gradient,
    .host = sparse_fill_empty_rows_host,
    .host_types = sparse_fill_empty_rows_host_types,
    .to_tf = sparse_fill_empty_rows_to_tf,
    SX_FROM_TF({.op = "SparseFillEmptyRows"}),
    SX_OP_SAMPLES(sparse_fill_empty_rows_samples),
};
