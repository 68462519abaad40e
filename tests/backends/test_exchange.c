/* What replicas of a PJRT device exchange, and the moments that they compute together. */
#include "harness.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/pjrt/module.h"
#include "base/checked.h"
#include "base/threefry.h"
#include "pjrt_plugin.h"
#include "training_graph.h"

/* x [N,3] -> dense, batch norm, dense, batch norm -> mean of squares, and a step of SGD. */
static sx_graph *batch_norms(void)
{
    enum { K = 3 };
    training_graph m = {.n = 0};
    assert_ok(sx_builder_create(&m.b));
    sx_value x = sx_input(m.b, "x", sx_type_of(SX_F32, SX_BATCH, K));
    for (int i = 0; i < 2; i++) {
        sx_value y = sx_matmul(m.b, x, weight(&m, sx_type_of(SX_F32, K, K)));
        sx_value mean = sx_moments(m.b, y, .axes = SX_AXES(0));
        sx_value scale = weight(&m, sx_type_of(SX_F32, K));
        x = sx_nn_batch_norm_train(m.b, y, scale, weight(&m, sx_type_of(SX_F32, K)), mean,
                                   sx_output_of(mean, 1), 1e-3);
    }
    return finish(&m, sx_reduce_mean(m.b, sx_mul(m.b, x, x)));
}

static int count(const sx_pjrt_module *p, const char *op)
{
    char text[64];
    int n = 0;
    snprintf(text, sizeof(text), "\"stablehlo.%s\"", op);
    for (const char *at = p->text; (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    return n;
}

/* A batch norm exchanges once forward, its moments, and once backward, its two sums. */
static void test_backends_exchange__once_for_a_batch_norm_and_direction(void **state)
{
    (void)state;
    enum { LAYERS = 2, OTHERS = 2 }; /* the loss; the gradients of all other weights together */
    static const struct {
        int replicas, shards, all_gather, all_reduce;
    } rows[] = {
        {1, 0, 0, 0},
        {2, 0, LAYERS, LAYERS + OTHERS},
        {64, 0, LAYERS, LAYERS + OTHERS},
        {128, 0, 0, 2 * LAYERS + LAYERS + OTHERS}, /* so many rows are not gathered */
        {2, 4, 2 * LAYERS + OTHERS, 0},            /* strict: every exchange is of this kind */
        {3, 6, 2 * LAYERS + OTHERS, 0},
    };
    sx_graph *g = batch_norms();
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_pjrt_module p;
        const sx_pjrt_module_options options = {
            .batch = 384, .replicas = rows[i].replicas, .shards = rows[i].shards};
        assert_ok(sx_pjrt_module_create(g, &options, &p));
        assert_int_equal(count(&p, "all_gather"), rows[i].all_gather);
        assert_int_equal(count(&p, "all_reduce"), rows[i].all_reduce);
        sx_pjrt_module_destroy(&p);
    }
    sx_graph_destroy(g);
}

enum { N = 64, PIXELS = 5, CHANNELS = 4 };

/* Channel 0: far from zero; 1: far from zero, and the parts far from each other; 2: the first
 * example far from the others; 3: one value. */
static void fill_moments(float *x)
{
    for (int i = 0; i < N * PIXELS; i++) {
        const sx_u32x2 word = sx_threefry2x32((sx_u32x2){3, 7}, (sx_u32x2){(uint32_t)i, 0});
        const float a = (float)(word.a % 2001) / 1000 - 1, b = (float)(word.b % 2001) / 1000 - 1;
        float *at = x + (size_t)i * CHANNELS;
        at[0] = 10000 + a;
        at[1] = 10000 + b + (float)(i / PIXELS / (N / 4));
        at[2] = i < PIXELS ? 1000 : a * b;
        at[3] = 3.7F;
    }
}

static void moments_on(const char *backend, int replicas, const float *x, float *mean,
                       float *variance)
{
    const bool pjrt = strcmp(backend, "pjrt") == 0;
    const sx_platform_options options = {.pjrt.replicas = replicas,
                                         .pjrt.plugin_path = pjrt ? pjrt_plugin() : NULL};
    sx_builder *b;
    sx_graph *g;
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *buffers[3];
    assert_ok(sx_builder_create(&b));
    sx_value v = sx_moments(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, PIXELS, CHANNELS)),
                            .axes = SX_AXES(0, 1));
    sx_output(b, "mean", v);
    sx_output(b, "variance", sx_output_of(v, 1));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_platform_open(backend, &options, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = N}, &e));
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0],
                                          i == 0 ? &e->arg_types[0] : &e->result_types[i - 1],
                                          &buffers[i]));
    }
    assert_ok(sx_device_buffer_write(buffers[0], x, false));
    assert_ok(sx_execute(e, buffers, buffers + 1));
    assert_ok(sx_device_buffer_read(buffers[1], mean));
    assert_ok(sx_device_buffer_read(buffers[2], variance));
    for (int i = 0; i < 3; i++) {
        sx_device_buffer_release(buffers[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
    sx_graph_destroy(g);
}

/* Sums of squares would lose all digits of the first variances: 10000² has a unit of 8 in float32.
 * Of the parts, each mean is rounded to a unit of 0.001. In channel 2, moments about the first
 * example's mean sum up 315 times 1000 and 1000²: where XLA adds them one after another, which the
 * processor decides, the sums are rounded to units of 0.03 and 32 in each of 315 steps. Random
 * errors of half a unit, sqrt(315) / 320 of which remain, are 7e-6 of the size and 6e-5 of the
 * variance. */
static void test_backends_exchange__moments_keep_their_digits(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const double of_sizes[CHANNELS] = {1e-6, 1e-6, 7e-6, 1e-6};
    static const double of_variances[CHANNELS] = {5e-4, 1e-3, 6e-5, 0};
    static float x[N * PIXELS * CHANNELS];
    float mean[CHANNELS], variance[CHANNELS], expected_mean[CHANNELS], expected[CHANNELS];
    fill_moments(x);
    moments_on("host", 0, x, expected_mean, expected);
    for (int replicas = 1; replicas <= 4; replicas++) {
        if (N % replicas != 0) {
            continue;
        }
        moments_on("pjrt", replicas, x, mean, variance);
        for (int k = 0; k < CHANNELS; k++) {
            const double of_mean = fabs((double)mean[k] - (double)expected_mean[k]);
            const double off = fabs((double)variance[k] - (double)expected[k]);
            const double size = fabs((double)expected_mean[k]) + sqrt((double)expected[k]);
            if (!(of_mean <= of_sizes[k] * size && off <= of_variances[k] * (double)expected[k])) {
                fail_msg("%d replicas, channel %d: mean %.9g, variance %.9g; expected %.9g, %.9g",
                         replicas, k, (double)mean[k], (double)variance[k],
                         (double)expected_mean[k], (double)expected[k]);
            }
        }
    }
}

/* ---- The order of sums, and the devices ---- */

/* The sum over a batch of one example for each replica, and twice the examples. */
static void sum_of_batch(const sx_pjrt_options *pjrt, int n, const float *x, float *sum,
                         float *twice)
{
    const sx_platform_options options = {.pjrt = *pjrt};
    sx_builder *b;
    sx_graph *g;
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *buffers[3];
    assert_ok(sx_builder_create(&b));
    sx_value v = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH));
    sx_output(b, "sum", sx_reduce_sum(b, v, .axes = SX_AXES(0)));
    sx_output(b, "twice", sx_add(b, v, v));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_platform_open("pjrt", &options, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = n}, &e));
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0],
                                          i == 0 ? &e->arg_types[0] : &e->result_types[i - 1],
                                          &buffers[i]));
    }
    assert_ok(sx_device_buffer_write(buffers[0], x, false));
    assert_ok(sx_execute(e, buffers, buffers + 1));
    assert_ok(sx_device_buffer_read(buffers[1], sum));
    assert_ok(sx_device_buffer_read(buffers[2], twice));
    for (int i = 0; i < 3; i++) {
        sx_device_buffer_release(buffers[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
    sx_graph_destroy(g);
}

/* Every order of adding these gives another sum; that of the tree is (a + b) + (c + d). */
static void test_backends_exchange__ordered_sums_have_the_bits_of_the_tree(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    static const float rows[][4] = {
        {1e8F, 1, -1e8F, 1}, {1, 1e8F, 1, -1e8F}, {1e8F, -1e8F, 3, 0.1F}, {0.1F, 0.2F, 0.3F, 0.7F}};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        const float *x = rows[i];
        const volatile float left = x[0] + x[1], right = x[2] + x[3];
        const float expected = left + right;
        float sum, twice[4];
        sum_of_batch(
            &(sx_pjrt_options){.plugin_path = pjrt_plugin(), .replicas = 4, .ordered_sums = true},
            4, x, &sum, twice);
        assert_memory_equal(&sum, &expected, sizeof(sum));
    }
    sx_graph *g = batch_norms();
    sx_pjrt_module p;
    assert_ok(sx_pjrt_module_create(
        g, &(sx_pjrt_module_options){.batch = 8, .replicas = 2, .ordered_sums = true}, &p));
    assert_int_equal(count(&p, "all_reduce"), 0);
    sx_pjrt_module_destroy(&p);
    sx_graph_destroy(g);
}

/* The replicas are the devices that were chosen, and no others; examples stay in order. */
static void test_backends_exchange__replicas_are_the_chosen_devices(void **state)
{
    (void)state;
    static const struct {
        int n, chosen[3];
        const char *name;
    } rows[] = {{2, {3, 1}, "/device:CPU:3,1"},
                {1, {2}, "/device:CPU:2"},
                {3, {0, 1, 2}, "/device:CPU:0,1,2"}};
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        const sx_pjrt_options options = {.plugin_path = ref_plugin(),
                                         .replicas = rows[i].n,
                                         .chosen = rows[i].chosen,
                                         .n_chosen = rows[i].n};
        sx_platform *p;
        float sum, twice[6];
        unsigned long bits = 0;
        assert_ok(sx_platform_open("pjrt", &(sx_platform_options){.pjrt = options}, &p));
        assert_int_equal(p->n_devices, 1);
        assert_string_equal(p->devices[0]->name, rows[i].name);
        atomic_ulong *used = (atomic_ulong *)(uintptr_t)&ref_plugin_counts()->devices;
        atomic_store(used, 0);
        sum_of_batch(&options, 6, x, &sum, twice);
        for (int r = 0; r < rows[i].n; r++) {
            bits |= 1ul << rows[i].chosen[r];
        }
        assert_int_equal(atomic_load(used), bits);
        assert_true(sum == 21);
        for (int k = 0; k < 6; k++) {
            assert_true(twice[k] == 2 * x[k]);
        }
        sx_platform_close(p);
    }
    sx_platform *p;
    assert_error(sx_platform_open("pjrt",
                                  &(sx_platform_options){.pjrt = {.plugin_path = ref_plugin(),
                                                                  .replicas = 2,
                                                                  .chosen = (int[]){0, 4},
                                                                  .n_chosen = 2}},
                                  &p),
                 SX_INVALID_ARGUMENT, "device 4 requested, but");
    assert_error(sx_platform_open("pjrt",
                                  &(sx_platform_options){.pjrt = {.plugin_path = ref_plugin(),
                                                                  .replicas = 3,
                                                                  .chosen = (int[]){0, 1},
                                                                  .n_chosen = 2}},
                                  &p),
                 SX_INVALID_ARGUMENT, "2 devices chosen for 3 replicas");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_exchange__once_for_a_batch_norm_and_direction),
    cmocka_unit_test(test_backends_exchange__moments_keep_their_digits),
    cmocka_unit_test(test_backends_exchange__ordered_sums_have_the_bits_of_the_tree),
    cmocka_unit_test(test_backends_exchange__replicas_are_the_chosen_devices),
};
SX_TEST_MAIN(tests)
