/* The TensorFlow graph writer: names, how values are spelled in graphs and functions, kept errors.
 */
#include "harness.h"

#include "savedmodel/tf_graph.h"

static sx_tf_value identity(sx_tf_writer *w, sx_tf_value x)
{
    return sx_tf_add(w, "Identity", NULL, sx_tf_in(x), sx_tf_attrs(sx_tf_attr_type("T", SX_F32)));
}

static void test_savedmodel_tf_graph__names(void **state)
{
    (void)state;
    sx_tf_graph *graph = NULL;
    assert_ok(sx_tf_graph_create(&graph));
    sx_tf_writer *w = sx_tf_graph_writer(graph);
    sx_tf_value a = sx_tf_const_f32(w, "a", 1);
    sx_tf_scope_push(w, "dense/inner 1");
    sx_tf_value b = identity(w, a), c = identity(w, b);
    sx_tf_scope_pop(w);
    sx_tf_value d = sx_tf_add(w, "NoOp", "_x", SX_TF_NO_IN, SX_TF_NO_ATTRS);
    assert_string_equal(sx_tf_graph_node_name(graph, b), "dense/inner_1/Identity");
    assert_string_equal(sx_tf_graph_tensor_name(graph, c), "dense/inner_1/Identity_1:0");
    assert_string_equal(sx_tf_graph_node_name(graph, d), ".x");
    assert_string_equal(sx_tf_graph_node_name(graph, (sx_tf_value){-1, 0}), "");
    sx_tf_control(w, d, sx_tf_in(a, b));
    Tensorflow__GraphDef *message = NULL;
    assert_ok(sx_tf_graph_finish(graph, &message));
    assert_int_equal(message->n_node, 4);
    assert_string_equal(message->node[2]->input[0], "dense/inner_1/Identity");
    assert_string_equal(message->node[3]->input[1], "^dense/inner_1/Identity");
    sx_tf_graph_destroy(graph);
}

static void test_savedmodel_tf_graph__functions(void **state)
{
    (void)state;
    static const int types[] = {SX_F32}, split_types[] = {SX_F32, SX_F32};
    sx_tf_graph *graph = NULL;
    assert_ok(sx_tf_graph_create(&graph));
    sx_tf_writer *w = sx_tf_graph_writer(graph);
    sx_tf_value x = sx_tf_const_f32(w, "x", 1);
    const char *names[2];
    for (int i = 0; i < 2; i++) {
        sx_tf_writer *body = sx_tf_function_begin(w, "body", 1, types);
        sx_tf_value split =
            sx_tf_add(body, "Split", NULL, sx_tf_in(sx_tf_const_i32(body, "axis", 0), sx_tf_arg(0)),
                      sx_tf_attrs(sx_tf_attr_int("num_split", 2), sx_tf_attr_type("T", SX_F32)));
        sx_tf_value y = identity(body, sx_tf_output(split, 1));
        names[i] = sx_tf_function_end(body, sx_tf_in(y, sx_tf_arg(0)), split_types);
    }
    assert_string_equal(names[0], "body");
    assert_string_equal(names[1], "body_1");
    sx_tf_value call = sx_tf_add(w, "PartitionedCall", NULL, sx_tf_in(x),
                                 sx_tf_attrs(sx_tf_attr_types("Tin", 1, types),
                                             sx_tf_attr_types("Tout", 2, split_types),
                                             sx_tf_attr_func("f", names[0])));
    (void)identity(w, sx_tf_output(call, 1));
    Tensorflow__GraphDef *message = NULL;
    assert_ok(sx_tf_graph_finish(graph, &message));
    const Tensorflow__FunctionDef *f = message->library->function[0];
    assert_int_equal(message->library->n_function, 2);
    assert_string_equal(f->node_def[1]->input[0], "axis:output:0");
    assert_string_equal(f->node_def[1]->input[1], "arg0");
    assert_string_equal(f->node_def[2]->input[0], "Split:output:1");
    assert_string_equal(f->ret[0]->value, "Identity:output:0");
    assert_string_equal(f->ret[1]->value, "arg0");
    assert_false(f->signature->is_stateful);
    assert_string_equal(message->node[2]->input[0], "PartitionedCall:1");
    assert_string_equal(message->node[1]->attr[0]->key, "Tin"); /* sorted */
    sx_tf_graph_destroy(graph);
}

static void test_savedmodel_tf_graph__keeps_the_first_error(void **state)
{
    (void)state;
    static const struct {
        int output;
        const char *op;
        sx_code code;
        const char *part;
    } rows[] = {
        {0, "NoSuchOp", SX_UNIMPLEMENTED, "NoSuchOp"},
        {1, "Identity", SX_INVALID_ARGUMENT, "Const \"a\" has no output 1"},
        {-1, "Identity", SX_INVALID_ARGUMENT, "does not belong to this graph"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_tf_graph *graph = NULL;
        Tensorflow__GraphDef *message = NULL;
        assert_ok(sx_tf_graph_create(&graph));
        sx_tf_writer *w = sx_tf_graph_writer(graph);
        sx_tf_value a = sx_tf_output(sx_tf_const_f32(w, "a", 1), rows[i].output);
        sx_tf_value bad = sx_tf_add(w, rows[i].op, NULL, sx_tf_in(a), SX_TF_NO_ATTRS);
        assert_int_equal(bad.node, -1);
        sx_tf_writer *body = sx_tf_function_begin(w, "f", 0, NULL); /* everything still works */
        (void)sx_tf_const_f32(body, "c", 1);
        assert_string_equal(sx_tf_function_end(body, SX_TF_NO_IN, NULL), "");
        sx_tf_fail(w, sx_error(SX_INTERNAL, "second"));
        assert_error(sx_tf_graph_finish(graph, &message), rows[i].code, rows[i].part);
        sx_tf_graph_destroy(graph);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_tf_graph__names),
    cmocka_unit_test(test_savedmodel_tf_graph__functions),
    cmocka_unit_test(test_savedmodel_tf_graph__keeps_the_first_error),
};
SX_TEST_MAIN(tests)
