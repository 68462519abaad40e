/* rsqrt: y = 1 / √x;  dx = -dy y³ / 2
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.math.rsqrt */
#include "graph/ops/common.h"

static sx_status rsqrt_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = -dy y³ / 2 */
static void rsqrt_grad(sx_grad *g)
{
    sx_value y2 = sx_build_op(g->b, square, NULL, g->y[0]);
    sx_value y3 = sx_build_op(g->b, mul, NULL, y2, g->y[0]);
    g->dx[0] = sx_build_op(g->b, mul, NULL, g->dy[0], sx_times(g->b, y3, -0.5));
}

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}

static void rsqrt_ref(const sx_ref *r)
{
    sx_ref_map(r, rsqrt_of);
}

static void rsqrt_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Rsqrt");
}

static void rsqrt_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "rsqrt");
}

static const sx_op_sample rsqrt_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

SX_PUBLIC_MAP(rsqrt)

const sx_op_def sx_op_rsqrt = {
    SX_OP_NAMED(rsqrt),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = rsqrt_infer,
    .grad = rsqrt_grad,
    .ref = rsqrt_ref,
    .to_tf = rsqrt_to_tf,
    .to_stablehlo = rsqrt_to_stablehlo,
    SX_OP_SAMPLES(rsqrt_samples),
};
