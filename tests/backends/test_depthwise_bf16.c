/* Depthwise convolutions of bfloat16 images by frozen filters (cpu/kernels/depthwise_bf16.c),
 * against the host's: operands are so short that every sum is exact, so that the same bits are
 * expected, and rounding meets ties. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "graph/builder.h"
#include "graph/passes/quantize.h"

enum { MAX_ARGS = 4 };

typedef struct shape {
    int batch, h, w, c, kernel[2], stride, dilation;
    sx_padding padding;
} shape;

typedef enum act { PLAIN, RELU, RELU6, SWISH, ACTS } act;

/* What becomes of the result. */
typedef enum form {
    WIDE,    /* an output */
    ROUNDED, /* one that is rounded first */
    NARROW,  /* rounded, and an operand of an elementwise operator */
    FORMS
} form;

typedef struct layer {
    const shape *s;
    act act;
    form form;
    bool biased, broken; /* the bias of channel 0 is no number */
} layer;

static sx_value variable(sx_builder *b, const char *name, sx_type type)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = type});
}

static sx_graph *graph_of(const layer *l)
{
    const shape *s = l->s;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, s->h, s->w, s->c));
    const sx_value w = variable(b, "w", sx_type_of(SX_F32, s->kernel[0], s->kernel[1], 1, s->c));
    sx_value y = sx_nn_conv2d(b, x, w, .strides = {s->stride}, .dilations = {s->dilation},
                              .padding = s->padding, .groups = s->c);
    if (l->biased) {
        y = sx_bias_add(b, y, variable(b, "bias", sx_type_of(SX_F32, s->c)));
    }
    y = l->act == RELU    ? sx_relu(b, y)
        : l->act == RELU6 ? sx_relu6(b, y)
        : l->act == SWISH ? sx_swish(b, y)
                          : y;
    y = l->form != WIDE ? sx_build_op(b, round_bf16, NULL, y) : y;
    sx_output(b, "y", l->form == NARROW ? sx_mul(b, y, sx_constant_f32(b, 2)) : y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Eighths from -1 to 1; of the bias also sixty-fourths. */
static void fill(const layer *l, int arg, float *data, int64_t n)
{
    const bool is_bias = arg == 2;
    for (int64_t k = 0; k < n; k++) {
        const sx_u32x2 bits =
            sx_threefry2x32((sx_u32x2){7, (uint32_t)arg}, (sx_u32x2){(uint32_t)k, 0});
        data[k] =
            is_bias ? (float)((int)(bits.a % 129) - 64) / 64 : (float)((int)(bits.a % 17) - 8) / 8;
    }
    if ((is_bias || arg == 1) && l->broken) {
        memset(data, 0x7f, sizeof(*data));
        memset(data, 0xff, sizeof(*data) - 1); /* all bits but the sign's */
    }
}

typedef struct result {
    float *data;
    int64_t elems;
    int kernels, conversions;
} result;

static result run(const char *backend, int threads, const layer *l)
{
    const sx_platform_options options = {.cpu.threads = threads};
    const sx_compile_options how = {.batch = l->s->batch, .frozen = true, .profile = true};
    sx_graph *plain = graph_of(l), *g; /* with roundings, on every processor */
    sx_platform *platform;
    sx_executable *e;
    sx_run *run;
    sx_device_buffer *args[MAX_ARGS], *output;
    const sx_kernel_time *rows = NULL;
    result r = {0};
    int n = 0;
    const bool is_cpu = strcmp(backend, "cpu") == 0;
    assert_ok(sx_pass_round_products(plain, &g));
    sx_graph_destroy(plain);
    assert_ok(sx_platform_open(backend, is_cpu ? &options : &(sx_platform_options){0}, &platform));
    assert_ok(sx_compile(platform, g, &how, &e));
    assert_ok(sx_run_create(e, &run));
    for (int i = 0; i < e->n_args; i++) {
        const int64_t elems = sx_type_elems(&e->arg_types[i]);
        float *data = sx_alloc((size_t)elems + 1, sizeof(float));
        assert_non_null(data);
        fill(l, i, data, elems);
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data, false));
        sx_free(data);
    }
    assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &output));
    assert_ok(sx_run_execute(run, args, &output));
    r.elems = sx_type_elems(&e->result_types[0]);
    r.data = sx_alloc((size_t)r.elems + 1, sizeof(float));
    assert_non_null(r.data);
    assert_ok(sx_device_buffer_read(output, r.data));
    if (is_cpu) {
        assert_ok(sx_run_get_profile(run, &rows, &n));
    }
    for (int i = 0; i < n; i++) {
        r.kernels += strcmp(rows[i].kernel, "conv2d depthwise bf16") == 0;
        r.conversions +=
            strcmp(rows[i].kernel, "pack") == 0 || strcmp(rows[i].kernel, "unpack") == 0;
    }
    sx_device_buffer_release(output);
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_platform_close(platform);
    sx_graph_destroy(g);
    return r;
}

/* A swish is a few units of the last place off, which may turn a rounding over. */
static bool is_right(const layer *l, float right, float found)
{
    if (isnan(right)) {
        return isnan(found);
    }
    if (l->act != SWISH) {
        return right == found;
    }
    return fabsf(right - found) <= (l->form == WIDE ? 1e-6F : 0x1p-7F) * fabsf(right) + 1e-6F;
}

static void check(const layer *l, const char *name)
{
    const shape *s = l->s;
    result host = run("host", 0, l), one = run("cpu", 1, l);
    assert_int_equal(host.elems, one.elems);
    assert_int_equal(one.kernels, s->c > 1); /* one channel is no group */
    assert_int_equal(one.conversions, 0);
    for (int64_t k = 0; k < one.elems; k++) {
        if (!is_right(l, host.data[k], one.data[k])) {
            fail_msg("%s: %d channels, kernel %dx%d, act %d, form %d: result %d is %a, not %a",
                     name, s->c, s->kernel[0], s->kernel[1], (int)l->act, (int)l->form, (int)k,
                     (double)one.data[k], (double)host.data[k]);
        }
    }
    sx_free(host.data);
    sx_free(one.data);
}

static const shape shapes[] = {
    {1, 9, 9, 1, {3, 3}, 1, 1, SX_SAME},    {1, 20, 23, 3, {3, 3}, 1, 1, SX_SAME},
    {1, 14, 14, 16, {3, 3}, 2, 1, SX_SAME}, {1, 7, 7, 31, {5, 5}, 1, 1, SX_SAME},
    {3, 7, 10, 33, {3, 3}, 1, 1, SX_VALID}, {1, 15, 13, 96, {5, 5}, 2, 1, SX_SAME},
    {3, 12, 12, 48, {3, 3}, 2, 1, SX_SAME}, {1, 8, 9, 96, {7, 7}, 1, 1, SX_SAME},
    {1, 9, 17, 33, {3, 5}, 1, 1, SX_SAME},  {1, 11, 12, 96, {3, 3}, 1, 2, SX_SAME},
    {1, 9, 9, 64, {1, 1}, 1, 1, SX_VALID},  {1, 9, 9, 33, {1, 1}, 2, 1, SX_SAME},
    {1, 16, 15, 8, {5, 3}, 2, 1, SX_VALID}, {3, 2, 1, 40, {5, 5}, 1, 1, SX_SAME},
    {1, 1, 2, 6, {3, 3}, 1, 1, SX_SAME}, /* so small that it lies there as float32 */
    {1, 24, 24, 17, {3, 3}, 3, 1, SX_SAME},
};

static void check_all(const char *vec)
{
    setenv("SEXTANT_CPU_VEC", vec, 1);
    for (size_t i = 0; i < SX_COUNT(shapes); i++) {
        for (int a = 0; a < ACTS; a++) {
            for (int f = 0; f < FORMS; f++) {
                check(&(layer){&shapes[i], (act)a, (form)f, .biased = (i + a) % 3 != 0}, vec);
            }
        }
    }
    unsetenv("SEXTANT_CPU_VEC");
}

/* Of each instruction set; those that the processor lacks run as the plain one. */
static void test_backends_depthwise_bf16__equals_the_host(void **state)
{
    (void)state;
    check_all("v4");
    check_all("v3");
    check_all("base");
}

/* What is no number stays that, whatever its bits. */
static void test_backends_depthwise_bf16__no_numbers(void **state)
{
    static const shape s = {1, 9, 9, 33, {3, 3}, 1, 1, SX_SAME};
    (void)state;
    for (int a = 0; a < ACTS; a++) {
        for (int f = 0; f < FORMS; f++) {
            check(&(layer){&s, (act)a, (form)f, .biased = true, .broken = true}, "no number");
        }
    }
}

/* Large enough that threads divide its rows. */
static void test_backends_depthwise_bf16__threads_make_the_same_bits(void **state)
{
    static const shape large[] = {{1, 81, 80, 80, {5, 5}, 1, 1, SX_SAME},
                                  {1, 128, 127, 112, {5, 5}, 2, 1, SX_SAME}};
    (void)state;
    for (size_t i = 0; i < SX_COUNT(large); i++) {
        for (int f = 0; f < FORMS; f++) {
            const layer l = {&large[i], SWISH, (form)f, .biased = true};
            result one = run("cpu", 1, &l), three = run("cpu", 3, &l);
            assert_int_equal(three.kernels, 1);
            assert_memory_equal(one.data, three.data, (size_t)one.elems * sizeof(float));
            check(&l, "large");
            sx_free(one.data);
            sx_free(three.data);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_depthwise_bf16__equals_the_host),
    cmocka_unit_test(test_backends_depthwise_bf16__no_numbers),
    cmocka_unit_test(test_backends_depthwise_bf16__threads_make_the_same_bits),
};

SX_TEST_MAIN(tests)
