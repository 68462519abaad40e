/* REST classify and regress: what JSON becomes as Examples, and what is refused. */
#include "harness.h"

#include "base/budget.h"
#include "proto/example.h"
#include "serve/inference_json.h"

static sx_status parse(const char *text, sx_arena *arena, sx_inference_request *out)
{
    return sx_inference_parse((sx_bytes){text, strlen(text)}, arena, out);
}

/* Example `i` of a request, parsed. */
static void example_of(const sx_inference_request *request, size_t i, sx_example *out)
{
    assert_ok(sx_example_parse(out, ((const sx_bytes *)request->examples.data)[i]));
}

static void test_serve_inference_json__writes_features(void **state)
{
    (void)state;
    sx_arena arena;
    sx_inference_request request;
    sx_example example;
    int64_t ints[4];
    float floats[4];
    sx_bytes texts[4];
    sx_arena_init(&arena, 0);
    sx_example_init(&example);
    assert_ok(parse("{\"examples\": [{\"i\": [1, -2, 9223372036854775807], \"f\": [1.5, 1e3, NaN], "
                    "\"b\": [\"a\\u00e4\", {\"b64\": \"AP8=\"}], \"t\": true, \"none\": [], "
                    "\"big\": 1180591620717411303424}, {}], \"signature_name\": \"s\", \"x\": [1]}",
                    &arena, &request));
    assert_int_equal(request.examples.type.dims[0], 2);
    assert_memory_equal(request.signature.data, "s", 1);
    example_of(&request, 0, &example);
    assert_int_equal(example.count, 6);
    assert_int_equal(sx_feature_ints(sx_example_find(&example, "i"), ints, 4), 3);
    assert_true(ints[0] == 1 && ints[1] == -2 && ints[2] == INT64_MAX);
    assert_int_equal(sx_feature_floats(sx_example_find(&example, "f"), floats, 4), 3);
    assert_true(floats[0] == 1.5f && floats[1] == 1000 && floats[2] != floats[2]);
    assert_int_equal(sx_feature_bytes(sx_example_find(&example, "b"), texts, 4), 2);
    assert_int_equal(texts[0].size, 3);
    assert_memory_equal(texts[0].data, "a\xc3\xa4", 3);
    assert_int_equal(texts[1].size, 2);
    assert_memory_equal(texts[1].data, "\0\xff", 2);
    assert_int_equal(sx_feature_ints(sx_example_find(&example, "t"), ints, 4), 1);
    assert_int_equal(ints[0], 1);
    assert_int_equal(sx_example_find(&example, "none")->kind, SX_FEATURE_EMPTY);
    assert_int_equal(sx_feature_floats(sx_example_find(&example, "big"), floats, 4), 1);
    assert_true(floats[0] == 0x1p70f);
    example_of(&request, 1, &example);
    assert_int_equal(example.count, 0);
    sx_example_deinit(&example);
    sx_arena_deinit(&arena);
}

/* The context may come after the examples; an example's own features count. */
static void test_serve_inference_json__merges_the_context(void **state)
{
    (void)state;
    sx_arena arena;
    sx_inference_request request;
    sx_example example;
    int64_t value = 0;
    sx_arena_init(&arena, 0);
    sx_example_init(&example);
    assert_ok(parse("{\"examples\": [{\"a\": 1}, {\"b\": 2}], \"context\": {\"a\": 3}}", &arena,
                    &request));
    assert_int_equal(request.signature.size, 0);
    example_of(&request, 0, &example);
    assert_int_equal(example.count, 1);
    assert_ok(sx_example_get_int(&example, "a", &value));
    assert_int_equal(value, 1);
    example_of(&request, 1, &example);
    assert_ok(sx_example_get_int(&example, "a", &value));
    assert_int_equal(value, 3);
    assert_ok(sx_example_get_int(&example, "b", &value));
    assert_int_equal(value, 2);
    sx_example_deinit(&example);
    sx_arena_deinit(&arena);
}

static void test_serve_inference_json__refuses(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "The document is empty"},
        {"[]", "JSON Parse error"},
        {"{}", "key 'examples' is expected and was not found"},
        {"{\"examples\": [{}], \"examples\": [{}]}", "'examples' key is given twice"},
        {"{\"examples\": [{}], \"context\": {}, \"context\": {}}", "'context' key is given twice"},
        {"{\"examples\": {}}", "value to be an list/array"},
        {"{\"examples\": []}", "is an empty array"},
        {"{\"examples\": [3]}", "got JSON Number"},
        {"{\"examples\": [{}], \"context\": null}", "got JSON Null"},
        {"{\"examples\": [{\"a\": [1, 2.0]}]}", "feature: a expecting type: int64"},
        {"{\"examples\": [{\"a\": [\"x\", true]}]}", "feature: a expecting type: bytes"},
        {"{\"examples\": [{\"a\": [[1]]}]}", "unexpected JSON type: Array"},
        {"{\"examples\": [{\"a\": {\"b64\": \"AA==\", \"c\": 1}}]}",
         "unexpected JSON type: Object"},
        {"{\"examples\": [{\"a\": {\"b64\": 1}}]}", "unexpected JSON type: Object"},
        {"{\"examples\": [{\"a\": 9223372036854775808}]}", "has uint64_t element"},
        {"{\"examples\": [{\"a\": 1e39}]}", "Number too big"},
        {"{\"examples\": [{\"a\": 01}]}", "JSON Parse error"},
        {"{\"examples\": [{}]} {}", "JSON Parse error"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        sx_arena arena;
        sx_inference_request request;
        sx_arena_init(&arena, 0);
        assert_error(parse(texts[i][0], &arena, &request), SX_INVALID_ARGUMENT, texts[i][1]);
        sx_arena_deinit(&arena);
    }
}

/* A long context for many examples is held as often as there are examples: within the budget. */
static void test_serve_inference_json__keeps_to_the_budget(void **state)
{
    (void)state;
    sx_arena arena;
    sx_inference_request request;
    sx_budget budget;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "{\"context\": {\"a\": \"");
    for (int i = 0; i < 4000; i++) {
        sx_buf_puts(&text, "x");
    }
    sx_buf_puts(&text, "\"}, \"examples\": [{}");
    for (int i = 0; i < 4000; i++) {
        sx_buf_puts(&text, ",{}");
    }
    sx_buf_puts(&text, "]}");
    sx_budget_init(&budget, "one request", 1 << 20, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    assert_error(parse(sx_buf_text(&text), &arena, &request), SX_RESOURCE_EXHAUSTED, "example");
    sx_arena_deinit(&arena);
    assert_int_equal(sx_budget_used(&budget), 0);
    sx_buf_deinit(&text);
}

static void test_serve_inference_json__prints(void **state)
{
    (void)state;
    static const sx_bytes labels[] = {{"a", 1}, {"\"b", 2}, {"c", 1}, {"", 0}};
    static const float scores[] = {0.5f, -1, 1e10f, 0.1f};
    sx_inference_result result = {SX_CLASSIFY, 2, 2, labels, scores};
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_ok(sx_inference_print_json(&result, SX_FLOAT_TFS, NULL, &out));
    assert_string_equal(sx_buf_text(&out),
                        "{\n    \"results\": [[[\"a\", 0.5], [\"\\\"b\", -1.0]], "
                        "[[\"c\", 1e+10], [\"\", 0.1]]\n    ]\n}");
    sx_buf_reset(&out);
    result = (sx_inference_result){SX_REGRESS, 3, 1, NULL, scores};
    assert_ok(sx_inference_print_json(&result, SX_FLOAT_TFS, NULL, &out));
    assert_string_equal(sx_buf_text(&out), "{\n    \"results\": [0.5, -1.0, 1e+10]\n}");
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_inference_json__writes_features),
    cmocka_unit_test(test_serve_inference_json__merges_the_context),
    cmocka_unit_test(test_serve_inference_json__refuses),
    cmocka_unit_test(test_serve_inference_json__keeps_to_the_budget),
    cmocka_unit_test(test_serve_inference_json__prints),
};

SX_TEST_MAIN(tests)
