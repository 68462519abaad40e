/* The state file, which checkpoint is trusted, and which are kept. */
#include "io/scratch.h"

#include <signal.h>
#include <sys/wait.h>

#include "io/failpoint.h"
#include "checkpoint/bundle.h"
#include "checkpoint/checkpoint_state.h"

static const char example[] = "# a comment\n"
                              "model_checkpoint_path: \"ckpt-2\"\n"
                              "all_model_checkpoint_paths: \"ckpt \\\"1\\\"\\303\\251\"\n"
                              "all_model_checkpoint_paths: 'ckpt-2'\n"
                              "all_model_checkpoint_timestamps: 1700000000.5\n"
                              "all_model_checkpoint_timestamps: 1700000100.5\n"
                              "last_preserved_timestamp: 1700000000.0\n";

static sx_status save(const char *name, double now, const sx_checkpoint_retention *r)
{
    float x = 1;
    sx_bundle_writer *w = NULL;
    SX_TRY(sx_bundle_writer_create(scratch(name), &w));
    sx_status status = sx_bundle_add(w, "x", &(sx_tensor){sx_scalar_type(SX_F32), &x});
    status = status != SX_OK ? status : sx_bundle_writer_finish(w);
    sx_bundle_writer_destroy(w);
    return status != SX_OK ? status : sx_checkpoint_register(scratch_dir, name, now, r);
}

/* The latest whole checkpoint's step; -1 if there is none. */
static int64_t latest_step(void)
{
    sx_arena arena;
    const char *prefix = NULL;
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoint_latest(scratch_dir, &arena, &prefix);
    int64_t step = status == SX_OK ? sx_checkpoint_step(prefix) : -1;
    sx_status_free(status);
    sx_arena_deinit(&arena);
    return step;
}

/* "1 2 5" */
static void assert_steps(const char *expected)
{
    sx_arena arena;
    sx_checkpoints list;
    char text[256] = "";
    sx_arena_init(&arena, 0);
    assert_ok(sx_checkpoints_list(scratch_dir, &arena, &list));
    for (size_t i = 0; i < list.count; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s%lld", i > 0 ? " " : "",
                 (long long)list.items[i].step);
    }
    assert_string_equal(text, expected);
    sx_arena_deinit(&arena);
}

static void assert_all_whole(void)
{
    sx_arena arena;
    sx_checkpoints list;
    sx_arena_init(&arena, 0);
    assert_ok(sx_checkpoints_list(scratch_dir, &arena, &list));
    for (size_t i = 0; i < list.count; i++) {
        sx_bundle *bundle = NULL;
        assert_ok(sx_bundle_open(list.items[i].prefix, &bundle));
        assert_ok(sx_bundle_verify(bundle));
        sx_bundle_close(bundle);
    }
    sx_arena_deinit(&arena);
}

/* Its files under another name, of which the state file knows nothing. */
static sx_status copy_checkpoint(const char *from, const char *to)
{
    static const char *const suffixes[] = {".data-00000-of-00001", ".index"};
    for (int i = 0; i < 2; i++) {
        char source[64], target[64], *data = NULL;
        size_t size;
        snprintf(source, sizeof(source), "%s%s", from, suffixes[i]);
        snprintf(target, sizeof(target), "%s%s", to, suffixes[i]);
        SX_TRY(sx_file_read(scratch(source), 1 << 20, &data, &size));
        write_file(scratch(target), data, size);
        sx_free(data);
    }
    return SX_OK;
}

static void test_checkpoint_checkpoint_state__reads_text(void **state)
{
    (void)state;
    sx_arena arena;
    sx_checkpoint_state s;
    sx_arena_init(&arena, 0);
    assert_ok(sx_checkpoint_state_read(scratch_dir, &arena, &s));
    assert_null(s.latest);
    write_file(scratch("checkpoint"), example, sizeof(example) - 1);
    for (int round = 0; round < 2; round++) { /* as written by hand, then as written by us */
        assert_ok(sx_checkpoint_state_read(scratch_dir, &arena, &s));
        assert_string_equal(s.latest, "ckpt-2");
        assert_int_equal(s.count, 2);
        assert_string_equal(s.names[0], "ckpt \"1\"\xc3\xa9");
        assert_true(s.times[1] == 1700000100.5 && s.last_preserved == 1700000000.0);
        assert_ok(sx_checkpoint_state_write(scratch_dir, &s));
    }
    sx_arena_deinit(&arena);
}

static void test_checkpoint_checkpoint_state__refuses_text(void **state)
{
    (void)state;
    static const char *const bad[] = {"nonsense",
                                      "model_checkpoint_path \"x\"",
                                      "model_checkpoint_path: x",
                                      "model_checkpoint_path: \"x",
                                      "model_checkpoint_path: \"\\q\"",
                                      "last_preserved_timestamp: soon"};
    sx_arena arena;
    sx_checkpoint_state s;
    sx_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(scratch("checkpoint"), bad[i], strlen(bad[i]));
        assert_error(sx_checkpoint_state_read(scratch_dir, &arena, &s), SX_DATA_LOSS, "checkpoint");
    }
    sx_arena_deinit(&arena);
}

static void test_checkpoint_checkpoint_state__steps(void **state)
{
    (void)state;
    assert_int_equal(sx_checkpoint_step("a/model.ckpt-120"), 120);
    assert_int_equal(sx_checkpoint_step("a-7/model.ckpt"), -1);
    assert_int_equal(sx_checkpoint_step("ckpt-"), -1);
    assert_int_equal(sx_checkpoint_step("ckpt-1a"), -1);
    assert_int_equal(sx_checkpoint_step("ckpt-99999999999999999999"), -1);
}

static void assert_no_latest(sx_code code, const char *part)
{
    sx_arena arena;
    const char *prefix = NULL;
    sx_arena_init(&arena, 0);
    assert_error(sx_checkpoint_latest(scratch_dir, &arena, &prefix), code, part);
    assert_null(prefix);
    sx_arena_deinit(&arena);
}

/* Nobody gets other weights than those asked for: the damaged checkpoint and the newest intact one
 * are named. */
static void test_checkpoint_checkpoint_state__latest_takes_no_older_one(void **state)
{
    (void)state;
    const sx_checkpoint_retention all = {0};
    assert_no_latest(SX_NOT_FOUND, "has no checkpoint");
    assert_ok(save("model.ckpt-9", 1, &all));
    assert_ok(save("model.ckpt-10", 2, &all));
    assert_ok(save("model.ckpt-100", 3, &all));
    assert_steps("9 10 100");
    assert_int_equal(latest_step(), 100);
    write_file(scratch("model.ckpt-100.data-00000-of-00001"), "\0\0\0\0", 4); /* rotten */
    assert_no_latest(SX_DATA_LOSS, "model.ckpt-100");
    assert_no_latest(SX_DATA_LOSS, "model.ckpt-10; name it instead of the directory");
    write_file(scratch("model.ckpt-10.index"), "", 0); /* truncated */
    assert_no_latest(SX_DATA_LOSS, "model.ckpt-9; name it");
    assert_int_equal(unlink(scratch("model.ckpt-100.index")), 0); /* in the state file alone */
    assert_no_latest(SX_DATA_LOSS, "model.ckpt-100");
    write_file(scratch("checkpoint"), "rubbish", 7); /* only a hint */
    assert_no_latest(SX_DATA_LOSS, "model.ckpt-10");
    assert_int_equal(unlink(scratch("model.ckpt-10.index")), 0);
    assert_int_equal(latest_step(), 9);
    assert_int_equal(unlink(scratch("model.ckpt-9.data-00000-of-00001")), 0);
    assert_no_latest(SX_DATA_LOSS, "none of 1 checkpoints can be used");
}

static void test_checkpoint_checkpoint_state__follows_an_unnumbered_name(void **state)
{
    (void)state;
    const sx_checkpoint_retention all = {0};
    assert_ok(save("model.ckpt-9", 1, &all));
    assert_ok(save("best", 2, &all));
    sx_arena arena;
    const char *prefix = NULL;
    sx_arena_init(&arena, 0);
    assert_ok(sx_checkpoint_latest(scratch_dir, &arena, &prefix));
    assert_string_equal(prefix, scratch("best"));
    sx_arena_deinit(&arena);
}

static void test_checkpoint_checkpoint_state__keeps_the_newest(void **state)
{
    (void)state;
    const sx_checkpoint_retention two = {.keep_max = 2};
    char name[32];
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof(name), "model.ckpt-%d", i);
        assert_ok(save(name, i, &two));
    }
    assert_steps("4 5");
    assert_int_equal(count_entries(scratch_dir), 5); /* two files each, and `checkpoint` */
    assert_ok(save("model.ckpt-4", 6, &two));        /* saved again: newest, not twice */
    assert_steps("4 5");
}

static void test_checkpoint_checkpoint_state__keeps_one_every_n_hours(void **state)
{
    (void)state;
    const sx_checkpoint_retention r = {.keep_max = 1, .keep_every_n_hours = 1};
    char name[32];
    for (int i = 1; i <= 9; i++) {
        snprintf(name, sizeof(name), "model.ckpt-%d", i);
        assert_ok(save(name, 1e9 + 1200 * i, &r)); /* every 20 minutes */
    }
    assert_steps("4 7 9");
}

static void test_checkpoint_checkpoint_state__deletes_nothing_outside(void **state)
{
    (void)state;
    static const char text[] = "model_checkpoint_path: \"../victim-1\"\n"
                               "all_model_checkpoint_paths: \"../victim-1\"\n";
    char inner[300];
    snprintf(inner, sizeof(inner), "%s/run", scratch_dir);
    assert_int_equal(mkdir(inner, 0777), 0);
    write_file(scratch("victim-1.index"), "x", 1);
    write_file(scratch("run/checkpoint"), text, sizeof(text) - 1);
    assert_ok(sx_checkpoint_register(inner, "model.ckpt-2", 2,
                                     &(sx_checkpoint_retention){.keep_max = 1}));
    assert_true(sx_path_exists(scratch("victim-1.index")));
}

/* A state file that cannot be read is not taken as empty: what it names would be forgotten. */
static void test_checkpoint_checkpoint_state__writes_nothing_over_what_it_cannot_read(void **state)
{
    (void)state;
    const sx_checkpoint_retention two = {.keep_max = 2};
    assert_ok(save("model.ckpt-1", 1, &two));
    assert_int_equal(unlink(scratch("checkpoint")), 0);
    assert_int_equal(mkdir(scratch("checkpoint"), 0777), 0);
    assert_error(sx_checkpoint_register(scratch_dir, "model.ckpt-1", 2, &two), SX_INVALID_ARGUMENT,
                 "checkpoint: Is a directory");
    assert_int_equal(rmdir(scratch("checkpoint")), 0);
    write_file(scratch("checkpoint"), "no state", 8);
    assert_ok(sx_checkpoint_register(scratch_dir, "model.ckpt-1", 2, &two)); /* damaged */
    assert_steps("1");
}

/* Beyond the list, but for ever: the state file remembers them, and without it nothing is deleted.
 */
static void test_checkpoint_checkpoint_state__adopts_what_it_does_not_name(void **state)
{
    (void)state;
    const sx_checkpoint_retention hourly = {.keep_max = 2, .keep_every_n_hours = 1};
    char name[32];
    for (int i = 1; i <= 9; i++) {
        snprintf(name, sizeof(name), "model.ckpt-%d", i);
        assert_ok(save(name, 1e9 + 1200 * i, &hourly)); /* every 20 minutes */
    }
    assert_steps("4 7 8 9");
    assert_ok(sx_checkpoints_adopt(scratch_dir, &hourly));
    assert_steps("4 7 8 9");
    const sx_checkpoint_retention two = {.keep_max = 2};
    assert_ok(copy_checkpoint("model.ckpt-9", "model.ckpt-5")); /* forgotten */
    assert_ok(sx_checkpoints_adopt(scratch_dir, &two));
    assert_steps("4 7 8 9");
    assert_ok(copy_checkpoint("model.ckpt-9", "model.ckpt-12")); /* not registered yet */
    assert_ok(sx_checkpoints_adopt(scratch_dir, &two));
    assert_steps("4 7 9 12");
    assert_ok(copy_checkpoint("model.ckpt-9", "other-3"));
    write_file(scratch("model.ckpt-3.data-00000-of-00001"), "x", 1);
    write_file(scratch("model.ckpt-3.meta"), "x", 1);
    write_file(scratch("model.ckpt-x.meta"), "mine", 4);
    assert_ok(sx_checkpoints_sweep(scratch_dir));
    assert_ok(sx_checkpoints_adopt(scratch_dir, &two));
    assert_false(sx_path_exists(scratch("model.ckpt-3.data-00000-of-00001")));
    assert_false(sx_path_exists(scratch("model.ckpt-3.meta")));
    assert_true(sx_path_exists(scratch("model.ckpt-x.meta")));
    assert_steps("3 4 7 9 12");
    assert_int_equal(unlink(scratch("checkpoint")), 0);
    assert_ok(sx_checkpoints_adopt(scratch_dir, &two));
    assert_steps("3 4 7 9 12");
    assert_int_equal(latest_step(), 12);
}

/* Whatever the moment, each `.index` that there is has all of its data, and cleaning up leaves two
 * files of one checkpoint and the state file. */
static void test_checkpoint_checkpoint_state__crash_anywhere(void **state)
{
    (void)state;
    const sx_checkpoint_retention one = {.keep_max = 1};
    assert_ok(save("model.ckpt-1", 1, &one));
    for (long n = 1, done = 0; !done; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            sx_failpoint_arm(n, SX_FAIL_KILL);
            sx_status_free(save("model.ckpt-2", 2, &one));
            _exit(0);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        done = WIFEXITED(how);
        int64_t step = latest_step();
        assert_true(step == 1 || step == 2);
        assert_true(!done || n > 12); /* the sweep did reach its injections */
        assert_all_whole();
        assert_ok(sx_checkpoints_sweep(scratch_dir));
        assert_ok(sx_checkpoints_adopt(scratch_dir, &one));
        assert_int_equal(latest_step(), step);
        assert_int_equal(count_entries(scratch_dir), 3);
        if (step == 2) { /* back to where it was */
            assert_ok(sx_checkpoint_delete(scratch("model.ckpt-2")));
            assert_ok(save("model.ckpt-1", 1, &one));
        }
    }
}

/* The file as it is written, byte for byte: TensorFlow reads it, and so do people. */
static void test_checkpoint_checkpoint_state__text_is_tensorflows(void **state)
{
    (void)state;
    const sx_checkpoint_retention r = {.keep_max = 1, .keep_every_n_hours = 1};
    static const char first[] = "model_checkpoint_path: \"model.ckpt-1\"\n"
                                "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
                                "all_model_checkpoint_timestamps: 1000000.5\n"
                                "last_preserved_timestamp: 1000000.5\n";
    assert_ok(save("model.ckpt-1", 1000000.5, &r));
    assert_file(scratch("checkpoint"), first, sizeof(first) - 1);
    assert_ok(save("model.ckpt-2", 1000000.5 + 3600, &r));
    assert_ok(save("model.ckpt-3", 1000000.5 + 3601, &r));
    assert_ok(save("model.ckpt-4", 1000000.5 + 7300, &r));
    sx_arena arena;
    sx_checkpoint_state s;
    sx_arena_init(&arena, 0);
    assert_ok(sx_checkpoint_state_read(scratch_dir, &arena, &s));
    assert_string_equal(s.latest, "model.ckpt-4");
    assert_int_equal(s.count, 1);
    assert_string_equal(s.names[0], "model.ckpt-4");
    assert_true(s.times[0] == 1000000.5 + 7300);
    for (size_t i = 0; i < s.n_preserved; i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s.index", s.preserved[i]);
        assert_true(sx_path_exists(scratch(path)));
    }
    assert_int_equal(s.n_preserved, 1);
    assert_true(sx_checkpoint_step(s.preserved[0]) < 4);
    sx_arena_deinit(&arena);
}

/* A checkpoint is kept for its hour when it is as old as that, not a moment before. */
static void test_checkpoint_checkpoint_state__hours_are_counted_exactly(void **state)
{
    (void)state;
    for (int late = -1; late <= 1; late++) {
        const sx_checkpoint_retention r = {.keep_max = 1, .keep_every_n_hours = 2};
        const double begin = 1e9;
        assert_ok(save("model.ckpt-1", begin, &r));
        assert_ok(save("model.ckpt-2", begin + 7200 + late, &r));
        assert_ok(save("model.ckpt-3", begin + 7300, &r));
        assert_steps(late >= 0 ? "2 3" : "3");
        assert_ok(sx_dir_remove(scratch_dir));
        assert_ok(sx_dir_create(scratch_dir));
    }
}

/* How many are kept, for every number of them; 0 keeps all. */
static void test_checkpoint_checkpoint_state__keeps_as_many_as_it_is_told(void **state)
{
    (void)state;
    static const char *const kept[] = {"1 2 3 4", "4", "3 4", "2 3 4", "1 2 3 4", "1 2 3 4"};
    for (int keep = 0; keep < 6; keep++) {
        const sx_checkpoint_retention r = {.keep_max = keep};
        for (int i = 1; i <= 4; i++) {
            char name[32];
            snprintf(name, sizeof(name), "model.ckpt-%d", i);
            assert_ok(save(name, i, &r));
        }
        assert_steps(kept[keep]);
        assert_int_equal(latest_step(), 4);
        assert_ok(sx_dir_remove(scratch_dir));
        assert_ok(sx_dir_create(scratch_dir));
    }
}

/* A directory holds other files, too: only NAME-STEP.index is a checkpoint. */
static void test_checkpoint_checkpoint_state__lists_only_checkpoints(void **state)
{
    (void)state;
    static const char *const others[] = {"model.ckpt-5.INDEX",
                                         "model.ckpt-5.index~",
                                         "model.ckpt-5_index",
                                         "model.ckpt-5.data-00000-of-00001",
                                         "model.ckpt-5.meta",
                                         "model.ckpt-.index",
                                         "model.ckpt.index",
                                         "model.ckpt-x.index",
                                         ".index",
                                         "-7",
                                         "graph.pbtxt"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        write_file(scratch(others[i]), "", 0);
    }
    assert_steps("");
    write_file(scratch("model.ckpt-12.index"), "", 0);
    write_file(scratch("b-3.index"), "", 0);
    write_file(scratch("a-3.index"), "", 0);
    write_file(scratch("-7.index"), "", 0);
    assert_steps("3 3 7 12"); /* by step, then by name */
}

/* Times that are not one for each name belong to none. */
static void test_checkpoint_checkpoint_state__times_belong_to_names(void **state)
{
    (void)state;
    for (int n = 0; n <= 3; n++) {
        char text[400] = "all_model_checkpoint_paths: [\"a-1\", \"a-2\"]\n";
        for (int i = 0; i < n; i++) {
            snprintf(text + strlen(text), sizeof(text) - strlen(text),
                     "all_model_checkpoint_timestamps: %d\n", 7 + i);
        }
        sx_arena arena;
        sx_checkpoint_state s;
        sx_arena_init(&arena, 0);
        write_file(scratch("checkpoint"), text, strlen(text));
        assert_ok(sx_checkpoint_state_read(scratch_dir, &arena, &s));
        assert_int_equal(s.count, 2);
        assert_null(s.latest);
        assert_true(s.times[0] == (n == 2 ? 7 : 0) && s.times[1] == (n == 2 ? 8 : 0));
        assert_true(s.last_preserved == 0);
        sx_arena_deinit(&arena);
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_checkpoint_checkpoint_state__reads_text),
    scratch_test(test_checkpoint_checkpoint_state__refuses_text),
    scratch_test(test_checkpoint_checkpoint_state__steps),
    scratch_test(test_checkpoint_checkpoint_state__latest_takes_no_older_one),
    scratch_test(test_checkpoint_checkpoint_state__follows_an_unnumbered_name),
    scratch_test(test_checkpoint_checkpoint_state__keeps_the_newest),
    scratch_test(test_checkpoint_checkpoint_state__keeps_one_every_n_hours),
    scratch_test(test_checkpoint_checkpoint_state__deletes_nothing_outside),
    scratch_test(test_checkpoint_checkpoint_state__writes_nothing_over_what_it_cannot_read),
    scratch_test(test_checkpoint_checkpoint_state__adopts_what_it_does_not_name),
    scratch_test(test_checkpoint_checkpoint_state__crash_anywhere),
    scratch_test(test_checkpoint_checkpoint_state__text_is_tensorflows),
    scratch_test(test_checkpoint_checkpoint_state__hours_are_counted_exactly),
    scratch_test(test_checkpoint_checkpoint_state__keeps_as_many_as_it_is_told),
    scratch_test(test_checkpoint_checkpoint_state__lists_only_checkpoints),
    scratch_test(test_checkpoint_checkpoint_state__times_belong_to_names),
};
SX_TEST_MAIN(tests)
