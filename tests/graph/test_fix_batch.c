/* The pass that gives the batch its size: shapes get it, times their c, other lists of numbers keep
 * their -1. */
#include "harness.h"

#include "graph/ops/attrs.h"
#include "graph/ops/diagonals.h"
#include "graph/passes/passes.h"

/* An operator of a list and a shape: y = x, of that shape. */
typedef struct shift_attrs {
    sx_ints by, shape;
} shift_attrs;

static const sx_attr_def shift_rows[] = {
    SX_ATTR(shift_attrs, by, SX_ATTR_INTS),
    SX_ATTR(shift_attrs, shape, SX_ATTR_SHAPE),
};

static sx_status shift_infer(sx_infer_context *c)
{
    const shift_attrs *attrs = c->attrs;
    c->outputs[0] = sx_type_make(c->inputs[0].dtype, attrs->shape.n, attrs->shape.v);
    return SX_OK;
}

static const sx_op_def shift = {
    .id = SX_OPID_identity,
    .name = "shift",
    .n_in = 1,
    .n_out = 1,
    SX_OP_ATTRS(shift_attrs, shift_rows),
    .infer = shift_infer,
};

static void test_graph_fix_batch__only_shapes_hold_the_batch(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g, *fixed;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3));
    const shift_attrs attrs = {.by = {2, {-1, 2}}, .shape = {2, {3, -4}}};
    sx_output(b, "y", sx_build(b, &shift, &attrs, &x, 1));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_pass_fix_batch(g, 5, &fixed));
    const sx_node *n = sx_graph_maker(fixed, fixed->results[0].value);
    const shift_attrs *got = n->attrs;
    assert_int_equal(got->shape.v[0], 3);
    assert_int_equal(got->shape.v[1], 20);
    assert_int_equal(got->by.v[0], -1);
    assert_int_equal(got->by.v[1], 2);
    assert_int_equal(sx_graph_type(fixed, fixed->args[0].value)->dims[0], 5);
    sx_graph_destroy(fixed);
    assert_error(sx_pass_fix_batch(g, INT64_MAX / 3, &fixed), SX_RESOURCE_EXHAUSTED,
                 "float32[3,4*N], which is too large for a batch of 3074457345618258602");
    sx_graph_destroy(g);
}

/* Every list that may have the batch is a shape, and no sample's other list has a -1, but that of
 * diagonals, of which -1 is the one below the main one. */
static void test_graph_fix_batch__samples_keep_the_batch_in_shapes(void **state)
{
    (void)state;
    int shapes = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples; k++) {
            for (int i = 0; op->samples[k].attrs != NULL && i < op->n_attrs; i++) {
                const sx_ints *list =
                    (const void *)((const char *)op->samples[k].attrs + op->attrs[i].offset);
                bool diagonals = op->attrs == sx_diagonals_rows;
                bool numbers = op->attrs[i].kind == SX_ATTR_INTS && !diagonals;
                bool shape = op->attrs[i].kind == SX_ATTR_SHAPE;
                for (int d = 0; (numbers || shape) && d < list->n; d++) {
                    assert_false(numbers && list->v[d] < 0);
                    shapes += shape && sx_dim_is_batch(list->v[d]);
                }
            }
        }
    }
    assert_true(shapes >= 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_fix_batch__only_shapes_hold_the_batch),
    cmocka_unit_test(test_graph_fix_batch__samples_keep_the_batch_in_shapes),
};
SX_TEST_MAIN(tests)
