/* Elementwise rows with faster forms (vec/faster.inc) against the C library's functions of double,
 * rounded: one unit of the last place. */
#include "harness.h"

#include <math.h>

#include "backends/cpu/vec/vec.h"
#include "base/checked.h"

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double first_of_pow(double x)
{
    return pow(x, 3);
}

static const struct {
    const char *name;
    sx_vec_code code;
    double (*of)(double);
} rows[] = {
    {"log", SX_VEC_log, log},          {"log1p", SX_VEC_log1p, log1p},
    {"sin", SX_VEC_sin, sin},          {"cos", SX_VEC_cos, cos},
    {"asin", SX_VEC_asin, asin},       {"acos", SX_VEC_acos, acos},
    {"atan", SX_VEC_atan, atan},       {"softplus", SX_VEC_softplus, softplus},
    {"pow", SX_VEC_pow, first_of_pow},
};

/* Equal to the sign of 0, or a unit apart. */
static bool agrees(float got, double exact)
{
    const float want = (float)exact;
    if (want == 0 || isnan(want) || isinf(want)) {
        return isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want);
    }
    return fabs((double)got - (double)want) <= 1.2e-7 * fabs((double)want) + 1e-45;
}

static void check(const char *name, float x, float y, float got, double exact)
{
    if (!agrees(got, exact)) {
        fail_msg("%s(%.9g, %.9g) is %.9g, expected %.9g", name, (double)x, (double)y, (double)got,
                 exact);
    }
}

/* The k-th of numbers of every size, edges among them. */
static float number(int k)
{
    static const float edges[] = {
        0,      -0.0F,   1,      -1, INFINITY, -INFINITY, NAN,      0.5F, -0.5F,  2,          -2,
        1e-45F, -1e-45F, 1e-38F, 3,  -1e20F,   3.4e38F,   -3.4e38F, 1e5F, 100001, 0.99999994F};
    const double part = fmod(k * 0.61803398874989485, 1);
    return k < (int)SX_COUNT(edges) ? edges[k]
           : k % 4 == 0             ? (float)(2 * part - 1)
           : k % 4 == 1             ? (float)(40 * part - 20)
           : k % 4 == 2             ? (float)exp(170 * part - 85)
                                    : -(float)exp(170 * part - 85);
}

static void test_backends_faster__numbers_of_every_size(void **state)
{
    (void)state;
    enum { N = 4001 };
    static float x[N], y[N], z[N];
    for (size_t r = 0; r < SX_COUNT(rows); r++) {
        for (int k = 0; k < N; k++) {
            x[k] = number(k);
            y[k] = 3;
        }
        sx_cpu_vec_best()->loops[rows[r].code](z, x, y, N);
        for (int k = 0; k < N; k++) {
            check(rows[r].name, x[k], y[k], z[k], rows[r].of((double)x[k]));
        }
        sx_cpu_vec_best()->loops[rows[r].code](x, x, y, N); /* over its operand */
        assert_memory_equal(x, z, sizeof(x));
    }
}

static void test_backends_faster__powers(void **state)
{
    (void)state;
    enum { N = 60 * 60 };
    static float x[N], y[N], z[N];
    for (int k = 0; k < N; k++) {
        x[k] = number(k / 60);
        y[k] = number(k % 60);
        y[k] = k % 7 == 0 && fabsf(y[k]) < 100 ? rintf(y[k]) : y[k];
    }
    sx_cpu_vec_best()->loops[SX_VEC_pow](z, x, y, N);
    for (int k = 0; k < N; k++) {
        check("pow", x[k], y[k], z[k], pow((double)x[k], (double)y[k]));
    }
}

/* An element's bits are its own, wherever a loop begins. */
static void test_backends_faster__neighbours_do_not_matter(void **state)
{
    (void)state;
    enum { N = 100 };
    float x[N], y[N], z[N], one;
    for (size_t r = 0; r < SX_COUNT(rows); r++) {
        for (int k = 0; k < N; k++) {
            x[k] = number(k);
            y[k] = 0.75F;
        }
        sx_cpu_vec_best()->loops[rows[r].code](z, x, y, N);
        for (int k = 0; k < N; k++) {
            sx_cpu_vec_best()->loops[rows[r].code](&one, &x[k], &y[k], 1);
            assert_memory_equal(&one, &z[k], sizeof(one));
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_faster__numbers_of_every_size),
    cmocka_unit_test(test_backends_faster__powers),
    cmocka_unit_test(test_backends_faster__neighbours_do_not_matter),
};
SX_TEST_MAIN(tests)
