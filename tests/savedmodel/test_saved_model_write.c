/* Writing SavedModels: a directory that is there whole or not at all, refusals. The
 * contents are TensorFlow's to judge: tests/interop/test_savedmodel.py. */
#include "io/scratch.h"

#include <signal.h>
#include <sys/wait.h>

#include "io/failpoint.h"
#include "savedmodel/saved_model_write.h"

static sx_status give_one(void *user, const char *name, const sx_type *type, void *out)
{
    (void)name;
    (void)type;
    *(float *)out = 1;
    return user != NULL ? sx_error(SX_DATA_LOSS, "no such luck") : SX_OK;
}

static sx_status export(const char *dir, const char *asset, void *fail)
{
    const sx_type scalar = sx_scalar_type(SX_F32);
    sx_saved_model_writer *m = NULL;
    SX_TRY(sx_saved_model_writer_create(&m));
    sx_tf_value v = sx_saved_model_variable(m, "v", &scalar, true);
    (void)sx_saved_model_asset(m, asset, (sx_bytes){"x", 1});
    sx_saved_model_signature(m, SX_SERVING_DEFAULT);
    sx_saved_model_output(m, "v", v, &scalar);
    sx_status status = sx_saved_model_write(m, dir, give_one, fail);
    sx_saved_model_writer_destroy(m);
    return status;
}

static bool is_whole(const char *dir)
{
    static const char *const files[] = {"saved_model.pb", "variables/variables.index",
                                        "variables/variables.data-00000-of-00001", "assets/names"};
    for (size_t i = 0; i < 4; i++) {
        char path[700];
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        if (!sx_path_exists(path)) {
            return false;
        }
    }
    return true;
}

static void test_savedmodel_saved_model_write__whole_and_once(void **state)
{
    (void)state;
    assert_ok(export(scratch("m/1"), "names", NULL));
    assert_true(is_whole(scratch("m/1")));
    assert_int_equal(count_entries(scratch("m")), 1);
    assert_error(export(scratch("m/1/"), "names", NULL), SX_ALREADY_EXISTS, "m/1");
    assert_int_equal(count_entries(scratch("m")), 1);
}

static void test_savedmodel_saved_model_write__failures_leave_nothing(void **state)
{
    (void)state;
    assert_error(export(scratch("m/1"), "../up", NULL), SX_INVALID_ARGUMENT, "../up");
    assert_error(export(scratch("m/1"), "a/b", NULL), SX_INVALID_ARGUMENT, "a/b");
    assert_error(export(scratch("m/1"), "names", ""), SX_DATA_LOSS, "no such luck");
    assert_int_equal(count_entries(scratch("m")), 0);
}

static void test_savedmodel_saved_model_write__crash_anywhere(void **state)
{
    (void)state;
    sx_failpoint_arm(0, SX_FAIL_KILL);
    assert_ok(export(scratch("m/1"), "names", NULL));
    long calls = sx_failpoint_count();
    assert_true(calls >= 16); /* four files: write, sync, rename, sync the directory */
    assert_ok(sx_dir_remove(scratch("m")));
    for (long n = 1; n <= calls; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sx_failpoint_arm(n, SX_FAIL_KILL);
            sx_status_free(export(scratch("m/1"), "names", NULL));
            _exit(0);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        if (sx_path_exists(scratch("m/1"))) {
            assert_true(is_whole(scratch("m/1")));
            assert_ok(sx_dir_remove(scratch("m/1")));
        }
    }
    assert_ok(export(scratch("m/1"), "names", NULL)); /* and sweeps what the dead left */
    assert_int_equal(count_entries(scratch("m")), 1);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_savedmodel_saved_model_write__whole_and_once),
    scratch_test(test_savedmodel_saved_model_write__failures_leave_nothing),
    scratch_test(test_savedmodel_saved_model_write__crash_anywhere),
};
SX_TEST_MAIN(tests)
