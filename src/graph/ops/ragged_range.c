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

static int64_t place_of(const sx_kernel_call *c, int input, int64_t row)
{
    return c->in[input].type.rank == 0 ? 0 : row;
}

static bool is_float(const sx_kernel_call *c)
{
    return sx_carrier_of(c->in[0].type.dtype) == SX_CARRIER_F;
}

/* How many values the row has, exactly below 2^53; -1: its delta is 0. */
static double length_of(const sx_kernel_call *c, int64_t row)
{
    const int64_t at[3] = {place_of(c, 0, row), place_of(c, 1, row), place_of(c, 2, row)};
    if (!is_float(c)) {
        const int64_t start = c->in[0].i[at[0]], limit = c->in[1].i[at[1]],
                      delta = c->in[2].i[at[2]];
        const bool up = delta > 0;
        const uint64_t span = up ? (uint64_t)limit - (uint64_t)start
                                 : (uint64_t)start - (uint64_t)limit,
                       step = up ? (uint64_t)delta : 0 - (uint64_t)delta;
        return delta == 0 ? -1
               : (up ? limit <= start : limit >= start)
                   ? 0
                   : (double)(span / step) + (double)(span % step != 0);
    }
    const double start = c->in[0].f[at[0]], limit = c->in[1].f[at[1]], delta = c->in[2].f[at[2]];
    const double ratio = c->in[0].type.dtype == SX_F32
                             ? (double)(((float)limit - (float)start) / (float)delta)
                             : (limit - start) / delta;
    if (delta == 0) {
        return -1;
    }
    return (delta > 0 && limit <= start) || (delta < 0 && limit >= start) ? 0 : ceil(fabs(ratio));
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
    const bool single = c->in[0].type.dtype == SX_F32;
    int64_t at = 0;
    c->out[0].i[0] = 0;
    for (int64_t row = 0, rows = rows_of(c); row < rows; row++) {
        const int64_t end = at + (int64_t)length_of(c, row), from = place_of(c, 0, row),
                      step = place_of(c, 2, row);
        if (is_float(c)) { /* each value is the one before it plus delta, in the dtype */
            const double delta = c->in[2].f[step];
            for (double x = c->in[0].f[from]; at < end; at++) {
                c->out[1].f[at] = x;
                x = single ? (double)((float)x + (float)delta) : x + delta;
            }
        } else {
            const int64_t delta = c->in[2].i[step];
            for (int64_t x = c->in[0].i[from]; at < end; at++) {
                c->out[1].i[at] = x;
                x = SX_WRAP(x, +, delta);
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
