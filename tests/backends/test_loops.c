/* Loops inside a device's program, on the backends that need nothing but this build: what ends
 * them, and that an execution of a loop allocates nothing on the cpu. */
#include "harness.h"

#include <limits.h>
#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"

enum { N = 40, TRIPS = 100 };

/* The operands of a loop: `n` values, of which the first counts up to the one at `limit`. */
typedef struct loop {
    const char *const *names;
    const sx_type *types;
    int n, limit;
    int32_t step;
    int64_t trips;
    void (*next)(sx_builder *b, const sx_value *a); /* the outputs of the body after the count */
} loop;

/* while a[0] < a[limit]: a[0] = a[0] + step, next. The operands are inputs of `b`. */
static sx_value build_loop(sx_builder *b, const loop *l, sx_value *operands)
{
    sx_graph *regions[2];
    for (int r = 0; r < 2; r++) {
        sx_builder *inner;
        sx_value *a = operands;
        assert_ok(sx_builder_create(&inner));
        for (int i = 0; i < l->n; i++) {
            a[i] = sx_input(inner, l->names[i], l->types[i]);
        }
        if (r == 0) {
            sx_output(inner, "go", sx_build_op(inner, less, NULL, a[0], a[l->limit]));
        } else {
            sx_value by = sx_constant(inner, (sx_tensor){sx_scalar_type(SX_I32), (void *)&l->step});
            sx_output(inner, l->names[0], sx_build_op(inner, add, NULL, a[0], by));
            l->next(inner, a);
        }
        assert_ok(sx_builder_finish(inner, &regions[r]));
        sx_builder_destroy(inner);
    }
    for (int i = 0; i < l->n; i++) {
        operands[i] = sx_input(b, l->names[i], l->types[i]);
    }
    const sx_while_attrs attrs = {.condition = regions[0], .body = regions[1], .trips = l->trips};
    const sx_value first = sx_build(b, &sx_op_while, &attrs, operands, l->n);
    sx_graph_destroy(regions[0]);
    sx_graph_destroy(regions[1]);
    return first;
}

static void next_row(sx_builder *b, const sx_value *a)
{
    sx_output(b, "x", sx_tanh(b, sx_matmul(b, a[1], a[4])));
    sx_output(b, "stack", sx_build_op(b, put_row, NULL, a[2], a[1], a[0]));
}

/* (i, x [N,N], stack [TRIPS,N,N], limit, w [N,N]): while i < limit: stack[i] = x, x = tanh(x w),
 * i = i + step */
static sx_graph *loop_graph(int32_t step, int64_t trips)
{
    enum { OPERANDS = 5 };
    static const char *const names[OPERANDS] = {"i", "x", "stack", "limit", "w"};
    const sx_type types[OPERANDS] = {sx_scalar_type(SX_I32), sx_type_of(SX_F32, N, N),
                                     sx_type_of(SX_F32, TRIPS, N, N), sx_scalar_type(SX_I32),
                                     sx_type_of(SX_F32, N, N)};
    sx_graph *g;
    sx_builder *b;
    sx_value operands[OPERANDS];
    assert_ok(sx_builder_create(&b));
    sx_value y = build_loop(b, &(loop){names, types, OPERANDS, 3, step, trips, next_row}, operands);
    for (int i = 0; i < 3; i++) {
        sx_output(b, names[i], sx_output_at(y, i));
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void next_example(sx_builder *b, const sx_value *a)
{
    sx_output(b, "x", sx_tanh(b, sx_matmul(b, a[1], a[3])));
}

/* What a loop computes, all its trips, decides whether workers share a batch. */
static void test_backends_loops__a_batch_is_divided_for_the_work_of_its_loops(void **state)
{
    (void)state;
    enum { BATCH = 8, OPERANDS = 4 };
    static const char *const names[OPERANDS] = {"i", "x", "limit", "w"};
    const sx_type types[OPERANDS] = {sx_scalar_type(SX_I32), sx_type_of(SX_F32, SX_BATCH, N),
                                     sx_scalar_type(SX_I32), sx_type_of(SX_F32, N, N)};
    sx_platform *platform;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 2}, &platform));
    for (int k = 0; k < 2; k++) {
        const int64_t trips = k == 0 ? 1 : 1 + 1000000 / (2 * BATCH * N * N);
        sx_builder *b;
        sx_graph *g;
        sx_executable *e;
        sx_executable_info info;
        sx_value operands[OPERANDS];
        assert_ok(sx_builder_create(&b));
        sx_value y =
            build_loop(b, &(loop){names, types, OPERANDS, 2, 1, trips, next_example}, operands);
        sx_output(b, "x", sx_output_at(y, 1));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = BATCH}, &e));
        assert_ok(sx_executable_get_info(e, &info));
        assert_int_equal(info.shards, k == 0 ? 1 : 2);
        sx_executable_release(e);
        sx_graph_destroy(g);
    }
    sx_platform_close(platform);
}

typedef struct fixture {
    sx_platform *platform;
    sx_executable *e;
    sx_run *run;
    sx_device_buffer *args[5], *outputs[3];
} fixture;

static void begin(fixture *f, const char *backend, int32_t step, int64_t trips, int32_t limit)
{
    sx_graph *g = loop_graph(step, trips);
    assert_ok(sx_platform_open(backend, &(sx_platform_options){.cpu.threads = 1}, &f->platform));
    assert_ok(sx_compile(f->platform, g, &(sx_compile_options){.batch = 1}, &f->e));
    assert_ok(sx_run_create(f->e, &f->run));
    for (int i = 0; i < 5; i++) {
        const sx_type *type = &f->e->arg_types[i];
        const int64_t n = sx_type_elems(type);
        float *data = sx_alloc((size_t)n, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < n; k++) {
            data[k] = i == 1 || i == 4 ? (float)((k * 7 + i) % 13 - 6) / 40 : 0;
        }
        memcpy(data, i == 3 ? (void *)&limit : data, i == 3 ? sizeof(limit) : 0);
        assert_ok(sx_device_buffer_create(f->platform->devices[0], type, &f->args[i]));
        assert_ok(sx_device_buffer_write(f->args[i], data, false));
        sx_free(data);
    }
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_device_buffer_create(f->platform->devices[0], &f->e->result_types[i],
                                          &f->outputs[i]));
    }
    sx_graph_destroy(g);
}

static void end(fixture *f)
{
    for (int i = 0; i < 5; i++) {
        sx_device_buffer_release(f->args[i]);
    }
    for (int i = 0; i < 3; i++) {
        sx_device_buffer_release(f->outputs[i]);
    }
    sx_run_destroy(f->run);
    sx_executable_release(f->e);
    sx_platform_close(f->platform);
}

static void read_outputs(const fixture *f, int32_t *i, float *x, float *stack)
{
    assert_ok(sx_device_buffer_read(f->outputs[0], i));
    assert_ok(sx_device_buffer_read(f->outputs[1], x));
    assert_ok(sx_device_buffer_read(f->outputs[2], stack));
}

static void test_backends_loops__compute_what_the_host_kernels_do(void **state)
{
    (void)state;
    static float x[2][N * N], stack[2][TRIPS * N * N];
    int32_t i[2];
    for (int k = 0; k < 2; k++) {
        fixture f;
        begin(&f, k == 0 ? "host" : "cpu", 1, TRIPS, 4);
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_ok(sx_run_execute(f.run, f.args, f.outputs)); /* the arguments have not changed */
        read_outputs(&f, &i[k], x[k], stack[k]);
        end(&f);
    }
    assert_int_equal(i[0], 4);
    assert_int_equal(i[1], 4);
    for (int k = 0; k < N * N; k++) {
        assert_true(x[1][k] - x[0][k] < 1e-5f && x[0][k] - x[1][k] < 1e-5f);
    }
    for (int k = 0; k < TRIPS * N * N; k++) {
        assert_true(stack[1][k] - stack[0][k] < 1e-5f && stack[0][k] - stack[1][k] < 1e-5f);
    }
}

/* Interpreting a region does allocate. */
static void test_backends_loops__allocate_nothing_on_the_cpu(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "cpu", 1, TRIPS, TRIPS);
    assert_ok(sx_run_execute(f.run, f.args, f.outputs));
    const long before = sx_alloc_count();
    sx_alloc_fail_after(LONG_MAX); /* counts objects of arenas, too */
    sx_status status = sx_run_execute(f.run, f.args, f.outputs);
    sx_alloc_fail_after(0);
    assert_ok(status);
    assert_int_equal(sx_alloc_count() - before, 0);
    end(&f);
}

static void test_backends_loops__end_at_their_bound(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        fixture f;
        begin(&f, k == 0 ? "host" : "cpu", 1, 3, 4);
        assert_error(sx_run_execute(f.run, f.args, f.outputs), SX_OUT_OF_RANGE,
                     "the condition is still true after 3 iterations");
        assert_ok(sx_device_buffer_write(f.args[3], &(int32_t){3}, false));
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        end(&f);
    }
}

static void test_backends_loops__end_when_the_caller_says_so(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        fixture f;
        sx_cancel cancel;
        begin(&f, k == 0 ? "host" : "cpu", 0, 0, 1); /* i stays 0: endless */
        sx_cancel_init(&cancel, sx_now_ns() + 20 * 1000 * 1000);
        sx_run_set_cancel(f.run, &cancel);
        assert_error(sx_run_execute(f.run, f.args, f.outputs), SX_DEADLINE_EXCEEDED, "\"while\"");
        sx_cancel_init(&cancel, INT64_MAX);
        sx_cancel_request(&cancel);
        assert_error(sx_run_execute(f.run, f.args, f.outputs), SX_CANCELLED, "\"while\"");
        end(&f);
    }
}

static void next_power(sx_builder *b, const sx_value *a)
{
    sx_output(b, "h", sx_mul(b, a[1], a[3]));
}

/* (i, h, limit, w): while i < limit: h = h w, i = i + 1, without a bound; outputs h, dh/dw */
static sx_graph *power_graph(void)
{
    enum { OPERANDS = 4 };
    static const char *const names[OPERANDS] = {"i", "h", "limit", "w"};
    const sx_type types[OPERANDS] = {sx_scalar_type(SX_I32), sx_scalar_type(SX_F32),
                                     sx_scalar_type(SX_I32), sx_scalar_type(SX_F32)};
    sx_graph *g;
    sx_builder *b;
    sx_value operands[OPERANDS], dw;
    assert_ok(sx_builder_create(&b));
    sx_value y = build_loop(b, &(loop){names, types, OPERANDS, 2, 1, 0, next_power}, operands);
    sx_gradients(b, sx_output_at(y, 1), &operands[3], 1, &dw);
    sx_output(b, "h", sx_output_at(y, 1));
    sx_output(b, "dw", dw);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* 64 states are kept: of more trips, those between are computed again. */
static void test_backends_loops__without_a_bound_have_gradients(void **state)
{
    (void)state;
    static const int32_t trips[] = {0, 1, 2, 63, 64, 65, 128, 129, 200, 300};
    const float one = 1, w = 0.99f;
    for (int k = 0; k < 2; k++) {
        sx_graph *g = power_graph();
        sx_platform *platform;
        sx_executable *e;
        sx_device_buffer *buffers[6];
        assert_ok(sx_platform_open(k == 0 ? "host" : "cpu",
                                   &(sx_platform_options){.cpu.threads = 1}, &platform));
        assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 1}, &e));
        for (int i = 0; i < 6; i++) {
            assert_ok(sx_device_buffer_create(platform->devices[0],
                                              i < 4 ? &e->arg_types[i] : &e->result_types[i - 4],
                                              &buffers[i]));
        }
        for (size_t i = 0; i < sizeof(trips) / sizeof(trips[0]); i++) {
            const double t = trips[i], h = pow((double)w, t), dw = t * pow((double)w, t - 1);
            float got[2];
            assert_ok(sx_device_buffer_write(buffers[0], &(int32_t){0}, false));
            assert_ok(sx_device_buffer_write(buffers[1], &one, false));
            assert_ok(sx_device_buffer_write(buffers[2], &trips[i], false));
            assert_ok(sx_device_buffer_write(buffers[3], &w, false));
            assert_ok(sx_execute(e, buffers, buffers + 4));
            assert_ok(sx_device_buffer_read(buffers[4], &got[0]));
            assert_ok(sx_device_buffer_read(buffers[5], &got[1]));
            if (!(fabs((double)got[0] - h) <= 1e-4 &&
                  fabs((double)got[1] - dw) <= 1e-4 * (dw + 1))) {
                fail_msg("%d trips: h %.7g, expected %.7g; dw %.7g, expected %.7g", trips[i],
                         (double)got[0], h, (double)got[1], dw);
            }
        }
        for (int i = 0; i < 6; i++) {
            sx_device_buffer_release(buffers[i]);
        }
        sx_executable_release(e);
        sx_platform_close(platform);
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_loops__compute_what_the_host_kernels_do),
    cmocka_unit_test(test_backends_loops__allocate_nothing_on_the_cpu),
    cmocka_unit_test(test_backends_loops__a_batch_is_divided_for_the_work_of_its_loops),
    cmocka_unit_test(test_backends_loops__end_at_their_bound),
    cmocka_unit_test(test_backends_loops__end_when_the_caller_says_so),
    cmocka_unit_test(test_backends_loops__without_a_bound_have_gradients),
};
SX_TEST_MAIN(tests)
