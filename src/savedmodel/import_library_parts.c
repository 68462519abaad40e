/* Imports nodes that cut a tensor into parts along an axis. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include "base/checked.h"

/* Makes room for n outputs. */
static sx_status make_room(sx_tf_op_node *x, int64_t n)
{
    enum { MAX_PARTS = 4096 };
    if (n < 1 || n > MAX_PARTS) {
        return sx_tf_unsupported("%lld parts; 1 to %d are supported", (long long)n, MAX_PARTS);
    }
    if (n > x->n->n_out) {
        x->n->n_out = (int)n;
        x->n->out = sx_arena_array(&x->im->arena, n, sx_tf_thing);
    }
    return x->n->out == NULL ? sx_import_memory() : SX_OK;
}

static sx_status wrap_axis(int64_t axis, int rank, int *out)
{
    *out = (int)(axis < 0 ? axis + rank : axis);
    return *out >= 0 && *out < rank ? SX_OK
                                    : sx_error(SX_DATA_LOSS, "axis %lld out of range for rank %d",
                                               (long long)axis, rank);
}

/* Cuts v along an axis into parts of these sizes; squeezes: each is one element, without the axis.
 */
static sx_status cut(sx_tf_op_node *x, sx_value v, int axis, const int64_t *sizes, int n,
                     bool squeezes)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_ints kept = {0};
    int64_t from = 0;
    SX_TRY(make_room(x, n));
    for (int d = 0; d < type.rank; d++) {
        if (!squeezes || d != axis) {
            kept.v[kept.n++] = d;
        }
    }
    for (int i = 0; i < n; i++) {
        sx_value y = SX_NO_VALUE;
        SX_TRY(sx_tf_cut_axis(x, v, axis, from, sizes[i], &y));
        if (squeezes) {
            SX_TRY(sx_tf_reshape_dims(x, y, &kept, &y));
        }
        sx_tf_set(x, i, y);
        from += sizes[i];
    }
    return SX_OK;
}

sx_status sx_tf_divide_axis(const sx_tf_op_node *x, sx_value v, int axis, int64_t outer,
                            int64_t inner, sx_value *out)
{
    sx_type type = sx_type_of_value(x->b, v);
    const int rank = type.rank;
    sx_value shape = SX_NO_VALUE, parts[3], dims = SX_NO_VALUE;
    int n_parts = 0;
    if (rank == SX_MAX_RANK) {
        return sx_tf_unsupported("an axis of unknown size of a value of rank %d", rank);
    }
    SX_TF_BUILD(x, &dims, shape, (&(sx_cast_attrs){SX_I64}), v);
    for (int side = 0; side < 2; side++) {
        const int from = side == 0 ? 0 : axis + 1, count = side == 0 ? axis : rank - axis - 1;
        const sx_slice_attrs some = {.begin = {1, {from}}, .size = {1, {count}}};
        if (count > 0) {
            SX_TF_BUILD(x, &parts[n_parts++], slice, &some, dims);
        }
        if (side == 0) {
            SX_TRY(sx_tf_int64s(x, &(sx_ints){2, {outer, inner}}, &parts[n_parts++]));
        }
    }
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &shape, n_parts, parts));
    for (int d = rank; d > axis + 1; d--) {
        type.dims[d] = type.dims[d - 1];
    }
    type.rank = rank + 1;
    type.dims[axis] = outer >= 0 ? outer : SX_UNKNOWN_DIM;
    type.dims[axis + 1] = inner >= 0 ? inner : SX_UNKNOWN_DIM;
    return sx_tf_reshape_as(x, v, shape, &type, out);
}

/* The sizes of SplitV's n parts of an axis of `dim` elements, and where they begin, int64 [n]; one
 * size may be -1: what the others leave. */
static sx_status computed_sizes(const sx_tf_op_node *x, sx_value dim, int64_t n, sx_value *sizes,
                                sx_value *begins)
{
    sx_value left, none, rest;
    const sx_shape_attrs line = {{1, {n}}};
    const sx_cumulative_attrs before = {.axis = 0, .exclusive = true};
    SX_TRY(sx_tf_operand(x, 1, sizes));
    SX_TF_BUILD(x, sizes, cast, (&(sx_cast_attrs){SX_I64}), *sizes);
    SX_TF_BUILD(x, sizes, reshape, &line, *sizes);
    SX_TRY(sx_tf_number(x, SX_I64, 0, &none));
    SX_TF_BUILD(x, &left, maximum, NULL, *sizes, none);
    SX_TF_BUILD(x, &left, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {0}}}), left);
    SX_TF_BUILD(x, &left, sub, NULL, dim, left);
    SX_TF_BUILD(x, &rest, less, NULL, *sizes, none);
    SX_TF_BUILD(x, sizes, select, NULL, rest, left, *sizes);
    SX_TF_BUILD(x, begins, cumsum, &before, *sizes);
    return SX_OK;
}

/* Element i of a vector of int64, as a vector. */
static sx_status number_at(const sx_tf_op_node *x, sx_value vector, int64_t i, sx_value *out)
{
    const sx_slice_attrs at = {.begin = {1, {i}}, .size = {1, {1}}};
    SX_TF_BUILD(x, out, slice, &at, vector);
    return SX_OK;
}

/* SplitV into n parts whose sizes are computed. */
static sx_status split_open(sx_tf_op_node *x, sx_value v, int axis, int64_t n)
{
    const int64_t dim = x->tf.head.types[0].dims[axis];
    sx_value sizes, begins, dims, from, size;
    SX_TF_BUILD(x, &dims, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(number_at(x, dims, axis, &dims));
    SX_TRY(computed_sizes(x, dims, n, &sizes, &begins));
    for (int64_t i = 0; i < n; i++) {
        sx_value y = SX_NO_VALUE;
        SX_TRY(number_at(x, begins, i, &from));
        SX_TRY(number_at(x, sizes, i, &size));
        SX_TRY(sx_tf_cut_axis_open(x, v, axis, from, size, n == 1 ? dim : -1, &y));
        sx_tf_set(x, (int)i, y);
    }
    return SX_OK;
}

/* Split(axis, value) and SplitV(value, sizes, axis) into n parts along an axis that is computed, or
 * of a value of unknown rank: a part begins at 0 along the other axes. */
static sx_status split_at(sx_tf_op_node *x, bool sized, int64_t n)
{
    const int at = sized ? 0 : 1;
    sx_value axis, v, shape, rank, zero, dim, here, sizes = SX_NO_VALUE, begins = SX_NO_VALUE, sum;
    SX_TRY(sx_tf_operand(x, sized ? 2 : 0, &axis));
    SX_TRY(sx_tf_operand(x, at, &v));
    SX_TRY(make_room(x, n));
    SX_TF_BUILD(x, &axis, cast, (&(sx_cast_attrs){SX_I64}), axis);
    SX_TF_BUILD(x, &axis, reshape, (&(sx_shape_attrs){{1, {1}}}), axis);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_rank_of(x, v, &rank));
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    SX_TRY(sx_tf_axis_from_0(x, axis, rank, "Split: the axis is out of range", &axis));
    SX_TRY(sx_tf_count_to(x, rank, SX_I64, &here));
    SX_TF_BUILD(x, &here, equal, NULL, here, axis);
    SX_TF_BUILD(x, &dim, gather, NULL, shape, axis);
    if (sized) {
        SX_TRY(computed_sizes(x, dim, n, &sizes, &begins));
        SX_TF_BUILD(x, &sum, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {0}}}), sizes);
    } else {
        SX_TRY(sx_tf_number(x, SX_I64, (double)n, &sum));
        SX_TF_BUILD(x, &sizes, floor_div, NULL, dim, sum);
        SX_TF_BUILD(x, &sum, mul, NULL, sizes, sum);
    }
    SX_TF_BUILD(x, &sum, equal, NULL, sum, dim);
    SX_TRY(sx_tf_require(x, sum, "Split: the parts are not as long as the axis together", shape));
    for (int64_t i = 0; i < n; i++) {
        sx_value begin = SX_NO_VALUE, size = sizes;
        if (sized) {
            SX_TRY(number_at(x, begins, i, &begin));
            SX_TRY(number_at(x, sizes, i, &size));
        } else {
            SX_TRY(sx_tf_number(x, SX_I64, (double)i, &begin));
            SX_TF_BUILD(x, &begin, mul, NULL, begin, sizes);
        }
        SX_TF_BUILD(x, &begin, select, NULL, here, begin, zero);
        SX_TF_BUILD(x, &size, select, NULL, here, size, shape);
        const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_slice, "begin"), begin},
                                         {sx_tf_attr_row(&sx_op_slice, "size"), size}};
        sx_type type = x->tf.head.types[at];
        for (int d = 0; d < type.rank; d++) {
            type.dims[d] = SX_UNKNOWN_DIM;
        }
        sx_tf_set(x, (int)i, sx_tf_build_as(x, &sx_op_slice, NULL, &v, 1, open, 2, &type));
    }
    return SX_OK;
}

/* axis, value; or, SplitV: value, sizes, axis */
static sx_status import_split(sx_tf_op_node *x)
{
    const bool sized = strcmp(x->n->node->op, "SplitV") == 0;
    const int at = sized ? 0 : 1, axis_at = sized ? 2 : 0;
    const int64_t n = sx_tf_read_int(&x->tf.head, "num_split", 0);
    sx_ints axes = {0};
    sx_value v = SX_NO_VALUE;
    int axis = 0;
    SX_TRY(sx_tf_operand(x, at, &v));
    if (axis_at < x->n->n_in && n > 0 &&
        (x->tf.head.values[axis_at] == NULL || x->tf.head.types[at].rank == SX_UNKNOWN_RANK)) {
        return split_at(x, sized, n);
    }
    SX_TRY(sx_tf_operand_ints(x, axis_at, &axes));
    const sx_type *type = &x->tf.head.types[at];
    if (axes.n != 1) {
        return sx_error(SX_DATA_LOSS, "%d axes, expected one", axes.n);
    }
    SX_TRY(wrap_axis(axes.v[0], type->rank, &axis));
    SX_TRY(make_room(x, n));
    int64_t *sizes = sx_arena_array(&x->im->arena, n, int64_t), all = 0, dim = type->dims[axis];
    const sx_tensor *list = sized ? x->tf.head.values[1] : NULL;
    if (sizes == NULL) {
        return sx_import_memory();
    }
    if (sized && list == NULL) {
        return split_open(x, v, axis, n);
    }
    if (sized && ((list->type.dtype != SX_I32 && list->type.dtype != SX_I64) ||
                  sx_type_elems(&list->type) != n)) {
        return sx_error(SX_DATA_LOSS, "the sizes are not %lld integers", (long long)n);
    }
    if (dim < 0 && !sized) {
        for (int64_t i = 0; i < n; i++) {
            sizes[i] = 1;
        }
        SX_TRY(sx_tf_divide_axis(x, v, axis, n, -1, &v));
        return cut(x, v, axis, sizes, (int)n, true);
    }
    int rest = -1;
    for (int i = 0; i < n; i++) {
        sizes[i] = !sized                       ? dim / n
                   : list->type.dtype == SX_I32 ? ((const int32_t *)list->data)[i]
                                                : ((const int64_t *)list->data)[i];
        rest = sizes[i] == -1 ? i : rest;
        if (sizes[i] < -1 || !sx_add_i64(all, SX_MAX(sizes[i], 0), &all)) {
            return sx_error(SX_DATA_LOSS, "part %d has size %lld", i, (long long)sizes[i]);
        }
    }
    if (rest >= 0 && dim < 0) {
        return split_open(x, v, axis, n);
    }
    if (rest >= 0) {
        sizes[rest] = dim - all;
        all = dim;
    }
    if (dim >= 0 && (all != dim || (rest >= 0 && sizes[rest] < 0))) {
        return sx_error(SX_DATA_LOSS, "the parts have %lld elements, axis %d has %lld",
                        (long long)all, axis, (long long)dim);
    }
    return cut(x, v, axis, sizes, (int)n, false);
}

/* value: its elements along an axis */
static sx_status import_unpack(sx_tf_op_node *x)
{
    const int64_t n = sx_tf_read_int(&x->tf.head, "num", 0);
    sx_value v = SX_NO_VALUE;
    int axis = 0;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(wrap_axis(sx_tf_read_int(&x->tf.head, "axis", 0), x->tf.head.types[0].rank, &axis));
    if (n == 0) {
        return SX_OK;
    }
    SX_TRY(make_room(x, n));
    int64_t *sizes = sx_arena_array(&x->im->arena, n, int64_t);
    for (int64_t i = 0; i < n && sizes != NULL; i++) {
        sizes[i] = 1;
    }
    return sizes == NULL ? sx_import_memory() : cut(x, v, axis, sizes, (int)n, true);
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_part_rows[] = {
    {"Split", import_split, NULL},
    {"SplitV", import_split, NULL},
    {"Unpack", import_unpack, NULL},
    {NULL, NULL, NULL},
};
