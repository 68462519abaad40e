/* Imports the nodes that read shapes or change them. */
#include "savedmodel/import_library_ops.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* ---- Shapes ---- */

sx_status sx_tf_rank_of(const sx_tf_op_node *x, sx_value v, sx_value *out)
{
    sx_value shape = SX_NO_VALUE;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, out, shape, (&(sx_cast_attrs){SX_I64}), shape);
    return SX_OK;
}

static sx_status import_shape(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TF_BUILD(x, &y, shape, (&(sx_cast_attrs){sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32)}),
                v);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* A shape for each input. */
static sx_status import_shapes(sx_tf_op_node *x)
{
    const sx_cast_attrs attrs = {sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32)};
    for (int i = 0; i < x->n->n_in; i++) {
        sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
        SX_TRY(sx_tf_operand(x, i, &v));
        SX_TF_BUILD(x, &y, shape, &attrs, v);
        sx_tf_set(x, i, y);
    }
    return SX_OK;
}

/* axis, shapes...: where each of the tensors of these shapes begins in all of them concatenated */
static sx_status import_concat_offset(sx_tf_op_node *x)
{
    sx_ints axis = {0};
    sx_value along = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand_ints(x, 0, &axis));
    if (x->n->n_in < 2) {
        return sx_error(SX_DATA_LOSS, "the shapes are missing");
    }
    const sx_type *type = &x->tf.head.types[1];
    const int64_t rank = type->rank == 1 ? type->dims[0] : -1;
    if (rank < 1 || rank > SX_MAX_RANK || axis.n != 1 || axis.v[0] < -rank || axis.v[0] >= rank) {
        return sx_tf_unsupported("axis %lld of tensors of rank %lld",
                                 (long long)(axis.n == 1 ? axis.v[0] : 0), (long long)rank);
    }
    sx_ints chosen = {.n = (int)rank};
    chosen.v[axis.v[0] + (axis.v[0] < 0 ? rank : 0)] = 1;
    SX_TRY(sx_tf_int64s(x, &chosen, &along));
    SX_TF_BUILD(x, &along, cast, (&(sx_cast_attrs){type->dtype}), along);
    for (int i = 1; i < x->n->n_in; i++) {
        sx_value shape = SX_NO_VALUE;
        SX_TRY(sx_tf_operand(x, i, &shape));
        if (i == 1) {
            SX_TF_BUILD(x, &y, sub, NULL, along, along);
        }
        sx_tf_set(x, i - 1, y);
        SX_TF_BUILD(x, &shape, mul, NULL, shape, along);
        SX_TF_BUILD(x, &y, add, NULL, y, shape);
    }
    return SX_OK;
}

/* s0, s1: the shape that values of these shapes broadcast to, which is that of their sum. */
static sx_status import_broadcast_args(sx_tf_op_node *x)
{
    sx_value zero = SX_NO_VALUE, v[2] = {SX_NO_VALUE, SX_NO_VALUE}, y = SX_NO_VALUE;
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    SX_TRY(sx_tf_number(x, SX_BOOL, 0, &zero));
    for (int i = 0; i < 2; i++) {
        SX_TRY(sx_tf_operand(x, i, &v[i]));
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, zero, "shape", v[i], &v[i]));
    }
    SX_TF_BUILD(x, &y, logical_or, NULL, v[0], v[1]);
    SX_TF_BUILD(x, &y, shape, (&(sx_cast_attrs){dtype}), y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_rank(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (x->tf.head.types[0].rank != SX_UNKNOWN_RANK) {
        SX_TRY(sx_tf_number(x, SX_I32, x->tf.head.types[0].rank, &y));
    } else { /* the length of its shape */
        SX_TRY(sx_tf_rank_of(x, v, &y));
        SX_TF_BUILD(x, &y, reshape, (&(sx_shape_attrs){{0}}), y);
        SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){SX_I32}), y);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* The number of elements: the product of the shape's elements. */
static sx_status import_size(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32);
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (x->tf.head.types[0].rank == SX_UNKNOWN_RANK) {
        SX_TF_BUILD(x, &y, shape, (&(sx_cast_attrs){dtype}), v);
        SX_TF_BUILD(x, &y, reduce_prod, (&(sx_reduce_attrs){.axes = {1, {0}}}), y);
        sx_tf_set(x, 0, y);
        return SX_OK;
    }
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

/* An axis of a value of unknown rank as an int64 [1]; a negative one counts from `end`, [1]. */
static sx_status axis_from(const sx_tf_op_node *x, int64_t axis, sx_value end, sx_value *out)
{
    sx_value back = SX_NO_VALUE;
    if (axis >= 0) {
        return sx_tf_int64s(x, &(sx_ints){1, {axis}}, out);
    }
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-axis}}, &back));
    SX_TF_BUILD(x, out, sub, NULL, end, back);
    return SX_OK;
}

sx_status sx_tf_vector_part(const sx_tf_op_node *x, sx_value vector, sx_value begin, sx_value size,
                            sx_value *out)
{
    const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_slice, "begin"), begin},
                                     {sx_tf_attr_row(&sx_op_slice, "size"), size}};
    int n_out = 0;
    return sx_tf_add_node(x, &sx_op_slice, NULL, &vector, 1, open, 2, out, &n_out);
}

sx_status sx_tf_replace_dims(const sx_tf_op_node *x, sx_value shape, sx_value axis, int64_t n,
                             sx_value inserted, sx_value *out)
{
    sx_value zero = SX_NO_VALUE, all = SX_NO_VALUE, rest = SX_NO_VALUE, parts[3];
    int n_parts = 0;
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &all));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {n}}, &rest));
    SX_TF_BUILD(x, &rest, add, NULL, axis, rest);
    SX_TRY(sx_tf_vector_part(x, shape, zero, axis, &parts[n_parts++]));
    if (sx_value_is(inserted)) {
        parts[n_parts++] = inserted;
    }
    SX_TRY(sx_tf_vector_part(x, shape, rest, all, &parts[n_parts++]));
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, out, n_parts, parts);
}

sx_status sx_tf_know_rank(const sx_tf_op_node *x, int rank, sx_value *v)
{
    sx_type type = sx_type_of_value(x->b, *v);
    sx_value shape = SX_NO_VALUE;
    if (type.rank != SX_UNKNOWN_RANK) {
        return SX_OK;
    }
    type.rank = rank;
    for (int d = 0; d < rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    SX_TRY(sx_tf_sizes_of(x, *v, 0, rank, &shape));
    return sx_tf_reshape_as(x, *v, shape, &type, v);
}

/* sx_tf_expand() where the rank is unknown. */
static sx_status expand_unknown(const sx_tf_op_node *x, sx_value v, int64_t at, sx_value *out)
{
    sx_value shape = SX_NO_VALUE, one = SX_NO_VALUE, axis = SX_NO_VALUE, rank = SX_NO_VALUE;
    const sx_type type = sx_tf_unknown_shape(sx_type_of_value(x->b, v).dtype);
    SX_TRY(sx_tf_rank_of(x, v, &rank));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    if (at < 0) { /* -1 is the end of the result */
        SX_TF_BUILD(x, &rank, add, NULL, rank, one);
    }
    SX_TRY(axis_from(x, at, rank, &axis));
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_replace_dims(x, shape, axis, 0, one, &shape));
    return sx_tf_reshape_as(x, v, shape, &type, out);
}

sx_status sx_tf_expand(const sx_tf_op_node *x, sx_value v, int64_t at, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_ints from = {0};
    if (type.rank == SX_UNKNOWN_RANK) {
        return expand_unknown(x, v, at, out);
    }
    if (type.rank >= SX_MAX_RANK) {
        return sx_tf_unsupported("an input has rank %d, expected a rank below %d", type.rank,
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

/* ExpandDims at an axis that is computed. */
static sx_status expand_at(sx_tf_op_node *x, sx_value v)
{
    const sx_shape_attrs line = {.shape = {1, {1}}};
    sx_type type = sx_tf_unknown_shape(x->tf.head.types[0].dtype);
    sx_value axis = SX_NO_VALUE, rank = SX_NO_VALUE, one = SX_NO_VALUE, back = SX_NO_VALUE,
             zero = SX_NO_VALUE, negative = SX_NO_VALUE, shape = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 1, &axis));
    SX_TF_BUILD(x, &axis, cast, (&(sx_cast_attrs){SX_I64}), axis);
    SX_TF_BUILD(x, &axis, reshape, &line, axis);
    SX_TRY(sx_tf_rank_of(x, v, &rank));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
    SX_TF_BUILD(x, &back, add, NULL, rank, one);
    SX_TF_BUILD(x, &back, add, NULL, back, axis);
    SX_TF_BUILD(x, &negative, less, NULL, axis, zero);
    SX_TF_BUILD(x, &axis, select, NULL, negative, back, axis);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_replace_dims(x, shape, axis, 0, one, &shape));
    if (x->tf.head.types[0].rank != SX_UNKNOWN_RANK && x->tf.head.types[0].rank < SX_MAX_RANK) {
        type.rank = x->tf.head.types[0].rank + 1;
        for (int d = 0; d < type.rank; d++) {
            type.dims[d] = SX_UNKNOWN_DIM;
        }
    }
    SX_TRY(sx_tf_reshape_as(x, v, shape, &type, &v));
    sx_tf_set(x, 0, v);
    return SX_OK;
}

static sx_status import_expand_dims(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints axis = {0};
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (x->n->n_in > 1 && x->tf.head.values[1] == NULL) {
        return expand_at(x, v);
    }
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
    const int rank = sx_type_of_value(x->b, in[0]).rank;
    if (rank == SX_UNKNOWN_RANK && axis < 0) {
        sx_attr_operand open = {sx_tf_attr_row(&sx_op_concat, "axis"), SX_NO_VALUE};
        int n_out = 0;
        SX_TRY(sx_tf_number(x, SX_I64, (double)axis, &open.value));
        SX_TRY(sx_tf_add_node(x, &sx_op_concat, NULL, in, x->n->n_in, &open, 1, &y, &n_out));
    } else {
        const sx_axis_attrs attrs = {axis < 0 ? axis + rank : axis};
        SX_TRY(sx_tf_build(x, &sx_op_concat, &attrs, &y, x->n->n_in, in));
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Squeeze where the rank is unknown, or which dimensions are 1: by a computed shape. */
static sx_status squeeze_unknown(sx_tf_op_node *x, sx_value v, const sx_tf_attr *list)
{
    sx_value shape = SX_NO_VALUE, y = SX_NO_VALUE, rank = SX_NO_VALUE, one = SX_NO_VALUE;
    const sx_type type = sx_tf_unknown_shape(x->tf.head.types[0].dtype);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    if (list == NULL) { /* all that are 1 */
        sx_value places = SX_NO_VALUE;
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
        SX_TF_BUILD(x, &places, not_equal, NULL, shape, one);
        SX_TF_BUILD(x, &places, where, NULL, places);
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &one));
        SX_TRY(sx_tf_build_open(x, &sx_op_reshape, NULL, places, "shape", one, &places));
        SX_TF_BUILD(x, &shape, gather, NULL, shape, places);
    } else if (list->count != 1) {
        return sx_tf_unsupported("%d dimensions of an input of unknown rank", list->count);
    } else {
        sx_value axis = SX_NO_VALUE;
        SX_TRY(sx_tf_rank_of(x, v, &rank));
        SX_TRY(axis_from(x, list->ints[0], rank, &axis));
        SX_TRY(sx_tf_replace_dims(x, shape, axis, 1, SX_NO_VALUE, &shape));
    }
    SX_TRY(sx_tf_reshape_as(x, v, shape, &type, &y));
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
    const sx_type *type = &x->tf.head.types[0];
    const bool named = x->tf.head.attr(&x->tf.head, "squeeze_dims", &list) &&
                       list.kind == SX_TF_ATTR_INTS && list.count > 0;
    bool unknown = type->rank == SX_UNKNOWN_RANK;
    for (int d = 0; d < type->rank && !named; d++) {
        unknown = unknown || type->dims[d] < 0; /* N may be 1 */
    }
    if (unknown) {
        return squeeze_unknown(x, v, named ? &list : NULL);
    }
    for (int i = 0; named && i < list.count; i++) {
        const int64_t d = list.ints[i] < 0 ? list.ints[i] + type->rank : list.ints[i];
        if (d < 0 || d >= type->rank || (type->dims[d] >= 0 && type->dims[d] != 1)) {
            return sx_error(SX_DATA_LOSS, "dimension %lld cannot be squeezed: its size is not 1",
                            (long long)d);
        }
        gone[d] = true;
    }
    for (int d = 0; d < type->rank; d++) {
        if (!(named ? gone[d] : type->dims[d] == 1)) {
            from.v[from.n++] = d;
        }
    }
    SX_TRY(sx_tf_reshape_dims(x, v, &from, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Empty: its elements are not set, here zeros. */
static sx_status import_empty(sx_tf_op_node *x)
{
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "dtype", SX_DTYPE_NONE);
    sx_value dims = SX_NO_VALUE, v = SX_NO_VALUE, y = SX_NO_VALUE;
    if (sx_dtype_bytes(dtype) == 0) {
        return sx_tf_unsupported("a tensor of strings, or of complex numbers, that is not set");
    }
    SX_TRY(sx_tf_operand(x, 0, &dims));
    SX_TRY(sx_tf_number(x, dtype, 0, &v));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, v, "shape", dims, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* InvertPermutation: y[x[i]] = i */
static sx_status import_invert_permutation(sx_tf_op_node *x)
{
    const sx_tensor_scatter_attrs put = {.how = SX_SCATTER_UPDATE};
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    sx_value v = SX_NO_VALUE, at = SX_NO_VALUE, n = SX_NO_VALUE, i = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TF_BUILD(x, &n, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_count_to(x, n, dtype, &i));
    SX_TRY(sx_tf_expand(x, v, -1, &at));
    SX_TF_BUILD(x, &y, tensor_scatter, &put, v, at, i);
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

/* Column `side` of paddings [rank, 2], as a list. */
static sx_status paddings_of_side(const sx_tf_op_node *x, sx_value paddings, int rank, int side,
                                  sx_value *out)
{
    const sx_slice_attrs column = {.begin = {2, {0, side}}, .size = {2, {rank, 1}}};
    const sx_shape_attrs line = {.shape = {1, {rank}}};
    SX_TF_BUILD(x, out, slice, &column, paddings);
    return sx_tf_build(x, &sx_op_reshape, &line, out, 1, out);
}

/* Pad, PadV2: x, paddings, value. Paddings that are computed are operands. */
static sx_status import_pad(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, paddings = SX_NO_VALUE, y = SX_NO_VALUE, sides[2];
    if (x->n->n_in < 2 ||
        (x->tf.head.values[1] != NULL && x->tf.head.types[0].rank != SX_UNKNOWN_RANK &&
         (x->n->n_in < 3 || x->tf.head.values[2] != NULL))) {
        return sx_tf_import_one(x);
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &paddings));
    const sx_type *given = &x->tf.head.types[1];
    const int rank = x->tf.head.types[0].rank != SX_UNKNOWN_RANK         ? x->tf.head.types[0].rank
                     : given->rank == 2 && given->dims[0] <= SX_MAX_RANK ? (int)given->dims[0]
                                                                         : -1;
    sx_pad_attrs attrs = {.value = 0};
    if (rank < 0) {
        return sx_tf_unsupported("the rank of its input is unknown");
    }
    const sx_tensor *value = x->n->n_in > 2 ? x->tf.head.values[2] : NULL;
    if (x->n->n_in > 2 && x->tf.head.types[2].rank != 0 &&
        x->tf.head.types[2].rank != SX_UNKNOWN_RANK) {
        return sx_tf_unsupported("the value is no scalar");
    }
    if (value != NULL) {
        attrs.value = sx_host_load_element(value->type.dtype, value->data);
    }
    sx_type type = {.dtype = x->tf.head.types[0].dtype, .rank = rank};
    for (int d = 0; d < rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    for (int side = 0; side < 2; side++) {
        SX_TRY(paddings_of_side(x, paddings, rank, side, &sides[side]));
    }
    const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_pad, "before"), sides[0]},
                                     {sx_tf_attr_row(&sx_op_pad, "after"), sides[1]}};
    y = sx_tf_build_as(x, &sx_op_pad, &attrs, &v, 1, open, 2, &type);
    if (x->n->n_in > 2 &&
        value == NULL) { /* a value that is computed, where ones were not padded */
        sx_value fill = SX_NO_VALUE, ones = SX_NO_VALUE, shape = SX_NO_VALUE, zero = SX_NO_VALUE;
        SX_TRY(sx_tf_operand(x, 2, &fill));
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
        SX_TRY(sx_tf_number(x, SX_I32, 1, &ones));
        SX_TRY(sx_tf_number(x, SX_I32, 0, &zero));
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, ones, "shape", shape, &ones));
        type.dtype = SX_I32;
        ones = sx_tf_build_as(x, &sx_op_pad, &attrs, &ones, 1, open, 2, &type);
        SX_TF_BUILD(x, &ones, not_equal, NULL, ones, zero);
        SX_TF_BUILD(x, &y, select, NULL, ones, y, fill);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* That a range has a direction, and its limit is not behind its start. */
static sx_status require_range(const sx_tf_op_node *x, sx_value distance, sx_value delta,
                               sx_value sign)
{
    sx_value zero = SX_NO_VALUE, moves = SX_NO_VALUE, ahead = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, x->tf.head.types[0].dtype, 0, &zero));
    SX_TF_BUILD(x, &moves, not_equal, NULL, delta, zero);
    SX_TRY(sx_tf_require(x, moves, "Range: its delta must not be 0", delta));
    SX_TF_BUILD(x, &ahead, mul, NULL, distance, sign);
    SX_TF_BUILD(x, &ahead, greater_equal, NULL, ahead, zero);
    return sx_tf_require(x, ahead,
                         "Range: expected start <= limit for a positive delta, start >= limit for "
                         "a negative one; limit - start is",
                         distance);
}

/* How many numbers start + delta * (0, 1, ...) are before limit, an int64 scalar. */
static sx_status count_range(const sx_tf_op_node *x, sx_value start, sx_value limit, sx_value delta,
                             sx_value *out)
{
    sx_value n = SX_NO_VALUE, sign = SX_NO_VALUE, zero = SX_NO_VALUE;
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    SX_TF_BUILD(x, &n, sub, NULL, limit, start);
    SX_TF_BUILD(x, &sign, sign, NULL, delta);
    SX_TRY(require_range(x, n, delta, sign));
    if (sx_dtype_is_integer(dtype)) { /* rounded up: (distance + delta - sign) / delta */
        SX_TF_BUILD(x, &n, add, NULL, n, delta);
        SX_TF_BUILD(x, &n, sub, NULL, n, sign);
        SX_TF_BUILD(x, &n, floor_div, NULL, n, delta);
    } else {
        const double most = dtype == SX_F16 ? 65504 : 0x1p62; /* what int64 and the dtype hold */
        sx_value few = SX_NO_VALUE;
        SX_TF_BUILD(x, &n, div, NULL, n, delta);
        SX_TF_BUILD(x, &n, ceil, NULL, n);
        SX_TRY(sx_tf_number(x, dtype, most, &few));
        SX_TF_BUILD(x, &few, less_equal, NULL, n, few);
        SX_TRY(sx_tf_require(x, few, "Range: too many numbers", n));
    }
    if (dtype != SX_I64) {
        SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_I64}), n);
    }
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    SX_TF_BUILD(x, out, maximum, NULL, n, zero);
    return SX_OK;
}

/* Whether input i is this number. */
static bool is_number(const sx_tf_op_node *x, int i, double value)
{
    const sx_tensor *t = x->tf.head.values[i];
    return t != NULL && t->type.rank == 0 && sx_dtype_bytes(t->type.dtype) > 0 &&
           sx_host_load_element(t->type.dtype, t->data) == value;
}

/* start, limit, delta: start + delta * (0, 1, ...) */
static sx_status import_range(sx_tf_op_node *x)
{
    enum { MAX_RANGE = 1 << 20 };
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    const bool from_zero = is_number(x, 0, 0), by_one = is_number(x, 2, 1);
    sx_iota_attrs attrs = {.dtype = dtype};
    sx_value in[3], y = SX_NO_VALUE, n = SX_NO_VALUE;
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (is_number(x, 2, 0)) {
        return sx_error(SX_DATA_LOSS, "its delta is 0");
    }
    const sx_tensor *limit = x->tf.head.values[1];
    const double end = limit != NULL && limit->type.rank == 0 && sx_dtype_bytes(dtype) > 0
                           ? sx_host_load_element(dtype, limit->data)
                           : -1;
    if (from_zero && by_one && end >= 0 && end <= MAX_RANGE) {
        attrs.shape = (sx_ints){1, {(int64_t)ceil(end)}};
        SX_TRY(sx_tf_build(x, &sx_op_iota, &attrs, &y, 0, NULL));
    } else {
        if (from_zero && by_one && sx_dtype_is_integer(dtype)) {
            n = in[1];
        } else {
            SX_TRY(count_range(x, in[0], in[1], in[2], &n));
        }
        SX_TF_BUILD(x, &n, reshape, (&(sx_shape_attrs){{1, {1}}}), n);
        SX_TRY(sx_tf_count_to(x, n, dtype, &y));
    }
    if (!by_one) {
        SX_TF_BUILD(x, &y, mul, NULL, y, in[2]);
    }
    if (!from_zero) {
        SX_TF_BUILD(x, &y, add, NULL, y, in[0]);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Others ---- */

/* ZerosLike, OnesLike */
static sx_status import_like(sx_tf_op_node *x)
{
    const sx_type *type = &x->tf.head.types[0];
    sx_value v = SX_NO_VALUE, shape = SX_NO_VALUE, y = SX_NO_VALUE;
    if (x->n->n_in > 0 && x->n->in[0].kind == SX_TF_LIST) {
        return sx_tf_list_zeros_like(x);
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (type->dtype == SX_STRING) {
        static const sx_bytes nothing = {"", 0};
        SX_TRY(sx_tf_constant(x, sx_scalar_type(SX_STRING), &nothing, &y));
    } else if (sx_dtype_bytes(type->dtype) == 0) {
        return sx_tf_unsupported("of %s", sx_dtype_name(type->dtype));
    } else {
        SX_TRY(sx_tf_number(x, type->dtype, strcmp(x->n->node->op, "OnesLike") == 0, &y));
    }
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_broadcast_to, "shape"), shape};
    y = sx_tf_build_as(x, &sx_op_broadcast_to, NULL, &y, 1, &open, 1, type);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ParallelConcat: along axis 0. */
static sx_status import_parallel_concat(sx_tf_op_node *x)
{
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &y, x->n->n_in, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Reverse(x, which): along the axes where `which`, a constant, is true. */
static sx_status import_reverse_which(sx_tf_op_node *x)
{
    const sx_tensor *which = NULL;
    sx_axes_attrs attrs = {.axes = {0}};
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_read_value(&x->tf.head, 1, &which));
    if (which->type.dtype != SX_BOOL || which->type.rank != 1 ||
        which->type.dims[0] > SX_MAX_RANK) {
        return sx_tf_unsupported("its dimensions are not a vector of at most %d bools",
                                 SX_MAX_RANK);
    }
    for (int64_t d = 0; d < which->type.dims[0]; d++) {
        if (((const uint8_t *)which->data)[d]) {
            attrs.axes.v[attrs.axes.n++] = d;
        }
    }
    SX_TF_BUILD(x, &y, reverse, &attrs, v);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* The places in `to` of the letters of `from`, NHWC and the like; UNIMPLEMENTED: others. */
static sx_status format_places(const sx_tf_op_node *x, bool inverse, int32_t *out, int *out_n)
{
    const char *names[2] = {inverse ? "dst_format" : "src_format",
                            inverse ? "src_format" : "dst_format"};
    const char *texts[2] = {inverse ? "NCHW" : "NHWC", inverse ? "NHWC" : "NCHW"};
    for (int i = 0; i < 2; i++) {
        const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, names[i]);
        if (a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S) {
            texts[i] = sx_arena_strndup(&x->im->arena, (const char *)a->s.data, a->s.len);
        }
        if (texts[i] == NULL) {
            return sx_import_memory();
        }
    }
    const size_t n = strlen(texts[0]);
    bool sound = n == strlen(texts[1]) && (n == 4 || n == 5);
    for (size_t i = 0; i < n && sound; i++) {
        const char *at = strchr(texts[1], texts[0][i]);
        sound = at != NULL && strchr(texts[0], texts[0][i]) == texts[0] + i;
        out[i] = sound ? (int32_t)(at - texts[1]) : 0;
    }
    *out_n = (int)n;
    return sound ? SX_OK
                 : sx_tf_unsupported("the formats are %s and %s, expected 4 or 5 letters of which "
                                     "each is in both",
                                     texts[0], texts[1]);
}

/* DataFormatDimMap(x): the dimensions of one format as those of the other. */
static sx_status import_format_dims(sx_tf_op_node *x)
{
    int32_t places[5];
    int n = 0;
    sx_value v = SX_NO_VALUE, table = SX_NO_VALUE, size = SX_NO_VALUE, y = SX_NO_VALUE;
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(format_places(x, false, places, &n));
    SX_TRY(sx_tf_constant(x, sx_type_of(SX_I32, n), places, &table));
    SX_TRY(sx_tf_number(x, dtype, n, &size));
    SX_TF_BUILD(x, &y, floor_mod, NULL, v, size);
    SX_TF_BUILD(x, &y, gather, NULL, table, y);
    SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){dtype}), y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* DataFormatVecPermute(x): numbers for each dimension of one format in the order of the other; of
 * two less, those for the spatial dimensions. */
static sx_status import_format_vector(sx_tf_op_node *x)
{
    int32_t places[5];
    int n = 0;
    sx_value v = SX_NO_VALUE, order = SX_NO_VALUE, y = SX_NO_VALUE;
    const sx_type *type = &x->tf.head.types[0];
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(format_places(x, true, places, &n));
    if (type->rank >= 1 && type->dims[0] == n - 2) { /* the spatial ones keep their order */
        sx_tf_set(x, 0, v);
        return SX_OK;
    }
    if (type->rank < 1 || type->rank > 2 || type->dims[0] != n) {
        return sx_tf_unsupported("its input has not %d or %d rows", n, n - 2);
    }
    SX_TRY(sx_tf_constant(x, sx_type_of(SX_I32, n), places, &order));
    SX_TF_BUILD(x, &y, gather, NULL, v, order);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_shape_rows[] = {
    {"ShapeN", import_shapes, NULL},
    {"ConcatOffset", import_concat_offset, NULL},
    {"BroadcastArgs", import_broadcast_args, NULL},
    {"Shape", import_shape, NULL},
    {"Rank", import_rank, NULL},
    {"Size", import_size, NULL},
    {"Pack", import_pack, NULL},
    {"Squeeze", import_squeeze, NULL},
    {"ExpandDims", import_expand_dims, NULL},
    {"Fill", import_fill, NULL},
    {"Range", import_range, NULL},
    {"ZerosLike", import_like, NULL},
    {"OnesLike", import_like, NULL},
    {"Pad", import_pad, NULL},
    {"PadV2", import_pad, NULL},
    {"Empty", import_empty, NULL},
    {"InvertPermutation", import_invert_permutation, NULL},
    {"ParallelConcat", import_parallel_concat, NULL},
    {"Reverse", import_reverse_which, NULL},
    {"DataFormatDimMap", import_format_dims, NULL},
    {"DataFormatVecPermute", import_format_vector, NULL},
    {NULL, NULL, NULL},
};
