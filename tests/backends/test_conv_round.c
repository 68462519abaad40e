/* Convolutions whose result is rounded to bfloat16 (cpu/kernels/conv_round.c): a network of them,
 * forward and backward, against the host kernels; and frozen products of a float32 graph. Each with
 * the processor's products of bfloat16, if it has them, and in float32. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/cpu/onednn2.h"
#include "backends/cpu/options.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/threefry.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"

enum { MAX_ENDS = 12, BATCH = 5 };

static sx_value variable(sx_builder *b, const char *name, sx_type type)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = type});
}

/* A residual block in `dtype`: 3x3, bias and relu; 1x1, a sum with what goes in, relu; a depthwise
 * one, and a strided one. */
static sx_value block(sx_builder *b, sx_value x, sx_dtype dtype)
{
    const sx_value w1 = variable(b, "w1", sx_type_of(SX_F32, 3, 3, 16, 32)),
                   bias = variable(b, "bias", sx_type_of(SX_F32, 32)),
                   w2 = variable(b, "w2", sx_type_of(SX_F32, 1, 1, 32, 16)),
                   w3 = variable(b, "w3", sx_type_of(SX_F32, 3, 3, 1, 16)),
                   w4 = variable(b, "w4", sx_type_of(SX_F32, 3, 3, 16, 24));
    sx_value y = sx_nn_conv2d(b, x, sx_cast(b, w1, dtype), .padding = SX_SAME);
    y = sx_relu(b, sx_bias_add(b, y, sx_cast(b, bias, dtype)));
    y = sx_relu(b, sx_add(b, x, sx_nn_conv2d(b, y, sx_cast(b, w2, dtype))));
    y = sx_nn_conv2d(b, y, sx_cast(b, w3, dtype), .padding = SX_SAME, .groups = 16);
    return sx_nn_conv2d(b, y, sx_cast(b, w4, dtype), .padding = SX_SAME, .strides = {2});
}

static sx_graph *trained(void)
{
    sx_builder *b;
    sx_graph *g;
    sx_value d[5];
    assert_ok(sx_builder_create(&b));
    const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 20, 20, 16));
    const sx_value y = sx_cast(b, block(b, sx_cast(b, in, SX_BF16), SX_BF16), SX_F32);
    const sx_value loss = sx_reduce_sum(b, sx_square(b, y), .axes = SX_AXES(0, 1, 2, 3));
    sx_output(b, "y", y);
    sx_gradients(b, loss, (const sx_value[]){in}, 1, d);
    sx_output(b, "dx", d[0]);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static sx_graph *served(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 20, 20, 16));
    sx_output(b, "y", block(b, in, SX_F32));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Two products of rows by matrices, with a gelu between them. */
static sx_graph *multiplied(void)
{
    enum { ROWS = 24, SIDE = 64, WIDE = 96 };
    sx_builder *b;
    sx_graph *g;
    sx_variable_spec wide = {.name = "wide", .type = sx_type_of(SX_F32, SIDE, WIDE)},
                     side = {.name = "side", .type = sx_type_of(SX_F32, WIDE, SIDE)},
                     bias = {.name = "bias", .type = sx_type_of(SX_F32, WIDE)};
    assert_ok(sx_builder_create(&b));
    const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, ROWS, SIDE));
    sx_value y = sx_matmul(b, sx_reshape(b, x, -ROWS, SIDE), sx_variable(b, &wide));
    y = sx_gelu(b, sx_bias_add(b, y, sx_variable(b, &bias)));
    sx_output(b, "y", sx_matmul(b, y, sx_variable(b, &side)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* An image of 3 channels, 112 wide: padded maxima of what a convolution makes, then, as in a
 * DenseNet, the concat of that and of convolutions of it, scaled, shifted and cut off, which
 * another one reads; its maxima and averages. */
static sx_graph *dense_block(void)
{
    enum { SIDE = 56, FIRST = 64, GROWTH = 32, ALL = FIRST + 2 * GROWTH + 1 };
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_pool2d_attrs pool = {.window = {2, {3, 3}},
                                  .strides = {2, {2, 2}},
                                  .padding = SX_EXPLICIT,
                                  .pads = {4, {1, 1, 1, 1}}};
    const sx_value w1 = variable(b, "w1", sx_type_of(SX_F32, 7, 7, 3, FIRST)),
                   w2 = variable(b, "w2", sx_type_of(SX_F32, 1, 1, FIRST, GROWTH)),
                   w3 = variable(b, "w3", sx_type_of(SX_F32, 3, 3, FIRST, GROWTH)),
                   w4 = variable(b, "w4", sx_type_of(SX_F32, 1, 1, ALL, GROWTH)),
                   w5 = variable(b, "w5", sx_type_of(SX_F32, 1, 1, FIRST, 1)),
                   scale = variable(b, "scale", sx_type_of(SX_F32, ALL)),
                   shift = variable(b, "shift", sx_type_of(SX_F32, ALL));
    const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, SIDE, SIDE, 3));
    sx_value x = sx_nn_conv2d(b, in, w1, .padding = SX_SAME, .strides = {2});
    x = sx_build_op(b, max_pool2d, &pool, sx_relu(b, x));
    const sx_value narrow = sx_nn_conv2d(b, x, w2),
                   wide = sx_nn_conv2d(b, x, w3, .padding = SX_SAME),
                   plane = sx_nn_conv2d(b, x, w5); /* so small that it stays in float32 */
    x = sx_concat(b, -1, x, narrow, plane, wide);
    x = sx_relu(b, sx_add(b, sx_mul(b, x, scale), shift));
    x = sx_relu(b, sx_nn_conv2d(b, x, w4));
    x = sx_nn_max_pool2d(b, x, .window = {3}, .strides = {1}, .padding = SX_SAME);
    sx_output(b, "y", sx_nn_avg_pool2d(b, x, .window = {3}, .strides = {2}));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Convolutions and products, each on another device than what it reads, and the first with a filter
 * that lies on that one, too. */
static sx_graph *divided(void)
{
    static const char *const devices[] = {"/cpu:0", "/cpu:1"};
    enum { SIDE = 20, FEATURES = 32 };
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_device_scope_begin(b, devices[0]);
    const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, SIDE, SIDE, FEATURES)),
                   w1 = variable(b, "w1", sx_type_of(SX_F32, 3, 3, FEATURES, FEATURES)),
                   w2 = variable(b, "w2", sx_type_of(SX_F32, 1, 1, FEATURES, FEATURES)),
                   w3 = variable(b, "w3", sx_type_of(SX_F32, FEATURES, FEATURES)),
                   w4 = variable(b, "w4", sx_type_of(SX_F32, FEATURES, FEATURES));
    sx_value x = sx_tanh(b, in);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, devices[1]);
    x = sx_relu(b, sx_nn_conv2d(b, x, w1, .padding = SX_SAME));
    x = sx_nn_max_pool2d(b, x, .window = {2});
    sx_device_scope_end(b);
    sx_device_scope_begin(b, devices[0]);
    x = sx_reshape(b, sx_relu(b, sx_nn_conv2d(b, x, w2)), -SIDE * SIDE / 4, FEATURES);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, devices[1]);
    x = sx_sigmoid(b, sx_matmul(b, x, w3));
    sx_device_scope_end(b);
    sx_device_scope_begin(b, devices[0]);
    sx_output(b, "y", sx_matmul(b, x, w4));
    sx_device_scope_end(b);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

typedef struct concats {
    bool apart;  /* the concats are results, too, and so are written */
    bool empty;  /* one has a part without channels */
    bool common; /* the images are no batch; another input is */
} concats;

/* Two batch norms, of concats of one another, which a convolution reads each; with relu, and parts
 * of float32. */
static sx_graph *scaled_concats(const concats *f)
{
    enum { A = 40, B = 7, C = 33, IN = 16, OUT = 16, SIDE = 20 };
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const int64_t batch = f->common ? BATCH : SX_BATCH;
    const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, batch, SIDE, SIDE, IN)),
                   w1 = variable(b, "w1", sx_type_of(SX_F32, 1, 1, IN, A)),
                   w2 = variable(b, "w2", sx_type_of(SX_F32, 3, 3, A + B, C)),
                   w3 = variable(b, "w3", sx_type_of(SX_F32, 1, 1, A + B + C, OUT)),
                   scale1 = variable(b, "scale1", sx_type_of(SX_F32, A + B)),
                   shift1 = variable(b, "shift1", sx_type_of(SX_F32, A + B)),
                   scale2 = variable(b, "scale2", sx_type_of(SX_F32, A + B + C)),
                   shift2 = variable(b, "shift2", sx_type_of(SX_F32, A + B + C));
    const sx_value part =
        sx_tanh(b, sx_slice(b, in, .begin = {0, 0, 0, 2}, .size = {batch, SIDE, SIDE, B}));
    sx_value c1 = sx_relu(b, sx_nn_conv2d(b, in, w1));
    if (f->empty) {
        c1 = sx_concat(b, -1, c1,
                       sx_slice(b, in, .begin = {0, 0, 0, IN}, .size = {batch, SIDE, SIDE, 0}),
                       part);
    } else {
        c1 = sx_concat(b, -1, c1, part);
    }
    sx_value x = sx_relu(b, sx_add(b, sx_mul(b, c1, scale1), shift1));
    sx_value c2 = sx_concat(b, -1, c1, sx_nn_conv2d(b, x, w2, .padding = SX_SAME));
    x = sx_add(b, shift2, sx_mul(b, scale2, c2));
    sx_output(b, "y", sx_nn_conv2d(b, x, w3));
    if (f->common) {
        sx_output(b, "z", sx_tanh(b, sx_input(b, "other", sx_type_of(SX_F32, SX_BATCH, 512))));
    }
    if (f->apart) {
        sx_output(b, "c1", c1);
        sx_output(b, "c2", c2);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* ---- Running ---- */

typedef struct results {
    float *data[MAX_ENDS];
    int64_t elems[MAX_ENDS];
    int n;
    int conversions, narrow; /* steps that pack and unpack; products of bfloat16 */
    int scaled;              /* concats that are not written */
} results;

static results run(const char *backend, const sx_graph *g, const sx_platform_options *options,
                   const sx_compile_options *how)
{
    sx_platform *platform;
    sx_executable *e;
    sx_run *run;
    sx_device_buffer *args[MAX_ENDS], *outputs[MAX_ENDS];
    const sx_kernel_time *rows = NULL;
    results r = {0};
    int n = 0;
    assert_ok(sx_platform_open(backend, options, &platform));
    assert_ok(sx_compile(platform, g, how, &e));
    assert_ok(sx_run_create(e, &run));
    for (int i = 0; i < e->n_args; i++) {
        const int64_t elems = sx_type_elems(&e->arg_types[i]);
        float *data = sx_alloc((size_t)elems + 1, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < elems; k++) {
            const sx_u32x2 bits =
                sx_threefry2x32((sx_u32x2){7, (uint32_t)i}, (sx_u32x2){(uint32_t)k, 0});
            data[k] = sx_uniform_f32(bits.a) - 0.5F;
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
        assert_ok(sx_device_buffer_write(args[i], data, false));
        sx_free(data);
    }
    for (int i = 0; i < e->n_results; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[i], &outputs[i]));
    }
    for (int i = 0; i < 2; i++) { /* the second finds what the first has prepared */
        assert_ok(sx_run_execute(run, args, outputs));
    }
    r.n = e->n_results;
    for (int i = 0; i < r.n; i++) {
        r.elems[i] = sx_type_elems(&e->result_types[i]);
        r.data[i] = sx_alloc((size_t)r.elems[i] + 1, sizeof(float));
        assert_non_null(r.data[i]);
        assert_ok(sx_device_buffer_read(outputs[i], r.data[i]));
        sx_device_buffer_release(outputs[i]);
    }
    if (strcmp(backend, "host") != 0) {
        assert_ok(sx_run_get_profile(run, &rows, &n));
    }
    for (int i = 0; i < n; i++) {
        r.narrow += strstr(rows[i].kernel, "bf16") != NULL;
        r.scaled += strcmp(rows[i].kernel, "concat_affine") == 0;
        r.conversions +=
            strcmp(rows[i].kernel, "pack") == 0 || strcmp(rows[i].kernel, "unpack") == 0;
    }
    for (int i = 0; i < e->n_args; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_platform_close(platform);
    return r;
}

static void drop(results *r)
{
    for (int i = 0; i < r->n; i++) {
        sx_free(r->data[i]);
    }
}

/* The norm of the difference of an output, of its own: a rounding can turn a relu over, so that a
 * single number of a gradient may be quite another. */
static double difference(const results *a, const results *b, int i)
{
    double all = 0, off = 0;
    assert_int_equal(a->elems[i], b->elems[i]);
    for (int64_t k = 0; k < a->elems[i]; k++) {
        const double x = (double)a->data[i][k], y = (double)b->data[i][k];
        all += x * x;
        off += (x - y) * (x - y);
    }
    assert_true(all > 0);
    return sqrt(off / all);
}

static void expect_equal(const results *a, const results *b)
{
    for (int i = 0; i < a->n; i++) {
        assert_memory_equal(a->data[i], b->data[i], (size_t)a->elems[i] * sizeof(float));
    }
}

/* ---- Tests ---- */

/* A few roundings apart, 2^-9 each, and the gradient also by the relus that they turn over; the
 * same bits with any number of threads. */
static void check_training(void)
{
    sx_graph *g = trained();
    results host = run("host", g, &(sx_platform_options){0}, &(sx_compile_options){.batch = BATCH});
    for (int shards = 1; shards <= 2; shards++) {
        const sx_compile_options how = {.batch = BATCH, .shards = shards, .profile = true};
        results one = run("cpu", g, &(sx_platform_options){.cpu.threads = 1}, &how),
                two = run("cpu", g, &(sx_platform_options){.cpu.threads = 2}, &how);
        for (int i = 0; i < host.n; i++) {
            const double d = difference(&host, &one, i);
            if (!(d < (i == 0 ? 0.01 : 0.06))) {
                fail_msg("%d shards: output %d differs by %.3g of itself", shards, i, d);
            }
        }
        expect_equal(&one, &two);
        assert_int_equal(one.narrow > 0, sx_cpu_has_bf16());
        drop(&one);
        drop(&two);
    }
    drop(&host);
    sx_graph_destroy(g);
}

static void test_backends_conv_round__training_equals_the_host(void **state)
{
    (void)state;
    check_training();
    setenv("SEXTANT_CPU_BF16", "1", 1);
    check_training();
    unsetenv("SEXTANT_CPU_BF16");
}

/* In bfloat16 where that is fast, else the bits of float32; `products` of it. */
static void check_serving(sx_graph *g, int products)
{
    const sx_compile_options how = {.batch = BATCH, .frozen = true, .shards = 1, .profile = true};
    results plain = run("cpu", g, &(sx_platform_options){.cpu.threads = 1}, &how),
            narrow = run("cpu", g, &(sx_platform_options){.cpu = {.threads = 1, .bfloat16 = true}},
                         &how),
            team = run("cpu", g, &(sx_platform_options){.cpu = {.threads = 2, .bfloat16 = true}},
                       &how);
    const double d = difference(&plain, &narrow, 0);
    assert_true(d < 0.02);
    assert_int_equal(d > 0, sx_cpu_has_bf16());
    assert_int_equal(plain.narrow, 0);
    assert_int_equal(narrow.narrow, sx_cpu_has_bf16() ? products : 0);
    assert_int_equal(narrow.conversions, 0);
    expect_equal(&narrow, &team);
    drop(&plain);
    drop(&narrow);
    drop(&team);
    sx_graph_destroy(g);
}

static void test_backends_conv_round__frozen_products(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        if (i > 0) {
            setenv("SEXTANT_CPU_BF16", "1", 1);
        }
        check_serving(served(), 4);
        check_serving(multiplied(), 2);
        check_serving(dense_block(), sx_dnn_has_amx() ? 5 : 4); /* the image's is for AMX alone */
    }
    unsetenv("SEXTANT_CPU_BF16");
}

/* The same bits as where concats are written, and read by other kernels. */
static void test_backends_conv_round__scaled_concats(void **state)
{
    (void)state;
    static const concats forms[] = {{.apart = false}, {.empty = true}, {.common = true}};
    setenv("SEXTANT_CPU_BF16", "1", 1);
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        for (int threads = 1; threads <= 4; threads++) {
            const sx_compile_options how = {
                .batch = BATCH, .frozen = true, .shards = 1 + threads % 2, .profile = true};
            const sx_platform_options options = {.cpu = {.threads = threads, .bfloat16 = true}};
            concats apart = forms[i];
            apart.apart = true;
            sx_graph *g = scaled_concats(&forms[i]), *h = scaled_concats(&apart);
            results one = run("cpu", g, &options, &how), other = run("cpu", h, &options, &how);
            assert_true(!sx_cpu_has_bf16() || forms[i].empty ? one.scaled == 0 : one.scaled >= 2);
            assert_int_equal(other.scaled, 0);
            expect_equal(&one, &other);
            drop(&one);
            drop(&other);
            sx_graph_destroy(g);
            sx_graph_destroy(h);
        }
    }
    unsetenv("SEXTANT_CPU_BF16");
}

/* Values that are rounded on one device are known to be on the next one. */
static void test_backends_conv_round__products_on_several_devices(void **state)
{
    (void)state;
    static const sx_placed_device cpus[] = {{.backend = "cpu"}, {.backend = "cpu"}};
    const sx_compile_options how = {.batch = BATCH, .frozen = true, .shards = 1, .profile = true};
    sx_platform_options options = {.cpu = {.threads = 2, .bfloat16 = true}};
    setenv("SEXTANT_CPU_BF16", "1", 1);
    sx_graph *g = divided();
    results one = run("cpu", g, &options, &how);
    options.placed = (sx_placed_options){.devices = cpus, .n_devices = 2};
    results two = run("placed", g, &options, &how);
    assert_int_equal(one.narrow, sx_cpu_has_bf16() ? 4 : 0);
    assert_int_equal(two.narrow, one.narrow);
    expect_equal(&one, &two);
    drop(&one);
    drop(&two);
    sx_graph_destroy(g);
    unsetenv("SEXTANT_CPU_BF16");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_conv_round__training_equals_the_host),
    cmocka_unit_test(test_backends_conv_round__frozen_products),
    cmocka_unit_test(test_backends_conv_round__products_on_several_devices),
    cmocka_unit_test(test_backends_conv_round__scaled_concats),
};

SX_TEST_MAIN(tests)
