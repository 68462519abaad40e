/* Ranges from examples (runtime/calibration.h), and pieces that compute with them. */
#include "harness.h"

#include <math.h>
#include <string.h>

#include <sextant/ops.h>

#include "graph/builder.h"
#include "graph/op_def.h"
#include "graph/ops/attrs.h"
#include "runtime/calibration.h"
#include "runtime/pieces.h"

static sx_graph *product_graph(void)
{
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 4));
    sx_value w = sx_variable(b, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 4, 2)});
    sx_output(b, "y", sx_matmul(b, x, w));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* The range that a quantized image has got. */
static void range_of(const sx_graph *g, float *low, float *high)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (n->op->id == SX_OPID_quantize_dequantize && sx_graph_type(g, n->inputs[1])->rank == 0) {
            const sx_constant_attrs *a = sx_graph_maker(g, n->inputs[1])->attrs,
                                    *z = sx_graph_maker(g, n->inputs[2])->attrs;
            *low = *(const float *)a->value.data;
            *high = *(const float *)z->value.data;
            return;
        }
    }
    fail_msg("no image is quantized");
}

static const float weights[] = {1, -2, 0.5f, 3, 0, 0, 0, 0};

/* The range for numbers that are observed `at_once`. */
static void calibrate(const float *x, int n, int at_once, float *low, float *high)
{
    sx_graph *g = product_graph(), *made;
    sx_calibration *c;
    assert_ok(sx_calibration_create(g, &c));
    const sx_quantize_points *points = sx_calibration_points(c);
    for (int i = 0; i < points->n; i++) {
        if (points->points[i].is_filter) {
            sx_calibration_observe(c, i, weights, 8);
        }
        for (int k = 0; k < n && !points->points[i].is_filter; k += at_once) {
            sx_calibration_observe(c, i, x + k, at_once);
        }
    }
    assert_ok(sx_calibration_finish(c, &made));
    range_of(made, low, high);
    sx_graph_destroy(made);
    sx_calibration_destroy(c);
    sx_graph_destroy(g);
}

static void test_runtime_calibration__chooses_ranges(void **state)
{
    (void)state;
    enum { N = 40000 };
    static float x[N];
    float low, high;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 1000) / 1000;
    }
    calibrate(x, N, 1000, &low, &high); /* even: all of it */
    assert_true(low == 0 && high > 0.97f && high < 1);
    for (int i = 0; i < N; i++) {
        x[i] = x[i] * 2 - 1;
    }
    calibrate(x, N, 1000, &low, &high);
    assert_true(high > 0.97f && high <= 1 && low == -high);
    x[N - 1] = 30; /* one among so many is clipped, wherever it comes */
    calibrate(x, N, 1000, &low, &high);
    assert_true(high > 1 && high < 25);
    float first_low, first_high;
    x[N - 1] = x[0];
    x[0] = 30;
    calibrate(x, N, N, &first_low, &first_high);
    assert_true(fabsf(first_high - high) < 0.5f);
    memset(x, 0, sizeof(x));
    calibrate(x, N, N, &low, &high);
    assert_true(low == 0 && high == 0);
}

static void test_runtime_calibration__refuses(void **state)
{
    (void)state;
    static const float numbers[] = {NAN, INFINITY, -INFINITY, 3e38f};
    sx_graph *g = product_graph(), *made;
    for (int i = 0; i < 5; i++) {
        sx_calibration *c;
        assert_ok(sx_calibration_create(g, &c));
        for (int k = 0; k < sx_calibration_points(c)->n && i < 4; k++) {
            sx_calibration_observe(c, k, &numbers[i], 1);
        }
        assert_error(sx_calibration_finish(c, &made), SX_INVALID_ARGUMENT,
                     i < 4 ? "not finite" : "there are no examples");
        sx_calibration_destroy(c);
    }
    sx_graph_destroy(g);
}

/* ---- Pieces ---- */

static const char model[] = "sextant-library 2\n"
                            "variable float32[8,16] \"w\" weight ones\n"
                            "variable float32[16,16] \"v\" weight ones\n"
                            "variable float32[16,3] \"u\" weight ones\n"
                            "function \"main\"\n"
                            "input %1 float32[N,8] \"x\"\n"
                            "%2 = variable_handle() {name=\"w\"} resource[] \"hw\"\n"
                            "%3 = read_variable(%2) float32[8,16] \"w\"\n"
                            "%4 = matmul(%1, %3) float32[N,16] \"a\"\n"
                            "%5 = relu(%4) float32[N,16] \"r\"\n"
                            "%6 = variable_handle() {name=\"v\"} resource[] \"hv\"\n"
                            "%7 = read_variable(%6) float32[16,16] \"v\"\n"
                            "%8 = matmul(%5, %7) float32[N,16] \"b\"\n"
                            "%9 = variable_handle() {name=\"u\"} resource[] \"hu\"\n"
                            "%10 = read_variable(%9) float32[16,3] \"u\"\n"
                            "%11 = matmul(%8, %10) float32[N,3] \"c\"\n"
                            "output \"y\" %11\nend\n";

static void test_runtime_calibration__pieces_become_quantized(void **state)
{
    (void)state;
    enum { ROWS = 37 };
    static float x[ROWS * 8];
    sx_library *library;
    sx_session *session;
    sx_pieces *pieces;
    sx_arena arena;
    sx_pieces_quantized what;
    const sx_tensor input = {sx_type_of(SX_F32, ROWS, 8), x};
    sx_tensor plain, before, after;
    assert_ok(sx_library_parse(model, strlen(model), &library));
    assert_ok(sx_session_create(
        &(sx_session_options){.device = "cpu", .seed = 5, .platform = {.cpu = {.integers = true}}},
        &session));
    assert_ok(sx_pieces_create(session, library, sx_library_find(library, "main"), NULL, NULL, NULL,
                               &pieces));
    sx_session_freeze(session);
    sx_arena_init(&arena, 0);
    for (int i = 0; i < ROWS * 8; i++) {
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    }
    for (int i = 0; i < sx_session_variable_count(session); i++) {
        float values[16 * 16];
        for (int k = 0; k < 16 * 16; k++) {
            values[k] = (float)(k * 29 % 97) / 48 - 1;
        }
        assert_ok(sx_session_write_variable(session, i, values));
    }
    assert_ok(sx_pieces_run(pieces, &input, ROWS, NULL, &arena, &plain));
    /* No rows: there is nothing to learn from, and it stays as it is. */
    assert_error(sx_pieces_quantize(pieces, &input, 0, NULL, &arena, &before, &what),
                 SX_INVALID_ARGUMENT, "there are no examples");
    assert_ok(sx_pieces_quantize(pieces, &input, ROWS, NULL, &arena, &before, &what));
    assert_int_equal(what.products, 1);
    assert_int_equal(what.skipped, 2);
    assert_ok(sx_pieces_run(pieces, &input, ROWS, NULL, &arena, &after));
    const float *a = plain.data, *b = before.data, *c = after.data;
    float greatest = 0, off = 0;
    for (int i = 0; i < ROWS * 3; i++) {
        assert_true(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(a[i])));
        greatest = fmaxf(greatest, fabsf(a[i]));
        off = fmaxf(off, fabsf(a[i] - c[i]));
    }
    assert_true(off > 0 && off < 0.03f * greatest);
    assert_error(sx_pieces_quantize(pieces, &input, ROWS, NULL, &arena, &before, &what),
                 SX_FAILED_PRECONDITION, "quantized already");
    sx_arena_deinit(&arena);
    sx_session_destroy(session);
    sx_pieces_destroy(pieces);
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_calibration__chooses_ranges),
    cmocka_unit_test(test_runtime_calibration__refuses),
    cmocka_unit_test(test_runtime_calibration__pieces_become_quantized),
};

SX_TEST_MAIN(tests)
