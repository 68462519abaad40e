/* Functions of a library, run on the host's kernels and on the cpu backend: the fixture of the
 * tests that do, and the functions that several of them run. */
#ifndef SX_TESTS_RUNTIME_FUNCTION_RUNNING_H
#define SX_TESTS_RUNTIME_FUNCTION_RUNNING_H

#include "harness.h"

#include "runtime/function_run.h"

static const char *const devices[] = {"host", "cpu"};

typedef struct running {
    sx_library *library;
    sx_platform *platform;
    sx_runner *runner;
    sx_arena arena;
} running;

static inline sx_library *parse(const char *text)
{
    sx_library *library = NULL;
    assert_ok(sx_library_parse(text, strlen(text), &library));
    return library;
}

/* The library becomes the fixture's. */
static inline void begin(running *t, const char *device, sx_library *library,
                         sx_runner_options options)
{
    *t = (running){.library = library};
    assert_ok(sx_platform_open(device, &(sx_platform_options){.cpu.threads = 1}, &t->platform));
    options.library = t->library;
    options.platform = t->platform;
    assert_ok(sx_runner_create(&options, &t->runner));
    sx_arena_init(&t->arena, 0);
}

static inline void end(running *t)
{
    sx_runner_destroy(t->runner);
    sx_platform_close(t->platform);
    sx_library_destroy(t->library);
    sx_arena_deinit(&t->arena);
}

static inline sx_tensor floats(const float *data, int rank, int64_t d0, int64_t d1)
{
    return (sx_tensor){sx_type_make(SX_F32, rank, (const int64_t[]){d0, d1}), (void *)data};
}

/* Hits with and without a key. */
static inline sx_build_cache_stats programs_of(const running *t)
{
    sx_build_cache_stats programs, executables;
    int64_t known;
    sx_runner_get_stats(t->runner, &programs, &executables, &known);
    programs.hits += known;
    return programs;
}

static inline sx_build_cache_stats executables_of(const running *t)
{
    sx_build_cache_stats programs, executables;
    int64_t known;
    sx_runner_get_stats(t->runner, &programs, &executables, &known);
    return executables;
}

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

#endif
