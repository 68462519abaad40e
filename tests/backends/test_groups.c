/* Elementwise groups of the cpu that end in sums, and those whose operands lack dimensions in the
 * middle: the host's numbers, in one kernel, on any number of threads. */
#include "example_run.h"

#include <stdio.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"

static sx_graph *finish(sx_builder *b, sx_value y)
{
    sx_graph *g;
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* The host's numbers in that kernel; the same bits from two threads where no sum goes over the
 * batch. */
static void check(const char *name, const sx_graph *g, const char *kernel, bool by_example)
{
    int64_t n;
    print_message("%s\n", name);
    equals_host(
        g, &(run_options){.backend = "cpu", .threads = 1, .batch = EXAMPLES, .kernel = kernel});
    float *one = run(g, &(run_options){.backend = "cpu", .threads = 1, .batch = EXAMPLES}, &n);
    float *two = run(g, &(run_options){.backend = "cpu", .threads = 2, .batch = EXAMPLES}, &n);
    if (by_example) {
        assert_memory_equal(one, two, (size_t)n * sizeof(float));
    }
    sx_free(one);
    sx_free(two);
}

/* ---- Batch norm and an activation, both ways ---- */

typedef sx_value act_fn(sx_builder *b, sx_value x);

static sx_value relu(sx_builder *b, sx_value x)
{
    return sx_relu(b, x);
}
static sx_value relu6(sx_builder *b, sx_value x)
{
    return sx_relu6(b, x);
}
static sx_value swish(sx_builder *b, sx_value x)
{
    return sx_swish(b, x);
}
static sx_value scaled(sx_builder *b, sx_value x)
{
    return sx_mul(b, x, sx_constant_f32(b, 3));
}

static sx_value vector(sx_builder *b, const char *name, int64_t c)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = sx_type_of(SX_F32, c)});
}

/* What x [N, h, w, c] gets of sum(act(norm(x)) weight). */
static sx_graph *norm_gradient(act_fn *act, int64_t h, int64_t w, int64_t c)
{
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, h, w, c)), dx;
    sx_value weight =
        sx_variable(b, &(sx_variable_spec){.name = "weight", .type = sx_type_of(SX_F32, h, w, c)});
    sx_value moments = sx_moments(b, x, .axes = {3, {0, 1, 2}});
    sx_value t = sx_nn_batch_norm_train(b, x, vector(b, "scale", c), vector(b, "offset", c),
                                        moments, sx_output_of(moments, 1), 1e-3);
    sx_gradients(b, sx_reduce_sum(b, sx_mul(b, act(b, t), weight)), &x, 1, &dx);
    return finish(b, dx);
}

static void test_backends_groups__norm_sums(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        act_fn *act;
        int64_t h, w, c;
    } cases[] = {
        {"relu, few rows", relu, 1, 3, 5},
        {"relu, a channel", relu, 9, 9, 1},
        {"relu6, 64 channels", relu6, 8, 9, 64},
        {"swish, odd", swish, 7, 11, 33},
        {"swish, many rows", swish, 40, 40, 3},
        {"swish, many channels", swish, 4, 5, 700},
        {"scaled", scaled, 5, 5, 8},
    };
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        sx_graph *g = norm_gradient(cases[i].act, cases[i].h, cases[i].w, cases[i].c);
        check(cases[i].name, g, "elementwise, batch_norm_train_grad_sums", false);
        sx_graph_destroy(g);
    }
}

/* ---- Sums ---- */

static void test_backends_groups__sums(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t a, b, c;
        int first, axes; /* of [N, a, b, c], [first, first + axes) are summed up */
    } cases[] = {
        {"pixels", 9, 7, 5, 1, 2},
        {"many pixels", 40, 41, 24, 1, 2},
        {"many pixels, few channels", 99, 80, 2, 1, 2},
        {"wide", 13, 10, 1500, 1, 2},
        {"columns", 3, 4, 33, 3, 1},
        {"long columns", 2, 3, 5000, 3, 1},
        {"longer columns", 1, 2, 40001, 3, 1},
        {"all of an example", 31, 7, 101, 1, 3},
        {"the batch", 3, 4, 5, 0, 1},
        {"all", 30, 40, 21, 0, 4},
    };
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        sx_builder *b;
        assert_ok(sx_builder_create(&b));
        sx_value x =
            sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, cases[i].a, cases[i].b, cases[i].c));
        sx_value y = sx_mul(b, sx_add(b, x, sx_constant_f32(b, 0.25F)), x);
        sx_axes axes = {.n = cases[i].axes};
        for (int k = 0; k < axes.n; k++) {
            axes.v[k] = cases[i].first + k;
        }
        sx_graph *g = finish(b, sx_reduce_sum(b, y, .axes = axes));
        check(cases[i].name, g, "elementwise, summed up", cases[i].first > 0);
        sx_graph_destroy(g);
    }
}

/* ---- Operands that lack dimensions in the middle ---- */

static void test_backends_groups__gates(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t h, w, c;
    } cases[] = {{"small", 3, 2, 5},        {"one channel", 5, 4, 1}, {"one pixel", 1, 1, 7},
                 {"of a chunk", 7, 7, 512}, {"wide", 3, 5, 700},      {"large", 40, 30, 24},
                 {"column", 600, 1, 3}};
    for (size_t i = 0; i < SX_COUNT(cases); i++) {
        sx_builder *b;
        const int64_t h = cases[i].h, w = cases[i].w, c = cases[i].c;
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, h, w, c));
        sx_value gate = sx_reduce_max(b, x, .axes = {2, {1, 2}}, .keep_dims = true);
        sx_value y = sx_mul(b, sx_relu(b, x), gate);
        y = sx_add(b, y, sx_broadcast_to(b, gate, SX_BATCH, h, w, c));
        y = sx_mul(b, y, vector(b, "v", c));
        sx_graph *g = finish(b, y);
        check(cases[i].name, g, "elementwise", true);
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_groups__norm_sums),
    cmocka_unit_test(test_backends_groups__sums),
    cmocka_unit_test(test_backends_groups__gates),
};
SX_TEST_MAIN(tests)
