/* See metadata_proto.h. */
#include "serve/metadata_proto.h"

#include <string.h>

#include "base/checked.h"
#include "proto/wire.h"
#include "serve/json_scan.h"

sx_status sx_metadata_request_check(sx_bytes request)
{
    enum { SHOWN_BYTES = 60 };
    sx_wire wire = sx_wire_over(request);
    sx_wire_field field;
    bool any = false;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number == 2 && field.type != SX_WIRE_BYTES)) {
            return sx_error(SX_INVALID_ARGUMENT, "malformed GetModelMetadataRequest");
        }
        if (field.number == 2 && !sx_bytes_is(field.value, "signature_def")) {
            return sx_error(SX_INVALID_ARGUMENT, "Metadata field %.*s is not supported",
                            (int)SX_MIN(field.value.size, (size_t)SHOWN_BYTES),
                            (const char *)field.value.data);
        }
        any = any || field.number == 2;
    }
    return any ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "GetModelMetadataRequest must specify at least one metadata_field");
}

static void put_text(sx_buf *out, uint32_t number, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        sx_wire_append_text(out, number, text);
    }
}

/* TensorShapeProto: dim 2 {size 1}, unknown_rank 3. */
static void put_shape(sx_buf *out, const sx_serve_tensor *tensor)
{
    const size_t at = sx_wire_begin(out, 3);
    for (int i = 0; !tensor->unknown_rank && i < tensor->type.rank; i++) {
        const int64_t dim = tensor->type.dims[i];
        const size_t dim_at = sx_wire_begin(out, 2);
        sx_wire_append_number(out, 1, (uint64_t)(dim < 0 ? -1 : dim));
        sx_wire_end(out, dim_at);
    }
    sx_wire_append_number(out, 3, tensor->unknown_rank);
    sx_wire_end(out, at);
}

static void put_tensors(sx_buf *out, uint32_t number, const sx_serve_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t entry = sx_wire_begin(out, number);
        put_text(out, 1, tensors[i].name);
        const size_t info = sx_wire_begin(out, 2);
        put_text(out, 1, tensors[i].tensor_name);
        sx_wire_append_number(out, 2, tensors[i].type.dtype);
        put_shape(out, &tensors[i]);
        sx_wire_end(out, info);
        sx_wire_end(out, entry);
    }
}

static void put_signature(sx_buf *out, const sx_serve_signature *signature)
{
    const size_t entry = sx_wire_begin(out, 1);
    put_text(out, 1, signature->name);
    const size_t at = sx_wire_begin(out, 2);
    put_tensors(out, 1, signature->inputs, signature->input_count);
    put_tensors(out, 2, signature->outputs, signature->output_count);
    put_text(out, 3, signature->method);
    sx_wire_end(out, at);
    sx_wire_end(out, entry);
}

void sx_metadata_print(const sx_predict_spec *spec, const sx_serve_signature *signatures,
                       size_t count, sx_buf *out)
{
    sx_predict_spec_print(spec, 1, out);
    const size_t entry = sx_wire_begin(out, 2);
    put_text(out, 1, "signature_def");
    const size_t any = sx_wire_begin(out, 2);
    put_text(out, 1, "type.googleapis.com/tensorflow.serving.SignatureDefMap");
    const size_t map = sx_wire_begin(out, 2);
    for (size_t i = 0; i < count; i++) {
        put_signature(out, &signatures[i]);
    }
    sx_wire_end(out, map);
    sx_wire_end(out, any);
    sx_wire_end(out, entry);
}
