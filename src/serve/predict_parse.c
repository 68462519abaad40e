/* Parses REST predict requests: the members of the document, rows and columns; see predict_json.h.
 * Values are read into slots (predict_slot.h). */
#include "base/memory.h"
#include "serve/predict_json.h"

#include <string.h>

#include "base/checked.h"
#include "serve/json_scan.h"
#include "serve/predict_slot.h"

struct parser {
    sx_json json;
    const sx_serve_signature *signatures;
    size_t signature_count;
    sx_predict_slots *memory;
    size_t max_elems; /* the text cannot hold more values than this */
    const sx_serve_signature *signature;
    struct sx_predict_slot *slots; /* [signature->input_count] */
};

/* Each input gets room for as many values as the text can contain, but all inputs together cannot
 * fill more than that, so it is charged once, at the size of the largest type. */
static sx_status prepare_slots(struct parser *parser)
{
    const sx_serve_signature *signature = parser->signature;
    sx_predict_slots *memory = parser->memory;
    size_t largest = 0, bytes = 0;
    for (size_t i = 0; i < signature->input_count; i++) {
        largest = SX_MAX(largest, sx_slot_elem_bytes(signature->inputs[i].type.dtype));
    }
    if (!sx_mul_size(parser->max_elems, largest, &bytes) ||
        (bytes > memory->charged_bytes &&
         !sx_budget_charge(memory->budget, bytes - memory->charged_bytes))) {
        return sx_no_memory("for %zu input values of %zu bytes", parser->max_elems, largest);
    }
    memory->charged_bytes = SX_MAX(memory->charged_bytes, bytes);
    SX_TRY(sx_predict_slots_reserve(memory, signature->input_count));
    parser->slots = memory->slots;
    for (size_t i = 0; i < signature->input_count; i++) {
        SX_TRY(sx_slot_prepare(&parser->slots[i], &signature->inputs[i], parser->max_elems));
    }
    return SX_OK;
}

/* Every value but the first follows a comma. Blocks of 240 let the compiler count in bytes. */
static size_t count_commas(sx_bytes text)
{
    const char *p = text.data;
    size_t count = 0, i = 0;
    for (; i + 240 <= text.size; i += 240) {
        unsigned char in_block = 0;
        for (size_t k = 0; k < 240; k++) {
            in_block += p[i + k] == ',';
        }
        count += in_block;
    }
    for (; i < text.size; i++) {
        count += p[i] == ',';
    }
    return count;
}

/* ---- Rows and columns ---- */

/* Whether the value at p is exactly {"b64": "..."}. Does not advance. */
static bool is_b64_object(const sx_json *at)
{
    sx_json json = *at;
    sx_bytes key;
    bool more = true;
    if (sx_json_peek(&json) != '{') {
        return false;
    }
    sx_status status = sx_json_enter(&json, '{');
    if (status == SX_OK && sx_json_peek(&json) == '"') {
        status = sx_json_key(&json, &key);
        if (status == SX_OK && sx_bytes_is(key, "b64") && sx_json_peek(&json) == '"') {
            status = sx_json_string(&json, NULL);
            if (status == SX_OK) {
                status = sx_json_next(&json, '}', &more);
            }
        }
    }
    const bool found = status == SX_OK && !more;
    sx_status_free(status);
    return found;
}

/* Whether a list has objects other than {"b64"} values. */
static bool starts_with_object(const sx_json *json)
{
    sx_json look = *json;
    return sx_json_peek(&look) == '{' && !is_b64_object(&look);
}

/* The input of that name, or SIZE_MAX. */
static size_t find_input(const struct parser *parser, sx_bytes name)
{
    for (size_t i = 0; i < parser->signature->input_count; i++) {
        if (sx_bytes_is(name, parser->signature->inputs[i].name)) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Marks an input as given in object number `object`; an error if it was given before. */
static sx_status mark_seen(struct parser *parser, size_t input, size_t object)
{
    struct sx_predict_slot *slot = &parser->slots[input];
    if (slot->seen_at == object + 1) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is given twice", slot->info->name);
    }
    slot->seen_at = object + 1;
    return SX_OK;
}

static sx_status check_all_seen(const struct parser *parser, size_t object, const char *where)
{
    for (size_t i = 0; i < parser->signature->input_count; i++) {
        if (parser->slots[i].seen_at != object + 1) {
            return sx_error(SX_INVALID_ARGUMENT, "Missing named input: %s in %s.",
                            parser->signature->inputs[i].name, where);
        }
    }
    return SX_OK;
}

static sx_status read_row_member(struct parser *parser, size_t row)
{
    sx_bytes key;
    SX_TRY(sx_json_key(&parser->json, &key));
    const size_t input = find_input(parser, key);
    if (input == SIZE_MAX) {
        const int shown = (int)SX_MIN(key.size, (size_t)SX_SLOT_SHOWN_BYTES);
        return sx_error(SX_INVALID_ARGUMENT, "JSON object: does not have named input: %.*s", shown,
                        (const char *)key.data);
    }
    SX_TRY(mark_seen(parser, input, row));
    return sx_slot_read(&parser->json, &parser->slots[input], 1);
}

static sx_status read_row_object(struct parser *parser, size_t row)
{
    bool more = true;
    if (!starts_with_object(&parser->json)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Expecting object but got list at item %zu of input list", row);
    }
    SX_TRY(sx_json_enter(&parser->json, '{'));
    if (sx_json_take(&parser->json, '}')) {
        sx_json_leave(&parser->json);
        more = false;
    }
    while (more) {
        SX_TRY(read_row_member(parser, row), "Failed to process element: %zu of 'instances' list",
               row);
        SX_TRY(sx_json_next(&parser->json, '}', &more));
    }
    return check_all_seen(parser, row, "the object of 'instances'");
}

static sx_status read_row_value(struct parser *parser, size_t row)
{
    struct sx_predict_slot *slot = &parser->slots[0];
    if (slot->info->type.dtype != SX_STRING && starts_with_object(&parser->json)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Expecting value/list but got object at item %zu of input list", row);
    }
    SX_TRY(sx_slot_read(&parser->json, slot, 1),
           "Failed to process element: %zu of 'instances' list", row);
    return SX_OK;
}

/* The value of "instances". Every element of the list is one row of every input. */
static sx_status read_instances(struct parser *parser)
{
    sx_json *json = &parser->json;
    size_t rows = 0;
    bool more = true;
    SX_TRY(sx_json_enter(json, '['), "'instances' must be a list");
    if (sx_json_take(json, ']')) {
        return sx_error(SX_INVALID_ARGUMENT, "No values in 'instances' array");
    }
    const bool objects = starts_with_object(json);
    if (!objects && parser->signature->input_count != 1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "instances is a plain list, but expecting list of objects as the signature "
                        "\"%s\" has %zu inputs",
                        parser->signature->name, parser->signature->input_count);
    }
    if (!objects) {
        parser->slots[0].seen_at = 1;
    }
    while (more) {
        SX_TRY(objects ? read_row_object(parser, rows) : read_row_value(parser, rows));
        rows++;
        SX_TRY(sx_json_next(json, ']', &more));
    }
    for (size_t i = 0; i < parser->signature->input_count; i++) {
        parser->slots[i].dims[0] = (int64_t)rows;
    }
    return SX_OK;
}

static sx_status read_column_member(struct parser *parser)
{
    sx_bytes key;
    SX_TRY(sx_json_key(&parser->json, &key));
    const size_t input = find_input(parser, key);
    if (input == SIZE_MAX) {
        return sx_json_skip(&parser->json);
    }
    SX_TRY(mark_seen(parser, input, 0));
    return sx_slot_read(&parser->json, &parser->slots[input], 0);
}

/* The value of "inputs": one input's value, or an object by name. */
static sx_status read_inputs(struct parser *parser)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (!starts_with_object(json)) {
        if (parser->signature->input_count != 1) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "inputs is a plain value/list, but expecting an object as the signature "
                "\"%s\" has %zu inputs",
                parser->signature->name, parser->signature->input_count);
        }
        return sx_slot_read(&parser->json, &parser->slots[0], 0);
    }
    SX_TRY(sx_json_enter(json, '{'));
    if (sx_json_take(json, '}')) {
        sx_json_leave(json);
        more = false;
    }
    while (more) {
        SX_TRY(read_column_member(parser));
        SX_TRY(sx_json_next(json, '}', &more));
    }
    return check_all_seen(parser, 0, "'inputs' object");
}

/* ---- The document ---- */

/* The state of the document. The values are read when they are reached, with the signature named so
 * far or the default one; if another name follows, they are read again. */
struct document {
    bool has_name, has_instances, has_inputs;
    sx_bytes name;
    const char *values;                  /* start of the value of instances or inputs */
    const sx_serve_signature *read_with; /* the values; NULL: not read yet, or failed */
    sx_status early_error;               /* of reading them with the default signature */
};

static sx_status signature_error(sx_bytes name)
{
    const int shown = (int)SX_MIN(name.size, (size_t)SX_SLOT_SHOWN_BYTES);
    return sx_error(SX_INVALID_ARGUMENT,
                    "Serving signature name: \"%.*s\" not found in signature def", shown,
                    (const char *)name.data);
}

/* Reads the values at json->p with `signature`. */
static sx_status read_values(struct parser *parser, struct document *doc,
                             const sx_serve_signature *signature)
{
    parser->signature = signature;
    SX_TRY(prepare_slots(parser));
    SX_TRY(doc->has_instances ? read_instances(parser) : read_inputs(parser));
    doc->read_with = signature;
    return SX_OK;
}

static sx_status on_values(struct parser *parser, struct document *doc, bool instances)
{
    if (doc->has_instances || doc->has_inputs) {
        return sx_error(SX_INVALID_ARGUMENT, "Not formatted correctly: expecting only one of "
                                             "'inputs' or 'instances' keys to exist, once");
    }
    doc->has_instances = instances;
    doc->has_inputs = !instances;
    const sx_serve_signature *signature =
        sx_serve_find_signature(parser->signatures, parser->signature_count, doc->name);
    if (signature == NULL && doc->has_name) {
        return signature_error(doc->name);
    }
    sx_json_peek(&parser->json);
    doc->values = parser->json.p;
    if (signature != NULL) {
        sx_status status = read_values(parser, doc, signature);
        if (status == SX_OK || doc->has_name) {
            return status;
        }
        doc->early_error = status;
    }
    parser->json.p = doc->values;
    parser->json.depth = 1;
    return sx_json_skip(&parser->json);
}

static sx_status on_signature_name(struct parser *parser, struct document *doc)
{
    if (doc->has_name || sx_json_peek(&parser->json) != '"') {
        return sx_error(SX_INVALID_ARGUMENT, "Not formatted correctly: 'signature_name' key must "
                                             "be a string value, given once");
    }
    doc->has_name = true;
    return sx_json_string(&parser->json, &doc->name);
}

static sx_status read_member(struct parser *parser, struct document *doc)
{
    sx_bytes key;
    SX_TRY(sx_json_key(&parser->json, &key));
    if (sx_bytes_is(key, "signature_name")) {
        return on_signature_name(parser, doc);
    }
    if (sx_bytes_is(key, "instances") || sx_bytes_is(key, "inputs")) {
        return on_values(parser, doc, sx_bytes_is(key, "instances"));
    }
    return sx_json_skip(&parser->json);
}

static sx_status read_members(struct parser *parser, struct document *doc)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (sx_json_peek(json) == '\0') {
        return sx_json_error(json, "The document is empty.");
    }
    SX_TRY(sx_json_enter(json, '{'));
    if (sx_json_take(json, '}')) {
        sx_json_leave(json);
        more = false;
    }
    while (more) {
        SX_TRY(read_member(parser, doc));
        SX_TRY(sx_json_next(json, '}', &more));
    }
    return sx_json_finish(json);
}

/* Once all members are known: reads the values again if they were not read with the right
 * signature. */
static sx_status settle_values(struct parser *parser, struct document *doc)
{
    const sx_serve_signature *signature =
        sx_serve_find_signature(parser->signatures, parser->signature_count, doc->name);
    if (doc->values == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "Missing 'inputs' or 'instances' key");
    }
    if (signature == NULL) {
        return signature_error(sx_serve_signature_name(doc->name));
    }
    if (doc->read_with == signature) {
        return SX_OK;
    }
    parser->json.p = doc->values;
    parser->json.depth = 1;
    return read_values(parser, doc, signature);
}

static sx_status read_document(struct parser *parser, struct document *doc)
{
    sx_status status = read_members(parser, doc);
    if (status == SX_OK) {
        status = settle_values(parser, doc);
    }
    sx_status_free(doc->early_error);
    return status;
}

sx_status sx_predict_parse(sx_bytes body, const sx_serve_signature *signatures,
                           size_t signature_count, sx_arena *arena, sx_predict_slots *slots,
                           sx_predict_request *out_request)
{
    struct parser parser = {.signatures = signatures,
                            .signature_count = signature_count,
                            .memory = slots,
                            .max_elems = count_commas(body) + 1};
    struct document doc = {0};
    slots->budget = arena->budget;
    sx_json_init(&parser.json, body, arena);
    SX_TRY(read_document(&parser, &doc));
    const size_t count = parser.signature->input_count;
    sx_tensor *inputs = sx_arena_array(arena, SX_MAX(count, (size_t)1), sx_tensor);
    if (inputs == NULL) {
        return sx_no_memory("for %zu inputs", count);
    }
    for (size_t i = 0; i < count; i++) {
        SX_TRY(sx_slot_finish(&parser.slots[i], doc.has_instances, &inputs[i]));
    }
    *out_request = (sx_predict_request){parser.signature, doc.has_instances, inputs};
    return SX_OK;
}
