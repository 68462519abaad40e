/* Functions whose shapes are known only when they run: specialized, compiled once for each
 * combination of types, driven by the host where a device cannot. On the host's kernels and on the
 * cpu backend. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../backends/pjrt_plugin.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/function_run.h"

static const char *const devices[] = {"host", "cpu"};

typedef struct running {
    sx_library *library;
    sx_platform *platform;
    sx_runner *runner;
    sx_arena arena;
} running;

static void begin(running *t, const char *device, const char *text, sx_runner_options options)
{
    *t = (running){.library = NULL};
    assert_ok(sx_library_parse(text, strlen(text), &t->library));
    assert_ok(sx_platform_open(device, &(sx_platform_options){.cpu.threads = 1}, &t->platform));
    options.library = t->library;
    options.platform = t->platform;
    assert_ok(sx_runner_create(&options, &t->runner));
    sx_arena_init(&t->arena, 0);
}

static void end(running *t)
{
    sx_runner_destroy(t->runner);
    sx_platform_close(t->platform);
    sx_library_destroy(t->library);
    sx_arena_deinit(&t->arena);
}

static sx_tensor floats(const float *data, int rank, int64_t d0, int64_t d1)
{
    return (sx_tensor){sx_type_make(SX_F32, rank, (const int64_t[]){d0, d1}), (void *)data};
}

/* Hits with and without a key. */
static sx_build_cache_stats programs_of(const running *t)
{
    sx_build_cache_stats programs, executables;
    int64_t known;
    sx_runner_get_stats(t->runner, &programs, &executables, &known);
    programs.hits += known;
    return programs;
}

static sx_build_cache_stats executables_of(const running *t)
{
    sx_build_cache_stats programs, executables;
    int64_t known;
    sx_runner_get_stats(t->runner, &programs, &executables, &known);
    return executables;
}

/* ---- Straight lines ---- */

/* x [N,?]: rows flattened through an attribute operand of its own shape, by a called function. */
static const char flatten[] =
    "sextant-library 2\n"
    "function \"flatten\"\n"
    "input %1 float32[*] \"x\"\n"
    "%2 = shape(%1) {dtype=int32} int32[?] \"shape\"\n"
    "%3 = slice(%2) {begin=[0], size=[1]} int32[1] \"rows\"\n"
    "%4 = constant() {value=tensor(int32[1] \"ffffffff\")} int32[1] \"rest\"\n"
    "%5 = concat(%3, %4) int32[2] \"to\"\n"
    "%6 = reshape(%1) {shape=%5} float32[?,?] \"reshape\"\n"
    "output \"y\" %6\n"
    "end\n"
    "function \"main\"\n"
    "input %1 float32[N,?,2] \"x\"\n"
    "%2 = call(%1) {function=\"flatten\"} float32[*] \"call\"\n"
    "%3 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] \"last\"\n"
    "%4 = reduce_sum(%2) {axes=%3} float32[?] \"sum\"\n"
    "output \"y\" %4\noutput \"flat\" %2\nend\n";

static void test_runtime_function_run__batch_stays_symbolic_through_attribute_operands(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        begin(&t, devices[d], flatten, (sx_runner_options){.seed = 1});
        float x[5 * 3 * 2];
        for (int i = 0; i < 30; i++) {
            x[i] = (float)i;
        }
        for (int64_t n = 1; n <= 5; n++) {
            sx_tensor y[2], in = {sx_type_of(SX_F32, n, 3, 2), x};
            assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
            sx_type want = sx_type_of(SX_F32, n), flat = sx_type_of(SX_F32, n, 6);
            assert_true(sx_type_equal(&y[0].type, &want) && sx_type_equal(&y[1].type, &flat));
            for (int64_t i = 0; i < n; i++) {
                assert_true(((float *)y[0].data)[i] == (float)(15 + 36 * i));
            }
            assert_memory_equal(y[1].data, x, (size_t)n * 6 * sizeof(float));
        }
        assert_int_equal(programs_of(&t).builds, 1); /* of N */
        assert_int_equal(executables_of(&t).builds, 5);
        sx_tensor y[2], in = {sx_type_of(SX_F32, 2, 2, 2), x};
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(programs_of(&t).builds, 2); /* another shape beside N */
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(programs_of(&t).builds, 2);
        assert_int_equal(executables_of(&t).builds, 6);
        in.type = sx_type_of(SX_F32, 2, 3);
        assert_error(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL),
                     SX_INVALID_ARGUMENT,
                     "argument 0 is float32[2,3], but is declared as float32[N,?,2]");
        end(&t);
    }
}

/* ---- Late calls ---- */

/* The elements that are not zero, squared, with their sum; the host decides how many there are. */
static const char compress[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = neg(%1) float32[?] \"neg\"\n"
    "%3 = where(%2) int64[?,1] \"where\"\n"
    "%4 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] \"rest\"\n"
    "%5 = reshape(%3) {shape=%4} int64[?] \"index\"\n"
    "%6 = gather(%2, %5) float32[?] \"gather\"\n"
    "%7 = square(%6) float32[?] \"square\"\n"
    "%8 = reduce_sum(%7) {axes=[0]} float32[] \"sum\"\n"
    "%9 = where(%7) int64[?,1] \"again\"\n"
    "%10 = reshape(%9) {shape=%4} int64[?] \"index_2\"\n"
    "%11 = gather(%7, %10) float32[?] \"gather_2\"\n"
    "output \"y\" %11\n"
    "output \"sum\" %8\n"
    "output \"negative\" %2\n"
    "end\n";

static void test_runtime_function_run__late_calls_wait_for_their_shapes(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[3];
        begin(&t, devices[d], compress, (sx_runner_options){.seed = 1});
        const float x[] = {0, 3, 0, 0, -2, 1};
        sx_tensor in = floats(x, 1, 6, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 3, &t.arena, NULL));
        sx_type three = sx_type_of(SX_F32, 3);
        assert_true(sx_type_equal(&y[0].type, &three));
        assert_memory_equal(y[0].data, ((const float[]){9, 4, 1}), sizeof(float[3]));
        assert_true(*(float *)y[1].data == 14);
        assert_true(((float *)y[2].data)[1] == -3);
        const int64_t builds = programs_of(&t).builds;
        assert_int_equal(builds, 3); /* main, its late call, that one's late call */
        const float same_counts[] = {1, 0, 1, 0, 5, 0};
        in = floats(same_counts, 1, 6, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 3, &t.arena, NULL));
        assert_true(*(float *)y[1].data == 27);
        assert_int_equal(programs_of(&t).builds, builds);
        const float none[] = {0, 0, 0, 0, 0, 0};
        in = floats(none, 1, 6, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 3, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 0);
        assert_true(*(float *)y[1].data == 0);
        end(&t);
    }
}

/* ---- Control flow ---- */

/* Branches of different shapes, chosen by data; a known condition takes one beforehand. */
static const char choose[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = reduce_sum(%1) {axes=[0]} float32[] \"sum\"\n"
    "%3 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%4 = greater(%2, %3) bool[] \"positive\"\n"
    "%5 = if(%4, %1) float32[?] \"choose\"\n"
    "  then\n"
    "    input %1 float32[?] \"x\"\n"
    "    %2 = concat(%1, %1) float32[?] \"twice\"\n"
    "    output \"y\" %2\n"
    "  end\n"
    "  else\n"
    "    input %1 float32[?] \"x\"\n"
    "    output \"y\" %1\n"
    "  end\n"
    "%6 = neg(%5) float32[?] \"neg\"\n"
    "%7 = greater(%3, %3) bool[] \"never\"\n"
    "%8 = if(%7, %6) float32[?] \"known\"\n"
    "  then\n"
    "    input %1 float32[?] \"x\"\n"
    "    %2 = conv2d(%1, %1) float32[?] \"wrong\"\n"
    "    output \"y\" %2\n"
    "  end\n"
    "  else\n"
    "    input %1 float32[?] \"x\"\n"
    "    output \"y\" %1\n"
    "  end\n"
    "%9 = if(%4, %1, %3) float32[?] \"same\"\n"
    "  then\n"
    "    input %1 float32[?] \"x\"\n"
    "    input %2 float32[] \"z\"\n"
    "    %3 = sub(%2, %1) float32[?] \"sub\"\n"
    "    output \"y\" %3\n"
    "  end\n"
    "  else\n"
    "    input %1 float32[?] \"x\"\n"
    "    input %2 float32[] \"z\"\n"
    "    output \"y\" %1\n"
    "  end\n"
    "output \"y\" %8\n"
    "output \"abs\" %9\n"
    "end\n";

static void test_runtime_function_run__branches(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        begin(&t, devices[d], choose, (sx_runner_options){.seed = 1});
        const float up[] = {1, 2}, down[] = {-1, -2};
        sx_tensor in = floats(up, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 4);
        assert_memory_equal(y[0].data, ((const float[]){-1, -2, -1, -2}), sizeof(float[4]));
        assert_memory_equal(y[1].data, ((const float[]){-1, -2}), sizeof(float[2]));
        in = floats(down, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 2);
        assert_memory_equal(y[0].data, ((const float[]){1, 2}), sizeof(float[2]));
        assert_memory_equal(y[1].data, ((const float[]){-1, -2}), sizeof(float[2]));
        end(&t);
    }
}

/* A function of one loop over x and a counter: `n` defines %2, the counter's limit, and `body` %6,
 * the next x. */
#define LOOPING(name, n, trips, body)                                                         \
    "function \"" name "\"\n"                                                                 \
    "input %1 float32[?] \"x\"\n" n                                                           \
    "%3 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"                 \
    "%4, %5 = while(%1, %3, %2) {trips=" trips "} float32[?], int32[] \"loop\"\n"             \
    "  condition\n"                                                                           \
    "    input %1 float32[?] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n" \
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"                    \
    "  body\n"                                                                                \
    "    input %1 float32[?] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n" \
    "    %4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"              \
    "    %5 = add(%2, %4) int32[] \"next\"\n"                                                 \
    "    %6 = " body "\n    output \"x\" %6\n    output \"i\" %5\n  end\n"                    \
    "output \"y\" %4\noutput \"i\" %5\nend\n"
#define GIVEN_N "input %2 int32[] \"n\"\n"

/* A loop whose state grows (the host drives it), one whose state does not and that has a bound (the
 * device runs it), and one without a bound. */
static const char loops[] = "sextant-library 2\n" //
    LOOPING("grow", GIVEN_N, "0", "concat(%1, %1) float32[?] \"twice\"")
        LOOPING("double", GIVEN_N, "1000", "add(%1, %1) float32[?] \"twice\"")
            LOOPING("forever", GIVEN_N, "0", "neg(%1) float32[?] \"neg\"");

static void test_runtime_function_run__loops(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        begin(&t, devices[d], loops, (sx_runner_options){.max_trips = 1 << 20});
        const float x[] = {1, 2};
        int32_t n = 3;
        sx_tensor in[2] = {floats(x, 1, 2, 0), {sx_scalar_type(SX_I32), &n}};
        assert_ok(sx_runner_run(t.runner, "grow", in, 2, y, 2, &t.arena, NULL));
        assert_int_equal(y[0].type.dims[0], 16);
        assert_true(((float *)y[0].data)[15] == 2 && *(int32_t *)y[1].data == 3);
        const int64_t before = programs_of(&t).builds;
        assert_ok(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, NULL));
        assert_memory_equal(y[0].data, ((const float[]){8, 16}), sizeof(float[2]));
        assert_int_equal(*(int32_t *)y[1].data, 3);
        assert_int_equal(programs_of(&t).builds, before + 1); /* no regions of its own */
        n = 0;
        assert_ok(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, NULL));
        assert_memory_equal(y[0].data, x, sizeof(x));
        n = 1001;
        assert_error(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, NULL),
                     SX_OUT_OF_RANGE, "still true after 1000 iterations");
        end(&t);
    }
}

/* A loop that counts to a constant needs no attribute to be part of the device's graph: its regions
 * are no programs of their own. */
static const char counted[] = "sextant-library 2\n" //
    LOOPING("main", "%2 = constant() {value=tensor(int32[] \"03000000\")} int32[] \"n\"\n", "0",
            "add(%1, %1) float32[?] \"twice\"");

static void test_runtime_function_run__loops_that_count_have_a_bound(void **state)
{
    (void)state;
    const float x[] = {1, 2};
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2], in = floats(x, 1, 2, 0);
        begin(&t, devices[d], counted, (sx_runner_options){.seed = 1});
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_memory_equal(y[0].data, ((const float[]){8, 16}), sizeof(float[2]));
        assert_int_equal(*(int32_t *)y[1].data, 3);
        assert_int_equal(programs_of(&t).builds, 1);
        end(&t);
    }
}

/* 2^40 trips: far more than any device makes before the deadline. */
static const char long_loops[] =
    "sextant-library 2\n"
    "variable float32[] \"sum\" state constant 5\n"
    "function \"main\"\n"
    "input %1 float32[] \"x\"\n"
    "%2 = constant() {value=tensor(int64[] \"0000000000000000\")} int64[] \"zero\"\n"
    "%3 = constant() {value=tensor(int64[] \"0000000000010000\")} int64[] \"limit\"\n"
    "%4, %5 = while(%1, %2, %3) float32[], int64[] \"loop\"\n"
    "  condition\n"
    "    input %1 float32[] \"x\"\n    input %2 int64[] \"i\"\n    input %3 int64[] \"n\"\n"
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"
    "  body\n"
    "    input %1 float32[] \"x\"\n    input %2 int64[] \"i\"\n    input %3 int64[] \"n\"\n"
    "    %4 = constant() {value=tensor(int64[] \"0100000000000000\")} int64[] \"one\"\n"
    "    %5 = add(%2, %4) int64[] \"next\"\n    %6 = neg(%1) float32[] \"neg\"\n"
    "    output \"x\" %6\n    output \"i\" %5\n  end\n"
    "output \"y\" %4\nend\n"
    "function \"adds\"\n"
    "input %1 float32[] \"x\"\n"
    "%2 = call(%1) {function=\"main\"} float32[] \"call\"\n"
    "%3 = variable_handle() {name=\"sum\"} resource[] \"handle\"\n"
    "%4 = assign_variable(%3, %2) float32[] \"assign\"\n"
    "output \"y\" %2\nend\n"
    "function \"neg\"\n"
    "input %1 float32[] \"x\"\n%2 = neg(%1) float32[] \"neg\"\noutput \"y\" %2\nend\n"
    "function \"reads\"\n"
    "%1 = variable_handle() {name=\"sum\"} resource[] \"handle\"\n"
    "%2 = read_variable(%1) float32[] \"read\"\noutput \"y\" %2\nend\n";

static void test_runtime_function_run__long_loops_end_at_the_deadline(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y;
        sx_cancel cancel;
        const float x = 3;
        const sx_tensor in = {sx_scalar_type(SX_F32), (void *)&x};
        begin(&t, devices[d], long_loops, (sx_runner_options){.seed = 1});
        const int64_t start = sx_now_ns();
        sx_cancel_init(&cancel, start + 200000000);
        assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, &cancel),
                     SX_DEADLINE_EXCEEDED, "while \"loop\"");
        assert_true(sx_now_ns() - start < 10000000000); /* of a busy machine */
        assert_int_equal(programs_of(&t).builds, 1);    /* part of the device's graph */
        sx_cancel_init(&cancel, start + 200000000);     /* has passed */
        assert_error(sx_runner_run(t.runner, "neg", &in, 1, &y, 1, &t.arena, &cancel),
                     SX_DEADLINE_EXCEEDED, "deadline");
        assert_ok(sx_runner_run(t.runner, "neg", &in, 1, &y, 1, &t.arena, NULL));
        assert_true(*(float *)y.data == -3);
        end(&t);
    }
}

/* In a child: what the plugin still holds cannot be given back. The plugin interprets the loop. */
static void test_runtime_function_run__a_device_that_is_busy_is_left_at_the_deadline(void **state)
{
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        running t = {.library = NULL};
        sx_tensor y;
        sx_cancel cancel;
        float *x = malloc(sizeof(*x)); /* freed while the device runs */
        sx_budget memory;
        *x = 3;
        const sx_tensor in = {sx_scalar_type(SX_F32), x};
        sx_budget_init(&memory, "test", 1 << 20, NULL);
        assert_ok(sx_library_parse(long_loops, strlen(long_loops), &t.library));
        assert_ok(sx_platform_open("pjrt", &(sx_platform_options){.pjrt.plugin_path = ref_plugin()},
                                   &t.platform));
        assert_ok(sx_runner_create(
            &(sx_runner_options){.library = t.library, .platform = t.platform, .memory = &memory},
            &t.runner));
        sx_arena_init(&t.arena, 0);
        assert_ok(sx_runner_run(t.runner, "neg", &in, 1, &y, 1, &t.arena, NULL));
        assert_true(*(float *)y.data == -3);
        const int64_t start = sx_now_ns();
        sx_cancel_init(&cancel, start + 200000000);
        assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, &cancel),
                     SX_DEADLINE_EXCEEDED, "has not finished the program in time");
        assert_true(sx_now_ns() - start < 10000000000);
        sx_cancel_init(&cancel, sx_now_ns() + 200000000);
        assert_error(sx_runner_run(t.runner, "adds", &in, 1, &y, 1, &t.arena, &cancel),
                     SX_DEADLINE_EXCEEDED, "in time");
        assert_error(sx_runner_run(t.runner, "reads", &in, 0, &y, 1, &t.arena, NULL),
                     SX_FAILED_PRECONDITION, "the variables are lost");
        float sum;
        assert_error(sx_runner_read_variable(t.runner, "sum", &sum), SX_FAILED_PRECONDITION,
                     "lost");
        free(x);
        sx_runner_destroy(t.runner);
        assert_false(sx_platform_close(t.platform));
        _exit(17);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
}

/* No device is stopped there: the program ends at the bound, and says that it did. */
static void test_runtime_function_run__a_bound_on_a_device_is_an_error(void **state)
{
    (void)state;
    const char *const plugins[] = {ref_plugin(), pjrt_plugin()};
    for (size_t k = 0; k < 2; k++) {
        running t = {.library = NULL};
        sx_tensor y[2];
        const float x[] = {1, 2};
        int32_t n = 1000;
        if (plugins[k] == NULL) {
            continue; /* XLA's is not installed */
        }
        assert_ok(sx_library_parse(loops, strlen(loops), &t.library));
        assert_ok(sx_platform_open("pjrt", &(sx_platform_options){.pjrt.plugin_path = plugins[k]},
                                   &t.platform));
        assert_ok(sx_runner_create(
            &(sx_runner_options){.library = t.library, .platform = t.platform}, &t.runner));
        sx_arena_init(&t.arena, 0);
        sx_tensor in[2] = {floats(x, 1, 2, 0), {sx_scalar_type(SX_I32), &n}};
        assert_ok(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, NULL));
        assert_int_equal(*(int32_t *)y[1].data, 1000);
        n = 1001;
        assert_error(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, NULL),
                     SX_OUT_OF_RANGE,
                     "while \"loop\": the condition is still true after 1000 iterations");
        n = 3;
        assert_ok(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, NULL));
        assert_memory_equal(y[0].data, ((const float[]){8, 16}), sizeof(float[2]));
        end(&t);
    }
}

static void test_runtime_function_run__loops_that_do_not_end_are_stopped(void **state)
{
    (void)state;
    running t;
    sx_tensor y[2];
    sx_cancel cancel;
    const float x[] = {1, 2};
    int32_t n = INT32_MAX;
    sx_tensor in[2] = {floats(x, 1, 2, 0), {sx_scalar_type(SX_I32), &n}};
    begin(&t, "cpu", loops, (sx_runner_options){.max_trips = 100});
    assert_error(sx_runner_run(t.runner, "forever", in, 2, y, 2, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED, "while \"loop\": the condition is still true after 100");
    end(&t);
    begin(&t, "cpu", loops, (sx_runner_options){.max_trips = 0});
    sx_cancel_init(&cancel, sx_now_ns() + 50 * 1000 * 1000);
    assert_error(sx_runner_run(t.runner, "forever", in, 2, y, 2, &t.arena, &cancel),
                 SX_DEADLINE_EXCEEDED, "while \"loop\"");
    sx_cancel_init(&cancel, INT64_MAX);
    sx_cancel_request(&cancel);
    assert_error(sx_runner_run(t.runner, "double", in, 2, y, 2, &t.arena, &cancel), SX_CANCELLED,
                 "double");
    end(&t);
}

/* ---- Effects ---- */

/* count += step, and the value before; refused for negative steps, before anything is assigned. */
static const char counter[] =
    "sextant-library 2\n"
    "variable float32[] \"count\" state constant 5\n"
    "function \"main\"\n"
    "input %1 float32[] \"step\"\n"
    "%2 = variable_handle() {name=\"count\"} resource[] \"handle\"\n"
    "%3 = call(%2) {function=\"read\"} float32[] \"before\"\n"
    "%4 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%5 = less(%1, %4) bool[] \"negative\"\n"
    "%6 = logical_not(%5) bool[] \"fine\"\n"
    "%7 = constant() {value=tensor(string[] \"7374657020697320\")} string[] \"words\"\n"
    "%8 = assert(%6, %7, %1) {message=\"steps go up\"} bool[] \"assert\"\n"
    "%9 = add(%3, %1) float32[] \"add\"\n"
    "%10 = assign_variable(%2, %9) float32[] \"assign\"\n"
    "%11 = read_variable(%2) float32[] \"after\"\n"
    "output \"before\" %3\noutput \"after\" %11\nend\n"
    "function \"read\"\n"
    "input %1 resource[] \"which\"\n"
    "%2 = read_variable(%1) float32[] \"read\"\n"
    "output \"y\" %2\nend\n"
    "function \"peek\"\n"
    "%1 = variable_handle() {name=\"count\"} resource[] \"handle\"\n"
    "%2 = read_variable(%1) float32[] \"read\"\n"
    "output \"y\" %2\nend\n";

static void test_runtime_function_run__effects_keep_their_order(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        float step = 2, held;
        begin(&t, devices[d], counter, (sx_runner_options){.seed = 1});
        sx_tensor in = {sx_scalar_type(SX_F32), &step};
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_true(*(float *)y[0].data == 5 && *(float *)y[1].data == 7);
        step = -3;
        assert_error(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "assertion failed: steps go up [step is ] [-3]");
        assert_ok(sx_runner_run(t.runner, "peek", NULL, 0, y, 1, &t.arena, NULL));
        assert_true(*(float *)y[0].data == 7);
        held = 100;
        assert_ok(sx_runner_write_variable(t.runner, "count", &held));
        step = 1;
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 2, &t.arena, NULL));
        assert_ok(sx_runner_read_variable(t.runner, "count", &held));
        assert_true(held == 101);
        end(&t);
    }
}

/* Prints and asserts of a function: the first print needs what a device computes, the second
 * nothing; in the loop, and in the branch that is not taken an assert that would fail. */
static const char effects[] =
    "sextant-library 2\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\ninput %2 int32[] \"n\"\n"
    "%3 = reduce_sum(%1) {axes=[0]} float32[] \"sum\"\n"
    "%4 = print(%1, %3, %1) {message=\"sum of x:\"} float32[?] \"print\"\n"
    "%5 = constant() {value=tensor(string[] \"6c696e650a1b5b6d\")} string[] \"words\"\n"
    "%6 = print(%5, %5) string[] \"again\"\n"
    "%7 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%8, %9 = while(%4, %7, %2) {trips=100} float32[?], int32[] \"loop\"\n"
    "  condition\n"
    "    input %1 float32[?] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"
    "  body\n"
    "    input %1 float32[?] \"x\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %5 = add(%2, %4) int32[] \"next\"\n"
    "    %6 = constant() {value=tensor(int32[] \"03000000\")} int32[] \"most\"\n"
    "    %7 = less(%2, %6) bool[] \"few\"\n"
    "    %8 = assert(%7, %2) {message=\"too many trips\"} bool[] \"assert\"\n"
    "    %9 = print(%5, %2) {message=\"trip\"} int32[] \"print\"\n"
    "    %10 = neg(%1) float32[?] \"neg\"\n"
    "    output \"x\" %10\n    output \"i\" %9\n  end\n"
    "%10 = greater(%2, %7) bool[] \"any\"\n"
    "%11 = if(%10, %8) float32[?] \"if\"\n"
    "  then\n    input %1 float32[?] \"x\"\n    output \"y\" %1\n  end\n"
    "  else\n    input %1 float32[?] \"x\"\n"
    "    %2 = constant() {value=tensor(bool[] \"00\")} bool[] \"false\"\n"
    "    %3 = assert(%2) {message=\"no trips\"} bool[] \"assert\"\n"
    "    output \"y\" %1\n  end\n"
    "%12 = print(%7, %9) {message=\"after\"} int32[] \"last\"\n"
    "output \"y\" %11\nend\n";

static void keep_line(void *user, sx_log_level level, const char *file, int line, const char *text)
{
    (void)file;
    (void)line;
    sx_buf_printf(user, "%d %s\n", (int)level, text);
}

static void test_runtime_function_run__asserts_and_prints(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y;
        sx_buf lines;
        const float x[] = {1, 2, 3, 4};
        int32_t n = 2;
        const sx_tensor in[2] = {floats(x, 1, 4, 0), {sx_scalar_type(SX_I32), &n}};
        begin(&t, devices[d], effects, (sx_runner_options){.seed = 1});
        sx_buf_init(&lines, 1 << 16);
        sx_log_set_sink(keep_line, &lines, SX_LOG_INFO);
        for (int k = 0; k < 2; k++) { /* in each run */
            sx_buf_reset(&lines);
            assert_ok(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL));
            assert_string_equal(sx_buf_text(&lines),
                                "1 sum of x: 10 [1 2 3 ...]\n1 line ?[m\n1 trip 0\n1 trip 1\n"
                                "1 after 2\n");
            assert_memory_equal(y.data, x, sizeof(x));
        }
        n = 5;
        sx_buf_reset(&lines);
        assert_error(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "assertion failed: too many trips [3]");
        assert_non_null(strstr(sx_buf_text(&lines), "trip 2\n"));
        assert_null(strstr(sx_buf_text(&lines), "after"));
        n = 0;
        assert_error(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, "assertion failed: no trips");
        sx_log_set_sink(NULL, NULL, SX_LOG_NONE);
        sx_buf_deinit(&lines);
        end(&t);
    }
}

/* A region that the host drives assigns; the read after it sees that, the one before it does not.
 */
static const char branch_assigns[] =
    "sextant-library 2\n"
    "variable float32[] \"v\" state constant 5\n"
    "function \"main\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = variable_handle() {name=\"v\"} resource[] \"handle\"\n"
    "%3 = reduce_sum(%1) {axes=[0]} float32[] \"sum\"\n"
    "%4 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
    "%5 = greater(%3, %4) bool[] \"positive\"\n"
    "%6 = if(%5, %2, %3) float32[] \"maybe\"\n"
    "  then\n"
    "    input %1 resource[] \"handle\"\n"
    "    input %2 float32[] \"value\"\n"
    "    %3 = assign_variable(%1, %2) float32[] \"assign\"\n"
    "    output \"y\" %3\n"
    "  end\n"
    "  else\n"
    "    input %1 resource[] \"handle\"\n"
    "    input %2 float32[] \"value\"\n"
    "    output \"y\" %2\n"
    "  end\n"
    "%7 = read_variable(%2) float32[] \"after\"\n"
    "%8 = neg(%7) float32[] \"neg\"\n"
    "output \"after\" %8\nend\n"
    "function \"late\"\n"
    "input %1 float32[?] \"x\"\n"
    "%2 = variable_handle() {name=\"v\"} resource[] \"handle\"\n"
    "%3 = read_variable(%2) float32[] \"before\"\n"
    "%4 = where(%1) int64[?,1] \"where\"\n"
    "%5 = cast(%4) {dtype=float32} float32[?,1] \"cast\"\n"
    "%6 = reduce_sum(%5) {axes=[0,1]} float32[] \"sum\"\n"
    "%7 = assign_variable(%2, %6) float32[] \"assign\"\n"
    "%8 = read_variable(%2) float32[] \"after\"\n"
    "output \"before\" %3\noutput \"after\" %8\nend\n";

static void test_runtime_function_run__regions_and_late_calls_assign_in_order(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_tensor y[2];
        const float up[] = {1, 2}, down[] = {-1, 0};
        begin(&t, devices[d], branch_assigns, (sx_runner_options){.seed = 1});
        sx_tensor in = floats(down, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 1, &t.arena, NULL));
        assert_true(*(float *)y[0].data == -5);
        in = floats(up, 1, 2, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, y, 1, &t.arena, NULL));
        assert_true(*(float *)y[0].data == -3);
        assert_ok(sx_runner_run(t.runner, "late", &in, 1, y, 2, &t.arena, NULL));
        assert_true(*(float *)y[0].data == 3 && *(float *)y[1].data == 1);
        end(&t);
    }
}

/* ---- Limits ---- */

static void test_runtime_function_run__limits_are_refused_with_their_figure(void **state)
{
    (void)state;
    static const char endless[] =
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = neg(%1) float32[?] \"neg\"\n"
        "%3 = call(%2) {function=\"main\"} float32[?] \"again\"\noutput \"y\" %3\nend\n";
    static const char doubling[] =
        "sextant-library 2\n"
        "function \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = call(%1) {function=\"b\"} float32[?] \"l\"\n"
        "%3 = call(%2) {function=\"b\"} float32[?] \"r\"\noutput \"y\" %3\nend\n"
        "function \"b\"\ninput %1 float32[?] \"x\"\n"
        "%2 = call(%1) {function=\"c\"} float32[?] \"l\"\n"
        "%3 = call(%2) {function=\"c\"} float32[?] \"r\"\noutput \"y\" %3\nend\n"
        "function \"c\"\ninput %1 float32[?] \"x\"\n"
        "%2 = neg(%1) float32[?] \"l\"\noutput \"y\" %2\nend\n";
    static const char huge[] = /* within a region, a value whose size overflows */
        "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
        "%2 = map(%1) {mapped=1} float32[?] \"map\"\n"
        "  body\n    input %1 float32[] \"x\"\n"
        "    %2 = broadcast_to(%1) {shape=[4611686018427387904]} float32[?] \"wide\"\n"
        "    %3 = reduce_sum(%2) {axes=[0]} float32[] \"sum\"\n    output \"y\" %3\n  end\n"
        "output \"y\" %2\nend\n";
    const float x[] = {1};
    sx_tensor y, in = floats(x, 1, 1, 0);
    running t;
    begin(&t, "host", endless, (sx_runner_options){.seed = 1});
    assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED, "calls nest deeper than 64");
    assert_error(sx_runner_run(t.runner, "niam", &in, 1, &y, 1, &t.arena, NULL), SX_NOT_FOUND,
                 "no function \"niam\"");
    end(&t);
    for (size_t d = 0; d < 2; d++) {
        begin(&t, devices[d], huge, (sx_runner_options){.seed = 1});
        assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                     SX_RESOURCE_EXHAUSTED,
                     strcmp(devices[d], "cpu") == 0
                         ? "map \"map\": body: cpu: the program needs more memory than can be "
                           "addressed; the largest value is float32[4611686018427387904] of "
                           "broadcast_to \"wide\""
                         : "element 0: broadcast_to \"wide\": the size of "
                           "float32[4611686018427387904] overflows");
        end(&t);
    }
    begin(&t, "host", doubling, (sx_runner_options){.limits = {.nodes = 10}});
    assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
    assert_true(*(float *)y.data == 1);
    end(&t);
    begin(&t, "host", doubling, (sx_runner_options){.limits = {.nodes = 9}});
    assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                 SX_RESOURCE_EXHAUSTED, "more than 9 nodes after inlining");
    end(&t);
}

/* ---- Steady state ---- */

/* A loop that the host drives over a batch of which only a shape in its body says that it is N. */
static const char batch_in_a_loop[] =
    "sextant-library 2\nfunction \"main\"\n"
    "input %1 float32[N] \"x\"\ninput %2 float32[*] \"sums\"\ninput %3 int32[] \"n\"\n"
    "%4 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%5, %6 = while(%2, %4, %3) {trips=0} float32[*], int32[] \"loop\"\n"
    "  condition\n"
    "    input %1 float32[*] \"sums\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = less(%2, %3) bool[] \"less\"\n    output \"go\" %4\n  end\n"
    "  body\n"
    "    input %1 float32[*] \"sums\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %5 = add(%2, %4) int32[] \"next\"\n"
    "    %6 = constant() {value=tensor(float32[] \"0000803f\")} float32[] \"step\"\n"
    "    %7 = broadcast_to(%6) {shape=[-1]} float32[N] \"steps\"\n"
    "    %8 = put_row(%1, %7, %2) float32[*] \"put\"\n"
    "    output \"sums\" %8\n    output \"i\" %5\n  end\n"
    "%7 = add(%5, %1) float32[*] \"y\"\noutput \"y\" %7\nend\n";

static void test_runtime_function_run__a_loop_of_the_host_knows_the_batch(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        int32_t n = 2;
        const float x[3] = {1, 2, 3}, sums[3 * 3] = {0};
        begin(&t, devices[d], batch_in_a_loop, (sx_runner_options){.seed = 1});
        for (int64_t batch = 2; batch <= 3; batch++) {
            sx_tensor y, in[3] = {floats(x, 1, batch, 0),
                                  floats(sums, 2, 3, batch),
                                  {sx_scalar_type(SX_I32), &n}};
            assert_ok(sx_runner_run(t.runner, "main", in, 3, &y, 1, &t.arena, NULL));
            for (int64_t i = 0; i < 3 * batch; i++) {
                assert_true(((float *)y.data)[i] == x[i % batch] + (i < 2 * batch));
            }
        }
        end(&t);
    }
}

/* Device steps, host steps, a loop that the host drives, branches, late calls. */
static void test_runtime_function_run__allocates_nothing_at_known_shapes(void **state)
{
    (void)state;
    static const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t batches[] = {2, 1};
    int32_t n = 3;
    const struct {
        const char *text;
        sx_tensor in[2];
        int n_in, n_out;
        const char *name;
    } cases[] = {
        {flatten, {{sx_type_of(SX_F32, 2, 3, 2), (void *)x}}, 1, 2, "main"},
        {loops, {floats(x, 1, 4, 0), {sx_scalar_type(SX_I32), &n}}, 2, 2, "grow"},
        {loops, {floats(x, 1, 4, 0), {sx_scalar_type(SX_I32), &n}}, 2, 2, "double"},
    };
    for (size_t d = 0; d < 2; d++) {
        /* not the last on the host's kernels, which interpret it */
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]) - (d == 0); k++) {
            running t;
            sx_tensor y[2];
            long before = 0;
            begin(&t, devices[d], cases[k].text, (sx_runner_options){.seed = 1});
            for (int call = 0; call < 16; call++) {
                sx_tensor in[2] = {cases[k].in[0], cases[k].in[1]};
                if (k == 0) {
                    in[0].type.dims[0] = batches[call & 1];
                }
                sx_arena_reset(&t.arena);
                before = call == 12 ? sx_alloc_count() : before;
                assert_ok(sx_runner_run(t.runner, cases[k].name, in, cases[k].n_in, y,
                                        cases[k].n_out, &t.arena, NULL));
            }
            assert_int_equal(sx_alloc_count() - before, 0);
            end(&t);
        }
    }
}

/* ---- The cache ---- */

static const char negate[] = "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
                             "%2 = neg(%1) float32[?] \"neg\"\noutput \"y\" %2\nend\n";

static void test_runtime_function_run__ten_thousand_shapes_stay_within_the_bound(void **state)
{
    (void)state;
    running t;
    static float x[10000];
    sx_budget memory;
    size_t early = 0; /* what 20 programs take, and the values of their last runs */
    sx_budget_init(&memory, "a test", 0, NULL);
    begin(&t, "host", negate,
          (sx_runner_options){.max_programs = 20, .max_executables = 30, .memory = &memory});
    for (int64_t n = 10000; n >= 1; n--) {
        sx_arena arena;
        sx_tensor y, in = floats(x, 1, n, 0);
        sx_arena_init(&arena, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &arena, NULL));
        assert_int_equal(y.type.dims[0], n);
        sx_arena_deinit(&arena);
        early = n == 9900 ? sx_budget_used(&memory) : early;
    }
    assert_in_range(sx_budget_used(&memory), 1, early);
    assert_int_equal(programs_of(&t).entries, 20);
    assert_int_equal(programs_of(&t).builds, 10000);
    assert_int_equal(executables_of(&t).entries, 30);
    end(&t);
}

/* x and 8192 numbers that are folded into each program. */
static const char heavy[] =
    "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
    "%2 = constant() {value=tensor(float32[] \"0000803f\")} float32[] \"one\"\n"
    "%3 = broadcast_to(%2) {shape=[8192]} float32[8192] \"ones\"\n"
    "%4 = exp(%3) float32[8192] \"exp\"\n"
    "%5 = concat(%1, %4) float32[?] \"concat\"\noutput \"y\" %5\nend\n";

/* Programs that are kept make room for new ones, and for the values of runs. */
static void test_runtime_function_run__programs_stay_within_the_memory(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20 };
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_budget memory;
        static float x[200000];
        sx_budget_init(&memory, "a test", LIMIT, NULL);
        begin(&t, devices[d], heavy, (sx_runner_options){.memory = &memory});
        for (int64_t n = 1; n <= 300; n++) {
            sx_arena arena;
            sx_tensor y, in = floats(x, 1, n, 0);
            sx_arena_init(&arena, 0);
            assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &arena, NULL));
            assert_int_equal(y.type.dims[0], n + 8192);
            assert_in_range(sx_budget_used(&memory), 1, LIMIT);
            sx_arena_deinit(&arena);
        }
        assert_in_range(programs_of(&t).evicted, 200, 299);
        sx_tensor y, in = floats(x, 1, 30000, 0); /* most of the memory for one run */
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
        in = floats(x, 1, 200000, 0);
        assert_error(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL),
                     SX_RESOURCE_EXHAUSTED, "a test");
        in = floats(x, 1, 10, 0);
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
        end(&t);
        assert_int_equal(sx_budget_used(&memory), 0);
    }
}

enum { THREADS = 8, ROUNDS = 20 };
typedef struct asker {
    running *t;
    pthread_barrier_t *together;
    bool right;
} asker;

static void *ask(void *user)
{
    asker *a = user;
    a->right = true;
    float x[ROUNDS] = {1};
    for (int64_t n = 1; n <= ROUNDS; n++) {
        sx_arena arena;
        sx_tensor y, in = floats(x, 1, n, 0);
        sx_arena_init(&arena, 0);
        pthread_barrier_wait(a->together);
        sx_status status = sx_runner_run(a->t->runner, "main", &in, 1, &y, 1, &arena, NULL);
        a->right = a->right && status == SX_OK && y.type.dims[0] == n && *(float *)y.data == -1;
        sx_status_free(status);
        sx_arena_deinit(&arena);
    }
    return NULL;
}

static void test_runtime_function_run__threads_that_ask_for_one_shape_compile_it_once(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        pthread_t threads[THREADS];
        asker askers[THREADS];
        pthread_barrier_t together;
        pthread_barrier_init(&together, NULL, THREADS);
        begin(&t, devices[d], negate, (sx_runner_options){.seed = 1});
        for (int i = 0; i < THREADS; i++) {
            askers[i] = (asker){.t = &t, .together = &together};
            assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            assert_true(askers[i].right);
        }
        assert_int_equal(programs_of(&t).builds, ROUNDS);
        assert_int_equal(executables_of(&t).builds, ROUNDS);
        assert_int_equal(programs_of(&t).hits, (THREADS - 1) * ROUNDS);
        pthread_barrier_destroy(&together);
        end(&t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_run__batch_stays_symbolic_through_attribute_operands),
    cmocka_unit_test(test_runtime_function_run__late_calls_wait_for_their_shapes),
    cmocka_unit_test(test_runtime_function_run__branches),
    cmocka_unit_test(test_runtime_function_run__loops),
    cmocka_unit_test(test_runtime_function_run__loops_that_count_have_a_bound),
    cmocka_unit_test(test_runtime_function_run__a_bound_on_a_device_is_an_error),
    cmocka_unit_test(test_runtime_function_run__loops_that_do_not_end_are_stopped),
    cmocka_unit_test(test_runtime_function_run__long_loops_end_at_the_deadline),
    cmocka_unit_test(test_runtime_function_run__a_device_that_is_busy_is_left_at_the_deadline),
    cmocka_unit_test(test_runtime_function_run__effects_keep_their_order),
    cmocka_unit_test(test_runtime_function_run__asserts_and_prints),
    cmocka_unit_test(test_runtime_function_run__regions_and_late_calls_assign_in_order),
    cmocka_unit_test(test_runtime_function_run__limits_are_refused_with_their_figure),
    cmocka_unit_test(test_runtime_function_run__a_loop_of_the_host_knows_the_batch),
    cmocka_unit_test(test_runtime_function_run__allocates_nothing_at_known_shapes),
    cmocka_unit_test(test_runtime_function_run__ten_thousand_shapes_stay_within_the_bound),
    cmocka_unit_test(test_runtime_function_run__programs_stay_within_the_memory),
    cmocka_unit_test(test_runtime_function_run__threads_that_ask_for_one_shape_compile_it_once),
};
SX_TEST_MAIN(tests)
