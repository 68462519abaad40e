/* Flatten: [N, ...] -> [N, product]. See sx_flatten in sextant/nn.h. */
#include "base/checked.h"
#include "nn/layer.h"

static sx_value build(sx_builder *b, sx_value x)
{
    sx_type type = sx_type_of_value(b, x);
    if (type.rank < 1) {
        sx_layer_fail(b, "flatten",
                      sx_error(SX_INVALID_ARGUMENT, "input is a scalar, expected [N,...]"));
        return SX_NO_VALUE;
    }
    int64_t product = 1;
    for (int d = 1; d < type.rank; d++) {
        if (!sx_mul_i64(product, type.dims[d], &product)) {
            char text[SX_TYPE_TEXT];
            sx_layer_fail(b, "flatten",
                          sx_error(SX_INVALID_ARGUMENT, "input %s has too many elements",
                                   sx_type_format(&type, text, sizeof(text))));
            return SX_NO_VALUE;
        }
    }
    return sx_build_op(b, reshape, (&(sx_shape_attrs){.shape = {2, {type.dims[0], product}}}), x);
}

sx_value sx_flatten_at(sx_builder *b, sx_value x, const char *file, int line)
{
    if (!sx_layer_begin(b, "flatten", NULL, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, build(b, sx_narrow(b, x)));
}
