/* The loops that pool images of bfloat16, and sum up their rows, as they lie, give the numbers of
 * the float32 loops on every instruction set that this processor has. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"
#include "vecs.h"

/* Of both signs, many equal ones, zeros of both signs and, if `odd`, infinities and NaN. */
static void fill(uint16_t *x, int64_t n, bool odd)
{
    static const uint16_t special[] = {0x7f80, 0xff80, 0x7fc0, 0xffc0};
    uint32_t state = 7;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        const uint32_t r = state >> 8;
        x[i] = (uint16_t)(r % 5 == 0 ? (r & 1) << 15 : 0x3f80 + (r & 0x3f) + ((r >> 9 & 1) << 15));
        if (odd && r % 37 == 0) {
            x[i] = special[r / 37 % SX_COUNT(special)];
        }
    }
}

/* Both are NaN, or they have the same bits. */
static bool same(uint16_t a, uint16_t b)
{
    return a == b || ((a & 0x7fff) > 0x7f80 && (b & 0x7fff) > 0x7f80);
}

static void check_pool(const sx_cpu_vec *vec, const sx_pool_geometry *g, bool averages, bool odd)
{
    const int64_t in = g->n * g->h.in * g->w.in * g->c, out = g->n * g->h.out * g->w.out * g->c;
    uint16_t *x = sx_alloc((size_t)in, sizeof(*x)), *y = sx_alloc((size_t)out + 1, sizeof(*y)),
             *expected = sx_alloc((size_t)out, sizeof(*expected));
    float *wide = sx_alloc((size_t)in, sizeof(*wide)), *made = sx_alloc((size_t)out, sizeof(*made));
    fill(x, in, odd);
    y[out] = 0x1234;
    vec->from_bf16(x, wide, in);
    (averages ? vec->avg_pool : vec->max_pool)(g, wide, made);
    vec->to_bf16(made, expected, out);
    (averages ? vec->avg_pool_bf16 : vec->max_pool_bf16)(g, x, y);
    for (int64_t i = 0; i < out; i++) {
        if (!same(y[i], expected[i])) {
            fail_msg("%s, %s of %lld channels: element %lld is %04x, expected %04x", vec->name,
                     averages ? "averages" : "maxima", (long long)g->c, (long long)i, y[i],
                     expected[i]);
        }
    }
    assert_int_equal(y[out], 0x1234);
    sx_free(x);
    sx_free(y);
    sx_free(expected);
    sx_free(wide);
    sx_free(made);
}

static void test_backends_pool_bf16__equals_float32(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 3, 8, 15, 16, 17, 31, 32, 33, 63, 64, 100, 192};
    static const sx_conv_window windows[] = {
        {.in = 7, .out = 3, .kernel = 3, .stride = 2, .dilation = 1},
        {.in = 7, .out = 7, .kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1},
        {.in = 8, .out = 4, .kernel = 2, .stride = 2, .dilation = 1},
        {.in = 5, .out = 1, .kernel = 5, .stride = 5, .dilation = 1},
    };
    int checked = 0;
    for (size_t v = 0; v < SX_COUNT(vecs); v++) {
        for (size_t i = 0; i < SX_COUNT(channels) && runs(vecs[v]); i++) {
            for (size_t w = 0; w < SX_COUNT(windows); w++) {
                const sx_pool_geometry g = {.n = 2,
                                            .h = windows[w],
                                            .w = windows[(w + 1) % SX_COUNT(windows)],
                                            .c = channels[i]};
                for (int kind = 0; kind < 4; kind++, checked++) {
                    check_pool(vecs[v], &g, kind % 2 == 1, kind > 1);
                }
            }
        }
    }
    assert_true(checked > 0);
}

static void test_backends_pool_bf16__sums_equal_float32(void **state)
{
    (void)state;
    enum { ROWS = 200, COLS = 150 };
    static const int64_t sizes[][2] = {{1, 1},    {63, 7},    {64, 64},    {65, 65},
                                       {129, 32}, {200, 100}, {ROWS, COLS}};
    static uint16_t x[ROWS * COLS];
    static float wide[ROWS * COLS], expected[COLS], y[COLS];
    fill(x, ROWS * COLS, false);
    for (size_t v = 0; v < SX_COUNT(vecs); v++) {
        for (size_t i = 0; i < SX_COUNT(sizes) && runs(vecs[v]); i++) {
            vecs[v]->from_bf16(x, wide, ROWS * COLS);
            vecs[v]->sum_rows(wide, sizes[i][0], sizes[i][1], expected);
            vecs[v]->sum_rows_bf16(x, sizes[i][0], sizes[i][1], y);
            assert_memory_equal(y, expected, (size_t)sizes[i][1] * sizeof(float));
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_pool_bf16__equals_float32),
    cmocka_unit_test(test_backends_pool_bf16__sums_equal_float32),
};
SX_TEST_MAIN(tests)
