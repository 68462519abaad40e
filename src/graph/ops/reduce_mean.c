/* reduce_mean: y = reduce_sum(x) / size(x) over axes, so that the mean is over the whole batch, for
 * any batch size and number of shards; the gradient is that of its parts.
 *
 *   x          any shape, any float
 *   axes       none = all
 *   keep_dims  reduced axes stay, with size 1
 *   returns    x's dtype
 *
 * Numbers  as reduce_sum's and div's; for floats other than float32 and float64 the count is cast
 * Source   TensorFlow tf.reduce_mean */
#ifdef SX_PUBLIC
/* The mean over the axes (reduce_sum divided by size), for any batch size. */
sx_value sx_reduce_mean(sx_builder *b, sx_value x, const sx_reduce_args *args);
#endif

#include "graph/ops/common.h"

sx_value sx_reduce_mean_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                           int line)
{
    sx_value sum = sx_reduce_sum_at(b, x, args, file, line);
    sx_value size = sx_size_at(b, x, args, file, line);
    return sx_build_op(b, div, NULL, sum, sx_cast_like(b, size, sum));
}
