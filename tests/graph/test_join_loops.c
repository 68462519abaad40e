/* Loops that do the same as a later one: which are joined, and that results stay. */
#include "host_run.h"

#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

/* Two loops: (i, h; w) h = tanh(h w), four times, and (t, i, h, kept; spare, w), which keeps h,
 * too, in rows of zeros that are made between the loops. */
typedef struct pair {
    const char *name;
    const char *start, *step, *limit, *trips, *weight; /* of the second loop */
    const char *zero;                                  /* what it keeps its rows in */
    int loops;                                         /* that are left */
} pair;

static const pair pairs[] = {
    {"the same", "%2", "tanh", "04000000", "4", "%3", "%1", 1},
    {"another start", "%4", "tanh", "04000000", "4", "%3", "%1", 2},
    {"another step", "%2", "sigmoid", "04000000", "4", "%3", "%1", 2},
    {"another limit", "%2", "tanh", "03000000", "4", "%3", "%1", 2},
    {"another bound", "%2", "tanh", "04000000", "5", "%3", "%1", 2},
    {"another weight", "%2", "tanh", "04000000", "4", "%4", "%1", 2},
    {"needs the first", "%2", "tanh", "04000000", "4", "%3", "%8", 2},
};

/* `later`: what follows the loops, from %15 on. */
static sx_graph *graph_of(const pair *p, const char *later)
{
    char text[4096];
    sx_graph *g = NULL;
    snprintf(
        text, sizeof(text),
        "sextant-graph 2\ninput %%1 float32[3] \"x\"\ninput %%2 float32[3] \"h\"\n"
        "input %%3 float32[3] \"w\"\ninput %%4 float32[3] \"v\"\n"
        "%%5 = constant() {value=tensor(int32[] \"00000000\")} int32[] \"zero\"\n"
        "%%6, %%7 = while(%%5, %%2, %%3) {trips=4} int32[], float32[3] \"first\"\n"
        "condition\ninput %%1 int32[] \"i\"\ninput %%2 float32[3] \"h\"\n"
        "input %%3 float32[3] \"w\"\n"
        "%%4 = constant() {value=tensor(int32[] \"04000000\")} int32[] \"limit\"\n"
        "%%5 = less(%%1, %%4) bool[] \"less\"\noutput \"go\" %%5\nend\n"
        "body\ninput %%1 int32[] \"i\"\ninput %%2 float32[3] \"h\"\ninput %%3 float32[3] \"w\"\n"
        "%%4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
        "%%5 = add(%%1, %%4) int32[] \"next\"\n%%6 = mul(%%2, %%3) float32[3] \"mul\"\n"
        "%%7 = tanh(%%6) float32[3] \"tanh\"\noutput \"i\" %%5\noutput \"h\" %%7\nend\n"
        "%%8 = exp(%%7) float32[3] \"exp\"\n"
        "%%9 = broadcast_to(%s) {shape=[5,3]} float32[5,3] \"rows\"\n"
        "%%10 = sub(%%9, %%9) float32[5,3] \"zeros\"\n"
        "%%11, %%12, %%13, %%14 = while(%%5, %%5, %s, %%10, %%1, %s) {trips=%s} int32[], int32[], "
        "float32[3], float32[5,3] \"second\"\n"
        "condition\ninput %%1 int32[] \"t\"\ninput %%2 int32[] \"i\"\n"
        "input %%3 float32[3] \"h\"\ninput %%4 float32[5,3] \"kept\"\n"
        "input %%5 float32[3] \"spare\"\ninput %%6 float32[3] \"w\"\n"
        "%%7 = constant() {value=tensor(int32[] \"%s\")} int32[] \"limit\"\n"
        "%%8 = less(%%2, %%7) bool[] \"less\"\noutput \"go\" %%8\nend\n"
        "body\ninput %%1 int32[] \"t\"\ninput %%2 int32[] \"i\"\ninput %%3 float32[3] \"h\"\n"
        "input %%4 float32[5,3] \"kept\"\ninput %%5 float32[3] \"spare\"\n"
        "input %%6 float32[3] \"w\"\n"
        "%%7 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
        "%%8 = add(%%1, %%7) int32[] \"trip\"\n%%9 = add(%%2, %%7) int32[] \"next\"\n"
        "%%10 = mul(%%3, %%6) float32[3] \"mul\"\n%%11 = %s(%%10) float32[3] \"step\"\n"
        "%%12 = put_row(%%4, %%3, %%1) float32[5,3] \"put\"\n"
        "output \"t\" %%8\noutput \"i\" %%9\noutput \"h\" %%11\noutput \"kept\" %%12\nend\n%s",
        p->zero, p->start, p->weight, p->trips, p->limit, p->step, later);
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    return g;
}

static double number(int arg, int64_t k, bool scalar)
{
    (void)scalar;
    return (double)(k + arg + 1) / 4;
}

static void test_graph_join_loops__joins_what_is_the_same(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
        sx_graph *joined, *g = graph_of(&pairs[k], "output \"a\" %8\noutput \"b\" %13\n"
                                                   "output \"c\" %14\n");
        assert_ok(sx_pass_join_loops(g, &joined));
        if (count_nodes(joined, &sx_op_while) != pairs[k].loops) {
            fail_msg("%s: %d loops, expected %d", pairs[k].name, count_nodes(joined, &sx_op_while),
                     pairs[k].loops);
        }
        assert_same_results(g, joined, number);
        sx_graph_destroy(joined);
        sx_graph_destroy(g);
    }
}

/* An argument that the second loop needs is made between them: it cannot move. */
static void test_graph_join_loops__arguments_stay(void **state)
{
    (void)state;
    static const char text[] =
        "sextant-graph 2\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"h\"\n"
        "%3, %4 = while(%1, %2) {trips=4} int32[], float32[3] \"first\"\n"
        "condition\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"h\"\n"
        "%3 = constant() {value=tensor(int32[] \"04000000\")} int32[] \"limit\"\n"
        "%4 = less(%1, %3) bool[] \"less\"\noutput \"go\" %4\nend\n"
        "body\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"h\"\n"
        "%3 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
        "%4 = add(%1, %3) int32[] \"next\"\n%5 = tanh(%2) float32[3] \"tanh\"\n"
        "output \"i\" %4\noutput \"h\" %5\nend\n"
        "input %5 float32[3] \"late\"\n"
        "%6, %7, %8 = while(%1, %2, %5) {trips=4} int32[], float32[3], float32[3] \"second\"\n"
        "condition\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"h\"\ninput %3 float32[3] \"g\"\n"
        "%4 = constant() {value=tensor(int32[] \"04000000\")} int32[] \"limit\"\n"
        "%5 = less(%1, %4) bool[] \"less\"\noutput \"go\" %5\nend\n"
        "body\ninput %1 int32[] \"i\"\ninput %2 float32[3] \"h\"\ninput %3 float32[3] \"g\"\n"
        "%4 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
        "%5 = add(%1, %4) int32[] \"next\"\n%6 = tanh(%2) float32[3] \"tanh\"\n"
        "%7 = add(%3, %6) float32[3] \"sum\"\n"
        "output \"i\" %5\noutput \"h\" %6\noutput \"g\" %7\nend\n"
        "output \"a\" %4\noutput \"b\" %8\n";
    sx_graph *g = NULL, *joined;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    assert_ok(sx_pass_join_loops(g, &joined));
    assert_int_equal(count_nodes(joined, &sx_op_while), 2);
    sx_graph_destroy(joined);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_join_loops__joins_what_is_the_same),
    cmocka_unit_test(test_graph_join_loops__arguments_stay),
};
SX_TEST_MAIN(tests)
