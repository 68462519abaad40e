/* Post-training quantization (graph/passes/quantize.h): which values get quantizers. */
#include "harness.h"

#include <math.h>
#include <string.h>

#include <sextant/ops.h>

#include "graph/builder.h"
#include "graph/op_def.h"
#include "graph/ops/attrs.h"
#include "graph/passes/quantize.h"

static sx_value variable(sx_builder *b, const char *name, sx_type type)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = type});
}

static sx_value conv(sx_builder *b, sx_value x, const char *name, int64_t c, int64_t o)
{
    char bias[32];
    snprintf(bias, sizeof(bias), "%s_bias", name);
    sx_value y =
        sx_nn_conv2d(b, x, variable(b, name, sx_type_of(SX_F32, 3, 3, c, o)), .padding = SX_SAME);
    return sx_bias_add(b, y, variable(b, bias, sx_type_of(SX_F32, o)));
}

typedef struct fixture {
    sx_graph *graph;
    sx_arena arena;
    sx_quantize_points points;
} fixture;

/* Ends the graph with output y, and finds what is to be quantized. */
static fixture begin(sx_builder *b, sx_value y)
{
    fixture f;
    sx_graph *plain;
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &plain));
    sx_builder_destroy(b);
    assert_ok(sx_quantize_prepare(plain, &f.graph));
    sx_graph_destroy(plain);
    sx_arena_init(&f.arena, 0);
    assert_ok(sx_quantize_find(f.graph, &f.arena, &f.points));
    for (int i = 0; i < f.points.n; i++) {
        for (int64_t k = 0; k < f.points.points[i].channels; k++) {
            f.points.points[i].low[k] = f.points.points[i].is_filter ? -1 : 0;
            f.points.points[i].high[k] = 1;
        }
    }
    return f;
}

static void end(fixture *f)
{
    sx_graph_destroy(f->graph);
    sx_arena_deinit(&f->arena);
}

static int count(const sx_graph *g, int op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        n += g->nodes[k].op->id == op;
    }
    return n;
}

static int filters(const fixture *f)
{
    int n = 0;
    for (int i = 0; i < f->points.n; i++) {
        n += f->points.points[i].is_filter;
    }
    return n;
}

/* conv, pool, conv, pool, conv, dense: the first and the last stay. */
static void test_graph_quantize__leaves_the_first_and_the_last(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 16, 16, 3));
    x = sx_nn_max_pool2d(b, sx_relu(b, conv(b, x, "first", 3, 8)), .window = {2});
    x = sx_nn_max_pool2d(b, sx_relu(b, conv(b, x, "second", 8, 8)), .window = {2});
    x = sx_reshape(b, sx_relu(b, conv(b, x, "third", 8, 8)), SX_BATCH, 4 * 4 * 8);
    x = sx_matmul(b, x, variable(b, "last", sx_type_of(SX_F32, 4 * 4 * 8, 10)));
    fixture f = begin(b, x);
    assert_int_equal(f.points.products, 2);
    assert_int_equal(f.points.skipped, 2);
    assert_int_equal(filters(&f), 2);
    assert_int_equal(f.points.n, 4);
    /* What the second reads is pooled already, since the first is in float32; what the third reads
     * is quantized before its pool, so that the second makes integers. */
    const sx_quantize_point *p = f.points.points;
    bool pool = false, relu = false;
    for (int i = 0; i < f.points.n; i++) {
        const int op = sx_graph_maker(f.graph, p[i].value)->op->id;
        pool = pool || op == SX_OPID_max_pool2d;
        relu = relu || op == SX_OPID_relu;
    }
    assert_true(pool && relu);
    assert_ok(sx_pass_quantize(f.graph, &f.points, &g));
    assert_int_equal(count(g, SX_OPID_quantize_dequantize), 4);
    assert_int_equal(count(f.graph, SX_OPID_quantize_dequantize), 0);
    sx_graph_destroy(g);
    end(&f);
}

/* Of a sum, what is added to a product is quantized, too, and read so by all. */
static void test_graph_quantize__sums(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 8, 8, 3));
    x = sx_relu(b, conv(b, x, "first", 3, 8));
    sx_value branch = conv(b, sx_relu(b, conv(b, x, "a", 8, 8)), "b", 8, 8);
    x = sx_relu(b, sx_add(b, conv(b, x, "side", 8, 8), branch));
    x = sx_relu(b, sx_add(b, x, conv(b, x, "c", 8, 8)));
    x = conv(b, conv(b, x, "d", 8, 8), "last", 8, 8);
    fixture f = begin(b, x);
    assert_int_equal(f.points.products, 5); /* a, b, side, c, d */
    assert_int_equal(f.points.skipped, 2);
    /* images of a and side, b, c, d; side's result */
    assert_int_equal(f.points.n - filters(&f), 5);
    assert_ok(sx_pass_quantize(f.graph, &f.points, &g));
    for (int k = 0; k < g->n_nodes; k++) {
        if (g->nodes[k].op->id == SX_OPID_add) {
            const bool first = sx_graph_maker(g, g->nodes[k].inputs[0])->op->id ==
                               SX_OPID_quantize_dequantize,
                       second = sx_graph_maker(g, g->nodes[k].inputs[1])->op->id ==
                                SX_OPID_quantize_dequantize;
            assert_true(first != second);
        }
    }
    sx_graph_destroy(g);
    end(&f);
}

/* A model of two products has both quantized; outputs show what was quantized as it was. */
static void test_graph_quantize__all_if_there_are_no_others(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    sx_value hidden = sx_relu(b, sx_matmul(b, x, variable(b, "w", sx_type_of(SX_F32, 4, 8))));
    sx_output(b, "hidden", hidden);
    fixture f = begin(b, sx_matmul(b, hidden, variable(b, "v", sx_type_of(SX_F32, 8, 2))));
    assert_int_equal(f.points.products, 2);
    assert_int_equal(f.points.skipped, 0);
    assert_int_equal(f.points.n, 4);
    assert_ok(sx_pass_quantize(f.graph, &f.points, &g));
    assert_int_equal(sx_graph_maker(g, g->results[0].value)->op->id, SX_OPID_relu);
    sx_graph_destroy(g);
    assert_ok(sx_quantize_observe(f.graph, &f.points, &g));
    assert_int_equal(g->n_results, f.graph->n_results + f.points.n);
    assert_string_equal(g->results[0].name, "hidden");
    sx_graph_destroy(g);
    end(&f);
}

static void test_graph_quantize__nothing(void **state)
{
    (void)state;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    /* by what is no variable, and turned around */
    x = sx_matmul(b, x, sx_input(b, "w", sx_type_of(SX_F32, 4, 4)));
    x = sx_matmul(b, x, variable(b, "v", sx_type_of(SX_F32, 4, 4)), .transpose_b = true);
    fixture f = begin(b, x);
    assert_int_equal(f.points.n, 0);
    assert_int_equal(f.points.products, 0);
    end(&f);
}

static void test_graph_quantize__refuses_ranges(void **state)
{
    (void)state;
    static const float wrong[][2] = {{NAN, 1}, {0, NAN}, {0, INFINITY}, {-INFINITY, 0}, {2, 1}};
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    fixture f = begin(b, sx_matmul(b, x, variable(b, "w", sx_type_of(SX_F32, 4, 8))));
    for (int i = 0; i < 5; i++) {
        f.points.points[0].low[0] = wrong[i][0];
        f.points.points[0].high[0] = wrong[i][1];
        assert_error(sx_pass_quantize(f.graph, &f.points, &g), SX_INVALID_ARGUMENT,
                     "\"x\" cannot be quantized: its values lie in [");
    }
    f.points.points[0].low[0] = f.points.points[0].high[0] = 0; /* of zeros */
    assert_ok(sx_pass_quantize(f.graph, &f.points, &g));
    sx_graph_destroy(g);
    end(&f);
}

/* ---- bfloat16 ---- */

static sx_value plain_conv(sx_builder *b, sx_value x, const char *name, int64_t c, int64_t o)
{
    return sx_nn_conv2d(b, x, variable(b, name, sx_type_of(SX_F32, 1, 1, c, o)));
}

static sx_graph *rounded(sx_builder *b, sx_value y)
{
    sx_graph *plain, *g;
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &plain));
    sx_builder_destroy(b);
    assert_ok(sx_pass_round_products(plain, &g));
    sx_graph_destroy(plain);
    return g;
}

static bool is_rounding_of(const sx_graph *g, const sx_node *n, int op)
{
    return n->op->id == SX_OPID_round_bf16 && sx_graph_maker(g, n->inputs[0])->op->id == op;
}

static int roundings_of(const sx_graph *g, int op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        n += is_rounding_of(g, &g->nodes[k], op);
    }
    return n;
}

/* A concat of rounded values, and its maxima, are rounded for a convolution, but not known to be
 * for a product of matrices. */
static void test_graph_quantize__what_is_rounded_is_not_rounded_again(void **state)
{
    (void)state;
    for (int by_matmul = 0; by_matmul < 2; by_matmul++) {
        sx_builder *b;
        assert_ok(sx_builder_create(&b));
        const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4, 4, 8));
        sx_value x = sx_concat(b, -1, sx_relu(b, plain_conv(b, in, "a", 8, 8)),
                               sx_relu(b, plain_conv(b, in, "b", 8, 8)));
        if (by_matmul) {
            x = sx_reshape(b, x, -16, 16);
            x = sx_matmul(b, x, variable(b, "c", sx_type_of(SX_F32, 16, 8)));
        } else {
            x = plain_conv(b, sx_nn_max_pool2d(b, x, .window = {2}), "c", 16, 8);
        }
        sx_graph *g = rounded(b, x);
        assert_int_equal(roundings_of(g, SX_OPID_relu), 2);
        assert_int_equal(roundings_of(g, SX_OPID_concat), by_matmul);
        assert_int_equal(roundings_of(g, SX_OPID_max_pool2d), 0);
        for (int k = 0; k < g->n_nodes; k++) {
            const sx_node *n = &g->nodes[k];
            assert_true(n->op->id != SX_OPID_conv2d ||
                        ((const sx_conv2d_attrs *)n->attrs)->bf16_operands);
        }
        sx_graph_destroy(g);
    }
}

/* A depthwise convolution is rounded behind its swish, others before it. */
static void test_graph_quantize__swish_is_rounded_where_it_is_computed(void **state)
{
    (void)state;
    for (int depthwise = 0; depthwise < 2; depthwise++) {
        sx_builder *b;
        assert_ok(sx_builder_create(&b));
        const sx_value in = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4, 4, 8)),
                       w = variable(b, "w", sx_type_of(SX_F32, 3, 3, depthwise ? 1 : 8, 8));
        sx_value x = sx_nn_conv2d(b, in, w, .padding = SX_SAME, .groups = depthwise ? 8 : 1);
        x = sx_swish(b, x);
        sx_graph *g =
            rounded(b, plain_conv(b, sx_reduce_sum(b, x, .axes = SX_AXES(1, 2), .keep_dims = true),
                                  "c", 8, 8));
        assert_int_equal(roundings_of(g, SX_OPID_swish), depthwise);
        assert_int_equal(roundings_of(g, SX_OPID_conv2d), 2 - depthwise); /* and the last */
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_quantize__what_is_rounded_is_not_rounded_again),
    cmocka_unit_test(test_graph_quantize__swish_is_rounded_where_it_is_computed),
    cmocka_unit_test(test_graph_quantize__leaves_the_first_and_the_last),
    cmocka_unit_test(test_graph_quantize__sums),
    cmocka_unit_test(test_graph_quantize__all_if_there_are_no_others),
    cmocka_unit_test(test_graph_quantize__nothing),
    cmocka_unit_test(test_graph_quantize__refuses_ranges),
};

SX_TEST_MAIN(tests)
