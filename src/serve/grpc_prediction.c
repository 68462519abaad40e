/* The prediction service; see grpc_prediction.h. Each method is a row of a table: how the version
 * that it asks for is read from its message, and how its message is answered by it. */
#include "serve/grpc_prediction.h"

#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "proto/wire.h"
#include "serve/inference_proto.h"
#include "serve/json_scan.h"
#include "serve/metadata_proto.h"
#include "serve/predict_proto.h"
#include "serve/router.h"

/* Lives in the exchange's scratch memory. */
struct prediction {
    sx_call call; /* must be first: converted by address */
    const sx_grpc_config *config;
    const struct method *method;
};
_Static_assert(sizeof(struct prediction) <= SX_HTTP_SCRATCH, "it must fit the scratch memory");

struct method {
    const char *path;
    sx_metric_api api;
    bool uncounted;
    sx_status (*read_spec)(sx_bytes message, sx_predict_spec *out);
    /* Appends the message of the response to `out`. The call has the version of `spec`. */
    sx_status (*answer)(struct prediction *prediction, sx_bytes message,
                        const sx_predict_spec *spec, sx_arena *arena, sx_buf *out);
};

/* The spec of what was run. */
static sx_predict_spec spec_of(const sx_call *call, const sx_predict_spec *asked,
                               const char *signature)
{
    sx_predict_spec ran = *asked;
    ran.version = sx_served_version(call->servable);
    ran.signature = (sx_bytes){signature, strlen(signature)};
    return ran;
}

/* ---- Predict ---- */

static sx_status answer_predict(struct prediction *prediction, sx_bytes message,
                                const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    sx_call *call = &prediction->call;
    sx_predict_call request;
    sx_tensor *outputs = NULL;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    SX_TRY(sx_predict_proto_read(message, spec, signatures, count, arena, &request));
    SX_TRY(sx_cancel_check(sx_http_request_cancel(call->exchange)));
    SX_TRY(sx_call_run(call, request.signature, request.inputs, arena, &outputs));
    const sx_predict_spec ran = spec_of(call, spec, request.signature->name);
    return sx_predict_proto_print(&request, outputs, &ran, 2, prediction->config->tensor_content,
                                  out);
}

/* ---- SessionRun ---- */

/* SessionRunRequest has what PredictRequest has, in the same fields, and target 4,
 * tensor_name_is_alias 6. */
static sx_status read_session_options(sx_bytes message, bool *is_alias)
{
    sx_wire wire = sx_wire_over(message);
    sx_wire_field field;
    uint64_t number = 0;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 6 && !sx_wire_number(&field, &number))) {
            return sx_error(SX_INVALID_ARGUMENT, "malformed SessionRunRequest");
        }
        if (field.number == 4) {
            return sx_error(SX_UNIMPLEMENTED, "SessionRun: target: no operation is run for its "
                                              "effect; expected none");
        }
    }
    *is_alias = number != 0;
    return SX_OK;
}

/* The tensors under the names that they have in the graph. */
static const sx_serve_tensor *by_graph_name(const sx_serve_tensor *tensors, size_t count,
                                            sx_arena *arena)
{
    sx_serve_tensor *named = sx_arena_array(arena, count + 1, sx_serve_tensor);
    for (size_t i = 0; named != NULL && i < count; i++) {
        named[i] = tensors[i];
        named[i].name = tensors[i].tensor_name != NULL ? tensors[i].tensor_name : "";
    }
    return named;
}

/* Feeds and fetches the tensors of a signature: under their names in the graph, or in the
 * signature. */
static sx_status answer_session_run(struct prediction *prediction, sx_bytes message,
                                    const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    sx_call *call = &prediction->call;
    sx_predict_call request;
    sx_tensor *outputs = NULL;
    bool is_alias = false;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    const sx_serve_signature *signature =
        sx_serve_find_signature(signatures, count, spec->signature);
    SX_TRY(read_session_options(message, &is_alias));
    if (signature == NULL) {
        return sx_serve_no_signature(spec->signature);
    }
    sx_serve_signature named = *signature;
    if (!is_alias) {
        named.inputs = by_graph_name(signature->inputs, signature->input_count, arena);
        named.outputs = by_graph_name(signature->outputs, signature->output_count, arena);
        if (named.inputs == NULL || named.outputs == NULL) {
            return sx_no_memory("for the tensors of a signature");
        }
    }
    SX_TRY(sx_predict_proto_read(message, spec, &named, 1, arena, &request));
    SX_TRY(sx_cancel_check(sx_http_request_cancel(call->exchange)));
    SX_TRY(sx_call_run(call, signature, request.inputs, arena, &outputs));
    const sx_predict_spec ran = spec_of(call, spec, signature->name);
    return sx_predict_proto_print(&request, outputs, &ran, 3, prediction->config->tensor_content,
                                  out);
}

/* ---- Classify, Regress, MultiInference ---- */

static sx_status run_examples(sx_call *call, sx_inference_method method,
                              const sx_serve_signature *signature, const sx_tensor *examples,
                              sx_arena *arena, sx_inference_result *out)
{
    sx_tensor *outputs = NULL;
    SX_TRY(sx_cancel_check(sx_http_request_cancel(call->exchange)));
    SX_TRY(sx_call_run(call, signature, examples, arena, &outputs));
    return sx_inference_read(method, signature, outputs, (size_t)examples->type.dims[0], out);
}

static sx_status answer_examples(sx_call *call, sx_inference_method method, sx_bytes message,
                                 const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    const sx_serve_signature *signature = NULL;
    sx_tensor examples;
    sx_inference_result result;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    SX_TRY(sx_inference_find(method, signatures, count, spec->signature, &signature));
    SX_TRY(sx_examples_read(message, arena, &examples));
    sx_metrics_add_examples(sx_served_metrics(call->servable), (size_t)examples.type.dims[0]);
    SX_TRY(run_examples(call, method, signature, &examples, arena, &result));
    const sx_predict_spec ran = spec_of(call, spec, signature->name);
    sx_inference_print(&result, &ran, out);
    return sx_buf_status(out);
}

static sx_status answer_classify(struct prediction *prediction, sx_bytes message,
                                 const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    return answer_examples(&prediction->call, SX_CLASSIFY, message, spec, arena, out);
}

static sx_status answer_regress(struct prediction *prediction, sx_bytes message,
                                const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    return answer_examples(&prediction->call, SX_REGRESS, message, spec, arena, out);
}

/* A task of MultiInference, with its signature. */
struct task {
    sx_inference_task named;
    sx_inference_method method;
    const sx_serve_signature *signature;
};

static sx_status check_task(const sx_inference_task *named, const sx_bytes *model,
                            const sx_serve_signature *signatures, size_t count, bool *seen,
                            struct task *out)
{
    enum { SHOWN_BYTES = 60 };
    const sx_bytes name = sx_serve_signature_name(named->spec.signature);
    const int shown = (int)SX_MIN(name.size, (size_t)SHOWN_BYTES);
    if (named->spec.name.size == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "Found ModelSpec with an empty model name.");
    }
    if (sx_bytes_compare(named->spec.name, *model) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "All ModelSpecs in a MultiInferenceRequest must "
                                             "access the same model name.");
    }
    *out = (struct task){.named = *named,
                         .signature = sx_serve_find_signature(signatures, count, name)};
    if (out->signature == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "Requested signature not found in model graph: %.*s",
                        shown, (const char *)name.data);
    }
    if (seen[out->signature - signatures]) {
        return sx_error(SX_INVALID_ARGUMENT, "Duplicate evaluation of signature: %.*s", shown,
                        (const char *)name.data);
    }
    seen[out->signature - signatures] = true;
    if (sx_bytes_is(named->method, "tensorflow/serving/classify")) {
        out->method = SX_CLASSIFY;
    } else if (sx_bytes_is(named->method, "tensorflow/serving/regress")) {
        out->method = SX_REGRESS;
    } else {
        return sx_error(SX_UNIMPLEMENTED, "Unsupported signature method_name: %.*s",
                        (int)SX_MIN(named->method.size, (size_t)SHOWN_BYTES),
                        (const char *)named->method.data);
    }
    return sx_inference_check(out->method, out->signature);
}

/* All tasks are checked before the first one is run. */
static sx_status answer_multi_inference(struct prediction *prediction, sx_bytes message,
                                        const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    sx_call *call = &prediction->call;
    sx_inference_task *named = NULL;
    sx_tensor examples;
    sx_inference_result result;
    size_t count = 0, task_count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    SX_TRY(sx_inference_tasks_read(message, arena, &named, &task_count));
    struct task *tasks = sx_arena_array(arena, task_count + 1, struct task);
    bool *seen = sx_arena_array(arena, count + 1, bool);
    if (tasks == NULL || seen == NULL) {
        return sx_no_memory("for %zu tasks", task_count);
    }
    for (size_t i = 0; i < task_count; i++) {
        SX_TRY(check_task(&named[i], &spec->name, signatures, count, seen, &tasks[i]));
    }
    SX_TRY(sx_examples_read(message, arena, &examples));
    sx_metrics_add_examples(sx_served_metrics(call->servable), (size_t)examples.type.dims[0]);
    for (size_t i = 0; i < task_count; i++) {
        const struct task *task = &tasks[i];
        SX_TRY(run_examples(call, task->method, task->signature, &examples, arena, &result));
        const sx_predict_spec ran = spec_of(call, &task->named.spec, task->signature->name);
        sx_inference_print_task(&result, &ran, out);
    }
    return sx_buf_status(out);
}

/* ---- GetModelMetadata ---- */

static sx_status answer_metadata(struct prediction *prediction, sx_bytes message,
                                 const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    sx_call *call = &prediction->call;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    const sx_predict_spec ran = spec_of(call, spec, "");
    (void)arena;
    SX_TRY(sx_metadata_request_check(message));
    sx_metadata_print(&ran, signatures, count, out);
    return sx_buf_status(out);
}

/* ---- Any method ---- */

static const struct method methods[] = {
    {"/tensorflow.serving.PredictionService/Predict", SX_API_PREDICT, false, sx_predict_spec_read,
     answer_predict},
    {"/tensorflow.serving.PredictionService/Classify", SX_API_CLASSIFY, false, sx_predict_spec_read,
     answer_classify},
    {"/tensorflow.serving.PredictionService/Regress", SX_API_REGRESS, false, sx_predict_spec_read,
     answer_regress},
    {"/tensorflow.serving.PredictionService/MultiInference", SX_API_CLASSIFY, true,
     sx_inference_first_spec, answer_multi_inference},
    {"/tensorflow.serving.PredictionService/GetModelMetadata", SX_API_PREDICT, true,
     sx_predict_spec_read, answer_metadata},
    {"/tensorflow.serving.SessionService/SessionRun", SX_API_PREDICT, true, sx_predict_spec_read,
     answer_session_run},
};

/* A view as text; cut if it is longer than any name. */
static const char *name_text(sx_bytes view, char text[SX_ROUTE_NAME])
{
    const size_t size = SX_MIN(view.size, (size_t)SX_ROUTE_NAME - 1);
    if (size > 0) {
        memcpy(text, view.data, size);
    }
    text[size] = '\0';
    return text;
}

static sx_status acquire(sx_call *call, const sx_predict_spec *named)
{
    char name[SX_ROUTE_NAME], label[SX_ROUTE_NAME];
    const sx_model_spec spec = {.name = name_text(named->name, name),
                                .version = named->version < 0 ? SX_LATEST_VERSION : named->version,
                                .label = name_text(named->label, label)};
    return sx_call_acquire(call, &spec);
}

/* Appends the message of the response to `out`. */
static sx_status answer(struct prediction *prediction, sx_arena *arena, sx_buf *inflated,
                        sx_buf *out)
{
    sx_call *call = &prediction->call;
    sx_bytes message;
    sx_predict_spec spec;
    SX_TRY(sx_cancel_check(sx_http_request_cancel(call->exchange)));
    SX_TRY(
        sx_grpc_request(call->exchange, sx_calls_max_body_bytes(call->calls), inflated, &message));
    SX_TRY(prediction->method->read_spec(message, &spec));
    if (call->servable == NULL) { /* the message was compressed */
        SX_TRY(acquire(call, &spec));
    }
    const size_t at = sx_grpc_message_begin(out);
    SX_TRY(prediction->method->answer(prediction, message, &spec, arena, out));
    sx_grpc_message_end(out, at);
    return SX_OK;
}

/* What the client is told instead of `status`. */
static sx_status explain(const sx_call *call, sx_status status)
{
    const sx_code code = sx_status_code(status);
    sx_status better = SX_OK;
    if (code == SX_DATA_LOSS) { /* a corrupt image in the request */
        better = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
    } else if (code == SX_DEADLINE_EXCEEDED) {
        better = sx_error(code, "Deadline Exceeded");
    } else {
        (void)sx_call_explain_budget(call, &status);
        return status;
    }
    sx_status_free(status);
    return better;
}

static void run(sx_executor_job *base, int worker)
{
    struct prediction *prediction = (struct prediction *)base;
    sx_call *call = &prediction->call;
    sx_http_exchange *exchange = call->exchange;
    sx_arena arena;
    sx_buf inflated, out;
    (void)worker;
    sx_arena_init(&arena, 0);
    sx_buf_init(&inflated, 0);
    sx_buf_init(&out, SIZE_MAX / 4); /* limited by the budget */
    arena.budget = inflated.budget = out.budget = sx_http_request_budget(exchange);
    call->begun_ns = sx_now_ns();
    sx_status status = answer(prediction, &arena, &inflated, &out);
    if (status != SX_OK) {
        status = explain(call, status);
    }
    if (call->servable != NULL) {
        sx_call_end(call, sx_status_code(status));
    }
    sx_arena_deinit(&arena);
    sx_buf_deinit(&inflated);
    sx_grpc_respond(exchange, status, (sx_bytes){0}, &out);
}

/* Finds the model, unless its name is compressed, and goes on where a REST request would. */
static sx_status begin(struct prediction *prediction, sx_bytes body)
{
    sx_call *call = &prediction->call;
    sx_bytes message;
    sx_predict_spec spec;
    const bool compressed = body.size > 0 && ((const char *)body.data)[0] != 0;
    if (!compressed) {
        SX_TRY(sx_grpc_unframe(body, false, sx_calls_max_body_bytes(call->calls), NULL, &message));
        SX_TRY(prediction->method->read_spec(message, &spec));
        SX_TRY(acquire(call, &spec));
    }
    return sx_call_submit(call);
}

bool sx_grpc_prediction_handle(const sx_grpc_config *config, sx_http_exchange *exchange)
{
    struct prediction *prediction = sx_http_request_scratch(exchange);
    for (size_t i = 0; i < SX_COUNT(methods); i++) {
        if (!sx_http_text_is(sx_http_request_head(exchange)->path, methods[i].path)) {
            continue;
        }
        *prediction = (struct prediction){.call = {.job = {.fn = run},
                                                   .calls = config->calls,
                                                   .exchange = exchange,
                                                   .arrived_ns = sx_now_ns(),
                                                   .api = methods[i].api,
                                                   .entrypoint = SX_ENTRY_GRPC,
                                                   .uncounted = methods[i].uncounted},
                                          .config = config,
                                          .method = &methods[i]};
        sx_status status = begin(prediction, sx_http_request_body(exchange));
        if (status != SX_OK) {
            sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
        }
        return true;
    }
    return false;
}
