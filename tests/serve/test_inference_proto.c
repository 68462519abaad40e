/* The messages of Classify, Regress and MultiInference: which examples they have, and what is
 * answered, byte for byte. */
#include "harness.h"

#include "base/budget.h"
#include "serve/inference_proto.h"

/* A literal as bytes, with the NULs in it. */
#define BYTES(text) ((sx_bytes){(text), sizeof(text) - 1})

static void expect_examples(sx_bytes request, size_t count, const char *const *texts)
{
    sx_arena arena;
    sx_tensor examples;
    sx_arena_init(&arena, 0);
    assert_ok(sx_examples_read(request, &arena, &examples));
    assert_int_equal(examples.type.dtype, SX_STRING);
    assert_int_equal(examples.type.dims[0], count);
    for (size_t i = 0; i < count; i++) {
        const sx_bytes got = ((const sx_bytes *)examples.data)[i];
        assert_int_equal(got.size, strlen(texts[i]));
        assert_memory_equal(got.data, texts[i], got.size);
    }
    sx_arena_deinit(&arena);
}

static void test_serve_inference_proto__reads_examples(void **state)
{
    (void)state;
    static const char *const plain[] = {"ab", "", "c"};
    expect_examples(BYTES("\x12\x0b\x0a\x09\x0a\x02"
                          "ab\x0a\x00\x0a\x01"
                          "c"),
                    3, plain);
    /* With a context, after the examples or before. */
    static const char *const joined[] = {"xab", "x"};
    expect_examples(BYTES("\x12\x0b\x12\x09\x0a\x02"
                          "ab\x0a\x00\x12\x01"
                          "x"),
                    2, joined);
    expect_examples(BYTES("\x12\x0b\x12\x09\x12\x01"
                          "x\x0a\x02"
                          "ab\x0a\x00"),
                    2, joined);
    /* Two pieces of one list are merged; a list after one of the other kind replaces it. */
    static const char *const merged[] = {"a", "b"};
    expect_examples(BYTES("\x12\x0a\x0a\x03\x0a\x01"
                          "a\x0a\x03\x0a\x01"
                          "b"),
                    2, merged);
    static const char *const last[] = {"b"};
    expect_examples(BYTES("\x12\x0d\x12\x06\x0a\x01"
                          "a\x12\x01"
                          "x\x0a\x03\x0a\x01"
                          "b"),
                    1, last);
    expect_examples(BYTES("\x12\x05\x0a\x03\x0a\x01"
                          "a\x12\x05\x0a\x03\x0a\x01"
                          "b"),
                    1, last);
}

static void test_serve_inference_proto__refuses(void **state)
{
    (void)state;
    static const struct {
        sx_bytes request;
        const char *part;
    } rows[] = {
        {BYTES(""), "Input is empty."},
        {BYTES("\x12\x00"), "Input is empty."},
        {BYTES("\x12\x02\x0a\x00"), "Input is empty."},
        {BYTES("\x12\x05\x0a"), "malformed request message"},
        {BYTES("\x12\x02\x08\x01"), "malformed Input"},
        {BYTES("\x12\x04\x0a\x02\x08\x01"), "malformed Input"},
        {BYTES("\x12\x04\x0a\x02\x0a\x05"), "malformed Input"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_arena arena;
        sx_tensor examples;
        sx_arena_init(&arena, 0);
        assert_error(sx_examples_read(rows[i].request, &arena, &examples), SX_INVALID_ARGUMENT,
                     rows[i].part);
        sx_arena_deinit(&arena);
    }
}

static const char request[] = "\x0a\x18\x0a\x06\x0a\x01m\x1a\x01s\x12\x0etensorflow/ser"
                              "\x12\x0b\x12\x09\x0a\x02"
                              "ab\x0a\x00\x12\x01"
                              "x";

/* Every byte flipped, and truncated at every length: an error, or a request within its budget. */
static void test_serve_inference_proto__survives_mutants(void **state)
{
    (void)state;
    char bytes[sizeof(request)];
    for (size_t size = 0; size < sizeof(request); size++) {
        for (int bit = -1; bit < 8; bit++) {
            sx_arena arena;
            sx_budget budget;
            sx_tensor examples;
            sx_predict_spec spec;
            sx_inference_task *tasks;
            size_t count;
            memcpy(bytes, request, sizeof(request));
            if (bit >= 0) {
                bytes[size] = (char)(bytes[size] ^ 1 << bit);
            }
            const sx_bytes mutant = {bytes, bit >= 0 ? sizeof(request) - 1 : size};
            sx_budget_init(&budget, "one request", 1 << 20, NULL);
            sx_arena_init(&arena, 0);
            arena.budget = &budget;
            sx_status_free(sx_inference_first_spec(mutant, &spec));
            sx_status_free(sx_inference_tasks_read(mutant, &arena, &tasks, &count));
            sx_status_free(sx_examples_read(mutant, &arena, &examples));
            assert_true(sx_budget_used(&budget) <= 1 << 20);
            sx_arena_deinit(&arena);
        }
    }
}

static void test_serve_inference_proto__reads_tasks(void **state)
{
    (void)state;
    sx_arena arena;
    sx_inference_task *tasks = NULL;
    sx_predict_spec spec;
    size_t count = 0;
    sx_arena_init(&arena, 0);
    const sx_bytes two = BYTES("\x0a\x0b\x0a\x06\x0a\x01m\x1a\x01s\x12\x01r\x12\x00\x0a\x00");
    assert_ok(sx_inference_tasks_read(two, &arena, &tasks, &count));
    assert_int_equal(count, 2);
    assert_memory_equal(tasks[0].spec.name.data, "m", 1);
    assert_memory_equal(tasks[0].spec.signature.data, "s", 1);
    assert_memory_equal(tasks[0].method.data, "r", 1);
    assert_int_equal(tasks[1].spec.name.size, 0);
    assert_int_equal(tasks[1].spec.version, -1);
    assert_int_equal(tasks[1].method.size, 0);
    assert_ok(sx_inference_first_spec(two, &spec));
    assert_int_equal(spec.name.size, 1);
    assert_ok(sx_inference_first_spec((sx_bytes){"", 0}, &spec));
    assert_int_equal(spec.name.size, 0);
    assert_error(sx_inference_tasks_read(BYTES("\x08\x01"), &arena, &tasks, &count),
                 SX_INVALID_ARGUMENT, "malformed MultiInferenceRequest");
    assert_error(sx_inference_tasks_read(BYTES("\x0a\x02\x10\x01"), &arena, &tasks, &count),
                 SX_INVALID_ARGUMENT, "malformed InferenceTask");
    sx_arena_deinit(&arena);
}

static void expect_bytes(sx_buf *got, sx_bytes want)
{
    assert_int_equal(got->size, want.size);
    assert_memory_equal(got->data, want.data, want.size);
    sx_buf_reset(got);
}

/* No zeros are written, but -0 is. */
static void test_serve_inference_proto__prints(void **state)
{
    (void)state;
    static const sx_bytes labels[] = {{"a", 1}, {"", 0}};
    static const float scores[] = {0.5f, 0, -0.0f, 2};
    const sx_predict_spec spec = {.name = {"m", 1}, .version = 2, .signature = {"s", 1}};
    sx_inference_result result = {SX_CLASSIFY, 1, 2, labels, scores};
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_inference_print(&result, &spec, &out);
    expect_bytes(&out, BYTES("\x0a\x0e\x0a\x0c\x0a\x08\x0a\x01"
                             "a\x15\x00\x00\x00\x3f\x0a\x00\x12\x0a\x0a\x01m\x12\x02\x08\x02\x1a"
                             "\x01s"));
    result = (sx_inference_result){SX_REGRESS, 4, 1, NULL, scores};
    sx_inference_print_task(&result, &spec, &out);
    expect_bytes(&out, BYTES("\x0a\x25\x0a\x0a\x0a\x01m\x12\x02\x08\x02\x1a\x01s\x1a\x17\x0a\x05"
                             "\x0d\x00\x00\x00\x3f\x0a\x00\x0a\x05\x0d\x00\x00\x00\x80\x0a\x05\x0d"
                             "\x00\x00\x00\x40"));
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_inference_proto__reads_examples),
    cmocka_unit_test(test_serve_inference_proto__refuses),
    cmocka_unit_test(test_serve_inference_proto__survives_mutants),
    cmocka_unit_test(test_serve_inference_proto__reads_tasks),
    cmocka_unit_test(test_serve_inference_proto__prints),
};

SX_TEST_MAIN(tests)
