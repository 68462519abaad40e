/* The StableHLO writer and the operators' lowerings: texts, constants, errors. Whether a compiler
 * takes the texts and computes the right numbers: tests/backends/test_conformance.c. */
#include "harness.h"

#include <math.h>
#include <string.h>

#include "graph/lower/stablehlo/lower.h"
#include "graph/lower/stablehlo/stablehlo.h"
#include "graph/op_def.h"
#include "op_samples.h"

static sx_hlo_writer *writer(const sx_type *types, int n, sx_hlo *out)
{
    sx_hlo_arg args[8];
    sx_hlo_writer *w;
    assert_true(n <= 8);
    for (int i = 0; i < n; i++) {
        args[i] = (sx_hlo_arg){.type = types[i], .alias = -1};
    }
    assert_ok(sx_hlo_create(&(sx_hlo_options){0}, args, n, 0, out, &w));
    return w;
}

/* The text of a function that returns `value`. */
static const char *text_of(sx_hlo_writer *w, sx_hlo value)
{
    const char *text = NULL;
    size_t size = 0;
    assert_ok(sx_hlo_finish(w, &value, 1, &text, &size));
    assert_int_equal(strlen(text), size);
    return text;
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in\n%s", part, text);
    }
}

/* ---- Operators ---- */

static void test_graph_stablehlo__every_operator_has_a_row(void **state)
{
    (void)state;
    int missing = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_hlo_row *row = &sx_hlo_rows[id];
        const bool host = (sx_op_table[id]->flags & SX_OP_HOST) != 0;
        if ((row->lower != NULL) + (row->none != NULL) + host != 1) {
            const char *name = sx_op_table[id]->name;
            print_error("%s needs a row HLO(%s) in src/graph/lower/stablehlo/rows.def, and "
                        "sx_hlo_lower_%s() there; or is SX_OP_HOST, without a row\n",
                        name, name, name);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

/* What devices cannot have is known by name: a new operator cannot excuse itself unseen. */
static void test_graph_stablehlo__only_some_are_excused(void **state)
{
    (void)state;
    static const char *const excused[] = {"parameter",     "custom_gradient", "refuse_gradient",
                                          "call",          "pull_back",       "variable_handle",
                                          "read_variable", "assign_variable"};
    size_t n = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        if (sx_hlo_rows[id].none != NULL) {
            assert_true(n < sizeof(excused) / sizeof(excused[0]));
            assert_string_equal(sx_op_table[id]->name, excused[n++]);
        }
    }
    assert_int_equal(n, sizeof(excused) / sizeof(excused[0]));
}

/* ---- Texts ---- */

static void test_graph_stablehlo__writes_generic_form(void **state)
{
    (void)state;
    const sx_type type = sx_type_of(SX_F32, 2, 3);
    const int64_t axis = 1;
    sx_hlo x;
    sx_hlo_writer *w = writer(&type, 1, &x);
    sx_hlo_at(w, "layer/exp");
    sx_hlo e = sx_hlo_unary(w, "exponential", x);
    sx_hlo_at(w, "sum \"of\"");
    sx_hlo sum = sx_hlo_reduce(w, "add", e, 1, &axis, false);
    sx_hlo_at(w, NULL);
    sx_hlo wide = sx_hlo_broadcast_in(w, sum, &type, &(const int64_t){0});
    assert_string_equal(
        text_of(w, sx_hlo_compare(w, "GE", wide, x)),
        "module @sextant {\n"
        "  func.func public @main(%0: tensor<2x3xf32>) -> (tensor<2x3xi1>) {\n"
        "    %1 = \"stablehlo.exponential\"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32> "
        "loc(\"layer/exp\")\n"
        "    %2 = \"stablehlo.constant\"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32> "
        "loc(\"sum _of_\")\n"
        "    %3 = \"stablehlo.reduce\"(%1, %2) ({\n"
        "      ^bb0(%4: tensor<f32>, %5: tensor<f32>):\n"
        "      %6 = \"stablehlo.add\"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32> "
        "loc(\"sum _of_\")\n"
        "      \"stablehlo.return\"(%6) : (tensor<f32>) -> () loc(\"sum _of_\")\n"
        "      }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32> "
        "loc(\"sum _of_\")\n"
        "    %7 = \"stablehlo.broadcast_in_dim\"(%3) {broadcast_dimensions = array<i64: 0>} : "
        "(tensor<2xf32>) -> tensor<2x3xf32>\n"
        "    %8 = \"stablehlo.compare\"(%7, %0) {comparison_direction = "
        "#stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : "
        "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>\n"
        "    func.return %8 : tensor<2x3xi1>\n"
        "  }\n"
        "}\n");
    sx_hlo_destroy(w);
}

static void test_graph_stablehlo__results_and_donated_arguments(void **state)
{
    (void)state;
    const sx_hlo_arg args[2] = {{.type = sx_type_of(SX_F32, 4), .alias = 1},
                                {.type = sx_scalar_type(SX_I64), .alias = -1}};
    sx_hlo in[2];
    sx_hlo_writer *w;
    const char *text;
    size_t size;
    assert_ok(sx_hlo_create(&(sx_hlo_options){0}, args, 2, 0, in, &w));
    const sx_hlo results[2] = {in[1], in[0]};
    assert_ok(sx_hlo_finish(w, results, 2, &text, &size));
    assert_string_equal(text,
                        "module @sextant {\n"
                        "  func.func public @main(%0: tensor<4xf32> {tf.aliasing_output = 1 : "
                        "i32}, %1: tensor<i64>) -> (tensor<i64>, tensor<4xf32>) {\n"
                        "    func.return %1, %0 : tensor<i64>, tensor<4xf32>\n"
                        "  }\n"
                        "}\n");
    sx_hlo_destroy(w);
}

typedef struct splat_case {
    sx_dtype dtype;
    double value;
    const char *text;
} splat_case;

static void test_graph_stablehlo__splats(void **state)
{
    (void)state;
    static const splat_case cases[] = {
        {SX_F32, 1, "dense<1.0> : tensor<f32>"},
        {SX_F32, 0.1, "dense<0.100000001> : tensor<f32>"},
        {SX_F32, 1e-5, "dense<9.99999975e-06> : tensor<f32>"},
        {SX_F32, 1e20, "dense<1.00000002e+20> : tensor<f32>"},
        {SX_F32, 0x1p100, "dense<1.2676506e+30> : tensor<f32>"},
        {SX_F32, -INFINITY, "dense<0xFF800000> : tensor<f32>"},
        {SX_F64, INFINITY, "dense<0x7FF0000000000000> : tensor<f64>"},
        {SX_F64, 0.1, "dense<0.10000000000000001> : tensor<f64>"},
        {SX_BF16, INFINITY, "dense<0x7F80> : tensor<bf16>"},
        {SX_F16, -2, "dense<-2.0> : tensor<f16>"},
        {SX_I32, -INFINITY, "dense<-2147483648> : tensor<i32>"},
        {SX_I64, -INFINITY, "dense<-9223372036854775808> : tensor<i64>"},
        {SX_U8, -INFINITY, "dense<0> : tensor<ui8>"},
        {SX_U8, 300, "dense<255> : tensor<ui8>"},
        {SX_U32, 4294967295.0, "dense<4294967295> : tensor<ui32>"},
        {SX_BOOL, 1, "dense<true> : tensor<i1>"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sx_hlo_writer *w = writer(NULL, 0, NULL);
        assert_contains(text_of(w, sx_hlo_scalar(w, cases[i].dtype, cases[i].value)),
                        cases[i].text);
        sx_hlo_destroy(w);
    }
}

static void test_graph_stablehlo__constants(void **state)
{
    (void)state;
    const float mixed[2] = {1, -2}, equal[2] = {3, 3};
    const uint8_t bits[3] = {1, 0, 1};
    sx_hlo_writer *w = writer(NULL, 0, NULL);
    sx_hlo_constant(w, &(sx_tensor){sx_type_of(SX_F32, 2), (void *)mixed});
    sx_hlo_constant(w, &(sx_tensor){sx_type_of(SX_F32, 1, 2), (void *)equal});
    const char *text =
        text_of(w, sx_hlo_constant(w, &(sx_tensor){sx_type_of(SX_BOOL, 3), (void *)bits}));
    assert_contains(text, "value = dense<\"0x0000803F000000C0\"> : tensor<2xf32>");
    assert_contains(text, "value = dense<3.0> : tensor<1x2xf32>");
    assert_contains(text, "value = dense<\"0x010001\"> : tensor<3xui8>");
    assert_contains(text, "\"stablehlo.convert\"(%2) : (tensor<3xui8>) -> tensor<3xi1>");
    sx_hlo_destroy(w);
}

/* f16 and bf16 are summed in f32; what shapes alone make equal costs no operation. */
static void test_graph_stablehlo__sums_are_wide_and_copies_free(void **state)
{
    (void)state;
    const sx_type type = sx_type_of(SX_BF16, 4, 1);
    const int64_t axes[2] = {0, 1}, zeros[2] = {0, 0}, all[2] = {4, 1};
    sx_hlo x;
    sx_hlo_writer *w = writer(&type, 1, &x);
    assert_int_equal(sx_hlo_convert(w, x, SX_BF16).id, x.id);
    assert_int_equal(sx_hlo_reshape(w, x, &type).id, x.id);
    assert_int_equal(sx_hlo_broadcast_to(w, x, &type).id, x.id);
    assert_int_equal(sx_hlo_transpose(w, x, axes).id, x.id);
    assert_int_equal(sx_hlo_slice(w, x, zeros, all).id, x.id);
    assert_int_equal(sx_hlo_pad(w, x, 0, zeros, zeros, NULL).id, x.id);
    assert_int_equal(sx_hlo_concat(w, &x, 1, 0).id, x.id);
    const char *text = text_of(w, sx_hlo_reduce(w, "add", x, 2, axes, false));
    assert_contains(text, "(tensor<4x1xbf16>) -> tensor<4x1xf32>");
    assert_contains(text, "(tensor<f32>) -> tensor<bf16>");
    sx_hlo_destroy(w);
}

static void test_graph_stablehlo__bf16_products_have_f32_results(void **state)
{
    (void)state;
    const sx_hlo_arg args[2] = {{.type = sx_type_of(SX_F32, 2, 3), .alias = -1},
                                {.type = sx_type_of(SX_F32, 4, 3), .alias = -1}};
    sx_hlo in[2];
    sx_hlo_writer *w;
    assert_ok(sx_hlo_create(&(sx_hlo_options){.bf16_products = true, .precision = "DEFAULT"}, args,
                            2, 0, in, &w));
    const char *text = text_of(w, sx_hlo_matmul(w, in[0], false, in[1], true));
    assert_contains(text, "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]");
    assert_contains(text, "(tensor<2x3xbf16>, tensor<4x3xbf16>) -> tensor<2x4xf32>");
    assert_contains(text, "#stablehlo<precision DEFAULT>");
    sx_hlo_destroy(w);
}

static void test_graph_stablehlo__negative_pads_cut_the_image(void **state)
{
    (void)state;
    const sx_type types[2] = {sx_type_of(SX_F32, 1, 7, 7, 2), sx_type_of(SX_F32, 3, 3, 2, 5)};
    const sx_hlo_conv conv = {.strides = {1, 1},
                              .pads = {{1, -2}, {0, 0}},
                              .x_dilation = {2, 1},
                              .filter_dilation = {1, 1},
                              .groups = 1};
    sx_hlo in[2];
    sx_hlo_writer *w = writer(types, 2, in);
    sx_hlo y = sx_hlo_convolution(w, in[0], in[1], &conv);
    sx_type type = sx_hlo_type(w, y), expected = sx_type_of(SX_F32, 1, 10, 5, 5);
    assert_true(sx_type_equal(&type, &expected)); /* 13 dilated - 2 + 1 - 3 + 1 */
    const char *text = text_of(w, y);
    assert_contains(text, "edge_padding_high = array<i64: 0, -2, 0, 0>, interior_padding = "
                          "array<i64: 0, 1, 0, 0>");
    assert_contains(text, "padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>");
    sx_hlo_destroy(w);
}

/* ---- Errors ---- */

static void test_graph_stablehlo__keeps_the_first_error(void **state)
{
    (void)state;
    const sx_type type = sx_type_of(SX_F32, 2);
    sx_hlo x;
    const char *text;
    size_t size;
    sx_hlo_writer *w = writer(&type, 1, &x);
    sx_hlo_fail(w, sx_error(SX_UNIMPLEMENTED, "the first"));
    sx_hlo_fail(w, sx_error(SX_INTERNAL, "the second"));
    sx_hlo y = sx_hlo_with(w, "add", x, 1); /* a no-op now, as are all of these */
    assert_false(sx_hlo_is(y));
    y = sx_hlo_reduce_last(w, "add", y);
    sx_hlo_begin(w, "while", &y, 1, &type, 1);
    sx_hlo_region(w, &type, 1, &y);
    sx_hlo_region_end(w, &y, 1);
    sx_hlo_end(w);
    assert_error(sx_hlo_finish(w, &y, 1, &text, &size), SX_UNIMPLEMENTED, "the first");
    sx_hlo_destroy(w);
}

/* Lowers every sample into a writer that has failed already: facets check nothing, so nothing that
 * they do with shapes of values that are not there may go wrong (under sanitizers). */
static const char *lower_after_error(const sx_op_def *op, const sx_op_sample *sample)
{
    if (sx_hlo_rows[op->id].lower == NULL) {
        return NULL;
    }
    op_sample_run run;
    sx_hlo in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS];
    sx_type in_types[SX_SAMPLE_MAX_INPUTS], out_types[SX_MAX_OUTPUTS];
    sx_hlo_writer *w = writer(NULL, 0, NULL);
    op_sample_begin(op, sample, &run);
    for (int i = 0; i < run.n_in; i++) {
        in[i] = SX_HLO_NONE;
        in_types[i] = run.in[i].type;
    }
    for (int i = 0; i < run.n_out; i++) {
        out[i] = SX_HLO_NONE;
        out_types[i] = run.out[i].type;
    }
    sx_hlo_fail(w, sx_error(SX_CANCELLED, "before"));
    const sx_hlo_op context = {run.attrs, sample->name, in,       out,
                               in_types,  out_types,    run.n_in, run.n_out};
    sx_hlo_rows[op->id].lower(w, &context);
    const char *text;
    size_t size;
    sx_status status = sx_hlo_finish(w, NULL, 0, &text, &size);
    bool kept = sx_status_code(status) == SX_CANCELLED;
    sx_status_free(status);
    sx_hlo_destroy(w);
    op_sample_end(&run);
    return kept ? NULL : "the first error was not kept";
}

static void test_graph_stablehlo__lowering_after_an_error(void **state)
{
    (void)state;
    assert_int_equal(op_samples_failing(lower_after_error), 0);
}

static void test_graph_stablehlo__refuses_what_devices_do_not_hold(void **state)
{
    (void)state;
    const sx_type string = sx_scalar_type(SX_STRING), batch = sx_type_of(SX_F32, SX_BATCH);
    sx_hlo x;
    const char *text;
    size_t size;
    sx_hlo_writer *w = writer(&string, 1, &x);
    assert_error(sx_hlo_finish(w, &x, 1, &text, &size), SX_UNIMPLEMENTED, "type string");
    sx_hlo_destroy(w);
    w = writer(&batch, 1, &x);
    assert_error(sx_hlo_finish(w, &x, 1, &text, &size), SX_UNIMPLEMENTED, "float32[N]");
    sx_hlo_destroy(w);
}

static void test_graph_stablehlo__bounds_the_text(void **state)
{
    (void)state;
    const sx_hlo_arg arg = {.type = sx_type_of(SX_F32, 2), .alias = -1};
    sx_hlo x;
    sx_hlo_writer *w;
    const char *text;
    size_t size;
    assert_ok(sx_hlo_create(&(sx_hlo_options){0}, &arg, 1, 300, &x, &w));
    for (int i = 0; i < 10; i++) {
        x = sx_hlo_unary(w, "negate", x);
    }
    assert_error(sx_hlo_finish(w, &x, 1, &text, &size), SX_RESOURCE_EXHAUSTED, "");
    sx_hlo_destroy(w);
}

/* No plugin can be interrupted: a loop whose condition always holds ends at its bound. */
static void test_graph_stablehlo__loops_end_at_their_bound(void **state)
{
    (void)state;
    static const char loop[] = "sextant-graph 2\ninput %1 bool[] \"go\"\n"
                               "%2 = while(%1) {trips=777} bool[] \"loop\"\n"
                               "condition\ninput %1 bool[] \"go\"\noutput \"go\" %1\nend\n"
                               "body\ninput %1 bool[] \"go\"\noutput \"go\" %1\nend\n"
                               "output \"y\" %2\n";
    const sx_type type = sx_scalar_type(SX_BOOL);
    sx_graph *g;
    sx_hlo x, y;
    assert_ok(sx_graph_parse(loop, strlen(loop), &g));
    sx_hlo_writer *w = writer(&type, 1, &x);
    sx_hlo_graph(w, g, &x, &y);
    const char *text = text_of(w, y);
    assert_contains(text, "dense<777>");
    assert_contains(text, "stablehlo.and");
    sx_hlo_destroy(w);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_stablehlo__every_operator_has_a_row),
    cmocka_unit_test(test_graph_stablehlo__only_some_are_excused),
    cmocka_unit_test(test_graph_stablehlo__writes_generic_form),
    cmocka_unit_test(test_graph_stablehlo__results_and_donated_arguments),
    cmocka_unit_test(test_graph_stablehlo__splats),
    cmocka_unit_test(test_graph_stablehlo__constants),
    cmocka_unit_test(test_graph_stablehlo__sums_are_wide_and_copies_free),
    cmocka_unit_test(test_graph_stablehlo__bf16_products_have_f32_results),
    cmocka_unit_test(test_graph_stablehlo__negative_pads_cut_the_image),
    cmocka_unit_test(test_graph_stablehlo__keeps_the_first_error),
    cmocka_unit_test(test_graph_stablehlo__lowering_after_an_error),
    cmocka_unit_test(test_graph_stablehlo__refuses_what_devices_do_not_hold),
    cmocka_unit_test(test_graph_stablehlo__bounds_the_text),
    cmocka_unit_test(test_graph_stablehlo__loops_end_at_their_bound),
};
SX_TEST_MAIN(tests)
