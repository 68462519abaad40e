/* Initial values: the portable functions against the C library's, each distribution's bounds and
 * moments against its formula, and the first values of each, which are the same on every machine.
 */
#include "harness.h"

#include <math.h>

#include "runtime/initialize.h"

static void test_runtime_initialize__log_is_the_librarys(void **state)
{
    (void)state;
    for (int i = -3000; i <= 3000; i++) {
        double x = exp2(i / 3.0), expected = log(x);
        assert_true(fabs(sx_portable_log(x) - expected) <= 4e-16 * (fabs(expected) + 1e-16) ||
                    fabs(sx_portable_log(x) - expected) < 3e-16);
    }
    for (int i = 1; i < 4000; i++) {
        double x = i / 2000.0;
        assert_true(fabs(sx_portable_log(x) - log(x)) <= 4e-16 * fmax(fabs(log(x)), 0.5));
    }
    assert_true(sx_portable_log(1) == 0);
}

/* erf(erfinv(p)) = p to a few ulp of float32, on both sides of where the polynomials meet. */
static void test_runtime_initialize__erfinv_is_the_inverse(void **state)
{
    (void)state;
    double last = -10;
    for (int i = -19999; i < 20000; i++) {
        double p = i / 20000.0, x = sx_portable_erfinv(p);
        assert_true(x > last); /* it ascends */
        last = x;
        /* d erf / dx = 2 / sqrt(pi) exp(-x²) */
        double error = fabs(erf(x) - p) / (1.1283791670955126 * exp(-x * x));
        assert_true(error <= 4e-7 * fmax(fabs(x), 1e-3));
        assert_true(sx_portable_erfinv(-p) == -x);
    }
    const double join = sqrt(1 - exp(-5.0)); /* w = 5 */
    assert_true(fabs(sx_portable_erfinv(join - 1e-9) - sx_portable_erfinv(join + 1e-9)) < 1e-6);
    const double far = 1 - 0x1p-24; /* the last that is drawn */
    assert_true(fabs(erfc(sx_portable_erfinv(far)) - 0x1p-24) < 1e-12);
}

enum { FIELD = 3, INS = 40, OUTS = 20, ELEMS = FIELD * FIELD * INS * OUTS };

static void test_runtime_initialize__distributions(void **state)
{
    (void)state;
    const double in = FIELD * FIELD * INS, out = FIELD * FIELD * OUTS, cut = 0.87962566103423978;
    const struct {
        sx_initializer init;
        double value, stddev, most; /* most: no value is beyond, and some come near */
    } rows[] = {
        {SX_INIT_UNIFORM, 0.25, 0.25 / sqrt(3), 0.25},
        {SX_INIT_NORMAL, 0.25, 0.25, 0.25 * 5.3},
        {SX_INIT_TRUNCATED_NORMAL, 0.25, 0.25 * cut, 0.5},
        {SX_INIT_GLOROT_UNIFORM, 9, sqrt(2 / (in + out)), sqrt(6 / (in + out))},
        {SX_INIT_GLOROT_NORMAL, 9, sqrt(2 / (in + out)), 2 * sqrt(2 / (in + out)) / cut},
        {SX_INIT_HE_UNIFORM, 9, sqrt(2 / in), sqrt(6 / in)},
        {SX_INIT_HE_NORMAL, 9, sqrt(2 / in), 2 * sqrt(2 / in) / cut},
        {SX_INIT_LECUN_UNIFORM, 9, sqrt(1 / in), sqrt(3 / in)},
        {SX_INIT_LECUN_NORMAL, 9, sqrt(1 / in), 2 * sqrt(1 / in) / cut},
    };
    const sx_type type = sx_type_of(SX_F32, FIELD, FIELD, INS, OUTS);
    static float x[ELEMS];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double sum = 0, squares = 0, largest = 0;
        assert_ok(sx_draw_initial_value(rows[i].init, rows[i].value, &type, 7, "w", x));
        for (int k = 0; k < ELEMS; k++) {
            sum += (double)x[k];
            squares += (double)x[k] * (double)x[k];
            largest = harness_greater(largest, fabs((double)x[k]));
        }
        assert_true(fabs(sum / ELEMS) < 4 * rows[i].stddev / sqrt(ELEMS));
        assert_true(fabs(sqrt(squares / ELEMS) / rows[i].stddev - 1) < 0.03);
        assert_true(largest <= rows[i].most * (1 + 1e-6));
        assert_true(largest > 0.6 * rows[i].most);
    }
}

/* Keras' fans: of a scalar 1, of a vector its length, else the last two times those before. */
static void test_runtime_initialize__fans(void **state)
{
    (void)state;
    const struct {
        sx_type type;
        double in, out;
    } rows[] = {
        {sx_scalar_type(SX_F32), 1, 1},           {sx_type_of(SX_F32, 6), 6, 6},
        {sx_type_of(SX_F32, 3, 5), 3, 5},         {sx_type_of(SX_F32, 2, 3, 5), 6, 10},
        {sx_type_of(SX_F32, 4, 2, 3, 5), 24, 40}, {sx_type_of(SX_F32, 4, 2, 1, 5), 8, 40},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float unit[120], he[120], glorot[120];
        int64_t n = sx_type_elems(&rows[i].type);
        assert_ok(sx_draw_initial_value(SX_INIT_UNIFORM, 1, &rows[i].type, 7, "w", unit));
        assert_ok(sx_draw_initial_value(SX_INIT_HE_UNIFORM, 0, &rows[i].type, 7, "w", he));
        assert_ok(sx_draw_initial_value(SX_INIT_GLOROT_UNIFORM, 0, &rows[i].type, 7, "w", glorot));
        for (int64_t k = 0; k < n; k++) {
            double u = (double)unit[k];
            assert_true(fabs((double)he[k] - u * sqrt(6 / rows[i].in)) < 1e-6);
            assert_true(fabs((double)glorot[k] - u * sqrt(6 / (rows[i].in + rows[i].out))) < 1e-6);
        }
    }
}

/* Seed, name and place decide, each of them; the first values never change. */
static void test_runtime_initialize__values_are_fixed(void **state)
{
    (void)state;
    const sx_type type = sx_type_of(SX_F32, 5);
    float a[5], b[5];
    assert_ok(sx_draw_initial_value(SX_INIT_UNIFORM, 1, &type, 7, "w", a));
    assert_ok(sx_draw_initial_value(SX_INIT_UNIFORM, 1, &type, 7, "w", b));
    assert_memory_equal(a, b, sizeof(a));
    const uint64_t seeds[] = {8, 7 | (uint64_t)1 << 32, 7};
    const char *const names[] = {"w", "w", "v"};
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_draw_initial_value(SX_INIT_UNIFORM, 1, &type, seeds[i], names[i], b));
        for (int k = 0; k < 5; k++) {
            assert_true(a[k] != b[k]);
        }
    }
    static const float expected[][5] = {
        {
            0x1.875feap-1f,
            -0x1.d19d3ap-1f,
            0x1.ff969ep-1f,
            -0x1.fe1b1p-4f,
            0x1.bf483p-4f,
        },
        {
            0x1.2fa202p+0f,
            -0x1.b137ap+0f,
            0x1.acfb0cp+1f,
            -0x1.40f872p-3f,
            0x1.192c58p-3f,
        },
        {
            0x1.1a2972p+0f,
            -0x1.81a0a8p+0f,
            0x1.fe3184p+0f,
            -0x1.324116p-3f,
            0x1.0c4df6p-3f,
        },
    };
    static const sx_initializer inits[] = {SX_INIT_UNIFORM, SX_INIT_NORMAL,
                                           SX_INIT_TRUNCATED_NORMAL};
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_draw_initial_value(inits[i], 1, &type, 7, "dense/kernel", a));
        for (int k = 0; k < 5; k++) {
            if (a[k] != expected[i][k]) {
                fail_msg("initializer %d, element %d: %a, expected %a", i, k, (double)a[k],
                         (double)expected[i][k]);
            }
        }
    }
}

static void test_runtime_initialize__constants(void **state)
{
    (void)state;
    float f32[2];
    double f64[2];
    int64_t i64[2];
    int32_t i32[2];
    uint16_t half[2] = {1, 1};
    const struct {
        sx_initializer init;
        double value, expected;
    } rows[] = {{SX_INIT_DEFAULT, 5, 0},  {SX_INIT_ZEROS, 5, 0},    {SX_INIT_ONES, 5, 1},
                {SX_INIT_CONSTANT, 5, 5}, {SX_INIT_CONSTANT, 0, 0}, {SX_INIT_CONSTANT, -3, -3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sx_initializer init = rows[i].init;
        const double value = rows[i].value, expected = rows[i].expected;
        assert_ok(sx_draw_initial_value(init, value, &(sx_type){SX_F32, 1, {2}}, 1, "c", f32));
        assert_ok(sx_draw_initial_value(init, value, &(sx_type){SX_F64, 1, {2}}, 1, "c", f64));
        assert_ok(sx_draw_initial_value(init, value, &(sx_type){SX_I64, 1, {2}}, 1, "c", i64));
        assert_ok(sx_draw_initial_value(init, value, &(sx_type){SX_I32, 1, {2}}, 1, "c", i32));
        for (int k = 0; k < 2; k++) {
            assert_true((double)f32[k] == expected && f64[k] == expected);
            assert_true((double)i64[k] == expected && (double)i32[k] == expected);
        }
        sx_status status =
            sx_draw_initial_value(init, value, &(sx_type){SX_BF16, 1, {2}}, 1, "c", half);
        assert_int_equal(sx_status_code(status), expected == 0 ? SX_CODE_OK : SX_UNIMPLEMENTED);
        sx_status_free(status);
    }
    assert_int_equal(half[0], 0);
    assert_error(sx_draw_initial_value(SX_INIT_NORMAL, 1, &(sx_type){SX_F64, 1, {2}}, 1, "c", f64),
                 SX_UNIMPLEMENTED, "only float32 is drawn");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_initialize__log_is_the_librarys),
    cmocka_unit_test(test_runtime_initialize__erfinv_is_the_inverse),
    cmocka_unit_test(test_runtime_initialize__distributions),
    cmocka_unit_test(test_runtime_initialize__fans),
    cmocka_unit_test(test_runtime_initialize__values_are_fixed),
    cmocka_unit_test(test_runtime_initialize__constants),
};
SX_TEST_MAIN(tests)
