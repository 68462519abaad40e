/* Runs (backend.h): submit, await with a deadline, on_done, misuse, and many threads on one
 * executable; over every backend, and over our own plugin where an execution never ends. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sextant/nn.h>
#include <sextant/ops.h>

#include "backends/backend.h"
#include "backends/pjrt_plugin.h"
#include "base/clock.h"

/* w += x; y = 2 x */
typedef struct fixture {
    sx_platform *platform;
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *args[2], *outputs[2];
} fixture;

static sx_platform_options options_of(const char *backend)
{
    return (sx_platform_options){
        .cpu.threads = 1, .pjrt.plugin_path = strcmp(backend, "pjrt") == 0 ? ref_plugin() : NULL};
}

static void begin(fixture *f, const char *backend)
{
    sx_builder *b;
    sx_graph *g;
    const sx_platform_options options = options_of(backend);
    const float ones[3] = {1, 1, 1}, x[3] = {1, 2, 3};
    assert_ok(sx_builder_create(&b));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 3)});
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, 3));
    sx_assign(b, "w", sx_add(b, w, in));
    sx_output(b, "y", sx_add(b, in, in));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    *f = (fixture){0};
    assert_ok(sx_platform_open(backend, &options, &f->platform));
    assert_ok(sx_compile(f->platform, g, NULL, &f->executable));
    assert_ok(sx_run_create(f->executable, &f->run));
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_device_buffer_create(f->platform->devices[0], &f->executable->arg_types[i],
                                          &f->args[i]));
        assert_ok(sx_device_buffer_create(f->platform->devices[0], &f->executable->result_types[i],
                                          &f->outputs[i]));
    }
    assert_ok(sx_device_buffer_write(f->args[0], ones, false));
    assert_ok(sx_device_buffer_write(f->args[1], x, false));
    sx_graph_destroy(g);
}

static void end(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        sx_device_buffer_release(f->args[i]);
        sx_device_buffer_release(f->outputs[i]);
    }
    sx_run_destroy(f->run);
    sx_executable_release(f->executable);
    sx_platform_close(f->platform);
}

static void assert_holds(sx_device_buffer *buffer, float a, float b, float c)
{
    float got[3];
    assert_ok(sx_device_buffer_read(buffer, got));
    assert_memory_equal(got, ((const float[]){a, b, c}), sizeof(got));
}

static void count(sx_run *run, void *user)
{
    (void)run;
    atomic_fetch_add((atomic_int *)user, 1);
}

/* on_done is called on another thread, perhaps after await has returned. */
static void wait_for_one(atomic_int *done)
{
    for (int i = 0; i < 1000 && atomic_load(done) == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(atomic_load(done), 1);
}

static const char *const backends[] = {"host", "cpu", "pjrt"};

static void test_backends_runs__submit_await_and_again(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        fixture f;
        atomic_int done = 0;
        begin(&f, backends[k]);
        int y = f.executable->result_args[0] < 0 ? 0 : 1;
        assert_ok(sx_run_submit(f.run, f.args, f.outputs));
        assert_ok(sx_run_on_done(f.run, count, &done));
        assert_ok(sx_run_await(f.run, SX_NO_DEADLINE));
        wait_for_one(&done);
        assert_holds(f.args[0], 2, 3, 4);
        assert_holds(f.outputs[y], 2, 4, 6);
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_ok(sx_run_submit(f.run, f.args, f.outputs));
        assert_ok(sx_run_await(f.run, sx_now_ns() + 60000000000));
        assert_holds(f.args[0], 4, 7, 10);
        assert_int_equal(done, 1);
        end(&f);
    }
}

static void test_backends_runs__misuse_is_named(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        fixture f, other;
        begin(&f, backends[k]);
        begin(&other, backends[(k + 1) % 3]);
        assert_error(sx_run_await(f.run, SX_NO_DEADLINE), SX_FAILED_PRECONDITION, "not submitted");
        assert_ok(sx_run_submit(f.run, f.args, f.outputs));
        assert_error(sx_run_submit(f.run, f.args, f.outputs), SX_FAILED_PRECONDITION,
                     "has not been awaited");
        assert_ok(sx_run_await(f.run, SX_NO_DEADLINE));
        sx_device_buffer *twice[2] = {f.args[0], f.args[0]}, *missing[2] = {f.args[0], NULL};
        sx_device_buffer *foreign[2] = {f.args[0], other.args[1]};
        sx_device_buffer *narrow, *short_args[2] = {f.args[0], NULL};
        const sx_type two = sx_type_of(SX_F32, 2);
        char where[200];
        const int y = f.executable->result_args[0] < 0 ? 0 : 1;
        sx_device_buffer *over[2] = {NULL, NULL};
        over[y] = f.args[1];
        assert_ok(sx_device_buffer_create(f.platform->devices[0], &two, &narrow));
        short_args[1] = narrow;
        assert_error(sx_run_submit(f.run, short_args, f.outputs), SX_INVALID_ARGUMENT,
                     "argument 1 is float32[2], expected float32[3]");
        sx_device_buffer_release(narrow);
        assert_error(sx_run_submit(f.run, f.args, over), SX_INVALID_ARGUMENT,
                     "and argument 1 are the same buffer");
        assert_error(sx_run_on_done(f.run, count, NULL), SX_FAILED_PRECONDITION,
                     "was not submitted, or has been awaited");
        assert_error(sx_run_submit(f.run, twice, f.outputs), SX_INVALID_ARGUMENT,
                     "arguments 0 and 1 are the same buffer");
        assert_error(sx_run_submit(f.run, missing, f.outputs), SX_INVALID_ARGUMENT,
                     "argument 1 is missing");
        snprintf(where, sizeof(where), " of %s, but the program was compiled for",
                 other.platform->backend->name);
        assert_error(sx_run_submit(f.run, foreign, f.outputs), SX_INVALID_ARGUMENT, where);
        sx_device_buffer *no_output[2] = {f.outputs[0], f.outputs[1]};
        no_output[y] = NULL;
        assert_error(sx_run_submit(f.run, f.args, no_output), SX_INVALID_ARGUMENT, "is missing");
        no_output[y] = other.outputs[y];
        assert_error(sx_run_submit(f.run, f.args, no_output), SX_INVALID_ARGUMENT, where);
        sx_device_buffer *wide = NULL;
        assert_ok(
            sx_device_buffer_create(f.platform->devices[0], &(sx_type){SX_F32, 1, {4}}, &wide));
        sx_device_buffer *too_wide[2] = {f.args[0], wide};
        assert_error(sx_run_submit(f.run, too_wide, f.outputs), SX_INVALID_ARGUMENT,
                     "argument 1 is float32[4]");
        sx_device_buffer_release(wide);
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_holds(f.args[0], 3, 5, 7);
        end(&f);
        end(&other);
    }
}

static void test_backends_runs__two_outputs_are_two_buffers(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    sx_platform *p;
    sx_executable *e;
    sx_run *run;
    sx_device_buffer *x, *y;
    assert_ok(sx_builder_create(&b));
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, 3));
    sx_output(b, "a", sx_add(b, in, in));
    sx_output(b, "b", sx_mul(b, in, in));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_platform_open("cpu", NULL, &p));
    assert_ok(sx_compile(p, g, NULL, &e));
    assert_ok(sx_run_create(e, &run));
    assert_ok(sx_device_buffer_create(p->devices[0], &e->arg_types[0], &x));
    assert_ok(sx_device_buffer_create(p->devices[0], &e->arg_types[0], &y));
    sx_device_buffer *outputs[2] = {y, y};
    assert_error(sx_run_submit(run, &x, outputs), SX_INVALID_ARGUMENT,
                 "outputs 0 and 1 are the same buffer");
    sx_device_buffer_release(x);
    sx_device_buffer_release(y);
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_graph_destroy(g);
    sx_platform_close(p);
}

/* Between devices of one platform, and from platform to platform; a buffer on another device than
 * the others is refused by name. */
static void test_backends_runs__buffers_are_copied_between_devices(void **state)
{
    (void)state;
    fixture f, cpu;
    sx_device_buffer *there, *back, *far;
    begin(&f, "pjrt");
    begin(&cpu, "cpu");
    assert_true(f.platform->n_devices >= 2);
    assert_ok(sx_device_buffer_copy(f.args[1], f.platform->devices[1], 0, &there));
    assert_ptr_equal(there->device, f.platform->devices[1]);
    assert_holds(there, 1, 2, 3);
    sx_device_buffer *args[2] = {f.args[0], there};
    assert_error(sx_run_submit(f.run, args, f.outputs), SX_INVALID_ARGUMENT,
                 "argument 1 is on /device:");
    assert_ok(sx_device_buffer_copy(there, f.platform->devices[0], 0, &back));
    args[1] = back;
    assert_ok(sx_run_execute(f.run, args, f.outputs));
    assert_holds(f.args[0], 2, 3, 4);
    assert_ok(sx_device_buffer_copy(f.args[0], cpu.platform->devices[0], 0, &far));
    assert_ptr_equal(far->device, cpu.platform->devices[0]);
    assert_holds(far, 2, 3, 4);
    args[0] = cpu.args[0];
    args[1] = far;
    assert_ok(sx_run_execute(cpu.run, args, cpu.outputs));
    assert_holds(cpu.args[0], 3, 4, 5);
    sx_device_buffer_release(there);
    sx_device_buffer_release(back);
    sx_device_buffer_release(far);
    end(&f);
    end(&cpu);
}

/* Every memory of a device holds values; programs read the first. `least`: memories it must have.
 */
static void check_memories(const sx_platform_options *options, const char *backend, int least)
{
    sx_platform *p;
    sx_executable *e;
    sx_run *run;
    sx_builder *b;
    sx_graph *g;
    int found;
    const float x[3] = {1, 2, 3};
    assert_ok(sx_builder_create(&b));
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, 3));
    sx_output(b, "y", sx_add(b, in, in));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_platform_open(backend, options, &p));
    assert_ok(sx_compile(p, g, NULL, &e));
    assert_ok(sx_run_create(e, &run));
    sx_device *d = p->devices[0];
    assert_true(d->n_memories >= least);
    for (int m = 0; m < d->n_memories; m++) {
        sx_device_buffer *there, *here, *y;
        assert_ok(sx_device_find_memory(d, d->memories[m].kind, &found));
        assert_int_equal(found, m);
        assert_ok(sx_device_buffer_create_in(d, m, &e->arg_types[0], &there));
        assert_ok(sx_device_buffer_create(d, &e->arg_types[0], &y));
        assert_ok(sx_device_buffer_write(there, x, false));
        assert_holds(there, 1, 2, 3);
        if (m > 0) {
            assert_error(sx_run_submit(run, &there, &y), SX_INVALID_ARGUMENT,
                         "argument 0 is in memory ");
        }
        assert_ok(sx_device_buffer_copy(there, d, 0, &here));
        assert_ok(sx_run_execute(run, &here, &y));
        assert_holds(y, 2, 4, 6);
        sx_device_buffer_release(there);
        assert_ok(sx_device_buffer_copy(y, d, m, &there));
        assert_int_equal(there->memory, m);
        assert_holds(there, 2, 4, 6);
        sx_device_buffer_release(there);
        sx_device_buffer_release(here);
        sx_device_buffer_release(y);
    }
    sx_device_buffer *none;
    assert_error(sx_device_find_memory(d, "attic", &found), SX_NOT_FOUND,
                 "has no memory \"attic\"; it has ");
    assert_error(sx_device_buffer_create_in(d, d->n_memories, &e->arg_types[0], &none),
                 SX_INVALID_ARGUMENT, "does not exist");
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_graph_destroy(g);
    sx_platform_close(p);
}

static void test_backends_runs__memories_hold_values(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const sx_platform_options options = options_of(backends[k]);
        check_memories(&options, backends[k], 1);
    }
}

static void test_backends_runs__memories_of_xla(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    const bool ours = strstr(pjrt_plugin(), "/libpjrt_ref.so") != NULL; /* it has one */
    check_memories(&(sx_platform_options){.pjrt.plugin_path = pjrt_plugin()}, "pjrt", ours ? 1 : 2);
}

/* A run that is destroyed while its execution is pending ends with it. */
static void test_backends_runs__a_pending_run_may_be_destroyed(void **state)
{
    (void)state;
    fixture f;
    setenv("SX_PJRT_REF", "delay=50000", 1);
    begin(&f, "pjrt");
    atomic_int done = 0;
    assert_ok(sx_run_submit(f.run, f.args, f.outputs));
    assert_ok(sx_run_on_done(f.run, count, &done));
    assert_error(sx_run_on_done(f.run, count, &done), SX_FAILED_PRECONDITION, "has one on_done");
    sx_run_destroy(f.run);
    f.run = NULL;
    assert_holds(f.args[0], 2, 3, 4); /* waits */
    wait_for_one(&done);
    unsetenv("SX_PJRT_REF");
    end(&f);
}

/* In a child: what the plugin still holds cannot be given back. */
static void test_backends_runs__a_device_that_never_answers_meets_the_deadline(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        fixture f;
        setenv("SX_PJRT_REF_FAULT", "stuck:1", 1);
        begin(&f, "pjrt");
        int64_t start = sx_now_ns();
        assert_ok(sx_run_submit(f.run, f.args, f.outputs));
        assert_error(sx_run_await(f.run, start + 50000000), SX_DEADLINE_EXCEEDED,
                     "has not finished the program in time");
        assert_true(sx_now_ns() - start < 30000000000);
        assert_error(sx_run_await(f.run, start), SX_DEADLINE_EXCEEDED, "in time");
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

/* In a child, as above: neither the one who reads first nor one who waits for it waits longer, and
 * nothing is written to what they gave. */
static void *read_until(void *user)
{
    float *got = malloc(3 * sizeof(*got));
    assert_error(sx_device_buffer_read_within(user, got, sx_now_ns() + 200000000),
                 SX_DEADLINE_EXCEEDED, "libpjrt_ref.so has not given a value in time");
    free(got);
    return NULL;
}

static void test_backends_runs__a_read_ends_at_its_deadline(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        fixture f;
        pthread_t readers[3];
        float got[3];
        setenv("SX_PJRT_REF_FAULT", "stuck:2", 1);
        begin(&f, "pjrt");
        const int y = f.executable->result_args[0] < 0 ? 0 : 1;
        alarm(60); /* ends a child that waits */
        assert_ok(sx_run_execute(f.run, f.args, f.outputs));
        assert_ok(sx_device_buffer_read_within(f.outputs[y], got, sx_now_ns() + 30000000000));
        assert_true(got[0] == 2 && got[2] == 6);
        assert_ok(sx_run_submit(f.run, f.args, f.outputs));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(pthread_create(&readers[i], NULL, read_until, f.outputs[y]), 0);
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(pthread_join(readers[i], NULL), 0);
        }
        const int64_t start = sx_now_ns();
        assert_error(sx_device_buffer_read_within(f.args[0], got, start), SX_DEADLINE_EXCEEDED,
                     "in time"); /* has passed */
        assert_true(sx_now_ns() - start < 30000000000);
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

/* The memory of a read that was left is freed when the device has answered after all. */
static void test_backends_runs__a_late_value_is_dropped(void **state)
{
    (void)state;
    fixture f;
    float got[3] = {7, 7, 7};
    setenv("SX_PJRT_REF", "delay=300000", 1);
    begin(&f, "pjrt");
    const int y = f.executable->result_args[0] < 0 ? 0 : 1;
    assert_ok(sx_run_submit(f.run, f.args, f.outputs));
    assert_error(sx_device_buffer_read_within(f.outputs[y], got, sx_now_ns() + 1000000),
                 SX_DEADLINE_EXCEEDED, "in time");
    assert_ok(sx_run_await(f.run, SX_NO_DEADLINE));
    assert_true(got[0] == 7 && got[2] == 7);
    assert_holds(f.outputs[y], 2, 4, 6);
    unsetenv("SX_PJRT_REF");
    end(&f);
}

static void *read_forever(void *user)
{
    float got[3];
    sx_status_free(sx_device_buffer_read(user, got));
    return NULL;
}

/* In a child, as above. A thread that waits for a value of one device holds up no other thread:
 * neither one that writes or reads other buffers nor one that executes on another device. */
static void test_backends_runs__who_waits_for_a_value_waits_alone(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        fixture f;
        pthread_t reader;
        sx_run *run;
        sx_device_buffer *args[2], *outputs[2];
        const float ones[3] = {1, 1, 1};
        setenv("SX_PJRT_REF_FAULT", "stuck:1", 1);
        begin(&f, "pjrt");
        const int y = f.executable->result_args[0] < 0 ? 0 : 1;
        alarm(60); /* ends a child that waits */
        assert_ok(sx_run_submit(f.run, f.args, f.outputs));
        assert_int_equal(pthread_create(&reader, NULL, read_forever, f.outputs[y]), 0);
        assert_ok(sx_run_create(f.executable, &run));
        for (int i = 0; i < 2; i++) {
            assert_ok(sx_device_buffer_create(f.platform->devices[1], &f.executable->arg_types[i],
                                              &args[i]));
            assert_ok(sx_device_buffer_create(f.platform->devices[1],
                                              &f.executable->result_types[i], &outputs[i]));
        }
        for (int i = 0; i < 50; i++) { /* the reader begins at one of them */
            assert_ok(sx_device_buffer_write(args[0], ones, false));
            assert_ok(sx_device_buffer_write(args[1], ones, false));
            assert_ok(sx_run_execute(run, args, outputs));
            assert_holds(args[0], 2, 2, 2);
            assert_holds(outputs[y], 2, 2, 2);
            nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
        }
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

/* --- Compiling ---------------------------------------------------------------------------------
 */

/* y = x * k */
static sx_status compile_times(sx_platform *p, float k, int64_t wait_ns, sx_executable **out)
{
    sx_builder *b;
    sx_graph *g;
    sx_cancel cancel;
    assert_ok(sx_builder_create(&b));
    sx_value in = sx_input(b, "x", sx_type_of(SX_F32, 3));
    sx_output(b, "y", sx_mul(b, in, sx_constant_f32(b, (double)k)));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_cancel_init(&cancel, sx_now_ns() + wait_ns);
    sx_status status = sx_compile(p, g, &(sx_compile_options){.cancel = &cancel}, out);
    sx_graph_destroy(g);
    return status;
}

/* What its first caller does not wait for is given to the next one: the plugin refuses to compile
 * anything else. */
static void test_backends_runs__a_program_that_is_late_is_compiled_once(void **state)
{
    (void)state;
    const sx_platform_options options = options_of("pjrt");
    sx_platform *p;
    sx_executable *e, *other;
    setenv("SX_PJRT_REF", "compile=300", 1);
    setenv("SX_PJRT_REF_FAULT", "compile:3", 1);
    assert_ok(sx_platform_open("pjrt", &options, &p));
    assert_ok(compile_times(p, 1, 30000000000, &other));
    assert_error(compile_times(p, 2, 1000000, &e), SX_DEADLINE_EXCEEDED,
                 "libpjrt_ref.so has not compiled the program in time");
    assert_ok(compile_times(p, 2, 30000000000, &e));
    const float x[3] = {1, 2, 3};
    sx_device_buffer *in, *y;
    assert_ok(sx_device_buffer_create(p->devices[0], &e->arg_types[0], &in));
    assert_ok(sx_device_buffer_create(p->devices[0], &e->arg_types[0], &y));
    assert_ok(sx_device_buffer_write(in, x, false));
    assert_ok(sx_execute(e, &in, &y));
    assert_holds(y, 2, 4, 6);
    sx_device_buffer_release(in);
    sx_device_buffer_release(y);
    sx_executable_release(e);
    sx_executable_release(other);
    assert_error(compile_times(p, 3, 30000000000, &e), SX_INVALID_ARGUMENT,
                 "the program is not for me");
    assert_error(compile_times(p, 4, 1000000, &e), SX_DEADLINE_EXCEEDED, "in time");
    assert_true(sx_platform_close(p)); /* waits, and forgets it */
    unsetenv("SX_PJRT_REF");
    unsetenv("SX_PJRT_REF_FAULT");
}

/* In a child, as above. */
static void test_backends_runs__a_compiler_that_never_answers_meets_the_deadline(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const sx_platform_options options = options_of("pjrt");
        sx_platform *p;
        sx_executable *e;
        setenv("SX_PJRT_REF", "compile=3600000", 1);
        alarm(60); /* ends a child that waits */
        assert_ok(sx_platform_open("pjrt", &options, &p));
        for (int i = 0; i < 8; i++) { /* each of four programs twice */
            assert_error(compile_times(p, (float)(i % 4), 20000000, &e), SX_DEADLINE_EXCEEDED,
                         "libpjrt_ref.so has not compiled the program in time");
        }
        assert_error(compile_times(p, 4, 20000000, &e), SX_UNAVAILABLE,
                     "libpjrt_ref.so has not answered for 4 programs, which it is still compiling");
        assert_false(sx_platform_close(p));
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

/* --- Threads -----------------------------------------------------------------------------------
 */

enum { THREADS = 4, ROUNDS = 50, ELEMS = 6 * 6 * 4 };

typedef struct worker {
    sx_executable *executable;
    const float *expected;
    bool right;
} worker;

static void run_rounds(sx_executable *e, int rounds, float out[2 * ELEMS], const float *expected,
                       bool *right)
{
    sx_run *run;
    sx_device_buffer *in, *outputs[1];
    float x[2 * 8 * 8 * 3];
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++) {
        x[i] = (float)(i % 17) * 0.25f - 2;
    }
    assert_ok(sx_run_create(e, &run));
    assert_ok(sx_device_buffer_create(e->platform->devices[0], &e->arg_types[0], &in));
    assert_ok(sx_device_buffer_create(e->platform->devices[0], &e->result_types[0], &outputs[0]));
    assert_ok(sx_device_buffer_write(in, x, false));
    *right = true;
    for (int k = 0; k < rounds; k++) {
        assert_ok(sx_run_execute(run, &in, outputs));
        assert_ok(sx_device_buffer_read(outputs[0], out));
        *right =
            *right && (expected == NULL || memcmp(out, expected, 2 * ELEMS * sizeof(float)) == 0);
    }
    sx_device_buffer_release(in);
    sx_device_buffer_release(outputs[0]);
    sx_run_destroy(run);
}

static void *work(void *user)
{
    worker *w = user;
    float out[2 * ELEMS];
    run_rounds(w->executable, ROUNDS, out, w->expected, &w->right);
    return NULL;
}

static void test_backends_runs__threads_share_an_executable(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const sx_platform_options options = options_of(backends[k]);
        sx_platform *platform;
        sx_executable *e;
        sx_builder *b;
        sx_graph *g;
        float filter[3 * 3 * 3 * 4], expected[2 * ELEMS];
        bool right;
        for (int i = 0; i < 108; i++) {
            filter[i] = (float)(i % 11) * 0.125f - 0.5f;
        }
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 2, 8, 8, 3));
        sx_value w = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 3, 3, 3, 4), filter});
        sx_output(b, "y", sx_tanh(b, sx_nn_conv2d(b, x, w, .padding = SX_VALID)));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        assert_ok(sx_platform_open(backends[k], &options, &platform));
        assert_ok(sx_compile(platform, g, NULL, &e));
        run_rounds(e, 1, expected, NULL, &right);
        pthread_t threads[THREADS];
        worker workers[THREADS];
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){.executable = e, .expected = expected};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            assert_true(workers[i].right);
        }
        sx_graph_destroy(g);
        sx_executable_release(e);
        sx_platform_close(platform);
    }
}

/* A long program without loops: it ends at the first look at a token that says stop, and has not
 * come to its output; on all workers. The run can be used again. */
static void test_backends_runs__cpu_stops_between_steps(void **state)
{
    (void)state;
    enum { ROWS = 512, SIDE = 128 };
    float *x = calloc(ROWS * SIDE, sizeof(float)), *y = calloc(ROWS * SIDE, sizeof(float));
    assert_non_null(x);
    assert_non_null(y);
    for (int threads = 1; threads <= 2; threads++) {
        sx_builder *b;
        sx_graph *g;
        sx_platform *platform;
        sx_executable *e;
        sx_run *run;
        sx_device_buffer *args[2], *output;
        assert_ok(sx_builder_create(&b));
        sx_value v = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, SIDE));
        sx_value w = sx_input(b, "w", sx_type_of(SX_F32, SIDE, SIDE));
        for (int i = 0; i < 20; i++) {
            v = sx_softmax(b, sx_matmul(b, v, w));
        }
        sx_output(b, "y", v);
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        assert_ok(
            sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = threads}, &platform));
        assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = ROWS}, &e));
        assert_ok(sx_run_create(e, &run));
        for (int i = 0; i < 2; i++) {
            assert_ok(sx_device_buffer_create(platform->devices[0], &e->arg_types[i], &args[i]));
            assert_ok(sx_device_buffer_write(args[i], x, false));
        }
        assert_ok(sx_device_buffer_create(platform->devices[0], &e->result_types[0], &output));
        y[0] = -1;
        assert_ok(sx_device_buffer_write(output, y, false));
        sx_cancel cancel;
        sx_cancel_init(&cancel, INT64_MAX);
        sx_cancel_request(&cancel);
        assert_error(sx_run_execute_within(run, args, &output, &cancel), SX_CANCELLED,
                     "cancelled by the caller");
        sx_cancel_init(&cancel, sx_now_ns());
        assert_error(sx_run_execute_within(run, args, &output, &cancel), SX_DEADLINE_EXCEEDED,
                     "deadline exceeded");
        assert_ok(sx_device_buffer_read(output, y));
        assert_true(y[0] == -1);
        assert_ok(sx_run_execute_within(run, args, &output, NULL));
        assert_ok(sx_device_buffer_read(output, y));
        assert_float_equal(y[0], 1.0 / SIDE, 1e-6);
        sx_device_buffer_release(args[0]);
        sx_device_buffer_release(args[1]);
        sx_device_buffer_release(output);
        sx_run_destroy(run);
        sx_executable_release(e);
        sx_platform_close(platform);
        sx_graph_destroy(g);
    }
    free(x);
    free(y);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_runs__cpu_stops_between_steps),
    cmocka_unit_test(test_backends_runs__submit_await_and_again),
    cmocka_unit_test(test_backends_runs__misuse_is_named),
    cmocka_unit_test(test_backends_runs__two_outputs_are_two_buffers),
    cmocka_unit_test(test_backends_runs__buffers_are_copied_between_devices),
    cmocka_unit_test(test_backends_runs__memories_hold_values),
    cmocka_unit_test(test_backends_runs__memories_of_xla),
    cmocka_unit_test(test_backends_runs__a_pending_run_may_be_destroyed),
    cmocka_unit_test(test_backends_runs__threads_share_an_executable),
    cmocka_unit_test(test_backends_runs__a_device_that_never_answers_meets_the_deadline),
    cmocka_unit_test(test_backends_runs__a_read_ends_at_its_deadline),
    cmocka_unit_test(test_backends_runs__a_late_value_is_dropped),
    cmocka_unit_test(test_backends_runs__who_waits_for_a_value_waits_alone),
    cmocka_unit_test(test_backends_runs__a_program_that_is_late_is_compiled_once),
    cmocka_unit_test(test_backends_runs__a_compiler_that_never_answers_meets_the_deadline),
};

SX_TEST_MAIN(tests)
