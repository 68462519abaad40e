/* The prediction service; see grpc_prediction.h. Each method is a row of a table, as grpc_call.h
 * has it. */
#include "serve/grpc_prediction.h"

#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "proto/wire.h"
#include "serve/grpc_call.h"
#include "serve/inference_proto.h"
#include "serve/json_scan.h"
#include "serve/metadata_proto.h"
#include "serve/predict_proto.h"

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

static sx_status answer_predict(sx_grpc_call *prediction, sx_bytes message,
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
static sx_status answer_session_run(sx_grpc_call *prediction, sx_bytes message,
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

static sx_status answer_classify(sx_grpc_call *prediction, sx_bytes message,
                                 const sx_predict_spec *spec, sx_arena *arena, sx_buf *out)
{
    return answer_examples(&prediction->call, SX_CLASSIFY, message, spec, arena, out);
}

static sx_status answer_regress(sx_grpc_call *prediction, sx_bytes message,
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
static sx_status answer_multi_inference(sx_grpc_call *prediction, sx_bytes message,
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

static sx_status answer_metadata(sx_grpc_call *prediction, sx_bytes message,
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

/* ---- The table ---- */

static const sx_grpc_method methods[] = {
    {"/tensorflow.serving.PredictionService/Predict", SX_API_PREDICT, false, sx_predict_spec_read,
     answer_predict, SX_LOG_PREDICT},
    {"/tensorflow.serving.PredictionService/Classify", SX_API_CLASSIFY, false, sx_predict_spec_read,
     answer_classify, SX_LOG_CLASSIFY},
    {"/tensorflow.serving.PredictionService/Regress", SX_API_REGRESS, false, sx_predict_spec_read,
     answer_regress, SX_LOG_REGRESS},
    {"/tensorflow.serving.PredictionService/MultiInference", SX_API_CLASSIFY, true,
     sx_inference_first_spec, answer_multi_inference, SX_LOG_MULTI_INFERENCE},
    {"/tensorflow.serving.PredictionService/GetModelMetadata", SX_API_PREDICT, true,
     sx_predict_spec_read, answer_metadata, 0},
    {"/tensorflow.serving.SessionService/SessionRun", SX_API_PREDICT, true, sx_predict_spec_read,
     answer_session_run, SX_LOG_SESSION_RUN},
};

bool sx_grpc_prediction_handle(const sx_grpc_config *config, sx_http_exchange *exchange)
{
    return sx_grpc_call_handle(config, exchange, methods, SX_COUNT(methods));
}
