/* A run's files that nothing can replace: lost or damaged, they are read from their copies. */
#include "run.h"
#include "torture.h"

#include <sextant/infer.h>

#include "io/json_text.h"
#include "train/history.h"

static const char *const files[] = {"sextant.json", "graphs/train.graph", "graphs/eval.graph",
                                    "graphs/predict.graph"};
enum { N_FILES = 4, FIRST_STEPS = 5, ALL_STEPS = 12 };

static const char *path_of(const char *name)
{
    static char paths[2][700];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/run/%s", scratch_dir, name);
    return path;
}

static const char *copy_of(const char *name)
{
    char copy[100];
    snprintf(copy, sizeof(copy), ".backup/%s", sx_path_basename(name));
    return path_of(copy);
}

typedef enum damage { LOST, HALVED, FLIPPED, EMPTY, HUGE_FILE, N_DAMAGES } damage;

static void hurt(const char *path, damage how)
{
    char *text = NULL;
    size_t size = 0;
    assert_ok(sx_file_read(path, 1 << 20, &text, &size));
    if (how == LOST) {
        assert_int_equal(unlink(path), 0);
    } else if (how == HUGE_FILE) {
        assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    } else {
        if (how == FLIPPED) {
            char *digit = strpbrk(text + size / 3, "0123456789"); /* still parses */
            assert_non_null(digit);
            *digit ^= 1;
        }
        write_file(path, text, how == HALVED ? size / 2 : how == EMPTY ? 0 : size);
    }
    sx_free(text);
}

/* All warnings, one a line. */
static char warnings[8192];

static void collect(void *user, const sx_train_event *e)
{
    (void)user;
    size_t used = strlen(warnings);
    if (e->kind == SX_EVENT_WARNING) {
        snprintf(warnings + used, sizeof(warnings) - used, "%s\n", e->text);
    }
}

static sx_run_config quiet_config(void)
{
    sx_run_config config = tiny_config(scratch("run"), NULL);
    config.observer = collect;
    warnings[0] = '\0';
    return config;
}

/* Trains up to `steps`; the hash of all variables. */
static uint64_t train_until(int64_t steps)
{
    sx_run_config config = quiet_config();
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, steps, false));
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    return hash;
}

static sx_status open_run(sx_trainer **out)
{
    sx_run_config config = quiet_config();
    return sx_trainer_create(&(sx_trainer_options){.config = &config}, out);
}

static sx_trainer *restored(void)
{
    sx_trainer *t = NULL;
    assert_ok(open_run(&t));
    assert_ok(sx_trainer_restore(t, "latest"));
    return t;
}

static double evaluate(void)
{
    sx_eval_result result;
    sx_trainer *t = restored();
    sx_dataset *data = tiny_data(100, 41);
    assert_ok(sx_trainer_evaluate(t, data, 0, &result));
    sx_dataset_release(data);
    sx_trainer_destroy(t);
    return result.loss;
}

static sx_status add_row(void *user, const sx_prediction *row)
{
    *(double *)user += (double)row->probability;
    return SX_OK;
}

static double predict(void)
{
    double sum = 0;
    sx_trainer *t = restored();
    sx_dataset *data = tiny_data(100, 41);
    assert_ok(sx_trainer_predict(t, data, 0, add_row, &sum));
    sx_dataset_release(data);
    sx_trainer_destroy(t);
    return sum;
}

static double export(void)
{
    char *dir = NULL;
    sx_trainer *t = restored();
    assert_ok(sx_trainer_export(t, scratch("model"), NULL, NULL, &dir));
    char *text = NULL, path[700];
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/saved_model.pb", dir);
    assert_ok(sx_file_read(path, 1 << 20, &text, &size));
    sx_free(text);
    sx_text_free(dir);
    sx_trainer_destroy(t);
    return (double)size;
}

static void assert_warns(const char *file, const char *what)
{
    if (strstr(warnings, file) == NULL || strstr(warnings, what) == NULL) {
        fail_msg("warnings lack \"%s\" or \"%s\": %s", file, what, warnings);
    }
}

static void test_train_backup__each_file_is_read_from_its_copy(void **state)
{
    (void)state;
    double (*const uses[])(void) = {evaluate, predict, export};
    double expected[3];
    train_until(FIRST_STEPS);
    for (int k = 0; k < 3; k++) {
        expected[k] = uses[k]();
        assert_string_equal(warnings, "");
    }
    uint64_t hash = train_until(ALL_STEPS);
    for (int i = 0; i < N_FILES; i++) {
        for (damage how = LOST; how < N_DAMAGES; how++) {
            assert_ok(sx_run_delete(scratch("run")));
            train_until(FIRST_STEPS);
            char *whole = NULL, *hurt_text = NULL;
            size_t size = 0, hurt_size = 0;
            assert_ok(sx_file_read(path_of(files[i]), 1 << 20, &whole, &size));
            hurt(path_of(files[i]), how);
            if (how != LOST && how != HUGE_FILE) {
                assert_ok(sx_file_read(path_of(files[i]), 1 << 20, &hurt_text, &hurt_size));
            }
            for (int k = 0; k < 3; k++) {
                assert_true(uses[k]() == expected[k]);
                assert_warns(files[i], "using its copy in .backup");
            }
            if (how == LOST) { /* reading repairs nothing */
                assert_false(sx_path_exists(path_of(files[i])));
            } else if (how != HUGE_FILE) {
                assert_file(path_of(files[i]), hurt_text, hurt_size);
            }
            assert_true(train_until(ALL_STEPS) == hash);
            assert_warns(files[i], "using its copy in .backup");
            assert_warns(files[i], "has been restored from its copy");
            assert_file(path_of(files[i]), whole, size);
            sx_free(whole);
            sx_free(hurt_text);
        }
    }
}

/* A damaged copy is nobody's trouble, and is made anew by the next training. */
static void test_train_backup__copies_are_repaired(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        for (damage how = LOST; how < N_DAMAGES; how++) {
            train_until(FIRST_STEPS);
            hurt(copy_of(files[i]), how);
            evaluate();
            assert_string_equal(warnings, "");
            train_until(ALL_STEPS);
            char *whole = NULL;
            size_t size = 0;
            assert_ok(sx_file_read(path_of(files[i]), 1 << 20, &whole, &size));
            assert_file(copy_of(files[i]), whole, size);
            sx_free(whole);
            assert_ok(sx_run_delete(scratch("run")));
            assert_false(sx_path_exists(scratch("run/.backup")));
        }
    }
}

static void test_train_backup__says_what_is_left_when_both_are_gone(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILES; i++) {
        for (damage how = LOST; how < N_DAMAGES; how++) {
            sx_trainer *t = NULL;
            char left[700];
            train_until(FIRST_STEPS);
            hurt(path_of(files[i]), how);
            hurt(copy_of(files[i]), how);
            sx_dataset *data = tiny_data(0, EXAMPLES);
            sx_run_config config = quiet_config();
            sx_status status = sx_trainer_create(
                &(sx_trainer_options){.config = &config, .def = &tiny, .data = data}, &t);
            sx_dataset_release(data);
            assert_non_null(strstr(sx_status_message(status), files[i]));
            snprintf(left, sizeof(left), "--warm-start-from %s", path_of("model.ckpt-5"));
            assert_non_null(strstr(sx_status_message(status), "2 checkpoints"));
            assert_error(status,
                         how != LOST ? SX_DATA_LOSS
                         : i == 0    ? SX_FAILED_PRECONDITION
                                     : SX_NOT_FOUND,
                         left);
            config.fresh = true; /* begins again all the same */
            t = open_tiny(&config);
            assert_ok(fit_tiny(t, 1, false));
            sx_trainer_destroy(t);
            evaluate();
            assert_string_equal(warnings, "");
            assert_ok(sx_run_delete(scratch("run")));
        }
    }
}

static void ignore(void *user, const char *text)
{
    (void)text;
    (*(int *)user)++;
}

/* Whichever byte of sextant.json changes, the run is read as it was written. */
static void test_train_backup__no_flipped_byte_is_misread(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    int noticed = 0;
    sx_arena arena;
    sx_run_info whole, info;
    train_until(1);
    sx_arena_init(&arena, 0);
    assert_ok(sx_run_read(scratch("run"), &arena, ignore, &noticed, &whole));
    assert_int_equal(noticed, 0);
    assert_ok(sx_file_read(path_of("sextant.json"), 1 << 20, &text, &size));
    for (size_t i = 0; i < size; i++) {
        text[i] ^= 1;
        write_file(path_of("sextant.json"), text, size);
        text[i] ^= 1;
        assert_ok(sx_run_read(scratch("run"), &arena, ignore, &noticed, &info));
        assert_int_equal(info.seed, whole.seed);
        assert_int_equal(info.execution_batch, whole.execution_batch);
        assert_string_equal(info.model, whole.model);
        assert_true(sx_type_equal(&info.inputs.items[0].type, &whole.inputs.items[0].type));
        for (int mode = 0; mode < 3; mode++) {
            assert_string_equal(info.graph_crc32c[mode], whole.graph_crc32c[mode]);
        }
    }
    assert_true(noticed > (int)size * 9 / 10); /* all but white space */
    sx_free(text);
    sx_arena_deinit(&arena);
}

/* A run that was written without checksums and copies gets them when it is resumed. */
static void test_train_backup__older_runs_get_copies(void **state)
{
    (void)state;
    train_until(FIRST_STEPS);
    json_t *json = json_load_file(path_of("sextant.json"), 0, NULL);
    json_object_del(json, "checksums");
    json_object_del(json, SX_JSON_SEAL);
    assert_int_equal(json_dump_file(json, path_of("sextant.json"), 0), 0);
    json_decref(json);
    assert_ok(sx_dir_remove(scratch("run/.backup")));
    evaluate();
    assert_string_equal(warnings, "");
    assert_false(sx_path_exists(scratch("run/.backup")));
    train_until(ALL_STEPS);
    hurt(path_of("graphs/eval.graph"), FLIPPED);
    hurt(path_of("sextant.json"), LOST);
    evaluate();
    assert_warns("eval.graph", "using its copy");
    assert_warns("sextant.json", "using its copy");
}

/* ---- history.json ---- */

static void train_and_evaluate(int64_t steps)
{
    sx_run_config config = quiet_config();
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, steps, true));
    sx_trainer_destroy(t);
}

static void test_train_backup__a_damaged_history_is_read_from_its_copy(void **state)
{
    (void)state;
    for (damage how = LOST; how < N_DAMAGES; how++) {
        sx_history h;
        train_and_evaluate(2 * STEPS_PER_EPOCH);
        hurt(path_of("history.json"), how);
        sx_trainer *t = NULL;
        assert_ok(open_run(&t));
        assert_ok(sx_trainer_restore(t, "best"));
        sx_trainer_destroy(t);
        assert_warns("history.json", "using its copy");
        train_and_evaluate(2 * STEPS_PER_EPOCH); /* nothing to train, but the file is restored */
        assert_warns("history.json", "has been restored from its copy");
        train_and_evaluate(3 * STEPS_PER_EPOCH);
        assert_string_equal(warnings, "");
        sx_history_init(&h);
        assert_ok(sx_history_load(&h, scratch("run"), NULL, NULL));
        assert_int_equal(h.count, 3);
        sx_history_deinit(&h);
        assert_ok(sx_run_delete(scratch("run")));
    }
}

/* Without both, the run is usable, its best checkpoint too, and what is left of the file stays. */
static void test_train_backup__a_lost_history_blocks_nothing(void **state)
{
    (void)state;
    for (damage how = HALVED; how < HUGE_FILE; how++) {
        char *left = NULL;
        size_t size = 0;
        sx_history h;
        train_and_evaluate(2 * STEPS_PER_EPOCH);
        hurt(path_of("history.json"), how);
        hurt(copy_of("history.json"), how);
        assert_ok(sx_file_read(path_of("history.json"), 1 << 20, &left, &size));
        evaluate();
        assert_warns("history.json", "continuing without the history");
        sx_trainer *t = NULL;
        assert_ok(open_run(&t));
        assert_ok(sx_trainer_restore(t, "best"));
        sx_trainer_destroy(t);
        assert_false(sx_path_exists(path_of("history.json.damaged")));
        train_and_evaluate(3 * STEPS_PER_EPOCH);
        assert_file(path_of("history.json.damaged"), left, size);
        sx_free(left);
        sx_history_init(&h);
        assert_ok(sx_history_load(&h, scratch("run"), NULL, NULL));
        assert_int_equal(h.count, 2); /* the evaluation at the checkpoint, and a new one */
        sx_history_deinit(&h);
        assert_ok(sx_dir_remove(scratch("run")));
    }
}

/* ---- Short of memory ---- */

static sx_status check_text(void *user, const char *text, size_t size)
{
    (void)user;
    return size == 5 && memcmp(text, "whole", 5) == 0 ? SX_OK
                                                      : sx_error(SX_DATA_LOSS, "not the text");
}

static sx_status read_and_repair(void *user)
{
    int warned = 0;
    const sx_backup_file file = {.dir = scratch("run"),
                                 .name = "history.json",
                                 .max_bytes = 100,
                                 .check = check_text,
                                 .warn = ignore,
                                 .warn_user = &warned};
    char *text = NULL;
    size_t size = 0;
    (void)user;
    write_file(path_of("history.json"), "damaged", 7);
    SX_TRY(sx_backup_read(&file, &text, &size));
    sx_free(text);
    return sx_backup_repair(&file);
}

/* A copy that cannot be read for lack of memory is not lost. */
static void test_train_backup__no_memory_is_not_damage(void **state)
{
    (void)state;
    assert_ok(sx_dir_create(path_of(".backup")));
    write_file(copy_of("history.json"), "whole", 5);
    assert_in_range(sx_torture_some(read_and_repair, NULL), 15, 200);
    assert_file(path_of("history.json"), "whole", 5);
}

static const struct CMUnitTest tests[] = {
    in_memory_test(test_train_backup__each_file_is_read_from_its_copy),
    in_memory_test(test_train_backup__copies_are_repaired),
    in_memory_test(test_train_backup__says_what_is_left_when_both_are_gone),
    in_memory_test(test_train_backup__no_flipped_byte_is_misread),
    in_memory_test(test_train_backup__older_runs_get_copies),
    in_memory_test(test_train_backup__a_damaged_history_is_read_from_its_copy),
    in_memory_test(test_train_backup__a_lost_history_blocks_nothing),
    in_memory_test(test_train_backup__no_memory_is_not_damage),
};
SX_TEST_MAIN(tests)
