/* Wrong hyper-parameters: refused when the model is built, with the field, what it is and what is
 * expected, and the line of the model that gave it. One row per mistake. */
#include "harness.h"

#include <math.h>

#include "graph/ir.h"
#include "nn/optimizer.h"
#include "nn/params.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"

typedef sx_value layer_fn(sx_builder *b, sx_value image);

static sx_value conv_without_filters(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 0, 3);
}
static sx_value conv_without_kernel(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 0);
}
static sx_value conv_of_negative_width(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .kernel_width = -1);
}
static sx_value conv_of_negative_strides(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .strides = -2);
}
static sx_value conv_of_negative_dilation(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .dilation = -1);
}
static sx_value conv_of_negative_groups(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .groups = -3);
}
static sx_value conv_groups_and_channels(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .groups = 2);
}
static sx_value conv_groups_and_filters(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .groups = 3);
}
static sx_value conv_padding(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .padding = SX_EXPLICIT);
}
static sx_value conv_activation(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .activation = (sx_activation)17);
}
static sx_value conv_initializer(sx_builder *b, sx_value x)
{
    return sx_conv2d(b, x, 4, 3, .kernel_initializer = (sx_initializer)99);
}
static sx_value pool_of_nothing(sx_builder *b, sx_value x)
{
    return sx_max_pool2d(b, x, 0);
}
static sx_value pool_of_negative_strides(sx_builder *b, sx_value x)
{
    return sx_average_pool2d(b, x, 2, .strides = -1);
}
static sx_value dense_of_no_units(sx_builder *b, sx_value x)
{
    return sx_dense(b, sx_flatten(b, x), -4);
}
static sx_value drop_everything(sx_builder *b, sx_value x)
{
    return sx_dropout(b, x, 1);
}
static sx_value drop_less_than_nothing(sx_builder *b, sx_value x)
{
    return sx_dropout(b, x, -.1);
}
static sx_value drop_what(sx_builder *b, sx_value x)
{
    return sx_dropout(b, x, (double)NAN);
}
static sx_value norm_momentum(sx_builder *b, sx_value x)
{
    return sx_batch_norm(b, x, .momentum = 5);
}
static sx_value norm_epsilon(sx_builder *b, sx_value x)
{
    return sx_batch_norm(b, x, .epsilon = -1e-3);
}

static const struct {
    layer_fn *layer;
    const char *says;
} layers[] = {
    {conv_without_filters, "conv2d \"conv2d\": filters is 0, expected at least 1"},
    {conv_without_kernel, "kernel is 0, expected at least 1"},
    {conv_of_negative_width, "kernel_width is -1, expected at least 1"},
    {conv_of_negative_strides, "strides is -2, expected at least 1"},
    {conv_of_negative_dilation, "dilation is -1, expected at least 1"},
    {conv_of_negative_groups, "groups is -3, expected at least 1"},
    {conv_groups_and_channels, "2 groups do not divide the 3 channels and the 4 filters"},
    {conv_groups_and_filters, "3 groups do not divide the 3 channels and the 4 filters"},
    {conv_padding, "padding is 2, expected SX_VALID or SX_SAME"},
    {conv_activation, "activation 17 does not exist"},
    {conv_initializer, "variable \"conv2d/kernel\": initializer 99"},
    {pool_of_nothing, "max_pooling2d \"max_pooling2d\": pool is 0, expected at least 1"},
    {pool_of_negative_strides, "average_pooling2d\": strides is -1, expected at least 1"},
    {dense_of_no_units, "dense \"dense\": units is -4, expected at least 1"},
    {drop_everything, "dropout \"dropout\": rate is 1, expected [0, 1)"},
    {drop_less_than_nothing, "rate is -0.1, expected [0, 1)"},
    {drop_what, "rate is nan, expected [0, 1)"},
    {norm_momentum, "batch_normalization\": momentum is 5 and epsilon 0.001, expected a momentum "
                    "of 0 to 1"},
    {norm_epsilon, "momentum is 0.99 and epsilon -0.001, expected"},
};

static void test_nn_mistakes__of_layers_name_the_line_and_the_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
            sx_builder *b;
            sx_graph *g;
            assert_ok(sx_builder_create(&b));
            sx_builder_set_mode(b, (sx_mode)mode);
            layers[i].layer(b, sx_input(b, "image", sx_type_of(SX_F32, SX_BATCH, 8, 8, 3)));
            sx_status status = sx_builder_finish(b, &g);
            if (strstr(sx_status_message(status), "test_mistakes.c:") == NULL) {
                fail_msg("no line in \"%s\"", sx_status_message(status));
            }
            assert_error(status, SX_INVALID_ARGUMENT, layers[i].says);
            sx_builder_destroy(b);
        }
    }
}

static const struct {
    sx_optimizer optimizer;
    const char *says; /* NULL: it is right */
} optimizers[] = {
    {sx_sgd(.momentum = 5), "optimizer sgd: momentum is 5, expected 0 to 1"},
    {sx_sgd(.momentum = -.1), "optimizer sgd: momentum is -0.1, expected 0 to 1"},
    {sx_sgd(.momentum = 1), NULL},
    {sx_sgd(.learning_rate = -.1),
     "optimizer sgd: learning_rate is -0.1, expected a finite number"},
    {sx_sgd(.learning_rate = NAN), "learning_rate is nan"},
    {sx_sgd(.learning_rate = INFINITY), "learning_rate is inf"},
    {sx_sgd(.learning_rate = SX_ZERO), NULL},
    {sx_sgd(.l2 = -1e-4), "optimizer sgd: l2 is -0.0001, expected a finite number, 0 or more"},
    {sx_rmsprop(.rho = 1.5), "optimizer rmsprop: rho is 1.5, expected 0 to 1"},
    {sx_rmsprop(.epsilon = -1e-7), "optimizer rmsprop: epsilon is -1e-07, expected a finite"},
    {sx_rmsprop(.initial_accumulator_value = -1), "initial_accumulator_value is -1, expected"},
    {sx_adam(.beta_1 = 1), "optimizer adam: beta_1 is 1, expected 0 or more and less than 1"},
    {sx_adam(.beta_2 = 1.1), "optimizer adam: beta_2 is 1.1, expected 0 or more and less than 1"},
    {sx_adam(.epsilon = -1), "optimizer adam: epsilon is -1"},
    {sx_lars(.eeta = -1), "optimizer lars: eeta is -1, expected"},
    {{.kind = (sx_optimizer_kind)42}, "optimizer kind 42 does not exist"},
    {sx_adam(.reduction = (sx_reduction)3), "optimizer adam: reduction 3 does not exist"},
    {sx_adam(.base_batch_size = -1), "optimizer adam: base_batch_size is -1, expected at least 0"},
    {sx_adam(.schedule = {.warmup_epochs = -.5}),
     "schedule: warmup_epochs is -0.5, expected at least 0"},
    {sx_adam(.schedule = {.kind = (sx_schedule_kind)9}), "schedule kind 9 does not exist"},
    {sx_adam(.schedule = {.kind = SX_COSINE_DECAY}), "schedule: steps is 0, expected at least 1"},
    {sx_adam(.schedule = {.kind = SX_COSINE_DECAY, .steps = 9, .alpha = 1.5}),
     "optimizer adam: schedule: alpha is 1.5, expected 0 to 1"},
    {sx_adam(.schedule = {.kind = SX_COSINE_DECAY, .steps = 9, .alpha = .1}), NULL},
    {sx_adam(.schedule = {.kind = SX_EXPONENTIAL_DECAY, .steps = 9}),
     "schedule: rate is 0, expected a finite number greater than 0"},
    {sx_adam(.schedule = {.kind = SX_EXPONENTIAL_DECAY, .steps = 9, .rate = .5}), NULL},
    {sx_adam(.schedule = {.warmup_steps = -1}),
     "schedule: warmup_steps is -1, expected at least 0"},
    {sx_adam(.schedule = {.kind = SX_PIECEWISE, .n_boundaries = 9}),
     "schedule: n_boundaries is 9, expected 0 to 8"},
    {sx_adam(.schedule = {.kind = SX_PIECEWISE,
                          .n_boundaries = 2,
                          .boundaries = {60, 30},
                          .values = {1, .1, .01}}),
     "schedule: boundaries[1] is 30, expected at least boundaries[0], 60"},
    {sx_adam(.schedule = {.kind = SX_PIECEWISE,
                          .n_boundaries = 2,
                          .boundaries = {30, 60},
                          .values = {1, .1, -1}}),
     "schedule: values[2] is -1, expected a finite number, 0 or more"},
};

static void test_nn_mistakes__of_optimizers_and_schedules_name_the_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++) {
        sx_optimizer o = optimizers[i].optimizer;
        sx_status status = sx_optimizer_resolve(&o);
        if (optimizers[i].says == NULL) {
            assert_ok(status);
        } else {
            assert_error(status, SX_INVALID_ARGUMENT, optimizers[i].says);
        }
    }
}

/* ---- In a model ---- */

static sx_optimizer given;
static int given_top_k;

static sx_spec model(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value logits = sx_dense(b, sx_flatten(b, in->features), 5);
    return sx_classifier_spec(b, logits, in->labels, .top_k = given_top_k, .optimizer = given);
}

/* The same, its spec written by hand: the builder has no line of it. */
static sx_spec model_by_hand(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_optimizer kept = given;
    given = (sx_optimizer){0};
    sx_spec spec = model(b, in, p);
    given = spec.optimizer = kept;
    return spec;
}

static sx_status build(sx_build_fn *fn, sx_optimizer optimizer, int top_k, const sx_optimizer *wish)
{
    const sx_model_def def = {.name = "m", .build = fn, .image = {8, 8, 1}};
    sx_program_request r = {.def = &def, .optimizer = wish};
    sx_graph *g = NULL;
    given = optimizer;
    given_top_k = top_k;
    SX_TRY(sx_build_program(&r, &g));
    sx_graph_destroy(g);
    return SX_OK;
}

static void test_nn_mistakes__of_a_model_name_its_line(void **state)
{
    (void)state;
    static const char at[] = "model \"m\" on float32[N,8,8,1]: test_mistakes.c:";
    const struct {
        sx_status status;
        const char *says;
    } rows[] = {
        {build(model, sx_sgd(.momentum = 5), 0, NULL),
         ": classifier \"classifier\": optimizer sgd: momentum is 5, expected 0 to 1"},
        {build(model, sx_adam(.learning_rate = -1), 0, NULL), "learning_rate is -1"},
        {build(model, (sx_optimizer){0}, 6, NULL),
         ": classifier \"classifier\": top_k is 6, expected 0 to 5, the number of classes"},
        {build(model, (sx_optimizer){0}, -1, NULL), "top_k is -1, expected 0 to 5"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_non_null(strstr(sx_status_message(rows[i].status), at));
        assert_error(rows[i].status, SX_INVALID_ARGUMENT, rows[i].says);
    }
    assert_ok(build(model, sx_sgd(.momentum = .9), 5, NULL));
    assert_error(build(model_by_hand, sx_sgd(.momentum = 5), 0, NULL), SX_INVALID_ARGUMENT,
                 "model \"m\" on float32[N,8,8,1]: optimizer sgd: momentum is 5, expected 0 to 1");
    assert_error(build(model, (sx_optimizer){0}, 0, &(sx_optimizer){.learning_rate = -1}),
                 SX_INVALID_ARGUMENT, "optimizer adam: learning_rate is -1");
}

/* A model of the zoo asks for no more than its classes. */
static void test_nn_mistakes__resnet50_takes_few_classes(void **state)
{
    (void)state;
    sx_params *params;
    sx_program_request r = {.def = sx_zoo_find("resnet50"), .mode = SX_EVAL};
    assert_ok(sx_params_create(&params));
    r.params = params;
    for (int classes = 1; classes <= 6; classes++) {
        char text[16];
        sx_graph *g;
        snprintf(text, sizeof(text), "%d", classes);
        assert_ok(sx_params_set(params, "num_classes", text));
        assert_ok(sx_build_program(&r, &g));
        assert_int_equal(sx_graph_find_output(g, "top_5_accuracy") >= 0, classes >= 5);
        sx_graph_destroy(g);
    }
    sx_params_destroy(params);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nn_mistakes__of_layers_name_the_line_and_the_field),
    cmocka_unit_test(test_nn_mistakes__of_optimizers_and_schedules_name_the_field),
    cmocka_unit_test(test_nn_mistakes__of_a_model_name_its_line),
    cmocka_unit_test(test_nn_mistakes__resnet50_takes_few_classes),
};
SX_TEST_MAIN(tests)
