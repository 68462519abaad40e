/* The gRPC services; see grpc_services.h. */
#include "serve/grpc_services.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "serve/grpc_call.h"
#include "serve/grpc_health.h"
#include "serve/kserve_grpc.h"
#include "serve/predict_proto.h"
#include "serve/router.h"

struct sx_grpc_services {
    sx_calls *calls;
    sx_grpc_health *health;
};

/* ---- Predict ---- */

static sx_status answer_predict(sx_call *call, sx_bytes message, const sx_predict_spec *spec,
                                sx_arena *arena, sx_buf *out)
{
    sx_predict_call request;
    sx_tensor *outputs = NULL;
    size_t count = 0;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    SX_TRY(sx_predict_proto_read(message, spec, signatures, count, arena, &request));
    SX_TRY(sx_cancel_check(sx_http_request_cancel(call->exchange)));
    SX_TRY(sx_call_run(call, request.signature, request.inputs, arena, &outputs));
    sx_predict_spec ran = *spec;
    ran.version = sx_served_version(call->servable);
    ran.signature = (sx_bytes){request.signature->name, strlen(request.signature->name)};
    return sx_predict_proto_print(&request, outputs, &ran, out);
}

static const sx_grpc_method prediction[] = {
    {"/tensorflow.serving.PredictionService/Predict", sx_predict_spec_read, answer_predict},
};

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
    if (sx_grpc_call_handle(services->calls, exchange, prediction, SX_COUNT(prediction)) ||
        sx_kserve_grpc_handle(services->calls, exchange)) {
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
