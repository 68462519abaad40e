/* Updates of variables. */
#include "graph/lower/stablehlo/rows.h"

#include "graph/ops/common.h"

/* A scalar repeated to the shape of the variable (input 0). */
static sx_hlo spread(sx_hlo_writer *w, const sx_hlo_op *op, sx_hlo scalar)
{
    return sx_hlo_broadcast_to(w, scalar, &op->in_types[0]);
}

/* out[k] = ok ? next[k] : in[k]; `ok` is the last input. */
static void apply(sx_hlo_writer *w, const sx_hlo_op *op, const sx_hlo *next)
{
    for (int k = 0; k < op->n_out; k++) {
        op->out[k] = sx_hlo_select(w, op->in[op->n_in - 1], next[k], op->in[k]);
    }
}

void sx_hlo_lower_apply_sgd(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo lr = spread(w, op, op->in[2]);
    sx_hlo step = sx_hlo_binary(w, "multiply", lr, op->in[1]);
    sx_hlo next = sx_hlo_binary(w, "subtract", op->in[0], step);
    apply(w, op, &next);
}

void sx_hlo_lower_apply_momentum(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_momentum_attrs *attrs = op->attrs;
    sx_hlo g = op->in[2], lr = spread(w, op, op->in[3]);
    sx_hlo accum = sx_hlo_with(w, "multiply", op->in[1], attrs->momentum);
    accum = sx_hlo_binary(w, "add", accum, g);
    sx_hlo direction = accum;
    if (attrs->nesterov) {
        sx_hlo ahead = sx_hlo_with(w, "multiply", accum, attrs->momentum);
        direction = sx_hlo_binary(w, "add", g, ahead);
    }
    sx_hlo step = sx_hlo_binary(w, "multiply", lr, direction);
    const sx_hlo next[2] = {sx_hlo_binary(w, "subtract", op->in[0], step), accum};
    apply(w, op, next);
}

/* decay old + (1 - decay) new */
static sx_hlo decayed(sx_hlo_writer *w, double decay, sx_hlo old, sx_hlo new)
{
    sx_hlo kept = sx_hlo_with(w, "multiply", old, decay);
    return sx_hlo_binary(w, "add", kept, sx_hlo_with(w, "multiply", new, 1 - decay));
}

void sx_hlo_lower_apply_rmsprop(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_rmsprop_attrs *attrs = op->attrs;
    sx_hlo g = op->in[op->n_in - 3], lr = spread(w, op, op->in[op->n_in - 2]), next[4];
    int n = 2;
    next[1] = decayed(w, attrs->rho, op->in[1], sx_hlo_binary(w, "multiply", g, g));
    sx_hlo spread = next[1];
    if (attrs->centered) {
        sx_hlo mean = decayed(w, attrs->rho, op->in[n], g);
        spread = sx_hlo_binary(w, "subtract", spread, sx_hlo_binary(w, "multiply", mean, mean));
        next[n++] = mean;
    }
    sx_hlo root = sx_hlo_unary(w, "sqrt", sx_hlo_with(w, "add", spread, attrs->epsilon));
    sx_hlo step = sx_hlo_binary(w, "divide", sx_hlo_binary(w, "multiply", lr, g), root);
    if (attrs->momentum > 0) {
        sx_hlo mom = sx_hlo_with(w, "multiply", op->in[n], attrs->momentum);
        step = sx_hlo_binary(w, "add", mom, step);
        next[n++] = step;
    }
    next[0] = sx_hlo_binary(w, "subtract", op->in[0], step);
    apply(w, op, next);
}

/* 1 - beta^t, as -expm1(t ln beta): accurate in f32 even for t = 1 and beta near 1. */
static sx_hlo decay_left(sx_hlo_writer *w, sx_hlo t, double beta)
{
    sx_hlo power = sx_hlo_with(w, "multiply", t, log(beta));
    return sx_hlo_unary(w, "negate", sx_hlo_unary(w, "exponential_minus_one", power));
}

/* alpha, in the variable's type */
static sx_hlo adam_rate(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_adam_attrs *attrs = op->attrs;
    sx_hlo lr = sx_hlo_widen(w, op->in[4]);
    sx_hlo t = sx_hlo_with(w, "add", op->in[5], 1);
    t = sx_hlo_convert(w, t, sx_hlo_type(w, lr).dtype);
    sx_hlo root = sx_hlo_unary(w, "sqrt", decay_left(w, t, attrs->beta2));
    sx_hlo rate = sx_hlo_binary(w, "divide", root, decay_left(w, t, attrs->beta1));
    rate = sx_hlo_convert(w, sx_hlo_binary(w, "multiply", lr, rate), op->in_types[0].dtype);
    return spread(w, op, rate);
}

/* old + (new - old) (1 - beta) */
static sx_hlo moved(sx_hlo_writer *w, sx_hlo old, sx_hlo new, double beta)
{
    sx_hlo way = sx_hlo_binary(w, "subtract", new, old);
    return sx_hlo_binary(w, "add", old, sx_hlo_with(w, "multiply", way, 1 - beta));
}

void sx_hlo_lower_apply_adam(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_adam_attrs *attrs = op->attrs;
    sx_hlo g = op->in[3], alpha = adam_rate(w, op), next[3];
    next[1] = moved(w, op->in[1], g, attrs->beta1);
    next[2] = moved(w, op->in[2], sx_hlo_binary(w, "multiply", g, g), attrs->beta2);
    sx_hlo root = sx_hlo_with(w, "add", sx_hlo_unary(w, "sqrt", next[2]), attrs->epsilon);
    sx_hlo step = sx_hlo_binary(w, "multiply", alpha, next[1]);
    next[0] = sx_hlo_binary(w, "subtract", op->in[0], sx_hlo_binary(w, "divide", step, root));
    apply(w, op, next);
}
