/* Imports linear algebra of complex numbers: as that of real matrices in which each number is
 * [re -im; im re], or by operators of both parts. */
#include <math.h>
#include <string.h>

#include "savedmodel/import_library_complex.h"

/* v [..., 2 n, c] as [..., n, c], the first or the second half of its rows. */
static sx_status half_of_rows(const sx_tf_op_node *x, sx_value v, int half, sx_value *out)
{
    const int rank = sx_type_of_value(x->b, v).rank;
    sx_ints kept = {0};
    SX_TRY(sx_tf_divide_axis(x, v, rank - 2, 2, -1, &v));
    SX_TRY(sx_tf_cut_axis(x, v, rank - 2, half, 1, &v));
    for (int d = 0; d <= rank; d++) {
        if (d != rank - 2) {
            kept.v[kept.n++] = d;
        }
    }
    return sx_tf_reshape_dims(x, v, &kept, out);
}

/* v with zeros in the other triangle. */
static sx_status keep_triangle(const sx_tf_op_node *x, bool lower, sx_value *v)
{
    sx_value in[3] = {*v, SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(sx_tf_number(x, SX_I64, lower ? -1 : 0, &in[1]));
    SX_TRY(sx_tf_number(x, SX_I64, lower ? 0 : -1, &in[2]));
    return sx_tf_import_outputs_as(x, "MatrixBandPart", in, 3, v, 1);
}

/* [re -im; im re] of matrices, which multiply as complex matrices do. */
static sx_status as_real(const sx_tf_op_node *x, sx_tf_parts a, int *out_rank, sx_value *out)
{
    sx_value minus, rows[2];
    const int rank = sx_type_of_value(x->b, a.re).rank;
    *out_rank = rank;
    if (rank < 2 || rank >= SX_MAX_RANK) {
        return sx_tf_unsupported("complex matrices of unknown rank, or of rank %d", rank);
    }
    const sx_axis_attrs beside = {rank - 1}, below = {rank - 2};
    SX_TF_BUILD(x, &minus, neg, NULL, a.im);
    SX_TF_BUILD(x, &rows[0], concat, &beside, a.re, minus);
    SX_TF_BUILD(x, &rows[1], concat, &beside, a.im, a.re);
    return sx_tf_build(x, &sx_op_concat, &below, out, 2, rows);
}

/* MatrixInverse(a), MatrixSquareRoot(a), MatrixLogarithm(a), MatrixSolve(a, b), MatrixSolveLs(a, b,
 * penalty): of [re -im; im re] and [re; im]; of a result like a the columns to the left are
 * [re; im]. MatrixTriangularSolve(a, b): the same, of zeros in the other triangle. */
static sx_status import_inverse(const sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const bool solves = x->n->n_in >= 2, triangular = strcmp(op, "MatrixTriangularSolve") == 0;
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, b = a, y = a;
    sx_value in[2], all;
    int rank = 0;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    if (triangular) {
        const bool lower = sx_tf_read_bool(&x->tf.head, "lower", true);
        SX_TRY(keep_triangle(x, lower, &a.re));
        SX_TRY(keep_triangle(x, lower, &a.im));
    }
    SX_TRY(as_real(x, a, &rank, &in[0]));
    if (solves) {
        SX_TRY(sx_tf_read_parts(x, 1, &b));
        SX_TF_BUILD(x, &in[1], concat, (&(sx_axis_attrs){rank - 2}), b.re, b.im);
    }
    SX_TRY(sx_tf_import_as(x, triangular ? "MatrixSolve" : op, in, solves ? 2 : 1, &all));
    if (!solves) {
        sx_transpose_attrs turn = {.perm = {.n = rank}};
        for (int d = 0; d < rank; d++) {
            turn.perm.v[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
        }
        SX_TF_BUILD(x, &all, transpose, &turn, all);
        SX_TRY(half_of_rows(x, all, 0, &all));
        SX_TF_BUILD(x, &all, transpose, &turn, all);
    }
    SX_TRY(half_of_rows(x, all, 0, &y.re));
    SX_TRY(half_of_rows(x, all, 1, &y.im));
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* v [..., n, n] with a last axis of two: v and w. */
static sx_status pair_of(const sx_tf_op_node *x, int axis, sx_value v, sx_value w, sx_value *out)
{
    const sx_axis_attrs along = {axis};
    SX_TRY(sx_tf_expand(x, v, axis, &v));
    SX_TRY(sx_tf_expand(x, w, axis, &w));
    SX_TF_BUILD(x, out, concat, &along, v, w);
    return SX_OK;
}

/* Cholesky(a): of the matrix with [re -im; im re] for each element, whose factor is made of such
 * blocks, too. */
static sx_status import_cholesky(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, y = a;
    sx_value minus, rows[2], all;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    const int rank = sx_type_of_value(x->b, a.re).rank;
    if (rank < 2 || rank + 2 > SX_MAX_RANK) {
        return sx_tf_unsupported("complex matrices of unknown rank, or of rank %d", rank);
    }
    SX_TF_BUILD(x, &minus, neg, NULL, a.im);
    SX_TRY(pair_of(x, rank, a.re, minus, &rows[0])); /* [..., n, n, 2] */
    SX_TRY(pair_of(x, rank, a.im, a.re, &rows[1]));
    SX_TRY(pair_of(x, rank - 1, rows[0], rows[1], &all)); /* [..., n, 2, n, 2] */
    SX_TRY(sx_tf_join_axes(x, all, rank, &all));
    SX_TRY(sx_tf_join_axes(x, all, rank - 2, &all));
    SX_TRY(sx_tf_import_as(x, x->n->node->op, &all, 1, &all));
    SX_TRY(
        sx_tf_divide_axis(x, all, rank - 1, -1, 2, &all)); /* [..., 2 n, n, 2]: the first column */
    SX_TRY(sx_tf_cut_axis(x, all, rank, 0, 1, &all));
    SX_TRY(sx_tf_join_axes(x, all, rank - 1, &all));
    SX_TRY(sx_tf_divide_axis(x, all, rank - 2, -1, 2, &all)); /* [..., n, 2, n] */
    for (int i = 0; i < 2; i++) {
        sx_value *part = i == 0 ? &y.re : &y.im;
        SX_TRY(sx_tf_cut_axis(x, all, rank - 1, i, 1, part));
        SX_TRY(sx_tf_join_axes(x, *part, rank - 1, part));
    }
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

static sx_status import_determinant(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    sx_value y = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    const sx_value in[2] = {a.re, a.im};
    SX_TRY(sx_tf_add_node(x, &sx_op_complex_determinant, NULL, in, 2, NULL, 0, &y, &n_out));
    sx_tf_set_parts(x, 0, (sx_tf_parts){y, sx_output_of(y, 1)});
    return SX_OK;
}

/* LogMatrixDeterminant(a): the determinant of [re -im; im re] is the square of |det a|, and the
 * sign is the determinant of a divided by |det a|^(1/n), which is neither large nor small. */
static sx_status import_log_determinant(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, sign = a, size = a;
    sx_value real, n, scale, zero, singular, y;
    int rank = 0, n_out = 0;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(as_real(x, a, &rank, &real));
    const sx_dtype dtype = sx_type_of_value(x->b, real).dtype;
    sx_value of_real[2]; /* its sign, and the logarithm of its size */
    SX_TRY(sx_tf_import_outputs_as(x, x->n->node->op, &real, 1, of_real, 2));
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, of_real[1], 0.5, &size.re));
    SX_TRY(sx_tf_number(x, dtype, 0, &zero));
    SX_TRY(sx_tf_with_number(x, &sx_op_equal, size.re, -INFINITY, &singular));
    SX_TRY(sx_tf_sizes_of(x, a.re, rank - 1, 1, &n));
    SX_TF_BUILD(x, &n, cast, (&(sx_cast_attrs){dtype}), n);
    SX_TF_BUILD(x, &n, reshape, (&(sx_shape_attrs){{0}}), n);
    SX_TF_BUILD(x, &scale, select, NULL, singular, zero, size.re);
    SX_TF_BUILD(x, &scale, neg, NULL, scale);
    SX_TF_BUILD(x, &scale, div_no_nan, NULL, scale, n);
    SX_TF_BUILD(x, &scale, exp, NULL, scale);
    SX_TRY(sx_tf_expand(x, scale, -1, &scale));
    SX_TRY(sx_tf_expand(x, scale, -1, &scale));
    sx_value in[2];
    SX_TF_BUILD(x, &in[0], mul, NULL, a.re, scale);
    SX_TF_BUILD(x, &in[1], mul, NULL, a.im, scale);
    SX_TRY(sx_tf_add_node(x, &sx_op_complex_determinant, NULL, in, 2, NULL, 0, &y, &n_out));
    sign = (sx_tf_parts){y, sx_output_of(y, 1)};
    SX_TF_BUILD(x, &sign.re, select, NULL, singular, zero, sign.re);
    SX_TF_BUILD(x, &sign.im, select, NULL, singular, zero, sign.im);
    SX_TF_BUILD(x, &size.im, mul_no_nan, NULL, size.re, zero);
    sx_tf_set_parts(x, 0, sign);
    sx_tf_set_parts(x, 1, size);
    return SX_OK;
}

/* ---- Factors ---- */

/* The parts of a as the inputs of an operator of ours. */
static sx_status add_factors(const sx_tf_op_node *x, const sx_op_def *op, const void *attrs,
                             sx_value *out)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    int n_out = 0;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    const sx_value in[2] = {a.re, a.im};
    return sx_tf_add_node(x, op, attrs, in, 2, NULL, 0, out, &n_out);
}

/* A real output as a complex one. */
static sx_status set_real(const sx_tf_op_node *x, int output, sx_value re)
{
    sx_value zero = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, re).dtype, 0, &zero));
    SX_TF_BUILD(x, &zero, mul_no_nan, NULL, re, zero);
    sx_tf_set_parts(x, output, (sx_tf_parts){re, zero});
    return SX_OK;
}

static sx_status import_qr(const sx_tf_op_node *x)
{
    const sx_complex_qr_attrs attrs = {.full_matrices =
                                           sx_tf_read_bool(&x->tf.head, "full_matrices", false)};
    sx_value y = SX_NO_VALUE;
    SX_TRY(add_factors(x, &sx_op_complex_qr, &attrs, &y));
    for (int i = 0; i < 2; i++) {
        sx_tf_set_parts(x, i, (sx_tf_parts){sx_output_of(y, 2 * i), sx_output_of(y, 2 * i + 1)});
    }
    return SX_OK;
}

static sx_status import_svd(const sx_tf_op_node *x)
{
    const sx_complex_svd_attrs attrs = {
        .compute_uv = sx_tf_read_bool(&x->tf.head, "compute_uv", true),
        .full_matrices = sx_tf_read_bool(&x->tf.head, "full_matrices", false)};
    sx_value y = SX_NO_VALUE;
    SX_TRY(add_factors(x, &sx_op_complex_svd, &attrs, &y));
    SX_TRY(set_real(x, 0, y));
    for (int i = 1; i < 3; i++) {
        sx_tf_set_parts(x, i, (sx_tf_parts){sx_output_of(y, 2 * i - 1), sx_output_of(y, 2 * i)});
    }
    return SX_OK;
}

static sx_status import_self_adjoint_eig(const sx_tf_op_node *x)
{
    const sx_complex_self_adjoint_eig_attrs attrs = {
        .compute_v = sx_tf_read_bool(&x->tf.head, "compute_v", true)};
    sx_value y = SX_NO_VALUE;
    SX_TRY(add_factors(x, &sx_op_complex_self_adjoint_eig, &attrs, &y));
    SX_TRY(set_real(x, 0, y));
    sx_tf_set_parts(x, 1, (sx_tf_parts){sx_output_of(y, 1), sx_output_of(y, 2)});
    return SX_OK;
}

/* Eig(x), of real or complex numbers: the values and the vectors, which are complex. */
sx_status sx_tf_import_eig(sx_tf_op_node *x)
{
    sx_eig_attrs attrs = {.compute_v = sx_tf_read_bool(&x->tf.head, "compute_v", true)};
    const Tensorflow__AttrValue *made = sx_tf_node_attr(x->n->node, "Tout");
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    sx_value y = SX_NO_VALUE;
    int n_out = 0;
    if (x->n->n_in > 0 && x->n->in[0].kind == SX_TF_COMPLEX) {
        SX_TRY(sx_tf_read_parts(x, 0, &a));
    } else {
        attrs.is_real = true;
        SX_TRY(sx_tf_operand(x, 0, &a.re));
        SX_TF_BUILD(x, &a.im, sub, NULL, a.re, a.re);
    }
    const sx_value in[2] = {a.re, a.im};
    SX_TRY(sx_tf_add_node(x, &sx_op_eig, &attrs, in, 2, NULL, 0, &y, &n_out));
    for (int i = 0; i < 2; i++) {
        sx_tf_parts of = {sx_output_of(y, 2 * i), sx_output_of(y, 2 * i + 1)};
        const sx_dtype dtype = made != NULL && sx_tf_is_complex((int64_t)made->type)
                                   ? sx_tf_part_of((int64_t)made->type)
                                   : sx_type_of_value(x->b, a.re).dtype;
        if (dtype != sx_type_of_value(x->b, of.re).dtype) {
            SX_TF_BUILD(x, &of.re, cast, (&(sx_cast_attrs){dtype}), of.re);
            SX_TF_BUILD(x, &of.im, cast, (&(sx_cast_attrs){dtype}), of.im);
        }
        sx_tf_set_parts(x, i, of);
    }
    return SX_OK;
}

const sx_tf_complex_row sx_tf_complex_matrix_rows[] = {
    {"MatrixInverse", import_inverse},
    {"MatrixSolve", import_inverse},
    {"MatrixSolveLs", import_inverse},
    {"MatrixTriangularSolve", import_inverse},
    {"MatrixSquareRoot", import_inverse},
    {"MatrixLogarithm", import_inverse},
    {"Cholesky", import_cholesky},
    {"MatrixDeterminant", import_determinant},
    {"LogMatrixDeterminant", import_log_determinant},
    {"Qr", import_qr},
    {"Svd", import_svd},
    {"SelfAdjointEigV2", import_self_adjoint_eig},
    {NULL, NULL},
};
