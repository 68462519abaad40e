/* apply_rmsprop: one step of RMSprop.
 *
 *   rms'  = rho rms + (1 - rho) g²
 *   mean' = rho mean + (1 - rho) g                                     centered only
 *   step  = lr g / sqrt(rms' - mean'² + epsilon)                       without mean'²: not centered
 *   mom'  = momentum mom + step,  var' = var - mom'                    momentum > 0 only
 *   var'  = var - step                                                 momentum = 0
 *
 * Slots that an attribute turns off are neither inputs nor outputs:
 *
 *   inputs   var, rms, [mean], [mom], g, lr, ok
 *   outputs  var', rms', [mean'], [mom']
 *
 *   var, slots, g   one float type
 *   lr              scalar of that dtype
 *   ok              bool scalar; when false, nothing changes
 *
 * No gradient.
 * Errors   INVALID_ARGUMENT  count or types of inputs, rho, momentum, epsilon
 * Numbers  computed in f32 for f32
 * Source   Keras 3 RMSprop; epsilon inside the root */
#ifdef SX_PUBLIC
typedef struct sx_apply_rmsprop_args {
    size_t struct_size;
    double rho, momentum, epsilon;
    bool centered;
} sx_apply_rmsprop_args;

/* `mean` is used when centered, `mom` when momentum > 0; SX_NO_VALUE otherwise. */
sx_value sx_apply_rmsprop(sx_builder *b, sx_value var, sx_value rms, sx_value mean, sx_value mom,
                          sx_value gradient, sx_value lr, sx_value ok,
                          const sx_apply_rmsprop_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_rmsprop_attrs {
    double rho, momentum, epsilon;
    bool centered;
} sx_rmsprop_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def apply_rmsprop_attrs[] = {
    SX_ATTR(sx_rmsprop_attrs, rho, SX_ATTR_FLOAT),
    SX_ATTR(sx_rmsprop_attrs, momentum, SX_ATTR_FLOAT),
    SX_ATTR(sx_rmsprop_attrs, epsilon, SX_ATTR_FLOAT),
    SX_ATTR(sx_rmsprop_attrs, centered, SX_ATTR_BOOL),
};

static sx_status apply_rmsprop_infer(sx_infer_context *c)
{
    const sx_rmsprop_attrs *attrs = c->attrs;
    int slots = 1 + attrs->centered + (attrs->momentum > 0);
    bool fits = attrs->rho >= 0 && attrs->rho <= 1 && attrs->momentum >= 0 && attrs->epsilon >= 0;
    if (!fits || c->n_inputs != slots + 4) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d inputs, rho %g, momentum %g, epsilon %g; expected %d inputs, "
                        "rho in [0, 1], others 0 or more",
                        c->n_inputs, attrs->rho, attrs->momentum, attrs->epsilon, slots + 4);
    }
    return sx_infer_apply(c, slots + 2, slots + 1);
}

static sx_status apply_rmsprop_host(const sx_kernel_call *c)
{
    const sx_rmsprop_attrs *attrs = c->attrs;
    int mean_at = attrs->centered ? 2 : 0, mom_at = attrs->momentum > 0 ? c->n_out - 1 : 0;
    const double *g = c->in[c->n_in - 3].f, lr = c->in[c->n_in - 2].f[0], rho = attrs->rho;
    int64_t n = sx_type_elems(&c->in[0].type);
    if (sx_host_withheld(c)) {
        return SX_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        double rms = rho * c->in[1].f[i] + (1 - rho) * g[i] * g[i], spread = rms;
        if (mean_at != 0) {
            double mean = rho * c->in[mean_at].f[i] + (1 - rho) * g[i];
            spread -= mean * mean;
            c->out[mean_at].f[i] = mean;
        }
        double step = lr * g[i] / sqrt(spread + attrs->epsilon);
        if (mom_at != 0) {
            step += attrs->momentum * c->in[mom_at].f[i];
            c->out[mom_at].f[i] = step;
        }
        c->out[1].f[i] = rms;
        c->out[0].f[i] = c->in[0].f[i] - step;
    }
    return SX_OK;
}

/* Means are zero, as in training, so that the centered root is real. */
#define NN  SX_FILL_NORMAL
#define PP  SX_FILL_POSITIVE
#define VAR SX_SAMPLE_F32(NN, 7, 5)
#define RMS                                                \
    {                                                      \
        .type = SX_TYPE_LITERAL_(SX_F32, 7, 5), .fill = PP \
    }
#define MEAN                                                                      \
    {                                                                             \
        .type = SX_TYPE_LITERAL_(SX_F32, 7, 5), .fill = SX_FILL_INDEX, .limit = 1 \
    }
#define LR           SX_SAMPLE_SCALAR(SX_F32, PP)
#define RMSPROP(...) (&(const sx_rmsprop_attrs){.rho = 0.9, .epsilon = 1e-7, __VA_ARGS__})
static const sx_op_sample apply_rmsprop_samples[] = {
    {.name = "plain",
     .inputs = {VAR, RMS, VAR, LR, SX_SAMPLE_OK},
     .n_inputs = 5,
     .attrs = RMSPROP(.momentum = 0)},
    {.name = "momentum",
     .inputs = {VAR, RMS, VAR, VAR, LR, SX_SAMPLE_OK},
     .n_inputs = 6,
     .attrs = RMSPROP(.momentum = 0.9)},
    {.name = "centered",
     .inputs = {VAR, RMS, MEAN, VAR, LR, SX_SAMPLE_OK},
     .n_inputs = 6,
     .attrs = RMSPROP(.centered = true)},
    {.name = "both",
     .inputs = {VAR, RMS, MEAN, VAR, VAR, LR, SX_SAMPLE_OK},
     .n_inputs = 7,
     .attrs = RMSPROP(.momentum = 0.5, .centered = true)},
    {.name = "maybe",
     .inputs = {VAR, RMS, VAR, LR, SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL)},
     .n_inputs = 5,
     .attrs = RMSPROP(.momentum = 0)},
};

sx_value sx_apply_rmsprop_at(sx_builder *b, sx_value var, sx_value rms, sx_value mean, sx_value mom,
                             sx_value gradient, sx_value lr, sx_value ok,
                             const sx_apply_rmsprop_args *args, const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_apply_rmsprop_args, args);
    sx_rmsprop_attrs attrs = {
        .rho = args->rho,
        .momentum = args->momentum,
        .epsilon = args->epsilon,
        .centered = args->centered,
    };
    sx_value in[7] = {var, rms};
    int n = 2;
    if (attrs.centered) {
        in[n++] = mean;
    }
    if (attrs.momentum > 0) {
        in[n++] = mom;
    }
    in[n++] = gradient;
    in[n++] = lr;
    in[n++] = ok;
    return sx_build_at(b, &sx_op_apply_rmsprop, &attrs, in, n, file, line);
}

const sx_op_def sx_op_apply_rmsprop = {
    SX_OP_NAMED(apply_rmsprop),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_rmsprop_attrs, apply_rmsprop_attrs),
    .infer = apply_rmsprop_infer,
    .host = apply_rmsprop_host,
    SX_OP_SAMPLES(apply_rmsprop_samples),
};
