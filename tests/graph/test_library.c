/* Libraries of functions: built, printed and parsed alike; what is foreign or wrong is refused with
 * its place; no text crashes the parser. */
#include "harness.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <sextant/ops.h>

#include "graph/library.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

static const char sample[] =
    "sextant-library 2\n"
    "variable float32[4,2] \"dense/kernel\" weight glorot_uniform\n"
    "variable int64[] \"global_step\" step constant 7\n"
    "function \"main\"\n"
    "  input %1 float32[?,4] \"x\"\n"
    "  input %2 string[*] \"text\"\n"
    "  %3 = variable_handle() {name=\"dense/kernel\"} resource[] \"handle\"\n"
    "  %4 = read_variable(%3) float32[4,2] \"read\"\n"
    "  %5 = matmul(%1, %4) float32[?,2] \"matmul\" at \"model.c\" 12\n"
    "  %6 = shape(%5) {dtype=int64} int64[2] \"shape\"\n"
    "  %7 = reshape(%5) {shape=%6} float32[*] \"reshape\"\n"
    "  %8 = constant() {value=tensor(bool[] \"01\")} bool[] \"true\"\n"
    "  %9, %10 = if(%8, %7, %1) float32[?0,?1], float32[?,4] \"if\"\n"
    "    then\n"
    "      input %1 float32[*] \"a\"\n"
    "      input %2 float32[?,4] \"b\"\n"
    "      %3 = neg(%1) float32[*] \"neg\"\n"
    "      output \"y\" %3\n"
    "      output \"z\" %2\n"
    "    end\n"
    "    else\n"
    "      input %1 float32[*] \"a\"\n"
    "      input %2 float32[?,4] \"b\"\n"
    "      %3 = call(%1) {function=\"helper\"} float32[*] \"call\"\n"
    "      output \"y\" %3\n"
    "      output \"z\" %2\n"
    "    end\n"
    "  %11 = constant() {value=tensor(string[2] \"6869\" \"\")} string[2] \"words\"\n"
    "  %12 = assert(%8, %11) {message=\"no\"} bool[] \"assert\"\n"
    "  output \"y\" %9\n"
    "  output \"words\" %11\n"
    "end\n"
    "function \"helper\"\n"
    "  input %1 float32[*] \"x\"\n"
    "  %2 = abs(%1) float32[*] \"abs\"\n"
    "  output \"y\" %2\n"
    "end\n";

static void test_graph_library__text_round_trip(void **state)
{
    (void)state;
    sx_library *library;
    char *text;
    assert_ok(sx_library_parse(sample, strlen(sample), &library));
    assert_ok(sx_library_print(library, &text));
    assert_string_equal(text, sample);
    const sx_graph *g = sx_library_find(library, "main")->body;
    const sx_node *reshape = sx_graph_maker(g, (sx_value){7});
    assert_int_equal(reshape->n_attr_operands, 1);
    assert_int_equal(reshape->attr_operands[0].value.id, 6);
    const sx_constant_attrs *words = sx_graph_maker(g, (sx_value){11})->attrs;
    const sx_bytes *s = words->value.data;
    assert_int_equal(s[0].size, 2);
    assert_memory_equal(s[0].data, "hi", 2);
    assert_int_equal(s[1].size, 0);
    assert_int_equal(sx_graph_nesting(g), 1);
    sx_text_free(text);
    sx_library_destroy(library);
}

/* The same library from the builder. */
static void test_graph_library__is_built(void **state)
{
    (void)state;
    sx_library *library, *parsed;
    sx_builder *main_b, *then_b, *else_b, *helper;
    const sx_type unknown = {.dtype = SX_F32, .rank = SX_UNKNOWN_RANK};
    const sx_type rows = sx_type_of(SX_F32, SX_UNKNOWN_DIM, 4);
    assert_ok(sx_library_create(&library));
    assert_ok(sx_library_add_variable(
        library, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 2)}));
    assert_error(sx_library_add_variable(
                     library, &(sx_variable_spec){.name = "w", .type = sx_type_of(SX_F32, 2)}),
                 SX_ALREADY_EXISTS, "already has a variable \"w\"");
    assert_error(sx_library_add_variable(library, &(sx_variable_spec){.name = "v", .type = rows}),
                 SX_INVALID_ARGUMENT, "\"v\" is float32[?,4]");
    assert_ok(sx_builder_create_function(&main_b));
    assert_ok(sx_builder_create_function(&then_b));
    assert_ok(sx_builder_create_function(&else_b));
    assert_ok(sx_builder_create_function(&helper));
    sx_value a = sx_input(then_b, "a", unknown);
    sx_output(then_b, "y", sx_function_node(then_b, "neg", NULL, &a, 1, NULL, 0, &unknown, 1));
    a = sx_input(else_b, "a", unknown);
    sx_output(else_b, "y",
              sx_function_node(else_b, "call", "function=\"helper\"", &a, 1, NULL, 0, &unknown, 1));
    a = sx_input(helper, "a", unknown);
    sx_output(helper, "y", a);
    sx_value x = sx_input(main_b, "x", rows);
    sx_value four = sx_neg(main_b, sx_constant_f32(main_b, 4)); /* known: inferred */
    sx_value yes = sx_less(main_b, four, sx_constant_f32(main_b, 0));
    char attrs[64];
    sx_value shape = sx_function_node(main_b, "shape", "dtype=int64", &x, 1, NULL, 0, NULL, 0);
    snprintf(attrs, sizeof(attrs), "shape=%%%u", shape.id);
    sx_value y = sx_function_node(main_b, "reshape", attrs, &x, 1, NULL, 0, &unknown, 1);
    sx_value z = sx_function_node(main_b, "if", NULL, (sx_value[]){yes, y}, 2,
                                  (sx_builder *[]){then_b, else_b}, 2, &unknown, 1);
    sx_output(main_b, "z", z);
    assert_ok(sx_library_add(library, "main", main_b));
    assert_ok(sx_library_add(library, "helper", helper));
    assert_ok(sx_library_finish(library));
    char *text, *again;
    assert_ok(sx_library_print(library, &text));
    assert_ok(sx_library_parse(text, strlen(text), &parsed));
    assert_ok(sx_library_print(parsed, &again));
    assert_string_equal(text, again);
    for (int i = 0; i < library->n_functions; i++) {
        assert_memory_equal(&library->functions[i].digest, &parsed->functions[i].digest,
                            sizeof(sx_digest));
    }
    char operand[80];
    snprintf(operand, sizeof(operand), "reshape(%%1) {%s}", attrs);
    assert_non_null(strstr(text, operand));
    sx_builder_destroy(main_b);
    sx_builder_destroy(then_b);
    sx_builder_destroy(else_b);
    sx_builder_destroy(helper);
    assert_ok(sx_builder_create_function(&helper));
    assert_error(sx_library_add(library, "late", helper), SX_FAILED_PRECONDITION, "is finished");
    sx_builder_destroy(helper);
    sx_text_free(text);
    sx_text_free(again);
    sx_library_destroy(library);
    sx_library_destroy(parsed);
}

static void test_graph_library__errors_name_the_place(void **state)
{
    (void)state;
#define HEAD "sextant-library 2\nfunction \"f\"\ninput %1 float32[?] \"x\"\n"
    static const struct {
        const char *text;
        sx_code code;
        const char *message;
    } cases[] = {
        {"sextant-library 3\n", SX_UNIMPLEMENTED, "version 3 of the library format"},
        {"sextant-graph 2\n", SX_INVALID_ARGUMENT, "line 1: expected \"sextant-library 2\""},
        {HEAD "output \"y\" %1\n", SX_INVALID_ARGUMENT, "expected \"end\", got the end"},
        {HEAD "output \"y\" %1\nend\nfunction \"f\"\nend\n", SX_ALREADY_EXISTS,
         "already has a function \"f\""},
        {HEAD "variable %2 float32[2] \"w\" weight zeros\nend\n", SX_INVALID_ARGUMENT,
         "line 4: a function has no variables of its own"},
        {HEAD "%2 = call(%1) {function=\"g\"} float32[?] \"c\"\nend\n", SX_NOT_FOUND,
         "function \"f\": call \"c\": the library has no function \"g\""},
        {HEAD "%2 = call(%1, %1) {function=\"f\"} float32[?] \"c\"\noutput \"y\" %2\nend\n",
         SX_INVALID_ARGUMENT, "has 1 inputs and 1 outputs, but the call has 2 and 1"},
        {HEAD "%2 = call(%1) {function=\"f\"} int32[?] \"c\"\noutput \"y\" %1\nend\n",
         SX_INVALID_ARGUMENT, "output 0 is int32[?], but function \"f\" declares float32[?]"},
        {HEAD "%2 = variable_handle() {name=\"w\"} resource[] \"h\"\nend\n", SX_NOT_FOUND,
         "the library has no variable \"w\""},
        {HEAD "%2 = reshape(%1) {shape=%3} float32[*] \"r\"\nend\n", SX_INVALID_ARGUMENT,
         "attribute shape is not a value"},
        {HEAD "%2 = cast(%1) {dtype=%1} float32[*] \"r\"\nend\n", SX_INVALID_ARGUMENT,
         "line 4: attribute dtype cannot be an operand"},
        {HEAD "%2 = if(%1) float32[?] \"i\"\nend\n", SX_INVALID_ARGUMENT, "line 5: expected then"},
        {HEAD "%2, %3 = neg(%1) float32[?], float32[?] \"n\"\nend\n", SX_INVALID_ARGUMENT,
         "2 outputs are declared, expected 1"},
        {HEAD "%2 = constant() {value=tensor(string[3] \"61\")} string[3] \"c\"\nend\n",
         SX_INVALID_ARGUMENT, "hexadecimal, in quotes"},
        {HEAD "%2 = constant() {value=tensor(string[99999999] \"61\")} string[99999999] \"c\"\n",
         SX_INVALID_ARGUMENT, "as many strings as the type has elements"},
        {"sextant-library 2\nvariable float32[?] \"w\" weight zeros\n", SX_INVALID_ARGUMENT,
         "expected a static type"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sx_library *library;
        assert_error(sx_library_parse(cases[i].text, strlen(cases[i].text), &library),
                     cases[i].code, cases[i].message);
    }
    sx_graph *g;
    static const char old[] = "sextant-graph 1\ninput %1 bool[] \"x\"\n%2 = if(%1) bool[] \"i\"\n";
    assert_error(sx_graph_parse(old, strlen(old), &g), SX_INVALID_ARGUMENT,
                 "line 4: if has regions, which require version 2");
    static const char call[] =
        "sextant-graph 2\ninput %1 bool[] \"x\"\n%2 = call(%1) {function=\"f\"} bool[] \"c\"\n";
    assert_error(sx_graph_parse(call, strlen(call), &g), SX_INVALID_ARGUMENT,
                 "is allowed only in a function");
}

/* A region is of the kind of the graph around it. */
static void test_graph_library__regions_are_of_their_graphs_kind(void **state)
{
    (void)state;
    for (int function = 0; function < 2; function++) {
        sx_builder *b, *branches[2];
        sx_graph *g;
        assert_ok(function ? sx_builder_create_function(&b) : sx_builder_create(&b));
        for (int i = 0; i < 2; i++) {
            assert_ok(function ? sx_builder_create(&branches[i])
                               : sx_builder_create_function(&branches[i]));
            sx_output(branches[i], "y", sx_input(branches[i], "x", sx_type_of(SX_F32, 2)));
        }
        const sx_value in[] = {sx_input(b, "c", sx_scalar_type(SX_BOOL)),
                               sx_input(b, "x", sx_type_of(SX_F32, 2))};
        const sx_type type = sx_type_of(SX_F32, 2);
        sx_function_node(b, "if", NULL, in, 2, branches, 2, &type, 1);
        assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT,
                     function ? "its region then is a static graph, expected a function's"
                              : "its region then is a function's, expected a static graph");
        sx_builder_destroy(branches[0]);
        sx_builder_destroy(branches[1]);
        sx_builder_destroy(b);
    }
}

/* A loop may have as many values as a node may have outputs, no more; operands that it only reads
 * do not count. */
static void test_graph_library__loops_of_many_values(void **state)
{
    (void)state;
    static char text[64 << 10];
    static const struct {
        int state, operands;
        bool good;
    } rows[] = {
        {1, 1, true},
        {SX_MAX_OUTPUTS - 1, SX_MAX_OUTPUTS - 1, true},
        {SX_MAX_OUTPUTS, SX_MAX_OUTPUTS, true},
        {SX_MAX_OUTPUTS, SX_MAX_OUTPUTS + 1, true},
        {1, SX_MAX_OUTPUTS + 1, true},
        {SX_MAX_OUTPUTS + 1, SX_MAX_OUTPUTS + 1, false},
        {0, 1, false},
        {2, 1, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int n = rows[i].operands;
        size_t at = 0;
#define PUT(...) at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__)
        PUT("sextant-graph 2\ninput %%1 bool[] \"x\"\n");
        for (int k = 0; k < rows[i].state; k++) {
            PUT("%s%%%d", k == 0 ? "" : ", ", k + 2);
        }
        PUT("%s = while(", rows[i].state == 0 ? "%2" : "");
        for (int k = 0; k < n; k++) {
            PUT("%s%%1", k == 0 ? "" : ", ");
        }
        PUT(")");
        for (int k = 0; k < rows[i].state; k++) {
            PUT("%s bool[]", k == 0 ? "" : ",");
        }
        PUT(" \"w\"\n");
        for (int body = 0; body < 2; body++) {
            PUT("%s\n", body ? "body" : "condition");
            for (int k = 0; k < n; k++) {
                PUT("input %%%d bool[] \"x%d\"\n", k + 1, k);
            }
            for (int k = 0; k < (body ? rows[i].state : 1); k++) {
                PUT("output \"y%d\" %%%d\n", k, k % n + 1);
            }
            PUT("end\n");
        }
#undef PUT
        sx_graph *g = NULL;
        sx_status status = sx_graph_parse(text, at, &g);
        if ((status == SX_OK) != rows[i].good) {
            fail_msg("%d values of %d operands: %s", rows[i].state, n, sx_status_message(status));
        }
        sx_status_free(status);
        sx_graph_destroy(g);
    }
}

static void test_graph_library__budgets_are_refused_with_figure_and_limit(void **state)
{
    (void)state;
    static const struct {
        sx_parse_limits limits;
        const char *message; /* NULL: enough */
    } cases[] = {
        {{.nodes = 12}, NULL},
        {{.nodes = 11}, "more than 11 nodes"},
        {{.functions = 2}, NULL},
        {{.functions = 1}, "more than 1 functions"},
        {{.constant_bytes = 33}, NULL},
        {{.constant_bytes = 32}, "the constants take 33 bytes; the limit is 32"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sx_library *library = NULL;
        sx_status status =
            sx_library_parse_within(sample, strlen(sample), &cases[i].limits, &library);
        if (cases[i].message == NULL) {
            assert_ok(status);
            sx_library_destroy(library);
        } else {
            assert_error(status, SX_RESOURCE_EXHAUSTED, cases[i].message);
        }
    }
    /* Regions in regions. */
    char text[32 << 10];
    int at = snprintf(text, sizeof(text), "sextant-graph 2\n");
    for (int depth = 0; depth < 100; depth++) {
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       "input %%1 bool[] \"x\"\n%%2 = if(%%1, %%1) bool[] \"i\"\nthen\n");
    }
    sx_graph *g;
    assert_error(sx_graph_parse(text, (size_t)at, &g), SX_RESOURCE_EXHAUSTED,
                 "regions nest deeper than 16");
}

static void test_graph_library__every_prefix_and_flip_is_survived(void **state)
{
    (void)state;
    char text[sizeof(sample)];
    memcpy(text, sample, sizeof(sample));
    const size_t size = strlen(sample);
    for (size_t i = 0; i < size; i++) {
        sx_library *library = NULL;
        sx_status_free(sx_library_parse(text, i, &library));
        sx_library_destroy(library);
        for (int flip = 0; flip < 8; flip++) {
            text[i] = (char)(sample[i] ^ 1 << flip);
            library = NULL;
            sx_status_free(sx_library_parse(text, size, &library));
            sx_library_destroy(library);
        }
        text[i] = sample[i];
    }
}

/* A static graph with regions is version 2, goes through the passes, and its regions with it. */
static void test_graph_library__static_graphs_have_regions(void **state)
{
    (void)state;
    static const char text[] = "sextant-graph 2\n"
                               "input %1 float32[N,3] \"x\"\n"
                               "input %2 bool[] \"negate\"\n"
                               "%3 = if(%2, %1) float32[N,3] \"if\"\n"
                               "  then\n"
                               "    input %1 float32[N,3] \"x\"\n"
                               "    %2 = neg(%1) float32[N,3] \"neg\"\n"
                               "    output \"y\" %2\n"
                               "  end\n"
                               "  else\n"
                               "    input %1 float32[N,3] \"x\"\n"
                               "    output \"y\" %1\n"
                               "  end\n"
                               "output \"y\" %3\n";
    sx_graph *g;
    char *again;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    assert_ok(sx_graph_print(g, &again));
    assert_string_equal(text, again);
    sx_text_free(again);
    sx_graph_destroy(g);
    static const char wrong[] = "sextant-graph 2\n"
                                "input %1 float32[N,3] \"x\"\n"
                                "input %2 bool[] \"negate\"\n"
                                "%3 = if(%2, %1) float32[N,3] \"if\"\n"
                                "then\ninput %1 float32[N,4] \"x\"\noutput \"y\" %1\nend\n"
                                "else\ninput %1 float32[N,3] \"x\"\noutput \"y\" %1\nend\n";
    assert_error(sx_graph_parse(wrong, strlen(wrong), &g), SX_INVALID_ARGUMENT,
                 "region then expects float32[N,4] as argument 0, got float32[N,3]");
}

/* Each pass but that for bfloat16 does to a region what it does to a graph. */
static void test_graph_library__passes_work_on_regions(void **state)
{
    (void)state;
#define BRANCH(name, node)                                                                         \
    name "\ninput %1 bfloat16[N,3] \"x\"\n%2 = constant() {value=tensor(float32[] \"00000040\")}"  \
         " float32[] \"two\"\n%3 = neg(%2) float32[] \"minus\"\n%4 = abs(%2) float32[] \"dead\"\n" \
         "%5 = " node "(%1) bfloat16[N,3] \"" node                                                 \
         "\"\n%6 = identity(%5) bfloat16[N,3] \"same\"\n"                                          \
         "output \"y\" %6\noutput \"z\" %3\nend\n"
    static const char text[] =
        "sextant-graph 2\ninput %1 bfloat16[N,3] \"x\"\ninput %2 bool[] \"c\"\n"
        "%3, %4 = if(%2, %1) bfloat16[N,3], float32[] \"if\"\n" BRANCH("then", "neg")
            BRANCH("else", "abs") "output \"y\" %3\noutput \"z\" %4\n";
    static sx_status (*const passes[])(const sx_graph *, sx_graph **) = {
        sx_pass_fold_constants, sx_pass_merge_equal, sx_pass_drop_dead, sx_pass_simplify,
        sx_pass_widen_bf16};
    sx_graph *g, *next;
    char *printed;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    assert_ok(sx_pass_fix_batch(g, 4, &next));
    sx_graph_destroy(g);
    g = next;
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        assert_ok(passes[i](g, &next));
        sx_graph_destroy(g);
        g = next;
    }
    assert_ok(sx_graph_print(g, &printed));
    assert_null(strstr(printed, "N,"));
    assert_null(strstr(printed, "identity"));
    assert_null(strstr(printed, "minus\" at"));
    assert_non_null(strstr(printed, "constant() {value=tensor(float32[] \"000000c0\")}"));
    assert_null(strstr(printed, "abs(%2) float32[]"));
    assert_non_null(strstr(printed, "neg(%1) bfloat16")); /* a device widens what it compiles */
    sx_text_free(printed);
    sx_graph_destroy(g);
}

/* A chain of functions, each of which calls the next one twice: 2^60 calls, looked at once each. */
static void test_graph_library__facts_of_shared_functions_are_learned_once(void **state)
{
    (void)state;
    enum { DEEP = 60 };
    static char text[64 << 10];
    int at =
        snprintf(text, sizeof(text), "sextant-library 2\nvariable float32[] \"v\" state zeros\n");
    for (int i = 0; i < DEEP; i++) {
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       "function \"f%d\"\ninput %%1 float32[*] \"x\"\ninput %%2 int64[?] \"to\"\n"
                       "%%3 = call(%%1, %%2) {function=\"f%d\"} float32[*] \"a\"\n"
                       "%%4 = call(%%3, %%2) {function=\"f%d\"} float32[*] \"b\"\n"
                       "output \"y\" %%4\nend\n",
                       i, i + 1, i + 1);
    }
    snprintf(text + at, sizeof(text) - (size_t)at,
             "function \"f%d\"\ninput %%1 float32[*] \"x\"\ninput %%2 int64[?] \"to\"\n"
             "%%3 = reshape(%%1) {shape=%%2} float32[*] \"r\"\noutput \"y\" %%3\nend\n"
             "function \"sets\"\ninput %%1 float32[] \"x\"\n"
             "%%2 = variable_handle() {name=\"v\"} resource[] \"h\"\n"
             "%%3 = assign_variable(%%2, %%1) float32[] \"set\"\noutput \"y\" %%3\nend\n"
             "function \"calls\"\ninput %%1 float32[] \"x\"\n"
             "%%2 = call(%%1) {function=\"sets\"} float32[] \"c\"\noutput \"y\" %%2\nend\n",
             DEEP);
    sx_library *library;
    assert_ok(sx_library_parse(text, strlen(text), &library));
    const sx_function *first = sx_library_find(library, "f0");
    assert_false(first->shaping[0]);
    assert_true(first->shaping[1]);
    assert_false(first->writes);
    assert_true(sx_library_find(library, "calls")->writes);
    assert_memory_not_equal(&first->digest, &sx_library_find(library, "f1")->digest,
                            sizeof(sx_digest));
    sx_library_destroy(library);
}

/* ---- Building ---- */

static void assert_type(sx_builder *b, sx_value v, sx_type expected)
{
    const sx_type type = sx_type_of_value(b, v);
    char got[SX_TYPE_TEXT], wanted[SX_TYPE_TEXT];
    assert_string_equal(sx_type_format(&type, got, sizeof(got)),
                        sx_type_format(&expected, wanted, sizeof(wanted)));
}

/* Public operators in a function: unknown dimensions stay unknown, what follows is known. */
static void test_graph_library__operators_on_unknown_dimensions(void **state)
{
    (void)state;
    const int64_t any = SX_UNKNOWN_DIM;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create_function(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, any, any, 4));
    sx_value w = sx_input(b, "w", sx_type_of(SX_F32, 4, 8));
    sx_value row = sx_input(b, "row", sx_type_of(SX_F32, 8));
    sx_value y = sx_add(b, sx_matmul(b, x, w), row);
    assert_type(b, y, sx_type_of(SX_F32, any, any, 8));
    assert_type(b, sx_matmul(b, y, y, .transpose_b = true), sx_type_of(SX_F32, any, any, any));
    assert_type(b, sx_reduce_sum(b, y, .axes = SX_AXES(1)), sx_type_of(SX_F32, any, 8));
    assert_type(b, sx_reduce_mean(b, y), sx_scalar_type(SX_F32));
    assert_type(b, sx_concat(b, 1, y, y), sx_type_of(SX_F32, any, any, 8));
    assert_type(b, sx_argmax(b, y, .axis = 2), sx_type_of(SX_I32, any, any));
    sx_output(b, "y", y);
    assert_ok(sx_builder_finish(b, &g));
    sx_graph_destroy(g);
    sx_builder_destroy(b);
    assert_ok(sx_builder_create_function(&b));
    x = sx_input(b, "x", sx_type_of(SX_F32, any, 4));
    sx_output(b, "y", sx_matmul(b, x, x));
    assert_error(
        sx_builder_finish(b, &g), SX_INVALID_ARGUMENT,
        "with 10007 for unknown dimensions (sx_function_node() takes sizes that depend on them as "
        "operands): the inner dimensions of a float32[");
    sx_builder_destroy(b);
    static const char *const refusals[] = {
        "size 1 of the shape float32[2,?] is SX_UNKNOWN_DIM: sx_function_node() takes",
        "the size of axis 0 is SX_UNKNOWN_DIM: sx_function_node() takes",
        "the begin of axis 1 is SX_UNKNOWN_DIM: sx_function_node() takes",
    };
    for (int i = 0; i < 3; i++) {
        assert_ok(sx_builder_create_function(&b));
        x = sx_input(b, "x", sx_type_of(SX_F32, any, 4));
        sx_output(b, "y",
                  i == 0   ? sx_reshape(b, x, 2, any)
                  : i == 1 ? sx_slice(b, x, .begin = {0, 1}, .size = {any, 2})
                           : sx_slice(b, x, .begin = {0, any}, .size = {1, 2}));
        assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT, refusals[i]);
        sx_builder_destroy(b);
    }
}

/* if (p) y = v  else y = 2 v: v is read in the regions, and belongs to the library. */
static void test_graph_library__variables_of_regions(void **state)
{
    (void)state;
    const sx_type scalar = sx_scalar_type(SX_F32);
    const sx_variable_spec v = {
        .name = "v", .type = scalar, .init = SX_INIT_CONSTANT, .init_value = 3};
    sx_builder *b, *regions[2];
    sx_library *library;
    char *text;
    assert_ok(sx_builder_create_function(&b));
    sx_value p = sx_input(b, "p", sx_scalar_type(SX_BOOL));
    for (int i = 0; i < 2; i++) {
        assert_ok(sx_builder_create_function(&regions[i]));
        sx_value y = sx_variable(regions[i], &v);
        sx_assign(regions[i], "v", sx_add(regions[i], y, y));
        sx_output(regions[i], "y", i == 0 ? y : sx_variable(regions[i], &v));
    }
    sx_output(b, "y", sx_function_node(b, "if", NULL, &p, 1, regions, 2, &scalar, 1));
    assert_ok(sx_library_create(&library));
    assert_ok(sx_library_add(library, "f", b));
    assert_ok(sx_library_finish(library));
    assert_int_equal(library->n_variables, 1);
    assert_true(library->functions[0].writes);
    assert_ok(sx_library_print(library, &text));
    assert_non_null(strstr(text, "variable float32[] \"v\" weight constant 3"));
    sx_text_free(text);
    sx_library_destroy(library);
    sx_builder_destroy(b);
    sx_builder_destroy(regions[0]);
    sx_builder_destroy(regions[1]);
}

/* Bytes of private writable memory, what RLIMIT_DATA limits. */
static size_t data_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages), 1);
    (void)fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* As many functions as a library may have, all small: reading them takes at most four times their
 * text and 64 MiB. In a child, which the system gives no more. */
static void test_graph_library__many_small_functions_take_little_memory(void **state)
{
    (void)state;
    static const char body[] = "  input %1 float32[*] \"x\"\n  %2 = neg(%1) float32[*] \"neg\"\n"
                               "  output \"y\" %2\nend\n";
    if (harness_sanitizes()) {
        SX_SKIP("a sanitizer takes memory of its own");
    }
    sx_buf text;
    sx_buf_init(&text, 1 << 26);
    sx_buf_puts(&text, "sextant-library 2\n");
    for (int i = 0; i < SX_LIBRARY_MAX_FUNCTIONS; i++) {
        sx_buf_printf(&text, "function \"f%d\"\n%s", i, body);
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        sx_library *library = NULL;
        const rlim_t most = data_bytes() + 4 * text.size + (64 << 20);
        assert_int_equal(setrlimit(RLIMIT_DATA, &(struct rlimit){most, most}), 0);
        assert_ok(sx_library_parse(sx_buf_text(&text), text.size, &library));
        _exit(library->n_functions == SX_LIBRARY_MAX_FUNCTIONS ? 17 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 17);
    sx_buf_deinit(&text);
}

/* In a model's graph, constants that a function gives and those that its nodes read have names of
 * their own. */
static void test_graph_library__is_called_with_constants(void **state)
{
    (void)state;
    sx_library *library;
    sx_builder *b;
    sx_graph *g;
    sx_value out[2];
    assert_ok(sx_library_create(&library));
    assert_ok(sx_builder_create_function(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_output(b, "k", sx_constant_f32(b, 3));
    sx_output(b, "y", sx_add(b, x, sx_constant_f32(b, 2)));
    assert_ok(sx_library_add(library, "f", b));
    sx_builder_destroy(b);
    assert_ok(sx_library_finish(library));
    assert_ok(sx_builder_create(&b));
    x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_call_function(b, library, "f", &x, 1, out, 2);
    sx_call_function(b, library, "f", &out[1], 1, out, 2);
    sx_output(b, "k", out[0]);
    sx_output(b, "y", out[1]);
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    sx_graph_destroy(g);
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_library__many_small_functions_take_little_memory),
    cmocka_unit_test(test_graph_library__operators_on_unknown_dimensions),
    cmocka_unit_test(test_graph_library__variables_of_regions),
    cmocka_unit_test(test_graph_library__regions_are_of_their_graphs_kind),
    cmocka_unit_test(test_graph_library__loops_of_many_values),
    cmocka_unit_test(test_graph_library__text_round_trip),
    cmocka_unit_test(test_graph_library__is_built),
    cmocka_unit_test(test_graph_library__errors_name_the_place),
    cmocka_unit_test(test_graph_library__budgets_are_refused_with_figure_and_limit),
    cmocka_unit_test(test_graph_library__every_prefix_and_flip_is_survived),
    cmocka_unit_test(test_graph_library__static_graphs_have_regions),
    cmocka_unit_test(test_graph_library__passes_work_on_regions),
    cmocka_unit_test(test_graph_library__facts_of_shared_functions_are_learned_once),
    cmocka_unit_test(test_graph_library__is_called_with_constants),
};
SX_TEST_MAIN(tests)
