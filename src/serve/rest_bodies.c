/* Predict with bodies that are not JSON; see rest_bodies.h. */
#include "serve/rest_bodies.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "serve/json_scan.h"
#include "serve/kserve.h"
#include "serve/predict_proto.h"
#include "serve/predict_slot.h"

static const char tensor_type[] = "application/x-tensor";

/* ---- Content types ---- */

/* Takes what is before `stop`, without spaces around it. */
static sx_http_text take_until(sx_http_text *text, char stop)
{
    sx_http_text part = {text->data, 0};
    while (part.size < text->size && text->data[part.size] != stop) {
        part.size++;
    }
    const size_t taken = SX_MIN(part.size + 1, text->size);
    text->data += taken;
    text->size -= taken;
    for (; part.size > 0 && (*part.data == ' ' || *part.data == '\t'); part.size--) {
        part.data++;
    }
    while (part.size > 0 && (part.data[part.size - 1] == ' ' || part.data[part.size - 1] == '\t')) {
        part.size--;
    }
    return part;
}

/* "1x28x28"; empty: a scalar. */
static bool parse_shape(sx_http_text text, sx_type *type)
{
    type->rank = 0;
    while (text.size > 0) {
        const sx_http_text digits = take_until(&text, 'x');
        int64_t dim = 0;
        for (size_t i = 0; i < digits.size; i++) {
            const char c = digits.data[i];
            if (c < '0' || c > '9' || __builtin_mul_overflow(dim, (int64_t)10, &dim) ||
                __builtin_add_overflow(dim, (int64_t)(c - '0'), &dim)) {
                return false;
            }
        }
        if (digits.size == 0 || type->rank == SX_MAX_RANK) {
            return false;
        }
        type->dims[type->rank++] = dim;
    }
    return true;
}

bool sx_rest_tensor_type(sx_http_text content_type, sx_type *out)
{
    enum { NAME_BYTES = 16 };
    *out = (sx_type){.dtype = SX_DTYPE_NONE};
    bool right = sx_http_text_is_nocase(take_until(&content_type, ';'), tensor_type);
    bool has_shape = false;
    while (content_type.size > 0 && right) {
        sx_http_text value = take_until(&content_type, ';');
        const sx_http_text name = take_until(&value, '=');
        if (sx_http_text_is_nocase(name, "dtype")) {
            char text[NAME_BYTES];
            snprintf(text, sizeof(text), "%.*s", (int)SX_MIN(value.size, sizeof(text)), value.data);
            right = sx_dtype_parse(text, &out->dtype);
        } else if (sx_http_text_is_nocase(name, "shape")) {
            right = parse_shape(value, out);
            has_shape = true;
        }
    }
    return right && has_shape && sx_dtype_bytes(out->dtype) > 0;
}

/* ---- Protobuf ---- */

static sx_status read_proto(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots)
{
    sx_predict_spec spec;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->call.servable, &count);
    sx_predict_call *request = sx_arena_new(&call->call.arena, sx_predict_call);
    (void)slots;
    if (request == NULL) {
        return sx_no_memory("for a request");
    }
    sx_status status = sx_predict_spec_read(body, &spec);
    sx_status_free(status); /* malformed bytes are found again below; the spec may be missing */
    SX_TRY(sx_predict_proto_read(body, &spec, signatures, count, &call->call.arena, request));
    call->call.read = request;
    sx_call_set_run(&call->call, request->signature, request->inputs);
    return SX_OK;
}

static sx_status print_proto(sx_rest_call *call, const sx_tensor *outputs)
{
    const sx_predict_call *request = call->call.read;
    const sx_predict_spec ran = sx_call_spec(&call->call, request->signature->name);
    snprintf(call->content_type, sizeof(call->content_type), "application/x-protobuf");
    return sx_predict_proto_print(request, outputs, &ran, 2, false, &call->call.out);
}

static const sx_rest_method predict_proto = {read_proto, print_proto, NULL};

/* ---- One tensor ---- */

/* The value of a name in the query, not decoded; empty: it is not there. */
static sx_bytes query_value(sx_http_text query, const char *wanted)
{
    while (query.size > 0) {
        sx_http_text value = take_until(&query, '&');
        if (sx_http_text_is(take_until(&value, '='), wanted)) {
            return (sx_bytes){value.data, value.size};
        }
    }
    return (sx_bytes){"", 0};
}

/* The output that a request asks for: the one of that name, or the only one. */
static sx_status find_output(const sx_serve_signature *signature, sx_bytes name, size_t *out)
{
    const bool only = name.size == 0 && signature->output_count == 1;
    for (size_t i = 0; i < signature->output_count; i++) {
        if (only || sx_bytes_is(name, signature->outputs[i].name)) {
            *out = i;
            return SX_OK;
        }
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "signature \"%s\" has %zu outputs: give one in the query, ?output=NAME",
                    signature->name, signature->output_count);
}

/* What has been read of a request. */
struct tensor_request {
    sx_kserve_request request;
    size_t output; /* that it asks for */
};

static sx_status read_tensor(sx_rest_call *call, sx_bytes body, sx_predict_slots *slots)
{
    const sx_http_head *head = sx_http_request_head(call->call.exchange);
    sx_arena *arena = &call->call.arena;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->call.servable, &count);
    struct tensor_request *read = sx_arena_new(arena, struct tensor_request);
    sx_type type;
    (void)slots;
    if (read == NULL) {
        return sx_no_memory("for a request");
    }
    if (!sx_rest_tensor_type(sx_http_header_get(head, "Content-Type"), &type)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "expected Content-Type: %s; dtype=float32; shape=1x28x28x1", tensor_type);
    }
    read->request.id = (sx_bytes){"", 0};
    SX_TRY(sx_kserve_begin(&read->request, signatures, count,
                           query_value(head->query, "signature_name"), arena));
    const sx_serve_signature *signature = read->request.signature;
    if (signature->input_count != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "signature \"%s\" has %zu inputs, expected 1",
                        signature->name, signature->input_count);
    }
    SX_TRY(find_output(signature, query_value(head->query, "output"), &read->output));
    SX_TRY(sx_slot_check_type(&signature->inputs[0], &type));
    const int64_t elems = sx_type_elems(&type);
    if (elems < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the shape has too many elements");
    }
    read->request.inputs[0].type = type;
    SX_TRY(sx_kserve_read_raw(&read->request, 0, (size_t)elems, body, arena));
    call->call.read = read;
    sx_call_set_run(&call->call, signature, read->request.inputs);
    return SX_OK;
}

static sx_status print_tensor(sx_rest_call *call, const sx_tensor *outputs)
{
    const struct tensor_request *read = call->call.read;
    const sx_tensor *tensor = &outputs[read->output];
    sx_buf *out = &call->call.out;
    int size = snprintf(call->content_type, sizeof(call->content_type),
                        "%s; dtype=%s; shape=", tensor_type, sx_dtype_name(tensor->type.dtype));
    for (int i = 0; i < tensor->type.rank && (size_t)size < sizeof(call->content_type); i++) {
        size += snprintf(call->content_type + size, sizeof(call->content_type) - (size_t)size,
                         "%s%" PRId64, i > 0 ? "x" : "", tensor->type.dims[i]);
    }
    if (sx_dtype_bytes(tensor->type.dtype) == 0 || (size_t)size >= sizeof(call->content_type)) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "output \"%s\": %s cannot be sent as %s",
                        read->request.signature->outputs[read->output].name,
                        sx_type_format(&tensor->type, text, sizeof(text)), tensor_type);
    }
    sx_kserve_print_raw(tensor, out);
    return sx_buf_status(out);
}

static const sx_rest_method predict_tensor = {read_tensor, print_tensor, NULL};

const sx_rest_method *sx_rest_method_of(const sx_http_head *head)
{
    sx_http_text rest = sx_http_header_get(head, "Content-Type");
    const sx_http_text type = take_until(&rest, ';');
    if (sx_http_text_is_nocase(type, tensor_type)) {
        return &predict_tensor;
    }
    const bool is_proto = sx_http_text_is_nocase(type, "application/x-protobuf") ||
                          sx_http_text_is_nocase(type, "application/protobuf");
    return is_proto ? &predict_proto : NULL;
}
