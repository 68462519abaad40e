/* tridiagonal_solve: x where a x = b; of a the three diagonals are given.
 *
 *   diagonals         [...,3,n], any float: above the main one (the last element is not read), the
 *                     main one, below it (the first is not read)
 *   b                 [...,n,k] of its dtype, with the same dimensions in front
 *   partial_pivoting  exchanges neighbouring rows for the larger pivot
 *   returns           b's type
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes
 *          UNIMPLEMENTED     perturb_singular, which TensorFlow has on GPUs only
 * Numbers  a pivot of 0 gives NaN or infinity
 * Source   TensorFlow tf.linalg.tridiagonal_solve */
#include "graph/ops/linear_algebra.h"

typedef struct sx_tridiagonal_solve_attrs {
    bool partial_pivoting, perturb_singular;
} sx_tridiagonal_solve_attrs;

static const sx_attr_def tridiagonal_solve_attrs[] = {
    SX_ATTR_TF(sx_tridiagonal_solve_attrs, partial_pivoting, SX_ATTR_BOOL, .tf_number = 1),
    SX_ATTR_TF(sx_tridiagonal_solve_attrs, perturb_singular, SX_ATTR_BOOL, .tf_number = 0),
};

static sx_status tridiagonal_solve_infer(sx_infer_context *c)
{
    const sx_tridiagonal_solve_attrs *attrs = c->attrs;
    const sx_type *a = &c->inputs[0], *b = &c->inputs[1];
    SX_TRY(sx_require_matrices("diagonals", a));
    SX_TRY(sx_require_matrices("b", b));
    SX_TRY(sx_require_dtype("b", b, a->dtype));
    const int64_t three = sx_matrix_dim(a, 2);
    if (three != 3 && !sx_dim_is_unknown(three)) {
        return sx_error(SX_INVALID_ARGUMENT, "diagonals are %s, expected [...,3,n]", SX_TEXT(a));
    }
    if (attrs->perturb_singular) {
        return sx_error(SX_UNIMPLEMENTED, "perturb_singular");
    }
    c->outputs[0] = *b;
    return SX_OK;
}

/* Row `from` of the diagonals, moved by `by` places. */
static sx_value moved_row(sx_builder *b, sx_value diagonals, int64_t from, int by)
{
    const sx_type type = sx_type_of_value(b, diagonals);
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    const int rows = type.rank - 2, last = type.rank - 1;
    const int64_t n = type.dims[last];
    sx_slice_attrs kept = {.begin = {.n = type.rank}, .size = sx_ints_of(type.rank, type.dims)};
    sx_pad_attrs around = {.before = {.n = type.rank}, .after = {.n = type.rank}};
    kept.begin.v[rows] = from;
    kept.size.v[rows] = 1;
    kept.begin.v[last] = by < 0 ? SX_MIN(1, n) : 0;
    kept.size.v[last] = SX_MAX(n - (by != 0), 0);
    around.before.v[last] = by > 0 && n > 0;
    around.after.v[last] = by < 0 && n > 0;
    return sx_build_op(b, pad, &around, sx_build_op(b, slice, &kept, diagonals));
}

/* db solves the transposed system; da = -db xT, on the three diagonals. */
static void tridiagonal_solve_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type type = sx_type_of_value(b, g->x[0]);
    const sx_axis_attrs rows = {.axis = type.rank - 2};
    const sx_value turned = sx_build_op(b, concat, &rows, moved_row(b, g->x[0], 2, -1),
                                        moved_row(b, g->x[0], 1, 0), moved_row(b, g->x[0], 0, 1));
    const sx_value db = sx_build_op(b, tridiagonal_solve, g->attrs, turned, g->dy[0]);
    g->dx[1] = db;
    if (g->needed[0]) {
        const sx_reduce_attrs columns = {.axes = {1, {type.rank - 2}}, .keep_dims = true};
        const sx_value x = sx_transposed(b, g->y[0]),
                       by = sx_transposed(b, sx_build_op(b, neg, NULL, db));
        sx_value part[3] = {SX_NO_VALUE, SX_NO_VALUE, SX_NO_VALUE};
        for (int k = 0; k < 3 && !sx_builder_failed(b); k++) {
            /* x with its elements moved: row by row as a matrix [k,n] */
            const sx_type t = sx_type_of_value(b, x);
            const int64_t n = t.dims[t.rank - 1];
            sx_slice_attrs kept = {.begin = {.n = t.rank}, .size = sx_ints_of(t.rank, t.dims)};
            sx_pad_attrs around = {.before = {.n = t.rank}, .after = {.n = t.rank}};
            kept.begin.v[t.rank - 1] = k == 0 ? SX_MIN(1, n) : 0;
            kept.size.v[t.rank - 1] = SX_MAX(n - (k != 1), 0);
            around.after.v[t.rank - 1] = k == 0 && n > 0;
            around.before.v[t.rank - 1] = k == 2 && n > 0;
            const sx_value moved = sx_build_op(b, pad, &around, sx_build_op(b, slice, &kept, x));
            part[k] = sx_build_op(b, reduce_sum, &columns, sx_build_op(b, mul, NULL, by, moved));
        }
        g->dx[0] = sx_build_op(b, concat, &rows, part[0], part[1], part[2]);
    }
}

/* Row i of the factors has main[i], above[i] and, where rows were exchanged, above[i + 1] further
 * right: `far`. */
static sx_status tridiagonal_solve_host(const sx_kernel_call *c)
{
    const sx_tridiagonal_solve_attrs *attrs = c->attrs;
    const sx_matrices b = sx_matrices_of(&c->in[1].type);
    const int64_t n = b.rows, k = b.columns;
    double *room = sx_matrix_room(c, 3 * n);
    if (room == NULL) {
        return sx_no_memory("for three diagonals");
    }
    SX_TRY(sx_require_heads("diagonals", &c->in[0].type, "b", &c->in[1].type));
    const sx_matrices given = sx_matrices_of(&c->in[0].type);
    if (given.rows != 3 || given.columns != n) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "diagonals are %s and b is %s, expected [...,3,n] and "
                        "[...,n,k]",
                        SX_TEXT(&c->in[0].type), SX_TEXT(&c->in[1].type));
    }
    double *above = room, *main = room + n, *far = room + 2 * n;
    for (int64_t p = 0; p < b.count; p++) {
        const double *a = c->in[0].f + p * 3 * n;
        double *x = c->out[0].f + p * n * k;
        SX_TRY(sx_cancel_check(c->cancel));
        memcpy(x, c->in[1].f + p * n * k, (size_t)(n * k) * sizeof(*x));
        for (int64_t i = 0; i < n; i++) {
            above[i] = i + 1 < n ? a[i] : 0;
            main[i] = a[n + i];
            far[i] = 0;
        }
        for (int64_t i = 0; i + 1 < n; i++) {
            double left = a[2 * n + i + 1]; /* row i + 1: left, main, above */
            if (attrs->partial_pivoting && fabs(left) > fabs(main[i])) {
                const double row[2] = {main[i], above[i]};
                main[i] = left;
                above[i] = main[i + 1];
                far[i] = above[i + 1];
                left = row[0];
                main[i + 1] = row[1];
                above[i + 1] = 0;
                for (int64_t j = 0; j < k; j++) {
                    const double v = x[i * k + j];
                    x[i * k + j] = x[(i + 1) * k + j];
                    x[(i + 1) * k + j] = v;
                }
            }
            const double factor = left / main[i];
            main[i + 1] -= factor * above[i];
            above[i + 1] -= factor * far[i];
            for (int64_t j = 0; j < k; j++) {
                x[(i + 1) * k + j] -= factor * x[i * k + j];
            }
        }
        for (int64_t i = n - 1; i >= 0; i--) {
            for (int64_t j = 0; j < k; j++) {
                const double next = i + 1 < n ? above[i] * x[(i + 1) * k + j] : 0;
                const double after = i + 2 < n ? far[i] * x[(i + 2) * k + j] : 0;
                x[i * k + j] = (x[i * k + j] - next - after) / main[i];
            }
        }
    }
    return SX_OK;
}

static void tridiagonal_solve_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_tridiagonal_solve, "TridiagonalSolve",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {1, 5, 0, 1, 2, 3, 0, 4, 1};
static const sx_op_sample tridiagonal_solve_samples[] = {
    {.name = "pivots",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 2)},
     .n_inputs = 2,
     .attrs = &(const sx_tridiagonal_solve_attrs){.partial_pivoting = true}},
};

const sx_op_def sx_op_tridiagonal_solve = {
    SX_OP_NAMED(tridiagonal_solve),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_tridiagonal_solve_attrs, tridiagonal_solve_attrs),
    .infer = tridiagonal_solve_infer,
    .grad = tridiagonal_solve_gradient,
    .host = tridiagonal_solve_host,
    .to_tf = tridiagonal_solve_to_tf,
    SX_FROM_TF({.op = "TridiagonalSolve"}),
    SX_OP_SAMPLES(tridiagonal_solve_samples),
};
