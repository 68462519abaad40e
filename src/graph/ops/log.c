/* log: y = ln x;  dx = dy / x.  ln 0 = -inf, below that NaN.
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.math.log */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

/* dx = dy / x */
static void log_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], g->x[0]);
}

static const sx_op_sample log_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

/* The name sx_log() is taken by base/log.h. */
SX_PUBLIC_MAP_AS(log, ln)

const sx_op_def sx_op_log = {
    SX_OP_NAMED(log),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = sx_infer_map_float,
    .grad = log_grad,
    SX_OP_ROW(log),
    SX_OP_SAMPLES(log_samples),
};
