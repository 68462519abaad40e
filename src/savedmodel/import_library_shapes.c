/* Imports the nodes that read shapes or change them. */
#include "savedmodel/import_library_ops.h"

#include "base/checked.h"

/* ---- Shapes ---- */

static sx_status import_shape(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TF_BUILD(x, &y, shape, (&(sx_cast_attrs){sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32)}),
                v);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_rank(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(sx_tf_number(x, SX_I32, x->tf.head.types[0].rank, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* The number of elements: the product of the shape's elements. */
static sx_status import_size(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32);
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(sx_tf_number(x, dtype, 1, &y));
    for (int d = 0; d < x->tf.head.types[0].rank; d++) {
        sx_value shape = SX_NO_VALUE, dim = SX_NO_VALUE;
        const sx_slice_attrs at = {.begin = {1, {d}}, .size = {1, {1}}};
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){dtype}), v);
        SX_TF_BUILD(x, &dim, slice, &at, shape);
        SX_TF_BUILD(x, &dim, reshape, (&(sx_shape_attrs){{0}}), dim);
        SX_TF_BUILD(x, &y, mul, NULL, y, dim);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

sx_status sx_tf_expand(const sx_tf_op_node *x, sx_value v, int64_t at, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_ints from = {0};
    if (type.rank == SX_UNKNOWN_RANK || type.rank >= SX_MAX_RANK) {
        return sx_tf_unsupported("an input has rank %d, expected a known rank below %d", type.rank,
                                 SX_MAX_RANK);
    }
    if (at < -type.rank - 1 || at > type.rank) {
        return sx_error(SX_DATA_LOSS, "axis %lld out of range for rank %d", (long long)at,
                        type.rank);
    }
    at += at < 0 ? type.rank + 1 : 0;
    for (int d = 0; d <= type.rank; d++) {
        from.v[from.n++] = d == at ? -1 : d - (d > at);
    }
    return sx_tf_reshape_dims(x, v, &from, out);
}

static sx_status import_expand_dims(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints axis = {0};
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand_ints(x, 1, &axis));
    if (axis.n != 1) {
        return sx_tf_unsupported("%d axes, expected one", axis.n);
    }
    SX_TRY(sx_tf_expand(x, v, axis.v[0], &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_pack(sx_tf_op_node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "axis", 0);
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
        SX_TRY(sx_tf_expand(x, in[i], axis, &in[i]));
    }
    if (x->n->n_in == 0) {
        return sx_error(SX_DATA_LOSS, "it packs nothing");
    }
    const int rank = x->tf.head.types[0].rank + 1;
    const sx_axis_attrs attrs = {axis < 0 ? axis + rank : axis};
    SX_TRY(sx_tf_build(x, &sx_op_concat, &attrs, &y, x->n->n_in, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_squeeze(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_tf_attr list;
    bool gone[SX_MAX_RANK] = {false};
    sx_ints from = {0};
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    const sx_type *type = &x->tf.head.types[0];
    const bool named =
        x->tf.head.attr(&x->tf.head, "squeeze_dims", &list) && list.kind == SX_TF_ATTR_INTS;
    for (int i = 0; named && i < list.count; i++) {
        const int64_t d = list.ints[i] < 0 ? list.ints[i] + type->rank : list.ints[i];
        if (d < 0 || d >= type->rank || (type->dims[d] >= 0 && type->dims[d] != 1)) {
            return sx_error(SX_DATA_LOSS, "dimension %lld cannot be squeezed: its size is not 1",
                            (long long)d);
        }
        gone[d] = true;
    }
    for (int d = 0; d < type->rank; d++) {
        if (!named && type->dims[d] < 0 && !sx_dim_is_batch(type->dims[d])) {
            return sx_tf_unsupported("dimension %d, whose size is unknown, may be 1", d);
        }
        if (!(named ? gone[d] : type->dims[d] == 1)) {
            from.v[from.n++] = d;
        }
    }
    SX_TRY(sx_tf_reshape_dims(x, v, &from, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* dims, value */
static sx_status import_fill(sx_tf_op_node *x)
{
    sx_value dims = SX_NO_VALUE, v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &dims));
    SX_TRY(sx_tf_operand(x, 1, &v));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, v, "shape", dims, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* start, limit, delta: start + delta · (0, 1, …) */
static sx_status import_range(sx_tf_op_node *x)
{
    enum { MAX_RANGE = 1 << 20 };
    sx_ints start = {0}, limit = {0}, delta = {0};
    sx_value y = SX_NO_VALUE, by = SX_NO_VALUE;
    SX_TRY(sx_tf_operand_ints(x, 0, &start));
    SX_TRY(sx_tf_operand_ints(x, 2, &delta));
    if (start.n != 1 || delta.n != 1 || delta.v[0] == 0) {
        return sx_tf_unsupported("start and delta are not integers, or delta is 0");
    }
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    sx_iota_attrs attrs = {.dtype = dtype};
    if (x->tf.head.values[1] != NULL) {
        SX_TRY(sx_tf_operand_ints(x, 1, &limit));
        int64_t distance = 0;
        if (limit.n != 1 || !sx_add_i64(limit.v[0], -start.v[0], &distance)) {
            return sx_tf_unsupported("limit is not an integer");
        }
        const int64_t n = distance / delta.v[0] + (distance % delta.v[0] != 0);
        if (n > MAX_RANGE) {
            return sx_tf_unsupported("%lld numbers; at most %d are supported", (long long)n,
                                     MAX_RANGE);
        }
        attrs.shape = (sx_ints){1, {SX_MAX(n, 0)}};
        SX_TRY(sx_tf_build(x, &sx_op_iota, &attrs, &y, 0, NULL));
    } else if (start.v[0] == 0 && delta.v[0] == 1) {
        sx_value end = SX_NO_VALUE;
        int n = 0;
        SX_TRY(sx_tf_operand(x, 1, &end));
        SX_TF_BUILD(x, &end, reshape, (&(sx_shape_attrs){{1, {1}}}), end);
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_iota, "shape"), end};
        SX_TRY(sx_tf_add_node(x, &sx_op_iota, &attrs, NULL, 0, &open, 1, &y, &n));
    } else {
        return sx_tf_unsupported("its limit is not a constant");
    }
    if (delta.v[0] != 1) {
        SX_TRY(sx_tf_number(x, dtype, (double)delta.v[0], &by));
        SX_TF_BUILD(x, &y, mul, NULL, y, by);
    }
    if (start.v[0] != 0) {
        SX_TRY(sx_tf_number(x, dtype, (double)start.v[0], &by));
        SX_TF_BUILD(x, &y, add, NULL, y, by);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_shape_rows[] = {
    {"Shape", import_shape, NULL},
    {"Rank", import_rank, NULL},
    {"Size", import_size, NULL},
    {"Pack", import_pack, NULL},
    {"Squeeze", import_squeeze, NULL},
    {"ExpandDims", import_expand_dims, NULL},
    {"Fill", import_fill, NULL},
    {"Range", import_range, NULL},
    {NULL, NULL, NULL},
};
