/* matrix_diag_part: diagonals of matrices.
 *
 *   x        [...,m,n], any dtype
 *   padding  a scalar of its dtype: what follows, or precedes, shorter diagonals
 *   returns  [...,l] of one diagonal, [...,diagonals,l] of several (diagonals.h), l elements in the
 *            longest
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks, diagonals outside the matrices
 * Source   TensorFlow tf.linalg.diag_part */
#include "graph/ops/diagonals.h"

static sx_status matrix_diag_part_infer(sx_infer_context *c)
{
    const sx_diagonals_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    sx_diagonals d;
    sx_type y = *x;
    SX_TRY(sx_diagonals_of(attrs, &d));
    SX_TRY(sx_require_maybe("padding", &c->inputs[1], x->dtype, 0, "a scalar"));
    if (x->rank == 0 || x->rank == 1) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected [...,m,n]", SX_TEXT(x));
    }
    if (x->rank >= 0) {
        const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
        int64_t length = SX_UNKNOWN_DIM;
        if (rows >= 0 && columns >= 0) {
            SX_TRY(sx_diagonals_fit(&d, rows, columns, &length));
        }
        y.rank -= d.single;
        y.dims[y.rank - 1] = length;
        if (!d.single) {
            y.dims[y.rank - 2] = d.high - d.low + 1;
        }
    }
    c->outputs[0] = y;
    return SX_OK;
}

static sx_status matrix_diag_part_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_host_types_inferred(c, matrix_diag_part_infer, 1, out_types);
}

static sx_status matrix_diag_part_host(const sx_kernel_call *c)
{
    const sx_diagonals_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    const int64_t width = y->dims[y->rank - 1], matrices = sx_dims_product(x, 0, x->rank - 2);
    sx_diagonals d;
    SX_TRY(sx_diagonals_of(attrs, &d));
    const int64_t count = d.high - d.low + 1;
    for (int64_t p = 0; p < matrices; p++) {
        for (int64_t row = 0; row < count; row++) {
            const int64_t at = d.high - row, length = sx_diagonal_length(at, rows, columns);
            const int64_t begin = sx_diagonal_begin(attrs, at, length, width);
            for (int64_t k = 0; k < width; k++) {
                const int64_t to = (p * count + row) * width + k, i = k - begin;
                const int64_t from = (i - SX_MIN(at, 0)) * columns + i + SX_MAX(at, 0);
                const bool inside = i >= 0 && i < length;
                sx_host_move(c, to, inside ? 0 : 1, inside ? p * rows * columns + from : 0, 1);
            }
        }
    }
    return SX_OK;
}

/* dy in the diagonals of zeros; the sum of what these do not hold. */
static void matrix_diag_part_grad(sx_grad *g)
{
    const sx_value dx =
        sx_build_op(g->b, matrix_set_diag, g->attrs, sx_zeros_of(g->b, g->x[0]), g->dy[0]);
    if (g->needed[1]) {
        const sx_value held =
            sx_build_op(g->b, matrix_diag_part, g->attrs, dx, sx_scalar_like(g->b, dx, 0));
        g->dx[1] = sx_unbroadcast(g->b, sx_build_op(g->b, sub, NULL, g->dy[0], held), g->x[1]);
    }
    g->dx[0] = dx;
}

static void matrix_diag_part_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_diagonals_attrs *attrs = op->attrs;
    op->out[0] = sx_tf_add(
        w, "MatrixDiagPartV3", NULL, sx_tf_in(op->in[0], sx_tf_diagonals(w, attrs), op->in[1]),
        sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype), sx_tf_align(attrs)));
}

static const double padding[] = {-1};
static const sx_op_sample matrix_diag_part_samples[] = {
    {.name = "one",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 4), SX_SAMPLE_ONE(SX_F32, padding)},
     .n_inputs = 2},
    {.name = "three",
     .inputs = {SX_SAMPLE_I32(9, 2, 3, 4), SX_SAMPLE_ONE(SX_I32, padding)},
     .n_inputs = 2,
     .attrs = &(const sx_diagonals_attrs){{2, {-1, 1}}, SX_ALIGN_LEFT_RIGHT, 0, 0}},
};

const sx_op_def sx_op_matrix_diag_part = {
    SX_OP_NAMED(matrix_diag_part),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .moved = 0x3,
    SX_OP_ATTRS(sx_diagonals_attrs, sx_diagonals_rows),
    .infer = matrix_diag_part_infer,
    .grad = matrix_diag_part_grad,
    .host = matrix_diag_part_host,
    .host_types = matrix_diag_part_host_types,
    .to_tf = matrix_diag_part_to_tf,
    SX_FROM_TF(
        {.op = "MatrixDiagPartV3", .operands = {{1, "k"}}, .attrs = sx_tf_read_diagonals},
        {.op = "MatrixDiagPartV2", .operands = {{1, "k"}}, .attrs = sx_tf_read_diagonals_left}),
    SX_OP_SAMPLES(matrix_diag_part_samples),
};
