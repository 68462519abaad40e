/* L2 regularization as a term of the loss. See optimizer.h. */
#include <string.h>

#include "graph/ops/attrs.h"
#include "nn/optimizer.h"

/* Weight decay would pull a batch norm's scale to 0 instead of 1. */
bool sx_is_batch_norms(const char *variable)
{
    const char *leaf = strrchr(variable, '/');
    return leaf != NULL && (strcmp(leaf, "/gamma") == 0 || strcmp(leaf, "/beta") == 0);
}

sx_value sx_build_square_sum(sx_builder *b, sx_value x)
{
    sx_reduce_attrs all = {.axes = {.n = sx_type_of_value(b, x).rank}};
    for (int i = 0; i < all.axes.n; i++) {
        all.axes.v[i] = i;
    }
    return sx_build_op(b, reduce_sum, &all, sx_build_op(b, mul, NULL, x, x));
}

sx_value sx_build_l2(sx_builder *b, double rate, const sx_value *weights, const char *const *names,
                     int n)
{
    sx_value sum = SX_NO_VALUE;
    sx_scope_begin(b, "l2", NULL);
    for (int i = 0; i < n; i++) {
        if (!sx_is_batch_norms(names[i])) {
            sx_value one = sx_build_square_sum(b, weights[i]);
            sum = sx_value_is(sum) ? sx_build_op(b, add, NULL, sum, one) : one;
        }
    }
    if (sx_value_is(sum)) {
        sum = sx_build_op(b, mul, NULL, sum, sx_constant_f32(b, rate / 2));
    }
    sx_scope_end(b);
    return sum;
}
