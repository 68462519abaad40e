/* Compiling ahead of time, over our own plugin (tests/pjrt_ref): what a result says, that one from
 * the cache says the same, and the search for the largest batch that fits. XLA's compiler:
 * tests/cli/test_compile.sh. */
#include "io/scratch.h"

#include <sextant/ops.h>

#include "backends/pjrt/aot_plan.h"
#include "backends/pjrt_plugin.h"

/* y = x·w of x [N,3], w [3,2], in f32. */
static sx_graph *product(void)
{
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    assert_ok(sx_builder_create(&b));
    sx_value w =
        sx_variable(b, &(sx_variable_spec){.name = "dense/w", .type = sx_type_of(SX_F32, 3, 2)});
    sx_output(b, "y", sx_matmul(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3)), w));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static sx_aot_request request_of(const sx_graph *g, const sx_target *target, int64_t batch)
{
    return (sx_aot_request){
        .graph = g, .target = target, .batch = batch, .wish.path = ref_plugin()};
}

static void set_limit(long bytes)
{
    char text[64];
    snprintf(text, sizeof(text), "limit=%ld", bytes);
    setenv("SX_PJRT_REF", text, 1);
}

static void test_backends_aot__says_what_a_program_takes(void **state)
{
    (void)state;
    sx_graph *g = product();
    sx_target one, four;
    sx_aot_result r, again;
    assert_ok(sx_target_parse("pjrt-cpu", &one));
    assert_ok(sx_target_parse("pjrt-cpu:4", &four));
    set_limit(1000000);
    sx_aot_request request = request_of(g, &one, 8);
    char cache[600];
    snprintf(cache, sizeof(cache), "%s/cache", scratch_dir);
    request.cache_dir = cache;
    assert_ok(sx_aot_compile(&request, &r, NULL, NULL));
    assert_int_equal(r.devices, 1);
    assert_int_equal(r.hosts, 1);
    assert_int_equal(r.host_devices[0], 1);
    assert_int_equal(r.batch, 8);
    assert_int_equal(r.hbm_bytes, 1000000);
    assert_true(r.kind[0] != '\0');
    assert_memory_equal(r.plugin, "PJRT ", 5);
    assert_int_equal(r.facts.argument_bytes, (8 * 3 + 3 * 2) * 4);
    assert_int_equal(r.facts.output_bytes, 8 * 2 * 4);
    assert_int_equal(sx_aot_total_bytes(&r), r.facts.argument_bytes + r.facts.output_bytes -
                                                 r.facts.alias_bytes + r.facts.temporary_bytes +
                                                 r.facts.code_bytes);
    assert_int_equal(count_entries(cache), 1);
    assert_ok(sx_aot_compile(&request, &again, NULL, NULL)); /* read, not compiled */
    assert_memory_equal(&r, &again, sizeof(r));
    assert_int_equal(count_entries(cache), 1);
    /* Another batch, another target and the kept executable are others. */
    request.batch = 12;
    assert_ok(sx_aot_compile(&request, &again, NULL, NULL));
    assert_int_equal(again.facts.argument_bytes, (12 * 3 + 3 * 2) * 4);
    assert_int_equal(count_entries(cache), 2);
    request.target = &four;
    assert_ok(sx_aot_compile(&request, &again, NULL, NULL));
    assert_int_equal(again.devices, 4);
    assert_int_equal(again.host_devices[0], 4);
    assert_int_equal(again.facts.argument_bytes, (3 * 3 + 3 * 2) * 4); /* of each */
    assert_int_equal(count_entries(cache), 3);
    char *executable = NULL;
    size_t size = 0;
    request.keep = true;
    assert_ok(sx_aot_compile(&request, &again, &executable, &size));
    assert_true(size > 0);
    assert_int_equal(again.executable_bytes, size);
    sx_free(executable);
    request.batch = 13;
    assert_error(sx_aot_compile(&request, &again, NULL, NULL), SX_INVALID_ARGUMENT,
                 "batch size 13 is not a multiple of 4 replicas");
    sx_graph_destroy(g);
}

/* Bytes at a batch and the largest that fits, from two results. */
static void test_backends_aot__the_line(void **state)
{
    (void)state;
    sx_aot_result a = {.devices = 2, .batch = 32, .hbm_bytes = 0};
    sx_aot_result b = {.devices = 2, .batch = 64, .hbm_bytes = 0};
    a.facts.argument_bytes = 1000 + 32 * 10; /* 1000 + 10 a batch */
    b.facts.temporary_bytes = 1000 + 64 * 10;
    assert_true(sx_aot_bytes_at(&a, &b, 32) == 1320);
    assert_true(sx_aot_bytes_at(&a, &b, 48) == 1480);
    assert_true(sx_aot_bytes_at(&a, &b, 0) == 1000);
    static const struct {
        int64_t limit, largest;
    } rows[] = {
        {1000, 0},
        {1019, 0},
        {1020, 2},
        {1039, 2},
        {1040, 4},
        {1159, 14},
        {1160, 16},
        {1319, 16},
        {1320, 32},
        {11000, 992},
        {11079, 992}, /* 1006 rounded down to 2 devices of a multiple of 8 */
        {(int64_t)1 << 40, SX_AOT_MOST_BATCH},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        a.hbm_bytes = b.hbm_bytes = rows[i].limit;
        if (sx_aot_largest_batch(&a, &b) != rows[i].largest) {
            fail_msg("limit %lld: %lld, expected %lld", (long long)rows[i].limit,
                     (long long)sx_aot_largest_batch(&a, &b), (long long)rows[i].largest);
        }
    }
}

typedef struct tale {
    int compiles, results, fitted;
} tale;

static void note(void *user, int64_t batch, const sx_aot_result *result, bool fits)
{
    tale *t = user;
    assert_true(batch > 0);
    t->compiles += result == NULL;
    t->results += result != NULL;
    t->fitted += fits;
}

static int64_t bytes_of(const sx_graph *g, const sx_target *target, int64_t batch)
{
    sx_aot_result r;
    set_limit(1000000000);
    const sx_aot_request request = request_of(g, target, batch);
    assert_ok(sx_aot_compile(&request, &r, NULL, NULL));
    return sx_aot_total_bytes(&r);
}

/* The search finds the largest multiple of eight for every limit, whatever batch was asked for. An
 * example takes 20 bytes; the program's text, which counts, a few more where the batch has another
 * digit. */
static void test_backends_aot__finds_the_largest_batch(void **state)
{
    (void)state;
    static const int64_t largest[] = {40, 512, 5000};
    sx_graph *g = product();
    sx_target one;
    assert_ok(sx_target_parse("pjrt-cpu", &one));
    assert_int_equal(bytes_of(g, &one, 16) - bytes_of(g, &one, 12), 4 * 20);
    for (size_t i = 0; i < sizeof(largest) / sizeof(largest[0]); i++) {
        const int64_t limit = bytes_of(g, &one, largest[i]) + 4 * 20;
        const int64_t asked[] = {8, largest[i], largest[i] + 8};
        for (int k = 0; k < 3; k++) {
            tale t = {0};
            sx_aot_plan plan;
            const int64_t bytes = bytes_of(g, &one, asked[k]);
            const sx_aot_plan_request r = {
                .compile = request_of(g, &one, asked[k]), .tell = note, .user = &t};
            set_limit((long)limit);
            assert_ok(sx_aot_plan_make(&r, &plan));
            assert_int_equal(plan.fits, k < 2);
            assert_int_equal(plan.asked.batch, asked[k]);
            assert_true(plan.asked_bytes == (double)bytes);
            assert_int_equal(plan.largest, 0); /* nobody searched for it */
            assert_int_equal(t.compiles, 1);
            assert_ok(sx_aot_plan_find_largest(&r, &plan));
            assert_int_equal(plan.largest, largest[i]);
            assert_int_equal(plan.by_line, largest[i]);
            assert_true(plan.points[0] < plan.points[1]);
            assert_int_equal(t.compiles, t.results);
            assert_in_range(t.compiles, 2, 9);
        }
    }
    unsetenv("SX_PJRT_REF"); /* memory that is not known has no largest batch */
    sx_aot_plan plan;
    const sx_aot_plan_request r = {.compile = request_of(g, &one, 8)};
    assert_ok(sx_aot_plan_make(&r, &plan));
    assert_true(plan.fits);
    assert_ok(sx_aot_plan_find_largest(&r, &plan));
    assert_int_equal(plan.largest, 0);
    sx_graph_destroy(g);
}

/* As note(), while the compiler refuses the batch 128: compiles run in a child process, which reads
 * the environment. */
static void note_and_refuse(void *user, int64_t batch, const sx_aot_result *result, bool fits)
{
    note(user, batch, result, fits);
    setenv("SX_PJRT_REF_FAULT", result == NULL && batch == 128 ? "full" : "", 1);
}

/* Where only one batch compiles there is no line: it is the largest. */
static void test_backends_aot__one_point_is_no_line(void **state)
{
    (void)state;
    sx_graph *g = product();
    sx_target one;
    assert_ok(sx_target_parse("pjrt-cpu", &one));
    set_limit((long)bytes_of(g, &one, 256) + 100);
    tale t = {0};
    sx_aot_plan plan;
    const sx_aot_plan_request r = {
        .compile = request_of(g, &one, 8), .tell = note_and_refuse, .user = &t};
    assert_ok(sx_aot_plan_make(&r, &plan));
    assert_true(plan.fits);
    assert_ok(sx_aot_plan_find_largest(&r, &plan));
    assert_int_equal(plan.largest, 256);
    assert_true(plan.by_line == 0 && plan.points[0] == 0 && plan.points[1] == 0);
    assert_int_equal(t.compiles, 3); /* of 8, 256, and half of it */
    assert_int_equal(t.fitted, 2);
    assert_non_null(strstr(plan.words, "Ran out of memory"));
    unsetenv("SX_PJRT_REF_FAULT");
    unsetenv("SX_PJRT_REF");
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_aot__one_point_is_no_line),
    scratch_test(test_backends_aot__says_what_a_program_takes),
    cmocka_unit_test(test_backends_aot__the_line),
    cmocka_unit_test(test_backends_aot__finds_the_largest_batch),
};
SX_TEST_MAIN(tests)
