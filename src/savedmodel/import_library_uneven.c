/* Lists of tensors whose shapes may differ (import_library_lists.c): each tensor is a string of
 * ragged_to_variant, and the list a vector of these, in which the empty string is a tensor that was
 * not set. A list begins as a tensor [n, ...] and becomes one of these where
 *
 *   - it gets a tensor of another shape, or one whose shape may differ from trip to trip of a loop,
 *   - it is not stacked (import_library_readings.c) and gets one of unknown shape,
 *   - another list, which is in its place in another branch or trip, is one,
 *   - a tensor is split by unequal lengths. */
#include <stdio.h>

#include "savedmodel/import_library_regions.h"

sx_status sx_tf_uneven_list(const sx_tf_op_node *x, const sx_tf_thing *list, sx_dtype dtype,
                            sx_tf_thing *out)
{
    const int64_t n_known = list->variable.dims[0];
    const sx_tf_thing like = {
        .uneven = dtype, .of_complex = list->of_complex, .apart = list->apart};
    const sx_type type = sx_type_of(SX_STRING, n_known);
    sx_value all = SX_NO_VALUE, n = list->length;
    if (n_known < 0 && !sx_value_is(n)) {
        return sx_tf_unsupported("the length of the list is not known here");
    }
    SX_TRY(sx_tf_nothing_of(x, SX_STRING, &all));
    if (n_known >= 0) {
        SX_TF_BUILD(x, &all, broadcast_to, (&(sx_shape_attrs){{1, {n_known}}}), all);
    } else {
        SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_I64}), n);
        SX_TF_BUILD(x, &n, reshape, (&(sx_shape_attrs){{1, {1}}}), n);
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_broadcast_to, "shape"), n};
        all = sx_tf_build_as(x, &sx_op_broadcast_to, NULL, &all, 1, &open, 1, &type);
    }
    *out = sx_tf_list_like(x, all, &like);
    return SX_OK;
}

sx_status sx_tf_list_to_uneven(const sx_tf_op_node *x, sx_tf_thing *list)
{
    const sx_ragged_to_variant_attrs each = {.batched = true};
    sx_value all = list->value;
    if (list->uneven != SX_DTYPE_NONE || list->element != NULL) {
        return SX_OK;
    }
    if (!sx_value_is(all)) {
        return sx_tf_uneven_list(x, list, list->variable.dtype, list);
    }
    sx_tf_thing like = {.uneven = sx_type_of_value(x->b, all).dtype,
                        .of_complex = list->of_complex,
                        .apart = list->apart};
    SX_TF_BUILD(x, &all, ragged_to_variant, &each, all);
    *list = sx_tf_list_like(x, all, &like);
    return SX_OK;
}

bool sx_tf_items_differ(const sx_type *list, const sx_type *other)
{
    if (list->rank == SX_UNKNOWN_RANK || other->rank == SX_UNKNOWN_RANK) {
        return false;
    }
    bool differ = list->rank != other->rank;
    for (int d = 1; d < list->rank && !differ; d++) {
        const int64_t a = list->dims[d], b = other->dims[d];
        const bool known = (a >= 0 || sx_dim_is_batch(a)) && (b >= 0 || sx_dim_is_batch(b));
        differ = known && a != b;
    }
    return differ;
}

sx_status sx_tf_list_fit(const sx_tf_op_node *x, sx_tf_thing *list, sx_value item)
{
    const sx_type type = sx_type_of_value(x->b, item);
    unsigned differs = 0;
    SX_TRY(sx_tf_differs(x->im, x->b, item, &differs));
    bool uneven = (differs & SX_TF_DIFFERENT_SHAPE) != 0 || (list->apart && sx_tf_is_open(&type));
    if (list->uneven == SX_DTYPE_NONE && sx_value_is(list->value) && !uneven &&
        type.rank < SX_MAX_RANK) {
        sx_type items = {.dtype = type.dtype, .rank = SX_UNKNOWN_RANK};
        if (type.rank != SX_UNKNOWN_RANK) {
            items.rank = type.rank + 1;
            for (int d = 0; d < type.rank; d++) {
                items.dims[d + 1] = type.dims[d];
            }
        }
        const sx_type all = sx_type_of_value(x->b, list->value);
        uneven = sx_tf_items_differ(&all, &items);
    }
    return uneven ? sx_tf_list_to_uneven(x, list) : SX_OK;
}

sx_status sx_tf_list_open(const sx_tf_op_node *x, const sx_tf_thing *list, bool rows,
                          const sx_tensor *shape, sx_value *v)
{
    const sx_ragged_from_variant_attrs attrs = {/* -1: the shapes must be equal */
                                                .input_ragged_rank = rows ? -1 : 0,
                                                .Tvalues = list->uneven,
                                                .Tsplits = SX_I64};
    sx_ints dims = {.n = -1};
    SX_TF_BUILD(x, v, ragged_from_variant, &attrs, *v);
    if (shape == NULL || shape->type.rank != 1 || shape->type.dims[0] >= SX_MAX_RANK) {
        return SX_OK;
    }
    SX_TRY(sx_import_ints(shape, 0, &dims));
    sx_type type = sx_tf_unknown_shape(list->uneven);
    type.rank = dims.n + rows + list->of_complex;
    if (type.rank > SX_MAX_RANK) {
        return sx_tf_unsupported("tensors of rank %d", type.rank);
    }
    for (int d = 0; d < type.rank; d++) {
        const int of = d - rows;
        type.dims[d] = of >= 0 && of < dims.n && dims.v[of] >= 0 ? dims.v[of] : SX_UNKNOWN_DIM;
    }
    *v = sx_tf_build_as(x, &sx_op_identity, NULL, v, 1, NULL, 0, &type);
    return SX_OK;
}

sx_status sx_tf_list_concat_uneven(sx_tf_op_node *x, sx_value list, const sx_tf_thing *like)
{
    const sx_ragged_from_variant_attrs attrs = {
        .output_ragged_rank = 1, .Tvalues = like->uneven, .Tsplits = SX_I64};
    const sx_ints one = {1, {1}}, all = {1, {-1}};
    sx_value splits = SX_NO_VALUE, n = SX_NO_VALUE, from = SX_NO_VALUE, rest = SX_NO_VALUE,
             first = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(
        sx_tf_add_node(x, &sx_op_ragged_from_variant, &attrs, &list, 1, NULL, 0, &splits, &n_out));
    if (like->of_complex) {
        SX_TRY(sx_tf_split_complex(x, sx_output_of(splits, 1), &x->n->out[0]));
    } else {
        sx_tf_set(x, 0, sx_output_of(splits, 1));
    }
    SX_TRY(sx_tf_sizes_of(x, list, 0, 1, &n));
    SX_TRY(sx_tf_int64s(x, &one, &from));
    SX_TRY(sx_tf_int64s(x, &all, &rest));
    SX_TRY(sx_tf_first_rows(x, splits, n, &first));
    SX_TRY(sx_tf_vector_part(x, splits, from, rest, &splits));
    SX_TF_BUILD(x, &splits, sub, NULL, splits, first);
    sx_tf_set(x, 1, splits);
    return SX_OK;
}

/* The region of a sum: strings of one tensor of each list -> that of their sum, or of zeros. */
static sx_status build_sum(const sx_tf_op_node *inside, int n, sx_dtype dtype, bool zeros)
{
    const sx_ragged_from_variant_attrs alone = {.Tvalues = dtype, .Tsplits = SX_I64},
                                       stacked = {.input_ragged_rank = -1,
                                                  .Tvalues = dtype,
                                                  .Tsplits = SX_I64};
    const sx_ragged_to_variant_attrs whole = {.batched = false};
    sx_value none = SX_NO_VALUE, zero = SX_NO_VALUE, nothing = SX_NO_VALUE, unset = SX_NO_VALUE,
             y = SX_NO_VALUE, shape = SX_NO_VALUE;
    sx_value *strings = sx_arena_array(&inside->im->arena, n + 1, sx_value);
    if (strings == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_nothing_of(inside, SX_STRING, &none));
    SX_TRY(sx_tf_nothing_of(inside, dtype, &zero));
    SX_TF_BUILD(inside, &nothing, ragged_to_variant, &whole, zero);
    for (int i = 0; i < n; i++) {
        char name[32];
        sx_value empty = SX_NO_VALUE;
        snprintf(name, sizeof(name), "x%d", i);
        strings[i] = sx_input(inside->b, name, sx_scalar_type(SX_STRING));
        SX_TF_BUILD(inside, &empty, equal, NULL, strings[i], none);
        if (i == 0) {
            unset = empty;
        } else {
            SX_TF_BUILD(inside, &unset, logical_and, NULL, unset, empty);
        }
    }
    SX_TF_BUILD(inside, &strings[0], select, NULL, unset, nothing, strings[0]);
    if (n == 1) {
        SX_TF_BUILD(inside, &y, ragged_from_variant, &alone, strings[0]);
    } else { /* a tensor that is not set is zeros beside those that are */
        for (int i = 0; i < n; i++) {
            SX_TRY(sx_tf_expand(inside, strings[i], 0, &strings[i]));
        }
        SX_TRY(sx_tf_build(inside, &sx_op_concat, &(sx_axis_attrs){0}, &y, n, strings));
        SX_TF_BUILD(inside, &y, ragged_from_variant, &stacked, y);
        SX_TF_BUILD(inside, &y, reduce_sum, (&(sx_reduce_attrs){.axes = {1, {0}}}), y);
    }
    if (zeros) {
        SX_TF_BUILD(inside, &shape, shape, (&(sx_cast_attrs){SX_I64}), y);
        SX_TRY(sx_tf_build_open(inside, &sx_op_broadcast_to, NULL, zero, "shape", shape, &y));
    }
    SX_TF_BUILD(inside, &y, ragged_to_variant, &whole, y);
    SX_TF_BUILD(inside, &y, select, NULL, unset, none, y);
    sx_output(inside->b, "y", y);
    return SX_OK;
}

sx_status sx_tf_list_sum_uneven(const sx_tf_op_node *x, sx_tf_thing *lists, int n, bool zeros,
                                sx_tf_thing *out)
{
    sx_value *in = sx_arena_array(&x->im->arena, n + 1, sx_value), y = SX_NO_VALUE;
    sx_graph *body = NULL;
    sx_tf_op_node inside = *x;
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_tf_list_to_uneven(x, &lists[i]));
        in[i] = lists[i].value;
    }
    SX_TRY(sx_tf_create_builder(x->im, &inside.b));
    sx_status status = build_sum(&inside, n, lists[0].uneven, zeros);
    if (status == SX_OK) {
        status = sx_builder_finish(inside.b, &body);
    }
    sx_builder_destroy(inside.b);
    if (status == SX_OK) {
        const sx_map_attrs attrs = {.body = body, .mapped = n};
        status = sx_tf_build(x, &sx_op_map, &attrs, &y, n, in);
    }
    sx_graph_destroy(body);
    SX_TRY(status);
    *out = sx_tf_list_like(x, y, &lists[0]);
    return SX_OK;
}
