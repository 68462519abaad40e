/* apply_adam: one step of Adam, as Keras 3 does it.
 *
 *   t     = step + 1
 *   alpha = lr sqrt(1 - beta2^t) / (1 - beta1^t)
 *   m'    = m + (g - m) (1 - beta1)
 *   v'    = v + (g² - v) (1 - beta2)
 *   var'  = var - alpha m' / (sqrt(v') + epsilon)
 *
 *   var, m, v, g   one float type
 *   lr             scalar of that dtype
 *   step           int64 scalar: how many updates were made before this one (global_step)
 *   ok             bool scalar; when false, nothing changes
 *   returns        var', m', v'
 *
 * No gradient.
 * Errors   INVALID_ARGUMENT  types; betas outside [0, 1), negative epsilon
 * Numbers  alpha in double, rounded to the dtype; the rest in f32 for f32
 * Source   Keras 3 src/optimizers/adam.py; slots "Adam" (m) and "Adam_1" (v); epsilon outside the
 *          root */
#ifdef SX_PUBLIC
typedef struct sx_apply_adam_args {
    size_t struct_size;
    double beta1, beta2, epsilon;
} sx_apply_adam_args;

/* `step`, an int64 scalar: the number of updates before this one. */
sx_value sx_apply_adam(sx_builder *b, sx_value var, sx_value m, sx_value v, sx_value gradient,
                       sx_value lr, sx_value step, sx_value ok, const sx_apply_adam_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_adam_attrs {
    double beta1, beta2, epsilon;
} sx_adam_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def apply_adam_attrs[] = {
    SX_ATTR(sx_adam_attrs, beta1, SX_ATTR_FLOAT),
    SX_ATTR(sx_adam_attrs, beta2, SX_ATTR_FLOAT),
    SX_ATTR(sx_adam_attrs, epsilon, SX_ATTR_FLOAT),
};

static bool is_decay(double beta)
{
    return beta >= 0 && beta < 1;
}

static sx_status apply_adam_infer(sx_infer_context *c)
{
    const sx_adam_attrs *attrs = c->attrs;
    if (!is_decay(attrs->beta1) || !is_decay(attrs->beta2) || !(attrs->epsilon >= 0)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "beta1 %g, beta2 %g, epsilon %g; expected betas in [0, 1) and an "
                        "epsilon of 0 or more",
                        attrs->beta1, attrs->beta2, attrs->epsilon);
    }
    SX_TRY(sx_require_scalar("step", &c->inputs[5], SX_I64));
    return sx_infer_apply(c, 4, 3);
}

static sx_status apply_adam_host(const sx_kernel_call *c)
{
    const sx_adam_attrs *attrs = c->attrs;
    const double *var = c->in[0].f, *m = c->in[1].f, *v = c->in[2].f, *g = c->in[3].f;
    double t = (double)c->in[5].i[0] + 1, b1 = attrs->beta1, b2 = attrs->beta2;
    double alpha = c->in[4].f[0] * sqrt(1 - pow(b2, t)) / (1 - pow(b1, t));
    int64_t n = sx_type_elems(&c->in[0].type);
    if (sx_host_withheld(c)) {
        return SX_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        double next_m = m[i] + (g[i] - m[i]) * (1 - b1);
        double next_v = v[i] + (g[i] * g[i] - v[i]) * (1 - b2);
        c->out[0].f[i] = var[i] - alpha * next_m / (sqrt(next_v) + attrs->epsilon);
        c->out[1].f[i] = next_m;
        c->out[2].f[i] = next_v;
    }
    return SX_OK;
}

#define NN SX_FILL_NORMAL
#define VARS(...)                                                                     \
    SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_F32(NN, __VA_ARGS__),                   \
        SX_SAMPLE_F32(SX_FILL_POSITIVE, __VA_ARGS__), SX_SAMPLE_F32(NN, __VA_ARGS__), \
        SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE)
#define STEP(limit_)                                                        \
    {                                                                       \
        .type = {.dtype = SX_I64}, .fill = SX_FILL_INDEX, .limit = (limit_) \
    }
#define ADAM (&(const sx_adam_attrs){.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7})
static const sx_op_sample apply_adam_samples[] = {
    {.name = "first", .inputs = {VARS(7, 5), STEP(1), SX_SAMPLE_OK}, .n_inputs = 7, .attrs = ADAM},
    {.name = "later",
     .inputs = {VARS(33), STEP(10000), SX_SAMPLE_OK},
     .n_inputs = 7,
     .attrs = ADAM},
    {.name = "maybe",
     .inputs = {VARS(1), STEP(10), SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL)},
     .n_inputs = 7,
     .attrs = ADAM},
};

sx_value sx_apply_adam_at(sx_builder *b, sx_value var, sx_value m, sx_value v, sx_value gradient,
                          sx_value lr, sx_value step, sx_value ok, const sx_apply_adam_args *args,
                          const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_apply_adam_args, args);
    sx_adam_attrs attrs = {.beta1 = args->beta1, .beta2 = args->beta2, .epsilon = args->epsilon};
    return sx_build_at(b, &sx_op_apply_adam, &attrs,
                       (const sx_value[]){var, m, v, gradient, lr, step, ok}, 7, file, line);
}

const sx_op_def sx_op_apply_adam = {
    SX_OP_NAMED(apply_adam),
    .n_in = 7,
    .n_out = 3,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_adam_attrs, apply_adam_attrs),
    .infer = apply_adam_infer,
    .host = apply_adam_host,
    SX_OP_SAMPLES(apply_adam_samples),
};
