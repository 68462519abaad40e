/* What becomes of loops: state that nothing needs goes, rows are added to stacks without reading
 * all of them, and conditions of two limits bound the trips. Results keep their bits. */
#include "host_run.h"

#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/specialize.h"

static sx_graph *parse(const char *text)
{
    sx_graph *g = NULL;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    return g;
}

static const sx_node *find(const sx_graph *g, const sx_op_def *op, int k)
{
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op == op && k-- == 0) {
            return &g->nodes[i];
        }
    }
    return NULL;
}

/* 1, 2, 3, ...; scalars 2. */
static double number(int arg, int64_t k, bool scalar)
{
    (void)arg;
    return scalar ? 2 : (double)(k % 7 + 1) / 4;
}

/* (i, stack, h, spare, w, unread): stack[i] = h, h = tanh(h w), spare = spare + h; h is read */
#define LOOP_ARGS                                                \
    "input %1 int32[] \"i\"\ninput %2 float32[4,3] \"stack\"\n"  \
    "input %3 float32[3] \"h\"\ninput %4 float32[3] \"spare\"\n" \
    "input %5 float32[3] \"w\"\ninput %6 float32[9] \"unread\"\n"
#define LOOP                                                                                    \
    "%7, %8, %9, %10 = while(%1, %2, %3, %4, %5, %6) {trips=4} int32[], "                       \
    "float32[4,3], float32[3], float32[3] \"loop\"\n"                                           \
    "condition\n" LOOP_ARGS                                                                     \
    "%7 = constant() {value=tensor(int32[] \"04000000\")} int32[] \"limit\"\n"                  \
    "%8 = less(%1, %7) bool[] \"less\"\noutput \"go\" %8\nend\n"                                \
    "body\n" LOOP_ARGS "%7 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n" \
    "%8 = add(%1, %7) int32[] \"next\"\n"                                                       \
    "%9 = put_row(%2, %3, %1) float32[4,3] \"put\"\n"                                           \
    "%10 = mul(%3, %5) float32[3] \"mul\"\n%11 = tanh(%10) float32[3] \"tanh\"\n"               \
    "%12 = add(%4, %11) float32[3] \"sum\"\n"                                                   \
    "output \"i\" %8\noutput \"stack\" %9\noutput \"h\" %11\noutput \"spare\" %12\nend\n"

static const char loop[] = "sextant-graph 2\n" LOOP_ARGS LOOP;

static void test_graph_loop_state__unread_state_is_dropped(void **state)
{
    (void)state;
    static const struct {
        const char *results;
        int states, operands; /* that are left */
    } cases[] = {
        {"output \"h\" %9\n", 2, 3},      /* i, h; w */
        {"output \"stack\" %8\n", 3, 4},  /* i, stack, h; w */
        {"output \"spare\" %10\n", 3, 4}, /* i, h, spare; w */
        {"output \"h\" %9\noutput \"s\" %8\noutput \"p\" %10\noutput \"i\" %7\n", 4, 5},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[4096];
        sx_graph *less = NULL;
        snprintf(text, sizeof(text), "%s%s", loop, cases[k].results);
        sx_graph *g = parse(text);
        assert_ok(sx_pass_drop_state(g, &less));
        const sx_node *n = find(less, &sx_op_while, 0);
        assert_int_equal(n->n_outputs, cases[k].states);
        assert_int_equal(n->n_inputs, cases[k].operands);
        assert_int_equal(less->n_args, g->n_args);
        assert_same_results(g, less, number);
        sx_graph_destroy(less);
        sx_graph_destroy(g);
    }
}

/* Nothing reads the loop's results but its counter: the state that the counter needs stays. */
static void test_graph_loop_state__the_condition_keeps_its_state(void **state)
{
    (void)state;
    sx_graph *g = parse("sextant-graph 2\n" LOOP_ARGS LOOP
                        "%11 = cast(%7) {dtype=float32} float32[] \"cast\"\noutput \"y\" %11\n");
    sx_graph *less = NULL;
    assert_ok(sx_pass_drop_state(g, &less));
    const sx_node *n = find(less, &sx_op_while, 0);
    assert_int_equal(n->n_outputs, 1);
    assert_int_equal(n->n_inputs, 1);
    assert_same_results(g, less, number);
    sx_graph_destroy(less);
    sx_graph_destroy(g);
}

/* The first loop keeps two stacks, of which the second, which takes both, reads one: the gradient
 * of a loop. */
static void test_graph_loop_state__what_a_later_loop_does_not_read(void **state)
{
    (void)state;
    static const char second[] =
        "%11 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
        "%12, %13 = while(%11, %3, %8, %10) {trips=4} int32[], float32[3] \"back\"\n"
        "condition\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"d\"\n"
        "input %3 float32[4,3] \"kept\"\ninput %4 float32[3] \"other\"\n"
        "%5 = constant() {value=tensor(int32[] \"04000000\")} int32[] \"limit\"\n"
        "%6 = less(%1, %5) bool[] \"less\"\noutput \"go\" %6\nend\n"
        "body\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"d\"\n"
        "input %3 float32[4,3] \"kept\"\ninput %4 float32[3] \"other\"\n"
        "%5 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
        "%6 = add(%1, %5) int32[] \"next\"\n%7 = take_row(%3, %1) float32[3] \"row\"\n"
        "%8 = add(%2, %7) float32[3] \"sum\"\n%9 = mul(%2, %4) float32[3] \"dead\"\n"
        "output \"i\" %6\noutput \"d\" %8\nend\noutput \"d\" %13\n";
    char text[4096];
    sx_graph *less = NULL;
    snprintf(text, sizeof(text), "%s%s", loop, second);
    sx_graph *g = parse(text);
    assert_ok(sx_pass_drop_state(g, &less));
    assert_int_equal(find(less, &sx_op_while, 0)->n_outputs, 3); /* i, stack, h */
    assert_int_equal(find(less, &sx_op_while, 1)->n_inputs, 3);  /* i, d, kept */
    assert_same_results(g, less, number);
    sx_graph_destroy(less);
    sx_graph_destroy(g);
}

static void test_graph_loop_state__a_row_is_added_alone(void **state)
{
    (void)state;
    static const char *const sums[] = {"add(%1, %6)", "add(%6, %1)"};
    for (int k = 0; k < 2; k++) {
        char text[1024];
        sx_graph *simple = NULL, *less = NULL;
        snprintf(text, sizeof(text),
                 "sextant-graph 2\ninput %%1 float32[4,3] \"x\"\ninput %%2 float32[3] \"row\"\n"
                 "input %%3 int32[] \"i\"\n"
                 "%%4 = constant() {value=tensor(float32[] \"00000000\")} float32[] \"zero\"\n"
                 "%%5 = broadcast_to(%%4) {shape=[4,3]} float32[4,3] \"zeros\"\n"
                 "%%6 = put_row(%%5, %%2, %%3) float32[4,3] \"put\"\n"
                 "%%7 = %s float32[4,3] \"sum\"\noutput \"y\" %%7\n"
                 /* names that a builder would give the new nodes */
                 "%%8 = neg(%%7) float32[4,3] \"take_row\"\noutput \"y1\" %%8\n"
                 "%%9 = neg(%%8) float32[4,3] \"add\"\noutput \"y2\" %%9\n",
                 sums[k]);
        sx_graph *g = parse(text);
        assert_ok(sx_pass_simplify(g, &simple));
        assert_ok(sx_pass_drop_dead(simple, &less));
        assert_null(find(less, &sx_op_broadcast_to, 0));
        assert_int_equal(sx_graph_type(less, find(less, &sx_op_add, 0)->first_output)->rank, 1);
        assert_same_results(g, less, number);
        sx_graph_destroy(less);
        sx_graph_destroy(simple);
        sx_graph_destroy(g);
    }
}

/* i < n and j < 3, as Keras' recurrent layers write it. */
static void test_graph_loop_state__two_limits_bound_the_trips(void **state)
{
    (void)state;
    static const struct {
        const char *condition, *step;
        int64_t trips;
    } cases[] = {
        {"%8 = logical_and(%5, %7) bool[] \"go\"\n", "01000000", 3},
        {"%8 = logical_and(%7, %5) bool[] \"go\"\n", "01000000", 3},
        {"%8 = logical_and(%7, %5) bool[] \"go\"\n", "02000000", 2}, /* 0, 2 */
        {"%8 = logical_or(%5, %7) bool[] \"go\"\n", "01000000", 0},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[2048];
        snprintf(text, sizeof(text),
                 "sextant-library 2\nfunction \"main\"\n"
                 "input %%1 float32[] \"x\"\ninput %%2 int32[] \"n\"\n"
                 "%%3 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
                 "%%4, %%5, %%6 = while(%%3, %%3, %%1, %%2) int32[], int32[], float32[] \"loop\"\n"
                 "condition\ninput %%1 int32[] \"i\"\ninput %%2 int32[] \"j\"\n"
                 "input %%3 float32[] \"x\"\ninput %%4 int32[] \"n\"\n"
                 "%%5 = less(%%1, %%4) bool[] \"l\"\n"
                 "%%6 = constant() {value=tensor(int32[] \"03000000\")} int32[] \"three\"\n"
                 "%%7 = less(%%2, %%6) bool[] \"m\"\n%soutput \"go\" %%8\nend\n"
                 "body\ninput %%1 int32[] \"i\"\ninput %%2 int32[] \"j\"\n"
                 "input %%3 float32[] \"x\"\ninput %%4 int32[] \"n\"\n"
                 "%%5 = constant() {value=tensor(int32[] \"%s\")} int32[] \"one\"\n"
                 "%%6 = add(%%1, %%5) int32[] \"next\"\n%%7 = add(%%2, %%5) int32[] \"next_1\"\n"
                 "%%8 = neg(%%3) float32[] \"neg\"\n"
                 "output \"i\" %%6\noutput \"j\" %%7\noutput \"x\" %%8\nend\n"
                 "output \"y\" %%6\nend\n",
                 cases[k].condition, cases[k].step);
        sx_library *library = NULL;
        sx_specialized *s = NULL;
        assert_ok(sx_library_parse(text, strlen(text), &library));
        const sx_tensor args[] = {{sx_scalar_type(SX_F32), NULL}, {sx_scalar_type(SX_I32), NULL}};
        assert_ok(sx_specialize(library, library->functions[0].body,
                                &(sx_binding){.args = args, .n_args = 2},
                                &(sx_specialize_limits){0}, &s));
        assert_int_equal(s->n_graphs, 1);
        const sx_while_attrs *a = find(s->graphs[0], &sx_op_while, 0)->attrs;
        assert_int_equal(a->trips, cases[k].trips);
        sx_specialized_destroy(s);
        sx_library_destroy(library);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_loop_state__unread_state_is_dropped),
    cmocka_unit_test(test_graph_loop_state__the_condition_keeps_its_state),
    cmocka_unit_test(test_graph_loop_state__what_a_later_loop_does_not_read),
    cmocka_unit_test(test_graph_loop_state__a_row_is_added_alone),
    cmocka_unit_test(test_graph_loop_state__two_limits_bound_the_trips),
};
SX_TEST_MAIN(tests)
