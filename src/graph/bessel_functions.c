/* Bessel functions of special_functions.h. Those with a scale are sums of Chebyshev polynomials
 * (their coefficients were computed with 45 digits), K up to 2 is a series of Abramowitz and
 * Stegun's Handbook of Mathematical Functions, J and Y are the C library's. */
#include "graph/special_functions.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

static const double EULER = 0.57721566490153286061;

/* e^-x I0(x) and e^-x I1(x) / x by x / 4 - 1 for x from 0 to 8; behind it, times the root of x, by
 * 16 / x - 1. */
static const double i0_small[] = {
    0.33839763720473803,     -0.3046826723431984,     0.17162090152220877,
    -0.094901097048047639,   0.049305284239670712,    -0.023737414805899471,
    0.010546460394594998,    -0.0043243099950505759,  0.0016394756169413357,
    -0.00057637557453858236, 0.00018850288509584165,  -5.754195010082104e-05,
    1.6448448070728896e-05,  -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.6707938539406119e-07, 6.0469950225419186e-08,  -1.300025009986248e-08,
    2.6598237246823866e-09,  -5.1897956016352627e-10, 9.675809035373237e-11,
    -1.7268262914415559e-11, 2.9550526631296399e-12,  -4.856446783111929e-13,
    7.6761854986049361e-14,  -1.1685332877993451e-14, 1.7153912855551331e-15,
    -2.4312798465479549e-16, 3.3307945188222384e-17,
};
static const double i1_small[] = {
    0.12629359322181682,     -0.17641651835783406,    0.10264365868984709,
    -0.052945981208094989,   0.024726449030626516,    -0.010564084894626197,
    0.0041564229443128882,   -0.0015135724506312532,  0.00051228595616857576,
    -0.00016176081582589674, 4.7815651075500542e-05,  -1.3273163656039436e-05,
    3.4702513081376785e-06,  -8.5687202646954547e-07, 2.0032947535521353e-07,
    -4.4450591287963281e-08, 9.3815373864957726e-09,  -1.8872497517228294e-09,
    3.6255902815521172e-10,  -6.6634897235020271e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.2237933659455748e-13,  -5.0421855047279118e-14,
    7.6006842947354077e-15,  -1.1055969477353862e-15, 1.5536319577362005e-16,
    -2.111421214358166e-17,  2.7779141127610464e-18,
};
static const double i0_large[] = {
    0.40224520550705439,     0.0033691164782556943,   6.8897583469168245e-05,
    2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
    3.3962320257083865e-09,  4.9406023882249701e-10,  1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.540086217521415e-14,
    -4.1505693472872241e-14, -9.5548466988284761e-15, 3.8116806693529711e-15,
    1.7725601330566224e-15,  -3.4254856196922542e-16, -2.8276239804969706e-16,
    3.4612228679909002e-17,  4.4656214190710166e-17,
};
static const double i1_large[] = {
    0.38928811750914005,     -0.0097610974913614687,  -0.00011058893876262371,
    -3.8825648088776906e-06, -2.5122362378702088e-07, -2.6314688468895196e-08,
    -3.835380385964237e-09,  -5.5897434621965838e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.1985517762459084e-13, -4.0835511110921969e-13, -2.1015418427726697e-14,
    4.2724400167119536e-14,  1.0420276984128972e-14,  -3.8144030724373657e-15,
    -1.8803547755108634e-15, 3.3082023109361146e-16,  2.9626289976255072e-16,
    -3.209525922280163e-17,  -4.6503053672398948e-17,
};
/* e^x K(x) times the root of x, by 4 / x - 1 for x from 2 on. */
static const double k0_large[] = {
    1.2201515410329777,      -0.031448101311964502,   0.0015698838857300533,
    -0.00012849549581627802, 1.39498137188765e-05,    -1.8317555227191195e-06,
    2.7668136394450149e-07,  -4.6604898976879478e-08, 8.5740340174142253e-09,
    -1.6975345093890614e-09, 3.5773972814003283e-10,  -7.9574892444773965e-11,
    1.8559491149549264e-11,  -4.5145978833745193e-12, 1.1403405882073441e-12,
    -2.9800969231481784e-13, 8.0328907750683746e-14,  -2.2275133267462962e-14,
    6.3400764762766445e-15,  -1.8485933779209036e-15, 5.5120559994042517e-16,
    -1.6782311257547068e-16, 5.2103917776389222e-17,
};
static const double k1_large[] = {
    1.3603130952422213,      0.10392373657681724,     -0.0028578168596227792,
    0.00019521551847135162,  -1.936197974166083e-05,  2.406484947837217e-06,
    -3.5019606030878126e-07, 5.7410841254500495e-08,  -1.0345762465678097e-08,
    2.0150497551970347e-09,  -4.1903547593419254e-10, 9.2183151876053146e-11,
    -2.1299678384277909e-11, 5.1396396734823432e-12,  -1.2891739609498229e-12,
    3.3484196660522431e-13,  -8.9767051820101463e-14, 2.4771544242195985e-14,
    -7.0198370892147677e-15, 2.0387031662398574e-15,  -6.0570472706429319e-16,
    1.8380935752428421e-16,  -5.6894628491887834e-17,
};

/* The sum of c[k] T_k(t), by Clenshaw's rule. */
static double chebyshev(const double *c, int n, double t)
{
    double a = 0, b = 0;
    for (int k = n - 1; k > 0; k--) {
        const double next = 2 * t * a - b + c[k];
        b = a;
        a = next;
    }
    return t * a - b + c[0];
}
#define CHEBYSHEV(c, t) chebyshev(c, (int)(sizeof(c) / sizeof((c)[0])), t)

/* e^-x I_n(x) for n = 0, 1 and x >= 0. */
static double scaled_i(int n, double x)
{
    if (isinf(x)) {
        return 0;
    }
    if (x <= 8) {
        const double t = x / 4 - 1;
        return n == 0 ? CHEBYSHEV(i0_small, t) : x * CHEBYSHEV(i1_small, t);
    }
    const double t = 16 / x - 1;
    return (n == 0 ? CHEBYSHEV(i0_large, t) : CHEBYSHEV(i1_large, t)) / sqrt(x);
}

double sx_bessel_i0e(double x)
{
    return isnan(x) ? x : scaled_i(0, fabs(x));
}

double sx_bessel_i1e(double x)
{
    return isnan(x) ? x : copysign(scaled_i(1, fabs(x)), x);
}

double sx_bessel_i0(double x)
{
    return sx_bessel_i0e(x) * exp(fabs(x));
}

double sx_bessel_i1(double x)
{
    return sx_bessel_i1e(x) * exp(fabs(x));
}

/* e^x K_n(x) for n = 0, 1: 9.6.11 up to 2. */
static double scaled_k(int n, double x)
{
    if (isnan(x) || x <= 0 || isinf(x)) {
        return isnan(x) ? x : x > 0 ? 0 : INFINITY;
    }
    if (x > 2) {
        const double t = 4 / x - 1;
        return (n == 0 ? CHEBYSHEV(k0_large, t) : CHEBYSHEV(k1_large, t)) / sqrt(x);
    }
    const double z = x * x / 4;
    double term = 1, psi = n == 0 ? -EULER : (1 - 2 * EULER) / 2, sum = psi, i = 1;
    for (int k = 1; k < 40 && term > DBL_EPSILON / 4; k++) {
        term *= z / (k * (double)(k + n));
        psi += n == 0 ? 1.0 / k : (1.0 / k + 1.0 / (k + 1)) / 2;
        sum += term * psi;
        i += term;
    }
    const double ln = log(x / 2);
    return exp(x) * (n == 0 ? sum - ln * i : 1 / x + x / 2 * (ln * i - sum));
}

double sx_bessel_k0e(double x)
{
    return scaled_k(0, x);
}

double sx_bessel_k1e(double x)
{
    return scaled_k(1, x);
}

double sx_bessel_k0(double x)
{
    return x > 0 ? scaled_k(0, x) * exp(-x) : scaled_k(0, x);
}

double sx_bessel_k1(double x)
{
    return x > 0 ? scaled_k(1, x) * exp(-x) : scaled_k(1, x);
}

double sx_bessel_j0(double x)
{
    return isinf(x) ? NAN : j0(x);
}

double sx_bessel_j1(double x)
{
    return isinf(x) ? NAN : j1(x);
}

double sx_bessel_y0(double x)
{
    return x <= 0 ? -INFINITY : isinf(x) ? NAN : y0(x);
}

double sx_bessel_y1(double x)
{
    return x <= 0 ? -INFINITY : isinf(x) ? NAN : y1(x);
}
