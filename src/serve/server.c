/* Assembles the model server; see server.h.
 *
 * Every address speaks REST and gRPC: a request is a call by its content type.
 *
 * Shutdown order: end the watches (which have no end of their own), drain the HTTP server (which
 * needs the executor), stop the executor (which posts responses to the HTTP server's loops),
 * destroy the HTTP server, and last the models. */
#include "serve/server.h"

#include <malloc.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/ram.h"
#include "net/grpc.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "serve/access_log.h"
#include "serve/call.h"
#include "serve/config_watch.h"
#include "serve/grpc_reflection.h"
#include "serve/grpc_services.h"
#include "serve/managed.h"
#include "serve/manager.h"
#include "serve/request_log.h"
#include "serve/rest.h"
#include "serve/rest_call.h"
#include "serve/router.h"
#include "serve/ssl_config.h"

struct sx_server {
    sx_log_writer *log_writer; /* NULL: nothing is logged */
    sx_request_log *request_log;
    sx_access_log *access_log; /* NULL: none */
    sx_batcher *batcher;
    sx_manager *manager;
    sx_config_watch *config_watch, *traffic_watch; /* NULL: without the file */
    sx_managed *managed;                           /* NULL: clients create no models */
    sx_auth *auth;                                 /* NULL: everybody may call everything */
    sx_calls *calls;
    sx_rest *rest;
    sx_grpc_services *services;
    struct secured {
        char *config_file; /* NULL: none */
        sx_tls *tls;
    } rest_tls, grpc_tls;
    sx_http_server *http;
    sx_budget memory;   /* of all requests */
    char *metrics_path; /* NULL = none */
    int drain_grace_ms;
    int port, grpc_port, admin_port;
    int admin_address; /* -1: none */
    bool loading, stopped, drained_well;
};

static const char reload_path[] = "/tensorflow.serving.ModelService/HandleReloadConfigRequest";

/* Whether a request may be answered at all. Models that calls of gRPC ask for are known later
 * (sx_call_acquire). */
static sx_status admit(sx_server *server, sx_http_exchange *exchange, bool is_grpc)
{
    static const char *const open_to_all[] = {"/grpc.health.v1.Health/Check",
                                              "/grpc.health.v1.Health/Watch",
                                              "/inference.GRPCInferenceService/ServerLive",
                                              "/inference.GRPCInferenceService/ServerReady"};
    const sx_http_head *head = sx_http_request_head(exchange);
    sx_route route;
    if (server->auth == NULL) {
        return SX_OK;
    }
    for (size_t i = 0; i < SX_COUNT(open_to_all); i++) {
        if (is_grpc && sx_http_text_is(head->path, open_to_all[i])) {
            return SX_OK;
        }
    }
    if (is_grpc) {
        return sx_auth_check(server->auth, exchange,
                             sx_http_text_is(head->path, reload_path) ? SX_AUTH_ADMIN : NULL,
                             SX_AUTH_LOOK);
    }
    sx_route_parse(head->method, head->path, NULL, &route);
    if (route.kind == SX_ROUTE_LIVE || route.kind == SX_ROUTE_READY ||
        route.kind == SX_ROUTE_OPTIONS) {
        return SX_OK;
    }
    return sx_auth_check(server->auth, exchange,
                         sx_route_is_change(route.kind) ? SX_AUTH_ADMIN
                         : route.model[0] != '\0'       ? route.model
                                                        : NULL,
                         sx_route_is_predict(route.kind) ? SX_AUTH_PREDICT : SX_AUTH_LOOK);
}

/* Whether a request may be answered at this address: if there is one for administration, some may
 * only there. */
static sx_status check_address(const sx_server *server, const sx_http_exchange *exchange,
                               bool is_grpc)
{
    const sx_http_head *head = sx_http_request_head(exchange);
    sx_route route;
    if (server->admin_address < 0 || sx_http_request_address(exchange) == server->admin_address) {
        return SX_OK;
    }
    sx_route_parse(head->method, head->path, server->metrics_path, &route);
    const bool is_admin = is_grpc ? sx_http_text_is(head->path, reload_path)
                                  : route.kind == SX_ROUTE_METRICS ||
                                        route.kind == SX_ROUTE_STATUS_PAGE ||
                                        sx_route_is_change(route.kind);
    return is_admin ? sx_error(SX_PERMISSION_DENIED,
                               "this is answered at the server's address for administration only")
                    : SX_OK;
}

static void handle(void *user, sx_http_exchange *exchange)
{
    sx_server *server = user;
    const bool is_grpc = sx_grpc_is_call(sx_http_request_head(exchange));
    sx_status status = check_address(server, exchange, is_grpc);
    status = status == SX_OK ? admit(server, exchange, is_grpc) : status;
    if (status != SX_OK && is_grpc) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, NULL);
    } else if (status != SX_OK) {
        sx_rest_respond_error(server->rest, exchange, status);
    } else if (is_grpc) {
        sx_grpc_services_handle(server->services, exchange);
    } else {
        sx_rest_handle(server->rest, exchange);
    }
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int or_default(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

sx_status sx_server_check_metrics_path(const char *path)
{
    sx_route route;
    if (path == NULL || path[0] == '\0') {
        return SX_OK;
    }
    const sx_http_text text = {path, strlen(path)};
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)path[i];
        if (path[0] != '/' || c <= ' ' || c >= 0x7f || c == '?' || c == '#') {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "\"%s\" is not a URL path for the metrics: it must begin with / and have no "
                "spaces, ? or #",
                path);
        }
    }
    sx_route_parse((sx_http_text){"GET", 3}, text, NULL, &route);
    if (route.kind != SX_ROUTE_NOT_FOUND) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the metrics cannot be at \"%s\": the server has another page there", path);
    }
    return SX_OK;
}

static void log_access(void *user, const sx_http_exchange *exchange,
                       const sx_http_response *response)
{
    const sx_server *server = user;
    sx_access_log_add(server->access_log, exchange, response);
}

/* The rules of the request log are those of the models that are served. */
static sx_status set_log_rules(void *user, const sx_model_config *models, size_t count)
{
    sx_server *server = user;
    sx_log_rule *rules = sx_alloc(count + 1, sizeof(rules[0]));
    size_t given = 0;
    if (rules == NULL) {
        return sx_no_memory("for the rules of a request log");
    }
    for (size_t i = 0; i < count; i++) {
        if (models[i].log_prefix != NULL) {
            rules[given++] = (sx_log_rule){
                models[i].name, models[i].log_prefix[0] != '\0' ? models[i].log_prefix : NULL,
                models[i].log_sampling_rate};
        }
    }
    sx_status status = sx_request_log_set_rules(server->request_log, rules, given);
    sx_free(rules);
    return status;
}

/* A file of models may say at any time that they are logged. */
static sx_status create_logs(const sx_server_config *config, sx_server *server)
{
    const bool requests = is_given(config->request_log) || config->model_config_file != NULL;
    if (!requests && !is_given(config->access_log)) {
        return SX_OK;
    }
    SX_TRY(sx_log_writer_create(config->log_max_waiting_bytes, &server->log_writer));
    const sx_request_log_config log = {
        .prefix = is_given(config->request_log) ? config->request_log : NULL,
        .sampling_rate = config->request_log_sampling_rate,
        .max_file_bytes = config->request_log_max_file_bytes,
        .max_file_seconds = config->request_log_max_file_seconds,
        .tags = config->saved_model_tags,
    };
    if (requests) {
        SX_TRY(sx_request_log_create(&log, server->log_writer, &server->request_log));
    }
    return is_given(config->access_log)
               ? sx_access_log_create(config->access_log, server->log_writer, &server->access_log)
               : SX_OK;
}

/* Those that clients create, those of the configuration file, or the one that is named. */
static sx_status set_models(const sx_server_config *config, sx_server *server)
{
    if (is_given(config->managed_models_dir)) {
        return sx_managed_create(config->managed_models_dir,
                                 is_given(config->managed_storage) ? config->managed_storage : NULL,
                                 server->manager, &server->managed);
    }
    if (config->model_config_file != NULL) {
        return sx_config_watch_create(&sx_config_models, config->model_config_file,
                                      config->model_config_file_poll_wait_seconds, server->manager,
                                      &server->config_watch);
    }
    const sx_model_config model = {.name = is_given(config->model_name) ? config->model_name
                                                                        : "default",
                                   .base_path = config->model_base_path};
    return sx_manager_set_models(server->manager, &model, 1);
}

static sx_status create_models(const sx_server_config *config, int64_t max_rows, sx_server *server)
{
    const sx_manager_config manager = {
        .lifecycle = {.ops = config->ops,
                      .ops_user = config->ops_user,
                      .batcher = server->batcher,
                      .warm_up = !config->no_model_warmup,
                      .warmup = {config->num_request_iterations_for_warmup, max_rows},
                      .resource_preserving = config->resource_preserving,
                      .drain_timeout_seconds = config->version_drain_timeout_seconds,
                      .poll_wait_seconds = config->file_system_poll_wait_seconds,
                      .max_load_retries = config->max_num_load_retries,
                      .load_retry_seconds = config->load_retry_interval_seconds,
                      .load_timeout_seconds = config->load_timeout_seconds},
        .max_loaded_memory_bytes = config->max_loaded_memory_bytes,
        .allow_labels_for_unavailable_models = config->allow_version_labels_for_unavailable_models,
        .on_models = server->request_log != NULL ? set_log_rules : NULL,
        .user = server,
    };
    SX_TRY(sx_manager_create(&manager, &server->manager));
    SX_TRY(set_models(config, server));
    return is_given(config->model_traffic_file)
               ? sx_config_watch_create(&sx_config_traffic, config->model_traffic_file,
                                        config->model_config_file_poll_wait_seconds,
                                        server->manager, &server->traffic_watch)
               : SX_OK;
}

/* TLS as the file says, if one is given. */
static sx_status secure(const char *config_file, struct secured *out)
{
    if (!is_given(config_file)) {
        return SX_OK;
    }
    out->config_file = sx_strdup(config_file);
    return out->config_file != NULL ? sx_tls_create(sx_ssl_config_load, out->config_file, &out->tls)
                                    : sx_no_memory("for a server");
}

/* Weights go back to the system when they are freed. By default glibc takes ever larger blocks from
 * its heaps, of which those of other threads than the first are never trimmed. Nor has it eight
 * heaps for each processor, as by default: each version is loaded by a thread of its own, and what
 * it leaves in one heap the next one does not use in another. */
static void bound_heaps(void)
{
    enum { LARGE_BYTES = 2 << 20, KEPT_BYTES = 8 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_ARENA_MAX, SX_MAX(sx_cpu_count(), 2));
}

/* The HTTP server, which is not started yet: its addresses, who speaks TLS there, its limits.
 * `memory_bytes` is for all requests together, `max_body_bytes` for the body of one. */
static sx_status create_http(const sx_server_config *config, int loops, size_t memory_bytes,
                             size_t max_body_bytes, sx_server *server)
{
    enum { CONNECTION_BYTES = 40 * 1024 }; /* of memory, with a full read buffer */
    const int64_t connections_in_ram = sx_ram_bytes() / 8 / CONNECTION_BYTES;
    const int port = config->rest_api_port;
    size_t request_bytes = config->max_request_memory_bytes;
    if (request_bytes == 0) {
        request_bytes = SX_MAX(SX_MIN(max_body_bytes, SIZE_MAX / 8) * 8,
                               (size_t)SX_MIN_REQUEST_MEMORY); /* as much as any page */
        request_bytes = SX_MIN(memory_bytes / 2, request_bytes);
    }
    SX_TRY(secure(config->ssl_config_file, &server->grpc_tls));
    SX_TRY(secure(config->rest_api_ssl_config_file, &server->rest_tls));
    sx_http_address addresses[4];
    int address_count = 0;
    addresses[address_count++] = (sx_http_address){
        .host = config->host,
        .port = port == SX_ANY_PORT ? 0
                : port == 0         ? 8501
                                    : port,
        .shared_fd = config->rest_api_fd,
        .tls = server->rest_tls.tls,
    };
    if (config->port != 0 || config->grpc_fd > 0) {
        addresses[address_count++] =
            (sx_http_address){.host = config->host,
                              .port = config->port == SX_ANY_PORT ? 0 : config->port,
                              .shared_fd = config->grpc_fd,
                              .tls = server->grpc_tls.tls};
    }
    if (is_given(config->grpc_socket_path)) {
        addresses[address_count++] =
            (sx_http_address){.path = config->grpc_socket_path, .tls = server->grpc_tls.tls};
    }
    server->admin_address = config->admin_port != 0 ? address_count : -1;
    if (config->admin_port != 0) {
        addresses[address_count++] = (sx_http_address){
            .host = is_given(config->admin_host) ? config->admin_host : "127.0.0.1",
            .port = config->admin_port == SX_ANY_PORT ? 0 : config->admin_port,
            .tls = server->rest_tls.tls};
    }
    const sx_http_config http = {
        .addresses = addresses,
        .address_count = address_count,
        .loops = loops,
        .max_connections =
            or_default(config->max_connections,
                       (int)SX_MAX(SX_MIN(connections_in_ram, (int64_t)10000), (int64_t)256)),
        .max_body_bytes = max_body_bytes,
        .memory = &server->memory,
        .max_request_bytes = request_bytes,
        .head_timeout_ms = config->header_timeout_ms,
        .body_timeout_ms = config->body_timeout_ms,
        .idle_timeout_ms = config->idle_timeout_ms,
        .request_timeout_ms = config->rest_api_timeout_in_ms,
        .handler = handle,
        .user = server,
        .takes_parts = sx_grpc_reflection_is_stream,
        .on_response = server->access_log != NULL ? log_access : NULL,
    };
    SX_TRY(sx_http_server_create(&http, &server->http));
    sx_rest_set_server(server->rest, server->http);
    server->port = sx_http_server_port(server->http, 0);
    server->grpc_port =
        config->port != 0 || config->grpc_fd > 0 ? sx_http_server_port(server->http, 1) : 0;
    server->admin_port =
        server->admin_address >= 0 ? sx_http_server_port(server->http, server->admin_address) : 0;
    return SX_OK;
}

sx_status sx_server_create(const sx_server_config *config, sx_server **out_server)
{
    const int loops = or_default(config->rest_api_num_loops, SX_MAX(sx_cpu_count() / 2, 1));
    const char *metrics = config->monitoring_path;
    if (config->ops == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "server: no model runtime given");
    }
    const size_t memory_limits[] = {config->max_request_memory_bytes,
                                    config->max_in_flight_memory_bytes};
    for (size_t i = 0; i < SX_COUNT(memory_limits); i++) {
        if (memory_limits[i] != 0 && memory_limits[i] < SX_MIN_REQUEST_MEMORY) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "server: a memory limit of %zu bytes: no request fits; expected at "
                            "least %d",
                            memory_limits[i], (int)SX_MIN_REQUEST_MEMORY);
        }
    }
    if (config->max_body_bytes != 0 && config->max_body_bytes < SX_MIN_BODY_BYTES) {
        return sx_error(SX_INVALID_ARGUMENT, "server: max_body_bytes is %zu, expected at least %d",
                        config->max_body_bytes, (int)SX_MIN_BODY_BYTES);
    }
    SX_TRY(sx_server_check_metrics_path(metrics));
    sx_server *server = sx_alloc(1, sizeof(*server));
    if (server == NULL) {
        return sx_no_memory("for a server");
    }
    bound_heaps();
    size_t memory_bytes = config->max_in_flight_memory_bytes;
    if (memory_bytes == 0) {
        memory_bytes = (size_t)SX_MIN(sx_ram_bytes() / 4, (int64_t)1 << 30);
    }
    sx_budget_init(&server->memory, "all requests together", memory_bytes, NULL);
    server->drain_grace_ms = or_default(config->drain_grace_ms, 30000);
    sx_status status = SX_OK;
    sx_batcher_config batching =
        config->batching != NULL ? config->batching->batcher : sx_batch_config_default().batcher;
    batching.run_states =
        batching.run_states > 0 ? batching.run_states : config->rest_api_num_threads;
    SX_TRY_GOTO(status, sx_batcher_create(&batching, &server->batcher), failed);
    SX_TRY_GOTO(status, create_logs(config, server), failed);
    SX_TRY_GOTO(status, create_models(config, batching.rules.max_rows, server), failed);

    const size_t max_body_bytes =
        config->max_body_bytes > 0 ? config->max_body_bytes : (size_t)64 * 1024 * 1024;
    SX_TRY_GOTO(status, sx_auth_create(&config->auth, &server->auth), failed);
    const sx_calls_config calls = {.manager = server->manager,
                                   .auth = server->auth,
                                   .log = server->request_log,
                                   .threads = config->rest_api_num_threads,
                                   .run_states = batching.run_states,
                                   .max_queued = config->max_queued_requests,
                                   .max_body_bytes = max_body_bytes};
    SX_TRY_GOTO(status, sx_calls_create(&calls, &server->calls), failed);
    const char *metrics_path = metrics == NULL      ? "/monitoring/prometheus/metrics"
                               : metrics[0] != '\0' ? metrics
                                                    : NULL;
    server->metrics_path = metrics_path != NULL ? sx_strdup(metrics_path) : NULL;
    if (metrics_path != NULL && server->metrics_path == NULL) {
        status = sx_no_memory("for a server");
        goto failed;
    }
    const sx_rest_config rest = {
        .calls = server->calls,
        .managed = server->managed,
        .secure = is_given(config->rest_api_ssl_config_file),
        .loops = loops,
        .cors = config->rest_api_enable_cors_support,
        .identities = server->auth != NULL,
        .memory = &server->memory,
        .batcher = server->batcher,
        .metrics_path = server->metrics_path,
        .float_format = config->json_float_format,
    };
    SX_TRY_GOTO(status, sx_rest_create(&rest, &server->rest), failed);
    const sx_grpc_config grpc = {.calls = server->calls,
                                 .tensor_content = config->enable_serialization_as_tensor_content};
    SX_TRY_GOTO(status, sx_grpc_services_create(&grpc, &server->services), failed);

    SX_TRY_GOTO(status, create_http(config, loops, memory_bytes, max_body_bytes, server), failed);
    *out_server = server;
    return SX_OK;
failed:
    sx_server_destroy(server);
    return status;
}

int sx_server_rest_port(const sx_server *server)
{
    return server->port;
}

int sx_server_grpc_port(const sx_server *server)
{
    return server->grpc_port;
}

int sx_server_admin_port(const sx_server *server)
{
    return server->admin_port;
}

sx_status sx_server_load(sx_server *server)
{
    server->loading = true;
    SX_TRY(sx_manager_start(server->manager));
    if (server->config_watch != NULL) {
        SX_TRY(sx_config_watch_start(server->config_watch));
    }
    if (server->traffic_watch != NULL) {
        SX_TRY(sx_config_watch_start(server->traffic_watch));
    }
    return SX_OK;
}

sx_status sx_server_start(sx_server *server)
{
    if (!server->loading) {
        SX_TRY(sx_server_load(server));
    }
    SX_TRY(sx_http_server_start(server->http));
    sx_log(SX_LOG_INFO, "Exporting HTTP/REST API at:localhost:%d ...", server->port);
    return SX_OK;
}

void sx_server_count_requests(const sx_server *server, uint64_t *out_requests,
                              uint64_t *out_running)
{
    const sx_http_stats stats = sx_http_server_stats(server->http);
    *out_requests = stats.requests;
    *out_running = stats.requests > stats.answered ? stats.requests - stats.answered : 0;
}

void sx_server_reload(sx_server *server)
{
    if (server->managed != NULL) {
        sx_managed_reload(server->managed);
    }
    if (server->config_watch != NULL) {
        sx_config_watch_reload(server->config_watch);
    }
    if (server->traffic_watch != NULL) {
        sx_config_watch_reload(server->traffic_watch);
    }
}

bool sx_server_wait_ready(sx_server *server, int timeout_ms)
{
    return sx_manager_wait_ready(server->manager, timeout_ms);
}

bool sx_server_is_settled(sx_server *server)
{
    return sx_manager_is_settled(server->manager);
}

sx_status sx_server_model_error(sx_server *server)
{
    return sx_manager_error(server->manager);
}

bool sx_server_stop(sx_server *server)
{
    if (server->stopped) {
        return server->drained_well;
    }
    server->stopped = true;
    sx_grpc_services_stop(server->services);
    server->drained_well =
        server->http == NULL || sx_http_server_drain(server->http, server->drain_grace_ms);
    sx_calls_stop(server->calls);
    sx_http_server_destroy(server->http);
    server->http = NULL;
    return server->drained_well;
}

bool sx_server_destroy(sx_server *server)
{
    if (server == NULL) {
        return true;
    }
    sx_server_stop(server);
    sx_grpc_services_destroy(server->services);
    sx_rest_destroy(server->rest);
    sx_calls_destroy(server->calls);
    sx_auth_destroy(server->auth);
    const struct secured *secured[] = {&server->rest_tls, &server->grpc_tls};
    for (size_t i = 0; i < SX_COUNT(secured); i++) {
        sx_tls_destroy(secured[i]->tls);
        sx_free(secured[i]->config_file);
    }
    sx_config_watch_destroy(server->traffic_watch);
    sx_config_watch_destroy(server->config_watch);
    sx_managed_destroy(server->managed);
    const bool all_ended = sx_manager_destroy(server->manager);
    sx_batcher_destroy(server->batcher);
    sx_log_writer_destroy(server->log_writer); /* writes what waits */
    sx_request_log_destroy(server->request_log);
    sx_access_log_destroy(server->access_log);
    sx_free(server->metrics_path);
    sx_free(server);
    return all_ended;
}
