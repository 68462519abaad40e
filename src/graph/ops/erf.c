/* erf: y = 2/√π ∫₀ˣ exp(-t²) dt;  dx = 2/√π exp(-x²) dy
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  4 units in the last place; float64 on devices: 1e-8
 * Source   TensorFlow tf.math.erf */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static void erf_grad(sx_grad *g)
{
    sx_value square = sx_build_op(g->b, square, NULL, g->x[0]);
    sx_value bell = sx_build_op(g->b, exp, NULL, sx_build_op(g->b, neg, NULL, square));
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], sx_times(g->b, bell, 1.12837916709551257390));
}

static const sx_op_sample erf_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_NORMAL),
};

SX_PUBLIC_MAP(erf)

const sx_op_def sx_op_erf = {
    SX_OP_NAMED(erf),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = erf_grad,
    SX_OP_ROW(erf),
    SX_OP_SAMPLES(erf_samples),
};
