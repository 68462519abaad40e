/* complex_svd: x = u diag(s) vᴴ of matrices of complex numbers, with orthonormal columns of u and
 * v, s >= 0 in descending order.
 *
 *   re, im         [...,m,n] of one type, any float: the parts of x
 *   compute_uv     otherwise u and v are [0]
 *   full_matrices  u [...,m,m], v [...,n,n]; otherwise [...,m,p] and [...,n,p] with p = min(m, n)
 *   returns        s [...,p], the parts of u, and of v
 *
 * Errors   INVALID_ARGUMENT  no float, rank below 2, types that differ
 * Numbers  in double, by Jacobi's rotations of pairs of columns; the angles of the vectors, and
 *          those of equal singular values, are ours; NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.svd of complex numbers; G. Golub, C. Van Loan, Matrix
 *          Computations, 8.6 */
#ifdef SX_ATTRS
typedef struct sx_complex_svd_attrs {
    bool compute_uv, full_matrices;
} sx_complex_svd_attrs;
#endif

#include <complex.h>
#include <float.h>

#include "graph/ops/linear_algebra.h"
#include "graph/ops/rotations.h"

static const sx_attr_def complex_svd_attrs[] = {
    SX_ATTR(sx_complex_svd_attrs, compute_uv, SX_ATTR_BOOL),
    SX_ATTR(sx_complex_svd_attrs, full_matrices, SX_ATTR_BOOL),
};

static sx_status complex_svd_infer(sx_infer_context *c)
{
    const sx_complex_svd_attrs *attrs = c->attrs;
    sx_type both;
    SX_TRY(sx_require_parts(c, sx_require_matrices, &both));
    const sx_type heads = sx_heads_of(&both, 2);
    const int64_t m = sx_matrix_dim(&both, 2), n = sx_matrix_dim(&both, 1);
    const int64_t p = m < 0 || n < 0 ? SX_UNKNOWN_DIM : SX_MIN(m, n);
    c->outputs[0] = heads;
    if (heads.rank >= 0) {
        c->outputs[0].dims[c->outputs[0].rank++] = p;
    }
    for (int i = 1; i < 5; i++) {
        const int64_t rows = i < 3 ? m : n;
        c->outputs[i] = attrs->compute_uv
                            ? sx_matrices_type(&heads, rows, attrs->full_matrices ? rows : p)
                            : sx_type_of(both.dtype, 0);
    }
    return SX_OK;
}

/* Of w, n columns of m elements one after the other, m >= n: w j with columns that are orthogonal
 * to one another, for the product j of the rotations; v, n columns of n, becomes v j. */
static void make_orthogonal(double complex *w, double complex *v, int64_t m, int64_t n)
{
    bool turned = true;
    for (int sweep = 0; sweep < SX_MOST_SWEEPS && turned; sweep++) {
        turned = false;
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                double complex *x = w + p * m, *y = w + q * m, between = 0;
                double left = 0, right = 0;
                for (int64_t i = 0; i < m; i++) {
                    left += creal(x[i] * conj(x[i]));
                    right += creal(y[i] * conj(y[i]));
                    between += conj(x[i]) * y[i];
                }
                if (cabs(between) > DBL_EPSILON * sqrt(left * right) && cabs(between) > DBL_MIN) {
                    const sx_rotation r = sx_rotation_of(left, right, between);
                    turned = true;
                    sx_rotate(&r, x, y, m, 1);
                    sx_rotate(&r, v + p * n, v + q * n, n, 1);
                }
            }
        }
    }
}

static void subtract_projections(double complex *y, const double complex *u, int64_t m,
                                 int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        double complex dot = 0;
        for (int64_t i = 0; i < m; i++) {
            dot += conj(u[k * m + i]) * y[i];
        }
        for (int64_t i = 0; i < m; i++) {
            y[i] -= dot * u[k * m + i];
        }
    }
}

/* Column `count` of u, m elements each: of length 1, orthogonal to those before. It is made of the
 * axis of which they have the least. */
static void add_column(double complex *u, int64_t m, int64_t count)
{
    double complex *own = u + count * m;
    double least = INFINITY, size = 0;
    int64_t axis = 0;
    for (int64_t i = 0; i < m; i++) {
        double taken = 0;
        for (int64_t k = 0; k < count; k++) {
            taken += creal(u[k * m + i] * conj(u[k * m + i]));
        }
        axis = taken < least ? i : axis;
        least = fmin(least, taken);
    }
    for (int64_t i = 0; i < m; i++) {
        own[i] = i == axis;
    }
    subtract_projections(own, u, m, count);
    subtract_projections(own, u, m, count); /* what the first time has rounded */
    for (int64_t i = 0; i < m; i++) {
        size += creal(own[i] * conj(own[i]));
    }
    for (int64_t i = 0; i < m; i++) {
        own[i] /= sqrt(size);
    }
}

/* Memory of one matrix of at least as many rows, m, as columns, n: columns one after the other. */
typedef struct svd_room {
    int64_t m, n;
    double complex *w, *v;   /* n columns of m, of n */
    double complex *u, *own; /* m columns of m, n of n: the vectors in order */
    double *sizes;
    int64_t *order;
} svd_room;

/* s, u and `own` of w. Columns of size 0 leave those of u open. */
static void factor(svd_room *r, double *s)
{
    const int64_t m = r->m, n = r->n;
    for (int64_t k = 0; k < n * n; k++) {
        r->v[k] = k / n == k % n;
    }
    make_orthogonal(r->w, r->v, m, n);
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++) {
            sum += creal(r->w[j * m + i] * conj(r->w[j * m + i]));
        }
        r->sizes[j] = sqrt(sum);
        r->order[j] = j;
        for (int64_t k = j; k > 0 && r->sizes[r->order[k]] > r->sizes[r->order[k - 1]]; k--) {
            const int64_t later = r->order[k - 1];
            r->order[k - 1] = r->order[k];
            r->order[k] = later;
        }
    }
    for (int64_t j = 0; j < m; j++) {
        const int64_t from = j < n ? r->order[j] : 0;
        const double size = j < n ? r->sizes[from] : 0;
        for (int64_t i = 0; i < m && size > DBL_EPSILON * r->sizes[r->order[0]]; i++) {
            r->u[j * m + i] = r->w[from * m + i] / size;
        }
        if (!(size > DBL_EPSILON * (n > 0 ? r->sizes[r->order[0]] : 0))) {
            add_column(r->u, m, j);
        }
        for (int64_t i = 0; i < n && j < n; i++) {
            r->own[j * n + i] = r->v[from * n + i];
        }
        if (j < n) {
            s[j] = size;
        }
    }
}

/* Columns of `size` elements as a matrix of `columns`. */
static void put(const double complex *from, int64_t size, int64_t columns, bool finite, double *re,
                double *im)
{
    for (int64_t k = 0; k < size * columns; k++) {
        const double complex z = from[k % columns * size + k / columns];
        re[k] = finite ? creal(z) : (double)NAN;
        im[k] = finite ? cimag(z) : (double)NAN;
    }
}

static sx_status complex_svd_host(const sx_kernel_call *c)
{
    const sx_complex_svd_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t rows = x.rows, columns = x.columns, p = SX_MIN(rows, columns);
    const bool turned = rows < columns; /* xᴴ = v diag(s) uᴴ */
    svd_room r = {.m = SX_MAX(rows, columns), .n = p};
    const int64_t of_u = attrs->full_matrices ? rows : p, of_v = attrs->full_matrices ? columns : p;
    r.w = sx_arena_array(c->arena, r.m * r.n + 1, double complex);
    r.v = sx_arena_array(c->arena, r.n * r.n + 1, double complex);
    r.own = sx_arena_array(c->arena, r.n * r.n + 1, double complex);
    r.u = sx_arena_array(c->arena, r.m * r.m + 1, double complex);
    r.sizes = sx_arena_array(c->arena, r.n + 1, double);
    r.order = sx_arena_array(c->arena, r.n + 1, int64_t);
    if (r.w == NULL || r.v == NULL || r.own == NULL || r.u == NULL || r.sizes == NULL ||
        r.order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t at = 0; at < x.count; at++) {
        double most = 0, *s = c->out[0].f + at * p;
        bool finite = true;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < rows * columns; k++) {
            const double re = c->in[0].f[at * rows * columns + k],
                         im = c->in[1].f[at * rows * columns + k];
            finite = finite && isfinite(re) && isfinite(im);
            most = fmax(most, fmax(fabs(re), fabs(im)));
        }
        const double scale = sx_scale_of(most);
        for (int64_t k = 0; k < rows * columns; k++) {
            const int64_t i = k / columns, j = k % columns;
            const double re = c->in[0].f[at * rows * columns + k] / scale,
                         im = c->in[1].f[at * rows * columns + k] / scale;
            r.w[turned ? i * r.m + j : j * r.m + i] = finite ? re + (turned ? -im : im) * I : 0;
        }
        factor(&r, s);
        for (int64_t k = 0; k < p; k++) {
            s[k] = finite ? s[k] * scale : (double)NAN;
        }
        if (attrs->compute_uv) {
            put(turned ? r.own : r.u, rows, of_u, finite, c->out[1].f + at * rows * of_u,
                c->out[2].f + at * rows * of_u);
            put(turned ? r.u : r.own, columns, of_v, finite, c->out[3].f + at * columns * of_v,
                c->out[4].f + at * columns * of_v);
        }
    }
    return SX_OK;
}

static const sx_op_sample complex_svd_samples[] = {
    {.name = "values",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 4, 3)},
     .n_inputs = 2}, /* the angles of vectors are open */
    {.name = "wide",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3)},
     .n_inputs = 2},
};

const sx_op_def sx_op_complex_svd = {
    SX_OP_NAMED(complex_svd),
    .n_in = 2,
    .n_out = 5,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_complex_svd_attrs, complex_svd_attrs),
    .infer = complex_svd_infer,
    .host = complex_svd_host,
    SX_OP_SAMPLES(complex_svd_samples),
};
