/* The JSON of KServe's REST API; see kserve_json.h. */
#include "serve/kserve_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "serve/decimal.h"
#include "serve/json_scan.h"
#include "serve/predict_slot.h"

struct reader {
    sx_json json;
    sx_bytes raw; /* what follows the JSON and no input has taken yet */
    sx_arena *arena;
    sx_predict_slots *slots;
    sx_kserve_request *request;
};

/* ---- Lists and objects ---- */

typedef sx_status member_fn(struct reader *reader, sx_bytes key, void *user);
typedef sx_status element_fn(struct reader *reader, void *user);

static sx_status read_object(struct reader *reader, member_fn *member, void *user)
{
    sx_json *json = &reader->json;
    bool more = true;
    SX_TRY(sx_json_enter(json, '{'));
    if (sx_json_take(json, '}')) {
        sx_json_leave(json);
        return SX_OK;
    }
    while (more) {
        sx_bytes key;
        SX_TRY(sx_json_key(json, &key));
        SX_TRY(member(reader, key, user));
        SX_TRY(sx_json_next(json, '}', &more));
    }
    return SX_OK;
}

static sx_status read_list(struct reader *reader, element_fn *element, void *user)
{
    sx_json *json = &reader->json;
    bool more = true;
    SX_TRY(sx_json_enter(json, '['));
    if (sx_json_take(json, ']')) {
        sx_json_leave(json);
        return SX_OK;
    }
    while (more) {
        SX_TRY(element(reader, user));
        SX_TRY(sx_json_next(json, ']', &more));
    }
    return SX_OK;
}

static sx_status read_count(sx_json *json, int64_t *out)
{
    sx_decimal number;
    sx_json_peek(json);
    if (!sx_decimal_scan(json->p, json->end, &number) || !number.integral ||
        !sx_decimal_to_i64(&number, out) || *out < 0) {
        return sx_json_error(json, "Expected a count.");
    }
    json->p = number.end;
    return SX_OK;
}

/* ---- Parameters ---- */

/* Those that mean something here; negative: not given. */
struct parameters {
    int64_t binary_data_size;
    int binary_data, binary_data_output;
    sx_bytes signature_name;
};

static const struct parameters no_parameters = {-1, -1, -1, {"", 0}};

static sx_status read_flag(struct reader *reader, int *out)
{
    bool flag = false;
    sx_json_peek(&reader->json);
    SX_TRY(sx_json_bool(&reader->json, &flag));
    *out = flag;
    return SX_OK;
}

static sx_status read_parameter(struct reader *reader, sx_bytes key, void *user)
{
    struct parameters *parameters = user;
    if (sx_bytes_is(key, "binary_data_size")) {
        return read_count(&reader->json, &parameters->binary_data_size);
    }
    if (sx_bytes_is(key, "binary_data")) {
        return read_flag(reader, &parameters->binary_data);
    }
    if (sx_bytes_is(key, "binary_data_output")) {
        return read_flag(reader, &parameters->binary_data_output);
    }
    if (sx_bytes_is(key, "signature_name")) {
        sx_json_peek(&reader->json);
        return sx_json_string(&reader->json, &parameters->signature_name);
    }
    if (sx_bytes_is(key, "shared_memory_region")) {
        return sx_error(SX_UNIMPLEMENTED, "tensors in shared memory are not supported");
    }
    return sx_json_skip(&reader->json);
}

/* ---- Inputs ---- */

struct input {
    sx_kserve_tensor tensor;
    bool has_shape;
    sx_json data; /* the cursor before the values; p is NULL: none */
    struct parameters parameters;
};

static sx_status read_dim(struct reader *reader, void *user)
{
    int64_t dim = 0;
    SX_TRY(read_count(&reader->json, &dim));
    return sx_kserve_add_dim(user, dim);
}

static sx_status read_input_member(struct reader *reader, sx_bytes key, void *user)
{
    struct input *input = user;
    sx_json_peek(&reader->json);
    if (sx_bytes_is(key, "name")) {
        return sx_json_string(&reader->json, &input->tensor.name);
    }
    if (sx_bytes_is(key, "datatype")) {
        return sx_json_string(&reader->json, &input->tensor.datatype);
    }
    if (sx_bytes_is(key, "shape")) {
        input->has_shape = true;
        input->tensor.rank = 0;
        return read_list(reader, read_dim, &input->tensor);
    }
    if (sx_bytes_is(key, "parameters")) {
        return read_object(reader, read_parameter, &input->parameters);
    }
    if (sx_bytes_is(key, "data")) {
        input->data = reader->json;
    }
    return sx_json_skip(&reader->json);
}

/* Whether the values of a slot are `elems`, in a flat list or nested as `type` says. */
static bool has_shape(const struct sx_predict_slot *slot, const sx_type *type, size_t elems)
{
    bool nested = slot->rank == type->rank;
    for (int i = 0; nested && i < type->rank; i++) {
        nested = slot->dims[i] == type->dims[i];
    }
    return slot->count == elems && (nested || slot->rank <= 1);
}

/* Float32 values as the 16-bit floats that the tensor has. */
static sx_status narrow(const float *values, size_t elems, sx_tensor *tensor, sx_arena *arena)
{
    uint16_t *out = sx_arena_array(arena, elems + 1, uint16_t);
    if (out == NULL) {
        return sx_no_memory("for %zu values", elems);
    }
    for (size_t i = 0; i < elems; i++) {
        out[i] =
            tensor->type.dtype == SX_F16 ? sx_f32_to_f16(values[i]) : sx_f32_to_bf16(values[i]);
    }
    tensor->data = out;
    return SX_OK;
}

static bool is_half(sx_dtype dtype)
{
    return dtype == SX_F16 || dtype == SX_BF16;
}

/* The values of "data", which are at the cursor. */
static sx_status read_values(struct reader *reader, size_t index, size_t elems)
{
    sx_tensor *tensor = &reader->request->inputs[index];
    struct sx_predict_slot *slot = &reader->slots->slots[index];
    sx_serve_tensor *info = sx_arena_new(reader->arena, sx_serve_tensor);
    size_t bytes = 0;
    if (info == NULL) {
        return sx_no_memory("for an input");
    }
    *info = (sx_serve_tensor){
        .name = reader->request->signature->inputs[index].name,
        .type = {.dtype = is_half(tensor->type.dtype) ? SX_F32 : tensor->type.dtype},
        .unknown_rank = true};
    if (elems > (size_t)(reader->json.end - reader->json.p)) { /* each value takes a byte */
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\": fewer values than its shape has",
                        info->name);
    }
    if (!sx_mul_size(elems, sx_slot_elem_bytes(info->type.dtype), &bytes) ||
        !sx_budget_charge(reader->slots->budget, bytes)) {
        return sx_no_memory("for %zu input values", elems);
    }
    reader->slots->charged_bytes += bytes;
    SX_TRY(sx_slot_prepare(slot, info, elems));
    sx_status status = sx_slot_read(&reader->json, slot, 0);
    if (status != SX_OK && slot->count < elems) {
        return status;
    }
    if (status != SX_OK || !has_shape(slot, &tensor->type, elems)) {
        char text[SX_TYPE_TEXT];
        sx_status_free(status);
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": its data are neither a flat list of the values of %s nor "
                        "nested so",
                        info->name, sx_type_format(&tensor->type, text, sizeof(text)));
    }
    if (is_half(tensor->type.dtype)) {
        return narrow(slot->block, elems, tensor, reader->arena);
    }
    tensor->data = elems > 0 ? slot->block : (void *)"";
    return SX_OK;
}

static sx_status take_raw(struct reader *reader, size_t index, size_t elems, int64_t size)
{
    if ((uint64_t)size > reader->raw.size) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "input \"%s\": binary_data_size is %" PRId64 ", but %zu bytes follow the "
                        "JSON and earlier inputs",
                        reader->request->signature->inputs[index].name, size, reader->raw.size);
    }
    const sx_bytes raw = {reader->raw.data, (size_t)size};
    reader->raw = (sx_bytes){(const char *)raw.data + raw.size, reader->raw.size - raw.size};
    return sx_kserve_read_raw(reader->request, index, elems, raw, reader->arena);
}

static sx_status read_input(struct reader *reader, void *user)
{
    struct input input = {.parameters = no_parameters};
    size_t index = 0, elems = 0;
    (void)user;
    SX_TRY(read_object(reader, read_input_member, &input));
    const bool is_raw = input.parameters.binary_data_size >= 0;
    if (!input.has_shape || is_raw == (input.data.p != NULL)) {
        return sx_error(SX_INVALID_ARGUMENT, "an input needs a name, a shape, a datatype, and "
                                             "either data or the parameter binary_data_size");
    }
    SX_TRY(sx_kserve_take(reader->request, &input.tensor, &index, &elems));
    if (is_raw) {
        return take_raw(reader, index, elems, input.parameters.binary_data_size);
    }
    const sx_json after = reader->json;
    reader->json = input.data;
    SX_TRY(read_values(reader, index, elems));
    reader->json = after;
    return SX_OK;
}

/* ---- Wanted outputs ---- */

struct output {
    sx_bytes name;
    struct parameters parameters;
};

static sx_status read_output_member(struct reader *reader, sx_bytes key, void *user)
{
    struct output *output = user;
    sx_json_peek(&reader->json);
    if (sx_bytes_is(key, "name")) {
        return sx_json_string(&reader->json, &output->name);
    }
    if (sx_bytes_is(key, "parameters")) {
        return read_object(reader, read_parameter, &output->parameters);
    }
    return sx_json_skip(&reader->json);
}

static sx_status read_output(struct reader *reader, void *user)
{
    const bool *binary = user;
    struct output output = {.parameters = no_parameters};
    SX_TRY(read_object(reader, read_output_member, &output));
    return sx_kserve_want(reader->request, output.name,
                          output.parameters.binary_data >= 0 ? output.parameters.binary_data != 0
                                                             : *binary);
}

/* ---- Requests ---- */

/* The members of a request; inputs and outputs are cursors, whose p is NULL without them. */
struct document {
    sx_bytes id;
    sx_json inputs, outputs;
    struct parameters parameters;
};

static sx_status read_member(struct reader *reader, sx_bytes key, void *user)
{
    struct document *document = user;
    sx_json_peek(&reader->json);
    if (sx_bytes_is(key, "id")) {
        return sx_json_string(&reader->json, &document->id);
    }
    if (sx_bytes_is(key, "parameters")) {
        return read_object(reader, read_parameter, &document->parameters);
    }
    if (sx_bytes_is(key, "inputs")) {
        document->inputs = reader->json;
    } else if (sx_bytes_is(key, "outputs")) {
        document->outputs = reader->json;
    }
    return sx_json_skip(&reader->json);
}

sx_status sx_kserve_json_read(sx_bytes body, size_t json_size, const sx_serve_signature *signatures,
                              size_t count, sx_arena *arena, sx_predict_slots *slots,
                              sx_kserve_request *out)
{
    struct document document = {.parameters = no_parameters};
    struct reader reader = {.arena = arena, .slots = slots, .request = out};
    *out = (sx_kserve_request){0};
    if (json_size > body.size) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "Inference-Header-Content-Length is %zu, but the body has %zu bytes",
                        json_size, body.size);
    }
    reader.raw = (sx_bytes){(const char *)body.data + json_size, body.size - json_size};
    slots->budget = arena->budget;
    sx_json_init(&reader.json, (sx_bytes){body.data, json_size}, arena);
    SX_TRY(read_object(&reader, read_member, &document));
    SX_TRY(sx_json_finish(&reader.json));
    if (document.inputs.p == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "\"inputs\" is missing");
    }
    SX_TRY(sx_kserve_begin(out, signatures, count, document.parameters.signature_name, arena));
    SX_TRY(sx_predict_slots_reserve(slots, out->signature->input_count));
    out->id = document.id;
    reader.json = document.inputs;
    SX_TRY(read_list(&reader, read_input, NULL));
    if (reader.raw.size > 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%zu bytes behind the JSON belong to no input",
                        reader.raw.size);
    }
    bool binary = document.parameters.binary_data_output > 0;
    if (document.outputs.p != NULL) {
        reader.json = document.outputs;
        SX_TRY(read_list(&reader, read_output, &binary));
    }
    return sx_kserve_complete(out, binary);
}

/* ---- Answers ---- */

static void print_text(sx_buf *out, const char *text)
{
    sx_json_print_string(out, text, strlen(text));
}

static sx_status print_strings(const char *name, const sx_tensor *tensor, sx_buf *out)
{
    const size_t elems = (size_t)sx_type_elems(&tensor->type);
    sx_buf_putc(out, '[');
    for (size_t i = 0; i < elems; i++) {
        const sx_bytes value = ((const sx_bytes *)tensor->data)[i];
        if (sx_utf8_prefix(value.data, value.size) < value.size) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "output \"%s\" is not text: ask for it with the parameter "
                            "\"binary_data\": true",
                            name);
        }
        sx_buf_puts(out, i > 0 ? "," : "");
        sx_json_print_string(out, value.data, value.size);
    }
    sx_buf_putc(out, ']');
    return SX_OK;
}

static sx_status print_values(const char *name, const sx_tensor *tensor, sx_float_format format,
                              const sx_cancel *cancel, sx_arena *arena, sx_buf *out)
{
    const size_t elems = (size_t)sx_type_elems(&tensor->type);
    if (tensor->type.dtype == SX_STRING) {
        return print_strings(name, tensor, out);
    }
    if (!is_half(tensor->type.dtype)) {
        return sx_predict_print_numbers(tensor, format, cancel, out);
    }
    float *wide = sx_arena_array(arena, elems + 1, float);
    const uint16_t *values = tensor->data;
    if (wide == NULL) {
        return sx_no_memory("for %zu values", elems);
    }
    for (size_t i = 0; i < elems; i++) {
        wide[i] =
            tensor->type.dtype == SX_F16 ? sx_f16_to_f32(values[i]) : sx_bf16_to_f32(values[i]);
    }
    const sx_tensor widened = {sx_type_make(SX_F32, tensor->type.rank, tensor->type.dims), wide};
    return sx_predict_print_numbers(&widened, format, cancel, out);
}

static void print_shape(const int64_t *dims, int rank, sx_buf *out)
{
    sx_buf_puts(out, "\"shape\":[");
    for (int i = 0; i < rank; i++) {
        sx_buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", SX_MAX(dims[i], (int64_t)-1));
    }
    sx_buf_putc(out, ']');
}

static void print_type(const sx_serve_tensor *info, const sx_type *type, sx_buf *out)
{
    const char *datatype = sx_kserve_datatype(type->dtype);
    const int64_t any = -1; /* of unknown rank: the protocol has no word for it */
    sx_buf_puts(out, "{\"name\":");
    print_text(out, info->name);
    sx_buf_printf(out, ",\"datatype\":\"%s\",", datatype != NULL ? datatype : "");
    print_shape(type == &info->type && info->unknown_rank ? &any : type->dims,
                type == &info->type && info->unknown_rank ? 1 : type->rank, out);
}

sx_status sx_kserve_json_print(const sx_kserve_request *request, const sx_tensor *outputs,
                               const char *model, int64_t version, sx_float_format format,
                               const sx_cancel *cancel, sx_arena *arena, sx_buf *out,
                               size_t *out_json_size)
{
    bool raw = false;
    sx_buf_puts(out, "{\"model_name\":");
    print_text(out, model);
    sx_buf_printf(out, ",\"model_version\":\"%" PRId64 "\",", version);
    if (request->id.size > 0) {
        sx_buf_puts(out, "\"id\":");
        sx_json_print_string(out, request->id.data, request->id.size);
        sx_buf_putc(out, ',');
    }
    sx_buf_puts(out, "\"outputs\":[");
    for (size_t i = 0; i < request->output_count; i++) {
        const sx_kserve_output *wanted = &request->outputs[i];
        const sx_serve_tensor *info = &request->signature->outputs[wanted->index];
        const sx_tensor *tensor = &outputs[wanted->index];
        if (sx_kserve_datatype(tensor->type.dtype) == NULL) {
            return sx_error(SX_UNIMPLEMENTED, "output \"%s\": the protocol has no type %s",
                            info->name, sx_dtype_name(tensor->type.dtype));
        }
        sx_buf_puts(out, i > 0 ? "," : "");
        print_type(info, &tensor->type, out);
        if (wanted->binary) {
            sx_buf_printf(out, ",\"parameters\":{\"binary_data_size\":%zu}}",
                          sx_kserve_raw_size(tensor));
            raw = true;
        } else {
            sx_buf_puts(out, ",\"data\":");
            SX_TRY(print_values(info->name, tensor, format, cancel, arena, out));
            sx_buf_putc(out, '}');
        }
    }
    sx_buf_puts(out, "]}");
    *out_json_size = raw ? out->size : 0;
    for (size_t i = 0; i < request->output_count; i++) {
        if (request->outputs[i].binary) {
            sx_kserve_print_raw(&outputs[request->outputs[i].index], out);
        }
    }
    return sx_cancel_requested(cancel) ? sx_cancel_check(cancel) : sx_buf_status(out);
}

static void print_tensors(const sx_serve_tensor *tensors, size_t count, sx_buf *out)
{
    sx_buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        sx_buf_puts(out, i > 0 ? "," : "");
        print_type(&tensors[i], &tensors[i].type, out);
        sx_buf_putc(out, '}');
    }
    sx_buf_putc(out, ']');
}

void sx_kserve_json_print_model(const char *model, const int64_t *versions, size_t version_count,
                                const sx_serve_signature *signature, sx_buf *out)
{
    sx_buf_puts(out, "{\"name\":");
    print_text(out, model);
    sx_buf_puts(out, ",\"versions\":[");
    for (size_t i = 0; i < version_count; i++) {
        sx_buf_printf(out, "%s\"%" PRId64 "\"", i > 0 ? "," : "", versions[i]);
    }
    sx_buf_puts(out, "],\"platform\":\"tensorflow_savedmodel\",\"inputs\":");
    print_tensors(signature != NULL ? signature->inputs : NULL,
                  signature != NULL ? signature->input_count : 0, out);
    sx_buf_puts(out, ",\"outputs\":");
    print_tensors(signature != NULL ? signature->outputs : NULL,
                  signature != NULL ? signature->output_count : 0, out);
    sx_buf_puts(out, "}\n");
}
