/* The text form: what is printed parses to an equal graph; broken texts are errors, never crashes.
 */
#include "harness.h"

#include "graph/attr_rows.h"
#include "graph/ir.h"

static char *sample_text(void)
{
    sx_builder *b;
    sx_graph *g;
    char *text;
    assert_ok(sx_builder_create(&b));
    sx_builder_at(b, "a \"quoted\"\\file.c", 3);
    sx_variable(b, &(sx_variable_spec){.name = "dense/kernel",
                                       .type = sx_type_of(SX_F32, 2, 2),
                                       .init = SX_INIT_CONSTANT,
                                       .init_value = 0.1});
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2));
    sx_value c = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 2, 2), (float[]){1, -2, 0.5f, 4}});
    sx_assign(b, "dense/kernel", c);
    sx_output(b, "x", x);
    sx_output(b, "scalar", sx_constant_f32(b, 0.1));
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    assert_ok(sx_graph_print(g, &text));
    sx_graph_destroy(g);
    return text;
}

static void test_graph_text__round_trip(void **state)
{
    (void)state;
    char *text = sample_text(), *again;
    sx_graph *g;
    assert_ok(sx_graph_parse(text, strlen(text), &g));
    assert_ok(sx_graph_validate(g));
    assert_ok(sx_graph_print(g, &again));
    assert_string_equal(text, again);
    assert_int_equal(g->n_args, 2);
    assert_true(g->args[0].init == SX_INIT_CONSTANT && g->args[0].init_value == 0.1);
    sx_graph_destroy(g);
    sx_text_free(text);
    sx_text_free(again);
}

static void test_graph_text__every_prefix_and_flip_is_survived(void **state)
{
    (void)state;
    char *text = sample_text();
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        sx_graph *g = NULL;
        sx_status_free(sx_graph_parse(text, i, &g));
        sx_graph_destroy(g);
        char kept = text[i];
        for (int flip = 0; flip < 8; flip++) {
            text[i] = (char)(kept ^ 1 << flip);
            g = NULL;
            sx_status_free(sx_graph_parse(text, size, &g));
            sx_graph_destroy(g);
        }
        text[i] = kept;
    }
    sx_text_free(text);
}

/* No character of a text is idle: without it, the text is refused or says something else. */
static void test_graph_text__every_character_counts(void **state)
{
    (void)state;
    char *text = sample_text();
    const size_t size = strlen(text);
    char *less = sx_alloc(size, 1);
    for (size_t i = 0; i < size; i++) {
        sx_graph *g = NULL;
        char *again = NULL;
        /* 0.10000000000000001 is the same number without some of its digits */
        if (text[i] == ' ' || text[i] == '\n' || (text[i] >= '0' && text[i] <= '9')) {
            continue;
        }
        const char kept = text[i];
        text[i] = '~'; /* nor is any other as good */
        sx_status status = sx_graph_parse(text, size, &g);
        text[i] = kept;
        if (status == SX_OK) {
            assert_ok(sx_graph_print(g, &again));
            assert_string_not_equal(again, text);
        }
        sx_status_free(status);
        sx_graph_destroy(g);
        sx_text_free(again);
        g = NULL;
        again = NULL;
        memcpy(less, text, i);
        memcpy(less + i, text + i + 1, size - i - 1);
        status = sx_graph_parse(less, size - 1, &g);
        if (status == SX_OK) {
            assert_ok(sx_graph_print(g, &again));
            if (strcmp(again, text) == 0) {
                fail_msg("'%c' at %zu is not missed in\n%s", text[i], i, text);
            }
        }
        sx_status_free(status);
        sx_graph_destroy(g);
        sx_text_free(again);
    }
    sx_free(less);
    sx_text_free(text);
}

static void test_graph_text__errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sx_code code;
        const char *message;
    } cases[] = {
        {"", SX_INVALID_ARGUMENT, "line 1: expected \"sextant-graph 3\", got the end"},
        {"sextant-graph 4\n", SX_UNIMPLEMENTED, "version 4"},
        {"sextant-graph 1\ninput %1 float32[2] \"x\"\n%2 = fly(%1) float32[2] \"y\"\n",
         SX_NOT_FOUND, "line 3: no operator \"fly\""},
        {"sextant-graph 1\ninput %2 float32[2] \"x\"\n", SX_INVALID_ARGUMENT, "%2 is out of order"},
        {"sextant-graph 1\ninput %1 float33[2] \"x\"\n", SX_INVALID_ARGUMENT, "expected a dtype"},
        {"sextant-graph 1\ninput %1 float32[2] \"x\"\n%7 = neg(%1) float32[2] \"y\"\n\n",
         SX_INVALID_ARGUMENT, "line 3: value %7 is out of order, expected %2"},
        {"sextant-graph 1\ninput %1 float32[2] \"x\"\n%2 = neg(%1) float32[3] \"y\"\n\n",
         SX_INVALID_ARGUMENT, "line 3: value %2 is declared as float32[3] but is float32[2]"},
        {"sextant-graph 1\ninput %1 float32[2] \"x\"\n%2 = neg(%9) float32[2] \"y\"\n"
         "output \"y\" %2\n",
         SX_INVALID_ARGUMENT, "line 3: neg \"y\": input 0"},
        {"sextant-graph 1\noutput \"y\" %7\n", SX_INVALID_ARGUMENT, "%7, which does not exist"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sx_graph *g;
        assert_error(sx_graph_parse(cases[i].text, strlen(cases[i].text), &g), cases[i].code,
                     cases[i].message);
    }
}

/* Every kind of dimension is read as it is printed; what is none names the place. */
static void test_graph_text__types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *printed; /* NULL: refused */
        sx_type type;
    } rows[] = {
        {"float32[]", "float32[]", {SX_F32, 0, {0}}},
        {"float32[N,28]", "float32[N,28]", {SX_F32, 2, {SX_BATCH, 28}}},
        {"int32[3, 2*N]", "int32[3,2*N]", {SX_I32, 2, {3, -2}}},
        {"int32[ 12 * N ]", "int32[12*N]", {SX_I32, 1, {-12}}},
        {"int32[1*N]", "int32[N]", {SX_I32, 1, {SX_BATCH}}},
        {"float32[?,3]", "float32[?,3]", {SX_F32, 2, {SX_UNKNOWN_DIM, 3}}},
        {"float32[?0,?65535]",
         "float32[?0,?65535]",
         {SX_F32, 2, {SX_UNKNOWN_DIM + 1, SX_UNKNOWN_DIM + 65536}}},
        {"string[*]", "string[*]", {SX_STRING, SX_UNKNOWN_RANK, {0}}},
        {"float32[-2]", NULL, {0}},
        {"float32[0*N]", NULL, {0}},
        {"float32[2*M]", NULL, {0}},
        {"float32[2*]", NULL, {0}},
        {"float32[-2*N]", NULL, {0}},
        {"float32[9223372036854775807*N]", NULL, {0}},
        {"float32[9223372036854775808*N]", NULL, {0}},
        {"float32[?65536]", NULL, {0}},
        {"float32[?-1]", NULL, {0}},
        {"float32[*,3]", NULL, {0}},
        {"float32[3,*]", NULL, {0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_arena arena;
        sx_lexer lexer;
        sx_type type = {0};
        char printed[SX_TYPE_TEXT];
        sx_arena_init(&arena, 0);
        sx_lexer_init(&lexer, rows[i].text, strlen(rows[i].text), &arena);
        sx_status status = sx_type_parse(&lexer, &type);
        if (rows[i].printed == NULL) {
            assert_error(status, SX_INVALID_ARGUMENT, "line 1: expected");
        } else {
            assert_ok(status);
            assert_true(sx_type_equal(&type, &rows[i].type));
            assert_string_equal(sx_type_format(&type, printed, sizeof(printed)), rows[i].printed);
        }
        sx_arena_deinit(&arena);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_text__types),
    cmocka_unit_test(test_graph_text__round_trip),
    cmocka_unit_test(test_graph_text__every_prefix_and_flip_is_survived),
    cmocka_unit_test(test_graph_text__every_character_counts),
    cmocka_unit_test(test_graph_text__errors_name_the_line),
};
SX_TEST_MAIN(tests)
