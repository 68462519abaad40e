/* Imports nodes of numbers that are several of ours. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include "base/checked.h"
#include "graph/attr_operands.h"
#include "graph/ops/diagonals.h"

/* ---- Numbers ---- */

/* The sum divided by the number of elements, which is the sum of ones; of integers in 64 bits,
 * rounded towards 0, and 0 of none. */
static sx_status import_mean(sx_tf_op_node *x)
{
    sx_reduce_attrs attrs = {.keep_dims = sx_tf_read_bool(&x->tf.head, "keep_dims", false)};
    sx_value v = SX_NO_VALUE, axes = SX_NO_VALUE, sum = SX_NO_VALUE, by = SX_NO_VALUE,
             y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &axes));
    const sx_type *type = &x->tf.head.types[0];
    const bool integer = sx_dtype_is_integer(type->dtype);
    if (!integer && !sx_dtype_is_float(type->dtype)) {
        return sx_tf_unsupported("a mean of %s", sx_dtype_name(type->dtype));
    }
    const bool counts = type->dtype == SX_U8 || type->dtype == SX_U16 || type->dtype == SX_U32 ||
                        type->dtype == SX_U64;
    const sx_dtype wide = !integer ? type->dtype : counts ? SX_U64 : SX_I64;
    if (integer) {
        SX_TF_BUILD(x, &v, cast, (&(sx_cast_attrs){wide}), v);
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
        SX_TF_BUILD(x, &sum, reduce_sum, &attrs, v);
        SX_TRY(sx_tf_number(x, wide, count, &by));
    } else {
        const sx_reduce_attrs open = {.keep_dims = attrs.keep_dims};
        sx_value shape = SX_NO_VALUE;
        SX_TRY(sx_tf_build_open(x, &sx_op_reduce_sum, &open, v, "axes", axes, &sum));
        SX_TRY(sx_tf_number(x, wide, 1, &by));
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, by, "shape", shape, &by));
        SX_TRY(sx_tf_build_open(x, &sx_op_reduce_sum, &open, by, "axes", axes, &by));
    }
    if (integer) {
        sx_value one = SX_NO_VALUE;
        SX_TRY(sx_tf_number(x, wide, 1, &one));
        SX_TF_BUILD(x, &by, maximum, NULL, by, one);
        SX_TF_BUILD(x, &y, truncate_div, NULL, sum, by);
        SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){type->dtype}), y);
    } else {
        SX_TF_BUILD(x, &y, div, NULL, sum, by);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Equal, NotEqual, also of bools, as 0 and 1. */
static sx_status import_equal(sx_tf_op_node *x)
{
    const bool equal = strcmp(x->n->node->op, "Equal") == 0;
    sx_value in[2], y = SX_NO_VALUE;
    if (x->tf.head.types[0].dtype != SX_BOOL || x->n->n_in != 2) {
        return sx_tf_import_one(x);
    }
    for (int i = 0; i < 2; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        SX_TF_BUILD(x, &in[i], cast, (&(sx_cast_attrs){SX_I32}), in[i]);
    }
    SX_TRY(sx_tf_build(x, equal ? &sx_op_equal : &sx_op_not_equal, NULL, &y, 2, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Relu, Relu6, also of integers. */
static sx_status import_relu(sx_tf_op_node *x)
{
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    sx_value v = SX_NO_VALUE, bound = SX_NO_VALUE;
    if (!sx_dtype_is_integer(dtype)) {
        return sx_tf_import_one(x);
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_number(x, dtype, 0, &bound));
    SX_TF_BUILD(x, &v, maximum, NULL, v, bound);
    if (strcmp(x->n->node->op, "Relu6") == 0) {
        SX_TRY(sx_tf_number(x, dtype, 6, &bound));
        SX_TF_BUILD(x, &v, minimum, NULL, v, bound);
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* TopKV2(x, k): the places are of `index_type`. */
static sx_status import_top_k(sx_tf_op_node *x)
{
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "index_type", SX_I32);
    SX_TRY(sx_tf_import_one(x));
    if (dtype != SX_I32) {
        sx_value places = x->n->out[1].value;
        SX_TF_BUILD(x, &places, cast, (&(sx_cast_attrs){dtype}), places);
        sx_tf_set(x, 1, places);
    }
    return SX_OK;
}

/* ApproxTopK(x), exactly: the largest along the last axis, or the smallest. */
static sx_status import_approx_top_k(sx_tf_op_node *x)
{
    const sx_top_k_attrs attrs = {.k = sx_tf_read_int(&x->tf.head, "k", 0)};
    const int64_t axis = sx_tf_read_int(&x->tf.head, "reduction_dimension", -1);
    const bool most = sx_tf_read_bool(&x->tf.head, "is_max_k", true);
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (axis != -1 && axis != x->tf.head.types[0].rank - 1) {
        return sx_tf_unsupported("reduction_dimension is not the last one");
    }
    if (!most) {
        SX_TF_BUILD(x, &v, neg, NULL, v);
    }
    SX_TRY(sx_tf_add_node(x, &sx_op_top_k, &attrs, &v, 1, NULL, 0, &y, &n_out));
    v = y;
    if (!most) {
        SX_TF_BUILD(x, &v, neg, NULL, v);
    }
    sx_tf_set(x, 0, v);
    sx_tf_set(x, 1, sx_output_of(y, 1));
    return SX_OK;
}

/* NthElement(x, n): element n of the last axis, sorted; `reverse`: from the largest on. The order
 * of integers turns round with their bits. */
static sx_status import_nth_element(sx_tf_op_node *x)
{
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    const sx_op_def *turn = sx_dtype_is_float(dtype) ? &sx_op_neg : &sx_op_invert;
    const bool from_largest = sx_tf_read_bool(&x->tf.head, "reverse", false);
    sx_value v = SX_NO_VALUE, at = SX_NO_VALUE, one = SX_NO_VALUE, sound = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &at));
    if (x->tf.head.types[0].rank < 1) {
        return sx_tf_unsupported("the rank of x is unknown, or 0");
    }
    if (!from_largest) {
        SX_TRY(sx_tf_build(x, turn, NULL, &v, 1, &v));
    }
    SX_TF_BUILD(x, &at, cast, (&(sx_cast_attrs){SX_I64}), at);
    SX_TF_BUILD(x, &at, reshape, (&(sx_shape_attrs){{0}}), at);
    sx_attr_operand count = {sx_tf_attr_row(&sx_op_top_k, "k"), SX_NO_VALUE};
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &count.value, add, NULL, at, one);
    SX_TF_BUILD(x, &sound, greater_equal, NULL, count.value, one);
    SX_TRY(sx_tf_require(x, sound, "NthElement: n must not be negative", at));
    SX_TRY(sx_tf_add_node(x, &sx_op_top_k, NULL, &v, 1, &count, 1, &v, &n_out));
    SX_TF_BUILD(x, &v, gather, (&(sx_gather_attrs){.axis = x->tf.head.types[0].rank - 1}), v, at);
    if (!from_largest) {
        SX_TRY(sx_tf_build(x, turn, NULL, &v, 1, &v));
    }
    sx_tf_set(x, 0, v);
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

/* Whether input i is a number that an attribute can be. */
static bool is_attribute(const sx_tf_op_node *x, int i)
{
    const sx_tensor *value = i < x->n->n_in ? x->tf.head.values[i] : NULL;
    return value != NULL && sx_type_elems(&value->type) == 1 &&
           sx_dtype_bytes(value->type.dtype) > 0 && sx_attr_holds(value);
}

/* ClipByValue(x, low, high) with bounds that are computed, or not scalars, or not exact as
 * attributes; else `clip`. */
static sx_status import_clip(sx_tf_op_node *x)
{
    sx_value in[3], y = SX_NO_VALUE;
    if (x->n->n_in == 3 && is_attribute(x, 1) && is_attribute(x, 2)) {
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

/* OneHot(indices, depth, on, off) with values that are computed, or not exact as attributes, or on
 * another axis than the last: select(one_hot, on, off); else `one_hot`. */
static sx_status import_one_hot(sx_tf_op_node *x)
{
    const sx_one_hot_attrs attrs = {.on = 1, .dtype = SX_BOOL};
    const int rank = x->tf.head.types[0].rank; /* that of the result is one more */
    const int64_t axis = sx_tf_read_int(&x->tf.head, "axis", -1);
    sx_value in[4], hot = SX_NO_VALUE, y = SX_NO_VALUE;
    const bool ranked = rank >= 0 && rank < SX_MAX_RANK;
    const bool known = x->tf.head.values[1] != NULL; /* else the declared type says the rank */
    if ((axis == -1 || axis == rank) && is_attribute(x, 2) && is_attribute(x, 3) &&
        (known || !ranked)) {
        return sx_tf_import_one(x);
    }
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (known || !ranked) {
        SX_TRY(sx_tf_build_open(x, &sx_op_one_hot, &attrs, in[0], "depth", in[1], &hot));
    } else {
        const sx_attr_operand depth = {sx_tf_attr_row(&sx_op_one_hot, "depth"), in[1]};
        sx_type type = x->tf.head.types[0];
        type.dtype = SX_BOOL;
        type.dims[type.rank++] = SX_UNKNOWN_DIM;
        hot = sx_tf_build_as(x, &sx_op_one_hot, &attrs, in, 1, &depth, 1, &type);
    }
    if (axis != -1) {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    if (axis != -1 && axis != rank) {
        sx_transpose_attrs move = {.perm = {.n = rank + 1}};
        if (axis < 0 || axis > rank || rank >= SX_MAX_RANK) {
            return sx_tf_unsupported("axis is %lld, expected -1 or at most %d", (long long)axis,
                                     rank);
        }
        for (int d = 0; d <= rank; d++) {
            move.perm.v[d] = d < axis ? d : d == axis ? rank : d - 1;
        }
        SX_TF_BUILD(x, &hot, transpose, &move, hot);
    }
    SX_TF_BUILD(x, &y, select, NULL, hot, in[2], in[3]);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* AddN: the sum of its inputs, from the first to the last. */
static sx_status import_sum(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    if (x->n->n_in > 0 && x->n->in[0].kind == SX_TF_LIST) {
        return sx_tf_list_sum(x);
    }
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

/* L2Loss: half the sum of the squares. */
static sx_status import_l2_loss(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, half = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_reduce_attrs all = {.axes = {.n = 0}};
    for (int axis = 0; axis < x->tf.head.types[0].rank; axis++) {
        all.axes.v[all.axes.n++] = axis;
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_number(x, x->tf.head.types[0].dtype, 0.5, &half));
    SX_TF_BUILD(x, &y, square, NULL, v);
    if (x->tf.head.types[0].rank == SX_UNKNOWN_RANK) {
        sx_value flat = SX_NO_VALUE;
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &flat));
        SX_TRY(sx_tf_build_open(x, &sx_op_reshape, NULL, y, "shape", flat, &y));
        all.axes = (sx_ints){1, {0}};
    }
    SX_TF_BUILD(x, &y, reduce_sum, &all, y);
    SX_TF_BUILD(x, &y, mul, NULL, y, half);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_euclidean_norm(sx_tf_op_node *x)
{
    const sx_reduce_attrs attrs = {.keep_dims = sx_tf_read_bool(&x->tf.head, "keep_dims", false)};
    sx_value v = SX_NO_VALUE, axes = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &axes));
    if (!sx_dtype_is_float(x->tf.head.types[0].dtype)) {
        return sx_tf_unsupported("a norm of %s", sx_dtype_name(x->tf.head.types[0].dtype));
    }
    SX_TF_BUILD(x, &y, square, NULL, v);
    SX_TRY(sx_tf_build_open(x, &sx_op_reduce_sum, &attrs, y, "axes", axes, &y));
    SX_TF_BUILD(x, &y, sqrt, NULL, y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Cross, along the last axis: a[1 2 0] b[2 0 1] - a[2 0 1] b[1 2 0]. */
static sx_status import_cross(sx_tf_op_node *x)
{
    static const int32_t orders[2][3] = {{1, 2, 0}, {2, 0, 1}};
    sx_value in[2], turned[2][2], part[2], y = SX_NO_VALUE;
    SX_TRY(sx_tf_require_rank(x, 0));
    const int rank = x->tf.head.types[0].rank;
    if (rank < 1 ||
        (x->tf.head.types[0].dims[rank - 1] >= 0 && x->tf.head.types[0].dims[rank - 1] != 3)) {
        return sx_tf_unsupported("vectors of other than 3 elements");
    }
    for (int i = 0; i < 2; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        for (int k = 0; k < 2; k++) {
            sx_value order = SX_NO_VALUE;
            SX_TRY(sx_tf_constant(x, sx_type_of(SX_I32, 3), orders[k], &order));
            SX_TF_BUILD(x, &turned[i][k], gather, (&(sx_gather_attrs){.axis = rank - 1}), in[i],
                        order);
        }
    }
    for (int k = 0; k < 2; k++) {
        SX_TF_BUILD(x, &part[k], mul, NULL, turned[0][k], turned[1][1 - k]);
    }
    SX_TF_BUILD(x, &y, sub, NULL, part[0], part[1]);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* BatchMatMulV3, whose operands and result may have different types: a product of the result's. */
static sx_status import_matmul_types(sx_tf_op_node *x)
{
    const sx_tf_node *tf = &x->tf.head;
    const sx_dtype dtype = sx_tf_read_dtype(tf, "Tout", tf->types[0].dtype);
    const sx_matmul_attrs attrs = {.transpose_a = sx_tf_read_bool(tf, "adj_x", false),
                                   .transpose_b = sx_tf_read_bool(tf, "adj_y", false)};
    sx_value in[2], y = SX_NO_VALUE;
    for (int i = 0; i < 2; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        if (tf->types[i].dtype != dtype) {
            SX_TF_BUILD(x, &in[i], cast, (&(sx_cast_attrs){dtype}), in[i]);
        }
    }
    SX_TF_BUILD(x, &y, matmul, &attrs, in[0], in[1]);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* MatrixDiag, MatrixDiagPart: of the main diagonal; the other elements are 0. */
static sx_status import_main_diagonal(sx_tf_op_node *x)
{
    const sx_op_def *op =
        strcmp(x->n->node->op, "MatrixDiag") == 0 ? &sx_op_matrix_diag : &sx_op_matrix_diag_part;
    const sx_diagonals_attrs attrs = {.num_rows = -1, .num_cols = -1};
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_number(x, x->tf.head.types[0].dtype, 0, &in[1]));
    SX_TRY(sx_tf_build(x, op, &attrs, &y, 2, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* indices, dims -> [dims, ...indices]: row k is (indices / the product of later dims) % dims[k] */
static sx_status import_unravel(sx_tf_op_node *x)
{
    static const sx_cumulative_attrs products = {.exclusive = true, .reverse = true};
    sx_value indices = SX_NO_VALUE, dims = SX_NO_VALUE, steps = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &indices));
    SX_TRY(sx_tf_operand(x, 1, &dims));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TF_BUILD(x, &steps, cumprod, &products, dims);
    SX_TF_BUILD(x, &y, reduce_prod, (&(sx_reduce_attrs){.axes = {1, {0}}}), dims);
    SX_TF_BUILD(x, &y, less, NULL, indices, y);
    SX_TRY(sx_tf_require(x, y, "UnravelIndex: an index is outside the dimensions", dims));
    if (x->tf.head.types[0].rank > 0) {
        SX_TRY(sx_tf_expand(x, dims, -1, &dims));
        SX_TRY(sx_tf_expand(x, steps, -1, &steps));
    }
    SX_TF_BUILD(x, &y, floor_div, NULL, indices, steps);
    SX_TF_BUILD(x, &y, floor_mod, NULL, y, dims);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Div: of integers, towards 0. */
static sx_status import_div(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    const bool floats = sx_dtype_is_float(x->tf.head.types[0].dtype);
    SX_TRY(sx_tf_build(x, floats ? &sx_op_div : &sx_op_truncate_div, NULL, &y, 2, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ApproximateEqual(x, y) {tolerance}: |x - y| < tolerance */
static sx_status import_approximate_equal(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE, tolerance = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    const double most = sx_tf_read_float(&x->tf.head, "tolerance", (double)1e-5f);
    SX_TRY(sx_tf_number(x, x->tf.head.types[0].dtype, most, &tolerance));
    SX_TF_BUILD(x, &y, sub, NULL, in[0], in[1]);
    SX_TF_BUILD(x, &y, abs, NULL, y);
    SX_TF_BUILD(x, &y, less, NULL, y, tolerance);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* LinSpace(start, stop, num): start + i (stop - start) / (num - 1), the last one exactly `stop`
 * unless it is the only one. */
static sx_status import_linspace(sx_tf_op_node *x)
{
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    sx_value in[3], one = SX_NO_VALUE, several = SX_NO_VALUE, last = SX_NO_VALUE, i = SX_NO_VALUE,
                    by = SX_NO_VALUE, y = SX_NO_VALUE;
    for (int k = 0; k < 3; k++) {
        SX_TRY(sx_tf_operand(x, k, &in[k]));
    }
    SX_TF_BUILD(x, &in[2], reshape, (&(sx_shape_attrs){{1, {1}}}), in[2]);
    SX_TF_BUILD(x, &in[2], cast, (&(sx_cast_attrs){SX_I64}), in[2]);
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &several, less_equal, NULL, one, in[2]);
    SX_TRY(sx_tf_require(x, several, "the number of points is less than 1", in[2]));
    SX_TF_BUILD(x, &several, less, NULL, one, in[2]);
    SX_TF_BUILD(x, &last, sub, NULL, in[2], one);
    SX_TF_BUILD(x, &by, maximum, NULL, last, one);
    SX_TF_BUILD(x, &by, cast, (&(sx_cast_attrs){dtype}), by);
    SX_TRY(sx_tf_count_to(x, in[2], SX_I64, &i));
    SX_TF_BUILD(x, &last, equal, NULL, i, last);
    SX_TF_BUILD(x, &last, logical_and, NULL, last, several);
    SX_TF_BUILD(x, &i, cast, (&(sx_cast_attrs){dtype}), i);
    SX_TF_BUILD(x, &y, sub, NULL, in[1], in[0]);
    SX_TF_BUILD(x, &y, div, NULL, y, by);
    SX_TF_BUILD(x, &y, mul, NULL, i, y);
    SX_TF_BUILD(x, &y, add, NULL, in[0], y);
    SX_TF_BUILD(x, &y, select, NULL, last, in[1], y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* NearestNeighbors(points [n,d], centers [m,d], k): of each point the k nearest centers, and the
 * squares of their distances. */
static sx_status import_nearest_neighbors(sx_tf_op_node *x)
{
    static const sx_reduce_attrs last = {.axes = {1, {1}}};
    static const sx_matmul_attrs turned = {.transpose_b = true};
    sx_value in[2], squares[2], product = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints k = {0};
    int n_out = 0;
    SX_TRY(sx_tf_operand_ints(x, 2, &k));
    for (int i = 0; i < 2; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        SX_TF_BUILD(x, &squares[i], square, NULL, in[i]);
        SX_TF_BUILD(x, &squares[i], reduce_sum, &last, squares[i]);
    }
    const int64_t centers = x->tf.head.types[1].rank == 2 ? x->tf.head.types[1].dims[0] : -1;
    if (centers < 0 || k.n != 1 || k.v[0] < 0) {
        return sx_tf_unsupported("how many centers there are is unknown");
    }
    SX_TRY(sx_tf_expand(x, squares[0], -1, &squares[0]));
    SX_TF_BUILD(x, &product, matmul, &turned, in[0], in[1]);
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, product, 2, &product));
    SX_TF_BUILD(x, &product, sub, NULL, product, squares[1]);
    SX_TF_BUILD(x, &product, sub, NULL, product, squares[0]);
    SX_TRY(sx_tf_add_node(x, &sx_op_top_k, &(sx_top_k_attrs){.k = SX_MIN(k.v[0], centers)},
                          &product, 1, NULL, 0, &y, &n_out));
    SX_TF_BUILD(x, &product, neg, NULL, y);
    SX_TRY(sx_tf_with_number(x, &sx_op_maximum, product, 0, &product));
    y = sx_output_of(y, 1);
    SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){SX_I64}), y);
    sx_tf_set(x, 0, y);
    sx_tf_set(x, 1, product);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_number_rows[] = {
    {"NearestNeighbors", import_nearest_neighbors, NULL},
    {"Mean", import_mean, NULL},
    {"Select", import_select, NULL},
    {"AddN", import_sum, NULL},
    {"AccumulateNV2", import_sum, NULL},
    {"Div", import_div, NULL},
    {"ApproximateEqual", import_approximate_equal, NULL},
    {"LinSpace", import_linspace, NULL},
    {"ClipByValue", import_clip, NULL},
    {"OneHot", import_one_hot, NULL},
    {"Where", import_where, NULL},
    {"L2Loss", import_l2_loss, NULL},
    {"EuclideanNorm", import_euclidean_norm, NULL},
    {"Cross", import_cross, NULL},
    {"BatchMatMulV3", import_matmul_types, NULL},
    {"MatrixDiag", import_main_diagonal, NULL},
    {"MatrixDiagPart", import_main_diagonal, NULL},
    {"UnravelIndex", import_unravel, NULL},
    {"Equal", import_equal, NULL},
    {"NotEqual", import_equal, NULL},
    {"Relu", import_relu, NULL},
    {"Relu6", import_relu, NULL},
    {"TopKV2", import_top_k, NULL},
    {"ApproxTopK", import_approx_top_k, NULL},
    {"NthElement", import_nth_element, NULL},
    {"SparseMatMul", sx_tf_import_one, "MatMul"},
    {NULL, NULL, NULL},
};
