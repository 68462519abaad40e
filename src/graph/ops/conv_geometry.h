/* The geometry of the windows of convolutions and pools: SAME, VALID, strides and dilations. Used
 * by the operators and by every backend's kernels.
 *
 *   along one axis, output position o reads input positions
 *
 *       o * stride - pad_before + k * dilation,   k = 0 .. kernel - 1
 *
 *   and those outside [0, in) are padding.
 *
 *   SAME    out = ceil(in / stride), padding split evenly, the odd one after   (TensorFlow's rule)
 *   VALID   out = floor((in - span) / stride) + 1, no padding; span = (kernel - 1) dilation + 1
 *   EXPLICIT  as VALID over in + pad_before + pad_after
 *
 * Source: TensorFlow api_docs/python/tf/nn, "Notes on padding". */
#ifndef SX_GRAPH_OPS_CONV_GEOMETRY_H
#define SX_GRAPH_OPS_CONV_GEOMETRY_H

#include "graph/ops/attrs.h"

typedef struct sx_conv_window {
    int64_t in, out, kernel, stride, dilation;
    int64_t pad_before, pad_after; /* padding that is actually read */
} sx_conv_window;

/* x [n, h.in, w.in, groups * c], filter [h.kernel, w.kernel, c, groups * o] (HWIO),
 * y [n, h.out, w.out, groups * o] */
typedef struct sx_conv_geometry {
    int64_t n; /* may be SX_BATCH */
    sx_conv_window h, w;
    int64_t groups, c, o; /* channels and filters of one group */
} sx_conv_geometry;

/* x [n, h.in, w.in, c], y [n, h.out, w.out, c] */
typedef struct sx_pool_geometry {
    int64_t n; /* may be SX_BATCH */
    sx_conv_window h, w;
    int64_t c;
} sx_pool_geometry;

/* Errors: INVALID_ARGUMENT, beginning with `op`. */
SX_MUST_USE sx_status sx_conv_geometry_of(const sx_conv2d_attrs *attrs, const sx_type *x,
                                          const sx_type *filter, sx_conv_geometry *out);
SX_MUST_USE sx_status sx_pool_geometry_of(const sx_pool2d_attrs *attrs, const sx_type *x,
                                          sx_pool_geometry *out);

/* For host kernels: the input position that output `o` reads with kernel element `k`, or -1 in
 * padding. */
static inline int64_t sx_conv_window_at(const sx_conv_window *w, int64_t o, int64_t k)
{
    int64_t i = o * w->stride - w->pad_before + k * w->dilation;
    return i >= 0 && i < w->in ? i : -1;
}

/* For host kernels: calls `visit` for every product x[...] w[...] that conv2d adds to a y[...];
 * `visit` updates one of the three from the other two. */
typedef void (*sx_conv_visit)(double *x, double *w, double *y);
void sx_conv_walk(const sx_conv2d_attrs *attrs, const sx_host_tensor *x,
                  const sx_host_tensor *filter, const sx_host_tensor *y, sx_conv_visit visit);
void sx_conv_into_y(double *x, double *w, double *y);
void sx_conv_into_x(double *x, double *w, double *y);
void sx_conv_into_filter(double *x, double *w, double *y);

/* For host kernels: visits every element of x that a window of y covers, one window after another,
 * each in row-major order. `count` is the number of the window's elements in the image. */
typedef void (*sx_pool_visit)(void *user, int64_t count, double *x, double *y);
void sx_pool_walk(const sx_pool2d_attrs *attrs, const sx_host_tensor *x, const sx_host_tensor *y,
                  sx_pool_visit visit, void *user);

/* The number of kernel elements of output `o` that are inside the image. */
int64_t sx_conv_window_count(const sx_conv_window *w, int64_t o);

/* Parts (op_def.h): of the image that a part of the outputs reads. */
void sx_conv_image_part(const sx_conv2d_attrs *attrs, const sx_type *x, const sx_type *filter,
                        const sx_type *y_part, sx_type *x_part);
void sx_pool_image_part(const sx_pool2d_attrs *attrs, const sx_type *x, const sx_type *y_part,
                        sx_type *x_part);
/* Pools: any part of image and result, of the same examples and channels. */
bool sx_pool_parts_fit(const void *attrs, const sx_type *in, const sx_type *out);

/* Shared by max_pool2d and avg_pool2d. */
void sx_tf_pool(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op);
sx_value sx_build_pool(sx_builder *b, const sx_op_def *op, sx_value x,
                       const sx_nn_pool2d_args *args, const char *file, int line);
#define SX_SAMPLE_POOL_(name_, attrs_, ...)                                        \
    {                                                                              \
        .name = (name_), .inputs = {__VA_ARGS__}, .n_inputs = 1, .attrs = (attrs_) \
    }
#define SX_POOL_LITERAL_(...) (&(const sx_pool2d_attrs){__VA_ARGS__})
#define SX_SAMPLES_POOL(fill_)                                                                     \
    SX_SAMPLE_POOL_("half", SX_POOL_LITERAL_(.window = {2, {2, 2}}),                               \
                    SX_SAMPLE_F32(fill_, SX_BATCH, 6, 4, 3)),                                      \
        SX_SAMPLE_POOL_("odd_valid", SX_POOL_LITERAL_(.window = {2, {2, 2}}),                      \
                        SX_SAMPLE_F32(fill_, SX_BATCH, 7, 5, 2)),                                  \
        SX_SAMPLE_POOL_(                                                                           \
            "overlap_same",                                                                        \
            SX_POOL_LITERAL_(.window = {2, {3, 3}}, .strides = {2, {2, 2}}, .padding = SX_SAME),   \
            SX_SAMPLE_F32(fill_, SX_BATCH, 7, 6, 2)),                                              \
        SX_SAMPLE_POOL_("uneven", SX_POOL_LITERAL_(.window = {2, {2, 3}}, .strides = {2, {1, 2}}), \
                        SX_SAMPLE_F32(fill_, SX_BATCH, 4, 7, 1)),                                  \
        SX_SAMPLE_POOL_("global", SX_POOL_LITERAL_(.window = {2, {4, 3}}),                         \
                        SX_SAMPLE_F32(fill_, 2, 4, 3, 5)),                                         \
        SX_SAMPLE_POOL_("one", SX_POOL_LITERAL_(.window = {2, {3, 3}}, .padding = SX_SAME),        \
                        SX_SAMPLE_F32(fill_, 1, 1, 1, 1))

#endif
