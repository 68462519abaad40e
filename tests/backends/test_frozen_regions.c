/* Loops, branches and maps whose operands keep their values (sx_compile_options.frozen) on the cpu:
 * what they multiply by is packed once, and the results are the host's. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/common.h"

enum { N = 24, TRIPS = 5, MAPPED = 6, ARGS = 5 };

static sx_graph *finish(sx_builder *b)
{
    sx_graph *g;
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static sx_builder *begin(void)
{
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    return b;
}

/* (x, w, v) -> x w, and the other branch x + v x w. */
static sx_graph *branch(bool other, sx_type rows)
{
    sx_builder *b = begin();
    const sx_value x = sx_input(b, "x", rows), w = sx_input(b, "w", sx_type_of(SX_F32, N, N)),
                   v = sx_input(b, "v", sx_type_of(SX_F32, N, N));
    const sx_value y = sx_matmul(b, x, w);
    sx_output(b, "y", other ? sx_add(b, x, sx_matmul(b, y, v)) : y);
    return finish(b);
}

/* i < TRIPS */
static sx_graph *condition(sx_type rows)
{
    sx_builder *b = begin();
    const sx_value i = sx_input(b, "i", sx_scalar_type(SX_F32));
    (void)sx_input(b, "x", rows);
    (void)sx_input(b, "w", sx_type_of(SX_F32, N, N));
    (void)sx_input(b, "v", sx_type_of(SX_F32, N, N));
    sx_output(b, "go", sx_build_op(b, less, NULL, i, sx_scalar(b, SX_F32, TRIPS)));
    return finish(b);
}

/* x = tanh(branch(x w)) + the sums of w's columns: w is packed, and read as it lies. */
static sx_graph *body(sx_type rows)
{
    sx_builder *b = begin();
    const sx_value i = sx_input(b, "i", sx_scalar_type(SX_F32)), x = sx_input(b, "x", rows),
                   w = sx_input(b, "w", sx_type_of(SX_F32, N, N)),
                   v = sx_input(b, "v", sx_type_of(SX_F32, N, N));
    const sx_value take = sx_build_op(b, less, NULL, i, sx_scalar(b, SX_F32, 2));
    sx_graph *then_body = branch(false, rows), *else_body = branch(true, rows);
    const sx_if_attrs attrs = {.then_body = then_body, .else_body = else_body};
    const sx_value in[] = {take, sx_matmul(b, x, w), w, v};
    const sx_value y = sx_output_at(sx_build(b, &sx_op_if, &attrs, in, 4), 0);
    sx_output(b, "i", sx_add(b, i, sx_scalar(b, SX_F32, 1)));
    sx_output(b, "x", sx_add(b, sx_tanh(b, y), sx_reduce_sum(b, w, .axes = SX_AXES(0))));
    sx_graph_destroy(then_body);
    sx_graph_destroy(else_body);
    return finish(b);
}

static sx_graph *mapped(void)
{
    sx_builder *b = begin();
    const sx_value a = sx_input(b, "a", sx_type_of(SX_F32, N, N)),
                   w = sx_input(b, "w", sx_type_of(SX_F32, N, N));
    sx_output(b, "y", sx_matmul(b, a, w));
    return finish(b);
}

/* (x [batch, N], w, v, stack [MAPPED, N, N] and its last, which only the map reads) */
static sx_graph *whole(void)
{
    const sx_type rows = sx_type_of(SX_F32, SX_BATCH, N), square = sx_type_of(SX_F32, N, N);
    static const char *const names[] = {"w", "v", "stack", "u"};
    const sx_type types[] = {square, square, sx_type_of(SX_F32, MAPPED, N, N), square};
    sx_builder *b = begin();
    const sx_value x = sx_input(b, "x", rows);
    sx_value in[ARGS - 1];
    for (int i = 0; i < ARGS - 1; i++) {
        in[i] = sx_variable(b, &(sx_variable_spec){.name = names[i], .type = types[i]});
    }
    sx_graph *goes = condition(rows), *next = body(rows), *each = mapped();
    const sx_while_attrs loop = {.condition = goes, .body = next, .trips = TRIPS};
    const sx_map_attrs map = {.body = each, .mapped = 1};
    const sx_value y = sx_build(b, &sx_op_while, &loop,
                                (const sx_value[]){sx_scalar(b, SX_F32, 0), x, in[0], in[1]}, 4);
    const sx_value z = sx_build(b, &sx_op_map, &map, (const sx_value[]){in[2], in[3]}, 2);
    sx_output(
        b, "y",
        sx_add(b, sx_output_at(y, 1), sx_reduce_sum(b, sx_output_at(z, 0), .axes = SX_AXES(0, 1))));
    sx_graph_destroy(goes);
    sx_graph_destroy(next);
    sx_graph_destroy(each);
    return finish(b);
}

typedef struct running {
    sx_platform *platform;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[ARGS], *output;
} running;

static float element(int arg, int64_t k)
{
    return sinf((float)k * 1.3F + (float)arg) / (arg == 0 ? 1 : 4);
}

static void start(running *r, const char *backend, int threads, const sx_graph *g,
                  const sx_compile_options *options)
{
    assert_ok(
        sx_platform_open(backend, &(sx_platform_options){.cpu.threads = threads}, &r->platform));
    assert_ok(sx_compile(r->platform, g, options, &r->executable));
    assert_ok(sx_run_create(r->executable, &r->run));
    for (int i = 0; i < r->executable->n_args; i++) {
        const sx_type *type = &r->executable->arg_types[i];
        const int64_t n = sx_type_elems(type);
        float *data = sx_alloc((size_t)n, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < n; k++) {
            data[k] = element(i, k);
        }
        assert_ok(sx_device_buffer_create(r->platform->devices[0], type, &r->args[i]));
        assert_ok(sx_device_buffer_write(r->args[i], data, false));
        sx_free(data);
    }
    assert_ok(sx_device_buffer_create(r->platform->devices[0], &r->executable->result_types[0],
                                      &r->output));
}

static float *execute(running *r)
{
    float *y = sx_alloc((size_t)sx_type_bytes(&r->output->type) + 1, 1);
    assert_non_null(y);
    assert_ok(sx_run_execute(r->run, r->args, &r->output));
    assert_ok(sx_device_buffer_read(r->output, y));
    return y;
}

static void stop(running *r)
{
    for (int i = 0; i < r->executable->n_args; i++) {
        sx_device_buffer_release(r->args[i]);
    }
    sx_device_buffer_release(r->output);
    sx_run_destroy(r->run);
    sx_executable_release(r->executable);
    sx_platform_close(r->platform);
}

/* Few rows and many, one shard and two of different sizes, and each execution like the first. */
static void test_backends_frozen_regions__equal_the_host(void **state)
{
    (void)state;
    static const struct {
        int64_t batch;
        int shards, threads;
    } rows[] = {{1, 1, 1}, {4, 1, 2}, {9, 1, 1}, {33, 2, 2}, {33, 2, 1}, {9, 0, 3}};
    sx_graph *g = whole();
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        running host, cpu;
        start(&host, "host", 1, g, &(sx_compile_options){.batch = rows[i].batch});
        start(&cpu, "cpu", rows[i].threads, g,
              &(sx_compile_options){
                  .batch = rows[i].batch, .shards = rows[i].shards, .frozen = true});
        float *expected = execute(&host);
        for (int k = 0; k < 2; k++) {
            float *y = execute(&cpu);
            for (int64_t j = 0; j < rows[i].batch * N; j++) {
                if (!(fabsf(y[j] - expected[j]) <= 2e-5F * (1 + fabsf(expected[j])))) {
                    fail_msg("batch %lld, %d shards: element %lld is %g, expected %g",
                             (long long)rows[i].batch, rows[i].shards, (long long)j, (double)y[j],
                             (double)expected[j]);
                }
            }
            sx_free(y);
        }
        sx_free(expected);
        stop(&host);
        stop(&cpu);
    }
    sx_graph_destroy(g);
}

typedef struct stored {
    sx_buffer_source source;
    int arg;
    int64_t elems;
    atomic_int reads;
} stored;

static sx_status read_stored(void *user, void *data)
{
    stored *s = user;
    atomic_fetch_add(&s->reads, 1);
    for (int64_t k = 0; k < s->elems; k++) {
        ((float *)data)[k] = element(s->arg, k);
    }
    return SX_OK;
}

/* Variables that are read from their sources: `u`, which is only packed, once and for good. */
static void test_backends_frozen_regions__read_sources(void **state)
{
    (void)state;
    sx_graph *g = whole();
    for (int threads = 1; threads <= 2; threads++) {
        const sx_compile_options options = {.batch = 9, .shards = 1, .frozen = true};
        running written, r;
        stored all[ARGS];
        start(&written, "cpu", threads, g, &options);
        start(&r, "cpu", threads, g, &options);
        for (int i = 1; i < ARGS; i++) {
            all[i] = (stored){.source = {read_stored, &all[i]},
                              .arg = i,
                              .elems = sx_type_elems(&r.args[i]->type)};
            assert_true(sx_device_buffer_set_source(r.args[i], &all[i].source));
        }
        float *expected = execute(&written);
        for (int k = 0; k < 2; k++) {
            float *y = execute(&r);
            assert_memory_equal(y, expected, 9 * N * sizeof(float));
            sx_free(y);
        }
        for (int i = 1; i < ARGS; i++) {
            assert_int_equal(atomic_load(&all[i].reads), 1);
        }
        /* What was packed is not read again. */
        float zeros[N * N] = {0};
        assert_ok(sx_device_buffer_write(written.args[ARGS - 1], zeros, false));
        float *y = execute(&written);
        assert_memory_equal(y, expected, 9 * N * sizeof(float));
        sx_free(y);
        sx_free(expected);
        stop(&written);
        stop(&r);
    }
    sx_graph_destroy(g);
}

/* while the largest of x x is below 5000: x = 2 x, from a variable x on: the state is not frozen,
 * nor what the condition multiplies by. */
static sx_graph *doubled(void)
{
    const sx_type square = sx_type_of(SX_F32, N, N);
    sx_builder *b = begin();
    sx_value x = sx_input(b, "x", square);
    const sx_value most = sx_reduce_max(b, sx_matmul(b, x, x), .axes = SX_AXES(0, 1));
    sx_output(b, "go", sx_build_op(b, less, NULL, most, sx_scalar(b, SX_F32, 5000)));
    sx_graph *goes = finish(b);
    b = begin();
    x = sx_input(b, "x", square);
    sx_output(b, "x", sx_add(b, x, x));
    sx_graph *next = finish(b);
    b = begin();
    const sx_while_attrs loop = {.condition = goes, .body = next, .trips = 100};
    const sx_value in = sx_variable(b, &(sx_variable_spec){.name = "x", .type = square});
    const sx_value added = sx_input(b, "added", sx_type_of(SX_F32, SX_BATCH, N));
    const sx_value y = sx_build(b, &sx_op_while, &loop, &in, 1);
    sx_output(b, "y", sx_add(b, added, sx_reduce_max(b, y, .axes = SX_AXES(0))));
    sx_graph_destroy(goes);
    sx_graph_destroy(next);
    return finish(b);
}

static void test_backends_frozen_regions__a_state_is_not_frozen(void **state)
{
    (void)state;
    sx_graph *g = doubled();
    running host, cpu;
    start(&host, "host", 1, g, &(sx_compile_options){.batch = 2});
    start(&cpu, "cpu", 1, g, &(sx_compile_options){.batch = 2, .frozen = true});
    float *expected = execute(&host);
    for (int k = 0; k < 2; k++) {
        float *y = execute(&cpu);
        for (int64_t j = 0; j < 2 * N; j++) {
            assert_true(fabsf(y[j] - expected[j]) <= 1e-5F * (1 + fabsf(expected[j])));
        }
        sx_free(y);
    }
    sx_free(expected);
    stop(&host);
    stop(&cpu);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_frozen_regions__equal_the_host),
    cmocka_unit_test(test_backends_frozen_regions__read_sources),
    cmocka_unit_test(test_backends_frozen_regions__a_state_is_not_frozen),
};
SX_TEST_MAIN(tests)
