/* eig: x v = v diag(e) of square matrices of complex numbers, e in ascending order of their size.
 *
 *   re, im     [...,n,n] of one type, any float: the parts of x
 *   compute_v  otherwise v is [0]
 *   is_real    im is 0, and e has TensorFlow's order for real matrices: that in which Francis'
 *              double steps, in the type's precision, leave them
 *   returns    the parts of e, [...,n], and of v, [...,n,n], whose columns have length 1
 *
 * Errors   INVALID_ARGUMENT  no float, not square, types that differ; (running) a matrix whose
 *                            values are not found
 * Numbers  in double, by rotations that make the matrix triangular (the QR algorithm with
 *          Wilkinson's shifts); the angle of a vector, and the vectors of equal values, are ours;
 *          NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.eig; G. Golub, C. Van Loan, Matrix Computations, 7.4, 7.5 */
#ifdef SX_ATTRS
typedef struct sx_eig_attrs {
    bool compute_v, is_real;
} sx_eig_attrs;
#endif

#include <complex.h>
#include <float.h>

#include "base/clones.h"
#include "graph/ops/linear_algebra.h"

static const sx_attr_def eig_attrs[] = {SX_ATTR(sx_eig_attrs, compute_v, SX_ATTR_BOOL),
                                        SX_ATTR(sx_eig_attrs, is_real, SX_ATTR_BOOL)};

static sx_status eig_infer(sx_infer_context *c)
{
    const sx_eig_attrs *attrs = c->attrs;
    sx_type both;
    SX_TRY(sx_require_parts(c, sx_require_square, &both));
    c->outputs[0] = c->outputs[1] = sx_heads_of(&both, 1);
    c->outputs[2] = c->outputs[3] = attrs->compute_v ? both : sx_type_of(both.dtype, 0);
    return SX_OK;
}

static double size_of(double complex z)
{
    return fabs(creal(z)) + fabs(cimag(z));
}

static double square_of(double complex z)
{
    return creal(z) * creal(z) + cimag(z) * cimag(z);
}

enum { MOST_TRIES = 300 }; /* for one value */

/* ---- To a triangle ---- */

/* The rotation of two numbers (a, b) to (length, 0): [c, s; -conj(s), c]. */
typedef struct rotation {
    double c;
    double complex s;
} rotation;

static rotation rotation_of(double complex a, double complex b)
{
    const double aa = square_of(a), bb = square_of(b);
    if (aa > 1e-200 && bb > 1e-200) { /* no element is above the matrix' size */
        const double length = sqrt(aa + bb), size = sqrt(aa);
        const double complex both = a * conj(b);
        return (rotation){size / length, both / (size * length)};
    }
    const double length = hypot(cabs(a), cabs(b));
    if (b == 0 || length == 0) {
        return (rotation){1, 0};
    }
    const double complex turn = a == 0 ? 1 : a / cabs(a);
    return (rotation){cabs(a) / length, turn * conj(b) / length};
}

/* x, y = c x + s y, c y - conj(s) x; of parts, without the checks for infinities of C's products.
 */
static inline void rotate_pair(double *x, double *y, double c, double re, double im)
{
    const double x0 = x[0], x1 = x[1], y0 = y[0], y1 = y[1];
    x[0] = c * x0 + (re * y0 - im * y1);
    x[1] = c * x1 + (re * y1 + im * y0);
    y[0] = c * y0 - (re * x0 + im * x1);
    y[1] = c * y1 - (re * x1 - im * x0);
}

SX_CLONES static void rotate_rows(double complex *x, double complex *y, int64_t n, double c,
                                  double re, double im)
{
    double *restrict a = (double *)x, *restrict b = (double *)y;
    for (int64_t k = 0; k < n; k++) {
        rotate_pair(a + 2 * k, b + 2 * k, c, re, im);
    }
}

/* Rotates rows i and i + 1 of t [n,n] from column `from` on, and columns of t up to row `to`, and
 * of u, which is kept transposed. */
static void rotate(double complex *t, double complex *u, int64_t n, int64_t i, int64_t from,
                   int64_t to, rotation r)
{
    const double re = creal(r.s), im = cimag(r.s);
    rotate_rows(t + i * n + from, t + (i + 1) * n + from, n - from, r.c, re, im);
    for (int64_t k = 0; k <= to; k++) {
        double *pair = (double *)(t + k * n + i);
        rotate_pair(pair, pair + 2, r.c, re, -im);
    }
    rotate_rows(u + i * n, u + (i + 1) * n, n, r.c, re, -im);
}

/* x, in t, to uᴴ x u, 0 below the diagonal next to the main one; u begins as the identity. */
static sx_status to_hessenberg(const sx_kernel_call *c, double complex *t, double complex *u,
                               int64_t n)
{
    for (int64_t k = 0; k + 2 < n; k++) {
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t i = n - 2; i > k; i--) {
            if (t[(i + 1) * n + k] != 0) {
                rotate(t, u, n, i, k, n - 1, rotation_of(t[i * n + k], t[(i + 1) * n + k]));
                t[(i + 1) * n + k] = 0;
            }
        }
    }
    return SX_OK;
}

/* Whether t[i+1,i] is as good as 0, which it then becomes. */
static bool vanishes(double complex *t, int64_t n, int64_t i)
{
    const double around = size_of(t[i * n + i]) + size_of(t[(i + 1) * n + i + 1]);
    if (size_of(t[(i + 1) * n + i]) > DBL_EPSILON * around &&
        size_of(t[(i + 1) * n + i]) > DBL_MIN) {
        return false;
    }
    t[(i + 1) * n + i] = 0;
    return true;
}

/* The value of the block that ends at `last` that is next to its last element. */
static double complex shift_of(const double complex *t, int64_t n, int64_t last, int64_t tries)
{
    const double complex *above = t + (last - 1) * n + last - 1, *below = above + n;
    if (tries % 10 == 0) { /* in case it goes round in circles */
        return below[1] + size_of(below[0]);
    }
    const double scale =
        size_of(above[0]) + size_of(above[1]) + size_of(below[0]) + size_of(below[1]);
    const double complex a = above[0] / scale, d = below[1] / scale;
    const double complex bc = (above[1] / scale) * (below[0] / scale), half = (a - d) / 2;
    const double complex root = csqrt(half * half + bc);
    const double complex far =
        size_of(half + root) > size_of(half - root) ? half + root : half - root;
    return (far == 0 ? d : d - bc / far) * scale;
}

/* t, of to_hessenberg(), to an upper triangle. *out_found: whether it ended. */
static sx_status to_triangle(const sx_kernel_call *c, double complex *t, double complex *u,
                             int64_t n, bool *out_found)
{
    int64_t tries = 0;
    *out_found = true;
    for (int64_t last = n - 1; last > 0;) {
        if (vanishes(t, n, last - 1)) {
            last--;
            tries = 0;
            continue;
        }
        if (++tries > MOST_TRIES) {
            *out_found = false;
            return SX_OK;
        }
        SX_TRY(sx_cancel_check(c->cancel));
        int64_t first = last - 1;
        while (first > 0 && !vanishes(t, n, first - 1)) {
            first--;
        }
        const double complex shift = shift_of(t, n, last, tries);
        rotation r = rotation_of(t[first * n + first] - shift, t[(first + 1) * n + first]);
        rotate(t, u, n, first, first, SX_MIN(first + 2, last), r);
        for (int64_t i = first + 1; i < last; i++) {
            r = rotation_of(t[i * n + i - 1], t[(i + 1) * n + i - 1]);
            rotate(t, u, n, i, i - 1, SX_MIN(i + 2, last), r);
            t[(i + 1) * n + i - 1] = 0;
        }
    }
    return SX_OK;
}

/* ---- The order of the values of a real matrix ---- */

/* One double step on rows and columns first ... last of h, whose shifts have the sum x + y and the
 * product x y - w. */
static void francis_step(double *h, int64_t n, int64_t first, int64_t last, double x, double y,
                         double w, double eps)
{
    double v[3];
    int64_t from = last - 1;
    do { /* where two small elements in a row let it begin */
        from--;
        const double *at = h + from * n + from, r = x - at[0], s = y - at[0];
        v[0] = (r * s - w) / at[n] + at[1];
        v[1] = at[n + 1] - at[0] - r - s;
        v[2] = at[2 * n + 1];
        if (from > first &&
            fabs(at[-1]) * (fabs(v[1]) + fabs(v[2])) <
                eps * fabs(v[0]) * (fabs(at[-n - 1]) + fabs(at[0]) + fabs(at[n + 1]))) {
            break;
        }
    } while (from > first);
    for (int64_t k = from; k < last; k++) {
        const int64_t size = SX_MIN(3, last - k + 1);
        for (int64_t i = 0; i < 3 && k > from; i++) {
            v[i] = i < size ? h[(k + i) * n + k - 1] : 0;
        }
        const double rest = v[1] * v[1] + v[2] * v[2];
        const double beta = -copysign(sqrt(v[0] * v[0] + rest), v[0]);
        if (rest == 0) {
            continue;
        }
        for (int64_t i = 0; i < size && k > from; i++) {
            h[(k + i) * n + k - 1] = i == 0 ? beta : 0;
        }
        if (k == from && k > first) {
            h[k * n + k - 1] = -h[k * n + k - 1];
        }
        v[0] -= beta;
        const double tau = 2 / (v[0] * v[0] + rest);
        for (int64_t j = k; j <= last; j++) {
            double sum = 0;
            for (int64_t i = 0; i < size; i++) {
                sum += v[i] * h[(k + i) * n + j];
            }
            for (int64_t i = 0; i < size; i++) {
                h[(k + i) * n + j] -= tau * sum * v[i];
            }
        }
        for (int64_t i = first; i <= SX_MIN(last, k + 3); i++) {
            double sum = 0;
            for (int64_t j = 0; j < size; j++) {
                sum += v[j] * h[i * n + k + j];
            }
            for (int64_t j = 0; j < size; j++) {
                h[i * n + k + j] -= tau * sum * v[j];
            }
        }
    }
}

/* To e[n]: the values of h, whose elements below the diagonal next to the main one are 0, to about
 * `eps`, each where it ends. */
static sx_status francis_values(const sx_kernel_call *c, double *h, int64_t n, double eps,
                                double complex *e)
{
    int64_t tries = 0;
    for (int64_t last = n - 1; last >= 0;) {
        const double *at = h + last * n + last;
        int64_t first = last;
        while (first > 0 &&
               fabs(h[first * n + first - 1]) >
                   eps * (fabs(h[(first - 1) * n + first - 1]) + fabs(h[first * n + first]))) {
            first--;
        }
        SX_TRY(sx_cancel_check(c->cancel));
        if (first == last || tries == MOST_TRIES) {
            e[last--] = at[0];
            tries = 0;
        } else if (first == last - 1) {
            const double half = (at[-n - 1] - at[0]) / 2, square = half * half + at[-1] * at[-n];
            const double complex root = csqrt(square), middle = at[0] + half;
            const double complex turn = square >= 0 && half < 0 ? -root : root;
            e[last - 1] = middle + turn;
            e[last] = middle - turn;
            last -= 2;
            tries = 0;
        } else if (++tries % 10 == 0) { /* in case it goes round in circles */
            const double s = fabs(at[-1]) + fabs(at[-n - 2]), x = at[0] + 0.75 * s;
            francis_step(h, n, first, last, x, x, -0.4375 * s * s, eps);
        } else {
            francis_step(h, n, first, last, at[0], at[-n - 1], at[-1] * at[-n], eps);
        }
    }
    return SX_OK;
}

/* To order[n]: which of the triangle's values is the one nearest to each of e[n]. */
static void order_as(const double complex *e, const double complex *t, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        const int64_t other = order[i];
        for (int64_t k = i + 1; k < n; k++) {
            if (square_of(t[order[k] * n + order[k]] - e[i]) <
                square_of(t[order[best] * n + order[best]] - e[i])) {
                best = k;
            }
        }
        order[i] = order[best];
        order[best] = other;
    }
}

static void order_by_size(const double complex *t, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) { /* by insertion, ascending */
        int64_t at = i;
        const double size = cabs(t[i * n + i]);
        for (; at > 0 && cabs(t[order[at - 1] * n + order[at - 1]]) > size; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

/* ---- Vectors ---- */

/* x += factor y, as rotate_pair() without checks. */
SX_CLONES static void add_row(double complex *x, double complex factor, const double complex *y,
                              int64_t n)
{
    double *restrict a = (double *)x;
    const double *restrict b = (const double *)y, re = creal(factor), im = cimag(factor);
    for (int64_t k = 0; k < 2 * n; k += 2) {
        a[k] += re * b[k] - im * b[k + 1];
        a[k + 1] += re * b[k + 1] + im * b[k];
    }
}

/* To v[n]: the transposed of u times the vector of the triangle t that goes with value k, own[k +
 * 1], of length 1. No element of the matrix is above 1, and values that are closer than rounding
 * count as equal. */
static void vector_of(const double complex *t, const double complex *u, int64_t n, int64_t k,
                      double complex *own, double complex *v)
{
    double length = 0;
    own[k] = 1;
    for (int64_t i = k - 1; i >= 0; i--) {
        double complex gap = t[i * n + i] - t[k * n + k];
        double re = 0, im = 0;
        for (int64_t j = i + 1; j <= k; j++) {
            const double x[4] = {creal(t[i * n + j]), cimag(t[i * n + j]), creal(own[j]),
                                 cimag(own[j])};
            re += x[0] * x[2] - x[1] * x[3];
            im += x[0] * x[3] + x[1] * x[2];
        }
        gap = size_of(gap) <= DBL_EPSILON ? DBL_EPSILON : gap;
        own[i] = -(re + im * I) / gap;
        const double size = size_of(own[i]);
        for (int64_t j = i; j <= k && size > 1e100; j++) { /* squares are not to overflow */
            own[j] /= size;
        }
    }
    memset(v, 0, (size_t)n * sizeof(*v));
    for (int64_t j = 0; j <= k; j++) {
        add_row(v, own[j], u + j * n, n);
    }
    for (int64_t i = 0; i < n; i++) {
        length += square_of(v[i]);
    }
    length = sqrt(length);
    for (int64_t i = 0; i < n; i++) {
        v[i] /= length;
    }
}

static sx_status eig_host(const sx_kernel_call *c)
{
    const sx_eig_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows;
    double complex *t = sx_arena_array(c->arena, n * n + 1, double complex),
                   *u = sx_arena_array(c->arena, n * n + 1, double complex),
                   *own = sx_arena_array(c->arena, n + 1, double complex),
                   *v = sx_arena_array(c->arena, n + 1, double complex);
    double *h = sx_arena_array(c->arena, n * n + 1, double);
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    const double eps = c->in[0].type.dtype == SX_F64 ? DBL_EPSILON : FLT_EPSILON;
    if (t == NULL || u == NULL || own == NULL || v == NULL || h == NULL || order == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t m = 0; m < x.count; m++) {
        double scale = 0;
        bool finite = true, found = true;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < n * n; k++) {
            const double re = c->in[0].f[m * n * n + k], im = c->in[1].f[m * n * n + k];
            t[k] = re + im * I;
            u[k] = k / n == k % n;
            finite = finite && isfinite(re) && isfinite(im);
            scale = fmax(scale, fmax(fabs(re), fabs(im)));
        }
        scale = scale > 0 ? scale : 1;
        for (int64_t k = 0; k < n * n; k++) {
            t[k] /= scale;
        }
        if (finite) {
            SX_TRY(to_hessenberg(c, t, u, n));
            for (int64_t k = 0; k < n * n && attrs->is_real; k++) {
                h[k] = creal(t[k]);
            }
            SX_TRY(to_triangle(c, t, u, n, &found));
        }
        if (!found) {
            return sx_error(SX_INVALID_ARGUMENT, "the values of matrix %lld are not found",
                            (long long)m);
        }
        if (attrs->is_real && finite) {
            SX_TRY(francis_values(c, h, n, eps, v));
            order_as(v, t, n, order);
        } else {
            order_by_size(t, n, order);
        }
        for (int64_t i = 0; i < n; i++) {
            const double complex e = finite ? t[order[i] * n + order[i]] * scale : NAN + NAN * I;
            c->out[0].f[m * n + i] = creal(e);
            c->out[1].f[m * n + i] = cimag(e);
            SX_TRY(sx_cancel_check(c->cancel));
            if (attrs->compute_v && finite) {
                vector_of(t, u, n, order[i], own, v);
            }
            for (int64_t k = 0; k < n && attrs->compute_v; k++) {
                c->out[2].f[(m * n + k) * n + i] = finite ? creal(v[k]) : NAN;
                c->out[3].f[(m * n + k) * n + i] = finite ? cimag(v[k]) : NAN;
            }
        }
    }
    return SX_OK;
}

static const sx_eig_attrs real = {.is_real = true};
static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5}, zero[] = {0};
static const sx_op_sample eig_samples[] = {
    {.name = "values",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 3)},
     .n_inputs = 2},
    {.name = "real",
     .attrs = &real,
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 6, 6), SX_SAMPLE_LIST(SX_F32, zero, 2, 6, 6)},
     .n_inputs = 2},
};

const sx_op_def sx_op_eig = {
    SX_OP_NAMED(eig),
    .n_in = 2,
    .n_out = 4,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_eig_attrs, eig_attrs),
    .infer = eig_infer,
    .host = eig_host,
    SX_OP_SAMPLES(eig_samples),
};
