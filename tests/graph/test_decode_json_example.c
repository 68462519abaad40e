/* decode_json_example at the edges of its grammar, as TensorFlow 2.21 has them: what is null is not
 * there, and what a number's text has besides a number is refused. */
#include "harness.h"

#include "graph/host.h"
#include "proto/example.h"

typedef struct answer {
    const char *text;
    const char *hex; /* of the Example; NULL: it is refused */
} answer;

#define IN(list, value) "{\"features\":{\"feature\":{\"a\":{\"" list "\":" value "}}}}"
#define INTEGERS(value) IN("int64List", "{\"value\":[" value "]}")
#define FLOATS(value)   IN("floatList", "{\"value\":[" value "]}")

static void check(const answer *a)
{
    sx_arena arena;
    sx_bytes text = {a->text, strlen(a->text)}, record = {NULL, 0};
    char scratch[256] __attribute__((aligned(16))), hex[128] = "";
    const sx_tensor x = {sx_type_of(SX_STRING, 1), &text}, y = {sx_type_of(SX_STRING, 1), &record};
    sx_arena_init(&arena, 0);
    sx_status status =
        sx_host_run(sx_op_find("decode_json_example"), NULL, &x, 1, &y, 1, scratch, &arena);
    if (a->hex == NULL) {
        assert_error(status, SX_INVALID_ARGUMENT, "is no Example in JSON");
    } else {
        assert_ok(status);
        assert_true(2 * record.size < sizeof(hex));
        for (size_t i = 0; i < record.size; i++) {
            snprintf(hex + 2 * i, 3, "%02x", ((const uint8_t *)record.data)[i]);
        }
        assert_string_equal(hex, a->hex);
    }
    sx_arena_deinit(&arena);
}

static void test_graph_decode_json_example__edges(void **state)
{
    (void)state;
    static const answer answers[] = {
        {"{}", ""},
        {"null", NULL},
        {"", NULL},
        {"{\"features\":null}", ""},
        {"{\"features\":{\"feature\":null}}", "0a00"},
        {IN("bytesList", "null"), "0a070a050a01611200"},
        {IN("bytesList", "{\"value\":null}"), "0a090a070a016112020a00"},
        {"{\"features\":{\"feature\":{\"a\":{\"int64List\":{\"value\":[1]},\"floatList\":null}}}}",
         "0a0b0a090a016112041a020801"},
        {"{\"features\":{\"feature\":{\"\xff\":{}}}}", NULL},
        {INTEGERS("\"1\\u0000\""), NULL},
        {INTEGERS("\"\\u0000\""), NULL},
        {INTEGERS("\" 1\""), NULL},
        {INTEGERS("\"1 \""), NULL},
        {INTEGERS("\"\""), NULL},
        {INTEGERS("\"1.5\""), NULL},
        {INTEGERS("9223372036854775808"), NULL},
        {INTEGERS("1e30"), NULL},
        {INTEGERS("\"1e2\""), "0a0b0a090a016112041a020864"},
        {FLOATS("\"NaN\""), "0a0e0a0c0a0161120712050d0000c07f"},
        {FLOATS("\"NaN\\u0000x\""), NULL},
        {FLOATS("\"-Infinity\""), "0a0e0a0c0a0161120712050d000080ff"},
        {FLOATS("NaN"), NULL},
        {FLOATS("\"1\\u0000\""), NULL},
        {FLOATS("1e39"), NULL},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        check(&answers[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_decode_json_example__edges),
};
SX_TEST_MAIN(tests)
