/* See linear_algebra.h. */
#include "graph/ops/linear_algebra.h"

#include <string.h>

#include "base/clones.h"
#include "graph/ops/matrix_loops.h"

enum {
    BASE = 8,     /* what is not divided further */
    COLUMNS = 64, /* that are factored before the others change */
};

const sx_attr_def sx_adjoint_rows[1] = {SX_ATTR_TF(sx_adjoint_attrs, adjoint, SX_ATTR_BOOL)};

/* ---- Inference ---- */

sx_status sx_require_matrices(const char *what, const sx_type *t)
{
    SX_TRY(sx_require_float(what, t));
    if (t->rank == 0 || t->rank == 1) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected [...,m,n]", what, SX_TEXT(t));
    }
    return SX_OK;
}

sx_status sx_require_square(const char *what, const sx_type *t)
{
    SX_TRY(sx_require_matrices(what, t));
    const int64_t m = sx_matrix_dim(t, 2), n = sx_matrix_dim(t, 1);
    if (m != n && !sx_dim_is_unknown(m) && !sx_dim_is_unknown(n)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected square matrices", what,
                        SX_TEXT(t));
    }
    return SX_OK;
}

sx_status sx_require_parts(const sx_infer_context *c,
                           sx_status (*require)(const char *what, const sx_type *t), sx_type *out)
{
    SX_TRY(require("re", &c->inputs[0]));
    SX_TRY(require("im", &c->inputs[1]));
    SX_TRY(sx_require_dtype("im", &c->inputs[1], c->inputs[0].dtype));
    return sx_merge_shapes("re", &c->inputs[0], "im", &c->inputs[1], out);
}

sx_status sx_infer_square(sx_infer_context *c)
{
    SX_TRY(sx_require_square("x", &c->inputs[0]));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_type sx_heads_of(const sx_type *t, int n)
{
    sx_type heads = *t;
    heads.rank = t->rank < 0 ? t->rank : t->rank - n;
    return heads;
}

sx_type sx_matrices_type(const sx_type *heads, int64_t rows, int64_t columns)
{
    sx_type t = *heads;
    if (t.rank >= 0) {
        t.dims[t.rank++] = rows;
        t.dims[t.rank++] = columns;
    }
    return t;
}

int64_t sx_matrix_dim(const sx_type *t, int from_end)
{
    return t->rank >= from_end ? t->dims[t->rank - from_end] : SX_UNKNOWN_DIM;
}

sx_status sx_require_heads(const char *what_a, const sx_type *a, const char *what_b,
                           const sx_type *b)
{
    const sx_type heads[2] = {sx_heads_of(a, 2), sx_heads_of(b, 2)};
    if (!sx_same_dims(&heads[0], &heads[1])) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s is %s and %s is %s, expected the same dimensions "
                        "in front",
                        what_a, SX_TEXT(a), what_b, SX_TEXT(b));
    }
    return SX_OK;
}

/* ---- Gradients ---- */

typedef enum part { LOWER, UPPER, DIAGONAL, REST } part;

/* x [...,n,n] with zeros outside of a part. */
static sx_value keep_part(sx_builder *b, sx_value x, part kept)
{
    const sx_type type = sx_type_of_value(b, x);
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    const int64_t n = sx_matrix_dim(&type, 1);
    bool *mask = sx_alloc((size_t)(n * n) + 1, sizeof(*mask));
    if (mask == NULL) {
        sx_builder_fail(b, sx_no_memory("for a part of a matrix"));
        return SX_NO_VALUE;
    }
    for (int64_t k = 0; k < n * n; k++) {
        const int64_t i = k / n, j = k % n;
        mask[k] = kept == LOWER ? j <= i : kept == UPPER ? j >= i : (i == j) == (kept == DIAGONAL);
    }
    sx_value inside = sx_constant(b, (sx_tensor){sx_type_of(SX_BOOL, n, n), mask});
    sx_free(mask);
    return sx_build_op(b, select, NULL, inside, x, sx_scalar_like(b, x, 0));
}

sx_value sx_triangle(sx_builder *b, sx_value x, bool lower)
{
    return keep_part(b, x, lower ? LOWER : UPPER);
}

sx_value sx_keep_diagonal(sx_builder *b, sx_value x)
{
    return keep_part(b, x, DIAGONAL);
}

sx_value sx_clear_diagonal(sx_builder *b, sx_value x)
{
    return keep_part(b, x, REST);
}

sx_value sx_transposed(sx_builder *b, sx_value x)
{
    const int rank = sx_type_of_value(b, x).rank;
    sx_transpose_attrs swap = {.perm = {.n = rank}};
    for (int d = 0; d < rank; d++) {
        swap.perm.v[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    }
    return sx_build_op(b, transpose, &swap, x);
}

sx_value sx_product(sx_builder *b, sx_value x, bool transpose_x, sx_value y, bool transpose_y)
{
    const sx_matmul_attrs attrs = {.transpose_a = transpose_x, .transpose_b = transpose_y};
    return sx_build_op(b, matmul, &attrs, x, y);
}

sx_value sx_columns(sx_builder *b, sx_value x, int64_t begin, int64_t count)
{
    const sx_type type = sx_type_of_value(b, x);
    sx_slice_attrs cut = {.begin = {.n = type.rank}, .size = sx_ints_of(type.rank, type.dims)};
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    cut.begin.v[type.rank - 1] = begin;
    cut.size.v[type.rank - 1] = count;
    return sx_build_op(b, slice, &cut, x);
}

static sx_value insert_one(sx_builder *b, sx_value x, bool last)
{
    const sx_type type = sx_type_of_value(b, x);
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    sx_shape_attrs shape = {.shape = sx_ints_of(type.rank, type.dims)};
    shape.shape.v[shape.shape.n++] = 1;
    if (!last) {
        shape.shape.v[type.rank] = type.dims[type.rank - 1];
        shape.shape.v[type.rank - 1] = 1;
    }
    return sx_build_op(b, reshape, &shape, x);
}

sx_value sx_as_row(sx_builder *b, sx_value x)
{
    return insert_one(b, x, false);
}

sx_value sx_as_column(sx_builder *b, sx_value x)
{
    return insert_one(b, x, true);
}

sx_value sx_safe_reciprocal(sx_builder *b, sx_value x)
{
    const sx_value square = sx_build_op(b, square, NULL, x);
    return sx_build_op(b, div, NULL, x,
                       sx_build_op(b, add, NULL, square, sx_scalar_like(b, x, 1e-20)));
}

/* ---- Running ---- */

sx_matrices sx_matrices_of(const sx_type *t)
{
    return (sx_matrices){.count = sx_dims_product(t, 0, t->rank - 2),
                         .rows = t->dims[t->rank - 2],
                         .columns = t->dims[t->rank - 1]};
}

double *sx_matrix_room(const sx_kernel_call *c, int64_t n)
{
    return sx_arena_array(c->arena, n + 1, double);
}

/* solve_by_halves() of a small a. */
SX_CLONES static void solve_rows(sx_matrix_view a, int64_t n, bool forward, bool unit, double *x,
                                 int64_t row_x, int64_t columns)
{
    for (int64_t at = 0; at < n; at++) {
        const int64_t i = forward ? at : n - 1 - at;
        double *row = x + i * row_x;
        for (int64_t before = 0; before < at; before++) {
            const int64_t k = forward ? before : n - 1 - before;
            const double factor = a.at[i * a.row + k * a.column];
            for (int64_t j = 0; j < columns; j++) {
                row[j] -= factor * x[k * row_x + j];
            }
        }
        for (int64_t j = 0; j < columns && !unit; j++) {
            row[j] /= a.at[i * (a.row + a.column)];
        }
    }
}

/* Solves a x = x in place, a [n,n] triangular, x [n,columns] with rows row_x apart: from the first
 * row on if `forward`; `unit`: the diagonal counts as 1. By halves, so that most of it is a
 * product. */
static void solve_by_halves(sx_matrix_view a, int64_t n, bool forward, bool unit, double *x,
                            int64_t row_x, int64_t columns)
{
    if (n > BASE) {
        const int64_t half = n / 2, first = forward ? 0 : half, second = half - first;
        const int64_t sizes[2] = {forward ? half : n - half, forward ? n - half : half};
        const sx_matrix_view at_first = {a.at + first * (a.row + a.column), a.row, a.column},
                             at_second = {a.at + second * (a.row + a.column), a.row, a.column},
                             between = {a.at + second * a.row + first * a.column, a.row, a.column};
        solve_by_halves(at_first, sizes[0], forward, unit, x + first * row_x, row_x, columns);
        sx_matrix_add_product(x + second * row_x, row_x, sizes[1], columns, sizes[0], -1, between,
                              (sx_matrix_view){x + first * row_x, row_x, 1});
        solve_by_halves(at_second, sizes[1], forward, unit, x + second * row_x, row_x, columns);
        return;
    }
    solve_rows(a, n, forward, unit, x, row_x, columns);
}

/* Columns k and on, to before `last`, of the rows below row k of a, less row k times what makes
 * their column k vanish, which is kept there. */
SX_CLONES static void eliminate(double *a, int64_t n, int64_t k, int64_t last)
{
    const double *pivot = a + k * n;
    for (int64_t i = k + 1; i < n; i++) {
        double *row = a + i * n;
        const double factor = row[k] /= pivot[k];
        for (int64_t j = k + 1; j < last; j++) {
            row[j] -= factor * pivot[j];
        }
    }
}

/* Columns [first, last) of sx_lu_factor(), those before done; by halves. */
static void factor_columns(double *a, int64_t n, int64_t first, int64_t last, int64_t *order,
                           int *sign, bool *regular)
{
    if (last - first > BASE) {
        const int64_t half = first + (last - first) / 2;
        factor_columns(a, n, first, half, order, sign, regular);
        solve_by_halves((sx_matrix_view){a + first * n + first, n, 1}, half - first, true, true,
                        a + first * n + half, n, last - half);
        sx_matrix_add_product(a + half * n + half, n, n - half, last - half, half - first, -1,
                              (sx_matrix_view){a + half * n + first, n, 1},
                              (sx_matrix_view){a + first * n + half, n, 1});
        factor_columns(a, n, half, last, order, sign, regular);
        return;
    }
    for (int64_t k = first; k < last; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        }
        if (pivot != k) {
            const int64_t row = order[k];
            order[k] = order[pivot];
            order[pivot] = row;
            *sign = -*sign;
            for (int64_t j = 0; j < n; j++) {
                const double v = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = v;
            }
        }
        if (a[k * n + k] == 0) {
            *regular = false;
            continue;
        }
        eliminate(a, n, k, last);
    }
}

sx_status sx_lu_factor(const sx_kernel_call *c, double *a, int64_t n, int64_t *order, int *out_sign,
                       bool *out_regular)
{
    *out_sign = 1;
    *out_regular = true;
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (int64_t first = 0; first < n; first += COLUMNS) { /* by pieces that end soon */
        const int64_t last = SX_MIN(first + COLUMNS, n);
        SX_TRY(sx_cancel_check(c->cancel));
        factor_columns(a, n, first, last, order, out_sign, out_regular);
        if (last == n) {
            continue;
        }
        solve_by_halves((sx_matrix_view){a + first * n + first, n, 1}, last - first, true, true,
                        a + first * n + last, n, n - last);
        sx_matrix_add_product(a + last * n + last, n, n - last, n - last, last - first, -1,
                              (sx_matrix_view){a + last * n + first, n, 1},
                              (sx_matrix_view){a + first * n + last, n, 1});
    }
    return SX_OK;
}

double sx_scale_of(double most)
{
    int exponent = 0;
    (void)frexp(most, &exponent);
    return ldexp(1, exponent - 1);
}

sx_status sx_lu_of(const sx_kernel_call *c, int64_t index, int64_t n, bool adjoint, double *lu,
                   int64_t *order)
{
    const double *a = c->in[0].f + index * n * n;
    int sign;
    bool regular;
    if (adjoint) {
        sx_matrix_transpose(lu, n, a, n, n, n);
    } else {
        memcpy(lu, a, (size_t)(n * n) * sizeof(*lu));
    }
    SX_TRY(sx_lu_factor(c, lu, n, order, &sign, &regular));
    return regular ? SX_OK
                   : sx_error(SX_INVALID_ARGUMENT, "matrix %lld has no inverse", (long long)index);
}

void sx_lu_solve(const double *lu, const int64_t *order, int64_t n, const double *b, double *x,
                 int64_t columns)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(x + i * columns, b + order[i] * columns, (size_t)columns * sizeof(*x));
    }
    const sx_matrix_view view = {lu, n, 1};
    solve_by_halves(view, n, true, true, x, columns, columns);
    solve_by_halves(view, n, false, false, x, columns, columns);
}

sx_status sx_matrix_square_root(const sx_kernel_call *c, int64_t index, int64_t n, double *a,
                                double *room, int64_t *order)
{
    enum { MOST_STEPS = 100 };
    const int64_t size = n * n;
    double *m = room, *lu = m + size, *inverse = lu + size, *next = inverse + size, away = INFINITY;
    int sign;
    bool regular = true, finite = true;
    for (int64_t k = 0; k < size; k++) {
        m[k] = a[k];
        finite = finite && isfinite(a[k]);
    }
    for (int64_t k = 0; k < size && !finite; k++) {
        a[k] = NAN;
    }
    /* m becomes 1, and a the root: with w = scale^2,
     *     a <- scale a (1 + m^-1 / w) / 2    m <- (1 + (w m + m^-1 / w) / 2) / 2 */
    for (int step = 0; step < MOST_STEPS && finite && regular && away > 0; step++) {
        double logs = 0, last = away;
        memcpy(lu, m, (size_t)size * sizeof(*lu));
        SX_TRY(sx_lu_factor(c, lu, n, order, &sign, &regular));
        if (!regular) {
            continue;
        }
        memset(next, 0, (size_t)size * sizeof(*next));
        for (int64_t i = 0; i < n; i++) {
            next[i * n + i] = 1;
        }
        sx_lu_solve(lu, order, n, next, inverse, n);
        for (int64_t i = 0; i < n; i++) {
            logs += log(fabs(lu[i * n + i]));
        }
        const double scale = away > 1e-2 ? exp(-logs / (2 * (double)n)) : 1, w = scale * scale;
        for (int64_t k = 0; k < size; k++) {
            lu[k] = inverse[k] / w;
        }
        for (int64_t i = 0; i < n; i++) {
            lu[i * n + i] += 1;
        }
        memset(next, 0, (size_t)size * sizeof(*next));
        sx_matrix_add_product(next, n, n, n, n, scale / 2, (sx_matrix_view){a, n, 1},
                              (sx_matrix_view){lu, n, 1});
        memcpy(a, next, (size_t)size * sizeof(*a));
        away = 0;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++) {
                const int64_t k = i * n + j;
                const double one = i == j;
                m[k] = (one + (w * m[k] + inverse[k] / w) / 2) / 2;
                away = fmax(away, fabs(m[k] - one));
            }
        }
        /* as near as rounding lets it come; the distance is squared in each step */
        if (away < 1e-7 && (away >= last || last < 1e-8)) {
            away = 0;
        }
    }
    return !finite || away < 1e-7
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "matrix %lld has no inverse, or a real eigenvalue that is negative: it "
                          "has no square root here",
                          (long long)index);
}

void sx_triangular_solve(const double *a, int64_t n, bool lower, bool transposed, double *x,
                         int64_t columns)
{
    const sx_matrix_view view = {a, transposed ? 1 : n, transposed ? n : 1};
    solve_by_halves(view, n, lower != transposed, false, x, columns, columns);
}

/* x [rows,n], whose rows are row_x apart, becomes x l^-T, l [n,n] lower triangular in a matrix
 * whose rows are row_l apart. */
static void divide_by_lower(const double *l, int64_t row_l, int64_t n, double *x, int64_t row_x,
                            int64_t rows)
{
    double turned[BASE * COLUMNS];
    if (n > BASE) {
        const int64_t half = n / 2;
        divide_by_lower(l, row_l, half, x, row_x, rows);
        sx_matrix_add_product(x + half, row_x, rows, n - half, half, -1,
                              (sx_matrix_view){x, row_x, 1},
                              (sx_matrix_view){l + half * row_l, 1, row_l});
        divide_by_lower(l + half * row_l + half, row_l, n - half, x + half, row_x, rows);
        return;
    }
    for (int64_t i = 0; i < rows; i += COLUMNS) {
        const int64_t some = SX_MIN(rows - i, COLUMNS);
        sx_matrix_transpose(turned, some, x + i * row_x, row_x, some, n);
        solve_by_halves((sx_matrix_view){l, row_l, 1}, n, true, false, turned, some, some);
        sx_matrix_transpose(x + i * row_x, row_x, turned, some, n, some);
    }
}

/* The lower triangle of a [n,n], whose rows are `row` apart, as of sx_cholesky_factor(). */
static bool cholesky_by_halves(double *a, int64_t row, int64_t n)
{
    if (n > BASE) {
        const int64_t half = n / 2;
        double *below = a + half * row, *rest = below + half;
        if (!cholesky_by_halves(a, row, half)) {
            return false;
        }
        divide_by_lower(a, row, half, below, row, n - half);
        for (int64_t i = 0; i < n - half; i += COLUMNS) { /* little above the diagonal */
            const int64_t rows = SX_MIN(n - half - i, COLUMNS);
            sx_matrix_add_product(rest + i * row, row, rows, i + rows, half, -1,
                                  (sx_matrix_view){below + i * row, row, 1},
                                  (sx_matrix_view){below, 1, row});
        }
        return cholesky_by_halves(rest, row, n - half);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = a[i * row + j];
            for (int64_t k = 0; k < j; k++) {
                sum -= a[i * row + k] * a[j * row + k];
            }
            if (i == j && !(sum > 0)) {
                return false;
            }
            a[i * row + j] = i == j ? sqrt(sum) : sum / a[j * row + j];
        }
    }
    return true;
}

bool sx_cholesky_factor(double *a, int64_t n)
{
    if (!cholesky_by_halves(a, n, n)) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        memset(a + i * n + i + 1, 0, (size_t)(n - 1 - i) * sizeof(*a));
    }
    return true;
}
