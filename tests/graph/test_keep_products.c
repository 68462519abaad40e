/* The gradient of a loop does not multiply again what the loop multiplied, and stays the same. */
#include "host_run.h"

#include <sextant/ops.h>

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

enum { STEPS = 4, ROWS = 2, WIDTH = 3, ARGS = 6 };

typedef sx_value cell(sx_builder *b, sx_value x, sx_value h, sx_value w, sx_value u, sx_value bias);

/* tanh(x w + h u + bias): one sum is kept */
static sx_value simple_cell(sx_builder *b, sx_value x, sx_value h, sx_value w, sx_value u,
                            sx_value bias)
{
    return sx_tanh(b, sx_bias_add(b, sx_add(b, sx_matmul(b, x, w), sx_matmul(b, h, u)), bias));
}

/* s = x w + bias, r = h u, tanh(s + sigmoid(s) r): each is read twice or alone goes on */
static sx_value gated_cell(sx_builder *b, sx_value x, sx_value h, sx_value w, sx_value u,
                           sx_value bias)
{
    sx_value s = sx_bias_add(b, sx_matmul(b, x, w), bias);
    return sx_tanh(b, sx_add(b, s, sx_mul(b, sx_sigmoid(b, s), sx_matmul(b, h, u))));
}

/* tanh(tanh(x w) u + h + bias): a product of a product */
static sx_value deep_cell(sx_builder *b, sx_value x, sx_value h, sx_value w, sx_value u,
                          sx_value bias)
{
    sx_value inner = sx_matmul(b, sx_tanh(b, sx_matmul(b, x, w)), u);
    return sx_tanh(b, sx_bias_add(b, sx_add(b, inner, h), bias));
}

/* h + bias: no product */
static sx_value plain_cell(sx_builder *b, sx_value x, sx_value h, sx_value w, sx_value u,
                           sx_value bias)
{
    (void)w, (void)u;
    return sx_bias_add(b, sx_mul(b, h, x), bias);
}

/* The gradients of the sum of h after the loop by x, w, u, bias:
 *
 *   (i, h; x [STEPS,ROWS,WIDTH], w, u, bias)   while i < STEPS:  h = cell(x[i], h), i = i + 1 */
static sx_graph *graph_of(cell *fn, int64_t trips)
{
    static const char *const names[ARGS] = {"i", "h", "x", "w", "u", "bias"};
    const sx_type types[ARGS] = {sx_scalar_type(SX_I32),
                                 sx_type_of(SX_F32, ROWS, WIDTH),
                                 sx_type_of(SX_F32, STEPS, ROWS, WIDTH),
                                 sx_type_of(SX_F32, WIDTH, WIDTH),
                                 sx_type_of(SX_F32, WIDTH, WIDTH),
                                 sx_type_of(SX_F32, WIDTH)};
    sx_graph *regions[2], *g;
    sx_builder *b;
    sx_value a[ARGS], dx[4];
    for (int r = 0; r < 2; r++) {
        assert_ok(sx_builder_create(&b));
        for (int i = 0; i < ARGS; i++) {
            a[i] = sx_input(b, names[i], types[i]);
        }
        sx_value number =
            sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), &(int32_t){r == 0 ? STEPS : 1}});
        if (r == 0) {
            sx_output(b, "go", sx_build_op(b, less, NULL, a[0], number));
        } else {
            sx_value x = sx_build_op(b, take_row, NULL, a[2], a[0]);
            sx_output(b, "i", sx_build_op(b, add, NULL, a[0], number));
            sx_output(b, "h", fn(b, x, a[1], a[3], a[4], a[5]));
        }
        assert_ok(sx_builder_finish(b, &regions[r]));
        sx_builder_destroy(b);
    }
    assert_ok(sx_builder_create(&b));
    a[0] = sx_constant(b, (sx_tensor){sx_scalar_type(SX_I32), &(int32_t){0}});
    for (int i = 1; i < ARGS; i++) {
        a[i] = sx_input(b, names[i], types[i]);
    }
    const sx_while_attrs attrs = {.condition = regions[0], .body = regions[1], .trips = trips};
    sx_value h = sx_output_at(sx_build(b, &sx_op_while, &attrs, a, ARGS), 1);
    sx_value loss = sx_reduce_sum(b, h);
    sx_gradients(b, loss, &a[2], 4, dx);
    sx_output(b, "loss", loss);
    for (int i = 0; i < 4; i++) {
        if (sx_value_is(dx[i])) {
            sx_output(b, names[2 + i], dx[i]);
        }
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_graph_destroy(regions[0]);
    sx_graph_destroy(regions[1]);
    return g;
}

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    return (double)((k * 5 + arg) % 9 - 4) / 8;
}

/* Products in the bodies of the graph's loops. */
static int count_products(const sx_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op == &sx_op_while) {
            n += count_nodes(((const sx_while_attrs *)g->nodes[i].attrs)->body, &sx_op_matmul);
        }
    }
    return n;
}

typedef sx_status pass_fn(const sx_graph *g, sx_graph **out);

static sx_graph *after(const sx_graph *g, pass_fn *const *passes, int n)
{
    sx_graph *now = NULL;
    for (int i = 0; i < n; i++) {
        sx_graph *next;
        assert_ok(passes[i](now != NULL ? now : g, &next));
        sx_graph_destroy(now);
        now = next;
    }
    return now;
}

static void test_graph_keep_products__are_not_made_again(void **state)
{
    (void)state;
    static pass_fn *const passes[] = {sx_pass_merge_equal, sx_pass_join_loops,
                                      sx_pass_keep_products, sx_pass_drop_dead, sx_pass_drop_state};
    static const struct {
        const char *name;
        cell *cell;
        int64_t trips;
        int before, left; /* products in all loops */
    } cases[] = {
        /* forward, forward that keeps, again, 4 of gradients -> once, and those of gradients */
        {"simple", simple_cell, STEPS, 10, 6}, {"gated", gated_cell, STEPS, 10, 6},
        {"deep", deep_cell, STEPS, 10, 6},     {"more trips", simple_cell, STEPS + 3, 10, 6},
        {"plain", plain_cell, STEPS, 0, 0},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        sx_graph *g = graph_of(cases[k].cell, cases[k].trips);
        sx_graph *merged = after(g, passes, 1), *kept = after(g, passes, 5);
        assert_int_equal(count_products(merged), cases[k].before);
        if (count_products(kept) != cases[k].left) {
            fail_msg("%s: %d products are left, expected %d", cases[k].name, count_products(kept),
                     cases[k].left);
        }
        assert_same_results(g, kept, number);
        sx_graph_destroy(kept);
        sx_graph_destroy(merged);
        sx_graph_destroy(g);
    }
}

/* Without a bound only some states are kept, and the rest is computed again. */
static void test_graph_keep_products__needs_a_bound(void **state)
{
    (void)state;
    static pass_fn *const passes[] = {sx_pass_merge_equal, sx_pass_keep_products};
    sx_graph *g = graph_of(simple_cell, 0);
    sx_graph *merged = after(g, passes, 1), *kept = after(g, passes, 2);
    assert_int_equal(count_products(kept), count_products(merged));
    assert_same_results(g, kept, number);
    sx_graph_destroy(kept);
    sx_graph_destroy(merged);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_keep_products__are_not_made_again),
    cmocka_unit_test(test_graph_keep_products__needs_a_bound),
};
SX_TEST_MAIN(tests)
