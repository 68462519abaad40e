/* See inference_json.h.
 *
 * The members of the document may come in any order, but the context is part of every example: the
 * document is checked and its members are found first, then the examples are written. */
#include "serve/inference_json.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/shortest.h"
#include "proto/example.h"
#include "proto/wire.h"
#include "serve/base64.h"
#include "serve/decimal.h"
#include "serve/json_scan.h"

enum { SHOWN_BYTES = 60 }; /* of a name quoted in an error */

struct parser {
    sx_json json;
    sx_arena *arena;
    const char *context, *examples; /* where their values begin; NULL: not given */
    bool has_signature;
    size_t count;    /* of examples */
    sx_buf features; /* the entries of an example's map of features */
    sx_buf values;   /* of one feature, as its list has them */
    sx_bytes prefix; /* the context as an Example */
    sx_inference_request *out;
};

/* ---- Features ---- */

/* The kind of the value at json->p, as TensorFlow Serving calls it. */
static const char *type_name(sx_json *json)
{
    switch (sx_json_peek(json)) {
    case '{':
        return "Object";
    case '[':
        return "Array";
    case '"':
        return "String";
    case 't':
        return "True";
    case 'f':
        return "False";
    case 'n':
        return "Null";
    default:
        return "Number";
    }
}

static sx_status unexpected_type(struct parser *parser, sx_bytes name)
{
    return sx_error(SX_INVALID_ARGUMENT, "Feature: %.*s has element with unexpected JSON type: %s",
                    (int)SX_MIN(name.size, (size_t)SHOWN_BYTES), (const char *)name.data,
                    type_name(&parser->json));
}

/* Whether a value of `kind` may follow those before it, and from now on only such. */
static sx_status settle_kind(sx_bytes name, sx_feature_kind kind, sx_feature_kind *settled)
{
    if (*settled != SX_FEATURE_EMPTY && *settled != kind) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Unexpected element type in feature: %.*s expecting type: %s",
                        (int)SX_MIN(name.size, (size_t)SHOWN_BYTES), (const char *)name.data,
                        sx_feature_kind_name(*settled));
    }
    *settled = kind;
    return SX_OK;
}

static void put_float(struct parser *parser, float value)
{
    sx_buf_append(&parser->values, &value, sizeof(value));
}

static sx_status read_special(struct parser *parser, sx_bytes name, sx_feature_kind *kind)
{
    double special;
    if (!sx_json_special(&parser->json, &special)) {
        return sx_json_error(&parser->json, "Invalid value.");
    }
    SX_TRY(settle_kind(name, SX_FEATURE_FLOATS, kind));
    put_float(parser, (float)special);
    return SX_OK;
}

/* An integer beyond both ranges of 64 bits is a float, as in TensorFlow Serving. */
static sx_status read_number(struct parser *parser, sx_bytes name, sx_feature_kind *kind)
{
    sx_decimal number;
    int64_t signed_value;
    uint64_t unsigned_value;
    if (!sx_decimal_scan(parser->json.p, parser->json.end, &number)) {
        return read_special(parser, name, kind);
    }
    if (sx_decimal_to_i64(&number, &signed_value)) {
        SX_TRY(settle_kind(name, SX_FEATURE_INTS, kind));
        sx_wire_append_varint(&parser->values, (uint64_t)signed_value);
    } else if (sx_decimal_to_u64(&number, &unsigned_value)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Feature: %.*s has uint64_t element. Only int64_t is supported.",
                        (int)SX_MIN(name.size, (size_t)SHOWN_BYTES), (const char *)name.data);
    } else {
        SX_TRY(settle_kind(name, SX_FEATURE_FLOATS, kind));
        const float value = sx_decimal_to_f32(&number);
        if (isinf(value)) {
            return sx_json_error(&parser->json, "Number too big to be stored in a float.");
        }
        put_float(parser, value);
    }
    parser->json.p = number.end;
    return SX_OK;
}

static sx_status read_base64(struct parser *parser, sx_bytes name)
{
    sx_json *json = &parser->json;
    const sx_json before = *json;
    sx_bytes key = {"", 0}, text = {"", 0};
    bool more = true;
    SX_TRY(sx_json_enter(json, '{'));
    if (sx_json_peek(json) == '"') {
        SX_TRY(sx_json_key(json, &key));
    }
    if (!sx_bytes_is(key, "b64") || sx_json_peek(json) != '"') {
        *json = before;
        return unexpected_type(parser, name);
    }
    SX_TRY(sx_json_string(json, &text));
    SX_TRY(sx_json_next(json, '}', &more));
    if (more) {
        *json = before;
        return unexpected_type(parser, name);
    }
    unsigned char *bytes = sx_arena_alloc(parser->arena, SX_BASE64_DECODED_MAX(text.size), 1);
    if (bytes == NULL) {
        return sx_no_memory("for %zu characters of base64", text.size);
    }
    const ptrdiff_t size = sx_base64_decode(text.data, text.size, bytes);
    if (size < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "Unable to base64 decode");
    }
    sx_wire_append_bytes(&parser->values, 1, (sx_bytes){bytes, (size_t)size});
    return SX_OK;
}

static sx_status read_value(struct parser *parser, sx_bytes name, sx_feature_kind *kind)
{
    sx_json *json = &parser->json;
    sx_bytes text;
    bool truth;
    switch (sx_json_peek(json)) {
    case '"':
        SX_TRY(settle_kind(name, SX_FEATURE_BYTES, kind));
        SX_TRY(sx_json_string(json, &text));
        sx_wire_append_bytes(&parser->values, 1, text);
        return SX_OK;
    case '{':
        SX_TRY(settle_kind(name, SX_FEATURE_BYTES, kind));
        return read_base64(parser, name);
    case 't':
    case 'f':
        SX_TRY(settle_kind(name, SX_FEATURE_INTS, kind));
        SX_TRY(sx_json_bool(json, &truth));
        sx_wire_append_varint(&parser->values, truth);
        return SX_OK;
    case '[':
    case 'n':
        return unexpected_type(parser, name);
    default:
        return read_number(parser, name, kind);
    }
}

/* A value or a list of values. */
static sx_status read_values(struct parser *parser, sx_bytes name, sx_feature_kind *kind)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (sx_json_peek(json) != '[') {
        return read_value(parser, name, kind);
    }
    SX_TRY(sx_json_enter(json, '['));
    if (sx_json_take(json, ']')) {
        sx_json_leave(json);
        return SX_OK;
    }
    while (more) {
        SX_TRY(read_value(parser, name, kind));
        SX_TRY(sx_json_next(json, ']', &more));
    }
    return SX_OK;
}

/* An entry of the map: key 1, value 2: a Feature, whose list is the field of its kind. */
static sx_status read_feature(struct parser *parser)
{
    sx_buf *out = &parser->features;
    sx_bytes name;
    sx_feature_kind kind = SX_FEATURE_EMPTY;
    SX_TRY(sx_json_key(&parser->json, &name));
    parser->values.size = 0;
    SX_TRY(read_values(parser, name, &kind));
    const size_t entry = sx_wire_begin(out, 1);
    sx_wire_append_bytes(out, 1, name);
    const size_t feature = sx_wire_begin(out, 2);
    if (kind != SX_FEATURE_EMPTY) {
        const sx_bytes values = {sx_buf_text(&parser->values), parser->values.size};
        const size_t list = sx_wire_begin(out, kind);
        if (kind == SX_FEATURE_BYTES) {
            sx_buf_append(out, values.data, values.size);
        } else {
            sx_wire_append_bytes(out, 1, values);
        }
        sx_wire_end(out, list);
    }
    sx_wire_end(out, feature);
    sx_wire_end(out, entry);
    SX_TRY(sx_buf_status(&parser->values));
    return sx_buf_status(out);
}

/* ---- Examples ---- */

/* The object at json->p as a serialized Example after `prefix`, in the arena. */
static sx_status read_example(struct parser *parser, sx_bytes prefix, sx_bytes *out)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (sx_json_peek(json) != '{') {
        return sx_error(SX_INVALID_ARGUMENT, "Example must be JSON object but got JSON %s",
                        type_name(json));
    }
    parser->features.size = 0;
    SX_TRY(sx_json_enter(json, '{'));
    if (sx_json_take(json, '}')) {
        sx_json_leave(json);
        more = false;
    }
    while (more) {
        SX_TRY(read_feature(parser));
        SX_TRY(sx_json_next(json, '}', &more));
    }
    uint8_t head[1 + SX_WIRE_MAX_VARINT] = {1 << 3 | SX_WIRE_BYTES};
    const size_t head_size = 1 + sx_wire_put_varint(head + 1, parser->features.size);
    const size_t size = prefix.size + head_size + parser->features.size;
    char *bytes = sx_arena_alloc(parser->arena, size, 1);
    if (bytes == NULL) {
        return sx_no_memory("for an example of %zu bytes", size);
    }
    memcpy(bytes, prefix.data, prefix.size);
    memcpy(bytes + prefix.size, head, head_size);
    memcpy(bytes + prefix.size + head_size, sx_buf_text(&parser->features), parser->features.size);
    *out = (sx_bytes){bytes, size};
    return SX_OK;
}

static sx_status read_examples(struct parser *parser)
{
    sx_json *json = &parser->json;
    bool more = true;
    sx_bytes *examples = sx_arena_array(parser->arena, parser->count, sx_bytes);
    if (examples == NULL) {
        return sx_no_memory("for %zu examples", parser->count);
    }
    json->depth = 1;
    if (parser->context != NULL) {
        json->p = parser->context;
        SX_TRY(read_example(parser, parser->prefix, &parser->prefix), "in 'context'");
    }
    json->p = parser->examples;
    SX_TRY(sx_json_enter(json, '['));
    for (size_t i = 0; more; i++) {
        SX_TRY(read_example(parser, parser->prefix, &examples[i]));
        SX_TRY(sx_json_next(json, ']', &more));
    }
    parser->out->examples = (sx_tensor){sx_type_of(SX_STRING, (int64_t)parser->count), examples};
    return SX_OK;
}

/* ---- The document ---- */

/* Finds the value and counts its elements. */
static sx_status find_examples(struct parser *parser)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (sx_json_peek(json) != '[') {
        return sx_error(SX_INVALID_ARGUMENT, "Expecting 'examples' value to be an list/array");
    }
    parser->examples = json->p;
    SX_TRY(sx_json_enter(json, '['));
    if (sx_json_take(json, ']')) {
        return sx_error(SX_INVALID_ARGUMENT, "'examples' value is an empty array");
    }
    while (more) {
        SX_TRY(sx_json_skip(json));
        parser->count++;
        SX_TRY(sx_json_next(json, ']', &more));
    }
    return SX_OK;
}

static sx_status find_member(struct parser *parser)
{
    sx_json *json = &parser->json;
    sx_bytes key;
    SX_TRY(sx_json_key(json, &key));
    const bool is_signature = sx_bytes_is(key, "signature_name");
    const bool is_context = sx_bytes_is(key, "context"), is_examples = sx_bytes_is(key, "examples");
    if ((is_signature && parser->has_signature) || (is_context && parser->context != NULL) ||
        (is_examples && parser->examples != NULL)) {
        return sx_error(SX_INVALID_ARGUMENT, "'%.*s' key is given twice", (int)key.size,
                        (const char *)key.data);
    }
    if (is_signature) {
        if (sx_json_peek(json) != '"') {
            return sx_error(SX_INVALID_ARGUMENT, "not formatted correctly. 'signature_name' key "
                                                 "must be a string value.");
        }
        parser->has_signature = true;
        return sx_json_string(json, &parser->out->signature);
    }
    if (is_examples) {
        return find_examples(parser);
    }
    if (is_context) {
        sx_json_peek(json);
        parser->context = json->p;
    }
    return sx_json_skip(json);
}

static sx_status find_members(struct parser *parser)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (sx_json_peek(json) == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "JSON Parse error: The document is empty");
    }
    SX_TRY(sx_json_enter(json, '{'));
    if (sx_json_take(json, '}')) {
        sx_json_leave(json);
        more = false;
    }
    while (more) {
        SX_TRY(find_member(parser));
        SX_TRY(sx_json_next(json, '}', &more));
    }
    SX_TRY(sx_json_finish(json));
    return parser->examples != NULL
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "When method is classify, key 'examples' is "
                                               "expected and was not found");
}

sx_status sx_inference_parse(sx_bytes body, sx_arena *arena, sx_inference_request *out)
{
    struct parser parser = {.arena = arena, .prefix = {"", 0}, .out = out};
    *out = (sx_inference_request){.signature = {"", 0}};
    sx_json_init(&parser.json, body, arena);
    sx_buf_init(&parser.features, SIZE_MAX / 4); /* limited by the budget */
    sx_buf_init(&parser.values, SIZE_MAX / 4);
    parser.features.budget = parser.values.budget = arena->budget;
    sx_status status = find_members(&parser);
    if (status == SX_OK) {
        status = read_examples(&parser);
    }
    sx_buf_deinit(&parser.features);
    sx_buf_deinit(&parser.values);
    return status;
}

/* ---- Results ---- */

static void print_score(const sx_inference_result *result, size_t i, sx_float_format format,
                        sx_buf *out)
{
    char text[SX_NUMBER_TEXT];
    const float score = result->scores != NULL ? result->scores[i] : 0;
    sx_buf_append(out, text, (size_t)(sx_json_print_f32(text, score, format) - text));
}

static void print_classes(const sx_inference_result *result, size_t row, sx_float_format format,
                          sx_buf *out)
{
    sx_buf_putc(out, '[');
    for (size_t k = 0; k < result->classes && !out->failed; k++) {
        const size_t i = row * result->classes + k;
        const sx_bytes label = result->labels != NULL ? result->labels[i] : (sx_bytes){"", 0};
        sx_buf_puts(out, k > 0 ? ", [" : "[");
        sx_json_print_string(out, label.data, label.size);
        sx_buf_puts(out, ", ");
        print_score(result, i, format, out);
        sx_buf_putc(out, ']');
    }
    sx_buf_putc(out, ']');
}

sx_status sx_inference_print_json(const sx_inference_result *result, sx_float_format format,
                                  const sx_cancel *cancel, sx_buf *out)
{
    sx_buf_puts(out, "{\n    \"results\": [");
    for (size_t row = 0; row < result->examples && !out->failed && !sx_cancel_requested(cancel);
         row++) {
        sx_buf_puts(out, row > 0 ? ", " : "");
        if (result->method == SX_CLASSIFY) {
            print_classes(result, row, format, out);
        } else {
            print_score(result, row, format, out);
        }
    }
    sx_buf_puts(out, result->method == SX_CLASSIFY ? "\n    ]\n}" : "]\n}");
    return sx_cancel_requested(cancel) ? sx_cancel_check(cancel) : sx_buf_status(out);
}
