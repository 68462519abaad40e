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

/* The spec of what has run. */
static sx_predict_spec spec_of(const sx_call *call, const sx_predict_spec *asked)
{
    const char *signature = call->signature != NULL ? call->signature->name : "";
    sx_predict_spec ran = *asked;
    ran.version = sx_served_version(call->servable);
    ran.signature = (sx_bytes){signature, strlen(signature)};
    return ran;
}

/* ---- Predict ---- */

/* A request that names tensors as one of `signatures` does; `signature` NULL: that runs. */
static sx_status read_tensors(sx_grpc_call *grpc, const sx_serve_signature *signatures,
                              size_t count, const sx_serve_signature *signature)
{
    sx_call *call = &grpc->call;
    sx_predict_call *request = sx_arena_new(&call->arena, sx_predict_call);
    if (request == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_predict_proto_read(grpc->message, &grpc->spec, signatures, count, &call->arena,
                                 request));
    if (request->unaligned != NULL) {
        sx_http_request_align(call->exchange, request->unaligned);
    }
    call->read = request;
    sx_call_set_run(call, signature != NULL ? signature : request->signature, request->inputs);
    return SX_OK;
}

static sx_status read_predict(sx_grpc_call *grpc)
{
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(grpc->call.servable, &count);
    return read_tensors(grpc, signatures, count, NULL);
}

static sx_status print_predict(sx_grpc_call *grpc, const sx_tensor *outputs)
{
    const sx_predict_spec ran = spec_of(&grpc->call, &grpc->spec);
    return sx_predict_proto_print(grpc->call.read, outputs, &ran, 2, grpc->config->tensor_content,
                                  &grpc->call.out);
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
static sx_status read_session_run(sx_grpc_call *grpc)
{
    sx_call *call = &grpc->call;
    bool is_alias = false;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    const sx_serve_signature *signature =
        sx_serve_find_signature(signatures, count, grpc->spec.signature);
    SX_TRY(read_session_options(grpc->message, &is_alias));
    if (signature == NULL) {
        return sx_serve_no_signature(grpc->spec.signature);
    }
    sx_serve_signature *named = sx_arena_memdup(&call->arena, signature, sizeof(*signature));
    if (named == NULL) {
        return sx_no_memory("for a signature");
    }
    if (!is_alias) {
        named->inputs = by_graph_name(signature->inputs, signature->input_count, &call->arena);
        named->outputs = by_graph_name(signature->outputs, signature->output_count, &call->arena);
        if (named->inputs == NULL || named->outputs == NULL) {
            return sx_no_memory("for the tensors of a signature");
        }
    }
    return read_tensors(grpc, named, 1, signature);
}

static sx_status print_session_run(sx_grpc_call *grpc, const sx_tensor *outputs)
{
    const sx_predict_spec ran = spec_of(&grpc->call, &grpc->spec);
    return sx_predict_proto_print(grpc->call.read, outputs, &ran, 3, grpc->config->tensor_content,
                                  &grpc->call.out);
}

/* ---- Classify, Regress, MultiInference ---- */

static sx_inference_method method_of(const sx_call *call)
{
    return call->api == SX_API_CLASSIFY ? SX_CLASSIFY : SX_REGRESS;
}

static sx_status read_examples(sx_grpc_call *grpc)
{
    sx_call *call = &grpc->call;
    const sx_serve_signature *signature = NULL;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    sx_tensor *examples = sx_arena_new(&call->arena, sx_tensor);
    if (examples == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_inference_find(method_of(call), signatures, count, grpc->spec.signature, &signature));
    SX_TRY(sx_examples_read(grpc->message, &call->arena, examples));
    sx_metrics_add_examples(sx_served_metrics(call->servable), (size_t)examples->type.dims[0]);
    sx_call_set_run(call, signature, examples);
    return SX_OK;
}

static sx_status print_examples(sx_grpc_call *grpc, const sx_tensor *outputs)
{
    sx_call *call = &grpc->call;
    sx_inference_result result;
    SX_TRY(sx_inference_read(method_of(call), call->signature, outputs,
                             (size_t)call->inputs->type.dims[0], &result));
    const sx_predict_spec ran = spec_of(call, &grpc->spec);
    sx_inference_print(&result, &ran, &call->out);
    return sx_buf_status(&call->out);
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

/* What a MultiInference has to do. */
struct tasks {
    struct task *list; /* [count] */
    size_t count, next;
    sx_tensor examples;
};

/* Of all tasks, which are checked before the first one is run. */
static sx_status read_multi_inference(sx_grpc_call *grpc)
{
    sx_call *call = &grpc->call;
    sx_inference_task *named = NULL;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    struct tasks *tasks = sx_arena_new(&call->arena, struct tasks);
    if (tasks == NULL) {
        return sx_no_memory("for a request");
    }
    SX_TRY(sx_inference_tasks_read(grpc->message, &call->arena, &named, &tasks->count));
    tasks->list = sx_arena_array(&call->arena, tasks->count + 1, struct task);
    bool *seen = sx_arena_array(&call->arena, count + 1, bool);
    if (tasks->list == NULL || seen == NULL) {
        return sx_no_memory("for %zu tasks", tasks->count);
    }
    for (size_t i = 0; i < tasks->count; i++) {
        SX_TRY(check_task(&named[i], &grpc->spec.name, signatures, count, seen, &tasks->list[i]));
    }
    SX_TRY(sx_examples_read(grpc->message, &call->arena, &tasks->examples));
    sx_metrics_add_examples(sx_served_metrics(call->servable),
                            (size_t)tasks->examples.type.dims[0]);
    call->read = tasks;
    if (tasks->count > 0) {
        sx_call_set_run(call, tasks->list[0].signature, &tasks->examples);
    }
    return SX_OK;
}

/* The result of one task; the next one is to run then. */
static sx_status print_task(sx_grpc_call *grpc, const sx_tensor *outputs)
{
    sx_call *call = &grpc->call;
    struct tasks *tasks = call->read;
    const struct task *task = &tasks->list[tasks->next++];
    sx_inference_result result;
    SX_TRY(sx_inference_read(task->method, task->signature, outputs,
                             (size_t)tasks->examples.type.dims[0], &result));
    const sx_predict_spec ran = spec_of(call, &task->named.spec);
    sx_inference_print_task(&result, &ran, &call->out);
    if (tasks->next < tasks->count) {
        sx_call_set_run(call, tasks->list[tasks->next].signature, &tasks->examples);
    }
    return sx_buf_status(&call->out);
}

/* ---- GetModelMetadata ---- */

static sx_status read_metadata(sx_grpc_call *grpc)
{
    sx_call *call = &grpc->call;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    const sx_predict_spec ran = spec_of(call, &grpc->spec);
    SX_TRY(sx_metadata_request_check(grpc->message));
    sx_metadata_print(&ran, signatures, count, &call->out);
    return sx_buf_status(&call->out);
}

/* ---- The table ---- */

static const sx_grpc_method methods[] = {
    {"/tensorflow.serving.PredictionService/Predict", SX_API_PREDICT, false, sx_predict_spec_read,
     read_predict, print_predict, SX_LOG_PREDICT},
    {"/tensorflow.serving.PredictionService/Classify", SX_API_CLASSIFY, false, sx_predict_spec_read,
     read_examples, print_examples, SX_LOG_CLASSIFY},
    {"/tensorflow.serving.PredictionService/Regress", SX_API_REGRESS, false, sx_predict_spec_read,
     read_examples, print_examples, SX_LOG_REGRESS},
    {"/tensorflow.serving.PredictionService/MultiInference", SX_API_CLASSIFY, true,
     sx_inference_first_spec, read_multi_inference, print_task, SX_LOG_MULTI_INFERENCE},
    {"/tensorflow.serving.PredictionService/GetModelMetadata", SX_API_PREDICT, true,
     sx_predict_spec_read, read_metadata, NULL, 0},
    {"/tensorflow.serving.SessionService/SessionRun", SX_API_PREDICT, true, sx_predict_spec_read,
     read_session_run, print_session_run, SX_LOG_SESSION_RUN},
};

bool sx_grpc_prediction_handle(const sx_grpc_config *config, sx_http_exchange *exchange)
{
    return sx_grpc_call_handle(config, exchange, methods, SX_COUNT(methods));
}
