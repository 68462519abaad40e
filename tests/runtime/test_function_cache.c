/* What a runner keeps from run to run: programs and executables, within bounds and made once, and
 * what a run at known shapes would allocate. */
#include "function_running.h"

#include <pthread.h>

/* Device steps, host steps, a loop that the host drives, branches, late calls. */
static void test_runtime_function_cache__allocates_nothing_at_known_shapes(void **state)
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
            begin(&t, devices[d], parse(cases[k].text), (sx_runner_options){.seed = 1});
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

#define SCALED(function, input, variable, at)                                \
    "function \"" function "\"\ninput %1 float32[3] \"" input "\"\n"         \
    "%2 = variable_handle() {name=\"" variable "\"} resource[] \"handle\"\n" \
    "%3 = read_variable(%2) float32[3] \"read\"\n"                           \
    "%4 = mul(%1, %3) float32[3] \"" function "/mul\" " at "\noutput \"" input "\" %4\nend\n"
static const char scaled[] =
    "sextant-library 2\nvariable float32[3] \"w\" weight ones\nvariable float32[3] \"u\" weight "
    "constant 2\n" SCALED("a", "x", "w", "") SCALED("b", "y", "w", "at \"b.c\" 7")
        SCALED("c", "x", "u", "");

/* As SavedModels have them: signatures that are one network, but for the names in them. */
static void test_runtime_function_cache__functions_with_other_names_share_executables(void **state)
{
    (void)state;
    static const char *const functions[] = {"a", "b", "c", "a"};
    static const int64_t builds[] = {1, 1, 2, 2}; /* "c" reads another variable */
    static const float x[3] = {1, 2, 3};
    running t;
    begin(&t, "cpu", parse(scaled), (sx_runner_options){.frozen = true});
    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        sx_tensor y, in = {sx_type_of(SX_F32, 3), (void *)x};
        assert_ok(sx_runner_run(t.runner, functions[k], &in, 1, &y, 1, &t.arena, NULL));
        for (int i = 0; i < 3; i++) {
            assert_true(((const float *)y.data)[i] == x[i] * (k == 2 ? 2 : 1));
        }
        assert_int_equal(executables_of(&t).builds, builds[k]);
    }
    end(&t);
}

/* The elements that are not zero choose names; only the host has strings, so they are a step of the
 * late call. That is the same for x of any size, and may be kept when what it was part of is not.
 */
#define CHOOSING(function, strings)                                                     \
    "function \"" function "\"\ninput %1 float32[?] \"x\"\n"                            \
    "%2 = where(%1) int64[?,1] \"where\"\n"                                             \
    "%3 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] \"rest\"\n" \
    "%4 = reshape(%2) {shape=%3} int64[?] \"index\"\n"                                  \
    "%5 = constant() {value=tensor(string[3] " strings ")} string[3] \"names\"\n"       \
    "%6 = gather(%5, %4) string[?] \"gather\"\noutput \"y\" %6\nend\n"
static const char names[] =
    "sextant-library 2\n" CHOOSING("main", "\"6f6e65\" \"74776f\" \"7468726565\"")
        CHOOSING("other", "\"616161\" \"616161\" \"6161616161\"");

static void test_runtime_function_cache__late_calls_outlive_what_they_are_part_of(void **state)
{
    (void)state;
    running t;
    static const float x[64] = {0, 2, 3};
    begin(&t, "host", parse(names), (sx_runner_options){.max_programs = 6});
    for (int64_t n = 3; n < 64; n++) {
        sx_tensor y, in = floats(x, 1, n, 0);
        assert_ok(sx_runner_run(t.runner, "other", &in, 1, &y, 1, &t.arena, NULL));
        assert_ok(sx_runner_run(t.runner, "main", &in, 1, &y, 1, &t.arena, NULL));
        assert_int_equal(sx_type_elems(&y.type), 2);
        const sx_bytes *got = y.data;
        assert_int_equal(got[0].size, 3);
        assert_memory_equal(got[0].data, "two", 3);
        assert_int_equal(got[1].size, 5);
        assert_memory_equal(got[1].data, "three", 5);
    }
    end(&t);
}

static const char negate[] = "sextant-library 2\nfunction \"main\"\ninput %1 float32[?] \"x\"\n"
                             "%2 = neg(%1) float32[?] \"neg\"\noutput \"y\" %2\nend\n";

static void test_runtime_function_cache__ten_thousand_shapes_stay_within_the_bound(void **state)
{
    (void)state;
    running t;
    static float x[10000];
    sx_budget memory;
    size_t early = 0; /* what 20 programs take, and the values of their last runs */
    sx_budget_init(&memory, "a test", 0, NULL);
    begin(&t, "host", parse(negate),
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
static void test_runtime_function_cache__programs_stay_within_the_memory(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20 };
    for (size_t d = 0; d < 2; d++) {
        running t;
        sx_budget memory;
        static float x[200000];
        sx_budget_init(&memory, "a test", LIMIT, NULL);
        begin(&t, devices[d], parse(heavy), (sx_runner_options){.memory = &memory});
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

static void test_runtime_function_cache__threads_with_one_shape_compile_it_once(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        running t;
        pthread_t threads[THREADS];
        asker askers[THREADS];
        pthread_barrier_t together;
        pthread_barrier_init(&together, NULL, THREADS);
        begin(&t, devices[d], parse(negate), (sx_runner_options){.seed = 1});
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
    cmocka_unit_test(test_runtime_function_cache__functions_with_other_names_share_executables),
    cmocka_unit_test(test_runtime_function_cache__late_calls_outlive_what_they_are_part_of),
    cmocka_unit_test(test_runtime_function_cache__allocates_nothing_at_known_shapes),
    cmocka_unit_test(test_runtime_function_cache__ten_thousand_shapes_stay_within_the_bound),
    cmocka_unit_test(test_runtime_function_cache__programs_stay_within_the_memory),
    cmocka_unit_test(test_runtime_function_cache__threads_with_one_shape_compile_it_once),
};
SX_TEST_MAIN(tests)
