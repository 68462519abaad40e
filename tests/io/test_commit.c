#include "io/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/commit.h"
#include "io/failpoint.h"

/* ---- The system calls themselves ---- */

/* fsync() and rename() of this program: the library's calls come here first. */
static struct {
    const char *call;
    ino_t inode; /* of the file or folder */
    off_t size;
} on_disk[64];
static int n_on_disk;

static void note(const char *call, const struct stat *info)
{
    if (n_on_disk < (int)(sizeof(on_disk) / sizeof(on_disk[0]))) {
        on_disk[n_on_disk].call = call;
        on_disk[n_on_disk].inode = info->st_ino;
        on_disk[n_on_disk++].size = S_ISDIR(info->st_mode) ? 0 : info->st_size;
    }
}

int fsync(int fd)
{
    struct stat info;
    if (fstat(fd, &info) == 0) {
        note("fsync", &info);
    }
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    struct stat info;
    if (stat(from, &info) == 0) {
        note("rename", &info);
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static ino_t inode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

static void test_io_commit__one_file(void **state)
{
    (void)state;
    assert_ok(sx_commit_bytes(scratch("f"), "abc", 3));
    assert_file(scratch("f"), "abc", 3);
    assert_ok(sx_commit_bytes(scratch("f"), "", 0));
    assert_file(scratch("f"), "", 0);
    assert_int_equal(count_entries(scratch_dir), 1);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(scratch("f"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

/* A rename would replace them. */
static void test_io_commit__devices_and_folders_stay(void **state)
{
    (void)state;
    struct stat info;
    assert_error(sx_commit_bytes("/dev/null", "abc", 3), SX_INVALID_ARGUMENT, "/dev/null");
    assert_error(sx_commit_bytes("/dev/stdout", "abc", 3), SX_INVALID_ARGUMENT, "/dev/stdout");
    assert_int_equal(mkdir(scratch("d"), 0700), 0);
    assert_error(sx_commit_bytes(scratch("d"), "abc", 3), SX_INVALID_ARGUMENT, "a folder");
    assert_int_equal(mkfifo(scratch("p"), 0600), 0);
    assert_error(sx_commit_bytes(scratch("p"), "abc", 3), SX_INVALID_ARGUMENT, "pipe");
    assert_int_equal(stat(scratch("p"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(count_entries(scratch_dir), 2);
}

static void test_io_commit__large_writes_pass_the_buffer(void **state)
{
    (void)state;
    size_t size = 3 << 20;
    char *data = malloc(size);
    for (size_t i = 0; i < size; i++) {
        data[i] = (char)(i * 7 + i / 251);
    }
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    assert_ok(sx_commit_create(&commit));
    assert_ok(sx_commit_add(commit, scratch("f"), &file));
    size_t at = 0;
    for (size_t piece = 1; at < size; piece = piece * 3 + 1) {
        size_t n = piece < size - at ? piece : size - at;
        assert_ok(sx_commit_write(file, data + at, n));
        at += n;
        assert_int_equal(sx_commit_offset(file), at);
    }
    assert_false(sx_path_exists(scratch("f")));
    assert_ok(sx_commit_finish(commit));
    sx_commit_destroy(commit);
    assert_file(scratch("f"), data, size);
    free(data);
}

static void test_io_commit__destroy_abandons(void **state)
{
    (void)state;
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    assert_ok(sx_commit_create(&commit));
    assert_ok(sx_commit_add(commit, scratch("f"), &file));
    assert_ok(sx_commit_write(file, "abc", 3));
    assert_int_equal(count_entries(scratch_dir), 1);
    sx_commit_destroy(commit);
    sx_commit_destroy(NULL);
    assert_int_equal(count_entries(scratch_dir), 0);
}

static void test_io_commit__is_over_after_finish(void **state)
{
    (void)state;
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    assert_ok(sx_commit_create(&commit));
    assert_ok(sx_commit_add(commit, scratch("f"), &file));
    assert_ok(sx_commit_finish(commit));
    assert_error(sx_commit_finish(commit), SX_FAILED_PRECONDITION, "already finished");
    assert_error(sx_commit_write(file, "a", 1), SX_FAILED_PRECONDITION, "has ended");
    assert_error(sx_commit_add(commit, scratch("g"), &file), SX_FAILED_PRECONDITION, "has ended");
    sx_commit_destroy(commit);
}

static void test_io_commit__missing_directory(void **state)
{
    (void)state;
    assert_error(sx_commit_bytes(scratch("none/f"), "a", 1), SX_NOT_FOUND, "none/f");
}

/* Two data files and an index: the commit that the sweeps break at every call. */
static sx_status commit_three(const char *content)
{
    static const char *const names[] = {"data-0", "data-1", "index"};
    sx_commit *commit = NULL;
    sx_status status = sx_commit_create(&commit);
    for (int i = 0; i < 3 && status == SX_OK; i++) {
        sx_commit_file *file = NULL;
        status = sx_commit_add(commit, scratch(names[i]), &file);
        if (status == SX_OK) {
            status = sx_commit_write(file, content, strlen(content));
        }
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    return status;
}

/* What a reader of the index may see: nothing, or an index whose data files are there and whole. */
static void check_index_is_consistent(bool must_be_there)
{
    if (must_be_there) {
        assert_file(scratch("index"), "new", 3);
    }
    if (sx_path_exists(scratch("index"))) {
        assert_file(scratch("data-0"), "new", 3);
        assert_file(scratch("data-1"), "new", 3);
    }
}

/* What a power cut may take: a file's bytes before its fsync, a name before its folder's. So every
 * file is synced whole before any is renamed, and the folder before the last one is. */
static void test_io_commit__is_on_disk_before_it_is_named(void **state)
{
    (void)state;
    n_on_disk = 0;
    assert_ok(commit_three("new"));
    ino_t dir = inode_of(scratch_dir), index = inode_of(scratch("index"));
    ino_t data[] = {inode_of(scratch("data-0")), inode_of(scratch("data-1"))};
    const struct {
        const char *call;
        ino_t inode;
    } expected[] = {{"fsync", data[0]},  {"fsync", data[1]}, {"fsync", index},  {"rename", data[0]},
                    {"rename", data[1]}, {"fsync", dir},     {"rename", index}, {"fsync", dir}};
    assert_int_equal(n_on_disk, sizeof(expected) / sizeof(expected[0]));
    for (int i = 0; i < n_on_disk; i++) {
        assert_string_equal(on_disk[i].call, expected[i].call);
        assert_int_equal(on_disk[i].inode, expected[i].inode);
        assert_int_equal(on_disk[i].size, expected[i].inode == dir ? 0 : 3);
    }
}

static long calls_of_a_commit(void)
{
    sx_failpoint_arm(0, SX_FAIL_EIO);
    assert_ok(commit_three("new"));
    return sx_failpoint_count();
}

static void clear_scratch(void)
{
    assert_ok(sx_dir_remove(scratch_dir));
    assert_ok(sx_dir_create(scratch_dir));
}

static void test_io_commit__every_call_may_fail(void **state)
{
    (void)state;
    long calls = calls_of_a_commit();
    assert_int_equal(calls, 3 * 2 + 3 + 2); /* write + fsync each, renames, directories */
    static const sx_code codes[] = {SX_RESOURCE_EXHAUSTED, SX_DATA_LOSS};
    for (int mode = SX_FAIL_ENOSPC; mode <= SX_FAIL_EIO; mode++) {
        for (long n = 1; n <= calls; n++) {
            clear_scratch();
            sx_failpoint_arm(n, (sx_fail_mode)mode);
            assert_error(commit_three("new"), codes[mode], scratch_dir);
            check_index_is_consistent(n == calls);
            sx_paths names = {0};
            assert_ok(sx_dir_list(scratch_dir, &names));
            assert_int_equal(count_entries(scratch_dir), names.count); /* no hidden temporary */
            sx_paths_deinit(&names);
        }
    }
    sx_failpoint_arm(0, SX_FAIL_EIO);
}

static void test_io_commit__a_failure_keeps_the_previous_file(void **state)
{
    (void)state;
    assert_ok(sx_commit_bytes(scratch("f"), "old", 3));
    for (long n = 1; n <= 3; n++) { /* write, fsync, rename */
        sx_failpoint_arm(n, SX_FAIL_ENOSPC);
        assert_error(sx_commit_bytes(scratch("f"), "newer", 5), SX_RESOURCE_EXHAUSTED, "/f");
        assert_file(scratch("f"), "old", 3);
        assert_int_equal(count_entries(scratch_dir), 1);
    }
    sx_failpoint_arm(0, SX_FAIL_EIO);
}

static void test_io_commit__a_failed_fsync_is_not_retried(void **state)
{
    (void)state;
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    assert_ok(sx_commit_create(&commit));
    assert_ok(sx_commit_add(commit, scratch("f"), &file));
    assert_ok(sx_commit_write(file, "abc", 3));
    sx_failpoint_arm(2, SX_FAIL_EIO);
    assert_error(sx_commit_finish(commit), SX_DATA_LOSS, "fsync");
    long calls = sx_failpoint_count();
    assert_error(sx_commit_finish(commit), SX_FAILED_PRECONDITION, "or failed");
    assert_int_equal(sx_failpoint_count(), calls);
    sx_commit_destroy(commit);
    assert_int_equal(count_entries(scratch_dir), 0);
}

static void test_io_commit__killed_anywhere(void **state)
{
    (void)state;
    long calls = calls_of_a_commit();
    for (long n = 1; n <= calls; n++) {
        clear_scratch();
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sx_failpoint_arm(n, SX_FAIL_KILL);
            sx_status_free(commit_three("new"));
            _exit(0);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        check_index_is_consistent(n == calls);
        assert_ok(sx_commit_sweep(scratch_dir));
        sx_paths names = {0};
        assert_ok(sx_dir_list(scratch_dir, &names));
        assert_int_equal(count_entries(scratch_dir), names.count);
        sx_paths_deinit(&names);
    }
}

static void test_io_commit__sweep_spares_the_living(void **state)
{
    (void)state;
    write_file(scratch(".f.tmp-0123456789abcdef"), "dead", 4);
    write_file(scratch(".f.tmp-0123456789abcdeX"), "other", 5);
    write_file(scratch("f.tmp-0123456789abcdef"), "other", 5);
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    assert_ok(sx_commit_create(&commit));
    assert_ok(sx_commit_add(commit, scratch("f"), &file));
    assert_int_equal(count_entries(scratch_dir), 4);
    assert_ok(sx_commit_sweep(scratch_dir));
    assert_int_equal(count_entries(scratch_dir), 3);
    assert_ok(sx_commit_finish(commit));
    sx_commit_destroy(commit);
    assert_true(sx_path_exists(scratch("f")));
    assert_error(sx_commit_sweep(scratch("none")), SX_NOT_FOUND, "none");
}

/* ---- Links ---- */

/* out/data and out/index as second names of data-0 and index. */
static sx_status link_two(void)
{
    sx_commit *commit = NULL;
    SX_TRY(sx_commit_create(&commit));
    sx_status status = sx_commit_add_link(commit, scratch("data-0"), scratch("out/data"));
    if (status == SX_OK) {
        status = sx_commit_add_link(commit, scratch("index"), scratch("out/index"));
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    return status;
}

static void test_io_commit__links_share_the_file_or_are_copies(void **state)
{
    (void)state;
    assert_ok(commit_three("new"));
    assert_ok(sx_dir_create(scratch("out")));
    for (int round = 0; round < 2; round++) { /* the second time onto itself */
        assert_ok(link_two());
        assert_int_equal(inode_of(scratch("out/data")), inode_of(scratch("data-0")));
        assert_int_equal(inode_of(scratch("out/index")), inode_of(scratch("index")));
        assert_int_equal(count_entries(scratch("out")), 2);
    }
    sx_failpoint_arm(1, SX_FAIL_EIO); /* no link: a copy, which replaces what is there */
    write_file(scratch("data-0"), "newer", 5);
    assert_ok(link_two());
    assert_file(scratch("out/data"), "newer", 5);
    assert_true(inode_of(scratch("out/data")) != inode_of(scratch("data-0")));
    assert_int_equal(inode_of(scratch("out/index")), inode_of(scratch("index")));
    assert_int_equal(count_entries(scratch("out")), 2);
    assert_int_equal(unlink(scratch("index")), 0);
    assert_error(link_two(), SX_NOT_FOUND, "index");
    assert_int_equal(count_entries(scratch("out")), 2);
}

/* Killed at any call, readers see the old pair or the new one, and a sweep leaves nothing else. */
static void test_io_commit__links_are_killed_anywhere(void **state)
{
    (void)state;
    int how = 0;
    for (long n = 1; !WIFEXITED(how) || n == 1; n++) {
        clear_scratch();
        assert_ok(commit_three("new"));
        assert_ok(sx_dir_create(scratch("out")));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sx_failpoint_arm(n, SX_FAIL_KILL);
            sx_status_free(link_two());
            _exit(0);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(!sx_path_exists(scratch("out/index")) || sx_path_exists(scratch("out/data")));
        assert_true(!WIFEXITED(how) || n > 8); /* two links, fsyncs, renames; folders */
        assert_ok(sx_commit_sweep(scratch("out")));
        sx_paths names = {0};
        assert_ok(sx_dir_list(scratch("out"), &names));
        assert_int_equal(count_entries(scratch("out")), names.count);
        sx_paths_deinit(&names);
        assert_file(scratch("data-0"), "new", 3);
    }
}

static void test_io_commit__long_names(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_ok(sx_commit_bytes(scratch(name), "a", 1));
    assert_file(scratch(name), "a", 1);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_io_commit__one_file),
    scratch_test(test_io_commit__devices_and_folders_stay),
    scratch_test(test_io_commit__large_writes_pass_the_buffer),
    scratch_test(test_io_commit__destroy_abandons),
    scratch_test(test_io_commit__is_over_after_finish),
    scratch_test(test_io_commit__missing_directory),
    scratch_test(test_io_commit__is_on_disk_before_it_is_named),
    scratch_test(test_io_commit__every_call_may_fail),
    scratch_test(test_io_commit__a_failure_keeps_the_previous_file),
    scratch_test(test_io_commit__a_failed_fsync_is_not_retried),
    scratch_test(test_io_commit__killed_anywhere),
    scratch_test(test_io_commit__sweep_spares_the_living),
    scratch_test(test_io_commit__links_share_the_file_or_are_copies),
    scratch_test(test_io_commit__links_are_killed_anywhere),
    scratch_test(test_io_commit__long_names),
};
SX_TEST_MAIN(tests)
