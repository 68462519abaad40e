/* ragged_range: a row start, start + delta, ... before limit for each element.
 *
 *   starts, limits, deltas   int32, int64, float32 or float64: vectors of one size, scalars for all
 *   Tsplits                  int32 or int64
 *   returns   splits Tsplits [rows + 1], values [k] of starts' dtype
 *
 * Errors   INVALID_ARGUMENT    dtypes, shapes; (running) a delta of 0
 *          RESOURCE_EXHAUSTED  (running) too many values
 * Source   TensorFlow RaggedRange */
#include "graph/ops/host_ops.h"

typedef struct sx_splits_attrs {
    sx_dtype Tsplits;
} sx_splits_attrs;

static const sx_attr_def ragged_range_attrs[] = {
    SX_ATTR_TF(sx_splits_attrs, Tsplits, SX_ATTR_DTYPE, .tf_number = SX_I64)};

static sx_status ragged_range_infer(sx_infer_context *c)
{
    const sx_splits_attrs *attrs = c->attrs;
    const sx_dtype d = c->inputs[0].dtype;
    sx_type rows;
    if ((d != SX_F32 && d != SX_F64 && d != SX_I32 && d != SX_I64) ||
        (attrs->Tsplits != SX_I32 && attrs->Tsplits != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT, "starts are %s and Tsplits %s", SX_TEXT(&c->inputs[0]),
                        sx_dtype_name(attrs->Tsplits));
    }
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_require_dtype("limits or deltas", &c->inputs[i], d));
        if (c->inputs[i].rank > 1) {
            return sx_error(SX_INVALID_ARGUMENT, "input %d is %s, expected a vector or scalar", i,
                            SX_TEXT(&c->inputs[i]));
        }
    }
    SX_TRY(sx_infer_same_or_scalar(c->inputs, 3, &rows));
    const int64_t n = rows.rank == 0 ? 1 : sx_vector_size(&rows);
    c->outputs[0] = sx_type_of(attrs->Tsplits, n >= 0 ? n + 1 : SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(d, SX_UNKNOWN_DIM);
    return SX_OK;
}

static int64_t rows_of(const sx_kernel_call *c)
{
    int64_t rows = 1;
    for (int i = 0; i < 3; i++) {
        rows = c->in[i].type.rank == 1 ? c->in[i].type.dims[0] : rows;
    }
    return rows;
}

static double number(const sx_kernel_call *c, int input, int64_t row)
{
    return sx_host_get(&c->in[input], c->in[input].type.rank == 0 ? 0 : row);
}

/* How many values the row has; -1: its delta is 0. */
static double length_of(const sx_kernel_call *c, int64_t row)
{
    const double start = number(c, 0, row), limit = number(c, 1, row), delta = number(c, 2, row);
    if (delta == 0) {
        return -1;
    }
    return (delta > 0 && limit <= start) || (delta < 0 && limit >= start)
               ? 0
               : ceil(fabs((limit - start) / delta));
}

static sx_status ragged_range_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_splits_attrs *attrs = c->attrs;
    const int64_t rows = rows_of(c);
    double total = 0;
    for (int64_t row = 0; row < rows; row++) {
        const double length = length_of(c, row);
        if (length < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "the delta of row %lld is 0", (long long)row);
        }
        total += length;
    }
    const sx_type most = sx_type_of(c->in[0].type.dtype, total < 1e12 ? (int64_t)total : INT64_MAX);
    SX_TRY(sx_require_made("the values", &most));
    out_types[0] = sx_type_of(attrs->Tsplits, rows + 1);
    out_types[1] = most;
    return SX_OK;
}

static sx_status ragged_range_host(const sx_kernel_call *c)
{
    int64_t at = 0;
    c->out[0].i[0] = 0;
    for (int64_t row = 0, rows = rows_of(c); row < rows; row++) {
        const int64_t length = (int64_t)length_of(c, row);
        for (int64_t k = 0; k < length; k++, at++) {
            if (sx_carrier_of(c->in[0].type.dtype) == SX_CARRIER_F) {
                c->out[1].f[at] = number(c, 0, row) + (double)k * number(c, 2, row);
            } else {
                const int64_t start = c->in[0].i[c->in[0].type.rank == 0 ? 0 : row],
                              delta = c->in[2].i[c->in[2].type.rank == 0 ? 0 : row];
                c->out[1].i[at] = SX_WRAP(start, +, SX_WRAP(k, *, delta));
            }
        }
        c->out[0].i[row + 1] = at;
    }
    return SX_OK;
}

static void ragged_range_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_ragged_range, "RaggedRange",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double starts[] = {0, 5, 2}, limits[] = {3, 1, 2}, deltas[] = {1, -2, 1};
static const sx_op_sample ragged_range_samples[] = {
    {.name = "vectors",
     .inputs = {SX_SAMPLE_LIST(SX_I64, starts, 3), SX_SAMPLE_LIST(SX_I64, limits, 3),
                SX_SAMPLE_LIST(SX_I64, deltas, 3)},
     .n_inputs = 3,
     .attrs = &(const sx_splits_attrs){.Tsplits = SX_I64}},
};

const sx_op_def sx_op_ragged_range = {
    SX_OP_NAMED(ragged_range),
    .n_in = 3,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_splits_attrs, ragged_range_attrs),
    .infer = ragged_range_infer,
    .host = ragged_range_host,
    .host_types = ragged_range_host_types,
    .to_tf = ragged_range_to_tf,
    SX_FROM_TF({.op = "RaggedRange"}),
    SX_OP_SAMPLES(ragged_range_samples),
};
