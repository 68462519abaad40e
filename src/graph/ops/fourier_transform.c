/* fourier_transform: the discrete Fourier transform of complex numbers along the last axis:
 * y[k] = sum over i of x[i] e^(-2 pi i k / n).
 *
 *   re, im   [...,n] of one type, float32 or float64: the parts of x; n is not the batch
 *   returns  those of y. Its parts exchanged, given parts that are exchanged, it is the inverse
 *            transform without the division by n
 *
 * Gradient (dx_im, dx_re) = fourier_transform(dy_im, dy_re)
 * Errors   INVALID_ARGUMENT  dtypes, no axis, types that differ
 * Numbers  in double, by Cooley and Tukey's rule; where n has a prime factor above 32, by
 *          Bluestein's: n log n steps for every n
 * Source   TensorFlow FFT, IFFT, RFFT, IRFFT, whose lengths the importer finds only as the model
 *          runs; others become products (savedmodel/import_library_fourier.c) */
#include <complex.h>
#include <math.h>

#include <sextant/complex.h>

#include "graph/ops/host_ops.h"

static sx_status fourier_transform_infer(sx_infer_context *c)
{
    sx_type both;
    if (c->inputs[0].dtype != SX_F32 && c->inputs[0].dtype != SX_F64) {
        return sx_error(SX_INVALID_ARGUMENT, "re is %s, expected float32 or float64",
                        SX_TEXT(&c->inputs[0]));
    }
    SX_TRY(sx_require_dtype("im", &c->inputs[1], c->inputs[0].dtype));
    SX_TRY(sx_merge_shapes("re", &c->inputs[0], "im", &c->inputs[1], &both));
    if (both.rank == 0 || (both.rank > 0 && sx_dim_is_batch(both.dims[both.rank - 1]))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "re is %s, expected [...,n] with n other than the batch",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = c->outputs[1] = both;
    return SX_OK;
}

enum { MOST_RADIX = 32, BLOCK = 128, MOST_FACTORS = 64 };

/* CMPLX, which clang has not. */
static inline double complex of_parts(double re, double im)
{
    const double parts[2] = {re, im};
    double complex z;
    memcpy(&z, parts, sizeof(z));
    return z;
}

/* Without the checks for infinities of C's operators. */
static inline double complex times(double complex a, double complex b)
{
    return of_parts(creal(a) * creal(b) - cimag(a) * cimag(b),
                    creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* -i z */
static inline double complex turned_back(double complex z)
{
    return of_parts(cimag(z), -creal(z));
}

/* Factors of n, 4 before 2, ended by 1; false: one is above MOST_RADIX. */
static bool factor(int64_t n, int64_t *radices)
{
    for (int64_t p = 4; n > 1; p = p == 4 ? 2 : p == 3 ? 5 : p + 1) {
        if (p > MOST_RADIX) {
            return false;
        }
        for (; n % p == 0; n /= p) {
            *radices++ = p;
        }
    }
    *radices = 1;
    return true;
}

/* y[q m] = sum over r of part[r] e^(-2 pi i q r / p); roots[k root_step] = e^(-2 pi i k / p). */
static inline void combine(int64_t p, const double complex *part, const double complex *roots,
                           int64_t root_step, double complex *y, int64_t m)
{
    if (p == 2) {
        y[0] = part[0] + part[1];
        y[m] = part[0] - part[1];
    } else if (p == 3) {
        const double complex sum = part[1] + part[2], rest = part[0] - 0.5 * sum,
                             turned = turned_back(sqrt(0.75) * (part[1] - part[2]));
        y[0] = part[0] + sum;
        y[m] = rest + turned;
        y[2 * m] = rest - turned;
    } else if (p == 4) {
        const double complex a = part[0] + part[2], b = part[0] - part[2], c = part[1] + part[3],
                             turned = turned_back(part[1] - part[3]);
        y[0] = a + c;
        y[m] = b + turned;
        y[2 * m] = a - c;
        y[3 * m] = b - turned;
    } else if (p == 5) {
        const double c1 = creal(roots[root_step]), s1 = -cimag(roots[root_step]),
                     c2 = creal(roots[2 * root_step]), s2 = -cimag(roots[2 * root_step]);
        const double complex near = part[1] + part[4], far = part[2] + part[3],
                             by_near = part[1] - part[4], by_far = part[2] - part[3],
                             one = part[0] + c1 * near + c2 * far,
                             two = part[0] + c2 * near + c1 * far,
                             turned_one = turned_back(s1 * by_near + s2 * by_far),
                             turned_two = turned_back(s2 * by_near - s1 * by_far);
        y[0] = part[0] + near + far;
        y[m] = one + turned_one;
        y[2 * m] = two + turned_two;
        y[3 * m] = two - turned_two;
        y[4 * m] = one - turned_one;
    } else {
        for (int64_t q = 0; q < p; q++) {
            double complex sum = part[0];
            for (int64_t r = 1, at = q; r < p; r++) {
                sum += times(part[r], roots[at * root_step]);
                at = at + q < p ? at + q : at + q - p;
            }
            y[q * m] = sum;
        }
    }
}

/* The transform of x, `stride` apart, to y[n]; `radices` are those of n. turns[k] = e^(-2 pi i k /
 * whole) with whole = n stride. */
static void transform(const double complex *turns, const int64_t *radices, int64_t n,
                      int64_t stride, const double complex *x, double complex *y)
{
    const int64_t p = radices[0], m = n / p, root_step = stride * m;
    double complex part[MOST_RADIX];
    for (int64_t r = 0; r < p && m > 1; r++) {
        transform(turns, radices + 1, m, stride * p, x + r * stride, y + r * m);
    }
    for (int64_t r = 0; r < p; r++) {
        part[r] = m > 1 ? y[r * m] : x[r * stride];
    }
    combine(p, part, turns, root_step, y, m);
    for (int64_t k = 1; k < m; k++) {
        part[0] = y[k];
        for (int64_t r = 1; r < p; r++) {
            part[r] = times(y[k + r * m], turns[r * k * stride]);
        }
        combine(p, part, turns, root_step, y + k, m);
    }
}

/* e^(-2 pi i at / n) */
static double complex turn(int64_t at, int64_t n)
{
    const double angle = 2 * M_PI * (double)at / (double)n;
    return of_parts(cos(angle), -sin(angle));
}

/* A length's tables and room. */
typedef struct plan {
    int64_t n, padded;             /* padded: 0, or of Bluestein's rule, a power of 2 */
    int64_t radices[MOST_FACTORS]; /* of n, or of padded */
    double complex *turns;         /* of n, or of padded */
    double complex *chirp;         /* [n] e^(-pi i k^2 / n) */
    double complex *spectrum;      /* [padded] of the conjugate chirp on both sides of 0 */
    double complex *x, *y;         /* [n or padded] */
} plan;

static sx_status make_plan(const sx_kernel_call *c, int64_t n, plan *out)
{
    *out = (plan){.n = n};
    if (!factor(n, out->radices)) {
        for (out->padded = 1; out->padded < 2 * n - 1;) {
            out->padded *= 2;
        }
        (void)factor(out->padded, out->radices);
        out->chirp = sx_arena_array(c->arena, n, double complex);
        out->spectrum = sx_arena_array(c->arena, out->padded, double complex);
    }
    const int64_t size = out->padded > 0 ? out->padded : n;
    out->turns = sx_arena_array(c->arena, size, double complex);
    out->x = sx_arena_array(c->arena, size, double complex);
    out->y = sx_arena_array(c->arena, size, double complex);
    if (out->turns == NULL || out->x == NULL || out->y == NULL ||
        (out->padded > 0 && (out->chirp == NULL || out->spectrum == NULL))) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0, start = 0; k < size; k++) { /* products of two: sines take long */
        start = k % BLOCK == 0 ? k : start;
        out->turns[k] = k < BLOCK || k == start ? turn(k, size)
                                                : times(out->turns[start], out->turns[k - start]);
    }
    for (int64_t k = 0; k < n && out->padded > 0; k++) {
        out->chirp[k] = turn((int64_t)((uint64_t)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
        out->x[k] = out->x[(size - k) % size] = conj(out->chirp[k]);
    }
    if (out->padded > 0) {
        transform(out->turns, out->radices, size, 1, out->x, out->spectrum);
    }
    return SX_OK;
}

/* plan->x[0 .. n) -> plan->y[0 .. n). By Bluestein's rule, with 2 i k = i^2 + k^2 - (k - i)^2, a
 * convolution with a chirp, which is a product of spectra. */
static void run_plan(const plan *p)
{
    if (p->padded == 0) {
        transform(p->turns, p->radices, p->n, 1, p->x, p->y);
        return;
    }
    for (int64_t k = 0; k < p->padded; k++) {
        p->x[k] = k < p->n ? times(p->x[k], p->chirp[k]) : 0;
    }
    transform(p->turns, p->radices, p->padded, 1, p->x, p->y);
    for (int64_t k = 0; k < p->padded; k++) {
        p->x[k] = conj(times(p->y[k], p->spectrum[k]));
    }
    transform(p->turns, p->radices, p->padded, 1, p->x, p->y);
    for (int64_t k = 0; k < p->n; k++) {
        p->y[k] = times(conj(p->y[k]), p->chirp[k]) / (double)p->padded;
    }
}

static sx_status fourier_transform_host(const sx_kernel_call *c)
{
    const sx_type *type = &c->in[0].type;
    const int64_t n = type->dims[type->rank - 1], count = sx_type_elems(type);
    plan p;
    if (count == 0) {
        return SX_OK;
    }
    SX_TRY(make_plan(c, n, &p));
    for (int64_t at = 0; at < count; at += n) {
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < n; k++) {
            p.x[k] = of_parts(c->in[0].f[at + k], c->in[1].f[at + k]);
        }
        run_plan(&p);
        for (int64_t k = 0; k < n; k++) {
            c->out[0].f[at + k] = creal(p.y[k]);
            c->out[1].f[at + k] = cimag(p.y[k]);
        }
    }
    return SX_OK;
}

static void fourier_transform_grad(sx_grad *g)
{
    sx_value dy[2];
    for (int i = 0; i < 2; i++) {
        dy[i] = sx_value_is(g->dy[1 - i]) ? g->dy[1 - i] : sx_zeros_of(g->b, g->y[1 - i]);
    }
    const sx_value dx = sx_build_op(g->b, fourier_transform, NULL, dy[0], dy[1]);
    g->dx[0] = sx_output_of(dx, 1);
    g->dx[1] = dx;
}

static void fourier_transform_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_dtype part = op->in_types[0].dtype, whole = part == SX_F64 ? SX_C128 : SX_C64;
    const sx_tf_attr_list types =
        sx_tf_attrs(sx_tf_attr_type("T", (int)whole), sx_tf_attr_type("Tout", (int)part));
    const sx_tf_value x = sx_tf_add(
        w, "Complex", NULL, sx_tf_in(op->in[0], op->in[1]),
        sx_tf_attrs(sx_tf_attr_type("T", (int)part), sx_tf_attr_type("Tout", (int)whole)));
    const sx_tf_value y = sx_tf_add(w, "FFT", NULL, sx_tf_in(x),
                                    sx_tf_attrs(sx_tf_attr_type("Tcomplex", (int)whole)));
    op->out[0] = sx_tf_add(w, "Real", NULL, sx_tf_in(y), types);
    op->out[1] = sx_tf_add(w, "Imag", NULL, sx_tf_in(y), types);
}

static const sx_op_sample fourier_transform_samples[] = {
    {.name = "powers_of_two",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 8),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 8)},
     .n_inputs = 2},
    {.name = "factors",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 30), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 30)},
     .n_inputs = 2},
    {.name = "prime",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 37), SX_SAMPLE_F32(SX_FILL_NORMAL, 37)},
     .n_inputs = 2},
    {.name = "one",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 1),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 1)},
     .n_inputs = 2},
};

const sx_op_def sx_op_fourier_transform = {
    SX_OP_NAMED(fourier_transform),
    .n_in = 2,
    .n_out = 2,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST,
    .infer = fourier_transform_infer,
    .grad = fourier_transform_grad,
    .host = fourier_transform_host,
    .to_tf = fourier_transform_to_tf,
    SX_OP_SAMPLES(fourier_transform_samples),
};
