/* Programs placed on several devices: the bits of one, what runs at the same time, and what happens
 * when a device fails. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#include <sextant/nn.h>
#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/pjrt_plugin.h"
#include "base/checked.h"
#include "base/clock.h"
#include "graph/builder.h"
#include "torture.h"

enum { BATCH = 24, MAX_ARGS = 64 };

static const sx_placed_device two_cpus[] = {{.backend = "cpu"}, {.backend = "cpu"}};
static const sx_placed_device three_cpus[] = {
    {.backend = "cpu"}, {.backend = "cpu"}, {.backend = "cpu"}};
static const sx_placed_device of_plugin[] = {{.backend = "pjrt", .devices = 2}};
static const sx_placed_device mixed[] = {{.backend = "cpu"}, {.backend = "pjrt", .devices = 1}};
static const sx_placed_device with_host[] = {{.backend = "cpu"}, {.backend = "host"}};

static sx_platform_options options_of(const sx_placed_device *devices, int n)
{
    return (sx_platform_options){.cpu.threads = 2,
                                 .pjrt.plugin_path = ref_plugin(),
                                 .placed = {.devices = devices, .n_devices = n}};
}

/* ---- A program with its buffers ---- */

typedef struct program {
    sx_platform *platform;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[MAX_ARGS], *outputs[MAX_ARGS];
} program;

static float value_of(int arg, int64_t k)
{
    return (float)((k * 37 + arg * 11) % 29 - 14) / 16;
}

static void bind(program *p)
{
    const sx_executable *e = p->executable;
    assert_true(e->n_args <= MAX_ARGS && e->n_results <= MAX_ARGS);
    for (int i = 0; i < e->n_args; i++) {
        const int64_t n = sx_type_elems(&e->arg_types[i]);
        assert_ok(sx_device_buffer_create(p->platform->devices[0], &e->arg_types[i], &p->args[i]));
        if (e->arg_types[i].dtype == SX_F32) {
            float *data = sx_alloc((size_t)n, sizeof(float));
            for (int64_t k = 0; k < n; k++) {
                data[k] = value_of(i, k);
            }
            assert_ok(sx_device_buffer_write(p->args[i], data, false));
            sx_free(data);
        }
    }
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] < 0) {
            assert_ok(sx_device_buffer_create(p->platform->devices[0], &e->result_types[i],
                                              &p->outputs[i]));
        }
    }
}

static void begin(program *p, const char *backend, const sx_platform_options *options,
                  const sx_graph *g, int shards)
{
    *p = (program){.platform = NULL};
    assert_ok(sx_platform_open(backend, options, &p->platform));
    assert_ok(sx_compile(p->platform, g,
                         &(sx_compile_options){.batch = BATCH, .shards = shards, .any_batch = true},
                         &p->executable));
    assert_ok(sx_run_create(p->executable, &p->run));
    bind(p);
}

static void end(program *p)
{
    sx_run_destroy(p->run);
    for (int i = 0; i < MAX_ARGS; i++) {
        sx_device_buffer_release(p->args[i]);
        sx_device_buffer_release(p->outputs[i]);
    }
    sx_executable_release(p->executable);
    sx_platform_close(p->platform);
}

static void assert_same(sx_device_buffer *a, sx_device_buffer *b)
{
    const size_t bytes = (size_t)sx_type_bytes(&a->type);
    char *x = sx_alloc(bytes + 1, 1), *y = sx_alloc(bytes + 1, 1);
    assert_ok(sx_device_buffer_read(a, x));
    assert_ok(sx_device_buffer_read(b, y));
    assert_memory_equal(x, y, bytes);
    sx_free(x);
    sx_free(y);
}

static void assert_same_values(const program *a, const program *b)
{
    for (int i = 0; i < a->executable->n_results; i++) {
        float loss = 0;
        if (a->executable->result_args[i] < 0 && a->executable->result_types[i].rank == 0) {
            assert_ok(sx_device_buffer_read(a->outputs[i], &loss));
            assert_true(isfinite(loss) && loss > 0);
        }
    }
    for (int i = 0; i < a->executable->n_args; i++) {
        assert_same(a->args[i], b->args[i]);
    }
    for (int i = 0; i < a->executable->n_results; i++) {
        if (a->executable->result_args[i] < 0) {
            assert_same(a->outputs[i], b->outputs[i]);
        }
    }
}

/* ---- Models ---- */

/* Convolution and batch norm on one device, two dense layers on another, one of whose weights the
 * first device reads, too; a step of Adam for each weight. */
static sx_graph *step_graph(void)
{
    sx_builder *b;
    sx_graph *g;
    sx_value w[16], dw[16];
    const char *names[16];
    int n = 0;
    assert_ok(sx_builder_create(&b));
    sx_builder_set_mode(b, SX_TRAIN);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 8, 8, 3));
    sx_value y = sx_input(b, "y", sx_type_of(SX_F32, SX_BATCH, 6));
    sx_device_scope_begin(b, "/cpu:1");
    x = sx_conv2d(b, x, 8, 3, .padding = SX_SAME);
    x = sx_relu(b, sx_batch_norm(b, x));
    x = sx_flatten(b, sx_max_pool2d(b, x, 2));
    sx_device_scope_end(b);
    sx_device_scope_begin(b, "/cpu:0");
    x = sx_dense(b, x, 16, .activation = SX_TANH);
    sx_value shared = sx_variable(b, &(sx_variable_spec){.name = "shared",
                                                         .type = sx_type_of(SX_F32, 16, 6),
                                                         .role = SX_ROLE_WEIGHT});
    x = sx_matmul(b, x, shared);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, "/cpu:1");
    x = sx_sub(b, x, sx_reduce_mean(b, shared, .axes = SX_AXES(0)));
    sx_device_scope_end(b);
    sx_value loss = sx_reduce_mean(b, sx_square(b, sx_sub(b, x, y)));
    sx_output(b, "loss", loss);
    sx_output(b, "x", x);
    for (int i = 0; i < b->graph->n_args; i++) {
        const sx_arg *arg = &b->graph->args[i];
        if (arg->kind == SX_ARG_VARIABLE && arg->role == SX_ROLE_WEIGHT) {
            w[n] = arg->value;
            names[n++] = arg->name;
        }
    }
    sx_gradients(b, loss, w, n, dw);
    sx_value ok = sx_all_finite_at(b, dw, n, NULL, 0);
    for (int i = 0; i < n; i++) {
        const sx_value fresh = sx_apply_sgd(b, w[i], dw[i], sx_constant_f32(b, 0.25), ok);
        sx_assign(b, names[i], fresh);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_backends_placed__computes_the_bits_of_one_device(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const sx_placed_device *devices;
        int n;
    } rows[] = {{"one", two_cpus, 1}, {"two", two_cpus, 2}, {"three", three_cpus, 3}};
    static const int shards[] = {0, 1, 2, 3, 5};
    sx_graph *g = step_graph();
    for (size_t r = 0; r < SX_COUNT(rows); r++) {
        for (size_t k = 0; k < SX_COUNT(shards); k++) {
            program one, several;
            const sx_platform_options single = {.cpu.threads = 2};
            const sx_platform_options options = options_of(rows[r].devices, rows[r].n);
            print_message("%s, %d shards\n", rows[r].what, shards[k]);
            begin(&one, "cpu", &single, g, shards[k]);
            begin(&several, "placed", &options, g, shards[k]);
            for (int step = 0; step < 4; step++) {
                assert_ok(sx_run_execute(one.run, one.args, one.outputs));
                assert_ok(sx_run_execute(several.run, several.args, several.outputs));
                assert_same_values(&one, &several);
            }
            end(&one);
            end(&several);
        }
    }
    sx_graph_destroy(g);
}

/* Where nothing else says how many, there are as many shards as all cpus together have threads; how
 * many segments run at the same time does not matter. */
static void test_backends_placed__shards_are_those_of_the_threads(void **state)
{
    (void)state;
    static const struct {
        int n_cpus, all, each, at_once, shards; /* `all`, `each`: threads */
    } rows[] = {{1, 2, 0, 0, 2}, {1, 2, 0, 1, 2}, {1, 2, 3, 0, 3}, {1, 2, 3, 2, 3},
                {2, 4, 0, 0, 4}, {2, 4, 0, 1, 4}, {2, 2, 3, 0, 6}, {2, 2, 3, 1, 6}};
    sx_graph *g = step_graph();
    for (size_t r = 0; r < SX_COUNT(rows); r++) {
        program one, several;
        sx_executable_info info;
        const sx_platform_options single = {.cpu.threads = rows[r].shards};
        sx_platform_options options = options_of(two_cpus, rows[r].n_cpus);
        options.cpu.threads = rows[r].all;
        options.placed.threads = rows[r].each;
        options.placed.at_once = rows[r].at_once;
        begin(&one, "cpu", &single, g, 0);
        begin(&several, "placed", &options, g, 0);
        assert_ok(sx_executable_get_info(several.executable, &info));
        assert_int_equal(info.shards, rows[r].shards);
        assert_ok(sx_run_execute(one.run, one.args, one.outputs));
        assert_ok(sx_run_execute(several.run, several.args, several.outputs));
        assert_same_values(&one, &several);
        end(&one);
        end(&several);
    }
    sx_graph_destroy(g);
}

/* Scopes say the number of a cpu: `host`, which TensorFlow does not have, has numbers of its own.
 */
static void test_backends_placed__host_is_of_its_own_type(void **state)
{
    (void)state;
    static const sx_placed_device devices[] = {{.backend = "host"}, {.backend = "cpu"}};
    const sx_platform_options options = options_of(devices, 2);
    sx_platform *p;
    assert_ok(sx_platform_open("placed", &options, &p));
    assert_string_equal(p->devices[0]->name, "/device:HOST:0, /device:CPU:0");
    sx_platform_close(p);
}

/* Micro-batches are shards: a batch that they divide, and one that they do not. */
static void test_backends_placed__micro_batches_have_the_bits_of_shards(void **state)
{
    (void)state;
    static const int parts[] = {2, 3, 4, 7};
    sx_graph *g = step_graph();
    for (size_t k = 0; k < SX_COUNT(parts); k++) {
        program one, several;
        const sx_platform_options single = {.cpu.threads = 2};
        sx_platform_options options = options_of(two_cpus, 2);
        options.placed.micro_batches = parts[k];
        print_message("%d micro-batches\n", parts[k]);
        begin(&one, "cpu", &single, g, parts[k]);
        begin(&several, "placed", &options, g, 0);
        for (int step = 0; step < 4; step++) {
            assert_ok(sx_run_execute(one.run, one.args, one.outputs));
            assert_ok(sx_run_execute(several.run, several.args, several.outputs));
            assert_same_values(&one, &several);
        }
        end(&one);
        end(&several);
    }
    sx_graph_destroy(g);
}

/* The same program on devices of other kinds: not the bits, but the values. */
static void test_backends_placed__kinds_of_devices(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const sx_placed_device *devices;
        int n;
    } rows[] = {{"a plugin's", of_plugin, 1}, {"mixed", mixed, 2}, {"with host", with_host, 2}};
    sx_graph *g = step_graph();
    for (size_t r = 0; r < SX_COUNT(rows); r++) {
        program one, several;
        const sx_platform_options single = {.cpu.threads = 2};
        const sx_platform_options options = options_of(rows[r].devices, rows[r].n);
        print_message("%s\n", rows[r].what);
        begin(&one, "cpu", &single, g, 1);
        begin(&several, "placed", &options, g, 1);
        for (int step = 0; step < 3; step++) {
            assert_ok(sx_run_execute(one.run, one.args, one.outputs));
            assert_ok(sx_run_execute(several.run, several.args, several.outputs));
        }
        for (int i = 0; i < one.executable->n_args; i++) {
            float x[4096], y[4096];
            if (one.args[i]->type.dtype == SX_F32 && sx_type_elems(&one.args[i]->type) <= 4096) {
                assert_ok(sx_device_buffer_read(one.args[i], x));
                assert_ok(sx_device_buffer_read(several.args[i], y));
                for (int64_t k = 0; k < sx_type_elems(&one.args[i]->type); k++) {
                    assert_true(fabsf(x[k] - y[k]) <= 1e-4F * (1 + fabsf(x[k])));
                }
            }
        }
        end(&one);
        end(&several);
    }
    sx_graph_destroy(g);
}

/* ---- At the same time ---- */

/* Two towers of the same input, each on its device, and their sum. */
static sx_graph *towers(void)
{
    sx_builder *b;
    sx_graph *g;
    sx_value sides[2];
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    for (int i = 0; i < 2; i++) {
        sx_device_scope_begin(b, i == 0 ? "/cpu:0" : "/cpu:1");
        sides[i] = sx_exp(b, sx_mul(b, x, sx_constant_f32(b, i + 1)));
        sx_device_scope_end(b);
    }
    sx_output(b, "y", sx_add(b, sides[0], sides[1]));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* The least of several times, in milliseconds. */
static double time_of(program *p)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        const int64_t start = sx_now_ns();
        assert_ok(sx_run_execute(p->run, p->args, p->outputs));
        best = fmin(best, (double)(sx_now_ns() - start) / 1e6);
    }
    return best;
}

/* Each piece of work takes the plugin's devices 30 ms, in which they only wait: one tower at a time
 * takes two of these longer. */
static void test_backends_placed__towers_overlap(void **state)
{
    (void)state;
    sx_graph *g = towers();
    double ms[2];
    setenv("SX_PJRT_REF", "devices=2,delay=30000", 1);
    for (int i = 0; i < 2; i++) {
        program p;
        sx_platform_options options = options_of(of_plugin, 1);
        options.placed.at_once = i == 0 ? 1 : 0;
        begin(&p, "placed", &options, g, 0);
        ms[i] = time_of(&p);
        end(&p);
    }
    unsetenv("SX_PJRT_REF");
    print_message("one at a time %.0f ms, both %.0f ms\n", ms[0], ms[1]);
    assert_true(ms[1] < ms[0] - 25);
    sx_graph_destroy(g);
}

/* w = Σ 2 exp(x): exp on one device, the doubling on the next */
static sx_graph *chain(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    sx_device_scope_begin(b, "/cpu:0");
    x = sx_exp(b, x);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, "/cpu:1");
    (void)sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 4)});
    x = sx_add(b, x, x);
    sx_assign(b, "w", sx_reduce_sum(b, x, .axes = SX_AXES(0)));
    sx_device_scope_end(b);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* Of four micro-batches, the second device has one while the first has the next: the first takes 4
 * pieces of work, the second ends one later, and adds them. One at a time they are 9. */
static void test_backends_placed__micro_batches_overlap(void **state)
{
    (void)state;
    sx_graph *g = chain();
    double ms[2];
    setenv("SX_PJRT_REF", "devices=2,delay=20000", 1);
    for (int i = 0; i < 2; i++) {
        program p;
        sx_platform_options options = options_of(of_plugin, 1);
        options.placed.at_once = i == 0 ? 1 : 0;
        options.placed.micro_batches = 4;
        begin(&p, "placed", &options, g, 0);
        ms[i] = time_of(&p);
        end(&p);
    }
    unsetenv("SX_PJRT_REF");
    print_message("one at a time %.0f ms, in a pipeline %.0f ms\n", ms[0], ms[1]);
    assert_true(ms[1] < 0.8 * ms[0]);
    sx_graph_destroy(g);
}

/* Two executions of a chain over two devices, which are submitted together: the second is on the
 * first device while the first is on the second. One after the other they are 4 pieces of work, so
 * they are 3. */
static void test_backends_placed__executions_overlap(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    double ms[2] = {1e9, 1e9};
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    for (int i = 0; i < 2; i++) {
        sx_device_scope_begin(b, i == 0 ? "/cpu:0" : "/cpu:1");
        x = sx_exp(b, x);
        sx_device_scope_end(b);
    }
    sx_output(b, "y", x);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    setenv("SX_PJRT_REF", "devices=2,delay=30000", 1);
    program p;
    const sx_platform_options options = options_of(of_plugin, 1);
    begin(&p, "placed", &options, g, 0);
    program q = {.platform = p.platform, .executable = p.executable};
    assert_ok(sx_run_create(q.executable, &q.run));
    bind(&q);
    for (int k = 0; k < 6; k++) {
        const bool together = k % 2 != 0;
        const int64_t start = sx_now_ns();
        assert_ok(sx_run_submit(p.run, p.args, p.outputs));
        if (!together) {
            assert_ok(sx_run_await(p.run, SX_NO_DEADLINE));
        }
        assert_ok(sx_run_submit(q.run, q.args, q.outputs));
        assert_ok(sx_run_await(q.run, SX_NO_DEADLINE));
        if (together) {
            assert_ok(sx_run_await(p.run, SX_NO_DEADLINE));
        }
        ms[together] = fmin(ms[together], (double)(sx_now_ns() - start) / 1e6);
    }
    unsetenv("SX_PJRT_REF");
    print_message("one after the other %.0f ms, together %.0f ms\n", ms[0], ms[1]);
    assert_true(ms[1] < ms[0] - 20);
    assert_same(p.outputs[0], q.outputs[0]);
    sx_run_destroy(q.run);
    sx_device_buffer_release(q.args[0]);
    sx_device_buffer_release(q.outputs[0]);
    end(&p);
    sx_graph_destroy(g);
}

/* ---- Runs ---- */

typedef struct sharer {
    sx_executable *executable;
    sx_platform *platform;
    int number;
    bool right;
} sharer;

static void *use(void *data)
{
    sharer *u = data;
    program p = {.platform = u->platform, .executable = u->executable};
    bool right = sx_run_create(u->executable, &p.run) == SX_OK;
    bind(&p);
    for (int k = 0; k < 50 && right; k++) {
        float x[BATCH * 4], y[BATCH * 4];
        for (int i = 0; i < BATCH * 4; i++) {
            x[i] = (float)(u->number * 50 + k) / 400;
        }
        right = sx_device_buffer_write(p.args[0], x, true) == SX_OK &&
                sx_run_execute(p.run, p.args, p.outputs) == SX_OK &&
                sx_device_buffer_read(p.outputs[0], y) == SX_OK;
        const float wanted = expf(x[0]) + expf(2 * x[0]);
        for (int i = 0; i < BATCH * 4 && right; i++) {
            right = fabsf(y[i] - wanted) < 1e-5F * wanted;
        }
    }
    sx_run_destroy(p.run);
    sx_device_buffer_release(p.args[0]);
    sx_device_buffer_release(p.outputs[0]);
    u->right = right;
    return NULL;
}

static void test_backends_placed__threads_share_a_program(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    sx_graph *g = towers();
    program p;
    pthread_t threads[THREADS];
    sharer users[THREADS];
    const sx_platform_options options = options_of(two_cpus, 2);
    begin(&p, "placed", &options, g, 0);
    for (int i = 0; i < THREADS; i++) {
        users[i] = (sharer){p.executable, p.platform, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(users[i].right);
    }
    end(&p);
    sx_graph_destroy(g);
}

/* A run that is left before its end, and one that is late. */
static void test_backends_placed__runs_are_left(void **state)
{
    (void)state;
    sx_graph *g = towers();
    program p;
    const sx_platform_options options = options_of(of_plugin, 1);
    setenv("SX_PJRT_REF", "devices=2,delay=30000", 1);
    begin(&p, "placed", &options, g, 0);
    assert_ok(sx_run_submit(p.run, p.args, p.outputs));
    assert_error(sx_run_await(p.run, sx_now_ns() + 1000000), SX_DEADLINE_EXCEEDED,
                 "/device:CPU:0, /device:CPU:1 has not finished");
    assert_ok(sx_run_await(p.run, SX_NO_DEADLINE));
    /* The caller's arrays may go before the end. */
    sx_device_buffer *args[SX_COUNT(p.args)], *outputs[SX_COUNT(p.outputs)];
    memcpy(args, p.args, sizeof(args));
    memcpy(outputs, p.outputs, sizeof(outputs));
    assert_ok(sx_run_submit(p.run, args, outputs));
    memset(args, 0xee, sizeof(args));
    memset(outputs, 0xee, sizeof(outputs));
    end(&p);
    unsetenv("SX_PJRT_REF");
    sx_graph_destroy(g);
}

/* A loop of many trips on each device; its owner and the sx_cancel go meanwhile. */
static void test_backends_placed__a_run_that_is_left_looks_at_nothing(void **state)
{
    (void)state;
    static const char text[] =
        "sextant-graph 3\n"
        "input %1 float32[3] \"x\" on \"/cpu:0\"\n"
        "%2 = while(%1) {trips=0} float32[3] \"first\" on \"/cpu:0\"\n"
        "  condition\n    input %1 float32[3] \"x\"\n"
        "    %2 = all_finite(%1) bool[] \"go\"\n    output \"go\" %2\n  end\n"
        "  body\n    input %1 float32[3] \"x\"\n    %2 = neg(%1) float32[3] \"y\"\n"
        "    output \"y\" %2\n  end\n"
        "%3 = neg(%2) float32[3] \"second\" on \"/cpu:1\"\n"
        "output \"y\" %3\n";
    sx_graph *g;
    program p;
    const sx_platform_options options = options_of(two_cpus, 2);
    assert_ok(sx_graph_parse(text, sizeof(text) - 1, &g));
    begin(&p, "placed", &options, g, 0);
    sx_cancel *cancel = sx_alloc(1, sizeof(*cancel));
    sx_cancel_init(cancel, INT64_MAX);
    sx_run_set_cancel(p.run, cancel);
    assert_ok(sx_run_submit(p.run, p.args, p.outputs));
    assert_error(sx_run_await(p.run, sx_now_ns() + 5000000), SX_DEADLINE_EXCEEDED,
                 "has not finished");
    sx_run_destroy(p.run);
    memset(cancel, 0xee, sizeof(*cancel));
    sx_free(cancel);
    p.run = NULL;
    end(&p);
    sx_graph_destroy(g);
}

/* w -= 1 on the first device, v -= w on the second, which fails or not. */
static sx_graph *two_updates(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type type = sx_type_of(SX_F32, 2);
    sx_device_scope_begin(b, "/cpu:0");
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = type});
    sx_value fresh = sx_sub(b, w, sx_constant_f32(b, 1));
    sx_assign(b, "w", fresh);
    sx_device_scope_end(b);
    sx_device_scope_begin(b, "/cpu:1");
    sx_value v = sx_variable(b, &(sx_variable_spec){.name = "v", .type = type});
    sx_assign(b, "v", sx_sub(b, v, fresh));
    sx_device_scope_end(b);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_backends_placed__a_device_fails(void **state)
{
    (void)state;
    sx_graph *g = two_updates();
    program p;
    const float zeros[2] = {0};
    float got[2];
    const sx_platform_options options = options_of(mixed, 2);
    setenv("SX_PJRT_REF_FAULT", "later:2", 1);
    begin(&p, "placed", &options, g, 0);
    assert_ok(sx_run_execute(p.run, p.args, p.outputs));
    sx_status status = sx_run_execute(p.run, p.args, p.outputs);
    assert_true(status != SX_OK); /* in the list it is not the plugin's first, but CPU:1 */
    assert_non_null(strstr(sx_status_message(status), "task:0/device:CPU:1"));
    sx_status_free(status);
    assert_error(sx_run_submit(p.run, p.args, p.outputs), SX_FAILED_PRECONDITION, "lost");
    unsetenv("SX_PJRT_REF_FAULT");
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_device_buffer_write(p.args[i], zeros, false));
    }
    assert_ok(sx_run_execute(p.run, p.args, p.outputs));
    assert_ok(sx_device_buffer_read(p.args[1], got));
    assert_true(got[0] == 1 && got[1] == 1);
    end(&p);
    sx_graph_destroy(g);
}

/* The limit is each device's: of variables, of what programs keep there, of values between them. */
static void test_backends_placed__memory_of_each_device_is_limited(void **state)
{
    (void)state;
    sx_graph *g = step_graph();
    sx_platform_options options = options_of(two_cpus, 2);
    sx_memory_stats stats;
    program p;
    options.cpu.memory_limit_bytes = 64 << 20;
    begin(&p, "placed", &options, g, 2);
    assert_ok(sx_run_execute(p.run, p.args, p.outputs));
    assert_ok(sx_device_get_memory_stats(p.platform->devices[0], &stats));
    assert_int_equal(stats.limit_bytes, 2 * options.cpu.memory_limit_bytes);
    assert_true(stats.bytes_in_use > 0 && stats.bytes_in_use < stats.limit_bytes);
    sx_run_destroy(p.run);
    p.run = NULL;
    for (int i = 0; i < MAX_ARGS; i++) {
        sx_device_buffer_release(p.args[i]);
        sx_device_buffer_release(p.outputs[i]);
        p.args[i] = p.outputs[i] = NULL;
    }
    sx_executable_release(p.executable);
    p.executable = NULL;
    assert_ok(sx_device_get_memory_stats(p.platform->devices[0], &stats));
    assert_int_equal(stats.bytes_in_use, 0); /* all was given back */
    sx_platform_close(p.platform);

    options.cpu.memory_limit_bytes = 16 << 10;
    assert_ok(sx_platform_open("placed", &options, &p.platform));
    sx_status status = sx_compile(p.platform, g, &(sx_compile_options){.batch = BATCH, .shards = 2},
                                  &p.executable);
    assert_int_equal(sx_status_code(status), SX_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(sx_status_message(status), "/device:CPU:"));
    assert_non_null(strstr(sx_status_message(status), "limit"));
    sx_status_free(status);
    sx_platform_close(p.platform);
    sx_graph_destroy(g);
}

static void test_backends_placed__misuse_is_named(void **state)
{
    (void)state;
    sx_platform *p;
    static const sx_placed_device many[] = {{.backend = "pjrt", .devices = 9}};
    static const sx_placed_device unknown[] = {{.backend = "cpu"}, {.backend = "gpu9"}};
    sx_platform_options options = options_of(many, 1);
    setenv("SX_PJRT_REF", "devices=2", 1);
    assert_error(sx_platform_open("placed", &options, &p), SX_INVALID_ARGUMENT,
                 "9 devices requested, but /device:CPU:0 has 2");
    unsetenv("SX_PJRT_REF");
    options = options_of(unknown, 2);
    assert_error(sx_platform_open("placed", &options, &p), SX_UNAVAILABLE,
                 "device 2 of 2: no device kind \"gpu9\"");
    sx_graph *g = towers();
    sx_executable *e;
    options = options_of(two_cpus, 1);
    options.placed.strict = true;
    assert_ok(sx_platform_open("placed", &options, &p));
    assert_error(sx_compile(p, g, &(sx_compile_options){.batch = BATCH}, &e), SX_INVALID_ARGUMENT,
                 "is to run on /device:CPU:1, which is not there (and soft placement is off); the "
                 "devices are /job:localhost/replica:0/task:0/device:CPU:0");
    sx_platform_close(p);
    sx_graph_destroy(g);
}

static sx_status open_and_run(void *user)
{
    const sx_graph *g = user;
    const sx_platform_options options = options_of(two_cpus, 2);
    sx_platform *p = NULL;
    sx_executable *e = NULL;
    sx_run *run = NULL;
    sx_device_buffer *args[2] = {NULL};
    SX_TRY(sx_platform_open("placed", &options, &p));
    sx_status status = sx_compile(p, g, NULL, &e);
    status = status == SX_OK ? sx_run_create(e, &run) : status;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = sx_device_buffer_create(p->devices[0], &e->arg_types[i], &args[i]);
    }
    status = status == SX_OK ? sx_run_execute(run, args, NULL) : status;
    sx_run_destroy(run);
    sx_device_buffer_release(args[0]);
    sx_device_buffer_release(args[1]);
    sx_executable_release(e);
    sx_platform_close(p);
    return status;
}

static void test_backends_placed__any_allocation_may_fail(void **state)
{
    (void)state;
    sx_graph *g = two_updates();
    sx_torture_some(open_and_run, g);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_placed__computes_the_bits_of_one_device),
    cmocka_unit_test(test_backends_placed__shards_are_those_of_the_threads),
    cmocka_unit_test(test_backends_placed__host_is_of_its_own_type),
    cmocka_unit_test(test_backends_placed__micro_batches_have_the_bits_of_shards),
    cmocka_unit_test(test_backends_placed__kinds_of_devices),
    cmocka_unit_test(test_backends_placed__towers_overlap),
    cmocka_unit_test(test_backends_placed__micro_batches_overlap),
    cmocka_unit_test(test_backends_placed__executions_overlap),
    cmocka_unit_test(test_backends_placed__threads_share_a_program),
    cmocka_unit_test(test_backends_placed__runs_are_left),
    cmocka_unit_test(test_backends_placed__a_run_that_is_left_looks_at_nothing),
    cmocka_unit_test(test_backends_placed__a_device_fails),
    cmocka_unit_test(test_backends_placed__memory_of_each_device_is_limited),
    cmocka_unit_test(test_backends_placed__misuse_is_named),
    cmocka_unit_test(test_backends_placed__any_allocation_may_fail),
};
SX_TEST_MAIN(tests)
