/* What the pass that removes nodes by their types takes away, and that the values stay. */
#include "host_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    return (double)((k * 37 + arg * 11) % 29 - 14) / 8;
}

/* x with a border of zeros, [1, 5 + 3, 4 + 2, 2], a depthwise convolution of it and the gradients
 * of that; `read`: the border's gradient is a result, too. */
static sx_graph *bordered(bool read)
{
    const sx_conv2d_attrs conv = {
        .strides = {2, {2, 2}}, .dilations = {2, {1, 1}}, .padding = SX_VALID, .groups = 2};
    const sx_pad_attrs border = {.before = {4, {0, 1, 2, 0}}, .after = {4, {0, 2, 0, 0}}};
    sx_builder *b;
    sx_graph *g;
    sx_value d[3];
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 1, 5, 4, 2));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 3, 3, 1, 2));
    sx_value wide = sx_build_op(b, pad, &border, x);
    sx_value y = sx_build_op(b, conv2d, &conv, wide, w);
    sx_value loss = sx_reduce_sum(b, sx_square(b, y), .axes = SX_AXES(0, 1, 2, 3));
    sx_gradients(b, loss, (const sx_value[]){x, w, wide}, read ? 3 : 2, d);
    sx_output(b, "y", y);
    sx_output(b, "dx", d[0]);
    sx_output(b, "dw", d[1]);
    if (read) {
        sx_output(b, "dwide", d[2]);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_graph_simplify__convolutions_and_their_gradients_pad(void **state)
{
    (void)state;
    for (int read = 0; read < 2; read++) {
        sx_graph *g = bordered(read != 0), *simple, *live;
        assert_ok(sx_pass_simplify(g, &simple));
        assert_ok(sx_pass_drop_dead(simple, &live));
        assert_int_equal(count_nodes(g, &sx_op_slice), 1);
        assert_int_equal(count_nodes(live, &sx_op_pad), 0);
        assert_int_equal(count_nodes(live, &sx_op_slice), read);
        assert_int_equal(count_nodes(live, &sx_op_conv2d_grad_input), 1);
        assert_same_results(g, live, number);
        sx_graph_destroy(g);
        sx_graph_destroy(simple);
        sx_graph_destroy(live);
    }
}

/* relu(-x), or x, with a border of `value`, and the maxima of that in windows of 3. */
static sx_graph *maxima_of_border(bool relu, double value, int64_t width)
{
    const sx_pool2d_attrs pool = {
        .window = {2, {3, 3}}, .strides = {2, {2, 2}}, .padding = SX_VALID};
    const sx_pad_attrs border = {
        .before = {4, {0, 1, width, 0}}, .after = {4, {0, 1, 0, 0}}, .value = value};
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 2, 6, 5, 3));
    x = sx_build_op(b, pad, &border, relu ? sx_relu(b, sx_neg(b, x)) : x);
    sx_output(b, "y", sx_abs(b, sx_build_op(b, max_pool2d, &pool, x))); /* zeros of one sign */
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static void test_graph_simplify__max_pools_pad(void **state)
{
    (void)state;
    static const struct {
        bool relu;
        double value;
        int64_t width;
        int pads; /* that stay */
    } rows[] = {{true, 0, 1, 0},          {true, 0, 2, 0},        {false, 0, 1, 1}, {true, 1, 1, 1},
                {false, -INFINITY, 1, 0}, {true, -INFINITY, 3, 1} /* a window of nothing else */};
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        sx_graph *g = maxima_of_border(rows[i].relu, rows[i].value, rows[i].width), *simple, *live;
        assert_ok(sx_pass_simplify(g, &simple));
        assert_ok(sx_pass_drop_dead(simple, &live));
        assert_int_equal(count_nodes(live, &sx_op_pad), rows[i].pads);
        assert_same_results(g, live, number);
        sx_graph_destroy(g);
        sx_graph_destroy(simple);
        sx_graph_destroy(live);
    }
}

/* A border along the batch is no border of the image. */
static void test_graph_simplify__a_part_of_the_batch_stays(void **state)
{
    (void)state;
    const sx_conv2d_attrs conv = {.strides = {2, {1, 1}}, .dilations = {2, {1, 1}}, .groups = 1};
    const sx_pad_attrs border = {.before = {4, {0}}, .after = {4, {2, 1, 0, 0}}};
    sx_builder *b;
    sx_graph *g, *simple;
    sx_value dx;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 1, 4, 3, 1));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 2, 2, 1, 1));
    sx_value y = sx_build_op(b, conv2d, &conv, sx_build_op(b, pad, &border, x), w);
    sx_value loss = sx_reduce_sum(b, sx_square(b, y), .axes = SX_AXES(0, 1, 2, 3));
    sx_gradients(b, loss, &x, 1, &dx);
    sx_output(b, "dx", dx);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_simplify(g, &simple));
    assert_same_results(g, simple, number);
    sx_graph_destroy(g);
    sx_graph_destroy(simple);
}

static void test_graph_simplify__products_by_one(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g, *simple;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 2, 3));
    sx_value s = sx_input(b, "s", sx_type_of(SX_F32));
    sx_output(b, "y", sx_tanh(b, sx_mul(b, sx_constant_f32(b, 1), x)));
    sx_output(b, "z", sx_tanh(b, sx_mul(b, x, sx_constant_f32(b, 2))));
    sx_output(b, "wide", sx_mul(b, sx_broadcast_to(b, sx_constant_f32(b, 1), 2), s));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_simplify(g, &simple));
    assert_int_equal(count_nodes(simple, &sx_op_mul), 2);
    assert_same_results(g, simple, number);
    sx_graph_destroy(g);
    sx_graph_destroy(simple);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_simplify__convolutions_and_their_gradients_pad),
    cmocka_unit_test(test_graph_simplify__max_pools_pad),
    cmocka_unit_test(test_graph_simplify__a_part_of_the_batch_stays),
    cmocka_unit_test(test_graph_simplify__products_by_one),
};
SX_TEST_MAIN(tests)
