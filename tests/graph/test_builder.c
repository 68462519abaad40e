/* The builder, names, arguments, results, and the errors that surface at finish. */
#include "harness.h"

#include "graph/ir.h"

static sx_builder *begin(void)
{
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    return b;
}

static sx_value weight(sx_builder *b, const char *name, sx_type type)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = type, .init = SX_INIT_ONES});
}

static void test_graph_builder__keeps_args_and_results(void **state)
{
    (void)state;
    sx_builder *b = begin();
    sx_value w = weight(b, "w", sx_type_of(SX_F32, 3));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3));
    sx_value c = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 3), (float[]){1, 2, 3}});
    sx_assign(b, "w", c);
    sx_output(b, "x", x);
    assert_true(
        sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 3)}).id == c.id);
    sx_graph *g;
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_int_equal(g->n_args, 2);
    assert_int_equal(g->args[0].value.id, w.id);
    assert_int_equal(g->results[0].arg, 0);
    assert_int_equal(g->results[0].value.id, c.id);
    assert_int_equal(g->results[1].arg, SX_RESULT_IS_OUTPUT);
    assert_ok(sx_graph_validate(g));
    sx_graph_destroy(g);
}

static void test_graph_builder__numbers_scopes_as_keras(void **state)
{
    (void)state;
    sx_builder *b = begin();
    const char *expected[] = {"conv2d", "conv2d_1", "conv2d_2"};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(sx_scope_begin(b, "conv2d", NULL), expected[i]);
        sx_scope_end(b);
    }
    assert_string_equal(sx_scope_begin(b, "dense", "head"), "head");
    assert_string_equal(sx_scoped_name(b, "kernel"), "head/kernel");
    assert_string_equal(sx_scope_begin(b, "dense", NULL), "head/dense");
    sx_scope_end(b);
    sx_scope_end(b);
    sx_scope_begin(b, "dense", "head");
    sx_scope_end(b);
    sx_graph *g;
    assert_error(sx_builder_finish(b, &g), SX_ALREADY_EXISTS, "head");
    sx_builder_destroy(b);
}

static void test_graph_builder__keeps_the_first_error(void **state)
{
    (void)state;
    sx_builder *b = begin();
    sx_builder_at(b, "models/flowers.c", 14);
    weight(b, "w", sx_type_of(SX_F32, 3));
    weight(b, "w", sx_type_of(SX_F32, 4));
    sx_assign(b, "nobody", SX_NO_VALUE);
    assert_true(sx_builder_failed(b));
    sx_graph *g;
    assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT,
                 "flowers.c:14: variable \"w\": asked for as float32[4], but it is float32[3]");
    assert_error(sx_builder_finish(b, &g), SX_FAILED_PRECONDITION, "reported");
    sx_builder_destroy(b);
}

static void test_graph_builder__variables_are_static(void **state)
{
    (void)state;
    sx_builder *b = begin();
    weight(b, "w", sx_type_of(SX_F32, SX_BATCH, 3));
    sx_graph *g;
    assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT, "cannot depend on the batch");
    sx_builder_destroy(b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_builder__keeps_args_and_results),
    cmocka_unit_test(test_graph_builder__numbers_scopes_as_keras),
    cmocka_unit_test(test_graph_builder__keeps_the_first_error),
    cmocka_unit_test(test_graph_builder__variables_are_static),
};
SX_TEST_MAIN(tests)
