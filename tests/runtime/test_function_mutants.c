/* Mutants of functions are run: whatever foreign bytes ask for, a run ends with results or with an
 * error, within its memory and its deadline. */
#include "graph_mutants.h"

#include "base/clock.h"
#include "runtime/function_run.h"

enum { MUTANTS = 5000, MOST_ARGS = 4, MOST_RESULTS = 8, BYTES = 1 << 16 };

/* Puts a digit, or a digit of another place, where a digit is: ids, sizes, attributes, bytes of
 * constants; now and then a letter. */
static void mutate(sx_words *w, char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef?N";
    for (uint32_t slips = 1 + sx_word(w) % 2; slips > 0; slips--) {
        size_t at = sx_word(w) % size;
        while (at + 1 < size && !(text[at] >= '0' && text[at] <= '9') && sx_word(w) % 50 != 0) {
            at++;
        }
        text[at] = digits[sx_word(w) % (sx_word(w) % 8 == 0 ? 18 : 10)];
    }
}

static void run(sx_platform *platform, sx_library *library, int *done)
{
    static float data[BYTES / sizeof(float)];
    sx_budget memory;
    sx_runner *runner = NULL;
    sx_budget_init(&memory, "a test", 256 << 20, NULL);
    sx_status status = sx_runner_create(
        &(sx_runner_options){
            .library = library, .platform = platform, .max_trips = 1000, .memory = &memory},
        &runner);
    for (int f = 0; f < library->n_functions && status == SX_OK; f++) {
        const sx_graph *body = library->functions[f].body;
        sx_tensor args[MOST_ARGS], results[MOST_RESULTS];
        sx_arena arena;
        sx_cancel cancel;
        bool fits = body->n_args <= MOST_ARGS && body->n_results <= MOST_RESULTS;
        for (int i = 0; i < body->n_args && fits; i++) {
            sx_type t = *sx_graph_type(body, body->args[i].value);
            t.rank = t.rank == SX_UNKNOWN_RANK ? 1 : t.rank;
            for (int d = 0; d < t.rank; d++) {
                t.dims[d] = t.dims[d] < 0 ? 2 : t.dims[d];
            }
            args[i] = (sx_tensor){t, data};
            fits = t.dtype != SX_STRING && sx_type_bytes(&t) >= 0 && sx_type_bytes(&t) <= BYTES;
        }
        if (!fits) {
            continue;
        }
        sx_arena_init(&arena, 0);
        const int64_t begin = sx_now_ns();
        sx_cancel_init(&cancel, begin + 1000000000);
        sx_status ran = sx_runner_run(runner, library->functions[f].name, args, body->n_args,
                                      results, body->n_results, &arena, &cancel);
        *done += ran == SX_OK;
        sx_status_free(ran);
        assert_true(sx_now_ns() - begin < 20 * (int64_t)1000000000); /* under sanitizers */
        sx_arena_deinit(&arena);
    }
    sx_status_free(status);
    sx_runner_destroy(runner);
}

static void test_runtime_function_mutants__end_with_results_or_errors(void **state)
{
    (void)state;
    static char text[SX_GRAPH_MUTANT_BYTES];
    sx_graph_seed seeds[SX_GRAPH_SEEDS];
    int parsed = 0, done = 0;
    sx_platform *platform;
    sx_graph_seeds_read(seeds);
    assert_ok(sx_platform_open("host", &(sx_platform_options){.cpu.threads = 1}, &platform));
    sx_words w = {.key = {3, 5}};
    for (int i = 0; i < MUTANTS; i++) {
        sx_library *library = NULL;
        const sx_graph_seed *seed = &seeds[i % SX_GRAPH_SEEDS];
        memcpy(text, seed->text, seed->size);
        mutate(&w, text, seed->size);
        sx_status status = sx_library_parse(text, seed->size, &library);
        if (status == SX_OK) {
            parsed++;
            run(platform, library, &done);
        }
        sx_status_free(status);
        sx_library_destroy(library);
    }
    print_message("%d of %d mutants are libraries; %d functions of them ran\n", parsed, MUTANTS,
                  done);
    assert_true(parsed > MUTANTS / 10 && done > MUTANTS / 10);
    sx_platform_close(platform);
    sx_graph_seeds_free(seeds);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_mutants__end_with_results_or_errors),
};
SX_TEST_MAIN(tests)
