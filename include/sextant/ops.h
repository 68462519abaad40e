/* The operators. Each function adds one node; what it computes, its shapes, dtypes and errors are
 * documented in sextant-operators(7). Those of one expression are in elementwise.h; the
 * declarations below come from the operators' files, src/graph/ops/NAME.c.
 *
 * Every function returns a value (the first output; sx_output_at() returns the others), or
 * SX_NO_VALUE after an error, which the builder keeps. Shapes broadcast as in NumPy; one dimension
 * of a shape may be the batch, SX_BATCH, or -c for c times the batch. Where a layer (sextant/nn.h)
 * has the plain name, the operator below it begins with sx_nn_, as in TensorFlow's tf.nn.
 *
 * Options are passed by name:
 *     y = sx_reduce_sum(b, x, .axes = SX_AXES(1, 2), .keep_dims = true);
 *     y = sx_nn_conv2d(b, x, filter, .strides = {2, 2}, .padding = SX_SAME);
 * The arguments `file` and `line` of the _at functions are the user's source line, for messages;
 * NULL keeps the builder's. */
#ifndef SEXTANT_OPS_H
#define SEXTANT_OPS_H

#include <sextant/elementwise.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SX_DIMS_(...)                                                            \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }

#define SX_VALUES_(...) \
    (const sx_value[]){__VA_ARGS__}, (int)(sizeof((sx_value[]){__VA_ARGS__}) / sizeof(sx_value))

typedef enum sx_padding {
    SX_VALID = 0, /* no padding */
    SX_SAME,      /* padding that makes the output size ceil(input / stride) */
    SX_EXPLICIT,  /* given by `pads` */
} sx_padding;

/* Axes of a value: SX_AXES(1, 2); -1 is the last. Empty means all. */
typedef struct sx_axes {
    int n;
    int v[SX_MAX_RANK];
} sx_axes;
#define SX_AXES(...) \
    ((sx_axes){.n = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .v = {__VA_ARGS__}})

/* Output `i` of the node whose first output is `first`: sx_output_at(moments, 1) is the variance.
 */
SX_API sx_value sx_output_at(sx_value first, int i);

/* ---- Operators, written by tools/gen-ops: do not edit ---- */

/* ---- Elementwise ---- */

/* Elementwise: max(x, 0) - x z + log(1 + exp(-|x|)). */
SX_API sx_value sx_nn_sigmoid_cross_entropy_at(sx_builder *b, sx_value logits, sx_value labels,
                                               const char *file, int line);
#define sx_nn_sigmoid_cross_entropy(b, logits, labels) \
    sx_nn_sigmoid_cross_entropy_at((b), (logits), (labels), SX_HERE_)

/* x */
SX_API sx_value sx_identity_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_identity(b, x) sx_identity_at((b), (x), SX_HERE_)

/* x, but without a gradient */
SX_API sx_value sx_stop_gradient_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_stop_gradient(b, x) sx_stop_gradient_at((b), (x), SX_HERE_)

/* x in another dtype. */
SX_API sx_value sx_cast_at(sx_builder *b, sx_value x, sx_dtype dtype, const char *file, int line);
#define sx_cast(b, x, dtype) sx_cast_at((b), (x), (dtype), SX_HERE_)

/* The bytes of x as elements of another dtype: float32 [N,3] as uint8 is [N,3,4]. */
SX_API sx_value sx_bitcast_at(sx_builder *b, sx_value x, sx_dtype dtype, const char *file,
                              int line);
#define sx_bitcast(b, x, dtype) sx_bitcast_at((b), (x), (dtype), SX_HERE_)

/* x if positive, otherwise alpha x. */
SX_API sx_value sx_leaky_relu_at(sx_builder *b, sx_value x, double alpha, const char *file,
                                 int line);
#define sx_leaky_relu(b, x, alpha) sx_leaky_relu_at((b), (x), (alpha), SX_HERE_)

/* x if positive, otherwise alpha (eˣ - 1). */
SX_API sx_value sx_elu_at(sx_builder *b, sx_value x, double alpha, const char *file, int line);
#define sx_elu(b, x, alpha) sx_elu_at((b), (x), (alpha), SX_HERE_)

/* min(max(x, low), high). */
SX_API sx_value sx_clip_at(sx_builder *b, sx_value x, double low, double high, const char *file,
                           int line);
#define sx_clip(b, x, low, high) sx_clip_at((b), (x), (low), (high), SX_HERE_)

/* x << y, and x >> y, of integers; y is limited to 0 .. bits - 1. */
SX_API sx_value sx_shift_left_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_shift_left(b, x, y) sx_shift_left_at((b), (x), (y), SX_HERE_)
SX_API sx_value sx_shift_right_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                  int line);
#define sx_shift_right(b, x, y) sx_shift_right_at((b), (x), (y), SX_HERE_)

/* How many bits of each integer are 1; uint8. */
SX_API sx_value sx_population_count_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_population_count(b, x) sx_population_count_at((b), (x), SX_HERE_)

/* x where cond is true, otherwise y. */
SX_API sx_value sx_select_at(sx_builder *b, sx_value cond, sx_value x, sx_value y, const char *file,
                             int line);
#define sx_select(b, cond, x, y) sx_select_at((b), (cond), (x), (y), SX_HERE_)

/* ---- Shapes ---- */

/* sx_reshape(b, x, SX_BATCH, 784). If x has the batch, so has the result, with the same number of
 * elements before it: [N,T,D] can be [T*N,D], sx_reshape(b, x, -T, D), and back. A shape that is
 * computed at run time is an operand of sx_function_node(). */
SX_API sx_value sx_reshape_at(sx_builder *b, sx_value x, int rank, const int64_t *dims,
                              const char *file, int line);
#define sx_reshape(b, x, ...) sx_reshape_at((b), (x), SX_DIMS_(__VA_ARGS__), SX_HERE_)

/* sx_broadcast_to(b, x, SX_BATCH, 10) */
SX_API sx_value sx_broadcast_to_at(sx_builder *b, sx_value x, int rank, const int64_t *dims,
                                   const char *file, int line);
#define sx_broadcast_to(b, x, ...) sx_broadcast_to_at((b), (x), SX_DIMS_(__VA_ARGS__), SX_HERE_)

/* sx_transpose(b, x, 0, 3, 1, 2): NHWC to NCHW. */
SX_API sx_value sx_transpose_at(sx_builder *b, sx_value x, int rank, const int64_t *perm,
                                const char *file, int line);
#define sx_transpose(b, x, ...) sx_transpose_at((b), (x), SX_DIMS_(__VA_ARGS__), SX_HERE_)

/* The n values xs joined along `axis`, -1 = the last: sx_concat(b, -1, x, y). */
SX_API sx_value sx_concat_at(sx_builder *b, const sx_value *xs, int n, int axis, const char *file,
                             int line);
#define sx_concat(b, axis, ...) sx_concat_at((b), SX_VALUES_(__VA_ARGS__), (axis), SX_HERE_)

typedef struct sx_slice_args {
    size_t struct_size;
    int64_t begin[SX_MAX_RANK]; /* 0 for the batch */
    int64_t size[SX_MAX_RANK];  /* for the batch that of x: SX_BATCH, or -c */
} sx_slice_args;

/* A block of x: sx_slice(b, x, .begin = {0, 2}, .size = {SX_BATCH, 3}). */
SX_API sx_value sx_slice_at(sx_builder *b, sx_value x, const sx_slice_args *args, const char *file,
                            int line);
#define sx_slice(b, x, ...) sx_slice_at((b), (x), SX_ARGS_(sx_slice_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_pad_args {
    size_t struct_size;
    int64_t before[SX_MAX_RANK], after[SX_MAX_RANK]; /* 0 for the batch */
    double value;
} sx_pad_args;

/* x padded with `value`: sx_pad(b, x, .before = {0, 1, 1}, .after = {0, 1, 1}). */
SX_API sx_value sx_pad_at(sx_builder *b, sx_value x, const sx_pad_args *args, const char *file,
                          int line);
#define sx_pad(b, x, ...) sx_pad_at((b), (x), SX_ARGS_(sx_pad_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_mirror_pad_args {
    size_t struct_size;
    int64_t before[SX_MAX_RANK], after[SX_MAX_RANK]; /* 0 for the batch */
    bool symmetric;                                  /* the edge is repeated */
} sx_mirror_pad_args;

/* x padded by its reflection: sx_mirror_pad(b, x, .before = {0, 1, 1}, .after = {0, 1, 1}). */
SX_API sx_value sx_mirror_pad_at(sx_builder *b, sx_value x, const sx_mirror_pad_args *args,
                                 const char *file, int line);
#define sx_mirror_pad(b, x, ...) \
    sx_mirror_pad_at((b), (x), SX_ARGS_(sx_mirror_pad_args, __VA_ARGS__), SX_HERE_)

/* x turned round along the axes: sx_reverse(b, x, SX_AXES(1)). */
SX_API sx_value sx_reverse_at(sx_builder *b, sx_value x, sx_axes axes, const char *file, int line);
#define sx_reverse(b, x, axes) sx_reverse_at((b), (x), (axes), SX_HERE_)

/* The first lengths[i] elements along seq_axis in reverse order, i being the place along
 * batch_axis: sx_reverse_sequence(b, x, lengths, 1, 0) of x [N,S,C] and lengths [N]. */
SX_API sx_value sx_reverse_sequence_at(sx_builder *b, sx_value x, sx_value lengths, int seq_axis,
                                       int batch_axis, const char *file, int line);
#define sx_reverse_sequence(b, x, lengths, seq_axis, batch_axis) \
    sx_reverse_sequence_at((b), (x), (lengths), (seq_axis), (batch_axis), SX_HERE_)

/* x repeated along its dimensions: sx_tile(b, x, 1, 2) of [N,3] is [N,6]. */
SX_API sx_value sx_tile_at(sx_builder *b, sx_value x, int rank, const int64_t *multiples,
                           const char *file, int line);
#define sx_tile(b, x, ...) sx_tile_at((b), (x), SX_DIMS_(__VA_ARGS__), SX_HERE_)

/* x [N,S...,R...] with blocks of its `n` axes S as examples: [N block...,S/block...,R...].
 * pads[2 n]: {before, after} of each axis. */
SX_API sx_value sx_space_to_batch_at(sx_builder *b, sx_value x, int n, const int64_t *block,
                                     const int64_t *pads, const char *file, int line);
#define sx_space_to_batch(b, x, n, block, pads) \
    sx_space_to_batch_at((b), (x), (n), (block), (pads), SX_HERE_)

/* x [N block...,S...,R...] with parts of axis 0 as blocks of its `n` axes S: [N,S block...,R...],
 * cropped by crops[2 n], {before, after} of each axis. */
SX_API sx_value sx_batch_to_space_at(sx_builder *b, sx_value x, int n, const int64_t *block,
                                     const int64_t *crops, const char *file, int line);
#define sx_batch_to_space(b, x, n, block, crops) \
    sx_batch_to_space_at((b), (x), (n), (block), (crops), SX_HERE_)

/* ---- Reductions ---- */

typedef struct sx_reduce_args {
    size_t struct_size;
    sx_axes axes; /* empty = all */
    bool keep_dims;
} sx_reduce_args;

/* The sum over the axes. */
SX_API sx_value sx_reduce_sum_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                 const char *file, int line);
#define sx_reduce_sum(b, x, ...) \
    sx_reduce_sum_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* The maximum over the axes. */
SX_API sx_value sx_reduce_max_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                 const char *file, int line);
#define sx_reduce_max(b, x, ...) \
    sx_reduce_max_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* The minimum over the axes. */
SX_API sx_value sx_reduce_min_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                 const char *file, int line);
#define sx_reduce_min(b, x, ...) \
    sx_reduce_min_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* The product over the axes. */
SX_API sx_value sx_reduce_prod_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                  const char *file, int line);
#define sx_reduce_prod(b, x, ...) \
    sx_reduce_prod_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* Whether every element over the axes is true. */
SX_API sx_value sx_reduce_all_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                 const char *file, int line);
#define sx_reduce_all(b, x, ...) \
    sx_reduce_all_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* Whether some element over the axes is true. */
SX_API sx_value sx_reduce_any_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                 const char *file, int line);
#define sx_reduce_any(b, x, ...) \
    sx_reduce_any_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* The number of elements along the axes, a float scalar; keep_dims is ignored. */
SX_API sx_value sx_size_at(sx_builder *b, sx_value x, const sx_reduce_args *args, const char *file,
                           int line);
#define sx_size(b, x, ...) sx_size_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* The mean over the axes (reduce_sum divided by size), for any batch size. */
SX_API sx_value sx_reduce_mean_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                                  const char *file, int line);
#define sx_reduce_mean(b, x, ...) \
    sx_reduce_mean_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

/* The mean (output 0) and population variance (output 1) over the axes, which are dropped. */
SX_API sx_value sx_moments_at(sx_builder *b, sx_value x, const sx_reduce_args *args,
                              const char *file, int line);
#define sx_moments(b, x, ...) \
    sx_moments_at((b), (x), SX_ARGS_(sx_reduce_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_argmax_args {
    size_t struct_size;
    int axis;       /* -1 = the last */
    sx_dtype dtype; /* SX_I32 by default, or SX_I64 */
} sx_argmax_args;

/* The index of the maximum along an axis; among equal elements, the first. */
SX_API sx_value sx_argmax_at(sx_builder *b, sx_value x, const sx_argmax_args *args,
                             const char *file, int line);
#define sx_argmax(b, x, ...) sx_argmax_at((b), (x), SX_ARGS_(sx_argmax_args, __VA_ARGS__), SX_HERE_)

/* The index of the minimum along an axis; among equal elements, the first. */
SX_API sx_value sx_argmin_at(sx_builder *b, sx_value x, const sx_argmax_args *args,
                             const char *file, int line);
#define sx_argmin(b, x, ...) sx_argmin_at((b), (x), SX_ARGS_(sx_argmax_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_cumulative_args {
    size_t struct_size;
    int axis;       /* -1 = the last */
    bool exclusive; /* without the element itself */
    bool reverse;   /* from the end */
} sx_cumulative_args;

/* The sum of the elements up to each one along an axis. */
SX_API sx_value sx_cumsum_at(sx_builder *b, sx_value x, const sx_cumulative_args *args,
                             const char *file, int line);
#define sx_cumsum(b, x, ...) \
    sx_cumsum_at((b), (x), SX_ARGS_(sx_cumulative_args, __VA_ARGS__), SX_HERE_)

/* The product of the elements up to each one along an axis. */
SX_API sx_value sx_cumprod_at(sx_builder *b, sx_value x, const sx_cumulative_args *args,
                              const char *file, int line);
#define sx_cumprod(b, x, ...) \
    sx_cumprod_at((b), (x), SX_ARGS_(sx_cumulative_args, __VA_ARGS__), SX_HERE_)

/* The logarithm of the sum of the exponentials of the elements up to each one along an axis. */
SX_API sx_value sx_cumulative_logsumexp_at(sx_builder *b, sx_value x,
                                           const sx_cumulative_args *args, const char *file,
                                           int line);
#define sx_cumulative_logsumexp(b, x, ...) \
    sx_cumulative_logsumexp_at((b), (x), SX_ARGS_(sx_cumulative_args, __VA_ARGS__), SX_HERE_)

/* Whether every element of the n values is finite: a bool scalar. */
SX_API sx_value sx_all_finite_at(sx_builder *b, const sx_value *xs, int n, const char *file,
                                 int line);
#define sx_all_finite(b, xs, n) sx_all_finite_at((b), (xs), (n), SX_HERE_)

/* ---- Products ---- */

typedef struct sx_matmul_args {
    size_t struct_size;
    bool transpose_a, transpose_b;
} sx_matmul_args;

/* The product of two matrices, or of stacks of them, [..., M, K] by [..., K, N]. */
SX_API sx_value sx_matmul_at(sx_builder *b, sx_value lhs, sx_value rhs, const sx_matmul_args *args,
                             const char *file, int line);
#define sx_matmul(b, lhs, rhs, ...) \
    sx_matmul_at((b), (lhs), (rhs), SX_ARGS_(sx_matmul_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_nn_conv2d_args {
    size_t struct_size;
    int strides[2];   /* {h, w}; {2} = {2, 2}; default 1 */
    int dilations[2]; /* as strides */
    sx_padding padding;
    int pads[4]; /* top, bottom, left, right; for SX_EXPLICIT */
    int groups;  /* default 1; the number of channels = depthwise */
} sx_nn_conv2d_args;

/* x [N,H,W,C], filter [KH,KW,C/groups,F] */
SX_API sx_value sx_nn_conv2d_at(sx_builder *b, sx_value x, sx_value filter,
                                const sx_nn_conv2d_args *args, const char *file, int line);
#define sx_nn_conv2d(b, x, filter, ...) \
    sx_nn_conv2d_at((b), (x), (filter), SX_ARGS_(sx_nn_conv2d_args, __VA_ARGS__), SX_HERE_)

/* ---- Pooling ---- */

typedef struct sx_nn_pool2d_args {
    size_t struct_size;
    int window[2];      /* {h, w}; {2} = {2, 2} */
    int strides[2];     /* default: the window */
    sx_padding padding; /* SX_VALID or SX_SAME */
} sx_nn_pool2d_args;

/* x [N,H,W,C]: the maximum of each window. */
SX_API sx_value sx_nn_max_pool2d_at(sx_builder *b, sx_value x, const sx_nn_pool2d_args *args,
                                    const char *file, int line);
#define sx_nn_max_pool2d(b, x, ...) \
    sx_nn_max_pool2d_at((b), (x), SX_ARGS_(sx_nn_pool2d_args, __VA_ARGS__), SX_HERE_)

/* x [N,H,W,C]: the mean of each window, without padding. */
SX_API sx_value sx_nn_avg_pool2d_at(sx_builder *b, sx_value x, const sx_nn_pool2d_args *args,
                                    const char *file, int line);
#define sx_nn_avg_pool2d(b, x, ...) \
    sx_nn_avg_pool2d_at((b), (x), SX_ARGS_(sx_nn_pool2d_args, __VA_ARGS__), SX_HERE_)

/* ---- Normalization ---- */

/* (x - mean) rsqrt(variance + epsilon) scale + offset, each [C]; for inference. */
SX_API sx_value sx_nn_batch_norm_at(sx_builder *b, sx_value x, sx_value scale, sx_value offset,
                                    sx_value mean, sx_value variance, double epsilon,
                                    const char *file, int line);
#define sx_nn_batch_norm(b, x, scale, offset, mean, variance, epsilon) \
    sx_nn_batch_norm_at((b), (x), (scale), (offset), (mean), (variance), (epsilon), SX_HERE_)

/* The same with mean and variance being the moments of x over all but the last axis; the gradient
 * with respect to x includes them. */
SX_API sx_value sx_nn_batch_norm_train_at(sx_builder *b, sx_value x, sx_value scale,
                                          sx_value offset, sx_value mean, sx_value variance,
                                          double epsilon, const char *file, int line);
#define sx_nn_batch_norm_train(b, x, scale, offset, mean, variance, epsilon) \
    sx_nn_batch_norm_train_at((b), (x), (scale), (offset), (mean), (variance), (epsilon), SX_HERE_)

/* ---- Quantization ---- */

typedef struct sx_fake_quant_args {
    size_t struct_size;
    int num_bits;      /* 2 to 16; 0 = 8 */
    bool narrow_range; /* without the lowest of the integers */
} sx_fake_quant_args;

/* x as after a conversion to integers and back: training that knows of it learns to bear it. low
 * and high are scalars, or vectors with a number for each of the last axis; they have gradients,
 * too. */
SX_API sx_value sx_fake_quant_at(sx_builder *b, sx_value x, sx_value low, sx_value high,
                                 const sx_fake_quant_args *args, const char *file, int line);
#define sx_fake_quant(b, x, low, high, ...) \
    sx_fake_quant_at((b), (x), (low), (high), SX_ARGS_(sx_fake_quant_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_quantize_dequantize_args {
    size_t struct_size;
    int num_bits;          /* 0 = 8 */
    bool unsigned_input;   /* the integers are not signed */
    bool narrow_range;     /* without the lowest of the integers */
    bool half_up;          /* halves are rounded upwards, not to the even integer */
    bool straight_through; /* the gradient passes outside of the range, too */
    bool per_channel;      /* low and high are vectors along `axis` */
    int axis;              /* -1 = the last */
} sx_quantize_dequantize_args;

/* x, clipped to about [low, high], as after a conversion to integers and back that keeps 0. */
SX_API sx_value sx_quantize_dequantize_at(sx_builder *b, sx_value x, sx_value low, sx_value high,
                                          const sx_quantize_dequantize_args *args, const char *file,
                                          int line);
#define sx_quantize_dequantize(b, x, low, high, ...)   \
    sx_quantize_dequantize_at((b), (x), (low), (high), \
                              SX_ARGS_(sx_quantize_dequantize_args, __VA_ARGS__), SX_HERE_)

/* ---- Indices ---- */

/* 0, 1, 2, … along `axis` of a static shape. */
SX_API sx_value sx_iota_at(sx_builder *b, sx_type type, int axis, const char *file, int line);
#define sx_iota(b, type, axis) sx_iota_at((b), (type), (axis), SX_HERE_)

typedef struct sx_one_hot_args {
    size_t struct_size;
    int64_t depth;
    double on, off; /* both 0: 1 and 0 */
    sx_dtype dtype; /* default float32 */
} sx_one_hot_args;

/* indices [...] -> [..., depth] */
SX_API sx_value sx_one_hot_at(sx_builder *b, sx_value indices, const sx_one_hot_args *args,
                              const char *file, int line);
#define sx_one_hot(b, indices, ...) \
    sx_one_hot_at((b), (indices), SX_ARGS_(sx_one_hot_args, __VA_ARGS__), SX_HERE_)

/* Rows of table [V, ...] by index. */
SX_API sx_value sx_gather_at(sx_builder *b, sx_value table, sx_value indices, const char *file,
                             int line);
#define sx_gather(b, table, indices) sx_gather_at((b), (table), (indices), SX_HERE_)

/* Slices of a table along an axis, -1 = its last: [N,V,J] by [I] is [N,I,J] along axis 1. The first
 * `batch_dims` dimensions of table and indices go together: [N,V,J] by [N,I] is [N,I,J] with 1. */
SX_API sx_value sx_gather_along_at(sx_builder *b, sx_value table, sx_value indices, int axis,
                                   int batch_dims, const char *file, int line);
#define sx_gather_along(b, table, indices, axis, batch_dims) \
    sx_gather_along_at((b), (table), (indices), (axis), (batch_dims), SX_HERE_)

/* Slices of x [S...,J...] at indices [I...,K], K the number of S: [I...,J...]. */
SX_API sx_value sx_gather_nd_at(sx_builder *b, sx_value x, sx_value indices, const char *file,
                                int line);
#define sx_gather_nd(b, x, indices) sx_gather_nd_at((b), (x), (indices), SX_HERE_)

typedef enum sx_scatter {
    SX_SCATTER_UPDATE,
    SX_SCATTER_ADD,
    SX_SCATTER_SUB,
    SX_SCATTER_MUL,
    SX_SCATTER_MIN,
    SX_SCATTER_MAX,
} sx_scatter;

/* x [S...,J...] with its slices at indices [I...,K] updated by those of u [I...,J...]. */
SX_API sx_value sx_tensor_scatter_at(sx_builder *b, sx_value x, sx_value indices, sx_value u,
                                     sx_scatter how, const char *file, int line);
#define sx_tensor_scatter(b, x, indices, u, how) \
    sx_tensor_scatter_at((b), (x), (indices), (u), (how), SX_HERE_)

/* The k largest elements along the last axis, in descending order; output 1: int32 indices. */
SX_API sx_value sx_top_k_at(sx_builder *b, sx_value x, int64_t k, const char *file, int line);
#define sx_top_k(b, x, k) sx_top_k_at((b), (x), (k), SX_HERE_)

/* Whether the target is among the k largest: predictions [N,C], targets [N] -> bool [N] */
SX_API sx_value sx_in_top_k_at(sx_builder *b, sx_value predictions, sx_value targets, int64_t k,
                               const char *file, int line);
#define sx_in_top_k(b, predictions, targets, k) \
    sx_in_top_k_at((b), (predictions), (targets), (k), SX_HERE_)

/* ---- Classification ---- */

/* softmax over the last axis */
SX_API sx_value sx_softmax_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_softmax(b, x) sx_softmax_at((b), (x), SX_HERE_)

/* The logarithm of softmax, over the last axis */
SX_API sx_value sx_log_softmax_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_log_softmax(b, x) sx_log_softmax_at((b), (x), SX_HERE_)

/* logits [N,C], labels int32 or int64 [N] -> loss [N]; output 1 is its gradient [N,C]. */
SX_API sx_value sx_nn_sparse_softmax_cross_entropy_at(sx_builder *b, sx_value logits,
                                                      sx_value labels, const char *file, int line);
#define sx_nn_sparse_softmax_cross_entropy(b, logits, labels) \
    sx_nn_sparse_softmax_cross_entropy_at((b), (logits), (labels), SX_HERE_)

/* logits [N,C], labels [N,C] -> loss [N]; output 1 is its gradient [N,C]. */
SX_API sx_value sx_nn_softmax_cross_entropy_at(sx_builder *b, sx_value logits, sx_value labels,
                                               const char *file, int line);
#define sx_nn_softmax_cross_entropy(b, logits, labels) \
    sx_nn_softmax_cross_entropy_at((b), (logits), (labels), SX_HERE_)

/* ---- Randomness ---- */

typedef struct sx_nn_dropout_args {
    size_t struct_size;
    double rate;  /* the fraction that is dropped, in [0, 1) */
    uint64_t key; /* different for each layer: a hash of the scope's name */
} sx_nn_dropout_args;

/* seed uint32[2], step int64 scalar */
SX_API sx_value sx_nn_dropout_at(sx_builder *b, sx_value x, sx_value seed, sx_value step,
                                 const sx_nn_dropout_args *args, const char *file, int line);
#define sx_nn_dropout(b, x, seed, step, ...) \
    sx_nn_dropout_at((b), (x), (seed), (step), SX_ARGS_(sx_nn_dropout_args, __VA_ARGS__), SX_HERE_)

/* ---- Strings ---- */

typedef struct sx_string_split_padded_args {
    size_t struct_size;
    int64_t length;
    const char *separator; /* NULL or "": white space */
} sx_string_split_padded_args;

/* x [N] -> the first .length parts of each string [N, length]; what fills up is "".
 * tf.strings.split(x, separator).to_tensor(shape=[None, length]). */
SX_API sx_value sx_string_split_padded_at(sx_builder *b, sx_value x,
                                          const sx_string_split_padded_args *args, const char *file,
                                          int line);
#define sx_string_split_padded(b, x, ...)                                                   \
    sx_string_split_padded_at((b), (x), SX_ARGS_(sx_string_split_padded_args, __VA_ARGS__), \
                              SX_HERE_)

/* ---- Strings, on the host: in preprocessing and functions ---- */

/* ASCII's letters in lower case. */
SX_API sx_value sx_string_lower_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_string_lower(b, x) sx_string_lower_at((b), (x), SX_HERE_)

/* tf.strings.to_hash_bucket_fast: an int64 in [0, num_buckets) for each string. */
SX_API sx_value sx_string_to_hash_bucket_at(sx_builder *b, sx_value x, int64_t num_buckets,
                                            const char *file, int line);
#define sx_string_to_hash_bucket(b, x, num_buckets) \
    sx_string_to_hash_bucket_at((b), (x), (num_buckets), SX_HERE_)

typedef struct sx_vocabulary_lookup_args {
    size_t struct_size;
    const char *file;         /* a word on each line; or NULL, and */
    const char *const *words; /* [n_words] */
    int n_words;
    int64_t first_id;      /* the number of the first word */
    int64_t default_value; /* of strings that are not in the vocabulary */
} sx_vocabulary_lookup_args;

/* The number of each string in a vocabulary, int64: its line, from .first_id on. The words become
 * part of the graph; an exported model has them as an asset. Errors: INVALID_ARGUMENT: no words, an
 * empty one, one that is there twice; NOT_FOUND: the file. */
SX_API sx_value sx_vocabulary_lookup_at(sx_builder *b, sx_value x,
                                        const sx_vocabulary_lookup_args *args, const char *file,
                                        int line);
#define sx_vocabulary_lookup(b, x, ...) \
    sx_vocabulary_lookup_at((b), (x), SX_ARGS_(sx_vocabulary_lookup_args, __VA_ARGS__), SX_HERE_)

/* ---- Optimizer steps ---- */

/* Each returns the new variable; the other outputs are the new slots, in the order of the
 * arguments. If `ok` is false, nothing changes. */

/* var - lr gradient */
SX_API sx_value sx_apply_sgd_at(sx_builder *b, sx_value var, sx_value gradient, sx_value lr,
                                sx_value ok, const char *file, int line);
#define sx_apply_sgd(b, var, gradient, lr, ok) \
    sx_apply_sgd_at((b), (var), (gradient), (lr), (ok), SX_HERE_)

typedef struct sx_apply_momentum_args {
    size_t struct_size;
    double momentum;
    bool nesterov;
} sx_apply_momentum_args;

/* TensorFlow's momentum: accum' = momentum accum + gradient, var' = var - lr accum'. */
SX_API sx_value sx_apply_momentum_at(sx_builder *b, sx_value var, sx_value accum, sx_value gradient,
                                     sx_value lr, sx_value ok, const sx_apply_momentum_args *args,
                                     const char *file, int line);
#define sx_apply_momentum(b, var, accum, gradient, lr, ok, ...)       \
    sx_apply_momentum_at((b), (var), (accum), (gradient), (lr), (ok), \
                         SX_ARGS_(sx_apply_momentum_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_apply_rmsprop_args {
    size_t struct_size;
    double rho, momentum, epsilon;
    bool centered;
} sx_apply_rmsprop_args;

/* `mean` is used when centered, `mom` when momentum > 0; SX_NO_VALUE otherwise. */
SX_API sx_value sx_apply_rmsprop_at(sx_builder *b, sx_value var, sx_value rms, sx_value mean,
                                    sx_value mom, sx_value gradient, sx_value lr, sx_value ok,
                                    const sx_apply_rmsprop_args *args, const char *file, int line);
#define sx_apply_rmsprop(b, var, rms, mean, mom, gradient, lr, ok, ...)           \
    sx_apply_rmsprop_at((b), (var), (rms), (mean), (mom), (gradient), (lr), (ok), \
                        SX_ARGS_(sx_apply_rmsprop_args, __VA_ARGS__), SX_HERE_)

typedef struct sx_apply_adam_args {
    size_t struct_size;
    double beta1, beta2, epsilon;
} sx_apply_adam_args;

/* `step`, an int64 scalar: the number of updates before this one. */
SX_API sx_value sx_apply_adam_at(sx_builder *b, sx_value var, sx_value m, sx_value v,
                                 sx_value gradient, sx_value lr, sx_value step, sx_value ok,
                                 const sx_apply_adam_args *args, const char *file, int line);
#define sx_apply_adam(b, var, m, v, gradient, lr, step, ok, ...)           \
    sx_apply_adam_at((b), (var), (m), (v), (gradient), (lr), (step), (ok), \
                     SX_ARGS_(sx_apply_adam_args, __VA_ARGS__), SX_HERE_)

/* ---- End of what tools/gen-ops writes ---- */

#ifdef __cplusplus
}
#endif
#endif
