/* Attribute structs of the operators that have attributes: what sx_node.attrs points to.
 *
 * Conventions. Axes are normalized: counted from the front, ascending, each once (the public
 * functions accept -1 for the last). A list that may have the batch, c*N as -c, is an
 * SX_ATTR_SHAPE; in any other list -1 is a number. Lists that the public functions fill are never
 * left empty: strides of a convolution are two numbers. */
#ifndef SX_GRAPH_OPS_ATTRS_H
#define SX_GRAPH_OPS_ATTRS_H

#include <sextant/ops.h>

#include "base/args.h"
#include "graph/ir.h"

/* ---- Attributes, written by tools/gen-ops: do not edit ---- */

typedef struct sx_parameter_attrs {
    sx_dtype dtype;
    sx_ints shape; /* may have the batch */
} sx_parameter_attrs;

typedef struct sx_constant_attrs {
    sx_tensor value;
} sx_constant_attrs;

/* cast, bitcast; argmax and iota have their own */
typedef struct sx_cast_attrs {
    sx_dtype dtype;
} sx_cast_attrs;

/* leaky_relu, elu */
typedef struct sx_alpha_attrs {
    double alpha;
} sx_alpha_attrs;

typedef struct sx_clip_attrs {
    double low, high;
} sx_clip_attrs;

typedef struct sx_shift_attrs {
    bool right;
} sx_shift_attrs;

/* reshape, broadcast_to */
typedef struct sx_shape_attrs {
    sx_ints shape; /* may have the batch */
} sx_shape_attrs;

typedef struct sx_transpose_attrs {
    sx_ints perm; /* output dimension i is input dimension perm[i] */
} sx_transpose_attrs;

/* argmax, concat, one axis of the input */
typedef struct sx_axis_attrs {
    int64_t axis;
} sx_axis_attrs;

typedef struct sx_slice_attrs {
    sx_ints begin; /* 0 for the batch dimension */
    sx_ints size;  /* SX_BATCH for the batch dimension */
} sx_slice_attrs;

typedef struct sx_pad_attrs {
    sx_ints before, after; /* per dimension; 0 for the batch */
    double value;
} sx_pad_attrs;

typedef struct sx_mirror_pad_attrs {
    sx_ints before, after; /* per dimension; 0 for the batch */
    bool symmetric;
} sx_mirror_pad_attrs;

typedef struct sx_reverse_sequence_attrs {
    int64_t seq_axis, batch_axis;
} sx_reverse_sequence_attrs;

typedef struct sx_tile_attrs {
    sx_ints multiples; /* 1 for the batch */
} sx_tile_attrs;

/* space_to_batch, batch_to_space */
typedef struct sx_blocks_attrs {
    sx_ints block; /* sizes, of axis 1 on */
    sx_ints pads;  /* {before, after} of each of these axes; batch_to_space crops them */
} sx_blocks_attrs;

/* reduce_sum and the other reductions */
typedef struct sx_reduce_attrs {
    sx_ints axes;   /* none = nothing is reduced */
    bool keep_dims; /* reduced axes stay, with size 1 */
} sx_reduce_attrs;

/* size, moments */
typedef struct sx_axes_attrs {
    sx_ints axes;
} sx_axes_attrs;

typedef struct sx_argmax_attrs {
    int64_t axis;
    sx_dtype dtype; /* of the result: int32 or int64 */
} sx_argmax_attrs;

/* cumsum, cumprod */
typedef struct sx_cumulative_attrs {
    int64_t axis;
    bool exclusive, reverse;
} sx_cumulative_attrs;

typedef struct sx_matmul_attrs {
    bool transpose_a, transpose_b;
    bool wide; /* the result stays in the accumulator's dtype: float32 for bfloat16 */
} sx_matmul_attrs;

/* conv2d, conv2d_grad_input, conv2d_grad_filter */
typedef struct sx_conv2d_attrs {
    sx_ints strides;   /* {h, w}; empty = 1, 1 */
    sx_ints dilations; /* {h, w}; empty = 1, 1 */
    int32_t padding;   /* sx_padding */
    sx_ints pads;      /* SX_EXPLICIT only: {top, bottom, left, right} */
    int64_t groups;    /* 0 = 1 */
    sx_ints size; /* the two gradients: {h, w} of the image, or of the filter, that they make */
    bool wide;    /* conv2d_grad_filter: the result stays in the accumulator's dtype */
    bool bf16_operands; /* they are float32 of bfloat16's precision (sx_pass_widen_bf16): a device
                           may multiply them as bfloat16 and lose nothing */
} sx_conv2d_attrs;

/* max_pool2d, max_pool2d_grad, avg_pool2d, avg_pool2d_grad */
typedef struct sx_pool2d_attrs {
    sx_ints window;  /* {h, w} */
    sx_ints strides; /* {h, w}; empty = the window */
    int32_t padding; /* sx_padding */
    sx_ints pads;    /* SX_EXPLICIT only: {top, bottom, left, right} */
    sx_ints size;    /* avg_pool2d_grad: {h, w} of the image that it makes */
} sx_pool2d_attrs;

/* batch_norm, batch_norm_train and its two gradients */
typedef struct sx_batch_norm_attrs {
    double epsilon;
    /* In training, where replicas share the batch: normalizes by the moments of the replica's part,
     * as TensorFlow does; the moving averages use the mean of the parts' moments. */
    bool own_moments;
} sx_batch_norm_attrs;

/* fake_quant, fake_quant_grad */
typedef struct sx_fake_quant_attrs {
    int64_t num_bits;
    bool narrow_range;
} sx_fake_quant_attrs;

typedef struct sx_quantize_dequantize_attrs {
    int64_t num_bits, axis;
    bool signed_input, narrow_range, range_given, half_up, straight_through;
} sx_quantize_dequantize_attrs;

typedef struct sx_iota_attrs {
    sx_ints shape; /* static */
    int64_t axis;
    sx_dtype dtype;
} sx_iota_attrs;

typedef struct sx_one_hot_attrs {
    int64_t depth;
    double on, off;
    sx_dtype dtype;
} sx_one_hot_attrs;

typedef struct sx_gather_attrs {
    int64_t axis, batch_dims;
} sx_gather_attrs;

typedef struct sx_gather_grad_attrs {
    int64_t rows; /* of the table whose gradient it makes */
    int64_t axis, batch_dims;
} sx_gather_grad_attrs;

typedef struct sx_gather_nd_attrs {
    bool skip_negative; /* gives zeros there */
} sx_gather_nd_attrs;

enum { SX_SCATTER_INSIDE, SX_SCATTER_SKIP_NEGATIVE, SX_SCATTER_ASCENDING };
typedef struct sx_tensor_scatter_attrs {
    int32_t how;   /* sx_scatter */
    int32_t check; /* SX_SCATTER_INSIDE, … */
} sx_tensor_scatter_attrs;

/* top_k, in_top_k */
typedef struct sx_top_k_attrs {
    int64_t k;
    bool unsorted;
} sx_top_k_attrs;

typedef struct sx_dropout_attrs {
    double rate;            /* in [0, 1): the share that is dropped */
    int64_t key_hi, key_lo; /* each in [0, 2^32): hash of the operator's scope name */
} sx_dropout_attrs;

enum { SX_RANDOM_UNIFORM, SX_RANDOM_NORMAL };
typedef struct sx_stateless_random_attrs {
    sx_ints shape;
    int32_t distribution; /* SX_RANDOM_UNIFORM, SX_RANDOM_NORMAL */
} sx_stateless_random_attrs;

typedef struct sx_custom_gradient_attrs {
    int64_t results;
    const sx_graph *gradient;
} sx_custom_gradient_attrs;

typedef struct sx_refuse_gradient_attrs {
    int64_t results;
    const char *why;
} sx_refuse_gradient_attrs;

typedef struct sx_if_attrs {
    const sx_graph *then_body, *else_body;
} sx_if_attrs;

typedef struct sx_while_attrs {
    const sx_graph *condition, *body;
    int64_t trips; /* at most so many; 0 = no bound is known */
} sx_while_attrs;

typedef struct sx_map_attrs {
    const sx_graph *body;
    int64_t mapped; /* so many operands are cut along axis 0; the others are passed whole */
} sx_map_attrs;

/* take_row, put_row */
typedef struct sx_row_attrs {
    bool checked;
} sx_row_attrs;

/* How partial results of the batch combine to that of the whole. */
typedef enum sx_combine {
    SX_COMBINE_SUM = 0,
    SX_COMBINE_MEAN,
    SX_COMBINE_MAX,
    SX_COMBINE_AND,
    SX_COMBINE_MOMENTS, /* mean and variance, by Chan's formula */
    SX_COMBINE_MIN,
    SX_COMBINE_OR,
    SX_COMBINE_PROD,
} sx_combine;

typedef struct sx_all_reduce_attrs {
    int32_t how; /* sx_combine */
    int64_t replicas;
    int64_t elems; /* moments: of how many elements this replica's are */
} sx_all_reduce_attrs;

/* all_gather, all_slice */
typedef struct sx_all_gather_attrs {
    int64_t axis, replicas;
    int64_t size; /* of the result along the axis */
} sx_all_gather_attrs;

typedef struct sx_reduce_tree_attrs {
    int32_t how; /* sx_combine */
} sx_reduce_tree_attrs;

typedef struct sx_call_attrs {
    const char *function; /* of the library */
    int64_t gradient;     /* 0: the function; k: its k-th gradient function */
    /* Of the first gradient function: names, separated by commas; NULL = none */
    const char *variables;
} sx_call_attrs;

typedef struct sx_pull_back_attrs {
    const sx_graph *body;
    bool ran; /* its results are operands, too */
} sx_pull_back_attrs;

typedef struct sx_variable_handle_attrs {
    const char *name; /* of the library's variable */
} sx_variable_handle_attrs;

typedef struct sx_assert_attrs {
    const char *message;
} sx_assert_attrs;

typedef struct sx_print_attrs {
    const char *message;
    int64_t elements; /* of each value that are shown; 0 = 3, -1 = all */
} sx_print_attrs;

/* The evaluation form of sx_preprocess (image/preprocess.h). */
typedef struct sx_preprocess_image_attrs {
    int64_t height, width, channels;   /* of the result */
    int32_t resize;                    /* sx_resize_rule */
    int64_t extra_height, extra_width; /* rows and columns beyond the result before the crop */
    int32_t scale;                     /* sx_scale */
    double mean_0, mean_1, mean_2, std_0, std_1, std_2; /* of SX_MEAN_STD */
} sx_preprocess_image_attrs;

typedef struct sx_special_attrs {
    int32_t function; /* sx_special_function */
} sx_special_attrs;

typedef struct sx_complex_qr_attrs {
    bool full_matrices;
} sx_complex_qr_attrs;

typedef struct sx_complex_svd_attrs {
    bool compute_uv, full_matrices;
} sx_complex_svd_attrs;

typedef struct sx_complex_self_adjoint_eig_attrs {
    bool compute_v;
} sx_complex_self_adjoint_eig_attrs;

typedef struct sx_eig_attrs {
    bool compute_v, is_real;
} sx_eig_attrs;

typedef struct sx_ragged_gather_attrs {
    int64_t rank;
} sx_ragged_gather_attrs;

typedef struct sx_ragged_to_variant_attrs {
    bool batched;
} sx_ragged_to_variant_attrs;

typedef struct sx_ragged_from_variant_attrs {
    int64_t input_ragged_rank, output_ragged_rank;
    sx_dtype Tvalues, Tsplits;
} sx_ragged_from_variant_attrs;

typedef struct sx_list_diff_attrs {
    sx_dtype out_idx;
} sx_list_diff_attrs;

typedef struct sx_unique_attrs {
    sx_dtype out_idx;
    bool slices;
    int64_t axis;
} sx_unique_attrs;

enum { SX_COUNTED_ALL, SX_COUNTED_EACH, SX_COUNTED_RAGGED };
typedef struct sx_bincount_attrs {
    int32_t rows; /* SX_COUNTED_ */
    bool binary_output;
} sx_bincount_attrs;

typedef struct sx_search_sorted_attrs {
    bool upper;
    sx_dtype out_type;
} sx_search_sorted_attrs;

typedef struct sx_dynamic_partition_attrs {
    int64_t num_partitions;
} sx_dynamic_partition_attrs;

enum { SX_RESIZED_NEAREST, SX_RESIZED_BILINEAR, SX_RESIZED_BICUBIC, SX_RESIZED_AREA };
typedef struct sx_resize_image_attrs {
    int32_t method; /* SX_RESIZED_ */
    bool align_corners, half_pixel_centers;
} sx_resize_image_attrs;

typedef struct sx_scale_and_translate_attrs {
    const char *kernel_type;
    bool antialias;
} sx_scale_and_translate_attrs;

typedef struct sx_crop_and_resize_attrs {
    const char *method;
    double extrapolation_value;
} sx_crop_and_resize_attrs;

/* fractional_pool; fractional_pool_grad: average, overlapping */
typedef struct sx_fractional_pool_attrs {
    double height_ratio, width_ratio;
    int64_t seed, seed2;
    bool average, pseudo_random, overlapping;
} sx_fractional_pool_attrs;

typedef struct sx_non_max_suppression_attrs {
    bool overlaps, pad_to_max_output_size;
} sx_non_max_suppression_attrs;

typedef struct sx_combined_non_max_suppression_attrs {
    bool pad_per_class, clip_boxes;
} sx_combined_non_max_suppression_attrs;

typedef struct sx_transform_image_attrs {
    const char *interpolation, *fill_mode;
} sx_transform_image_attrs;

enum { SX_VALUES_UNIFORM, SX_VALUES_NORMAL, SX_VALUES_TRUNCATED_NORMAL, SX_VALUES_BITS };
typedef struct sx_random_values_attrs {
    int32_t distribution; /* SX_VALUES_ */
    sx_dtype dtype;
} sx_random_values_attrs;

typedef struct sx_random_poisson_attrs {
    sx_dtype dtype;
} sx_random_poisson_attrs;

typedef struct sx_random_binomial_attrs {
    sx_dtype dtype;
} sx_random_binomial_attrs;

typedef struct sx_random_categorical_attrs {
    sx_dtype output_dtype;
} sx_random_categorical_attrs;

typedef struct sx_sample_distorted_bounding_box_attrs {
    int64_t max_attempts;
    bool use_image_if_no_bounding_boxes;
} sx_sample_distorted_bounding_box_attrs;

typedef struct sx_sobol_sample_attrs {
    sx_dtype dtype;
} sx_sobol_sample_attrs;

enum { SX_CANDIDATES_UNIFORM, SX_CANDIDATES_LOG_UNIFORM, SX_CANDIDATES_UNIGRAM };
typedef struct sx_candidate_sampler_attrs {
    int32_t distribution;
    int64_t num_sampled, range_max;
    bool unique;
} sx_candidate_sampler_attrs;

typedef struct sx_momentum_attrs {
    double momentum;
    bool nesterov;
} sx_momentum_attrs;

typedef struct sx_rmsprop_attrs {
    double rho, momentum, epsilon;
    bool centered;
} sx_rmsprop_attrs;

typedef struct sx_adam_attrs {
    double beta1, beta2, epsilon;
} sx_adam_attrs;

/* ---- End of what tools/gen-ops writes ---- */

/* Names of sx_padding's and sx_combine's values, for SX_ATTR_NAMES. */
extern const char *const sx_padding_names[];
extern const char *const sx_combine_names[];

/* As sx_take_args(); a struct that is refused fails the builder. Returns whether `out` was filled.
 */
bool sx_builder_take_args(sx_builder *b, const char *name, const void *args, size_t size,
                          void *out);

/* SX_TAKE_ARGS for a function that adds to the builder and returns an sx_value. */
#define SX_TAKE_BUILD_ARGS(b, type, args)                                        \
    type args##_copy;                                                            \
    if (!sx_builder_take_args((b), #type, (args), sizeof(type), &args##_copy)) { \
        return SX_NO_VALUE;                                                      \
    }                                                                            \
    (args) = &args##_copy

#endif
