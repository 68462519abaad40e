/* The gRPC services; see grpc_services.h. */
#include "serve/grpc_services.h"

#include "base/checked.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "serve/grpc_health.h"
#include "serve/grpc_model.h"
#include "serve/grpc_prediction.h"
#include "serve/grpc_reflection.h"
#include "serve/router.h"

struct sx_grpc_services {
    sx_grpc_config config;
    sx_grpc_health *health;
    sx_grpc_model *model;
};

/* ---- Methods ---- */

static void check_health(sx_grpc_services *services, sx_http_exchange *exchange, sx_bytes message)
{
    sx_grpc_health_check(services->health, exchange, message);
}

static void watch_health(sx_grpc_services *services, sx_http_exchange *exchange, sx_bytes message)
{
    sx_grpc_health_watch(services->health, exchange, message);
}

static void model_status(sx_grpc_services *services, sx_http_exchange *exchange, sx_bytes message)
{
    sx_grpc_model_status(services->model, exchange, message);
}

static void reload_config(sx_grpc_services *services, sx_http_exchange *exchange, sx_bytes message)
{
    sx_grpc_model_reload(services->model, exchange, message);
}

enum { SMALL_BYTES = 4096, CONFIG_BYTES = 16 << 20 };

/* Those that run no model: answered on the loop's thread, or passed on from there. */
static const struct method {
    const char *path;
    size_t max_bytes; /* of the message */
    void (*handle)(sx_grpc_services *services, sx_http_exchange *exchange, sx_bytes message);
} methods[] = {
    {"/tensorflow.serving.ModelService/GetModelStatus", SMALL_BYTES, model_status},
    {"/tensorflow.serving.ModelService/HandleReloadConfigRequest", CONFIG_BYTES, reload_config},
    {"/grpc.health.v1.Health/Check", SMALL_BYTES, check_health},
    {"/grpc.health.v1.Health/Watch", SMALL_BYTES, watch_health},
};

static const struct method *find_method(sx_http_text path)
{
    for (size_t i = 0; i < SX_COUNT(methods); i++) {
        if (sx_http_text_is(path, methods[i].path)) {
            return &methods[i];
        }
    }
    return NULL;
}

static void handle(sx_grpc_services *services, sx_http_exchange *exchange,
                   const struct method *method)
{
    sx_buf inflated;
    sx_bytes message;
    sx_buf_init(&inflated, 0);
    inflated.budget = sx_http_request_budget(exchange);
    sx_status status = sx_grpc_request(exchange, method->max_bytes, &inflated, &message);
    if (status != SX_OK) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
    } else {
        method->handle(services, exchange, message);
    }
    sx_buf_deinit(&inflated);
}

void sx_grpc_services_handle(sx_grpc_services *services, sx_http_exchange *exchange)
{
    const sx_http_text path = sx_http_request_head(exchange)->path;
    const struct method *method = find_method(path);
    sx_status status = sx_grpc_begin(exchange);
    if (status != SX_OK) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
    } else if (method != NULL) {
        handle(services, exchange, method);
    } else if (!sx_grpc_prediction_handle(&services->config, exchange) &&
               !sx_grpc_reflection_handle(exchange)) {
        sx_grpc_respond(exchange,
                        sx_error(SX_UNIMPLEMENTED, "unknown method %.*s",
                                 (int)SX_MIN(path.size, (size_t)SX_ROUTE_NAME), path.data),
                        (sx_bytes){0}, NULL);
    }
}

/* ---- Creation and destruction ---- */

sx_status sx_grpc_services_create(const sx_grpc_config *config, sx_grpc_services **out)
{
    sx_grpc_services *services = sx_alloc(1, sizeof(*services));
    if (services == NULL) {
        return sx_no_memory("for the gRPC services");
    }
    services->config = *config;
    sx_status status = sx_grpc_health_create(sx_calls_manager(config->calls), &services->health);
    if (status == SX_OK) {
        status = sx_grpc_model_create(sx_calls_manager(config->calls), &services->model);
    }
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
        sx_grpc_model_stop(services->model);
    }
}

void sx_grpc_services_destroy(sx_grpc_services *services)
{
    if (services == NULL) {
        return;
    }
    sx_grpc_health_destroy(services->health);
    sx_grpc_model_destroy(services->model);
    sx_free(services);
}
