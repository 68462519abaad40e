/* Programs whose variables keep their values (sx_compile_options.frozen) on the cpu. */
#include "harness.h"

#include <math.h>

#include <sextant/ops.h>

#include "backends/backend.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/op_def.h"
#include "graph/passes/passes.h"

static sx_value variable(sx_builder *b, const char *name, sx_type type)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = type});
}

/* conv, batch norm and relu6, then a depthwise convolution scaled and shifted as Keras writes a
 * batch norm, its swish as x sigmoid(x), and the sum of that and what it began with, its relu. */
static sx_graph *small_network(int64_t height)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type vector = sx_type_of(SX_F32, 16), row = sx_type_of(SX_F32, 1, 1, 1, 16);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, height, 9, 8));
    sx_value w = variable(b, "w", sx_type_of(SX_F32, 3, 3, 8, 16));
    sx_value y = sx_nn_conv2d(b, x, w, .padding = SX_SAME);
    y = sx_nn_batch_norm(b, y, variable(b, "scale", vector), variable(b, "offset", vector),
                         variable(b, "mean", vector), variable(b, "variance", vector), 1e-3);
    sx_value start = sx_relu6(b, y);
    y = sx_nn_conv2d(b, start, variable(b, "dw", sx_type_of(SX_F32, 3, 3, 1, 16)),
                     .padding = SX_SAME, .groups = 16);
    y = sx_add(b, sx_mul(b, y, variable(b, "factor", row)), variable(b, "shift", row));
    static float one = 1;
    sx_value beta = sx_constant(b, (sx_tensor){sx_scalar_type(SX_F32), &one});
    y = sx_mul(b, y, sx_sigmoid(b, sx_mul(b, beta, y)));
    y = sx_nn_conv2d(b, y, variable(b, "pw", sx_type_of(SX_F32, 1, 1, 16, 16)));
    y = sx_sub(b, y, variable(b, "down", vector));
    sx_output(b, "y", sx_relu(b, sx_add(b, start, y)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static float number(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) / (1 << 23) - 1;
}

enum { MAX_ARGS = 48 };

typedef struct program {
    sx_graph *graph;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[MAX_ARGS], *output;
} program;

/* The same values for the same graph; variances are positive. */
static program make_of(sx_platform *platform, sx_graph *graph, int64_t batch, bool frozen,
                       sx_budget *memory)
{
    program p = {.graph = graph};
    uint32_t state = 7;
    const sx_compile_options options = {.batch = batch,
                                        .shards = memory != NULL ? 1 : 0,
                                        .frozen = frozen,
                                        .profile = true,
                                        .memory = memory};
    assert_ok(sx_compile(platform, p.graph, &options, &p.executable));
    assert_ok(sx_run_create(p.executable, &p.run));
    for (int i = 0; i < p.graph->n_args; i++) {
        const sx_type *type = &p.executable->arg_types[i];
        const int64_t n = sx_type_elems(type);
        float *data = sx_alloc((size_t)n + 1, sizeof(float));
        assert_non_null(data);
        for (int64_t k = 0; k < n; k++) {
            data[k] = number(&state);
            data[k] = strstr(p.graph->args[i].name, "variance") != NULL ? fabsf(data[k]) : data[k];
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], type, &p.args[i]));
        assert_ok(sx_device_buffer_write(p.args[i], data, false));
        sx_free(data);
    }
    assert_ok(
        sx_device_buffer_create(platform->devices[0], &p.executable->result_types[0], &p.output));
    return p;
}

static program make(sx_platform *platform, int64_t height, int64_t batch, bool frozen)
{
    return make_of(platform, small_network(height), batch, frozen, NULL);
}

static float *run(program *p)
{
    float *y = sx_alloc((size_t)sx_type_bytes(&p->output->type) + 1, 1);
    assert_non_null(y);
    assert_ok(sx_run_execute(p->run, p->args, &p->output));
    assert_ok(sx_device_buffer_read(p->output, y));
    return y;
}

static void finish(program *p)
{
    for (int i = 0; i < p->graph->n_args; i++) {
        sx_device_buffer_release(p->args[i]);
    }
    sx_device_buffer_release(p->output);
    sx_run_destroy(p->run);
    sx_executable_release(p->executable);
    sx_graph_destroy(p->graph);
}

static void test_backends_frozen__equals_the_parts(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 2, 5};
    sx_platform *platform;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 2}, &platform));
    for (int i = 0; i < 3; i++) {
        for (int64_t height = 1; height <= 33; height += 16) {
            program plain = make(platform, height, batches[i], false);
            program frozen = make(platform, height, batches[i], true);
            float *a = run(&plain), *b = run(&frozen), *again = run(&frozen);
            const int64_t n = sx_type_elems(&plain.output->type);
            double greatest = 0, off = 0;
            for (int64_t k = 0; k < n; k++) {
                greatest = harness_greater(greatest, fabs((double)a[k]));
                off = harness_greater(off, fabs((double)a[k] - (double)b[k]));
            }
            assert_true(greatest > 1);
            assert_true(off <= 1e-5 * greatest);
            assert_memory_equal(b, again, (size_t)n * sizeof(float));
            sx_free(a);
            sx_free(b);
            sx_free(again);
            finish(&plain);
            finish(&frozen);
        }
    }
    sx_platform_close(platform);
}

/* Everything but the three convolutions is done once: later executions run three kernels, and do
 * not look at the filters again. */
static void test_backends_frozen__prepares_filters_once(void **state)
{
    (void)state;
    sx_platform *platform;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    program p = make(platform, 9, 1, true);
    float *before = run(&p);
    const sx_kernel_time *rows;
    int n, ran = 0;
    assert_ok(sx_run_get_profile(p.run, &rows, &n));
    for (int i = 0; i < n; i++) {
        if (rows[i].total_ns > 0) {
            assert_non_null(strstr(rows[i].kernel, "conv2d "));
            ran++;
        }
    }
    assert_int_equal(ran, 3);
    for (int i = 0; i < p.graph->n_args; i++) {
        if (strcmp(p.graph->args[i].name, "w") == 0) {
            float zeros[3 * 3 * 8 * 16] = {0};
            assert_ok(sx_device_buffer_write(p.args[i], zeros, false));
        }
    }
    float *after = run(&p);
    assert_memory_equal(before, after, (size_t)sx_type_bytes(&p.output->type));
    sx_free(before);
    sx_free(after);
    finish(&p);
    sx_platform_close(platform);
}

/* The source of an argument: its value, and how often it was read. */
typedef struct stored {
    sx_buffer_source source;
    float *value;
    size_t bytes;
    bool broken;
    atomic_int reads;
} stored;

static sx_status read_stored(void *user, void *data)
{
    stored *s = user;
    atomic_fetch_add(&s->reads, 1);
    if (s->broken) {
        return sx_error(SX_DATA_LOSS, "a damaged value");
    }
    memcpy(data, s->value, s->bytes);
    return SX_OK;
}

/* The variables of the program, but not its input, have sources. */
static void leave_stored(program *p, stored *all)
{
    for (int i = 0; i < p->graph->n_args; i++) {
        stored *s = &all[i];
        *s =
            (stored){.source = {read_stored, s}, .bytes = (size_t)sx_type_bytes(&p->args[i]->type)};
        s->value = sx_alloc(s->bytes + 1, 1);
        assert_non_null(s->value);
        assert_ok(sx_device_buffer_read(p->args[i], s->value));
        if (p->graph->args[i].kind == SX_ARG_VARIABLE) {
            assert_true(sx_device_buffer_set_source(p->args[i], &s->source));
        }
    }
}

/* What is read to prepare the program alone is read then, each time, and not kept: the results are
 * those of variables that were written. What is not frozen is read once. */
static void test_backends_frozen__reads_variables_from_their_sources(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        const bool frozen = k < 2;
        sx_platform *platform;
        stored all[MAX_ARGS];
        assert_ok(
            sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1 + k % 2}, &platform));
        program written = make(platform, 9, 2, frozen);
        program p = make(platform, 9, 2, frozen);
        leave_stored(&p, all);
        float *expected = run(&written);
        all[1].broken = true;
        assert_error(sx_run_prepare(p.run, p.args), SX_DATA_LOSS, "a damaged value");
        assert_error(sx_run_execute(p.run, p.args, &p.output), SX_DATA_LOSS, "a damaged value");
        all[1].broken = false;
        for (int i = 0; i < p.graph->n_args; i++) {
            atomic_store(&all[i].reads, 0);
        }
        for (int i = 0; i < 2; i++) {
            float *y = run(&p);
            assert_memory_equal(y, expected, (size_t)sx_type_bytes(&p.output->type));
            sx_free(y);
        }
        for (int i = 0; i < p.graph->n_args; i++) {
            const bool variable = p.graph->args[i].kind == SX_ARG_VARIABLE;
            const int reads = atomic_load(&all[i].reads);
            float *value = sx_alloc(all[i].bytes + 1, 1);
            assert_non_null(value);
            assert_ok(sx_device_buffer_read(p.args[i], value));
            assert_memory_equal(value, all[i].value, all[i].bytes);
            assert_true(reads <= 1 && (!frozen || i != 1 || reads == 1));
            assert_true(!variable || atomic_load(&all[i].reads) - reads <= (frozen ? 1 : 0));
            assert_true(variable || atomic_load(&all[i].reads) == 0);
            sx_free(value);
            sx_free(all[i].value);
        }
        float *zeros = sx_alloc(all[1].bytes, 1);
        assert_non_null(zeros);
        assert_ok(sx_device_buffer_write(p.args[1], zeros, false)); /* no source from now on */
        assert_ok(sx_device_buffer_read(p.args[1], zeros));
        assert_true(zeros[0] == 0);
        sx_free(zeros);
        sx_free(expected);
        finish(&written);
        finish(&p);
        sx_platform_close(platform);
    }
}

enum { LAYERS = 8, CHANNELS = 96, FILTER_BYTES = 9 * CHANNELS * CHANNELS * 4 };

/* Eight times conv, batch norm and relu. */
static sx_graph *deep_network(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type vector = sx_type_of(SX_F32, CHANNELS);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4, 4, CHANNELS));
    for (int i = 0; i < LAYERS; i++) {
        static const char *const parts[] = {"scale", "offset", "mean", "variance"};
        char name[16];
        sx_value norm[4];
        snprintf(name, sizeof(name), "%d/w", i);
        sx_value w = variable(b, name, sx_type_of(SX_F32, 3, 3, CHANNELS, CHANNELS));
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof(name), "%d/%s", i, parts[k]);
            norm[k] = variable(b, name, vector);
        }
        x = sx_nn_batch_norm(b, sx_nn_conv2d(b, x, w, .padding = SX_SAME), norm[0], norm[1],
                             norm[2], norm[3], 1e-3);
        x = sx_relu(b, x);
    }
    sx_output(b, "y", x);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Threads that prepare the steps of a program share nothing: it is the same for any number of them,
 * and memory that any of them lacks is an error of the whole. */
static void test_backends_frozen__threads_prepare_one_program(void **state)
{
    (void)state;
    sx_graph *graph = deep_network();
    sx_platform *platform[2];
    sx_executable *executable[2] = {NULL, NULL};
    const sx_compile_options options = {.batch = 1, .shards = 1, .frozen = true};
    for (int i = 0; i < 2; i++) {
        sx_executable_info info;
        assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1 + 3 * i},
                                   &platform[i]));
        assert_ok(sx_compile(platform[i], graph, &options, &executable[i]));
        assert_ok(sx_executable_get_info(executable[i], &info));
        assert_true(info.kernels >= LAYERS);
        sx_executable_release(executable[i]);
    }
    int failed = 0;
    for (long n = 1, done = 0; done == 0; n += 19) {
        sx_executable *e = NULL;
        sx_alloc_fail_after(n);
        sx_status status = sx_compile(platform[1], graph, &options, &e);
        sx_alloc_fail_after(0);
        done = status == SX_OK;
        failed += status != SX_OK;
        assert_true(status == SX_OK || sx_status_code(status) == SX_RESOURCE_EXHAUSTED);
        sx_status_free(status);
        sx_executable_release(e);
    }
    assert_true(failed > 10);
    for (int i = 0; i < 2; i++) {
        sx_platform_close(platform[i]);
    }
    sx_graph_destroy(graph);
}

/* Folded filters take memory until they are packed, one at a time for each worker, and after
 * sx_run_prepare() the first execution does no more than a later one. Workers share the packing:
 * the result is that of one. */
static void test_backends_frozen__prepares_before_the_first_execution(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        float *y[2] = {NULL, NULL};
        for (int k = 0; k < 2; k++) {
            sx_platform *platform;
            sx_budget memory;
            sx_budget_init(&memory, "the test", 0, NULL);
            assert_ok(
                sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1 + k}, &platform));
            program p = make_of(platform, deep_network(), batches[i], true, &memory);
            assert_true(p.executable->memory_bytes < (LAYERS + 3) * (size_t)FILTER_BYTES);
            assert_ok(sx_run_prepare(p.run, p.args));
            const long before = sx_alloc_count();
            assert_ok(sx_run_execute(p.run, p.args, &p.output));
            assert_int_equal(sx_alloc_count(), before);
            y[k] = sx_alloc((size_t)sx_type_bytes(&p.output->type) + 1, 1);
            assert_non_null(y[k]);
            assert_ok(sx_device_buffer_read(p.output, y[k]));
            assert_true(y[k][0] == y[k][0]);
            if (k == 1) {
                assert_memory_equal(y[0], y[1], (size_t)sx_type_bytes(&p.output->type));
            }
            finish(&p);
            sx_platform_close(platform);
        }
        sx_free(y[0]);
        sx_free(y[1]);
    }
}

/* y = conv(x, w), whose packed filter is large enough to be shared. */
typedef struct convolution {
    sx_graph *graph;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[2], *output;
} convolution;

enum { SHARED_CHANNELS = 64, SHARED_FILTER = 9 * SHARED_CHANNELS * SHARED_CHANNELS };

static void begin_convolution(convolution *c, sx_platform *platform, sx_budget *memory,
                              int64_t batch, bool frozen, float scale)
{
    static float x[2 * 64 * SHARED_CHANNELS], w[SHARED_FILTER];
    sx_builder *b;
    uint32_t seed = 3;
    assert_ok(sx_builder_create(&b));
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 8, 8, SHARED_CHANNELS));
    sx_value filter = variable(b, "w", sx_type_of(SX_F32, 3, 3, SHARED_CHANNELS, SHARED_CHANNELS));
    sx_output(b, "y", sx_nn_conv2d(b, in, filter, .padding = SX_SAME));
    assert_ok(sx_builder_finish(b, &c->graph));
    sx_builder_destroy(b);
    assert_ok(sx_compile(
        platform, c->graph,
        &(sx_compile_options){.batch = batch, .shards = 1, .frozen = frozen, .memory = memory},
        &c->executable));
    assert_ok(sx_run_create(c->executable, &c->run));
    for (int i = 0; i < SHARED_FILTER; i++) {
        w[i] = scale * number(&seed);
    }
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++) {
        x[i] = number(&seed);
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &c->executable->arg_types[i],
                                          &c->args[i]));
        assert_ok(sx_device_buffer_write(c->args[i],
                                         strcmp(c->graph->args[i].name, "w") == 0 ? w : x, false));
    }
    assert_ok(
        sx_device_buffer_create(platform->devices[0], &c->executable->result_types[0], &c->output));
}

static void end_convolution(convolution *c)
{
    sx_device_buffer_release(c->args[0]);
    sx_device_buffer_release(c->args[1]);
    sx_device_buffer_release(c->output);
    sx_run_destroy(c->run);
    sx_executable_release(c->executable);
    sx_graph_destroy(c->graph);
}

/* The first example's results. */
static void run_convolution(convolution *c, float y[64 * SHARED_CHANNELS])
{
    static float all[2 * 64 * SHARED_CHANNELS];
    assert_ok(sx_run_execute(c->run, c->args, &c->output));
    assert_ok(sx_device_buffer_read(c->output, all));
    memcpy(y, all, sizeof(float[64 * SHARED_CHANNELS]));
}

/* Executables for two batch sizes have one packed filter; those of other weights have their own. */
static void test_backends_frozen__executables_share_packed_filters(void **state)
{
    (void)state;
    enum { N = 64 * SHARED_CHANNELS };
    static float want[N], y[N];
    sx_platform *platform;
    sx_budget memory;
    convolution c[4];
    sx_budget_init(&memory, "a test", 0, NULL);
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    begin_convolution(&c[0], platform, &memory, 1, false, 1);
    run_convolution(&c[0], want);
    end_convolution(&c[0]);
    size_t before = sx_budget_used(&memory);
    assert_int_equal(before, 0);
    for (int i = 0; i < 4; i++) { /* 1 and 2 examples, then with twice the weights */
        const float scale = i < 2 ? 1 : 2;
        begin_convolution(&c[i], platform, &memory, 1 + i % 2, true, scale);
        run_convolution(&c[i], y);
        for (int k = 0; k < N; k++) {
            assert_float_equal(y[k], scale * want[k], 1e-3);
        }
        const size_t used = sx_budget_used(&memory) - before - c[i].executable->run_bytes;
        if (i % 2 == 0) {
            assert_in_range(used, SHARED_FILTER * sizeof(float), 2 * SHARED_FILTER * sizeof(float));
        } else {
            assert_in_range(used, 0, SHARED_FILTER);
        }
        before = sx_budget_used(&memory);
    }
    end_convolution(&c[0]); /* the filter is now the second's */
    run_convolution(&c[1], y);
    for (int k = 0; k < N; k++) {
        assert_float_equal(y[k], want[k], 1e-3);
    }
    for (int i = 1; i < 4; i++) {
        end_convolution(&c[i]);
    }
    assert_int_equal(sx_budget_used(&memory), 0);
    sx_platform_close(platform);
}

static int count(const sx_graph *g, int op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        n += g->nodes[k].op->id == op;
    }
    return n;
}

/* What reads a value in the middle of a chain, or is no vector of the channels, stays. */
static void test_backends_frozen__folds_only_what_it_may(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g, *frozen;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4, 4, 4));
    sx_value w = variable(b, "w", sx_type_of(SX_F32, 1, 1, 4, 4));
    sx_value read_twice = sx_nn_conv2d(b, x, w);
    sx_output(
        b, "twice",
        sx_add(b, sx_mul(b, read_twice, variable(b, "a", sx_type_of(SX_F32, 4))), read_twice));
    sx_value by_column = variable(b, "column", sx_type_of(SX_F32, 4, 1));
    sx_output(b, "column", sx_mul(b, sx_nn_conv2d(b, x, w), by_column));
    sx_value fed = sx_input(b, "fed", sx_type_of(SX_F32, 4));
    sx_output(b, "fed", sx_mul(b, sx_nn_conv2d(b, x, w), fed));
    sx_value assigned = variable(b, "assigned", sx_type_of(SX_F32, 4));
    sx_output(b, "assigned", sx_mul(b, sx_nn_conv2d(b, x, w), assigned));
    sx_assign(b, "assigned", fed);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_freeze(g, &frozen));
    assert_int_equal(count(frozen, SX_OPID_mul), 4);
    assert_int_equal(count(frozen, SX_OPID_bias_add), 0);
    sx_graph_destroy(frozen);
    sx_graph_destroy(g);
}

/* A convolution of variables alone runs once, whole: as when ConvLSTM makes its first state. */
static void test_backends_frozen__convolutions_of_variables(void **state)
{
    (void)state;
    sx_platform *platform;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 2}, &platform));
    float *y[2];
    for (int frozen = 0; frozen < 2; frozen++) {
        sx_builder *b;
        sx_graph *g;
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 6, 6, 3));
        sx_value image = variable(b, "image", sx_type_of(SX_F32, 1, 6, 6, 3));
        sx_value w = variable(b, "w", sx_type_of(SX_F32, 3, 3, 3, 3));
        sx_value first = sx_nn_conv2d(b, image, w, .padding = SX_SAME);
        sx_output(b, "y", sx_mul(b, sx_add(b, x, first), first));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        program p = make_of(platform, g, 2, frozen != 0, NULL);
        y[frozen] = run(&p);
        finish(&p);
    }
    for (int i = 0; i < 2 * 6 * 6 * 3; i++) {
        assert_float_equal(y[0][i], y[1][i], 1e-5 * (1 + fabsf(y[0][i])));
    }
    sx_free(y[0]);
    sx_free(y[1]);
    sx_platform_close(platform);
}

/* A product of variables, whose bias is added, is computed once, by a matrix that is packed once
 * and is not kept. */
static void test_backends_frozen__products_of_variables(void **state)
{
    (void)state;
    enum { ROWS = 16, N = 256 };
    sx_platform *platform;
    sx_budget memory;
    sx_budget_init(&memory, "a test", 0, NULL);
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 2}, &platform));
    float *y[2];
    for (int frozen = 0; frozen < 2; frozen++) {
        sx_builder *b;
        sx_graph *g;
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, ROWS, N));
        sx_value places = variable(b, "places", sx_type_of(SX_F32, ROWS, N));
        sx_value w = variable(b, "w", sx_type_of(SX_F32, N, N));
        sx_value keys =
            sx_add(b, sx_matmul(b, places, w), variable(b, "bias", sx_type_of(SX_F32, N)));
        sx_output(b, "y", sx_mul(b, sx_add(b, x, keys), keys));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        program p = make_of(platform, g, 1, frozen != 0, frozen != 0 ? &memory : NULL);
        y[frozen] = run(&p);
        assert_in_range(sx_budget_used(&memory), 0, N * N * sizeof(float));
        finish(&p);
    }
    assert_int_equal(sx_budget_used(&memory), 0);
    for (int i = 0; i < ROWS * N; i++) {
        assert_float_equal(y[0][i], y[1][i], 1e-5 * (1 + fabsf(y[0][i])));
    }
    sx_free(y[0]);
    sx_free(y[1]);
    sx_platform_close(platform);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_frozen__convolutions_of_variables),
    cmocka_unit_test(test_backends_frozen__products_of_variables),
    cmocka_unit_test(test_backends_frozen__executables_share_packed_filters),
    cmocka_unit_test(test_backends_frozen__equals_the_parts),
    cmocka_unit_test(test_backends_frozen__prepares_filters_once),
    cmocka_unit_test(test_backends_frozen__prepares_before_the_first_execution),
    cmocka_unit_test(test_backends_frozen__folds_only_what_it_may),
    cmocka_unit_test(test_backends_frozen__threads_prepare_one_program),
    cmocka_unit_test(test_backends_frozen__reads_variables_from_their_sources),
};
SX_TEST_MAIN(tests)
