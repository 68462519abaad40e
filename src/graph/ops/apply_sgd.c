/* apply_sgd: one step of gradient descent:  var' = var - lr g
 *
 *   var, g   one float type
 *   lr       scalar of that dtype
 *   ok       bool scalar; when false, var' = var (a non-finite update is withheld)
 *   returns  var'
 *
 * No gradient.
 * Errors   INVALID_ARGUMENT  types
 * Numbers  computed in f32 for f32
 * Source   Keras 3 SGD with momentum 0; TensorFlow ApplyGradientDescent */
#ifdef SX_PUBLIC
/* Each returns the new variable; the other outputs are the new slots, in the order of the
 * arguments. If `ok` is false, nothing changes. */

/* var - lr gradient */
sx_value sx_apply_sgd(sx_builder *b, sx_value var, sx_value gradient, sx_value lr, sx_value ok);
#endif

#include "graph/ops/common.h"

static sx_status apply_sgd_infer(sx_infer_context *c)
{
    return sx_infer_apply(c, 2, 1);
}

static sx_status apply_sgd_host(const sx_kernel_call *c)
{
    const double *var = c->in[0].f, *g = c->in[1].f, lr = c->in[2].f[0];
    int64_t n = sx_type_elems(&c->in[0].type);
    if (sx_host_withheld(c)) {
        return SX_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        c->out[0].f[i] = var[i] - lr * g[i];
    }
    return SX_OK;
}

#define NN SX_FILL_NORMAL
static const sx_op_sample apply_sgd_samples[] = {
    {.name = "kernel",
     .inputs = {SX_SAMPLE_F32(NN, 7, 5), SX_SAMPLE_F32(NN, 7, 5),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE), SX_SAMPLE_OK},
     .n_inputs = 4},
    {.name = "maybe",
     .inputs = {SX_SAMPLE_F32(NN, 3), SX_SAMPLE_F32(NN, 3),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE),
                SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL)},
     .n_inputs = 4},
};

sx_value sx_apply_sgd_at(sx_builder *b, sx_value var, sx_value gradient, sx_value lr, sx_value ok,
                         const char *file, int line)
{
    return sx_build_at(b, &sx_op_apply_sgd, NULL, (const sx_value[]){var, gradient, lr, ok}, 4,
                       file, line);
}

const sx_op_def sx_op_apply_sgd = {
    SX_OP_NAMED(apply_sgd),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = apply_sgd_infer,
    .host = apply_sgd_host,
    SX_OP_SAMPLES(apply_sgd_samples),
};
