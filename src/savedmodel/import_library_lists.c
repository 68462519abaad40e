/* Imports TensorFlow's lists of tensors: TensorList, and TensorArrayV3, whose tensors travel in its
 * flow. A list is one value [n, ...]: its tensors have one shape.
 *
 *   TensorListReserve(shape, n)   zeros [n, shape...]; without a value while the shape is unknown,
 *                                 that is, until a tensor is set
 *   GetItem, SetItem              take_row, put_row
 *   PushBack, Resize              concat
 *
 * Where their shapes may differ each tensor is a string (import_library_uneven.c).
 *
 * A loop that is the first to set a list's tensors has to pass the whole list as its state: the
 * shape comes from the results of its body (import_library_loops.c). */
#include "savedmodel/import_library_ops.h"

#include <stdint.h>
#include <string.h>

#include <sextant/complex.h>

#include "graph/host.h"

static sx_status list_operand(const sx_tf_op_node *x, int i, const sx_tf_thing **out)
{
    if (i < 0 || i >= x->n->n_in) {
        return sx_error(SX_DATA_LOSS, "the list is missing");
    }
    *out = &x->n->in[i];
    return (*out)->kind == SX_TF_LIST ? SX_OK
                                      : sx_tf_unsupported("input %d is not a list of tensors", i);
}

sx_tf_thing sx_tf_list_like(const sx_tf_op_node *x, sx_value value, const sx_tf_thing *like)
{
    return (sx_tf_thing){.kind = SX_TF_LIST,
                         .value = value,
                         .variable = sx_type_of_value(x->b, value),
                         .of_complex = like->of_complex,
                         .uneven = like->uneven,
                         .apart = like->apart};
}

static void set_list(sx_tf_op_node *x, int output, sx_value value, const sx_tf_thing *like)
{
    x->n->out[output] = sx_tf_list_like(x, value, like);
}

/* Input i, a tensor (`rows`: tensors) for the list `like`, which it may make one of unequal shapes.
 */
static sx_status item_operand(const sx_tf_op_node *x, int i, bool rows, sx_tf_thing *like,
                              sx_value *out)
{
    like->of_complex = i < x->n->n_in && x->n->in[i].kind == SX_TF_COMPLEX;
    if (like->of_complex) {
        SX_TRY(sx_tf_join_complex(x, &x->n->in[i], out));
    } else {
        SX_TRY(sx_tf_operand(x, i, out));
    }
    if (!rows) {
        SX_TRY(sx_tf_list_fit(x, like, *out));
    }
    const sx_ragged_to_variant_attrs whole = {.batched = rows};
    if (like->uneven != SX_DTYPE_NONE) {
        SX_TF_BUILD(x, out, ragged_to_variant, &whole, *out);
    }
    return SX_OK;
}

/* An output that is a tensor (`rows`: tensors) of the list `like`. Input `at` may say the shape of
 * one. */
static sx_status set_item(sx_tf_op_node *x, int output, sx_value v, bool rows, int at,
                          const sx_tf_thing *like)
{
    if (like->uneven != SX_DTYPE_NONE) {
        SX_TRY(sx_tf_list_open(x, like, rows, at < x->n->n_in ? x->tf.head.values[at] : NULL, &v));
    }
    if (like->of_complex) {
        return sx_tf_split_complex(x, v, &x->n->out[output]);
    }
    sx_tf_set(x, output, v);
    return SX_OK;
}

/* Dimensions [from, from + count) of v as a vector of int64; count < 0: up to the last. */
static sx_status dims_of(const sx_tf_op_node *x, sx_value v, int from, int count, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    SX_TF_BUILD(x, out, shape, (&(sx_cast_attrs){SX_I64}), v);
    if (from == 0 && count < 0) {
        return SX_OK;
    }
    if (count < 0 && type.rank == SX_UNKNOWN_RANK) {
        sx_value begin = SX_NO_VALUE, rest = SX_NO_VALUE;
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {from}}, &begin));
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
        return sx_tf_vector_part(x, *out, begin, rest, out);
    }
    count = count < 0 ? type.rank - from : count;
    const sx_slice_attrs part = {.begin = {1, {from}}, .size = {1, {count}}};
    SX_TF_BUILD(x, out, slice, &part, *out);
    return SX_OK;
}

/* The number of tensors, int64 [1]. */
static sx_status length_of(const sx_tf_op_node *x, const sx_tf_thing *list, sx_value *out)
{
    const sx_type *type = &list->variable;
    if (sx_value_is(list->value)) {
        return dims_of(x, list->value, 0, 1, out);
    }
    if (type->rank > 0 && type->dims[0] >= 0) {
        return sx_tf_int64s(x, &(sx_ints){1, {type->dims[0]}}, out);
    }
    if (!sx_value_is(list->length)) {
        return sx_tf_unsupported("the length of the list is not known here");
    }
    SX_TF_BUILD(x, out, cast, (&(sx_cast_attrs){SX_I64}), list->length);
    SX_TF_BUILD(x, out, reshape, (&(sx_shape_attrs){{1, {1}}}), *out);
    return SX_OK;
}

sx_status sx_tf_nothing_of(const sx_tf_op_node *x, sx_dtype dtype, sx_value *out)
{
    return dtype == SX_STRING
               ? sx_tf_constant(x, sx_scalar_type(SX_STRING), &(sx_bytes){"", 0}, out)
               : sx_tf_number(x, dtype, 0, out);
}

/* n zeros, n an int64 [1] that is n_known unless that is negative, in the shape of `like` without
 * its first `from` dimensions. */
static sx_status zeros(const sx_tf_op_node *x, sx_value n, int64_t n_known, sx_value like, int from,
                       sx_value *out)
{
    const sx_type shape = sx_type_of_value(x->b, like);
    sx_type type = sx_tf_unknown_shape(shape.dtype);
    sx_value zero = SX_NO_VALUE, dims = SX_NO_VALUE;
    bool whole = n_known >= 0 && shape.rank != SX_UNKNOWN_RANK;
    if (shape.rank - from + 1 > SX_MAX_RANK) {
        return sx_tf_unsupported("a list of tensors of rank %d", shape.rank - from);
    }
    if (shape.rank != SX_UNKNOWN_RANK) {
        type.rank = shape.rank - from + 1;
        type.dims[0] = n_known >= 0 ? n_known : SX_UNKNOWN_DIM;
        for (int d = 1; d < type.rank; d++) {
            type.dims[d] = shape.dims[from + d - 1];
            whole = whole && (type.dims[d] >= 0 || sx_dim_is_batch(type.dims[d]));
        }
    }
    SX_TRY(sx_tf_nothing_of(x, shape.dtype, &zero));
    if (whole) {
        const sx_shape_attrs attrs = {sx_ints_of(type.rank, type.dims)};
        return sx_tf_build(x, &sx_op_broadcast_to, &attrs, out, 1, &zero);
    }
    SX_TRY(dims_of(x, like, from, -1, &dims));
    SX_TF_BUILD(x, &dims, concat, (&(sx_axis_attrs){0}), n, dims);
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_broadcast_to, "shape"), dims};
    *out = sx_tf_build_as(x, &sx_op_broadcast_to, NULL, &zero, 1, &open, 1, &type);
    return SX_OK;
}

sx_status sx_tf_list_fill(const sx_tf_op_node *x, const sx_tf_thing *list, sx_value like, int from,
                          sx_value *out)
{
    sx_value n = SX_NO_VALUE;
    SX_TRY(length_of(x, list, &n));
    return zeros(x, n, list->variable.rank > 0 ? list->variable.dims[0] : -1, like, from, out);
}

sx_status sx_tf_list_zeros_like(sx_tf_op_node *x)
{
    const sx_tf_thing *list = NULL;
    sx_value all = SX_NO_VALUE;
    SX_TRY(list_operand(x, 0, &list));
    x->n->out[0] = *list;
    if (list->uneven != SX_DTYPE_NONE) {
        sx_tf_thing one = *list;
        return sx_tf_list_sum_uneven(x, &one, 1, true, &x->n->out[0]);
    }
    if (sx_value_is(list->value)) {
        SX_TRY(sx_tf_list_fill(x, list, list->value, 1, &all));
        set_list(x, 0, all, list);
    }
    return SX_OK;
}

sx_status sx_tf_list_sum(sx_tf_op_node *x)
{
    const int n = x->n->n_in;
    sx_tf_thing *lists = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    bool uneven = false;
    int n_set = 0;
    if (lists == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n; i++) {
        const sx_tf_thing *list = NULL;
        SX_TRY(list_operand(x, i, &list));
        x->n->out[0] = *list;
        if (sx_value_is(list->value)) { /* else no tensor of it is set: zeros */
            lists[n_set++] = *list;
            uneven = uneven || list->uneven != SX_DTYPE_NONE;
        }
    }
    if (uneven) {
        return sx_tf_list_sum_uneven(x, lists, n_set, false, &x->n->out[0]);
    }
    for (int i = 0; i < n_set; i++) {
        sx_value sum = lists[i].value;
        if (i > 0) {
            SX_TF_BUILD(x, &sum, add, NULL, x->n->out[0].value, sum);
        }
        set_list(x, 0, sum, &lists[i]);
    }
    return SX_OK;
}

/* The list's value [n, ...]; the shape of its tensors must be known. */
static sx_status list_value(const sx_tf_op_node *x, int i, sx_value *out)
{
    const sx_tf_thing *list = NULL;
    SX_TRY(list_operand(x, i, &list));
    *out = list->value;
    if (list->element != NULL) {
        return sx_tf_unsupported("of a list of variants");
    }
    return sx_value_is(list->value)
               ? SX_OK
               : sx_tf_unsupported("no tensor of this list was set before, and its element_shape "
                                   "does not say their shape");
}

/* A list of n tensors that are not set. shape: their shape, -1 = an unknown dimension; or NULL. */
static sx_status empty_list(sx_tf_op_node *x, int output, sx_dtype dtype, int64_t n_known,
                            sx_value n, const sx_tensor *shape)
{
    sx_tf_thing *list = &x->n->out[output];
    sx_ints dims = {.n = -1};
    if (shape != NULL && shape->type.rank == 1) {
        SX_TRY(sx_import_ints(shape, 0, &dims));
    }
    if (dims.n >= SX_MAX_RANK) {
        return sx_tf_unsupported("a list of tensors of rank %d", dims.n);
    }
    const bool of_complex = sx_dtype_is_complex(dtype);
    if (of_complex) {
        dtype = dtype == SX_C64 ? SX_F32 : SX_F64;
        dims.v[SX_MAX(dims.n, 0)] = 2;
        dims.n += dims.n >= 0;
    }
    *list = (sx_tf_thing){
        .kind = SX_TF_LIST, .length = n, .list = ++x->im->n_lists, .of_complex = of_complex};
    list->variable = (sx_type){.dtype = dtype, .rank = 1, .dims = {n_known}};
    bool whole = dims.n >= 0;
    for (int d = 0; d < dims.n; d++) {
        whole = whole && dims.v[d] >= 0;
    }
    if (whole) {
        const sx_type type = sx_type_make(dtype, dims.n, dims.v);
        sx_value zero = SX_NO_VALUE, like = SX_NO_VALUE, all = SX_NO_VALUE;
        const sx_shape_attrs attrs = {dims};
        SX_TRY(sx_tf_nothing_of(x, type.dtype, &zero));
        SX_TRY(sx_tf_build(x, &sx_op_broadcast_to, &attrs, &like, 1, &zero));
        SX_TRY(sx_tf_list_fill(x, list, like, 0, &all));
        set_list(x, output, all, list);
    }
    return SX_OK;
}

static sx_status dtype_attr(const sx_tf_op_node *x, const char *name, sx_dtype *out)
{
    sx_tf_attr a;
    const bool given = x->tf.head.attr(&x->tf.head, name, &a) && a.kind == SX_TF_ATTR_TYPE;
    *out = given ? (sx_dtype)a.i : SX_DTYPE_NONE;
    if ((int)*out == SX_TF_VARIANT) { /* of ragged tensors (graph/ops/ragged_variant.h) */
        *out = SX_STRING;
    }
    return sx_dtype_is_complex(*out) || sx_dtype_bytes(*out) > 0 || *out == SX_STRING
               ? SX_OK
               : sx_tf_unsupported("a list of %s",
                                   *out == SX_DTYPE_NONE ? "another type" : sx_dtype_name(*out));
}

/* A known scalar of the node's inputs, or -1. */
static int64_t known_scalar(const sx_tf_op_node *x, int i)
{
    sx_ints list = {0};
    sx_status status = i < x->n->n_in && x->tf.head.values[i] != NULL
                           ? sx_import_ints(x->tf.head.values[i], i, &list)
                           : SX_OK;
    const bool known = status == SX_OK && list.n == 1 && list.v[0] >= 0;
    sx_status_free(status);
    return known ? list.v[0] : SX_UNKNOWN_DIM;
}

/* ---- Making lists ---- */

/* Whether a shape says the first dimension. */
static bool says_first(const sx_tensor *shape)
{
    sx_ints dims = {0};
    sx_status status = shape != NULL && shape->type.rank == 1 && shape->type.dims[0] <= SX_MAX_RANK
                           ? sx_import_ints(shape, 0, &dims)
                           : SX_OK;
    const bool says = status == SX_OK && dims.n > 0 && dims.v[0] >= 0;
    sx_status_free(status);
    return says;
}

/* A list of n tensors that are not set. shape: as of empty_list(); `alike`: it is that of all. */
static sx_status make_list(sx_tf_op_node *x, int output, sx_dtype dtype, int64_t n_known,
                           sx_value n, const sx_tensor *shape, bool alike)
{
    const sx_tf_thing of = {
        .variable = {.dtype = dtype, .rank = 1, .dims = {n_known}}, .length = n, .apart = true};
    sx_tf_reading reading = SX_TF_READ_WHOLE;
    SX_TRY(sx_tf_list_reading(x, &reading));
    if (reading == SX_TF_CONCATENATED && !alike && !sx_dtype_is_complex(dtype) &&
        !says_first(shape)) {
        return sx_tf_uneven_list(x, &of, dtype, &x->n->out[output]);
    }
    SX_TRY(empty_list(x, output, dtype, n_known, n, shape));
    x->n->out[output].apart = reading != SX_TF_READ_WHOLE;
    return SX_OK;
}

/* element_shape, num_elements */
static sx_status import_reserve(sx_tf_op_node *x)
{
    sx_value n = SX_NO_VALUE;
    sx_dtype dtype;
    SX_TRY(sx_tf_operand(x, 1, &n));
    SX_TRY(dtype_attr(x, "element_dtype", &dtype));
    return make_list(x, 0, dtype, known_scalar(x, 1), n, x->tf.head.values[0], false);
}

/* element_shape, max_num_elements */
static sx_status import_empty(sx_tf_op_node *x)
{
    sx_dtype dtype;
    SX_TRY(dtype_attr(x, "element_dtype", &dtype));
    return make_list(x, 0, dtype, 0, SX_NO_VALUE, NULL, says_first(x->tf.head.values[0]));
}

/* tensor, element_shape */
static sx_status import_from_tensor(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE;
    sx_tf_thing like = {.kind = SX_TF_LIST};
    SX_TRY(item_operand(x, 0, true, &like, &v));
    set_list(x, 0, v, &like);
    return SX_OK;
}

/* list, ... */
static sx_status import_stack(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE;
    SX_TRY(list_value(x, 0, &v));
    return set_item(x, 0, v, true, 1, &x->n->in[0]);
}

/* The list of input 0, whose tensors' rank the node's element_shape, input `at`, may say. */
static sx_status ranked_list(const sx_tf_op_node *x, int at, sx_value *out)
{
    SX_TRY(list_value(x, 0, out));
    const sx_tensor *shape = at < x->n->n_in ? x->tf.head.values[at] : NULL;
    const int more = 1 + x->n->in[0].of_complex;
    if (sx_type_of_value(x->b, *out).rank == SX_UNKNOWN_RANK && shape != NULL &&
        shape->type.rank == 1 && shape->type.dims[0] <= SX_MAX_RANK - more) {
        sx_type type = sx_type_of_value(x->b, *out);
        type.rank = (int)shape->type.dims[0] + more;
        for (int d = 0; d < type.rank; d++) {
            type.dims[d] = SX_UNKNOWN_DIM;
        }
        *out = sx_tf_build_as(x, &sx_op_identity, NULL, out, 1, NULL, 0, &type);
    }
    return SX_OK;
}

/* Item `index` of a list as an output; input `at` may say its shape. */
static sx_status take(sx_tf_op_node *x, int output, sx_value list, sx_value index, int at,
                      const sx_tf_thing *like)
{
    sx_value y = SX_NO_VALUE;
    SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){SX_I32}), index);
    if (sx_type_of_value(x->b, list).dtype == SX_STRING) {
        SX_TF_BUILD(x, &y, gather, NULL, list, y);
    } else {
        SX_TF_BUILD(x, &y, take_row, (&(sx_row_attrs){.checked = true}), list, y);
    }
    return set_item(x, output, y, false, at, like);
}

/* list, index, element_shape */
static sx_status import_get_item(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, index = SX_NO_VALUE;
    SX_TRY(ranked_list(x, 2, &list));
    SX_TRY(sx_tf_operand(x, 1, &index));
    return take(x, 0, list, index, 2, &x->n->in[0]);
}

/* list with zeros at its end up to `size` tensors, int64 [1]. */
static sx_status extend(const sx_tf_op_node *x, sx_value list, sx_value size, sx_value *out)
{
    sx_value n = SX_NO_VALUE, none = SX_NO_VALUE, more = SX_NO_VALUE;
    SX_TRY(dims_of(x, list, 0, 1, &n));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &none));
    SX_TF_BUILD(x, &more, sub, NULL, size, n);
    SX_TF_BUILD(x, &more, maximum, NULL, more, none);
    SX_TRY(zeros(x, more, SX_UNKNOWN_DIM, list, 1, &more));
    SX_TF_BUILD(x, out, concat, (&(sx_axis_attrs){0}), list, more);
    return SX_OK;
}

static sx_status put(sx_tf_op_node *x, const sx_tf_thing *list, sx_value index, sx_value item,
                     bool grows)
{
    sx_value all = list->value, i = SX_NO_VALUE, y = SX_NO_VALUE;
    if (!sx_value_is(all)) {
        SX_TRY(sx_tf_list_fill(x, list, item, 0, &all));
    }
    if (grows) {
        sx_value one = SX_NO_VALUE, size = SX_NO_VALUE;
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
        SX_TF_BUILD(x, &size, cast, (&(sx_cast_attrs){SX_I64}), index);
        SX_TF_BUILD(x, &size, reshape, (&(sx_shape_attrs){{1, {1}}}), size);
        SX_TF_BUILD(x, &size, add, NULL, size, one);
        SX_TRY(extend(x, all, size, &all));
    }
    SX_TF_BUILD(x, &i, cast, (&(sx_cast_attrs){SX_I32}), index);
    SX_TF_BUILD(x, &y, put_row, (&(sx_row_attrs){.checked = true}), all, item, i);
    set_list(x, 0, y, list);
    return SX_OK;
}

/* list, index, item */
static sx_status import_set_item(sx_tf_op_node *x)
{
    const sx_tf_thing *list = NULL;
    sx_value index = SX_NO_VALUE, item = SX_NO_VALUE;
    SX_TRY(list_operand(x, 0, &list));
    SX_TRY(sx_tf_operand(x, 1, &index));
    sx_tf_thing like = *list;
    SX_TRY(item_operand(x, 2, false, &like, &item));
    return put(x, &like, index, item,
               sx_tf_read_bool(&x->tf.head, "resize_if_index_out_of_bounds", false));
}

/* list, item */
static sx_status import_push_back(sx_tf_op_node *x)
{
    const sx_tf_thing *list = NULL;
    sx_value item = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(list_operand(x, 0, &list));
    sx_tf_thing like = *list;
    SX_TRY(item_operand(x, 1, false, &like, &item));
    SX_TRY(sx_tf_expand(x, item, 0, &y));
    if (!sx_value_is(like.value) && like.variable.dims[0] != 0) {
        SX_TRY(sx_tf_list_fill(x, &like, item, 0, &like.value));
    }
    if (sx_value_is(like.value)) {
        SX_TF_BUILD(x, &y, concat, (&(sx_axis_attrs){0}), like.value, y);
    }
    set_list(x, 0, y, &like);
    return SX_OK;
}

/* list, element_shape -> list, tensor */
static sx_status import_pop_back(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, n = SX_NO_VALUE, one = SX_NO_VALUE, i = SX_NO_VALUE;
    SX_TRY(ranked_list(x, 1, &list));
    SX_TRY(dims_of(x, list, 0, 1, &n));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    SX_TF_BUILD(x, &n, sub, NULL, n, one);
    SX_TF_BUILD(x, &i, reshape, (&(sx_shape_attrs){{0}}), n);
    SX_TRY(take(x, 1, list, i, 1, &x->n->in[0]));
    SX_TRY(sx_tf_first_rows(x, list, n, &list));
    set_list(x, 0, list, &x->n->in[0]);
    return SX_OK;
}

/* list, list: the tensors of the first, then those of the second */
static sx_status import_concat_lists(sx_tf_op_node *x)
{
    const sx_tf_thing *lists[2] = {NULL, NULL};
    sx_value y = SX_NO_VALUE;
    SX_TRY(list_operand(x, 0, &lists[0]));
    SX_TRY(list_operand(x, 1, &lists[1]));
    sx_tf_thing a = *lists[0], b = *lists[1];
    if (!sx_value_is(a.value) || !sx_value_is(b.value)) { /* of no tensors: the other */
        const sx_tf_thing *none = sx_value_is(a.value) ? &b : &a, *other = none == &a ? &b : &a;
        x->n->out[0] = *other;
        return none->variable.dims[0] == 0 ? SX_OK
                                           : sx_tf_unsupported("a list whose tensors were not set");
    }
    const sx_type items_a = sx_type_of_value(x->b, a.value),
                  items_b = sx_type_of_value(x->b, b.value);
    if (a.uneven != b.uneven || sx_tf_items_differ(&items_a, &items_b)) {
        SX_TRY(sx_tf_list_to_uneven(x, &a));
        SX_TRY(sx_tf_list_to_uneven(x, &b));
    }
    SX_TF_BUILD(x, &y, concat, (&(sx_axis_attrs){0}), a.value, b.value);
    set_list(x, 0, y, &a);
    return SX_OK;
}

/* list, size */
static sx_status import_resize(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, size = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 1, &size));
    if (x->n->in[0].kind == SX_TF_LIST && !sx_value_is(x->n->in[0].value)) {
        x->n->out[0] = x->n->in[0]; /* no tensor of it is set */
        x->n->out[0].length = size;
        x->n->out[0].resized = true;
        x->n->out[0].variable.dims[0] = known_scalar(x, 1);
        return SX_OK;
    }
    SX_TRY(list_value(x, 0, &list));
    SX_TF_BUILD(x, &size, cast, (&(sx_cast_attrs){SX_I64}), size);
    SX_TF_BUILD(x, &size, reshape, (&(sx_shape_attrs){{1, {1}}}), size);
    SX_TRY(extend(x, list, size, &list));
    SX_TRY(sx_tf_first_rows(x, list, size, &list));
    set_list(x, 0, list, &x->n->in[0]);
    return SX_OK;
}

static sx_status set_length(sx_tf_op_node *x, const sx_tf_thing *list)
{
    sx_value n = SX_NO_VALUE;
    SX_TRY(length_of(x, list, &n));
    SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_I32}), n);
    SX_TF_BUILD(x, &n, reshape, (&(sx_shape_attrs){{0}}), n);
    sx_tf_set(x, 0, n);
    return SX_OK;
}

static sx_status import_length(sx_tf_op_node *x)
{
    const sx_tf_thing *list = NULL;
    SX_TRY(list_operand(x, 0, &list));
    return set_length(x, list);
}

static sx_status import_element_shape(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, y = SX_NO_VALUE;
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "shape_type", SX_I32);
    if (x->n->n_in > 0 && (x->n->in[0].uneven != SX_DTYPE_NONE || x->n->in[0].element != NULL)) {
        SX_TRY(sx_tf_number(x, dtype, -1, &y)); /* of any */
        sx_tf_set(x, 0, y);
        return SX_OK;
    }
    SX_TRY(list_value(x, 0, &list));
    SX_TRY(dims_of(x, list, 1, -1, &y));
    if (x->n->in[0].of_complex) { /* without that of the parts */
        const sx_slice_attrs shape = {.begin = {1, {0}},
                                      .size = {1, {sx_type_of_value(x->b, list).rank - 2}}};
        SX_TF_BUILD(x, &y, slice, &shape, y);
    }
    SX_TF_BUILD(x, &y, cast, (&(sx_cast_attrs){dtype}), y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* list, indices, element_shape */
static sx_status import_gather(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, indices = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(list_value(x, 0, &list));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    SX_TF_BUILD(x, &y, gather, NULL, list, indices);
    return set_item(x, 0, y, true, 2, &x->n->in[0]);
}

/* The tensors one after another, [n * k, ...], and their lengths: n times k. */
static sx_status concat_all(sx_tf_op_node *x, sx_value list, const sx_tf_thing *like)
{
    const sx_type type = sx_type_of_value(x->b, list);
    sx_value n = SX_NO_VALUE, k = SX_NO_VALUE, shape = SX_NO_VALUE, y = SX_NO_VALUE;
    if (like->uneven != SX_DTYPE_NONE) {
        return sx_tf_list_concat_uneven(x, list, like);
    }
    if (type.rank != SX_UNKNOWN_RANK && type.rank < 2) {
        return sx_error(SX_DATA_LOSS, "it concatenates scalars");
    }
    SX_TRY(dims_of(x, list, 0, 1, &n));
    SX_TRY(dims_of(x, list, 1, 1, &k));
    SX_TRY(dims_of(x, list, 2, -1, &shape));
    SX_TF_BUILD(x, &y, mul, NULL, n, k);
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), y, shape);
    SX_TRY(sx_tf_build_open(x, &sx_op_reshape, NULL, list, "shape", shape, &y));
    SX_TRY(set_item(x, 0, y, true, 0, like));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, k, "shape", n, &y));
    sx_tf_set(x, 1, y);
    return SX_OK;
}

static sx_status import_concat(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE;
    SX_TRY(list_value(x, 0, &list));
    return concat_all(x, list, &x->n->in[0]);
}

/* The rows of a tensor as tensors of these lengths: tensor, element_shape, lengths -> list; handle,
 * tensor, lengths, flow -> flow. */
static sx_status import_split(sx_tf_op_node *x)
{
    const int at = strcmp(x->n->node->op, "TensorArraySplitV3") == 0 ? 1 : 0;
    const sx_ragged_to_variant_attrs each = {.batched = true};
    sx_tf_thing like = {.kind = SX_TF_LIST};
    sx_value v = SX_NO_VALUE, lengths = SX_NO_VALUE, zero = SX_NO_VALUE, splits = SX_NO_VALUE;
    SX_TRY(item_operand(x, at, true, &like, &v));
    SX_TRY(sx_tf_operand(x, 2, &lengths));
    const sx_type type = sx_type_of_value(x->b, v);
    const sx_tensor *known = x->tf.head.values[2];
    const int64_t n = known != NULL && known->type.rank == 1 ? known->type.dims[0] : 0;
    bool even = n > 0 && type.rank > 0;
    int64_t length = 0;
    for (int64_t k = 0; even && k < n; k++) {
        const char *p = (const char *)known->data + (size_t)k * sx_dtype_bytes(known->type.dtype);
        const double here = sx_host_load_element(known->type.dtype, p);
        even = here > 0 && here < INT32_MAX && (k == 0 || here == (double)length);
        length = even ? (int64_t)here : 0;
    }
    if (even) { /* -1: sizes that do not fit are the run's error */
        SX_TRY(sx_tf_divide_axis(x, v, 0, n, length, &v));
        set_list(x, 0, v, &like);
        return SX_OK;
    }
    if (like.of_complex) {
        return sx_tf_unsupported("it splits complex numbers by lengths that differ");
    }
    SX_TF_BUILD(x, &lengths, cast, (&(sx_cast_attrs){SX_I64}), lengths);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
    SX_TF_BUILD(x, &splits, concat, (&(sx_axis_attrs){0}), zero, lengths);
    SX_TF_BUILD(x, &splits, cumsum, (&(sx_cumulative_attrs){.axis = 0}), splits);
    SX_TF_BUILD(x, &v, ragged_to_variant, &each, splits, v);
    like.uneven = type.dtype;
    set_list(x, 0, v, &like);
    return SX_OK;
}

/* ---- TensorArrayV3: handle, ..., flow ---- */

/* size -> handle, flow */
static sx_status import_array(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "element_shape");
    sx_value n = SX_NO_VALUE;
    sx_dtype dtype;
    sx_type element;
    sx_tensor shape = {.type = {.dtype = SX_I64}};
    SX_TRY(sx_tf_operand(x, 0, &n));
    SX_TRY(dtype_attr(x, "dtype", &dtype));
    const bool ranked = a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE &&
                        a->shape != NULL && !a->shape->unknown_rank &&
                        sx_tf_type((int)dtype, a->shape, &element);
    if (ranked) {
        shape = (sx_tensor){sx_type_of(SX_I64, element.rank), element.dims};
    }
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_ARRAY,
                                 .grows = sx_tf_read_bool(&x->tf.head, "dynamic_size", false)};
    return make_list(x, 1, dtype, known_scalar(x, 0), n, ranked ? &shape : NULL,
                     sx_tf_read_bool(&x->tf.head, "identical_element_shapes", false));
}

/* handle, index, value, flow -> flow */
static sx_status import_array_write(sx_tf_op_node *x)
{
    const sx_tf_thing *list = NULL;
    sx_value index = SX_NO_VALUE, item = SX_NO_VALUE;
    SX_TRY(list_operand(x, 3, &list));
    SX_TRY(sx_tf_operand(x, 1, &index));
    sx_tf_thing like = *list;
    SX_TRY(item_operand(x, 2, false, &like, &item));
    return put(x, &like, index, item, x->n->in[0].grows);
}

/* handle, index, flow -> value */
static sx_status import_array_read(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, index = SX_NO_VALUE;
    SX_TRY(list_value(x, 2, &list));
    SX_TRY(sx_tf_operand(x, 1, &index));
    return take(x, 0, list, index, 0, &x->n->in[2]);
}

/* Whether input i is 0, 1, 2, ...: Range(0, n, 1) */
static bool counts_from_0(const sx_tf_op_node *x, int i)
{
    const sx_value v = i < x->n->n_in ? x->n->in[i].value : SX_NO_VALUE;
    const sx_node *maker = sx_value_is(v) ? sx_builder_maker(x->b, v) : NULL;
    const sx_tensor *known = sx_value_is(v) ? sx_tf_constant_of(x->b, v) : NULL;
    bool counts = known != NULL && known->type.rank == 1 && sx_dtype_is_integer(known->type.dtype);
    for (int64_t k = 0; counts && k < known->type.dims[0]; k++) {
        const char *at = (const char *)known->data + (size_t)k * sx_dtype_bytes(known->type.dtype);
        counts = sx_host_load_element(known->type.dtype, at) == (double)k;
    }
    return counts || (maker != NULL && maker->op == &sx_op_iota);
}

/* handle, indices, flow -> value */
static sx_status import_array_gather(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE, indices = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(list_value(x, 2, &list));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    SX_TF_BUILD(x, &y, gather, NULL, list, indices);
    return set_item(x, 0, y, true, 0, &x->n->in[2]);
}

/* The greatest of the indices and 1, int64 [1]; *out_known: the number, or SX_UNKNOWN_DIM. */
static sx_status length_for(const sx_tf_op_node *x, sx_value indices, int64_t *out_known,
                            sx_value *out)
{
    const sx_tensor *known = sx_tf_constant_of(x->b, indices);
    *out_known = known != NULL ? 0 : SX_UNKNOWN_DIM;
    for (int64_t k = 0; known != NULL && k < sx_type_elems(&known->type); k++) {
        const char *at = (const char *)known->data + (size_t)k * sx_dtype_bytes(known->type.dtype);
        const double i = sx_host_load_element(known->type.dtype, at);
        if (!(i >= 0 && i < INT32_MAX)) {
            return sx_error(SX_INVALID_ARGUMENT, "index %g of a list", i);
        }
        *out_known = SX_MAX(*out_known, (int64_t)i + 1);
    }
    if (known != NULL) {
        return sx_tf_int64s(x, &(sx_ints){1, {*out_known}}, out);
    }
    sx_value one = SX_NO_VALUE, least = SX_NO_VALUE;
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &least));
    SX_TF_BUILD(x, out, cast, (&(sx_cast_attrs){SX_I64}), indices);
    SX_TF_BUILD(x, out, concat, (&(sx_axis_attrs){0}), *out, least); /* if there are no indices */
    SX_TF_BUILD(x, out, reduce_max, (&(sx_reduce_attrs){.axes = {1, {0}}, .keep_dims = true}),
                *out);
    SX_TF_BUILD(x, out, add, NULL, *out, one);
    return SX_OK;
}

/* handle, indices, value, flow -> flow; list, tensor, indices -> list; tensor, indices,
 * element_shape, num_elements -> list. The list is as long as it was or as the greatest index
 * needs; what no index names is as it was, or zeros. All tensors in order, which is what unstack()
 * writes, are the list: also of a TensorArray of computed length. */
static sx_status import_scatter(sx_tf_op_node *x)
{
    const bool array = strcmp(x->n->node->op, "TensorArrayScatterV3") == 0;
    const bool into = strcmp(x->n->node->op, "TensorListScatterIntoExistingList") == 0;
    const int value = array ? 2 : into ? 1 : 0, at = into ? 2 : 1;
    const sx_tensor_scatter_attrs update = {.how = SX_SCATTER_UPDATE};
    const sx_tf_thing *list = NULL;
    sx_value v = SX_NO_VALUE, indices = SX_NO_VALUE, n = SX_NO_VALUE, all = SX_NO_VALUE;
    int64_t n_known = SX_UNKNOWN_DIM;
    sx_tf_thing like = {.kind = SX_TF_LIST};
    SX_TRY(sx_tf_operand(x, at, &indices));
    if (array || into) {
        SX_TRY(list_operand(x, array ? 3 : 0, &list));
        like = *list;
    } else {
        n_known = known_scalar(x, 3);
    }
    SX_TRY(item_operand(x, value, true, &like, &v));
    const int64_t had = list != NULL && list->variable.rank > 0 ? list->variable.dims[0] : n_known;
    const sx_type type = sx_type_of_value(x->b, v);
    const int64_t rows = type.rank > 0 ? type.dims[0] : SX_UNKNOWN_DIM;
    const bool fills = had >= 0 ? rows >= 0 && had <= rows : array || list == NULL;
    if (fills && counts_from_0(x, at)) {
        set_list(x, 0, v, &like);
        return SX_OK;
    }
    if (type.dtype == SX_STRING) {
        return sx_tf_unsupported("strings, and its indices are not 0, 1, 2, ...");
    }
    if (list == NULL && n_known >= 0) {
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {n_known}}, &n));
    } else {
        SX_TRY(length_for(x, indices, &n_known, &n));
    }
    if (list == NULL) {
        SX_TRY(zeros(x, n, n_known, v, 1, &all));
    } else {
        all = list->value;
        if (!sx_value_is(all)) {
            SX_TRY(sx_tf_list_fill(x, list, v, 1, &all));
        }
        if (!(had >= 0 && n_known >= 0 && n_known <= had)) {
            SX_TRY(extend(x, all, n, &all));
        }
    }
    SX_TRY(sx_tf_expand(x, indices, -1, &indices));
    SX_TF_BUILD(x, &all, tensor_scatter, &update, all, indices, v);
    set_list(x, 0, all, &like);
    return SX_OK;
}

/* handle, flow -> size */
static sx_status import_array_size(sx_tf_op_node *x)
{
    const sx_tf_thing *list = NULL;
    SX_TRY(list_operand(x, 1, &list));
    return set_length(x, list);
}

/* handle, flow -> value, lengths */
static sx_status import_array_concat(sx_tf_op_node *x)
{
    sx_value list = SX_NO_VALUE;
    SX_TRY(list_value(x, 1, &list));
    return concat_all(x, list, &x->n->in[1]);
}

static sx_status import_array_close(sx_tf_op_node *x)
{
    (void)x;
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_list_rows[] = {
    {"TensorListReserve", import_reserve, NULL},
    {"EmptyTensorList", import_empty, NULL},
    {"TensorListFromTensor", import_from_tensor, NULL},
    {"TensorListStack", import_stack, NULL},
    {"TensorListGetItem", import_get_item, NULL},
    {"TensorListSetItem", import_set_item, NULL},
    {"TensorListPushBack", import_push_back, NULL},
    {"TensorListPopBack", import_pop_back, NULL},
    {"TensorListConcatLists", import_concat_lists, NULL},
    {"TensorListResize", import_resize, NULL},
    {"TensorListLength", import_length, NULL},
    {"TensorListElementShape", import_element_shape, NULL},
    {"TensorListGather", import_gather, NULL},
    {"TensorListScatterV2", import_scatter, NULL},
    {"TensorListScatterIntoExistingList", import_scatter, NULL},
    {"TensorListScatter", import_scatter, NULL},
    {"TensorListConcat", import_concat, NULL},
    {"TensorListConcatV2", import_concat, NULL},
    {"TensorListSplit", import_split, NULL},
    {"TensorArrayV3", import_array, NULL},
    {"TensorArrayWriteV3", import_array_write, NULL},
    {"TensorArrayReadV3", import_array_read, NULL},
    {"TensorArrayGatherV3", import_array_gather, NULL},
    {"TensorArrayScatterV3", import_scatter, NULL},
    {"TensorArraySplitV3", import_split, NULL},
    {"TensorArraySizeV3", import_array_size, NULL},
    {"TensorArrayConcatV3", import_array_concat, NULL},
    {"TensorArrayCloseV3", import_array_close, NULL},
    {NULL, NULL, NULL},
};
