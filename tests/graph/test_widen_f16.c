/* The pass that computes float16 in float32. */
#include "harness.h"

#include <sextant/ops.h>

#include "graph/builder.h"
#include "graph/ir.h"
#include "graph/passes/passes.h"

/* The names of casts that it adds are not those of casts that follow in the graph. */
static void test_graph_widen_f16__names_differ_from_the_graphs(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g, *wide;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_cast(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4)), SX_F16);
    x = sx_mul(b, x, x);
    for (int i = 0; i < 3; i++) {
        x = sx_cast(b, sx_relu(b, sx_cast(b, sx_exp(b, x), SX_F32)), SX_F16);
    }
    sx_output(b, "y", sx_cast(b, x, SX_F32));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_widen_f16(g, &wide));
    assert_ok(sx_graph_validate(wide));
    for (int k = 0; k < wide->n_nodes; k++) {
        const sx_node *n = &wide->nodes[k];
        const bool is_f16 = sx_graph_type(wide, n->first_output)->dtype == SX_F16;
        assert_true(!is_f16 || n->op == &sx_op_cast);
    }
    sx_graph_destroy(g);
    sx_graph_destroy(wide);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_widen_f16__names_differ_from_the_graphs),
};
SX_TEST_MAIN(tests)
