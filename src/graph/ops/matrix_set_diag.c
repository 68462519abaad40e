/* matrix_set_diag: matrices with diagonals replaced.
 *
 *   x         [...,m,n], any dtype
 *   diagonal  of its dtype: [...,l] of one diagonal, [...,diagonals,l] of several (diagonals.h)
 *   returns   x's type
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks, diagonals outside the matrices, sizes that differ
 * Source   TensorFlow tf.linalg.set_diag */
#include "graph/ops/diagonals.h"

static sx_status matrix_set_diag_infer(sx_infer_context *c)
{
    const sx_diagonals_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0], *diagonal = &c->inputs[1];
    sx_diagonals d;
    SX_TRY(sx_diagonals_of(attrs, &d));
    SX_TRY(sx_require_dtype("diagonal", diagonal, x->dtype));
    if (x->rank > 1) {
        SX_TRY(sx_require_maybe("diagonal", diagonal, x->dtype, x->rank - d.single,
                                d.single ? "[...,l]" : "[...,diagonals,l]"));
    }
    if (x->rank == 0 || x->rank == 1) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected [...,m,n]", SX_TEXT(x));
    }
    c->outputs[0] = *x;
    return SX_OK;
}

static sx_status matrix_set_diag_host(const sx_kernel_call *c)
{
    const sx_diagonals_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *diagonal = &c->in[1].type;
    const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    sx_diagonals d;
    int64_t width;
    SX_TRY(sx_diagonals_of(attrs, &d));
    SX_TRY(sx_diagonals_fit(&d, rows, columns, &width));
    sx_type expected = *x;
    expected.rank -= d.single;
    expected.dims[expected.rank - 1] = width;
    if (!d.single) {
        expected.dims[expected.rank - 2] = d.high - d.low + 1;
    }
    if (!sx_same_dims(diagonal, &expected)) {
        return sx_error(SX_INVALID_ARGUMENT, "diagonal is %s, expected %s", SX_TEXT(diagonal),
                        SX_TEXT(&expected));
    }
    sx_host_move(c, 0, 0, 0, sx_type_elems(x));
    sx_put_diagonals(c, &d, 1, width);
    return SX_OK;
}

/* dy with zeros in the diagonals, and these diagonals. */
static void matrix_set_diag_grad(sx_grad *g)
{
    const sx_value zero = sx_scalar_like(g->b, g->dy[0], 0);
    if (g->needed[0]) {
        const sx_value zeros = sx_zeros_of(g->b, g->x[1]);
        g->dx[0] = sx_build_op(g->b, matrix_set_diag, g->attrs, g->dy[0], zeros);
    }
    if (g->needed[1]) {
        g->dx[1] = sx_build_op(g->b, matrix_diag_part, g->attrs, g->dy[0], zero);
    }
}

static void matrix_set_diag_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_diagonals_attrs *attrs = op->attrs;
    op->out[0] = sx_tf_add(
        w, "MatrixSetDiagV3", NULL, sx_tf_in(op->in[0], op->in[1], sx_tf_diagonals(w, attrs)),
        sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype), sx_tf_align(attrs)));
}

static const sx_op_sample matrix_set_diag_samples[] = {
    {.name = "one",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 4), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3)},
     .n_inputs = 2},
    {.name = "three",
     .inputs = {SX_SAMPLE_I32(9, 2, 3, 4), SX_SAMPLE_I32(9, 2, 3, 3)},
     .n_inputs = 2,
     .attrs = &(const sx_diagonals_attrs){{2, {-1, 1}}, SX_ALIGN_RIGHT_LEFT, 0, 0}},
};

const sx_op_def sx_op_matrix_set_diag = {
    SX_OP_NAMED(matrix_set_diag),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .moved = 0x3,
    SX_OP_ATTRS(sx_diagonals_attrs, sx_diagonals_rows),
    .infer = matrix_set_diag_infer,
    .grad = matrix_set_diag_grad,
    .host = matrix_set_diag_host,
    .to_tf = matrix_set_diag_to_tf,
    SX_FROM_TF(
        {.op = "MatrixSetDiagV3", .operands = {{2, "k"}}, .attrs = sx_tf_read_diagonals},
        {.op = "MatrixSetDiagV2", .operands = {{2, "k"}}, .attrs = sx_tf_read_diagonals_left},
        {.op = "MatrixSetDiag"}),
    SX_OP_SAMPLES(matrix_set_diag_samples),
};
