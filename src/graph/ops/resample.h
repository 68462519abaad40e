/* What the operators share that make images of another size: their operands, and weighted sums,
 * where each pixel along an axis is one of some pixels along that axis of the image. */
#ifndef SX_GRAPH_OPS_RESAMPLE_H
#define SX_GRAPH_OPS_RESAMPLE_H

#include "graph/ops/host_ops.h"

/* Images [N,H,W,C] of numbers, and an operand int32[2] that is the height and width of the result:
 * *out is dtype [N,height,width,C] as far as it is known. */
SX_MUST_USE sx_status sx_infer_resized(const char *what, const sx_type *images,
                                       const char *what_size, const sx_type *size, sx_dtype dtype,
                                       sx_type *out);
/* The type where it runs, of `n` images. INVALID_ARGUMENT: a height or width below 1;
 * RESOURCE_EXHAUSTED: as sx_require_made(). */
SX_MUST_USE sx_status sx_resized_type(int64_t n, const sx_type *images, const char *what_size,
                                      const sx_host_tensor *size, sx_dtype dtype, sx_type *out);

/* Pixel i is the sum of weight[k] times pixel at[k], for k in [i * most, (i + 1) * most). */
typedef struct sx_axis_weights {
    int64_t most;
    int64_t *at;
    double *weight;
} sx_axis_weights;

/* Room for `out` pixels of `most` each, zeroed; of the call's arena. */
SX_MUST_USE sx_status sx_axis_weights_make(const sx_kernel_call *c, int64_t out, int64_t most,
                                           sx_axis_weights *w);
/* Output 0, floats [N,H,W,C], from input 0, numbers [N,h,w,C]. */
SX_MUST_USE sx_status sx_resample(const sx_kernel_call *c, const sx_axis_weights *rows,
                                  const sx_axis_weights *columns);

/* resize_image's, along an axis of `in` pixels; of the call, attrs and arena are read. */
SX_MUST_USE sx_status sx_resize_image_weights(const sx_kernel_call *c, int64_t in, int64_t out,
                                              sx_axis_weights *w);
/* crop_and_resize's: the place along an axis of `in` pixels that pixel i of `out` between a and b
 * has, in float32. */
float sx_crop_place(int64_t i, int64_t out, float a, float b, int64_t in);

#endif
