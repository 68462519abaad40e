/* Convolutions that the cpu computes otherwise than one by one over a batch, against the host
 * kernels: those whose borders nobody reads, and those of one large example. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "setting.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "graph/ir.h"

/* ---- Borders that no kernel needs (cpu/crop.c) ---- */

typedef struct border_case {
    const char *name;
    int64_t size;
    int filters, groups;
    bool first; /* the pool before is behind a convolution too */
} border_case;

/* pool -> conv, bias, relu -> pool, with excess borders; outputs: sum and gradients */
static sx_graph *border_graph(const border_case *c)
{
    sx_builder *b;
    sx_graph *g;
    sx_value dx[3];
    int64_t channels = c->first ? 32 : 4;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, c->size, c->size, c->first ? 1 : 4));
    sx_value stem = sx_input(b, "stem", sx_type_of(SX_F32, 3, 3, 1, 32));
    sx_value vector = sx_input(b, "vector", sx_type_of(SX_F32, 32));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, channels / c->groups, c->filters));
    sx_value bias = sx_input(b, "bias", sx_type_of(SX_F32, c->filters));
    sx_value y = x;
    if (c->first) {
        y = sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, x, stem), vector));
    }
    y = sx_nn_max_pool2d(b, y, .window = {2});
    y = sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, y, w, .groups = c->groups), bias));
    y = sx_nn_max_pool2d(b, y, .window = {2});
    sx_value loss = sx_reduce_sum(b, sx_square(b, y), .axes = SX_AXES(0, 1, 2, 3));
    sx_output(b, "loss", loss);
    sx_gradients(b, loss, (const sx_value[]){w, bias, c->first ? stem : x}, 3, dx);
    for (int i = 0; i < 3; i++) {
        sx_output(b, i == 0 ? "dw" : i == 1 ? "dbias" : "dx", dx[i]);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

enum { BORDER_OUTPUTS = 4 };

static void run_borders(const sx_graph *g, const setting *s, float *out[BORDER_OUTPUTS],
                        int64_t elems[BORDER_OUTPUTS])
{
    sx_platform *platform;
    sx_executable *e;
    sx_device_buffer *args[8], *outputs[8];
    assert_ok(
        sx_platform_open(s->backend, &(sx_platform_options){.cpu.threads = s->threads}, &platform));
    assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 5, .shards = s->shards}, &e));
    for (int i = 0; i < e->n_args; i++) {
        int64_t n = sx_type_elems(&e->arg_types[i]);
        float *data = sx_alloc((size_t)n, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < n; k++) {
            data[k] =
                sx_uniform_f32(
                    sx_threefry2x32((sx_u32x2){9, (uint32_t)i}, (sx_u32x2){(uint32_t)k, 0}).a) -
                0.5F;
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data, false));
        sx_free(data);
    }
    for (int i = 0; i < e->n_results; i++) {
        elems[i] = sx_type_elems(&e->result_types[i]);
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
    }
    assert_ok(sx_execute(e, args, outputs));
    for (int i = 0; i < e->n_results; i++) {
        out[i] = sx_alloc((size_t)elems[i], sizeof(float));
        assert_non_null(out[i]);
        assert_ok(sx_device_buffer_read(outputs[i], out[i]));
        sx_device_buffer_release(outputs[i]);
    }
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_executable_release(e);
    sx_platform_close(platform);
}

static void check_borders(const border_case *c, const setting *s)
{
    float *got[BORDER_OUTPUTS], *expected[BORDER_OUTPUTS];
    int64_t elems[BORDER_OUTPUTS];
    sx_graph *g = border_graph(c);
    run_borders(g, &(setting){"host", 1, 1, SX_F32}, expected, elems);
    run_borders(g, s, got, elems);
    for (int i = 0; i < BORDER_OUTPUTS; i++) {
        double greatest = 0, worst = 0;
        for (int64_t k = 0; k < elems[i]; k++) {
            greatest = harness_greater(greatest, fabs((double)expected[i][k]));
            worst = harness_greater(worst, fabs((double)got[i][k] - (double)expected[i][k]));
        }
        if (!(greatest > 0 && worst <= 1e-4 * greatest)) {
            fail_msg("%s, %d shards: output %d differs by %.3g of %.3g", c->name, s->shards, i,
                     worst, greatest);
        }
        sx_free(got[i]);
        sx_free(expected[i]);
    }
    sx_graph_destroy(g);
}

static void test_backends_convolutions__borders_that_nobody_reads(void **state)
{
    (void)state;
    static const border_case cases[] = {
        {"one pool", 15, 16, 1, false},     {"no excess", 16, 16, 1, false},
        {"behind a stem", 28, 64, 1, true}, {"odd filters", 15, 6, 1, false},
        {"grouped", 15, 16, 2, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int shards = 1; shards <= 2; shards++) {
            check_borders(&cases[i], &(setting){"cpu", 2, shards, SX_F32});
        }
    }
}

/* ---- What no kernel computes ---- */

typedef enum reader { MAX_POOL, AVG_POOL, SLICE, SLICE_AND_OUTPUT, SAME_POOL } reader;

/* [N,15,15,4] -> pool [7,7] -> conv 3x3 [5,5,16] -> tanh -> `by` */
static sx_graph *read_in_part(reader by)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 15, 15, 4));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, 4, 16));
    sx_value y = sx_tanh(b, sx_nn_conv2d(b, sx_nn_max_pool2d(b, x, .window = {2}), w));
    if (by == SLICE_AND_OUTPUT) {
        sx_output(b, "whole", y);
    }
    y = by == MAX_POOL    ? sx_nn_max_pool2d(b, y, .window = {2})
        : by == AVG_POOL  ? sx_nn_avg_pool2d(b, y, .window = {2})
        : by == SAME_POOL ? sx_nn_max_pool2d(b, y, .window = {2}, .padding = SX_SAME)
                          : sx_slice(b, y, .begin = {0, 1}, .size = {SX_BATCH, 2, 2, 16});
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Of the step that computes the convolution. */
static double conv_flops(const sx_graph *g)
{
    sx_platform *platform;
    sx_executable *e;
    sx_run *run;
    const sx_kernel_time *rows;
    double flops = 0;
    int n;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    assert_ok(sx_compile(platform, g,
                         &(sx_compile_options){.batch = 5, .shards = 1, .profile = true}, &e));
    assert_ok(sx_run_create(e, &run));
    assert_ok(sx_run_get_profile(run, &rows, &n));
    for (int i = 0; i < n; i++) {
        flops = strncmp(rows[i].node, "conv2d", 6) == 0 ? rows[i].flops : flops;
    }
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_platform_close(platform);
    return flops;
}

static void test_backends_convolutions__only_what_is_read_is_computed(void **state)
{
    (void)state;
    static const struct {
        reader by;
        int64_t pixels;
    } cases[] = {{MAX_POOL, 4 * 4},
                 {AVG_POOL, 4 * 4},
                 {SLICE, 3 * 2},
                 {SLICE_AND_OUTPUT, 5 * 5},
                 {SAME_POOL, 5 * 5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float *got[BORDER_OUTPUTS], *expected[BORDER_OUTPUTS];
        int64_t elems[BORDER_OUTPUTS];
        sx_graph *g = read_in_part(cases[i].by);
        const int n = cases[i].by == SLICE_AND_OUTPUT ? 2 : 1;
        assert_true(conv_flops(g) == 2.0 * 5 * (double)cases[i].pixels * 9 * 4 * 16);
        run_borders(g, &(setting){"host", 1, 1, SX_F32}, expected, elems);
        run_borders(g, &(setting){"cpu", 2, 2, SX_F32}, got, elems);
        for (int k = 0; k < n; k++) {
            for (int64_t at = 0; at < elems[k]; at++) {
                assert_true(fabsf(got[k][at] - expected[k][at]) <= 1e-5F);
            }
            sx_free(got[k]);
            sx_free(expected[k]);
        }
        sx_graph_destroy(g);
    }
}

/* ---- Borders of zeros ---- */

/* Of a graph with one output: the cpu's, in so many shards, 0 = its choice, beside the host's. */
static void check_output(const sx_graph *g, int shards, int threads, float tolerance)
{
    float *got[BORDER_OUTPUTS], *expected[BORDER_OUTPUTS];
    int64_t elems[BORDER_OUTPUTS];
    run_borders(g, &(setting){"host", 1, shards > 0 ? 1 : 0, SX_F32}, expected, elems);
    run_borders(g, &(setting){"cpu", threads, shards, SX_F32}, got, elems);
    for (int64_t k = 0; k < elems[0]; k++) {
        assert_true(fabsf(got[0][k] - expected[0][k]) <= tolerance);
    }
    sx_free(got[0]);
    sx_free(expected[0]);
}

/* Steps of the kernel in the graph's plan. */
static int kernel_count(const sx_graph *g, const char *kernel)
{
    sx_platform *platform;
    sx_executable *e;
    sx_run *run;
    const sx_kernel_time *rows;
    int n, found = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    assert_ok(sx_compile(platform, g,
                         &(sx_compile_options){.batch = 5, .shards = 1, .profile = true}, &e));
    assert_ok(sx_run_create(e, &run));
    assert_ok(sx_run_get_profile(run, &rows, &n));
    for (int i = 0; i < n; i++) {
        found += strcmp(rows[i].kernel, kernel) == 0;
    }
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_platform_close(platform);
    return found;
}

static void test_backends_convolutions__pad_their_image(void **state)
{
    (void)state;
    static const struct {
        sx_padding padding;
        int64_t stride, kernel;
        double value;
        int pads; /* steps that pad */
    } cases[] = {{SX_VALID, 1, 3, 0, 0},    {SX_VALID, 2, 3, 0, 0}, {SX_SAME, 2, 3, 0, 0},
                 {SX_EXPLICIT, 1, 3, 0, 0}, {SX_VALID, 1, 3, 2, 1}, {SX_VALID, 1, 1, 0, 0},
                 {SX_SAME, 3, 1, 0, 0}};
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        sx_builder *b;
        sx_graph *g;
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 9, 8, 4));
        sx_value w = sx_input(b, "w", sx_type_of(SX_F32, cases[i].kernel, cases[i].kernel, 4, 6));
        sx_value padded =
            sx_pad(b, x, .before = {0, 1, 0, 0}, .after = {0, 2, 3, 0}, .value = cases[i].value);
        sx_output(b, "y",
                  sx_nn_conv2d(b, padded, w, .strides = {cases[i].stride},
                               .padding = cases[i].padding,
                               .pads = {cases[i].padding == SX_EXPLICIT ? 1 : 0}));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        check_output(g, 2, 2, 1e-5F);
        assert_int_equal(kernel_count(g, "pad"), cases[i].pads);
        sx_graph_destroy(g);
    }
}

/* Of an image without pixels only the border is left. */
static void test_backends_convolutions__pad_an_empty_image(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    float *got[BORDER_OUTPUTS], *expected[BORDER_OUTPUTS];
    int64_t elems[BORDER_OUTPUTS];
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 0, 8, 4));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, 4, 6));
    sx_value padded = sx_pad(b, x, .before = {0, 2, 0, 0}, .after = {0, 2, 0, 0});
    sx_output(b, "y", sx_nn_conv2d(b, padded, w, .padding = SX_VALID));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    run_borders(g, &(setting){"host", 1, 1, SX_F32}, expected, elems);
    run_borders(g, &(setting){"cpu", 2, 2, SX_F32}, got, elems);
    for (int64_t k = 0; k < elems[0]; k++) {
        assert_true(got[0][k] == 0 && expected[0][k] == 0);
    }
    sx_free(got[0]);
    sx_free(expected[0]);
    sx_graph_destroy(g);
}

/* ---- One example, much work: oneDNN's own team ---- */

static void test_backends_convolutions__one_large_example(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 1, 28, 28, 32));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, 32, 64));
    sx_value bias = sx_input(b, "bias", sx_type_of(SX_F32, 64));
    sx_output(b, "y", sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, x, w), bias)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    check_output(g, 0, 2, 1e-4F);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_convolutions__borders_that_nobody_reads),
    cmocka_unit_test(test_backends_convolutions__only_what_is_read_is_computed),
    cmocka_unit_test(test_backends_convolutions__pad_their_image),
    cmocka_unit_test(test_backends_convolutions__pad_an_empty_image),
    cmocka_unit_test(test_backends_convolutions__one_large_example),
};
SX_TEST_MAIN(tests)
