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

/* ClipByValue(x, low, high) with bounds that are computed, or not scalars; else `clip`. */
static sx_status import_clip(sx_tf_op_node *x)
{
    sx_value in[3], y = SX_NO_VALUE;
    bool constant = x->n->n_in == 3;
    for (int i = 1; i < x->n->n_in; i++) {
        const sx_tensor *bound = x->tf.head.values[i];
        constant = constant && bound != NULL && sx_type_elems(&bound->type) == 1;
    }
    if (constant) {
        return sx_tf_import_one(x);
    }
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TF_BUILD(x, &y, minimum, NULL, in[0], in[2]);
    SX_TF_BUILD(x, &y, maximum, NULL, y, in[1]);
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
    {"Mean", import_mean, NULL},        {"Select", import_select, NULL}, {"AddN", import_sum, NULL},
    {"ClipByValue", import_clip, NULL}, {"Where", import_where, NULL},   {NULL, NULL, NULL},
};
