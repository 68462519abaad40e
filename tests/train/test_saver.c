/* Writing checkpoints in the background: a snapshot is that of its moment, and a write that fails
 * leaves the checkpoint before. */
#include "run.h"

#include "io/failpoint.h"
#include "train/saver.h"

typedef struct fixture {
    sx_trainer *t;
    sx_saver saver;
    sx_train_state state;
    int variable;
    float value[CLASSES];
} fixture;

static void open_fixture(fixture *f)
{
    sx_run_config config = tiny_config(NULL, NULL);
    *f = (fixture){.t = open_tiny(&config)};
    assert_ok(fit_tiny(f->t, 1, false));
    f->variable = sx_session_find_variable(sx_trainer_session(f->t), "dense_1/bias");
}

static void close_fixture(fixture *f)
{
    sx_saver_deinit(&f->saver);
    sx_trainer_destroy(f->t);
}

static void set(fixture *f, float value)
{
    for (int i = 0; i < CLASSES; i++) {
        f->value[i] = value;
    }
    assert_ok(sx_session_write_variable(sx_trainer_session(f->t), f->variable, f->value));
}

static float saved(fixture *f, const char *name)
{
    float value[CLASSES];
    sx_bundle *bundle = NULL;
    const sx_type type = sx_type_of(SX_F32, CLASSES);
    (void)f;
    assert_ok(sx_bundle_open(scratch(name), &bundle));
    assert_ok(sx_bundle_read(bundle, "dense_1/bias", &type, value));
    sx_bundle_close(bundle);
    return value[CLASSES - 1];
}

static sx_status begin(fixture *f, const char *name)
{
    const sx_checkpoint_contents contents = {.state = &f->state};
    const sx_checkpoint_retention keep = {.keep_max = 1};
    return sx_saver_begin(&f->saver, sx_trainer_session(f->t), scratch_dir, name, &contents, &keep);
}

static void test_train_saver__a_snapshot_is_of_its_moment(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    for (int i = 1; i <= 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "model.ckpt-%d", i);
        set(&f, (float)i);
        assert_ok(begin(&f, name));
        set(&f, -1); /* training goes on */
        assert_ok(sx_saver_end(&f.saver));
        assert_false(sx_saver_is_busy(&f.saver));
        assert_true(saved(&f, name) == (float)i);
    }
    assert_false(sx_path_exists(scratch("model.ckpt-1.index"))); /* one is kept */
    close_fixture(&f);
}

static void test_train_saver__a_write_that_fails_leaves_the_one_before(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    set(&f, 1);
    assert_ok(begin(&f, "model.ckpt-1"));
    assert_ok(sx_saver_end(&f.saver));
    set(&f, 2);
    sx_failpoint_arm(2, SX_FAIL_ENOSPC);
    assert_ok(begin(&f, "model.ckpt-2"));
    assert_error(sx_saver_end(&f.saver), SX_RESOURCE_EXHAUSTED, "model.ckpt-2");
    sx_failpoint_arm(0, SX_FAIL_ENOSPC);
    assert_false(sx_path_exists(scratch("model.ckpt-2.index")));
    assert_true(saved(&f, "model.ckpt-1") == 1);
    assert_ok(begin(&f, "model.ckpt-2")); /* the next may go well */
    assert_ok(sx_saver_end(&f.saver));
    assert_true(saved(&f, "model.ckpt-2") == 2);
    close_fixture(&f);
}

static void test_train_saver__what_is_not_finite_is_not_begun(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    set(&f, NAN);
    assert_error(begin(&f, "model.ckpt-1"), SX_DATA_LOSS,
                 "variable \"dense_1/bias\" has a non-finite value; nothing was saved");
    assert_ok(sx_saver_end(&f.saver)); /* nothing is running */
    assert_false(sx_path_exists(scratch("model.ckpt-1.index")));
    close_fixture(&f);
}

/* Destroyed while it writes: the write comes to its end. */
static void test_train_saver__is_waited_for(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    set(&f, 5);
    assert_ok(begin(&f, "model.ckpt-5"));
    sx_saver_deinit(&f.saver);
    assert_true(saved(&f, "model.ckpt-5") == 5);
    close_fixture(&f);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_saver__a_snapshot_is_of_its_moment),
    scratch_test(test_train_saver__a_write_that_fails_leaves_the_one_before),
    scratch_test(test_train_saver__what_is_not_finite_is_not_begun),
    scratch_test(test_train_saver__is_waited_for),
};
SX_TEST_MAIN(tests)
