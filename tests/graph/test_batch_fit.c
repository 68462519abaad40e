/* Sizes of the batch that a node fits, and how much is tried to find one. */
#include "harness.h"

#include "base/clock.h"
#include "base/memory.h"
#include "graph/batch_fit.h"
#include "graph/ops/attrs.h"

static void test_graph_batch_fit__tries_what_other_sizes_suggest(void **state)
{
    (void)state;
    const sx_type rows = sx_type_of(SX_F32, SX_BATCH, 28, 28);
    const sx_shape_attrs seven = {{3, {7, 28, 28}}};
    const sx_type fits[] = {sx_type_of(SX_F32, SX_BATCH, 4), sx_type_of(SX_F32, 640, 4)},
                  never[] = {sx_type_of(SX_F32, SX_BATCH, 4), sx_type_of(SX_F32, SX_BATCH, 5)};
    assert_int_equal(sx_batch_that_fits(&sx_op_reshape, &seven, &rows, 1), 7);
    assert_int_equal(sx_batch_that_fits(&sx_op_concat, &(sx_axis_attrs){1}, fits, 2), 640);
    assert_int_equal(sx_batch_that_fits(&sx_op_add, NULL, never, 2), 0);
}

/* A file may have nodes of thousands of inputs, each of which suggests other sizes. */
static void test_graph_batch_fit__tries_a_node_of_many_inputs_a_few_times(void **state)
{
    enum { N = 2000, MOST_MS = 10000 };
    (void)state;
    sx_type *types = sx_alloc(N, sizeof(*types));
    assert_non_null(types);
    for (int i = 0; i < N; i++) {
        types[i] = sx_type_of(SX_F32, SX_BATCH, 1000 + i);
    }
    const int64_t begun_ns = sx_now_ns();
    assert_int_equal(sx_batch_that_fits(&sx_op_concat, &(sx_axis_attrs){0}, types, N), 0);
    assert_true(sx_now_ns() - begun_ns < (int64_t)MOST_MS * 1000000);
    sx_free(types);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_batch_fit__tries_what_other_sizes_suggest),
    cmocka_unit_test(test_graph_batch_fit__tries_a_node_of_many_inputs_a_few_times),
};
SX_TEST_MAIN(tests)
