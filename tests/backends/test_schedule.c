/* The order of a plan's steps. */
#include "harness.h"

#include "backends/cpu/memory_map.h"
#include "backends/cpu/plan.h"
#include "training_graph.h"

/* A chain of dense layers of SIDE x SIDE, the mean of all examples subtracted between them if asked
 * for; with gradients. */
enum { LAYERS = 8, SIDE = 1024, SHARDS = 32 };

static sx_graph *dense_layers(bool norms)
{
    training_graph m = {.n = 0};
    assert_ok(sx_builder_create(&m.b));
    sx_value x = sx_input(m.b, "x", sx_type_of(SX_F32, SX_BATCH, SIDE));
    for (int i = 0; i < LAYERS; i++) {
        x = sx_matmul(m.b, x, weight(&m, sx_type_of(SX_F32, SIDE, SIDE)));
        if (norms) {
            x = sx_sub(m.b, x, sx_reduce_mean(m.b, x, .axes = SX_AXES(0)));
        }
        x = sx_tanh(m.b, x);
    }
    return finish(&m, sx_reduce_mean(m.b, x));
}

/* Partial gradients of all layers would take 1 GiB; they are combined while they are made. */
static void test_backends_schedule__partial_results_do_not_wait(void **state)
{
    (void)state;
    for (int norms = 0; norms < 2; norms++) {
        sx_graph *g = dense_layers(norms != 0);
        sx_cpu_plan *p;
        assert_ok(sx_cpu_plan_create(
            g, &(sx_cpu_plan_options){.batch = SHARDS, .shards = SHARDS, .workers = 2, .map = true},
            &p));
        assert_int_equal(p->shards, SHARDS);
        assert_true(p->map->bytes < (norms != 0 ? 200 << 20 : 400 << 20));
        sx_cpu_plan_destroy(p);
        sx_graph_destroy(g);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_schedule__partial_results_do_not_wait),
};
SX_TEST_MAIN(tests)
