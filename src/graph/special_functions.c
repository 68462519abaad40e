/* See special_functions.h. Methods are those of Abramowitz and Stegun, Handbook of Mathematical
 * Functions, unless a function says otherwise. */
#include "graph/special_functions.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "graph/chebyshev.h"

static const double EULER = 0.57721566490153286061;

/* Of sums and continued fractions that converge slowly: arguments above some 10⁷. */
enum { MOST_TERMS = 10000 };

/* ---- Gamma ---- */

double sx_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* 6.3.5 to 6.3.7 and 6.3.18. */
double sx_digamma(double x)
{
    static const double series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                    1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
    double y = 0;
    if (isinf(x)) {
        return x > 0 ? x : NAN;
    }
    if (x <= 0) {
        const double part = x - rint(x); /* exact, however small x is */
        if (part == 0) {
            return NAN;
        }
        y = -M_PI / tan(M_PI * part);
        x = 1 - x;
    }
    for (; x < 10; x++) {
        y -= 1 / x;
    }
    const double z = 1 / (x * x);
    double sum = 0;
    for (int i = (int)(sizeof(series) / sizeof(series[0])) - 1; i >= 0; i--) {
        sum = z * (series[i] + sum);
    }
    return y + log(x) - 0.5 / x - sum;
}

/* Of q > 0: the first terms, and what follows them by Euler's and Maclaurin's formula. */
static double zeta_of_positive(double x, double q)
{
    static const double parts[] = {12.0,
                                   -720.0,
                                   30240.0,
                                   -1209600.0,
                                   47900160.0,
                                   -1.8924375803183791606e9,
                                   7.47242496e10,
                                   -2.950130727918164224e12,
                                   1.1646782814350067249e14,
                                   -4.5979787224074726105e15,
                                   1.8152105401943546773e17,
                                   -7.1661652561756670113e18};
    double sum = pow(q, -x), b = sum, a = 1;
    double at = q;
    for (int i = 0; i < 9; i++) {
        at += 1;
        b = pow(at, -x);
        sum += b;
        if (fabs(b) < DBL_EPSILON / 2 * fabs(sum)) {
            return sum;
        }
    }
    if (isinf(at) || isinf(x)) {
        return sum;
    }
    sum += b * at / (x - 1) - 0.5 * b;
    for (int i = 0; i < (int)(sizeof(parts) / sizeof(parts[0])); i++) {
        a *= x + 2 * i;
        b /= at;
        const double t = a * b / parts[i];
        sum += t;
        if (fabs(t) < DBL_EPSILON / 2 * fabs(sum)) {
            break;
        }
        a *= x + 2 * i + 1;
        b /= at;
    }
    return sum;
}

double sx_zeta(double x, double q)
{
    const bool even = isinf(x) || fmod(x, 2) == 0;
    if (x == 1) {
        return INFINITY;
    }
    if (!(x > 1) || isnan(q)) {
        return NAN;
    }
    if (q > 0) {
        return zeta_of_positive(x, q);
    }
    if (q == floor(q) || isinf(x)) {
        return even ? INFINITY : NAN;
    }
    if (x != floor(x)) {
        return NAN;
    }
    /* The terms below 0 are -(f + j) for j in [0, m), those above begin with 1 - f. */
    const double m = floor(-q) + 1, f = -q - (m - 1);
    const double below = zeta_of_positive(x, f) - zeta_of_positive(x, f + m);
    return (even ? below : -below) + zeta_of_positive(x, 1 - f);
}

double sx_polygamma(double n, double x)
{
    if (n != floor(n) || n < 0) {
        return NAN;
    }
    if (n == 0) {
        return sx_digamma(x);
    }
    const double sign = isinf(n) || fmod(n, 2) == 1 ? 1 : -1;
    return sign * exp(sx_lgamma(n + 1)) * sx_zeta(n + 1, x);
}

/* xᵃ e⁻ˣ / Γ(a) */
static double gamma_density(double a, double x)
{
    return exp(a * log(x) - x - sx_lgamma(a));
}

/* 6.5.29 */
static double igamma_series(double a, double x)
{
    double sum = 1, term = 1;
    for (int i = 1; i < MOST_TERMS && term > DBL_EPSILON / 2 * sum; i++) {
        term *= x / (a + i);
        sum += term;
    }
    return sum * gamma_density(a, x) / a;
}

/* The convergents p / q of a continued fraction: [0] the last one, [1] the one before. */
typedef struct convergents {
    double p[2], q[2];
} convergents;

/* The next one, of a partial numerator and denominator; whether it differs from the last one. */
static inline bool converge(convergents *f, double numerator, double denominator, double *y)
{
    double p = denominator * f->p[0] + numerator * f->p[1],
           q = denominator * f->q[0] + numerator * f->q[1];
    const double last = *y;
    *y = p / q;
    f->p[1] = f->p[0];
    f->q[1] = f->q[0];
    f->p[0] = p;
    f->q[0] = q;
    if (fabs(q) > 0x1p200) {
        for (int i = 0; i < 2; i++) {
            f->p[i] *= 0x1p-200;
            f->q[i] *= 0x1p-200;
        }
    }
    return fabs(*y - last) > DBL_EPSILON * fabs(*y);
}

/* 6.5.31 */
static double igammac_fraction(double a, double x)
{
    double b = x + 1 - a, y = 1 / b;
    convergents f = {{1, 0}, {b, 1}};
    for (int i = 1; i < MOST_TERMS; i++) {
        b += 2;
        if (!converge(&f, -i * (i - a), b, &y)) {
            break;
        }
    }
    return y * gamma_density(a, x);
}

double sx_igamma(double a, double x)
{
    if (x == 0) {
        return 0;
    }
    if (!(x > 0) || !(a > 0)) {
        return NAN;
    }
    if (isinf(a) || isinf(x)) {
        return isinf(a) ? 0 : 1;
    }
    return x > 1 && x > a ? 1 - igammac_fraction(a, x) : igamma_series(a, x);
}

double sx_igammac(double a, double x)
{
    if (!(x >= 0) || !(a > 0)) {
        return NAN;
    }
    if (x == 0 || isinf(a) || isinf(x)) {
        return isinf(x) ? 0 : 1;
    }
    return x > 1 && x > a ? igammac_fraction(a, x) : 1 - igamma_series(a, x);
}

/* Of the series above, term by term: the terms and their derivatives by a. */
static double igamma_series_grad_a(double a, double x)
{
    double sum = 1, term = 1, slope_sum = 0, slope = 0;
    for (int i = 1; i < MOST_TERMS; i++) {
        const double factor = x / (a + i);
        slope = slope * factor - term * factor / (a + i);
        term *= factor;
        sum += term;
        slope_sum += slope;
        if (term <= DBL_EPSILON / 2 * sum && fabs(slope) <= DBL_EPSILON / 2 * fabs(slope_sum)) {
            break;
        }
    }
    return gamma_density(a, x) / a * (slope_sum + sum * (log(x) - sx_digamma(a + 1)));
}

/* Of the fraction above: its convergents p / q by their recurrence, with the derivatives dp and dq;
 * [0] is the last one, [1] the one before. */
static double igammac_fraction_grad_a(double a, double x)
{
    double p[2] = {1, 0}, q[2] = {x + 1 - a, 1}, dp[2] = {0, 0}, dq[2] = {-1, 0};
    double y = p[0] / q[0], slope = (dp[0] - y * dq[0]) / q[0];
    for (int i = 1; i < MOST_TERMS; i++) {
        const double b = x + 1 - a + 2 * i, factor = -i * (i - a);
        const double next_p = b * p[0] + factor * p[1], next_q = b * q[0] + factor * q[1];
        const double next_dp = b * dp[0] - p[0] + factor * dp[1] + i * p[1],
                     next_dq = b * dq[0] - q[0] + factor * dq[1] + i * q[1];
        const double scale = 1 / fmax(fabs(next_q), 1), before = slope;
        p[1] = p[0] * scale;
        q[1] = q[0] * scale;
        dp[1] = dp[0] * scale;
        dq[1] = dq[0] * scale;
        p[0] = next_p * scale;
        q[0] = next_q * scale;
        dp[0] = next_dp * scale;
        dq[0] = next_dq * scale;
        y = p[0] / q[0];
        slope = (dp[0] - y * dq[0]) / q[0];
        if (fabs(slope - before) <= DBL_EPSILON * fabs(slope)) {
            break;
        }
    }
    return gamma_density(a, x) * (slope + y * (log(x) - sx_digamma(a)));
}

double sx_igamma_grad_a(double a, double x)
{
    if (x == 0) {
        return 0;
    }
    if (!(x > 0) || !(a > 0)) {
        return NAN;
    }
    if (isinf(a) || isinf(x)) {
        return 0;
    }
    return x > 1 && x > a ? -igammac_fraction_grad_a(a, x) : igamma_series_grad_a(a, x);
}

/* 26.5.8 */
static double beta_fraction(double a, double b, double x)
{
    convergents f = {{1, 0}, {1, 1}};
    double y = 1;
    for (int m = 0; m < MOST_TERMS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const bool moved = m > 0 && converge(&f, even, 1, &y);
        if (!converge(&f, odd, 1, &y) && !moved) {
            break;
        }
    }
    return y;
}

double sx_betainc(double a, double b, double x)
{
    if (a <= 0 || b <= 0 || isnan(x)) {
        return NAN;
    }
    if (x == 0 || x == 1) {
        return x;
    }
    if (!isfinite(a) || !isfinite(b) || x < 0 || x > 1) {
        return NAN;
    }
    const double scale =
        exp(sx_lgamma(a + b) - sx_lgamma(a) - sx_lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? scale * beta_fraction(a, b, x) / a
                                     : 1 - scale * beta_fraction(b, a, 1 - x) / b;
}

/* ---- The error function's inverse ---- */

/* y where erf(y) = x, or with `c`, which is 1 - x, where erfc(y) = c: S. Winitzki's approximation
 * of 2008, improved by Halley's method. 0 <= x < 1 */
static double erf_inverse(double x, double c)
{
    const double w = x < 0.5 ? log1p(-x * x) : log(c * (2 - c));
    const double p = 2 / (M_PI * 0.147) + w / 2;
    double y = sqrt(fmax(sqrt(p * p - w / 0.147) - p, 0));
    for (int i = 0; i < 4; i++) {
        const double slope = M_2_SQRTPI * exp(-y * y);
        const double step = (x < 0.5 ? erf(y) - x : c - erfc(y)) / slope;
        y -= step / (1 + y * step);
        if (fabs(step) < 1e-6 * y) { /* the third power of it is left */
            break;
        }
    }
    return y;
}

double sx_erfinv(double x)
{
    const double a = fabs(x);
    return a < 1 ? copysign(erf_inverse(a, 1 - a), x) : a == 1 ? x * INFINITY : NAN;
}

double sx_ndtri(double p)
{
    if (!(p > 0 && p < 1)) {
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    }
    const double c = p < 0.5 ? 2 * p : 2 * (1 - p);
    const double y = M_SQRT2 * erf_inverse(p < 0.5 ? 1 - c : 2 * p - 1, c);
    return p < 0.5 ? -y : y;
}

/* ---- Integrals ---- */

/* G. Rybicki, "Dawson's integral and the sampling theorem", Computers in Physics 3, 1989: near an
 * even multiple of h, a sum over odd ones. */
double sx_dawsn(double x)
{
    static const double factor[] = {
        /* e^-(n h)^2 for n = 1, 3, 5, ... */
        0.96078943915232318,    0.69767632607103103,    0.36787944117144233,
        0.140858420921045,      0.039163895098987073,   0.0079070540515934398,
        0.0011592291739045912,  0.00012340980408667956, 9.5401628730792341e-06,
        5.3553478027931066e-07, 2.1829577951254791e-08, 6.4614317731061094e-10,
        1.3887943864964021e-11, 2.167568882618962e-13,  2.4565953687921445e-15,
        2.0217158486953421e-17, 1.2081820198999735e-19,
    };
    const double h = 0.2, a = fabs(x);
    if (a > 1e7) {
        return 1 / (2 * x);
    }
    if (a < 1) {
        double sum = x, term = x;
        for (int k = 1; k < 40 && fabs(term) > DBL_EPSILON / 4 * fabs(sum); k++) {
            term *= -2 * x * x / (2 * k + 1);
            sum += term;
        }
        return sum;
    }
    if (isnan(x)) {
        return x;
    }
    /* e^-(rest - n h)^2 = e^-rest^2 e^(2 rest h n) e^-(n h)^2 */
    const double nearest = 2 * rint(a / (2 * h)), rest = a - nearest * h;
    const double step = exp(2 * rest * h), square = step * step, inverse = 1 / square;
    double sum = 0, up = step, down = 1 / step;
    for (int i = 0; i < (int)(sizeof(factor) / sizeof(factor[0])); i++) {
        const double n = 2 * i + 1; /* up / (nearest + n) + down / (nearest - n) */
        const double both = up * (nearest - n) + down * (nearest + n);
        sum += factor[i] * both / (nearest * nearest - n * n);
        up *= square;
        down *= inverse;
    }
    sum *= exp(-rest * rest);
    return copysign(sum / sqrt(M_PI), x);
}

/* 5.1.10, and 5.1.51 from 40 on. */
double sx_expint(double x)
{
#define INVERSES(k)    1.0 / (k), 1.0 / ((k) + 1), 1.0 / ((k) + 2), 1.0 / ((k) + 3), 1.0 / ((k) + 4)
#define INVERSES_20(k) INVERSES(k), INVERSES((k) + 5), INVERSES((k) + 10), INVERSES((k) + 15)
    static const double inverse[] = {INVERSES_20(1),   INVERSES_20(21),  INVERSES_20(41),
                                     INVERSES_20(61),  INVERSES_20(81),  INVERSES_20(101),
                                     INVERSES_20(121), INVERSES_20(141), INVERSES_20(161)};
    double sum = 0, term = 1;
    if (!(x > 0) || isinf(x)) {
        return x == 0 ? -INFINITY : NAN;
    }
    if (x < 40) {
        for (int k = 0; k < (int)(sizeof(inverse) / sizeof(inverse[0])); k++) {
            term *= x * inverse[k];
            sum += term * inverse[k];
            if (term * inverse[k] < DBL_EPSILON / 4 * sum) {
                break;
            }
        }
        return EULER + log(x) + sum;
    }
    for (int k = 1; k < 40 && term > DBL_EPSILON / 4; k++) {
        sum += term;
        term *= k / x;
    }
    return exp(x) / x * sum;
}

/* x f(x) and x^3 g(x) of 7.3.5 and 7.3.6, from 1.5 on by 2 (1.5 / x)^2 - 1, computed with 45
 * digits.
 */
static const double fresnel_f[] = {
    0.31293897068373144,     -0.006798227045215416,   -0.0012085130865683853,
    0.00021048089939317563,  -1.3038282896087684e-05, -3.1166320057639414e-06,
    1.3333440433250449e-06,  -2.6802705203438901e-07, 1.940807757430812e-08,
    9.5778394879207393e-09,  -5.3112530316299539e-09, 1.5798131131211369e-09,
    -2.8071063190127414e-10, -8.1694889553312921e-12, 3.1739461666282226e-11,
    -1.5989633148107043e-11, 5.2974988128029417e-12,  -1.1587985233354489e-12,
    3.6455853634061637e-14,  1.2445865942388602e-13,  -8.1551305487700572e-14,
    3.4542485694213801e-14,  -1.080383975729774e-14,  2.0936734284689962e-15,
    2.1239330407972777e-16,  -4.6747085223555354e-16, 2.9126149443457162e-16,
    -1.2987303464990397e-16, 4.4747771328875423e-17,  -1.0489666741789788e-17,
};
static const double fresnel_g[] = {
    0.094107849891623144,    -0.0088434936213619298,  -0.0011976200012080577,
    0.00039079755832944547,  -4.9137999165679814e-05, -2.8575770522248798e-06,
    3.3864430197004609e-06,  -1.0218690735155697e-06, 1.6519908843721681e-07,
    8.3485211000321248e-09,  -1.7455315236577101e-08, 7.4875232944289891e-09,
    -2.023371453149026e-09,  2.7546350661661832e-10,  7.2894512680216519e-11,
    -7.2491944887785781e-11, 3.3013829075520147e-11,  -1.0460015121424085e-11,
    2.0438317393910342e-12,  1.4866656692959615e-13,  -3.8398899603752061e-13,
    2.295092591645695e-13,   -9.540930534802723e-14,  2.9354637026958773e-14,
    -5.1454234146265155e-15, -1.1669318527363787e-15, 1.6936163574287126e-15,
    -1.0290753807042175e-15, 4.6121632775187234e-16,  -1.603512030355419e-16,
    3.7195986400167051e-17,  1.2886884117478668e-18,  -8.0141313065077816e-18,
    6.0168358793816411e-18,  -3.1888875084000216e-18,
};

typedef struct fresnel {
    double c, s;
} fresnel;

/* C(x) and S(x): 7.3.11 and 7.3.13, from 1.5 on 7.3.9 and 7.3.10. */
static fresnel fresnel_of(double x)
{
    const double a = fabs(x), half = M_PI / 2 * a * a;
    fresnel y = {0.5, 0.5};
    if (isnan(x)) {
        return (fresnel){x, x};
    }
    if (a < 1.5) { /* by powers of half^2 */
        static const double c[] = {
            1,
            -0.1,
            0.0046296296296296296,
            -0.00010683760683760684,
            1.4589169000933707e-6,
            -1.3122532963802805e-8,
            8.3507027951472396e-11,
            -3.9554295164585258e-13,
            1.4483264643598137e-15,
            -4.2214072888070882e-18,
            1.0025164934907719e-20,
            -1.9770647538779052e-23,
            3.2892603491757517e-26,
            -4.6784835155184858e-29,
            5.7541916439821718e-32,
            -6.1803075882227961e-35,
        };
        static const double s[] = {
            0.33333333333333333,     -0.02380952380952381,    0.00075757575757575758,
            -1.3227513227513228e-5,  1.4503852223150469e-7,   -1.0892221037148573e-9,
            5.947794013637635e-12,   -2.4668270102644569e-14, 8.0327350124157736e-17,
            -2.1078551914421358e-19, 4.5518467589282003e-22,  -8.2301492992142214e-25,
            1.2641078988989164e-27,  -1.669761793417372e-30,  1.9169428621097825e-33,
            -1.9303572088151079e-36,
        };
        double of_c = 0, of_s = 0;
        for (int k = (int)(sizeof(c) / sizeof(c[0])) - 1; k >= 0; k--) {
            of_c = of_c * half * half + c[k];
            of_s = of_s * half * half + s[k];
        }
        y = (fresnel){a * of_c, a * half * of_s};
    } else if (a < 1e15) {
        const double t = 4.5 / (a * a) - 1;
        const double f = SX_CHEBYSHEV(fresnel_f, t) / a,
                     g = SX_CHEBYSHEV(fresnel_g, t) / (a * a * a);
        const double sine = sin(half), cosine = cos(half);
        y = (fresnel){0.5 + f * sine - g * cosine, 0.5 - f * cosine - g * sine};
    }
    return x < 0 ? (fresnel){-y.c, -y.s} : y;
}

double sx_fresnel_cos(double x)
{
    return fresnel_of(x).c;
}

double sx_fresnel_sin(double x)
{
    return fresnel_of(x).s;
}

/* The dilogarithm of z in [-1, 1/2]: Debye's series in -ln(1 - z). */
static double dilogarithm(double z)
{
    static const double bernoulli[] = {1.0 / 36,
                                       -1.0 / 3600,
                                       1.0 / 211680,
                                       -1.0 / 10886400,
                                       1.0 / 526901760,
                                       -4.0647616451442255e-11,
                                       8.9216910204564526e-13,
                                       -1.9939295860721076e-14,
                                       4.5189800296199182e-16};
    const double u = -log1p(-z), square = u * u;
    double sum = 0;
    for (int i = (int)(sizeof(bernoulli) / sizeof(bernoulli[0])) - 1; i >= 0; i--) {
        sum = square * (bernoulli[i] + sum);
    }
    return u * (1 - u / 4 + sum);
}

/* The dilogarithm of 1 - x. */
double sx_spence(double x)
{
    const double z = 1 - x, sixth = M_PI * M_PI / 6;
    if (!(x >= 0) || isinf(x)) {
        return NAN;
    }
    if (x == 0) {
        return sixth;
    }
    if (z > 0.5) {
        return sixth - log(z) * log(x) - dilogarithm(x);
    }
    if (z >= -1) {
        return dilogarithm(z);
    }
    const double ln = log(-z);
    return -sixth - ln * ln / 2 - dilogarithm(1 / z);
}
