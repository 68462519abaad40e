/* Cutting a placed graph into segments: of many parts of a batch, too. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include <sextant/ops.h>

#include "base/memory.h"
#include "graph/partition.h"

static const char *const devices[] = {"/job:localhost/replica:0/task:0/device:CPU:0",
                                      "/job:localhost/replica:0/task:0/device:CPU:1"};

/* In each of `n` parts -x on the first device and its negative on the second; then their sum, which
 * is assigned to w, on the first. part[v] becomes the part of value v. */
static sx_graph *graph_of(int n, int **part)
{
    sx_builder *b;
    sx_graph *g;
    const sx_type type = sx_type_of(SX_F32, 2);
    sx_value *z = sx_alloc((size_t)n, sizeof(*z));
    assert_ok(sx_builder_create(&b));
    sx_device_scope_begin(b, devices[0]);
    sx_value x = sx_input(b, "x", type);
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = type});
    for (int i = 0; i < n; i++) {
        const sx_value y = sx_mul(b, sx_neg(b, x), w);
        sx_device_scope_begin(b, devices[1]);
        z[i] = sx_neg(b, y);
        sx_device_scope_end(b);
    }
    sx_value sum = z[0];
    for (int i = 1; i < n; i++) {
        sum = sx_add(b, sum, z[i]);
    }
    sx_assign(b, "w", sum);
    sx_device_scope_end(b);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    *part = sx_alloc((size_t)g->n_values, sizeof(int));
    for (int i = 0, k = 0; i < n; i++) { /* the parts' nodes are three each, in order */
        for (; g->values[z[i].id].node >= (uint32_t)k; k++) {
            if (g->nodes[k].n_outputs > 0 && !sx_node_is_source(&g->nodes[k])) {
                (*part)[g->nodes[k].first_output.id] = i + 1;
            }
        }
    }
    sx_free(z);
    return g;
}

static void cut(int n, sx_partition *out)
{
    int *part;
    sx_graph *g = graph_of(n, &part);
    const sx_partition_options o = {.devices = devices, .n_devices = 2, .part = part};
    assert_ok(sx_partition_create(g, &o, out));
    sx_free(part);
    sx_graph_destroy(g);
}

static void test_graph_partition__parts_have_segments(void **state)
{
    (void)state;
    enum { N = 3 };
    sx_partition p;
    cut(N, &p);
    assert_int_equal(p.n_segments, 2 * N + 1);
    assert_int_equal(p.n_borders, 2 * N);
    for (int s = 0; s < p.n_segments; s++) {
        const sx_segment *segment = &p.segments[s];
        const bool last = s == 2 * N;
        assert_int_equal(segment->device, s >= N && !last);
        assert_int_equal(segment->part, last ? 0 : s % N + 1);
        assert_int_equal(segment->graph->n_args, last ? N + 1 : s < N ? 2 : 1);
        /* The sum is assigned when all that read the variable have ended. */
        assert_int_equal(segment->n_after, last ? 2 * N : s < N ? 0 : 1);
        for (int i = 0; i < segment->n_after; i++) {
            assert_int_equal(segment->after[i], last ? i : s - N);
        }
    }
    assert_int_equal(p.segments[2 * N].out[0].kind, SX_END_UPDATE);
    sx_partition_deinit(&p);
}

/* Not with the square of their number. */
static void test_graph_partition__memory_grows_with_the_parts(void **state)
{
    (void)state;
    sx_partition few, many;
    cut(250, &few);
    cut(2000, &many);
    assert_int_equal(many.n_segments, 4001);
    assert_true(sx_arena_capacity(&many.arena) < 16 * sx_arena_capacity(&few.arena));
    sx_partition_deinit(&few);
    sx_partition_deinit(&many);
}

static void on(sx_builder *b, int device)
{
    sx_device_scope_end(b);
    sx_device_scope_begin(b, devices[device]);
}

/* The segments of what was built, each after those that it waits for, which are of lower levels,
 * and with as many ends as its graph has. Ends the builder. */
static void cut_built(sx_builder *b, sx_partition *out)
{
    sx_graph *g;
    const sx_partition_options o = {.devices = devices, .n_devices = 2};
    sx_device_scope_end(b);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_partition_create(g, &o, out));
    for (int s = 0; s < out->n_segments; s++) {
        const sx_segment *segment = &out->segments[s];
        for (int i = 0; i < segment->n_after; i++) {
            assert_true(segment->after[i] < s);
            assert_true(out->segments[segment->after[i]].level < segment->level);
        }
        for (int i = 0; i < segment->graph->n_args; i++) {
            const bool border = segment->in[i].kind == SX_END_BORDER;
            assert_true(border || segment->in[i].kind == SX_END_ARG);
            assert_true(segment->in[i].index < (border ? out->n_borders : g->n_args));
        }
    }
    sx_graph_destroy(g);
}

static sx_value vector(sx_builder *b, const char *name)
{
    return sx_variable(b, &(sx_variable_spec){.name = name, .type = sx_type_of(SX_F32, 4)});
}

/* What follows from variables alone is put off to where it is read, but never before what it reads
 * itself. */
static void test_graph_partition__frozen_values_keep_the_order(void **state)
{
    (void)state;
    sx_builder *b;
    sx_partition p;
    assert_ok(sx_builder_create(&b));
    sx_device_scope_begin(b, devices[0]);
    const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 4)), w1 = vector(b, "w1"),
                   w2 = vector(b, "w2"), a = sx_exp(b, w1);
    on(b, 1);
    const sx_value d = sx_exp(b, w2), n = sx_neg(b, a);
    on(b, 0);
    const sx_value e = sx_neg(b, d), y = sx_mul(b, x, n);
    on(b, 1);
    sx_output(b, "y", sx_mul(b, y, e));
    cut_built(b, &p);
    sx_partition_deinit(&p);
}

/* A range that is known is brought along; by one of variables nothing is rounded again, nor by one
 * of another dtype. */
static void test_graph_partition__rounded_values_are_rounded_again(void **state)
{
    (void)state;
    enum { KNOWN, VARIABLE, BITS, KINDS };
    static const int again[KINDS] = {[KNOWN] = 1};
    for (int kind = 0; kind < KINDS; kind++) {
        sx_builder *b;
        sx_partition p;
        assert_ok(sx_builder_create(&b));
        sx_device_scope_begin(b, devices[0]);
        const sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 4));
        const sx_variable_spec low = {.name = "low", .type = sx_scalar_type(SX_F32)},
                               high = {.name = "high", .type = sx_scalar_type(SX_F32)};
        const bool known = kind != VARIABLE;
        sx_value q =
            sx_quantize_dequantize(b, x, known ? sx_constant_f32(b, -1) : sx_variable(b, &low),
                                   known ? sx_constant_f32(b, 1) : sx_variable(b, &high));
        q = sx_reshape(b, q, 2, 2);
        q = kind == BITS ? sx_bitcast(b, q, SX_I32) : q;
        on(b, 1);
        const sx_value r = sx_add(b, q, q), again_read = sx_mul(b, q, r);
        on(b, 0);
        sx_output(b, "y", sx_neg(b, again_read));
        cut_built(b, &p);
        int found = 0;
        for (int s = 0; s < p.n_segments; s++) {
            for (int k = 0; k < p.segments[s].graph->n_nodes && p.segments[s].device == 1; k++) {
                const sx_node *n = &p.segments[s].graph->nodes[k];
                found += strcmp(n->op->name, "quantize_dequantize") == 0;
            }
        }
        assert_int_equal(found, again[kind]);
        sx_partition_deinit(&p);
    }
}

static void test_graph_partition__memory_is_limited(void **state)
{
    (void)state;
    int *part;
    sx_budget budget;
    sx_partition p;
    sx_graph *g = graph_of(100, &part);
    sx_partition_options o = {.devices = devices, .n_devices = 2, .part = part, .memory = &budget};
    sx_budget_init(&budget, "a test", 64 << 10, NULL);
    assert_error(sx_partition_create(g, &o, &p), SX_RESOURCE_EXHAUSTED,
                 "dividing a program would exceed the memory limit of a test");
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_budget_init(&budget, "a test", 64 << 20, NULL);
    assert_ok(sx_partition_create(g, &o, &p));
    assert_true(sx_budget_used(&budget) >= sx_arena_capacity(&p.arena));
    sx_partition_deinit(&p);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_free(part);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_partition__parts_have_segments),
    cmocka_unit_test(test_graph_partition__memory_grows_with_the_parts),
    cmocka_unit_test(test_graph_partition__frozen_values_keep_the_order),
    cmocka_unit_test(test_graph_partition__rounded_values_are_rounded_again),
    cmocka_unit_test(test_graph_partition__memory_is_limited),
};
SX_TEST_MAIN(tests)
