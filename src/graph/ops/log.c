/* log: y = ln x;  dx = dy / x.  ln 0 = -inf, below that NaN.
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  kernels: 2 units in the last place
 * Source   TensorFlow tf.math.log */
#include "graph/ops/common.h"

static sx_status log_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

/* dx = dy / x */
static void log_grad(sx_grad *g)
{
    g->dx[0] = sx_build_op(g->b, div, NULL, g->dy[0], g->x[0]);
}

static void log_ref(const sx_ref *r)
{
    sx_ref_map(r, log);
}

static void log_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Log");
}

static void log_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "log");
}

static const sx_op_sample log_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_POSITIVE),
};

/* sx_log() is the diagnostics' (base/log.h). */
sx_value sx_ln_at(sx_builder *b, sx_value x, const char *file, int line)
{
    return sx_build_at(b, &sx_op_log, NULL, &x, 1, file, line);
}

const sx_op_def sx_op_log = {
    SX_OP_NAMED(log),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    .infer = log_infer,
    .grad = log_grad,
    .ref = log_ref,
    .to_tf = log_to_tf,
    .to_stablehlo = log_to_stablehlo,
    SX_OP_SAMPLES(log_samples),
};
