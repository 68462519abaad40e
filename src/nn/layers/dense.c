/* Dense: y = activation(x W + b). See sx_dense in sextant/nn.h. */
#include <inttypes.h>

#include "nn/layer.h"

static sx_value build(sx_builder *b, sx_value x, const sx_dense_args *args)
{
    if (!sx_layer_check_rank(b, "dense", x, 2, "[N,K]", "add sx_flatten()")) {
        return SX_NO_VALUE;
    }
    if (args->units < 1) {
        sx_layer_fail(b, "dense",
                      sx_error(SX_INVALID_ARGUMENT, "units is %" PRId64 ", expected at least 1",
                               args->units));
        return SX_NO_VALUE;
    }
    int64_t k = sx_type_of_value(b, x).dims[1];
    sx_value w = sx_layer_weight(b, "kernel", sx_type_of(SX_F32, k, args->units),
                                 args->kernel_initializer, SX_INIT_GLOROT_UNIFORM);
    sx_value y = sx_build_op(b, matmul, NULL, sx_narrow(b, x), w);
    if (!args->no_bias) {
        sx_value bias = sx_layer_weight(b, "bias", sx_type_of(SX_F32, args->units),
                                        args->bias_initializer, SX_INIT_ZEROS);
        y = sx_build_op(b, bias_add, NULL, y, bias);
    }
    return sx_activate(b, y, args->activation);
}

sx_value sx_dense_at(sx_builder *b, sx_value x, const sx_dense_args *args, const char *file,
                     int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_dense_args, args);
    if (!sx_layer_begin(b, "dense", args->name, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, build(b, x, args));
}
