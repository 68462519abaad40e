/* SIGKILL at moments all over a run on named inputs, with preprocessing and weights: what follows
 * is as if nothing had happened. */
#include "kill.h"
#include "named.h"

static uint64_t train_named(const char *dir)
{
    sx_dataset *data = named_rows(0, NAMED_ROWS, false), *eval = named_rows(100, 41, false);
    sx_run_config config = tiny_config(dir, NULL);
    config.save_checkpoints_steps = 3;
    config.steps_per_eval = 7;
    sx_trainer *t = open_prepared(&config);
    const sx_fit_request request = {.train = data, .eval = eval, .max_steps = KILL_STEPS};
    sx_status status = sx_trainer_fit(t, &request);
    if (status != SX_OK) {
        print_error("%s\n", sx_status_message(status));
        exit(2);
    }
    uint64_t hash = finish(t);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    sx_dataset_release(eval);
    return hash;
}

static uint64_t train_until(void *user)
{
    const attempt *a = user;
    sx_failpoint_arm(a->argument, SX_FAIL_KILL);
    return train_named(a->dir);
}

static void test_train_kill_named__any_moment_may_be_the_last(void **state)
{
    (void)state;
    char *straight = scratch("straight"), *dir = scratch("run");
    sx_failpoint_arm(0, SX_FAIL_KILL);
    uint64_t expected = train_named(straight), hash = 0, random = 7;
    const long calls = sx_failpoint_count();
    assert_true(calls > 50);
    for (int run = 0; run < 6; run++) {
        int kills = 0;
        bool finished = false;
        while (!finished) { /* killed up to four times, anywhere */
            random = random * 6364136223846793005u + 1442695040888963407u;
            const long at = kills < 4 ? 1 + (long)((random >> 33) % (uint64_t)(calls * 3 / 4)) : 0;
            attempt a = {NULL, at, dir};
            finished = finishes_in_child(train_until, &a, &hash);
            kills += !finished;
        }
        assert_true(kills > 0);
        assert_true(hash == expected);
        assert_same_folder(straight, dir);
        assert_ok(sx_run_delete(dir));
    }
}

static const struct CMUnitTest tests[] = {
    kill_test(test_train_kill_named__any_moment_may_be_the_last),
};
SX_TEST_MAIN(tests)
