/* What KServe's forms have in common; see kserve.h. */
#include "serve/kserve.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "serve/json_scan.h"
#include "serve/predict_slot.h"

enum { SHOWN_BYTES = 60 }; /* of a name quoted in an error */

/* ---- Types ---- */

static const struct {
    sx_dtype dtype;
    const char *name;
} datatypes[] = {
    {SX_BOOL, "BOOL"},  {SX_U8, "UINT8"},     {SX_U16, "UINT16"}, {SX_U32, "UINT32"},
    {SX_U64, "UINT64"}, {SX_I8, "INT8"},      {SX_I16, "INT16"},  {SX_I32, "INT32"},
    {SX_I64, "INT64"},  {SX_F16, "FP16"},     {SX_BF16, "BF16"},  {SX_F32, "FP32"},
    {SX_F64, "FP64"},   {SX_STRING, "BYTES"},
};

const char *sx_kserve_datatype(sx_dtype dtype)
{
    for (size_t i = 0; i < SX_COUNT(datatypes); i++) {
        if (datatypes[i].dtype == dtype) {
            return datatypes[i].name;
        }
    }
    return NULL;
}

static sx_dtype dtype_of(sx_bytes name)
{
    for (size_t i = 0; i < SX_COUNT(datatypes); i++) {
        if (sx_bytes_is(name, datatypes[i].name)) {
            return datatypes[i].dtype;
        }
    }
    return SX_DTYPE_NONE;
}

/* ---- Requests ---- */

static int shown(sx_bytes name)
{
    return (int)SX_MIN(name.size, (size_t)SHOWN_BYTES);
}

sx_status sx_kserve_begin(sx_kserve_request *request, const sx_serve_signature *signatures,
                          size_t count, sx_bytes name, sx_arena *arena)
{
    const sx_serve_signature *signature = sx_serve_find_signature(signatures, count, name);
    if (signature == NULL) {
        return sx_serve_no_signature(name);
    }
    request->signature = signature;
    request->inputs = sx_arena_array(arena, signature->input_count + 1, sx_tensor);
    request->outputs = sx_arena_array(arena, signature->output_count + 1, sx_kserve_output);
    return request->inputs != NULL && request->outputs != NULL ? SX_OK
                                                               : sx_no_memory("for a request");
}

/* The index of a name; `count` if it is not there. */
static size_t find_tensor(sx_bytes name, const sx_serve_tensor *tensors, size_t count)
{
    size_t i = 0;
    while (i < count && !sx_bytes_is(name, tensors[i].name)) {
        i++;
    }
    return i;
}

sx_status sx_kserve_add_dim(sx_kserve_tensor *tensor, int64_t dim)
{
    if (tensor->rank == SX_MAX_RANK || dim < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%.*s\": %s", shown(tensor->name),
                        (const char *)tensor->name.data,
                        dim < 0 ? "a dimension is negative" : "too many dimensions");
    }
    tensor->dims[tensor->rank++] = dim;
    return SX_OK;
}

sx_status sx_kserve_take(sx_kserve_request *request, const sx_kserve_tensor *tensor,
                         size_t *out_input, size_t *out_elems)
{
    const sx_serve_signature *signature = request->signature;
    const size_t input = find_tensor(tensor->name, signature->inputs, signature->input_count);
    if (input == signature->input_count || request->inputs[input].type.dtype != SX_DTYPE_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%.*s\" %s", shown(tensor->name),
                        (const char *)tensor->name.data,
                        input < signature->input_count ? "is given twice"
                                                       : "is none of the model's");
    }
    const sx_dtype dtype = dtype_of(tensor->datatype);
    if (dtype == SX_DTYPE_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": unknown datatype \"%.*s\"",
                        signature->inputs[input].name, shown(tensor->datatype),
                        (const char *)tensor->datatype.data);
    }
    sx_type *type = &request->inputs[input].type;
    *type = sx_type_make(dtype, tensor->rank, tensor->dims);
    SX_TRY(sx_slot_check_type(&signature->inputs[input], type));
    const int64_t elems = sx_type_elems(type);
    if (elems < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": too many elements",
                        signature->inputs[input].name);
    }
    *out_input = input;
    *out_elems = (size_t)elems;
    return SX_OK;
}

sx_status sx_kserve_want(sx_kserve_request *request, sx_bytes name, bool binary)
{
    const sx_serve_signature *signature = request->signature;
    const size_t index = find_tensor(name, signature->outputs, signature->output_count);
    bool twice = false;
    for (size_t i = 0; i < request->output_count; i++) {
        twice = twice || request->outputs[i].index == index;
    }
    if (index == signature->output_count || twice) {
        return sx_error(SX_INVALID_ARGUMENT, "output \"%.*s\" %s", shown(name),
                        (const char *)name.data,
                        twice ? "is asked for twice" : "is none of the model's");
    }
    request->outputs[request->output_count++] = (sx_kserve_output){index, binary};
    return SX_OK;
}

sx_status sx_kserve_complete(sx_kserve_request *request, bool binary)
{
    const sx_serve_signature *signature = request->signature;
    for (size_t i = 0; i < signature->input_count; i++) {
        if (request->inputs[i].data == NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is missing",
                            signature->inputs[i].name);
        }
    }
    const bool all = request->output_count == 0;
    for (size_t i = 0; all && i < signature->output_count; i++) {
        request->outputs[request->output_count++] = (sx_kserve_output){i, binary};
    }
    return SX_OK;
}

/* ---- Raw values ---- */

static sx_status read_raw_strings(const char *name, size_t elems, sx_bytes raw, sx_arena *arena,
                                  void **out)
{
    enum { SIZE_BYTES = 4 };
    const uint8_t *at = raw.data;
    size_t left = raw.size, taken = 0;
    /* Each takes its size at least, so that the views are few. */
    sx_bytes *views =
        elems > raw.size / SIZE_BYTES ? NULL : sx_arena_array(arena, elems + 1, sx_bytes);
    if (views == NULL && elems <= raw.size / SIZE_BYTES) {
        return sx_no_memory("for %zu strings", elems);
    }
    for (; taken < elems && views != NULL && left >= SIZE_BYTES; taken++) {
        const size_t size =
            (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        if (size > left - SIZE_BYTES) {
            break;
        }
        views[taken] = (sx_bytes){at + SIZE_BYTES, size};
        at += SIZE_BYTES + size;
        left -= SIZE_BYTES + size;
    }
    if (taken < elems || left > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": %zu raw bytes are not %zu strings, each after 4 bytes of "
                        "size",
                        name, raw.size, elems);
    }
    *out = views;
    return SX_OK;
}

sx_status sx_kserve_read_raw(sx_kserve_request *request, size_t input, size_t elems, sx_bytes raw,
                             sx_arena *arena)
{
    const char *name = request->signature->inputs[input].name;
    sx_tensor *tensor = &request->inputs[input];
    if (tensor->type.dtype == SX_STRING) {
        return read_raw_strings(name, elems, raw, arena, &tensor->data);
    }
    const size_t elem_bytes = sx_dtype_bytes(tensor->type.dtype);
    size_t bytes;
    if (!sx_mul_size(elems, elem_bytes, &bytes) || raw.size != bytes) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": %zu raw bytes are not a %s", name,
                        raw.size, sx_type_format(&tensor->type, text, sizeof(text)));
    }
    const bool is_bool = tensor->type.dtype == SX_BOOL; /* any other byte than 0 is true */
    if (raw.size > 0 && !is_bool && (uintptr_t)raw.data % elem_bytes == 0) {
        tensor->data = (void *)raw.data;
        return SX_OK;
    }
    uint8_t *data = sx_arena_alloc(arena, bytes + 1, 1);
    if (data == NULL) {
        return sx_no_memory("for input \"%s\" of %zu bytes", name, bytes);
    }
    for (size_t i = 0; is_bool && i < bytes; i++) {
        data[i] = ((const uint8_t *)raw.data)[i] != 0;
    }
    if (!is_bool && bytes > 0) {
        memcpy(data, raw.data, bytes);
    }
    tensor->data = data;
    return SX_OK;
}

size_t sx_kserve_raw_size(const sx_tensor *tensor)
{
    const size_t elems = (size_t)sx_type_elems(&tensor->type);
    size_t size = elems * sx_dtype_bytes(tensor->type.dtype);
    for (size_t i = 0; tensor->type.dtype == SX_STRING && i < elems; i++) {
        size += 4 + ((const sx_bytes *)tensor->data)[i].size;
    }
    return size;
}

void sx_kserve_print_raw(const sx_tensor *tensor, sx_buf *out)
{
    const size_t elems = (size_t)sx_type_elems(&tensor->type);
    if (tensor->type.dtype != SX_STRING) {
        sx_buf_append(out, tensor->data, elems * sx_dtype_bytes(tensor->type.dtype));
        return;
    }
    for (size_t i = 0; i < elems; i++) {
        const sx_bytes value = ((const sx_bytes *)tensor->data)[i];
        const uint32_t size = (uint32_t)value.size; /* little-endian */
        sx_buf_append(out, &size, sizeof(size));
        sx_buf_append(out, value.data, value.size);
    }
}
