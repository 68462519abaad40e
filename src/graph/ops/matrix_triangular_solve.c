/* matrix_triangular_solve: x where a x = b, or aᵀ x = b, for triangular a; the other triangle is
 * not read. With `banded` a holds the diagonals of such matrices.
 *
 *   a        [...,n,n], any float; banded: [...,bands,n], element i of each is of row i: the
 *            diagonal first if `lower`, else last
 *   b        [...,n,k] of its dtype; the dimensions in front broadcast
 *   lower    which triangle of a
 *   adjoint  of the transpose of a
 *   returns  [...,n,k]
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes
 * Numbers  a 0 on the diagonal divides: infinity or NaN
 * Source   TensorFlow tf.linalg.triangular_solve, BandedTriangularSolve */
#include "graph/ops/linear_algebra.h"

static const sx_attr_def triangular_attrs[] = {
    SX_ATTR_TF(sx_triangular_attrs, lower, SX_ATTR_BOOL, .tf_number = 1),
    SX_ATTR_TF(sx_triangular_attrs, adjoint, SX_ATTR_BOOL, .tf_number = 0),
    SX_ATTR(sx_triangular_attrs, banded, SX_ATTR_BOOL),
};

static sx_status matrix_triangular_solve_infer(sx_infer_context *c)
{
    const sx_triangular_attrs *attrs = c->attrs;
    const sx_type *a = &c->inputs[0], *b = &c->inputs[1];
    SX_TRY(attrs->banded ? sx_require_matrices("a", a) : sx_require_square("a", a));
    SX_TRY(sx_require_matrices("b", b));
    SX_TRY(sx_require_dtype("b", b, a->dtype));
    const int64_t n = sx_matrix_dim(a, 1), rows = sx_matrix_dim(b, 2);
    if (n != rows && !sx_dim_is_unknown(n) && !sx_dim_is_unknown(rows)) {
        return sx_error(SX_INVALID_ARGUMENT, "a is %s and b is %s, expected equally many rows",
                        SX_TEXT(a), SX_TEXT(b));
    }
    const sx_type heads[2] = {sx_heads_of(a, 2), sx_heads_of(b, 2)};
    sx_type out;
    SX_TRY(sx_infer_broadcast_maybe(&heads[0], &heads[1], &out));
    c->outputs[0] = sx_matrices_type(&out, sx_dim_is_unknown(rows) ? n : rows, sx_matrix_dim(b, 1));
    return SX_OK;
}

/* Rows [from, from + n) of matrices. */
static sx_value rows_of(sx_builder *b, sx_value x, int64_t from, int64_t n)
{
    if (sx_builder_failed(b)) { /* the value has no type then */
        return SX_NO_VALUE;
    }
    const sx_type type = sx_type_of_value(b, x);
    sx_slice_attrs part = {.begin = {.n = type.rank}, .size = sx_ints_of(type.rank, type.dims)};
    part.begin.v[type.rank - 2] = from;
    part.size.v[type.rank - 2] = n;
    return sx_build_op(b, slice, &part, x);
}

/* The bands of p qᵀ: element i of the diagonal that lies d below, or above, the main one is the
 * product of row i of p and row i - d, or i + d, of q; 0 where there is none. */
static sx_value bands_of(sx_builder *b, sx_value p, sx_value q, int64_t n_bands, bool lower)
{
    const sx_type type = sx_type_of_value(b, p);
    const int rank = type.rank;
    const int64_t n = type.dims[rank - 2];
    const sx_reduce_attrs columns = {.axes = {1, {rank - 1}}};
    const sx_axis_attrs along = {rank - 2};
    sx_value all = SX_NO_VALUE;
    for (int64_t band = 0; band < n_bands; band++) {
        const int64_t d = lower ? band : n_bands - 1 - band;
        const sx_value own = rows_of(b, p, lower ? d : 0, n - d),
                       other = rows_of(b, q, lower ? 0 : d, n - d);
        sx_value row = sx_build_op(b, reduce_sum, &columns, sx_build_op(b, mul, NULL, own, other));
        sx_pad_attrs fill = {.before = {.n = rank - 1}, .after = {.n = rank - 1}};
        fill.before.v[rank - 2] = lower ? d : 0;
        fill.after.v[rank - 2] = lower ? 0 : d;
        row = sx_build_op(b, pad, &fill, row);
        sx_shape_attrs one = {.shape = sx_ints_of(rank, type.dims)};
        one.shape.v[rank - 2] = 1;
        one.shape.v[rank - 1] = n;
        row = sx_build_op(b, reshape, &one, row);
        all = band == 0 ? row : sx_build_op(b, concat, &along, all, row);
    }
    return all;
}

/* db = the solution of the transpose for dy, da = the triangle of -db yᵀ, or of that transposed; of
 * banded matrices its bands. */
static void matrix_triangular_solve_grad(sx_grad *g)
{
    const sx_triangular_attrs *attrs = g->attrs;
    sx_triangular_attrs other = *attrs;
    const sx_matmul_attrs outer = {.transpose_b = true};
    other.adjoint = !other.adjoint;
    sx_value db = sx_build_op(g->b, matrix_triangular_solve, &other, g->x[0], g->dy[0]);
    if (sx_builder_failed(g->b)) {
        return;
    }
    if (g->needed[0] && attrs->banded) {
        const sx_value p = attrs->adjoint ? g->y[0] : db, q = attrs->adjoint ? db : g->y[0];
        const sx_type a = sx_type_of_value(g->b, g->x[0]);
        const sx_value da = bands_of(g->b, p, q, a.dims[a.rank - 2], attrs->lower);
        g->dx[0] = sx_unbroadcast(g->b, sx_build_op(g->b, neg, NULL, da), g->x[0]);
    } else if (g->needed[0]) {
        sx_value da = attrs->adjoint ? sx_build_op(g->b, matmul, &outer, g->y[0], db)
                                     : sx_build_op(g->b, matmul, &outer, db, g->y[0]);
        da = sx_unbroadcast(g->b, sx_build_op(g->b, neg, NULL, da), g->x[0]);
        g->dx[0] = sx_triangle(g->b, da, attrs->lower);
    }
    g->dx[1] = sx_unbroadcast(g->b, db, g->x[1]);
}

static sx_status matrix_triangular_solve_host(const sx_kernel_call *c)
{
    const sx_triangular_attrs *attrs = c->attrs;
    const sx_matrices of_a = sx_matrices_of(&c->in[0].type), y = sx_matrices_of(&c->out[0].type);
    const int64_t n = y.rows, k = y.columns, bands = of_a.rows;
    const sx_type heads[3] = {sx_heads_of(&c->in[0].type, 2), sx_heads_of(&c->in[1].type, 2),
                              sx_heads_of(&c->out[0].type, 2)};
    double *room = attrs->banded ? sx_matrix_room(c, n * n) : NULL;
    if (attrs->banded && room == NULL) {
        return sx_no_memory("for a matrix of bands");
    }
    if (attrs->banded && (bands < 1 || bands > SX_MAX(n, 1))) {
        return sx_error(SX_INVALID_ARGUMENT, "a is %s, expected from 1 to %lld bands",
                        SX_TEXT(&c->in[0].type), (long long)n);
    }
    for (int64_t p = 0; p < y.count; p++) {
        const double *a = c->in[0].f + sx_broadcast_offset(&heads[2], &heads[0], p) * bands * n;
        const double *b = c->in[1].f + sx_broadcast_offset(&heads[2], &heads[1], p) * n * k;
        double *x = c->out[0].f + p * n * k;
        SX_TRY(sx_cancel_check(c->cancel));
        if (attrs->banded) {
            memset(room, 0, (size_t)(n * n) * sizeof(*room));
            for (int64_t band = 0; band < bands; band++) {
                const int64_t row = attrs->lower ? band : bands - 1 - band;
                for (int64_t i = attrs->lower ? band : 0; i < (attrs->lower ? n : n - band); i++) {
                    room[i * n + (attrs->lower ? i - band : i + band)] = a[row * n + i];
                }
            }
        }
        memcpy(x, b, (size_t)(n * k) * sizeof(*x));
        sx_triangular_solve(attrs->banded ? room : a, n, attrs->lower, attrs->adjoint, x, k);
    }
    return SX_OK;
}

static void matrix_triangular_solve_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_triangular_attrs *attrs = op->attrs;
    sx_tf_same(w, op, &sx_op_matrix_triangular_solve,
               attrs->banded ? "BandedTriangularSolve" : "MatrixTriangularSolve",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static sx_status banded_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_triangular_attrs *)out)->banded = true;
    return SX_OK;
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const double bands[] = {4, 3, 5, 0, 0.5, -1, 2, -3, 4, 0, 1, 0.25};
static const double upper_bands[] = {0.5, -1, 0, 4, 3, 5};
static const sx_op_sample matrix_triangular_solve_samples[] = {
    {.name = "lower",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 2)},
     .n_inputs = 2,
     .attrs = &(const sx_triangular_attrs){.lower = true}},
    {.name = "upper_adjoint",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 1)},
     .n_inputs = 2,
     .attrs = &(const sx_triangular_attrs){.adjoint = true}},
    {.name = "banded",
     .inputs = {SX_SAMPLE_LIST(SX_F32, bands, 2, 2, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 2)},
     .n_inputs = 2,
     .attrs = &(const sx_triangular_attrs){.lower = true, .banded = true}},
    {.name = "banded_upper_adjoint",
     .inputs = {SX_SAMPLE_LIST(SX_F32, upper_bands, 2, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 1)},
     .n_inputs = 2,
     .attrs = &(const sx_triangular_attrs){.adjoint = true, .banded = true}},
};

const sx_op_def sx_op_matrix_triangular_solve = {
    SX_OP_NAMED(matrix_triangular_solve),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_triangular_attrs, triangular_attrs),
    .infer = matrix_triangular_solve_infer,
    .grad = matrix_triangular_solve_grad,
    .host = matrix_triangular_solve_host,
    .to_tf = matrix_triangular_solve_to_tf,
    SX_FROM_TF({.op = "MatrixTriangularSolve"},
               {.op = "BandedTriangularSolve", .attrs = banded_from_tf}),
    SX_OP_SAMPLES(matrix_triangular_solve_samples),
};
