/* One input of a request, filled from JSON text; see predict_slot.h. */
#include "serve/predict_slot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "serve/base64.h"
#include "serve/decimal.h"
#include "serve/decimal_list.h"

enum {
    SLOT_ALIGN = 64,
    KEPT_BLOCK_BYTES = 4 * 1024 * 1024, /* larger blocks are freed after their request */
    SMALL_BLOCK_BYTES = 16 * 1024,      /* is used for any request that it is large enough for */
    MAX_RUN_VALUES = 1 << 16,           /* read before the length of their list is looked at */
    MAX_ROW_VALUES =
        256, /* of lists that are read several at a time: one that fails is read twice */
    MAX_MISFIT_VALUES =
        4096, /* of a wrong shape: read to quote the shape, but no more than these */
};

/* ---- Scalars ---- */

/* "JSON Value: 3.5 is not of expected type: int32", quoting the beginning of the value. */
static sx_status type_error(const sx_json *json, const struct sx_predict_slot *slot)
{
    size_t size = (size_t)(json->end - json->p);
    size = SX_MIN(size, (size_t)SX_SLOT_SHOWN_BYTES);
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
    const int size = (int)SX_MIN(number->end - json->p, (ptrdiff_t)SX_SLOT_SHOWN_BYTES);
    return sx_error(SX_INVALID_ARGUMENT, "JSON Value: %.*s is out of range for type %s", size,
                    json->p, sx_dtype_name(slot->info->type.dtype));
}

/* An sx_slot_scalar_fn for each type. */

static sx_status read_f32(sx_json *json, struct sx_predict_slot *slot)
{
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

static sx_status read_f64(sx_json *json, struct sx_predict_slot *slot)
{
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

static sx_status read_integer(sx_json *json, struct sx_predict_slot *slot)
{
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

static sx_status read_u64(sx_json *json, struct sx_predict_slot *slot)
{
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

static sx_status read_bool(sx_json *json, struct sx_predict_slot *slot)
{
    bool value;
    sx_json_peek(json);
    sx_status status = sx_json_bool(json, &value);
    if (status != SX_OK) {
        sx_status_free(status);
        return type_error(json, slot);
    }
    ((unsigned char *)slot->block)[slot->count++] = value;
    return SX_OK;
}

static sx_status decode_b64(sx_json *json, sx_bytes text, sx_bytes *out_bytes)
{
    unsigned char *bytes = sx_arena_alloc(json->arena, SX_BASE64_DECODED_MAX(text.size), 1);
    if (bytes == NULL) {
        return sx_no_memory("for %zu bytes of base64", text.size);
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
static sx_status read_b64_object(sx_json *json, sx_bytes *out_bytes)
{
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
    return decode_b64(json, text, out_bytes);
}

static sx_status read_string(sx_json *json, struct sx_predict_slot *slot)
{
    sx_bytes *out = (sx_bytes *)slot->block + slot->count;
    const char c = sx_json_peek(json);
    if (c == '"') {
        SX_TRY(sx_json_string(json, out));
    } else if (c == '{') {
        SX_TRY(read_b64_object(json, out));
    } else {
        return type_error(json, slot);
    }
    slot->count++;
    return SX_OK;
}

static sx_slot_scalar_fn *scalar_reader(sx_dtype dtype)
{
    static const struct {
        sx_dtype dtype;
        sx_slot_scalar_fn *read;
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

/* ---- Values ---- */

static sx_status level_error(const struct sx_predict_slot *slot, int level)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "input \"%s\": value at nesting level %d, but earlier values are at level %d; "
                    "all elements must have the same shape",
                    slot->info->name, level, slot->rank);
}

/* The depth of the first scalar is the tensor's rank. */
static void set_rank(struct sx_predict_slot *slot, int rank)
{
    slot->rank = rank;
    slot->misfit |= !slot->info->unknown_rank && rank != slot->info->type.rank;
}

/* What is already known to have the wrong shape is not read to its end: a compressed body may hold
 * any number of values. */
static sx_status check_misfit(const struct sx_predict_slot *slot)
{
    if (!slot->misfit || slot->count <= MAX_MISFIT_VALUES) {
        return SX_OK;
    }
    char wanted[SX_TYPE_TEXT];
    return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": the values do not have the shape of %s",
                    slot->info->name, sx_type_format(&slot->info->type, wanted, sizeof(wanted)));
}

static sx_status read_scalar(sx_json *json, struct sx_predict_slot *slot, int level)
{
    if (slot->rank < 0) {
        set_rank(slot, level);
    }
    if (slot->rank != level) {
        return level_error(slot, level);
    }
    SX_TRY(check_misfit(slot));
    if (slot->count == slot->capacity) { /* more values than commas: malformed text */
        return sx_json_error(json, "Missing a comma.");
    }
    return slot->read(json, slot);
}

static sx_status read_list(sx_json *json, struct sx_predict_slot *slot, int level);

static bool is_float(const struct sx_predict_slot *slot)
{
    return slot->info->type.dtype == SX_F32 || slot->info->type.dtype == SX_F64;
}

/* Reads as many plain floats as follow at this level; returns the number. The general path handles
 * whatever ends them (the end of the list, NaN, an error). */
static size_t read_float_run(sx_json *json, struct sx_predict_slot *slot, int level)
{
    const bool bounded = slot->misfit || slot->rank < 0; /* the first run tells the rank */
    const size_t room = SX_MIN(slot->capacity - slot->count,
                               bounded ? (size_t)MAX_MISFIT_VALUES + 1 : (size_t)MAX_RUN_VALUES);
    size_t count = 0;
    if (!is_float(slot) || (slot->rank >= 0 && slot->rank != level)) {
        return 0;
    }
    json->p =
        sx_decimal_read_list(json->p, json->end, slot->info->type.dtype,
                             (char *)slot->block + slot->count * slot->elem_bytes, room, &count);
    if (count > 0 && slot->rank < 0) {
        set_rank(slot, level);
    }
    slot->count += count;
    return count;
}

/* Reads as many lists of plain floats as follow at this level and are like those before them;
 * returns the number. The general path handles all others. */
static size_t read_float_rows(sx_json *json, struct sx_predict_slot *slot, int level)
{
    const int64_t width = level < SX_MAX_RANK ? slot->dims[level] : 0;
    size_t count = 0;
    if (!is_float(slot) || slot->misfit || slot->rank != level + 1 || width <= 0 ||
        width > MAX_ROW_VALUES) {
        return 0;
    }
    const size_t room =
        SX_MIN(slot->capacity - slot->count, (size_t)MAX_RUN_VALUES) / (size_t)width;
    json->p = sx_decimal_read_rows(json->p, json->end, slot->info->type.dtype,
                                   (char *)slot->block + slot->count * slot->elem_bytes,
                                   (size_t)width, room, &count);
    slot->count += count * (size_t)width;
    return count;
}

/* The size of a dimension in the signature; -1 if any size will do. */
static int64_t wanted_dim(const struct sx_predict_slot *slot, int level)
{
    const sx_type *type = &slot->info->type;
    return slot->info->unknown_rank || level >= type->rank ? -1 : type->dims[level];
}

/* The elements of a list whose '[' has been taken. */
static sx_status read_elements(sx_json *json, struct sx_predict_slot *slot, int level,
                               int64_t *out_count)
{
    const int64_t wanted = wanted_dim(slot, level);
    int64_t count = 0;
    bool more = true;
    if (sx_json_take(json, ']')) {
        sx_json_leave(json);
        *out_count = 0;
        return SX_OK;
    }
    while (more) {
        const char c = sx_json_peek(json);
        const size_t run = c == '[' ? read_float_rows(json, slot, level + 1)
                                    : read_float_run(json, slot, level + 1);
        if (run == 0) {
            SX_TRY(c == '[' ? read_list(json, slot, level + 1)
                            : read_scalar(json, slot, level + 1));
        }
        count += run > 0 ? (int64_t)run : 1;
        slot->misfit |= wanted >= 0 && count > wanted;
        SX_TRY(check_misfit(slot));
        SX_TRY(sx_json_next(json, ']', &more));
    }
    *out_count = count;
    return SX_OK;
}

static sx_status read_list(sx_json *json, struct sx_predict_slot *slot, int level)
{
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
    SX_TRY(sx_json_enter(json, '['));
    SX_TRY(read_elements(json, slot, level, &count));
    if (slot->dims[level] == SX_UNKNOWN_DIM) {
        const int64_t wanted = wanted_dim(slot, level);
        slot->dims[level] = count;
        slot->misfit |= wanted >= 0 && count != wanted;
    }
    if (slot->dims[level] != count) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": Encountered list at unexpected size: %" PRId64
                        " at level: %d expected size: %" PRId64,
                        slot->info->name, count, level, slot->dims[level]);
    }
    if (count == 0 && slot->rank < 0) {
        slot->rank = level + 1; /* nothing is nested deeper */
    }
    return SX_OK;
}

sx_status sx_slot_read(sx_json *json, struct sx_predict_slot *slot, int level)
{
    if (slot->read == NULL) {
        return sx_error(SX_UNIMPLEMENTED,
                        "input \"%s\": conversion of JSON values to type %s is not supported",
                        slot->info->name, sx_dtype_name(slot->info->type.dtype));
    }
    return sx_json_peek(json) == '[' ? read_list(json, slot, level)
                                     : read_scalar(json, slot, level);
}

/* ---- Memory ---- */

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
    sx_budget_release(slots->budget, slots->charged_bytes);
    slots->budget = NULL;
    slots->charged_bytes = 0;
}

sx_status sx_predict_slots_reserve(sx_predict_slots *slots, size_t count)
{
    if (count <= slots->count) {
        return SX_OK;
    }
    struct sx_predict_slot *grown = sx_realloc(slots->slots, count, sizeof(*grown));
    if (grown == NULL) {
        return sx_no_memory("for %zu inputs", count);
    }
    memset(grown + slots->count, 0, (count - slots->count) * sizeof(*grown));
    slots->slots = grown;
    slots->count = count;
    return SX_OK;
}

size_t sx_slot_elem_bytes(sx_dtype dtype)
{
    return dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(dtype);
}

sx_status sx_slot_prepare(struct sx_predict_slot *slot, const sx_serve_tensor *info,
                          size_t max_elems)
{
    size_t bytes;
    slot->info = info;
    slot->read = scalar_reader(info->type.dtype);
    slot->elem_bytes = sx_slot_elem_bytes(info->type.dtype);
    slot->count = 0;
    slot->rank = -1;
    slot->misfit = false;
    slot->seen_at = 0;
    for (int i = 0; i < SX_MAX_RANK; i++) {
        slot->dims[i] = SX_UNKNOWN_DIM;
    }
    if (!sx_mul_size(max_elems, slot->elem_bytes, &bytes)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "input \"%s\": too many values", info->name);
    }
    /* A call may wait with its block, and is charged for what it needs. */
    if (bytes > slot->block_bytes ||
        slot->block_bytes > SX_MAX(2 * bytes, (size_t)SMALL_BLOCK_BYTES)) {
        sx_free_aligned(slot->block);
        slot->block_bytes = 0;
        slot->block = sx_alloc_aligned(sx_align_up(bytes, SLOT_ALIGN), SLOT_ALIGN);
        if (slot->block == NULL) {
            return sx_no_memory("for input \"%s\" of %zu values", info->name, max_elems);
        }
        slot->block_bytes = bytes;
    }
    slot->capacity = max_elems;
    return SX_OK;
}

/* ---- Shapes ---- */

sx_status sx_slot_check_type(const sx_serve_tensor *info, const sx_type *got)
{
    const sx_type *wanted = &info->type;
    bool fits = got->dtype == wanted->dtype && (info->unknown_rank || got->rank == wanted->rank);
    for (int i = 0; fits && !info->unknown_rank && i < got->rank; i++) {
        fits = wanted->dims[i] < 0 || wanted->dims[i] == got->dims[i];
    }
    if (!fits) {
        char got_text[SX_TYPE_TEXT], wanted_text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": got %s, expected %s", info->name,
                        sx_type_format(got, got_text, sizeof(got_text)),
                        sx_type_format(wanted, wanted_text, sizeof(wanted_text)));
    }
    return SX_OK;
}

/* Lists without any scalar ([[], []]) end at their deepest level. */
sx_status sx_slot_finish(struct sx_predict_slot *slot, bool row, sx_tensor *out)
{
    const int rank = slot->rank < 0 ? (int)row : slot->rank;
    *out = (sx_tensor){.type = sx_type_make(slot->info->type.dtype, rank, slot->dims),
                       .data = slot->block};
    return sx_slot_check_type(slot->info, &out->type);
}
