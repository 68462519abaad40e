/* The precision policy: what is bfloat16 under it and what stays float32, in every model of the zoo
 * and in code that mixes operators of its own with layers. */
#include "harness.h"

#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "nn/model_program.h"
#include "nn/zoo/zoo.h"

static sx_graph *program(const sx_model_def *def, sx_mode mode, sx_dtype precision)
{
    sx_graph *g = NULL;
    sx_program_request r = {.def = def, .mode = mode, .precision = precision};
    assert_ok(sx_build_program(&r, &g));
    assert_ok(sx_graph_validate(g));
    return g;
}

static sx_dtype dtype_of(const sx_graph *g, sx_value v)
{
    return sx_graph_type(g, v)->dtype;
}

static void expect_ends_in_f32(const sx_graph *g)
{
    for (int i = 0; i < g->n_args; i++) {
        assert_int_not_equal(dtype_of(g, g->args[i].value), SX_BF16);
    }
    for (int i = 0; i < g->n_results; i++) {
        assert_int_not_equal(dtype_of(g, g->results[i].value), SX_BF16);
    }
}

/* What each operator's first output must be under the policy. */
static void expect_node(const sx_graph *g, const sx_node *n)
{
    static const struct {
        sx_op_id op;
        sx_dtype dtype;
    } rows[] = {
        {SX_OPID_conv2d, SX_BF16},       {SX_OPID_conv2d_grad_input, SX_BF16},
        {SX_OPID_bias_add, SX_BF16},     {SX_OPID_max_pool2d, SX_BF16},
        {SX_OPID_batch_norm, SX_BF16},   {SX_OPID_batch_norm_train, SX_BF16},
        {SX_OPID_dropout, SX_BF16},      {SX_OPID_moments, SX_F32},
        {SX_OPID_apply_adam, SX_F32},    {SX_OPID_apply_momentum, SX_F32},
        {SX_OPID_apply_rmsprop, SX_F32}, {SX_OPID_apply_sgd, SX_F32},
        {SX_OPID_softmax, SX_F32},       {SX_OPID_conv2d_grad_filter, SX_F32},
        {SX_OPID_reduce_sum, SX_F32},    {SX_OPID_sparse_softmax_cross_entropy, SX_F32},
        {SX_OPID_all_finite, SX_BOOL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == (sx_op_id)n->op->id && dtype_of(g, n->first_output) != rows[i].dtype) {
            fail_msg("%s is %s", n->name, sx_dtype_name(dtype_of(g, n->first_output)));
        }
    }
}

static void test_nn_precision__the_zoo_computes_in_bfloat16_and_keeps_float32(void **state)
{
    (void)state;
    for (int i = 0; sx_zoo[i] != NULL; i++) {
        for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
            sx_graph *g = program(sx_zoo[i], (sx_mode)mode, SX_BF16);
            int narrow = 0;
            expect_ends_in_f32(g);
            for (int k = 0; k < g->n_nodes; k++) {
                expect_node(g, &g->nodes[k]);
                narrow += dtype_of(g, g->nodes[k].first_output) == SX_BF16;
            }
            assert_true(narrow >= 3);
            sx_graph_destroy(g);
        }
    }
}

/* A product that makes a weight's gradient gives float32: no gradient was rounded on its way. */
static void test_nn_precision__gradients_of_weights_are_never_rounded(void **state)
{
    (void)state;
    sx_graph *g = program(sx_zoo_find("mnist_cnn"), SX_TRAIN, SX_BF16);
    int updates = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (n->op->id == SX_OPID_apply_adam) {
            const sx_node *maker = sx_graph_maker(g, n->inputs[3]);
            assert_int_not_equal(maker->op->id, SX_OPID_cast);
            updates++;
        }
    }
    assert_int_equal(updates, 6);
    sx_graph_destroy(g);
}

static void test_nn_precision__float32_is_no_policy(void **state)
{
    (void)state;
    char *plain, *f32;
    sx_graph *a = program(sx_zoo_find("resnet50"), SX_TRAIN, SX_DTYPE_NONE);
    sx_graph *b = program(sx_zoo_find("resnet50"), SX_TRAIN, SX_F32);
    assert_ok(sx_graph_print(a, &plain));
    assert_ok(sx_graph_print(b, &f32));
    assert_string_equal(plain, f32);
    assert_null(strstr(plain, "bfloat16"));
    sx_text_free(plain);
    sx_text_free(f32);
    sx_graph_destroy(a);
    sx_graph_destroy(b);
}

/* ---- Composed operators ---- */

static sx_value variable(sx_builder *b, const char *name, int64_t n)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = sx_type_of(SX_F32, n)});
}

static void expect_dtype(sx_builder *b, sx_value v, sx_dtype dtype)
{
    assert_string_equal(sx_dtype_name(sx_type_of_value(b, v).dtype), sx_dtype_name(dtype));
}

static void test_nn_precision__constants_and_variables_follow_activations_widen(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_builder_set_precision(b, SX_BF16);
    assert_int_equal(sx_builder_precision(b), SX_BF16);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    sx_value y = sx_dense(b, x, 4), scale = variable(b, "scale", 4);
    expect_dtype(b, y, SX_BF16);
    expect_dtype(b, sx_mul(b, y, sx_constant_f32(b, 2)), SX_BF16);
    expect_dtype(b, sx_mul(b, scale, y), SX_BF16);
    expect_dtype(b, sx_add(b, y, x), SX_F32);
    expect_dtype(b, sx_mul(b, scale, x), SX_F32);
    expect_dtype(b, sx_activate(b, y, SX_RELU), SX_BF16);
    expect_dtype(b, sx_activate(b, y, SX_SOFTMAX), SX_F32);
    expect_dtype(b, sx_softmax(b, y), SX_F32);
    expect_dtype(b, sx_flatten(b, x), SX_BF16);
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_graph_destroy(g);
    sx_builder_destroy(b);
}

/* A model that knows nothing of the policy: its own loss from bfloat16, its own prediction. */
static sx_spec own_loss(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value y = sx_dense(b, in->features, 1);
    sx_value error = sx_reshape(b, sx_square(b, sx_mul(b, y, sx_constant_f32(b, 2))), SX_BATCH);
    return (sx_spec){.loss = error, .predictions = {{"y", y}}};
}

static void test_nn_precision__losses_and_predictions_are_widened(void **state)
{
    (void)state;
    const sx_model_def def = {.name = "m", .build = own_loss, .features = 3};
    for (int mode = SX_TRAIN; mode <= SX_PREDICT; mode++) {
        sx_graph *g = program(&def, (sx_mode)mode, SX_BF16);
        expect_ends_in_f32(g);
        sx_graph_destroy(g);
    }
}

static void test_nn_precision__other_types_are_refused(void **state)
{
    (void)state;
    sx_graph *g = NULL;
    sx_program_request r = {.def = sx_zoo_find("linear"), .precision = SX_I8};
    assert_error(sx_build_program(&r, &g), SX_INVALID_ARGUMENT,
                 "precision is int8, expected float32 or bfloat16");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nn_precision__the_zoo_computes_in_bfloat16_and_keeps_float32),
    cmocka_unit_test(test_nn_precision__gradients_of_weights_are_never_rounded),
    cmocka_unit_test(test_nn_precision__float32_is_no_policy),
    cmocka_unit_test(test_nn_precision__constants_and_variables_follow_activations_widen),
    cmocka_unit_test(test_nn_precision__losses_and_predictions_are_widened),
    cmocka_unit_test(test_nn_precision__other_types_are_refused),
};
SX_TEST_MAIN(tests)
