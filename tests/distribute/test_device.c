/* Devices, buffers and compiled graphs (sextant/device.h): what they compute, and what they say in
 * wrong hands. */
#include "harness.h"

#include <dirent.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sextant/device.h>
#include <sextant/ops.h>

#include "../backends/pjrt_plugin.h"

enum { N = 3 };

/* y [N] = x w; w is assigned w + 1; total is the sum of y. */
static sx_graph *make_graph(void)
{
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH));
    const sx_variable_spec spec = {
        .name = "w", .type = sx_scalar_type(SX_F32), .init = SX_INIT_CONSTANT, .init_value = 2};
    sx_value w = sx_variable(b, &spec), y = sx_mul(b, x, w);
    sx_assign(b, "w", sx_add(b, w, sx_constant_f32(b, 1)));
    sx_output(b, "y", y);
    sx_output(b, "total", sx_reduce_sum(b, y));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

typedef struct fixture {
    sx_devices *devices;
    sx_compiled_graph *program;
    int x, w, y, total, new_w; /* indices of arguments and results */
    sx_buffer *args[2], *results[3];
} fixture;

static void find_ports(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        const sx_graph_port *port = sx_compiled_graph_arg(f->program, i);
        *(strcmp(port->name, "x") == 0 ? &f->x : &f->w) = i;
        assert_int_equal(port->is_variable, strcmp(port->name, "w") == 0);
    }
    for (int i = 0; i < 3; i++) {
        const sx_graph_port *port = sx_compiled_graph_result(f->program, i);
        *(port->is_variable ? &f->new_w : strcmp(port->name, "y") == 0 ? &f->y : &f->total) = i;
    }
    assert_null(sx_compiled_graph_arg(f->program, 2));
    assert_null(sx_compiled_graph_arg(f->program, -1));
    assert_null(sx_compiled_graph_result(f->program, 3));
}

static sx_buffer *buffer_of(sx_devices *devices, int n, const float *data)
{
    sx_buffer *buffer = NULL;
    const sx_tensor tensor = {n == 0 ? sx_scalar_type(SX_F32) : sx_type_of(SX_F32, n),
                              (void *)data};
    assert_ok(sx_buffer_create(devices, 0, &tensor, &buffer));
    return buffer;
}

static const float three[N] = {1, 2, 4};

static void set_up(fixture *f, const sx_devices_args *args)
{
    sx_graph *g = make_graph();
    *f = (fixture){0};
    assert_ok(sx_devices_open_at(args, &f->devices));
    assert_ok(sx_compile_graph(f->devices, g, N, &f->program));
    sx_graph_destroy(g); /* it is not needed */
    find_ports(f);
    f->args[f->x] = buffer_of(f->devices, N, three);
    assert_ok(sx_compiled_graph_initial_value(f->program, f->w, 1, &f->args[f->w]));
}

static sx_status run_once(fixture *f)
{
    return sx_compiled_graph_run(f->program, f->args, 2, f->results, 3, 0);
}

static void tear_down(fixture *f)
{
    for (int i = 0; i < 3; i++) {
        sx_buffer_free(f->results[i]);
    }
    sx_buffer_free(f->args[0]);
    sx_buffer_free(f->args[1]);
    sx_compiled_graph_free(f->program);
    sx_devices_close(f->devices);
}

static float read_scalar(const sx_buffer *buffer)
{
    float value = -1;
    assert_ok(sx_buffer_read(buffer, &value, sizeof(value)));
    return value;
}

/* Steps in which the new value of the variable is the next step's argument. */
static void check_steps(const sx_devices_args *args)
{
    fixture f;
    set_up(&f, args);
    assert_true(sx_devices_count(f.devices) >= 1);
    assert_int_equal(strncmp(sx_devices_name(f.devices, 0), "/device:", 8), 0);
    assert_non_null(sx_devices_kind(f.devices, 0));
    for (int step = 0; step < 3; step++) {
        float y[N];
        assert_ok(run_once(&f));
        assert_ok(sx_buffer_read(f.results[f.y], y, sizeof(y)));
        for (int i = 0; i < N; i++) {
            assert_true(y[i] == three[i] * (float)(2 + step));
        }
        assert_true(read_scalar(f.results[f.total]) == 7.f * (float)(2 + step));
        sx_buffer_free(f.args[f.w]); /* donated */
        f.args[f.w] = f.results[f.new_w];
        assert_true(read_scalar(f.args[f.w]) == (float)(3 + step));
        f.results[f.new_w] = NULL;
        sx_buffer_free(f.results[f.y]);
        sx_buffer_free(f.results[f.total]);
        f.results[f.y] = f.results[f.total] = NULL;
    }
    tear_down(&f);
}

static void test_distribute_device__steps(void **state)
{
    (void)state;
    check_steps(&(sx_devices_args){.struct_size = sizeof(sx_devices_args), .device = "host"});
    check_steps(
        &(sx_devices_args){.struct_size = sizeof(sx_devices_args), .device = "cpu", .threads = 2});
    check_steps(&(sx_devices_args){
        .struct_size = sizeof(sx_devices_args), .device = "cpu", .virtual_devices = 2});
    sx_strategy *strategy = NULL;
    assert_ok(sx_one_device_strategy(&strategy, .device = "cpu"));
    sx_devices_args with = {.struct_size = sizeof(with), .strategy = strategy};
    check_steps(&with);
    with.device = "cpu";
    assert_error(sx_devices_open_at(&with, &(sx_devices *){NULL}), SX_INVALID_ARGUMENT,
                 "strategy cannot be combined");
    sx_strategy_release(strategy);
}

static void test_distribute_device__steps_on_a_plugin(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_steps(&(sx_devices_args){
        .struct_size = sizeof(sx_devices_args), .device = "pjrt", .pjrt_plugin = pjrt_plugin()});
}

/* Values move between devices, of one platform and of two. */
static void test_distribute_device__copies(void **state)
{
    (void)state;
    sx_devices *cpu = NULL, *host = NULL;
    sx_device_memory memory;
    sx_buffer *a, *b, *c;
    float out[N] = {0};
    assert_ok(sx_devices_open(&cpu, .device = "cpu"));
    assert_ok(sx_devices_open(&host, .device = "host"));
    a = buffer_of(cpu, N, three);
    assert_ok(sx_buffer_copy(a, cpu, 0, &b));
    assert_ok(sx_buffer_write(a, (const float[N]){7, 8, 9}, sizeof(out)));
    assert_ok(sx_buffer_copy(b, host, 0, &c));
    sx_buffer_free(b);
    assert_ok(sx_buffer_read(c, out, sizeof(out)));
    assert_memory_equal(out, three, sizeof(out));
    assert_ok(sx_buffer_read(a, out, sizeof(out)));
    assert_true(out[2] == 9);
    assert_int_equal(sx_buffer_type(c).dims[0], N);
    assert_ok(sx_devices_memory(cpu, 0, &memory));
    assert_true(memory.bytes_in_use >= 0 && memory.peak_bytes >= 0 && memory.limit_bytes >= 0);
    sx_buffer_free(a);
    sx_buffer_free(c);
    sx_devices_close(cpu);
    sx_devices_close(host);
}

static void test_distribute_device__wrong_buffers(void **state)
{
    (void)state;
    const sx_devices_args cpu = {.struct_size = sizeof(cpu), .device = "cpu", .threads = 1};
    fixture f;
    set_up(&f, &cpu);
    sx_devices *host = NULL;
    assert_ok(sx_devices_open(&host, .device = "host"));
    sx_buffer *x = f.args[f.x], *foreign = buffer_of(host, N, three),
              *two = buffer_of(f.devices, 2, three);
    char text[200];

    f.args[f.x] = foreign;
    snprintf(text, sizeof(text), "argument %d, \"x\", is on /device:CPU:0 of host, not on the",
             f.x);
    assert_error(run_once(&f), SX_INVALID_ARGUMENT, text);
    f.args[f.x] = two;
    snprintf(text, sizeof(text), "argument %d, \"x\", is float32[2], expected float32[3]", f.x);
    assert_error(run_once(&f), SX_INVALID_ARGUMENT, text);
    f.args[f.x] = NULL;
    snprintf(text, sizeof(text), "argument %d, \"x\", is missing: expected float32[3]", f.x);
    assert_error(run_once(&f), SX_INVALID_ARGUMENT, text);
    f.args[f.x] = x;
    assert_error(sx_compiled_graph_run(f.program, f.args, 1, f.results, 3, 0), SX_INVALID_ARGUMENT,
                 "2 arguments and 3 results; got room for 1 and 3");
    assert_error(sx_compiled_graph_run(f.program, f.args, 2, f.results, 3, -1), SX_INVALID_ARGUMENT,
                 "timeout_ms is -1");
    assert_error(sx_compiled_graph_run(f.program, NULL, 2, f.results, 3, 0), SX_INVALID_ARGUMENT,
                 "args is NULL");

    /* None of these has touched the variable. */
    sx_buffer *w = f.args[f.w];
    assert_ok(sx_compiled_graph_run(f.program, f.args, 2, f.results, 3, 60000));
    snprintf(text, sizeof(text), "argument %d, \"w\"", f.w);
    assert_error(run_once(&f), SX_FAILED_PRECONDITION, "was donated to an earlier run");
    sx_status again = run_once(&f);
    assert_non_null(strstr(sx_status_message(again), text));
    sx_status_free(again);
    float value;
    assert_error(sx_buffer_read(w, &value, 4), SX_FAILED_PRECONDITION, "was donated");
    assert_error(sx_buffer_write(w, &value, 4), SX_FAILED_PRECONDITION, "was donated");
    assert_error(sx_buffer_copy(w, host, 0, &w), SX_FAILED_PRECONDITION, "was donated");
    assert_true(read_scalar(f.results[f.new_w]) == 3);
    assert_error(sx_buffer_read(f.results[f.y], &value, 4), SX_INVALID_ARGUMENT,
                 "the buffer is float32[3], 12 bytes; got 4");
    sx_buffer_free(foreign);
    sx_buffer_free(two);
    tear_down(&f);
    sx_devices_close(host);
}

/* A graph whose two arguments have one type: one buffer cannot be both, if one is written. */
static void test_distribute_device__one_buffer_twice(void **state)
{
    (void)state;
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    sx_devices *devices = NULL;
    sx_compiled_graph *program = NULL;
    sx_buffer *results[2] = {NULL};
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, N));
    const sx_variable_spec spec = {.name = "w", .type = sx_type_of(SX_F32, N)};
    sx_value w = sx_variable(b, &spec);
    sx_assign(b, "w", sx_add(b, w, x));
    sx_output(b, "y", sx_mul(b, w, x));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_devices_open(&devices, .device = "cpu", .threads = 1));
    assert_ok(sx_compile_graph(devices, g, 0, &program)); /* it has no batch */
    sx_graph_destroy(g);
    sx_buffer *v = buffer_of(devices, N, three);
    assert_error(sx_compiled_graph_run(program, (sx_buffer *[]){v, v}, 2, results, 2, 0),
                 SX_INVALID_ARGUMENT, "are one buffer, which the graph updates");
    assert_error(sx_compiled_graph_initial_value(program, 5, 0, results), SX_INVALID_ARGUMENT,
                 "argument 5 of 2 is not a variable");
    sx_buffer_free(v);
    sx_compiled_graph_free(program);
    sx_devices_close(devices);
}

static void test_distribute_device__closed(void **state)
{
    (void)state;
    const sx_devices_args cpu = {.struct_size = sizeof(cpu), .device = "cpu", .threads = 1};
    fixture f;
    set_up(&f, &cpu);
    sx_devices *other = NULL;
    sx_buffer *buffer = NULL;
    float value;
    assert_ok(sx_devices_open(&other, .device = "host"));
    sx_devices_close(f.devices); /* its buffers and its program hold it */
    const char *closed = "the devices are closed";
    assert_error(run_once(&f), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_buffer_read(f.args[f.w], &value, 4), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_buffer_copy(f.args[f.w], other, 0, &buffer), SX_FAILED_PRECONDITION, closed);
    assert_error(sx_compiled_graph_initial_value(f.program, f.w, 0, &buffer),
                 SX_FAILED_PRECONDITION, closed);
    f.devices = NULL;
    tear_down(&f);
    sx_devices_close(other);
}

/* ---- Runs that are not waited for ---- */

static void count(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static void await_count(atomic_int *n, int expected)
{
    for (int i = 0; i < 5000 && atomic_load(n) != expected; i++) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(n), expected);
}

/* `slow`: the device has not ended a run when it is asked at first. */
static void check_events(const sx_devices_args *args, bool slow)
{
    fixture f;
    sx_event *event = NULL, *second = NULL;
    sx_buffer *results[3] = {NULL};
    atomic_int done = 0;
    set_up(&f, args);
    assert_ok(sx_compiled_graph_submit(f.program, f.args, 2, &event));
    assert_error(sx_compiled_graph_submit(f.program, f.args, 2, &second), SX_FAILED_PRECONDITION,
                 "was donated to an earlier run");
    assert_null(second);
    assert_ok(sx_event_on_done(event, count, &done));
    assert_error(sx_event_on_done(event, count, &done), SX_FAILED_PRECONDITION,
                 "this one has it already");
    if (slow) {
        assert_error(sx_event_await(event, 1, results, 3), SX_DEADLINE_EXCEEDED, "in time");
    }
    assert_error(sx_event_await(event, -1, results, 3), SX_INVALID_ARGUMENT, "timeout_ms is -1");
    assert_error(sx_event_await(event, 0, results, 2), SX_INVALID_ARGUMENT,
                 "the graph has 3 results; got room for 2");
    assert_ok(sx_event_await(event, 0, results, 3));
    await_count(&done, 1);
    assert_true(read_scalar(results[f.total]) == 14);
    assert_true(read_scalar(results[f.new_w]) == 3);
    assert_error(sx_event_await(event, 0, results, 3), SX_FAILED_PRECONDITION,
                 "the event was awaited before");
    assert_error(sx_event_on_done(event, count, &done), SX_FAILED_PRECONDITION,
                 "the event was awaited before");
    sx_event_free(event);
    sx_event_free(NULL);

    /* Two on their way, with a variable each; the arguments are freed meanwhile. */
    sx_buffer_free(f.args[f.w]);
    for (int i = 0; i < 2; i++) {
        f.args[f.w] = i == 0 ? results[f.new_w] : buffer_of(f.devices, 0, three);
        assert_ok(sx_compiled_graph_submit(f.program, f.args, 2, i == 0 ? &event : &second));
        sx_buffer_free(f.args[f.w]);
    }
    sx_buffer_free(f.args[f.x]);
    f.args[0] = f.args[1] = NULL;
    sx_buffer_free(results[f.y]);
    sx_buffer_free(results[f.total]);
    assert_ok(sx_event_await(second, 0, f.results, 3));
    assert_ok(sx_event_await(event, 60000, results, 3));
    assert_true(read_scalar(f.results[f.new_w]) == 2);
    assert_true(read_scalar(results[f.new_w]) == 4);
    sx_event_free(event);
    sx_event_free(second);

    /* One that nobody waits for. */
    f.args[f.x] = buffer_of(f.devices, N, three);
    f.args[f.w] = results[f.new_w];
    assert_ok(sx_compiled_graph_submit(f.program, f.args, 2, &event));
    assert_ok(sx_event_on_done(event, count, &done));
    sx_event_free(event);
    await_count(&done, 2);
    sx_buffer_free(results[f.y]);
    sx_buffer_free(results[f.total]);
    tear_down(&f);
}

static void test_distribute_device__events(void **state)
{
    (void)state;
    check_events(&(sx_devices_args){.struct_size = sizeof(sx_devices_args), .device = "host"},
                 false);
    check_events(
        &(sx_devices_args){.struct_size = sizeof(sx_devices_args), .device = "cpu", .threads = 2},
        false);
    setenv("SX_PJRT_REF", "delay=30000", 1);
    check_events(&(sx_devices_args){.struct_size = sizeof(sx_devices_args),
                                    .device = "pjrt",
                                    .pjrt_plugin = ref_plugin()},
                 true);
    unsetenv("SX_PJRT_REF");
}

/* What a callback frees, and the thread that waits for it. */
typedef struct closing {
    fixture f;
    sx_event *event;
    pthread_t owner;
    bool elsewhere;  /* it was called on a thread of the devices' */
    atomic_int done; /* the last that it does */
} closing;

static void close_everything(void *user)
{
    closing *c = user;
    c->elsewhere = !pthread_equal(c->owner, pthread_self());
    assert_ok(sx_event_await(c->event, 0, c->f.results, 3));
    assert_true(read_scalar(c->f.results[c->f.total]) == 14);
    sx_event_free(c->event);
    tear_down(&c->f);
    atomic_fetch_add(&c->done, 1);
}

static int count_threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    while (readdir(tasks) != NULL) {
        n++;
    }
    closedir(tasks);
    return n;
}

static void check_closing(const sx_devices_args *args)
{
    bool elsewhere = false;
    const int threads = count_threads();
    for (int i = 0; i < 200 && !elsewhere; i++) {
        closing c = {.owner = pthread_self()};
        set_up(&c.f, args);
        assert_ok(sx_compiled_graph_submit(c.f.program, c.f.args, 2, &c.event));
        assert_ok(sx_event_on_done(c.event, close_everything, &c));
        await_count(&c.done, 1);
        elsewhere = c.elsewhere;
    }
    assert_true(elsewhere);
    for (int i = 0; i < 5000 && count_threads() > threads; i++) { /* the devices' end */
        usleep(1000);
    }
    assert_true(count_threads() <= threads);
}

static void test_distribute_device__a_callback_closes_the_devices(void **state)
{
    (void)state;
#if defined(__GLIBC__)
    mallopt(M_PERTURB, 0xa5); /* what is freed is not to be read */
#endif
    check_closing(&(sx_devices_args){.struct_size = sizeof(sx_devices_args), .device = "cpu,cpu"});
    setenv("SX_PJRT_REF", "delay=3000", 1);
    check_closing(&(sx_devices_args){
        .struct_size = sizeof(sx_devices_args), .device = "pjrt", .pjrt_plugin = ref_plugin()});
    unsetenv("SX_PJRT_REF");
}

static void test_distribute_device__events_on_a_plugin(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    check_events(&(sx_devices_args){.struct_size = sizeof(sx_devices_args),
                                    .device = "pjrt",
                                    .pjrt_plugin = pjrt_plugin()},
                 false);
}

/* In a child: what the plugin still holds cannot be given back. */
static void test_distribute_device__a_run_that_does_not_end_loses_what_was_donated(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const sx_devices_args stuck = {
            .struct_size = sizeof(stuck), .device = "pjrt", .pjrt_plugin = ref_plugin()};
        fixture f;
        float x[N];
        setenv("SX_PJRT_REF_FAULT", "stuck:1", 1);
        set_up(&f, &stuck);
        assert_error(sx_compiled_graph_run(f.program, f.args, 2, f.results, 3, 50),
                     SX_DEADLINE_EXCEEDED, "has not finished the program in time");
        assert_error(sx_buffer_read(f.args[f.w], x, 4), SX_FAILED_PRECONDITION,
                     "its value is lost");
        assert_int_equal(sx_buffer_type(f.args[f.x]).dims[0], N);
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

static void test_distribute_device__wrong_arguments(void **state)
{
    (void)state;
    sx_devices *devices = NULL;
    sx_compiled_graph *program = NULL;
    sx_buffer *buffer = NULL;
    sx_device_memory memory;
    sx_graph *g = make_graph();
    const sx_tensor one = {sx_type_of(SX_F32, N), (void *)three};
    assert_error(sx_devices_open(&devices, .device = "cup"), SX_INVALID_ARGUMENT, "cup");
    assert_error(sx_devices_open(&devices, .threads = -1), SX_INVALID_ARGUMENT, "threads is -1");
    assert_error(sx_devices_open(&devices, .shards = -2), SX_INVALID_ARGUMENT, "shards is -2");
    assert_ok(sx_devices_open(&devices, .device = "cpu", .threads = 1));
    assert_null(sx_devices_name(devices, 1));
    assert_null(sx_devices_kind(devices, -1));
    assert_error(sx_devices_memory(devices, 1, &memory), SX_OUT_OF_RANGE, "device 1 of 1");
    assert_error(sx_buffer_create(devices, 1, &one, &buffer), SX_OUT_OF_RANGE, "device 1 of 1");
    assert_error(
        sx_buffer_create(devices, 0, &(sx_tensor){sx_type_of(SX_STRING, 2), NULL}, &buffer),
        SX_INVALID_ARGUMENT, "string[2]");
    assert_error(
        sx_buffer_create(devices, 0, &(sx_tensor){sx_type_of(SX_F32, SX_BATCH), NULL}, &buffer),
        SX_INVALID_ARGUMENT, "float32[N]");
    assert_error(sx_buffer_create(devices, 0, &(sx_tensor){one.type, NULL}, &buffer),
                 SX_INVALID_ARGUMENT, "value->data is NULL");
    assert_error(sx_compile_graph(devices, g, 0, &program), SX_INVALID_ARGUMENT,
                 "batch is 0: the graph needs the size of its batch");
    assert_error(sx_compile_graph(devices, g, -1, &program), SX_INVALID_ARGUMENT, "batch is -1");
    assert_error(sx_compile_graph(devices, NULL, 1, &program), SX_INVALID_ARGUMENT,
                 "graph is NULL");
    sx_buffer_free(NULL);
    sx_compiled_graph_free(NULL);
    sx_devices_close(NULL);
    sx_graph_destroy(g);
    sx_devices_close(devices);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_distribute_device__steps),
    cmocka_unit_test(test_distribute_device__steps_on_a_plugin),
    cmocka_unit_test(test_distribute_device__copies),
    cmocka_unit_test(test_distribute_device__wrong_buffers),
    cmocka_unit_test(test_distribute_device__one_buffer_twice),
    cmocka_unit_test(test_distribute_device__closed),
    cmocka_unit_test(test_distribute_device__events),
    cmocka_unit_test(test_distribute_device__a_callback_closes_the_devices),
    cmocka_unit_test(test_distribute_device__events_on_a_plugin),
    cmocka_unit_test(test_distribute_device__a_run_that_does_not_end_loses_what_was_donated),
    cmocka_unit_test(test_distribute_device__wrong_arguments),
};
SX_TEST_MAIN(tests)
