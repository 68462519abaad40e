/* apply_momentum: one step of gradient descent with momentum, as TensorFlow keeps it.
 *
 *   accum' = momentum accum + g
 *   var'   = var - lr accum'                      plain
 *   var'   = var - lr g - lr momentum accum'      Nesterov
 *
 * Keras keeps v = momentum v - lr g and adds it: with a constant lr, v = -lr accum, and the
 * variable changes in the same way; if lr changes, TensorFlow's form applies the new lr to past
 * gradients as well.
 *
 *   var, accum, g   one float type
 *   lr              scalar of that dtype
 *   ok              bool scalar; when false, nothing changes
 *   momentum        >= 0
 *   returns         var', accum'
 *
 * No gradient.
 * Errors   INVALID_ARGUMENT  types, momentum
 * Numbers  computed in f32 for f32
 * Source   TensorFlow ApplyMomentum; slot name "Momentum" */
#ifdef SX_PUBLIC
typedef struct sx_apply_momentum_args {
    size_t struct_size;
    double momentum;
    bool nesterov;
} sx_apply_momentum_args;

/* TensorFlow's momentum: accum' = momentum accum + gradient, var' = var - lr accum'. */
sx_value sx_apply_momentum(sx_builder *b, sx_value var, sx_value accum, sx_value gradient,
                           sx_value lr, sx_value ok, const sx_apply_momentum_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_momentum_attrs {
    double momentum;
    bool nesterov;
} sx_momentum_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def apply_momentum_attrs[] = {
    SX_ATTR(sx_momentum_attrs, momentum, SX_ATTR_FLOAT),
    SX_ATTR(sx_momentum_attrs, nesterov, SX_ATTR_BOOL),
};

static sx_status apply_momentum_infer(sx_infer_context *c)
{
    const sx_momentum_attrs *attrs = c->attrs;
    if (!(attrs->momentum >= 0 && isfinite(attrs->momentum))) {
        return sx_error(SX_INVALID_ARGUMENT, "momentum is %g, expected 0 or more", attrs->momentum);
    }
    return sx_infer_apply(c, 3, 2);
}

static sx_status apply_momentum_host(const sx_kernel_call *c)
{
    const sx_momentum_attrs *attrs = c->attrs;
    const double *var = c->in[0].f, *accum = c->in[1].f, *g = c->in[2].f;
    double lr = c->in[3].f[0], momentum = attrs->momentum;
    int64_t n = sx_type_elems(&c->in[0].type);
    if (sx_host_withheld(c)) {
        return SX_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        double next = momentum * accum[i] + g[i];
        double direction = attrs->nesterov ? g[i] + momentum * next : next;
        c->out[1].f[i] = next;
        c->out[0].f[i] = var[i] - lr * direction;
    }
    return SX_OK;
}

#define NN SX_FILL_NORMAL
#define VARS(...)                                                   \
    SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_F32(NN, __VA_ARGS__), \
        SX_SAMPLE_F32(NN, __VA_ARGS__), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE)
#define MOMENTUM(...) (&(const sx_momentum_attrs){__VA_ARGS__})
static const sx_op_sample apply_momentum_samples[] = {
    {.name = "plain",
     .inputs = {VARS(7, 5), SX_SAMPLE_OK},
     .n_inputs = 5,
     .attrs = MOMENTUM(.momentum = 0.9)},
    {.name = "nesterov",
     .inputs = {VARS(5), SX_SAMPLE_OK},
     .n_inputs = 5,
     .attrs = MOMENTUM(.momentum = 0.9, .nesterov = true)},
    {.name = "maybe",
     .inputs = {VARS(3), SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_BOOL)},
     .n_inputs = 5,
     .attrs = NULL},
};

sx_value sx_apply_momentum_at(sx_builder *b, sx_value var, sx_value accum, sx_value gradient,
                              sx_value lr, sx_value ok, const sx_apply_momentum_args *args,
                              const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_apply_momentum_args, args);
    sx_momentum_attrs attrs = {.momentum = args->momentum, .nesterov = args->nesterov};
    return sx_build_at(b, &sx_op_apply_momentum, &attrs,
                       (const sx_value[]){var, accum, gradient, lr, ok}, 5, file, line);
}

const sx_op_def sx_op_apply_momentum = {
    SX_OP_NAMED(apply_momentum),
    .n_in = 5,
    .n_out = 2,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_momentum_attrs, apply_momentum_attrs),
    .infer = apply_momentum_infer,
    .host = apply_momentum_host,
    SX_OP_SAMPLES(apply_momentum_samples),
};
