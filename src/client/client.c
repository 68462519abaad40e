/* See sextant/client.h. */
#include <sextant/client.h>

#include <string.h>

#include "base/args.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/hex.h"
#include "base/memory.h"
#include "client/caller.h"
#include "client/raw.h"
#include "client/messages.h"
#include "client/signatures.h"
#include "net/grpc.h"
#include "serve/inference_json.h"
#include "serve/inference_proto.h"
#include "serve/json_scan.h"
#include "serve/predict_json.h"
#include "serve/predict_proto.h"
#include "serve/rest_pages.h"

enum {
    MAX_PATH_BYTES = 16 * 1024,
    LARGEST_GROWTH = 16, /* of what an answer says once, in memory: a short string */
};

struct sx_client {
    sx_caller *caller;
    bool grpc;
    /* The signatures of the model that was asked about last. */
    sx_arena described;
    char *described_path; /* its REST path; NULL: none */
    sx_client_signatures signatures;
};

struct sx_client_answer {
    sx_arena arena;
    sx_buf json;
    sx_predict_slots slots; /* of tensors read from JSON */
    sx_client_tensor *tensors;
    int count;
};

/* ---- Creation and destruction ---- */

sx_status sx_client_open(const char *server, const sx_client_options *options,
                         sx_client **out_client)
{
    SX_NEED(server);
    SX_NEED(out_client);
    SX_TAKE_ARGS(sx_client_options, options);
    sx_client *client = sx_alloc(1, sizeof(*client));
    if (client == NULL) {
        return sx_no_memory("for a client");
    }
    client->grpc = options->protocol == SX_CLIENT_GRPC;
    sx_arena_init(&client->described, 0);
    sx_status status = sx_caller_create(server, options, &client->caller);
    if (status != SX_OK) {
        sx_client_close(client);
        return status;
    }
    *out_client = client;
    return SX_OK;
}

void sx_client_close(sx_client *client)
{
    if (client != NULL) {
        sx_caller_destroy(client->caller);
        sx_arena_deinit(&client->described);
        sx_free(client->described_path);
        sx_free(client);
    }
}

static sx_status new_answer(sx_client_answer **out)
{
    sx_client_answer *answer = sx_alloc(1, sizeof(*answer));
    if (answer == NULL) {
        return sx_no_memory("for an answer");
    }
    sx_arena_init(&answer->arena, 0);
    sx_buf_init(&answer->json, SIZE_MAX / 4);
    sx_predict_slots_init(&answer->slots);
    *out = answer;
    return SX_OK;
}

void sx_client_answer_free(sx_client_answer *answer)
{
    if (answer != NULL) {
        sx_predict_slots_deinit(&answer->slots);
        sx_buf_deinit(&answer->json);
        sx_arena_deinit(&answer->arena);
        sx_free(answer);
    }
}

const sx_client_tensor *sx_client_answer_tensors(const sx_client_answer *answer, int *out_count)
{
    *out_count = answer->count;
    return answer->tensors;
}

const sx_tensor *sx_client_answer_find(const sx_client_answer *answer, const char *name)
{
    for (int i = 0; i < answer->count; i++) {
        if (strcmp(answer->tensors[i].name, name) == 0) {
            return &answer->tensors[i].tensor;
        }
    }
    return NULL;
}

sx_bytes sx_client_answer_json(const sx_client_answer *answer)
{
    return (sx_bytes){sx_buf_text(&answer->json), answer->json.size};
}

/* ---- Addresses ---- */

static void put_percent_encoded(sx_buf *out, const char *text)
{
    static const char plain[] = "-._~";
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr(plain, c) != NULL) {
            sx_buf_putc(out, (char)c);
        } else {
            char escaped[3];
            sx_buf_append(out, sx_percent_put(escaped, c), sizeof(escaped));
        }
    }
}

/* What follows the address in the URL of a model: "/v1/models/flowers/versions/2:predict". */
static void put_path(const sx_client *client, const sx_client_model *model, const char *verb,
                     sx_buf *out)
{
    if (model->name != NULL) {
        sx_buf_puts(out, "/v1/models/");
        put_percent_encoded(out, model->name);
    }
    if (model->version != NULL) {
        sx_buf_puts(out, "/versions/");
        put_percent_encoded(out, model->version);
    } else if (model->label != NULL) {
        sx_buf_puts(out, "/labels/");
        put_percent_encoded(out, model->label);
    }
    const char *last = strrchr(sx_caller_address(client->caller), '/');
    const bool has_verb = model->name == NULL && last != NULL && strchr(last, ':') != NULL;
    sx_buf_puts(out, has_verb && verb[0] == ':' ? "" : verb);
}

static sx_status get(sx_client *client, const sx_client_model *model, const char *verb, sx_buf *out)
{
    sx_buf path;
    sx_buf_init(&path, MAX_PATH_BYTES);
    put_path(client, model, verb, &path);
    sx_status status = sx_buf_status(&path);
    if (status == SX_OK) {
        status = sx_caller_rest(client->caller, sx_buf_text(&path), (sx_bytes){0}, true, out);
    }
    sx_buf_deinit(&path);
    return status;
}

/* ---- Status, metadata ---- */

/* A request with no more than a spec, and for metadata the name of what is wanted. */
static sx_status ask_about(sx_client *client, const sx_client_model *model, const char *method,
                           bool metadata, sx_buf *out)
{
    sx_buf request;
    sx_buf_init(&request, 0);
    sx_status status = sx_client_put_spec(model, NULL, &request);
    if (status == SX_OK) {
        static const char field[] = "\x12\x0dsignature_def"; /* metadata_field 2 */
        sx_buf_append(&request, field, metadata ? sizeof(field) - 1 : 0);
        status = sx_caller_grpc(client->caller, method,
                                (sx_bytes){sx_buf_text(&request), request.size}, true, out);
    }
    sx_buf_deinit(&request);
    return status;
}

static sx_status get_status(sx_client *client, const sx_client_model *model,
                            sx_client_answer *answer)
{
    if (!client->grpc) {
        return get(client, model, "", &answer->json);
    }
    sx_buf message;
    sx_buf_init(&message, SIZE_MAX / 4);
    sx_status status = ask_about(client, model, "/tensorflow.serving.ModelService/GetModelStatus",
                                 false, &message);
    if (status == SX_OK) {
        status = sx_client_print_status((sx_bytes){sx_buf_text(&message), message.size},
                                        sx_caller_address(client->caller), &answer->json);
    }
    sx_buf_deinit(&message);
    return status;
}

static void forget_signatures(sx_client *client)
{
    sx_free(client->described_path);
    client->described_path = NULL;
    sx_arena_reset(&client->described);
}

/* The signatures of a model, as known from the last call or asked for. */
static sx_status find_signatures(sx_client *client, const sx_client_model *model)
{
    const char *where = sx_caller_address(client->caller);
    sx_buf path, answer;
    sx_buf_init(&path, MAX_PATH_BYTES);
    sx_buf_init(&answer, SIZE_MAX / 4);
    put_path(client, model, "", &path);
    sx_status status = sx_buf_status(&path);
    if (status == SX_OK && (client->described_path == NULL ||
                            strcmp(client->described_path, sx_buf_text(&path)) != 0)) {
        forget_signatures(client);
        status = client->grpc ? ask_about(client, model,
                                          "/tensorflow.serving.PredictionService/GetModelMetadata",
                                          true, &answer)
                              : get(client, model, "/metadata", &answer);
        const sx_bytes bytes = {sx_buf_text(&answer), answer.size};
        if (status == SX_OK) {
            status = client->grpc ? sx_client_signatures_of_proto(bytes, where, &client->described,
                                                                  &client->signatures)
                                  : sx_client_signatures_of_json(bytes, where, &client->described,
                                                                 &client->signatures);
        }
        client->described_path = status == SX_OK ? sx_strdup(sx_buf_text(&path)) : NULL;
    }
    sx_buf_deinit(&path);
    sx_buf_deinit(&answer);
    return status;
}

static sx_status find_signature(sx_client *client, const sx_client_model *model,
                                const sx_serve_signature **out)
{
    const char *name = model->signature != NULL ? model->signature : "";
    const sx_bytes wanted = {name, strlen(name)};
    SX_TRY(find_signatures(client, model));
    *out = sx_serve_find_signature(client->signatures.rows, client->signatures.count, wanted);
    return *out != NULL ? SX_OK : sx_serve_no_signature(wanted);
}

static sx_status get_metadata(sx_client *client, const sx_client_model *model,
                              sx_client_answer *answer)
{
    if (!client->grpc) {
        return get(client, model, "/metadata", &answer->json);
    }
    forget_signatures(client); /* they are asked for now */
    SX_TRY(find_signatures(client, model));
    sx_rest_print_metadata(&answer->json, model->name, client->signatures.version,
                           client->signatures.rows, client->signatures.count);
    return sx_buf_status(&answer->json);
}

/* ---- Predict over gRPC ---- */

static const char predict_path[] = "/tensorflow.serving.PredictionService/Predict";

/* Texts are in a list: TensorFlow's Python reads no others. */
static sx_status put_predict(const sx_client_model *model, const char *signature,
                             const sx_client_tensor *inputs, int n_inputs, sx_buf *out)
{
    SX_TRY(sx_client_put_spec(model, signature, out));
    for (int i = 0; i < n_inputs; i++) {
        SX_TRY(sx_predict_tensor_print(2, inputs[i].name, &inputs[i].tensor,
                                       inputs[i].tensor.type.dtype != SX_STRING, out));
    }
    return sx_buf_status(out);
}

/* Sends typed inputs; the outputs are the answer's tensors. */
static sx_status predict_grpc(sx_client *client, const sx_client_model *model,
                              const char *signature, const sx_client_tensor *inputs, int n_inputs,
                              sx_client_answer *answer)
{
    sx_buf request, message;
    sx_status status = SX_OK;
    sx_buf_init(&request, SIZE_MAX / 4);
    sx_buf_init(&message, SIZE_MAX / 4);
    SX_TRY_GOTO(status, put_predict(model, signature, inputs, n_inputs, &request), done);
    SX_TRY_GOTO(status,
                sx_caller_grpc(client->caller, predict_path,
                               (sx_bytes){sx_buf_text(&request), request.size}, false, &message),
                done);
    /* A value that fills a tensor is sent once: a short answer may describe any size. */
    answer->arena.limit_bytes =
        answer->arena.used_bytes +
        SX_MIN(sx_caller_max_answer_bytes(client->caller), SIZE_MAX / 4 / LARGEST_GROWTH) *
            LARGEST_GROWTH;
    status = sx_client_read_outputs((sx_bytes){sx_buf_text(&message), message.size},
                                    sx_caller_address(client->caller), &answer->arena,
                                    &answer->tensors, &answer->count);
done:
    sx_buf_deinit(&request);
    sx_buf_deinit(&message);
    return status;
}

/* The answer's tensors as JSON, in the order of the signature. */
static sx_status print_outputs(const sx_client *client, const sx_serve_signature *signature,
                               bool row, sx_client_answer *answer)
{
    sx_tensor *outputs = sx_arena_array(&answer->arena, signature->output_count + 1, sx_tensor);
    if (outputs == NULL) {
        return sx_no_memory("for an answer");
    }
    for (size_t i = 0; i < signature->output_count; i++) {
        const sx_tensor *found = sx_client_answer_find(answer, signature->outputs[i].name);
        if (found == NULL) {
            return sx_error(SX_DATA_LOSS, "%s: the answer lacks the output \"%s\"",
                            sx_caller_address(client->caller), signature->outputs[i].name);
        }
        outputs[i] = *found;
    }
    SX_TRY(sx_predict_print(signature, outputs, row, SX_FLOAT_SHORTEST, NULL, &answer->json));
    sx_buf_putc(&answer->json, '\n');
    return sx_buf_status(&answer->json);
}

/* A request in JSON becomes tensors of the types that the signature has, in the answer's memory. */
static sx_status read_json(sx_client *client, const sx_client_model *model, sx_bytes body,
                           sx_client_answer *answer, sx_predict_request *out,
                           sx_client_tensor **out_inputs)
{
    SX_TRY(find_signatures(client, model));
    SX_TRY(sx_predict_parse(body, client->signatures.rows, client->signatures.count, &answer->arena,
                            &answer->slots, out));
    const sx_serve_signature *signature = out->signature;
    *out_inputs = sx_arena_array(&answer->arena, signature->input_count + 1, sx_client_tensor);
    if (*out_inputs == NULL) {
        return sx_no_memory("for a request");
    }
    for (size_t i = 0; i < signature->input_count; i++) {
        (*out_inputs)[i] = (sx_client_tensor){signature->inputs[i].name, out->inputs[i]};
    }
    return SX_OK;
}

static sx_status predict_json_grpc(sx_client *client, const sx_client_model *model, sx_bytes body,
                                   sx_client_answer *answer)
{
    sx_predict_request request;
    sx_client_tensor *inputs;
    SX_TRY(read_json(client, model, body, answer, &request, &inputs));
    const sx_serve_signature *signature = request.signature;
    SX_TRY(
        predict_grpc(client, model, signature->name, inputs, (int)signature->input_count, answer));
    return print_outputs(client, signature, request.row, answer);
}

static sx_status examples_grpc(sx_client *client, sx_inference_method method,
                               const sx_client_model *model, sx_bytes body,
                               sx_client_answer *answer)
{
    static const char *const paths[] = {
        [SX_CLASSIFY] = "/tensorflow.serving.PredictionService/Classify",
        [SX_REGRESS] = "/tensorflow.serving.PredictionService/Regress",
    };
    sx_inference_request request;
    sx_inference_result result;
    sx_bytes part;
    sx_buf out, message;
    sx_status status = SX_OK;
    sx_buf_init(&out, SIZE_MAX / 4);
    sx_buf_init(&message, SIZE_MAX / 4);
    SX_TRY_GOTO(status, sx_inference_parse(body, &answer->arena, &request), done);
    const char *named =
        request.signature.size > 0
            ? sx_arena_strndup(&answer->arena, request.signature.data, request.signature.size)
            : NULL;
    SX_TRY_GOTO(status, sx_client_put_spec(model, named, &out), done);
    sx_examples_print(&request.examples, &out);
    SX_TRY_GOTO(status, sx_buf_status(&out), done);
    SX_TRY_GOTO(status,
                sx_caller_grpc(client->caller, paths[method],
                               (sx_bytes){sx_buf_text(&out), out.size}, false, &message),
                done);
    if (!sx_client_field((sx_bytes){sx_buf_text(&message), message.size}, 1, &part)) {
        status =
            sx_error(SX_DATA_LOSS, "%s: a malformed answer", sx_caller_address(client->caller));
        goto done;
    }
    SX_TRY_GOTO(status,
                sx_client_read_inference(method, part, sx_caller_address(client->caller),
                                         &answer->arena, &result),
                done);
    SX_TRY_GOTO(status, sx_inference_print_json(&result, SX_FLOAT_SHORTEST, NULL, &answer->json),
                done);
    sx_buf_putc(&answer->json, '\n');
    status = sx_buf_status(&answer->json);
done:
    sx_buf_deinit(&out);
    sx_buf_deinit(&message);
    return status;
}

sx_status sx_client_call(sx_client *client, const char *method, sx_bytes message, sx_buf *out)
{
    return sx_caller_grpc(client->caller, method, message, false, out);
}

/* ---- JSON ---- */

static sx_status post(sx_client *client, const sx_client_model *model, const char *verb,
                      sx_bytes body, sx_buf *out)
{
    sx_buf path;
    sx_buf_init(&path, MAX_PATH_BYTES);
    put_path(client, model, verb, &path);
    sx_status status = sx_buf_status(&path);
    if (status == SX_OK) {
        status = sx_caller_rest(client->caller, sx_buf_text(&path), body, false, out);
    }
    sx_buf_deinit(&path);
    return status;
}

/* Appends a request with the signature that the call names as its first member. */
static void put_request(const sx_client_model *model, sx_bytes request, sx_buf *out)
{
    const char *text = request.data, *end = text + request.size;
    const char *open = text;
    while (open < end && strchr(" \t\r\n", *open) != NULL) {
        open++;
    }
    if (model->signature == NULL || open == end || *open != '{') {
        sx_buf_append(out, text, request.size);
        return;
    }
    sx_buf_puts(out, "{\"signature_name\":");
    sx_json_print_string(out, model->signature, strlen(model->signature));
    sx_buf_putc(out, ',');
    sx_buf_append(out, open + 1, (size_t)(end - open - 1));
}

static sx_status check_model(const sx_client *client, const sx_client_model *model)
{
    if (model->name == NULL && client->grpc) {
        return sx_error(SX_INVALID_ARGUMENT, "gRPC has no URL of a model: give its name");
    }
    return SX_OK;
}

/* The message of a request in JSON, in its frame. */
static sx_status frame_json(sx_client *client, const sx_client_model *model, sx_bytes json,
                            sx_buf *out)
{
    sx_client_answer *memory = NULL;
    sx_predict_request request;
    sx_client_tensor *inputs;
    SX_TRY(new_answer(&memory));
    sx_status status = read_json(client, model, json, memory, &request, &inputs);
    if (status == SX_OK) {
        const size_t at = sx_grpc_message_begin(out);
        status = put_predict(model, request.signature->name, inputs,
                             (int)request.signature->input_count, out);
        sx_grpc_message_end(out, at);
    }
    sx_client_answer_free(memory);
    return status;
}

sx_status sx_client_prepare(sx_client *client, const sx_client_model *model, sx_bytes json,
                            sx_buf *out_path, sx_buf *out_body)
{
    SX_TRY(check_model(client, model));
    if (!client->grpc) {
        put_path(client, model, ":predict", out_path);
        put_request(model, json, out_body);
        SX_TRY(sx_buf_status(out_path));
        return sx_buf_status(out_body);
    }
    sx_buf body;
    sx_buf_init(&body, SIZE_MAX / 4);
    put_request(model, json, &body);
    sx_buf_puts(out_path, predict_path);
    sx_status status = sx_buf_status(&body);
    if (status == SX_OK) {
        status = sx_buf_status(out_path);
    }
    if (status == SX_OK) {
        status = frame_json(client, model, (sx_bytes){sx_buf_text(&body), body.size}, out_body);
    }
    sx_buf_deinit(&body);
    return status;
}

static sx_status ask(sx_client *client, sx_client_method method, const sx_client_model *model,
                     sx_bytes request, sx_client_answer *answer)
{
    static const char *const verbs[] = {[SX_CLIENT_PREDICT] = ":predict",
                                        [SX_CLIENT_CLASSIFY] = ":classify",
                                        [SX_CLIENT_REGRESS] = ":regress"};
    if (method == SX_CLIENT_STATUS) {
        return get_status(client, model, answer);
    }
    if (method == SX_CLIENT_METADATA) {
        return get_metadata(client, model, answer);
    }
    sx_buf body;
    sx_buf_init(&body, SIZE_MAX / 4);
    put_request(model, request, &body);
    sx_status status = sx_buf_status(&body);
    const sx_bytes bytes = {sx_buf_text(&body), body.size};
    if (status == SX_OK) {
        status =
            !client->grpc ? post(client, model, verbs[method], bytes, &answer->json)
            : method == SX_CLIENT_PREDICT
                ? predict_json_grpc(client, model, bytes, answer)
                : examples_grpc(client, method == SX_CLIENT_CLASSIFY ? SX_CLASSIFY : SX_REGRESS,
                                model, bytes, answer);
    }
    sx_buf_deinit(&body);
    return status;
}

/* Ends a call; its signatures may have been those of a version that is served no more. */
static sx_status finish(sx_client *client, sx_status status, sx_client_answer *answer,
                        sx_client_answer **out_answer)
{
    if (status != SX_OK) {
        forget_signatures(client);
        sx_client_answer_free(answer);
        return status;
    }
    *out_answer = answer;
    return SX_OK;
}

sx_status sx_client_ask(sx_client *client, sx_client_method method, const sx_client_model *model,
                        sx_bytes request, sx_client_answer **out_answer)
{
    sx_client_answer *answer = NULL;
    SX_NEED(client);
    SX_NEED(model);
    SX_NEED(out_answer);
    SX_TRY(check_model(client, model));
    SX_TRY(new_answer(&answer));
    return finish(client, ask(client, method, model, request, answer), answer, out_answer);
}

/* ---- Tensors over REST ---- */

/* The inputs as {"inputs": ...}: what the server would print as outputs, under another key. */
static sx_status put_inputs(const sx_client_model *model, const sx_client_tensor *inputs,
                            int n_inputs, sx_arena *arena, sx_buf *out)
{
    static const char printed[] = "\"outputs\"";
    sx_serve_tensor *ports = sx_arena_array(arena, n_inputs, sx_serve_tensor);
    sx_tensor *tensors = sx_arena_array(arena, n_inputs, sx_tensor);
    sx_buf text;
    if (ports == NULL || tensors == NULL) {
        return sx_no_memory("for a request");
    }
    for (int i = 0; i < n_inputs; i++) {
        ports[i] = (sx_serve_tensor){.name = inputs[i].name, .type = inputs[i].tensor.type};
        tensors[i] = inputs[i].tensor;
    }
    const sx_serve_signature as_outputs = {
        .name = "", .output_count = (size_t)n_inputs, .outputs = ports};
    sx_buf_init(&text, SIZE_MAX / 4);
    sx_status status =
        sx_predict_print(&as_outputs, tensors, false, SX_FLOAT_SHORTEST, NULL, &text);
    if (status == SX_OK) {
        const char *at = strstr(sx_buf_text(&text), printed) + sizeof(printed) - 1;
        sx_buf_putc(out, '{');
        if (model->signature != NULL) {
            sx_buf_puts(out, "\"signature_name\":");
            sx_json_print_string(out, model->signature, strlen(model->signature));
            sx_buf_putc(out, ',');
        }
        sx_buf_puts(out, "\"inputs\"");
        sx_buf_append(out, at, text.size - (size_t)(at - text.data));
        status = sx_buf_status(out);
    }
    sx_buf_deinit(&text);
    return status;
}

/* Reads {"outputs": ...}: what a request would have as inputs, under another key. */
static sx_status take_outputs(const sx_client *client, const sx_serve_signature *signature,
                              sx_client_answer *answer)
{
    const char *where = sx_caller_address(client->caller);
    const sx_serve_signature as_inputs = {.name = "serving_default",
                                          .input_count = signature->output_count,
                                          .inputs = signature->outputs};
    sx_predict_request request;
    sx_json json;
    sx_bytes key;
    sx_json_init(&json, sx_client_answer_json(answer), &answer->arena);
    SX_TRY(sx_json_enter(&json, '{'), "%s", where);
    SX_TRY(sx_json_key(&json, &key), "%s", where);
    if (!sx_bytes_is(key, "outputs")) {
        return sx_error(SX_DATA_LOSS, "%s: an answer without \"outputs\"", where);
    }
    static const char head[] = "{\"inputs\":";
    const size_t size = (size_t)(json.end - json.p);
    char *text = sx_arena_alloc(&answer->arena, 1, sizeof(head) + size);
    answer->tensors = sx_arena_array(&answer->arena, signature->output_count + 1, sx_client_tensor);
    if (text == NULL || answer->tensors == NULL) {
        return sx_no_memory("for an answer");
    }
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + sizeof(head) - 1, json.p, size);
    SX_TRY(sx_predict_parse((sx_bytes){text, sizeof(head) - 1 + size}, &as_inputs, 1,
                            &answer->arena, &answer->slots, &request),
           "%s", where);
    for (size_t i = 0; i < signature->output_count; i++) {
        const char *name = sx_arena_strdup(&answer->arena, signature->outputs[i].name);
        if (name == NULL) {
            return sx_no_memory("for an answer");
        }
        answer->tensors[answer->count++] = (sx_client_tensor){name, request.inputs[i]};
    }
    return SX_OK;
}

static sx_status predict_rest(sx_client *client, const sx_client_model *model,
                              const sx_client_tensor *inputs, int n_inputs,
                              sx_client_answer *answer)
{
    const sx_serve_signature *signature = NULL;
    sx_buf body;
    SX_TRY(find_signature(client, model, &signature));
    sx_buf_init(&body, SIZE_MAX / 4);
    sx_status status = put_inputs(model, inputs, n_inputs, &answer->arena, &body);
    if (status == SX_OK) {
        status = post(client, model, ":predict", (sx_bytes){sx_buf_text(&body), body.size},
                      &answer->json);
    }
    sx_buf_deinit(&body);
    SX_TRY(status);
    return take_outputs(client, signature, answer);
}

/* The one input of the signature has the name that the caller left out. */
static sx_status name_input(sx_client *client, const sx_client_model *model,
                            sx_client_tensor *input)
{
    const sx_serve_signature *signature = NULL;
    SX_TRY(find_signature(client, model, &signature));
    if (signature->input_count != 1) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "an input without a name: signature \"%s\" has %zu inputs", signature->name,
                        signature->input_count);
    }
    input->name = signature->inputs[0].name;
    return SX_OK;
}

static sx_status predict(sx_client *client, const sx_client_model *model,
                         const sx_client_tensor *inputs, int n_inputs, sx_client_answer *answer)
{
    sx_client_tensor only;
    if (n_inputs < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "no inputs");
    }
    if (n_inputs == 1 && inputs[0].name == NULL) {
        only = inputs[0];
        SX_TRY(name_input(client, model, &only));
        inputs = &only;
    }
    for (int i = 0; i < n_inputs; i++) {
        if (inputs[i].name == NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "%d inputs, and one of them without a name",
                            n_inputs);
        }
    }
    return client->grpc ? predict_grpc(client, model, model->signature, inputs, n_inputs, answer)
                        : predict_rest(client, model, inputs, n_inputs, answer);
}

sx_status sx_client_predict(sx_client *client, const sx_client_model *model,
                            const sx_client_tensor *inputs, int n_inputs,
                            sx_client_answer **out_answer)
{
    sx_client_answer *answer = NULL;
    SX_NEED(client);
    SX_NEED(model);
    SX_NEED(inputs);
    SX_NEED(out_answer);
    SX_TRY(check_model(client, model));
    SX_TRY(new_answer(&answer));
    return finish(client, predict(client, model, inputs, n_inputs, answer), answer, out_answer);
}
