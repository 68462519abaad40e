/* Operators along the classes, the last axis. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

/* x - log sum exp x over the last axis; x is wide (sx_hlo_widen). */
static sx_hlo log_softmax(sx_hlo_writer *w, sx_hlo x)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo greatest = sx_hlo_broadcast_to(w, sx_hlo_reduce_last(w, "maximum", x), &type);
    sx_hlo shifted = sx_hlo_binary(w, "subtract", x, greatest);
    sx_hlo sum = sx_hlo_reduce_last(w, "add", sx_hlo_unary(w, "exponential", shifted));
    sx_hlo log_sum = sx_hlo_broadcast_to(w, sx_hlo_unary(w, "log", sum), &type);
    return sx_hlo_binary(w, "subtract", shifted, log_sum);
}

void sx_hlo_lower_softmax(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo x = sx_hlo_widen(w, op->in[0]);
    sx_hlo greatest = sx_hlo_reduce_last(w, "maximum", x);
    greatest = sx_hlo_broadcast_to(w, greatest, &op->out_types[0]);
    sx_hlo e = sx_hlo_unary(w, "exponential", sx_hlo_binary(w, "subtract", x, greatest));
    sx_hlo sum = sx_hlo_broadcast_to(w, sx_hlo_reduce_last(w, "add", e), &op->out_types[0]);
    op->out[0] = sx_hlo_convert(w, sx_hlo_binary(w, "divide", e, sum), op->out_types[0].dtype);
}

void sx_hlo_lower_log_softmax(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo y = log_softmax(w, sx_hlo_widen(w, op->in[0]));
    op->out[0] = sx_hlo_convert(w, y, op->out_types[0].dtype);
}

void sx_hlo_lower_softmax_cross_entropy(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const int64_t last = 1;
    const sx_dtype dtype = op->in_types[0].dtype;
    sx_hlo log_p = log_softmax(w, sx_hlo_widen(w, op->in[0]));
    sx_hlo z = sx_hlo_widen(w, op->in[1]);
    sx_hlo sum = sx_hlo_reduce(w, "add", sx_hlo_binary(w, "multiply", z, log_p), 1, &last, false);
    sx_hlo back = sx_hlo_binary(w, "subtract", sx_hlo_unary(w, "exponential", log_p), z);
    op->out[0] = sx_hlo_convert(w, sx_hlo_unary(w, "negate", sum), dtype);
    op->out[1] = sx_hlo_convert(w, back, dtype);
}

/* x if the example's label is valid, else NaN; x is [N] or [N,C]. */
static sx_hlo where_known(sx_hlo_writer *w, sx_hlo known, sx_hlo x)
{
    sx_type type = sx_hlo_type(w, x);
    const int64_t first = 0;
    known = type.rank == 1 ? known : sx_hlo_broadcast_in(w, known, &type, &first);
    return sx_hlo_select(w, known, x, sx_hlo_like(w, x, NAN));
}

void sx_hlo_lower_sparse_softmax_cross_entropy(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const int64_t classes = op->in_types[0].dims[1], last = 1;
    sx_dtype dtype = op->in_types[0].dtype;
    sx_hlo log_p = log_softmax(w, sx_hlo_widen(w, op->in[0])), label = op->in[1];
    sx_hlo hits = sx_hlo_hits(w, label, classes);
    sx_hlo at_label = sx_hlo_select(w, hits, log_p, sx_hlo_like(w, log_p, 0));
    sx_hlo loss = sx_hlo_unary(w, "negate", sx_hlo_reduce(w, "add", at_label, 1, &last, false));
    sx_hlo ones = sx_hlo_convert(w, hits, sx_hlo_type(w, log_p).dtype);
    sx_hlo back = sx_hlo_binary(w, "subtract", sx_hlo_unary(w, "exponential", log_p), ones);
    sx_hlo known = sx_hlo_reduce(w, "or", hits, 1, &last, false);
    op->out[0] = sx_hlo_convert(w, where_known(w, known, loss), dtype);
    op->out[1] = sx_hlo_convert(w, where_known(w, known, back), dtype);
}
