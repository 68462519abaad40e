/* Imports scattering into zeros and sums over segments, from tensor_scatter. */
#include "savedmodel/import_library_ops.h"

#include <float.h>
#include <string.h>

/* ---- Scattering ---- */

/* GatherNd(x, indices): the rank of the result is known if the last dimension of the indices is. */
static sx_status import_gather_nd(sx_tf_op_node *x)
{
    static const sx_gather_nd_attrs attrs = {.skip_negative = false};
    const sx_type *indices = &x->tf.head.types[1];
    sx_value in[2];
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    if (indices->rank > 0 && indices->dims[indices->rank - 1] >= 0) {
        return sx_tf_import_one(x);
    }
    const sx_type y = sx_tf_unknown_shape(x->tf.head.types[0].dtype);
    sx_tf_set(x, 0, sx_tf_build_as(x, &sx_op_gather_nd, &attrs, in, 2, NULL, 0, &y));
    return SX_OK;
}

/* InplaceUpdate(x, i, v), InplaceAdd, InplaceSub: v replaces rows i of x, is added, subtracted. */
static sx_status import_inplace(sx_tf_op_node *x)
{
    const char last = x->n->node->op[strlen("Inplace")];
    const sx_tensor_scatter_attrs attrs = {.how = last == 'A'   ? SX_SCATTER_ADD
                                                  : last == 'S' ? SX_SCATTER_SUB
                                                                : SX_SCATTER_UPDATE};
    sx_value in[3], y = SX_NO_VALUE;
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(sx_tf_expand(x, in[1], -1, &in[1]));
    SX_TF_BUILD(x, &y, tensor_scatter, &attrs, in[0], in[1], in[2]);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Where a block of `size` elements of a tensor of `shape` begins: at the indices, but inside. */
static sx_status begin_inside(const sx_tf_op_node *x, sx_value indices, sx_value shape,
                              sx_value size, sx_value *out)
{
    sx_value most, none;
    SX_TRY(sx_tf_number(x, SX_I64, 0, &none));
    SX_TF_BUILD(x, &most, sub, NULL, shape, size);
    SX_TF_BUILD(x, out, cast, (&(sx_cast_attrs){SX_I64}), indices);
    SX_TF_BUILD(x, out, minimum, NULL, *out, most);
    SX_TF_BUILD(x, out, maximum, NULL, *out, none);
    return SX_OK;
}

/* XlaDynamicSlice(x, indices, size): the block of x that begins at the indices, which are moved so
 * that it lies inside. */
static sx_status import_dynamic_slice(sx_tf_op_node *x)
{
    sx_value v, indices, size, shape, begin, y = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    SX_TRY(sx_tf_operand(x, 2, &size));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &size, cast, (&(sx_cast_attrs){SX_I64}), size);
    SX_TRY(begin_inside(x, indices, shape, size, &begin));
    const sx_attr_operand open[2] = {{sx_tf_attr_row(&sx_op_slice, "begin"), begin},
                                     {sx_tf_attr_row(&sx_op_slice, "size"), size}};
    SX_TRY(sx_tf_add_node(x, &sx_op_slice, NULL, &v, 1, open, 2, &y, &n_out));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* XlaDynamicUpdateSlice(x, update, indices): the block of x that begins at the indices, which are
 * moved so that it lies inside. Along each axis element k of x reads element k - begin of the
 * update, where there is one. */
static sx_status import_update_slice(sx_tf_op_node *x)
{
    sx_value v, u, indices, begin, from, to, none, inside = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &u));
    SX_TRY(sx_tf_operand(x, 2, &indices));
    SX_TRY(sx_tf_require_rank(x, 0));
    const sx_type *whole = &x->tf.head.types[0], *part = &x->tf.head.types[1];
    const int rank = whole->rank;
    if (part->rank != rank) {
        return sx_tf_unsupported("an update of rank %d of a tensor of rank %d", part->rank, rank);
    }
    SX_TRY(sx_tf_number(x, SX_I64, 0, &none));
    SX_TF_BUILD(x, &to, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &from, shape, (&(sx_cast_attrs){SX_I64}), u);
    SX_TRY(begin_inside(x, indices, to, from, &begin));
    y = u;
    for (int d = 0; d < rank; d++) {
        const sx_slice_attrs of_axis = {.begin = {1, {d}}, .size = {1, {1}}};
        const sx_gather_attrs along = {.axis = d};
        sx_ints column = {.n = rank - d};
        sx_value n, size, at, low, high, last, one;
        if (whole->dims[d] == part->dims[d] &&
            (whole->dims[d] >= 0 || sx_dim_is_batch(whole->dims[d]))) {
            continue;
        }
        SX_TF_BUILD(x, &n, slice, &of_axis, to);
        SX_TF_BUILD(x, &size, slice, &of_axis, from);
        SX_TF_BUILD(x, &low, slice, &of_axis, begin);
        SX_TRY(sx_tf_count_to(x, n, SX_I64, &at));
        SX_TF_BUILD(x, &at, sub, NULL, at, low);
        SX_TF_BUILD(x, &low, less, NULL, at, none);
        SX_TF_BUILD(x, &low, logical_not, NULL, low);
        SX_TF_BUILD(x, &high, less, NULL, at, size);
        SX_TF_BUILD(x, &high, logical_and, NULL, low, high);
        SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
        SX_TF_BUILD(x, &last, sub, NULL, size, one);
        SX_TF_BUILD(x, &at, minimum, NULL, at, last);
        SX_TF_BUILD(x, &at, maximum, NULL, at, none);
        SX_TF_BUILD(x, &y, gather, &along, y, at);
        for (int k = 0; k < column.n; k++) {
            column.v[k] = k == 0 ? 0 : -1;
        }
        SX_TRY(sx_tf_reshape_dims(x, high, &column, &high));
        if (sx_value_is(inside)) {
            SX_TF_BUILD(x, &inside, logical_and, NULL, inside, high);
        } else {
            inside = high;
        }
    }
    if (sx_value_is(inside)) {
        SX_TF_BUILD(x, &y, select, NULL, inside, y, v);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Sparse and dense ---- */

/* SparseDenseCwiseMul, Div and Add(indices, values, shape, dense): the values that there are, each
 * with its element of the dense tensor, which may broadcast. */
static sx_status import_sparse_dense(sx_tf_op_node *x)
{
    static const sx_gather_nd_attrs attrs = {.skip_negative = false};
    const char *op = x->n->node->op;
    const sx_op_def *how = strstr(op, "Mul") != NULL   ? &sx_op_mul
                           : strstr(op, "Div") != NULL ? &sx_op_div
                                                       : &sx_op_add;
    sx_value in[4], both[2], y = SX_NO_VALUE;
    if (x->n->n_in != 4) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected 4", x->n->n_in);
    }
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (how == &sx_op_div && sx_dtype_is_integer(x->tf.head.types[1].dtype)) {
        how = &sx_op_truncate_div;
    }
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, in[3], "shape", in[2], &in[3]));
    const sx_value at[] = {in[3], in[0]};
    sx_type type = sx_type_of(x->tf.head.types[1].dtype, SX_UNKNOWN_DIM);
    both[0] = in[1];
    both[1] = sx_tf_build_as(x, &sx_op_gather_nd, &attrs, at, 2, NULL, 0, &type);
    SX_TRY(sx_tf_build(x, how, NULL, &y, 2, both));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* SparseTensorDenseAdd(indices, values, shape, dense) */
static sx_status import_sparse_dense_add(sx_tf_op_node *x)
{
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD};
    sx_value indices = SX_NO_VALUE, values = SX_NO_VALUE, dense = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &indices));
    SX_TRY(sx_tf_operand(x, 1, &values));
    SX_TRY(sx_tf_operand(x, 3, &dense));
    SX_TF_BUILD(x, &y, tensor_scatter, &add, dense, indices, values);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- CTC ---- */

/* CTCGreedyDecoder(logits [T, N, C], lengths [N]): of each row the best classes without the blank
 * and, if merge_repeated, without those that repeat the one before, as a sparse tensor; and the sum
 * of what the best lack, [N, 1]. */
static sx_status import_ctc_greedy(sx_tf_op_node *x)
{
    const bool merges = sx_tf_read_bool(&x->tf.head, "merge_repeated", false);
    const int64_t blank = sx_tf_read_int(&x->tf.head, "blank_index", -1);
    static const sx_transpose_attrs turn = {.perm = {2, {1, 0}}};
    static const sx_cumulative_attrs before = {.axis = 1, .exclusive = true};
    sx_value logits, lengths, best, top, time, step, live, none, nothing, keep, v, rows, places,
        shape;
    SX_TRY(sx_tf_operand(x, 0, &logits));
    SX_TRY(sx_tf_operand(x, 1, &lengths));
    const sx_type *type = &x->tf.head.types[0];
    if (type->rank != 3) {
        return sx_tf_unsupported("its logits are not of rank 3");
    }
    SX_TF_BUILD(x, &best, argmax, (&(sx_argmax_attrs){.axis = 2, .dtype = SX_I64}), logits);
    SX_TF_BUILD(x, &best, transpose, &turn, best); /* [N, T] */
    SX_TF_BUILD(x, &top, reduce_max, (&(sx_reduce_attrs){.axes = {1, {2}}}), logits);
    SX_TF_BUILD(x, &top, transpose, &turn, top);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), logits);
    SX_TF_BUILD(x, &time, slice, (&(sx_slice_attrs){{1, {0}}, {1, {1}}}), shape);
    SX_TF_BUILD(x, &nothing, slice, (&(sx_slice_attrs){{1, {2}}, {1, {1}}}), shape);
    SX_TF_BUILD(x, &nothing, reshape, (&(sx_shape_attrs){.shape = {.n = 0}}), nothing);
    SX_TRY(sx_tf_number(x, SX_I64, blank, &v));
    if (blank < 0) {
        SX_TF_BUILD(x, &nothing, add, NULL, nothing, v);
    } else {
        nothing = v;
    }
    SX_TRY(sx_tf_count_to(x, time, SX_I64, &step));
    SX_TF_BUILD(x, &lengths, cast, (&(sx_cast_attrs){SX_I64}), lengths);
    SX_TRY(sx_tf_expand(x, lengths, 1, &lengths));
    SX_TF_BUILD(x, &live, less, NULL, step, lengths);
    SX_TF_BUILD(x, &keep, not_equal, NULL, best, nothing);
    SX_TF_BUILD(x, &keep, logical_and, NULL, keep, live);
    if (merges) { /* -1 before the first */
        const sx_pad_attrs one = {.before = {2, {0, 1}}, .after = {2, {0, 0}}, .value = -1};
        sx_value last, zero;
        SX_TF_BUILD(x, &last, pad, &one, best);
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
        SX_TRY(sx_tf_cut_axis_open(x, last, 1, zero, time, type->dims[0] >= 0 ? type->dims[0] : -1,
                                   &last));
        SX_TF_BUILD(x, &last, not_equal, NULL, best, last);
        SX_TF_BUILD(x, &keep, logical_and, NULL, keep, last);
    }
    SX_TRY(sx_tf_number(x, type->dtype, 0, &none));
    SX_TF_BUILD(x, &top, select, NULL, live, top, none);
    SX_TF_BUILD(x, &top, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {1}}, .keep_dims = true}),
                top);
    SX_TF_BUILD(x, &top, neg, NULL, top);
    sx_tf_set(x, 3, top);
    SX_TF_BUILD(x, &rows, where, NULL, keep);
    SX_TF_BUILD(x, &v, gather_nd, NULL, best, rows);
    sx_tf_set(x, 1, v);
    SX_TF_BUILD(x, &v, cast, (&(sx_cast_attrs){SX_I64}), keep);
    SX_TF_BUILD(x, &places, cumsum, &before, v);
    SX_TF_BUILD(x, &places, gather_nd, NULL, places, rows);
    SX_TRY(sx_tf_expand(x, places, 1, &places));
    SX_TRY(sx_tf_cut_axis(x, rows, 1, 0, 1, &rows));
    SX_TF_BUILD(x, &rows, concat, (&(sx_axis_attrs){1}), rows, places);
    sx_tf_set(x, 0, rows);
    SX_TF_BUILD(x, &v, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {1}}}), v);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &none)); /* of no rows the longest has none */
    SX_TF_BUILD(x, &v, concat, (&(sx_axis_attrs){0}), v, none);
    SX_TF_BUILD(x, &v, reduce_max, (&(sx_reduce_attrs){.axes = {1, {0}}, .keep_dims = true}), v);
    SX_TF_BUILD(x, &shape, slice, (&(sx_slice_attrs){{1, {1}}, {1, {1}}}), shape);
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), shape, v);
    sx_tf_set(x, 2, shape);
    return SX_OK;
}

/* ScatterNd(indices, updates, shape): added to zeros; bools, whose sum is whether one is true, are
 * counted. */
static sx_status import_scatter_nd(sx_tf_op_node *x)
{
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD};
    const bool of_bools = x->tf.head.types[1].dtype == SX_BOOL;
    const sx_dtype dtype = of_bools ? SX_I32 : x->tf.head.types[1].dtype;
    sx_value indices = SX_NO_VALUE, u = SX_NO_VALUE, shape = SX_NO_VALUE, zeros = SX_NO_VALUE,
             y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &indices));
    SX_TRY(sx_tf_operand(x, 1, &u));
    SX_TRY(sx_tf_operand(x, 2, &shape));
    if (of_bools) {
        SX_TF_BUILD(x, &u, cast, (&(sx_cast_attrs){dtype}), u);
    }
    SX_TRY(sx_tf_number(x, dtype, 0, &zeros));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, zeros, "shape", shape, &zeros));
    SX_TF_BUILD(x, &y, tensor_scatter, &add, zeros, indices, u);
    if (of_bools) {
        SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){SX_BOOL}), y);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Segments ---- */

/* The least or the greatest number of a dtype. */
static sx_status extreme(const sx_tf_op_node *x, sx_dtype dtype, bool least, sx_value *out)
{
    const bool is_unsigned =
        dtype == SX_U8 || dtype == SX_U16 || dtype == SX_U32 || dtype == SX_U64;
    const size_t bits = 8 * sx_dtype_bytes(dtype);
    if (sx_dtype_is_float(dtype)) {
        const double most = dtype == SX_F64    ? DBL_MAX
                            : dtype == SX_F16  ? 65504
                            : dtype == SX_BF16 ? 3.3895313892515355e38
                                               : (double)FLT_MAX;
        return sx_tf_number(x, dtype, least ? -most : most, out);
    }
    const uint64_t low = is_unsigned ? 0 : (uint64_t)1 << (bits - 1); /* little-endian */
    const uint64_t value = least ? low : ~low;
    return sx_tf_constant(x, sx_scalar_type(dtype), &value, out);
}

/* segments x `value`, in the shape of the rows of data; `n`: int64 [1] */
static sx_status filled(const sx_tf_op_node *x, sx_value data, int n_ids, sx_value n,
                        sx_value value, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, data);
    const sx_slice_attrs rest = {.begin = {1, {n_ids}}, .size = {1, {type.rank - n_ids}}};
    sx_value shape = SX_NO_VALUE;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), data);
    SX_TF_BUILD(x, &shape, slice, &rest, shape);
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), n, shape);
    return sx_tf_build_open(x, &sx_op_broadcast_to, NULL, value, "shape", shape, out);
}

/* SparseSegmentSumGrad(dy, indices, ids, rows), SparseSegmentMeanGrad, SparseSegmentSqrtNGrad: row
 * indices[i] gets row ids[i] of dy, divided by the size of that segment or its root. */
static sx_status import_sparse_segment_grad(sx_tf_op_node *x)
{
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD};
    const char *op = x->n->node->op;
    const sx_type *type = &x->tf.head.types[0];
    sx_value dy, indices, ids, rows, shape, sizes, zero, one, y;
    SX_TRY(sx_tf_operand(x, 0, &dy));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    SX_TRY(sx_tf_operand(x, 2, &ids));
    SX_TRY(sx_tf_operand(x, 3, &rows));
    SX_TRY(sx_tf_require_rank(x, 0));
    if (type->rank < 1) {
        return sx_error(SX_DATA_LOSS, "input 0 is %s, expected rows", SX_TEXT(type));
    }
    SX_TRY(sx_tf_number(x, type->dtype, 0, &zero));
    if (strcmp(op, "SparseSegmentSumGrad") != 0) {
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), dy);
        SX_TF_BUILD(x, &shape, slice, (&(sx_slice_attrs){{1, {0}}, {1, {1}}}), shape);
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, zero, "shape", shape, &sizes));
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), ids);
        SX_TRY(sx_tf_number(x, type->dtype, 1, &one));
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, one, "shape", shape, &y));
        sx_value places = SX_NO_VALUE;
        SX_TRY(sx_tf_expand(x, ids, -1, &places));
        SX_TF_BUILD(x, &sizes, tensor_scatter, &add, sizes, places, y);
        SX_TF_BUILD(x, &sizes, maximum, NULL, sizes, one);
        if (strcmp(op, "SparseSegmentSqrtNGrad") == 0) {
            SX_TF_BUILD(x, &sizes, sqrt, NULL, sizes);
        }
        for (int d = 1; d < type->rank; d++) {
            SX_TRY(sx_tf_expand(x, sizes, -1, &sizes));
        }
        SX_TF_BUILD(x, &dy, div, NULL, dy, sizes);
    }
    SX_TF_BUILD(x, &y, gather, NULL, dy, ids);
    SX_TF_BUILD(x, &rows, cast, (&(sx_cast_attrs){SX_I64}), rows);
    SX_TF_BUILD(x, &rows, reshape, (&(sx_shape_attrs){{1, {1}}}), rows);
    SX_TRY(filled(x, dy, 1, rows, zero, &zero));
    SX_TRY(sx_tf_expand(x, indices, -1, &indices));
    SX_TF_BUILD(x, &y, tensor_scatter, &add, zero, indices, y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* SegmentSum(data, ids), UnsortedSegmentSum(data, ids, n) and their kin. Segments of sorted ids end
 * with the last one; those between that are empty are 0 of them, else what changes nothing. */
static sx_status import_segments(sx_tf_op_node *x)
{
    static const struct {
        const char *name;
        int32_t how;
        double empty;
    } kinds[] = {{"Sum", SX_SCATTER_ADD, 0},
                 {"Mean", SX_SCATTER_ADD, 0},
                 {"Prod", SX_SCATTER_MUL, 1},
                 {"Min", SX_SCATTER_MIN, 0},
                 {"Max", SX_SCATTER_MAX, 0}};
    const bool sorted = strncmp(x->n->node->op, "Segment", strlen("Segment")) == 0;
    const char *name = x->n->node->op + strlen(sorted ? "Segment" : "UnsortedSegment");
    const int check = sorted ? SX_SCATTER_ASCENDING : SX_SCATTER_SKIP_NEGATIVE;
    sx_value data = SX_NO_VALUE, ids = SX_NO_VALUE, n = SX_NO_VALUE, y = SX_NO_VALUE,
             at = SX_NO_VALUE, start = SX_NO_VALUE;
    size_t kind = 0;
    while (kind + 1 < SX_COUNT(kinds) && strcmp(kinds[kind].name, name) != 0) {
        kind++;
    }
    SX_TRY(sx_tf_operand(x, 0, &data));
    SX_TRY(sx_tf_operand(x, 1, &ids));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TRY(sx_tf_require_rank(x, 1));
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    const int n_ids = x->tf.head.types[1].rank;
    const bool ends = kinds[kind].how == SX_SCATTER_MIN || kinds[kind].how == SX_SCATTER_MAX;
    if (n_ids > x->tf.head.types[0].rank || (sorted && n_ids != 1)) {
        return sx_error(SX_DATA_LOSS, "the ids have rank %d, the data %d", n_ids,
                        x->tf.head.types[0].rank);
    }
    if (x->tf.head.types[1].dtype != SX_I64) {
        SX_TF_BUILD(x, &ids, cast, (&(sx_cast_attrs){SX_I64}), ids);
    }
    if (sorted) { /* the last id, -1 of none, and 1 */
        const sx_ints none = {1, {-1}}, one = {1, {1}};
        const sx_reduce_attrs over = {.axes = {1, {0}}, .keep_dims = true};
        sx_value first = SX_NO_VALUE;
        SX_TRY(sx_tf_int64s(x, &none, &first));
        SX_TF_BUILD(x, &n, concat, (&(sx_axis_attrs){0}), first, ids);
        SX_TF_BUILD(x, &n, reduce_max, &over, n);
        SX_TRY(sx_tf_int64s(x, &one, &first));
        SX_TF_BUILD(x, &n, add, NULL, n, first);
    } else {
        SX_TRY(sx_tf_operand(x, 2, &n));
        SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_I64}), n);
        SX_TF_BUILD(x, &n, reshape, (&(sx_shape_attrs){{1, {1}}}), n);
    }
    SX_TRY(sx_tf_expand(x, ids, -1, &at));
    if (ends) {
        SX_TRY(extreme(x, dtype, kinds[kind].how == SX_SCATTER_MAX, &start));
    } else {
        SX_TRY(sx_tf_number(x, dtype, kinds[kind].empty, &start));
    }
    SX_TRY(filled(x, data, n_ids, n, start, &start));
    const sx_tensor_scatter_attrs attrs = {.how = kinds[kind].how, .check = check};
    SX_TF_BUILD(x, &y, tensor_scatter, &attrs, start, at, data);
    const bool mean = strcmp(name, "Mean") == 0;
    if (mean || (sorted && ends)) { /* how many rows each segment has */
        const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD, .check = check};
        sx_value one = SX_NO_VALUE, zero = SX_NO_VALUE, counts = SX_NO_VALUE, ones = SX_NO_VALUE;
        SX_TRY(sx_tf_number(x, dtype, 1, &one));
        SX_TRY(sx_tf_number(x, dtype, 0, &zero));
        SX_TF_BUILD(x, &ones, shape, (&(sx_cast_attrs){SX_I64}), data);
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, one, "shape", ones, &ones));
        SX_TRY(filled(x, data, n_ids, n, zero, &counts));
        SX_TF_BUILD(x, &counts, tensor_scatter, &add, counts, at, ones);
        if (mean) {
            SX_TF_BUILD(x, &counts, maximum, NULL, counts, one);
            if (sx_dtype_is_float(dtype)) {
                SX_TF_BUILD(x, &y, div, NULL, y, counts);
            } else {
                SX_TF_BUILD(x, &y, truncate_div, NULL, y, counts);
            }
        } else {
            SX_TF_BUILD(x, &counts, greater, NULL, counts, zero);
            SX_TF_BUILD(x, &y, select, NULL, counts, y, zero);
        }
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Rows ---- */

/* RaggedFillEmptyRows(value_rowids [n], values [n], nrows, default): as the sparse tensor whose
 * indices the rows are. */
static sx_status import_ragged_fill(sx_tf_op_node *x)
{
    static const sx_shape_attrs one = {.shape = {1, {1}}};
    sx_value in[4], made = SX_NO_VALUE, rows = SX_NO_VALUE;
    int n_out = 0;
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    const sx_value given[4] = {in[0], in[1], in[2], in[3]};
    SX_TRY(sx_tf_expand(x, given[0], 1, &in[0]));
    SX_TF_BUILD(x, &in[2], reshape, &one, given[2]);
    SX_TRY(sx_tf_add_node(x, &sx_op_sparse_fill_empty_rows, NULL, in, 4, NULL, 0, &made, &n_out));
    SX_TRY(sx_tf_join_axes(x, made, 0, &rows));
    sx_tf_set(x, 0, rows);
    for (int i = 1; i < 4; i++) {
        sx_tf_set(x, i, sx_output_of(made, i));
    }
    return SX_OK;
}

/* ComputeAccidentalHits(true_classes [N, k], sampled [m]): of each pair of equal ones the row, the
 * place in `sampled`, and the least float32. */
static sx_status import_accidental_hits(sx_tf_op_node *x)
{
    sx_value classes = SX_NO_VALUE, sampled = SX_NO_VALUE, hits = SX_NO_VALUE, v = SX_NO_VALUE,
             shape = SX_NO_VALUE, least = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &classes));
    SX_TRY(sx_tf_operand(x, 1, &sampled));
    if (x->tf.head.types[0].rank != 2 || x->tf.head.types[1].rank != 1) {
        return sx_tf_unsupported("its classes are no matrix, or those sampled no vector");
    }
    SX_TRY(sx_tf_expand(x, classes, 2, &classes));
    SX_TF_BUILD(x, &hits, equal, NULL, classes, sampled);
    SX_TF_BUILD(x, &hits, where, NULL, hits); /* [hits, 3] */
    for (int i = 0; i < 2; i++) {
        SX_TRY(sx_tf_cut_axis(x, hits, 1, 2 * i, 1, &v));
        SX_TRY(sx_tf_join_axes(x, v, 0, &v));
        if (i == 0) {
            SX_TF_BUILD(x, &v, cast, (&(sx_cast_attrs){SX_I32}), v);
        }
        sx_tf_set(x, i, v);
    }
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_number(x, SX_F32, -FLT_MAX, &least));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, least, "shape", shape, &v));
    sx_tf_set(x, 2, v);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_scatter_rows[] = {
    {"SparseDenseCwiseMul", import_sparse_dense, NULL},
    {"SparseDenseCwiseDiv", import_sparse_dense, NULL},
    {"SparseDenseCwiseAdd", import_sparse_dense, NULL},
    {"SparseTensorDenseAdd", import_sparse_dense_add, NULL},
    {"InplaceUpdate", import_inplace, NULL},
    {"InplaceAdd", import_inplace, NULL},
    {"InplaceSub", import_inplace, NULL},
    {"XlaDynamicSlice", import_dynamic_slice, NULL},
    {"XlaDynamicUpdateSlice", import_update_slice, NULL},
    {"CTCGreedyDecoder", import_ctc_greedy, NULL},
    {"RaggedFillEmptyRows", import_ragged_fill, NULL},
    {"ComputeAccidentalHits", import_accidental_hits, NULL},
    {"GatherNd", import_gather_nd, NULL},
    {"ScatterNd", import_scatter_nd, NULL},
    {"SparseSegmentSumGrad", import_sparse_segment_grad, NULL},
    {"SparseSegmentMeanGrad", import_sparse_segment_grad, NULL},
    {"SparseSegmentSqrtNGrad", import_sparse_segment_grad, NULL},
    {"SegmentSum", import_segments, NULL},
    {"SegmentMean", import_segments, NULL},
    {"SegmentProd", import_segments, NULL},
    {"SegmentMin", import_segments, NULL},
    {"SegmentMax", import_segments, NULL},
    {"UnsortedSegmentSum", import_segments, NULL},
    {"UnsortedSegmentProd", import_segments, NULL},
    {"UnsortedSegmentMin", import_segments, NULL},
    {"UnsortedSegmentMax", import_segments, NULL},
    {NULL, NULL, NULL},
};
