/* Batch norms in training that are found in the forms that are written, and what only looks like
 * them: the values stay, and so do the first gradients. */
#include "host_run.h"

#include <math.h>
#include <stdio.h>

#include <sextant/ops.h>

#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/regions.h"
#include "graph/passes/passes.h"

typedef enum writing {
    NN,       /* x F + (beta - mean F), of squeezed moments: Keras 3, tf.nn.batch_normalization */
    KEPT,     /* the same of moments that keep their axes */
    BY_RSQRT, /* gamma ((x - mean) rsqrt(...)) + beta */
    RMS,      /* x rsqrt(mean of squares + epsilon) gamma + beta */
} writing;

enum spoil {
    SOUND,
    OTHER_AXES,
    OTHER_COUNT,
    OTHER_X,
    OTHER_FACTOR,
    NOT_SCALAR,
    FIXED_MEAN,
    FIXED_VARIANCE
};

typedef struct form {
    const char *name;
    writing writing;
    int rank;                   /* of x: [N, 2, 3, 4], of which that many last ones, or [N, 4] */
    int first, axes;            /* axes [first, axes) are reduced */
    int gamma, beta;            /* their rank; 0: none */
    bool read_moments, of_ones; /* the means divide by a sum of ones; by size */
    enum spoil spoil;
    bool fused;
} form;

static const form forms[] = {
    {"Keras 3", NN, 4, 0, 3, 1, 1, .of_ones = true, .fused = true},
    {"by size", NN, 4, 0, 3, 1, 1, .fused = true},
    {"without scale", NN, 4, 0, 3, 0, 1, .of_ones = true, .fused = true},
    {"without offset", NN, 4, 0, 3, 1, 0, .of_ones = true, .fused = true},
    {"neither", NN, 4, 0, 3, 0, 0, .of_ones = true, .fused = true},
    {"of vectors", NN, 2, 0, 1, 1, 1, .of_ones = true, .fused = true},
    {"moments read", NN, 4, 0, 3, 1, 1, .of_ones = true, .read_moments = true, .fused = true},
    {"axes kept", KEPT, 4, 0, 3, 4, 4, .of_ones = true, .fused = true},
    {"by rsqrt", BY_RSQRT, 4, 0, 3, 4, 4, .of_ones = true, .fused = true},
    {"by rsqrt, vectors", BY_RSQRT, 4, 0, 3, 1, 1, .fused = true},
    {"instance", KEPT, 4, 1, 3, 1, 1, .fused = false},
    {"layer", KEPT, 2, 1, 2, 1, 1, .fused = false},
    {"RMS", RMS, 4, 0, 3, 1, 1, .of_ones = true},
    {"other axes", KEPT, 4, 0, 3, 1, 1, .spoil = OTHER_AXES},
    {"other count", NN, 4, 0, 3, 1, 1, .spoil = OTHER_COUNT},
    {"other x", NN, 4, 0, 3, 1, 1, .of_ones = true, .spoil = OTHER_X},
    {"other factor", NN, 4, 0, 3, 1, 1, .of_ones = true, .spoil = OTHER_FACTOR},
    {"gradient stopped at the mean", NN, 4, 0, 3, 1, 1, .of_ones = true, .spoil = FIXED_MEAN},
    {"gradient stopped at the mean, kept", KEPT, 4, 0, 3, 4, 4, .spoil = FIXED_MEAN},
    {"gradient stopped at x - mean", BY_RSQRT, 4, 0, 3, 4, 4, .spoil = FIXED_MEAN},
    {"gradient stopped at the variance", NN, 4, 0, 3, 1, 1, .spoil = FIXED_VARIANCE},
    {"epsilon of each channel", NN, 4, 0, 3, 1, 1, .of_ones = true, .spoil = NOT_SCALAR},
};

enum { CHANNELS = 4, N = 2 };

static sx_type type_of_x(const form *f)
{
    return f->rank == 2 ? sx_type_of(SX_F32, SX_BATCH, CHANNELS)
                        : sx_type_of(SX_F32, SX_BATCH, 2, 3, CHANNELS);
}

static sx_value mean_of(sx_builder *b, const form *f, sx_value x, bool spoiled)
{
    sx_axes axes = {.n = f->axes - f->first - (spoiled && f->spoil == OTHER_AXES)};
    for (int i = 0; i < axes.n; i++) {
        axes.v[i] = f->first + i;
    }
    sx_value sum = sx_reduce_sum(b, x, .axes = axes, .keep_dims = true);
    sx_value count = sx_constant_f32(b, 12);
    if (f->first > 0 || f->spoil == OTHER_COUNT) {
        count = sx_constant_f32(b, f->rank == 2 ? 4 : 6);
    } else if (f->of_ones) {
        sx_value one = sx_constant_f32(b, 1),
                 ones = f->rank == 2 ? sx_broadcast_to(b, one, SX_BATCH, CHANNELS)
                                     : sx_broadcast_to(b, one, SX_BATCH, 2, 3, CHANNELS);
        count = sx_reduce_sum(b, ones, .axes = axes, .keep_dims = true);
    } else {
        count = sx_size(b, x, .axes = axes);
    }
    return sx_div(b, sum, count);
}

static sx_value vector(sx_builder *b, const char *name, int rank)
{
    return rank == 0   ? SX_NO_VALUE
           : rank == 1 ? sx_input(b, name, sx_type_of(SX_F32, CHANNELS))
                       : sx_input(b, name, sx_type_of(SX_F32, 1, 1, 1, CHANNELS));
}

static sx_graph *graph_of(const form *f)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", type_of_x(f));
    sx_value gamma = vector(b, "gamma", f->gamma), beta = vector(b, "beta", f->beta), y;
    sx_value mean = mean_of(b, f, x, false), fixed = sx_stop_gradient(b, mean);
    mean = f->spoil == FIXED_MEAN ? fixed : mean;
    sx_value centered = sx_sub(b, x, mean);
    sx_value other = f->spoil == OTHER_X ? sx_tanh(b, x) : x;
    sx_value square = f->writing == RMS        ? sx_square(b, x)
                      : f->writing == BY_RSQRT ? sx_square(b, centered)
                                               : sx_squared_difference(b, other, fixed);
    sx_value variance = mean_of(b, f, square, true);
    if (f->writing == NN) {
        mean = sx_reshape(b, mean, CHANNELS);
        variance = sx_reshape(b, variance, CHANNELS);
    }
    variance = f->spoil == FIXED_VARIANCE ? sx_stop_gradient(b, variance) : variance;
    sx_value epsilon = f->spoil == NOT_SCALAR ? sx_input(b, "epsilon", sx_type_of(SX_F32, CHANNELS))
                                              : sx_constant_f32(b, 1e-3);
    sx_value s = sx_rsqrt(b, sx_add(b, variance, epsilon));
    if (f->writing == NN || f->writing == KEPT) {
        sx_value factor = f->gamma > 0 ? sx_mul(b, s, gamma) : s;
        sx_value second = f->spoil == OTHER_FACTOR ? s : factor;
        y = sx_mul(b, x, factor);
        y = sx_add(b, y,
                   f->beta > 0 ? sx_sub(b, beta, sx_mul(b, mean, second))
                               : sx_mul(b, sx_neg(b, mean), second));
    } else {
        y = sx_mul(b, gamma, sx_mul(b, f->writing == RMS ? x : centered, s));
        y = sx_add(b, y, beta);
    }
    sx_output(b, "y", y);
    if (f->read_moments) {
        sx_output(b, "mean", mean);
        sx_output(b, "variance", variance);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* (args..., dy of each result...) -> results..., what each arg gets of them. */
static sx_graph *with_gradient(const sx_graph *f)
{
    sx_builder *b;
    sx_graph *g;
    sx_value x[4], y[3], dy[3], dx[4];
    char name[32];
    assert_ok(sx_builder_create(&b));
    for (int i = 0; i < f->n_args; i++) {
        x[i] = sx_input(b, f->args[i].name, *sx_graph_type(f, f->args[i].value));
    }
    sx_region_inline(b, f, x, y);
    for (int i = 0; i < f->n_results; i++) {
        snprintf(name, sizeof(name), "dy%d", i);
        dy[i] = sx_input(b, name, *sx_graph_type(f, f->results[i].value));
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, y[i]);
    }
    sx_pull_back(b, y, dy, f->n_results, x, f->n_args, dx);
    for (int i = 0; i < f->n_args; i++) {
        snprintf(name, sizeof(name), "dx%d", i);
        sx_output(b, name, dx[i]);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    const double x = (double)((k * 37 + arg * 11) % 29 - 14) / 8;
    return arg == 0 ? x : fabs(x) + 0.1;
}

static void assert_close(const char *name, const sx_graph *a, const sx_graph *b)
{
    sx_graph *fixed[2];
    double x[HOST_RUN_MOST] = {0}, y[HOST_RUN_MOST] = {0};
    assert_ok(sx_pass_fix_batch(a, N, &fixed[0]));
    assert_ok(sx_pass_fix_batch(b, N, &fixed[1]));
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

static void test_graph_fuse_norms__values_and_gradients_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        const form *f = &forms[i];
        sx_graph *g = graph_of(f), *fused;
        assert_ok(sx_pass_fuse_norms(g, &fused));
        if ((fused != NULL) != f->fused) {
            fail_msg("%s: %s", f->name, fused != NULL ? "fused" : "not fused");
        }
        if (fused != NULL) {
            sx_graph *a = with_gradient(g), *b = with_gradient(fused);
            assert_int_equal(count_nodes(fused, &sx_op_batch_norm_train), 1);
            assert_int_equal(count_nodes(fused, &sx_op_moments), 1);
            assert_int_equal(count_nodes(fused, &sx_op_reduce_sum), 0);
            assert_close(f->name, a, b);
            sx_graph_destroy(a);
            sx_graph_destroy(b);
        }
        sx_graph_destroy(fused);
        sx_graph_destroy(g);
    }
}

/* Several in one graph, of the same moments too, and other nodes between them. */
static void test_graph_fuse_norms__finds_all(void **state)
{
    (void)state;
    const form *f = &forms[0];
    sx_graph *one = graph_of(f), *g, *fused;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", type_of_x(f)), y[2];
    const sx_value gamma = vector(b, "gamma", 1), beta = vector(b, "beta", 1);
    sx_region_inline(b, one, (const sx_value[]){x, gamma, beta}, &y[0]);
    sx_region_inline(b, one, (const sx_value[]){sx_relu(b, y[0]), beta, gamma}, &y[1]);
    sx_output(b, "y", sx_add(b, y[0], y[1]));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_fuse_norms(g, &fused));
    assert_non_null(fused);
    assert_int_equal(count_nodes(fused, &sx_op_batch_norm_train), 2);
    assert_close("two", g, fused);
    sx_graph_destroy(one);
    sx_graph_destroy(g);
    sx_graph_destroy(fused);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_fuse_norms__values_and_gradients_stay),
    cmocka_unit_test(test_graph_fuse_norms__finds_all),
};
SX_TEST_MAIN(tests)
