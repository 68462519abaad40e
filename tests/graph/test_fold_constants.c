/* Folding constants is bounded: by the size of a result, of all results, and of what one node
 * reads. */
#include "harness.h"

#include <sextant/ops.h>

#include "graph/ir.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

/* A constant of `count` floats, negated `times` times. */
static sx_graph *chain(int64_t count, int times)
{
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    float *values = calloc((size_t)count, sizeof(float));
    values[0] = 3;
    assert_ok(sx_builder_create(&b));
    sx_value y = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, count), values});
    for (int i = 0; i < times; i++) {
        y = sx_neg(b, y);
    }
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    free(values);
    return g;
}

/* Bytes of all constants in the folded graph; whether its result is one. */
static int64_t folded_bytes(sx_graph *g, bool *out_folded)
{
    sx_graph *folded = NULL;
    int64_t bytes = 0;
    assert_ok(sx_pass_fold_constants(g, &folded));
    for (int k = 0; k < folded->n_nodes; k++) {
        const sx_node *n = &folded->nodes[k];
        bytes += n->op->id == SX_OPID_constant
                     ? sx_type_bytes(sx_graph_type(folded, n->first_output))
                     : 0;
    }
    *out_folded = sx_graph_maker(folded, folded->results[0].value)->op->id == SX_OPID_constant;
    sx_graph_destroy(folded);
    sx_graph_destroy(g);
    return bytes;
}

static void test_graph_fold_constants__is_bounded(void **state)
{
    (void)state;
    bool folded;
    (void)folded_bytes(chain(16 * 1024, 3), &folded); /* 64 KiB each */
    assert_true(folded);
    (void)folded_bytes(chain(16 * 1024 + 1, 3), &folded);
    assert_false(folded);
    /* A long chain of small results: what is not folded runs. */
    assert_in_range(folded_bytes(chain(16 * 1024, 1200), &folded), 60 << 20, 65 << 20);
    assert_false(folded);
}

/* The sum over `count` bytes: 8 times as much while it is computed. */
static sx_graph *sum_of(int64_t count)
{
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    uint8_t *values = calloc((size_t)count, 1);
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_constant(b, (sx_tensor){sx_type_of(SX_I8, count), values});
    sx_output(b, "y", sx_reduce_sum(b, x));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    free(values);
    return g;
}

static void test_graph_fold_constants__scratch_is_bounded(void **state)
{
    (void)state;
    bool folded;
    (void)folded_bytes(sum_of(1000), &folded);
    assert_true(folded);
    (void)folded_bytes(sum_of(4 << 20), &folded);
    assert_false(folded);
}

/* Dimensions that are gathered from a shape, as the importer counts elements. */
static void test_graph_fold_constants__known_dimensions_are_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *dtype, *which; /* the second: two numbers */
        bool folded;
    } cases[] = {
        {"int64", "02000000000000000300000000000000", true},
        {"int32", "0300000001000000", true},
        {"int64", "00000000000000000300000000000000", false}, /* the batch */
        {"int32", "0300000004000000", false},                 /* outside */
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[1024];
        sx_graph *g = NULL, *simple, *folded, *live;
        snprintf(text, sizeof(text),
                 "sextant-graph 1\ninput %%1 float32[N,2,5,3] \"x\"\n"
                 "%%2 = shape(%%1) {dtype=%s} %s[4] \"shape\"\n"
                 "%%3 = constant() {value=tensor(%s[2] \"%s\")} %s[2] \"which\"\n"
                 "%%4 = gather(%%2, %%3) %s[2] \"dims\"\n"
                 "%%5 = reduce_prod(%%4) {axes=[0]} %s[] \"count\"\noutput \"y\" %%5\n",
                 cases[k].dtype, cases[k].dtype, cases[k].dtype, cases[k].which, cases[k].dtype,
                 cases[k].dtype, cases[k].dtype);
        assert_ok(sx_graph_parse(text, strlen(text), &g));
        assert_ok(sx_pass_simplify(g, &simple));
        assert_ok(sx_pass_fold_constants(simple, &folded));
        assert_ok(sx_pass_drop_dead(folded, &live));
        const sx_node *y = sx_graph_maker(live, live->results[0].value);
        assert_int_equal(y->op == &sx_op_constant, cases[k].folded);
        if (cases[k].folded) {
            const sx_tensor *value = &((const sx_constant_attrs *)y->attrs)->value;
            assert_int_equal(*(const int32_t *)value->data, k == 0 ? 15 : 6);
        }
        sx_graph_destroy(live);
        sx_graph_destroy(folded);
        sx_graph_destroy(simple);
        sx_graph_destroy(g);
    }
}

static void test_graph_fold_constants__transposes_that_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *first, *type, *second, *result;
        int left;
    } cases[] = {
        {"0,1,2", "N,3,3", "0,1,2", "N,3,3", 0}, {"0,2,1", "N,3,3", "0,1,2", "N,3,3", 1},
        {"0,2,1", "N,3,3", "0,2,1", "N,3,3", 0}, {"2,0,1", "3,N,3", "1,2,0", "N,3,3", 0},
        {"2,0,1", "3,N,3", "2,0,1", "3,3,N", 2},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[512];
        sx_graph *g = NULL, *simple, *live;
        int left = 0;
        snprintf(text, sizeof(text),
                 "sextant-graph 1\ninput %%1 float32[N,3,3] \"x\"\n"
                 "%%2 = transpose(%%1) {perm=[%s]} float32[%s] \"first\"\n"
                 "%%3 = transpose(%%2) {perm=[%s]} float32[%s] \"second\"\noutput \"y\" %%3\n",
                 cases[k].first, cases[k].type, cases[k].second, cases[k].result);
        assert_ok(sx_graph_parse(text, strlen(text), &g));
        assert_ok(sx_pass_simplify(g, &simple));
        assert_ok(sx_pass_drop_dead(simple, &live));
        for (int i = 0; i < live->n_nodes; i++) {
            left += live->nodes[i].op == &sx_op_transpose;
        }
        assert_int_equal(left, cases[k].left);
        sx_graph_destroy(live);
        sx_graph_destroy(simple);
        sx_graph_destroy(g);
    }
}

static void test_graph_fold_constants__small_powers_are_products(void **state)
{
    (void)state;
    static const struct {
        const char *bytes; /* of the exponent */
        int squares, products, powers;
    } cases[] = {{"00000040", 1, 0, 0}, {"00004040", 1, 1, 0}, {"00002040", 0, 0, 1}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char text[512];
        sx_graph *g = NULL, *simple, *live;
        int squares = 0, products = 0, powers = 0;
        snprintf(text, sizeof(text),
                 "sextant-graph 1\ninput %%1 float32[N,3] \"x\"\n"
                 "%%2 = constant() {value=tensor(float32[] \"%s\")} float32[] \"exponent\"\n"
                 "%%3 = pow(%%1, %%2) float32[N,3] \"power\"\noutput \"y\" %%3\n",
                 cases[k].bytes);
        assert_ok(sx_graph_parse(text, strlen(text), &g));
        assert_ok(sx_pass_simplify(g, &simple));
        assert_ok(sx_pass_drop_dead(simple, &live));
        for (int i = 0; i < live->n_nodes; i++) {
            squares += live->nodes[i].op == &sx_op_square;
            products += live->nodes[i].op == &sx_op_mul;
            powers += live->nodes[i].op == &sx_op_pow;
        }
        assert_int_equal(squares, cases[k].squares);
        assert_int_equal(products, cases[k].products);
        assert_int_equal(powers, cases[k].powers);
        sx_graph_destroy(live);
        sx_graph_destroy(simple);
        sx_graph_destroy(g);
    }
}

/* A loop over constants that never ends stays: folding it would not end either. */
static void test_graph_fold_constants__loops_stay(void **state)
{
    (void)state;
    static const char text[] = "sextant-graph 2\ninput %1 float32[N] \"x\"\n"
                               "%2 = constant() {value=tensor(int32[] \"01000000\")} int32[] "
                               "\"one\"\n"
                               "%3 = while(%2) int32[] \"loop\"\n"
                               "condition\ninput %1 int32[] \"i\"\n"
                               "%2 = constant() {value=tensor(bool[] \"01\")} bool[] \"true\"\n"
                               "output \"go\" %2\nend\n"
                               "body\ninput %1 int32[] \"i\"\n%2 = neg(%1) int32[] \"neg\"\n"
                               "output \"i\" %2\nend\noutput \"y\" %3\n";
    sx_graph *g = NULL;
    bool folded;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    (void)folded_bytes(g, &folded);
    assert_false(folded);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_fold_constants__loops_stay),
    cmocka_unit_test(test_graph_fold_constants__small_powers_are_products),
    cmocka_unit_test(test_graph_fold_constants__transposes_that_change_nothing),
    cmocka_unit_test(test_graph_fold_constants__known_dimensions_are_numbers),
    cmocka_unit_test(test_graph_fold_constants__is_bounded),
    cmocka_unit_test(test_graph_fold_constants__scratch_is_bounded),
};
SX_TEST_MAIN(tests)
