/* Pixels between two (kernels/blend.c): as gathers and arithmetic compute them, to the bit. */
#include "harness.h"

#include "backends/backend.h"
#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"

enum { IMAGES = 2, HEIGHT = 5, WIDTH = 7, MADE = 9, MOST_CHANNELS = 20 };

/* y = a + (b - a) share along `axis`; a is a result too if `apart`, so that all parts stay. */
static sx_graph *build(int64_t channels, int axis, bool apart)
{
    static const int64_t low[MADE] = {0, 0, 1, 2, 2, 3, 3, 4, 4},
                         high[MADE] = {0, 1, 1, 3, 3, 4, 4, 4, 4};
    static const float share[MADE] = {0, 0.3F, 0.7F, 0.1F, 0.999F, 0.25F, 0.5F, 0.6F, 0};
    const sx_gather_attrs along = {.axis = axis};
    sx_builder *b;
    sx_graph *g = NULL;
    assert_ok(sx_builder_create(&b));
    const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, IMAGES, HEIGHT, WIDTH, channels));
    const sx_value lows = sx_constant(b, (sx_tensor){sx_type_of(SX_I64, MADE), (void *)low});
    const sx_value highs = sx_constant(b, (sx_tensor){sx_type_of(SX_I64, MADE), (void *)high});
    const sx_type shares = axis == 1 ? sx_type_of(SX_F32, MADE, 1, 1) : sx_type_of(SX_F32, MADE, 1);
    const sx_value part = sx_constant(b, (sx_tensor){shares, (void *)share});
    const sx_value a = sx_build_op(b, gather, &along, x, lows);
    const sx_value c = sx_build_op(b, gather, &along, x, highs);
    const sx_value product = sx_build_op(b, mul, NULL, sx_build_op(b, sub, NULL, c, a), part);
    sx_output(b, "y", sx_build_op(b, add, NULL, a, product));
    if (apart) {
        sx_output(b, "a", a);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* The first result; whether one kernel made it. */
static bool run(sx_platform *platform, const sx_graph *g, const float *x, float *y)
{
    sx_executable *e;
    sx_run *run_state;
    const sx_kernel_time *kernels = NULL;
    sx_device_buffer *in, *out[2] = {NULL, NULL};
    bool blended = false;
    int n = 0;
    assert_ok(sx_compile(platform, g,
                         &(sx_compile_options){.batch = 1, .shards = 1, .profile = true}, &e));
    assert_ok(
        sx_device_buffer_create(platform->devices[0], sx_graph_type(g, g->args[0].value), &in));
    assert_ok(sx_device_buffer_write(in, x, false));
    for (int i = 0; i < g->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0],
                                          sx_graph_type(g, g->results[i].value), &out[i]));
    }
    assert_ok(sx_execute(e, &in, out));
    assert_ok(sx_device_buffer_read(out[0], y));
    assert_ok(sx_run_create(e, &run_state));
    assert_ok(sx_run_get_profile(run_state, &kernels, &n));
    for (int i = 0; i < n; i++) {
        blended = blended || strstr(kernels[i].kernel, "blend") != NULL;
    }
    sx_run_destroy(run_state);
    sx_device_buffer_release(in);
    for (int i = 0; i < g->n_results; i++) {
        sx_device_buffer_release(out[i]);
    }
    sx_executable_release(e);
    return blended;
}

/* Channels that are numbers, pixels and rows; one thread, and ranges among several. */
static void test_backends_blend__equals_its_parts(void **state)
{
    (void)state;
    static const int64_t channels[] = {1, 2, 3, 4, 5, MOST_CHANNELS};
    static float x[IMAGES * HEIGHT * WIDTH * MOST_CHANNELS];
    static float want[IMAGES * MADE * MADE * MOST_CHANNELS], got[SX_COUNT(want)];
    for (size_t i = 0; i < SX_COUNT(x); i++) {
        x[i] = (float)((double)(i * 7919 % 1009) / 97 - 5);
    }
    for (int threads = 1; threads <= 3; threads += 2) {
        sx_platform *platform;
        assert_ok(
            sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = threads}, &platform));
        for (size_t c = 0; c < SX_COUNT(channels); c++) {
            for (int axis = 1; axis <= 2; axis++) {
                sx_graph *one = build(channels[c], axis, false);
                sx_graph *parts = build(channels[c], axis, true);
                const int64_t elems = IMAGES * MADE * (axis == 1 ? WIDTH : HEIGHT) * channels[c];
                assert_true(run(platform, one, x, got));
                assert_false(run(platform, parts, x, want));
                assert_memory_equal(got, want, (size_t)elems * sizeof(float));
                sx_graph_destroy(one);
                sx_graph_destroy(parts);
            }
        }
        sx_platform_close(platform);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_blend__equals_its_parts),
};
SX_TEST_MAIN(tests)
