/* Texts to programs: what is understood, what is refused and how, and any bytes at all. What
 * programs compute is tested through the pjrt backend: `ctest -R pjrt_ref`. */
#include "harness.h"

#include "pjrt_ref/parse.h"
#include "pjrt_ref/try.h"

#define HEAD "module @m {\n  func.func public @main"
#define TAIL "\n  }\n}\n"

/* A loop of three turns of x = tanh(x w) + 1, a gather, a reduction; all kinds of attributes. */
static const char whole[] = HEAD
    "(%0: tensor<2x2xf32> {tf.aliasing_output = 0 : i32}, %1: tensor<2x2xf32> "
    "{jax.buffer_donor = true}) -> "
    "(tensor<2x2xf32>, tensor<f32>, tensor<1x2xf32>) {\n"
    "    %2 = \"stablehlo.constant\"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>\n"
    "    %3 = \"stablehlo.constant\"() {value = dense<\"0x0000803F00000040\"> : tensor<2xf32>} : "
    "() "
    "-> tensor<2xf32> // 1, 2\n"
    "    %4, %5 = \"stablehlo.while\"(%2, %0) ({\n"
    "      ^bb0(%6: tensor<i64>, %7: tensor<2x2xf32>):\n"
    "        %8 = \"stablehlo.constant\"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>\n"
    "        %9 = \"stablehlo.compare\"(%6, %8) {comparison_direction = "
    "#stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : "
    "(tensor<i64>, tensor<i64>) -> tensor<i1>\n"
    "        \"stablehlo.return\"(%9) : (tensor<i1>) -> ()\n"
    "    }, {\n"
    "      ^bb0(%10: tensor<i64>, %11: tensor<2x2xf32>):\n"
    "        %12 = \"stablehlo.dot_general\"(%11, %1) {dot_dimension_numbers = "
    "#stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
    "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = "
    "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x2xf32>, "
    "tensor<2x2xf32>) -> tensor<2x2xf32> loc(\"dense\")\n"
    "        %13 = \"stablehlo.tanh\"(%12) : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
    "        %14 = \"stablehlo.constant\"() {value = dense<1.0> : tensor<2x2xf32>} : () -> "
    "tensor<2x2xf32>\n"
    "        %15 = \"stablehlo.add\"(%13, %14) : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
    "tensor<2x2xf32>\n"
    "        %16 = \"stablehlo.constant\"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>\n"
    "        %17 = \"stablehlo.add\"(%10, %16) : (tensor<i64>, tensor<i64>) -> tensor<i64>\n"
    "        \"stablehlo.return\"(%17, %15) : (tensor<i64>, tensor<2x2xf32>) -> ()\n"
    "    }) : (tensor<i64>, tensor<2x2xf32>) -> (tensor<i64>, tensor<2x2xf32>)\n"
    "    %18 = \"stablehlo.constant\"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>\n"
    "    %19 = \"stablehlo.reduce\"(%3, %18) ({\n"
    "      ^bb0(%20: tensor<f32>, %21: tensor<f32>):\n"
    "        %22 = \"stablehlo.add\"(%20, %21) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
    "        \"stablehlo.return\"(%22) : (tensor<f32>) -> ()\n"
    "    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>\n"
    "    %23 = \"stablehlo.constant\"() {value = dense<[7]> : tensor<1xi32>} : () -> "
    "tensor<1xi32>\n"
    "    %24 = \"stablehlo.gather\"(%0, %23) {dimension_numbers = #stablehlo.gather<offset_dims = "
    "[1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
    "array<i64: 1, 2>, indices_are_sorted = false} : (tensor<2x2xf32>, tensor<1xi32>) -> "
    "tensor<1x2xf32>\n"
    "    func.return %5, %19, %24 : tensor<2x2xf32>, tensor<f32>, tensor<1x2xf32>" TAIL;

static void test_pjrt_ref_parse__understands_what_we_emit(void **state)
{
    (void)state;
    ref_program *p;
    assert_ok(ref_parse(whole, sizeof(whole) - 1, 1, &p));
    assert_int_equal(p->main.n_args, 2);
    assert_int_equal(p->main.n_results, 3);
    assert_int_equal(p->aliases[0], 0);
    assert_int_equal(p->aliases[1], -1);
    assert_false(p->donors[0]);
    assert_true(p->donors[1]);
    assert_int_equal(p->n_ops, 16);
    ref_program_destroy(p);
}

static ref_array *array_of(ref_memory *m, const sx_type *type, const void *data)
{
    ref_array *a;
    assert_ok(ref_array_create(m, type, &a));
    memcpy(a->data, data, (size_t)a->bytes);
    return a;
}

static void test_pjrt_ref_parse__runs_and_frees_all(void **state)
{
    (void)state;
    static const float zeros[4] = {0}, rows[4] = {1, 2, 3, 4};
    ref_program *p;
    ref_memory memory = {0};
    ref_array *out[3];
    const sx_type square = sx_type_of(SX_F32, 2, 2);
    assert_ok(ref_parse(whole, sizeof(whole) - 1, 1, &p));
    ref_array *args[2] = {array_of(&memory, &square, rows), array_of(&memory, &square, zeros)};
    assert_ok(ref_execute(&(ref_run){.program = p, .memory = &memory}, args, out));
    assert_float_equal(((float *)out[0]->data)[3], 1, 0); /* tanh(0) + 1 */
    assert_float_equal(*(float *)out[1]->data, 3, 0);
    assert_float_equal(((float *)out[2]->data)[0], 3, 0); /* row 7 is clamped to row 1 */
    for (int i = 0; i < 3; i++) {
        ref_array_release(out[i]);
    }
    assert_int_equal(atomic_load(&memory.in_use), 0);
    assert_true(atomic_load(&memory.peak) > 0);
    ref_program_destroy(p);
}

static void test_pjrt_ref_parse__memory_runs_out(void **state)
{
    (void)state;
    static const float rows[4] = {0};
    ref_program *p;
    ref_memory memory = {.limit = 64};
    ref_array *out[3];
    const sx_type square = sx_type_of(SX_F32, 2, 2);
    assert_ok(ref_parse(whole, sizeof(whole) - 1, 1, &p));
    ref_array *args[2] = {array_of(&memory, &square, rows), array_of(&memory, &square, rows)};
    assert_error(ref_execute(&(ref_run){.program = p, .memory = &memory}, args, out),
                 SX_RESOURCE_EXHAUSTED, "Out of memory allocating ");
    assert_int_equal(atomic_load(&memory.in_use), 0);
    ref_program_destroy(p);
}

/* ---- What is refused ---- */

#define F(body, results) HEAD "(%0: tensor<2xf32>) -> (" results ") {\n    " body TAIL

static const struct {
    const char *text;
    sx_code code;
    const char *part;
} wrong[] = {
    {"", SX_INVALID_ARGUMENT, "line 1: expected 'module', got ''"},
    {F("func.return %0 : tensor<2xf32>", "tensor<3xf32>"), SX_INVALID_ARGUMENT,
     "the function's result types"},
    {F("func.return %1 : tensor<2xf32>", "tensor<2xf32>"), SX_INVALID_ARGUMENT,
     "line 3: %1 is not defined here"},
    {F("%0 = \"stablehlo.abs\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""), SX_INVALID_ARGUMENT,
     "%0 is defined twice"},
    {F("%1 = \"stablehlo.fly\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""), SX_UNIMPLEMENTED,
     "no operation 'stablehlo.fly'"},
    {F("%1 = \"arith.addf\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""), SX_INVALID_ARGUMENT,
     "only operations of stablehlo"},
    {F("%1 = \"stablehlo.abs\"(%0) : (tensor<3xf32>) -> tensor<2xf32>", ""), SX_INVALID_ARGUMENT,
     "the operands' types"},
    {F("%1 = \"stablehlo.abs\"(%0) : (tensor<2xf32>) -> tensor<3xf32> loc(\"a/b\")", ""),
     SX_INVALID_ARGUMENT,
     "loc(\"a/b\"): error: line 3: 'stablehlo.abs' op: infers float32[2] as result 0, but "
     "float32[3] is written"},
    {F("%1 = \"stablehlo.add\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""), SX_INVALID_ARGUMENT,
     "has 1 operands"},
    {F("%1 = \"stablehlo.transpose\"(%0) {permutation = array<i64: 1>} : (tensor<2xf32>) -> "
       "tensor<2xf32>",
       ""),
     SX_INVALID_ARGUMENT, "permutation has 1; expected less than 1"},
    {F("%1 = \"stablehlo.transpose\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""),
     SX_INVALID_ARGUMENT, "requires attribute 'permutation'"},
    {F("%1 = \"stablehlo.not\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""), SX_INVALID_ARGUMENT,
     "does not take f32"},
    {F("%1 = \"stablehlo.constant\"() {value = dense<\"0x00\"> : tensor<f32>} : () -> tensor<f32>",
       ""),
     SX_INVALID_ARGUMENT, "as many bytes"},
    {F("%1 = \"stablehlo.constant\"() {value = dense<300> : tensor<ui8>} : () -> tensor<ui8>", ""),
     SX_INVALID_ARGUMENT, "within its type's range"},
    {F("%1048576 = \"stablehlo.abs\"(%0) : (tensor<2xf32>) -> tensor<2xf32>", ""),
     SX_INVALID_ARGUMENT, "number within bounds"},
    {F("%1 = \"stablehlo.abs\"(%0) {x = [[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]} : (tensor<2xf32>) "
       "-> tensor<2xf32>",
       ""),
     SX_INVALID_ARGUMENT, "less depth"},
    {F("%1 = \"stablehlo.iota\"() {iota_dimension = 0 : i64} : () -> "
       "tensor<1048576x1048576x2xf32>",
       ""),
     SX_INVALID_ARGUMENT, "at most 2^40 elements"},
    {F("%1 = \"stablehlo.iota\"() {iota_dimension = 0 : i64} : () -> "
       "tensor<1x1x1x1x1x1x1x1x1xf32>",
       ""),
     SX_INVALID_ARGUMENT, "at most 8 dimensions"},
};

static void test_pjrt_ref_parse__says_what_is_wrong(void **state)
{
    (void)state;
    ref_program *p;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_error(ref_parse(wrong[i].text, strlen(wrong[i].text), 1, &p), wrong[i].code,
                     wrong[i].part);
    }
}

/* A region's values are its own. */
static void test_pjrt_ref_parse__scopes_end(void **state)
{
    (void)state;
    ref_program *p;
    char text[sizeof(whole)];
    memcpy(text, whole, sizeof(whole));
    char *use = strstr(text, "func.return %5, %19");
    memcpy(use, "func.return %5, %22", 19);
    assert_error(ref_parse(text, sizeof(text) - 1, 1, &p), SX_INVALID_ARGUMENT,
                 "%22 is not defined here");
}

static void test_pjrt_ref_parse__loops_end(void **state)
{
    (void)state;
    char text[sizeof(whole)];
    memcpy(text, whole, sizeof(whole));
    memcpy(strstr(text, "dense<3>"), "dense<0>", 8);
    memcpy(strstr(text, "direction LT"), "direction EQ", 12);
    memcpy(strstr(text, "dense<1> : tensor<i64>"), "dense<0> : tensor<i64>", 22);
    assert_true(try_text(text, sizeof(text) - 1)); /* for ever, but for the budget */
}

/* --- Any bytes ---------------------------------------------------------------------------------
 */

static void test_pjrt_ref_parse__survives_truncation(void **state)
{
    (void)state;
    for (size_t n = 0; n + 3 < sizeof(whole); n++) {
        char *copy = sx_alloc(n + 1, 1); /* its end is the sanitizers' affair */
        assert_non_null(copy);
        memcpy(copy, whole, n);
        assert_false(try_text(copy, n));
        sx_free(copy);
    }
}

static void test_pjrt_ref_parse__survives_damage(void **state)
{
    (void)state;
    static const char puts[] = "\0%>{(,9\xff";
    char text[sizeof(whole)];
    int parsed = 0;
    memcpy(text, whole, sizeof(whole));
    for (size_t i = 0; i + 1 < sizeof(whole); i++) {
        for (size_t k = 0; k + 1 < sizeof(puts); k++) {
            text[i] = puts[k];
            parsed += try_text(text, sizeof(text) - 1);
        }
        text[i] = whole[i];
    }
    assert_true(parsed > 100); /* other digits, other names: they run too */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pjrt_ref_parse__understands_what_we_emit),
    cmocka_unit_test(test_pjrt_ref_parse__runs_and_frees_all),
    cmocka_unit_test(test_pjrt_ref_parse__memory_runs_out),
    cmocka_unit_test(test_pjrt_ref_parse__says_what_is_wrong),
    cmocka_unit_test(test_pjrt_ref_parse__scopes_end),
    cmocka_unit_test(test_pjrt_ref_parse__loops_end),
    cmocka_unit_test(test_pjrt_ref_parse__survives_truncation),
    cmocka_unit_test(test_pjrt_ref_parse__survives_damage),
};
SX_TEST_MAIN(tests)
