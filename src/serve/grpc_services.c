/* The gRPC services; see grpc_services.h. */
#include "serve/grpc_services.h"

#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "serve/grpc_health.h"
#include "serve/predict_proto.h"
#include "serve/router.h"

struct sx_grpc_services {
    sx_calls *calls;
    sx_grpc_health *health;
};

/* ---- Predict ---- */

_Static_assert(sizeof(sx_call) <= SX_HTTP_SCRATCH, "the call must fit the scratch memory");

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
static sx_status predict(sx_call *call, sx_arena *arena, sx_buf *inflated, sx_buf *out)
{
    sx_bytes message;
    sx_predict_spec spec;
    sx_predict_call request;
    sx_tensor *outputs = NULL;
    size_t count = 0;
    const sx_cancel *cancel = sx_http_request_cancel(call->exchange);
    SX_TRY(sx_cancel_check(cancel));
    SX_TRY(
        sx_grpc_request(call->exchange, sx_calls_max_body_bytes(call->calls), inflated, &message));
    SX_TRY(sx_predict_spec_read(message, &spec));
    if (call->servable == NULL) { /* the message was compressed */
        SX_TRY(acquire(call, &spec));
    }
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    SX_TRY(sx_predict_proto_read(message, &spec, signatures, count, arena, &request));
    SX_TRY(sx_cancel_check(cancel));
    SX_TRY(sx_call_run(call, request.signature, request.inputs, arena, &outputs));
    spec.version = sx_served_version(call->servable);
    spec.signature = (sx_bytes){request.signature->name, strlen(request.signature->name)};
    const size_t at = sx_grpc_message_begin(out);
    SX_TRY(sx_predict_proto_print(&request, outputs, &spec, out));
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

static void run_predict(sx_executor_job *base, int worker)
{
    sx_call *call = (sx_call *)base;
    sx_http_exchange *exchange = call->exchange;
    sx_arena arena;
    sx_buf inflated, out;
    (void)worker;
    sx_arena_init(&arena, 0);
    sx_buf_init(&inflated, 0);
    sx_buf_init(&out, SIZE_MAX / 4); /* limited by the budget */
    arena.budget = inflated.budget = out.budget = sx_http_request_budget(exchange);
    call->begun_ns = sx_now_ns();
    sx_status status = predict(call, &arena, &inflated, &out);
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
static sx_status begin_predict(sx_call *call, sx_bytes body)
{
    sx_bytes message;
    sx_predict_spec spec;
    const bool compressed = body.size > 0 && ((const char *)body.data)[0] != 0;
    if (!compressed) {
        SX_TRY(sx_grpc_unframe(body, false, sx_calls_max_body_bytes(call->calls), NULL, &message));
        SX_TRY(sx_predict_spec_read(message, &spec));
        SX_TRY(acquire(call, &spec));
    }
    return sx_call_submit(call);
}

static void handle_predict(sx_grpc_services *services, sx_http_exchange *exchange)
{
    sx_call *call = sx_http_request_scratch(exchange);
    *call = (sx_call){.job = {.fn = run_predict},
                      .calls = services->calls,
                      .exchange = exchange,
                      .arrived_ns = sx_now_ns()};
    sx_status status = begin_predict(call, sx_http_request_body(exchange));
    if (status != SX_OK) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
    }
}

/* ---- Health ---- */

static void handle_health(sx_grpc_services *services, sx_http_exchange *exchange,
                          void (*method)(sx_grpc_health *, sx_http_exchange *, sx_bytes))
{
    enum { MESSAGE_BYTES = 4096 };
    sx_buf inflated;
    sx_bytes message;
    sx_buf_init(&inflated, 0);
    sx_status status = sx_grpc_request(exchange, MESSAGE_BYTES, &inflated, &message);
    if (status != SX_OK) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
    } else {
        method(services->health, exchange, message);
    }
    sx_buf_deinit(&inflated);
}

static void handle_check(sx_grpc_services *services, sx_http_exchange *exchange)
{
    handle_health(services, exchange, sx_grpc_health_check);
}

static void handle_watch(sx_grpc_services *services, sx_http_exchange *exchange)
{
    handle_health(services, exchange, sx_grpc_health_watch);
}

/* ---- Methods ---- */

static const struct {
    const char *path;
    void (*handle)(sx_grpc_services *services, sx_http_exchange *exchange);
} methods[] = {
    {"/tensorflow.serving.PredictionService/Predict", handle_predict},
    {"/grpc.health.v1.Health/Check", handle_check},
    {"/grpc.health.v1.Health/Watch", handle_watch},
};

void sx_grpc_services_handle(sx_grpc_services *services, sx_http_exchange *exchange)
{
    const sx_http_text path = sx_http_request_head(exchange)->path;
    sx_status status = sx_grpc_begin(exchange);
    if (status != SX_OK) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
        return;
    }
    for (size_t i = 0; i < SX_COUNT(methods); i++) {
        if (sx_http_text_is(path, methods[i].path)) {
            methods[i].handle(services, exchange);
            return;
        }
    }
    sx_grpc_respond(exchange,
                    sx_error(SX_UNIMPLEMENTED, "unknown method %.*s",
                             (int)SX_MIN(path.size, (size_t)SX_ROUTE_NAME), path.data),
                    (sx_bytes){0}, NULL);
}

/* ---- Creation and destruction ---- */

sx_status sx_grpc_services_create(sx_calls *calls, sx_grpc_services **out)
{
    sx_grpc_services *services = sx_alloc(1, sizeof(*services));
    if (services == NULL) {
        return sx_no_memory("for the gRPC services");
    }
    services->calls = calls;
    sx_status status = sx_grpc_health_create(sx_calls_manager(calls), &services->health);
    if (status != SX_OK) {
        sx_grpc_services_destroy(services);
        return status;
    }
    *out = services;
    return SX_OK;
}

void sx_grpc_services_stop(sx_grpc_services *services)
{
    if (services != NULL) {
        sx_grpc_health_stop(services->health);
    }
}

void sx_grpc_services_destroy(sx_grpc_services *services)
{
    if (services == NULL) {
        return;
    }
    sx_grpc_health_destroy(services->health);
    sx_free(services);
}
