/* Evaluation and prediction: every example once, in order, the same bits at any batch size. */
#include "run.h"

enum { MANY = 101 };

static sx_trainer *trained(int64_t eval_batch, const char *device)
{
    sx_run_config config = tiny_config(NULL, NULL);
    config.device = device;
    config.threads = 2;
    config.eval_batch_size = eval_batch;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 10, false));
    return t;
}

static void assert_results_equal_at_any_size(const char *device)
{
    static const int64_t sizes[] = {1, 7, 32, 1024};
    sx_eval_result first;
    for (int i = 0; i < 4; i++) {
        sx_trainer *t = trained(sizes[i], device);
        sx_dataset *data = tiny_data(200, MANY);
        sx_eval_result result;
        assert_ok(sx_trainer_evaluate(t, data, 0, &result));
        assert_int_equal(result.examples, MANY);
        assert_int_equal(result.step, 10);
        assert_int_equal(result.n_metrics, 1);
        assert_string_equal(result.metrics[0].name, "accuracy");
        first = i == 0 ? result : first;
        assert_true(result.loss == first.loss);
        assert_true(result.metrics[0].value == first.metrics[0].value);
        sx_dataset_release(data);
        sx_trainer_destroy(t);
    }
}

static void test_train_evaluate__no_batch_size_changes_a_bit(void **state)
{
    (void)state;
    assert_results_equal_at_any_size("host");
    assert_results_equal_at_any_size(NULL);
}

typedef struct rows {
    int64_t count;
    float probabilities[MANY][CLASSES];
    int classid[MANY];
} rows;

static sx_status keep_row(void *user, const sx_prediction *row)
{
    rows *r = user;
    assert_int_equal(row->number, r->count);
    assert_int_equal(row->record, r->count);
    assert_int_equal(row->n_classes, CLASSES);
    assert_int_equal(row->n_values, 2);
    assert_true(row->probability == row->probabilities[row->classid]);
    memcpy(r->probabilities[r->count], row->probabilities, sizeof(r->probabilities[0]));
    r->classid[r->count++] = row->classid;
    return SX_OK;
}

static void test_train_evaluate__predicts_in_order_at_any_batch_size(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 32, 1024};
    static rows first, r;
    for (int i = 0; i < 4; i++) {
        sx_trainer *t = trained(sizes[i], NULL);
        sx_dataset *data = tiny_data(200, MANY);
        r.count = 0;
        assert_ok(sx_trainer_predict(t, data, 0, keep_row, &r));
        assert_int_equal(r.count, MANY);
        first = i == 0 ? r : first;
        assert_memory_equal(&r, &first, sizeof(r));
        r.count = 0;
        assert_ok(sx_trainer_predict(t, data, 40, keep_row, &r));
        assert_int_equal(r.count, 40);
        sx_dataset_release(data);
        sx_trainer_destroy(t);
    }
}

static void test_train_evaluate__takes_batches_as_they_come(void **state)
{
    (void)state;
    sx_trainer *t = trained(32, "host");
    sx_dataset *data = tiny_data(200, MANY), *batched = tiny_data(200, MANY);
    sx_eval_result a, b;
    assert_ok(sx_dataset_batch(&batched, .size = 13));
    assert_ok(sx_trainer_evaluate(t, data, 0, &a));
    assert_ok(sx_trainer_evaluate(t, batched, 0, &b));
    assert_int_equal(b.examples, MANY);
    assert_true(a.loss == b.loss);
    sx_dataset_release(data);
    sx_dataset_release(batched);
    sx_trainer_destroy(t);
}

static sx_status refuse(void *user, const sx_prediction *row)
{
    int *calls = user;
    ++*calls;
    return row->number < 2 ? SX_OK : sx_error(SX_OUT_OF_RANGE, "two are enough");
}

static void test_train_evaluate__passes_errors_on(void **state)
{
    (void)state;
    int calls = 0;
    sx_trainer *t = trained(32, "host");
    sx_dataset *data = tiny_data(200, MANY), *endless = tiny_data(200, MANY);
    sx_eval_result result;
    assert_error(sx_trainer_predict(t, data, 0, refuse, &calls), SX_OUT_OF_RANGE, "two are enough");
    assert_int_equal(calls, 3);
    assert_ok(sx_dataset_repeat(&endless, 0));
    assert_error(sx_trainer_evaluate(t, endless, 0, &result), SX_INVALID_ARGUMENT, "endless");
    for (int64_t limit = 1; limit <= 150; limit += 149) {
        assert_ok(sx_trainer_evaluate(t, endless, limit, &result));
        assert_int_equal(result.examples, limit);
    }
    sx_trainer_destroy(t);
    sx_run_config config = tiny_config(NULL, NULL);
    t = open_tiny(&config);
    assert_error(sx_trainer_evaluate(t, data, 0, &result), SX_FAILED_PRECONDITION,
                 "has not been trained");
    sx_trainer_destroy(t);
    sx_dataset_release(data);
    sx_dataset_release(endless);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_evaluate__no_batch_size_changes_a_bit),
    cmocka_unit_test(test_train_evaluate__predicts_in_order_at_any_batch_size),
    cmocka_unit_test(test_train_evaluate__takes_batches_as_they_come),
    cmocka_unit_test(test_train_evaluate__passes_errors_on),
};
SX_TEST_MAIN(tests)
