/* The run directory: what is kept, what is trusted, whose it is, and what survives a restart. */
#include "run.h"

#include "io/dir_lock.h"
#include "train/history.h"

static char text[4096];

/* "0 3 6": the steps of the checkpoints in a directory. */
static const char *steps_in(const char *dir)
{
    sx_paths names = {0};
    text[0] = '\0';
    assert_ok(sx_dir_list(dir, &names));
    for (int step = 0; step < 100; step++) {
        char name[64];
        snprintf(name, sizeof(name), "model.ckpt-%d.index", step);
        for (size_t i = 0; i < names.count; i++) {
            if (strcmp(names.items[i], name) == 0) {
                snprintf(text + strlen(text), 16, "%s%d", text[0] != '\0' ? " " : "", step);
            }
        }
    }
    sx_paths_deinit(&names);
    return text;
}

static void train_to(const char *dir, int64_t steps, int64_t every, bool evaluate, seen *s)
{
    sx_run_config config = tiny_config(dir, s);
    config.save_checkpoints_secs = every > 0 ? 0 : SX_NEVER;
    config.save_checkpoints_steps = every;
    config.keep_checkpoint_max = 3;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, steps, evaluate));
    sx_trainer_destroy(t);
}

static void test_train_run__saves_on_cadence_and_keeps_so_many(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 2, 3, false, &s);
    assert_string_equal(steps_in(dir), "0 2"); /* the start, and the end */
    train_to(dir, 13, 3, false, &s);
    assert_string_equal(steps_in(dir), "9 12 13");
    assert_int_equal(s.count[SX_EVENT_CHECKPOINT], 7);
}

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int c = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    fputc(c ^ 0x40, file);
    assert_int_equal(fclose(file), 0);
}

static void test_train_run__falls_back_from_a_broken_checkpoint(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 9, 3, false, &s);
    sx_run_config config = tiny_config(dir, &s);
    sx_trainer *t = open_tiny(&config);
    assert_ok(sx_trainer_restore(t, NULL));
    sx_trainer_destroy(t);
    flip_byte(scratch("run/model.ckpt-9.data-00000-of-00001"), 100);
    t = open_tiny(&config);
    assert_error(sx_trainer_restore(t, "latest"), SX_DATA_LOSS, "model.ckpt-9");
    assert_error(sx_trainer_restore(t, NULL), SX_DATA_LOSS,
                 "steps with a whole checkpoint: 3, 6; choose one of them");
    assert_ok(sx_trainer_restore(t, "6"));
    assert_int_equal(sx_trainer_step(t), 6);
    assert_error(sx_trainer_restore(t, "9"), SX_DATA_LOSS, "model.ckpt-9");
    assert_error(sx_trainer_restore(t, "4"), SX_NOT_FOUND,
                 "no checkpoint for step 4; available: 3, 6, 9");
    assert_error(sx_trainer_restore(t, "newest"), SX_INVALID_ARGUMENT, "latest, best, or a step");
    assert_error(sx_trainer_restore(t, "best"), SX_NOT_FOUND, "has not been evaluated");
    sx_trainer_destroy(t);
    train_to(dir, 9, 3, false, &s); /* trains the lost steps again, over the broken one */
    assert_non_null(strstr(s.warning, "model.ckpt-9"));
    assert_non_null(strstr(s.warning, "using step 6 instead of 9"));
    t = open_tiny(&config);
    assert_ok(sx_trainer_restore(t, "9"));
    sx_trainer_destroy(t);
}

static void test_train_run__says_when_every_checkpoint_is_broken(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 2, 0, false, &s);
    flip_byte(scratch("run/model.ckpt-0.data-00000-of-00001"), 100);
    flip_byte(scratch("run/model.ckpt-2.data-00000-of-00001"), 100);
    sx_run_config config = tiny_config(dir, &s);
    sx_trainer *t = open_tiny(&config);
    assert_error(fit_tiny(t, 4, false), SX_DATA_LOSS, "all 2 checkpoints are broken");
    sx_trainer_destroy(t);
}

/* ---- Whose directory it is ---- */

static sx_status open_with(const char *dir, const char *param, const char *value, bool fresh)
{
    sx_trainer *t = NULL;
    sx_params *params = NULL;
    sx_run_config config = tiny_config(dir, NULL);
    config.fresh = fresh;
    assert_ok(sx_params_create(&params));
    if (param != NULL) {
        assert_ok(sx_params_set(params, param, value));
    }
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_trainer_options options = {
        .config = &config, .def = &tiny, .params = params, .data = data};
    sx_status status = sx_trainer_create(&options, &t);
    sx_dataset_release(data);
    sx_params_destroy(params);
    sx_trainer_destroy(t);
    return status;
}

static void test_train_run__refuses_another_models_directory(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 2, 0, false, &s);
    assert_error(open_with(dir, "hidden", "9", false), SX_FAILED_PRECONDITION,
                 "variable \"dense/kernel\" is float32[6,8] there, but float32[6,9] in this model");
    assert_ok(open_with(dir, "hidden", "8", false));
    assert_error(open_with(dir, "hiden", "8", false), SX_INVALID_ARGUMENT,
                 "no parameter \"hiden\"");
    write_file(scratch("run/mine.txt"), "x", 1);
}

/* What was there goes when the new run begins, not before; what is not the run's stays. */
static void test_train_run__fresh_deletes_when_it_begins(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 2, 0, false, &s);
    write_file(scratch("run/mine.txt"), "x", 1);
    assert_ok(open_with(dir, "hidden", "9", true));
    assert_true(sx_run_exists(dir));
    assert_string_equal(steps_in(dir), "0 2");

    sx_run_config config = tiny_config(dir, &s);
    config.fresh = true;
    sx_trainer *t = open_tiny(&config);
    static const float wide[2][FEATURES + 1];
    static const int64_t labels[2];
    sx_dataset *misfit = NULL;
    assert_ok(sx_dataset_from_tensors(
        2, (const char *[]){"features", "label"},
        (const sx_tensor[]){{sx_type_of(SX_F32, 2, FEATURES + 1), (void *)wide},
                            {sx_type_of(SX_I64, 2), (void *)labels}},
        NULL, NULL, &misfit));
    assert_error(sx_trainer_fit(t, &(sx_fit_request){.train = misfit}), SX_INVALID_ARGUMENT,
                 "training data");
    sx_dataset_release(misfit);
    assert_string_equal(steps_in(dir), "0 2");
    assert_ok(fit_tiny(t, 1, false));
    assert_false(s.resumed);
    assert_string_equal(steps_in(dir), "0 1");
    assert_ok(fit_tiny(t, 3, false));
    assert_string_equal(steps_in(dir), "0 1 3");
    sx_trainer_destroy(t);
    assert_true(sx_path_exists(scratch("run/mine.txt")));
}

static void test_train_run__one_trains_at_a_time(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    int lock = SX_NO_LOCK;
    train_to(dir, 2, 0, false, &s);
    assert_ok(sx_dir_lock(dir, &lock));
    for (int fresh = 0; fresh <= 1; fresh++) {
        sx_run_config config = tiny_config(dir, &s);
        config.fresh = fresh;
        sx_trainer *t = open_tiny(&config);
        assert_error(fit_tiny(t, 3, false), SX_FAILED_PRECONDITION, "is in use");
        sx_trainer_destroy(t);
        assert_string_equal(steps_in(dir), "0 2");
    }
    sx_dir_unlock(lock);
    train_to(dir, 3, 0, false, &s);
}

static void test_train_run__refuses_foreign_checkpoints(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 2, 0, false, &s);
    assert_int_equal(unlink(scratch("run/sextant.json")), 0);
    assert_int_equal(unlink(scratch("run/.backup/sextant.json")), 0);
    assert_error(open_with(dir, NULL, NULL, false), SX_FAILED_PRECONDITION,
                 "contains 2 checkpoints (model.ckpt-2), but sextant.json and its copy in .backup "
                 "are missing");
}

static void test_train_run__needs_no_model_once_it_is_there(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 5, 0, false, &s);
    sx_run_config config = tiny_config(dir, NULL);
    sx_trainer *t = NULL;
    assert_ok(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t));
    const sx_run_info *info = sx_trainer_info(t);
    assert_string_equal(info->model, "tiny");
    assert_int_equal(info->seed, 7);
    assert_int_equal(info->records, EXAMPLES);
    assert_int_equal(info->inputs.items[0].type.dims[1], FEATURES);
    assert_false(info->has_preprocess);
    assert_ok(fit_tiny(t, 8, false));
    uint64_t hash = hash_variables(t);
    sx_trainer_destroy(t);
    config.model_dir = NULL;
    t = open_tiny(&config);
    assert_ok(fit_tiny(t, 8, false));
    assert_true(hash_variables(t) == hash);
    sx_trainer_destroy(t);
    config.model_dir = scratch("nothing");
    assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t), SX_NOT_FOUND,
                 "is not a run directory");
}

/* Replaces a graph in a run without checksums and copies, as other programs may write it. */
static void write_foreign_graph(const char *file, const char *graph, size_t size)
{
    const char *info = scratch("run/sextant.json");
    json_t *json = json_load_file(info, 0, NULL);
    assert_non_null(json);
    json_object_del(json, "checksums");
    json_object_del(json, "crc32c");
    assert_int_equal(json_dump_file(json, info, 0), 0);
    json_decref(json);
    assert_ok(sx_dir_remove(scratch("run/.backup")));
    write_file(scratch(file), graph, size);
}

/* A folder from elsewhere whose programs take more than a run feeds. */
static void test_train_run__refuses_graphs_with_other_inputs(void **state)
{
    (void)state;
    static const struct {
        const char *file, *inputs, *expected;
    } rows[] = {
        {"run/graphs/eval.graph",
         "input %3 float32[N,6] \"x\"\ninput %4 float32[N,6] \"y\"\ninput %5 float32[N] \"z\"\n",
         "eval.graph: unexpected input \"x\""},
        {"run/graphs/train.graph", "input %3 float32[N,6] \"extra\"\n",
         "train.graph: unexpected input \"extra\""},
        {"run/graphs/predict.graph", "", "predict.graph: unexpected input \"labels\""},
        {"run/graphs/eval.graph", "input %3 uint32[2000] \"_seed\"\n",
         "input \"_seed\" is uint32[2000], expected uint32[2]"},
    };
    char dir[600], graph[512];
    snprintf(dir, sizeof(dir), "%s/run", scratch_dir);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        seen s = {0};
        sx_trainer *t = NULL;
        sx_run_config config = tiny_config(dir, NULL);
        train_to(dir, 1, 0, false, &s);
        int size = snprintf(graph, sizeof(graph),
                            "sextant-graph 1\ninput %%1 float32[N,6] \"features\"\n"
                            "input %%2 int32[N] \"labels\"\n%soutput \"loss\" %%1\n",
                            rows[i].inputs);
        write_foreign_graph(rows[i].file, graph, (size_t)size);
        assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t),
                     SX_INVALID_ARGUMENT, rows[i].expected);
        assert_ok(sx_run_delete(dir));
    }
    train_to(dir, 1, 0, false, &(seen){0});
    static const char wide[] = "sextant-graph 1\ninput %1 float32[N,600] \"features\"\n"
                               "output \"probabilities\" %1\n";
    sx_trainer *t = NULL;
    sx_run_config config = tiny_config(dir, NULL);
    write_foreign_graph("run/graphs/predict.graph", wide, sizeof(wide) - 1);
    assert_error(sx_trainer_create(&(sx_trainer_options){.config = &config}, &t),
                 SX_INVALID_ARGUMENT,
                 "input \"features\" is float32[N,600], expected float32[N,6]");
}

/* ---- Other circumstances ---- */

static void test_train_run__says_when_it_cannot_resume_exactly(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 5, 0, false, &s);
    sx_run_config config = tiny_config(dir, &s);
    config.train_batch_size = 4;
    config.require_exact = true;
    sx_trainer *t = open_tiny(&config);
    assert_error(fit_tiny(t, 8, false), SX_FAILED_PRECONDITION, "a different pipeline");
    sx_trainer_destroy(t);
    config.require_exact = false;
    t = open_tiny(&config);
    assert_ok(fit_tiny(t, 8, false));
    assert_non_null(strstr(s.warning, "cannot resume exactly"));
    sx_trainer_destroy(t);
}

static void test_train_run__says_when_the_numerics_changed(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 5, 0, false, &s);
    sx_run_config config = tiny_config(dir, &s);
    config.device = "cpu";
    config.require_exact = true;
    sx_trainer *t = open_tiny(&config);
    assert_error(fit_tiny(t, 8, false), SX_FAILED_PRECONDITION, "the checkpoint was computed with");
    sx_trainer_destroy(t);
    config.require_exact = false;
    t = open_tiny(&config);
    assert_ok(fit_tiny(t, 8, false));
    assert_non_null(strstr(s.warning, "results may differ in the last bits"));
    sx_trainer_destroy(t);
}

static void test_train_run__saves_nothing_that_is_not_finite(void **state)
{
    (void)state;
    float weights[FEATURES * 8] = {INFINITY};
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 2, false));
    sx_session *session = sx_trainer_session(t);
    int kernel = sx_session_find_variable(session, "dense/kernel");
    assert_ok(sx_session_write_variable(session, kernel, weights));
    assert_error(sx_trainer_save_as(t, scratch("copy")), SX_DATA_LOSS,
                 "variable \"dense/kernel\" has a non-finite value");
    assert_string_equal(steps_in(scratch("copy")), "");
    sx_trainer_destroy(t);
}

static void stop_in_evaluation(void *user, const sx_train_event *e)
{
    seen *s = user;
    see(s, e);
    s->stop = s->stop || e->kind == SX_EVENT_EVAL_BEGIN;
}

/* An evaluation that was cut short is made up for, whether or not more training follows. */
static void test_train_run__stops_while_evaluating(void **state)
{
    (void)state;
    for (int64_t steps = STEPS_PER_EPOCH; steps <= 2 * STEPS_PER_EPOCH; steps += STEPS_PER_EPOCH) {
        seen s = {0};
        char *dir = scratch("run");
        sx_run_config config = tiny_config(dir, &s);
        config.observer = stop_in_evaluation;
        sx_trainer *t = open_tiny(&config);
        assert_error(fit_tiny(t, steps, true), SX_CANCELLED, "stopped at step 7, saved as ");
        assert_string_equal(s.end, "stopped");
        sx_trainer_destroy(t);
        config.observer = see;
        s = (seen){0};
        t = open_tiny(&config);
        assert_ok(fit_tiny(t, steps, true));
        assert_int_equal(s.count[SX_EVENT_EVAL], steps / STEPS_PER_EPOCH);
        sx_trainer_destroy(t);
        assert_ok(sx_run_delete(dir));
    }
}

static void test_train_run__checks_its_configuration(void **state)
{
    (void)state;
    sx_trainer *t = NULL;
    sx_run_config config = tiny_config(NULL, NULL);
    const sx_trainer_options options = {.config = &config, .def = &tiny};
    config.save_checkpoints_secs = 60;
    config.save_checkpoints_steps = 10;
    assert_error(sx_trainer_create(&options, &t), SX_INVALID_ARGUMENT, "cannot be combined");
    config.save_checkpoints_steps = 0;
    config.train_batch_size = -3;
    assert_error(sx_trainer_create(&options, &t), SX_INVALID_ARGUMENT, "train_batch_size is -3");
    config.train_batch_size = INT64_MAX;
    assert_error(sx_trainer_create(&options, &t), SX_INVALID_ARGUMENT, "train_batch_size is 9223");
    config.train_batch_size = 0;
    config.struct_size = 0;
    assert_error(sx_trainer_create(&options, &t), SX_INVALID_ARGUMENT,
                 "sx_run_config has struct_size 0");
}

/* ---- Evaluations ---- */

static void test_train_run__keeps_the_best(void **state)
{
    (void)state;
    seen s = {0};
    char *dir = scratch("run");
    train_to(dir, 4 * STEPS_PER_EPOCH, 0, true, &s);
    assert_int_equal(s.count[SX_EVENT_EVAL], 4);
    sx_history h;
    sx_history_init(&h);
    assert_ok(sx_history_load(&h, dir, NULL, NULL));
    assert_int_equal(h.count, 4);
    double lowest = INFINITY;
    for (size_t i = 0; i < h.count; i++) {
        assert_true(h.items[i].evaluated);
        assert_int_equal(h.items[i].eval.examples, 41);
        assert_string_equal(h.items[i].eval.metrics[0].name, "accuracy");
        assert_string_equal(h.items[i].metrics[1].name, "accuracy");
        lowest = fmin(lowest, h.items[i].eval.loss);
    }
    assert_true(h.best_loss == lowest);
    int64_t best = h.best_step;
    sx_history_deinit(&h);

    sx_run_config config = tiny_config(dir, &s);
    sx_trainer *t = open_tiny(&config);
    assert_ok(sx_trainer_restore(t, "best"));
    assert_int_equal(sx_trainer_step(t), best);
    sx_eval_result result;
    sx_dataset *data = tiny_data(100, 41);
    assert_ok(sx_trainer_evaluate(t, data, 0, &result));
    assert_true(result.loss == lowest);
    sx_dataset_release(data);
    sx_trainer_destroy(t);
}

/* A worse evaluation after a restart does not become the best. */
static void test_train_run__best_survives_restarts(void **state)
{
    (void)state;
    sx_history h;
    bool best;
    char *dir = scratch("run");
    assert_ok(sx_dir_create(dir));
    sx_history_init(&h);
    assert_ok(sx_history_put(&h, &(sx_eval_result){.step = 5, .loss = 0.5}, &best));
    assert_true(best);
    assert_ok(sx_history_save(&h, dir));
    sx_history_deinit(&h);
    assert_ok(sx_history_load(&h, dir, NULL, NULL));
    assert_ok(sx_history_put(&h, &(sx_eval_result){.step = 10, .loss = 0.7}, &best));
    assert_false(best);
    assert_ok(sx_history_put(&h, &(sx_eval_result){.step = 15, .loss = NAN}, &best));
    assert_false(best);
    assert_int_equal(h.best_step, 5);
    assert_ok(sx_history_save(&h, dir)); /* NaN and all */
    sx_history_deinit(&h);
    assert_ok(sx_history_load(&h, dir, NULL, NULL));
    assert_int_equal(h.count, 3);
    sx_history_deinit(&h);
    write_file(scratch("run/history.json"), "{", 1);
    write_file(scratch("run/.backup/history.json"), "", 0);
    assert_error(sx_history_load(&h, dir, NULL, NULL), SX_DATA_LOSS, "history.json: line 1");
    assert_int_equal(h.count, 0);
    sx_history_deinit(&h);
}

/* Of equal losses the first is the best: its checkpoint is there already. */
static void test_train_run__the_first_of_equal_losses_is_the_best(void **state)
{
    (void)state;
    static const struct {
        int64_t step;
        double loss;
        bool best;
    } rows[] = {
        {5, 0.5, true}, {10, 0.5, false}, {15, 0.25, true}, {20, 0.25, false}, {15, 0.25, true}};
    sx_history h;
    sx_history_init(&h);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool best;
        assert_ok(sx_history_put(&h, &(sx_eval_result){.step = rows[i].step, .loss = rows[i].loss},
                                 &best));
        assert_int_equal(best, rows[i].best);
    }
    assert_int_equal(h.best_step, 15);
    sx_history_deinit(&h);
}

static int64_t stopped_at(const char *dir, int64_t kill_after, sx_early_stopping *stopping)
{
    seen s = {.stop_at = kill_after};
    sx_run_config config = tiny_config(dir, &s);
    config.steps_per_eval = 2;
    sx_callback callback = sx_early_stopping_callback(stopping);
    sx_trainer *t = open_tiny(&config);
    sx_dataset *train = tiny_data(0, EXAMPLES), *eval = tiny_data(100, 41);
    const sx_fit_request request = {
        .train = train, .eval = eval, .max_steps = 60, .callbacks = &callback, .n_callbacks = 1};
    sx_status status = sx_trainer_fit(t, &request);
    assert_int_equal(sx_status_code(status), kill_after > 0 ? SX_CANCELLED : SX_CODE_OK);
    sx_status_free(status);
    int64_t step = sx_trainer_step(t);
    sx_dataset_release(train);
    sx_dataset_release(eval);
    sx_trainer_destroy(t);
    return step;
}

/* A controlling callback sees what it would have seen without the restarts. */
static void test_train_run__callbacks_resume(void **state)
{
    (void)state;
    sx_early_stopping straight = {.monitor = "loss", .patience = 3, .min_delta = 0.05};
    int64_t expected = stopped_at(scratch("straight"), 0, &straight);
    assert_in_range(expected, 8, 58);
    for (int64_t at = expected - 4; at < expected; at++) {
        sx_early_stopping first = straight, second = straight;
        memset(&first.state, 0, sizeof(first.state));
        memset(&second.state, 0, sizeof(second.state));
        char *dir = scratch("run");
        stopped_at(dir, at, &first);
        assert_int_equal(stopped_at(dir, 0, &second), expected);
        assert_ok(sx_run_delete(dir));
    }
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_run__saves_on_cadence_and_keeps_so_many),
    scratch_test(test_train_run__falls_back_from_a_broken_checkpoint),
    scratch_test(test_train_run__says_when_every_checkpoint_is_broken),
    scratch_test(test_train_run__refuses_another_models_directory),
    scratch_test(test_train_run__fresh_deletes_when_it_begins),
    scratch_test(test_train_run__one_trains_at_a_time),
    scratch_test(test_train_run__refuses_foreign_checkpoints),
    scratch_test(test_train_run__needs_no_model_once_it_is_there),
    scratch_test(test_train_run__refuses_graphs_with_other_inputs),
    scratch_test(test_train_run__says_when_it_cannot_resume_exactly),
    scratch_test(test_train_run__says_when_the_numerics_changed),
    scratch_test(test_train_run__saves_nothing_that_is_not_finite),
    scratch_test(test_train_run__stops_while_evaluating),
    scratch_test(test_train_run__checks_its_configuration),
    scratch_test(test_train_run__keeps_the_best),
    scratch_test(test_train_run__best_survives_restarts),
    cmocka_unit_test(test_train_run__the_first_of_equal_losses_is_the_best),
    scratch_test(test_train_run__callbacks_resume),
};
SX_TEST_MAIN(tests)
