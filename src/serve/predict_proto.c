/* Predict's protobuf messages; see predict_proto.h. */
#include "serve/predict_proto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/integer.h"
#include "base/memory.h"
#include "proto/tensor_value.h"
#include "proto/wire.h"
#include "serve/json_scan.h"
#include "serve/predict_slot.h"

enum {
    SHOWN_BYTES = 60,         /* of a name quoted in an error */
    LARGE_BYTES = 128 * 1024, /* of values that are worth an effort not to be copied */
};

static sx_status malformed(const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "malformed %s", what);
}

/* ---- The spec ---- */

static sx_status read_spec(sx_bytes bytes, sx_predict_spec *out)
{
    sx_wire wire = sx_wire_over(bytes);
    sx_wire_field field;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed("ModelSpec");
        }
        if (field.number < 1 || field.number > 4) {
            continue;
        }
        if (field.type != SX_WIRE_BYTES) {
            return malformed("ModelSpec");
        }
        if (field.number != 2) {
            *(field.number == 1   ? &out->name
              : field.number == 3 ? &out->signature
                                  : &out->label) = field.value;
            out->version = field.number == 4 ? -1 : out->version;
            continue;
        }
        sx_wire value = sx_wire_over(field.value);
        uint64_t version = 0;
        while (sx_wire_more(&value)) {
            if (!sx_wire_next(&value, &field) ||
                (field.number == 1 && !sx_wire_number(&field, &version))) {
                return malformed("ModelSpec.version");
            }
        }
        out->version = (int64_t)version;
        out->label = (sx_bytes){"", 0}; /* of the two, the last counts */
        if (out->version < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "negative model version %" PRId64, out->version);
        }
    }
    return SX_OK;
}

sx_status sx_predict_spec_read(sx_bytes message, sx_predict_spec *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    bool found = false;
    *out = (sx_predict_spec){.version = -1};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed("request message");
        }
        if (field.number == 1 && field.type == SX_WIRE_BYTES) {
            found = true;
            SX_TRY(read_spec(field.value, out));
        }
    }
    return found ? SX_OK : sx_error(SX_INVALID_ARGUMENT, "Missing ModelSpec");
}

/* ---- Tensors ---- */

/* Where TensorProto has the values of a dtype, and how. */
static const struct values_row {
    sx_dtype dtype;
    uint32_t field;
    sx_wire_type type; /* of one value */
} values_rows[] = {
    {SX_F32, 5, SX_WIRE_FIXED32},  {SX_F64, 6, SX_WIRE_FIXED64},  {SX_I32, 7, SX_WIRE_VARINT},
    {SX_I16, 7, SX_WIRE_VARINT},   {SX_I8, 7, SX_WIRE_VARINT},    {SX_U16, 7, SX_WIRE_VARINT},
    {SX_U8, 7, SX_WIRE_VARINT},    {SX_STRING, 8, SX_WIRE_BYTES}, {SX_I64, 10, SX_WIRE_VARINT},
    {SX_BOOL, 11, SX_WIRE_VARINT}, {SX_F16, 13, SX_WIRE_VARINT},  {SX_BF16, 13, SX_WIRE_VARINT},
    {SX_U32, 16, SX_WIRE_VARINT},  {SX_U64, 17, SX_WIRE_VARINT},
};

static const struct values_row *values_of(sx_dtype dtype)
{
    for (size_t i = 0; i < SX_COUNT(values_rows); i++) {
        if (values_rows[i].dtype == dtype) {
            return &values_rows[i];
        }
    }
    return NULL;
}

/* A TensorProto being read. */
struct reader {
    const sx_serve_tensor *info;
    sx_bytes message, content;
    sx_type type;
    size_t elems;
};

static sx_status bad_tensor(const struct reader *reader, const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "tensor parsing error: %s: %s", reader->info->name, what);
}

static sx_status read_dim(struct reader *reader, sx_bytes bytes)
{
    sx_wire wire = sx_wire_over(bytes);
    sx_wire_field field;
    uint64_t size = 0;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number == 1 && !sx_wire_number(&field, &size))) {
            return bad_tensor(reader, "malformed dimension");
        }
    }
    if (reader->type.rank == SX_MAX_RANK || (int64_t)size < 0) {
        return bad_tensor(reader, (int64_t)size < 0 ? "negative dimension" : "too many dimensions");
    }
    reader->type.dims[reader->type.rank++] = (int64_t)size;
    return SX_OK;
}

static sx_status read_shape(struct reader *reader, sx_bytes bytes)
{
    sx_wire wire = sx_wire_over(bytes);
    sx_wire_field field;
    uint64_t unknown_rank = 0;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 3 && !sx_wire_number(&field, &unknown_rank)) || unknown_rank != 0) {
            return bad_tensor(reader, "malformed or unknown shape");
        }
        if (field.number == 2 && field.type == SX_WIRE_BYTES) {
            SX_TRY(read_dim(reader, field.value));
        }
    }
    return SX_OK;
}

/* Everything but the values. */
static sx_status read_type(struct reader *reader)
{
    sx_wire wire = sx_wire_over(reader->message);
    sx_wire_field field;
    uint64_t dtype = 0;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 1 && !sx_wire_number(&field, &dtype))) {
            return bad_tensor(reader, "malformed bytes");
        }
        if (field.number == 2 && field.type == SX_WIRE_BYTES) {
            SX_TRY(read_shape(reader, field.value));
        } else if (field.number == 4 && field.type == SX_WIRE_BYTES) {
            reader->content = field.value;
        }
    }
    reader->type.dtype = dtype < 100 ? sx_tf_plain_dtype((int)dtype) : SX_DTYPE_NONE;
    SX_TRY(sx_slot_check_type(reader->info, &reader->type));
    const int64_t elems = sx_type_elems(&reader->type);
    if (elems < 0 || values_of(reader->type.dtype) == NULL) {
        return bad_tensor(reader, "too many elements, or a type without values");
    }
    reader->elems = (size_t)elems;
    return SX_OK;
}

/* The next field of values: *out_more is false at the end. */
static bool next_values(sx_wire *wire, uint32_t number, sx_wire_field *out, bool *out_more)
{
    while (sx_wire_more(wire)) {
        if (!sx_wire_next(wire, out)) {
            return false;
        }
        if (out->number == number) {
            *out_more = true;
            return true;
        }
    }
    *out_more = false;
    return true;
}

/* Appends the values of one field to data[*count ..), of which there are `room`; false if they are
 * malformed or too many. */
static bool take_values(const sx_wire_field *field, const struct values_row *row, size_t elem_bytes,
                        uint8_t *data, size_t room, size_t *count)
{
    if (row->type != SX_WIRE_VARINT) { /* packed or not, the bytes are the values */
        if (field->value.size % elem_bytes != 0 || field->value.size / elem_bytes > room - *count ||
            (field->type != row->type && field->type != SX_WIRE_BYTES)) {
            return false;
        }
        memcpy(data + *count * elem_bytes, field->value.data, field->value.size);
        *count += field->value.size / elem_bytes;
        return true;
    }
    sx_wire wire = sx_wire_over(field->value);
    if (field->type != SX_WIRE_VARINT && field->type != SX_WIRE_BYTES) {
        return false;
    }
    while (sx_wire_more(&wire)) {
        uint64_t value;
        if (*count == room || !sx_wire_varint(&wire, &value)) {
            return false;
        }
        if (row->dtype == SX_BOOL) {
            value = value != 0;
        }
        memcpy(data + (*count)++ * elem_bytes, &value, elem_bytes); /* little-endian: low bytes */
    }
    return true;
}

static sx_status no_room(const struct reader *reader)
{
    char text[SX_TYPE_TEXT];
    return sx_error(SX_RESOURCE_EXHAUSTED, "input \"%s\": no memory for %s", reader->info->name,
                    sx_type_format(&reader->type, text, sizeof(text)));
}

/* All values, if they lie together in the message: as tensor_content, or packed in one field. */
static const void *find_together(const struct reader *reader, const struct values_row *row,
                                 size_t bytes)
{
    const void *found = NULL;
    sx_wire wire = sx_wire_over(reader->message);
    sx_wire_field field;
    bool more = true;
    if (reader->content.size > 0) {
        return reader->content.data;
    }
    while (row->type != SX_WIRE_VARINT && next_values(&wire, row->field, &field, &more) && more) {
        if (found != NULL || field.type != SX_WIRE_BYTES || field.value.size != bytes) {
            return NULL;
        }
        found = field.value.data;
    }
    return more ? NULL : found;
}

/* Sets *out_unaligned to large values that are copied because of where they lie. */
static sx_status read_numbers(const struct reader *reader, sx_arena *arena, void **out,
                              const void **out_unaligned)
{
    const struct values_row *row = values_of(reader->type.dtype);
    const size_t elem_bytes = sx_dtype_bytes(reader->type.dtype);
    size_t bytes, count = 0;
    if (!sx_mul_size(reader->elems, elem_bytes, &bytes)) {
        return no_room(reader);
    }
    if (reader->content.size > 0 && reader->content.size != bytes) {
        return bad_tensor(reader, "the size of tensor_content does not match the shape");
    }
    const void *together = find_together(reader, row, bytes);
    if (together != NULL && (uintptr_t)together % elem_bytes == 0) {
        *out = (void *)together;
        return SX_OK;
    }
    uint8_t *data = sx_arena_alloc_unset(arena, bytes + 1);
    if (data == NULL) {
        return no_room(reader);
    }
    *out = data;
    if (together != NULL) {
        memcpy(data, together, bytes);
        *out_unaligned = bytes >= LARGE_BYTES ? together : *out_unaligned;
        return SX_OK;
    }
    sx_wire wire = sx_wire_over(reader->message);
    sx_wire_field field;
    bool more = true;
    while (more) {
        if (!next_values(&wire, row->field, &field, &more) ||
            (more && !take_values(&field, row, elem_bytes, data, reader->elems, &count))) {
            return bad_tensor(reader, "malformed values, or more than the shape has");
        }
    }
    if (count == 0) {
        memset(data, 0, bytes);
    }
    for (size_t i = count; count > 0 && i < reader->elems; i++) {
        memcpy(data + i * elem_bytes, data + (count - 1) * elem_bytes, elem_bytes);
    }
    return SX_OK;
}

/* tensor_content of strings: the size of each as a varint, then their bytes. */
static bool split_content(const struct reader *reader, sx_bytes *views)
{
    sx_wire wire = sx_wire_over(reader->content);
    for (size_t i = 0; i < reader->elems; i++) {
        uint64_t size;
        if (!sx_wire_varint(&wire, &size) || size > reader->content.size) {
            return false;
        }
        views[i].size = (size_t)size;
    }
    for (size_t i = 0; i < reader->elems; i++) {
        if (views[i].size > (size_t)(wire.end - wire.at)) {
            return false;
        }
        views[i].data = wire.at;
        wire.at += views[i].size;
    }
    return !sx_wire_more(&wire);
}

static sx_status read_strings(const struct reader *reader, sx_arena *arena, void **out)
{
    const uint32_t number = values_of(SX_STRING)->field;
    sx_bytes *views = reader->elems >= SIZE_MAX / sizeof(sx_bytes)
                          ? NULL
                          : sx_arena_array(arena, reader->elems + 1, sx_bytes);
    size_t count = 0;
    if (views == NULL) {
        return no_room(reader);
    }
    *out = views;
    if (reader->content.size > 0) {
        return split_content(reader, views) ? SX_OK
                                            : bad_tensor(reader, "malformed tensor_content");
    }
    sx_wire wire = sx_wire_over(reader->message);
    sx_wire_field field;
    bool more = true;
    while (more) {
        if (!next_values(&wire, number, &field, &more) ||
            (more && (field.type != SX_WIRE_BYTES || count == reader->elems))) {
            return bad_tensor(reader, "malformed strings, or more than the shape has");
        }
        if (more) {
            views[count++] = field.value;
        }
    }
    for (size_t i = count; i < reader->elems; i++) {
        views[i] = count > 0 ? views[count - 1] : (sx_bytes){"", 0};
    }
    return SX_OK;
}

/* ---- Requests ---- */

/* The index of a name; `count` if it is not there. */
static size_t find_tensor(sx_bytes name, const sx_serve_tensor *tensors, size_t count)
{
    size_t i = 0;
    while (i < count && !sx_bytes_is(name, tensors[i].name)) {
        i++;
    }
    return i;
}

/* "tensor alias not found in signature: x Inputs expected to be in the set {a,b}." */
static sx_status unknown_alias(const char *kind, sx_bytes name, const sx_serve_tensor *tensors,
                               size_t count)
{
    sx_buf set;
    sx_buf_init(&set, 4096);
    for (size_t i = 0; i < count; i++) {
        sx_buf_printf(&set, "%s%s", i > 0 ? "," : "", tensors[i].name);
    }
    sx_status status =
        sx_error(SX_INVALID_ARGUMENT,
                 "%s tensor alias not found in signature: %.*s%s expected to be in the set {%s}.",
                 kind, (int)SX_MIN(name.size, (size_t)SHOWN_BYTES), (const char *)name.data,
                 kind[0] == 'i' ? ". Inputs" : " Outputs", sx_buf_text(&set));
    sx_buf_deinit(&set);
    return status;
}

/* One entry of `inputs`: key 1, value 2. *out_known is false if the signature has no such input. */
static sx_status read_entry(sx_bytes entry, sx_arena *arena, sx_predict_call *call, bool *out_known)
{
    const sx_serve_signature *signature = call->signature;
    sx_wire wire = sx_wire_over(entry);
    sx_wire_field field;
    sx_bytes key = {"", 0};
    struct reader reader = {.message = {"", 0}};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 2 && field.type != SX_WIRE_BYTES)) {
            return malformed("PredictRequest.inputs");
        }
        if (field.number <= 2) {
            *(field.number == 1 ? &key : &reader.message) = field.value;
        }
    }
    const size_t index = find_tensor(key, signature->inputs, signature->input_count);
    if (index == signature->input_count) {
        *out_known = false;
        return SX_OK;
    }
    reader.info = &signature->inputs[index];
    SX_TRY(read_type(&reader));
    sx_tensor *tensor = &call->inputs[index];
    tensor->type = reader.type;
    return reader.type.dtype == SX_STRING
               ? read_strings(&reader, arena, &tensor->data)
               : read_numbers(&reader, arena, &tensor->data, &call->unaligned);
}

static sx_status read_filter(sx_bytes name, sx_predict_call *call)
{
    const sx_serve_signature *signature = call->signature;
    const size_t index = find_tensor(name, signature->outputs, signature->output_count);
    if (index == signature->output_count) {
        return unknown_alias("output", name, signature->outputs, signature->output_count);
    }
    if (call->wanted[index]) {
        return sx_error(SX_INVALID_ARGUMENT, "duplicate output tensor alias: %s",
                        signature->outputs[index].name);
    }
    call->wanted[index] = true;
    return SX_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return sx_bytes_compare(*(const sx_bytes *)a, *(const sx_bytes *)b);
}

/* The name of the next of the request's inputs; false at the end of the message. */
static bool next_name(sx_wire *wire, sx_bytes *out)
{
    const uint8_t *at;
    sx_bytes entry;
    if (sx_wire_find(wire, 2, &at, &entry) != SX_WIRE_FOUND) {
        return false;
    }
    sx_wire parts = sx_wire_over(entry);
    sx_wire_field part;
    *out = (sx_bytes){"", 0};
    while (sx_wire_more(&parts) && sx_wire_next(&parts, &part)) {
        *out = part.number == 1 ? part.value : *out;
    }
    return true;
}

/* The different names of the request's inputs, sorted; NULL: no memory. */
static sx_bytes *input_names(sx_bytes message, sx_arena *arena, size_t *out_count)
{
    size_t entries = 0, count = 0;
    sx_bytes name;
    for (sx_wire wire = sx_wire_over(message); next_name(&wire, &name);) {
        entries++;
    }
    sx_bytes *names = sx_arena_array(arena, entries + 1, sx_bytes);
    if (names == NULL) {
        return NULL;
    }
    sx_wire wire = sx_wire_over(message);
    for (size_t i = 0; i < entries && next_name(&wire, &name); i++) {
        names[i] = name;
    }
    qsort(names, entries, sizeof(names[0]), by_bytes);
    for (size_t i = 0; i < entries; i++) {
        if (i == 0 || sx_bytes_compare(names[i], names[count - 1]) != 0) {
            names[count++] = names[i];
        }
    }
    *out_count = count;
    return names;
}

/* "{a,b}" of the names that the other list does not have; with NULL of all. */
static void put_set(sx_buf *out, const sx_bytes *names, size_t count, const sx_bytes *others,
                    size_t other_count)
{
    const char *comma = "";
    sx_buf_putc(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (others == NULL ||
            bsearch(&names[i], others, other_count, sizeof(others[0]), by_bytes) == NULL) {
            sx_buf_puts(out, comma);
            sx_buf_put_utf8(out, names[i].data, SX_MIN(names[i].size, (size_t)SHOWN_BYTES));
            comma = ",";
        }
    }
    sx_buf_putc(out, '}');
}

/* The inputs of the request are not as many as those of the signature. */
static sx_status wrong_count(const sx_serve_signature *signature, const sx_bytes *sent,
                             size_t sent_count, sx_arena *arena)
{
    const size_t count = signature->input_count;
    sx_bytes *wanted = sx_arena_array(arena, count + 1, sx_bytes);
    if (wanted == NULL) {
        return sx_no_memory("for a request");
    }
    for (size_t i = 0; i < count; i++) {
        wanted[i] = (sx_bytes){signature->inputs[i].name, strlen(signature->inputs[i].name)};
    }
    qsort(wanted, count, sizeof(wanted[0]), by_bytes);
    sx_buf text;
    sx_buf_init(&text, 4096); /* a longer text is cut */
    sx_buf_printf(&text, "input size does not match signature: %zu!=%zu len(", sent_count, count);
    put_set(&text, sent, sent_count, NULL, 0);
    sx_buf_puts(&text, ") != len(");
    put_set(&text, wanted, count, NULL, 0);
    sx_buf_puts(&text, "). Sent extra: ");
    put_set(&text, sent, sent_count, wanted, count);
    sx_buf_puts(&text, ". Missing but required: ");
    put_set(&text, wanted, count, sent, sent_count);
    sx_buf_puts(&text, ".");
    sx_status status = sx_error(SX_INVALID_ARGUMENT, "%s", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

/* Which inputs the request has is looked at only if they are not those of the signature. */
static sx_status check_names(sx_bytes message, const sx_serve_signature *signature, sx_arena *arena)
{
    size_t count = 0;
    const sx_bytes *names = input_names(message, arena, &count);
    if (names == NULL) {
        return sx_no_memory("for a request");
    }
    if (count != signature->input_count) {
        return wrong_count(signature, names, count, arena);
    }
    for (size_t i = 0; i < count; i++) {
        if (find_tensor(names[i], signature->inputs, count) == count) {
            return unknown_alias("input", names[i], signature->inputs, count);
        }
    }
    return SX_OK;
}

static bool has_all(const sx_predict_call *call)
{
    for (size_t i = 0; i < call->signature->input_count; i++) {
        if (call->inputs[i].data == NULL) {
            return false;
        }
    }
    return true;
}

sx_status sx_predict_proto_read(sx_bytes message, const sx_predict_spec *spec,
                                const sx_serve_signature *signatures, size_t count, sx_arena *arena,
                                sx_predict_call *out)
{
    const sx_serve_signature *signature =
        sx_serve_find_signature(signatures, count, spec->signature);
    if (signature == NULL) {
        return sx_serve_no_signature(spec->signature);
    }
    *out = (sx_predict_call){
        .signature = signature,
        .inputs = sx_arena_array(arena, signature->input_count + 1, sx_tensor),
        .wanted = sx_arena_array(arena, signature->output_count + 1, bool),
    };
    if (out->inputs == NULL || out->wanted == NULL) {
        return sx_no_memory("for a request");
    }
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    bool filtered = false, known = true;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed("PredictRequest");
        }
        if (field.type == SX_WIRE_BYTES && field.number == 2) {
            SX_TRY(read_entry(field.value, arena, out, &known));
        } else if (field.type == SX_WIRE_BYTES && field.number == 3) {
            filtered = true;
            SX_TRY(read_filter(field.value, out));
        }
    }
    for (size_t i = 0; !filtered && i < signature->output_count; i++) {
        out->wanted[i] = true;
    }
    return known && has_all(out) ? SX_OK : check_names(message, signature, arena);
}

/* ---- Responses ---- */

/* The sizes of the parts of a TensorProto, which precede them. */
struct sizes {
    size_t elems, shape, values, tensor;
};

static size_t dim_size(int64_t dim)
{
    return dim == 0 ? 0 : 1 + sx_wire_varint_size((uint64_t)dim);
}

/* The values as tensor_content has them: of strings, all sizes before all bytes. */
static size_t content_size(const sx_tensor *tensor, size_t elems)
{
    size_t size = tensor->type.dtype == SX_STRING ? 0 : elems * sx_dtype_bytes(tensor->type.dtype);
    for (size_t i = 0; tensor->type.dtype == SX_STRING && i < elems; i++) {
        const size_t bytes = ((const sx_bytes *)tensor->data)[i].size;
        size += sx_wire_varint_size(bytes) + bytes;
    }
    return size;
}

static size_t values_size(const sx_tensor *tensor, const struct values_row *row, size_t elems)
{
    size_t size = 0;
    for (size_t i = 0; row->type == SX_WIRE_BYTES && i < elems; i++) {
        size += sx_wire_field_size(row->field, ((const sx_bytes *)tensor->data)[i].size);
    }
    for (size_t i = 0; row->type == SX_WIRE_VARINT && i < elems; i++) {
        size += sx_wire_varint_size((uint64_t)sx_integer_at(tensor, i));
    }
    return row->type == SX_WIRE_FIXED32 || row->type == SX_WIRE_FIXED64
               ? elems * sx_dtype_bytes(tensor->type.dtype)
               : size;
}

static struct sizes measure(const sx_tensor *tensor, const struct values_row *row, bool content)
{
    struct sizes sizes = {.elems = (size_t)sx_type_elems(&tensor->type)};
    for (int i = 0; i < tensor->type.rank; i++) {
        sizes.shape += sx_wire_field_size(2, dim_size(tensor->type.dims[i]));
    }
    sizes.values =
        content ? content_size(tensor, sizes.elems) : values_size(tensor, row, sizes.elems);
    const bool one_field = (content || row->type != SX_WIRE_BYTES) && sizes.elems > 0;
    sizes.tensor =
        1 + sx_wire_varint_size(tensor->type.dtype) + sx_wire_field_size(2, sizes.shape) +
        (one_field ? sx_wire_field_size(content ? 4 : row->field, sizes.values) : sizes.values);
    return sizes;
}

static void put_content(sx_buf *out, const sx_tensor *tensor, const struct sizes *sizes)
{
    const sx_bytes *strings = tensor->data;
    const bool is_text = tensor->type.dtype == SX_STRING;
    if (sizes->elems == 0) {
        return;
    }
    sx_wire_append_head(out, 4, sizes->values);
    if (!is_text) {
        sx_buf_append(out, tensor->data, sizes->values);
    }
    for (size_t i = 0; is_text && i < sizes->elems; i++) {
        sx_wire_append_varint(out, strings[i].size);
    }
    for (size_t i = 0; is_text && i < sizes->elems; i++) {
        sx_buf_append(out, strings[i].data, strings[i].size);
    }
}

static void put_values(sx_buf *out, const sx_tensor *tensor, const struct values_row *row,
                       const struct sizes *sizes)
{
    if (row->type == SX_WIRE_BYTES) {
        for (size_t i = 0; i < sizes->elems; i++) {
            sx_wire_append_bytes(out, row->field, ((const sx_bytes *)tensor->data)[i]);
        }
        return;
    }
    if (sizes->elems == 0) {
        return;
    }
    sx_wire_append_head(out, row->field, sizes->values);
    if (row->type != SX_WIRE_VARINT) {
        sx_buf_append(out, tensor->data, sizes->values);
        return;
    }
    uint8_t *at = sx_buf_extend(out, sizes->values);
    for (size_t i = 0; at != NULL && i < sizes->elems; i++) {
        at += sx_wire_put_varint(at, (uint64_t)sx_integer_at(tensor, i));
    }
}

sx_status sx_predict_tensor_print(uint32_t number, const char *name, const sx_tensor *tensor,
                                  bool content, sx_buf *out)
{
    const struct values_row *row = values_of(tensor->type.dtype);
    if (row == NULL) {
        return sx_error(SX_UNIMPLEMENTED, "tensor \"%s\" has a type without values", name);
    }
    const struct sizes sizes = measure(tensor, row, content);
    const sx_bytes key = {name, strlen(name)};
    sx_wire_append_head(out, number,
                        sx_wire_field_size(1, key.size) + sx_wire_field_size(2, sizes.tensor));
    sx_wire_append_bytes(out, 1, key);
    sx_wire_append_head(out, 2, sizes.tensor);
    sx_wire_append_tag(out, 1, SX_WIRE_VARINT);
    sx_wire_append_varint(out, tensor->type.dtype);
    sx_wire_append_head(out, 2, sizes.shape);
    for (int i = 0; i < tensor->type.rank; i++) {
        const int64_t dim = tensor->type.dims[i];
        sx_wire_append_head(out, 2, dim_size(dim));
        if (dim != 0) {
            sx_wire_append_tag(out, 1, SX_WIRE_VARINT);
            sx_wire_append_varint(out, (uint64_t)dim);
        }
    }
    if (content) {
        put_content(out, tensor, &sizes);
    } else {
        put_values(out, tensor, row, &sizes);
    }
    return SX_OK;
}

void sx_predict_spec_print(const sx_predict_spec *spec, uint32_t number, sx_buf *out)
{
    const size_t at = sx_wire_begin(out, number);
    sx_wire_append_bytes(out, 1, spec->name);
    const size_t version = sx_wire_begin(out, 2);
    sx_wire_append_number(out, 1, (uint64_t)spec->version);
    sx_wire_end(out, version);
    if (spec->signature.size > 0) {
        sx_wire_append_bytes(out, 3, spec->signature);
    }
    sx_wire_end(out, at);
}

sx_status sx_predict_proto_print(const sx_predict_call *call, const sx_tensor *outputs,
                                 const sx_predict_spec *ran, uint32_t spec_number, bool content,
                                 sx_buf *out)
{
    for (size_t i = 0; i < call->signature->output_count; i++) {
        if (call->wanted[i]) {
            SX_TRY(sx_predict_tensor_print(1, call->signature->outputs[i].name, &outputs[i],
                                           content, out));
        }
    }
    sx_predict_spec_print(ran, spec_number, out);
    return sx_buf_status(out);
}
