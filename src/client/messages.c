/* See messages.h. */
#include "client/messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "proto/guard.h"
#include "proto/tensor_value.h"
#include "proto/wire.h"
#include "serve/lifecycle.h"
#include "serve/predict_json.h"

static sx_status no_answer(const char *where)
{
    return sx_error(SX_DATA_LOSS, "%s: a malformed answer", where);
}

bool sx_client_field(sx_bytes message, uint32_t number, sx_bytes *out)
{
    sx_wire wire = sx_wire_over(message);
    const uint8_t *at;
    sx_bytes value;
    sx_wire_found found;
    *out = (sx_bytes){"", 0};
    while ((found = sx_wire_find(&wire, number, &at, &value)) == SX_WIRE_FOUND) {
        *out = value;
    }
    return found == SX_WIRE_NO_MORE;
}

/* ---- Requests ---- */

sx_status sx_client_put_spec(const sx_client_model *model, const char *signature, sx_buf *out)
{
    const size_t at = sx_wire_begin(out, 1);
    char *end = NULL;
    sx_wire_append_text(out, 1, model->name);
    if (model->version != NULL) {
        const long long version = strtoll(model->version, &end, 10);
        if (end == model->version || *end != '\0' || version < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "version \"%.60s\": expected a number",
                            model->version);
        }
        const size_t value = sx_wire_begin(out, 2);
        sx_wire_append_number(out, 1, (uint64_t)version);
        sx_wire_end(out, value);
    } else if (model->label != NULL) {
        sx_wire_append_text(out, 4, model->label);
    }
    if (signature != NULL) {
        sx_wire_append_text(out, 3, signature);
    }
    sx_wire_end(out, at);
    return sx_buf_status(out);
}

/* ---- Predict ---- */

/* Strings become memory of the arena, as numbers are. */
static sx_status keep_strings(sx_tensor *tensor, sx_arena *arena)
{
    sx_bytes *strings = tensor->data;
    const int64_t count = tensor->type.dtype == SX_STRING ? sx_type_elems(&tensor->type) : 0;
    for (int64_t i = 0; i < count; i++) {
        strings[i].data = sx_arena_memdup(arena, strings[i].data, strings[i].size);
        if (strings[i].data == NULL && strings[i].size > 0) {
            return sx_no_memory("for the strings of an answer");
        }
    }
    return SX_OK;
}

static sx_status read_output(sx_bytes entry, const char *where, sx_arena *arena,
                             sx_client_tensor *out)
{
    sx_wire wire = sx_wire_over(entry);
    sx_wire_field field;
    sx_bytes key = {"", 0}, value = {"", 0};
    ProtobufCMessage *message = NULL;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || field.type != SX_WIRE_BYTES) {
            return no_answer(where);
        }
        *(field.number == 1 ? &key : &value) = field.value;
    }
    out->name = sx_arena_strndup(arena, key.data, key.size);
    if (out->name == NULL) {
        return sx_no_memory("for an answer");
    }
    SX_TRY(sx_proto_unpack(&tensorflow__tensor_proto__descriptor, value, NULL, where, &message));
    sx_status status =
        sx_tf_tensor_value((const Tensorflow__TensorProto *)message, arena, &out->tensor);
    if (status == SX_OK) {
        status = keep_strings(&out->tensor, arena);
    }
    sx_proto_free(message);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s: output \"%s\"", where, out->name);
}

/* The fields of number 1 of a message: how many there are; -1: malformed. */
static ptrdiff_t count_parts(sx_bytes message)
{
    sx_wire wire = sx_wire_over(message);
    const uint8_t *at;
    sx_bytes value;
    sx_wire_found found;
    ptrdiff_t count = 0;
    while ((found = sx_wire_find(&wire, 1, &at, &value)) == SX_WIRE_FOUND) {
        count++;
    }
    return found == SX_WIRE_NO_MORE ? count : -1;
}

sx_status sx_client_read_outputs(sx_bytes message, const char *where, sx_arena *arena,
                                 sx_client_tensor **out, int *out_count)
{
    const ptrdiff_t count = count_parts(message);
    if (count < 0) {
        return no_answer(where);
    }
    sx_client_tensor *tensors = sx_arena_array(arena, count + 1, sx_client_tensor);
    if (tensors == NULL) {
        return sx_no_memory("for an answer");
    }
    sx_wire wire = sx_wire_over(message);
    const uint8_t *at;
    sx_bytes entry;
    for (ptrdiff_t i = 0; i < count && sx_wire_find(&wire, 1, &at, &entry) == SX_WIRE_FOUND; i++) {
        SX_TRY(read_output(entry, where, arena, &tensors[i]));
    }
    *out = tensors;
    *out_count = (int)count;
    return SX_OK;
}

/* ---- Classify, Regress ---- */

/* Class: label 1, score 2; Regression: value 1. */
struct score {
    sx_bytes label;
    float value;
};

static bool read_score(sx_inference_method method, sx_bytes message, struct score *out)
{
    const uint32_t number = method == SX_CLASSIFY ? 2 : 1;
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    *out = (struct score){.label = {"", 0}};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return false;
        }
        if (field.number == number && field.type == SX_WIRE_FIXED32) {
            memcpy(&out->value, field.value.data, sizeof(out->value));
        } else if (field.number == 1 && field.type == SX_WIRE_BYTES) {
            out->label = field.value;
        }
    }
    return true;
}

/* {classifications 1 {classes 1}} or {regressions 1}. Every example has as many classes. */
sx_status sx_client_read_inference(sx_inference_method method, sx_bytes result, const char *where,
                                   sx_arena *arena, sx_inference_result *out)
{
    sx_wire wire = sx_wire_over(result);
    const uint8_t *at;
    sx_bytes row, part;
    const bool classifies = method == SX_CLASSIFY;
    const ptrdiff_t examples = count_parts(result);
    const bool any = examples > 0 && sx_wire_find(&wire, 1, &at, &row) == SX_WIRE_FOUND;
    const ptrdiff_t classes = !any ? 0 : classifies ? count_parts(row) : 1;
    if (examples < 0 || classes < 0) {
        return no_answer(where);
    }
    const size_t count = (size_t)examples * (size_t)classes;
    sx_bytes *labels = sx_arena_array(arena, count + 1, sx_bytes);
    float *scores = sx_arena_array(arena, count + 1, float);
    if (labels == NULL || scores == NULL) {
        return sx_no_memory("for an answer");
    }
    size_t i = 0;
    for (wire = sx_wire_over(result); sx_wire_find(&wire, 1, &at, &row) == SX_WIRE_FOUND;) {
        sx_wire parts = sx_wire_over(row);
        if (classifies && count_parts(row) != classes) {
            return no_answer(where);
        }
        for (ptrdiff_t c = 0; c < classes; c++) {
            struct score score;
            part = row;
            if ((classifies && sx_wire_find(&parts, 1, &at, &part) != SX_WIRE_FOUND) ||
                !read_score(method, part, &score)) {
                return no_answer(where);
            }
            labels[i] = score.label;
            scores[i++] = score.value;
        }
    }
    *out = (sx_inference_result){.method = method,
                                 .examples = (size_t)examples,
                                 .classes = (size_t)classes,
                                 .labels = classifies ? labels : NULL,
                                 .scores = scores};
    return SX_OK;
}

/* ---- Status ---- */

struct version_row {
    uint64_t version, state, code;
    sx_bytes message;
};

/* ModelVersionStatus: version 1, state 2, status 3 {error_code 1, error_message 2}. */
static bool read_version(sx_bytes message, struct version_row *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    sx_bytes status = {"", 0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 1 && !sx_wire_number(&field, &out->version)) ||
            (field.number == 2 && !sx_wire_number(&field, &out->state))) {
            return false;
        }
        status = field.number == 3 && field.type == SX_WIRE_BYTES ? field.value : status;
    }
    for (wire = sx_wire_over(status); sx_wire_more(&wire);) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 1 && !sx_wire_number(&field, &out->code))) {
            return false;
        }
        if (field.number == 2 && field.type == SX_WIRE_BYTES) {
            out->message = field.value;
        }
    }
    return true;
}

sx_status sx_client_print_status(sx_bytes message, const char *where, sx_buf *out)
{
    sx_wire wire = sx_wire_over(message);
    const uint8_t *at;
    sx_bytes value;
    sx_wire_found found;
    int count = 0;
    sx_buf_puts(out, "{\n \"model_version_status\": [");
    while ((found = sx_wire_find(&wire, 1, &at, &value)) == SX_WIRE_FOUND) {
        struct version_row row = {.message = {"", 0}};
        if (!read_version(value, &row)) {
            return no_answer(where);
        }
        sx_buf_printf(
            out,
            "%s\n  {\n   \"version\": \"%" PRIu64
            "\",\n   \"state\": \"%s\",\n   \"status\": {\n    \"error_code\": \"%s\",\n"
            "    \"error_message\": ",
            count++ > 0 ? "," : "", row.version, sx_version_state_name((sx_version_state)row.state),
            sx_code_name(row.code <= SX_UNAUTHENTICATED ? (sx_code)row.code : SX_UNKNOWN));
        sx_json_print_string(out, row.message.data, row.message.size);
        sx_buf_puts(out, "\n   }\n  }");
    }
    sx_buf_puts(out, "\n ]\n}\n");
    return found == SX_WIRE_NO_MORE ? sx_buf_status(out) : no_answer(where);
}
