/* The builder, names, arguments, results, and the errors that surface at finish. */
#include "harness.h"

#include "graph/ops/attrs.h"
#include "graph/passes/rewrite.h"

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

/* A gradient that nobody has written is an error, and no zero; not where nothing asks for it. */
static void test_graph_builder__refuses_gradients_that_are_not_written(void **state)
{
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        sx_builder *b = begin();
        sx_graph *g;
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 3)),
                 y = sx_truncate_mod(b, x, sx_exp(b, x)), dx;
        y = sx_mul(b, stops ? sx_stop_gradient(b, y) : y, x);
        sx_gradients(b, sx_reduce_sum(b, y, .keep_dims = false), &x, 1, &dx);
        sx_output(b, "dx", dx);
        if (stops) {
            assert_ok(sx_builder_finish(b, &g));
            sx_graph_destroy(g);
        } else {
            assert_error(sx_builder_finish(b, &g), SX_UNIMPLEMENTED,
                         "the gradient of truncate_mod \"truncate_mod\" is not implemented; apply "
                         "sx_stop_gradient() to its result");
        }
        sx_builder_destroy(b);
    }
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
                 "flowers.c:14: variable \"w\": requested as float32[4], but it is float32[3]");
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

/* ---- What a slip in a pass could leave behind: no graph like that gets out ---- */

static sx_node *last_node(sx_graph *g)
{
    return &g->nodes[g->n_nodes - 1];
}
static void another_shape(sx_graph *g)
{
    union {
        const void *kept;
        sx_shape_attrs *attrs;
    } u = {.kept = last_node(g)->attrs};
    u.attrs->shape.v[1] = 5;
}
static void reads_itself(sx_graph *g)
{
    last_node(g)->inputs = &g->args[0].value;
    g->args[0].value = last_node(g)->first_output;
}
static void another_type(sx_graph *g)
{
    g->values[1].type.dtype = SX_F64;
}
static void lost_value(sx_graph *g)
{
    g->n_values--;
}
static void another_maker(sx_graph *g)
{
    g->values[g->n_values - 1].node = 0;
}
static void no_result(sx_graph *g)
{
    g->results[0].value.id = (uint32_t)g->n_values;
}
static void assigned_another_type(sx_graph *g)
{
    g->results[0].arg = 0;
}
static void lost_argument(sx_graph *g)
{
    g->n_args--;
}
static void exchanged_arguments(sx_graph *g)
{
    sx_arg first = g->args[0];
    g->args[0] = g->args[1];
    g->args[1] = first;
}

static const struct {
    void (*spoil)(sx_graph *g);
    const char *says;
} slips[] = {
    {another_shape, "reshape \"reshape\": cannot reshape float32[6] to float32[2,5]"},
    {reads_itself, "reshape \"reshape\": input 0 is value 3, which does not precede the node"},
    {another_type, "parameter \"w\": output 0 is float64[6], expected float32[6]"},
    {lost_value, "its outputs are not values 3 to 3 of 3"},
    {another_maker, "output 0 is recorded as output 0 of node 0"},
    {no_result, "result \"y\" has no value"},
    {assigned_another_type, "result \"y\" is not of its variable's type"},
    {lost_argument, "parameter \"x\" is not argument 1"},
    {exchanged_arguments, "parameter \"w\" is not argument 0"},
};

static void build_small(sx_builder *b)
{
    sx_value w = weight(b, "w", sx_type_of(SX_F32, 6));
    (void)sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3));
    sx_output(b, "y", sx_reshape(b, w, 2, 3));
}

static void test_graph_builder__hands_out_only_valid_graphs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        sx_builder *b = begin();
        sx_graph *g = NULL;
        build_small(b);
        slips[i].spoil(b->graph);
        sx_status status = sx_builder_finish(b, &g);
        assert_null(g);
        assert_non_null(strstr(sx_status_message(status), "not valid"));
        assert_error(status, sx_status_code(status), slips[i].says);
        sx_builder_destroy(b);
    }
}

static void keep_and_spoil(sx_rewrite *rw, const sx_node *n)
{
    sx_rewrite_keep(rw, n, NULL);
    void (*const *spoil)(sx_graph *) = rw->user;
    (*spoil)(rw->to->graph);
}

static void test_graph_builder__a_pass_that_slips_is_an_error(void **state)
{
    (void)state;
    sx_builder *b = begin();
    sx_graph *g, *out = NULL;
    build_small(b);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    void (*spoil)(sx_graph *) = another_shape;
    assert_error(sx_rewrite_run(g, 0, keep_and_spoil, &spoil, &out), SX_INVALID_ARGUMENT,
                 slips[0].says);
    spoil = another_type;
    assert_error(sx_rewrite_run(g, 0, keep_and_spoil, &spoil, &out), SX_INTERNAL, slips[2].says);
    assert_null(out);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_builder__keeps_args_and_results),
    cmocka_unit_test(test_graph_builder__refuses_gradients_that_are_not_written),
    cmocka_unit_test(test_graph_builder__numbers_scopes_as_keras),
    cmocka_unit_test(test_graph_builder__keeps_the_first_error),
    cmocka_unit_test(test_graph_builder__variables_are_static),
    cmocka_unit_test(test_graph_builder__hands_out_only_valid_graphs),
    cmocka_unit_test(test_graph_builder__a_pass_that_slips_is_an_error),
};
SX_TEST_MAIN(tests)
