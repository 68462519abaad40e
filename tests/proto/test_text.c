#include "torture.h"

#include <math.h>

#include "proto/checkpoint_state.pb-c.h"
#include "proto/guard.h"
#include "proto/node_def.pb-c.h"
#include "proto/tensor.pb-c.h"
#include "proto/text_format.h"

static const ProtobufCMessageDescriptor *const state_type =
    &tensorflow__checkpoint_state__descriptor;
static const ProtobufCMessageDescriptor *const node_type = &tensorflow__node_def__descriptor;
static const ProtobufCMessageDescriptor *const tensor_type = &tensorflow__tensor_proto__descriptor;

static sx_status parse(const ProtobufCMessageDescriptor *type, const char *text,
                       ProtobufCMessage **out)
{
    return sx_text_format_parse(type, (sx_bytes){text, strlen(text)}, "t", out);
}

/* Parses `text` and prints it; the result must be `want`. */
static void check_print(const ProtobufCMessageDescriptor *type, const char *text, const char *want)
{
    ProtobufCMessage *message = NULL;
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_ok(parse(type, text, &message));
    assert_ok(sx_text_format_print(message, &out));
    assert_string_equal(sx_buf_text(&out), want);
    sx_buf_deinit(&out);
    sx_proto_free(message);
}

static void test_proto_text__checkpoint_state(void **state)
{
    (void)state;
    static const char text[] = "model_checkpoint_path: \"ckpt-2\"\n"
                               "all_model_checkpoint_paths: \"ckpt-1\"\n"
                               "all_model_checkpoint_paths: \"ckpt-2\"\n"
                               "all_model_checkpoint_timestamps: 1700000000.5\n"
                               "all_model_checkpoint_timestamps: 1700000100.5\n"
                               "last_preserved_timestamp: 1700000000\n";
    check_print(state_type, text, text);
    ProtobufCMessage *message = NULL;
    assert_ok(parse(state_type, text, &message));
    Tensorflow__CheckpointState *s = (Tensorflow__CheckpointState *)message;
    assert_string_equal(s->model_checkpoint_path, "ckpt-2");
    assert_int_equal(s->n_all_model_checkpoint_paths, 2);
    assert_true(s->all_model_checkpoint_timestamps[1] == 1700000100.5);
    sx_proto_free(message);
}

static void test_proto_text__accepts_the_whole_syntax(void **state)
{
    (void)state;
    check_print(node_type,
                "# a comment\nname:'a' \"b\"\n\"c\", op : \"x\"; input: [\"i\", 'j'] input:\"k\""
                "attr:{key:\"T\" value<type:DT_FLOAT>}attr{key:\"A\"value{list{i:[1,0x10,010,-3]"
                "f:1.5f f:-inf b:[true,f,True,1] type:3 type:[DT_STRING, -7] s:'\\377\\x41\\n'}}}"
                "attr { key: 'z' }",
                "name: \"abc\"\nop: \"x\"\ninput: \"i\"\ninput: \"j\"\ninput: \"k\"\n"
                "attr {\n  key: \"A\"\n  value {\n    list {\n      s: \"\\377A\\n\"\n      i: 1\n"
                "      i: 16\n      i: 8\n      i: -3\n      f: 1.5\n      f: -inf\n      b: true\n"
                "      b: false\n      b: true\n      b: true\n      type: DT_INT32\n"
                "      type: DT_STRING\n      type: -7\n    }\n  }\n}\n"
                "attr {\n  key: \"T\"\n  value {\n    type: DT_FLOAT\n  }\n}\n"
                "attr {\n  key: \"z\"\n  value {\n  }\n}\n");
    check_print(node_type, "", "");
    check_print(node_type, "input: []", "");
    check_print(tensor_type, "tensor_shape {}", "tensor_shape {\n}\n");
    check_print(tensor_type, "tensor_shape: { dim [{size: 2}, <size: -1>] unknown_rank: false }",
                "tensor_shape {\n  dim {\n    size: 2\n  }\n  dim {\n    size: -1\n  }\n}\n");
}

static void test_proto_text__strings(void **state)
{
    (void)state;
    check_print(node_type, "name: \"\\a\\b\\f\\n\\r\\t\\v\\'\\\"\\\\\\?\"",
                "name: \"\\007\\010\\014\\n\\r\\t\\013\\'\\\"\\\\?\"\n");
    check_print(node_type, "name: \"\\u00e9\\U0001F33B\xe2\x82\xac\"",
                "name: \"\\303\\251\\360\\237\\214\\273\\342\\202\\254\"\n");
    check_print(tensor_type, "tensor_content: \"\\0\\1234\\x7F\"",
                "tensor_content: \"\\000S4\\177\"\n");
}

static void test_proto_text__numbers_read_back(void **state)
{
    (void)state;
    ProtobufCMessage *message = NULL;
    assert_ok(parse(tensor_type,
                    "float_val: [0.1, 1e-45, 3.4028235e+38, .5, 1E+2, nan, 16777217, 1.]"
                    "double_val: [0.1, 1e-320, -1.7976931348623157e308, Infinity]"
                    "int64_val: [9223372036854775807, -9223372036854775808]"
                    "uint64_val: 0xffffffffffffffff int_val: [-2147483648, 2147483647]",
                    &message));
    Tensorflow__TensorProto *t = (Tensorflow__TensorProto *)message;
    assert_true(t->float_val[0] == 0.1f && t->float_val[1] == 0x1p-149f);
    assert_true(t->float_val[2] == 0x1.fffffep127f && t->float_val[3] == 0.5f);
    assert_true(t->float_val[4] == 100.0f && isnan(t->float_val[5]) && t->float_val[7] == 1.0f);
    assert_true(t->double_val[0] == 0.1 && isinf(t->double_val[3]));
    assert_true(t->int64_val[0] == INT64_MAX && t->int64_val[1] == INT64_MIN);
    assert_true(t->uint64_val[0] == UINT64_MAX && t->int_val[0] == INT32_MIN);
    sx_buf text, again;
    sx_buf_init(&text, 0);
    sx_buf_init(&again, 0);
    assert_ok(sx_text_format_print(message, &text));
    sx_proto_free(message);
    assert_non_null(strstr(text.data, "float_val: 0.1\nfloat_val: 1.4013e-45\n"));
    assert_ok(parse(tensor_type, text.data, &message));
    assert_ok(sx_text_format_print(message, &again));
    assert_string_equal(again.data, text.data);
    sx_proto_free(message);
    sx_buf_deinit(&again);
    sx_buf_deinit(&text);
}

static void test_proto_text__errors_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"name: \"a\"\n  colour: 1", "t:2:3: NodeDef has no field 'colour'"},
        {"name \"a\"", "t:1:6: expected ':' after name"},
        {"name: 5", "t:1:7: name: expected a quoted string"},
        {"name: \"a", "t:1:9: unterminated string"},
        {"name: \"a\nb\"", "t:1:9: unterminated string: missing \" before"},
        {"name: \"\\q\"", "escape"},
        {"name: \"\\400\"", "escape"},
        {"name: \"\\U00110000\"", "escape"},
        {"name: \"\\x\"", "escape"},
        {"name: \"a\" name: \"b\"", "name is given twice"},
        {"attr { value { i: 1 f: 2 } }", "f is given after i of the same oneof"},
        {"attr { value { i: 1.5 } }", "t:1:19: i: expected an integer, got '1.5'"},
        {"attr { value { i: 9223372036854775808 } }", "9223372036854775808 is out of range for i"},
        {"attr { value { f: fast } }", "f: expected a number, got 'fast'"},
        {"attr { value { f: 1.5x } }", "f: expected a number, got '1.5x'"},
        {"attr { value { f: x } }", "f: expected a number, got 'x'"},
        {"attr { value { f: infx } }", "f: expected a number, got 'infx'"},
        {"attr { value { f: f } }", "f: expected a number, got 'f'"},
        {"attr { value { f: . } }", "f: expected a number"},
        {"attr { value { f: 1ff } }", "f: expected a number, got '1ff'"},
        {"attr { value { f: } }", "expected"},
        {"attr { value { b: } }", "expected"},
        {"attr { value { b: TRUE } }", "b: expected true or false, got 'TRUE'"},
        {"attr { value { list { b: [true, } } }", "expected"},
        {"attr { value { list { i: [1, x] } } }", "i: expected an integer, got 'x'"},
        {"attr { value { list { i: [1,] } } }", "expected"},
        {"attr { value { list { i: [1 2] } } }", "expected ',' or ']'"},
        {"attr { value { b: 2 } }", "b: expected true or false, got '2'"},
        {"attr { value { type: DT_WORD } }", "'DT_WORD' is not a value of DataType"},
        {"attr { value { type: 2147483648 } }", "out of range"},
        {"attr { value: 5 }", "value is a message: expected '{'"},
        {"attr { key: \"a\"", "unterminated AttrEntry: expected '}'"},
        {"attr { key: \"a\" >", "expected a name"},
        {"input: [\"a\" \"b\"; ]", "expected ',' or ']'"},
        {"[ext]: 1", "extensions"},
        {"}", "expected a name"},
        {"name:", "name: expected a quoted string"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ProtobufCMessage *message = NULL;
        assert_error(parse(node_type, rows[i].text, &message), SX_INVALID_ARGUMENT, rows[i].says);
    }
    ProtobufCMessage *message = NULL;
    assert_error(sx_text_format_parse(node_type, (sx_bytes){"\0", 1}, "t", &message),
                 SX_INVALID_ARGUMENT, "expected a field");
    assert_error(parse(node_type, "name: '\\377'", &message), SX_DATA_LOSS, "not UTF-8");
    assert_error(parse(node_type, "name: '\\0'", &message), SX_DATA_LOSS, "NUL");
}

static void test_proto_text__depth(void **state)
{
    (void)state;
    sx_buf text;
    sx_buf_init(&text, 0);
    for (int i = 0; i < 200; i++) {
        sx_buf_puts(&text, "attr{value{func{");
    }
    ProtobufCMessage *message = NULL;
    assert_error(parse(node_type, text.data, &message), SX_INVALID_ARGUMENT, "100 levels");
    sx_buf_deinit(&text);
}

static void test_proto_text__flips_and_cuts(void **state)
{
    (void)state;
    char text[] = "name:'a\\n' attr{key:\"A\"value{list{i:[1,0x1]f:-1e5 b:true type:DT_INT8}}}";
    size_t size = sizeof text - 1, good = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        for (size_t cut = bit == 0 ? 0 : size; cut <= size; cut++) {
            ProtobufCMessage *message = NULL;
            sx_status status =
                sx_text_format_parse(node_type, (sx_bytes){text, cut}, "t", &message);
            good += status == SX_OK;
            sx_proto_free(message);
            sx_status_free(status);
        }
        text[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_in_range(good, 20, 8 * size);
}

static sx_status parse_and_print(void *user)
{
    (void)user;
    ProtobufCMessage *message = NULL;
    SX_TRY(parse(node_type, "name: 'a' input: ['b', 'c'] attr { key: 'k' }", &message));
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_status status = sx_text_format_print(message, &out);
    sx_buf_deinit(&out);
    sx_proto_free(message);
    return status;
}

static void test_proto_text__survives_failing_allocations(void **state)
{
    (void)state;
    assert_in_range(sx_torture(parse_and_print, NULL), 10, 100);
}

/* A token as long as the limit is read, one byte more is refused. */
static void test_proto_text__bounds_tokens(void **state)
{
    (void)state;
    for (int digits = 100; digits < 200; digits++) {
        char text[300];
        ProtobufCMessage *message = NULL;
        snprintf(text, sizeof text, "int64_val: %0*d", digits, 7);
        sx_status status = parse(tensor_type, text, &message);
        if (digits < 128) {
            assert_ok(status);
            assert_int_equal(((Tensorflow__TensorProto *)message)->int64_val[0], 7);
            sx_proto_free(message);
        } else {
            assert_error(status, SX_INVALID_ARGUMENT, "t:1:");
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_proto_text__checkpoint_state),
    cmocka_unit_test(test_proto_text__accepts_the_whole_syntax),
    cmocka_unit_test(test_proto_text__strings),
    cmocka_unit_test(test_proto_text__numbers_read_back),
    cmocka_unit_test(test_proto_text__errors_say_where),
    cmocka_unit_test(test_proto_text__depth),
    cmocka_unit_test(test_proto_text__flips_and_cuts),
    cmocka_unit_test(test_proto_text__survives_failing_allocations),
    cmocka_unit_test(test_proto_text__bounds_tokens),
};
SX_TEST_MAIN(tests)
