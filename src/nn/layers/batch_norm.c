/* Batch normalization. See sx_batch_norm in sextant/nn.h.
 *
 *   training     moments over all axes but the last -> batch_norm_train; moving averages updated
 *   evaluation   batch_norm with the moving averages */
#include <math.h>

#include "nn/layer.h"

typedef struct norm {
    sx_value gamma, beta, mean,
        variance; /* current values of the variables; mean, variance: the moving averages */
    const char *mean_name, *variance_name;
} norm;

static double or_default(double x, double otherwise)
{
    return x == 0 ? otherwise : x == SX_ZERO ? 0 : x;
}

/* Without scale or center, the operator gets constant ones or zeros. */
static sx_value constant_vector(sx_builder *b, int64_t n, float value)
{
    sx_value scalar = sx_constant_f32(b, (double)value);
    return sx_build_op(b, broadcast_to, (&(sx_shape_attrs){.shape = {1, {n}}}), scalar);
}

static norm make_variables(sx_builder *b, int64_t channels, const sx_batch_norm_args *args)
{
    sx_type type = sx_type_of(SX_F32, channels);
    norm n = {.mean_name = sx_scoped_name(b, "moving_mean"),
              .variance_name = sx_scoped_name(b, "moving_variance")};
    n.gamma = args->no_scale ? constant_vector(b, channels, 1)
                             : sx_layer_variable(b, "gamma", type, SX_ROLE_WEIGHT,
                                                 args->gamma_initializer, SX_INIT_ONES);
    n.beta = args->no_center ? constant_vector(b, channels, 0)
                             : sx_layer_variable(b, "beta", type, SX_ROLE_WEIGHT, SX_INIT_DEFAULT,
                                                 SX_INIT_ZEROS);
    n.mean =
        sx_layer_variable(b, "moving_mean", type, SX_ROLE_STATE, SX_INIT_DEFAULT, SX_INIT_ZEROS);
    n.variance =
        sx_layer_variable(b, "moving_variance", type, SX_ROLE_STATE, SX_INIT_DEFAULT, SX_INIT_ONES);
    return n;
}

/* moving·momentum + batch·(1 − momentum) */
static sx_value moved(sx_builder *b, sx_value moving, sx_value batch, double momentum)
{
    sx_value old = sx_build_op(b, mul, NULL, moving, sx_constant_f32(b, momentum));
    sx_value fresh = sx_build_op(b, mul, NULL, batch, sx_constant_f32(b, 1 - momentum));
    return sx_build_op(b, add, NULL, old, fresh);
}

static sx_value train(sx_builder *b, sx_value x, const norm *n, int rank, double epsilon,
                      double momentum)
{
    sx_axes_attrs axes = {.axes = {.n = rank - 1}};
    for (int d = 0; d < rank - 1; d++) {
        axes.axes.v[d] = d;
    }
    sx_value mean = sx_build_op(b, moments, &axes, x), variance = sx_output_of(mean, 1);
    sx_assign(b, n->mean_name, moved(b, n->mean, mean, momentum));
    sx_assign(b, n->variance_name, moved(b, n->variance, variance, momentum));
    const sx_batch_norm_attrs attrs = {.epsilon = epsilon};
    return sx_build_op(b, batch_norm_train, &attrs, x, n->gamma, n->beta, mean, variance);
}

static sx_value build(sx_builder *b, sx_value x, const sx_batch_norm_args *args)
{
    sx_type type = sx_type_of_value(b, x);
    if (type.rank < 2) {
        char text[SX_TYPE_TEXT];
        sx_layer_fail(b, "batch_normalization",
                      sx_error(SX_INVALID_ARGUMENT, "input %s has rank %d, expected at least [N,C]",
                               sx_type_format(&type, text, sizeof(text)), type.rank));
        return SX_NO_VALUE;
    }
    double epsilon = or_default(args->epsilon, 1e-3), momentum = or_default(args->momentum, .99);
    if (!(momentum >= 0 && momentum <= 1) || !(epsilon >= 0 && isfinite(epsilon))) {
        sx_layer_fail(b, "batch_normalization",
                      sx_error(SX_INVALID_ARGUMENT,
                               "momentum is %g and epsilon %g, expected a momentum of 0 to 1 and a "
                               "finite epsilon, 0 or more",
                               momentum, epsilon));
        return SX_NO_VALUE;
    }
    norm n = make_variables(b, type.dims[type.rank - 1], args);
    if (sx_builder_mode(b) == SX_TRAIN) {
        return train(b, x, &n, type.rank, epsilon, momentum);
    }
    const sx_batch_norm_attrs attrs = {.epsilon = epsilon};
    return sx_build_op(b, batch_norm, &attrs, x, n.gamma, n.beta, n.mean, n.variance);
}

sx_value sx_batch_norm_at(sx_builder *b, sx_value x, const sx_batch_norm_args *args,
                          const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_batch_norm_args, args);
    if (!sx_layer_begin(b, "batch_normalization", args->name, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, build(b, sx_narrow(b, x), args));
}
