/* What a model does on the host (eval_metrics, host_call), how replicas' gradients are reduced, how
 * the learning rate is scaled, and how much an evaluation has seen. */
#include "run.h"

#include "nn/optimizer.h"

/* --- a model with metrics of its own
 * --------------------------------------------------------------
 */

typedef struct tally {
    int64_t seen, right;
    double last; /* of the last example: the order matters */
} tally;

static void tally_add(void *state, const sx_host_value *values, void *user)
{
    tally *t = state;
    const float *p = values[1].data;
    int best = 0;
    assert_string_equal(values[0].name, "labels");
    assert_string_equal(values[1].name, "probabilities");
    assert_int_equal(values[1].type.dims[0], CLASSES);
    assert_null(user);
    for (int i = 1; i < CLASSES; i++) {
        best = p[i] > p[best] ? i : best;
    }
    t->right += best == *(const int32_t *)values[0].data;
    t->seen++;
    t->last = 0.5 * t->last + (double)p[0];
}

static double tally_right(const void *state, void *user)
{
    const tally *t = state;
    (void)user;
    return (double)t->right / (double)t->seen;
}

static double tally_last(const void *state, void *user)
{
    (void)user;
    return ((const tally *)state)->last;
}

/* Steps that the host call saw, and what. */
typedef struct calls {
    int n;
    int64_t steps[64];
    double rates[64], sums[64];
    int64_t rows[64], fail_at;
} calls;

static calls called;

static sx_status keep_call(void *user, int64_t step, const sx_host_value *values, int n)
{
    calls *c = user;
    assert_int_equal(n, 2);
    assert_string_equal(values[0].name, "first_logit");
    assert_int_equal(values[0].type.rank, 1);
    assert_int_equal(values[1].type.rank, 0);
    if (step == c->fail_at) {
        return sx_error(SX_UNAVAILABLE, "the host has had enough");
    }
    const float *rows = values[0].data;
    c->steps[c->n] = step;
    c->rows[c->n] = values[0].type.dims[0];
    c->rates[c->n] = *(const float *)values[1].data;
    for (int64_t i = 0; i < c->rows[c->n]; i++) {
        c->sums[c->n] += (double)rows[i];
    }
    c->n++;
    return SX_OK;
}

static sx_spec hosted_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value logits = sx_dense(b, in->features, CLASSES);
    sx_spec spec = sx_classifier_spec(b, logits, in->labels, .optimizer = sx_sgd());
    (void)p;
    spec.eval_metrics = (sx_eval_metrics){
        .tensors = {{"labels", in->labels}, {"probabilities", spec.predictions[0].value}},
        .metrics = {{.name = "right",
                     .state_bytes = sizeof(tally),
                     .add = tally_add,
                     .result = tally_right},
                    {.name = "last",
                     .state_bytes = sizeof(tally),
                     .add = tally_add,
                     .result = tally_last}}};
    if (in->mode == SX_TRAIN) {
        spec.host_call = (sx_host_call){
            .fn = keep_call,
            .user = &called,
            .tensors = {{"first_logit", spec.loss}, {"number", sx_constant_f32(b, 0.25)}}};
    }
    return spec;
}

static const sx_model_def hosted =
    SX_MODEL_DEF(.name = "hosted", .build = hosted_build, .features = FEATURES);

/* A host call in evaluation: the model's labels, in the data's order, without padding. */
static sx_status keep_labels(void *user, int64_t step, const sx_host_value *values, int n)
{
    calls *c = user;
    assert_int_equal(n, 2);
    assert_string_equal(values[0].name, "labels");
    assert_int_equal(values[1].type.dims[1], CLASSES);
    assert_int_equal(values[0].type.dims[0], values[1].type.dims[0]);
    const int32_t *rows = values[0].data;
    for (int64_t i = 0; i < values[0].type.dims[0]; i++) {
        c->sums[0] = 0.5 * c->sums[0] + rows[i]; /* the order matters */
    }
    c->rows[0] += values[0].type.dims[0];
    c->steps[c->n++] = step;
    return c->n == c->fail_at ? sx_error(SX_UNAVAILABLE, "the host has had enough") : SX_OK;
}

static sx_spec watched_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = tiny_build(b, in, p);
    if (in->mode == SX_EVAL) {
        sx_value scalar = sx_constant_f32(b, 1);
        bool bad = sx_param_int(p, "scalar", 0) != 0;
        spec.host_call = (sx_host_call){
            .fn = keep_labels,
            .user = &called,
            .tensors = {{"labels", in->labels},
                        {"probabilities", bad ? scalar : spec.predictions[0].value}}};
    }
    return spec;
}

static sx_status some_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user;
    *out = context->mode == SX_TRAIN ? tiny_data(0, EXAMPLES) : tiny_data(100, 41);
    return SX_OK;
}

static sx_estimator *open_hosted(const sx_model_def *def, const char *dir, seen *s,
                                 int64_t eval_batch, int64_t every)
{
    sx_estimator *e = NULL;
    sx_run_config config = tiny_config(dir, s);
    config.eval_batch_size = eval_batch;
    config.tpu_config.experimental_host_call_every_n_steps = every;
    assert_ok(sx_estimator_create(def, &config, NULL, &e));
    return e;
}

static void test_train_host__metrics_of_the_model(void **state)
{
    (void)state;
    seen s = {0};
    sx_eval_result a, b;
    called = (calls){0};
    sx_estimator *e = open_hosted(&hosted, scratch("run"), &s, 7, 0);
    assert_ok(sx_estimator_train(e, some_input, NULL, .max_steps = 5));
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &a));
    assert_int_equal(a.n_metrics, 3);
    assert_string_equal(a.metrics[0].name, "accuracy");
    assert_string_equal(a.metrics[1].name, "right");
    sx_estimator_destroy(e);
    assert_true(a.metrics[0].value == a.metrics[1].value);
    assert_int_equal(a.examples, 41);

    /* another process with the model: the same, whatever is read at once */
    e = open_hosted(&hosted, scratch("run"), &s, 32, 0);
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &b));
    sx_estimator_destroy(e);
    assert_int_equal(b.n_metrics, 3);
    assert_true(a.metrics[1].value == b.metrics[1].value);
    assert_true(a.metrics[2].value == b.metrics[2].value);
    assert_int_equal(s.count[SX_EVENT_WARNING], 0);

    /* the directory alone: what only the source knows is left out, and said */
    e = open_hosted(NULL, scratch("run"), &s, 32, 0);
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &b));
    sx_estimator_destroy(e);
    assert_int_equal(b.n_metrics, 1);
    assert_true(b.loss == a.loss);
    assert_non_null(strstr(s.warning, "eval_metrics are omitted"));
}

static void test_train_host__call_sees_steps(void **state)
{
    (void)state;
    sx_estimator *e = open_hosted(&hosted, NULL, NULL, 0, 0);
    called = (calls){0};
    assert_ok(sx_estimator_train(e, some_input, NULL, .epochs = 1));
    sx_estimator_destroy(e);
    assert_int_equal(called.n, STEPS_PER_EPOCH);
    for (int i = 0; i < called.n; i++) {
        assert_int_equal(called.steps[i], i + 1);
        assert_int_equal(called.rows[i], i + 1 < called.n ? BATCH : EXAMPLES % BATCH);
        assert_true(called.rates[i] == 0.25);
        assert_true(called.sums[i] > 0); /* losses */
    }
    e = open_hosted(&hosted, NULL, NULL, 0, 3);
    called = (calls){0};
    assert_ok(sx_estimator_train(e, some_input, NULL, .steps = 10));
    sx_estimator_destroy(e);
    assert_int_equal(called.n, 3);
    assert_int_equal(called.steps[2], 9);
}

static void test_train_host__call_may_end_the_training(void **state)
{
    (void)state;
    sx_estimator *e = open_hosted(&hosted, NULL, NULL, 0, 0);
    called = (calls){.fail_at = 3};
    assert_error(sx_estimator_train(e, some_input, NULL, .steps = 10), SX_UNAVAILABLE,
                 "had enough");
    assert_int_equal(called.n, 2);
    sx_estimator_destroy(e);
}

static calls watch_evaluation(const sx_model_def *def, int replicas, seen *s)
{
    sx_estimator *e = NULL;
    sx_eval_result result;
    sx_run_config config = tiny_config(scratch("run"), s);
    config.replicas = replicas;
    called = (calls){0};
    assert_ok(sx_estimator_create(def, &config, NULL, &e));
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &result));
    sx_estimator_destroy(e);
    return called;
}

static void test_train_host__call_sees_evaluations(void **state)
{
    (void)state;
    seen s = {0};
    sx_model_def def = tiny;
    def.build = watched_build;
    sx_estimator *e = open_hosted(&def, scratch("run"), NULL, 7, 0);
    called = (calls){0};
    assert_ok(sx_estimator_train(e, some_input, NULL, .max_steps = 5));
    assert_int_equal(called.n, 0);
    called.fail_at = 2;
    sx_eval_result result;
    assert_error(sx_estimator_evaluate(e, some_input, NULL, &result), SX_UNAVAILABLE, "had enough");
    sx_estimator_destroy(e);
    calls one = watch_evaluation(&def, 1, &s), four = watch_evaluation(&def, 4, &s);
    assert_int_equal(one.rows[0], 41); /* every example once */
    assert_int_equal(four.rows[0], 41);
    assert_true(one.sums[0] == four.sums[0]);
    assert_int_equal(four.steps[0], 5);
    assert_int_equal(s.count[SX_EVENT_WARNING], 0);
    assert_int_equal(watch_evaluation(NULL, 1, &s).n, 0);
    assert_non_null(strstr(s.warning, "host_call is omitted"));
}

static void test_train_host__call_wants_rows_in_evaluation(void **state)
{
    (void)state;
    sx_model_def def = tiny;
    def.build = watched_build;
    sx_estimator *e = NULL;
    const char *const params[] = {"scalar=1", NULL};
    sx_run_config config = tiny_config(NULL, NULL);
    assert_ok(sx_estimator_create(&def, &config, params, &e));
    assert_error(sx_estimator_train(e, some_input, NULL, .steps = 1), SX_INVALID_ARGUMENT,
                 "returned float32[] for host_call/probabilities, expected a row for each example");
    sx_estimator_destroy(e);
}

static sx_spec bad_metric(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = hosted_build(b, in, p);
    spec.eval_metrics.metrics[1].result = NULL;
    return spec;
}

static sx_spec no_tensors(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = hosted_build(b, in, p);
    spec.eval_metrics.tensors[0].name = NULL;
    return spec;
}

static sx_spec no_function(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = hosted_build(b, in, p);
    spec.host_call.fn = NULL;
    return spec;
}

static void test_train_host__what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        sx_build_fn *build;
        const char *says;
    } rows[] = {{bad_metric, "\"last\" needs add, result"},
                {no_tensors, "eval_metrics has metrics but no tensors"},
                {no_function, "host_call has tensors but no function"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_model_def def = hosted;
        def.build = rows[i].build;
        sx_estimator *e = open_hosted(&def, NULL, NULL, 0, 0);
        assert_error(sx_estimator_train(e, some_input, NULL, .steps = 1), SX_INVALID_ARGUMENT,
                     rows[i].says);
        sx_estimator_destroy(e);
    }
}

/* --- how gradients meet -------------------------------------------------------------------------
 */

static sx_spec reduced_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    double rate = sx_param_float(p, "rate", 0.5);
    sx_reduction how = sx_param_int(p, "sum", 0) ? SX_REDUCTION_SUM : SX_REDUCTION_MEAN;
    sx_value logits = sx_dense(b, in->features, CLASSES);
    return sx_classifier_spec(
        b, logits, in->labels,
        .optimizer = sx_cross_shard_optimizer(sx_sgd(.learning_rate = rate), .reduction = how));
}

static sx_eval_result reduced(const char *rate, bool sum, int replicas)
{
    sx_model_def def = tiny;
    sx_estimator *e = NULL;
    sx_eval_result result;
    sx_run_config config = tiny_config(NULL, NULL);
    config.replicas = replicas;
    def.build = reduced_build;
    const char *const params[] = {rate, sum ? "sum=1" : "sum=0", NULL};
    assert_ok(sx_estimator_create(&def, &config, params, &e));
    assert_ok(sx_estimator_train(e, some_input, NULL, .steps = 5));
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &result));
    sx_estimator_destroy(e);
    return result;
}

/* The sum over four replicas is four means; powers of two round nothing. */
static void test_train_host__sum_is_so_many_means(void **state)
{
    (void)state;
    double mean = reduced("rate=0.5", false, 4).loss;
    assert_true(mean == reduced("rate=0.125", true, 4).loss);
    assert_true(mean == reduced("rate=0.5", true, 1).loss);
    assert_true(mean != reduced("rate=0.5", true, 4).loss);
}

/* --- the learning rate --------------------------------------------------------------------------
 */

static void test_train_host__rate_grows_with_the_batch(void **state)
{
    (void)state;
    char text[256];
    sx_optimizer o = sx_sgd(.learning_rate = .1, .base_batch_size = 256,
                            .schedule = {.kind = SX_PIECEWISE,
                                         .in_epochs = true,
                                         .warmup_epochs = 5,
                                         .n_boundaries = 3,
                                         .boundaries = {30, 60, 80},
                                         .values = {1, .1, .01, .001}});
    assert_string_equal(sx_optimizer_rate_text(&o, 1024, 1252, text, sizeof(text)),
                        "learning rate 0.4 = 0.1 x 1024 / 256, rising over the first 6260 steps");
    assert_ok(sx_optimizer_settle_rate(&o, 1024, 1252));
    assert_float_equal(o.learning_rate, .4, 1e-12);
    assert_int_equal(o.schedule.warmup_steps, 6260);
    assert_int_equal(o.schedule.boundaries[0], 25 * 1252); /* of the schedule after the warm-up */
    assert_int_equal(o.schedule.boundaries[2], 75 * 1252);
    assert_false(o.schedule.in_epochs);
    sx_optimizer plain = sx_sgd(.learning_rate = .1);
    assert_string_equal(sx_optimizer_rate_text(&plain, 1024, 10, text, sizeof(text)), "");
}

static void test_train_host__rate_needs_what_it_depends_on(void **state)
{
    (void)state;
    sx_optimizer scaled = sx_sgd(.base_batch_size = 256), negative = sx_sgd(.base_batch_size = -1);
    sx_optimizer warm = sx_sgd(.schedule = {.warmup_epochs = 1});
    sx_optimizer both = sx_sgd(.schedule = {.warmup_epochs = 1, .warmup_steps = 3});
    sx_optimizer epochs = sx_sgd(.schedule = {.in_epochs = true});
    assert_error(sx_optimizer_settle_rate(&scaled, 0, 1), SX_INVALID_ARGUMENT, "the batch size");
    assert_error(sx_optimizer_settle_rate(&negative, 8, 1), SX_INVALID_ARGUMENT, "is -1");
    assert_error(sx_optimizer_settle_rate(&warm, 8, 0), SX_INVALID_ARGUMENT, "give warmup_steps");
    assert_error(sx_optimizer_settle_rate(&both, 8, 7), SX_INVALID_ARGUMENT, "one of the two");
    assert_error(sx_optimizer_settle_rate(&epochs, 8, 0), SX_INVALID_ARGUMENT, "in_epochs");
}

typedef struct rates {
    double at[64];
    char begin[256];
} rates;

static void keep_rate(void *user, const sx_train_event *e)
{
    rates *r = user;
    if (e->kind == SX_EVENT_BEGIN && e->text != NULL) {
        snprintf(r->begin, sizeof(r->begin), "%s", e->text);
    }
    if (e->kind == SX_EVENT_PROGRESS && e->step < 64) {
        r->at[e->step] = e->learning_rate;
    }
}

/* Two epochs of warm-up, 7 steps each, to .1 x 8 / 2. */
static void test_train_host__rate_in_training(void **state)
{
    (void)state;
    rates r = {0};
    sx_run_config config = tiny_config(NULL, NULL);
    sx_trainer *t;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_optimizer wish = {
        .learning_rate = .1, .base_batch_size = 2, .schedule = {.warmup_epochs = 2}};
    config.observer = keep_rate;
    config.observer_user = &r;
    assert_ok(sx_trainer_create(
        &(sx_trainer_options){.config = &config, .def = &tiny, .data = data, .optimizer = &wish},
        &t));
    assert_ok(sx_trainer_fit(t, &(sx_fit_request){.train = data, .epochs = 3}));
    assert_string_equal(r.begin, "learning rate 0.4 = 0.1 x 8 / 2, rising over the first 14 steps");
    assert_float_equal(r.at[1], 0, 1e-9);
    assert_float_equal(r.at[8], .2, 1e-6);
    assert_float_equal(r.at[15], .4, 1e-6);
    assert_float_equal(r.at[21], .4, 1e-6);
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

/* --- how much was scored -------------------------------------------------------------------------
 */

static void test_train_host__evaluation_steps(void **state)
{
    (void)state;
    sx_eval_result all, some;
    sx_estimator *e = open_hosted(&tiny, NULL, NULL, 16, 0);
    const sx_train_spec *train = sx_train_spec_of(.input = some_input, .max_steps = 3);
    const sx_eval_spec *eval = sx_eval_spec_of(.input = some_input, .steps = 2);
    assert_ok(sx_train_and_evaluate(e, train, eval, &some));
    assert_int_equal(some.examples, 32);
    assert_int_equal(some.available, 41);
    assert_int_equal(some.steps, 2);
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &all));
    assert_int_equal(all.examples, 41);
    assert_int_equal(all.available, 41);
    assert_int_equal(all.steps, 0);
    assert_ok(sx_estimator_evaluate(e, some_input, NULL, &all, .steps = 100));
    assert_int_equal(all.examples, 41);
    assert_error(sx_estimator_evaluate(e, some_input, NULL, &all, .steps = 1, .examples = 3),
                 SX_INVALID_ARGUMENT, "cannot be combined");
    sx_estimator_destroy(e);
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_host__metrics_of_the_model),
    cmocka_unit_test(test_train_host__call_sees_steps),
    cmocka_unit_test(test_train_host__call_may_end_the_training),
    scratch_test(test_train_host__call_sees_evaluations),
    cmocka_unit_test(test_train_host__call_wants_rows_in_evaluation),
    cmocka_unit_test(test_train_host__what_is_missing_is_named),
    cmocka_unit_test(test_train_host__sum_is_so_many_means),
    cmocka_unit_test(test_train_host__rate_grows_with_the_batch),
    cmocka_unit_test(test_train_host__rate_needs_what_it_depends_on),
    cmocka_unit_test(test_train_host__rate_in_training),
    cmocka_unit_test(test_train_host__evaluation_steps),
};
SX_TEST_MAIN(tests)
