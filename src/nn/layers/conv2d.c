/* Conv2D: y = activation(conv(x, kernel) + bias). See sx_conv2d in sextant/nn.h. */
#include <inttypes.h>

#include "base/checked.h"
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
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"filters", args->filters},
                  {"kernel", args->kernel},
                  {"strides", or_one(args->strides)},
                  {"kernel_width", or_one(args->kernel_width)},
                  {"groups", groups},
                  {"dilation", or_one(args->dilation)}};
    for (size_t i = 0; i < SX_COUNT(counts); i++) {
        if (counts[i].value < 1) {
            sx_layer_fail(b, "conv2d",
                          sx_error(SX_INVALID_ARGUMENT, "%s is %" PRId64 ", expected at least 1",
                                   counts[i].name, counts[i].value));
            return false;
        }
    }
    if (args->padding != SX_VALID && args->padding != SX_SAME) {
        sx_layer_fail(b, "conv2d",
                      sx_error(SX_INVALID_ARGUMENT,
                               "padding is %d, expected SX_VALID or SX_SAME; for others use "
                               "sx_nn_conv2d()",
                               (int)args->padding));
        return false;
    }
    if (channels % groups != 0 || args->filters % groups != 0) {
        sx_layer_fail(b, "conv2d",
                      sx_error(SX_INVALID_ARGUMENT,
                               "%" PRId64 " groups do not divide the %" PRId64
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
