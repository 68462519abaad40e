/* Concats of concats that are only scaled (graph/passes/join_concats.c). */
#include "harness.h"

#include <stdio.h>

#include <sextant/ops.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/op_def.h"
#include "graph/passes/passes.h"

/* concat(concat(concat(x, t), t), t) ..., t = tanh(x), each of which is scaled, and the one of
 * number `also` is read by something else, too (-1: none). Returns the joined graph. */
static sx_graph *chain(int concats, int also)
{
    sx_builder *b;
    sx_graph *plain, *joined;
    char name[32];
    assert_ok(sx_builder_create(&b));
    const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_value all = x;
    for (int i = 0; i < concats; i++) {
        const int64_t channels = 2 * (i + 2);
        snprintf(name, sizeof(name), "scale%d", i);
        all = sx_concat(b, -1, all, sx_tanh(b, x));
        const sx_variable_spec scale = {.name = name, .type = sx_type_of(SX_F32, channels)};
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, sx_mul(b, all, sx_variable(b, &scale)));
        if (i == also) {
            sx_output(b, "also", sx_neg(b, all));
        }
    }
    assert_ok(sx_builder_finish(b, &plain));
    sx_builder_destroy(b);
    assert_ok(sx_pass_join_concats(plain, &joined));
    sx_graph_destroy(plain);
    return joined;
}

/* How many parts concat number `k` has. */
static int parts(const sx_graph *g, int k)
{
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op->id == SX_OPID_concat && k-- == 0) {
            return g->nodes[i].n_inputs;
        }
    }
    fail_msg("there are fewer concats");
    return 0;
}

static void test_graph_join_concats__parts_of_parts(void **state)
{
    (void)state;
    sx_graph *g = chain(4, -1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(parts(g, i), i + 2);
    }
    sx_graph_destroy(g);
}

/* One that is written in any case is a part. */
static void test_graph_join_concats__one_that_others_read(void **state)
{
    (void)state;
    sx_graph *g = chain(4, 1);
    static const int expected[] = {2, 2, 2, 3};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(parts(g, i), expected[i]);
    }
    sx_graph_destroy(g);
}

static void test_graph_join_concats__not_too_many(void **state)
{
    (void)state;
    enum { CONCATS = 150, MOST = 30 };
    int most = 0;
    sx_graph *g = chain(CONCATS, -1);
    for (int i = 0; i < CONCATS; i++) {
        const int n = parts(g, i);
        assert_true(n >= 2 && n <= MOST);
        most = SX_MAX(most, n);
    }
    assert_int_equal(most, MOST);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_join_concats__parts_of_parts),
    cmocka_unit_test(test_graph_join_concats__one_that_others_read),
    cmocka_unit_test(test_graph_join_concats__not_too_many),
};
SX_TEST_MAIN(tests)
