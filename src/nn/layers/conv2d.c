/* Conv2D: y = activation(conv(x, kernel) + bias). See sx_conv2d in sextant/nn.h. */
#include <inttypes.h>

#include "nn/layer.h"

static int64_t or_one(int64_t n)
{
    return n == 0 ? 1 : n;
}

static bool check(sx_builder *b, sx_value x, const sx_conv2d_args *args)
{
    if (!sx_layer_check_rank(b, "conv2d", x, 4, "[N,H,W,C]", "")) {
        return false;
    }
    int64_t channels = sx_type_of_value(b, x).dims[3], groups = or_one(args->groups);
    if (args->filters < 1 || args->kernel < 1 || args->strides < 0 || args->dilation < 0 ||
        groups < 1) {
        sx_layer_fail(b, "conv2d",
                      sx_error(SX_INVALID_ARGUMENT,
                               "filters is %" PRId64 ", kernel %" PRId64 ", strides %" PRId64
                               "; each must be at "
                               "least 1",
                               args->filters, args->kernel, or_one(args->strides)));
        return false;
    }
    if (channels % groups != 0 || args->filters % groups != 0) {
        sx_layer_fail(b, "conv2d",
                      sx_error(SX_INVALID_ARGUMENT,
                               "%" PRId64 " groups must divide the %" PRId64
                               " channels and the %" PRId64 " filters",
                               groups, channels, args->filters));
        return false;
    }
    return true;
}

static sx_value build(sx_builder *b, sx_value x, const sx_conv2d_args *args)
{
    if (!check(b, x, args)) {
        return SX_NO_VALUE;
    }
    int64_t channels = sx_type_of_value(b, x).dims[3], groups = or_one(args->groups);
    int64_t kw = args->kernel_width == 0 ? args->kernel : args->kernel_width;
    sx_value w = sx_layer_weight(
        b, "kernel", sx_type_of(SX_F32, args->kernel, kw, channels / groups, args->filters),
        args->kernel_initializer, SX_INIT_GLOROT_UNIFORM);
    int64_t s = or_one(args->strides), d = or_one(args->dilation);
    const sx_conv2d_attrs attrs = {.strides = {2, {s, s}},
                                   .dilations = {2, {d, d}},
                                   .padding = (int32_t)args->padding,
                                   .groups = groups};
    sx_value y = sx_build_op(b, conv2d, &attrs, sx_narrow(b, x), w);
    if (!args->no_bias) {
        sx_value bias = sx_layer_weight(b, "bias", sx_type_of(SX_F32, args->filters),
                                        args->bias_initializer, SX_INIT_ZEROS);
        y = sx_build_op(b, bias_add, NULL, y, bias);
    }
    return sx_activate(b, y, args->activation);
}

sx_value sx_conv2d_at(sx_builder *b, sx_value x, const sx_conv2d_args *args, const char *file,
                      int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_conv2d_args, args);
    if (!sx_layer_begin(b, "conv2d", args->name, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, build(b, x, args));
}
