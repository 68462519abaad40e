/* history.json: training metrics and evaluations, under Keras' names, whatever stops the run. */
#include "run.h"

#include "train/history.h"

static void load(sx_history *h, const char *dir)
{
    sx_history_init(h);
    assert_ok(sx_history_load(h, dir, NULL, NULL));
}

/* Trains in one directory until `steps`; stops when `stop_at` has been seen, 0 = never. */
static void train(const char *dir, int64_t steps, int64_t stop_at, bool evaluate)
{
    seen s = {.stop_at = stop_at};
    sx_run_config config = tiny_config(dir, &s);
    config.steps_per_eval = 5;
    sx_trainer *t = open_tiny(&config);
    sx_status status = fit_tiny(t, steps, evaluate);
    assert_int_equal(sx_status_code(status), stop_at > 0 ? SX_CANCELLED : SX_CODE_OK);
    sx_status_free(status);
    sx_trainer_destroy(t);
}

/* The means that the observers of each epoch saw. */
typedef struct epochs {
    int n;
    double loss[8], accuracy[8];
} epochs;

static void keep_epoch(void *user, const sx_train_event *e)
{
    epochs *all = user;
    if (e->kind == SX_EVENT_EPOCH) {
        assert_string_equal(e->metrics[0].name, "loss");
        assert_string_equal(e->metrics[1].name, "accuracy");
        all->loss[all->n] = e->metrics[0].value;
        all->accuracy[all->n++] = e->metrics[1].value;
    }
}

static void test_train_history__has_epochs_without_evaluation(void **state)
{
    (void)state;
    enum { STEPS = 2 * STEPS_PER_EPOCH + 3 };
    static const int64_t steps[] = {STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH, STEPS};
    sx_history h;
    epochs all = {0};
    sx_run_config config = tiny_config(scratch("run"), NULL);
    config.observer = keep_epoch;
    config.observer_user = &all;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, STEPS, false));
    sx_trainer_destroy(t);
    assert_int_equal(all.n, 2);
    load(&h, scratch("run"));
    assert_int_equal(h.count, 3);
    assert_int_equal(h.best_step, -1);
    for (int i = 0; i < 3; i++) {
        const sx_history_entry *e = &h.items[i];
        assert_int_equal(e->step, steps[i]);
        assert_int_equal(e->epoch, i + 1);
        assert_false(e->evaluated);
        assert_null(sx_history_find(&h, e->step));
        assert_int_equal(e->n_metrics, 2);
        assert_string_equal(e->metrics[0].name, "loss");
        assert_string_equal(e->metrics[1].name, "accuracy");
        if (i < all.n) {
            assert_true(e->metrics[0].value == all.loss[i]);
            assert_true(e->metrics[1].value == all.accuracy[i]);
        }
    }
    sx_history_deinit(&h);
}

static void test_train_history__has_both_where_the_run_is_evaluated(void **state)
{
    (void)state;
    static const struct {
        int64_t step, epoch;
        bool evaluated;
    } rows[] = {{5, 1, true},   {7, 1, false}, {10, 2, true},
                {14, 2, false}, {15, 3, true}, {17, 3, true}};
    sx_history h;
    train(scratch("run"), 17, 0, true);
    load(&h, scratch("run"));
    assert_int_equal(h.count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(h.items[i].step, rows[i].step);
        assert_int_equal(h.items[i].epoch, rows[i].epoch);
        assert_int_equal(h.items[i].evaluated, rows[i].evaluated);
        assert_int_equal(h.items[i].n_metrics, 2);
    }
    sx_history_deinit(&h);
}

static void assert_same_history(const char *a, const char *b)
{
    char *text = NULL, path[700];
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/history.json", a);
    assert_ok(sx_file_read(path, 1 << 20, &text, &size));
    snprintf(path, sizeof(path), "%s/history.json", b);
    assert_file(path, text, size);
    sx_free(text);
}

/* Stopped after each step in turn: what is resumed writes the history of a run left alone. */
static void test_train_history__is_the_same_after_a_stop(void **state)
{
    (void)state;
    char straight[600], dir[600];
    snprintf(straight, sizeof(straight), "%s/straight", scratch_dir);
    snprintf(dir, sizeof(dir), "%s/run", scratch_dir);
    for (int evaluate = 0; evaluate <= 1; evaluate++) {
        train(straight, 17, 0, evaluate);
        for (int64_t at = 1; at < 17; at++) {
            train(dir, 17, at, evaluate);
            train(dir, 17, 0, evaluate);
            assert_same_history(straight, dir);
            assert_ok(sx_run_delete(dir));
        }
        assert_ok(sx_run_delete(straight));
    }
}

/* A run that falls back to an older checkpoint trains its steps again: their entries go first. */
static void test_train_history__entries_after_the_checkpoint_are_dropped(void **state)
{
    (void)state;
    char straight[600], dir[600], index[700];
    snprintf(straight, sizeof(straight), "%s/straight", scratch_dir);
    snprintf(dir, sizeof(dir), "%s/run", scratch_dir);
    snprintf(index, sizeof(index), "%s/model.ckpt-15.index", dir);
    train(straight, 17, 0, true);
    train(dir, 15, 0, true);
    assert_int_equal(unlink(index), 0);
    seen s = {.stop_at = 11};
    sx_run_config config = tiny_config(dir, &s);
    sx_trainer *t = open_tiny(&config);
    sx_status status = fit_tiny(t, 17, false);
    assert_error(status, SX_CANCELLED, "stopped at step 11");
    sx_trainer_destroy(t);
    sx_history h;
    load(&h, dir);
    assert_int_equal(h.count, 3); /* 5, 7, 10 */
    assert_int_equal(h.best_step, 15);
    sx_history_deinit(&h);
    train(dir, 17, 0, true);
    assert_same_history(straight, dir);
}

/* Names that need care: a metric called like a member of an entry, numbers that are not finite. */
static void test_train_history__survives_odd_metrics(void **state)
{
    (void)state;
    const sx_metric odd[] = {{"loss", NAN}, {"step", 5}, {"mean_iou", 0.1}};
    sx_history h;
    bool best;
    char *dir = scratch("run");
    assert_ok(sx_dir_create(dir));
    sx_history_init(&h);
    assert_ok(sx_history_put_training(&h, 3, 1, odd, 3));
    assert_ok(sx_history_put(
        &h,
        &(sx_eval_result){.step = 3, .loss = INFINITY, .n_metrics = 1, .metrics = {{"step", 2}}},
        &best));
    assert_true(h.changed);
    assert_ok(sx_history_save(&h, dir));
    assert_false(h.changed);
    sx_history_deinit(&h);
    load(&h, dir);
    assert_int_equal(h.count, 1);
    assert_int_equal(h.items[0].step, 3);
    assert_int_equal(h.items[0].n_metrics, 2);
    assert_true(isnan(h.items[0].metrics[0].value));
    assert_true(h.items[0].metrics[1].value == 0.1);
    assert_true(h.items[0].evaluated);
    assert_true(isnan(h.items[0].eval.loss));
    assert_string_equal(h.items[0].eval.metrics[0].name, "step");
    assert_int_equal(h.best_step, -1);
    sx_history_deinit(&h);
}

/* However long a run is, its history stays below a limit: older entries get sparse, and neither the
 * best nor the newest is lost. */
static void test_train_history__long_runs_are_thinned(void **state)
{
    (void)state;
    enum { STEPS = 3 * SX_HISTORY_ENTRIES / 2, BEST = 333 };
    const sx_metric loss = {"loss", 0.5};
    sx_history h;
    bool is_best;
    sx_history_init(&h);
    for (int64_t step = 1; step <= STEPS; step++) {
        assert_ok(sx_history_put_training(&h, step, step, &loss, 1));
        if (step == BEST) {
            const sx_eval_result eval = {.step = step, .loss = 0.1};
            assert_ok(sx_history_put(&h, &eval, &is_best));
        }
        assert_true(h.thinned == (step > SX_HISTORY_ENTRIES));
    }
    assert_true(h.count <= SX_HISTORY_ENTRIES && h.count > SX_HISTORY_ENTRIES / 2);
    for (size_t i = 1; i < h.count; i++) {
        assert_true(h.items[i - 1].step < h.items[i].step);
    }
    assert_int_equal(h.items[h.count - 1].step, STEPS);
    assert_non_null(sx_history_find(&h, BEST));
    assert_ok(sx_dir_create(scratch("run")));
    assert_ok(sx_history_save(&h, scratch("run")));
    const size_t count = h.count;
    sx_history_deinit(&h);
    load(&h, scratch("run"));
    assert_int_equal(h.count, count);
    assert_int_equal(h.best_step, BEST);
    sx_history_deinit(&h);
}

static const struct CMUnitTest tests[] = {
    in_memory_test(test_train_history__has_epochs_without_evaluation),
    in_memory_test(test_train_history__has_both_where_the_run_is_evaluated),
    in_memory_test(test_train_history__is_the_same_after_a_stop),
    in_memory_test(test_train_history__entries_after_the_checkpoint_are_dropped),
    in_memory_test(test_train_history__long_runs_are_thinned),
    in_memory_test(test_train_history__survives_odd_metrics),
};
SX_TEST_MAIN(tests)
