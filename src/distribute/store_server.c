/* See store_server.h. */
#include "distribute/store_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/http_server.h"

enum { TICK_MS = 100, DRAIN_MS = 500, CONNECTIONS = 8 /* of each process */ };

struct sx_store_server {
    sx_store *store;
    sx_http_server *http;
    sx_budget memory;
    int unread_ms; /* after which a connection is closed whose peer does not read */
    pthread_t ticker;
    bool ticks;
    atomic_bool ends;
};

/* An answer is a copy, which counts in the server's memory until it was sent: those that nobody
 * reads must not pile up. */
static void answer(void *call, sx_code code, sx_bytes body)
{
    enum { HEAD_BYTES = 32 };
    sx_buf text;
    sx_http_response response = {.status = 200, .content_type = "application/octet-stream"};
    sx_budget *memory = sx_http_request_budget(call);
    sx_status status = SX_OK;
    if (!sx_budget_charge(memory, body.size + HEAD_BYTES)) {
        status = sx_budget_over(memory, "an answer", body.size);
        code = sx_status_code(status);
        body = (sx_bytes){sx_status_message(status), strlen(sx_status_message(status))};
    }
    sx_buf_init(&text, body.size + HEAD_BYTES);
    sx_buf_printf(&text, "%d\n", (int)code);
    sx_buf_append(&text, body.data, body.size);
    response.body = sx_buf_take(&text, &response.body_size);
    response.status = response.body != NULL ? 200 : 503;
    sx_buf_deinit(&text);
    sx_status_free(status);
    sx_http_respond(call, &response);
}

static void warn_unread(void *user, const char *remote)
{
    const sx_store_server *server = user;
    sx_log(SX_LOG_WARN,
           "the connection of %s to the key-value store of the run's processes was closed: it has "
           "not read an answer for %d s",
           remote, server->unread_ms / 1000);
}

static bool is_gone(void *call)
{
    return sx_cancel_requested(sx_http_request_cancel(call));
}

static void handle(void *user, sx_http_exchange *exchange)
{
    sx_store_server *server = user;
    const sx_http_head *head = sx_http_request_head(exchange);
    if (!sx_http_text_is(head->method, "POST") || !sx_http_text_is(head->path, "/")) {
        sx_http_respond(exchange, &(sx_http_response){.status = 404});
        return;
    }
    /* A page in a browser of this machine cannot send that type without being asked first. */
    if (!sx_http_text_is(sx_http_header_get(head, "content-type"), "application/octet-stream") ||
        sx_http_header_get(head, "origin").size > 0) {
        sx_http_respond(exchange, &(sx_http_response){.status = 403});
        return;
    }
    sx_http_request_set_deadline(exchange, INT64_MAX);
    sx_store_take(server->store, exchange, sx_http_request_body(exchange));
}

static void *tick(void *user)
{
    sx_store_server *server = user;
    while (!atomic_load(&server->ends)) {
        sx_store_tick(server->store);
        sx_sleep_ns((int64_t)TICK_MS * 1000000);
    }
    return NULL;
}

static sx_status start(sx_store_server *s, const char *host, int port,
                       const sx_store_options *options)
{
    sx_store_options o = *options;
    o.answer = answer;
    o.gone = is_gone;
    SX_TRY(sx_store_create(&o, &s->store));
    s->unread_ms = (int)options->lost_ms;
    sx_budget_init(&s->memory, "the key-value store", 2 * (size_t)SX_STORE_BYTES, NULL);
    const sx_http_address address = {.host = host, .port = port};
    const sx_http_config config = {
        .addresses = &address,
        .address_count = 1,
        .max_connections = CONNECTIONS * options->processes + CONNECTIONS,
        .max_body_bytes = SX_STORE_VALUE_BYTES + SX_STORE_KEY_BYTES + 256,
        .max_streams = 1, /* a connection has one answer at a time */
        .memory = &s->memory,
        .write_timeout_ms = s->unread_ms,
        .on_unread = warn_unread,
        .handler = handle,
        .user = s};
    SX_TRY(sx_http_server_create(&config, &s->http));
    SX_TRY(sx_http_server_start(s->http));
    s->ticks = sx_thread_create(&s->ticker, NULL, tick, s) == 0;
    return s->ticks ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "no thread for a key-value store");
}

sx_status sx_store_server_start(const char *host, int port, const sx_store_options *options,
                                sx_store_server **out)
{
    sx_store_server *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for a key-value store");
    }
    sx_status status = start(s, host, port, options);
    if (status != SX_OK) {
        sx_store_server_stop(s, 0);
        return status;
    }
    *out = s;
    return SX_OK;
}

int sx_store_server_port(const sx_store_server *server)
{
    return sx_http_server_port(server->http, 0);
}

sx_store *sx_store_server_store(sx_store_server *server)
{
    return server->store;
}

void sx_store_server_stop(sx_store_server *s, int grace_ms)
{
    if (s == NULL) {
        return;
    }
    for (int ms = 0; ms < grace_ms && !sx_store_is_done(s->store); ms += TICK_MS / 4) {
        sx_sleep_ns((int64_t)TICK_MS / 4 * 1000000);
    }
    atomic_store(&s->ends, true);
    if (s->ticks) {
        pthread_join(s->ticker, NULL);
    }
    if (s->http != NULL) {
        sx_store_end(s->store);
        (void)sx_http_server_drain(s->http, DRAIN_MS);
        sx_http_server_destroy(s->http);
    }
    sx_store_destroy(s->store);
    sx_free(s);
}
