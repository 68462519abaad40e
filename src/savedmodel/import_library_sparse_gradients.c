/* Imports what TensorFlow's gradients of sparse and ragged tensors are made of. Rows of indices are
 * compared as places, numbers that ascend with them. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

/* The sizes [rank] that hold the indices a and b, both [n, rank]. */
static sx_status sizes_around(const sx_tf_op_node *x, sx_value a, sx_value b, sx_value *out)
{
    static const sx_reduce_attrs rows = {.axes = {1, {0}}};
    sx_value both = SX_NO_VALUE;
    SX_TF_BUILD(x, &both, concat, (&(sx_axis_attrs){0}), a, b);
    SX_TF_BUILD(x, &both, reduce_max, &rows, both);
    return sx_tf_with_number(x, &sx_op_add, both, 1, out);
}

/* Indices [n, rank] in a tensor of those sizes as places [n]. */
static sx_status places_of(const sx_tf_op_node *x, sx_value indices, sx_value sizes, sx_value *out)
{
    static const sx_cumulative_attrs behind = {.exclusive = true, .reverse = true};
    static const sx_reduce_attrs columns = {.axes = {1, {1}}};
    SX_TF_BUILD(x, &sizes, cumprod, &behind, sizes);
    SX_TF_BUILD(x, &indices, mul, NULL, indices, sizes);
    SX_TF_BUILD(x, out, reduce_sum, &columns, indices);
    return SX_OK;
}

/* Where each of `at` [n] stands in the ascending `places` [m]: how many are before it. */
static sx_status find_places(const sx_tf_op_node *x, sx_value places, sx_value at, sx_value *out)
{
    static const sx_search_sorted_attrs wide = {.out_type = SX_I64};
    SX_TRY(sx_tf_expand(x, places, 0, &places));
    SX_TRY(sx_tf_expand(x, at, 0, &at));
    SX_TF_BUILD(x, out, search_sorted, &wide, places, at);
    return sx_tf_reshape_dims(x, *out, &(sx_ints){1, {1}}, out);
}

/* dy[m], at the indices `from` [m, rank], at the indices `to` [n, rank]; 0 where there is none. */
static sx_status take_values(const sx_tf_op_node *x, sx_value dy, sx_value from, sx_value to,
                             sx_value *out)
{
    sx_value sizes, places, at, k, last, found, there, zero;
    SX_TRY(sizes_around(x, from, to, &sizes));
    SX_TRY(places_of(x, from, sizes, &places));
    SX_TRY(places_of(x, to, sizes, &at));
    /* one more place, beyond all, with a value of 0 */
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {INT64_MAX}}, &last));
    SX_TF_BUILD(x, &places, concat, (&(sx_axis_attrs){0}), places, last);
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, dy).dtype, 0, &zero));
    SX_TF_BUILD(x, &last, reshape, (&(sx_shape_attrs){{1, {1}}}), zero);
    SX_TF_BUILD(x, &dy, concat, (&(sx_axis_attrs){0}), dy, last);
    SX_TRY(find_places(x, places, at, &k));
    SX_TF_BUILD(x, &found, gather, NULL, places, k);
    SX_TF_BUILD(x, &there, equal, NULL, found, at);
    SX_TF_BUILD(x, &dy, gather, NULL, dy, k);
    SX_TF_BUILD(x, out, select, NULL, there, dy, zero);
    return SX_OK;
}

/* SparseSliceGrad(dy, indices, start, indices of the slice) */
static sx_status import_slice_grad(sx_tf_op_node *x)
{
    sx_value in[4], y = SX_NO_VALUE;
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TF_BUILD(x, &in[3], add, NULL, in[3], in[2]);
    SX_TRY(take_values(x, in[0], in[3], in[1], &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* SparseAddGrad(dy, indices of a, of b, of the sum) -> da, db */
static sx_status import_add_grad(sx_tf_op_node *x)
{
    sx_value in[4], y = SX_NO_VALUE;
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    for (int i = 0; i < 2; i++) {
        SX_TRY(take_values(x, in[0], in[3], in[1 + i], &y));
        sx_tf_set(x, i, y);
    }
    return SX_OK;
}

/* SparseFillEmptyRowsGrad(where the values went, dy), RaggedFillEmptyRowsGrad -> what is at these
 * places, and the sum of the rest, which the default filled. */
static sx_status import_fill_grad(sx_tf_op_node *x)
{
    static const sx_tensor_scatter_attrs update = {.how = SX_SCATTER_UPDATE};
    static const sx_reduce_attrs all = {.axes = {1, {0}}};
    sx_value places, dy, taken, none, rest;
    SX_TRY(sx_tf_operand(x, 0, &places));
    SX_TRY(sx_tf_operand(x, 1, &dy));
    SX_TF_BUILD(x, &taken, gather, NULL, dy, places);
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, dy).dtype, 0, &none));
    SX_TF_BUILD(x, &none, mul_no_nan, NULL, taken, none);
    SX_TRY(sx_tf_expand(x, places, -1, &places));
    SX_TF_BUILD(x, &rest, tensor_scatter, &update, dy, places, none);
    SX_TF_BUILD(x, &rest, reduce_sum, &all, rest);
    sx_tf_set(x, 0, taken);
    sx_tf_set(x, 1, rest);
    return SX_OK;
}

/* SparseSegmentSumGradV2(dy, indices, ids, rows) and its kin: of the rows only those that indices
 * name, in ascending order, and which they are. */
static sx_status import_segment_grad(sx_tf_op_node *x)
{
    const char *op = strcmp(x->n->node->op, "SparseSegmentSumGradV2") == 0 ? "SparseSegmentSumGrad"
                     : strcmp(x->n->node->op, "SparseSegmentMeanGradV2") == 0
                         ? "SparseSegmentMeanGrad"
                         : "SparseSegmentSqrtNGrad";
    const sx_unique_attrs narrow = {.out_idx = SX_I32};
    sx_attr_operand all = {sx_tf_attr_row(&sx_op_top_k, "k"), SX_NO_VALUE};
    sx_value in[4], rows, sorted, wide, count, y;
    int n_out = 0;
    for (int i = 0; i < 4; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(sx_tf_add_node(x, &sx_op_unique, &narrow, &in[1], 1, NULL, 0, &rows, &n_out));
    SX_TRY(sx_tf_sizes_of(x, rows, 0, 1, &all.value));
    SX_TF_BUILD(x, &sorted, invert, NULL, rows); /* the order of integers turns round */
    SX_TRY(sx_tf_add_node(x, &sx_op_top_k, NULL, &sorted, 1, &all, 1, &sorted, &n_out));
    SX_TF_BUILD(x, &sorted, invert, NULL, sorted);
    SX_TF_BUILD(x, &wide, cast, (&(sx_cast_attrs){SX_I64}), sorted);
    SX_TF_BUILD(x, &in[1], cast, (&(sx_cast_attrs){SX_I64}), in[1]);
    SX_TRY(find_places(x, wide, in[1], &in[1]));
    SX_TF_BUILD(x, &count, cast, (&(sx_cast_attrs){SX_I32}), all.value);
    SX_TF_BUILD(x, &in[3], reshape, (&(sx_shape_attrs){{0}}), count);
    SX_TRY(sx_tf_import_outputs_as(x, op, in, 4, &y, 1));
    sx_tf_set(x, 0, y);
    sx_tf_set(x, 1, sorted);
    return SX_OK;
}

const sx_tf_op_row sx_tf_sparse_gradient_rows[] = {
    {"SparseSliceGrad", import_slice_grad, NULL},
    {"SparseAddGrad", import_add_grad, NULL},
    {"SparseFillEmptyRowsGrad", import_fill_grad, NULL},
    {"RaggedFillEmptyRowsGrad", import_fill_grad, NULL},
    {"SparseSegmentSumGradV2", import_segment_grad, NULL},
    {"SparseSegmentMeanGradV2", import_segment_grad, NULL},
    {"SparseSegmentSqrtNGradV2", import_segment_grad, NULL},
    {NULL, NULL, NULL},
};
