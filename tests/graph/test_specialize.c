/* What sx_specialize() makes of single nodes: attributes from operands, calls, regions that a
 * device can run and regions that it cannot. Whole programs are run in
 * tests/runtime/test_function_run.c. */
#include "torture.h"

#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/specialize.h"

#define MAIN(lines) "sextant-library 2\nfunction \"main\"\n" lines "end\n"
/* x with its first two axes as one, as Keras' dense layers compute it */
#define PRODUCT                                                                             \
    MAIN("input %1 float32[?,?,?] \"x\"\n%2 = shape(%1) {dtype=int32} int32[?] \"shape\"\n" \
         "%3 = slice(%2) {begin=[0], size=[2]} int32[?] \"some\"\n"                         \
         "%4 = reduce_prod(%3) {axes=[0]} int32[] \"all\"\n"                                \
         "%5 = reshape(%4) {shape=[1]} int32[1] \"one\"\n"                                  \
         "%6 = constant() {value=tensor(int32[1] \"ffffffff\")} int32[1] \"rest\"\n"        \
         "%7 = concat(%5, %6) int32[2] \"to\"\n"                                            \
         "%8 = reshape(%1) {shape=%7} float32[?,?] \"r\"\noutput \"y\" %8\n")

static sx_status specialize(const sx_library *library, const sx_graph *body, const sx_type *types,
                            sx_specialized **out)
{
    sx_tensor args[4];
    for (int i = 0; i < body->n_args; i++) {
        args[i] = (sx_tensor){types[i], NULL};
    }
    return sx_specialize(library, body, &(sx_binding){.args = args, .n_args = body->n_args},
                         &(sx_specialize_limits){0}, out);
}

static sx_library *parse(const char *text)
{
    sx_library *library = NULL;
    assert_ok(sx_library_parse(text, strlen(text), &library));
    return library;
}

static const struct {
    const char *text;
    sx_type args[2];
    const char *result; /* the first result's type, or "CODE: part of the message" */
} programs[] = {
    /* axes in any order, of any sign */
    {MAIN("input %1 float32[?,?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"0200000000000000\")} int32[2] \"axes\"\n"
          "%3 = reduce_sum(%1) {axes=%2} float32[?] \"sum\"\noutput \"y\" %3\n"),
     {{SX_F32, 3, {3, 4, 5}}},
     "float32[4]"},
    {MAIN("input %1 float32[?,?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"fffffffffdffffff\")} int32[2] \"axes\"\n"
          "%3 = reduce_sum(%1) {axes=%2} float32[?] \"sum\"\noutput \"y\" %3\n"),
     {{SX_F32, 3, {3, 4, 5}}},
     "float32[4]"},
    {MAIN("input %1 float32[?,?,?] \"x\"\n%2 = constant() {value=tensor(int32[3] "
          "\"020000000100000000000000\")} int32[3] \"axes\"\n"
          "%3 = reduce_sum(%1) {axes=%2} float32[] \"sum\"\noutput \"y\" %3\n"),
     {{SX_F32, 3, {3, 4, 5}}},
     "float32[]"},
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[1] \"02000000\")} int32[1] \"axes\"\n"
          "%3 = reduce_sum(%1) {axes=%2} float32[?] \"sum\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "INVALID_ARGUMENT: axis 2 is out of range"},
    /* shapes: one dimension from the others; the batch must be known where it would move */
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"02000000ffffffff\")} int32[2] \"to\"\n"
          "%3 = reshape(%1) {shape=%2} float32[?,?] \"r\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "float32[2,6]"},
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"05000000ffffffff\")} int32[2] \"to\"\n"
          "%3 = reshape(%1) {shape=%2} float32[?,?] \"r\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "INVALID_ARGUMENT: cannot reshape float32[3,4]: 12 elements are not a multiple of 5"},
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"feffffffffffffff\")} int32[2] \"to\"\n"
          "%3 = reshape(%1) {shape=%2} float32[?,?] \"r\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "INVALID_ARGUMENT: attribute shape of reshape has the invalid value -2 at index 0"},
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"ffffffffffffffff\")} int32[2] \"to\"\n"
          "%3 = reshape(%1) {shape=%2} float32[?,?] \"r\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "INVALID_ARGUMENT: attribute shape of reshape has the invalid value -1 at index 1"},
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(float32[2] \"0000803f0000803f\")} float32[2] \"to\"\n"
          "%3 = reshape(%1) {shape=%2} float32[?,?] \"r\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "INVALID_ARGUMENT: attribute shape of reshape cannot be float32[2]"},
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[9] \"0100000001000000010000000100000001000000"
          "01000000010000000c00000001000000\")} int32[9] \"to\"\n"
          "%3 = reshape(%1) {shape=%2} float32[?,?] \"r\"\noutput \"y\" %3\n"),
     {{SX_F32, 2, {3, 4}}},
     "INVALID_ARGUMENT: attribute shape of reshape has 9 numbers, one for each dimension; at most "
     "8 "
     "dimensions are supported"},
    /* the product of dimensions is known but for the batch */
    {PRODUCT, {{SX_F32, 3, {SX_BATCH, 4, 3}}}, "float32[4*N,3]"},
    {PRODUCT, {{SX_F32, 3, {-2, 4, 3}}}, "float32[8*N,3]"},
    /* slices to the end */
    {MAIN("input %1 float32[?,?] \"x\"\n"
          "%2 = constant() {value=tensor(int32[2] \"0100000002000000\")} int32[2] \"begin\"\n"
          "%3 = constant() {value=tensor(int32[2] \"ffffffff01000000\")} int32[2] \"size\"\n"
          "%4 = slice(%1) {begin=%2, size=%3} float32[?,?] \"s\"\noutput \"y\" %4\n"),
     {{SX_F32, 2, {3, 4}}},
     "float32[2,1]"},
    /* map: along the first axis; a scalar has none */
    {MAIN("input %1 float32[*] \"x\"\n%2 = map(%1) {mapped=1} float32[*] \"map\"\nbody\n"
          "input %1 float32[*] \"e\"\n%2 = neg(%1) float32[*] \"n\"\noutput \"y\" %2\nend\n"
          "output \"y\" %2\n"),
     {{SX_F32, 2, {3, 4}}},
     "float32[3,4]"},
    {MAIN("input %1 float32[*] \"x\"\n%2 = map(%1) {mapped=1} float32[*] \"map\"\nbody\n"
          "input %1 float32[*] \"e\"\n%2 = neg(%1) float32[*] \"n\"\noutput \"y\" %2\nend\n"
          "output \"y\" %2\n"),
     {{SX_F32, 0, {0}}},
     "INVALID_ARGUMENT: value 0 is a scalar, which has no axis"},
    {MAIN("input %1 float32[*] \"x\"\n%2 = map(%1) {mapped=1} float32[*] \"map\"\nbody\n"
          "input %1 float32[4] \"e\"\n%2 = neg(%1) float32[4] \"n\"\noutput \"y\" %2\nend\n"
          "output \"y\" %2\n"),
     {{SX_F32, 2, {3, 5}}},
     "INVALID_ARGUMENT: argument 0 is float32[5], but is declared as float32[4]"},
};

static void test_graph_specialize__types_and_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        sx_library *library = parse(programs[i].text);
        sx_specialized *s = NULL;
        sx_status status = specialize(library, library->functions[0].body, programs[i].args, &s);
        char text[SX_TYPE_TEXT] = "";
        if (status == SX_OK) {
            sx_type_format(&s->slots[s->results[0]].type, text, sizeof(text));
        }
        if (status == SX_OK ? strcmp(text, programs[i].result) != 0
                            : !harness_is(status, programs[i].result)) {
            fail_msg("program %zu: %s%s, expected %s", i, text,
                     status != SX_OK ? sx_status_message(status) : "", programs[i].result);
        }
        sx_status_free(status);
        sx_specialized_destroy(s);
        sx_library_destroy(library);
    }
}

/* A body that was made with another library: its calls need not fit this one's functions. */
static void test_graph_specialize__calls_of_another_library(void **state)
{
    (void)state;
    sx_library *library = parse(MAIN(
        "input %1 float32[2] \"x\"\n%2 = call(%1) {function=\"f\"} float32[2] \"c\"\n"
        "output \"y\" %2\n") "function \"f\"\ninput %1 float32[2] \"x\"\noutput \"y\" %1\nend\n");
    static const struct {
        const char *text, *message;
        sx_code code;
    } others[] = {
        {"sextant-library 2\n", "call \"c\": the library has no function \"f\"", SX_NOT_FOUND},
        {"sextant-library 2\nfunction \"f\"\ninput %1 float32[2] \"x\"\n"
         "input %2 float32[2] \"z\"\noutput \"y\" %1\nend\n",
         "\"f\" has 2 inputs and 1 outputs, but the call has 1 and 1", SX_INVALID_ARGUMENT},
        {"sextant-library 2\nfunction \"f\"\n%1 = constant() {value=tensor(float32[0] \"\")} "
         "float32[0] \"x\"\noutput \"y\" %1\nend\n",
         "\"f\" has 0 inputs and 1 outputs, but the call has 1 and 1", SX_INVALID_ARGUMENT},
        {"sextant-library 2\nfunction \"f\"\ninput %1 float32[2] \"x\"\noutput \"y\" %1\n"
         "output \"z\" %1\nend\n",
         "\"f\" has 1 inputs and 2 outputs, but the call has 1 and 1", SX_INVALID_ARGUMENT},
    };
    const sx_type type = sx_type_of(SX_F32, 2);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        sx_library *other = parse(others[i].text);
        sx_specialized *s = NULL;
        assert_error(specialize(other, library->functions[0].body, &type, &s), others[i].code,
                     others[i].message);
        sx_library_destroy(other);
    }
    sx_library_destroy(library);
}

/* An if of which a device could run one branch alone runs on the host, with the function's regions.
 */
static void test_graph_specialize__ifs_on_the_host_keep_their_regions(void **state)
{
    (void)state;
    static const char *const branches[] = {
        "then\ninput %1 float32[?] \"x\"\n%2 = neg(%1) float32[?] \"n\"\noutput \"y\" %2\nend\n"
        "else\ninput %1 float32[?] \"x\"\n%2 = where(%1) int64[?,1] \"w\"\n"
        "%3 = cast(%2) {dtype=float32} float32[?,1] \"c\"\n%4 = constant() {value=tensor(int64[1] "
        "\"ffffffffffffffff\")} int64[1] \"flat\"\n%5 = reshape(%3) {shape=%4} float32[?] \"r\"\n"
        "output \"y\" %5\nend\n",
        "then\ninput %1 float32[?] \"x\"\n%2 = where(%1) int64[?,1] \"w\"\n"
        "%3 = cast(%2) {dtype=float32} float32[?,1] \"c\"\n%4 = constant() {value=tensor(int64[1] "
        "\"ffffffffffffffff\")} int64[1] \"flat\"\n%5 = reshape(%3) {shape=%4} float32[?] \"r\"\n"
        "output \"y\" %5\nend\n"
        "else\ninput %1 float32[?] \"x\"\n%2 = neg(%1) float32[?] \"n\"\noutput \"y\" %2\nend\n",
    };
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof(text),
                 "sextant-library 2\nfunction \"main\"\ninput %%1 bool[] \"c\"\n"
                 "input %%2 float32[?] \"x\"\n%%3 = if(%%1, %%2) float32[?] \"if\"\n%s"
                 "output \"y\" %%3\nend\n",
                 branches[i]);
        sx_library *library = parse(text);
        sx_specialized *s = NULL;
        const sx_type types[] = {sx_scalar_type(SX_BOOL), sx_type_of(SX_F32, 3)};
        const sx_graph *body = library->functions[0].body;
        assert_ok(specialize(library, body, types, &s));
        assert_int_equal(s->n_steps, 1);
        assert_int_equal(s->steps[0].kind, SX_STEP_IF);
        const sx_node *written = &body->nodes[2];
        for (int row = 0; row < 2; row++) {
            assert_ptr_equal(sx_node_body(s->steps[0].node, row), sx_node_body(written, row));
        }
        sx_specialized_destroy(s);
        sx_library_destroy(library);
    }
}

/* ---- Without memory ---- */

static sx_status specialize_all(void *user)
{
    (void)user;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        sx_library *library = NULL;
        sx_specialized *s = NULL;
        char *text = NULL;
        SX_TRY(sx_library_parse(programs[i].text, strlen(programs[i].text), &library));
        sx_type type = programs[i].args[0];
        type.dims[0] = type.rank > 1 && i % 2 == 1 ? SX_BATCH : type.dims[0];
        sx_status status = specialize(library, library->functions[0].body, &type, &s);
        if (sx_status_code(status) == SX_INVALID_ARGUMENT) {
            sx_status_free(status);
            status = SX_OK;
        }
        status = status != SX_OK ? status : sx_library_print(library, &text);
        sx_text_free(text);
        sx_specialized_destroy(s);
        sx_library_destroy(library);
        SX_TRY(status);
    }
    return SX_OK;
}

/* [N,4] to [2,2N] moves the batch: that is only possible when N is known. An allocation that fails
 * while that is found out is no other error. */
static sx_status wait_for_the_batch(void *user)
{
    const sx_library *library = user;
    const sx_type type = sx_type_of(SX_F32, SX_BATCH, 4);
    sx_specialized *s = NULL;
    SX_TRY(specialize(library, library->functions[0].body, &type, &s));
    assert_int_equal(s->steps[s->n_steps - 1].kind, SX_STEP_LATE);
    sx_specialized_destroy(s);
    return SX_OK;
}

static void test_graph_specialize__survives_failing_allocations(void **state)
{
    (void)state;
    assert_true(sx_torture_some(specialize_all, NULL) > 200);
    sx_library *library =
        parse(MAIN("input %1 float32[?,4] \"x\"\n%2 = reshape(%1) {shape=[2,-2]} float32[?,?] "
                   "\"r\"\noutput \"y\" %2\n"));
    assert_true(sx_torture_some(wait_for_the_batch, library) > 10);
    sx_library_destroy(library);
}

/* 24 joins, each twice as long as the one before, would be 64 MiB: none is folded that is larger
 * than its inputs and a little more. */
static void test_graph_specialize__folds_no_long_strings(void **state)
{
    (void)state;
    enum { JOINS = 24 };
    sx_buf text;
    sx_specialized *s = NULL;
    sx_budget memory;
    const sx_type type = sx_type_of(SX_F32, 1);
    sx_buf_init(&text, 0);
    sx_buf_printf(&text,
                  "sextant-library 2\nfunction \"main\"\ninput %%1 float32[1] \"x\"\n"
                  "%%2 = constant() {value=tensor(string[] \"0461626364\")} string[] \"c\"\n");
    for (int i = 0; i < JOINS; i++) {
        sx_buf_printf(&text, "%%%d = string_join(%%%d, %%%d) {separator=\"\"} string[] \"j%d\"\n",
                      i + 3, i + 2, i + 2, i);
    }
    sx_buf_printf(&text, "output \"y\" %%%d\noutput \"x\" %%1\nend\n", JOINS + 2);
    sx_library *library = parse(sx_buf_text(&text));
    sx_buf_deinit(&text);
    sx_budget_init(&memory, "a test", 4 << 20, NULL);
    const sx_tensor arg = {type, NULL};
    assert_ok(sx_specialize(library, library->functions[0].body,
                            &(sx_binding){.args = &arg, .n_args = 1},
                            &(sx_specialize_limits){.memory = &memory}, &s));
    int joins = 0;
    for (int i = 0; i < s->n_steps; i++) {
        joins += s->steps[i].kind == SX_STEP_HOST;
    }
    assert_in_range(joins, 5, 15); /* the first were folded */
    assert_true(s->arena.used_bytes < 1 << 20);
    sx_specialized_destroy(s);
    assert_int_equal(sx_budget_used(&memory), 0);
    sx_library_destroy(library);
}

static void test_graph_specialize__stops_at_a_deadline(void **state)
{
    (void)state;
    enum { NODES = 200 };
    sx_buf text;
    sx_specialized *s = NULL;
    sx_cancel cancel;
    sx_buf_init(&text, 0);
    sx_buf_printf(&text, "sextant-library 2\nfunction \"main\"\ninput %%1 float32[1] \"x\"\n");
    for (int i = 0; i < NODES; i++) {
        sx_buf_printf(&text, "%%%d = neg(%%%d) float32[1] \"n%d\"\n", i + 2, i + 1, i);
    }
    sx_buf_printf(&text, "output \"y\" %%%d\nend\n", NODES + 1);
    sx_library *library = parse(sx_buf_text(&text));
    sx_buf_deinit(&text);
    const sx_tensor arg = {sx_type_of(SX_F32, 1), NULL};
    sx_cancel_init(&cancel, 1);
    assert_error(sx_specialize(library, library->functions[0].body,
                               &(sx_binding){.args = &arg, .n_args = 1},
                               &(sx_specialize_limits){.cancel = &cancel}, &s),
                 SX_DEADLINE_EXCEEDED, "deadline exceeded");
    sx_library_destroy(library);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_specialize__types_and_refusals),
    cmocka_unit_test(test_graph_specialize__calls_of_another_library),
    cmocka_unit_test(test_graph_specialize__ifs_on_the_host_keep_their_regions),
    cmocka_unit_test(test_graph_specialize__survives_failing_allocations),
    cmocka_unit_test(test_graph_specialize__folds_no_long_strings),
    cmocka_unit_test(test_graph_specialize__stops_at_a_deadline),
};
SX_TEST_MAIN(tests)
