/* Assembles the model server; see server.h.
 *
 * Shutdown order: drain the HTTP server (which needs the executor), stop the executor (which posts
 * responses to the HTTP server's loops), destroy the HTTP server, and last the models. */
#include "serve/server.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/ram.h"
#include "net/http_server.h"
#include "serve/lifecycle.h"
#include "serve/rest.h"

struct sx_server {
    sx_lifecycle *lifecycle;
    sx_rest *rest;
    sx_http_server *http;
    sx_budget memory; /* of all requests */
    int stop_fd;      /* readable after a stop request */
    int drain_grace_ms;
    int port;
    bool stopped, drained_well;
};

static int or_default(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

static sx_status create_lifecycle(const sx_server_config *config, sx_lifecycle **out)
{
    const char *name =
        config->model_name != NULL && config->model_name[0] ? config->model_name : "default";
    const sx_lifecycle_config lifecycle = {
        .name = name,
        .base_path = config->model_base_path,
        .ops = config->ops,
        .ops_user = config->ops_user,
        .poll_wait_seconds = config->file_system_poll_wait_seconds,
        .max_load_retries = config->max_num_load_retries,
        .load_retry_seconds = config->load_retry_interval_seconds,
        .load_timeout_seconds = config->load_timeout_seconds,
    };
    return sx_lifecycle_create(&lifecycle, out);
}

enum { CONNECTION_BYTES = 40 * 1024 }; /* of memory, with a full read buffer */

static int default_max_connections(void)
{
    const int64_t fit = sx_ram_bytes() / 8 / CONNECTION_BYTES;
    return (int)SX_MAX(SX_MIN(fit, (int64_t)10000), (int64_t)256);
}

static size_t default_memory(void)
{
    return (size_t)SX_MIN(sx_ram_bytes() / 4, (int64_t)1 << 30);
}

static int loop_count(const sx_server_config *config)
{
    return or_default(config->rest_api_num_loops, SX_MAX(sx_cpu_count() / 2, 1));
}

static sx_status create_rest(const sx_server_config *config, sx_server *server)
{
    const char *path = config->monitoring_path;
    const sx_rest_config rest = {
        .models = &server->lifecycle,
        .model_count = 1,
        .threads = config->rest_api_num_threads,
        .loops = loop_count(config),
        .max_queued = config->max_queued_requests,
        .max_body_bytes = config->max_body_bytes,
        .cors = config->rest_api_enable_cors_support,
        .memory = &server->memory,
        .metrics_path = path == NULL ? "/monitoring/prometheus/metrics"
                        : path[0]    ? path
                                     : NULL,
        .float_format = config->json_float_format,
    };
    return sx_rest_create(&rest, &server->rest);
}

static sx_status create_http(const sx_server_config *config, sx_server *server)
{
    const int port = config->rest_api_port;
    const size_t max_body_bytes =
        config->max_body_bytes ? config->max_body_bytes : (size_t)64 * 1024 * 1024;
    const size_t default_request_bytes =
        SX_MIN(server->memory.limit_bytes / 2, SX_MIN(max_body_bytes, SIZE_MAX / 8) * 8);
    const sx_http_config http = {
        .host = config->host,
        .port = port == SX_ANY_PORT ? 0
                : port == 0         ? 8501
                                    : port,
        .loops = loop_count(config),
        .max_connections = or_default(config->max_connections, default_max_connections()),
        .max_body_bytes = max_body_bytes,
        .memory = &server->memory,
        .max_request_bytes = config->max_request_memory_bytes ? config->max_request_memory_bytes
                                                              : default_request_bytes,
        .head_timeout_ms = config->header_timeout_ms,
        .body_timeout_ms = config->body_timeout_ms,
        .idle_timeout_ms = config->idle_timeout_ms,
        .request_timeout_ms = config->rest_api_timeout_in_ms,
        .handler = sx_rest_handle,
        .user = server->rest,
    };
    SX_TRY(sx_http_server_create(&http, &server->http), "REST API (rest_api_port)");
    sx_rest_set_server(server->rest, server->http);
    server->port = sx_http_server_port(server->http);
    return SX_OK;
}

static sx_status create_parts(const sx_server_config *config, sx_server *server)
{
    server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->stop_fd < 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "server: no file descriptor left");
    }
    SX_TRY(create_lifecycle(config, &server->lifecycle));
    SX_TRY(create_rest(config, server));
    return create_http(config, server);
}

sx_status sx_server_create(const sx_server_config *config, sx_server **out_server)
{
    if (config->ops == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "server: no model runtime was given");
    }
    sx_server *server = sx_alloc(1, sizeof(*server));
    if (server == NULL) {
        return sx_no_memory("for a server");
    }
    server->stop_fd = -1;
    sx_budget_init(&server->memory, "all requests in flight (max_in_flight_memory_bytes)",
                   config->max_in_flight_memory_bytes ? config->max_in_flight_memory_bytes
                                                      : default_memory(),
                   NULL);
    server->drain_grace_ms = or_default(config->drain_grace_ms, 30000);
    sx_status status = create_parts(config, server);
    if (status != SX_OK) {
        sx_server_destroy(server);
        return status;
    }
    *out_server = server;
    return SX_OK;
}

int sx_server_rest_port(const sx_server *server)
{
    return server->port;
}

sx_status sx_server_start(sx_server *server)
{
    SX_TRY(sx_lifecycle_start(server->lifecycle));
    return sx_http_server_start(server->http);
}

bool sx_server_wait_ready(sx_server *server, int timeout_ms)
{
    return sx_lifecycle_wait_ready(server->lifecycle, timeout_ms);
}

sx_status sx_server_model_error(sx_server *server)
{
    sx_arena arena;
    sx_version_status *rows = NULL;
    size_t count = 0;
    if (sx_lifecycle_ready(server->lifecycle)) {
        return SX_OK;
    }
    sx_arena_init(&arena, 0);
    sx_status status = sx_lifecycle_status(server->lifecycle, &arena, &rows, &count);
    for (size_t i = 0; i < count && status == SX_OK; i++) {
        if (rows[i].code != SX_CODE_OK) {
            status = sx_error(rows[i].code, "cannot load version %lld: %s",
                              (long long)rows[i].version, rows[i].message);
        }
    }
    sx_arena_deinit(&arena);
    return status;
}

void sx_server_request_stop(sx_server *server)
{
    const int saved = errno; /* a signal handler must preserve it */
    const uint64_t one = 1;
    const ssize_t written = write(server->stop_fd, &one, sizeof(one));
    (void)written; /* if it is full, a stop was already requested */
    errno = saved;
}

void sx_server_wait(sx_server *server)
{
    struct pollfd fd = {.fd = server->stop_fd, .events = POLLIN};
    while (poll(&fd, 1, -1) < 0 && errno == EINTR) {
    }
}

bool sx_server_stop(sx_server *server)
{
    if (server->stopped) {
        return server->drained_well;
    }
    server->stopped = true;
    server->drained_well =
        server->http == NULL || sx_http_server_drain(server->http, server->drain_grace_ms);
    sx_rest_stop(server->rest);
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
    sx_rest_destroy(server->rest);
    const bool all_ended = sx_lifecycle_destroy(server->lifecycle);
    if (server->stop_fd >= 0) {
        close(server->stop_fd);
    }
    sx_free(server);
    return all_ended;
}
