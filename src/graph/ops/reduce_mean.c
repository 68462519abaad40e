/* Functions that look like operators but are composed of several. */
#ifdef SX_PUBLIC
/* The mean over the axes (reduce_sum divided by size), for any batch size. */
sx_value sx_reduce_mean(sx_builder *b, sx_value x, const sx_reduce_args *args);
#endif

#include "graph/ops/common.h"

/* reduce_sum / size, so that the mean is over the whole batch, for any batch size and number of
 * shards. For float dtypes other than float32 and float64, the count is cast. */
sx_value sx_reduce_mean_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                           int line)
{
    sx_value sum = sx_reduce_sum_at(b, x, args, file, line);
    sx_value size = sx_size_at(b, x, args, file, line);
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    if (sx_type_of_value(b, size).dtype != sx_type_of_value(b, sum).dtype) {
        size = sx_cast_like(b, size, sum);
    }
    return sx_build_op(b, div, NULL, sum, size);
}
