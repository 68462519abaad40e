/* The recipe that ResNet-50 was trained with: L2 without batch normalization, the rate's rule. */
#include "run.h"

#include "../backends/pjrt_plugin.h"
#include "nn/optimizer.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"

static const double L2 = .25;

/* A batch norm among dense layers; SGD of rate 1, so that a step subtracts the gradient. */
static sx_spec normed_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_batch_norm(b, sx_dense(b, in->features, 5));
    bool decays = sx_param_int(p, "decays", 0) != 0;
    return sx_classifier_spec(b, sx_dense(b, x, CLASSES), in->labels,
                              .optimizer = sx_sgd(.learning_rate = 1, .l2 = decays ? L2 : 0));
}

static const sx_model_def normed =
    SX_MODEL_DEF(.name = "normed", .build = normed_build, .features = FEATURES);

static sx_trainer *train_steps(sx_run_config config, bool decays, int64_t steps)
{
    sx_trainer *t = NULL;
    sx_params *params = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    assert_ok(sx_params_create(&params));
    assert_ok(sx_params_set(params, "decays", decays ? "1" : "0"));
    config.no_shuffle = true;
    const sx_trainer_options options = {
        .config = &config, .def = &normed, .params = params, .data = data};
    assert_ok(sx_trainer_create(&options, &t));
    sx_dataset_release(data);
    sx_params_destroy(params);
    assert_ok(fit_tiny(t, steps, false));
    return t;
}

/* Variable `name` after so many steps; returns how many numbers it has. */
static int read_after(int64_t steps, bool decays, const char *name, float *out, double *out_loss)
{
    seen s = {0};
    sx_trainer *t = train_steps(tiny_config(NULL, &s), decays, steps);
    sx_session *session = sx_trainer_session(t);
    int i = sx_session_find_variable(session, name);
    assert_true(i >= 0);
    assert_ok(sx_session_read_variable(session, i, out));
    int n = (int)sx_type_elems(&sx_session_variable_at(session, i)->type);
    *out_loss = s.final_loss;
    sx_trainer_destroy(t);
    return n;
}

/* w - (g + l2 w) beside w - g: w is found from the two, and its squares are in the loss. */
static double check_decay(const char *name, bool decays)
{
    float without[64], with[64];
    double plain, sum = 0, total;
    int n = read_after(1, false, name, without, &plain);
    assert_int_equal(read_after(1, true, name, with, &total), n);
    for (int i = 0; i < n; i++) {
        double w = (double)(without[i] - with[i]) / L2;
        assert_true(decays || w == 0);
        sum += w * w;
    }
    assert_true(total > plain);
    return sum;
}

static void test_train_recipe__l2_leaves_batch_norm_alone(void **state)
{
    (void)state;
    float unused[64];
    double plain, total;
    double sum = check_decay("dense/kernel", true) + check_decay("dense_1/kernel", true) +
                 check_decay("dense/bias", true) + check_decay("dense_1/bias", true) +
                 check_decay("batch_normalization/gamma", false) +
                 check_decay("batch_normalization/beta", false);
    read_after(1, false, "dense/bias", unused, &plain);
    read_after(1, true, "dense/bias", unused, &total);
    assert_true(sum > 0.1);
    assert_true(fabs(total - plain - L2 * sum / 2) < 1e-5);
}

/* The term is that of the whole step, not one for each replica. */
static void test_train_recipe__l2_counts_once_on_replicas(void **state)
{
    (void)state;
    SKIP_WITHOUT_PJRT();
    float x[64], y[64];
    double unused;
    seen s = {0};
    int n = read_after(4, true, "dense/kernel", x, &unused);
    sx_run_config config = tiny_config(NULL, &s);
    config.device = "pjrt";
    config.pjrt_plugin = pjrt_plugin();
    config.virtual_devices = config.replicas = 4;
    sx_trainer *t = train_steps(config, true, 4);
    sx_session *session = sx_trainer_session(t);
    assert_ok(
        sx_session_read_variable(session, sx_session_find_variable(session, "dense/kernel"), y));
    for (int i = 0; i < n; i++) {
        assert_true(fabs((double)x[i] - (double)y[i]) < 1e-4);
    }
    sx_trainer_destroy(t);
}

/* --- LARS ----------------------------------------------------------------------------------------
 */

static const sx_optimizer *asked; /* of the model below */

static sx_spec asked_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    return sx_classifier_spec(b, sx_dense(b, in->features, CLASSES), in->labels,
                              .optimizer = *asked);
}

enum { KERNEL = FEATURES * CLASSES };

/* Kernel and bias after steps of one whole batch. */
static void train_asked(const sx_optimizer *o, int64_t steps, float *kernel, float *bias)
{
    static const sx_model_def def =
        SX_MODEL_DEF(.name = "asked", .build = asked_build, .features = FEATURES);
    sx_trainer *t = NULL;
    sx_run_config config = tiny_config(NULL, NULL);
    config.train_batch_size = EXAMPLES;
    config.no_shuffle = true;
    asked = o;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_trainer_options options = {.config = &config, .def = &def, .data = data};
    assert_ok(sx_trainer_create(&options, &t));
    sx_dataset_release(data);
    assert_ok(fit_tiny(t, steps, false));
    sx_session *s = sx_trainer_session(t);
    assert_ok(sx_session_read_variable(s, sx_session_find_variable(s, "dense/kernel"), kernel));
    assert_ok(sx_session_read_variable(s, sx_session_find_variable(s, "dense/bias"), bias));
    sx_trainer_destroy(t);
}

static double norm(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum);
}

/* The first step has rate 0 (a warm-up of one), so that the second sees the same weights and the
 * same gradient. Nesterov moves by g' + momentum·a, with a = (momentum + 1)·g' by then. */
static void check_lars(bool nesterov, double moves)
{
    float once[KERNEL], twice[KERNEL], lars[KERNEL], bias_1[CLASSES], bias_2[CLASSES],
        bias[CLASSES];
    double w[KERNEL], g[KERNEL];
    const double rate = 2, decay = .5, eeta = .25;
    const sx_optimizer one = sx_sgd(.learning_rate = 1), two = sx_sgd(.learning_rate = 2);
    const sx_optimizer o = sx_lars(.learning_rate = rate, .l2 = decay, .eeta = eeta,
                                   .nesterov = nesterov, .schedule = {.warmup_steps = 1});
    train_asked(&one, 1, once, bias_1); /* w - g and w - 2 g tell w and g */
    train_asked(&two, 1, twice, bias_2);
    train_asked(&o, 2, lars, bias);
    for (int i = 0; i < KERNEL; i++) {
        w[i] = 2 * (double)once[i] - (double)twice[i];
        g[i] = (double)once[i] - (double)twice[i];
    }
    double trust = eeta * norm(w, KERNEL) / (norm(g, KERNEL) + decay * norm(w, KERNEL));
    for (int i = 0; i < KERNEL; i++) {
        double expected = w[i] - rate * trust * moves * (g[i] + decay * w[i]);
        assert_true(fabs((double)lars[i] - expected) < 1e-5);
    }
    for (int i = 0; i < CLASSES; i++) { /* from 0, without decay or trust */
        double slope = (double)bias_1[i] - (double)bias_2[i];
        assert_true(fabs((double)bias[i] + rate * moves * slope) < 1e-5);
    }
}

static void test_train_recipe__lars_is_tensorflows(void **state)
{
    (void)state;
    check_lars(false, .9 + 1);
    check_lars(true, 1 + .9 * (.9 + 1));
}

static void test_train_recipe__l2_is_not_negative(void **state)
{
    (void)state;
    sx_optimizer o = sx_sgd(.l2 = -1);
    assert_error(sx_optimizer_resolve(&o), SX_INVALID_ARGUMENT,
                 "l2 is -1, expected a finite number, 0 or more");
}

static void test_train_recipe__resnet50_has_its_reference(void **state)
{
    (void)state;
    sx_params *params = NULL;
    sx_graph *graph = NULL;
    sx_optimizer o, wish = {.learning_rate = .05};
    sx_model_def def = *sx_zoo_find("resnet50");
    def.image[0] = def.image[1] = 64;
    sx_program_request request = {.def = &def,
                                  .mode = SX_TRAIN,
                                  .optimizer = &wish,
                                  .batch = 1024,
                                  .steps_per_epoch = 1252,
                                  .out_optimizer = &o};
    assert_ok(sx_params_create(&params));
    assert_ok(sx_params_set(params, "schedule", "reference"));
    request.params = params;
    assert_ok(sx_build_program(&request, &graph));
    assert_true(o.nesterov && o.momentum == .9 && o.l2 == 1e-4 && o.learning_rate == .05);
    assert_int_equal(o.base_batch_size, 256);
    assert_int_equal(o.schedule.n_boundaries, 3);
    assert_true(o.schedule.warmup_epochs == 5);
    sx_graph_destroy(graph);
    sx_params_destroy(params);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_train_recipe__l2_leaves_batch_norm_alone),
    cmocka_unit_test(test_train_recipe__l2_counts_once_on_replicas),
    cmocka_unit_test(test_train_recipe__lars_is_tensorflows),
    cmocka_unit_test(test_train_recipe__l2_is_not_negative),
    cmocka_unit_test(test_train_recipe__resnet50_has_its_reference),
};
SX_TEST_MAIN(tests)
