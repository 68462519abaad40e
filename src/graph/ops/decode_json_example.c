/* decode_json_example: records in JSON, as protobuf writes an Example, as its bytes.
 *
 *   x        strings: {"features": {"feature": {"age": {"int64List": {"value": ["3"]}}}}}
 *   returns  strings of x's shape: serialized Examples
 *
 * Names may also be protobuf's own (int64_list); numbers, in decimal, may be strings, and floats
 * "NaN", "Infinity" and "-Infinity"; bytes are base64 of either alphabet. A member that is null is
 * not there.
 *
 * Errors   INVALID_ARGUMENT  (running) a string that is no such text, or no UTF-8
 * Source   TensorFlow DecodeJSONExample */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "graph/ops/host_ops.h"
#include "proto/wire.h"

typedef struct json {
    const char *at, *end;
} json;

/* ---- JSON ---- */

static void skip_spaces(json *j)
{
    while (j->at < j->end && strchr(" \t\r\n", *j->at) != NULL && *j->at != '\0') {
        j->at++;
    }
}

static bool take(json *j, char c)
{
    skip_spaces(j);
    const bool found = j->at < j->end && *j->at == c;
    j->at += found;
    return found;
}

static bool take_null(json *j)
{
    const bool starts = take(j, 'n');
    const bool found = starts && j->end - j->at >= 3 && memcmp(j->at, "ull", 3) == 0;
    j->at += found ? 3 : starts ? -1 : 0;
    return found;
}

static bool take_hex(json *j, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = j->at < j->end ? sx_hex_digit(*j->at++) : -1;
        if (digit < 0) {
            return false;
        }
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* What follows a backslash. */
static bool take_escape(json *j, sx_buf *out)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char c = j->at < j->end ? *j->at++ : '\0';
    const char *name = c != '\0' ? strchr(names, c) : NULL;
    uint32_t code, low;
    char text[8];
    if (name != NULL) {
        sx_buf_append(out, &means[name - names], 1);
        return true;
    }
    if (c != 'u' || !take_hex(j, &code)) {
        return false;
    }
    if (code >= 0xD800 && code < 0xDC00) { /* the first half of a pair */
        if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') {
            return false;
        }
        j->at += 2;
        if (!take_hex(j, &low) || low < 0xDC00 || low > 0xDFFF) {
            return false;
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return false;
    }
    sx_buf_append(out, text, (size_t)(sx_utf8_put(text, code) - text));
    return true;
}

/* Appends a string. */
static bool take_string(json *j, sx_buf *out)
{
    if (!take(j, '"')) {
        return false;
    }
    while (j->at < j->end && *j->at != '"') {
        const char c = *j->at++;
        if (c == '\\' ? !take_escape(j, out) : (unsigned char)c < 0x20) {
            return false;
        }
        if (c != '\\') {
            sx_buf_append(out, &c, 1);
        }
    }
    return take(j, '"');
}

/* Appends the text of a number, which may be a string. */
static bool take_number(json *j, sx_buf *out)
{
    if (take(j, '"')) {
        j->at--;
        return take_string(j, out) && out->size > 0;
    }
    while (j->at < j->end && strchr("+-.0123456789eE", *j->at) != NULL && *j->at != '\0') {
        sx_buf_append(out, j->at++, 1);
    }
    return out->size > 0;
}

/* Whether the text of a number has nothing else in it that strtod() reads, and no NUL, where it
 * stops. */
static bool is_decimal(const sx_buf *text)
{
    return strspn(sx_buf_text(text), "+-.0123456789eE") == text->size;
}

/* Frees a part of `out`, which has failed if the part has. */
static void end_part(sx_buf *out, sx_buf *part)
{
    out->failed = out->failed != 0 ? out->failed : part->failed;
    sx_buf_deinit(part);
}

typedef bool member_fn(json *j, const sx_buf *name, sx_buf *out);

/* The members of an object, each read by `member`. */
static bool take_members(json *j, member_fn *member, sx_buf *out)
{
    if (!take(j, '{')) {
        return false;
    }
    bool sound = true;
    if (take(j, '}')) {
        return true;
    }
    do {
        sx_buf name;
        sx_buf_init(&name, 0);
        name.budget = out->budget;
        sound = take_string(j, &name) && take(j, ':') && member(j, &name, out) && name.failed == 0;
        end_part(out, &name);
    } while (sound && take(j, ','));
    return sound && take(j, '}');
}

static bool is(const sx_buf *name, const char *word)
{
    return name->size == strlen(word) && memcmp(name->data, word, name->size) == 0;
}

/* ---- An Example ---- */

/* A message of the members of an object, as field `number`. */
static bool put_message(json *j, uint32_t number, member_fn *member, sx_buf *out)
{
    if (take_null(j)) {
        return true;
    }
    const size_t at = sx_wire_begin(out, number);
    const bool sound = take_members(j, member, out);
    sx_wire_end(out, at);
    return sound;
}

typedef bool value_fn(json *j, sx_buf *text, sx_buf *out);

static bool put_text(json *j, sx_buf *text, sx_buf *out)
{
    uint32_t word = 0;
    if (!take_string(j, text)) {
        return false;
    }
    const char *s = sx_buf_text(text);
    size_t size = text->size;
    while (size > 0 && s[size - 1] == '=') {
        size--;
    }
    bool sound = size % 4 != 1;
    const size_t at = sx_wire_begin(out, 1);
    for (size_t n = 0; n < size && sound; n++) {
        const int digit = sx_base64_digit(s[n] == '+' ? '-' : s[n] == '/' ? '_' : s[n]);
        sound = digit >= 0;
        word = word << 6 | (uint32_t)SX_MAX(digit, 0);
        if (n % 4 != 0) { /* its second digit and each that follows complete a byte */
            const char byte = (char)(word >> (6 - 2 * (n % 4)) & 0xFF);
            sx_buf_putc(out, byte);
        }
    }
    sx_wire_end(out, at);
    return sound;
}

static bool put_float(json *j, sx_buf *text, sx_buf *out)
{
    char *end = NULL;
    if (!take_number(j, text)) {
        return false;
    }
    const char *s = sx_buf_text(text);
    const bool nan = is(text, "NaN"), named = nan || is(text, "Infinity") || is(text, "-Infinity");
    const float v = nan ? NAN : strtof(s, &end);
    if (!named && (!is_decimal(text) || *end != '\0' || isinf(v))) {
        return false;
    }
    sx_wire_append_tag(out, 1, SX_WIRE_FIXED32);
    sx_buf_append(out, &v, sizeof(v));
    return true;
}

static bool put_integer(json *j, sx_buf *text, sx_buf *out)
{
    char *end = NULL;
    if (!take_number(j, text) || !is_decimal(text)) {
        return false;
    }
    const char *s = sx_buf_text(text);
    int64_t v = 0;
    if (strpbrk(s, ".eE") != NULL) { /* of a whole number */
        const double x = strtod(s, &end);
        if (!(x >= -0x1p63 && x < 0x1p63) || x != floor(x)) {
            return false;
        }
        v = (int64_t)x;
    } else {
        errno = 0;
        v = strtoll(s, &end, 10);
        if (errno == ERANGE) {
            return false;
        }
    }
    sx_wire_append_tag(out, 1, SX_WIRE_VARINT);
    sx_wire_append_varint(out, (uint64_t)v);
    return *end == '\0';
}

/* "value": [...] */
static bool put_values(json *j, const sx_buf *name, value_fn *value, sx_buf *out)
{
    bool sound = true;
    if (!is(name, "value")) {
        return false;
    }
    if (take_null(j)) {
        return true;
    }
    if (!take(j, '[')) {
        return false;
    }
    if (take(j, ']')) {
        return true;
    }
    do {
        sx_buf text;
        sx_buf_init(&text, 0);
        text.budget = out->budget;
        sound = value(j, &text, out) && text.failed == 0;
        end_part(out, &text);
    } while (sound && take(j, ','));
    return sound && take(j, ']');
}

static bool texts_member(json *j, const sx_buf *name, sx_buf *out)
{
    return put_values(j, name, put_text, out);
}

static bool floats_member(json *j, const sx_buf *name, sx_buf *out)
{
    return put_values(j, name, put_float, out);
}

static bool integers_member(json *j, const sx_buf *name, sx_buf *out)
{
    return put_values(j, name, put_integer, out);
}

static bool list_member(json *j, const sx_buf *name, sx_buf *out)
{
    static const struct {
        const char *name, *own_name;
        member_fn *member;
    } lists[] = {{"bytesList", "bytes_list", texts_member},
                 {"floatList", "float_list", floats_member},
                 {"int64List", "int64_list", integers_member}};
    for (uint32_t i = 0; i < SX_COUNT(lists); i++) {
        if (is(name, lists[i].name) || is(name, lists[i].own_name)) {
            return put_message(j, i + 1, lists[i].member, out);
        }
    }
    return false;
}

/* A feature and its name. */
static bool feature_member(json *j, const sx_buf *name, sx_buf *out)
{
    const size_t at = sx_wire_begin(out, 1);
    sx_wire_append_bytes(out, 1, (sx_bytes){name->data, name->size});
    const bool sound = put_message(j, 2, list_member, out);
    sx_wire_end(out, at);
    return sound;
}

static bool features_member(json *j, const sx_buf *name, sx_buf *out)
{
    return is(name, "feature") && (take_null(j) || take_members(j, feature_member, out));
}

static bool example_member(json *j, const sx_buf *name, sx_buf *out)
{
    return is(name, "features") && put_message(j, 1, features_member, out);
}

static sx_status decode_json_example_host(const sx_kernel_call *c)
{
    sx_buf out = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && status == SX_OK; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        json j = {s->data, s->size > 0 ? (const char *)s->data + s->size : s->data};
        bool sound = sx_utf8_valid(s->data, s->size) && take_members(&j, example_member, &out);
        skip_spaces(&j);
        sound = sound && j.at == j.end;
        status = sx_buf_status(&out);
        if (status == SX_OK && !sound) {
            status = sx_error(SX_INVALID_ARGUMENT, "%s at index %lld is no Example in JSON",
                              SX_QUOTE(s), (long long)k);
        }
        if (status == SX_OK) {
            status = sx_string_put(c, 0, k, &out);
        }
    }
    sx_buf_deinit(&out);
    return status;
}

static void decode_json_example_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_decode_json_example, "DecodeJSONExample", SX_TF_NO_ATTRS);
}

static const char *const texts[] = {
    "{}",
    "{\"features\": {\"feature\": {\"a\": {\"floatList\": {\"value\": [1.5, \"-2e3\", 7]}}}}}",
    " {\"features\":{\"feature\":{\"b\\u00e9\":{\"bytes_list\":{\"value\":[\"aGk=\",\"_-8\"]}}}}} ",
    "{\"features\":{\"feature\":{\"c\":{\"int64List\":{\"value\":[\"-9\",3]}}}}}", NULL};
static const sx_op_sample decode_json_example_samples[] = {
    {.name = "lists", .inputs = {SX_SAMPLE_TEXTS(texts, SX_BATCH)}, .n_inputs = 1}};

const sx_op_def sx_op_decode_json_example = {
    SX_OP_NAMED(decode_json_example),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = sx_infer_string_map,
    .host = decode_json_example_host,
    .to_tf = decode_json_example_to_tf,
    SX_FROM_TF({.op = "DecodeJSONExample"}),
    SX_OP_SAMPLES(decode_json_example_samples),
};
