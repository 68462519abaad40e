/* Gelu in the forms that are written, and what only looks like them. */
#include "host_run.h"

#include <math.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"

enum spoil { SOUND, OTHER_X, NOT_HALF, NOT_ROOT, POSITIVE, READ, BROADCAST };

typedef struct form {
    const char *name;
    bool erf, divides, half_last, negates_after, swapped;
    enum spoil spoil;
} form;

static const form forms[] = {
    {"erfc", .erf = false},
    {"erfc, swapped", .swapped = true},
    {"erfc of a negative factor", .negates_after = true},
    {"erfc, half of the share", .half_last = true},
    {"erf", .erf = true},
    {"erf, swapped", .erf = true, .swapped = true},
    {"erf of a quotient", .erf = true, .divides = true},
    {"erf, half of the share", .erf = true, .divides = true, .half_last = true},
    {"erfc of another", .spoil = OTHER_X},
    {"erf of another", .erf = true, .spoil = OTHER_X},
    {"a third of it", .spoil = NOT_HALF},
    {"erfc of x", .spoil = NOT_ROOT},
    {"erfc of x / sqrt 2", .spoil = POSITIVE},
    {"erfc, read", .spoil = READ},
    {"of a row", .erf = true, .spoil = BROADCAST},
};

static sx_value swapped(sx_builder *b, const form *f, sx_value x, sx_value y)
{
    return f->swapped ? sx_mul(b, y, x) : sx_mul(b, x, y);
}

static sx_graph *graph_of(const form *f)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 7));
    sx_value other = sx_input(b, "other", sx_type_of(SX_F32, SX_BATCH, 7));
    const double root = f->spoil == NOT_ROOT ? 1 : sqrt(0.5);
    sx_value in = f->spoil == OTHER_X     ? other
                  : f->spoil == BROADCAST ? sx_reduce_sum(b, x, .axes = {1, {1}}, .keep_dims = true)
                                          : x;
    sx_value share;
    if (f->erf) {
        in = f->divides ? sx_div(b, in, sx_constant_f32(b, 1 / root))
                        : swapped(b, f, in, sx_constant_f32(b, root));
        share = sx_add(b, sx_constant_f32(b, 1), sx_erf(b, in));
    } else {
        in = f->negates_after || f->spoil == POSITIVE ? in : sx_neg(b, in);
        share = sx_erfc(b, swapped(b, f, in, sx_constant_f32(b, f->negates_after ? -root : root)));
    }
    sx_value half = sx_constant_f32(b, f->spoil == NOT_HALF ? 1. / 3 : 0.5);
    sx_output(b, "y",
              f->half_last ? swapped(b, f, x, sx_mul(b, half, share))
                           : swapped(b, f, swapped(b, f, x, half), share));
    if (f->spoil == READ) {
        sx_output(b, "share", share);
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    return (double)((k * 37 + arg * 11) % 29 - 14) / 3;
}

static void test_graph_fuse_gelu__values_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        const form *f = &forms[i];
        sx_graph *g = graph_of(f), *simple, *whole, *fused, *fixed[2];
        double x[HOST_RUN_MOST] = {0}, y[HOST_RUN_MOST] = {0};
        assert_ok(sx_pass_simplify(g, &simple)); /* as backends do */
        assert_ok(sx_pass_fuse_gelu(simple, &whole));
        assert_ok(sx_pass_drop_dead(whole, &fused));
        if (count_nodes(fused, &sx_op_gelu) != (f->spoil == SOUND)) {
            fail_msg("%s: %s", f->name, f->spoil == SOUND ? "not fused" : "fused");
        }
        if (f->spoil == SOUND && fused->n_nodes > fused->n_args + 1) {
            fail_msg("%s: %d nodes are left", f->name, fused->n_nodes);
        }
        assert_ok(sx_pass_fix_batch(g, 3, &fixed[0]));
        assert_ok(sx_pass_fix_batch(fused, 3, &fixed[1]));
        const int64_t n = host_run(fixed[0], number, x);
        assert_int_equal(host_run(fixed[1], number, y), n);
        for (int64_t k = 0; k < n; k++) {
            if (!(fabs(x[k] - y[k]) <= 1e-6 * (1 + fabs(x[k])))) {
                fail_msg("%s: element %lld is %g, expected %g", f->name, (long long)k, y[k], x[k]);
            }
        }
        sx_graph_destroy(fixed[0]);
        sx_graph_destroy(fixed[1]);
        sx_graph_destroy(g);
        sx_graph_destroy(simple);
        sx_graph_destroy(whole);
        sx_graph_destroy(fused);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_fuse_gelu__values_stay),
};
SX_TEST_MAIN(tests)
