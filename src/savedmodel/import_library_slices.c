/* Imports strided slices: x[begin:end:stride, ...] with axes that are dropped, added or left out.
 *
 *   1. what each axis of the input is cut to, and which axes the result has
 *   2. first element and number of elements of each axis: known, or computed from the shape
 *   3. slice, then every stride-th element, then reshape
 *
 * A negative stride runs over the same elements backwards: x[b:e:-s] is x[e+1:b+1] from its end. */
#include <string.h>

#include "savedmodel/import_library_ops.h"

/* What the indices do with one axis of the input. */
typedef struct cut {
    int index;             /* which one of begin, end, strides; -1 = none, the whole axis */
    bool shrink;           /* to one element, and the axis is dropped */
    bool no_begin, no_end; /* as in x[:e], x[b:] */
} cut;

/* cuts[rank]; the result's axes are those of the input in `kept`, -1 = a new one. */
static sx_status read_indices(const sx_tf_op_node *x, int n_indices, cut *cuts, sx_ints *kept)
{
    const sx_tf_node *tf = &x->tf.head;
    const int64_t begins = sx_tf_read_int(tf, "begin_mask", 0),
                  ends = sx_tf_read_int(tf, "end_mask", 0),
                  shrinks = sx_tf_read_int(tf, "shrink_axis_mask", 0),
                  news = sx_tf_read_int(tf, "new_axis_mask", 0),
                  dots = sx_tf_read_int(tf, "ellipsis_mask", 0);
    const int rank = tf->types[0].rank;
    int n_named = 0, d = 0;
    bool dotted = false;
    for (int i = 0; i < n_indices; i++) {
        n_named += (dots >> i & 1) == 0 && (news >> i & 1) == 0;
    }
    if (n_named > rank) {
        return sx_error(SX_DATA_LOSS, "%d indices for an input of rank %d", n_named, rank);
    }
    *kept = (sx_ints){0};
    for (int i = 0; i <= n_indices; i++) {
        const bool end = i == n_indices, dot = !end && (dots >> i & 1) != 0;
        const int whole = (dot || end) && !dotted ? rank - n_named : 0;
        const bool new_axis = !end && !dot && (news >> i & 1) != 0;
        const bool shrink = !end && !dot && !new_axis && (shrinks >> i & 1) != 0;
        if (kept->n + whole + 1 > SX_MAX_RANK + end) {
            return sx_tf_unsupported("the result has a rank above %d", SX_MAX_RANK);
        }
        for (int k = 0; k < whole; k++, d++) { /* an ellipsis, or the end, takes the other axes */
            cuts[d] = (cut){.index = -1};
            kept->v[kept->n++] = d;
        }
        dotted = dotted || dot;
        if (new_axis) {
            kept->v[kept->n++] = -1;
        } else if (!end && !dot) {
            cuts[d] = (cut){.index = i,
                            .shrink = shrink,
                            .no_begin = (begins >> i & 1) != 0,
                            .no_end = (ends >> i & 1) != 0};
            if (!shrink) {
                kept->v[kept->n++] = d;
            }
            d++;
        }
    }
    return SX_OK;
}

/* An integer that may be known: `value` is an int64 [1], made when it is needed. */
typedef struct number {
    bool known;
    int64_t k;
    sx_value value;
} number;

static number known(int64_t k)
{
    return (number){.known = true, .k = k};
}

static sx_status value_of(const sx_tf_op_node *x, const number *n, sx_value *out)
{
    *out = n->value;
    return n->known ? sx_tf_int64s(x, &(sx_ints){1, {n->k}}, out) : SX_OK;
}

/* Element i of input `input`, a vector: a constant, an element of a vector that is made of
 * constants and other scalars, or computed. */
static sx_status element(const sx_tf_op_node *x, int input, int i, number *out)
{
    const sx_tensor *all = x->tf.head.values[input];
    sx_ints list = {0};
    if (all != NULL) {
        SX_TRY(sx_import_ints(all, input, &list));
        *out = known(list.v[i]);
        return SX_OK;
    }
    sx_value v = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, input, &v));
    int64_t k = 0;
    bool is_dim = false;
    if (sx_tf_peek(x->b, v, i, &is_dim, &k) && (!is_dim || k >= 0)) {
        *out = known(k);
        return SX_OK;
    }
    const sx_slice_attrs at = {.begin = {1, {i}}, .size = {1, {1}}};
    *out = (number){.known = false};
    SX_TF_BUILD(x, &v, cast, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, &out->value, slice, &at, v);
    return SX_OK;
}

static sx_status sum(const sx_tf_op_node *x, const number *a, const number *b, number *out)
{
    sx_value va = SX_NO_VALUE, vb = SX_NO_VALUE;
    if (a->known && b->known) {
        *out = known(a->k + b->k);
        return SX_OK;
    }
    if ((a->known && a->k == 0) || (b->known && b->k == 0)) {
        *out = a->known && a->k == 0 ? *b : *a;
        return SX_OK;
    }
    SX_TRY(value_of(x, a, &va));
    SX_TRY(value_of(x, b, &vb));
    *out = (number){.known = false};
    SX_TF_BUILD(x, &out->value, add, NULL, va, vb);
    return SX_OK;
}

/* a - b, at least 0 */
static sx_status distance(const sx_tf_op_node *x, const number *a, const number *b, number *out)
{
    sx_value va = SX_NO_VALUE, vb = SX_NO_VALUE, zero = SX_NO_VALUE;
    if (a->known && b->known) {
        *out = known(SX_MAX(a->k - b->k, 0));
        return SX_OK;
    }
    SX_TRY(value_of(x, a, &va));
    if (b->known && b->k == 0) {
        *out = *a;
        return SX_OK;
    }
    SX_TRY(value_of(x, b, &vb));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
    *out = (number){.known = false};
    SX_TF_BUILD(x, &out->value, sub, NULL, va, vb);
    SX_TF_BUILD(x, &out->value, maximum, NULL, out->value, zero);
    return SX_OK;
}

/* The index i of an axis of `dim` elements, counted from the end if it is negative, plus `offset`;
 * within [0, dim] unless it is `exact`. */
static sx_status place(const sx_tf_op_node *x, const number *i, const number *dim, int64_t offset,
                       bool exact, number *out)
{
    const number more = known(offset), zero = known(0);
    sx_value v = SX_NO_VALUE, d = SX_NO_VALUE, nothing = SX_NO_VALUE, from_end = SX_NO_VALUE,
             negative = SX_NO_VALUE;
    if (i->known && dim->known) {
        const int64_t at = (i->k < 0 ? i->k + dim->k : i->k) + offset;
        *out = known(exact ? at : SX_MIN(SX_MAX(at, 0), dim->k));
        return SX_OK;
    }
    if (i->known && exact && i->k >= 0) {
        *out = known(i->k + offset);
        return SX_OK;
    }
    SX_TRY(value_of(x, dim, &d));
    SX_TRY(value_of(x, &zero, &nothing));
    if (i->known) {
        SX_TRY(value_of(x, i, &v));
        if (i->k < 0) {
            SX_TF_BUILD(x, &v, add, NULL, v, d);
        }
    } else {
        v = i->value;
        SX_TF_BUILD(x, &from_end, add, NULL, v, d);
        SX_TF_BUILD(x, &negative, less, NULL, v, nothing);
        SX_TF_BUILD(x, &v, select, NULL, negative, from_end, v);
    }
    *out = (number){.value = v};
    SX_TRY(sum(x, out, &more, out));
    if (!exact) {
        SX_TF_BUILD(x, &out->value, maximum, NULL, out->value, nothing);
        SX_TF_BUILD(x, &out->value, minimum, NULL, out->value, d);
    }
    return SX_OK;
}

/* What is left of an axis. */
typedef struct extent {
    number first, count;
    bool whole;
    int64_t stride;
    sx_value places; /* of its elements, where the stride is computed: `whole` until then */
} extent;

/* Begin or end of an axis whose stride is computed: within [low, high], from the end if negative.
 */
static sx_status bound(const sx_tf_op_node *x, int input, const cut *c, sx_value dim, sx_value low,
                       sx_value high, sx_value zero, sx_value *out)
{
    number i = known(0);
    sx_value v, negative, from_end;
    SX_TRY(element(x, input, c->index, &i));
    SX_TRY(value_of(x, &i, &v));
    SX_TF_BUILD(x, &negative, less, NULL, v, zero);
    SX_TF_BUILD(x, &from_end, add, NULL, v, dim);
    SX_TF_BUILD(x, &v, select, NULL, negative, from_end, v);
    SX_TF_BUILD(x, &v, maximum, NULL, v, low);
    SX_TF_BUILD(x, out, minimum, NULL, v, high);
    return SX_OK;
}

/* Where the stride is computed: begin + stride * (0, 1, ...), before end. `dim`: of the axis. */
static sx_status stride_places(const sx_tf_op_node *x, const cut *c, sx_value stride, sx_value dim,
                               sx_value *out)
{
    sx_value zero, one, back, low, high, begin, end, n, sign;
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    SX_TF_BUILD(x, &n, not_equal, NULL, stride, zero);
    SX_TRY(sx_tf_require(x, n, "StridedSlice: a stride is 0", stride));
    SX_TF_BUILD(x, &back, less, NULL, stride, zero);
    SX_TF_BUILD(x, &low, cast, (&(sx_cast_attrs){SX_I64}), back); /* backwards, from the last to */
    SX_TF_BUILD(x, &high, sub, NULL, dim, low);                   /* before the first */
    SX_TF_BUILD(x, &low, neg, NULL, low);
    SX_TF_BUILD(x, &begin, select, NULL, back, high, low);
    SX_TF_BUILD(x, &end, select, NULL, back, low, high);
    if (!c->no_begin) {
        SX_TRY(bound(x, 1, c, dim, low, high, zero, &begin));
    }
    if (!c->no_end) {
        SX_TRY(bound(x, 2, c, dim, low, high, zero, &end));
    }
    SX_TF_BUILD(x, &n, sub, NULL, end, begin); /* rounded up */
    SX_TF_BUILD(x, &sign, sign, NULL, stride);
    SX_TF_BUILD(x, &n, sub, NULL, n, sign);
    SX_TF_BUILD(x, &n, add, NULL, n, stride);
    SX_TF_BUILD(x, &n, floor_div, NULL, n, stride);
    SX_TF_BUILD(x, &n, maximum, NULL, n, zero);
    SX_TRY(sx_tf_count_to(x, n, SX_I64, &n));
    SX_TF_BUILD(x, &n, mul, NULL, n, stride);
    SX_TF_BUILD(x, out, add, NULL, n, begin);
    return SX_OK;
}

static sx_status extent_of(const sx_tf_op_node *x, const cut *c, int axis, extent *out)
{
    const int64_t size = x->tf.head.types[0].dims[axis];
    number begin = known(0), end = known(0), stride = known(1), dim = known(size), last;
    *out = (extent){
        .first = known(0), .count = dim, .whole = c->index < 0, .stride = 1, .places = SX_NO_VALUE};
    if (out->whole) {
        return SX_OK;
    }
    SX_TRY(element(x, 3, c->index, &stride));
    if (!stride.known && !c->shrink) {
        const sx_slice_attrs at = {.begin = {1, {axis}}, .size = {1, {1}}};
        SX_TF_BUILD(x, &dim.value, shape, (&(sx_cast_attrs){SX_I64}), x->n->in[0].value);
        SX_TF_BUILD(x, &dim.value, slice, &at, dim.value);
        out->whole = true;
        return stride_places(x, c, stride.value, dim.value, &out->places);
    }
    if (stride.known && stride.k == 0) {
        return sx_error(SX_DATA_LOSS, "stride %d is 0", c->index);
    }
    if (!c->shrink && c->no_begin && c->no_end) { /* x[::s] */
        out->whole = true;
        out->stride = stride.k;
        return SX_OK;
    }
    if (size < 0) {
        const sx_slice_attrs at = {.begin = {1, {axis}}, .size = {1, {1}}};
        dim = (number){.known = false};
        SX_TF_BUILD(x, &dim.value, shape, (&(sx_cast_attrs){SX_I64}), x->n->in[0].value);
        SX_TF_BUILD(x, &dim.value, slice, &at, dim.value);
    }
    if (!c->no_begin || c->shrink) {
        SX_TRY(element(x, 1, c->index, &begin));
    }
    if (c->shrink) {
        SX_TRY(place(x, &begin, &dim, 0, true, &out->first));
        if (out->first.known && (out->first.k < 0 || (size >= 0 && out->first.k >= size))) {
            return sx_error(SX_DATA_LOSS, "index %lld is out of range for %lld elements",
                            (long long)begin.k, (long long)size);
        }
        out->count = known(1);
        return SX_OK;
    }
    if (!c->no_end) {
        SX_TRY(element(x, 2, c->index, &end));
    }
    out->stride = stride.k;
    if (stride.k > 0) {
        last = dim;
        if (!c->no_begin) {
            SX_TRY(place(x, &begin, &dim, 0, false, &out->first));
        }
        if (!c->no_end) {
            SX_TRY(place(x, &end, &dim, 0, false, &last));
        }
    } else {
        last = dim;
        if (!c->no_begin) {
            SX_TRY(place(x, &begin, &dim, 1, false, &last));
        }
        if (!c->no_end) {
            SX_TRY(place(x, &end, &dim, 1, false, &out->first));
        }
    }
    out->whole = out->first.known && out->first.k == 0 &&
                 (last.known ? dim.known && last.k >= dim.k : last.value.id == dim.value.id);
    SX_TRY(distance(x, &last, &out->first, &out->count));
    return SX_OK;
}

/* slice(v) with its begin and size operands, int64 [rank]. */
static sx_value slice_open(const sx_tf_op_node *x, sx_value v, sx_value begin, sx_value size,
                           const sx_type *type)
{
    const sx_attr_operand open[] = {{sx_tf_attr_row(&sx_op_slice, "begin"), begin},
                                    {sx_tf_attr_row(&sx_op_slice, "size"), size}};
    return sx_tf_build_as(x, &sx_op_slice, NULL, &v, 1, open, 2, type);
}

sx_status sx_tf_first_rows(const sx_tf_op_node *x, sx_value v, sx_value n, sx_value *out)
{
    sx_type type = sx_type_of_value(x->b, v);
    sx_ints zeros = {.n = type.rank}, rest = {.n = type.rank - 1};
    sx_value begin = SX_NO_VALUE, size = SX_NO_VALUE;
    if (type.rank == SX_UNKNOWN_RANK || type.rank < 1) {
        return sx_tf_unsupported("the rank of the list's tensors is unknown");
    }
    for (int d = 0; d < rest.n; d++) {
        rest.v[d] = -1;
    }
    SX_TRY(sx_tf_int64s(x, &zeros, &begin));
    SX_TRY(sx_tf_int64s(x, &rest, &size));
    SX_TF_BUILD(x, &size, concat, (&(sx_axis_attrs){0}), n, size);
    type.dims[0] = SX_UNKNOWN_DIM;
    *out = slice_open(x, v, begin, size, &type);
    return SX_OK;
}

/* The block of v that extents[rank] describe. */
static sx_status cut_block(const sx_tf_op_node *x, sx_value v, const extent *extents, sx_value *out)
{
    sx_type type = sx_type_of_value(x->b, v);
    sx_slice_attrs attrs = {.begin = {.n = type.rank}, .size = {.n = type.rank}};
    sx_value begin[SX_MAX_RANK], size[SX_MAX_RANK], starts = SX_NO_VALUE, sizes = SX_NO_VALUE;
    bool cuts = false, fixed = true;
    for (int d = 0; d < type.rank; d++) {
        const extent *e = &extents[d];
        const int64_t dim = type.dims[d];
        cuts = cuts || !e->whole;
        fixed = fixed &&
                (e->whole ? dim >= 0 || sx_dim_is_batch(dim) : e->first.known && e->count.known);
        attrs.begin.v[d] = e->whole ? 0 : e->first.k;
        attrs.size.v[d] = e->whole ? dim : e->count.k;
        type.dims[d] = e->whole ? dim : e->count.known ? e->count.k : SX_UNKNOWN_DIM;
    }
    *out = v;
    if (!cuts) {
        return SX_OK;
    }
    if (fixed) {
        bool folded = false;
        SX_TRY(sx_tf_fold(x, &sx_op_slice, &attrs, &v, 1, &type, out, &folded));
        if (folded) {
            return SX_OK;
        }
        *out = sx_tf_build_as(x, &sx_op_slice, &attrs, &v, 1, NULL, 0, &type);
        return SX_OK;
    }
    for (int d = 0; d < type.rank; d++) {
        const number none = known(0), rest = known(-1);
        SX_TRY(value_of(x, extents[d].whole ? &none : &extents[d].first, &begin[d]));
        SX_TRY(value_of(x, extents[d].whole ? &rest : &extents[d].count, &size[d]));
    }
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &starts, type.rank, begin));
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &sizes, type.rank, size));
    *out = slice_open(x, v, starts, sizes, &type);
    return SX_OK;
}

sx_status sx_tf_cut_axis(const sx_tf_op_node *x, sx_value v, int axis, int64_t from, int64_t count,
                         sx_value *out)
{
    extent extents[SX_MAX_RANK];
    for (int d = 0; d < SX_MAX_RANK; d++) {
        extents[d] = (extent){.whole = d != axis, .stride = 1, .places = SX_NO_VALUE};
    }
    extents[axis].first = known(from);
    extents[axis].count = known(count);
    return cut_block(x, v, extents, out);
}

sx_status sx_tf_cut_axis_open(const sx_tf_op_node *x, sx_value v, int axis, sx_value from,
                              sx_value count, int64_t count_known, sx_value *out)
{
    extent extents[SX_MAX_RANK];
    for (int d = 0; d < SX_MAX_RANK; d++) {
        extents[d] = (extent){.whole = d != axis, .stride = 1, .places = SX_NO_VALUE};
    }
    extents[axis].first = (number){.value = from};
    extents[axis].count = count_known >= 0 ? known(count_known) : (number){.value = count};
    return cut_block(x, v, extents, out);
}

/* Every stride-th element along an axis: it is padded to a multiple and divided into groups, of
 * which the first element is left. */
static sx_status every(const sx_tf_op_node *x, sx_value v, int axis, int64_t stride, sx_value *out)
{
    sx_type type = sx_type_of_value(x->b, v);
    const int64_t size = type.dims[axis];
    sx_pad_attrs pad = {.before = {.n = type.rank}, .after = {.n = type.rank}};
    sx_ints kept = {0};
    if (type.rank == SX_MAX_RANK || stride > INT32_MAX) {
        return sx_tf_unsupported("stride %lld of an input of rank %d", (long long)stride,
                                 type.rank);
    }
    pad.after.v[axis] = size >= 0 ? (stride - size % stride) % stride : stride - 1;
    type.dims[axis] = size >= 0 ? size + pad.after.v[axis] : SX_UNKNOWN_DIM;
    v = sx_tf_build_as(x, &sx_op_pad, &pad, &v, 1, NULL, 0, &type);
    if (size < 0) { /* the largest multiple within, by float64, where integers are exact */
        const sx_slice_attrs at = {.begin = {1, {axis}}, .size = {1, {1}}};
        sx_value n = SX_NO_VALUE, by = SX_NO_VALUE;
        extent extents[SX_MAX_RANK];
        SX_TF_BUILD(x, &n, shape, (&(sx_cast_attrs){SX_I64}), v);
        SX_TF_BUILD(x, &n, slice, &at, n);
        SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_F64}), n);
        SX_TRY(sx_tf_number(x, SX_F64, (double)stride, &by));
        SX_TF_BUILD(x, &n, div, NULL, n, by);
        SX_TF_BUILD(x, &n, floor, NULL, n);
        SX_TF_BUILD(x, &n, mul, NULL, n, by);
        SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){SX_I64}), n);
        for (int d = 0; d < type.rank; d++) {
            extents[d] = (extent){.whole = d != axis, .first = known(0), .count = {.value = n}};
        }
        SX_TRY(cut_block(x, v, extents, &v));
    }
    SX_TRY(sx_tf_divide_axis(x, v, axis, -1, stride, &v));
    SX_TRY(sx_tf_cut_axis(x, v, axis + 1, 0, 1, &v));
    for (int d = 0; d <= type.rank; d++) {
        if (d != axis + 1) {
            kept.v[kept.n++] = d;
        }
    }
    return sx_tf_reshape_dims(x, v, &kept, out);
}

/* The elements along an axis from the last to the first: rows n-1, n-2, ... with that axis first.
 */
static sx_status backwards(const sx_tf_op_node *x, sx_value v, int axis, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    const int64_t size = type.dims[axis];
    sx_transpose_attrs swap = {.perm = {.n = type.rank}};
    sx_value n = SX_NO_VALUE, one = SX_NO_VALUE, i = SX_NO_VALUE;
    for (int d = 0; d < type.rank; d++) {
        swap.perm.v[d] = d == 0 ? axis : d == axis ? 0 : d;
    }
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    if (size >= 0) {
        const sx_iota_attrs count = {.dtype = SX_I64, .shape = {1, {size}}};
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {size}}, &n));
        SX_TRY(sx_tf_build(x, &sx_op_iota, &count, &i, 0, NULL));
    } else {
        const sx_slice_attrs at = {.begin = {1, {axis}}, .size = {1, {1}}};
        int n_out = 0;
        SX_TF_BUILD(x, &n, shape, (&(sx_cast_attrs){SX_I64}), v);
        SX_TF_BUILD(x, &n, slice, &at, n);
        const sx_attr_operand open = {sx_tf_attr_row(&sx_op_iota, "shape"), n};
        SX_TRY(sx_tf_add_node(x, &sx_op_iota, &(sx_iota_attrs){.dtype = SX_I64}, NULL, 0, &open, 1,
                              &i, &n_out));
    }
    SX_TF_BUILD(x, &n, sub, NULL, n, one);
    SX_TF_BUILD(x, &i, sub, NULL, n, i);
    SX_TF_BUILD(x, &v, transpose, &swap, v);
    SX_TF_BUILD(x, &v, gather, NULL, v, i);
    *out = sx_tf_build_as(x, &sx_op_transpose, &swap, &v, 1, NULL, 0, &type);
    return SX_OK;
}

static sx_status import_strided_slice(sx_tf_op_node *x);

/* Of an input of unknown rank: what the indices leave whole, at the ellipsis or the end, becomes
 * one axis, and after the slice the axes that it was. */
static sx_status slice_unknown(sx_tf_op_node *x, sx_value v, int n_indices)
{
    const int64_t news = sx_tf_read_int(&x->tf.head, "new_axis_mask", 0),
                  dots = sx_tf_read_int(&x->tf.head, "ellipsis_mask", 0),
                  shrinks = sx_tf_read_int(&x->tf.head, "shrink_axis_mask", 0);
    int64_t named[2] = {0, 0}, kept = 0; /* before and after the ellipsis; axes of the result */
    bool dotted = false;
    for (int i = 0; i < n_indices; i++) {
        const bool is_new = (news >> i & 1) != 0, dot = (dots >> i & 1) != 0;
        named[dotted] += !dot && !is_new;
        kept += !dot && !dotted && (is_new || (shrinks >> i & 1) == 0);
        dotted = dotted || dot;
    }
    if (named[0] + named[1] + 1 > SX_MAX_RANK) {
        return sx_tf_unsupported("the rank of input 0 is unknown");
    }
    sx_value shape = SX_NO_VALUE, rank = SX_NO_VALUE, ends[2], zero = SX_NO_VALUE,
             all = SX_NO_VALUE;
    sx_value dims = SX_NO_VALUE, count = SX_NO_VALUE, parts[3], at = SX_NO_VALUE;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_rank_of(x, v, &rank));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &zero));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &all));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {named[0]}}, &ends[0]));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {named[1]}}, &ends[1]));
    SX_TF_BUILD(x, &ends[1], sub, NULL, rank, ends[1]);
    SX_TF_BUILD(x, &count, sub, NULL, ends[1], ends[0]);
    SX_TRY(sx_tf_vector_part(x, shape, ends[0], count, &dims));
    SX_TRY(sx_tf_vector_part(x, shape, zero, ends[0], &parts[0]));
    SX_TF_BUILD(x, &parts[1], reduce_prod,
                (&(sx_reduce_attrs){.axes = {1, {0}}, .keep_dims = true}), dims);
    SX_TRY(sx_tf_vector_part(x, shape, ends[1], all, &parts[2]));
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), parts[0], parts[1], parts[2]);
    sx_type type = {.dtype = x->tf.head.types[0].dtype, .rank = (int)(named[0] + named[1]) + 1};
    for (int d = 0; d < type.rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    const size_t n_in = (size_t)x->n->n_in;
    sx_tf_thing *in = sx_arena_memdup(&x->im->arena, x->n->in, n_in * sizeof(*in));
    sx_type *types = sx_arena_memdup(&x->im->arena, x->tf.head.types, n_in * sizeof(*types));
    if (in == NULL || types == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_reshape_as(x, v, shape, &type, &in[0].value));
    types[0] = type;
    sx_tf_import_node flat = *x->n;
    sx_tf_op_node inner = *x;
    flat.in = in;
    inner.n = &flat;
    inner.tf.head.types = types;
    SX_TRY(import_strided_slice(&inner));
    sx_value y = flat.out[0].value;
    type = sx_tf_unknown_shape(type.dtype);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), y);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {kept}}, &at));
    SX_TRY(sx_tf_replace_dims(x, shape, at, 1, dims, &shape));
    SX_TRY(sx_tf_reshape_as(x, y, shape, &type, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_strided_slice(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE;
    cut cuts[SX_MAX_RANK] = {{0}};
    extent extents[SX_MAX_RANK];
    sx_ints kept;
    SX_TRY(sx_tf_operand(x, 0, &v));
    if (x->n->n_in < 4) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", x->n->n_in);
    }
    const int rank = x->tf.head.types[0].rank;
    const sx_type *indices = &x->tf.head.types[3];
    if (indices->rank != 1 || indices->dims[0] < 0 || indices->dims[0] > 2 * SX_MAX_RANK) {
        return sx_tf_unsupported("the number of indices is unknown, or above %d", 2 * SX_MAX_RANK);
    }
    const int n_indices = (int)indices->dims[0];
    for (int i = 1; i < 3; i++) {
        const sx_type *other = &x->tf.head.types[i];
        if (other->rank == 1 && other->dims[0] >= 0 && other->dims[0] != n_indices) {
            return sx_error(SX_DATA_LOSS, "input %d has %lld indices, the strides have %d", i,
                            (long long)other->dims[0], n_indices);
        }
    }
    if (rank == SX_UNKNOWN_RANK) {
        return slice_unknown(x, v, n_indices);
    }
    SX_TRY(read_indices(x, n_indices, cuts, &kept));
    for (int d = 0; d < rank; d++) {
        SX_TRY(extent_of(x, &cuts[d], d, &extents[d]));
    }
    SX_TRY(cut_block(x, v, extents, &v));
    for (int d = 0; d < rank; d++) {
        const int64_t stride = extents[d].stride;
        if (sx_value_is(extents[d].places)) {
            SX_TF_BUILD(x, &v, gather, (&(sx_gather_attrs){.axis = d}), v, extents[d].places);
        }
        if (stride < 0) {
            SX_TRY(backwards(x, v, d, &v));
        }
        if (stride == INT64_MIN) {
            return sx_tf_unsupported("stride %lld", (long long)stride);
        }
        if (stride > 1 || stride < -1) {
            SX_TRY(every(x, v, d, stride < 0 ? -stride : stride, &v));
        }
    }
    bool same = kept.n == rank;
    for (int k = 0; k < kept.n; k++) {
        same = same && kept.v[k] == k;
    }
    if (!same) {
        SX_TRY(sx_tf_reshape_dims(x, v, &kept, &v));
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* The places in a tensor of this type and shape, an int64 vector, of the elements that the node's
 * indices cut: a vector of int64; *count is the number of the tensor's elements, int64 []. */
static sx_status cut_places(const sx_tf_op_node *x, sx_type type, sx_value shape, sx_value *count,
                            sx_value *out)
{
    static const sx_shape_attrs scalar = {{0}};
    const sx_reduce_attrs product = {.axes = {1, {0}}, .keep_dims = true};
    const sx_iota_attrs numbers = {.dtype = SX_I64};
    const sx_type flat = sx_type_of(SX_I64, SX_UNKNOWN_DIM);
    sx_value line = SX_NO_VALUE, places = SX_NO_VALUE, rest = SX_NO_VALUE;
    int n_out = 0;
    type.dtype = SX_I64;
    SX_TF_BUILD(x, count, reduce_prod, &product, shape);
    const sx_attr_operand all = {sx_tf_attr_row(&sx_op_iota, "shape"), *count};
    SX_TRY(sx_tf_add_node(x, &sx_op_iota, &numbers, NULL, 0, &all, 1, &line, &n_out));
    SX_TF_BUILD(x, count, reshape, &scalar, *count);
    SX_TRY(sx_tf_reshape_as(x, line, shape, &type, &places));

    const size_t n_in = (size_t)x->n->n_in;
    sx_tf_thing *in = sx_arena_memdup(&x->im->arena, x->n->in, n_in * sizeof(*in));
    sx_type *types = sx_arena_memdup(&x->im->arena, x->tf.head.types, n_in * sizeof(*types));
    if (in == NULL || types == NULL) {
        return sx_import_memory();
    }
    in[0] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = places};
    types[0] = type;
    sx_tf_import_node slice = *x->n;
    sx_tf_op_node inner = *x;
    slice.in = in;
    slice.n_in = 4;
    inner.n = &slice;
    inner.tf.head.types = types;
    SX_TRY(import_strided_slice(&inner));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
    return sx_tf_reshape_as(x, slice.out[0].value, rest, &flat, out);
}

/* StridedSliceGrad(shape, begin, end, strides, dy): the places of all elements are sliced in the
 * same way, and dy is added there. */
static sx_status import_strided_slice_grad(sx_tf_op_node *x)
{
    sx_value shape = SX_NO_VALUE, dy = SX_NO_VALUE, places = SX_NO_VALUE, count = SX_NO_VALUE;
    sx_ints known = {.n = -1};
    SX_TRY(sx_tf_operand(x, 0, &shape));
    SX_TRY(sx_tf_operand(x, 4, &dy));
    if (x->tf.head.values[0] != NULL) {
        SX_TRY(sx_tf_operand_ints(x, 0, &known));
    }
    const sx_type of_shape = x->tf.head.types[0];
    const bool ranked = of_shape.rank == 1 && of_shape.dims[0] >= 0;
    if (!ranked || of_shape.dims[0] > SX_MAX_RANK) {
        return sx_tf_unsupported("the rank of the gradient is unknown, or above %d", SX_MAX_RANK);
    }
    sx_type type = {.dtype = SX_I64, .rank = (int)of_shape.dims[0]};
    for (int d = 0; d < type.rank; d++) {
        type.dims[d] = known.n == type.rank ? known.v[d] : SX_UNKNOWN_DIM;
    }
    SX_TF_BUILD(x, &shape, cast, (&(sx_cast_attrs){SX_I64}), shape);
    SX_TRY(cut_places(x, type, shape, &count, &places));

    const sx_gather_grad_attrs along = {.axis = 0};
    const sx_type sums = sx_type_of(x->tf.head.types[4].dtype, SX_UNKNOWN_DIM);
    sx_type out = type;
    out.dtype = sums.dtype;
    sx_value rest = SX_NO_VALUE;
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
    SX_TRY(sx_tf_reshape_as(x, dy, rest, &sums, &dy));
    const sx_attr_operand rows = {sx_tf_attr_row(&sx_op_gather_grad, "rows"), count};
    const sx_value operands[2] = {places, dy};
    sx_value y = sx_tf_build_as(x, &sx_op_gather_grad, &along, operands, 2, &rows, 1, &sums);
    SX_TRY(sx_tf_reshape_as(x, y, shape, &out, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ResourceStridedSliceAssign(variable, begin, end, strides, value), StridedSliceAssign, which gives
 * the variable; TensorStridedSliceUpdate(input, begin, end, strides, value). */
static sx_status import_strided_slice_assign(sx_tf_op_node *x)
{
    const sx_tensor_scatter_attrs update = {.how = SX_SCATTER_UPDATE};
    const bool of_tensor = strcmp(x->n->node->op, "TensorStridedSliceUpdate") == 0;
    const sx_tf_thing *handle = NULL;
    sx_value old = SX_NO_VALUE, value = SX_NO_VALUE, shape = SX_NO_VALUE, places = SX_NO_VALUE,
             count = SX_NO_VALUE, rest = SX_NO_VALUE;
    if (of_tensor) {
        SX_TRY(sx_tf_operand(x, 0, &old));
    } else {
        SX_TRY(sx_tf_require_handle(x, 0, &handle));
        SX_TRY(sx_tf_read_handle(x, handle, &old));
    }
    SX_TRY(sx_tf_operand(x, 4, &value));
    const sx_type type = sx_type_of_value(x->b, old);
    const sx_type flat = sx_type_of(type.dtype, SX_UNKNOWN_DIM);
    if (type.rank == SX_UNKNOWN_RANK) {
        return sx_tf_unsupported("the rank of what it assigns to is unknown");
    }
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), old);
    SX_TRY(cut_places(x, type, shape, &count, &places));
    SX_TRY(sx_tf_expand(x, places, -1, &places));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
    SX_TRY(sx_tf_reshape_as(x, value, rest, &flat, &value));
    SX_TRY(sx_tf_reshape_as(x, old, rest, &flat, &old));
    SX_TF_BUILD(x, &old, tensor_scatter, &update, old, places, value);
    SX_TRY(sx_tf_reshape_as(x, old, shape, &type, &value));
    if (of_tensor) {
        sx_tf_set(x, 0, value);
        return SX_OK;
    }
    return sx_tf_assign(x, handle, value);
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_slice_rows[] = {
    {"StridedSlice", import_strided_slice, NULL},
    {"StridedSliceGrad", import_strided_slice_grad, NULL},
    {"ResourceStridedSliceAssign", import_strided_slice_assign, NULL},
    {"StridedSliceAssign", import_strided_slice_assign, NULL},
    {"TensorStridedSliceUpdate", import_strided_slice_assign, NULL},
    {NULL, NULL, NULL},
};
