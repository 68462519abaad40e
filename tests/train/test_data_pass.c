/* A pass over data on a device with memory of its own: each batch is on its way before the one
 * before it is passed on. */
#include "run.h"

#include "../backends/pjrt_plugin.h"
#include "base/checked.h"
#include "train/state.h"

enum { ROWS = 4 * 32 + 9, BATCHES = 5, BAD = 70 };

typedef struct rows {
    const ref_counts *counts;
    long before, pinned_bytes;
    int64_t n, records[ROWS];
    float probabilities[ROWS][CLASSES];
    long executions[ROWS]; /* when the row was passed on */
} rows;

static sx_status keep_row(void *user, const sx_prediction *row)
{
    rows *r = user;
    assert_int_equal(row->number, r->n);
    r->records[r->n] = row->record;
    memcpy(r->probabilities[r->n], row->probabilities, sizeof(r->probabilities[0]));
    r->executions[r->n++] = r->counts != NULL ? r->counts->executions - r->before : 0;
    return SX_OK;
}

static sx_trainer *open_on(const char *device)
{
    sx_run_config config = tiny_config(NULL, NULL);
    config.device = device;
    config.pjrt_plugin = strcmp(device, "pjrt") == 0 ? ref_plugin() : NULL;
    sx_trainer *t = open_tiny(&config);
    assert_ok(fit_tiny(t, 2, false));
    return t;
}

static sx_status predict(sx_trainer *t, sx_dataset *data, int64_t examples, rows *out)
{
    *out = (rows){0};
    if (strcmp(sx_session_device(sx_trainer_session(t))->platform->backend->name, "pjrt") == 0) {
        out->counts = ref_plugin_counts();
        out->before = out->counts->executions;
        out->pinned_bytes = -out->counts->pinned_bytes;
    }
    sx_status status = sx_trainer_predict(t, data, examples, keep_row, out);
    out->pinned_bytes += out->counts != NULL ? out->counts->pinned_bytes : 0;
    sx_dataset_release(data);
    return status;
}

/* Of the features, which are the only input of a prediction. */
static int64_t row_bytes(const sx_trainer *t)
{
    sx_type row = sx_type_with_batch(t->info.inputs.items[0].type, 1);
    return sx_type_bytes(&row);
}

static void test_train_data_pass__a_batch_is_on_its_way_before_the_last_is_passed_on(void **state)
{
    (void)state;
    static rows got;
    sx_trainer *t = open_on("pjrt");
    assert_ok(predict(t, tiny_data(100, ROWS), 0, &got));
    assert_int_equal(got.n, ROWS);
    /* The device copies the batches from where they are. */
    assert_int_equal(got.pinned_bytes, (int64_t)BATCHES * 32 * row_bytes(t));
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(got.records[i], i);
        assert_int_equal(got.executions[i], SX_MIN(i / 32 + 2, BATCHES));
    }
    sx_trainer_destroy(t);
}

/* Also where the number of examples is limited, and in evaluation. */
static void test_train_data_pass__the_rows_are_those_of_any_device(void **state)
{
    (void)state;
    static rows got, want;
    static const int64_t limits[] = {0, 1, 32, 33, 64, ROWS};
    sx_trainer *t = open_on("pjrt"), *ref = open_on("host");
    for (int k = 0; k < 6; k++) {
        sx_eval_result a, b;
        sx_dataset *data = tiny_data(100, ROWS);
        assert_ok(sx_trainer_evaluate(t, data, limits[k], &a));
        assert_ok(sx_trainer_evaluate(ref, data, limits[k], &b));
        sx_dataset_release(data);
        assert_int_equal(a.examples, limits[k] > 0 ? limits[k] : ROWS);
        assert_int_equal(a.available, b.available);
        assert_float_equal(a.loss, b.loss, 1e-5);
        assert_ok(predict(t, tiny_data(100, ROWS), limits[k], &got));
        assert_ok(predict(ref, tiny_data(100, ROWS), limits[k], &want));
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.records, want.records, sizeof(got.records));
        for (int i = 0; i < got.n; i++) {
            for (int c = 0; c < CLASSES; c++) {
                assert_float_equal(got.probabilities[i][c], want.probabilities[i][c], 1e-5);
            }
        }
    }
    sx_trainer_destroy(t);
    sx_trainer_destroy(ref);
}

static sx_status break_one(const sx_map_call *call, void *user)
{
    (void)user;
    memcpy(call->out[0].data, call->in[0].data, FEATURES * sizeof(float));
    *(int64_t *)call->out[1].data = *(const int64_t *)call->in[1].data;
    return call->record == BAD ? sx_error(SX_DATA_LOSS, "record %d is broken", BAD) : SX_OK;
}

/* What was read before the data failed is passed on. */
static void test_train_data_pass__bad_data_end_it_after_the_rows_before(void **state)
{
    (void)state;
    static rows got;
    static const char *const devices[] = {"host", "pjrt"};
    const sx_component components[] = {{"features", sx_type_of(SX_F32, FEATURES)},
                                       {"label", sx_scalar_type(SX_I64)}};
    for (int k = 0; k < 2; k++) {
        sx_trainer *t = open_on(devices[k]);
        sx_dataset *data = tiny_data(100, ROWS);
        assert_ok(sx_dataset_map(&data, .name = "broken", .fn = break_one, .count = 2,
                                 .components = components));
        assert_error(predict(t, data, 0, &got), SX_DATA_LOSS, "record 70 is broken");
        assert_int_equal(got.n, 64);
        sx_trainer_destroy(t);
    }
}

static sx_status refuse_row(void *user, const sx_prediction *row)
{
    (void)user;
    return row->number == 40 ? sx_error(SX_OUT_OF_RANGE, "enough") : SX_OK;
}

/* What is on its way then is waited for, and the trainer goes on. */
static void test_train_data_pass__a_caller_that_fails_ends_it(void **state)
{
    (void)state;
    static rows got;
    sx_trainer *t = open_on("pjrt");
    sx_dataset *data = tiny_data(100, ROWS);
    assert_error(sx_trainer_predict(t, data, 0, refuse_row, NULL), SX_OUT_OF_RANGE, "enough");
    sx_dataset_release(data);
    assert_ok(predict(t, tiny_data(100, ROWS), 0, &got));
    assert_int_equal(got.n, ROWS);
    sx_trainer_destroy(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_data_pass__a_batch_is_on_its_way_before_the_last_is_passed_on),
    cmocka_unit_test(test_train_data_pass__the_rows_are_those_of_any_device),
    cmocka_unit_test(test_train_data_pass__bad_data_end_it_after_the_rows_before),
    cmocka_unit_test(test_train_data_pass__a_caller_that_fails_ends_it),
};
SX_TEST_MAIN(tests)
