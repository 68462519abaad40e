/* Imports bands and diagonals of matrices, rolls and mirrors, from operators on indices and
 * numbers. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include "graph/ops/diagonals.h"

/* ---- Matrices, rolls ---- */

/* 0, 1, ... along axis `axis` of v, as int64 [n]; *size: n, int64 [1]. */
static sx_status places_along(const sx_tf_op_node *x, sx_value v, int axis, sx_value *size,
                              sx_value *out)
{
    const sx_slice_attrs at = {.begin = {1, {axis}}, .size = {1, {1}}};
    SX_TF_BUILD(x, size, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TF_BUILD(x, size, slice, &at, *size);
    return sx_tf_count_to(x, *size, SX_I64, out);
}

/* MatrixBandPart(x, lower, upper): row - column <= lower and column - row <= upper; a negative one
 * takes the whole triangle. */
static sx_status import_band(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, sizes[2], rows = SX_NO_VALUE, columns = SX_NO_VALUE,
             below = SX_NO_VALUE, zero = SX_NO_VALUE, inside = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    const int rank = x->tf.head.types[0].rank;
    if (rank < 2) {
        return sx_error(SX_DATA_LOSS, "its input has rank %d, expected 2 or more", rank);
    }
    SX_TRY(places_along(x, v, rank - 2, &sizes[0], &rows));
    SX_TRY(places_along(x, v, rank - 1, &sizes[1], &columns));
    SX_TRY(sx_tf_expand(x, rows, -1, &rows));
    SX_TF_BUILD(x, &below, sub, NULL, rows, columns);
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    for (int side = 0; side < 2; side++) {
        sx_value most = SX_NO_VALUE, all = SX_NO_VALUE, here = SX_NO_VALUE;
        SX_TRY(sx_tf_operand(x, 1 + side, &most));
        SX_TF_BUILD(x, &most, cast, (&(sx_cast_attrs){SX_I64}), most);
        if (x->tf.head.values[1 + side] == NULL) {
            SX_TF_BUILD(x, &here, less_equal, NULL, most, sizes[side]);
            SX_TRY(
                sx_tf_require(x, here, "MatrixBandPart: more diagonals than the matrix has", most));
        }
        SX_TF_BUILD(x, &all, less, NULL, most, zero);
        SX_TF_BUILD(x, &here, less_equal, NULL, below, most);
        SX_TF_BUILD(x, &here, logical_or, NULL, here, all);
        if (side == 0) {
            inside = here;
            SX_TF_BUILD(x, &below, neg, NULL, below);
        } else {
            SX_TF_BUILD(x, &inside, logical_and, NULL, inside, here);
        }
    }
    SX_TRY(sx_tf_number(x, x->tf.head.types[0].dtype, 0, &zero));
    SX_TF_BUILD(x, &y, select, NULL, inside, v, zero);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Whether the dimensions of input 0 are known, the batch among them, and input 1 is. */
static bool roll_is_known(const sx_tf_op_node *x)
{
    const sx_type *type = &x->tf.head.types[0];
    bool known = x->tf.head.values[1] != NULL;
    for (int d = 0; d < type->rank; d++) {
        known = known && (type->dims[d] >= 0 || sx_dim_is_batch(type->dims[d]));
    }
    return known;
}

/* v of input 0's shape rolled by a known shift: what goes beyond the end comes first. */
static sx_status roll_parts(const sx_tf_op_node *x, int axis, int64_t shift, sx_value *v)
{
    const sx_type *type = &x->tf.head.types[0];
    const int64_t n = type->dims[axis], beyond = n > 0 ? (shift % n + n) % n : 0;
    sx_slice_attrs last = {.begin = {.n = type->rank}, .size = sx_ints_of(type->rank, type->dims)};
    sx_slice_attrs first = last;
    sx_value parts[2];
    if (beyond == 0) {
        return SX_OK;
    }
    last.begin.v[axis] = n - beyond;
    last.size.v[axis] = beyond;
    first.size.v[axis] = n - beyond;
    SX_TF_BUILD(x, &parts[0], slice, &last, *v);
    SX_TF_BUILD(x, &parts[1], slice, &first, *v);
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){.axis = axis}, v, 2, parts);
}

/* `at`, which is 0 .. n - 1, less a shift modulo n: a quotient for each place would take longer
 * than the roll. */
static sx_status roll_places(const sx_tf_op_node *x, sx_value shift, sx_value n, sx_value *at)
{
    sx_value zero = SX_NO_VALUE, one = zero, before = zero, again = zero;
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &n, maximum, NULL, n, one);
    SX_TF_BUILD(x, &shift, floor_mod, NULL, shift, n);
    SX_TF_BUILD(x, at, sub, NULL, *at, shift);
    SX_TF_BUILD(x, &before, less, NULL, *at, zero);
    SX_TF_BUILD(x, &again, add, NULL, *at, n);
    SX_TF_BUILD(x, at, select, NULL, before, again, *at);
    return SX_OK;
}

/* v rolled by shifts[i] along axis axes[i], which is computed. */
static sx_status roll_along(const sx_tf_op_node *x, sx_value shifts, sx_value axes, int i,
                            sx_value *v)
{
    const sx_slice_attrs own = {.begin = {1, {i}}, .size = {1, {1}}};
    const sx_shape_attrs scalar = {.shape = {.n = 0}};
    sx_value axis, shift, shape, rank, n, at;
    sx_type type = sx_type_of_value(x->b, *v);
    SX_TF_BUILD(x, &axis, slice, &own, axes);
    SX_TF_BUILD(x, &shift, slice, &own, shifts);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), *v);
    SX_TRY(sx_tf_number(x, SX_I64, type.rank, &rank));
    SX_TRY(sx_tf_axis_from_0(x, axis, rank, "Roll: an axis is out of range", &axis));
    SX_TF_BUILD(x, &n, gather, NULL, shape, axis);
    SX_TRY(sx_tf_count_to(x, n, SX_I64, &at));
    SX_TRY(roll_places(x, shift, n, &at));
    SX_TF_BUILD(x, &axis, reshape, &scalar, axis);
    const sx_attr_operand along = {sx_tf_attr_row(&sx_op_gather, "axis"), axis};
    for (int d = 0; d < type.rank; d++) {
        type.dims[d] = SX_UNKNOWN_DIM;
    }
    *v = sx_tf_build_as(x, &sx_op_gather, NULL, (const sx_value[]){*v, at}, 2, &along, 1, &type);
    return SX_OK;
}

/* Roll(x, shift, axis): y[i] = x[i - shift modulo n] along each axis. */
static sx_status import_roll(sx_tf_op_node *x)
{
    sx_value v = SX_NO_VALUE, shifts = SX_NO_VALUE;
    sx_ints axes = {0}, known = {0};
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &shifts));
    SX_TRY(sx_tf_require_rank(x, 0));
    const sx_type *given = x->n->n_in > 2 ? &x->tf.head.types[2] : NULL;
    if (given != NULL && x->tf.head.values[2] == NULL &&
        (given->rank == 0 ||
         (given->rank == 1 && given->dims[0] >= 0 && given->dims[0] <= SX_MAX_RANK))) {
        const int64_t count = given->rank == 0 ? 1 : given->dims[0];
        const sx_shape_attrs line = {.shape = {1, {count}}};
        sx_value which = SX_NO_VALUE;
        SX_TRY(sx_tf_operand(x, 2, &which));
        SX_TF_BUILD(x, &which, cast, (&(sx_cast_attrs){SX_I64}), which);
        SX_TF_BUILD(x, &which, reshape, &line, which);
        SX_TF_BUILD(x, &shifts, cast, (&(sx_cast_attrs){SX_I64}), shifts);
        SX_TF_BUILD(x, &shifts, reshape, &line, shifts);
        for (int i = 0; i < count; i++) {
            SX_TRY(roll_along(x, shifts, which, i, &v));
        }
        sx_tf_set(x, 0, v);
        return SX_OK;
    }
    SX_TRY(sx_tf_operand_ints(x, 2, &axes));
    if (roll_is_known(x)) {
        SX_TRY(sx_tf_operand_ints(x, 1, &known));
    }
    SX_TF_BUILD(x, &shifts, cast, (&(sx_cast_attrs){SX_I64}), shifts);
    SX_TF_BUILD(x, &shifts, reshape, (&(sx_shape_attrs){{1, {axes.n}}}), shifts);
    for (int i = 0; i < axes.n; i++) {
        const int rank = x->tf.head.types[0].rank;
        const int64_t axis = axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i];
        const sx_gather_attrs along = {.axis = axis};
        const sx_slice_attrs own = {.begin = {1, {i}}, .size = {1, {1}}};
        sx_value n = SX_NO_VALUE, at = SX_NO_VALUE, shift = SX_NO_VALUE;
        if (axis < 0 || axis >= rank) {
            return sx_error(SX_DATA_LOSS, "axis %lld is out of range for rank %d",
                            (long long)axes.v[i], rank);
        }
        if (known.n == axes.n && x->tf.head.types[0].dims[axis] >= 0) {
            SX_TRY(roll_parts(x, (int)axis, known.v[i], &v));
            continue;
        }
        SX_TRY(places_along(x, v, (int)axis, &n, &at));
        SX_TF_BUILD(x, &shift, slice, &own, shifts);
        SX_TRY(roll_places(x, shift, n, &at));
        SX_TF_BUILD(x, &v, gather, &along, v, at);
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ReverseSequence(x, lengths) {seq_dim, batch_dim}: no length is longer than the sequence, but in
 * what was exported. */
static sx_status import_reverse_sequence(sx_tf_op_node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "seq_dim", 0);
    const sx_type *type = &x->tf.head.types[0];
    sx_value v, lengths, shape, most, zero, fits, more;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &lengths));
    if (!sx_tf_read_bool(&x->tf.head, "_sextant_clamps", false) && x->tf.head.values[1] == NULL &&
        axis >= 0 && axis < SX_MAX_RANK && (type->rank == SX_UNKNOWN_RANK || axis < type->rank)) {
        const sx_slice_attrs at = {.begin = {1, {axis}}, .size = {1, {1}}};
        const sx_dtype dtype = x->tf.head.types[1].dtype;
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){dtype}), v);
        SX_TF_BUILD(x, &most, slice, &at, shape);
        SX_TRY(sx_tf_number(x, dtype, 0, &zero));
        SX_TF_BUILD(x, &fits, less_equal, NULL, lengths, most);
        SX_TF_BUILD(x, &more, greater_equal, NULL, lengths, zero);
        SX_TF_BUILD(x, &fits, logical_and, NULL, fits, more);
        SX_TRY(sx_tf_require(
            x, fits, "ReverseSequence: a length is negative, or longer than the sequence of",
            most));
    }
    return sx_tf_import_one(x);
}

/* ---- Diagonals ---- */

/* Diag [D...] -> [D..., D...], and DiagPart, which is the way back: of the tensor as a vector, and
 * as a matrix. */
static sx_status import_diag(sx_tf_op_node *x)
{
    const bool part = strcmp(x->n->node->op, "DiagPart") == 0;
    const sx_diagonals_attrs attrs = {.num_rows = -1, .num_cols = -1};
    sx_type type = x->tf.head.types[0];
    sx_value v, shape, rest, zero;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_require_rank(x, 0));
    const int half = part ? type.rank / 2 : type.rank;
    if (half < 1 || 2 * half > SX_MAX_RANK || (part && type.rank % 2 != 0)) {
        return sx_tf_unsupported("an input of rank %d", type.rank);
    }
    const sx_slice_attrs front = {.begin = {1, {0}}, .size = {1, {half}}};
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_number(x, type.dtype, 0, &zero));
    if (part) {
        SX_TF_BUILD(x, &shape, slice, &front, shape);
        if (half > 1) { /* [D..., D...] as a matrix */
            SX_TF_BUILD(x, &rest, reduce_prod,
                        (&(sx_reduce_attrs){.axes = {1, {0}}, .keep_dims = true}), shape);
            SX_TF_BUILD(x, &rest, concat, (&(sx_axis_attrs){0}), rest, rest);
            SX_TRY(sx_tf_build_open(x, &sx_op_reshape, NULL, v, "shape", rest, &v));
        }
        SX_TF_BUILD(x, &v, matrix_diag_part, &attrs, v, zero);
    } else {
        if (half > 1) {
            SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
            SX_TRY(sx_tf_build_open(x, &sx_op_reshape, NULL, v, "shape", rest, &v));
        }
        SX_TF_BUILD(x, &v, matrix_diag, &attrs, v, zero);
        SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), shape, shape);
    }
    if (half > 1) {
        SX_TRY(sx_tf_build_open(x, &sx_op_reshape, NULL, v, "shape", shape, &v));
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* ---- Mirrors ---- */

/* That paddings are not negative, and no longer than what is mirrored. */
static sx_status require_paddings(const sx_tf_op_node *x, sx_value paddings, sx_value shape,
                                  int64_t edge)
{
    sx_value zero, most, fits, more;
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    SX_TRY(sx_tf_number(x, SX_I64, (double)edge, &most));
    SX_TF_BUILD(x, &most, sub, NULL, shape, most);
    SX_TRY(sx_tf_expand(x, most, -1, &most));
    SX_TF_BUILD(x, &fits, less_equal, NULL, paddings, most);
    SX_TF_BUILD(x, &more, greater_equal, NULL, paddings, zero);
    SX_TF_BUILD(x, &fits, logical_and, NULL, fits, more);
    return sx_tf_require(x, fits, "MirrorPad: a padding is negative, or longer than the axis",
                         paddings);
}

/* MirrorPad by paddings that are computed: along each axis element k of the result is the one that
 * k - before meets after it was mirrored at an end. */
static sx_status import_mirror_pad(sx_tf_op_node *x)
{
    const int64_t edge = sx_tf_read_is(&x->tf.head, "mode", "SYMMETRIC", false) ? 0 : 1;
    sx_value v, paddings, shape, zero, shift, turn;
    if (x->n->n_in < 2 || x->tf.head.values[1] != NULL) {
        return sx_tf_import_one(x);
    }
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &paddings));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TF_BUILD(x, &paddings, cast, (&(sx_cast_attrs){SX_I64}), paddings);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_number(x, SX_I64, 0, &zero));
    SX_TRY(sx_tf_number(x, SX_I64, edge - 1, &shift));
    SX_TRY(sx_tf_number(x, SX_I64, 1 + edge, &turn));
    SX_TRY(require_paddings(x, paddings, shape, edge));
    for (int d = 0; d < x->tf.head.types[0].rank; d++) {
        const sx_slice_attrs of_axis = {.begin = {1, {d}}, .size = {1, {1}}};
        const sx_shape_attrs line = {.shape = {1, {1}}};
        const sx_gather_attrs along = {.axis = d};
        sx_value n, before, after, total, k, other, outside;
        SX_TF_BUILD(x, &n, slice, &of_axis, shape);
        SX_TF_BUILD(x, &before, slice, (&(sx_slice_attrs){{2, {d, 0}}, {2, {1, 1}}}), paddings);
        SX_TF_BUILD(x, &after, slice, (&(sx_slice_attrs){{2, {d, 1}}, {2, {1, 1}}}), paddings);
        SX_TF_BUILD(x, &before, reshape, &line, before);
        SX_TF_BUILD(x, &after, reshape, &line, after);
        SX_TF_BUILD(x, &total, add, NULL, n, before);
        SX_TF_BUILD(x, &total, add, NULL, total, after);
        SX_TRY(sx_tf_count_to(x, total, SX_I64, &k));
        SX_TF_BUILD(x, &k, sub, NULL, k, before);
        SX_TF_BUILD(x, &other, sub, NULL, shift, k); /* before the first: edge - 1 - k */
        SX_TF_BUILD(x, &outside, less, NULL, k, zero);
        SX_TF_BUILD(x, &k, select, NULL, outside, other, k);
        SX_TF_BUILD(x, &other, add, NULL, n, n); /* behind the last: 2 n - 1 - edge - k */
        SX_TF_BUILD(x, &other, sub, NULL, other, turn);
        SX_TF_BUILD(x, &other, sub, NULL, other, k);
        SX_TF_BUILD(x, &outside, less, NULL, k, n);
        SX_TF_BUILD(x, &k, select, NULL, outside, k, other);
        SX_TF_BUILD(x, &v, gather, &along, v, k);
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* v with axis d as its elements [from, from + count), both int64 [1], in reverse, added to element
 * `to` and on of an axis of n. */
static sx_status fold_axis(const sx_tf_op_node *x, sx_value v, int d, sx_value from, sx_value count,
                           sx_value to, sx_value n, sx_value *out)
{
    static const sx_shape_attrs scalar = {.shape = {.n = 0}};
    const sx_axes_attrs along = {.axes = {1, {d}}};
    const sx_gather_grad_attrs rows_of = {.axis = d};
    sx_type type = sx_type_of_value(x->b, v);
    sx_value at = SX_NO_VALUE, rows = SX_NO_VALUE;
    SX_TRY(sx_tf_cut_axis_open(x, v, d, from, count, -1, &v));
    SX_TF_BUILD(x, &v, reverse, &along, v);
    SX_TRY(sx_tf_count_to(x, count, SX_I64, &at));
    SX_TF_BUILD(x, &at, add, NULL, at, to);
    SX_TF_BUILD(x, &rows, reshape, &scalar, n);
    const sx_attr_operand open = {sx_tf_attr_row(&sx_op_gather_grad, "rows"), rows};
    type.dims[d] = SX_UNKNOWN_DIM;
    v = sx_tf_build_as(x, &sx_op_gather_grad, &rows_of, (const sx_value[]){at, v}, 2, &open, 1,
                       &type);
    SX_TF_BUILD(x, out, add, NULL, *out, v);
    return SX_OK;
}

/* MirrorPadGrad(dy, paddings): along each axis what is in the padding is folded back. */
static sx_status import_mirror_pad_grad(sx_tf_op_node *x)
{
    const int64_t edge = sx_tf_read_is(&x->tf.head, "mode", "SYMMETRIC", false) ? 0 : 1;
    sx_value v, paddings;
    SX_TRY(sx_tf_operand(x, 0, &v));
    SX_TRY(sx_tf_operand(x, 1, &paddings));
    SX_TRY(sx_tf_require_rank(x, 0));
    SX_TF_BUILD(x, &paddings, cast, (&(sx_cast_attrs){SX_I64}), paddings);
    for (int d = 0; d < x->tf.head.types[0].rank; d++) {
        const sx_shape_attrs line = {.shape = {1, {1}}};
        sx_value before, after, total, n, to, behind, inside;
        SX_TF_BUILD(x, &before, slice, (&(sx_slice_attrs){{2, {d, 0}}, {2, {1, 1}}}), paddings);
        SX_TF_BUILD(x, &after, slice, (&(sx_slice_attrs){{2, {d, 1}}, {2, {1, 1}}}), paddings);
        SX_TF_BUILD(x, &before, reshape, &line, before);
        SX_TF_BUILD(x, &after, reshape, &line, after);
        SX_TRY(sx_tf_sizes_of(x, v, d, 1, &total));
        SX_TF_BUILD(x, &n, sub, NULL, total, before);
        SX_TF_BUILD(x, &n, sub, NULL, n, after);
        SX_TRY(sx_tf_cut_axis_open(x, v, d, before, n, -1, &inside));
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {0}}, &behind));
        SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {edge}}, &to));
        SX_TRY(fold_axis(x, v, d, behind, before, to, n, &inside));
        SX_TF_BUILD(x, &behind, add, NULL, before, n);
        SX_TF_BUILD(x, &to, sub, NULL, n, to); /* n - edge - after */
        SX_TF_BUILD(x, &to, sub, NULL, to, after);
        SX_TRY(fold_axis(x, v, d, behind, after, to, n, &inside));
        v = inside;
    }
    sx_tf_set(x, 0, v);
    return SX_OK;
}

/* TridiagonalMatMul(above [..., 1, m], diagonal, below, rhs [..., m, n]): row i is diagonal[i]
 * rhs[i] + above[i] rhs[i + 1] + below[i] rhs[i - 1]. */
static sx_status import_tridiagonal_matmul(sx_tf_op_node *x)
{
    const int rank = x->tf.head.types[3].rank;
    sx_value rhs = SX_NO_VALUE, rows = SX_NO_VALUE, sum = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 3, &rhs));
    if (rank < 2) {
        return sx_tf_unsupported("the rank of its right-hand side is unknown, or below 2");
    }
    SX_TRY(sx_tf_sizes_of(x, rhs, rank - 2, 1, &rows));
    const int64_t known = x->tf.head.types[3].dims[rank - 2];
    for (int i = 0; i < 3; i++) {
        sx_value diagonal = SX_NO_VALUE, near = rhs, from = SX_NO_VALUE;
        sx_transpose_attrs turn = {.perm = {.n = rank}};
        for (int d = 0; d < rank; d++) {
            turn.perm.v[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
        }
        SX_TRY(sx_tf_operand(x, i, &diagonal));
        if (x->tf.head.types[i].rank != rank) {
            return sx_tf_unsupported("its diagonals are not of the rank of the right-hand side");
        }
        SX_TF_BUILD(x, &diagonal, transpose, &turn, diagonal);
        if (i != 1) { /* the row after, or before; zeros beyond */
            sx_pad_attrs around = {.before = {.n = rank}, .after = {.n = rank}};
            *(i == 0 ? &around.after.v[rank - 2] : &around.before.v[rank - 2]) = 1;
            SX_TF_BUILD(x, &near, pad, &around, rhs);
            SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {i == 0}}, &from));
            SX_TRY(
                sx_tf_cut_axis_open(x, near, rank - 2, from, rows, known >= 0 ? known : -1, &near));
        }
        SX_TF_BUILD(x, &near, mul, NULL, diagonal, near);
        if (i == 0) {
            sum = near;
        } else {
            SX_TF_BUILD(x, &sum, add, NULL, sum, near);
        }
    }
    sx_tf_set(x, 0, sum);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_index_rows[] = {
    {"MatrixBandPart", import_band, NULL},
    {"TridiagonalMatMul", import_tridiagonal_matmul, NULL},
    {"Roll", import_roll, NULL},
    {"ReverseSequence", import_reverse_sequence, NULL},
    {"Diag", import_diag, NULL},
    {"DiagPart", import_diag, NULL},
    {"MirrorPad", import_mirror_pad, NULL},
    {"MirrorPadGrad", import_mirror_pad_grad, NULL},
    {NULL, NULL, NULL},
};
