/* REST predict requests into tensors; see predict_json.h. */
#include "serve/predict_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "serve/base64.h"
#include "serve/decimal.h"
#include "serve/json_scan.h"

enum {
    SLOT_ALIGN = 64,
    KEPT_BLOCK_BYTES = 4 * 1024 * 1024, /* larger blocks go back after their request */
    SHOWN_BYTES = 60,                   /* of a value that an error quotes */
};

static const char default_signature[] = "serving_default";

/* One input being filled.
 *
 *   dims[0 .. rank)    known so far; SX_DYNAMIC where the first list of that level is still open
 *   rank               the level at which the first scalar was met; -1 before
 *   data[0 .. count)   elements in row-major order: the order of the text */
struct sx_predict_slot {
    void *block; /* kept between requests */
    size_t block_bytes;

    const sx_serve_tensor *info;
    size_t elem_bytes;
    size_t count, capacity;
    int rank;
    int64_t dims[SX_MAX_RANK];
    size_t
        seen_at; /* 1 + the number of the element or object that last named it: finds duplicates */
};

struct parser {
    sx_json json;
    const sx_serve_signature *signatures;
    size_t signature_count;
    sx_arena *arena;
    sx_predict_slots *memory;
    size_t max_elems; /* the text cannot hold more values than this */
    const sx_serve_signature *signature;
    struct sx_predict_slot *slots; /* [signature->input_count] */
};

/* ---------------------------------------------------------------- slots */

void sx_predict_slots_init(sx_predict_slots *slots)
{
    *slots = (sx_predict_slots){0};
}

void sx_predict_slots_deinit(sx_predict_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++) {
        sx_free_aligned(slots->slots[i].block);
    }
    sx_free(slots->slots);
    sx_predict_slots_init(slots);
}

void sx_predict_slots_trim(sx_predict_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++) {
        if (slots->slots[i].block_bytes > KEPT_BLOCK_BYTES) {
            sx_free_aligned(slots->slots[i].block);
            slots->slots[i].block = NULL;
            slots->slots[i].block_bytes = 0;
        }
    }
}

static sx_status reserve_slots(sx_predict_slots *slots, size_t count)
{
    if (count <= slots->count) {
        return SX_OK;
    }
    struct sx_predict_slot *grown = sx_realloc(slots->slots, count, sizeof(*grown));
    if (!grown) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "predict: no memory for %zu inputs", count);
    }
    memset(grown + slots->count, 0, (count - slots->count) * sizeof(*grown));
    slots->slots = grown;
    slots->count = count;
    return SX_OK;
}

static size_t elem_bytes_of(sx_dtype dtype)
{
    return dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(dtype);
}

/* Readies a slot for a request: room for as many values as the text can hold. The block is not
 * touched, so what is not filled costs no memory. */
static sx_status prepare_slot(struct sx_predict_slot *slot, const sx_serve_tensor *info,
                              size_t max_elems)
{
    size_t bytes;
    slot->info = info;
    slot->elem_bytes = elem_bytes_of(info->type.dtype);
    slot->count = 0;
    slot->rank = -1;
    slot->seen_at = 0;
    for (int i = 0; i < SX_MAX_RANK; i++) {
        slot->dims[i] = SX_DYNAMIC;
    }
    if (!sx_mul_size(max_elems, slot->elem_bytes, &bytes)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "input \"%s\": too many values", info->name);
    }
    if (bytes > slot->block_bytes) {
        sx_free_aligned(slot->block);
        slot->block_bytes = 0;
        slot->block = sx_alloc_aligned(sx_align_up(bytes, SLOT_ALIGN), SLOT_ALIGN);
        if (!slot->block) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "input \"%s\": no memory for %zu values",
                            info->name, max_elems);
        }
        slot->block_bytes = bytes;
    }
    slot->capacity = max_elems;
    return SX_OK;
}

static sx_status prepare_slots(struct parser *parser)
{
    const sx_serve_signature *signature = parser->signature;
    SX_TRY(reserve_slots(parser->memory, signature->input_count));
    parser->slots = parser->memory->slots;
    for (size_t i = 0; i < signature->input_count; i++) {
        SX_TRY(prepare_slot(&parser->slots[i], &signature->inputs[i], parser->max_elems));
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

/* ---------------------------------------------------------------- scalars */

/* "JSON Value: 3.5 is not of expected type: int32", quoting the beginning of the value. */
static sx_status type_error(const sx_json *json, const struct sx_predict_slot *slot)
{
    size_t size = (size_t)(json->end - json->p);
    size = SX_MIN(size, (size_t)SHOWN_BYTES);
    for (size_t i = 0; i < size; i++) {
        const char c = json->p[i];
        const bool ends_scalar = i > 0 && (c == ',' || c == ']' || c == '}' || c == '\n');
        if (ends_scalar || (unsigned char)c < 0x20) {
            size = i;
        }
    }
    size = sx_utf8_prefix(json->p, size);
    return sx_error(SX_INVALID_ARGUMENT, "JSON Value: %.*s is not of expected type: %s", (int)size,
                    json->p, sx_dtype_name(slot->info->type.dtype));
}

static sx_status take_number(sx_json *json, const struct sx_predict_slot *slot,
                             sx_decimal *out_number)
{
    sx_json_peek(json);
    return sx_decimal_scan(json->p, json->end, out_number) ? SX_OK : type_error(json, slot);
}

static sx_status range_error(const sx_json *json, const sx_decimal *number,
                             const struct sx_predict_slot *slot)
{
    const int size = (int)SX_MIN(number->end - json->p, (ptrdiff_t)SHOWN_BYTES);
    return sx_error(SX_INVALID_ARGUMENT, "JSON Value: %.*s does not fit the type %s", size, json->p,
                    sx_dtype_name(slot->info->type.dtype));
}

/* Each of these reads one scalar at json->p into the slot's next element; there is room. */
typedef sx_status scalar_fn(struct parser *parser, struct sx_predict_slot *slot);

static sx_status read_f32(struct parser *parser, struct sx_predict_slot *slot)
{
    sx_json *json = &parser->json;
    sx_decimal number;
    double special;
    float value;
    sx_json_peek(json);
    if (sx_decimal_scan(json->p, json->end, &number)) {
        value = sx_decimal_to_f32(&number);
        if (isinf(value)) {
            return range_error(json, &number, slot);
        }
        json->p = number.end;
    } else if (sx_json_special(json, &special)) {
        value = (float)special;
    } else {
        return type_error(json, slot);
    }
    ((float *)slot->block)[slot->count++] = value;
    return SX_OK;
}

static sx_status read_f64(struct parser *parser, struct sx_predict_slot *slot)
{
    sx_json *json = &parser->json;
    sx_decimal number;
    double value;
    sx_json_peek(json);
    if (sx_decimal_scan(json->p, json->end, &number)) {
        value = sx_decimal_to_f64(&number);
        if (isinf(value)) {
            return range_error(json, &number, slot);
        }
        json->p = number.end;
    } else if (!sx_json_special(json, &value)) {
        return type_error(json, slot);
    }
    ((double *)slot->block)[slot->count++] = value;
    return SX_OK;
}

/* The range of the signed and narrow unsigned integers. */
static void integer_range(sx_dtype dtype, int64_t *out_low, int64_t *out_high)
{
    static const struct {
        sx_dtype dtype;
        int64_t low, high;
    } ranges[] = {
        {SX_I8, INT8_MIN, INT8_MAX},    {SX_I16, INT16_MIN, INT16_MAX},
        {SX_I32, INT32_MIN, INT32_MAX}, {SX_I64, INT64_MIN, INT64_MAX},
        {SX_U8, 0, UINT8_MAX},          {SX_U16, 0, UINT16_MAX},
        {SX_U32, 0, UINT32_MAX},
    };
    *out_low = *out_high = 0;
    for (size_t i = 0; i < SX_COUNT(ranges); i++) {
        if (ranges[i].dtype == dtype) {
            *out_low = ranges[i].low;
            *out_high = ranges[i].high;
        }
    }
}

static sx_status read_integer(struct parser *parser, struct sx_predict_slot *slot)
{
    sx_json *json = &parser->json;
    sx_decimal number;
    int64_t value, low, high;
    SX_TRY(take_number(json, slot, &number));
    if (!number.integral) {
        return type_error(json, slot);
    }
    integer_range(slot->info->type.dtype, &low, &high);
    if (!sx_decimal_to_i64(&number, &value) || value < low || value > high) {
        return range_error(json, &number, slot);
    }
    json->p = number.end;
    /* little-endian: the low bytes are the narrower integer */
    memcpy((char *)slot->block + slot->count++ * slot->elem_bytes, &value, slot->elem_bytes);
    return SX_OK;
}

static sx_status read_u64(struct parser *parser, struct sx_predict_slot *slot)
{
    sx_json *json = &parser->json;
    sx_decimal number;
    uint64_t value;
    SX_TRY(take_number(json, slot, &number));
    if (!number.integral) {
        return type_error(json, slot);
    }
    if (!sx_decimal_to_u64(&number, &value)) {
        return range_error(json, &number, slot);
    }
    json->p = number.end;
    ((uint64_t *)slot->block)[slot->count++] = value;
    return SX_OK;
}

static sx_status read_bool(struct parser *parser, struct sx_predict_slot *slot)
{
    bool value;
    sx_json_peek(&parser->json);
    sx_status status = sx_json_bool(&parser->json, &value);
    if (status != SX_OK) {
        sx_status_free(status);
        return type_error(&parser->json, slot);
    }
    ((unsigned char *)slot->block)[slot->count++] = value;
    return SX_OK;
}

static sx_status decode_b64(struct parser *parser, sx_bytes text, sx_bytes *out_bytes)
{
    unsigned char *bytes = sx_arena_alloc(parser->arena, SX_BASE64_DECODED_MAX(text.size), 1);
    if (!bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "no memory for %zu bytes of base64", text.size);
    }
    const ptrdiff_t size = sx_base64_decode(text.data, text.size, bytes);
    if (size < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Unable to base64 decode: the \"b64\" value of %zu "
                        "characters is not formatted correctly",
                        text.size);
    }
    *out_bytes = (sx_bytes){bytes, (size_t)size};
    return SX_OK;
}

/* {"b64": "..."}, exactly. */
static sx_status read_b64_object(struct parser *parser, sx_bytes *out_bytes)
{
    sx_json *json = &parser->json;
    sx_bytes key, text;
    bool more;
    SX_TRY(sx_json_enter(json, '{'));
    SX_TRY(sx_json_key(json, &key));
    if (!sx_bytes_is(key, "b64")) {
        return sx_json_error(json, "An object as a value must be {\"b64\": \"...\"}.");
    }
    SX_TRY(sx_json_string(json, &text));
    SX_TRY(sx_json_next(json, '}', &more));
    if (more) {
        return sx_json_error(json, "An object as a value must be {\"b64\": \"...\"}.");
    }
    return decode_b64(parser, text, out_bytes);
}

static sx_status read_string(struct parser *parser, struct sx_predict_slot *slot)
{
    sx_bytes *out = (sx_bytes *)slot->block + slot->count;
    const char c = sx_json_peek(&parser->json);
    if (c == '"') {
        SX_TRY(sx_json_string(&parser->json, out));
    } else if (c == '{') {
        SX_TRY(read_b64_object(parser, out));
    } else {
        return type_error(&parser->json, slot);
    }
    slot->count++;
    return SX_OK;
}

static scalar_fn *scalar_reader(sx_dtype dtype)
{
    static const struct {
        sx_dtype dtype;
        scalar_fn *read;
    } readers[] = {
        {SX_F32, read_f32},     {SX_F64, read_f64},     {SX_I8, read_integer},
        {SX_I16, read_integer}, {SX_I32, read_integer}, {SX_I64, read_integer},
        {SX_U8, read_integer},  {SX_U16, read_integer}, {SX_U32, read_integer},
        {SX_U64, read_u64},     {SX_BOOL, read_bool},   {SX_STRING, read_string},
    };
    for (size_t i = 0; i < SX_COUNT(readers); i++) {
        if (readers[i].dtype == dtype) {
            return readers[i].read;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- values */

/* What is being read: one slot, the function for its scalars. */
struct target {
    struct parser *parser;
    struct sx_predict_slot *slot;
    scalar_fn *read;
};

static sx_status level_error(const struct target *t, int level)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "input \"%s\": a value was found at level %d, but the values before it are at "
                    "level %d: every element must have the same shape",
                    t->slot->info->name, level, t->slot->rank);
}

static sx_status read_scalar(const struct target *t, int level)
{
    struct sx_predict_slot *slot = t->slot;
    if (slot->rank < 0) {
        slot->rank = level;
    }
    if (slot->rank != level) {
        return level_error(t, level);
    }
    if (slot->count == slot->capacity) { /* more values than commas: the text is malformed */
        return sx_json_error(&t->parser->json, "Missing a comma.");
    }
    return t->read(t->parser, slot);
}

static sx_status read_list(const struct target *t, int level);

/* As many plain floats as follow at this level, read in one go; returns how many. What stops it
 * (the list's end, NaN, a mistake) is left to the general path. */
static size_t read_float_run(const struct target *t, int level)
{
    struct sx_predict_slot *slot = t->slot;
    sx_json *json = &t->parser->json;
    const size_t room = slot->capacity - slot->count;
    size_t count = 0;
    if (slot->rank >= 0 && slot->rank != level) {
        return 0;
    }
    if (slot->info->type.dtype == SX_F32) {
        json->p = sx_decimal_read_f32s(json->p, json->end, (float *)slot->block + slot->count, room,
                                       &count);
    } else if (slot->info->type.dtype == SX_F64) {
        json->p = sx_decimal_read_f64s(json->p, json->end, (double *)slot->block + slot->count,
                                       room, &count);
    }
    slot->rank = count > 0 ? level : slot->rank;
    slot->count += count;
    return count;
}

/* The elements of a list whose '[' has been taken. */
static sx_status read_elements(const struct target *t, int level, int64_t *out_count)
{
    sx_json *json = &t->parser->json;
    int64_t count = 0;
    bool more = true;
    if (sx_json_take(json, ']')) {
        sx_json_leave(json);
        *out_count = 0;
        return SX_OK;
    }
    while (more) {
        const char c = sx_json_peek(json);
        const size_t run = c == '[' ? 0 : read_float_run(t, level + 1);
        if (run == 0) {
            SX_TRY(c == '[' ? read_list(t, level + 1) : read_scalar(t, level + 1));
        }
        count += run > 0 ? (int64_t)run : 1;
        SX_TRY(sx_json_next(json, ']', &more));
    }
    *out_count = count;
    return SX_OK;
}

static sx_status read_list(const struct target *t, int level)
{
    struct sx_predict_slot *slot = t->slot;
    int64_t count = 0;
    if (level >= SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": lists nested deeper than %d levels",
                        slot->info->name, (int)SX_MAX_RANK);
    }
    if (slot->rank >= 0 && level >= slot->rank) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": Encountered list at unexpected level: %d expected < %d",
                        slot->info->name, level, slot->rank);
    }
    SX_TRY(sx_json_enter(&t->parser->json, '['));
    SX_TRY(read_elements(t, level, &count));
    if (slot->dims[level] == SX_DYNAMIC) {
        slot->dims[level] = count;
    }
    if (slot->dims[level] != count) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": Encountered list at unexpected size: %" PRId64
                        " at level: %d expected size: %" PRId64,
                        slot->info->name, count, level, slot->dims[level]);
    }
    if (count == 0 && slot->rank < 0) {
        slot->rank = level + 1; /* nothing lies deeper */
    }
    return SX_OK;
}

/* A value of any nesting; its outermost list is dimension `level`. */
static sx_status read_value(const struct target *t, int level)
{
    return sx_json_peek(&t->parser->json) == '[' ? read_list(t, level) : read_scalar(t, level);
}

static sx_status make_target(struct parser *parser, size_t input, struct target *out)
{
    struct sx_predict_slot *slot = &parser->slots[input];
    *out = (struct target){parser, slot, scalar_reader(slot->info->type.dtype)};
    if (!out->read) {
        return sx_error(SX_UNIMPLEMENTED, "input \"%s\": conversion of JSON values to type %s",
                        slot->info->name, sx_dtype_name(slot->info->type.dtype));
    }
    return SX_OK;
}

/* ---------------------------------------------------------------- rows and columns */

/* Is the value at p exactly {"b64": "..."}? Looks without taking. */
static bool is_b64_object(const sx_json *at)
{
    sx_json json = *at;
    sx_bytes key, text;
    bool more = true;
    if (sx_json_peek(&json) != '{') {
        return false;
    }
    sx_status status = sx_json_enter(&json, '{');
    if (status == SX_OK && sx_json_peek(&json) == '"') {
        status = sx_json_key(&json, &key);
        if (status == SX_OK && sx_bytes_is(key, "b64") && sx_json_peek(&json) == '"') {
            status = sx_json_string(&json, &text);
            if (status == SX_OK) {
                status = sx_json_next(&json, '}', &more);
            }
        }
    }
    const bool found = status == SX_OK && !more;
    sx_status_free(status);
    return found;
}

/* A list of objects, as opposed to {"b64"} values. */
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

/* Marks an input as given in object number `object`; refuses the second time. */
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
    struct target target;
    SX_TRY(sx_json_key(&parser->json, &key));
    const size_t input = find_input(parser, key);
    if (input == SIZE_MAX) {
        const int shown = (int)SX_MIN(key.size, (size_t)SHOWN_BYTES);
        return sx_error(SX_INVALID_ARGUMENT, "JSON object: does not have named input: %.*s", shown,
                        (const char *)key.data);
    }
    SX_TRY(mark_seen(parser, input, row));
    SX_TRY(make_target(parser, input, &target));
    return read_value(&target, 1);
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

static sx_status read_row_value(struct parser *parser, const struct target *target, size_t row)
{
    if (target->slot->info->type.dtype != SX_STRING && starts_with_object(&parser->json)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Expecting value/list but got object at item %zu of input list", row);
    }
    SX_TRY(read_value(target, 1), "Failed to process element: %zu of 'instances' list", row);
    return SX_OK;
}

/* The value of "instances". Every element of the list is one row of every input. */
static sx_status read_instances(struct parser *parser)
{
    sx_json *json = &parser->json;
    struct target target = {0};
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
        SX_TRY(make_target(parser, 0, &target));
        parser->slots[0].seen_at = 1;
    }
    while (more) {
        SX_TRY(objects ? read_row_object(parser, rows) : read_row_value(parser, &target, rows));
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
    struct target target;
    SX_TRY(sx_json_key(&parser->json, &key));
    const size_t input = find_input(parser, key);
    if (input == SIZE_MAX) {
        return sx_json_skip(&parser->json);
    }
    SX_TRY(mark_seen(parser, input, 0));
    SX_TRY(make_target(parser, input, &target));
    return read_value(&target, 0);
}

/* The value of "inputs": one input's value, or an object by name. */
static sx_status read_inputs(struct parser *parser)
{
    sx_json *json = &parser->json;
    bool more = true;
    if (!starts_with_object(json)) {
        struct target target;
        if (parser->signature->input_count != 1) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "inputs is a plain value/list, but expecting an object as the signature "
                "\"%s\" has %zu inputs",
                parser->signature->name, parser->signature->input_count);
        }
        SX_TRY(make_target(parser, 0, &target));
        return read_value(&target, 0);
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

/* ---------------------------------------------------------------- the document */

static const sx_serve_signature *find_signature(const struct parser *parser, sx_bytes name)
{
    for (size_t i = 0; i < parser->signature_count; i++) {
        if (sx_bytes_is(name, parser->signatures[i].name)) {
            return &parser->signatures[i];
        }
    }
    return NULL;
}

/* What has been met of the document. The values are read when they come, with the signature named
 * so far or the default one; if the name follows later and is another one, they are read again. */
struct document {
    bool has_name, has_instances, has_inputs;
    sx_bytes name;
    const char *values;                  /* where those of instances or inputs begin */
    const sx_serve_signature *read_with; /* what they were read with; NULL: not, or in vain */
    sx_status early_error;               /* of reading them with the default signature */
};

static sx_bytes wanted_name(const struct document *doc)
{
    return doc->has_name && doc->name.size > 0
               ? doc->name
               : (sx_bytes){default_signature, sizeof(default_signature) - 1};
}

static sx_status signature_error(sx_bytes name)
{
    const int shown = (int)SX_MIN(name.size, (size_t)SHOWN_BYTES);
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
    const sx_serve_signature *signature = find_signature(parser, wanted_name(doc));
    if (!signature && doc->has_name) {
        return signature_error(doc->name);
    }
    sx_json_peek(&parser->json);
    doc->values = parser->json.p;
    if (signature) {
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

/* All members are known: the values must have been read with the right signature, or are now. */
static sx_status settle_values(struct parser *parser, struct document *doc)
{
    const sx_bytes name = wanted_name(doc);
    const sx_serve_signature *signature = find_signature(parser, name);
    if (!doc->values) {
        return sx_error(SX_INVALID_ARGUMENT, "Missing 'inputs' or 'instances' key");
    }
    if (!signature) {
        return signature_error(name);
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

/* ---------------------------------------------------------------- shapes */

static sx_status check_shape(const struct sx_predict_slot *slot, const sx_type *got)
{
    const sx_type *wanted = &slot->info->type;
    bool fits = slot->info->unknown_rank || got->rank == wanted->rank;
    for (int i = 0; fits && !slot->info->unknown_rank && i < got->rank; i++) {
        fits = wanted->dims[i] < 0 || wanted->dims[i] == got->dims[i];
    }
    if (!fits) {
        char got_text[SX_TYPE_TEXT], wanted_text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": got %s, expected %s", slot->info->name,
                        sx_type_format(got, got_text, sizeof(got_text)),
                        sx_type_format(wanted, wanted_text, sizeof(wanted_text)));
    }
    return SX_OK;
}

/* The tensor of a filled slot. Lists that never reached a scalar ([[], []]) end where they end. */
static sx_status finish_slot(struct sx_predict_slot *slot, bool row, sx_tensor *out)
{
    const int rank = slot->rank < 0 ? (int)row : slot->rank;
    *out = (sx_tensor){.type = sx_type_make(slot->info->type.dtype, rank, slot->dims),
                       .data = slot->block};
    return check_shape(slot, &out->type);
}

sx_status sx_predict_parse(sx_bytes body, const sx_serve_signature *signatures,
                           size_t signature_count, sx_arena *arena, sx_predict_slots *slots,
                           sx_predict_request *out_request)
{
    struct parser parser = {.signatures = signatures,
                            .signature_count = signature_count,
                            .arena = arena,
                            .memory = slots,
                            .max_elems = count_commas(body) + 1};
    struct document doc = {0};
    sx_json_init(&parser.json, body, arena);
    SX_TRY(read_document(&parser, &doc));
    const size_t count = parser.signature->input_count;
    sx_tensor *inputs = sx_arena_array(arena, SX_MAX(count, (size_t)1), sx_tensor);
    if (!inputs) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "predict: no memory for %zu inputs", count);
    }
    for (size_t i = 0; i < count; i++) {
        SX_TRY(finish_slot(&parser.slots[i], doc.has_instances, &inputs[i]));
    }
    *out_request = (sx_predict_request){parser.signature, doc.has_instances, inputs};
    return SX_OK;
}
