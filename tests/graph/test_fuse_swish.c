/* Swish and its gradient in the forms that are written, and what only looks like them. */
#include "host_run.h"

#include <math.h>
#include <stdio.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/regions.h"
#include "graph/passes/passes.h"

enum spoil { SOUND, OTHER_X, OTHER_S, NOT_ONE, SIGMOID_READ, BROADCAST };

typedef struct form {
    const char *name;
    bool gradient, swapped, beta; /* beta: 1 x in place of x */
    enum spoil spoil;
    bool fused;
} form;

static const form forms[] = {
    {"swish", .fused = true},
    {"swish, swapped", .swapped = true, .fused = true},
    {"silu of TensorFlow", .beta = true, .fused = true},
    {"swish of 2 x", .beta = true, .spoil = NOT_ONE},
    {"swish of another", .spoil = OTHER_X},
    {"swish of a row", .spoil = BROADCAST},
    {"swish, sigmoid read", .spoil = SIGMOID_READ},
    {"both", .gradient = true, .fused = true},
    {"both, swapped", .gradient = true, .swapped = true, .fused = true},
    {"both, gradient of another", .gradient = true, .spoil = OTHER_X},
    {"both, of two sigmoids", .gradient = true, .spoil = OTHER_S},
    {"both, 2 + x", .gradient = true, .spoil = NOT_ONE},
    {"both, sigmoid read", .gradient = true, .spoil = SIGMOID_READ},
};

static sx_value swapped(sx_builder *b, const form *f, bool sum, sx_value x, sx_value y)
{
    const sx_value first = f->swapped ? y : x, second = f->swapped ? x : y;
    return sum ? sx_add(b, first, second) : sx_mul(b, first, second);
}

static sx_graph *graph_of(const form *f)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 7));
    sx_value other = sx_input(b, "other", sx_type_of(SX_F32, SX_BATCH, 7));
    sx_value one = sx_constant_f32(b, 1), two = sx_constant_f32(b, 2);
    sx_value odd = f->spoil == NOT_ONE ? two : one;
    sx_value in = f->beta ? sx_mul(b, odd, x) : x;
    in = f->spoil == BROADCAST ? sx_reduce_sum(b, x, .axes = {1, {1}}, .keep_dims = true) : in;
    sx_value s = sx_sigmoid(b, in);
    if (!f->gradient) {
        sx_output(b, "y", swapped(b, f, false, f->spoil == OTHER_X ? other : x, s));
    } else {
        sx_value second = f->spoil == OTHER_S ? sx_sigmoid(b, other) : s;
        sx_value tail =
            swapped(b, f, false, f->spoil == OTHER_X ? other : x, sx_sub(b, one, second));
        sx_value slope = swapped(b, f, false, s, swapped(b, f, true, odd, tail));
        sx_output(b, "y", sx_mul(b, x, s));
        sx_output(b, "dx", swapped(b, f, false, other, slope));
    }
    if (f->spoil == SIGMOID_READ) {
        sx_output(b, "s", s);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    return (double)((k * 37 + arg * 11) % 29 - 14) / 2;
}

static void assert_close(const char *name, const sx_graph *a, const sx_graph *b)
{
    sx_graph *fixed[2];
    double x[HOST_RUN_MOST] = {0}, y[HOST_RUN_MOST] = {0};
    assert_ok(sx_pass_fix_batch(a, 3, &fixed[0]));
    assert_ok(sx_pass_fix_batch(b, 3, &fixed[1]));
    const int64_t n = host_run(fixed[0], number, x);
    assert_int_equal(host_run(fixed[1], number, y), n);
    for (int64_t k = 0; k < n; k++) {
        if (!(fabs(x[k] - y[k]) <= 1e-6 * (1 + fabs(x[k])))) {
            fail_msg("%s: element %lld is %g, expected %g", name, (long long)k, y[k], x[k]);
        }
    }
    sx_graph_destroy(fixed[0]);
    sx_graph_destroy(fixed[1]);
}

static void test_graph_fuse_swish__values_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        const form *f = &forms[i];
        sx_graph *g = graph_of(f), *simple, *whole, *fused;
        assert_ok(sx_pass_simplify(g, &simple)); /* as backends do */
        assert_ok(sx_pass_fuse_swish(simple, &whole));
        assert_ok(sx_pass_drop_dead(whole, &fused));
        const bool sound = f->fused;
        if (count_nodes(fused, &sx_op_sigmoid) != (sound                 ? 0
                                                   : f->spoil == OTHER_S ? 2
                                                                         : 1) ||
            count_nodes(fused, &sx_op_swish) != sound ||
            count_nodes(fused, &sx_op_swish_grad) != (sound && f->gradient)) {
            fail_msg("%s: %s", f->name, sound ? "not fused" : "fused");
        }
        assert_close(f->name, g, fused);
        sx_graph_destroy(g);
        sx_graph_destroy(simple);
        sx_graph_destroy(whole);
        sx_graph_destroy(fused);
    }
}

/* What is to be differentiated gets one operator, and the same gradient. */
static void test_graph_fuse_swish__before_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const form *f = &forms[i];
        sx_graph *g[3] = {graph_of(f)}, *with[2];
        assert_ok(sx_pass_fuse_forms(g[0], &g[1]));
        assert_int_equal(g[1] != NULL, f->fused);
        for (int k = 0; k < 2 && f->fused; k++) {
            sx_builder *b;
            assert_ok(sx_builder_create(&b));
            sx_value in[2], y, dx;
            in[0] = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 7));
            in[1] = sx_input(b, "other", sx_type_of(SX_F32, SX_BATCH, 7));
            sx_region_inline(b, g[k], in, &y);
            sx_gradients(b, sx_reduce_sum(b, sx_mul(b, y, in[1])), in, 1, &dx);
            sx_output(b, "dx", dx);
            assert_ok(sx_builder_finish(b, &with[k]));
            sx_builder_destroy(b);
        }
        if (f->fused) {
            assert_int_equal(count_nodes(g[1], &sx_op_swish), 1);
            assert_int_equal(g[1]->n_nodes, 3); /* the arguments and swish */
            assert_close(f->name, with[0], with[1]);
            sx_graph_destroy(with[0]);
            sx_graph_destroy(with[1]);
        }
        sx_graph_destroy(g[0]);
        sx_graph_destroy(g[1]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_fuse_swish__values_stay),
    cmocka_unit_test(test_graph_fuse_swish__before_gradients),
};
SX_TEST_MAIN(tests)
