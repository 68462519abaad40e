/* What operator files share: checks of infer, walking of indices in references, pieces of
 * gradients, and the forms of the elementwise families. What only one operator needs is in its own
 * file. */
#ifndef SX_GRAPH_OPS_COMMON_H
#define SX_GRAPH_OPS_COMMON_H

#include <math.h>

#include "base/checked.h"
#include "graph/host.h"
#include "graph/ir.h"
#include "graph/ops/attrs.h"

/* ---- Checks of infer ----
 *
 * The message starts with `what`; the builder puts operator and node in front of it:
 * model.c:14: matmul "dense_1/matmul": b is int32[4], expected ... */

/* "float32[N,4]" in a buffer that lives as long as the enclosing block. */
#define SX_TEXT(type) sx_type_format((type), (char[SX_TYPE_TEXT]){0}, SX_TYPE_TEXT)

SX_MUST_USE sx_status sx_require_float(const char *what, const sx_type *t);
SX_MUST_USE sx_status sx_require_number(const char *what, const sx_type *t);
SX_MUST_USE sx_status sx_require_integer(const char *what, const sx_type *t);
SX_MUST_USE sx_status sx_require_dtype(const char *what, const sx_type *t, sx_dtype dtype);
SX_MUST_USE sx_status sx_require_index(const char *what, const sx_type *t);
/* `form` is how the message spells the expected shape: "[N,H,W,C]". */
SX_MUST_USE sx_status sx_require_rank(const char *what, const sx_type *t, int rank,
                                      const char *form);
SX_MUST_USE sx_status sx_require_scalar(const char *what, const sx_type *t, sx_dtype dtype);
/* [n] of dtype `dtype`; `n` may be SX_BATCH. */
SX_MUST_USE sx_status sx_require_vector(const char *what, const sx_type *t, sx_dtype dtype,
                                        int64_t n);
SX_MUST_USE sx_status sx_require_equal(const char *what_a, const sx_type *a, const char *what_b,
                                       const sx_type *b);

/* [..., C], floats; C is neither the batch nor empty. */
SX_MUST_USE sx_status sx_require_classes(const char *what, const sx_type *t);

/* What sums and statistics of that float type are kept in: f64 for f64, else f32. */
sx_dtype sx_accumulator_dtype(sx_dtype dtype);
bool sx_same_dims(const sx_type *a, const sx_type *b);
/* The product of dims [first, last), c·N counted as c; -1 if one is unknown or it overflows. */
int64_t sx_dims_product(const sx_type *t, int first, int last);

/* Broadcasts shapes as numpy does, whatever the dtypes; out gets a's. c·N broadcasts with c·N and
 * 1. */
SX_MUST_USE sx_status sx_infer_broadcast(const sx_type *a, const sx_type *b, sx_type *out);
/* Are the axes normalized (attrs.h) for that rank? */
bool sx_axes_fit(const sx_ints *axes, int rank);
/* The type left by a reduction over axes that fit. */
sx_type sx_reduced_type(const sx_type *x, const sx_ints *axes, bool keep_dims);
/* The number of elements along the axes of a static type. */
double sx_count_along(const sx_type *x, const sx_ints *axes);
/* The same, checked. */
SX_MUST_USE sx_status sx_infer_reduce(const sx_type *x, const sx_ints *axes, bool keep_dims,
                                      sx_type *out);
/* One output like the one input. */
SX_MUST_USE sx_status sx_infer_map_float(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_map_number(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_map_integer(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_test(sx_infer_context *c); /* of floats, giving bool */
/* One output, the broadcast of two inputs of one dtype. */
SX_MUST_USE sx_status sx_infer_zip_float(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_zip_number(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_zip_integer(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_zip_bool(sx_infer_context *c);
SX_MUST_USE sx_status sx_infer_compare(sx_infer_context *c); /* the same, giving bool */
/* The same, and two inputs of strings. */
SX_MUST_USE sx_status sx_infer_equality(sx_infer_context *c);
/* Inputs of one type; the output has it too: gradients of elementwise functions. */
SX_MUST_USE sx_status sx_infer_zip_equal(sx_infer_context *c);
/* The optimizers' common part: inputs 0 .. n-1 are floats of one type, input n a scalar rate of
 * that dtype, the last one `ok`, bool. Outputs 0 .. n_out-1 get the type. */
SX_MUST_USE sx_status sx_infer_apply(sx_infer_context *c, int n, int n_out);

/* Operands that combine in this way (sx_combine): their number, dtypes and, for moments, shapes. */
SX_MUST_USE sx_status sx_require_combinable(int32_t how, const sx_type *types, int n);
/* A host kernel exchanges nothing: UNIMPLEMENTED for more than one replica. */
SX_MUST_USE sx_status sx_require_one_replica(int64_t replicas);

/* ---- Host kernels ---- */

/* out = whether two strings are equal, or are not. */
void sx_host_compare_strings(const sx_kernel_call *c, bool equal);

/* Offset in `in` of what is broadcast to element i of `out`. */
int64_t sx_broadcast_offset(const sx_type *out, const sx_type *in, int64_t i);
/* Offset in the reduction's result of element i of `x`. */
int64_t sx_reduce_offset(const sx_type *x, const sx_ints *axes, int64_t i);
/* i -> coordinates at[rank], and back. */
void sx_unravel(const sx_type *t, int64_t i, int64_t *at);
int64_t sx_ravel(const sx_type *t, const int64_t *at);

sx_status sx_host_copy(const sx_kernel_call *c); /* output 0 is input 0, in a shape of its own */
/* log sum exp(x - greatest), apart from the greatest, beside which it may have no digits. */
double sx_log_sum_exp(const double *x, int64_t n, double *out_greatest);
/* The optimizers': is the update withheld? Then every output is its old value, copied here. */
bool sx_host_withheld(const sx_kernel_call *c);

/* ---- Gradients ---- */

/* Sums `dy` over what broadcasting added, back to the shape of `like`. */
sx_value sx_unbroadcast(sx_builder *b, sx_value dy, sx_value like);
/* Of an operator that takes one of its two inputs, element by element: dy goes to the second where
 * `second` holds, to the first elsewhere. */
void sx_grad_choice(sx_grad *g, sx_value second);
/* A scalar constant of dtype `dtype`, or of the dtype of `like`: it broadcasts. */
sx_value sx_scalar(sx_builder *b, sx_dtype dtype, double value);
sx_value sx_scalar_like(sx_builder *b, sx_value like, double value);
/* `x` in the shape of `type` (dtype ignored). */
sx_value sx_reshape_to(sx_builder *b, sx_value x, const sx_type *type);
/* x in the dtype of `like`: x itself if it has it. */
sx_value sx_cast_like(sx_builder *b, sx_value x, sx_value like);
/* In a function: zeros of y's type, whatever its shape will be. */
sx_value sx_zeros_like(sx_builder *b, sx_value y);
/* x * value */
sx_value sx_times(sx_builder *b, sx_value x, double value);
/* Sum over the last axis, which stays with size 1. */
sx_value sx_sum_last(sx_builder *b, sx_value x);
/* rows[n] * matrix[n, c]; SX_NO_VALUE if `rows` is. */
sx_value sx_scale_rows(sx_builder *b, sx_value rows, sx_value matrix);
/* What softmax(x) = p passes back to x of a gradient w: (w - sum_c w p) p; SX_NO_VALUE if `w` is.
 */
sx_value sx_softmax_pull(sx_builder *b, sx_value x, sx_value w);
/* The sum of two gradients, each of which may be none. */
sx_value sx_add_maybe(sx_builder *b, sx_value x, sx_value y);

/* ---- TensorFlow ---- */

/* One node with attribute T and all of our inputs in order. */
void sx_tf_plain(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op);
/* One node with our inputs, outputs and the attributes that it has by the same name (SX_ATTR_TF).
 * `types`: those that TensorFlow infers from the inputs. */
void sx_tf_same(sx_tf_writer *w, const sx_tf_op *op, const sx_op_def *def, const char *tf_op,
                sx_tf_attr_list types);
/* x as it is where the dtypes are equal. */
sx_tf_value sx_tf_cast(sx_tf_writer *w, sx_tf_value x, sx_dtype from, sx_dtype to);
/* An int32 vector constant. */
sx_tf_value sx_tf_ints(sx_tf_writer *w, const char *name, const sx_ints *values);
/* A shape as TensorFlow's operators take it: -1 where the batch is. */
sx_tf_value sx_tf_shape(sx_tf_writer *w, const char *name, const sx_ints *shape);
/* A scalar constant of a float or int32 dtype. */
sx_tf_value sx_tf_scalar(sx_tf_writer *w, const char *name, sx_dtype dtype, double value);

/* From TensorFlow's attributes: windows, strides and paddings of images [N,H,W,C] or, by
 * data_format, [N,C,H,W]. */
bool sx_tf_channels_first(const sx_tf_node *n);
/* The `count` spatial numbers of a list of one for each dimension. */
SX_MUST_USE sx_status sx_tf_read_spatial(const sx_tf_node *n, const char *name, bool required,
                                         int count, sx_ints *out);
SX_MUST_USE sx_status sx_tf_read_padding(const sx_tf_node *n, int32_t *out);
SX_MUST_USE sx_status sx_tf_read_conv(const sx_tf_node *n, void *attrs);
SX_MUST_USE sx_status sx_tf_read_pool(const sx_tf_node *n, void *attrs);

/* ---- Public functions ---- */

/* sx_build() for user code at file:line (NULL = leave the place as it is). */
sx_value sx_build_at(sx_builder *b, const sx_op_def *op, const void *attrs, const sx_value *inputs,
                     int n_inputs, const char *file, int line);
/* As users write axes -> as attributes hold them. Out of range stays so, for infer to report. */
sx_ints sx_normalize_axes(sx_axes axes, int rank);
int64_t sx_normalize_axis(int axis, int rank);
sx_ints sx_ints_of(int n, const int64_t *values);
/* {h, w} as users write it: 0 for h means `fallback`, 0 for w means the same as h. */
sx_ints sx_pair_of(const int pair[2], int64_t fallback);

/* The public functions of elementwise.def's operators; tools/gen-ops declares them. */
#define SX_PUBLIC_MAP(op_name) SX_PUBLIC_MAP_AS(op_name, op_name)
#define SX_PUBLIC_MAP_AS(op_name, public_name)                                            \
    sx_value sx_##public_name##_at(sx_builder *b, sx_value x, const char *file, int line) \
    {                                                                                     \
        return sx_build_at(b, &sx_op_##op_name, NULL, &x, 1, file, line);                 \
    }
#define SX_PUBLIC_ZIP(op_name)                                                                    \
    sx_value sx_##op_name##_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line) \
    {                                                                                             \
        return sx_build_at(b, &sx_op_##op_name, NULL, (const sx_value[]){x, y}, 2, file, line);   \
    }

/* ---- Samples ---- */

#define SX_SAMPLE_SCALAR(dtype_, fill_)              \
    {                                                \
        .type = {.dtype = (dtype_)}, .fill = (fill_) \
    }
#define SX_SAMPLE_BOOL(...)                                                  \
    {                                                                        \
        .type = SX_TYPE_LITERAL_(SX_BOOL, __VA_ARGS__), .fill = SX_FILL_BOOL \
    }
#define SX_SAMPLE_OK SX_SAMPLE_SCALAR(SX_BOOL, SX_FILL_TRUE)

/* The usual cases of a function of one float tensor. */
#define SX_SAMPLES_MAP(fill_)                                                                  \
    {.name = "scalar", .inputs = {SX_SAMPLE_SCALAR(SX_F32, fill_)}, .n_inputs = 1},            \
        {.name = "batch", .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 7)}, .n_inputs = 1},       \
        {.name = "image", .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 3, 5, 2)}, .n_inputs = 1}, \
        {.name = "batch_inside", .inputs = {SX_SAMPLE_F32(fill_, 3, -2, 2)}, .n_inputs = 1},   \
    {                                                                                          \
        .name = "static", .inputs = {SX_SAMPLE_F32(fill_, 1, 33)}, .n_inputs = 1               \
    }

/* The usual cases of a function along the last axis. */
#define SX_SAMPLES_CLASSES(fill_)                                                            \
    {.name = "ten", .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 10)}, .n_inputs = 1},          \
        {.name = "one", .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 1)}, .n_inputs = 1},       \
        {.name = "vector", .inputs = {SX_SAMPLE_F32(fill_, 7)}, .n_inputs = 1},              \
        {.name = "batch_inside", .inputs = {SX_SAMPLE_F32(fill_, 3, -2, 4)}, .n_inputs = 1}, \
    {                                                                                        \
        .name = "image", .inputs = {SX_SAMPLE_F32(fill_, SX_BATCH, 2, 3, 5)}, .n_inputs = 1  \
    }

/* The usual cases of a function of two float tensors that broadcast. */
#define SX_SAMPLES_ZIP(fill_x, fill_y)                                                             \
    {.name = "same",                                                                               \
     .inputs = {SX_SAMPLE_F32(fill_x, SX_BATCH, 7), SX_SAMPLE_F32(fill_y, SX_BATCH, 7)},           \
     .n_inputs = 2},                                                                               \
        {.name = "scalar",                                                                         \
         .inputs = {SX_SAMPLE_F32(fill_x, SX_BATCH, 3), SX_SAMPLE_SCALAR(SX_F32, fill_y)},         \
         .n_inputs = 2},                                                                           \
        {.name = "channels",                                                                       \
         .inputs = {SX_SAMPLE_F32(fill_x, SX_BATCH, 3, 2, 5), SX_SAMPLE_F32(fill_y, 5)},           \
         .n_inputs = 2},                                                                           \
        {.name = "column",                                                                         \
         .inputs = {SX_SAMPLE_F32(fill_x, SX_BATCH, 1), SX_SAMPLE_F32(fill_y, 1, 6)},              \
         .n_inputs = 2},                                                                           \
        {.name = "batch_inside",                                                                   \
         .inputs = {SX_SAMPLE_F32(fill_x, 3, -2, 4), SX_SAMPLE_F32(fill_y, -2, 1)},                \
         .n_inputs = 2},                                                                           \
    {                                                                                              \
        .name = "static", .inputs = {SX_SAMPLE_F32(fill_x, 3, 1), SX_SAMPLE_F32(fill_y, 2, 1, 4)}, \
        .n_inputs = 2                                                                              \
    }

/* The usual cases of a comparison. */
#define SX_SAMPLES_COMPARE                                                                    \
    SX_SAMPLES_ZIP(SX_FILL_DISTINCT, SX_FILL_DISTINCT),                                       \
    {                                                                                         \
        .name = "labels", .inputs = {SX_SAMPLE_I32(3, SX_BATCH), SX_SAMPLE_I32(3, SX_BATCH)}, \
        .n_inputs = 2                                                                         \
    }

/* The usual cases of a function of the bits of two integers. */
#define SX_SAMPLES_BITS                                                                            \
    {.name = "same",                                                                               \
     .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7), SX_SAMPLE_I32(1 << 30, SX_BATCH, 7)},         \
     .n_inputs = 2},                                                                               \
    {                                                                                              \
        .name = "row", .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7), SX_SAMPLE_I32(1 << 30, 7)}, \
        .n_inputs = 2                                                                              \
    }

#endif
