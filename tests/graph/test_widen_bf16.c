/* The pass that keeps bfloat16 in float32: where it rounds, where it need not, what stays. */
#include "harness.h"

#include <sextant/ops.h>

#include "base/half.h"
#include "graph/builder.h"
#include "graph/op_samples.h"
#include "graph/ops/attrs.h"
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

/* Whether results of bfloat16 numbers need no rounding: they are some of the operands, or sums of
 * one gradient each, where the windows of a pool do not overlap. */
static void test_graph_widen_bf16__operators_that_keep_bfloat16(void **state)
{
    (void)state;
    static const sx_pool2d_attrs apart = {.window = {2, {2, 2}}, .strides = {2, {2, 2}}},
                                 no_strides = {.window = {2, {3, 3}}},
                                 gaps = {.window = {2, {2, 3}}, .strides = {2, {3, 4}}},
                                 high = {.window = {2, {3, 2}}, .strides = {2, {2, 2}}},
                                 wide = {.window = {2, {2, 3}}, .strides = {2, {2, 2}}},
                                 both = {.window = {2, {3, 3}}, .strides = {2, {1, 1}}};
    static const struct {
        const sx_op_def *op;
        const void *attrs;
        bool keeps;
    } rows[] = {
        {&sx_op_max_pool2d_grad, &apart, true},
        {&sx_op_max_pool2d_grad, &no_strides, true},
        {&sx_op_max_pool2d_grad, &gaps, true},
        {&sx_op_max_pool2d_grad, &high, false},
        {&sx_op_max_pool2d_grad, &wide, false},
        {&sx_op_max_pool2d_grad, &both, false},
        {&sx_op_max_pool2d, &both, true},
        {&sx_op_avg_pool2d, &apart, false},
        {&sx_op_relu, NULL, true},
        {&sx_op_exp, NULL, false},
        {&sx_op_add, NULL, false},
        {&sx_op_reduce_sum, NULL, false},
        {&sx_op_reduce_max, NULL, true},
        {&sx_op_reshape, NULL, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (sx_op_keeps_bf16(&(sx_node){.op = rows[i].op, .attrs = rows[i].attrs}) !=
            rows[i].keeps) {
            fail_msg("row %zu: %s", i, rows[i].op->name);
        }
    }
}

static bool is_rounded(const sx_host_tensor *t)
{
    bool rounded = true;
    for (int64_t i = 0; sx_dtype_is_float(t->type.dtype) && i < sx_type_elems(&t->type); i++) {
        const float v = (float)t->f[i], near = sx_bf16_to_f32(sx_f32_to_bf16(v));
        rounded = rounded && (near == v || near != near);
    }
    return rounded;
}

static const char *check_kept(const sx_op_def *op, const sx_op_sample *sample)
{
    op_sample_run run;
    const char *wrong = NULL;
    op_sample_begin(op, sample, &run);
    if (op != &sx_op_constant && sx_op_keeps_bf16(&(sx_node){.op = op, .attrs = run.attrs})) {
        for (int i = 0; i < run.n_in; i++) {
            const bool is_float = sx_dtype_is_float(run.in[i].type.dtype);
            for (int64_t k = 0; is_float && k < sx_type_elems(&run.in[i].type); k++) {
                run.in[i].f[k] = sx_bf16_to_f32(sx_f32_to_bf16((float)run.in[i].f[k]));
            }
        }
        op_sample_forward(&run, false);
        for (int k = 0; k < run.n_out; k++) {
            wrong = is_rounded(&run.out[k]) ? wrong : "its results are not bfloat16 numbers";
        }
    }
    op_sample_end(&run);
    return wrong;
}

static void test_graph_widen_bf16__what_is_kept_is_bfloat16(void **state)
{
    (void)state;
    assert_int_equal(op_samples_failing(check_kept), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_widen_bf16__operators_that_keep_bfloat16),
    cmocka_unit_test(test_graph_widen_bf16__what_is_kept_is_bfloat16),
    cmocka_unit_test(test_graph_widen_bf16__rounds_where_a_value_is_kept),
    cmocka_unit_test(test_graph_widen_bf16__args_and_results_keep_their_types),
    cmocka_unit_test(test_graph_widen_bf16__float32_graphs_stay),
};
SX_TEST_MAIN(tests)
