/* Products of doubles (cpu/vec/product_f64.inc): right, and the same bits whatever rows and columns
 * are computed together. */
#include "numbers.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/vec/vec.h"
#include "base/memory.h"

static double *doubles(int64_t n, uint32_t key)
{
    float *from = numbers(n, key);
    double *data = sx_alloc((size_t)n + 1, sizeof(double));
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) {
        data[i] = (double)from[i] / 3;
    }
    sx_free(from);
    return data;
}

static void check(int64_t m, int64_t k, int64_t n, bool ta, bool tb)
{
    const sx_cpu_vec *vec = sx_cpu_vec_best();
    double *a = doubles(m * k, 1), *b = doubles(k * n, 2), *c = doubles(m * n, 3),
           *apart = doubles(m * n, 4);
    sx_vec_product_f64 p = {.a = a,
                            .b = b,
                            .c = c,
                            .n = n,
                            .k = k,
                            .row_a = ta ? 1 : k,
                            .inner_a = ta ? m : 1,
                            .transpose_b = tb,
                            .last = m,
                            .end = n};
    vec->product_f64(&p);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, terms = 0;
            for (int64_t l = 0; l < k; l++) {
                const double term = a[i * p.row_a + l * p.inner_a] * b[tb ? j * k + l : l * n + j];
                sum += term;
                terms += fabs(term);
            }
            assert_true(fabs(c[i * n + j] - sum) <= 1e-14 * terms);
        }
    }
    p.c = apart;
    for (int64_t i = 0; i < m; i++) { /* each row alone, in two parts */
        p.first = i;
        p.last = i + 1;
        p.begin = n / 3;
        p.end = n;
        vec->product_f64(&p);
        p.begin = 0;
        p.end = n / 3;
        vec->product_f64(&p);
    }
    assert_memory_equal(apart, c, (size_t)(m * n) * sizeof(double));
    sx_free(a);
    sx_free(b);
    sx_free(c);
    sx_free(apart);
}

static void test_backends_product_f64__bits_depend_on_row_and_column_alone(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 300, 77},  {2, 9, 5},    {3, 8, 64},
                                       {4, 131, 25}, {5, 128, 24},  {17, 3, 100}, {64, 257, 48},
                                       {23, 40, 73}, {100, 129, 31}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int form = 0; form < 4; form++) {
            check(sizes[i][0], sizes[i][1], sizes[i][2], form % 2 != 0, form >= 2);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_product_f64__bits_depend_on_row_and_column_alone),
};
SX_TEST_MAIN(tests)
