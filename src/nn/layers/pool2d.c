/* Pooling layers. See sx_max_pool2d, sx_average_pool2d, sx_global_average_pool2d in sextant/nn.h.
 */
#include <inttypes.h>

#include "nn/layer.h"

static sx_value pool(sx_builder *b, sx_value x, const sx_pool2d_args *args, const char *base,
                     const sx_op_def *op)
{
    if (!sx_layer_check_rank(b, base, x, 4, "[N,H,W,C]", "")) {
        return SX_NO_VALUE;
    }
    if (args->pool < 1 || args->strides < 0) {
        sx_layer_fail(b, base,
                      sx_error(SX_INVALID_ARGUMENT, "%s is %" PRId64 ", expected at least 1",
                               args->pool < 1 ? "pool" : "strides",
                               args->pool < 1 ? args->pool : args->strides));
        return SX_NO_VALUE;
    }
    int64_t s = args->strides == 0 ? args->pool : args->strides;
    const sx_pool2d_attrs attrs = {.window = {2, {args->pool, args->pool}},
                                   .strides = {2, {s, s}},
                                   .padding = (int32_t)args->padding};
    x = sx_narrow(b, x);
    return sx_build(b, op, &attrs, &x, 1);
}

sx_value sx_max_pool2d_at(sx_builder *b, sx_value x, const sx_pool2d_args *args, const char *file,
                          int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_pool2d_args, args);
    if (!sx_layer_begin(b, "max_pooling2d", args->name, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, pool(b, x, args, "max_pooling2d", &sx_op_max_pool2d));
}

sx_value sx_average_pool2d_at(sx_builder *b, sx_value x, const sx_pool2d_args *args,
                              const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_pool2d_args, args);
    if (!sx_layer_begin(b, "average_pooling2d", args->name, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, pool(b, x, args, "average_pooling2d", &sx_op_avg_pool2d));
}

sx_value sx_global_average_pool2d_at(sx_builder *b, sx_value x, const char *file, int line)
{
    const char *base = "global_average_pooling2d";
    if (!sx_layer_begin(b, base, NULL, file, line)) {
        return SX_NO_VALUE;
    }
    sx_value y = SX_NO_VALUE;
    if (sx_layer_check_rank(b, base, x, 4, "[N,H,W,C]", "")) {
        sx_type type = sx_type_of_value(b, x);
        double share = 1.0 / ((double)type.dims[1] * (double)type.dims[2]);
        const sx_reduce_attrs spatial = {.axes = {2, {1, 2}}};
        sx_value sum = sx_build_op(b, reduce_sum, &spatial, sx_widen(b, x));
        y = sx_narrow(b, sx_build_op(b, mul, NULL, sum, sx_constant_f32(b, share)));
    }
    return sx_layer_end(b, y);
}
