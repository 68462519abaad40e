/* erfc: y = 1 - erf x, exact where that is small;  dx = -2/√π exp(-x²) dy
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  of float32 within 1e-6 of itself; float64 on devices: 1e-8
 * Source   TensorFlow tf.math.erfc */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void erfc_grad(sx_grad *g)
{
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value bell = sx_build_op(g->b, exp, NULL, sx_build_op(g->b, neg, NULL, square));
    g->dx[0] =
        sx_build_op(g->b, mul, NULL, g->dy[0], sx_times(g->b, bell, -1.12837916709551257390));
}

static const sx_op_sample erfc_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(erfc)

const sx_op_def sx_op_erfc = {
    SX_OP_NAMED(erfc),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = erfc_grad,
    SX_OP_ROW(erfc),
    SX_OP_SAMPLES(erfc_samples),
};
