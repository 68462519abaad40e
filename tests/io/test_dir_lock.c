#include "harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/dir_lock.h"
#include "scratch.h"

static void test_io_dir_lock__one_at_a_time(void **state)
{
    (void)state;
    const char *dir = scratch("");
    int lock = 77, second = 77;
    assert_ok(sx_dir_lock(dir, &lock));
    assert_true(lock >= 0);
    assert_error(sx_dir_lock(dir, &second), SX_FAILED_PRECONDITION, "is in use");
    assert_int_equal(second, 77);
    sx_dir_unlock(lock);
    assert_ok(sx_dir_lock(dir, &second));
    sx_dir_unlock(second);
    sx_dir_unlock(SX_NO_LOCK);
}

static void test_io_dir_lock__dies_with_its_process(void **state)
{
    (void)state;
    const char *dir = scratch("");
    int ready[2], lock = SX_NO_LOCK, ignored;
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        bool got = sx_dir_lock(dir, &lock) == SX_OK && write(ready[1], "", 1) == 1;
        pause();
        _exit(got); /* child */
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_error(sx_dir_lock(dir, &lock), SX_FAILED_PRECONDITION, "another process");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &ignored, 0), child);
    assert_ok(sx_dir_lock(dir, &lock));
    sx_dir_unlock(lock);
    close(ready[0]);
    close(ready[1]);
}

static void test_io_dir_lock__needs_a_folder(void **state)
{
    (void)state;
    int lock = 77;
    assert_error(sx_dir_lock(scratch("missing"), &lock), SX_NOT_FOUND, "missing");
    assert_int_equal(lock, 77);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_dir_lock__one_at_a_time),
    scratch_test(test_io_dir_lock__dies_with_its_process),
    scratch_test(test_io_dir_lock__needs_a_folder),
};
SX_TEST_MAIN(tests)
