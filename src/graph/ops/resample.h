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
    bool zeros; /* weights of 0 count, too: of infinity they make NaN */
} sx_axis_weights;

/* Room for `out` pixels of `most` each, zeroed; of the call's arena. */
SX_MUST_USE sx_status sx_axis_weights_make(const sx_kernel_call *c, int64_t out, int64_t most,
                                           sx_axis_weights *w);
/* Output 0, floats [N,H,W,C], from input 0, numbers [N,h,w,C]. */
SX_MUST_USE sx_status sx_resample(const sx_kernel_call *c, const sx_axis_weights *rows,
                                  const sx_axis_weights *columns);

/* Back: output 0 [N,h,w,C] is what pixels of input 0 [N,H,W,C], which were such sums of its own,
 * add to those. */
SX_MUST_USE sx_status sx_resample_back(const sx_kernel_call *c, const sx_axis_weights *rows,
                                       const sx_axis_weights *columns);
/* scale_and_translate's, along axis `axis`, 0 or 1, of `in` pixels; of the call, attrs, arena and
 * operands 2 and 3, scale and translation, are read. INVALID_ARGUMENT: these are not [2], or a
 * scale is not positive. */
SX_MUST_USE sx_status sx_scale_and_translate_weights(const sx_kernel_call *c, int64_t in,
                                                     int64_t out, int axis, sx_axis_weights *w);
/* INVALID_ARGUMENT: scale_and_translate has no such kernel. */
SX_MUST_USE sx_status sx_require_kernel(const char *name);
/* The dtypes and ranks of dy [N,h,w,C], floats, and images [N,H,W,C], whose type the gradient has.
 */
SX_MUST_USE sx_status sx_infer_resample_grad(sx_infer_context *c);
/* INVALID_ARGUMENT (running): the two have no pixels, other channels or numbers of images. */
SX_MUST_USE sx_status sx_check_resample_grad(const sx_kernel_call *c);
/* int32 [2]: the height and width of images x. */
sx_value sx_size_of_images(sx_builder *b, sx_value x);
/* resize_image's, along an axis of `in` pixels; of the call, attrs and arena are read. */
SX_MUST_USE sx_status sx_resize_image_weights(const sx_kernel_call *c, int64_t in, int64_t out,
                                              sx_axis_weights *w);
/* Whether its pixels are those of x: bilinear, of the same size. */
bool sx_resize_image_copies(const void *attrs, const sx_type *x, const sx_type *y);
/* Of its attributes, sx_resize_image_attrs: pixels of the image for one of the result. */
float sx_resize_image_scale(const void *attrs, int64_t in, int64_t out);
/* crop_and_resize's: the place along an axis of `in` pixels that pixel i of `out` between a and b
 * has, in float32. */
float sx_crop_place(int64_t i, int64_t out, float a, float b, int64_t in);
/* crop_and_resize and its gradients. Pixel (i, j) of a crop lies between 4 pixels of its image. */
typedef struct sx_crop_pixel {
    int64_t at[4];       /* top left, top right, bottom left, bottom right: pixels of all images */
    double down, across; /* how far from the first */
    int64_t nearest;
} sx_crop_pixel;
/* false: it lies outside of the image. Boxes [n,4] and numbers of images [n] are tensors of the
 * call; `crop` is [n,height,width,C], `images` [N,H,W,C]. */
bool sx_crop_pixel_of(const sx_host_tensor *boxes, const sx_host_tensor *box_ind,
                      const sx_type *crop, const sx_type *images, int64_t n, int64_t i, int64_t j,
                      sx_crop_pixel *out);
/* INVALID_ARGUMENT: no pixels, sizes of boxes and box_ind that differ, an image that there is not.
 */
SX_MUST_USE sx_status sx_check_crops(const sx_type *images, const sx_host_tensor *boxes,
                                     const sx_host_tensor *box_ind);

#endif
