/* The protobuf messages of KServe's gRPC service; see kserve_proto.h. */
#include "serve/kserve_proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/integer.h"
#include "base/memory.h"
#include "proto/wire.h"
#include "serve/json_scan.h"

static sx_status malformed(const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "malformed %s", what);
}

/* ---- The model ---- */

/* A version in decimal; empty: -1. */
static bool parse_version(sx_bytes text, int64_t *out)
{
    int64_t version = text.size > 0 ? 0 : -1;
    for (size_t i = 0; i < text.size; i++) {
        const char c = ((const char *)text.data)[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(version, (int64_t)10, &version) ||
            __builtin_add_overflow(version, (int64_t)(c - '0'), &version)) {
            return false;
        }
    }
    *out = version;
    return true;
}

sx_status sx_kserve_spec_read(sx_bytes message, sx_predict_spec *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    sx_bytes version = {"", 0};
    *out = (sx_predict_spec){.name = {"", 0}, .label = {"", 0}, .signature = {"", 0}};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed("request message");
        }
        if (field.number <= 2 && field.type == SX_WIRE_BYTES) {
            *(field.number == 1 ? &out->name : &version) = field.value;
        }
    }
    if (!parse_version(version, &out->version)) {
        return sx_error(SX_INVALID_ARGUMENT, "model_version has to be a number, or empty");
    }
    return SX_OK;
}

/* ---- Values ---- */

/* Where InferTensorContents has the values of a dtype, and how. */
static const struct contents_row {
    sx_dtype dtype;
    uint32_t field;
    sx_wire_type type; /* of one value */
} contents_rows[] = {
    {SX_BOOL, 1, SX_WIRE_VARINT}, {SX_I8, 2, SX_WIRE_VARINT},   {SX_I16, 2, SX_WIRE_VARINT},
    {SX_I32, 2, SX_WIRE_VARINT},  {SX_I64, 3, SX_WIRE_VARINT},  {SX_U8, 4, SX_WIRE_VARINT},
    {SX_U16, 4, SX_WIRE_VARINT},  {SX_U32, 4, SX_WIRE_VARINT},  {SX_U64, 5, SX_WIRE_VARINT},
    {SX_F32, 6, SX_WIRE_FIXED32}, {SX_F64, 7, SX_WIRE_FIXED64}, {SX_STRING, 8, SX_WIRE_BYTES},
};

static const struct contents_row *contents_of(sx_dtype dtype)
{
    for (size_t i = 0; i < SX_COUNT(contents_rows); i++) {
        if (contents_rows[i].dtype == dtype) {
            return &contents_rows[i];
        }
    }
    return NULL;
}

/* Takes the values of one field to data[*count ..); false if they are malformed, too many, or do
 * not fit the type. */
static bool take_values(const sx_wire_field *field, const struct contents_row *row, uint8_t *data,
                        size_t elems, size_t *count)
{
    const size_t elem_bytes = sx_dtype_bytes(row->dtype);
    if (row->type == SX_WIRE_BYTES) {
        if (field->type != SX_WIRE_BYTES || *count == elems) {
            return false;
        }
        memcpy(data + (*count)++ * sizeof(sx_bytes), &field->value, sizeof(sx_bytes));
        return true;
    }
    if (field->type != row->type && field->type != SX_WIRE_BYTES) {
        return false;
    }
    if (row->type != SX_WIRE_VARINT) { /* packed or not, the bytes are the values */
        if (field->value.size % elem_bytes != 0 ||
            field->value.size / elem_bytes > elems - *count) {
            return false;
        }
        memcpy(data + *count * elem_bytes, field->value.data, field->value.size);
        *count += field->value.size / elem_bytes;
        return true;
    }
    sx_wire wire = sx_wire_over(field->value);
    while (sx_wire_more(&wire)) {
        uint64_t value;
        if (*count == elems || !sx_wire_varint(&wire, &value)) {
            return false;
        }
        const int64_t as_signed = (int64_t)value;
        const bool fits = row->dtype == SX_I8    ? as_signed == (int8_t)as_signed
                          : row->dtype == SX_I16 ? as_signed == (int16_t)as_signed
                          : row->dtype == SX_U8  ? value <= UINT8_MAX
                          : row->dtype == SX_U16 ? value <= UINT16_MAX
                                                 : true;
        if (!fits) {
            return false;
        }
        if (row->dtype == SX_BOOL) {
            value = value != 0;
        }
        memcpy(data + (*count)++ * elem_bytes, &value, elem_bytes); /* little-endian: low bytes */
    }
    return true;
}

static sx_status read_contents(sx_kserve_request *request, size_t input, size_t elems,
                               sx_bytes contents, sx_arena *arena)
{
    const char *name = request->signature->inputs[input].name;
    sx_tensor *tensor = &request->inputs[input];
    const struct contents_row *row = contents_of(tensor->type.dtype);
    sx_wire wire = sx_wire_over(contents);
    sx_wire_field field;
    size_t count = 0;
    if (row == NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": values of type %s have to be in raw_input_contents", name,
                        sx_kserve_datatype(tensor->type.dtype));
    }
    if (elems > contents.size) { /* each value takes a byte */
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": fewer values than its shape has", name);
    }
    const bool strings = row->type == SX_WIRE_BYTES;
    uint8_t *data = sx_arena_alloc(arena, elems + 1,
                                   strings ? sizeof(sx_bytes) : sx_dtype_bytes(tensor->type.dtype));
    if (data == NULL) {
        return sx_no_memory("for input \"%s\" of %zu values", name, elems);
    }
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || field.number != row->field ||
            !take_values(&field, row, data, elems, &count)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "input \"%s\": its contents are malformed, of another type, or more "
                            "than its shape has",
                            name);
        }
    }
    if (count != elems) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": got %zu values, its shape has %zu",
                        name, count, elems);
    }
    tensor->data = data;
    return SX_OK;
}

/* ---- Requests ---- */

static bool read_dims(const sx_wire_field *field, sx_kserve_tensor *tensor, sx_status *out_status)
{
    sx_wire wire = sx_wire_over(field->value);
    if (field->type != SX_WIRE_VARINT && field->type != SX_WIRE_BYTES) {
        return false;
    }
    while (sx_wire_more(&wire) && *out_status == SX_OK) {
        uint64_t dim;
        if (!sx_wire_varint(&wire, &dim)) {
            return false;
        }
        *out_status = sx_kserve_add_dim(tensor, (int64_t)dim);
    }
    return true;
}

/* The key and the InferParameter of an entry of a map of parameters. */
static bool read_entry(sx_bytes entry, sx_bytes *out_key, sx_bytes *out_value)
{
    sx_wire wire = sx_wire_over(entry);
    sx_wire_field field;
    *out_key = *out_value = (sx_bytes){"", 0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 2 && field.type != SX_WIRE_BYTES)) {
            return false;
        }
        if (field.number <= 2) {
            *(field.number == 1 ? out_key : out_value) = field.value;
        }
    }
    return true;
}

/* The one input or output parameter that would change an answer. */
static sx_status refuse_shared_memory(sx_bytes entry)
{
    sx_bytes key, value;
    if (!read_entry(entry, &key, &value)) {
        return malformed("parameters");
    }
    return sx_bytes_is(key, "shared_memory_region")
               ? sx_error(SX_UNIMPLEMENTED, "tensors in shared memory are not supported")
               : SX_OK;
}

/* Reads the next input, whose values are raw[*next], the raw contents in the order of the inputs,
 * if it has no contents. */
static sx_status read_input(sx_kserve_request *request, sx_bytes message, sx_wire *raw,
                            sx_arena *arena)
{
    sx_kserve_tensor tensor = {.name = {"", 0}, .datatype = {"", 0}};
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    sx_bytes contents = {"", 0};
    size_t input, elems;
    sx_status status = SX_OK;
    while (sx_wire_more(&wire) && status == SX_OK) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 3 && !read_dims(&field, &tensor, &status))) {
            return malformed("InferInputTensor");
        }
        if (field.type != SX_WIRE_BYTES) {
            continue;
        }
        if (field.number == 4) {
            status = refuse_shared_memory(field.value);
        } else if (field.number <= 2) {
            *(field.number == 1 ? &tensor.name : &tensor.datatype) = field.value;
        } else if (field.number == 5) {
            contents = field.value;
        }
    }
    SX_TRY(status);
    SX_TRY(sx_kserve_take(request, &tensor, &input, &elems));
    const char *name = request->signature->inputs[input].name;
    if (!request->raw) {
        return read_contents(request, input, elems, contents, arena);
    }
    const uint8_t *at;
    sx_bytes values;
    if (contents.size > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": contents beside raw_input_contents; expected either", name);
    }
    if (sx_wire_find(raw, 7, &at, &values) != SX_WIRE_FOUND) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": raw_input_contents has no entry for it",
                        name);
    }
    return sx_kserve_read_raw(request, input, elems, values, arena);
}

static sx_status read_output(sx_kserve_request *request, sx_bytes message)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    sx_bytes name = {"", 0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed("InferRequestedOutputTensor");
        }
        if (field.type == SX_WIRE_BYTES && field.number == 1) {
            name = field.value;
        } else if (field.type == SX_WIRE_BYTES && field.number == 2) {
            SX_TRY(refuse_shared_memory(field.value));
        }
    }
    return sx_kserve_want(request, name, true);
}

/* The string of the parameter "signature_name", if the entry is that one. */
static sx_status read_parameter(sx_bytes entry, sx_bytes *signature_name)
{
    sx_bytes key, value;
    sx_wire_field field;
    if (!read_entry(entry, &key, &value)) {
        return malformed("parameters");
    }
    sx_wire wire = sx_wire_over(value);
    while (sx_wire_more(&wire) && sx_bytes_is(key, "signature_name")) {
        if (!sx_wire_next(&wire, &field) || field.number != 3 || field.type != SX_WIRE_BYTES) {
            return sx_error(SX_INVALID_ARGUMENT, "the parameter signature_name is not a string");
        }
        *signature_name = field.value;
    }
    return SX_OK;
}

sx_status sx_kserve_proto_read(sx_bytes message, const sx_serve_signature *signatures, size_t count,
                               sx_arena *arena, sx_kserve_request *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    sx_bytes name = {"", 0}, ignored;
    const uint8_t *at;
    *out = (sx_kserve_request){.id = {"", 0}};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 7 && field.type != SX_WIRE_BYTES)) {
            return malformed("ModelInferRequest");
        }
        if (field.number == 3) {
            out->id = field.value;
        } else if (field.number == 4) {
            SX_TRY(read_parameter(field.value, &name));
        }
        out->raw = out->raw || field.number == 7;
    }
    SX_TRY(sx_kserve_begin(out, signatures, count, name, arena));
    sx_wire raw = sx_wire_over(message);
    wire = sx_wire_over(message);
    while (sx_wire_more(&wire) && sx_wire_next(&wire, &field)) {
        if (field.number == 5) {
            SX_TRY(read_input(out, field.value, &raw, arena));
        } else if (field.number == 6) {
            SX_TRY(read_output(out, field.value));
        }
    }
    if (sx_wire_find(&raw, 7, &at, &ignored) == SX_WIRE_FOUND) {
        return sx_error(SX_INVALID_ARGUMENT, "raw_input_contents has more entries than inputs");
    }
    return sx_kserve_complete(out, true);
}

/* ---- Answers ---- */

static void put_version(sx_buf *out, uint32_t number, int64_t version)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, version);
    sx_wire_append_text(out, number, text);
}

static void put_contents(sx_buf *out, const sx_tensor *tensor, const struct contents_row *row)
{
    const size_t elems = (size_t)sx_type_elems(&tensor->type);
    const size_t contents = sx_wire_begin(out, 5);
    if (row->type == SX_WIRE_BYTES) {
        for (size_t i = 0; i < elems; i++) {
            const sx_bytes value = ((const sx_bytes *)tensor->data)[i];
            sx_wire_append_bytes(out, row->field, value);
        }
    } else if (row->type != SX_WIRE_VARINT) {
        sx_wire_append_bytes(out, row->field,
                             (sx_bytes){tensor->data, elems * sx_dtype_bytes(tensor->type.dtype)});
    } else {
        const size_t values = sx_wire_begin(out, row->field);
        for (size_t i = 0; i < elems; i++) {
            sx_wire_append_varint(out, (uint64_t)sx_integer_at(tensor, i));
        }
        sx_wire_end(out, values);
    }
    sx_wire_end(out, contents);
}

/* TensorMetadata, and the head of an InferOutputTensor: name 1, datatype 2, shape 3. */
static void put_type(sx_buf *out, const char *name, const char *datatype, const int64_t *dims,
                     int rank)
{
    sx_wire_append_text(out, 1, name);
    sx_wire_append_text(out, 2, datatype);
    const size_t shape = sx_wire_begin(out, 3);
    for (int i = 0; i < rank; i++) {
        sx_wire_append_varint(out, (uint64_t)SX_MAX(dims[i], (int64_t)-1));
    }
    sx_wire_end(out, shape);
}

sx_status sx_kserve_proto_print(const sx_kserve_request *request, const sx_tensor *outputs,
                                const char *model, int64_t version, sx_buf *out)
{
    bool raw = request->raw;
    for (size_t i = 0; i < request->output_count; i++) {
        const size_t index = request->outputs[i].index;
        if (sx_kserve_datatype(outputs[index].type.dtype) == NULL) {
            return sx_error(SX_UNIMPLEMENTED, "output \"%s\": the protocol has no type %s",
                            request->signature->outputs[index].name,
                            sx_dtype_name(outputs[index].type.dtype));
        }
        raw = raw || contents_of(outputs[index].type.dtype) == NULL;
    }
    sx_wire_append_text(out, 1, model);
    put_version(out, 2, version);
    sx_wire_append_bytes(out, 3, request->id);
    for (size_t i = 0; i < request->output_count; i++) {
        const size_t index = request->outputs[i].index;
        const sx_type *type = &outputs[index].type;
        const size_t output = sx_wire_begin(out, 5);
        put_type(out, request->signature->outputs[index].name, sx_kserve_datatype(type->dtype),
                 type->dims, type->rank);
        if (!raw) {
            put_contents(out, &outputs[index], contents_of(type->dtype));
        }
        sx_wire_end(out, output);
    }
    for (size_t i = 0; raw && i < request->output_count; i++) {
        const sx_tensor *tensor = &outputs[request->outputs[i].index];
        sx_wire_append_head(out, 6, sx_kserve_raw_size(tensor));
        sx_kserve_print_raw(tensor, out);
    }
    return sx_buf_status(out);
}

static void put_tensors(sx_buf *out, uint32_t number, const sx_serve_tensor *tensors, size_t count)
{
    const int64_t any = -1; /* of unknown rank: the protocol has no word for it */
    for (size_t i = 0; i < count; i++) {
        const char *datatype = sx_kserve_datatype(tensors[i].type.dtype);
        const size_t tensor = sx_wire_begin(out, number);
        put_type(out, tensors[i].name, datatype != NULL ? datatype : "",
                 tensors[i].unknown_rank ? &any : tensors[i].type.dims,
                 tensors[i].unknown_rank ? 1 : tensors[i].type.rank);
        sx_wire_end(out, tensor);
    }
}

void sx_kserve_proto_print_model(const char *model, const int64_t *versions, size_t version_count,
                                 const sx_serve_signature *signature, sx_buf *out)
{
    sx_wire_append_text(out, 1, model);
    for (size_t i = 0; i < version_count; i++) {
        put_version(out, 2, versions[i]);
    }
    sx_wire_append_text(out, 3, "tensorflow_savedmodel");
    if (signature != NULL) {
        put_tensors(out, 4, signature->inputs, signature->input_count);
        put_tensors(out, 5, signature->outputs, signature->output_count);
    }
}
