/* Dropout. See sx_dropout in sextant/nn.h; the operator dropout computes the mask. */
#include <string.h>

#include "nn/layer.h"

static sx_value build(sx_builder *b, sx_value x, double rate)
{
    if (!(rate >= 0 && rate < 1)) {
        sx_layer_fail(b, "dropout",
                      sx_error(SX_INVALID_ARGUMENT, "rate is %g, expected [0, 1)", rate));
        return SX_NO_VALUE;
    }
    if (sx_builder_mode(b) != SX_TRAIN || rate == 0) {
        return x;
    }
    const char *scope = b->scopes[b->depth];
    uint64_t key = sx_hash64(scope, strlen(scope));
    const sx_dropout_attrs attrs = {
        .rate = rate, .key_hi = (int64_t)(key >> 32), .key_lo = (int64_t)(key & UINT32_MAX)};
    return sx_build_op(b, dropout, &attrs, x, sx_seed_input(b), sx_global_step(b));
}

sx_value sx_dropout_at(sx_builder *b, sx_value x, double rate, const char *file, int line)
{
    if (!sx_layer_begin(b, "dropout", NULL, file, line)) {
        return SX_NO_VALUE;
    }
    return sx_layer_end(b, build(b, sx_narrow(b, x), rate));
}
