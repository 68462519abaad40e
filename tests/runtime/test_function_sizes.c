/* Arguments whose numbers of rows are unknown, each a symbol: equal ones are the batch, others a
 * size. And batches without rows. On the host's kernels, the cpu backend and PJRT. */
#include "function_running.h"

#include <math.h>

#include "../backends/pjrt_plugin.h"
#include "base/checked.h"

static const char *const platforms[] = {"host", "cpu", "pjrt"};

static const char functions[] = "sextant-library 2\n"
                                "function \"scores\"\n"
                                "input %1 float32[?0,2] \"q\"\n"
                                "input %2 float32[?1,2] \"k\"\n"
                                "%3 = matmul(%1, %2) {transpose_b=true} float32[?,?] \"scores\"\n"
                                "%4 = reduce_max(%3) {axes=[0]} float32[?] \"best\"\n"
                                "%5 = concat(%1, %2) float32[?,2] \"both\"\n"
                                "output \"scores\" %3\noutput \"best\" %4\noutput \"both\" %5\n"
                                "end\n"
                                "function \"sum\"\n"
                                "input %1 float32[?0,2] \"x\"\n"
                                "input %2 float32[?1,2] \"y\"\n"
                                "%3 = add(%1, %2) float32[?,?] \"add\"\n"
                                "output \"y\" %3\n"
                                "end\n"
                                "function \"equal\"\n"
                                "input %1 float32[?3,2] \"x\"\n"
                                "input %2 float32[?3,2] \"y\"\n"
                                "%3 = add(%1, %2) float32[?3,2] \"add\"\n"
                                "output \"y\" %3\n"
                                "end\n"
                                "function \"rows\"\n"
                                "input %1 float32[N,2] \"x\"\n"
                                "%2 = reshape(%1) {shape=[-2, 1]} float32[2*N,1] \"column\"\n"
                                "%3 = reduce_sum(%1) {axes=[0]} float32[2] \"sum\"\n"
                                "%4 = reduce_min(%1) {axes=[0, 1]} float32[] \"least\"\n"
                                "%5 = exp(%2) float32[2*N,1] \"exp\"\n"
                                "output \"column\" %5\noutput \"sum\" %3\noutput \"least\" %4\n"
                                "end\n";

static void open_on(running *t, const char *device)
{
    *t = (running){.library = parse(functions)};
    assert_ok(sx_platform_open(
        device, &(sx_platform_options){.cpu.threads = 1, .pjrt.plugin_path = ref_plugin()},
        &t->platform));
    assert_ok(sx_runner_create(&(sx_runner_options){.library = t->library, .platform = t->platform},
                               &t->runner));
    sx_arena_init(&t->arena, 0);
}

static void fill(float *x, int n, float first)
{
    for (int i = 0; i < n; i++) {
        x[i] = first + (float)(i % 5);
    }
}

static void check_scores(running *t, int64_t n, int64_t m)
{
    float q[16], k[16];
    sx_tensor y[3];
    fill(q, 16, 1);
    fill(k, 16, -2);
    const sx_tensor in[2] = {floats(q, 2, n, 2), floats(k, 2, m, 2)};
    assert_ok(sx_runner_run(t->runner, "scores", in, 2, y, 3, &t->arena, NULL));
    const sx_type scores = sx_type_of(SX_F32, n, m), best = sx_type_of(SX_F32, m),
                  both = sx_type_of(SX_F32, n + m, 2);
    assert_true(sx_type_equal(&y[0].type, &scores) && sx_type_equal(&y[1].type, &best) &&
                sx_type_equal(&y[2].type, &both));
    for (int64_t j = 0; j < m; j++) {
        float most = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            const float score = q[2 * i] * k[2 * j] + q[2 * i + 1] * k[2 * j + 1];
            assert_true(((float *)y[0].data)[i * m + j] == score);
            most = score > most ? score : most;
        }
        assert_true(((float *)y[1].data)[j] == most);
    }
    for (int64_t i = 0; i < 2 * (n + m); i++) {
        assert_true(((float *)y[2].data)[i] == (i < 2 * n ? q[i] : k[i - 2 * n]));
    }
}

static void test_runtime_function_sizes__inputs_have_sizes_of_their_own(void **state)
{
    (void)state;
    static const int64_t sizes[] = {3, 5, 1, 0, 2};
    for (size_t d = 0; d < SX_COUNT(platforms); d++) {
        running t;
        open_on(&t, platforms[d]);
        for (size_t i = 0; i < SX_COUNT(sizes); i++) {
            for (size_t k = 0; k < SX_COUNT(sizes); k++) {
                check_scores(&t, sizes[i], sizes[k]);
            }
        }
        end(&t);
    }
}

static void run_sum(running *t, int64_t n, int64_t m)
{
    static const float x[16] = {1, 2, 3, 4, 5, 6, 7, 8};
    const sx_tensor in[2] = {floats(x, 2, n, 2), floats(x, 2, m, 2)};
    sx_tensor y;
    assert_ok(sx_runner_run(t->runner, "sum", in, 2, &y, 1, &t->arena, NULL));
    const int64_t rows = n == 1 ? m : n;
    const sx_type type = sx_type_of(SX_F32, rows, 2);
    assert_true(sx_type_equal(&y.type, &type));
    for (int64_t i = 0; i < 2 * rows; i++) {
        assert_true(((float *)y.data)[i] == x[n == 1 ? i % 2 : i] + x[m == 1 ? i % 2 : i]);
    }
}

static void test_runtime_function_sizes__equal_sizes_are_one_program(void **state)
{
    (void)state;
    for (size_t d = 0; d < SX_COUNT(platforms); d++) {
        running t;
        open_on(&t, platforms[d]);
        for (int64_t n = 2; n < 6; n++) {
            run_sum(&t, n, n);
        }
        assert_int_equal(programs_of(&t).builds, 1); /* of [N,2] and [N,2] */
        assert_int_equal(executables_of(&t).builds, 4);
        run_sum(&t, 4, 1);
        run_sum(&t, 6, 1);
        assert_int_equal(programs_of(&t).builds, 2); /* [N,2] and [1,2] */
        run_sum(&t, 1, 6);
        run_sum(&t, 1, 1);
        run_sum(&t, 3, 3);
        assert_int_equal(programs_of(&t).builds, 3); /* [1,2] and [N,2] */
        run_sum(&t, 0, 0);
        run_sum(&t, 0, 1);
        const float x[16] = {0};
        const sx_tensor in[2] = {floats(x, 2, 2, 2), floats(x, 2, 3, 2)};
        sx_tensor y;
        assert_error(sx_runner_run(t.runner, "sum", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "add \"add\": ");
        assert_error(sx_runner_run(t.runner, "equal", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT,
                     "argument \"x\" is float32[2,2] and argument \"y\" is float32[3,2], but "
                     "dimensions 0 and 0 are declared to be equal");
        end(&t);
    }
}

static void test_runtime_function_sizes__batches_without_rows(void **state)
{
    (void)state;
    for (size_t d = 0; d < SX_COUNT(platforms); d++) {
        running t;
        sx_tensor y[3];
        open_on(&t, platforms[d]);
        for (int64_t n = 0; n < 3; n++) {
            const float x[4] = {0};
            const sx_tensor in = floats(x, 2, n, 2);
            assert_ok(sx_runner_run(t.runner, "rows", &in, 1, y, 3, &t.arena, NULL));
            const sx_type column = sx_type_of(SX_F32, 2 * n, 1);
            assert_true(sx_type_equal(&y[0].type, &column));
            assert_memory_equal(y[1].data, ((const float[]){0, 0}), sizeof(float[2]));
            assert_true(*(float *)y[2].data == (n == 0 ? INFINITY : 0));
        }
        end(&t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_sizes__inputs_have_sizes_of_their_own),
    cmocka_unit_test(test_runtime_function_sizes__equal_sizes_are_one_program),
    cmocka_unit_test(test_runtime_function_sizes__batches_without_rows),
};

SX_TEST_MAIN(tests)
