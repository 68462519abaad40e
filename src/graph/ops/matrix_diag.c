/* matrix_diag: matrices with given diagonals.
 *
 *   diagonal  [...,n] of one diagonal, [...,diagonals,n] of several (diagonals.h); any dtype
 *   padding   a scalar of its dtype: the other elements
 *   returns   [...,num_rows,num_cols]; -1: of one dimension, as many as the diagonals need; of
 * both, square
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks, sizes that do not fit the diagonals
 * Source   TensorFlow tf.linalg.diag */
#include "graph/ops/diagonals.h"

/* The sizes of the matrices where the longest diagonal has n elements. */
static sx_status sizes_of(const sx_diagonals_attrs *attrs, const sx_diagonals *d, int64_t n,
                          int64_t *out_rows, int64_t *out_columns)
{
    const int64_t least_rows = n - SX_MIN(d->high, 0), least_columns = n + SX_MAX(d->low, 0);
    const bool square = attrs->num_rows == -1 && attrs->num_cols == -1;
    const int64_t most = SX_MAX(least_rows, least_columns);
    *out_rows = square ? most : attrs->num_rows == -1 ? least_rows : attrs->num_rows;
    *out_columns = square ? most : attrs->num_cols == -1 ? least_columns : attrs->num_cols;
    if (*out_rows < least_rows || *out_columns < least_columns ||
        (*out_rows != least_rows && *out_columns != least_columns)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%lld rows and %lld columns do not fit diagonals %lld to %lld of %lld "
                        "elements",
                        (long long)*out_rows, (long long)*out_columns, (long long)d->low,
                        (long long)d->high, (long long)n);
    }
    return SX_OK;
}

static sx_status matrix_diag_infer(sx_infer_context *c)
{
    const sx_diagonals_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    sx_diagonals d;
    sx_type y = *x;
    SX_TRY(sx_diagonals_of(attrs, &d));
    SX_TRY(sx_require_maybe("padding", &c->inputs[1], x->dtype, 0, "a scalar"));
    if (x->rank >= 0 && (x->rank < 2 - d.single || x->rank + d.single > SX_MAX_RANK)) {
        return sx_error(SX_INVALID_ARGUMENT, "diagonal is %s, expected %s", SX_TEXT(x),
                        d.single ? "[...,n]" : "[...,diagonals,n]");
    }
    if (x->rank >= 0) {
        const int64_t n = x->dims[x->rank - 1];
        const int64_t rows = d.single ? 1 : x->dims[x->rank - 2];
        if (rows >= 0 && rows != d.high - d.low + 1) {
            return sx_error(SX_INVALID_ARGUMENT, "diagonal is %s, expected %lld diagonals",
                            SX_TEXT(x), (long long)(d.high - d.low + 1));
        }
        y.rank += d.single;
        y.dims[y.rank - 2] = y.dims[y.rank - 1] = SX_UNKNOWN_DIM;
        if (n >= 0) {
            SX_TRY(sizes_of(attrs, &d, n, &y.dims[y.rank - 2], &y.dims[y.rank - 1]));
        }
    }
    c->outputs[0] = y;
    return SX_OK;
}

static sx_status matrix_diag_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_host_types_inferred(c, matrix_diag_infer, 1, out_types);
}

static sx_status matrix_diag_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    sx_diagonals d;
    SX_TRY(sx_diagonals_of(c->attrs, &d));
    for (int64_t k = 0, n = sx_type_elems(&c->out[0].type); k < n; k++) {
        sx_host_move(c, k, 1, 0, 1);
    }
    sx_put_diagonals(c, &d, 0, x->dims[x->rank - 1]);
    return SX_OK;
}

/* The diagonals of dy; the sum of what is around them. */
static void matrix_diag_grad(sx_grad *g)
{
    const sx_diagonals_attrs *attrs = g->attrs;
    const sx_diagonals_attrs part = {.k = attrs->k, .align = attrs->align};
    if (g->needed[1]) {
        const sx_value around =
            sx_build_op(g->b, matrix_set_diag, &part, g->dy[0], sx_zeros_of(g->b, g->x[0]));
        g->dx[1] = sx_unbroadcast(g->b, around, g->x[1]);
    }
    if (g->needed[0]) {
        g->dx[0] =
            sx_build_op(g->b, matrix_diag_part, &part, g->dy[0], sx_scalar_like(g->b, g->dy[0], 0));
    }
}

static void matrix_diag_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_diagonals_attrs *attrs = op->attrs;
    op->out[0] = sx_tf_add(
        w, "MatrixDiagV3", NULL,
        sx_tf_in(op->in[0], sx_tf_diagonals(w, attrs),
                 sx_tf_const_i32(w, "num_rows", (int32_t)attrs->num_rows),
                 sx_tf_const_i32(w, "num_cols", (int32_t)attrs->num_cols), op->in[1]),
        sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype), sx_tf_align(attrs)));
}

static const double padding[] = {-1};
static const sx_op_sample matrix_diag_samples[] = {
    {.name = "one",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3), SX_SAMPLE_ONE(SX_F32, padding)},
     .n_inputs = 2,
     .attrs = &(const sx_diagonals_attrs){.num_rows = -1, .num_cols = -1}},
    {.name = "three",
     .inputs = {SX_SAMPLE_I32(9, 2, 3, 3), SX_SAMPLE_ONE(SX_I32, padding)},
     .n_inputs = 2,
     .attrs = &(const sx_diagonals_attrs){{2, {-1, 1}}, SX_ALIGN_RIGHT_LEFT, 3, 4}},
};

const sx_op_def sx_op_matrix_diag = {
    SX_OP_NAMED(matrix_diag),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .moved = 0x3,
    SX_OP_ATTRS(sx_diagonals_attrs, sx_diagonals_rows),
    .infer = matrix_diag_infer,
    .grad = matrix_diag_grad,
    .host = matrix_diag_host,
    .host_types = matrix_diag_host_types,
    .to_tf = matrix_diag_to_tf,
    SX_FROM_TF({.op = "MatrixDiagV3",
                .operands = {{1, "k"}, {2, "num_rows"}, {3, "num_cols"}},
                .attrs = sx_tf_read_diagonals},
               {.op = "MatrixDiagV2",
                .operands = {{1, "k"}, {2, "num_rows"}, {3, "num_cols"}},
                .attrs = sx_tf_read_diagonals_left}),
    SX_OP_SAMPLES(matrix_diag_samples),
};
