/* Models with named features and labels: the inputs of their programs, and what is refused. */
#include "harness.h"

#include "graph/ir.h"
#include "nn/model_program.h"

static sx_spec two_inputs(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    assert_int_equal(in->n_features, 4);
    assert_int_equal(in->features.id, sx_feature(b, in, "age").id);
    sx_value age = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    sx_value words = sx_cast(b, sx_feature(b, in, "words"), SX_F32);
    sx_value mask = sx_cast(b, sx_feature(b, in, "words_mask"), SX_F32);
    sx_value pixels = sx_cast(b, sx_flatten(b, sx_feature(b, in, "pixels")), SX_F32);
    sx_value x = sx_concat(b, 1, age, sx_mul(b, words, mask), pixels);
    return sx_classifier_spec(b, sx_dense(b, x, 3), sx_label(b, in, "kind"));
}

static const sx_model_def good =
    SX_MODEL_DEF(.name = "m", .build = two_inputs,
                 .inputs = {{.name = "age"},
                            {.name = "words", SX_I32, .max_length = 4, .padding_value = -1},
                            {.name = "pixels", SX_U8, {2, 2, 1}}},
                 .labels = {{.name = "kind"}}, .example_weight = "w");

static sx_status build(const sx_model_def *def, sx_mode mode, sx_graph **out)
{
    return sx_build_program(&(sx_program_request){.def = def, .mode = mode}, out);
}

static void test_nn_named__programs_have_an_input_of_each_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
        bool in[3]; /* by mode */
    } rows[] = {{.name = "features/age", "float32[N]", {true, true, true}},
                {.name = "features/words", "int32[N,4]", {true, true, true}},
                {.name = "features/words_mask", "bool[N,4]", {true, true, true}},
                {.name = "features/pixels", "uint8[N,2,2,1]", {true, true, true}},
                {.name = "labels/kind", "int32[N]", {true, true, false}},
                {.name = "weights", "float32[N]", {true, false, false}}};
    for (int mode = 0; mode < 3; mode++) {
        sx_graph *g = NULL;
        int n = 0, expected = 0;
        assert_ok(build(&good, (sx_mode)mode, &g));
        assert_ok(sx_graph_validate(g));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            char text[SX_TYPE_TEXT];
            int arg = sx_graph_find_arg(g, rows[i].name);
            assert_int_equal(arg >= 0, rows[i].in[mode]);
            expected += rows[i].in[mode];
            if (arg >= 0) {
                sx_type_format(sx_graph_type(g, g->args[arg].value), text, sizeof(text));
                assert_string_equal(text, rows[i].type);
            }
        }
        for (int i = 0; i < g->n_args; i++) {
            n += g->args[i].kind == SX_ARG_INPUT;
        }
        assert_int_equal(n, expected);
        assert_int_equal(sx_graph_find_output(g, SX_WEIGHT_SUM) >= 0, mode == SX_TRAIN);
        sx_graph_destroy(g);
    }
}

static sx_spec mistyped(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_reshape(b, sx_feature(b, in, "aeg"), SX_BATCH, 1);
    return sx_classifier_spec(b, sx_dense(b, x, 3), sx_label(b, in, "kind"));
}

static sx_spec mistyped_label(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1);
    return sx_classifier_spec(b, sx_dense(b, x, 3), sx_label(b, in, "colour"));
}

static void test_nn_named__unknown_names_list_those_that_exist(void **state)
{
    (void)state;
    sx_model_def def = good;
    sx_graph *g = NULL;
    def.build = mistyped;
    assert_error(build(&def, SX_PREDICT, &g), SX_NOT_FOUND,
                 "model \"m\": test_named.c:71: the model has no feature \"aeg\" (it has \"age\", "
                 "\"words\", \"words_mask\", \"pixels\"); did you mean \"age\"?");
    def.build = mistyped_label;
    assert_error(build(&def, SX_TRAIN, &g), SX_NOT_FOUND,
                 "the model has no label \"colour\" (it has \"kind\")");
}

static void test_nn_named__bad_declarations_are_refused(void **state)
{
    (void)state;
    static const struct {
        sx_model_def def;
        const char *message;
    } rows[] = {
        {{.inputs = {{.name = "title", SX_STRING}}},
         "input \"title\" is a string, which cannot be sent"},
        {{.inputs = {{.name = "x", SX_F64}}}, "input \"x\" is float64, expected float32, int32"},
        {{.inputs = {{.name = "a/b"}}}, "input \"a/b\": expected a name"},
        {{.inputs = {{.name = "1a"}}}, "input \"1a\": expected a name"},
        {{.inputs = {{.name = ""}}}, "input \"\": expected a name"},
        {{.inputs = {{.name = "x"}, {.name = "x", SX_I32}}}, "input \"x\": the name is used twice"},
        {{.inputs = {{.name = "x"}}, .labels = {{.name = "x"}}},
         "label \"x\": the name is used twice"},
        {{.inputs = {{.name = "x", .max_length = 2}, {.name = "x_mask"}}},
         "input \"x_mask\": the name is used twice"},
        {{.inputs = {{.name = "x"}}, .example_weight = "x"},
         "example_weight \"x\": the name is used twice"},
        {{.inputs = {{.name = "x", .dims = {2, -1}}}}, "input \"x\": dimension 1 is -1"},
        {{.inputs = {{.name = "x", .max_length = -3}}}, "input \"x\": max_length is -3"},
        {{.inputs = {{.name = "x", .dims = {1 << 20, 1 << 20}}}}, "an example has more than 2 GiB"},
        {{.inputs = {{.name = "x", SX_U8, .max_length = 2, .padding_value = 256}}},
         "the padding value 256"},
        {{.inputs = {{.name = "x", SX_I32, .default_value = .5}}},
         "the default value 0.5 must be of its"},
        {{.labels = {{.name = "x"}}}, "0 inputs and 1 labels, expected 1 to 32 inputs"},
        {{.inputs = {{.name = "x"}}, .features = 3}, "sets .image or .features and also .inputs"},
        {{.features = 3, .example_weight = "w"}, "sets .image or .features and also .inputs"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_model_def def = rows[i].def;
        sx_graph *g = NULL;
        def.name = "m";
        def.build = two_inputs;
        assert_error(build(&def, SX_TRAIN, &g), SX_INVALID_ARGUMENT, rows[i].message);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nn_named__programs_have_an_input_of_each_name),
    cmocka_unit_test(test_nn_named__unknown_names_list_those_that_exist),
    cmocka_unit_test(test_nn_named__bad_declarations_are_refused),
};
SX_TEST_MAIN(tests)
