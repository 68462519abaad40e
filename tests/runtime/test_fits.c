/* Which batch fits: the line through two; the memory of each replica's device. */
#include "loop_run.h"

#include "runtime/memory_fit.h"

static void test_runtime_fits__the_line(void **state)
{
    (void)state;
    /* 1000 + 10 a batch */
    assert_int_equal(sx_batch_within(10, 1100, 20, 1200, 2000, 1), 100);
    assert_int_equal(sx_batch_within(20, 1200, 10, 1100, 2000, 1), 100);
    assert_int_equal(sx_batch_within(10, 1100, 20, 1200, 2009, 8), 96);
    assert_int_equal(sx_batch_within(10, 1100, 20, 1200, 1005, 1), 0); /* not even one */
}

static void test_runtime_fits__no_line_says_nothing(void **state)
{
    (void)state;
    assert_int_equal(sx_batch_within(10, 1100, 10, 1200, 2000, 1), 0);
    assert_int_equal(sx_batch_within(10, 1100, 20, 1100, 2000, 1), 0);
    assert_int_equal(sx_batch_within(10, 1200, 20, 1100, 2000, 1), 0);
}

/* Opens a session on our plugin, whose devices have so much memory each; in so many shards. */
static run *open_limited(int64_t limit, int replicas, int shards)
{
    char settings[64];
    snprintf(settings, sizeof(settings), "delay=0,limit=%lld", (long long)limit);
    setenv("SX_PJRT_REF", settings, 1);
    run *r = open_run(&(sx_session_options){
        .device = "pjrt",
        .platform = {.pjrt.plugin_path = ref_plugin(), .pjrt.replicas = replicas},
        .shards = shards,
        .launch_steps = 1});
    unsetenv("SX_PJRT_REF");
    return r;
}

/* What the program takes of each device. */
static int64_t bytes_needed(int replicas, int shards)
{
    sx_executable_info info;
    run *r = open_limited(1 << 30, replicas, shards);
    assert_ok(sx_program_prepare(r->program, BATCH, NULL));
    assert_ok(sx_program_info(r->program, BATCH, &info));
    const int64_t bytes = info.argument_bytes + info.output_bytes - info.alias_bytes +
                          info.temporary_bytes + info.code_bytes +
                          sx_program_ahead_bytes(r->program, BATCH);
    close_run(r);
    return bytes;
}

/* Shards of one device share its memory; replicas have a device's each. */
static void test_runtime_fits__the_memory_of_a_replica(void **state)
{
    static const int replicas[] = {1, 2, 1, 2}, shards[] = {0, 0, 4, 4};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int64_t bytes = bytes_needed(replicas[i], shards[i]);
        run *r = open_limited(bytes * 5 / 4, replicas[i], shards[i]);
        assert_ok(sx_program_prepare(r->program, BATCH, NULL));
        assert_ok(sx_program_prove_fit(r->session, r->program, BATCH, -1));
        close_run(r);
        r = open_limited(bytes * 3 / 4, replicas[i], shards[i]);
        assert_ok(sx_program_prepare(r->program, BATCH, NULL));
        assert_error(sx_program_prove_fit(r->session, r->program, BATCH, -1), SX_RESOURCE_EXHAUSTED,
                     "of each device's memory");
        close_run(r);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_fits__the_line),
    cmocka_unit_test(test_runtime_fits__no_line_says_nothing),
    cmocka_unit_test(test_runtime_fits__the_memory_of_a_replica),
};
SX_TEST_MAIN(tests)
