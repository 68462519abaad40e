/* The cpu backend's own promises: fusion, results that are arguments, no allocation in a step,
 * times of kernels, clean failure without memory. What it computes is test_conformance.c's. */
#include "torture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/cpu/onednn2.h"
#include "base/threefry.h"
#include "graph/ops/attrs.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"

typedef struct fixture {
    sx_platform *platform;
    sx_graph *graph;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[64], *outputs[64];
} fixture;

static sx_graph *zoo_in(const char *model, sx_dtype precision)
{
    sx_graph *graph;
    sx_params *params;
    sx_program_request r = {.def = sx_zoo_find(model), .mode = SX_TRAIN};
    assert_ok(sx_params_create(&params));
    r.params = params;
    r.precision = precision;
    assert_ok(sx_build_program(&r, &graph));
    sx_params_destroy(params);
    return graph;
}

static sx_graph *zoo_train(const char *model)
{
    return zoo_in(model, SX_F32);
}

static void begin(fixture *f, sx_graph *graph, const sx_compile_options *options, int threads)
{
    *f = (fixture){.graph = graph};
    assert_ok(
        sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = threads}, &f->platform));
    assert_ok(sx_compile(f->platform, graph, options, &f->executable));
    assert_ok(sx_run_create(f->executable, &f->run));
    assert_true(f->executable->n_args <= 64 && f->executable->n_results <= 64);
    for (int i = 0; i < f->executable->n_args; i++) {
        assert_ok(sx_device_buffer_create(f->platform->devices[0], &f->executable->arg_types[i],
                                          &f->args[i]));
    }
    for (int i = 0; i < f->executable->n_results; i++) {
        assert_ok(sx_device_buffer_create(f->platform->devices[0], &f->executable->result_types[i],
                                          &f->outputs[i]));
    }
}

static void end(fixture *f)
{
    for (int i = 0; i < f->executable->n_args; i++) {
        sx_device_buffer_release(f->args[i]);
    }
    for (int i = 0; i < f->executable->n_results; i++) {
        sx_device_buffer_release(f->outputs[i]);
    }
    sx_run_destroy(f->run);
    sx_executable_release(f->executable);
    sx_graph_destroy(f->graph);
    sx_platform_close(f->platform);
}

static sx_value variable(sx_builder *b, const char *name)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = sx_type_of(SX_F32, 3)});
}

static void test_backends_cpu__variables_change_places(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    fixture f;
    float a[3] = {1, 2, 3}, c[3] = {4, 5, 6}, got[3];
    assert_ok(sx_builder_create(&b));
    sx_value x = variable(b, "x"), y = variable(b, "y");
    sx_assign(b, "x", y);
    sx_assign(b, "y", x);
    sx_output(b, "old", x);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, NULL, 1);
    assert_ok(sx_device_buffer_write(f.args[0], a, false));
    assert_ok(sx_device_buffer_write(f.args[1], c, false));
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    assert_ok(sx_device_buffer_read(f.args[0], got));
    assert_memory_equal(got, c, sizeof(got));
    assert_ok(sx_device_buffer_read(f.args[1], got));
    assert_memory_equal(got, a, sizeof(got));
    for (int i = 0; i < f.executable->n_results; i++) {
        if (f.executable->result_args[i] < 0) {
            assert_ok(sx_device_buffer_read(f.outputs[i], got));
            assert_memory_equal(got, a, sizeof(got));
        }
    }
    end(&f);
}

/* Where a variable is assigned, subnormal numbers are zeros: they would make steps many times
 * slower. Elsewhere they stay, and so do the settings of the caller's thread. */
static void test_backends_cpu__training_steps_flush_subnormals(void **state)
{
    (void)state;
    const float a[3] = {1e-38F, 2e-38F, 4};
    for (int assigned = 0; assigned < 2; assigned++) {
        sx_builder *b;
        sx_graph *g;
        fixture f;
        float got[3];
        assert_ok(sx_builder_create(&b));
        sx_value x = variable(b, "x");
        sx_value y = sx_mul(b, x, sx_constant_f32(b, 0.25));
        sx_output(b, "y", y);
        if (assigned) {
            sx_assign(b, "x", y);
        }
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        begin(&f, g, NULL, 1);
        assert_ok(sx_device_buffer_write(f.args[0], a, false));
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        for (int i = 0; i < f.executable->n_results; i++) {
            sx_device_buffer *y_at = f.executable->result_args[i] < 0 ? f.outputs[i] : f.args[0];
            assert_ok(sx_device_buffer_read(y_at, got));
#ifdef __SSE__
            assert_true((got[1] == 0) == (assigned != 0) && got[2] == 1);
#endif
        }
        volatile float here = a[1];
        assert_true(here * 0.25F > 0);
        end(&f);
    }
}

/* x is assigned first, and its old value is read after that in the program: the update waits. */
static void test_backends_cpu__an_assigned_variable_may_be_read_later(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    fixture f;
    float a[3] = {1, 2, 3}, got[3];
    assert_ok(sx_builder_create(&b));
    sx_value x = variable(b, "x");
    sx_value next = sx_mul(b, x, x);
    sx_value old = sx_neg(b, x);
    sx_assign(b, "x", next);
    sx_output(b, "new", next);
    sx_output(b, "old", old);
    sx_output(b, "both", sx_add(b, next, x));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, NULL, 1);
    assert_ok(sx_device_buffer_write(f.args[0], a, true)); /* borrowed: must not be written to */
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    static const float expected[4][3] = {{1, 4, 9}, {-1, -2, -3}, {2, 6, 12}, {1, 4, 9}};
    int at = 0;
    for (int i = 0; i < f.executable->n_results; i++) {
        if (f.executable->result_args[i] < 0) {
            assert_ok(sx_device_buffer_read(f.outputs[i], got));
            assert_memory_equal(got, expected[at++], sizeof(got));
        }
    }
    assert_ok(sx_device_buffer_read(f.args[0], got));
    assert_memory_equal(got, expected[3], sizeof(got));
    assert_true(a[1] == 2);
    end(&f);
}

static void test_backends_cpu__an_input_is_an_output(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    fixture f;
    float x[10], got[10];
    assert_ok(sx_builder_create(&b));
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_output(b, "same", in);
    sx_output(b, "flat", sx_reshape(b, sx_neg(b, in), SX_BATCH, 1, 2));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, &(sx_compile_options){.batch = 5, .shards = 3}, 2);
    for (int i = 0; i < 10; i++) {
        x[i] = (float)i;
    }
    assert_ok(sx_device_buffer_write(f.args[0], x, true));
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    assert_ok(sx_device_buffer_read(f.outputs[0], got));
    assert_memory_equal(got, x, sizeof(got));
    assert_ok(sx_device_buffer_read(f.outputs[1], got));
    for (int i = 0; i < 10; i++) {
        assert_true(got[i] == -x[i]);
    }
    end(&f);
}

/* What a long chain of elementwise operators becomes: one kernel. */
static void test_backends_cpu__elementwise_chains_are_one_kernel(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    fixture f;
    sx_executable_info info;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 7));
    sx_value c = sx_input(b, "c", sx_type_of(SX_F32, 7));
    sx_value y = sx_relu(b, sx_bias_add(b, sx_mul(b, x, c), c));
    sx_output(b, "y", sx_tanh(b, sx_add(b, y, sx_exp(b, sx_neg(b, x)))));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, &(sx_compile_options){.batch = 4}, 1);
    assert_ok(sx_executable_get_info(f.executable, &info));
    assert_int_equal(info.kernels, 1);
    assert_int_equal(info.shards, 1);
    assert_non_null(strstr(info.numerics, "cpu v"));
    assert_non_null(strstr(info.numerics, " onednn:2."));
    assert_non_null(strstr(info.numerics, " isa:"));
    const char *caches = strstr(info.numerics, " caches:");
    assert_non_null(caches);
#if defined(__x86_64__)
    int first_k = atoi(caches + strlen(" caches:"));
    assert_true(first_k >= 8 && first_k <= 1024 && strchr(caches, ',') != NULL);
#endif
    end(&f);
}

/* The end of a residual block, both ways normalized: one pass over memory. */
/* Rows of elementwise.def whose words all have a vector form need nothing else to be fused. */
static void test_backends_cpu__rows_of_vector_words_are_vector_loops(void **state)
{
    (void)state;
    fixture f;
    sx_builder *b;
    sx_graph *g;
    const sx_kernel_time *rows;
    float got[6];
    const float x[6] = {-3, -0.5f, 0, 0.25f, 5.5f, 9},
                expected[6] = {0, 0, 0, 0, 5, 6}; /* floor(relu6(swish(x))) */
    int n;
    assert_ok(sx_builder_create(&b));
    sx_value v = sx_build_op(b, swish, NULL, sx_input(b, "x", sx_type_of(SX_F32, 6)));
    v = sx_build_op(b, floor, NULL, sx_relu6(b, v));
    sx_output(b, "y", v);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, &(sx_compile_options){.profile = true}, 1);
    assert_ok(sx_device_buffer_write(f.args[0], x, false));
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    assert_ok(sx_device_buffer_read(f.outputs[0], got));
    assert_memory_equal(got, expected, sizeof(got));
    assert_ok(sx_run_get_profile(f.run, &rows, &n));
    assert_int_equal(n, 1);
    assert_string_equal(rows[0].kernel, "elementwise");
    end(&f);
}

static void test_backends_cpu__a_residual_sum_of_batch_norms_is_one_kernel(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    fixture f;
    sx_executable_info info;
    assert_ok(sx_builder_create(&b));
    sx_value normal[2];
    for (int i = 0; i < 2; i++) {
        char name[32];
        sx_value in[5];
        for (int k = 0; k < 5; k++) {
            snprintf(name, sizeof(name), "x%d%d", i, k);
            in[k] = sx_input(
                b, name, k == 0 ? sx_type_of(SX_F32, SX_BATCH, 3, 3, 7) : sx_type_of(SX_F32, 7));
        }
        normal[i] = sx_nn_batch_norm(b, in[0], in[1], in[2], in[3], in[4], 1e-3);
    }
    sx_output(b, "y", sx_relu(b, sx_add(b, normal[0], normal[1])));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, &(sx_compile_options){.batch = 4}, 1);
    assert_ok(sx_executable_get_info(f.executable, &info));
    assert_int_equal(info.kernels, 1);
    end(&f);
}

/* relu_grad(max_pool2d_grad(x, max_pool2d(x), dy), z): one kernel with the pool where z is x; where
 * it is another value, that value's signs count. */
static void test_backends_cpu__a_pool_is_fused_with_its_own_relu_alone(void **state)
{
    (void)state;
    static const float x[8] = {1, 4, 3, 2, 5, 7, 6, 8}, dy[2] = {10, 20};
    static const float z[8] = {1, -1, 1, 1, 1, 1, 1, 1};
    static const float expected[2][8] = {{0, 10, 0, 0, 0, 0, 0, 20}, {0, 0, 0, 0, 0, 0, 0, 20}};
    const sx_pool2d_attrs pool = {.window = {2, {2, 2}}};
    int64_t kernels[2];
    for (int other = 0; other < 2; other++) {
        sx_builder *b;
        sx_graph *g;
        fixture f;
        sx_executable_info info;
        float got[8];
        assert_ok(sx_builder_create(&b));
        sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2, 2, 1));
        sx_value d = sx_input(b, "dy", sx_type_of(SX_F32, SX_BATCH, 1, 1, 1));
        sx_value signs = sx_input(b, "z", sx_type_of(SX_F32, SX_BATCH, 2, 2, 1));
        sx_value y = sx_nn_max_pool2d(b, in, .window = {2});
        sx_value dx = sx_build_op(b, max_pool2d_grad, &pool, in, y, d);
        sx_output(b, "dx", sx_build_op(b, relu_grad, NULL, dx, other ? signs : in));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        begin(&f, g, &(sx_compile_options){.batch = 2}, 1);
        assert_ok(sx_device_buffer_write(f.args[0], x, false));
        assert_ok(sx_device_buffer_write(f.args[1], dy, false));
        assert_ok(sx_device_buffer_write(f.args[2], z, false));
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_ok(sx_device_buffer_read(f.outputs[0], got));
        assert_memory_equal(got, expected[other], sizeof(got));
        assert_ok(sx_executable_get_info(f.executable, &info));
        kernels[other] = info.kernels;
        end(&f);
    }
    assert_int_equal(kernels[0] + 1, kernels[1]);
}

/* x [2,3,4] transposed, sliced, padded and joined, in every size of element: by kernels of their
 * own, to the host kernels' bits. */
static void test_backends_cpu__elements_are_moved_by_kernels(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_BOOL, SX_U8, SX_F16, SX_F32, SX_I32, SX_I64, SX_F64};
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
        fixture f;
        sx_builder *b;
        sx_graph *g;
        sx_platform *host;
        sx_executable *e;
        sx_device_buffer *in, *outputs[8];
        const sx_kernel_time *rows;
        char x[24 * 8], got[2048], expected[2048];
        int n;
        assert_ok(sx_builder_create(&b));
        sx_value v = sx_input(b, "x", sx_type_of(dtypes[d], 2, 3, 4));
        sx_value turned = sx_transpose(b, v, 2, 0, 1), part, more;
        sx_output(b, "turned", turned);
        sx_output(b, "inner", sx_transpose(b, v, 0, 2, 1));
        sx_output(b, "outer", sx_transpose(b, v, 1, 0, 2));
        part = sx_slice(b, v, .begin = {1, 0, 1}, .size = {1, 3, 2});
        more = sx_pad(b, part, .before = {0, 0, 1}, .after = {1, 0, 1}, .value = 1);
        sx_output(b, "part", part);
        sx_output(b, "padded", more);
        sx_output(b, "joined", sx_concat(b, 1, v, more, v));
        sx_output(b, "zeros", sx_pad(b, turned, .before = {1, 2, 0}, .after = {0, 0, 0}));
        sx_output(b, "first", sx_concat(b, 0, more, v));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        for (size_t i = 0; i < sizeof(x); i++) {
            x[i] = (char)(dtypes[d] == SX_BOOL ? i % 2 : i % 50); /* no NaN */
        }
        begin(&f, g, &(sx_compile_options){.batch = 1, .profile = true}, 1);
        assert_ok(sx_device_buffer_write(f.args[0], x, false));
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_ok(sx_run_get_profile(f.run, &rows, &n));
        for (int i = 0; i < n; i++) {
            if (strstr(rows[i].kernel, "host") != NULL) {
                fail_msg("%s of %s is computed by its host kernel", rows[i].node,
                         sx_dtype_name(dtypes[d]));
            }
        }
        assert_ok(sx_platform_open("host", NULL, &host));
        assert_ok(sx_compile(host, g, &(sx_compile_options){.batch = 1}, &e));
        assert_ok(sx_device_buffer_create(host->devices[0], &e->arg_types[0], &in));
        assert_ok(sx_device_buffer_write(in, x, false));
        for (int i = 0; i < 8; i++) {
            assert_ok(sx_device_buffer_create(host->devices[0], &e->result_types[i], &outputs[i]));
        }
        assert_ok(sx_execute(e, &in, outputs));
        for (int i = 0; i < 8; i++) {
            const size_t bytes = (size_t)sx_type_bytes(&e->result_types[i]);
            assert_true(bytes <= sizeof(got));
            assert_ok(sx_device_buffer_read(f.outputs[i], got));
            assert_ok(sx_device_buffer_read(outputs[i], expected));
            assert_memory_equal(got, expected, bytes);
            sx_device_buffer_release(outputs[i]);
        }
        sx_device_buffer_release(in);
        sx_executable_release(e);
        sx_platform_close(host);
        end(&f);
    }
}

static void test_backends_cpu__a_step_allocates_nothing(void **state)
{
    (void)state;
    fixture f;
    begin(&f, zoo_train("mnist_cnn"), &(sx_compile_options){.batch = 8, .shards = 2}, 2);
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    long before = sx_alloc_count();
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    }
    assert_int_equal(sx_alloc_count(), before);
    end(&f);
}

static void test_backends_cpu__profile_names_kernels_and_nodes(void **state)
{
    (void)state;
    fixture f;
    const sx_kernel_time *rows;
    int n, convolutions = 0, by_host = 0;
    begin(&f, zoo_train("mnist_cnn"), &(sx_compile_options){.batch = 8, .profile = true}, 1);
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    }
    assert_ok(sx_run_get_profile(f.run, &rows, &n));
    for (int i = 0; i < n; i++) {
        assert_int_equal(rows[i].calls, 3);
        convolutions += strstr(rows[i].node, "conv2d_1/conv2d") != NULL && rows[i].total_ns > 0;
        by_host += strstr(rows[i].kernel, "host") != NULL && rows[i].bytes > 4096;
    }
    assert_true(convolutions > 0);
    assert_int_equal(by_host, 0); /* nothing large is left to host kernels */
    end(&f);
}

static void test_backends_cpu__profile_must_be_asked_for(void **state)
{
    (void)state;
    fixture f;
    const sx_kernel_time *rows;
    int n;
    begin(&f, zoo_train("linear"), &(sx_compile_options){.batch = 2}, 1);
    assert_error(sx_run_get_profile(f.run, &rows, &n), SX_FAILED_PRECONDITION, "profile = true");
    end(&f);
}

/* Under the policy the convolutions of many channels are the processor's own of bfloat16, if it has
 * them, and the numerics say so; nothing large is left to host kernels. */
static void test_backends_cpu__the_policy_uses_what_the_processor_has(void **state)
{
    (void)state;
    fixture f;
    const sx_kernel_time *rows;
    sx_executable_info info;
    int n, narrow = 0;
    begin(&f, zoo_in("mnist_cnn", SX_BF16), &(sx_compile_options){.batch = 8, .profile = true}, 1);
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    assert_ok(sx_run_get_profile(f.run, &rows, &n));
    for (int i = 0; i < n; i++) {
        narrow += strstr(rows[i].kernel, "bf16") != NULL;
        assert_true(strstr(rows[i].kernel, "host") == NULL || rows[i].bytes <= 4096);
    }
    assert_ok(sx_executable_get_info(f.executable, &info));
    assert_int_equal(narrow, sx_dnn_has_bf16() ? 3 : 0);
    assert_int_equal(strstr(info.numerics, " bf16 ") != NULL, sx_dnn_has_bf16());
    end(&f);
}

/* The first convolution's output, 2.6 MiB in float32, is kept for the gradient. */
static void test_backends_cpu__values_of_bfloat16_take_two_bytes(void **state)
{
    (void)state;
    fixture f;
    sx_executable_info info;
    begin(&f, zoo_in("mnist_cnn", SX_BF16), &(sx_compile_options){.batch = 32}, 1);
    assert_ok(sx_executable_get_info(f.executable, &info));
    assert_true(info.temporary_bytes < 5800000); /* 7.4 million if all took four */
    end(&f);
}

/* A value of bfloat16 that is packed between its readers: the same numbers, and a NaN whose payload
 * is in the lower half stays one. */
static void test_backends_cpu__packed_values_keep_their_numbers(void **state)
{
    (void)state;
    enum { COLS = 4096 };
    static uint32_t x[COLS], got[COLS];
    fixture f;
    sx_builder *b;
    sx_graph *g;
    const sx_kernel_time *rows;
    int n, packs = 0;
    for (uint32_t i = 0; i < COLS; i++) {
        x[i] = 0x3f800000U + 7919U * i;
    }
    x[0] = 0x7f800001U;
    assert_ok(sx_builder_create(&b));
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, 1, COLS));
    sx_value narrow = sx_cast(b, in, SX_BF16), s = narrow;
    for (int i = 0; i < 4; i++) {
        s = sx_softmax(b, s);
    }
    sx_output(b, "s", s);
    sx_output(b, "kept", sx_cast(b, sx_relu(b, narrow), SX_F32));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    begin(&f, g, &(sx_compile_options){.profile = true}, 1);
    assert_ok(sx_device_buffer_write(f.args[0], x, false));
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    assert_ok(sx_device_buffer_read(f.outputs[1], got));
    assert_true((got[0] & 0x7fffffffU) > 0x7f800000U);
    for (int i = 1; i < COLS; i++) {
        assert_int_equal(got[i], (x[i] + 0x7fffU + (x[i] >> 16 & 1)) & 0xffff0000U);
    }
    assert_ok(sx_run_get_profile(f.run, &rows, &n));
    for (int i = 0; i < n; i++) {
        packs += strcmp(rows[i].kernel, "pack") == 0;
    }
    assert_int_equal(packs, 1);
    end(&f);
}

/* Asking for products in bfloat16 is leave to round, not an order: float32 it stays. */
static void test_backends_cpu__products_in_bfloat16_change_nothing(void **state)
{
    (void)state;
    sx_platform *platform;
    sx_executable *e;
    sx_graph *g = zoo_train("linear");
    assert_ok(sx_platform_open("cpu", NULL, &platform));
    assert_ok(sx_compile(platform, g,
                         &(sx_compile_options){.batch = 2, .precision = SX_PRECISION_BF16}, &e));
    sx_executable_release(e);
    sx_graph_destroy(g);
    sx_platform_close(platform);
}

/* y = x + relu(b), where b is repeated along x's first dimension, in bfloat16: what one kernel of
 * elementwise operators reads again and again is no operand of the size of its result, which alone
 * may be read packed and be written over. relu(b) is read three times, so that it is kept. */
static void test_backends_cpu__repeated_operands_in_bfloat16(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 2560 };
    static const sx_type types[][2] = {
        {{SX_F32, 2, {ROWS, COLUMNS}}, {SX_F32, 1, {COLUMNS}}},
        {{SX_F32, 2, {SX_BATCH, COLUMNS}}, {SX_F32, 1, {COLUMNS}}},
        {{SX_F32, 3, {ROWS, SX_BATCH, COLUMNS / 2}}, {SX_F32, 2, {SX_BATCH, COLUMNS / 2}}},
    };
    static float x[ROWS * COLUMNS], b[COLUMNS], y[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = (float)(i % 7);
        b[i % COLUMNS] = (float)(i % COLUMNS % 13 - 6);
    }
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        sx_builder *builder;
        sx_graph *g;
        fixture f;
        assert_ok(sx_builder_create(&builder));
        sx_value in = sx_cast(builder, sx_input(builder, "x", types[t][0]), SX_BF16);
        sx_value bias =
            sx_relu(builder, sx_cast(builder, sx_input(builder, "b", types[t][1]), SX_BF16));
        for (int i = 0; i < 3; i++) {
            in = sx_add(builder, in, bias);
            in = i < 2 ? sx_softmax(builder, in) : in; /* a kernel of its own */
            in = i < 2 ? sx_floor(builder, in) : in;   /* zeros, or one where one element wins */
            in = i < 2 ? sx_mul(builder, in, sx_cast(builder, sx_constant_f32(builder, 0), SX_BF16))
                       : in;
        }
        sx_output(builder, "y", sx_cast(builder, in, SX_F32));
        assert_ok(sx_builder_finish(builder, &g));
        sx_builder_destroy(builder);
        begin(&f, g, &(sx_compile_options){.batch = t == 2 ? 2 : ROWS}, 1);
        assert_ok(sx_device_buffer_write(f.args[0], x, false));
        assert_ok(sx_device_buffer_write(f.args[1], b, false));
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_ok(sx_device_buffer_read(f.outputs[0], y));
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const float want = b[i % COLUMNS] > 0 ? b[i % COLUMNS] : 0;
            if (y[i] != want) {
                fail_msg("graph %zu: element %d is %g, expected %g", t, i, y[i], want);
            }
        }
        end(&f);
    }
}

typedef struct compile_input {
    const sx_graph *graph;
    int64_t batch;
} compile_input;

static sx_status compile_once(void *user)
{
    const compile_input *in = user;
    sx_platform *platform;
    sx_executable *e;
    SX_TRY(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    sx_status status =
        sx_compile(platform, in->graph, &(sx_compile_options){.batch = in->batch, .shards = 2}, &e);
    if (status == SX_OK) {
        sx_executable_release(e);
    }
    sx_platform_close(platform);
    return status;
}

static void test_backends_cpu__compiling_survives_failing_allocations(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sx_graph *g = zoo_in("mlp", i == 0 ? SX_F32 : SX_BF16);
        compile_input in = {g, 3};
        assert_true(sx_torture_some(compile_once, &in) > 10);
        sx_graph_destroy(g);
    }
}

/* ---- Signals ---- */

static char *stack_begin, *stack_end;
static volatile sig_atomic_t ticks, ticks_elsewhere;

static void on_tick(int number)
{
    const char *here = __builtin_frame_address(0);
    (void)number;
    ticks = ticks + 1;
    ticks_elsewhere = ticks_elsewhere + (here < stack_begin || here >= stack_end);
}

/* oneDNN's GEMM leaves the thread's stack for the heap, which a signal must not write to. */
static void test_backends_cpu__signals_stay_on_the_stack(void **state)
{
    (void)state;
    enum { M = 16, N = 48, K = 2048, TICKS = 200, TICK_US = 50 };
    pthread_attr_t attr;
    void *begin = NULL;
    size_t size = 0;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
    assert_int_equal(pthread_attr_getstack(&attr, &begin, &size), 0);
    pthread_attr_destroy(&attr);
    stack_begin = begin;
    stack_end = stack_begin + size;
    float *a = sx_alloc((size_t)M * K, sizeof(float)), *b = sx_alloc((size_t)K * N, sizeof(float));
    float c[M * N];
    assert_non_null(a);
    assert_non_null(b);
    for (int i = 0; i < M * K; i++) {
        a[i] = 1;
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = 1;
    }
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, action_before;
    const struct itimerval often = {{0, TICK_US}, {0, TICK_US}}, never = {{0, 0}, {0, 0}};
    const int team_before = sx_dnn_enter(1);
    ticks = ticks_elsewhere = 0;
    assert_int_equal(sigaction(SIGALRM, &action, &action_before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    while (ticks < TICKS) {
        sx_dnn_gemm(false, false, M, N, K, a, b, 0, c);
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &action_before, NULL), 0);
    sx_dnn_leave(team_before);
    assert_int_equal(ticks_elsewhere, 0);
    for (int i = 0; i < M * N; i++) {
        assert_true(c[i] == K);
    }
    sx_free(a);
    sx_free(b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_cpu__repeated_operands_in_bfloat16),
    cmocka_unit_test(test_backends_cpu__variables_change_places),
    cmocka_unit_test(test_backends_cpu__training_steps_flush_subnormals),
    cmocka_unit_test(test_backends_cpu__an_assigned_variable_may_be_read_later),
    cmocka_unit_test(test_backends_cpu__an_input_is_an_output),
    cmocka_unit_test(test_backends_cpu__elementwise_chains_are_one_kernel),
    cmocka_unit_test(test_backends_cpu__rows_of_vector_words_are_vector_loops),
    cmocka_unit_test(test_backends_cpu__a_residual_sum_of_batch_norms_is_one_kernel),
    cmocka_unit_test(test_backends_cpu__a_pool_is_fused_with_its_own_relu_alone),
    cmocka_unit_test(test_backends_cpu__elements_are_moved_by_kernels),
    cmocka_unit_test(test_backends_cpu__a_step_allocates_nothing),
    cmocka_unit_test(test_backends_cpu__profile_names_kernels_and_nodes),
    cmocka_unit_test(test_backends_cpu__profile_must_be_asked_for),
    cmocka_unit_test(test_backends_cpu__the_policy_uses_what_the_processor_has),
    cmocka_unit_test(test_backends_cpu__values_of_bfloat16_take_two_bytes),
    cmocka_unit_test(test_backends_cpu__packed_values_keep_their_numbers),
    cmocka_unit_test(test_backends_cpu__products_in_bfloat16_change_nothing),
    cmocka_unit_test(test_backends_cpu__compiling_survives_failing_allocations),
    cmocka_unit_test(test_backends_cpu__signals_stay_on_the_stack),
};
SX_TEST_MAIN(tests)
