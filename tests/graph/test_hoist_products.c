/* Products that leave loops: which do, and that the loop's results stay. */
#include "host_run.h"

#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

/* Of a loop that makes, for i below 4, h = tanh(product + h u) and changes m and t:
 *
 *   %1 i  %2 h  %3 m, a matrix  %4 t, a stack; what stays: %5 stack  %6 w  %7 u
 *   %10   row i of a stack */
typedef struct loop {
    const char *name, *stack, *row, *state; /* types */
    const char *matrix, *take, *product, *trips;
    int64_t batch;
    int products; /* that leave it */
} loop;

#define TAKE  "take_row(%5, %1)"
#define TRIPS "{trips=4} "

static const loop loops[] = {
    {"one row", "[4,1,3]", "[1,3]", "[1,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 1, 1},
    {"four rows", "[4,4,3]", "[4,3]", "[4,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 1, 1},
    {"five rows", "[4,5,3]", "[5,3]", "[5,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 1, 0},
    {"a batch of 4", "[4,N,3]", "[N,3]", "[N,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 4, 1},
    {"a batch of 5", "[4,N,3]", "[N,3]", "[N,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 5, 0},
    {"twice 2", "[4,2*N,3]", "[2*N,3]", "[2*N,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 2, 1},
    {"twice 3", "[4,2*N,3]", "[2*N,3]", "[2*N,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 3, 0},
    {"matrices", "[4,2,2,3]", "[2,2,3]", "[2,2,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 1, 1},
    {"transposed", "[4,1,3]", "[1,3]", "[1,2]", "[2,3]", TAKE, "matmul(%10, %6) {transpose_b=true}",
     TRIPS, 1, 1},
    {"transposed row", "[4,3,1]", "[3,1]", "[1,2]", "[3,2]", TAKE,
     "matmul(%10, %6) {transpose_a=true}", TRIPS, 1, 0},
    {"checked row", "[4,1,3]", "[1,3]", "[1,2]", "[3,2]", TAKE " {checked=true}", "matmul(%10, %6)",
     TRIPS, 1, 1},
    {"shorter stack", "[3,1,3]", "[1,3]", "[1,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 1, 1},
    {"longer stack", "[5,1,3]", "[1,3]", "[1,2]", "[3,2]", TAKE, "matmul(%10, %6)", TRIPS, 1, 0},
    {"unknown trips", "[4,1,3]", "[1,3]", "[1,2]", "[3,2]", TAKE, "matmul(%10, %6)", "", 1, 0},
    {"changed matrix", "[4,1,3]", "[1,3]", "[1,2]", "[3,2]", TAKE, "matmul(%10, %3)", TRIPS, 1, 0},
    {"changed stack", "[4,1,3]", "[1,3]", "[1,2]", "[3,2]", "take_row(%4, %1)", "matmul(%10, %6)",
     TRIPS, 1, 0},
};

static void write_args(const loop *l, char *to, size_t size)
{
    snprintf(to, size,
             "input %%1 int32[] \"i\"\ninput %%2 float32%s \"h\"\ninput %%3 float32%s \"m\"\n"
             "input %%4 float32%s \"t\"\ninput %%5 float32%s \"stack\"\n"
             "input %%6 float32%s \"w\"\ninput %%7 float32[2,2] \"u\"\n",
             l->state, l->matrix, l->stack, l->stack, l->matrix);
}

/* The loop over %1 ... %7 as %8 ... %11, with its args in front. */
static void write_loop(const loop *l, char *to, size_t size)
{
    char args[512];
    write_args(l, args, sizeof(args));
    snprintf(to, size,
             "%s%%8, %%9, %%10, %%11 = while(%%1, %%2, %%3, %%4, %%5, %%6, %%7) %sint32[], "
             "float32%s, float32%s, float32%s \"loop\"\ncondition\n%s"
             "%%8 = constant() {value=tensor(int32[] \"04000000\")} int32[] \"limit\"\n"
             "%%9 = less(%%1, %%8) bool[] \"less\"\noutput \"go\" %%9\nend\nbody\n%s"
             "%%8 = constant() {value=tensor(int32[] \"01000000\")} int32[] \"one\"\n"
             "%%9 = add(%%1, %%8) int32[] \"next\"\n%%10 = %s float32%s \"row\"\n"
             "%%11 = %s float32%s \"xw\"\n%%12 = matmul(%%2, %%7) float32%s \"hu\"\n"
             "%%13 = add(%%11, %%12) float32%s \"sum\"\n%%14 = tanh(%%13) float32%s \"tanh\"\n"
             "%%15 = neg(%%3) float32%s \"neg\"\n%%16 = neg(%%4) float32%s \"neg_1\"\n"
             "output \"i\" %%9\noutput \"h\" %%14\noutput \"m\" %%15\noutput \"t\" %%16\nend\n",
             args, l->trips, l->state, l->matrix, l->stack, args, args, l->take, l->row, l->product,
             l->state, l->state, l->state, l->state, l->matrix, l->stack);
}

static const sx_while_attrs *loop_of(const sx_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op == &sx_op_while) {
            return g->nodes[i].attrs;
        }
    }
    fail_msg("no loop");
    return NULL;
}

/* i begins at 0. */
static double number(int arg, int64_t k, bool scalar)
{
    return scalar ? 0 : (double)((k + arg) % 7 - 3) / 4;
}

static void assert_same(const sx_graph *a, const sx_graph *b, int64_t batch)
{
    sx_graph *fixed[2];
    assert_ok(sx_pass_fix_batch(a, batch, &fixed[0]));
    assert_ok(sx_pass_fix_batch(b, batch, &fixed[1]));
    assert_same_results(fixed[0], fixed[1], number);
    sx_graph_destroy(fixed[0]);
    sx_graph_destroy(fixed[1]);
}

static void test_graph_hoist_products__of_what_stays_in_few_rows(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(loops) / sizeof(loops[0]); k++) {
        const loop *l = &loops[k];
        char body[4096], text[4200];
        sx_graph *g, *hoisted;
        write_loop(l, body, sizeof(body));
        snprintf(text, sizeof(text),
                 "sextant-graph 2\n%s%%12 = neg(%%9) float32%s \"matmul\"\noutput \"h\" %%12\n",
                 body, l->state);
        assert_ok(sx_graph_parse(text, strlen(text), &g));
        assert_ok(sx_pass_hoist_products(g, l->batch, &hoisted));
        if (count_nodes(hoisted, &sx_op_matmul) != l->products ||
            count_nodes(loop_of(hoisted)->body, &sx_op_matmul) != 2 - l->products) {
            fail_msg("%s: %d products left the loop, expected %d", l->name,
                     count_nodes(hoisted, &sx_op_matmul), l->products);
        }
        assert_same(g, hoisted, l->batch);
        sx_graph_destroy(hoisted);
        sx_graph_destroy(g);
    }
}

/* A loop in a loop: the product stays in the outer body, whose trips are not known. */
static void test_graph_hoist_products__out_of_inner_loops(void **state)
{
    (void)state;
    const loop *l = &loops[0];
    char args[512], inner[4096], text[8192];
    sx_graph *g, *hoisted;
    write_args(l, args, sizeof(args));
    write_loop(l, inner, sizeof(inner));
    snprintf(text, sizeof(text),
             "sextant-graph 2\n%s%%8, %%9, %%10, %%11 = while(%%1, %%2, %%3, %%4, %%5, %%6, %%7) "
             "int32[], float32%s, float32%s, float32%s \"outer\"\ncondition\n%s"
             "%%8 = constant() {value=tensor(int32[] \"02000000\")} int32[] \"limit\"\n"
             "%%9 = less(%%1, %%8) bool[] \"less\"\noutput \"go\" %%9\nend\nbody\n%s"
             "output \"i\" %%8\noutput \"h\" %%9\noutput \"m\" %%10\noutput \"t\" %%11\nend\n"
             "output \"h\" %%9\n",
             args, l->state, l->matrix, l->stack, args, inner);
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    assert_ok(sx_pass_hoist_products(g, 1, &hoisted));
    assert_int_equal(count_nodes(hoisted, &sx_op_matmul), 0);
    assert_int_equal(count_nodes(loop_of(hoisted)->body, &sx_op_matmul), 1);
    assert_int_equal(count_nodes(loop_of(loop_of(hoisted)->body)->body, &sx_op_matmul), 1);
    assert_same(g, hoisted, 1);
    sx_graph_destroy(hoisted);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_hoist_products__of_what_stays_in_few_rows),
    cmocka_unit_test(test_graph_hoist_products__out_of_inner_loops),
};
SX_TEST_MAIN(tests)
