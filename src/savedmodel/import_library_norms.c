/* Imports batch normalization by the batch's own moments, as Keras 2 writes layer normalization,
 * and TensorFlow 1's Concat. */
#include "savedmodel/import_library_ops.h"

/* The mean along axes, which stay with size 1. */
static sx_status mean_along(const sx_tf_op_node *x, sx_value v, const sx_ints *axes, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    const sx_reduce_attrs attrs = {.axes = *axes, .keep_dims = true};
    sx_value sum = SX_NO_VALUE, count = SX_NO_VALUE, shape = SX_NO_VALUE;
    SX_TF_BUILD(x, &sum, reduce_sum, &attrs, v);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_int64s(x, axes, &count));
    SX_TF_BUILD(x, &count, gather, NULL, shape, count);
    SX_TF_BUILD(x, &count, reduce_prod, (&(sx_reduce_attrs){.axes = {1, {0}}}), count);
    SX_TF_BUILD(x, &count, cast, (&(sx_cast_attrs){type.dtype}), count);
    SX_TF_BUILD(x, out, div, NULL, sum, count);
    return SX_OK;
}

/* Outputs 1 and 2, [C]: the mean, and the variance as of a sample: n / (n - 1) times as large.
 * Those after them, for the gradient, which computes them again: both as they are. */
static sx_status set_moments(sx_tf_op_node *x, sx_value v, sx_value mean, sx_value variance,
                             const sx_ints *channels)
{
    const sx_dtype dtype = sx_type_of_value(x->b, v).dtype;
    const sx_reduce_attrs product = {.axes = {1, {0}}};
    sx_ints line = {1, {0}};
    sx_value n, c, one, least, sample;
    for (int d = 0; d < channels->n; d++) {
        line.v[0] = channels->v[d] == 0 ? d : line.v[0];
    }
    SX_TF_BUILD(x, &n, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &n, reduce_prod, &product, n);
    SX_TF_BUILD(x, &c, shape, (&(sx_cast_attrs){SX_I64}), mean);
    SX_TF_BUILD(x, &c, reduce_prod, &product, c);
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &c, maximum, NULL, c, one);
    SX_TF_BUILD(x, &n, floor_div, NULL, n, c);
    SX_TF_BUILD(x, &least, sub, NULL, n, one);
    SX_TF_BUILD(x, &least, maximum, NULL, least, one);
    SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){dtype}), n);
    SX_TF_BUILD(x, &least, cast, (&(sx_cast_attrs){dtype}), least);
    SX_TF_BUILD(x, &n, div, NULL, n, least);
    SX_TF_BUILD(x, &sample, mul, NULL, variance, n);
    SX_TRY(sx_tf_reshape_dims(x, mean, &line, &mean));
    SX_TRY(sx_tf_reshape_dims(x, variance, &line, &variance));
    SX_TRY(sx_tf_reshape_dims(x, sample, &line, &sample));
    for (int i = 1; i < x->n->n_out; i++) {
        sx_tf_set(x, i, i % 2 == 1 ? mean : i == 2 ? sample : variance);
    }
    return SX_OK;
}

sx_status sx_tf_import_batch_moments(sx_tf_op_node *x)
{
    const sx_tf_node *tf = &x->tf.head;
    const bool first = sx_tf_read_is(tf, "data_format", "NCHW", false);
    const sx_ints channels = first ? (sx_ints){4, {-1, 0, -1, -1}} : (sx_ints){4, {-1, -1, -1, 0}};
    const sx_ints axes = first ? (sx_ints){3, {0, 2, 3}} : (sx_ints){3, {0, 1, 2}};
    sx_value in[3], v = SX_NO_VALUE, mean = SX_NO_VALUE, square = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_value variance = SX_NO_VALUE, epsilon = SX_NO_VALUE;
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (tf->types[0].rank != 4 || tf->types[0].dtype != SX_F32) {
        return sx_tf_unsupported("its input is not float32 of rank 4");
    }
    const int64_t n = tf->types[0].dims[first ? 1 : 3];
    for (int i = 1; i < 3; i++) {
        const sx_type type = sx_type_of_value(x->b, in[i]);
        if (type.rank != 1) {
            return sx_tf_unsupported("input %d is not a vector", i);
        }
        if (n >= 0 && type.dims[0] >= 0 && type.dims[0] != n) {
            return sx_tf_unsupported("input %d has %lld elements, expected one for each of %lld "
                                     "channels",
                                     i, (long long)type.dims[0], (long long)n);
        }
        SX_TRY(sx_tf_reshape_dims(x, in[i], &channels, &in[i]));
    }
    SX_TRY(mean_along(x, in[0], &axes, &mean));
    SX_TF_BUILD(x, &v, sub, NULL, in[0], mean);
    SX_TF_BUILD(x, &square, square, NULL, v);
    SX_TRY(mean_along(x, square, &axes, &variance));
    SX_TRY(set_moments(x, in[0], mean, variance, &channels));
    SX_TRY(sx_tf_number(x, SX_F32, sx_tf_read_float(tf, "epsilon", 1e-4), &epsilon));
    SX_TF_BUILD(x, &variance, add, NULL, variance, epsilon);
    SX_TF_BUILD(x, &variance, rsqrt, NULL, variance);
    SX_TF_BUILD(x, &y, mul, NULL, v, variance);
    SX_TF_BUILD(x, &y, mul, NULL, y, in[1]);
    SX_TF_BUILD(x, &y, add, NULL, y, in[2]);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* concat_dim, values: TensorFlow 1's Concat */
static sx_status import_concat(sx_tf_op_node *x)
{
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    sx_attr_operand open = {sx_tf_attr_row(&sx_op_concat, "axis"), SX_NO_VALUE};
    int n_out = 0;
    if (in == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_operand(x, 0, &open.value));
    for (int i = 1; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i - 1]));
    }
    if (x->n->n_in < 2) {
        return sx_error(SX_DATA_LOSS, "it joins nothing");
    }
    SX_TRY(sx_tf_add_node(x, &sx_op_concat, NULL, in, x->n->n_in - 1, &open, 1, &y, &n_out));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

const sx_tf_op_row sx_tf_norm_rows[] = {
    {"Concat", import_concat, NULL},
    {NULL, NULL, NULL},
};
