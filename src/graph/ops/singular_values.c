/* sx_svd_factor() of linear_algebra.h: reflections make a matrix bidiagonal, rotations that
 * diagonal (G. Golub, C. Van Loan, Matrix Computations, 5.4 and 8.6). */
#include <float.h>
#include <string.h>

#include "graph/ops/linear_algebra.h"
#include "graph/ops/matrix_loops.h"
#include "graph/ops/reflections.h"

enum { MOST_SWEEPS = 8 }; /* that wait until the vectors turn */

/* What becomes of a matrix, or of its transpose: [large,small]. */
struct sx_svd {
    bool wide;                       /* of its transpose */
    int64_t large, small, wanted;    /* wanted: columns of the vectors of its rows */
    double *d, *e;                   /* [small] the diagonal, and the one above it */
    double *a;                       /* [large,small] */
    double *left, *right;            /* [small,large], [small,small] reflections, then vectors: */
    int64_t left_apart, right_apart; /* from a row to the next, of [wanted,large], [small,small] */
    double *left_factors, *right_factors;
    double *turned; /* [large,wanted], and at least [small,small] */
    double *room;
    int64_t *order; /* [small] */
};
typedef struct sx_svd values;

sx_status sx_svd_prepare(const sx_kernel_call *c, int64_t m, int64_t n, bool full, sx_svd **out)
{
    const int64_t large = SX_MAX(m, n), small = SX_MIN(m, n), wanted = full ? large : small;
    sx_svd *x = sx_arena_new(c->arena, sx_svd);
    if (x == NULL) {
        return sx_no_memory("for singular values");
    }
    *x = (sx_svd){.wide = m < n,
                  .large = large,
                  .small = small,
                  .wanted = wanted,
                  .left_apart = sx_row_apart(large),
                  .right_apart = sx_row_apart(small)};
    const struct {
        double **at;
        int64_t size;
    } parts[] = {
        {&x->d, small},
        {&x->e, small},
        {&x->a, large * small},
        {&x->left, wanted * sx_row_apart(large)},
        {&x->right, small * sx_row_apart(small)},
        {&x->left_factors, small},
        {&x->right_factors, small},
        {&x->turned, wanted * large},
        {&x->room, sx_reflections_room(wanted) + MOST_SWEEPS * 4 * small},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        *parts[i].at = sx_matrix_room(c, parts[i].size);
        if (*parts[i].at == NULL) {
            return sx_no_memory("for singular vectors");
        }
    }
    x->order = sx_arena_array(c->arena, small + 1, int64_t);
    *out = x;
    return x->order != NULL ? SX_OK : sx_no_memory("for singular vectors");
}

static void to_bidiagonal(const values *x)
{
    const int64_t m = x->large, n = x->small;
    double *w = x->room;
    for (int64_t k = 0; k < n; k++) {
        double *v = x->left + k * m, *u = x->right + k * n, *row = x->a + k * n;
        const int64_t next = k + 1, rest = n - next;
        memset(v, 0, (size_t)k * sizeof(*v));
        for (int64_t i = k; i < m; i++) {
            v[i] = x->a[i * n + k];
        }
        x->left_factors[k] = sx_reflection(v + k, m - k, &x->d[k]);
        memset(w, 0, (size_t)n * sizeof(*w));
        sx_row_add_rows(w + next, v + k, row + next, n, m - k, rest);
        for (int64_t j = next; j < n; j++) {
            w[j] *= x->left_factors[k];
            row[j] -= w[j];
        }
        x->e[k] = rest > 0 ? row[next] : 0;
        if (rest < 2) {
            for (int64_t i = next; i < m && rest > 0; i++) {
                x->a[i * n + next] -= v[i] * w[next];
            }
            continue;
        }
        memset(u, 0, (size_t)next * sizeof(*u));
        memcpy(u + next, row + next, (size_t)rest * sizeof(*u));
        x->right_factors[k] = sx_reflection(u + next, rest, &x->e[k]);
        for (int64_t i = next; i < m; i++) {
            double *below = x->a + i * n + next;
            sx_row_add(below, -v[i], w + next, rest);
            const double dot = sx_row_dot(below, u + next, rest);
            sx_row_add(below, -x->right_factors[k] * dot, u + next, rest);
        }
    }
}

/* The rotation of (x, y) to (length, 0). */
typedef struct rotation {
    double c, s, length;
} rotation;

static rotation rotation_of(double x, double y)
{
    const double length = sqrt(x * x + y * y);
    return length > 0 ? (rotation){x / length, y / length, length} : (rotation){1, 0, 0};
}

/* d[at] is 0: rotates the rest of its row away, with the rows below it up to `last`. */
static void clear_row(const values *x, int64_t at, int64_t last, bool vectors)
{
    double away = x->e[at];
    x->e[at] = 0;
    for (int64_t j = at + 1; j <= last && away != 0; j++) {
        const rotation r = rotation_of(x->d[j], away);
        x->d[j] = r.length;
        away = -r.s * x->e[j];
        x->e[j] *= r.c;
        if (vectors) {
            sx_row_rotate(x->left + j * x->left_apart, x->left + at * x->left_apart, x->large, r.c,
                          r.s);
        }
    }
}

/* d[at] is 0: rotates the rest of its column away, with the columns before it from `first` on. */
static void clear_column(const values *x, int64_t first, int64_t at, bool vectors)
{
    double away = x->e[at - 1];
    x->e[at - 1] = 0;
    for (int64_t j = at - 1; j >= first && away != 0; j--) {
        const rotation r = rotation_of(x->d[j], away);
        x->d[j] = r.length;
        if (j > first) {
            away = -r.s * x->e[j - 1];
            x->e[j - 1] *= r.c;
        }
        if (vectors) {
            sx_row_rotate(x->right + j * x->right_apart, x->right + at * x->right_apart, x->small,
                          r.c, r.s);
        }
    }
}

/* One step of the QR algorithm on rows and columns [first, last]: its rotations are in turns [4
 * small], those of the rows of `right` before those of `left`. */
static void qr_step(const values *x, int64_t first, int64_t last, double *turns)
{
    double *d = x->d, *e = x->e;
    const int64_t n = x->small;
    /* of the last two rows of bᵀ b, b the matrix: the value that is next to the last element */
    const double above = last - 1 > first ? e[last - 2] : 0;
    const double p = d[last - 1] * d[last - 1] + above * above,
                 q = d[last] * d[last] + e[last - 1] * e[last - 1],
                 beside = d[last - 1] * e[last - 1], half = (p - q) / 2;
    const double far = half + copysign(hypot(half, beside), half);
    const double shift = far != 0 ? q - beside / far * beside : q;
    double y = d[first] * d[first] - shift, z = d[first] * e[first];
    for (int64_t k = first; k < last; k++) {
        rotation r = rotation_of(y, z);
        if (k > first) {
            e[k - 1] = r.length;
        }
        y = r.c * d[k] + r.s * e[k];
        e[k] = r.c * e[k] - r.s * d[k];
        z = r.s * d[k + 1];
        d[k + 1] *= r.c;
        turns[k] = r.c;
        turns[n + k] = r.s;
        r = rotation_of(y, z);
        d[k] = r.length;
        y = r.c * e[k] + r.s * d[k + 1];
        d[k + 1] = r.c * d[k + 1] - r.s * e[k];
        e[k] = y;
        if (k + 1 < last) {
            z = r.s * e[k + 1];
            e[k + 1] *= r.c;
        }
        turns[2 * n + k] = r.c;
        turns[3 * n + k] = r.s;
    }
}

/* Sweeps that wait until vectors turn. */
typedef struct sweeps {
    int count;
    sx_row_sweep left[MOST_SWEEPS], right[MOST_SWEEPS];
} sweeps;

static void turn(const values *x, sweeps *waiting)
{
    sx_rows_rotate(x->left, x->left_apart, x->large, waiting->left, waiting->count);
    sx_rows_rotate(x->right, x->right_apart, x->small, waiting->right, waiting->count);
    waiting->count = 0;
}

/* Makes the bidiagonal matrix diagonal; rows of left and right turn with its rows and columns. */
static sx_status to_diagonal(const sx_kernel_call *c, const values *x, bool vectors)
{
    enum { MOST_TRIES = 100 }; /* for one value */
    const double *d = x->d, *e = x->e;
    sweeps waiting = {0};
    double most = 0;
    int64_t tries = 0;
    for (int64_t k = 0; k < x->small; k++) {
        most = fmax(most, fmax(fabs(d[k]), fabs(e[k])));
    }
    const double least = DBL_EPSILON * most;
    for (int64_t last = x->small - 1; last > 0;) {
        int64_t first = last;
        while (first > 0 &&
               fabs(e[first - 1]) > DBL_EPSILON * (fabs(d[first - 1]) + fabs(d[first])) &&
               fabs(e[first - 1]) > DBL_EPSILON * least) {
            first--;
        }
        if (first == last) {
            last--;
            tries = 0;
            continue;
        }
        if (++tries > MOST_TRIES) {
            return sx_error(SX_INVALID_ARGUMENT, "the singular values of a matrix are not found");
        }
        SX_TRY(sx_cancel_check(c->cancel));
        int64_t zero = last;
        while (zero >= first && fabs(d[zero]) > least) {
            zero--;
        }
        if (zero >= first) {
            turn(x, &waiting);
            x->d[zero] = 0;
            if (zero == last) {
                clear_column(x, first, last, vectors);
            } else {
                clear_row(x, zero, last, vectors);
            }
            continue;
        }
        double *turns = x->room + waiting.count * 4 * x->small;
        qr_step(x, first, last, turns);
        waiting.right[waiting.count] = (sx_row_sweep){first, last, turns, turns + x->small};
        waiting.left[waiting.count] =
            (sx_row_sweep){first, last, turns + 2 * x->small, turns + 3 * x->small};
        waiting.count += vectors;
        if (waiting.count == MOST_SWEEPS) {
            turn(x, &waiting);
        }
    }
    turn(x, &waiting);
    return SX_OK;
}

/* The rows of from [columns,n], which are `apart`, in order, as columns of to [n,columns]. */
static void put_columns(const values *x, const double *from, int64_t apart, int64_t n,
                        int64_t columns, double *to)
{
    for (int64_t i = 0; i < columns; i++) {
        memcpy(x->turned + i * n, from + (i < x->small ? x->order[i] : i) * apart,
               (size_t)n * sizeof(*to));
    }
    sx_matrix_transpose(to, columns, x->turned, n, columns, n);
}

static void fill_nan(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = NAN;
    }
}

sx_status sx_svd_factor(const sx_kernel_call *c, const sx_svd *x, const double *a, double *s,
                        double *u, double *v)
{
    const int64_t large = x->large, small = x->small, size = large * small;
    const bool vectors = u != NULL;
    double *of_large = x->wide ? v : u, *of_small = x->wide ? u : v, most = 0;
    bool finite = true;
    SX_TRY(sx_cancel_check(c->cancel));
    for (int64_t k = 0; k < size; k++) {
        finite = finite && isfinite(a[k]);
        most = fmax(most, fabs(a[k]));
    }
    if (!finite) {
        fill_nan(s, small);
        fill_nan(of_large, vectors ? large * x->wanted : 0);
        fill_nan(of_small, vectors ? small * small : 0);
        return SX_OK;
    }
    const double scale = sx_scale_of(most);
    if (x->wide) {
        sx_matrix_transpose(x->a, small, a, large, small, large);
    } else {
        memcpy(x->a, a, (size_t)size * sizeof(*a));
    }
    for (int64_t k = 0; k < size; k++) {
        x->a[k] /= scale;
    }
    to_bidiagonal(x);
    if (vectors) {
        const sx_reflections left = {x->left, x->left_factors, small, large, 0},
                             right = {x->right, x->right_factors, SX_MAX(small - 2, 0), small, 1};
        sx_reflections_product(&left, x->turned, x->wanted, x->room);
        sx_matrix_transpose(x->left, x->left_apart, x->turned, x->wanted, large, x->wanted);
        sx_reflections_product(&right, x->turned, small, x->room);
        sx_matrix_transpose(x->right, x->right_apart, x->turned, small, small, small);
    }
    SX_TRY(to_diagonal(c, x, vectors));
    for (int64_t i = 0; i < small; i++) { /* by insertion, descending */
        const double value = fabs(x->d[i]) * scale;
        int64_t at = i;
        for (int64_t k = 0; k < small && x->d[i] < 0 && vectors; k++) {
            x->right[i * x->right_apart + k] = -x->right[i * x->right_apart + k];
        }
        for (; at > 0 && s[at - 1] < value; at--) {
            s[at] = s[at - 1];
            x->order[at] = x->order[at - 1];
        }
        s[at] = value;
        x->order[at] = i;
    }
    if (vectors) {
        put_columns(x, x->left, x->left_apart, large, x->wanted, of_large);
        put_columns(x, x->right, x->right_apart, small, small, of_small);
    }
    return SX_OK;
}
