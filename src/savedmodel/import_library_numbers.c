/* Imports nodes of numbers that are several of ours. */
#include "savedmodel/import_library_ops.h"

#include "base/checked.h"
#include "graph/attr_operands.h"

/* ---- Numbers ---- */

/* The sum divided by the number of elements, which is the sum of ones. */
static sx_status import_mean(sx_tf_op_node *x)
{
    sx_reduce_attrs attrs = {.keep_dims = sx_tf_read_bool(&x->tf.head, "keep_dims", false)};
    sx_value v = SX_NO_VALUE, axes = SX_NO_VALUE, sum = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &axes));
    const sx_type *type = &x->tf.head.types[0];
    if (!sx_dtype_is_float(type->dtype)) {
        return sx_tf_unsupported("a mean of %s", sx_dtype_name(type->dtype));
    }
    double count = 1;
    bool known = x->tf.head.values[1] != NULL && type->rank != SX_UNKNOWN_RANK;
    if (known) {
        const sx_known_operand list = {.value = x->tf.head.values[1], .type = &x->tf.head.types[1]};
        SX_TRY(sx_attr_from_operand(&sx_op_reduce_sum, sx_tf_attr_row(&sx_op_reduce_sum, "axes"),
                                    &attrs, type, 1, &list, &known));
    }
    for (int i = 0; i < attrs.axes.n && known; i++) {
        const int64_t axis = attrs.axes.v[i];
        if (axis < 0 || axis >= type->rank) {
            return sx_tf_unsupported("axis %lld out of range for rank %d", (long long)axis,
                                     type->rank);
        }
        known = type->dims[axis] >= 0;
        count *= (double)type->dims[axis];
    }
    if (known) {
        sx_value by = SX_NO_VALUE;
        SX_TF_BUILD(x, &sum, reduce_sum, &attrs, v);
        SX_TRY(sx_tf_number(x, type->dtype, count, &by));
        SX_TF_BUILD(x, &y, div, NULL, sum, by);
    } else {
        const sx_reduce_attrs open = {.keep_dims = attrs.keep_dims};
        sx_value ones = SX_NO_VALUE, shape = SX_NO_VALUE;
        SX_TRY(sx_tf_build_open(x, &sx_op_reduce_sum, &open, v, "axes", axes, &sum));
        SX_TRY(sx_tf_number(x, type->dtype, 1, &ones));
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, ones, "shape", shape, &ones));
        SX_TRY(sx_tf_build_open(x, &sx_op_reduce_sum, &open, ones, "axes", axes, &ones));
        SX_TF_BUILD(x, &y, div, NULL, sum, ones);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* filter [KH, KW, C, M] is that of C groups of M filters each: [KH, KW, 1, C·M]. */
static sx_status import_depthwise(sx_tf_op_node *x)
{
    sx_value in[2] = {SX_NO_VALUE, SX_NO_VALUE}, y = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {0};
    int64_t filters;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    if (!sx_tf_read_is(&x->tf.head, "data_format", "NHWC", true)) {
        return sx_tf_unsupported("data_format is not NHWC");
    }
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    const sx_type *kernel = &x->tf.head.types[1];
    if (kernel->rank != 4 && kernel->rank != SX_UNKNOWN_RANK) {
        return sx_error(SX_DATA_LOSS, "the filter has rank %d, expected 4", kernel->rank);
    }
    if (kernel->rank != 4 || !sx_type_is_static(kernel) ||
        !sx_mul_i64(kernel->dims[2], kernel->dims[3], &filters)) {
        return sx_tf_unsupported("the shape of the filter is unknown");
    }
    const sx_shape_attrs shape = {.shape = {4, {kernel->dims[0], kernel->dims[1], 1, filters}}};
    attrs.groups = kernel->dims[2];
    SX_TF_BUILD(x, &in[1], reshape, &shape, in[1]);
    SX_TF_BUILD(x, &y, conv2d, &attrs, in[0], in[1]);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* The number of groups follows from the channels. */
static sx_status import_conv2d(sx_tf_op_node *x)
{
    const sx_type *image = &x->tf.head.types[0], *filter = &x->tf.head.types[1];
    if (x->n->n_in >= 2 && (image->rank == SX_UNKNOWN_RANK || filter->rank == SX_UNKNOWN_RANK ||
                            (image->rank == 4 && image->dims[3] < 0) ||
                            (filter->rank == 4 && !sx_type_is_static(filter)))) {
        return sx_tf_unsupported(
            "the channels of its input, or the shape of its filter, are unknown");
    }
    return sx_tf_import_one(x);
}

/* Select(condition, x, y), TensorFlow 1's: the condition has their shape, is a scalar, or a vector
 * that chooses among rows. */
static sx_status import_select(sx_tf_op_node *x)
{
    sx_value in[3], y = SX_NO_VALUE;
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        SX_TRY(sx_tf_require_rank(x, i));
    }
    for (int d = x->tf.head.types[0].rank; d > 0 && d < x->tf.head.types[1].rank; d++) {
        SX_TRY(sx_tf_expand(x, in[0], -1, &in[0]));
    }
    SX_TRY(sx_tf_build(x, &sx_op_select, NULL, &y, 3, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* AddN: the sum of its inputs, from the first to the last. */
static sx_status import_sum(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &y));
    for (int i = 1; i < x->n->n_in; i++) {
        sx_value v = SX_NO_VALUE;
        SX_TRY(sx_tf_operand(x, i, &v));
        SX_TF_BUILD(x, &y, add, NULL, y, v);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_where(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TF_BUILD(x, &y, where, NULL, v);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_number_rows[] = {
    {"Mean", import_mean, NULL},
    {"Conv2D", import_conv2d, NULL},
    {"DepthwiseConv2dNative", import_depthwise, NULL},
    {"Select", import_select, NULL},
    {"AddN", import_sum, NULL},
    {"Where", import_where, NULL},
    {NULL, NULL, NULL},
};
