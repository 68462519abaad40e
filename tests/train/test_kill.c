/* SIGKILL at every write, fsync, rename and unlink of a run: what follows is as if nothing had
 * happened. */
#include "kill.h"

#include "train/checkpoint.h"

static void kill_at_call(long n)
{
    sx_failpoint_arm(n, SX_FAIL_KILL);
}

static long calls_of_a_run(const char *dir)
{
    sx_failpoint_arm(0, SX_FAIL_KILL);
    (void)train_all(dir, true);
    return sx_failpoint_count();
}

static void test_train_kill__any_system_call_may_be_the_last(void **state)
{
    (void)state;
    const char *straight = scratch("straight"), *dir = scratch("run");
    uint64_t expected = train_all(straight, true), hash = 0;
    long calls = calls_of_a_run(scratch("count")), stride = calls / 24 + 1;
    assert_true(calls > 50);
    for (long n = 1; n <= calls; n += stride) {
        bool finished = run_child(kill_at_call, n, dir, &hash);
        if (!finished) {
            assert_true(run_child(kill_at_call, 0, dir, &hash));
        }
        assert_true(hash == expected);
        assert_same_folder(straight, dir);
        assert_ok(sx_run_delete(dir));
    }
}

/* Killed again and again, each time a little later. */
static void test_train_kill__progress_is_made_between_kills(void **state)
{
    (void)state;
    const char *straight = scratch("straight"), *dir = scratch("run");
    uint64_t expected = train_all(straight, true), hash = 0;
    int attempts = 0;
    while (!run_child(kill_at_call, 40, dir, &hash)) {
        assert_true(++attempts < 100);
    }
    assert_true(attempts > 3);
    assert_true(hash == expected);
    assert_same_folder(straight, dir);
}

/* ---- The best checkpoint ---- */

/* Evaluates twice, the second time better: keeps, saves the history, drops the first. */
static sx_status better_twice(const char *dir)
{
    sx_run_config config = tiny_config(dir, NULL);
    config.steps_per_eval = STEPS_PER_EPOCH;
    sx_trainer *t = open_tiny(&config);
    sx_status status = fit_tiny(t, 2 * STEPS_PER_EPOCH, true);
    sx_trainer_destroy(t);
    return status;
}

static uint64_t better_in_child(void *user)
{
    const attempt *a = user;
    a->arm(a->argument);
    sx_status_free(better_twice(a->dir));
    return 1;
}

/* Every checkpoint that best/ seems to hold is whole. */
static void assert_best_is_whole(const char *dir)
{
    char best[700];
    sx_arena arena;
    sx_checkpoints list = {0};
    snprintf(best, sizeof(best), "%s/best", dir);
    sx_arena_init(&arena, 0);
    assert_ok(sx_checkpoints_list(best, &arena, &list));
    for (size_t i = 0; i < list.count; i++) {
        assert_ok(sx_checkpoint_verify(list.items[i].prefix));
    }
    sx_arena_deinit(&arena);
}

/* Once an evaluation is in the history, the best checkpoint loads, at any moment. */
static void test_train_kill__the_best_is_there_as_soon_as_it_is_named(void **state)
{
    (void)state;
    char straight[600], dir[600];
    snprintf(straight, sizeof(straight), "%s/straight", scratch_dir);
    snprintf(dir, sizeof(dir), "%s/run", scratch_dir);
    sx_failpoint_arm(0, SX_FAIL_KILL);
    assert_ok(better_twice(straight));
    long calls = sx_failpoint_count();
    int named = 0;
    for (long n = 1; n <= calls; n++) {
        uint64_t finished;
        attempt a = {kill_at_call, n, dir};
        assert_false(finishes_in_child(better_in_child, &a, &finished));
        assert_best_is_whole(dir);
        if (sx_run_exists(dir)) {
            sx_run_config config = tiny_config(dir, NULL);
            sx_trainer *t = NULL;
            assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
            sx_status status = sx_trainer_restore(t, "best");
            named += status == SX_OK;
            if (status != SX_OK) {
                assert_error(status, SX_NOT_FOUND, "has not been evaluated");
                assert_int_equal(named, 0);
            }
            sx_trainer_destroy(t);
        }
        assert_ok(better_twice(dir));
        assert_same_folder(straight, dir);
        assert_ok(sx_run_delete(dir));
    }
    assert_true(named > 10);
}

static const struct CMUnitTest tests[] = {
    kill_test(test_train_kill__any_system_call_may_be_the_last),
    kill_test(test_train_kill__progress_is_made_between_kills),
    kill_test(test_train_kill__the_best_is_there_as_soon_as_it_is_named),
};
SX_TEST_MAIN(tests)
