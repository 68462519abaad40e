/* A run begins with the weights of another: warm_start_from. */
#include "run.h"

#include "checkpoint/bundle.h"

/* Batch norm has averages; another number of classes makes another head. */
static sx_spec normed_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_batch_norm(b, sx_dense(b, in->features, 5, .name = "body"));
    sx_value logits = sx_dense(b, x, sx_param_int(p, "classes", CLASSES), .name = "head");
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam());
}

static const sx_model_def normed =
    SX_MODEL_DEF(.name = "normed", .build = normed_build, .features = FEATURES);

/* Trains a run in `dir`; its first checkpoint is of step 0. */
static sx_status train(const char *dir, const char *from, const char *vars, const char *classes,
                       int64_t max_steps)
{
    sx_trainer *t = NULL;
    sx_params *params = NULL;
    sx_run_config config = tiny_config(dir, NULL);
    config.warm_start_from = from;
    config.vars_to_warm_start = vars;
    config.tf_random_seed = from != NULL ? 8 : 7; /* other weights without a warm start */
    assert_ok(sx_params_create(&params));
    assert_ok(sx_params_set(params, "classes", classes));
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_trainer_options options = {
        .config = &config, .def = &normed, .params = params, .data = data};
    sx_status status = sx_trainer_create(&options, &t);
    sx_dataset_release(data);
    sx_params_destroy(params);
    if (status == SX_OK) {
        status = fit_tiny(t, max_steps, false);
    }
    sx_trainer_destroy(t);
    return status;
}

/* A variable of a checkpoint, `n` numbers. */
static void read_saved(const char *prefix, const char *name, float *out, int n)
{
    sx_bundle *bundle = NULL;
    assert_ok(sx_bundle_open(prefix, &bundle));
    const sx_bundle_entry *entry = sx_bundle_find(bundle, name);
    assert_non_null(entry);
    assert_int_equal(sx_type_elems(&entry->type), n);
    assert_ok(sx_bundle_read(bundle, name, &entry->type, out));
    sx_bundle_close(bundle);
}

static bool same(const char *name, int n)
{
    float a[64], b[64];
    read_saved(scratch("a/model.ckpt-6"), name, a, n);
    read_saved(scratch("b/model.ckpt-0"), name, b, n);
    return memcmp(a, b, (size_t)n * sizeof(float)) == 0;
}

static void test_train_warm_start__takes_weights_and_averages(void **state)
{
    (void)state;
    assert_ok(train(scratch("a"), NULL, NULL, "3", 6));
    assert_ok(train(scratch("b"), scratch("a"), NULL, "3", 1));
    assert_true(same("body/kernel", 5 * FEATURES));
    assert_true(same("head/bias", CLASSES));
    assert_true(same("batch_normalization/moving_mean", 5));
    assert_false(same("body/kernel/Adam", 5 * FEATURES)); /* the optimizer begins anew */
    /* a run that is there goes on with its own */
    assert_ok(train(scratch("b"), scratch("nowhere"), NULL, "3", 2));
}

static void test_train_warm_start__takes_what_matches(void **state)
{
    (void)state;
    assert_ok(train(scratch("a"), NULL, NULL, "3", 6));
    assert_error(train(scratch("b"), scratch("a"), NULL, "4", 1), SX_FAILED_PRECONDITION,
                 "use vars_to_warm_start to exclude variables");
    assert_false(sx_path_exists(scratch("b"))); /* nothing of it was written */
    assert_ok(train(scratch("b"), scratch("a/model.ckpt-6"), "body/k", "4", 1));
    assert_true(same("body/kernel", 5 * FEATURES));
    assert_false(same("batch_normalization/moving_mean", 5));
}

static void test_train_warm_start__takes_a_saved_model(void **state)
{
    (void)state;
    sx_estimator *e = NULL;
    char *dir = NULL;
    assert_ok(train(scratch("a"), NULL, NULL, "3", 6));
    sx_run_config config = tiny_config(scratch("a"), NULL);
    assert_ok(sx_estimator_create(NULL, &config, NULL, &e));
    assert_ok(sx_estimator_export_saved_model(e, scratch("models"), &dir));
    sx_estimator_destroy(e);
    assert_ok(train(scratch("b"), dir, NULL, "3", 1));
    assert_true(same("body/kernel", 5 * FEATURES));
    assert_true(same("batch_normalization/moving_mean", 5));
    sx_text_free(dir);
}

static void test_train_warm_start__says_what_is_wrong(void **state)
{
    (void)state;
    assert_ok(train(scratch("a"), NULL, NULL, "3", 6));
    assert_error(train(scratch("b"), scratch("nowhere"), NULL, "3", 1), SX_NOT_FOUND,
                 "nowhere: not a run, SavedModel or complete checkpoint");
    assert_error(train(scratch("b"), scratch("a"), "kernel", "3", 1), SX_INVALID_ARGUMENT,
                 "matches no variable");
    assert_error(train(scratch("b"), scratch("a"), "(", "3", 1), SX_INVALID_ARGUMENT,
                 "vars_to_warm_start is \"(\"");
    assert_error(train(scratch("b"), NULL, "body", "3", 1), SX_INVALID_ARGUMENT,
                 "vars_to_warm_start requires warm_start_from");
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_warm_start__takes_weights_and_averages),
    scratch_test(test_train_warm_start__takes_what_matches),
    scratch_test(test_train_warm_start__takes_a_saved_model),
    scratch_test(test_train_warm_start__says_what_is_wrong),
};
SX_TEST_MAIN(tests)
