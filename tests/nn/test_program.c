/* From models to programs: parameter counts, names, what each mode has, errors with the user's
 * line. */
#include "harness.h"

#include "graph/ir.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"

static sx_status build(const sx_model_def *def, sx_mode mode, const sx_params *params,
                       sx_graph **out)
{
    sx_program_request r = {.def = def, .mode = mode, .params = params};
    return sx_build_program(&r, out);
}

static sx_graph *zoo(const char *name, sx_mode mode)
{
    sx_graph *g = NULL;
    assert_ok(build(sx_zoo_find(name), mode, NULL, &g));
    assert_ok(sx_graph_validate(g));
    return g;
}

static void test_nn_program__zoo_has_keras_parameter_counts(void **state)
{
    (void)state;
    /* Keras' count_params of the same layers; resnet50 without the moving averages */
    static const struct {
        const char *name;
        int64_t weights;
    } rows[] = {{"mnist_cnn", 34826},   {"flowers_cnn", 8483397}, {"catsdogs_cnn", 1212513},
                {"resnet50", 25557032}, {"mlp", 101770},          {"linear", 7850}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_graph *g = zoo(rows[i].name, SX_TRAIN);
        assert_int_equal(sx_graph_count_elems(g, SX_ROLE_WEIGHT), rows[i].weights);
        sx_graph_destroy(g);
    }
}

static void test_nn_program__variables_have_tf1_names(void **state)
{
    (void)state;
    sx_graph *g = zoo("mnist_cnn", SX_TRAIN);
    static const char *const names[] = {"conv2d/kernel", "conv2d/bias",     "conv2d_1/kernel",
                                        "conv2d_1/bias", "dense/kernel",    "dense/bias",
                                        "global_step",   "dense/bias/Adam", "dense/bias/Adam_1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(sx_graph_find_arg(g, names[i]) >= 0);
    }
    sx_graph_destroy(g);
}

static void test_nn_program__texts_round_trip(void **state)
{
    (void)state;
    for (int i = 0; sx_zoo[i] != NULL; i++) {
        for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
            sx_graph *g = zoo(sx_zoo[i]->name, (sx_mode)mode), *again = NULL;
            char *text, *text_again;
            assert_ok(sx_graph_print(g, &text));
            assert_ok(sx_graph_parse(text, strlen(text), &again));
            assert_ok(sx_graph_print(again, &text_again));
            assert_string_equal(text, text_again);
            sx_text_free(text);
            sx_text_free(text_again);
            sx_graph_destroy(g);
            sx_graph_destroy(again);
        }
    }
}

static sx_spec no_flatten(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_conv2d(b, in->features, 4, 3);
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels);
}

static sx_spec scalar_loss(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)in, (void)p;
    return (sx_spec){.loss = sx_constant_f32(b, 1)};
}

static sx_spec asks(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_dense(b, sx_flatten(b, in->features), sx_param_int(p, "classes", 3));
    return sx_classifier_spec(b, x, in->labels);
}

static void test_nn_program__errors_say_layer_line_and_shapes(void **state)
{
    (void)state;
    sx_model_def def = {.name = "m", .build = no_flatten, .image = {8, 8, 1}};
    sx_graph *g;
    assert_error(build(&def, SX_TRAIN, NULL, &g), SX_INVALID_ARGUMENT,
                 "model \"m\" on float32[N,8,8,1]: test_program.c:77: dense \"dense\": input "
                 "float32[N,6,6,4] has rank 4, "
                 "expected [N,K]; add sx_flatten()");
    def.build = scalar_loss;
    assert_error(build(&def, SX_TRAIN, NULL, &g), SX_INVALID_ARGUMENT,
                 "the model returned float32[] for its loss, expected float32[N]");
    def.image[0] = 0;
    assert_error(build(&def, SX_TRAIN, NULL, &g), SX_INVALID_ARGUMENT, "neither .image");
}

static void test_nn_program__parameters_are_checked(void **state)
{
    (void)state;
    const sx_model_def def = {.name = "m", .build = asks, .image = {8, 8, 1}};
    sx_params *p;
    sx_graph *g = NULL;
    assert_ok(sx_params_create(&p));
    assert_ok(sx_params_set(p, "classes", "7"));
    assert_ok(build(&def, SX_PREDICT, p, &g));
    assert_ok(sx_params_check_used(p));
    int probabilities = sx_graph_find_output(g, "probabilities");
    assert_int_equal(sx_graph_type(g, g->results[probabilities].value)->dims[1], 7);
    sx_graph_destroy(g);
    assert_ok(sx_params_set(p, "clases", "7"));
    assert_error(sx_params_check_used(p), SX_INVALID_ARGUMENT,
                 "the model has no parameter \"clases\"; did you mean \"classes\"?");
    assert_ok(sx_params_set(p, "classes", "many"));
    assert_error(build(&def, SX_PREDICT, p, &g), SX_INVALID_ARGUMENT,
                 "parameter classes is \"many\", expected an integer");
    sx_params_destroy(p);
    assert_ok(sx_params_create(&p));
    assert_ok(build(&def, SX_PREDICT, p, &g));
    sx_graph_destroy(g);
    assert_ok(sx_params_set_default(p, "unasked", "1"));
    assert_ok(sx_params_check_used(p));
    assert_ok(sx_params_set(p, "momentum", ".5"));
    assert_error(sx_params_check_used(p), SX_INVALID_ARGUMENT,
                 "the model has no parameter \"momentum\"; it has \"classes\"");
    sx_params_destroy(p);
}

static void test_nn_program__parameters_record_what_was_asked_for(void **state)
{
    (void)state;
    sx_params *p, *other;
    int n;
    assert_ok(sx_params_create(&p));
    assert_ok(sx_params_create(&other));
    assert_ok(sx_params_set(p, "schedule", "cosine"));
    assert_ok(sx_params_set(p, "rate", "1e-2"));
    assert_int_equal(sx_param_choice(p, "schedule", "constant|cosine|step"), 1);
    assert_int_equal(sx_param_choice(p, "other", "constant|cosine|step"), 0);
    assert_true(sx_param_float(p, "rate", .5) == 1e-2);
    assert_int_equal(sx_param_int(p, "units", 12), 12);
    assert_int_equal(sx_param_int(p, "units", 13), 13); /* the first default is recorded */
    assert_string_equal(sx_param_string(p, "name", "none"), "none");
    assert_null(sx_param_string(p, "empty", NULL));
    assert_ok(sx_params_status(p));
    sx_params_add_asked(other, p);
    const sx_asked_param *asked = sx_params_asked(other, &n);
    static const char *const expected[][3] = {
        {"schedule", "constant", "constant|cosine|step"},
        {"other", "constant", "constant|cosine|step"},
        {"rate", "0.5", NULL},
        {"units", "12", NULL},
        {"name", "none", NULL},
        {"empty", NULL, NULL},
    };
    assert_int_equal(n, sizeof(expected) / sizeof(expected[0]));
    for (int i = 0; i < n; i++) {
        assert_string_equal(asked[i].name, expected[i][0]);
        assert_true(expected[i][1] != NULL ? strcmp(asked[i].otherwise, expected[i][1]) == 0
                                           : asked[i].otherwise == NULL);
        assert_true(expected[i][2] != NULL ? strcmp(asked[i].choices, expected[i][2]) == 0
                                           : asked[i].choices == NULL);
    }
    assert_ok(sx_params_set(p, "schedule", "cos"));
    assert_int_equal(sx_param_choice(p, "schedule", "constant|cosine|step"), 0);
    assert_error(sx_params_status(p), SX_INVALID_ARGUMENT,
                 "parameter schedule is \"cos\", expected constant|cosine|step");
    /* Without parameters, everything is its default. */
    assert_int_equal(sx_param_choice(NULL, "schedule", "constant|cosine"), 0);
    assert_int_equal(sx_param_int(NULL, "units", 4), 4);
    sx_params_destroy(other);
    sx_params_destroy(p);
}

static sx_spec third_input(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x =
        sx_concat(b, 1, in->features, sx_input(b, "weather", sx_type_of(SX_F32, SX_BATCH, 2)));
    return sx_classifier_spec(b, sx_dense(b, x, 3), in->labels);
}

/* Nobody would feed it: an evaluation has two inputs to bind, a training step takes the features
 * for whatever is not the labels. */
static void test_nn_program__refuses_a_third_input(void **state)
{
    (void)state;
    const sx_model_def def = {.name = "m", .build = third_input, .features = 4};
    for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
        sx_graph *g = NULL;
        assert_error(build(&def, (sx_mode)mode, NULL, &g), SX_INVALID_ARGUMENT,
                     "unexpected input \"weather\"");
    }
}

static sx_spec norm_and_dense(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_batch_norm(b, sx_conv2d(b, in->features, 4, 3), .momentum = .9);
    return sx_classifier_spec(b, sx_dense(b, sx_flatten(b, x), 3), in->labels,
                              .optimizer = sx_lars(.l2 = 1e-4));
}

/* The norms of weight and gradient, for the two kernels; not for biases, gamma and beta. */
static void test_nn_program__lars_adapts_kernels_alone(void **state)
{
    (void)state;
    const sx_model_def def = {.name = "m", .build = norm_and_dense, .image = {8, 8, 1}};
    sx_graph *g = NULL;
    assert_ok(build(&def, SX_TRAIN, NULL, &g));
    assert_int_equal(sx_graph_count_elems(g, SX_ROLE_WEIGHT), 9 * 4 + 4 + 4 + 4 + 36 * 4 * 3 + 3);
    int roots = 0, slots = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        roots += g->nodes[i].op == &sx_op_sqrt;
    }
    for (int i = 0; i < g->n_args; i++) {
        slots += g->args[i].role == SX_ROLE_SLOT;
    }
    assert_int_equal(roots, 2 * 2);
    assert_int_equal(slots, 6); /* all have momentum */
    sx_graph_destroy(g);
}

static sx_spec dropped(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    double rate = sx_param_float(p, "rate", 0);
    sx_value x = sx_dropout(b, in->features, rate);
    return sx_classifier_spec(b, sx_dense(b, x, 3), in->labels);
}

/* A rate of zero drops nothing, in training, too; another drops in training alone. */
static void test_nn_program__dropout_is_for_training(void **state)
{
    (void)state;
    const sx_model_def def = {.name = "m", .build = dropped, .features = 4};
    static const char *const rates[] = {"0", "0.5"};
    for (int i = 0; i < 2; i++) {
        for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
            sx_params *p = NULL;
            sx_graph *g = NULL;
            int drops = 0;
            assert_ok(sx_params_create(&p));
            assert_ok(sx_params_set(p, "rate", rates[i]));
            assert_ok(build(&def, (sx_mode)mode, p, &g));
            for (int k = 0; k < g->n_nodes; k++) {
                drops += strcmp(g->nodes[k].op->name, "dropout") == 0;
            }
            assert_int_equal(drops > 0, i == 1 && mode == SX_TRAIN);
            sx_graph_destroy(g);
            sx_params_destroy(p);
        }
    }
}

/* Eight metrics, and the predictions behind them in the spec: none is lost, none too many. */
static sx_spec measured(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    static const char *const names[SX_MAX_METRICS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    (void)p;
    sx_spec spec = sx_classifier_spec(b, sx_dense(b, in->features, 3), in->labels);
    for (int i = 0; i < SX_MAX_METRICS; i++) {
        spec.metrics[i] = (sx_named_value){.name = names[i], .value = spec.loss};
    }
    for (int i = 2; i < SX_MAX_PREDICTIONS; i++) {
        spec.predictions[i] = spec.predictions[0];
        spec.predictions[i].name = names[i];
    }
    return spec;
}

static void test_nn_program__takes_as_many_metrics_as_there_may_be(void **state)
{
    (void)state;
    static const sx_model_def def = SX_MODEL_DEF(.name = "full", .build = measured, .features = 4);
    static const int outputs[] = {[SX_TRAIN] = 1 + SX_MAX_METRICS + 2, /* with the rate and ok */
                                  [SX_EVAL] = 1 + SX_MAX_METRICS,
                                  [SX_PREDICT] = SX_MAX_PREDICTIONS};
    for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
        sx_graph *g = NULL;
        int n = 0;
        assert_ok(build(&def, (sx_mode)mode, NULL, &g));
        for (int i = 0; i < g->n_results; i++) {
            n += g->results[i].arg == SX_RESULT_IS_OUTPUT;
        }
        assert_int_equal(n, outputs[mode]);
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nn_program__zoo_has_keras_parameter_counts),
    cmocka_unit_test(test_nn_program__variables_have_tf1_names),
    cmocka_unit_test(test_nn_program__texts_round_trip),
    cmocka_unit_test(test_nn_program__errors_say_layer_line_and_shapes),
    cmocka_unit_test(test_nn_program__parameters_are_checked),
    cmocka_unit_test(test_nn_program__refuses_a_third_input),
    cmocka_unit_test(test_nn_program__lars_adapts_kernels_alone),
    cmocka_unit_test(test_nn_program__parameters_record_what_was_asked_for),
    cmocka_unit_test(test_nn_program__dropout_is_for_training),
    cmocka_unit_test(test_nn_program__takes_as_many_metrics_as_there_may_be),
};
SX_TEST_MAIN(tests)
