/* See inference_proto.h. */
#include "serve/inference_proto.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "proto/wire.h"

static sx_status malformed(const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "malformed %s", what);
}

/* ---- Requests ---- */

/* The input's kind, a oneof: `at` is where its last field begins that is followed by none of the
 * other kind. What is of one kind is merged, as protobuf does. */
struct input {
    uint32_t kind; /* 1: a list, 2: one with a context; 0: neither */
    sx_bytes from; /* the rest of the message */
    sx_bytes context;
    size_t count;
};

/* Counts the examples of a list and finds its context. */
static sx_status look_at_list(sx_bytes list, struct input *input)
{
    sx_wire wire = sx_wire_over(list);
    sx_wire_field field;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 2 && field.type != SX_WIRE_BYTES)) {
            return malformed("Input");
        }
        input->count += field.number == 1;
        if (field.number == 2 && input->kind == 2) {
            input->context = field.value;
        }
    }
    return SX_OK;
}

static sx_status look_at_input(sx_bytes message, struct input *input)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    while (sx_wire_more(&wire)) {
        const uint8_t *at = wire.at;
        if (!sx_wire_next(&wire, &field) || (field.number <= 2 && field.type != SX_WIRE_BYTES)) {
            return malformed("Input");
        }
        if (field.number > 2) {
            continue;
        }
        if (field.number != input->kind) {
            *input = (struct input){
                .kind = field.number, .from = {at, (size_t)(wire.end - at)}, .context = {"", 0}};
        }
        SX_TRY(look_at_list(field.value, input));
    }
    return SX_OK;
}

/* The example after the context, in the arena. */
static sx_bytes joined(sx_bytes context, sx_bytes example, sx_arena *arena)
{
    size_t size;
    char *bytes =
        sx_add_size(context.size, example.size, &size) ? sx_arena_alloc(arena, size, 1) : NULL;
    if (bytes == NULL) {
        return (sx_bytes){NULL, 0};
    }
    memcpy(bytes, context.data, context.size);
    if (example.size > 0) {
        memcpy(bytes + context.size, example.data, example.size);
    }
    return (sx_bytes){bytes, size};
}

/* The examples of the lists that follow, which have been looked at. */
static sx_status take_examples(const struct input *input, sx_arena *arena, sx_bytes *examples)
{
    sx_wire lists = sx_wire_over(input->from);
    sx_wire_field list, field;
    size_t count = 0;
    while (sx_wire_more(&lists) && sx_wire_next(&lists, &list)) {
        sx_wire wire = sx_wire_over(list.number == input->kind ? list.value : (sx_bytes){"", 0});
        while (sx_wire_more(&wire) && sx_wire_next(&wire, &field)) {
            if (field.number != 1) {
                continue;
            }
            examples[count] =
                input->context.size == 0 ? field.value : joined(input->context, field.value, arena);
            if (examples[count++].data == NULL) {
                return sx_no_memory("for %zu examples, each with a context of %zu bytes",
                                    input->count, input->context.size);
            }
        }
    }
    return SX_OK;
}

sx_status sx_examples_read(sx_bytes request, sx_arena *arena, sx_tensor *out)
{
    sx_wire wire = sx_wire_over(request);
    sx_wire_field field;
    struct input input = {.context = {"", 0}};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field)) {
            return malformed("request message");
        }
        if (field.number == 2 && field.type == SX_WIRE_BYTES) {
            input = (struct input){.context = {"", 0}}; /* of several, the last counts */
            SX_TRY(look_at_input(field.value, &input));
        }
    }
    if (input.count == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "Input is empty.");
    }
    sx_bytes *examples = sx_arena_array(arena, input.count, sx_bytes);
    if (examples == NULL) {
        return sx_no_memory("for %zu examples", input.count);
    }
    SX_TRY(take_examples(&input, arena, examples));
    *out = (sx_tensor){sx_type_of(SX_STRING, (int64_t)input.count), examples};
    return SX_OK;
}

void sx_examples_print(const sx_tensor *examples, sx_buf *out)
{
    const size_t input = sx_wire_begin(out, 2), list = sx_wire_begin(out, 1);
    for (int64_t i = 0; i < examples->type.dims[0]; i++) {
        sx_wire_append_bytes(out, 1, ((const sx_bytes *)examples->data)[i]);
    }
    sx_wire_end(out, list);
    sx_wire_end(out, input);
}

static sx_status read_task(sx_bytes message, sx_inference_task *out)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    bool has_spec = false;
    *out = (sx_inference_task){.spec = {.version = -1}, .method = {"", 0}};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 2 && field.type != SX_WIRE_BYTES)) {
            return malformed("InferenceTask");
        }
        has_spec = has_spec || field.number == 1;
        out->method = field.number == 2 ? field.value : out->method;
    }
    return has_spec ? sx_predict_spec_read(message, &out->spec) : SX_OK;
}

sx_status sx_inference_first_spec(sx_bytes request, sx_predict_spec *out)
{
    sx_wire wire = sx_wire_over(request);
    const uint8_t *at;
    sx_bytes message;
    sx_inference_task task = {.spec = {.version = -1}};
    switch (sx_wire_find(&wire, 1, &at, &message)) {
    case SX_WIRE_FOUND:
        SX_TRY(read_task(message, &task));
        break;
    case SX_WIRE_NO_MORE:
        break;
    default:
        return malformed("MultiInferenceRequest");
    }
    *out = task.spec;
    return SX_OK;
}

sx_status sx_inference_tasks_read(sx_bytes request, sx_arena *arena, sx_inference_task **out,
                                  size_t *out_count)
{
    sx_wire wire = sx_wire_over(request);
    sx_wire_field field;
    size_t count = 0;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number == 1 && field.type != SX_WIRE_BYTES)) {
            return malformed("MultiInferenceRequest");
        }
        count += field.number == 1;
    }
    *out = sx_arena_array(arena, count + 1, sx_inference_task);
    *out_count = count;
    if (*out == NULL) {
        return sx_no_memory("for %zu tasks", count);
    }
    wire = sx_wire_over(request);
    for (size_t i = 0; i < count && sx_wire_next(&wire, &field);) {
        if (field.number == 1) {
            SX_TRY(read_task(field.value, &(*out)[i++]));
        }
    }
    return SX_OK;
}

/* ---- Responses ---- */

/* proto3 writes no zeros; -0 is none. */
static bool is_zero(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits == 0;
}

/* A Class: label 1, score 2; or a Regression: value 1. */
static void put_class(const sx_inference_result *result, size_t i, sx_buf *out)
{
    const size_t at = sx_wire_begin(out, 1);
    if (result->labels != NULL && result->labels[i].size > 0) {
        sx_wire_append_bytes(out, 1, result->labels[i]);
    }
    if (result->scores != NULL && !is_zero(result->scores[i])) {
        sx_wire_append_tag(out, result->method == SX_CLASSIFY ? 2 : 1, SX_WIRE_FIXED32);
        sx_buf_append(out, &result->scores[i], 4);
    }
    sx_wire_end(out, at);
}

/* A ClassificationResult: a list of classes for each example; or a RegressionResult. */
static void put_result(const sx_inference_result *result, uint32_t number, sx_buf *out)
{
    const size_t at = sx_wire_begin(out, number);
    for (size_t i = 0; i < result->examples && !out->failed; i++) {
        if (result->method == SX_REGRESS) {
            put_class(result, i, out);
            continue;
        }
        const size_t row = sx_wire_begin(out, 1);
        for (size_t k = 0; k < result->classes && !out->failed; k++) {
            put_class(result, i * result->classes + k, out);
        }
        sx_wire_end(out, row);
    }
    sx_wire_end(out, at);
}

void sx_inference_print(const sx_inference_result *result, const sx_predict_spec *ran, sx_buf *out)
{
    put_result(result, 1, out);
    sx_predict_spec_print(ran, 2, out);
}

void sx_inference_print_task(const sx_inference_result *result, const sx_predict_spec *ran,
                             sx_buf *out)
{
    const size_t at = sx_wire_begin(out, 1);
    sx_predict_spec_print(ran, 1, out);
    put_result(result, result->method == SX_CLASSIFY ? 2 : 3, out);
    sx_wire_end(out, at);
}
