/* Batch normalization. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

/* 1 / sqrt(variance + epsilon) */
static sx_hlo inverse_deviation(sx_hlo_writer *w, sx_hlo variance, double epsilon)
{
    return sx_hlo_unary(w, "rsqrt", sx_hlo_with(w, "add", variance, epsilon));
}

void sx_hlo_lower_batch_norm(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_batch_norm_attrs *attrs = op->attrs;
    const sx_type *type = &op->in_types[0];
    sx_hlo s = inverse_deviation(w, op->in[4], attrs->epsilon);
    sx_hlo slope = sx_hlo_broadcast_to(w, sx_hlo_binary(w, "multiply", s, op->in[1]), type);
    sx_hlo mean = sx_hlo_broadcast_to(w, op->in[3], type);
    sx_hlo y = sx_hlo_binary(w, "subtract", sx_hlo_widen(w, op->in[0]), mean);
    y = sx_hlo_binary(w, "multiply", y, slope);
    y = sx_hlo_binary(w, "add", y, sx_hlo_broadcast_to(w, op->in[2], type));
    op->out[0] = sx_hlo_convert(w, y, type->dtype);
}

void sx_hlo_lower_batch_norm_train(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_lower_batch_norm(w, op);
}

void sx_hlo_lower_batch_norm_train_grad_sums(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_batch_norm_attrs *attrs = op->attrs;
    const sx_type *type = &op->in_types[1];
    const int64_t axes[SX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    sx_hlo dy = sx_hlo_widen(w, op->in[0]), x = sx_hlo_widen(w, op->in[1]);
    sx_hlo centred = sx_hlo_binary(w, "subtract", x, sx_hlo_broadcast_to(w, op->in[2], type));
    sx_hlo products = sx_hlo_binary(w, "multiply", dy, centred);
    sx_hlo sum = sx_hlo_reduce(w, "add", products, type->rank - 1, axes, false);
    sx_hlo s = inverse_deviation(w, op->in[3], attrs->epsilon);
    op->out[0] = sx_hlo_binary(w, "multiply", sum, s);
    op->out[1] = sx_hlo_reduce(w, "add", dy, type->rank - 1, axes, false);
}

void sx_hlo_lower_batch_norm_train_grad_input(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_batch_norm_attrs *attrs = op->attrs;
    const sx_type *type = &op->in_types[1], *channels = &op->in_types[2];
    sx_hlo dy = sx_hlo_widen(w, op->in[0]), x = sx_hlo_widen(w, op->in[1]);
    sx_hlo s = inverse_deviation(w, op->in[3], attrs->epsilon);
    sx_hlo count = sx_hlo_broadcast_to(w, op->in[7], channels);
    sx_hlo along = sx_hlo_binary(w, "divide", sx_hlo_binary(w, "multiply", s, op->in[5]), count);
    sx_hlo shift = sx_hlo_binary(w, "divide", op->in[6], count);
    sx_hlo slope = sx_hlo_binary(w, "multiply", op->in[4], s);
    sx_hlo centred = sx_hlo_binary(w, "subtract", x, sx_hlo_broadcast_to(w, op->in[2], type));
    sx_hlo pull = sx_hlo_binary(w, "multiply", centred, sx_hlo_broadcast_to(w, along, type));
    pull = sx_hlo_binary(w, "add", pull, sx_hlo_broadcast_to(w, shift, type));
    sx_hlo dx = sx_hlo_binary(w, "subtract", dy, pull);
    dx = sx_hlo_binary(w, "multiply", dx, sx_hlo_broadcast_to(w, slope, type));
    op->out[0] = sx_hlo_convert(w, dx, type->dtype);
}
