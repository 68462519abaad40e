/* Batch norms that are computed again for each of their readers: which, and the values stay. */
#include "host_run.h"

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

enum reader { ELEMENTWISE, TWICE_IN_ONE, A_SUM, A_RESULT, A_LARGER, ROUNDED, SUM_OF_ROUNDED };

static const struct {
    const char *name;
    enum reader reader; /* besides a relu */
    int norms, rounds;
} forms[] = {
    {"elementwise", ELEMENTWISE, 2, 0},
    {"twice in one node", TWICE_IN_ONE, 2, 0},
    {"a sum", A_SUM, 1, 0},
    {"a result", A_RESULT, 1, 0},
    {"a broadcast", A_LARGER, 1, 0},
    {"rounded", ROUNDED, 2, 2},
    {"a sum of what is rounded", SUM_OF_ROUNDED, 1, 1},
};

static sx_graph *graph_of(enum reader reader)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    const sx_type channels = sx_type_of(SX_F32, 4);
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 1, 6, 4));
    sx_value scale = sx_input(b, "scale", channels), offset = sx_input(b, "offset", channels);
    sx_value moments = sx_moments(b, x, .axes = {2, {0, 1}});
    sx_value t =
        sx_nn_batch_norm_train(b, x, scale, offset, moments, sx_output_of(moments, 1), 1e-3);
    if (reader == ROUNDED || reader == SUM_OF_ROUNDED) {
        t = sx_build_op(b, round_bf16, NULL, t);
    }
    sx_output(b, "relu", sx_relu(b, t));
    sx_output(b, "y",
              reader == A_SUM || reader == SUM_OF_ROUNDED ? sx_reduce_sum(b, t)
              : reader == A_RESULT                        ? t
              : reader == TWICE_IN_ONE                    ? sx_mul(b, t, t)
              : reader == A_LARGER ? sx_add(b, t, sx_input(b, "z", sx_type_of(SX_F32, 2, 6, 4)))
                                   : sx_mul(b, t, x));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    return (double)((k * 37 + arg * 11) % 29 - 14) / 8;
}

static void test_graph_repeat_norms__values_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < SX_COUNT(forms); i++) {
        sx_graph *g = graph_of(forms[i].reader), *repeated;
        double x[HOST_RUN_MOST] = {0}, y[HOST_RUN_MOST] = {0};
        assert_ok(sx_pass_repeat_norms(g, &repeated));
        if (count_nodes(repeated, &sx_op_batch_norm_train) != forms[i].norms ||
            count_nodes(repeated, &sx_op_round_bf16) != forms[i].rounds) {
            fail_msg("%s: %d norms", forms[i].name, count_nodes(repeated, &sx_op_batch_norm_train));
        }
        const int64_t n = host_run(g, number, x);
        assert_int_equal(host_run(repeated, number, y), n);
        assert_memory_equal(x, y, (size_t)n * sizeof(*x));
        sx_graph_destroy(g);
        sx_graph_destroy(repeated);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_repeat_norms__values_stay),
};
SX_TEST_MAIN(tests)
