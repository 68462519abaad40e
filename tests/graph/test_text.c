/* The text form: what is printed parses to an equal graph; broken texts are errors, never crashes.
 */
#include "harness.h"

#include "graph/ir.h"

static char *sample_text(void)
{
    sx_builder *b;
    sx_graph *g;
    char *text;
    assert_ok(sx_builder_create(&b));
    sx_builder_at(b, "a \"quoted\"\\file.c", 3);
    sx_variable(b, &(sx_variable_spec){.name = "dense/kernel",
                                       .type = sx_type_of(SX_F32, 2, 2),
                                       .init = SX_INIT_CONSTANT,
                                       .init_value = 0.1});
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_value c = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 2, 2), (float[]){1, -2, 0.5f, 4}});
    sx_assign(b, "dense/kernel", c);
    sx_output(b, "x", x);
    sx_output(b, "scalar", sx_constant_f32(b, 0.1));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_graph_print(g, &text));
    sx_graph_destroy(g);
    return text;
}

static void test_graph_text__round_trip(void **state)
{
    (void)state;
    char *text = sample_text(), *again;
    sx_graph *g;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    assert_ok(sx_graph_validate(g));
    assert_ok(sx_graph_print(g, &again));
    assert_string_equal(text, again);
    assert_int_equal(g->n_args, 2);
    assert_true(g->args[0].init == SX_INIT_CONSTANT && g->args[0].init_value == 0.1);
    sx_graph_destroy(g);
    sx_text_free(text);
    sx_text_free(again);
}

static void test_graph_text__every_prefix_and_flip_is_survived(void **state)
{
    (void)state;
    char *text = sample_text();
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        sx_graph *g = NULL;
        sx_status_free(sx_graph_parse(text, i, &g));
        sx_graph_destroy(g);
        char kept = text[i];
        for (int flip = 0; flip < 8; flip++) {
            text[i] = (char)(kept ^ 1 << flip);
            g = NULL;
            sx_status_free(sx_graph_parse(text, size, &g));
            sx_graph_destroy(g);
        }
        text[i] = kept;
    }
    sx_text_free(text);
}

static void test_graph_text__errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sx_code code;
        const char *message;
    } cases[] = {
        {"", SX_INVALID_ARGUMENT, "line 1: expected \"sextant-graph 1\", got the end"},
        {"sextant-graph 2\n", SX_UNIMPLEMENTED, "version 2"},
        {"sextant-graph 1\ninput %1 float32[2] \"x\"\n%2 = fly(%1) float32[2] \"y\"\n",
         SX_NOT_FOUND, "line 3: no operator \"fly\""},
        {"sextant-graph 1\ninput %2 float32[2] \"x\"\n", SX_INVALID_ARGUMENT, "%2 is out of order"},
        {"sextant-graph 1\ninput %1 float33[2] \"x\"\n", SX_INVALID_ARGUMENT, "expected a dtype"},
        {"sextant-graph 1\noutput \"y\" %7\n", SX_INVALID_ARGUMENT, "%7, which does not exist"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sx_graph *g;
        assert_error(sx_graph_parse(cases[i].text, strlen(cases[i].text), &g), cases[i].code,
                     cases[i].message);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_text__round_trip),
    cmocka_unit_test(test_graph_text__every_prefix_and_flip_is_survived),
    cmocka_unit_test(test_graph_text__errors_name_the_line),
};
SX_TEST_MAIN(tests)
