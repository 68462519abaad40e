/* Functions whose shapes only fit some sizes of the batch: they are specialized for the sizes of
 * the arguments, an error says what does not fit, and what is kept of many sizes is bounded. */
#include "function_running.h"

#include "base/checked.h"
#include "graph/specialize_examples.h"

/* "behind" needs more rows than its numbers say; "squeeze" drops dimensions that are 1, as
 * TensorFlow's tf.squeeze; "wrong" is so for every batch. */
static const char functions[] =
    "sextant-library 2\n"
    "function \"groups\"\n"
    "input %1 float32[N] \"x\"\n"
    "%2 = constant() {value=tensor(int64[2] \"ffffffffffffffff0300000000000000\")} int64[2] "
    "\"to\"\n"
    "%3 = reshape(%1) {shape=%2} float32[?,3] \"groups\"\n"
    "%4 = reduce_sum(%3) {axes=[1]} float32[?] \"sum\"\n"
    "output \"y\" %4\n"
    "end\n"
    "function \"image\"\n"
    "input %1 float32[N,2] \"x\"\n"
    "%2 = reshape(%1) {shape=[2, 1, 7]} float32[2,1,7] \"image\"\n"
    "output \"y\" %2\n"
    "end\n"
    "function \"halves\"\n"
    "input %1 float32[N,2] \"x\"\n"
    "%2 = concat(%1, %1) {axis=0} float32[?,2] \"both\"\n"
    "%3 = constant() {value=tensor(float32[6,1] "
    "\"000000000000000000000000000000000000000000000000\")} float32[6,1] \"zeros\"\n"
    "%4 = concat(%2, %3) {axis=1} float32[?,3] \"joined\"\n"
    "output \"y\" %4\n"
    "end\n"
    "function \"behind\"\n"
    "input %1 float32[N,2] \"x\"\n"
    "%2 = slice(%1) {begin=[6000, 0], size=[50, 2]} float32[50,2] \"slice\"\n"
    "output \"y\" %2\n"
    "end\n"
    "function \"squeeze\"\n"
    "input %1 float32[N,1] \"x\"\n"
    "%2 = shape(%1) {dtype=int64} int64[2] \"shape\"\n"
    "%3 = constant() {value=tensor(int64[1] \"0100000000000000\")} int64[1] \"one\"\n"
    "%4 = not_equal(%2, %3) bool[2] \"kept\"\n"
    "%5 = where(%4) int64[?,1] \"where\"\n"
    "%6 = constant() {value=tensor(int64[1] \"ffffffffffffffff\")} int64[1] \"rest\"\n"
    "%7 = reshape(%5) {shape=%6} int64[?] \"places\"\n"
    "%8 = gather(%2, %7) int64[?] \"sizes\"\n"
    "%9 = reshape(%1) {shape=%8} float32[*] \"squeezed\"\n"
    "%10 = neg(%9) float32[*] \"neg\"\n"
    "output \"y\" %10\n"
    "end\n"
    "function \"wrong\"\n"
    "input %1 float32[N,2] \"x\"\n"
    "%2 = constant() {value=tensor(float32[3,1] \"000000000000000000000000\")} float32[3,1] \"w\"\n"
    "%3 = matmul(%1, %2) float32[?,1] \"product\"\n"
    "output \"y\" %3\n"
    "end\n";

static const float x[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};

static void test_runtime_function_by_size__fits_or_says_what_does_not(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        int64_t rows;
        int columns; /* 0: x is a vector */
        sx_type y;
        const char *wrong;
    } cases[] = {
        {"groups", 6, 0, {SX_F32, 1, {2}}, NULL},
        {"groups", 12, 0, {SX_F32, 1, {4}}, NULL},
        {"groups", 4, 0, {0}, "cannot reshape float32[4]: 4 elements are not a multiple of 3"},
        {"groups", 6, 0, {SX_F32, 1, {2}}, NULL},
        {"image", 7, 2, {SX_F32, 3, {2, 1, 7}}, NULL},
        {"image", 3, 2, {0}, "cannot reshape float32[3,2] to float32[2,1,7]"},
        {"halves", 3, 2, {SX_F32, 2, {6, 3}}, NULL},
        {"halves", 4, 2, {0}, "input 1 is float32[6,1], expected"},
        {"halves", 0, 2, {0}, "input 1 is float32[6,1], expected"},
        {"behind", 4, 2, {0}, "begin 6000 and size 50 are outside axis 0 of x float32[4,2]"},
        {"squeeze", 3, 1, {SX_F32, 1, {3}}, NULL},
        {"squeeze", 1, 1, {SX_F32, 0, {0}}, NULL},
        {"squeeze", 2, 1, {SX_F32, 1, {2}}, NULL},
        {"squeeze", 0, 1, {SX_F32, 1, {0}}, NULL},
        {"wrong", 2, 2, {0}, "the inner dimensions of a float32[N,2] and b float32[3,1] differ"},
    };
    for (size_t d = 0; d < SX_COUNT(devices); d++) {
        running t;
        begin(&t, devices[d], parse(functions), (sx_runner_options){.seed = 1});
        for (int round = 0; round < 2; round++) {
            for (size_t k = 0; k < SX_COUNT(cases); k++) {
                sx_tensor y,
                    in = floats(x, cases[k].columns > 0 ? 2 : 1, cases[k].rows, cases[k].columns);
                sx_status status =
                    sx_runner_run(t.runner, cases[k].function, &in, 1, &y, 1, &t.arena, NULL);
                if (cases[k].wrong != NULL) {
                    assert_error(status, SX_INVALID_ARGUMENT, cases[k].wrong);
                } else {
                    assert_ok(status);
                    assert_true(sx_type_equal(&y.type, &cases[k].y));
                }
            }
        }
        end(&t);
    }
}

/* Sizes that were seen are found again, without anything to be made; and N but for one size is one
 * program. */
static void test_runtime_function_by_size__keeps_what_it_made(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        int columns;
        int64_t rows[4];
        int64_t builds; /* of programs */
    } cases[] = {
        {"squeeze", 1, {2, 3, 4, 5}, 1},
        {"squeeze", 1, {1, 2, 1, 3}, 2},
    };
    for (size_t k = 0; k < SX_COUNT(cases); k++) {
        running t;
        begin(&t, "cpu", parse(functions), (sx_runner_options){.seed = 1});
        for (int round = 0; round < 12; round++) {
            sx_tensor y, in = floats(x, 2, cases[k].rows[round % 4], cases[k].columns);
            assert_ok(sx_runner_run(t.runner, cases[k].function, &in, 1, &y, 1, &t.arena, NULL));
            assert_true(round < 4 || programs_of(&t).builds == cases[k].builds);
        }
        end(&t);
    }
}

static void test_runtime_function_by_size__a_thousand_sizes_stay_within_the_bound(void **state)
{
    (void)state;
    static float many[3000];
    running t;
    sx_budget memory;
    size_t early = 0; /* what 20 programs take */
    sx_budget_init(&memory, "a test", 0, NULL);
    begin(&t, "host", parse(functions),
          (sx_runner_options){.max_programs = 20, .max_executables = 30, .memory = &memory});
    for (int64_t n = 1000; n >= 1; n--) {
        sx_arena arena;
        sx_tensor y, in = floats(many, 1, 3 * n, 0);
        sx_arena_init(&arena, 0);
        assert_ok(sx_runner_run(t.runner, "groups", &in, 1, &y, 1, &arena, NULL));
        assert_int_equal(y.type.dims[0], n);
        in = floats(many, 1, 3 * n - 1, 0);
        assert_error(sx_runner_run(t.runner, "groups", &in, 1, &y, 1, &arena, NULL),
                     SX_INVALID_ARGUMENT, "not a multiple of 3");
        sx_arena_deinit(&arena);
        early = n == 900 ? sx_budget_used(&memory) : early;
    }
    assert_in_range(sx_budget_used(&memory), 1, early);
    assert_in_range(programs_of(&t).entries, 1, 20);
    assert_in_range(executables_of(&t).entries, 1, 30);
    end(&t);
}

/* What a server looks at when it loads a model. */
static void test_runtime_function_by_size__is_known_when_loaded(void **state)
{
    (void)state;
    static const struct {
        const char *function, *wrong;
        int64_t excluded; /* -1: it runs whole */
    } cases[] = {
        {"groups", NULL, -1},
        {"image", NULL, -1},
        {"halves", NULL, -1},
        {"behind", NULL, -1},
        {"squeeze", NULL, 1},
        {"wrong", "the inner dimensions of a float32[N,2] and b float32[3,1] differ", -1},
    };
    sx_library *library = parse(functions);
    for (size_t k = 0; k < SX_COUNT(cases); k++) {
        sx_specialized *made = NULL;
        int device = 0;
        sx_status status = sx_specialize_examples(
            library, sx_library_find(library, cases[k].function), NULL, &made, &device);
        if (cases[k].wrong != NULL) {
            assert_error(status, SX_INVALID_ARGUMENT, cases[k].wrong);
        } else {
            assert_ok(status);
            assert_true((made == NULL) == (cases[k].excluded < 0));
            assert_true(made == NULL || made->excluded == cases[k].excluded);
        }
        sx_specialized_destroy(made);
    }
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_by_size__fits_or_says_what_does_not),
    cmocka_unit_test(test_runtime_function_by_size__keeps_what_it_made),
    cmocka_unit_test(test_runtime_function_by_size__a_thousand_sizes_stay_within_the_bound),
    cmocka_unit_test(test_runtime_function_by_size__is_known_when_loaded),
};
SX_TEST_MAIN(tests)
