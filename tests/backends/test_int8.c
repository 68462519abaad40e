/* Products of 8-bit integers on the cpu (kernels/int8.c), against the host kernels of the same
 * graphs: quantizers, and float32 between them. */
#include "harness.h"

#include <math.h>
#include <string.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/cpu/onednn2.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "graph/builder.h"
#include "graph/op_def.h"

/* ---- Graphs ---- */

typedef enum act { PLAIN, RELU, RELU6, SWISH } act;

/* One product and what may stand around it. */
typedef struct product_case {
    const char *name;
    int64_t h, w, c, o; /* of the image; h 0: a matrix of w columns */
    int kernel, stride, groups, dilation;
    act act;
    bool is_signed; /* the image */
    bool bias, add;
    bool quantized;  /* the result */
    bool fake_quant; /* quantizers of that operator */
} product_case;

static sx_value number(sx_builder *b, float v)
{
    float *data = sx_arena_array(sx_builder_arena(b), 1, float);
    *data = v;
    return sx_constant(b, (sx_tensor){sx_scalar_type(SX_F32), data});
}

/* Ranges of which the first channel's is that of zeros. */
static sx_value numbers(sx_builder *b, int64_t n, float v)
{
    float *data = sx_arena_array(sx_builder_arena(b), n, float);
    for (int64_t i = 0; i < n; i++) {
        data[i] = i == 0 && n > 3 ? 0 : v * (1 + (float)(i % 5) / 8);
    }
    return sx_constant(b, (sx_tensor){sx_type_of(SX_F32, n), data});
}

static sx_value quantize(sx_builder *b, sx_value x, bool is_signed, bool fake, float most)
{
    if (fake) { /* 0 is the 128th of 256 numbers, or the first */
        const sx_value low = number(b, is_signed ? -most * 128 / 127 : 0);
        return sx_fake_quant(b, x, low, number(b, most));
    }
    return sx_quantize_dequantize(b, x, number(b, is_signed ? -most : 0), number(b, most),
                                  .unsigned_input = !is_signed);
}

static sx_value quantize_filter(sx_builder *b, sx_value w, int64_t filters, bool fake)
{
    const sx_value low = numbers(b, filters, -0.8f), high = numbers(b, filters, 0.8f);
    return fake ? sx_fake_quant(b, w, low, high, .narrow_range = true)
                : sx_quantize_dequantize(b, w, low, high, .narrow_range = true, .per_channel = true,
                                         .axis = -1);
}

static sx_value variable(sx_builder *b, const char *name, sx_type type)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = type});
}

static sx_value act_of(sx_builder *b, act a, sx_value y)
{
    return a == RELU    ? sx_relu(b, y)
           : a == RELU6 ? sx_relu6(b, y)
           : a == SWISH ? sx_swish(b, y)
                        : y;
}

/* The unit of the results' integers. */
static float range_of(const product_case *c)
{
    return c->act == RELU6 ? 5 : 4;
}

static sx_graph *product_graph(const product_case *c)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const bool is_matrix = c->h == 0;
    const int groups = c->groups > 0 ? c->groups : 1, kernel = c->kernel > 0 ? c->kernel : 1;
    sx_value x = sx_input(b, "x",
                          is_matrix ? sx_type_of(SX_F32, SX_BATCH, c->w, c->c)
                                    : sx_type_of(SX_F32, SX_BATCH, c->h, c->w, c->c));
    sx_value w = variable(b, "w",
                          is_matrix ? sx_type_of(SX_F32, c->c, c->o)
                                    : sx_type_of(SX_F32, kernel, kernel, c->c / groups, c->o));
    x = quantize(b, x, c->is_signed, c->fake_quant, 0.9f);
    w = quantize_filter(b, w, c->o, c->fake_quant);
    sx_value y = is_matrix ? sx_matmul(b, x, w)
                           : sx_nn_conv2d(b, x, w, .padding = SX_SAME, .groups = groups,
                                          .strides = {c->stride}, .dilations = {c->dilation});
    if (c->bias) {
        y = sx_bias_add(b, y, variable(b, "bias", sx_type_of(SX_F32, c->o)));
    }
    if (c->add) {
        sx_value other = sx_input(b, "other", sx_type_of_value(b, y));
        other = c->quantized ? quantize(b, other, !c->is_signed, c->fake_quant, 1.1f) : other;
        y = c->is_signed ? sx_add(b, y, other) : sx_add(b, other, y);
    }
    y = act_of(b, c->act, y);
    if (c->quantized) {
        y = quantize(b, y, c->act != RELU && c->act != RELU6, c->fake_quant, range_of(c));
    }
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* ---- Running ---- */

typedef struct results {
    float *y;
    int64_t elems;
    int products, kernels; /* of the cpu, that run each time: of integers, all */
} results;

enum { MAX_ARGS = 24 };

/* Arguments are numbers in [-1, 1). */
static results run(const char *backend, const sx_graph *g, int64_t batch, int threads, int shards)
{
    sx_platform *platform;
    sx_executable *e;
    sx_run *run;
    sx_device_buffer *args[MAX_ARGS], *output;
    const sx_kernel_time *rows = NULL;
    results r = {0};
    assert_ok(sx_platform_open(
        backend, &(sx_platform_options){.cpu = {.threads = threads, .integers = true}}, &platform));
    assert_ok(sx_compile(
        platform, g,
        &(sx_compile_options){.batch = batch, .shards = shards, .frozen = true, .profile = true},
        &e));
    assert_ok(sx_run_create(e, &run));
    for (int i = 0; i < e->n_args; i++) {
        const int64_t n = sx_type_elems(&e->arg_types[i]);
        float *data = sx_alloc((size_t)n + 1, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < n; k++) {
            const sx_u32x2 bits =
                sx_threefry2x32((sx_u32x2){5, (uint32_t)i}, (sx_u32x2){(uint32_t)k, 0});
            data[k] = 2 * sx_uniform_f32(bits.a) - 1;
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data, false));
        sx_free(data);
    }
    r.elems = sx_type_elems(&e->result_types[0]);
    r.y = sx_alloc((size_t)r.elems + 1, sizeof(float));
    assert_non_null(r.y);
    assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &output));
    for (int i = 0; i < 2; i++) { /* the second finds what the first has prepared */
        assert_ok(sx_run_execute(run, args, &output));
    }
    assert_ok(sx_device_buffer_read(output, r.y));
    if (strcmp(backend, "cpu") == 0) {
        int n = 0;
        assert_ok(sx_run_get_profile(run, &rows, &n));
        for (int i = 0; i < n; i++) {
            r.kernels += rows[i].total_ns > 0;
            r.products += strstr(rows[i].kernel, " int8 ") != NULL;
        }
    }
    sx_device_buffer_release(output);
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_platform_close(platform);
    return r;
}

/* Sums of floats are rounded elsewhere than those of integers: an element of a result may be on the
 * other side of a step, where `step` is not 0. */
static void compare(const char *name, const results *a, const results *b, float step, double part)
{
    double greatest = 0, worst = 0;
    int64_t off = 0;
    assert_int_equal(a->elems, b->elems);
    for (int64_t i = 0; i < a->elems; i++) {
        const double d = fabs((double)a->y[i] - (double)b->y[i]);
        greatest = harness_greater(greatest, fabs((double)a->y[i]));
        worst = harness_greater(worst, d);
        off += d > 1e-5;
    }
    const bool near =
        step > 0 ? worst <= 1.001 * (double)step && (double)off <= 1 + part * (double)a->elems
                 : worst <= 2e-5 * greatest;
    if (!(greatest > 0 && near)) {
        fail_msg("%s: %lld of %lld differ, by %.4g of %.4g at most", name, (long long)off,
                 (long long)a->elems, worst, greatest);
    }
}

/* ---- One product ---- */

static const product_case cases[] = {
    {"3x3", 9, 7, 16, 32, 3, 1, .act = RELU, .bias = true, .quantized = true},
    {"3x3 fake_quant", 9, 7, 16, 32, 3, 1, .act = RELU, .bias = true, .quantized = true,
     .fake_quant = true},
    {"3x3 signed", 9, 7, 16, 32, 3, 1, .is_signed = true, .bias = true, .quantized = true},
    {"3x3 signed fake_quant", 9, 7, 16, 32, 3, 1, .is_signed = true, .quantized = true,
     .fake_quant = true},
    {"odd channels", 8, 11, 13, 7, 3, 2, .act = RELU6, .bias = true, .quantized = true},
    {"one channel", 8, 8, 1, 5, 5, 1, .act = RELU, .bias = true, .quantized = true},
    {"image", 33, 31, 3, 24, 7, 2, .is_signed = true, .act = RELU, .bias = true},
    {"1x1 sum", 14, 14, 64, 128, 1, 1, .act = RELU, .bias = true, .add = true, .quantized = true},
    {"1x1 sum signed", 14, 14, 64, 128, 1, 1, .act = RELU, .is_signed = true, .bias = true,
     .add = true, .quantized = true},
    {"1x1 sum, no activation", 7, 7, 24, 40, 1, 1, .is_signed = true, .add = true,
     .quantized = true},
    {"1x1 strided", 14, 13, 64, 32, 1, 2, .bias = true, .quantized = true},
    {"swish", 10, 10, 16, 24, 1, 1, .act = SWISH, .bias = true, .quantized = true},
    {"swish sum", 10, 10, 16, 24, 1, 1, .act = SWISH, .bias = true, .add = true, .quantized = true},
    {"depthwise", 12, 12, 32, 32, 3, 1, 32, .act = RELU6, .bias = true, .quantized = true},
    {"depthwise signed", 13, 12, 24, 24, 5, 2, 24, .is_signed = true, .act = SWISH, .bias = true,
     .quantized = true},
    {"grouped", 12, 12, 32, 64, 3, 1, 4, .act = RELU, .bias = true, .quantized = true},
    {"dilated", 12, 12, 16, 16, 3, 1, 1, 2, .act = RELU, .bias = true, .quantized = true},
    {"float", 9, 7, 16, 32, 3, 1, .act = RELU, .bias = true},
    {"float sum", 9, 7, 16, 32, 3, 1, .act = RELU, .bias = true, .add = true},
    {"float alone", 9, 7, 16, 32, 3, 1, .act = PLAIN},
    {"float swish", 9, 7, 16, 32, 3, 1, .act = SWISH, .bias = true},
    {"pixel", 1, 1, 16, 32, 1, 1, .bias = true, .quantized = true},
    {"large", 28, 28, 64, 64, 3, 1, .act = RELU, .bias = true, .quantized = true},
    {"matrix", 0, 17, 64, 48, .act = RELU, .bias = true, .quantized = true},
    {"matrix float", 0, 5, 100, 10, .is_signed = true, .bias = true},
    {"matrix sum", 0, 17, 64, 48, .is_signed = true, .bias = true, .add = true, .quantized = true},
};

static void test_backends_int8__products_equal_the_host(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 3};
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        sx_graph *g = product_graph(&cases[i]);
        for (int k = 0; k < 2; k++) {
            const float step = cases[i].quantized ? range_of(&cases[i]) / 127 * 1.01f : 0;
            results host = run("host", g, batches[k], 1, 1), cpu = run("cpu", g, batches[k], 2, 0);
            compare(cases[i].name, &host, &cpu, step, 0.002);
            if (cpu.products != sx_dnn_has_int8()) {
                fail_msg("%s: %d products of integers", cases[i].name, cpu.products);
            }
            sx_free(host.y);
            sx_free(cpu.y);
        }
        sx_graph_destroy(g);
    }
}

/* ---- Several ---- */

static sx_value layer(sx_builder *b, sx_value x, const char *name, int64_t c, int64_t o, int kernel)
{
    sx_value w = variable(b, name, sx_type_of(SX_F32, kernel, kernel, c, o));
    char bias[16];
    snprintf(bias, sizeof(bias), "%s/bias", name);
    return sx_bias_add(b, sx_nn_conv2d(b, x, quantize_filter(b, w, o, false), .padding = SX_SAME),
                       variable(b, bias, sx_type_of(SX_F32, o)));
}

/* A block of ResNet behind a pool, with another that changes the channels; the mean reads integers
 * as floats. */
static sx_graph *blocks_graph(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 20, 20, 3));
    x = sx_relu(b, layer(b, quantize(b, x, true, false, 1), "first", 3, 32, 3));
    x = sx_nn_max_pool2d(b, quantize(b, x, false, false, 3), .window = {2});
    sx_value y = quantize(b, sx_relu(b, layer(b, x, "a", 32, 16, 1)), false, false, 6);
    y = quantize(b, sx_relu(b, layer(b, y, "b", 16, 16, 3)), false, false, 12);
    x = quantize(b, sx_relu(b, sx_add(b, x, layer(b, y, "c", 16, 32, 1))), false, false, 24);
    y = quantize(b, sx_relu(b, layer(b, x, "d", 32, 16, 3)), false, false, 80);
    sx_value other = quantize(b, layer(b, x, "e", 32, 48, 1), true, false, 60);
    x = sx_relu(b, sx_add(b, layer(b, y, "f", 16, 48, 1), other));
    x = quantize(b, x, false, false, 200);
    sx_output(b, "y", sx_reduce_mean(b, x, .axes = SX_AXES(1, 2)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

enum { PRODUCTS = 7 };

static void test_backends_int8__blocks_equal_the_host(void **state)
{
    (void)state;
    sx_graph *g = blocks_graph();
    results host = run("host", g, 3, 1, 1), cpu = run("cpu", g, 3, 1, 1);
    double greatest = 0, worst = 0;
    for (int64_t i = 0; i < host.elems; i++) {
        greatest = harness_greater(greatest, fabs((double)host.y[i]));
        worst = harness_greater(worst, fabs((double)host.y[i] - (double)cpu.y[i]));
    }
    assert_true(greatest > 1 && worst < 0.01 * greatest);
    if (sx_dnn_has_int8()) { /* and the image, the pool, the mean and integers that it reads */
        assert_int_equal(cpu.products, PRODUCTS);
        assert_int_equal(cpu.kernels, PRODUCTS + 4);
    }
    sx_free(host.y);
    sx_free(cpu.y);
    sx_graph_destroy(g);
}

static void test_backends_int8__threads_and_shards_change_no_bit(void **state)
{
    (void)state;
    sx_graph *g = blocks_graph();
    results one = run("cpu", g, 5, 1, 1);
    for (int shards = 1; shards <= 3; shards++) {
        for (int threads = 1; threads <= 3; threads++) {
            results other = run("cpu", g, 5, threads, shards);
            assert_int_equal(other.products, one.products);
            assert_memory_equal(other.y, one.y, (size_t)one.elems * sizeof(float));
            sx_free(other.y);
        }
    }
    sx_free(one.y);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_int8__products_equal_the_host),
    cmocka_unit_test(test_backends_int8__blocks_equal_the_host),
    cmocka_unit_test(test_backends_int8__threads_and_shards_change_no_bit),
};

SX_TEST_MAIN(tests)
