/* The pass that keeps bfloat16 in float32: where it rounds, where it need not, what stays. */
#include "harness.h"

#include <sextant/ops.h>

#include "graph/builder.h"
#include "graph/passes/passes.h"

static int count(const sx_graph *g, sx_op_id op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        n += g->nodes[k].op->id == (int)op;
    }
    return n;
}

static sx_graph *widened(sx_builder *b)
{
    sx_graph *g, *wide, *simple;
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_widen_bf16(g, &wide));
    assert_ok(sx_graph_validate(wide));
    assert_ok(sx_pass_simplify(wide, &simple));
    sx_graph_destroy(g);
    sx_graph_destroy(wide);
    return simple;
}

static void expect_narrow_at_the_ends_only(const sx_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        bool end = n->op->id == SX_OPID_parameter || n->op->id == SX_OPID_cast;
        assert_true(end || sx_graph_type(g, n->first_output)->dtype != SX_BF16);
    }
}

/* x and w are rounded as they are cast; bias, conv and bias_add go on unrounded, each read by one
 * elementwise node; relu, which two read, is rounded. */
static void test_graph_widen_bf16__rounds_where_a_value_is_kept(void **state)
{
    (void)state;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_cast(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4, 4, 2)), SX_BF16);
    sx_value w = sx_cast(b, sx_input(b, "w", sx_type_of(SX_F32, 3, 3, 2, 3)), SX_BF16);
    sx_value bias = sx_cast(b, sx_input(b, "b", sx_type_of(SX_F32, 3)), SX_BF16);
    sx_value y = sx_relu(b, sx_bias_add(b, sx_nn_conv2d(b, x, w), bias));
    sx_value pooled = sx_nn_max_pool2d(b, y, .window = {2, 2});
    sx_output(b, "sum", sx_cast(b, sx_reduce_sum(b, sx_mul(b, y, y)), SX_F32));
    sx_output(b, "pooled", sx_cast(b, pooled, SX_F32));
    sx_graph *g = widened(b);
    expect_narrow_at_the_ends_only(g);
    /* x, w, relu, mul (a sum reads it), the sum (a cast to float32 reads it) */
    assert_int_equal(count(g, SX_OPID_round_bf16), 5);
    assert_int_equal(count(g, SX_OPID_cast), 0);
    sx_graph_destroy(g);
}

static void test_graph_widen_bf16__args_and_results_keep_their_types(void **state)
{
    (void)state;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_BF16, SX_BATCH, 3));
    sx_value y = sx_exp(b, x);
    sx_output(b, "x", x);
    sx_output(b, "y", y);
    sx_output(b, "z", sx_neg(b, y));
    sx_graph *g = widened(b);
    expect_narrow_at_the_ends_only(g);
    assert_int_equal(sx_graph_type(g, g->args[0].value)->dtype, SX_BF16);
    for (int i = 0; i < g->n_results; i++) {
        assert_int_equal(sx_graph_type(g, g->results[i].value)->dtype, SX_BF16);
    }
    sx_graph_destroy(g);
}

static void test_graph_widen_bf16__float32_graphs_stay(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g, *wide;
    char *before, *after;
    assert_ok(sx_builder_create(&b));
    sx_output(b, "y", sx_exp(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3))));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_widen_bf16(g, &wide));
    assert_ok(sx_graph_print(g, &before));
    assert_ok(sx_graph_print(wide, &after));
    assert_string_equal(before, after);
    sx_text_free(before);
    sx_text_free(after);
    sx_graph_destroy(g);
    sx_graph_destroy(wide);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_widen_bf16__rounds_where_a_value_is_kept),
    cmocka_unit_test(test_graph_widen_bf16__args_and_results_keep_their_types),
    cmocka_unit_test(test_graph_widen_bf16__float32_graphs_stay),
};
SX_TEST_MAIN(tests)
