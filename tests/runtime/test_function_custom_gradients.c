/* custom_gradient and refuse_gradient in functions: the gradient is the region's, to any order, in
 * branches and loops, too; where none is asked for they are gone. */
#include "function_running.h"

#include "../backends/float_run.h"

#include <math.h>

#include <sextant/function.h>
#include <sextant/ops.h>

#include "graph/op_def.h"
#include "graph/passes/passes.h"
#include "graph/specialize.h"

enum { N = 3 };

/* scaled(x) = x x, whose gradient is dy sin(x); sin(x) is an operand of the region
 * rounded(x) = round(x), whose gradient is dy
 * refused(x) = x x, without
 * chosen(x, n): scaled, in a branch if n < 1, else n times in a loop */
static const char text[] =
    "sextant-library 2\n"
    "function \"scaled\"\n"
    "input %1 float64[?] \"x\"\n"
    "%2 = mul(%1, %1) float64[?] \"square\"\n%3 = sin(%1) float64[?] \"sin\"\n"
    "%4 = custom_gradient(%2, %1, %3) {results=1} float64[?] \"custom\"\n"
    "  gradient\n"
    "    input %1 float64[?] \"dy\"\n    input %2 float64[?] \"x\"\n    input %3 float64[?] \"s\"\n"
    "    %4 = call(%1, %3) {function=\"product\"} float64[?] \"product\"\n"
    "    output \"dx\" %4\n  end\n"
    "output \"y\" %4\nend\n"
    "function \"product\"\n"
    "input %1 float64[?] \"a\"\ninput %2 float64[?] \"b\"\n"
    "%3 = mul(%1, %2) float64[?] \"mul\"\noutput \"y\" %3\nend\n"
    "function \"rounded\"\n"
    "input %1 float64[?] \"x\"\n%2 = round(%1) float64[?] \"round\"\n"
    "%3 = custom_gradient(%2, %1) {results=1} float64[?] \"custom\"\n"
    "  gradient\n"
    "    input %1 float64[?] \"dy\"\n    input %2 float64[?] \"x\"\n    output \"dx\" %1\n  end\n"
    "output \"y\" %3\nend\n"
    "function \"refused\"\n"
    "input %1 float64[?] \"x\"\n%2 = round(%1) float64[?] \"round\"\n"
    "%3 = refuse_gradient(%2, %1) {results=1, why=\"it was lost\"} float64[?] \"refuse\"\n"
    "output \"y\" %3\nend\n"
    "function \"chosen\"\n"
    "input %1 float64[?] \"x\"\ninput %2 int32[] \"n\"\n"
    "%3 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
    "%4, %5 = while(%1, %3, %2) float64[?], int32[] \"loop\"\n"
    "  condition\n"
    "    input %1 float64[?] \"h\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = less(%2, %3) bool[] \"go\"\n    output \"go\" %4\n  end\n"
    "  body\n"
    "    input %1 float64[?] \"h\"\n    input %2 int32[] \"i\"\n    input %3 int32[] \"n\"\n"
    "    %4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "    %5 = add(%2, %4) int32[] \"next\"\n"
    "    %6 = call(%1) {function=\"scaled\"} float64[?] \"call\"\n"
    "    output \"h\" %6\n    output \"i\" %5\n  end\n"
    "%6 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
    "%7 = less(%2, %6) bool[] \"none\"\n"
    "%8 = if(%7, %4) float64[?] \"if\"\n"
    "  then\n    input %1 float64[?] \"h\"\n"
    "    %2 = call(%1) {function=\"scaled\"} float64[?] \"call\"\n    output \"y\" %2\n  end\n"
    "  else\n    input %1 float64[?] \"h\"\n"
    "    %2 = identity(%1) float64[?] \"same\"\n    output \"y\" %2\n  end\n"
    "output \"y\" %8\nend\n"
#define FIRST(name)                                                                              \
    "function \"" name "/1\"\ninput %1 float64[?] \"x\"\ninput %2 float64[?] \"dy\"\n"           \
    "%3 = call(%1, %2) {function=\"" name "\", gradient=1} float64[?] \"g\"\noutput \"dx\" %3\n" \
    "end\n"
    FIRST("scaled") FIRST("rounded") FIRST(
        "refused") "function \"scaled/2\"\n"
                   "input %1 float64[?] \"x\"\ninput %2 float64[?] \"dy\"\ninput %3 float64[?] "
                   "\"ddx\"\n"
                   "%4, %5 = call(%1, %2, %3) {function=\"scaled\", gradient=2} float64[?], "
                   "float64[?] \"g\"\n"
                   "output \"dx\" %4\noutput \"ddy\" %5\nend\n"
                   "function \"chosen/1\"\n"
                   "input %1 float64[?] \"x\"\ninput %2 int32[] \"n\"\ninput %3 float64[?] \"dy\"\n"
                   "%4 = call(%1, %2, %3) {function=\"chosen\", gradient=1} float64[?] "
                   "\"g\"\noutput \"dx\" %4\n"
                   "end\n";

static const double xs[N] = {0.5, -1.25, 2}, dys[N] = {1, 2, -3}, ddxs[N] = {0.25, 1, 4};

static sx_tensor vector(const double *x)
{
    return (sx_tensor){sx_type_of(SX_F64, N), (void *)x};
}

static void assert_near(const sx_tensor *got, int k, double want)
{
    const double x = ((const double *)got->data)[k];
    if (!(fabs(x - want) <= 1e-12 * fmax(1, fabs(want)))) {
        fail_msg("element %d is %.15g, expected %.15g", k, x, want);
    }
}

static void test_runtime_function_custom_gradients__are_the_regions(void **state)
{
    (void)state;
    const sx_tensor in[] = {vector(xs), vector(dys), vector(ddxs)};
    for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); d++) {
        running t;
        sx_tensor y[2];
        begin(&t, devices[d], parse(text), (sx_runner_options){.seed = 0});
        assert_ok(sx_runner_run(t.runner, "scaled", in, 1, y, 1, &t.arena, NULL));
        for (int k = 0; k < N; k++) {
            assert_near(&y[0], k, xs[k] * xs[k]);
        }
        assert_ok(sx_runner_run(t.runner, "scaled/1", in, 2, y, 1, &t.arena, NULL));
        for (int k = 0; k < N; k++) {
            assert_near(&y[0], k, dys[k] * sin(xs[k]));
        }
        /* that of dy sin(x) */
        assert_ok(sx_runner_run(t.runner, "scaled/2", in, 3, y, 2, &t.arena, NULL));
        for (int k = 0; k < N; k++) {
            assert_near(&y[0], k, ddxs[k] * dys[k] * cos(xs[k]));
            assert_near(&y[1], k, ddxs[k] * sin(xs[k]));
        }
        /* also where the operator itself has a gradient of zero */
        assert_ok(sx_runner_run(t.runner, "rounded/1", in, 2, y, 1, &t.arena, NULL));
        for (int k = 0; k < N; k++) {
            assert_near(&y[0], k, dys[k]);
        }
        end(&t);
    }
}

/* All memory that regions and gradient functions were charged with is given back. */
static void test_runtime_function_custom_gradients__in_branches_and_loops(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); d++) {
        for (int32_t n = 0; n < 4; n++) {
            running t;
            sx_tensor y;
            sx_budget memory;
            const sx_tensor in[] = {vector(xs), {sx_scalar_type(SX_I32), &n}, vector(dys)};
            sx_budget_init(&memory, "a test", 0, NULL);
            begin(&t, devices[d], parse(text), (sx_runner_options){.memory = &memory});
            assert_ok(sx_runner_run(t.runner, "chosen/1", in, 3, &y, 1, &t.arena, NULL));
            for (int k = 0; k < N; k++) {
                double dx = dys[k], h = xs[k];
                for (int i = 0; i < (n > 0 ? n : 1); i++) { /* a product: the order is the same */
                    dx *= sin(h);
                    h *= h;
                }
                assert_near(&y, k, dx);
            }
            end(&t);
            assert_int_equal(sx_budget_used(&memory), 0);
        }
    }
}

static void test_runtime_function_custom_gradients__refuse(void **state)
{
    (void)state;
    running t;
    sx_tensor y;
    const sx_tensor in[] = {vector(xs), vector(dys)};
    begin(&t, "cpu", parse(text), (sx_runner_options){.seed = 0});
    assert_ok(sx_runner_run(t.runner, "refused", in, 1, &y, 1, &t.arena, NULL));
    for (int k = 0; k < N; k++) {
        assert_near(&y, k, rint(xs[k]));
    }
    assert_error(sx_runner_run(t.runner, "refused/1", in, 2, &y, 1, &t.arena, NULL),
                 SX_UNIMPLEMENTED, "the gradient of function \"refused\": it was lost");
    end(&t);
}

/* Without a gradient neither they nor what only their regions read is computed; the text keeps
 * them. */
static void test_runtime_function_custom_gradients__are_gone_without(void **state)
{
    (void)state;
    sx_library *library = parse(text), *again = NULL;
    sx_specialized *s = NULL;
    char *once = NULL, *twice = NULL;
    const sx_tensor x = {sx_type_of(SX_F64, N), NULL};
    assert_ok(sx_specialize(library, sx_library_find(library, "scaled")->body,
                            &(sx_binding){.args = &x, .n_args = 1}, NULL, &s));
    assert_int_equal(s->n_steps, 1);
    assert_int_equal(s->steps[0].graph->n_nodes, 2); /* x, its square */
    sx_specialized_destroy(s);
    assert_ok(sx_specialize(library, sx_library_find(library, "scaled")->body,
                            &(sx_binding){.args = &x, .n_args = 1, .differentiated = true}, NULL,
                            &s));
    const sx_graph *g = s->steps[0].graph;
    assert_string_equal(g->nodes[g->n_nodes - 1].op->name, "custom_gradient");
    sx_specialized_destroy(s);
    assert_ok(sx_library_print(library, &once));
    assert_ok(sx_library_parse(once, strlen(once), &again));
    assert_ok(sx_library_print(again, &twice));
    assert_string_equal(once, twice);
    assert_non_null(strstr(once, "custom_gradient("));
    assert_non_null(strstr(once, "why=\"it was lost\""));
    sx_text_free(once);
    sx_text_free(twice);
    sx_library_destroy(library);
    sx_library_destroy(again);
}

/* Regions that contradict their node. */
static void test_runtime_function_custom_gradients__of_wrong_forms(void **state)
{
    (void)state;
    static const struct {
        const char *node, *error;
    } rows[] = {
        {"%2 = custom_gradient(%1) {results=1} float64[3] \"c\"\n  gradient\n"
         "    input %1 float64[3] \"dy\"\n    output \"dx\" %1\n  end\n",
         "region gradient takes 1 values and gives 1, expected 1 and 0"},
        {"%2 = custom_gradient(%1, %1) {results=1} float64[3] \"c\"\n  gradient\n"
         "    input %1 float64[3] \"dy\"\n    output \"dx\" %1\n  end\n",
         "region gradient takes 1 values and gives 1, expected 2 and 1"},
        {"%2, %3 = custom_gradient(%1) {results=1} float64[3], float64[3] \"c\"\n  gradient\n"
         "    input %1 float64[3] \"dy\"\n    output \"dx\" %1\n  end\n",
         "expected 1 and "},
        {"%2, %3 = refuse_gradient(%1) {results=2} float64[3], float64[3] \"c\"\n",
         "2 outputs are declared for 1 operands"},
        {"%2 = refuse_gradient(%1) {results=1} float64[2] \"c\"\n",
         "output 0 is float64[3], but is declared as float64[2]"},
        {"%2 = custom_gradient(%1, %1) {results=1} float64[3] \"c\"\n  gradient\n"
         "    input %1 float64[3] \"dy\"\n    input %2 float64[3] \"x\"\n"
         "    %3 = constant() {value=tensor(float64[] \"0000000000000000\")} float64[] \"c\"\n"
         "    output \"dx\" %3\n  end\n",
         "region gradient gives float64[] as gradient 0, expected float64[3]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char words[2048];
        running t;
        sx_tensor y;
        const sx_tensor in[] = {vector(xs), vector(dys)};
        snprintf(words, sizeof(words),
                 "sextant-library 2\nfunction \"f\"\ninput %%1 float64[3] \"x\"\n%s"
                 "output \"y\" %%2\nend\n%s",
                 rows[i].node,
                 "function \"main\"\ninput %1 float64[3] \"x\"\ninput %2 float64[3] \"dy\"\n"
                 "%3 = call(%1, %2) {function=\"f\", gradient=1} float64[3] \"g\"\n"
                 "output \"dx\" %3\nend\n");
        begin(&t, "host", parse(words), (sx_runner_options){.seed = 0});
        assert_error(sx_runner_run(t.runner, "main", in, 2, &y, 1, &t.arena, NULL),
                     SX_INVALID_ARGUMENT, rows[i].error);
        end(&t);
    }
}

/* In the graph of a model: its gradient has the region's nodes; what is compiled, none of these. */
static float number(void *user, int arg, int64_t k)
{
    (void)user;
    return (float)(arg + 1) * 0.25f * (float)(k - 5);
}

static void test_runtime_function_custom_gradients__in_the_graph_of_a_model(void **state)
{
    (void)state;
    static const char scaled[] =
        "sextant-library 2\n"
        "function \"scaled\"\n"
        "input %1 float32[?,3] \"x\"\n"
        "%2 = mul(%1, %1) float32[?,3] \"square\"\n%3 = sin(%1) float32[?,3] \"sin\"\n"
        "%4 = custom_gradient(%2, %1, %3) {results=1} float32[?,3] \"custom\"\n"
        "  gradient\n"
        "    input %1 float32[?,3] \"dy\"\n    input %2 float32[?,3] \"x\"\n"
        "    input %3 float32[?,3] \"s\"\n    %4 = mul(%1, %3) float32[?,3] \"dx\"\n"
        "    output \"dx\" %4\n  end\n"
        "output \"y\" %4\nend\n";
    enum { ROWS = 4, SHARDS = 2 };
    sx_library *library = parse(scaled);
    sx_graph *g = NULL, *plain = NULL;
    sx_builder *b = NULL;
    sx_value y, dx;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 3));
    sx_call_function(b, library, "scaled", &x, 1, &y, 1);
    sx_gradients(b, sx_reduce_sum(b, y, .axes = SX_AXES(0, 1)), &x, 1, &dx);
    sx_output(b, "dx", dx);
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_library_destroy(library);
    assert_ok(sx_pass_drop_gradients(g, &plain));
    assert_non_null(plain);
    for (int k = 0; k < plain->n_nodes; k++) {
        assert_true(plain->nodes[k].op != &sx_op_custom_gradient);
    }
    sx_graph_destroy(plain);
    for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); d++) {
        sx_platform *platform = NULL;
        float_run run = {.number = number, .batch = ROWS, .shards = d == 0 ? 0 : SHARDS};
        assert_ok(
            sx_platform_open(devices[d], &(sx_platform_options){.cpu.threads = 1}, &platform));
        float *got = run_floats(platform, g, &run);
        assert_int_equal(run.elems, 3 * ROWS);
        for (int64_t k = 0; k < run.elems; k++) {
            assert_float_equal(got[k], sinf(number(NULL, 0, k)), 1e-6f);
        }
        sx_free(got);
        sx_platform_close(platform);
    }
    sx_graph_destroy(g);
}

/* A region whose sizes depend on data has no static form: an error only where a gradient is asked
 * for. */
static void test_runtime_function_custom_gradients__without_a_static_form(void **state)
{
    (void)state;
    static const char picks[] = "sextant-library 2\n"
                                "function \"picks\"\n"
                                "input %1 float32[3] \"x\"\n"
                                "%2 = mul(%1, %1) float32[3] \"square\"\n"
                                "%3 = custom_gradient(%2, %1) {results=1} float32[3] \"custom\"\n"
                                "  gradient\n"
                                "    input %1 float32[3] \"dy\"\n    input %2 float32[3] \"x\"\n"
                                "    %3 = greater(%2, %1) bool[3] \"larger\"\n"
                                "    %4 = where(%3) int64[?,1] \"places\"\n"
                                "    %5 = gather_nd(%1, %4) float32[?] \"taken\"\n"
                                "    %6 = reduce_sum(%5) {axes=[0]} float32[] \"sum\"\n"
                                "    %7 = mul(%2, %6) float32[3] \"dx\"\n"
                                "    output \"dx\" %7\n  end\n"
                                "output \"y\" %3\nend\n";
    sx_library *library = parse(picks);
    for (int asked = 0; asked < 2; asked++) {
        sx_graph *g = NULL;
        sx_builder *b = NULL;
        sx_value y, dx;
        assert_ok(sx_builder_create(&b));
        sx_value x = sx_input(b, "x", sx_type_of(SX_F32, 3));
        sx_call_function(b, library, "picks", &x, 1, &y, 1);
        if (asked) {
            sx_gradients(b, sx_reduce_sum(b, y, .axes = SX_AXES(0)), &x, 1, &dx);
        }
        sx_output(b, "y", y);
        if (asked) {
            assert_error(
                sx_builder_finish(b, &g), SX_UNIMPLEMENTED,
                "the gradient of custom_gradient \"custom\" has sizes that depend on data");
        } else {
            assert_ok(sx_builder_finish(b, &g));
        }
        sx_graph_destroy(g);
        sx_builder_destroy(b);
    }
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runtime_function_custom_gradients__are_the_regions),
    cmocka_unit_test(test_runtime_function_custom_gradients__in_branches_and_loops),
    cmocka_unit_test(test_runtime_function_custom_gradients__refuse),
    cmocka_unit_test(test_runtime_function_custom_gradients__in_the_graph_of_a_model),
    cmocka_unit_test(test_runtime_function_custom_gradients__without_a_static_form),
    cmocka_unit_test(test_runtime_function_custom_gradients__are_gone_without),
    cmocka_unit_test(test_runtime_function_custom_gradients__of_wrong_forms),
};

SX_TEST_MAIN(tests)
