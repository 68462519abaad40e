/* Placement by rules, and the segments that a placed graph is cut into. */
#include "harness.h"

#include <sextant/nn.h>
#include <sextant/ops.h>

#include "graph/partition.h"
#include "graph/placement.h"

#define LOCAL "/job:localhost/replica:0/task:0"

static bool no_exp(const sx_node *n)
{
    return strcmp(n->op->name, "exp") != 0;
}

static const sx_placement_device two_and_one[] = {
    {.name = LOCAL "/device:CPU:0"},
    {.name = LOCAL "/device:CPU:1"},
    {.name = LOCAL "/device:GPU:0", .runs = no_exp},
};
static const char *const names[] = {LOCAL "/device:CPU:0", LOCAL "/device:CPU:1",
                                    LOCAL "/device:GPU:0"};

static sx_status place(const sx_graph *g, bool strict, sx_graph **out)
{
    return sx_pass_place(
        g, &(sx_placement_options){.devices = two_and_one, .n_devices = 3, .strict = strict}, out);
}

static const char *device_of(const sx_graph *g, const char *name)
{
    for (int k = 0; k < g->n_nodes; k++) {
        if (strcmp(g->nodes[k].name, name) == 0) {
            return g->nodes[k].device + sizeof(LOCAL) - 1;
        }
    }
    return "no such node";
}

static sx_graph *finish(sx_builder *b)
{
    sx_graph *g = NULL;
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* y = exp(x w) on the second cpu, its gradient and update; what no scope says beside it */
static sx_graph *model(const char *device)
{
    sx_builder *b;
    sx_value dw;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3));
    sx_builder_at(b, "net.c", 5);
    sx_device_scope_begin(b, device);
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 3, 2)});
    sx_value y = sx_exp(b, sx_matmul(b, x, w));
    sx_device_scope_end(b);
    sx_value n = sx_variable(b, &(sx_variable_spec){.name = "n", .type = sx_scalar_type(SX_F32)});
    sx_value loss = sx_reduce_mean(b, y);
    sx_gradients(b, loss, &w, 1, &dw);
    sx_assign(b, "w", sx_sub(b, w, dw));
    sx_assign(b, "n", sx_add(b, n, sx_constant_f32(b, 1)));
    sx_output(b, "loss", loss);
    return finish(b);
}

static void test_graph_placement__rules(void **state)
{
    (void)state;
    sx_graph *g = model("/cpu:1"), *placed;
    assert_ok(place(g, true, &placed));
    assert_string_equal(device_of(placed, "w"), "/device:CPU:1");
    assert_string_equal(device_of(placed, "x"), "/device:CPU:1"); /* where it is read */
    assert_string_equal(device_of(placed, "exp"), "/device:CPU:1");
    assert_string_equal(device_of(placed, "n"), "/device:CPU:0");   /* nothing is said of it */
    assert_string_equal(device_of(placed, "sub"), "/device:CPU:1"); /* w's new value */
    assert_string_equal(device_of(placed, "gradients/matmul"), "/device:CPU:1");
    sx_buf lines;
    sx_buf_init(&lines, 1 << 16);
    sx_placement_print(placed, &lines);
    assert_non_null(strstr(sx_buf_text(&lines), "\nmatmul: (MatMul): " LOCAL "/device:CPU:1\n"));
    sx_buf_deinit(&lines);
    sx_graph_destroy(placed);
    sx_graph_destroy(g);
}

static void test_graph_placement__soft_and_strict(void **state)
{
    (void)state;
    static const struct {
        const char *device, *matmul, *exp, *says;
    } rows[] = {
        {"/cpu:7", "/device:CPU:0", "/device:CPU:0",
         "parameter \"w\" (net.c:5) is to run on /device:CPU:7, which is not there (and soft "
         "placement is off); the "
         "devices are " LOCAL "/device:CPU:0, " LOCAL "/device:CPU:1, " LOCAL "/device:GPU:0"},
        {"/job:worker/cpu:1", "/device:CPU:0", "/device:CPU:0", "which is not there"},
        {"/device:TPU:0", "/device:CPU:0", "/device:CPU:0", "which is not there"},
        {"/gpu:1", "/device:GPU:0", "/device:CPU:0", "which is not there"},
        {"/gpu:0", "/device:GPU:0", "/device:CPU:0",
         "is to run on /device:GPU:0, which does not have this operator"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_graph *g = model(rows[i].device), *placed = NULL;
        assert_ok(place(g, false, &placed));
        assert_string_equal(device_of(placed, "matmul"), rows[i].matmul);
        assert_string_equal(device_of(placed, "exp"), rows[i].exp);
        sx_graph_destroy(placed);
        assert_error(place(g, true, &placed), SX_INVALID_ARGUMENT, rows[i].says);
        sx_graph_destroy(g);
    }
}

static void test_graph_placement__text_keeps_devices(void **state)
{
    (void)state;
    sx_graph *g = model("/cpu:1"), *read;
    char *text, *again;
    assert_ok(sx_graph_print(g, &text));
    assert_ptr_equal(strstr(text, "sextant-graph 3\n"), text);
    assert_non_null(strstr(text, "\"w\" weight zeros on \"/device:CPU:1\"\n"));
    assert_ok(sx_graph_parse(text, strlen(text), &read));
    assert_ok(sx_graph_print(read, &again));
    assert_string_equal(text, again);
    text[strlen("sextant-graph ")] = '2';
    sx_graph_destroy(read);
    assert_error(sx_graph_parse(text, strlen(text), &read), SX_INVALID_ARGUMENT, "line");
    sx_text_free(text);
    sx_text_free(again);
    sx_graph_destroy(g);
}

/* ---- Segments ---- */

static void cut(sx_graph *g, sx_partition *out)
{
    sx_graph *placed;
    assert_ok(place(g, true, &placed));
    assert_ok(sx_partition_create(placed, &(sx_partition_options){.devices = names, .n_devices = 3},
                                  out));
    sx_graph_destroy(placed);
    sx_graph_destroy(g);
    for (int s = 0; s < out->n_segments; s++) {
        for (int i = 0; i < out->segments[s].n_after; i++) {
            assert_true(out->segments[out->segments[s].after[i]].level < out->segments[s].level);
        }
    }
}

static sx_value on(sx_builder *b, const char *device, sx_value x)
{
    sx_device_scope_begin(b, device);
    x = sx_neg(b, x);
    sx_device_scope_end(b);
    return x;
}

static int count(const sx_partition *p, sx_end_kind kind)
{
    int n = 0;
    for (int s = 0; s < p->n_segments; s++) {
        for (int i = 0; i < p->segments[s].graph->n_results; i++) {
            n += p->segments[s].out[i].kind == kind;
        }
    }
    return n;
}

static void test_graph_placement__towers_wait_for_nobody(void **state)
{
    (void)state;
    sx_builder *b;
    sx_partition p;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_value left = on(b, "/cpu:0", on(b, "/cpu:0", x)), right = on(b, "/cpu:1", x);
    sx_output(b, "y", sx_add(b, left, right));
    cut(finish(b), &p);
    assert_int_equal(p.n_segments, 3);
    assert_int_equal(p.n_borders, 2);
    assert_int_equal(p.segments[0].n_after, 0);
    assert_int_equal(p.segments[1].n_after, 0);
    assert_int_not_equal(p.segments[0].device, p.segments[1].device);
    assert_int_equal(p.segments[2].n_after, 2);
    assert_int_equal(p.segments[2].device, 0);
    assert_int_equal(sx_batch_axis(&p.borders[0].type), 0);
    sx_partition_deinit(&p);
}

/* There and back again: a device's second segment waits for the other's. */
static void test_graph_placement__levels(void **state)
{
    (void)state;
    sx_builder *b;
    sx_partition p;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 2));
    sx_value k = sx_constant_f32(b, 3); /* in both, without a border */
    sx_value y = sx_mul(b, on(b, "/cpu:1", sx_mul(b, on(b, "/cpu:0", x), k)), k);
    sx_output(b, "y", y);
    sx_output(b, "x", x);
    sx_output(b, "k", k);
    cut(finish(b), &p);
    assert_int_equal(p.n_segments, 3);
    assert_int_equal(p.n_borders, 2);
    for (int s = 0; s < 3; s++) {
        assert_int_equal(p.segments[s].level, 2 * s);
        assert_int_equal(p.segments[s].device, s % 2);
        assert_int_equal(p.segments[s].n_after, s > 0);
    }
    assert_int_equal(count(&p, SX_END_OUTPUT), 3);
    sx_partition_deinit(&p);
}

/* y = x a b: of the gradients, that of y, which the first device waits for, comes before that of b,
 * which it does not. */
static void test_graph_placement__products_that_can_wait(void **state)
{
    (void)state;
    sx_builder *b;
    sx_partition p;
    sx_value w[2], dw[2], y;
    static const char *const variables[] = {"a", "b"};
    assert_ok(sx_builder_create(&b));
    y = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    for (int i = 0; i < 2; i++) {
        sx_device_scope_begin(b, i == 0 ? "/cpu:0" : "/cpu:1");
        w[i] = sx_variable(
            b, &(sx_variable_spec){.name = variables[i], .type = sx_type_of(SX_F32, 2, 2)});
        y = sx_matmul(b, y, w[i]);
        y = i == 1 ? sx_reduce_sum(b, sx_exp(b, y)) : y;
        sx_device_scope_end(b);
    }
    sx_gradients(b, y, w, 2, dw);
    sx_output(b, "da", dw[0]);
    sx_output(b, "db", dw[1]);
    cut(finish(b), &p);
    assert_int_equal(p.n_segments, 4);
    static const int devices[] = {0, 1, 1, 0}, levels[] = {0, 2, 3, 4};
    for (int s = 0; s < 4; s++) {
        assert_int_equal(p.segments[s].device, devices[s]);
        assert_int_equal(p.segments[s].level, levels[s]);
        const sx_graph *g = p.segments[s].graph;
        bool product = false;
        for (int k = 0; k < g->n_nodes; k++) {
            product = product || strcmp(g->nodes[k].op->name, "matmul") == 0;
        }
        assert_true(product);
    }
    assert_int_equal(p.segments[3].n_after, 1); /* not for segment 2 */
    assert_int_equal(p.segments[3].after[0], 1);
    sx_partition_deinit(&p);
}

/* A variable is updated in place once the others that read it have; one that a later segment reads,
 * or whose new value is made elsewhere, when all have ended. */
static void test_graph_placement__updates(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        bool later, moved;
        int here, afterwards;
    } rows[] = {{"in place", false, false, 1, 0},
                {"read later", true, false, 0, 1},
                {"made elsewhere", false, true, 0, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_builder *b;
        sx_partition p;
        print_message("%s\n", rows[i].what);
        assert_ok(sx_builder_create(&b));
        sx_device_scope_begin(b, "/cpu:0");
        sx_value w =
            sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 2)});
        sx_device_scope_end(b);
        sx_value y = on(b, "/cpu:1", w); /* reads it on another device */
        sx_value fresh = on(b, rows[i].moved ? "/cpu:1" : "/cpu:0", y);
        sx_assign(b, "w", fresh);
        if (rows[i].later) {
            sx_device_scope_begin(b, "/cpu:1");
            sx_output(b, "old", sx_add(b, fresh, w));
            sx_device_scope_end(b);
        }
        cut(finish(b), &p);
        assert_int_equal(count(&p, SX_END_UPDATE), rows[i].here);
        assert_int_equal(count(&p, SX_END_LATER), rows[i].afterwards);
        sx_partition_deinit(&p);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_placement__rules),
    cmocka_unit_test(test_graph_placement__soft_and_strict),
    cmocka_unit_test(test_graph_placement__text_keeps_devices),
    cmocka_unit_test(test_graph_placement__towers_wait_for_nobody),
    cmocka_unit_test(test_graph_placement__levels),
    cmocka_unit_test(test_graph_placement__products_that_can_wait),
    cmocka_unit_test(test_graph_placement__updates),
};
SX_TEST_MAIN(tests)
