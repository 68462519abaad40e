/* A graph that is fed bytes computes what the host does: a product, rounded, then a sum, rounded,
 * also where a device's compiler fuses what comes one after the other, or joins constants. */
#include "harness.h"

#include <string.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "graph/passes/passes.h"
#include "image/preprocess.h"
#include "pjrt_plugin.h"

enum { VALUES = 256, CHANNELS = 3, ELEMS = VALUES * CHANNELS };

static void execute(sx_platform *platform, const sx_graph *g, const void *in, float *out)
{
    sx_executable *e = NULL;
    sx_device_buffer *arg = NULL, *result = NULL;
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = VALUES}, &e));
    assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[0], &arg));
    assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &result));
    assert_ok(sx_device_buffer_write(arg, in, false));
    assert_ok(sx_execute(e, &arg, &result));
    assert_ok(sx_device_buffer_read(result, out));
    sx_device_buffer_release(arg);
    sx_device_buffer_release(result);
    sx_executable_release(e);
}

/* The model begins with a sum, or with a product. */
static sx_graph *make_graph(bool adds)
{
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "features", sx_type_of(SX_F32, SX_BATCH, CHANNELS));
    sx_output(b, "y",
              adds ? sx_add(b, x, sx_constant_f32(b, 0.1)) : sx_mul(b, x, sx_constant_f32(b, 0.3)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void check_scales(const char *backend, const sx_platform_options *options)
{
    static const sx_preprocess scales[] = {
        {.channels = CHANNELS},
        {.channels = CHANNELS, .scale = SX_0_1},
        {.channels = CHANNELS, .scale = SX_MINUS1_1},
        {.channels = CHANNELS,
         .scale = SX_MEAN_STD,
         .mean = {0.485f, 0.456f, 0.406f},
         .std = {0.229f, 0.224f, 0.225f}},
    };
    static uint8_t bytes[ELEMS];
    static float floats[ELEMS], want[ELEMS], got[ELEMS];
    sx_platform *platform = NULL;
    assert_ok(sx_platform_open(backend, options, &platform));
    for (int i = 0; i < 2 * (int)(sizeof(scales) / sizeof(scales[0])); i++) {
        sx_affine scale;
        sx_graph *whole = make_graph(i % 2), *fed = NULL;
        sx_preprocess_affine(&scales[i / 2], &scale);
        for (int k = 0; k < ELEMS; k++) {
            bytes[k] = (uint8_t)(k / CHANNELS);
            floats[k] = bytes[k];
        }
        sx_scale_channels(floats, VALUES, CHANNELS, scale.mul, scale.add);
        assert_ok(sx_pass_feed_bytes(whole, "features", CHANNELS, scale.mul, scale.add, &fed));
        execute(platform, whole, floats, want);
        execute(platform, fed, bytes, got);
        for (int k = 0; k < ELEMS; k++) {
            if (got[k] != want[k]) {
                fail_msg("%s, scale %d, model %d: byte %d is %.9g, expected %.9g", backend, i / 2,
                         i % 2, k / CHANNELS, (double)got[k], (double)want[k]);
            }
        }
        sx_graph_destroy(fed);
        sx_graph_destroy(whole);
    }
    sx_platform_close(platform);
}

static void test_backends_feed_bytes__is_exact_on_the_host(void **state)
{
    (void)state;
    check_scales("host", &(sx_platform_options){0});
    check_scales("cpu", &(sx_platform_options){0});
}

static void test_backends_feed_bytes__is_exact_on_pjrt(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_scales("pjrt", &(sx_platform_options){.pjrt.plugin_path = pjrt_plugin()});
}

static void test_backends_feed_bytes__other_inputs(void **state)
{
    (void)state;
    const float one[CHANNELS] = {1, 1, 1}, zero[CHANNELS] = {0};
    sx_graph *g = make_graph(false), *fed = NULL;
    assert_error(sx_pass_feed_bytes(g, "image", CHANNELS, one, zero, &fed), SX_INVALID_ARGUMENT,
                 "no input \"image\"");
    assert_error(sx_pass_feed_bytes(g, "features", 1, one, zero, &fed), SX_INVALID_ARGUMENT,
                 "float32 [..., 1]");
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_feed_bytes__is_exact_on_the_host),
    cmocka_unit_test(test_backends_feed_bytes__is_exact_on_pjrt),
    cmocka_unit_test(test_backends_feed_bytes__other_inputs),
};
SX_TEST_MAIN(tests)
