/* Products of a few rows (cpu/vec/product.inc): right, and the same bits whatever rows and columns
 * are computed together. */
#include "numbers.h"

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/cpu/vec/vec.h"
#include "base/memory.h"

static void check(const sx_cpu_vec *vec, int64_t k, int64_t n)
{
    float *a = numbers(SX_VEC_ROWS * k, 1), *b = numbers(k * n, 2), *single = numbers(n, 3),
          *c = numbers(SX_VEC_ROWS * n, 4);
    for (int64_t m = 1; m <= SX_VEC_ROWS; m++) {
        const int64_t middle = n / 3 / 64 * 64;
        vec->product(a, m, k, b, n, c, middle, n);
        vec->product(a, m, k, b, n, c, 0, middle);
        for (int64_t i = 0; i < m; i++) {
            vec->product(a + i * k, 1, k, b, n, single, 0, n);
            assert_memory_equal(single, c + i * n, (size_t)n * sizeof(float));
        }
    }
    for (int64_t i = 0; i < SX_VEC_ROWS; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, terms = 0;
            for (int64_t l = 0; l < k; l++) {
                const double term = (double)a[i * k + l] * b[l * n + j];
                sum += term;
                terms += fabs(term);
            }
            assert_true(fabs(c[i * n + j] - sum) <= 1e-6 * terms);
        }
    }
    sx_free(a);
    sx_free(b);
    sx_free(c);
    sx_free(single);
}

static void test_backends_few_rows__bits_depend_on_row_and_column_alone(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 64},  {3, 65},   {128, 512},  {17, 1000},
                                       {9, 100}, {259, 77}, {1031, 200}, {300, 1003}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check(sx_cpu_vec_best(), sizes[i][0], sizes[i][1]);
    }
}

/* Of one example: oneDNN's team of 3, which divides the columns. */
static void test_backends_few_rows__threads_do_not_change_bits(void **state)
{
    (void)state;
    enum { K = 2048, N = 5003 };
    sx_builder *b;
    sx_graph *g;
    float *got[2], *in[2] = {numbers(K, 5), numbers((int64_t)K * N, 6)};
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 1, K));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, K, N));
    sx_output(b, "y", sx_relu(b, sx_matmul(b, x, w)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    for (int run = 0; run < 2; run++) {
        sx_platform *platform;
        sx_executable *e;
        sx_device_buffer *args[2], *output;
        const sx_platform_options options = {.cpu.threads = run == 0 ? 1 : 3};
        assert_ok(sx_platform_open("cpu", &options, &platform));
        assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 1}, &e));
        for (int i = 0; i < 2; i++) {
            assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
            assert_ok(sx_device_buffer_write(args[i], in[i], false));
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &output));
        assert_ok(sx_execute(e, args, &output));
        got[run] = sx_alloc(N, sizeof(float));
        assert_ok(sx_device_buffer_read(output, got[run]));
        sx_device_buffer_release(output);
        sx_device_buffer_release(args[0]);
        sx_device_buffer_release(args[1]);
        sx_executable_release(e);
        sx_platform_close(platform);
    }
    assert_memory_equal(got[0], got[1], N * sizeof(float));
    sx_free(got[0]);
    sx_free(got[1]);
    sx_free(in[0]);
    sx_free(in[1]);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_few_rows__bits_depend_on_row_and_column_alone),
    cmocka_unit_test(test_backends_few_rows__threads_do_not_change_bits),
};
SX_TEST_MAIN(tests)
