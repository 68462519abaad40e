#include "harness.h"

#include <sextant/complex.h>
#include <math.h>

#include "base/checked.h"
#include "base/threefry.h"
#include "serve/predict_json.h"
#include "serve/predict_slot.h"
#include "base/shortest.h"

/* ---- Signatures ---- */

#define TENSOR(name_, dtype_, ...)                                             \
    {                                                                          \
        .name = (name_), .tensor_name = "t:0", .type = {                       \
            .dtype = (dtype_),                                                 \
            .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
            .dims = {__VA_ARGS__}                                              \
        }                                                                      \
    }

static const sx_serve_tensor floats[] = {TENSOR("x", SX_F32, SX_BATCH, 2)};
static const sx_serve_tensor doubles[] = {TENSOR("x", SX_F64, SX_BATCH)};
static const sx_serve_tensor anything[] = {
    {.name = "x", .type = {.dtype = SX_F32}, .unknown_rank = true}};
static const sx_serve_tensor bytes8[] = {TENSOR("x", SX_U8, SX_BATCH)};
static const sx_serve_tensor ints16[] = {TENSOR("x", SX_I16, SX_BATCH)};
static const sx_serve_tensor longs[] = {TENSOR("x", SX_I64, SX_BATCH)};
static const sx_serve_tensor ulongs[] = {TENSOR("x", SX_U64, SX_BATCH)};
static const sx_serve_tensor bools[] = {TENSOR("x", SX_BOOL, SX_BATCH)};
static const sx_serve_tensor halves[] = {TENSOR("x", SX_F16, SX_BATCH)};
static const sx_serve_tensor strings[] = {TENSOR("image_bytes", SX_STRING, SX_BATCH)};
static const sx_serve_tensor pair[] = {TENSOR("a", SX_F32, SX_BATCH),
                                       TENSOR("b", SX_I32, SX_BATCH, 2)};

#define SIGNATURE(name_, tensors)                                              \
    {                                                                          \
        .name = (name_), .input_count = SX_COUNT(tensors), .inputs = (tensors) \
    }

static const sx_serve_signature signatures[] = {
    SIGNATURE("serving_default", floats),
    SIGNATURE("doubles", doubles),
    SIGNATURE("any", anything),
    SIGNATURE("u8", bytes8),
    SIGNATURE("i16", ints16),
    SIGNATURE("i64", longs),
    SIGNATURE("u64", ulongs),
    SIGNATURE("bool", bools),
    SIGNATURE("f16", halves),
    SIGNATURE("text", strings),
    SIGNATURE("pair", pair),
};

/* A parsed text with what it lives in. */
struct parsed {
    sx_arena arena;
    sx_predict_slots slots;
    sx_predict_request request;
};

static sx_status parse_bytes(struct parsed *p, const char *text, size_t size)
{
    sx_arena_init(&p->arena, 0);
    sx_predict_slots_init(&p->slots);
    return sx_predict_parse((sx_bytes){text, size}, signatures, SX_COUNT(signatures), &p->arena,
                            &p->slots, &p->request);
}

static void parse(struct parsed *p, const char *text)
{
    assert_ok(parse_bytes(p, text, strlen(text)));
}

static void done(struct parsed *p)
{
    sx_predict_slots_deinit(&p->slots);
    sx_arena_deinit(&p->arena);
}

static void assert_shape(const struct parsed *p, int input, const char *expected)
{
    char text[SX_TYPE_TEXT];
    assert_string_equal(sx_type_format(&p->request.inputs[input].type, text, sizeof(text)),
                        expected);
}

/* ---- Accepted ---- */

static void test_serve_predict_json__rows(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, " {\"instances\" : [[1, 2.5] ,\n[-3e2,\t0.1]]} ");
    assert_true(p.request.row);
    assert_string_equal(p.request.signature->name, "serving_default");
    assert_shape(&p, 0, "float32[2,2]");
    const float wanted[] = {1, 2.5f, -300, 0.1f};
    assert_memory_equal(p.request.inputs[0].data, wanted, sizeof(wanted));
    done(&p);
    parse(&p, "{\"signature_name\":\"pair\",\"instances\":[{\"a\":1,\"b\":[2,3]},"
              "{\"b\":[4,5],\"a\":6}]}");
    assert_shape(&p, 0, "float32[2]");
    assert_shape(&p, 1, "int32[2,2]");
    const float a[] = {1, 6};
    const int32_t b[] = {2, 3, 4, 5};
    assert_memory_equal(p.request.inputs[0].data, a, sizeof(a));
    assert_memory_equal(p.request.inputs[1].data, b, sizeof(b));
    done(&p);
    parse(&p, "{\"instances\":[{\"x\":[1,2]},{\"x\":[3,4]}]}"); /* one input may be named */
    assert_shape(&p, 0, "float32[2,2]");
    done(&p);
}

static void test_serve_predict_json__columns(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, "{\"inputs\": [[1,2],[3,4],[5,6]]}");
    assert_false(p.request.row);
    assert_shape(&p, 0, "float32[3,2]");
    done(&p);
    parse(&p, "{\"inputs\": {\"b\": [[1,2]], \"a\": [7,8,9], \"unknown\": [{\"z\":[null]}]},"
              "\"signature_name\": \"pair\"}");
    assert_shape(&p, 0, "float32[3]"); /* 0-th dimensions may differ */
    assert_shape(&p, 1, "int32[1,2]");
    done(&p);
    parse(&p, "{\"signature_name\":\"any\",\"inputs\": 3}");
    assert_shape(&p, 0, "float32[]");
    done(&p);
    parse(&p, "{\"signature_name\":\"any\",\"inputs\": {\"x\": [[[1],[2]],[[3],[4]]]}}");
    assert_shape(&p, 0, "float32[2,2,1]");
    done(&p);
    parse(&p,
          "{\"signature_name\":\"any\",\"inputs\": [[[1,2],[3,NaN],[5,6]],[[7,8],[9e0,1],[2,3]]]}");
    assert_shape(&p, 0, "float32[2,3,2]");
    const float pixels[] = {1, 2, 3, NAN, 5, 6, 7, 8, 9, 1, 2, 3};
    assert_memory_equal(p.request.inputs[0].data, pixels, sizeof(pixels));
    done(&p);
    parse(&p, "{\"signature_name\":\"any\",\"inputs\": [[],[]]}");
    assert_shape(&p, 0, "float32[2,0]");
    done(&p);
}

/* The name may come after the values, and the default signature need not fit them. */
static void test_serve_predict_json__late_signature_name(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, "{\"instances\":[\"a\",\"b\"],\"other\":{},\"signature_name\":\"text\"}");
    assert_string_equal(p.request.signature->name, "text");
    assert_shape(&p, 0, "string[2]");
    done(&p);
    parse(&p, "{\"instances\":[[1,2]],\"signature_name\":\"any\"}"); /* read twice */
    assert_string_equal(p.request.signature->name, "any");
    assert_shape(&p, 0, "float32[1,2]");
    done(&p);
    parse(&p, "{\"instances\":[[1,2]],\"signature_name\":\"\"}");
    assert_string_equal(p.request.signature->name, "serving_default");
    done(&p);
}

static void assert_bytes(const sx_tensor *tensor, size_t index, const char *expected, size_t size)
{
    const sx_bytes got = ((const sx_bytes *)tensor->data)[index];
    assert_int_equal(got.size, size);
    assert_memory_equal(got.data, expected, size);
}

static void test_serve_predict_json__strings(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, "{\"signature_name\":\"text\",\"instances\":[\"plain\",{\"b64\":\"AAEC/w==\"},"
              "\"\\u00e9\\n\\ud83d\\ude00\\/\",\"\",{ \"b64\" : \"\" },\"\xc3\xa9\"]}");
    assert_shape(&p, 0, "string[6]");
    assert_bytes(&p.request.inputs[0], 0, "plain", 5);
    assert_bytes(&p.request.inputs[0], 1, "\0\1\2\xff", 4);
    assert_bytes(&p.request.inputs[0], 2, "\xc3\xa9\n\xf0\x9f\x98\x80/", 8);
    assert_bytes(&p.request.inputs[0], 3, "", 0);
    assert_bytes(&p.request.inputs[0], 4, "", 0);
    assert_bytes(&p.request.inputs[0], 5, "\xc3\xa9", 2);
    done(&p);
    parse(&p, "{\"signature_name\":\"text\",\"instances\":[{\"image_bytes\":{\"b64\":\"YQ==\"}}]}");
    assert_bytes(&p.request.inputs[0], 0, "a", 1);
    done(&p);
    parse(&p, "{\"signature_name\":\"text\",\"inputs\":{\"image_bytes\":[{\"b64\":\"YQ\"}]}}");
    assert_bytes(&p.request.inputs[0], 0, "a", 1);
    done(&p);
}

static void test_serve_predict_json__number_types(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, "{\"signature_name\":\"doubles\",\"inputs\":[NaN,Infinity,-Infinity,0.1,1]}");
    const double *d = p.request.inputs[0].data;
    assert_true(isnan(d[0]) && d[1] == INFINITY && d[2] == -INFINITY && d[3] == 0.1 && d[4] == 1);
    done(&p);
    parse(&p, "{\"signature_name\":\"i16\",\"inputs\":[-32768,32767,-1]}");
    const int16_t i16[] = {-32768, 32767, -1};
    assert_memory_equal(p.request.inputs[0].data, i16, sizeof(i16));
    done(&p);
    parse(&p, "{\"signature_name\":\"u8\",\"inputs\":[0,255]}");
    const uint8_t u8[] = {0, 255};
    assert_memory_equal(p.request.inputs[0].data, u8, sizeof(u8));
    done(&p);
    parse(&p, "{\"signature_name\":\"i64\",\"inputs\":[-9223372036854775808]}");
    assert_true(*(const int64_t *)p.request.inputs[0].data == INT64_MIN);
    done(&p);
    parse(&p, "{\"signature_name\":\"u64\",\"inputs\":[18446744073709551615]}");
    assert_true(*(const uint64_t *)p.request.inputs[0].data == UINT64_MAX);
    done(&p);
    parse(&p, "{\"signature_name\":\"bool\",\"inputs\":[true,false]}");
    assert_memory_equal(p.request.inputs[0].data, "\1\0", 2);
    done(&p);
}

/* A slot is used again by a smaller and a larger request. */
static void test_serve_predict_json__reuses_slots(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, "{\"instances\":[[1,2],[3,4],[5,6]]}");
    for (int i = 0; i < 3; i++) {
        static const char *const texts[] = {"{\"instances\":[[1,2]]}",
                                            "{\"instances\":[[1,2],[3,4],[5,6],[7,8],[9,10]]}",
                                            ("{\"signature_name\":\"pair\",\"instances\":"
                                             "[{\"a\":1,\"b\":[1,2]}]}")};
        assert_ok(sx_predict_parse((sx_bytes){texts[i], strlen(texts[i])}, signatures,
                                   SX_COUNT(signatures), &p.arena, &p.slots, &p.request));
    }
    assert_shape(&p, 1, "int32[1,2]");
    sx_predict_slots_trim(&p.slots);
    done(&p);
}

/* A small request, which may wait for long, does not hold what a large one has left. */
static void test_serve_predict_json__small_requests_hold_little(void **state)
{
    (void)state;
    enum { VALUES = 200000 };
    struct parsed p;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "{\"signature_name\":\"doubles\",\"inputs\":[1");
    for (int i = 1; i < VALUES; i++) {
        sx_buf_puts(&text, ",1");
    }
    sx_buf_puts(&text, "]}");
    parse(&p, sx_buf_text(&text));
    assert_true(p.slots.slots[0].block_bytes >= VALUES * sizeof(double));
    sx_predict_slots_trim(&p.slots);
    static const char *const small[] = {"{\"instances\":[[1,2]]}", "{\"instances\":[[3,4],[5,6]]}"};
    for (size_t i = 0; i < SX_COUNT(small); i++) {
        assert_ok(sx_predict_parse((sx_bytes){small[i], strlen(small[i])}, signatures,
                                   SX_COUNT(signatures), &p.arena, &p.slots, &p.request));
        assert_true(p.slots.slots[0].block_bytes <= 16 * 1024);
        assert_true(*(const float *)p.request.inputs[0].data == (i == 0 ? 1 : 3));
        sx_predict_slots_trim(&p.slots);
    }
    sx_buf_deinit(&text);
    done(&p);
}

/* ---- Refused ---- */

/* Values are charged for before there is room for them: at most as many as there are commas, each
 * at the size of the signature's largest type. */
static void test_serve_predict_json__charges_values(void **state)
{
    (void)state;
    enum { VALUES = 10000 };
    struct parsed p;
    sx_budget budget;
    sx_buf text;
    sx_budget_init(&budget, "one request", (size_t)8 * VALUES + 8192, NULL);
    for (int n = VALUES; n <= 4 * VALUES; n *= 2) {
        sx_buf_init(&text, 0);
        for (int i = 0; i < n; i += 2) {
            sx_buf_puts(&text, i == 0 ? "{\"instances\": [[1,2]" : ",[1,2]");
        }
        sx_buf_puts(&text, "]}");
        sx_arena_init(&p.arena, 0);
        sx_predict_slots_init(&p.slots);
        p.arena.budget = &budget;
        sx_status status = sx_predict_parse((sx_bytes){text.data, text.size}, signatures,
                                            SX_COUNT(signatures), &p.arena, &p.slots, &p.request);
        if (n <= 2 * VALUES) { /* 4 bytes each */
            assert_ok(status);
            assert_in_range(sx_budget_used(&budget), 4 * n, 4 * n + 8192);
        } else {
            assert_error(status, SX_RESOURCE_EXHAUSTED,
                         "out of memory for 40000 input values of 4 bytes");
            assert_true(sx_budget_never_fits(&budget));
        }
        sx_predict_slots_trim(&p.slots);
        sx_arena_deinit(&p.arena);
        assert_int_equal(sx_budget_used(&budget), 0);
        sx_predict_slots_deinit(&p.slots);
        sx_buf_deinit(&text);
    }
}

static void test_serve_predict_json__refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        sx_code code;
        const char *part;
    } rows[] = {
        /* syntax: the probe texts of reliability.md R16 and dependencies.md */
        {"", SX_INVALID_ARGUMENT, "The document is empty"},
        {"[]", SX_INVALID_ARGUMENT, "Expected an object"},
        {"{\"instances\":[[1,2]]} x", SX_INVALID_ARGUMENT, "must not be followed"},
        {"{\"instances\":[[1,2]]}{}", SX_INVALID_ARGUMENT, "must not be followed"},
        {"{\"instances\":[[1,2],]}", SX_INVALID_ARGUMENT, "Invalid value. at offset: 20"},
        {"{\"instances\":[[1,2]],}", SX_INVALID_ARGUMENT, "Missing a name"},
        {"{\"instances\":[[01,2]]}", SX_INVALID_ARGUMENT, "Invalid value"},
        {"{\"instances\":[[1.,2]]}", SX_INVALID_ARGUMENT, "Invalid value"},
        {"{\"instances\":[[+1,2]]}", SX_INVALID_ARGUMENT, "Invalid value"},
        {"{\"instances\":[[1 2]]}", SX_INVALID_ARGUMENT, "Missing a comma"},
        {"{\"instances\":[[1,2]", SX_INVALID_ARGUMENT, "Missing a comma or ]"},
        {"{\"instances\":[[1,2", SX_INVALID_ARGUMENT, "Missing a comma or ]"},
        {"{\"instances\" [[1,2]]}", SX_INVALID_ARGUMENT, "Missing a colon"},
        {"{'instances':[[1,2]]}", SX_INVALID_ARGUMENT, "Missing a name"},
        {"{\"a\":\"\xff\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "Invalid UTF-8"},
        {"{\"a\":\"\xc0\xaf\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "Invalid UTF-8"},
        {"{\"a\":\"\xed\xa0\x80\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "Invalid UTF-8"},
        {"{\"a\":\"\xf4\x90\x80\x80\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "UTF-8"},
        {"{\"a\":\"\\ud800\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "surrogate"},
        {"{\"a\":\"\\udc00\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "surrogate"},
        {"{\"a\":\"\\ud800\\u0041\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "surrogate"},
        {"{\"a\":\"\\x41\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "escape"},
        {"{\"a\":\"a\nb\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "control character"},
        {"{\"a\":\"open", SX_INVALID_ARGUMENT, "closing quotation mark"},
        {"{\"a\":\"open\\", SX_INVALID_ARGUMENT, "closing quotation mark"},
        {"{\"a\":nul,\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "Invalid value"},
        {"{\"a\":.5,\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "Invalid value"},
        {"{\"instances\":[[1,2]],\"a\":[1,]}", SX_INVALID_ARGUMENT, "Invalid value"},
        /* the document */
        {"{}", SX_INVALID_ARGUMENT, "Missing 'inputs' or 'instances' key"},
        {"{\"signature_name\":\"any\"}", SX_INVALID_ARGUMENT, "Missing 'inputs'"},
        {"{\"instances\":[[1,2]],\"inputs\":[[1,2]]}", SX_INVALID_ARGUMENT, "only one of"},
        {"{\"instances\":[[1,2]],\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "only one of"},
        {"{\"signature_name\":3,\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT, "must be a string"},
        {"{\"signature_name\":\"no\",\"instances\":[[1,2]]}", SX_INVALID_ARGUMENT,
         "Serving signature name: \"no\" not found"},
        {"{\"instances\":[[1,2]],\"signature_name\":\"no\"}", SX_INVALID_ARGUMENT,
         "Serving signature name: \"no\" not found"},
        {"{\"instances\":3}", SX_INVALID_ARGUMENT, "'instances' must be a list"},
        {"{\"instances\":[]}", SX_INVALID_ARGUMENT, "No values in 'instances'"},
        /* rows */
        {"{\"instances\":[[1,2],{\"x\":[1,2]}]}", SX_INVALID_ARGUMENT,
         "Expecting value/list but got object at item 1"},
        {"{\"instances\":[{\"x\":[1,2]},[1,2]]}", SX_INVALID_ARGUMENT,
         "Expecting object but got list at item 1"},
        {"{\"instances\":[{\"y\":[1,2]}]}", SX_INVALID_ARGUMENT, "does not have named input: y"},
        {"{\"instances\":[{}]}", SX_INVALID_ARGUMENT, "Missing named input: x"},
        {"{\"instances\":[{\"x\":[1,2],\"x\":[1,2]}]}", SX_INVALID_ARGUMENT, "given twice"},
        {"{\"signature_name\":\"pair\",\"instances\":[1,2]}", SX_INVALID_ARGUMENT,
         "expecting list of objects"},
        {"{\"signature_name\":\"pair\",\"instances\":[{\"a\":1}]}", SX_INVALID_ARGUMENT,
         "Missing named input: b"},
        {"{\"signature_name\":\"pair\",\"inputs\":[1]}", SX_INVALID_ARGUMENT,
         "expecting an object"},
        {"{\"signature_name\":\"pair\",\"inputs\":{\"a\":[1]}}", SX_INVALID_ARGUMENT,
         "Missing named input: b in 'inputs'"},
        {"{\"inputs\":{\"x\":[[1,2]],\"x\":[[1,2]]}}", SX_INVALID_ARGUMENT, "given twice"},
        {"{\"inputs\":{}}", SX_INVALID_ARGUMENT, "Missing named input: x"},
        /* shapes */
        {"{\"instances\":[[1,2],[3]]}", SX_INVALID_ARGUMENT,
         "unexpected size: 1 at level: 1 expected size: 2"},
        {"{\"instances\":[[1,2],3]}", SX_INVALID_ARGUMENT, "same shape"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[1,2],[3,4],[5]]]}", SX_INVALID_ARGUMENT,
         "unexpected size: 1 at level: 2 expected size: 2"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[1,2],[3,4],[5,6,7]]]}", SX_INVALID_ARGUMENT,
         "unexpected size: 3 at level: 2 expected size: 2"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[1,2],[3,4],[5,6]],[[1,2],[3,4]]]}",
         SX_INVALID_ARGUMENT, "unexpected size: 2 at level: 1 expected size: 3"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[1,2],[3,4],[5,1e39]]]}", SX_INVALID_ARGUMENT,
         "1e39 is out of range for type float32"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[1,2],[3,4],[5,06]]]}", SX_INVALID_ARGUMENT,
         "06 is not of expected type: float32"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[1,2],[3,4],]]}", SX_INVALID_ARGUMENT,
         "value at nesting level 2, but earlier values are at level 3"},
        {"{\"instances\":[3,[1,2]]}", SX_INVALID_ARGUMENT, "unexpected level"},
        {"{\"instances\":[[1,2,3]]}", SX_INVALID_ARGUMENT,
         "got float32[1,3], expected float32[N,2]"},
        {"{\"instances\":[1]}", SX_INVALID_ARGUMENT, "got float32[1], expected float32[N,2]"},
        {"{\"signature_name\":\"any\",\"inputs\":[[[[[[[[[1]]]]]]]]]}", SX_INVALID_ARGUMENT,
         "deeper than 8"},
        {"{\"signature_name\":\"any\",\"inputs\":[[],[1]]}", SX_INVALID_ARGUMENT,
         "unexpected size"},
        /* types */
        {"{\"instances\":[[\"1\",2]]}", SX_INVALID_ARGUMENT,
         "JSON Value: \"1\" is not of expected type: float32"},
        {"{\"instances\":[[true,2]]}", SX_INVALID_ARGUMENT,
         "true is not of expected type: float32"},
        {"{\"instances\":[[null,2]]}", SX_INVALID_ARGUMENT, "null is not of expected type"},
        {"{\"instances\":[[1e39,2]]}", SX_INVALID_ARGUMENT,
         "1e39 is out of range for type float32"},
        {"{\"signature_name\":\"doubles\",\"inputs\":[1e999]}", SX_INVALID_ARGUMENT,
         "is out of range"},
        {"{\"signature_name\":\"u8\",\"inputs\":[256]}", SX_INVALID_ARGUMENT,
         "256 is out of range for type uint8"},
        {"{\"signature_name\":\"u8\",\"inputs\":[-1]}", SX_INVALID_ARGUMENT, "is out of range"},
        {"{\"signature_name\":\"i16\",\"inputs\":[1.0]}", SX_INVALID_ARGUMENT,
         "1.0 is not of expected type: int16"},
        {"{\"signature_name\":\"i64\",\"inputs\":[9223372036854775808]}", SX_INVALID_ARGUMENT,
         "is out of range"},
        {"{\"signature_name\":\"u64\",\"inputs\":[-1]}", SX_INVALID_ARGUMENT, "is out of range"},
        {"{\"signature_name\":\"bool\",\"inputs\":[1]}", SX_INVALID_ARGUMENT,
         "expected type: bool"},
        {"{\"signature_name\":\"f16\",\"inputs\":[1]}", SX_UNIMPLEMENTED, "float16"},
        {"{\"signature_name\":\"text\",\"instances\":[5]}", SX_INVALID_ARGUMENT,
         "expected type: string"},
        {"{\"signature_name\":\"text\",\"instances\":[{\"b64\":\"Z\"}]}", SX_INVALID_ARGUMENT,
         "base64"},
        {"{\"signature_name\":\"text\",\"instances\":[{\"b64\":\"YQ==\"},{\"b64\":5}]}",
         SX_INVALID_ARGUMENT, "Expected a string"},
        {"{\"signature_name\":\"text\",\"inputs\":[{\"b64\":\"YQ==\",\"z\":1}]}",
         SX_INVALID_ARGUMENT, "must be {\"b64\""},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        struct parsed p;
        sx_status status = parse_bytes(&p, rows[i].text, strlen(rows[i].text));
        if (sx_status_code(status) != rows[i].code ||
            !strstr(sx_status_message(status), rows[i].part)) {
            fail_msg("%s\n gave %s \"%s\", expected %s \"%s\"", rows[i].text,
                     sx_code_name(sx_status_code(status)), sx_status_message(status),
                     sx_code_name(rows[i].code), rows[i].part);
        }
        sx_status_free(status);
        done(&p);
    }
}

#define NAMED "{\"signature_name\":\"serving_default\","
/* `head`, `unit` as often as fits into 200,000 bytes, `tail`: the error names the shape, so it was
 * found before the end of the text, which has a mistake, too. */
static void test_serve_predict_json__stops_at_the_first_misfit(void **state)
{
    (void)state;
    static const struct {
        const char *head, *unit, *says;
    } rows[] = {
        {NAMED "\"instances\":[", "0,", "the values do not have the shape of float32[N,2]"},
        {NAMED "\"instances\":[", "[0,1,2],", "the values do not have the shape of float32[N,2]"},
        {NAMED "\"instances\":[[", "0,", "the values do not have the shape of float32[N,2]"},
        {NAMED "\"instances\":[[[", "0,", "the values do not have the shape of float32[N,2]"},
        {NAMED "\"inputs\":[[0],", "[0],", "the values do not have the shape of float32[N,2]"},
        {"{\"signature_name\":\"u8\",\"instances\":[[", "0,", "the shape of uint8[N]"},
        {"{\"signature_name\":\"text\",\"inputs\":[[", "\"a\",", "the shape of string[N]"},
        {NAMED "\"instances\":[[1,2],", "[0,1],", "value at nesting level 1"}, /* no misfit */
        {"{\"signature_name\":\"any\",\"inputs\":[", "0,", "not of expected type"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        struct parsed p;
        sx_buf text;
        sx_buf_init(&text, 0);
        sx_buf_puts(&text, rows[i].head);
        while (text.size < 200000) {
            sx_buf_puts(&text, rows[i].unit);
        }
        sx_buf_puts(&text, "?");
        sx_status status = parse_bytes(&p, text.data, text.size);
        if (sx_status_code(status) != SX_INVALID_ARGUMENT ||
            strstr(sx_status_message(status), rows[i].says) == NULL) {
            fail_msg("row %zu gave \"%s\", expected \"%s\"", i, sx_status_message(status),
                     rows[i].says);
        }
        sx_status_free(status);
        done(&p);
        sx_buf_deinit(&text);
    }
}

/* Members that are not used are checked, but take no memory. */
static void test_serve_predict_json__skips_without_memory(void **state)
{
    (void)state;
    struct parsed p;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "{\"instances\":[[1,2]],\"z\":{\"k\\n\":\"");
    for (int i = 0; i < 100000; i++) {
        sx_buf_puts(&text, "\\u00e9\\n");
    }
    sx_buf_puts(&text, "\"}}");
    assert_ok(parse_bytes(&p, text.data, text.size));
    assert_true(p.arena.used_bytes < 4096);
    done(&p);
    sx_buf_deinit(&text);
}

static void test_serve_predict_json__bounds_the_depth(void **state)
{
    (void)state;
    for (int depth = 62; depth <= 66; depth++) {
        struct parsed p;
        sx_buf text;
        sx_buf_init(&text, 0);
        sx_buf_puts(&text, "{\"instances\":[[1,2]],\"z\":");
        for (int i = 0; i < depth; i++) {
            sx_buf_puts(&text, i % 2 ? "[" : "{\"k\":");
        }
        sx_buf_puts(&text, "1");
        for (int i = depth; i-- > 0;) {
            sx_buf_puts(&text, i % 2 ? "]" : "}");
        }
        sx_buf_puts(&text, "}");
        sx_status status = parse_bytes(&p, text.data, text.size);
        assert_int_equal(sx_status_code(status), depth + 1 > 64 ? SX_INVALID_ARGUMENT : SX_CODE_OK);
        sx_status_free(status);
        done(&p);
        sx_buf_deinit(&text);
    }
}

/* Each prefix and each byte set to each value: a status, never a crash (the sanitizers look on). */
static void test_serve_predict_json__survives_truncation_and_flips(void **state)
{
    (void)state;
    static const char text[] =
        "{\"signature_name\":\"pair\",\"instances\":[{\"a\":-1.5e3,\"b\":[2,3]}],"
        "\"z\":[null,\"\\u00e9\"]}";
    char flipped[sizeof(text)];
    long accepted = 0;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        for (int value = -1; value < 256; value++) {
            struct parsed p;
            memcpy(flipped, text, sizeof(text));
            flipped[i] = value < 0 ? flipped[i] : (char)value;
            sx_status status = parse_bytes(&p, flipped, value < 0 ? i : sizeof(text) - 1);
            accepted += status == SX_OK;
            sx_status_free(status);
            done(&p);
        }
    }
    assert_in_range(accepted, 300, 5000);
}

/* Printed floats come back to the bit through the whole path. */
static void test_serve_predict_json__floats_round_trip(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static float values[COUNT];
    struct parsed p;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_puts(&text, "{\"signature_name\":\"any\",\"inputs\":[");
    for (uint32_t i = 0; i < COUNT; i++) {
        char number[SX_NUMBER_TEXT];
        const sx_u32x2 bits = sx_threefry2x32((sx_u32x2){5, 5}, (sx_u32x2){i, 0});
        memcpy(&values[i], &bits.a, sizeof(float));
        values[i] = isnan(values[i]) ? 1 : values[i];
        sx_buf_append(&text, number, (size_t)(sx_print_f32(number, values[i]) - number));
        sx_buf_puts(&text, i + 1 < COUNT ? ", " : "]}");
    }
    assert_ok(parse_bytes(&p, text.data, text.size));
    assert_memory_equal(p.request.inputs[0].data, values, sizeof(values));
    done(&p);
    sx_buf_deinit(&text);
}

/* ---- Printing ---- */

static const sx_serve_tensor one_output[] = {TENSOR("y", SX_F32, SX_BATCH, 2)};
static const sx_serve_tensor two_outputs[] = {TENSOR("classes", SX_STRING, SX_BATCH),
                                              TENSOR("scores", SX_F64, SX_BATCH, 2)};
static const sx_serve_signature one = {.name = "one", .output_count = 1, .outputs = one_output};
static const sx_serve_signature two = {.name = "two", .output_count = 2, .outputs = two_outputs};

static void assert_prints(const sx_serve_signature *signature, const sx_tensor *outputs, bool row,
                          sx_float_format format, const char *expected)
{
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_ok(sx_predict_print(signature, outputs, row, format, NULL, &out));
    assert_string_equal(sx_buf_text(&out), expected);
    sx_buf_deinit(&out);
}

static void test_serve_predict_json__prints_predictions(void **state)
{
    (void)state;
    float y[] = {0.1f, 1, NAN, -1e10f};
    const sx_tensor tensor = {sx_type_of(SX_F32, 2, 2), y};
    assert_prints(&one, &tensor, true, SX_FLOAT_SHORTEST,
                  "{\n    \"predictions\": [[0.1, 1.0], [NaN, -10000000000.0]\n    ]\n}");
    assert_prints(&one, &tensor, false, SX_FLOAT_SHORTEST,
                  "{\n    \"outputs\": [[0.1, 1.0], [NaN, -10000000000.0]]\n}");
    assert_prints(&one, &tensor, true, SX_FLOAT_TFS,
                  "{\n    \"predictions\": [[0.1, 1.0], [NaN, -1e+10]\n    ]\n}");
    float exact[] = {0.33333334f, 123456.7f};
    const sx_tensor third = {sx_type_of(SX_F32, 1, 2), exact};
    assert_prints(&one, &third, true, SX_FLOAT_TFS,
                  "{\n    \"predictions\": [[0.333333343, 123456.703]\n    ]\n}");
    const sx_tensor empty = {sx_type_of(SX_F32, 0, 2), y};
    assert_prints(&one, &empty, true, SX_FLOAT_SHORTEST, "{\n    \"predictions\": [\n    ]\n}");
    const sx_tensor scalar = {sx_scalar_type(SX_F32), y};
    assert_prints(&one, &scalar, false, SX_FLOAT_SHORTEST, "{\n    \"outputs\": 0.1\n}");
}

static void test_serve_predict_json__prints_several_outputs(void **state)
{
    (void)state;
    sx_bytes classes[] = {{"ro\"se\n", 6}, {"\xff", 1}};
    double scores[] = {0.1, 0.9, 1e-7, 5};
    const sx_tensor tensors[] = {{sx_type_of(SX_STRING, 2), classes},
                                 {sx_type_of(SX_F64, 2, 2), scores}};
    assert_prints(
        &two, tensors, true, SX_FLOAT_SHORTEST,
        "{\n    \"predictions\": [\n        {\n            \"classes\": \"ro\\\"se\\n\",\n"
        "            \"scores\": [0.1, 0.9]\n        },\n        {\n"
        "            \"classes\": {\"b64\": \"/w==\"},\n"
        "            \"scores\": [1e-07, 5.0]\n        }\n    ]\n}");
    assert_prints(
        &two, tensors, false, SX_FLOAT_SHORTEST,
        "{\n    \"outputs\": {\n        \"classes\": [\"ro\\\"se\\n\", {\"b64\": \"/w==\"}],\n"
        "        \"scores\": [[0.1, 0.9], [1e-07, 5.0]]\n    }\n}");
}

static void test_serve_predict_json__prints_every_type(void **state)
{
    (void)state;
    static const sx_serve_tensor bytes_output[] = {TENSOR("raw_bytes", SX_STRING, SX_BATCH)};
    const sx_serve_signature bytes = {.name = "b", .output_count = 1, .outputs = bytes_output};
    sx_bytes text = {"ab", 2};
    assert_prints(&bytes, &(sx_tensor){sx_type_of(SX_STRING, 1), &text}, true, SX_FLOAT_SHORTEST,
                  "{\n    \"predictions\": [{\"b64\": \"YWI=\"}\n    ]\n}");
    static struct {
        sx_dtype dtype;
        union {
            int64_t i64[2];
            uint64_t u64[2];
            int32_t i32[2];
            int16_t i16[2];
            int8_t i8[2];
            uint8_t u8[2];
            uint16_t u16[2];
            uint32_t u32[2];
        } data;
        const char *expected;
    } rows[] = {
        {SX_I64, {.i64 = {INT64_MIN, 7}}, "[-9223372036854775808, 7]"},
        {SX_U64, {.u64 = {UINT64_MAX, 7}}, "[18446744073709551615, 7]"},
        {SX_I32, {.i32 = {INT32_MIN, 7}}, "[-2147483648, 7]"},
        {SX_I16, {.i16 = {-5, 7}}, "[-5, 7]"},
        {SX_I8, {.i8 = {-128, 7}}, "[-128, 7]"},
        {SX_U8, {.u8 = {255, 7}}, "[255, 7]"},
        {SX_U16, {.u16 = {65535, 7}}, "[65535, 7]"},
        {SX_U32, {.u32 = {UINT32_MAX, 7}}, "[4294967295, 7]"},
        {SX_BOOL, {.u8 = {1, 0}}, "[true, false]"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        char expected[200];
        snprintf(expected, sizeof(expected), "{\n    \"outputs\": %s\n}", rows[i].expected);
        assert_prints(&one, &(sx_tensor){sx_type_of(rows[i].dtype, 2), &rows[i].data}, false,
                      SX_FLOAT_SHORTEST, expected);
    }
}

/* Half a text would be worse than none. */
static void test_serve_predict_json__stops_printing_when_cancelled(void **state)
{
    (void)state;
    enum { ROWS = 1000 };
    static float y[2 * ROWS];
    static double scores[2 * ROWS];
    static sx_bytes classes[ROWS];
    const sx_tensor single = {sx_type_of(SX_F32, ROWS, 2), y};
    const sx_tensor several[] = {{sx_type_of(SX_STRING, ROWS), classes},
                                 {sx_type_of(SX_F64, ROWS, 2), scores}};
    sx_cancel cancel;
    sx_buf out;
    sx_cancel_init(&cancel, INT64_MAX);
    sx_cancel_request(&cancel);
    for (int i = 0; i < 4; i++) {
        const bool row = i % 2 == 0;
        sx_buf_init(&out, 0);
        assert_error(i < 2 ? sx_predict_print(&one, &single, row, SX_FLOAT_SHORTEST, &cancel, &out)
                           : sx_predict_print(&two, several, row, SX_FLOAT_SHORTEST, &cancel, &out),
                     SX_CANCELLED, "");
        assert_true(out.size < 100); /* not one row was printed */
        sx_buf_deinit(&out);
    }
}

static void test_serve_predict_json__refuses_rows_that_do_not_fit(void **state)
{
    (void)state;
    double scores[4] = {0};
    sx_bytes classes[1] = {{"", 0}};
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_tensor tensors[] = {{sx_type_of(SX_STRING, 1), classes}, {sx_type_of(SX_F64, 2, 2), scores}};
    assert_error(sx_predict_print(&two, tensors, true, SX_FLOAT_SHORTEST, NULL, &out),
                 SX_INVALID_ARGUMENT, "scores has inconsistent batch size: 2 expecting: 1");
    tensors[0].type = sx_scalar_type(SX_STRING);
    assert_error(sx_predict_print(&two, tensors, true, SX_FLOAT_SHORTEST, NULL, &out),
                 SX_INVALID_ARGUMENT, "classes has no shape");
    tensors[1].type.dtype = SX_BF16;
    assert_error(sx_predict_print(&two, tensors, false, SX_FLOAT_SHORTEST, NULL, &out),
                 SX_UNIMPLEMENTED, "bfloat16");
    sx_buf_deinit(&out);
    sx_buf_init(&out, 0);
    sx_json_print_string(&out, "a\x01\xff\xc3\xa9\t\x7f", 8 - 1);
    assert_string_equal(sx_buf_text(&out), "\"a\\u0001\xEF\xBF\xBD\xc3\xa9\\t\x7f\"");
    sx_buf_deinit(&out);
}

/* TensorFlow Serving's numbers: six digits where they are exact, else all that it takes; ".0" where
 * it would look like an integer. */
static void test_serve_predict_json__prints_numbers_as_tensorflow_serving(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *f32, *f64;
    } rows[] = {
        {0, "0.0", "0.0"},
        {1, "1.0", "1.0"},
        {-2.5, "-2.5", "-2.5"},
        {123456, "123456.0", "123456.0"},
        {1234567, "1234567.0", "1234567.0"},
        {1e6, "1e+06", "1e+06"},
        {1.5e-7, "1.5e-07", "1.5e-07"},
        {0.1, "0.1", "0.1"},
        {0.015625, "0.015625", "0.015625"},
        {1.0 / 3, "0.333333343", "0.33333333333333331"},
        {1.0000001, "1.00000012", "1.0000001000000001"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        char expected[100];
        float narrow = (float)rows[i].value;
        snprintf(expected, sizeof(expected), "{\n    \"outputs\": [%s]\n}", rows[i].f32);
        assert_prints(&one, &(sx_tensor){sx_type_of(SX_F32, 1), &narrow}, false, SX_FLOAT_TFS,
                      expected);
        double wide = rows[i].value;
        snprintf(expected, sizeof(expected), "{\n    \"outputs\": [%s]\n}", rows[i].f64);
        assert_prints(&one, &(sx_tensor){sx_type_of(SX_F64, 1), &wide}, false, SX_FLOAT_TFS,
                      expected);
    }
}

static void test_serve_predict_json__refuses_to_print_a_shape_that_is_not_static(void **state)
{
    (void)state;
    float y[4] = {0};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, 2, SX_UNKNOWN_DIM), y},
                                 {sx_type_of(SX_F32, 2, SX_BATCH), y},
                                 {sx_type_of(SX_F32, SX_BATCH), y}};
    for (size_t i = 0; i < SX_COUNT(tensors); i++) {
        sx_buf out;
        sx_buf_init(&out, 0);
        assert_error(sx_predict_print(&one, &tensors[i], i % 2 == 0, SX_FLOAT_TFS, NULL, &out),
                     SX_INTERNAL, "the model returned no static shape");
        sx_buf_deinit(&out);
    }
    uint16_t half[2] = {0};
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_error(sx_predict_print(&one, &(sx_tensor){sx_type_of(SX_RESOURCE, 2), half}, true,
                                  SX_FLOAT_TFS, NULL, &out),
                 SX_UNIMPLEMENTED, "has no JSON representation");
    assert_error(sx_predict_print(&one, &(sx_tensor){sx_type_of(SX_C64, 1), y}, true, SX_FLOAT_TFS,
                                  NULL, &out),
                 SX_INVALID_ARGUMENT, "Failed to write JSON value for tensor type: complex64");
    sx_buf_deinit(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_serve_predict_json__rows),
    cmocka_unit_test(test_serve_predict_json__columns),
    cmocka_unit_test(test_serve_predict_json__late_signature_name),
    cmocka_unit_test(test_serve_predict_json__strings),
    cmocka_unit_test(test_serve_predict_json__number_types),
    cmocka_unit_test(test_serve_predict_json__reuses_slots),
    cmocka_unit_test(test_serve_predict_json__small_requests_hold_little),
    cmocka_unit_test(test_serve_predict_json__charges_values),
    cmocka_unit_test(test_serve_predict_json__refuses),
    cmocka_unit_test(test_serve_predict_json__stops_at_the_first_misfit),
    cmocka_unit_test(test_serve_predict_json__skips_without_memory),
    cmocka_unit_test(test_serve_predict_json__bounds_the_depth),
    cmocka_unit_test(test_serve_predict_json__survives_truncation_and_flips),
    cmocka_unit_test(test_serve_predict_json__floats_round_trip),
    cmocka_unit_test(test_serve_predict_json__prints_predictions),
    cmocka_unit_test(test_serve_predict_json__prints_several_outputs),
    cmocka_unit_test(test_serve_predict_json__prints_every_type),
    cmocka_unit_test(test_serve_predict_json__stops_printing_when_cancelled),
    cmocka_unit_test(test_serve_predict_json__refuses_rows_that_do_not_fit),
    cmocka_unit_test(test_serve_predict_json__prints_numbers_as_tensorflow_serving),
    cmocka_unit_test(test_serve_predict_json__refuses_to_print_a_shape_that_is_not_static),
};
SX_TEST_MAIN(tests)
