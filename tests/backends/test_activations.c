/* The gradients of activations are elementwise operators of one dtype, which one kernel takes
 * together. */
#include "example_run.h"

#include <sextant/ops.h>

#include "base/checked.h"

/* The gradient of sum(act(20 x) scale) with respect to x. */
static sx_graph *gradient_of(sx_value (*act)(sx_builder *b, sx_value x))
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 500)), dx;
    sx_value scale =
        sx_variable(b, &(sx_variable_spec){.name = "scale", .type = sx_type_of(SX_F32, 500)});
    sx_value y = act(b, sx_mul(b, x, sx_constant_f32(b, 20)));
    sx_gradients(b, sx_reduce_sum(b, sx_mul(b, y, scale)), &x, 1, &dx);
    sx_output(b, "dx", dx);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

static sx_value relu6(sx_builder *b, sx_value x)
{
    return sx_relu6(b, x);
}
static sx_value relu(sx_builder *b, sx_value x)
{
    return sx_relu(b, x);
}
static sx_value swish(sx_builder *b, sx_value x)
{
    return sx_swish(b, x);
}

static void test_backends_activations__gradients_have_one_dtype(void **state)
{
    (void)state;
    sx_value (*const acts[])(sx_builder * b, sx_value x) = {relu, relu6, swish};
    for (size_t i = 0; i < SX_COUNT(acts); i++) {
        sx_graph *g = gradient_of(acts[i]);
        equals_host(g, &(run_options){.backend = "cpu", .threads = 1, .batch = EXAMPLES});
        for (int k = 0; k < g->n_nodes; k++) {
            assert_int_equal(sx_graph_type(g, g->nodes[k].first_output)->dtype, SX_F32);
        }
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_activations__gradients_have_one_dtype),
};
SX_TEST_MAIN(tests)
