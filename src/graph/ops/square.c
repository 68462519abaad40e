/* square: y = x²;  dx = 2 x dy
 *
 *   x        any shape, any number
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not numbers
 * Numbers  one rounding
 * Source   TensorFlow tf.square */
#include "graph/ops/common.h"

static sx_status square_infer(sx_infer *c)
{
    return sx_infer_map_number(c);
}

/* dx = dy 2x */
static void square_grad(sx_grad *g)
{
    sx_value slope = sx_times(g->b, g->x[0], 2);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], slope);
}

static double square_of(double x)
{
    return x * x;
}

static void square_ref(const sx_ref *r)
{
    sx_ref_map(r, square_of);
}

static void square_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Square");
}

static void square_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    op->out[0] = sx_hlo_binary(w, "multiply", op->in[0], op->in[0]);
}

static const sx_op_sample square_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(square)

const sx_op_def sx_op_square = {
    SX_OP_NAMED(square),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = square_infer,
    .grad = square_grad,
    .ref = square_ref,
    .to_tf = square_to_tf,
    .to_stablehlo = square_to_stablehlo,
    SX_OP_SAMPLES(square_samples),
};
