/* Imports Einsum: sums of products by labelled axes, as transpositions and one matrix product.
 *
 *   abcd,cde->abe      a [a,b, c·d]   b [c·d, e]            -> [a,b, e]
 *   abcd,aecd->acbe    a [a,c, b,d]   b [a,c, d,e]          -> [a,c, b,e]
 *
 * A label is stacked (in both operands and the result), summed (in both, not in the result), a row
 * (of the first operand) or a column (of the second); one in a single operand and not in the result
 * is summed beforehand. Stacked labels and all rows but the last are the matrices' dimensions in
 * front; summed labels become one axis, as columns do. What an ellipsis stands for in operands of
 * unknown rank is one axis until the result is there. */
#include <string.h>

#include "base/checked.h"
#include "graph/ops/diagonals.h"
#include "savedmodel/import_library_ops.h"

/* Labels are letters; those of an ellipsis are numbered from its end. */
typedef struct labels {
    int n;
    int v[SX_MAX_RANK + 1];
} labels;

static int place_of(const labels *l, int label)
{
    int i = 0;
    while (i < l->n && l->v[i] != label) {
        i++;
    }
    return i < l->n ? i : -1;
}

static bool put(labels *l, int label)
{
    if (l->n == SX_MAX_RANK || place_of(l, label) >= 0) {
        return false;
    }
    l->v[l->n++] = label;
    return true;
}

/* One operand's part of the equation, which ends before `end`; or (rank -1) the result's, whose
 * labels differ. */
static sx_status read_labels(const char *text, const char *end, int rank, int dots, labels *out)
{
    int letters = 0;
    for (const char *c = text; c < end; c++) {
        letters += (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    }
    for (const char *c = text; c < end;) {
        const bool is_dots = end - c >= 3 && strncmp(c, "...", 3) == 0;
        const int count = !is_dots ? 1 : rank >= 0 ? rank - letters : dots;
        const bool known = is_dots || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        for (int i = 0; i < count; i++) {
            const int label = is_dots ? 256 + count - i : *c;
            if (!known || (rank < 0 && place_of(out, label) >= 0)) {
                return sx_tf_unsupported("a label of its result is repeated, or is no letter");
            }
            if (out->n == SX_MAX_RANK) {
                return sx_error(SX_DATA_LOSS, "its equation has more than %d labels", SX_MAX_RANK);
            }
            out->v[out->n++] = label;
        }
        c += is_dots ? 3 : 1;
    }
    return rank < 0 || out->n == rank
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "%d labels for an input of rank %d", out->n, rank);
}

/* v's axes in the order of `order`, whose labels all are of `own`. */
static sx_status arrange(const sx_tf_op_node *x, sx_value v, const labels *own, const labels *order,
                         sx_value *out)
{
    sx_transpose_attrs attrs = {.perm = {.n = order->n}};
    bool moved = false;
    for (int i = 0; i < order->n; i++) {
        attrs.perm.v[i] = place_of(own, order->v[i]);
        moved = moved || attrs.perm.v[i] != i;
    }
    *out = v;
    return moved ? sx_tf_build(x, &sx_op_transpose, &attrs, out, 1, &v) : SX_OK;
}

/* The elements of v that are equal in all axes of a label: its axes become one, the last. */
static sx_status take_diagonals(const sx_tf_op_node *x, sx_value *v, labels *own)
{
    const sx_diagonals_attrs main = {.num_rows = -1, .num_cols = -1};
    for (int i = 0; i < own->n; i++) {
        sx_transpose_attrs attrs = {.perm = {.n = own->n}};
        labels left = {.n = 0};
        sx_value none = SX_NO_VALUE;
        int j = i + 1, label = own->v[i];
        while (j < own->n && own->v[j] != label) {
            j++;
        }
        if (j == own->n) {
            continue;
        }
        for (int k = 0; k < own->n; k++) {
            if (k != i && k != j) {
                attrs.perm.v[left.n] = k;
                left.v[left.n++] = own->v[k];
            }
        }
        attrs.perm.v[left.n] = i;
        attrs.perm.v[left.n + 1] = j;
        left.v[left.n++] = label;
        SX_TF_BUILD(x, v, transpose, &attrs, *v);
        SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, *v).dtype, 0, &none));
        SX_TF_BUILD(x, v, matrix_diag_part, &main, *v, none);
        *own = left;
        i = -1; /* again from the first: a label may be there three times */
    }
    return SX_OK;
}

/* Sums over the labels that neither `other` nor `result` has. */
static sx_status sum_alone(const sx_tf_op_node *x, sx_value *v, labels *own, const labels *other,
                           const labels *result)
{
    sx_reduce_attrs attrs = {.keep_dims = false};
    labels left = {.n = 0};
    for (int i = 0; i < own->n; i++) {
        const bool kept =
            place_of(result, own->v[i]) >= 0 || (other != NULL && place_of(other, own->v[i]) >= 0);
        if (kept) {
            left.v[left.n++] = own->v[i];
        } else {
            attrs.axes.v[attrs.axes.n++] = i;
        }
    }
    *own = left;
    return attrs.axes.n > 0 ? sx_tf_build(x, &sx_op_reduce_sum, &attrs, v, 1, v) : SX_OK;
}

/* The sizes of v's axes [first, first + count) as a vector of int64. */
static sx_status sizes_of(const sx_tf_op_node *x, sx_value v, int first, int count, sx_value *out)
{
    const sx_slice_attrs part = {.begin = {1, {first}}, .size = {1, {count}}};
    SX_TF_BUILD(x, out, shape, (&(sx_cast_attrs){SX_I64}), v);
    return sx_tf_build(x, &sx_op_slice, &part, out, 1, out);
}

/* v with the last `count` axes as one. */
static sx_status join_last(const sx_tf_op_node *x, sx_value v, int count, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    const int first = type.rank - count;
    sx_shape_attrs known = {.shape = sx_ints_of(first, type.dims)};
    const int64_t product = sx_dims_product(&type, first, type.rank);
    bool all = product >= 0;
    int batches = 0;
    for (int d = 0; d < type.rank; d++) {
        all = all && (type.dims[d] >= 0 || sx_dim_is_batch(type.dims[d]));
        batches += d >= first && sx_dim_is_batch(type.dims[d]);
    }
    *out = v;
    if (count == 1) {
        return SX_OK;
    }
    if (all) {
        known.shape.v[known.shape.n++] = batches > 0 ? -product : product;
        return sx_tf_build(x, &sx_op_reshape, &known, out, 1, &v);
    }
    const sx_reduce_attrs over = {.axes = {1, {0}}, .keep_dims = true};
    sx_value head = SX_NO_VALUE, tail = SX_NO_VALUE, shape = SX_NO_VALUE;
    SX_TRY(sizes_of(x, v, first, count, &tail));
    SX_TF_BUILD(x, &tail, reduce_prod, &over, tail);
    shape = tail;
    if (first > 0) {
        SX_TRY(sizes_of(x, v, 0, first, &head));
        SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), head, tail);
    }
    return sx_tf_build_open(x, &sx_op_reshape, NULL, v, "shape", shape, out);
}

/* v's last axis as the last `count` axes of `like`. */
static sx_status split_last(const sx_tf_op_node *x, sx_value v, sx_value like, int count,
                            sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v), from = sx_type_of_value(x->b, like);
    sx_shape_attrs known = {.shape = sx_ints_of(type.rank - 1, type.dims)};
    bool all = true;
    for (int d = from.rank - count; d < from.rank && known.shape.n < SX_MAX_RANK; d++) {
        known.shape.v[known.shape.n++] = from.dims[d];
    }
    for (int d = 0; d < known.shape.n; d++) {
        all = all && (known.shape.v[d] >= 0 || sx_dim_is_batch(known.shape.v[d]));
    }
    *out = v;
    if (count == 1) {
        return SX_OK;
    }
    if (all) {
        return sx_tf_build(x, &sx_op_reshape, &known, out, 1, &v);
    }
    sx_value head = SX_NO_VALUE, shape = SX_NO_VALUE;
    SX_TRY(sizes_of(x, like, from.rank - count, count, &shape));
    if (type.rank > 1) {
        SX_TRY(sizes_of(x, v, 0, type.rank - 1, &head));
        SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), head, shape);
    }
    return sx_tf_build_open(x, &sx_op_reshape, NULL, v, "shape", shape, out);
}

static void append(labels *to, const labels *from)
{
    for (int i = 0; i < from->n; i++) {
        (void)put(to, from->v[i]);
    }
}

/* Two operands, whose labels are all of the other or of the result. */
static sx_status multiply(const sx_tf_op_node *x, const sx_value in[2], const labels own[2],
                          const labels *result, sx_value *out)
{
    labels stacked = {0}, summed = {0}, rows = {0}, columns = {0};
    for (int i = 0; i < own[0].n; i++) {
        const int label = own[0].v[i];
        const bool both = place_of(&own[1], label) >= 0, kept = place_of(result, label) >= 0;
        put(both && kept ? &stacked : both ? &summed : &rows, label);
    }
    for (int i = 0; i < own[1].n; i++) {
        if (place_of(&own[0], own[1].v[i]) < 0) {
            put(&columns, own[1].v[i]);
        }
    }
    const bool filled = stacked.n > 0 && rows.n > 1; /* b has no rows: ones in front of it */
    const int front = stacked.n + SX_MAX(rows.n - 1, 0);
    if (front + 2 > SX_MAX_RANK ||
        stacked.n + SX_MAX(summed.n, 1) + SX_MAX(columns.n, 1) + (filled ? rows.n - 1 : 0) >
            SX_MAX_RANK) {
        return sx_tf_unsupported("its product has more than %d dimensions", SX_MAX_RANK);
    }
    labels order_a = stacked, order_b = stacked, order_y = stacked;
    append(&order_a, &rows);
    append(&order_a, &summed);
    append(&order_b, &summed);
    append(&order_b, &columns);
    sx_value a = SX_NO_VALUE, b = SX_NO_VALUE, b_columns = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(arrange(x, in[0], &own[0], &order_a, &a));
    SX_TRY(arrange(x, in[1], &own[1], &order_b, &b));
    b_columns = b;
    if (summed.n == 0) { /* an axis of size 1 */
        SX_TRY(sx_tf_expand(x, a, -1, &a));
        SX_TRY(sx_tf_expand(x, b, stacked.n, &b));
    } else {
        SX_TRY(join_last(x, a, summed.n, &a));
    }
    if (rows.n == 0) {
        SX_TRY(sx_tf_expand(x, a, stacked.n, &a));
    }
    if (columns.n == 0) {
        SX_TRY(join_last(x, b, SX_MAX(summed.n, 1), &b));
        SX_TRY(sx_tf_expand(x, b, -1, &b));
    } else {
        SX_TRY(join_last(x, b, columns.n, &b));
        if (summed.n > 1) { /* [..., c, d, e] as [..., e, c·d] and back */
            const int rank = sx_type_of_value(x->b, b).rank;
            sx_transpose_attrs last = {.perm = {.n = rank}};
            for (int i = 0; i < rank; i++) {
                last.perm.v[i] = i < stacked.n ? i : i == stacked.n ? rank - 1 : i - 1;
            }
            SX_TF_BUILD(x, &b, transpose, &last, b);
            SX_TRY(join_last(x, b, summed.n, &b));
        }
    }
    for (int i = 1; filled && i < rows.n; i++) {
        SX_TRY(sx_tf_expand(x, b, stacked.n, &b));
    }
    const sx_matmul_attrs turned = {.transpose_b = columns.n > 0 && summed.n > 1};
    SX_TF_BUILD(x, &y, matmul, &turned, a, b);
    append(&order_y, &rows);
    append(&order_y, &columns);
    if (columns.n == 0 || rows.n == 0) { /* drop the axes of size 1 */
        const int rank = sx_type_of_value(x->b, y).rank;
        sx_ints kept = {0};
        for (int d = 0; d < rank; d++) {
            if (!(columns.n == 0 && d == rank - 1) && !(rows.n == 0 && d == rank - 2)) {
                kept.v[kept.n++] = d;
            }
        }
        SX_TRY(sx_tf_reshape_dims(x, y, &kept, &y));
    }
    if (columns.n > 1) {
        SX_TRY(split_last(x, y, b_columns, columns.n, &y));
    }
    return arrange(x, y, &order_y, result, out);
}

/* ---- An ellipsis of unknown length ---- */

/* A part of the equation that has an ellipsis, and the shape of its operand in three. */
typedef struct dotted {
    int before, behind; /* labels */
    sx_value shape[3];  /* of those before, of the ellipsis, of those behind */
} dotted;

/* false: it has none. */
static bool find_dots(const char *text, const char *end, dotted *out)
{
    const char *dots = memchr(text, '.', (size_t)(end - text));
    if (dots == NULL || end - dots < 3) {
        return false;
    }
    out->before = (int)(dots - text);
    out->behind = (int)(end - dots) - 3;
    return true;
}

static sx_status shape_in_three(const sx_tf_op_node *x, sx_value v, dotted *d)
{
    sx_value shape = SX_NO_VALUE, begin = SX_NO_VALUE, size = SX_NO_VALUE, less = SX_NO_VALUE;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_rank_of(x, v, &size));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {d->before + d->behind}}, &less));
    SX_TF_BUILD(x, &size, sub, NULL, size, less);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {d->before}}, &begin));
    SX_TRY(sx_tf_vector_part(x, shape, begin, size, &d->shape[1]));
    SX_TF_BUILD(x, &size, add, NULL, begin, size);
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &less));
    SX_TRY(sx_tf_vector_part(x, shape, size, less, &d->shape[2]));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &less));
    return sx_tf_vector_part(x, shape, less, begin, &d->shape[0]);
}

/* The shape that both broadcast to. */
static sx_status common_shape(const sx_tf_op_node *x, sx_value a, sx_value b, sx_value *out)
{
    sx_value no = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, SX_BOOL, 0, &no));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, no, "shape", a, &a));
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, no, "shape", b, &b));
    SX_TF_BUILD(x, &a, logical_or, NULL, a, b);
    return sx_tf_build(x, &sx_op_shape, &(sx_cast_attrs){SX_I64}, out, 1, &a);
}

/* v with its ellipsis broadcast to `whole` and then as one axis. */
static sx_status join_dots(const sx_tf_op_node *x, sx_value v, const dotted *d, sx_value whole,
                           sx_value *out)
{
    static const sx_reduce_attrs over = {.axes = {1, {0}}, .keep_dims = true};
    const sx_type unknown = sx_tf_unknown_shape(sx_type_of_value(x->b, v).dtype);
    sx_type type = unknown;
    sx_value one = SX_NO_VALUE, missing = SX_NO_VALUE, length = SX_NO_VALUE, parts[4];
    type.rank = d->before + 1 + d->behind;
    for (int i = 0; i < type.rank; i++) {
        type.dims[i] = SX_UNKNOWN_DIM;
    }
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &missing, shape, (&(sx_cast_attrs){SX_I64}), whole);
    SX_TF_BUILD(x, &length, shape, (&(sx_cast_attrs){SX_I64}), d->shape[1]);
    SX_TF_BUILD(x, &missing, sub, NULL, missing, length);
    parts[0] = d->shape[0];
    parts[2] = d->shape[1];
    parts[3] = d->shape[2];
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, one, "shape", missing, &parts[1]));
    SX_TRY(sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){0}, &length, 4, parts));
    SX_TRY(sx_tf_reshape_as(x, v, length, &unknown, &v));
    SX_TF_BUILD(x, &length, concat, (&(sx_axis_attrs){0}), d->shape[0], whole, d->shape[2]);
    SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, v, "shape", length, &v));
    SX_TF_BUILD(x, &whole, reduce_prod, &over, whole);
    SX_TF_BUILD(x, &length, concat, (&(sx_axis_attrs){0}), d->shape[0], whole, d->shape[2]);
    return sx_tf_reshape_as(x, v, length, &type, out);
}

/* Makes the ellipses of the operands one axis each, if the rank of one is unknown; *whole is what
 * they stand for, else no value. */
static sx_status join_unknown_dots(const sx_tf_op_node *x, const char *const part[2][2],
                                   sx_value in[2], sx_value *whole)
{
    dotted d[2] = {{0}};
    bool has[2] = {false, false}, unknown = false;
    for (int i = 0; i < x->n->n_in; i++) {
        has[i] = find_dots(part[i][0], part[i][1], &d[i]);
        unknown = unknown || (has[i] && sx_type_of_value(x->b, in[i]).rank == SX_UNKNOWN_RANK);
    }
    for (int i = 0; i < 2 && unknown; i++) {
        if (has[i]) {
            SX_TRY(shape_in_three(x, in[i], &d[i]));
        }
    }
    if (!unknown) {
        return SX_OK;
    }
    *whole = d[has[0] ? 0 : 1].shape[1];
    if (has[0] && has[1]) {
        SX_TRY(common_shape(x, d[0].shape[1], d[1].shape[1], whole));
    }
    for (int i = 0; i < 2; i++) {
        if (has[i]) {
            SX_TRY(join_dots(x, in[i], &d[i], *whole, &in[i]));
        }
    }
    return SX_OK;
}

/* y, of which one axis stands for the ellipsis of the result, in its shape. */
static sx_status divide_dots(const sx_tf_op_node *x, sx_value y, const char *result, sx_value whole,
                             sx_value *out)
{
    const sx_type unknown = sx_tf_unknown_shape(sx_type_of_value(x->b, y).dtype);
    dotted d;
    sx_value axis = SX_NO_VALUE, shape = SX_NO_VALUE;
    *out = y;
    if (!find_dots(result, result + strlen(result), &d)) {
        return SX_OK;
    }
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {d.before}}, &axis));
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), y);
    SX_TRY(sx_tf_replace_dims(x, shape, axis, 1, whole, &shape));
    return sx_tf_reshape_as(x, y, shape, &unknown, out);
}

/* ---- The node ---- */

static sx_status import_einsum(sx_tf_op_node *x)
{
    sx_tf_attr equation;
    if (!x->tf.head.attr(&x->tf.head, "equation", &equation) ||
        equation.kind != SX_TF_ATTR_STRING) {
        return sx_error(SX_DATA_LOSS, "it has no equation");
    }
    const char *arrow = strstr(equation.s, "->"), *comma = strchr(equation.s, ',');
    const int n = x->n->n_in;
    labels own[2] = {{0}}, result = {0};
    sx_value in[2] = {SX_NO_VALUE, SX_NO_VALUE}, y = SX_NO_VALUE;
    if (arrow == NULL || n < 1 || n > 2 || (n == 2) != (comma != NULL && comma < arrow)) {
        return sx_tf_unsupported(
            "equation \"%s\" for %d inputs; one or two inputs, and \"->\" with "
            "the result, are supported",
            equation.s, n);
    }
    const char *const part[2][2] = {{equation.s, n == 2 ? comma : arrow},
                                    {n == 2 ? comma + 1 : arrow, arrow}};
    sx_value whole = SX_NO_VALUE;
    int dots = 0;
    for (int i = 0; i < n; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    SX_TRY(join_unknown_dots(x, part, in, &whole));
    for (int i = 0; i < n; i++) {
        const char *begin = part[i][0], *end = part[i][1];
        if (memchr(begin, '.', (size_t)(end - begin)) == NULL && end - begin <= SX_MAX_RANK) {
            SX_TRY(sx_tf_know_rank(x, (int)(end - begin), &in[i])); /* a label for each axis */
        }
        const int rank = sx_type_of_value(x->b, in[i]).rank;
        if (rank == SX_UNKNOWN_RANK) {
            return sx_tf_unsupported("the rank of input %d is unknown", i);
        }
        SX_TRY(read_labels(begin, end, rank, 0, &own[i]));
        SX_TRY(take_diagonals(x, &in[i], &own[i]));
        int in_dots = 0;
        for (int k = 0; k < own[i].n; k++) {
            in_dots += own[i].v[k] >= 256;
        }
        dots = SX_MAX(dots, in_dots);
    }
    SX_TRY(read_labels(arrow + 2, arrow + strlen(arrow), -1, dots, &result));
    for (int i = 0; i < result.n; i++) {
        if (place_of(&own[0], result.v[i]) < 0 && (n == 1 || place_of(&own[1], result.v[i]) < 0)) {
            return sx_error(SX_DATA_LOSS,
                            "equation \"%s\": a label of the result is not an input's", equation.s);
        }
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(sum_alone(x, &in[i], &own[i], n == 2 ? &own[1 - i] : NULL, &result));
    }
    if (n == 1) {
        SX_TRY(arrange(x, in[0], &own[0], &result, &y));
    } else {
        SX_TRY(multiply(x, in, own, &result, &y));
    }
    if (sx_value_is(whole)) {
        SX_TRY(divide_dots(x, y, arrow + 2, whole, &y));
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_einsum_rows[] = {
    {"Einsum", import_einsum, NULL},
    {NULL, NULL, NULL},
};
