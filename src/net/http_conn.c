/* What the connections of both protocols share; see http_conn.h. */
#include "net/http_conn.h"

#include <errno.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
    LINGER_BYTES = 32 * 1024, /* of a refused body that are still read and discarded */
    LINGER_MS = 1000,
    BYTES_FOR_ONE_SECOND = 64 * 1024, /* slower transfers time out */
};

/* ---- Time ---- */

void sx_http_pace_begin(sx_http_pace *pace, int64_t now_ns, int timeout_ms)
{
    *pace = (sx_http_pace){now_ns + timeout_ms * SX_HTTP_MS, now_ns, 0};
}

void sx_http_pace_note(sx_http_pace *pace, int64_t now_ns, size_t bytes)
{
    pace->progress_ns = now_ns;
    pace->bytes += bytes;
}

int64_t sx_http_pace_deadline(const sx_http_pace *pace, int timeout_ms)
{
    const int64_t earned_ms = (int64_t)(pace->bytes * 1000 / BYTES_FOR_ONE_SECOND);
    return SX_MIN(pace->deadline_ns + earned_ms * SX_HTTP_MS,
                  pace->progress_ns + timeout_ms * SX_HTTP_MS);
}

void sx_http_conn_set_deadline(sx_http_conn *conn, int64_t deadline_ns)
{
    conn->deadline_ns = deadline_ns;
    /* A timer that fires early checks deadline_ns and is set again, so most requests do not touch
     * the wheel. */
    if (conn->timer.link == NULL || conn->timer.deadline_ns > deadline_ns) {
        sx_loop_timer_set(conn->worker->loop, &conn->timer, deadline_ns);
    }
}

void sx_http_conn_set_timeout(sx_http_conn *conn, int timeout_ms)
{
    sx_http_conn_set_deadline(conn, sx_loop_now_ns(conn->worker->loop) + timeout_ms * SX_HTTP_MS);
}

static void on_timer(void *user)
{
    sx_http_conn *conn = user;
    if (!conn->lingering && !conn->handshaking) {
        conn->protocol->on_timer(conn);
    } else if (sx_loop_now_ns(conn->worker->loop) < conn->deadline_ns) {
        sx_loop_timer_set(conn->worker->loop, &conn->timer, conn->deadline_ns);
    } else {
        sx_http_conn_close(conn);
    }
}

/* ---- Events ---- */

static void go_on_with_handshake(sx_http_conn *conn)
{
    switch (sx_transport_handshake(&conn->transport)) {
    case SX_HANDSHAKE_DONE:
        conn->handshaking = false;
        sx_http_conn_watch(conn, EPOLLIN);
        break;
    case SX_HANDSHAKE_WANTS_READ:
        sx_http_conn_watch(conn, EPOLLIN);
        break;
    case SX_HANDSHAKE_WANTS_WRITE:
        sx_http_conn_watch(conn, EPOLLOUT);
        break;
    case SX_HANDSHAKE_FAILED:
        atomic_fetch_add_explicit(&conn->worker->refused, 1, memory_order_relaxed);
        sx_http_conn_close(conn);
        break;
    }
}

static void discard_input(sx_http_conn *conn)
{
    char dropped[4096];
    const ssize_t got = sx_transport_recv(&conn->transport, dropped, sizeof(dropped));
    if (got > 0) {
        conn->lingered += (size_t)got;
        /* If that is enough, the timer closes the connection. */
        sx_http_conn_watch(conn, conn->lingered >= LINGER_BYTES ? 0 : EPOLLIN);
    } else if (got == 0 || errno != EAGAIN) {
        sx_http_conn_close(conn);
    }
}

static void on_event(void *user, uint32_t events)
{
    sx_http_conn *conn = user;
    if (events & (EPOLLERR | EPOLLHUP)) { /* both directions are gone */
        sx_http_conn_close(conn);
    } else if (conn->handshaking) {
        go_on_with_handshake(conn);
    } else if (conn->lingering) {
        discard_input(conn);
    } else {
        conn->protocol->on_event(conn, events);
    }
    if (!conn->closed && conn->io.events & EPOLLIN) {
        sx_http_conn_watch(conn, conn->io.events);
    }
}

static void on_again(void *user)
{
    sx_http_conn *conn = user;
    conn->again_posted = false;
    if (!conn->closed && conn->io.events & EPOLLIN) {
        on_event(conn, EPOLLIN);
    }
}

void sx_http_conn_watch(sx_http_conn *conn, uint32_t events)
{
    sx_loop_modify(conn->worker->loop, &conn->io, events);
    if (events & EPOLLIN && !conn->again_posted && sx_transport_pending(&conn->transport)) {
        conn->again_posted = true;
        sx_loop_post(conn->worker->loop, &conn->again);
    }
}

/* ---- Creation and destruction ---- */

/* Frees a closed connection in a later turn of the loop, because the function that closed it may
 * still read its state; and after the tasks that were posted before. */
static void on_reap(void *user)
{
    sx_http_conn *conn = user;
    sx_http_worker *worker = conn->worker;
    *conn->link = conn->next;
    if (conn->next != NULL) {
        conn->next->link = conn->link;
    }
    conn->protocol->destroy(conn);
    worker->conn_count--;
    atomic_fetch_sub(worker->open_connections, 1);
    if (worker->draining && worker->conn_count == 0) {
        worker->on_empty(worker);
    }
}

static void unwatch(sx_http_conn *conn)
{
    sx_loop_remove(conn->worker->loop, &conn->io);
    sx_loop_timer_cancel(conn->worker->loop, &conn->timer);
    conn->closed = true;
    atomic_fetch_sub_explicit(&conn->worker->connections, 1, memory_order_relaxed);
}

void sx_http_conn_begin(sx_http_conn *conn, sx_http_worker *worker, sx_transport transport)
{
    conn->worker = worker;
    conn->transport = transport;
    conn->io = (sx_loop_io){.fd = transport.fd, .events = EPOLLIN, .fn = on_event, .user = conn};
    conn->timer = (sx_loop_timer){.fn = on_timer, .user = conn};
    conn->reap = (sx_loop_task){.fn = on_reap, .user = conn};
    conn->again = (sx_loop_task){.fn = on_again, .user = conn};
    conn->next = worker->conns;
    conn->link = &worker->conns;
    if (conn->next != NULL) {
        conn->next->link = &conn->next;
    }
    worker->conns = conn;
    worker->conn_count++;
    atomic_fetch_add_explicit(&worker->connections, 1, memory_order_relaxed);
    sx_status status = sx_loop_add(worker->loop, &conn->io);
    if (status != SX_OK) {
        sx_status_free(status);
        sx_http_conn_close(conn);
        return;
    }
    sx_http_conn_set_timeout(conn, worker->config->head_timeout_ms);
}

sx_transport sx_http_conn_hand_over(sx_http_conn *conn)
{
    const sx_transport transport = conn->transport;
    unwatch(conn);
    sx_loop_post(conn->worker->loop, &conn->reap);
    return transport;
}

void sx_http_conn_close(sx_http_conn *conn)
{
    if (conn->closed) {
        return;
    }
    unwatch(conn);
    sx_transport_close(&conn->transport);
    if (!conn->protocol->abandon(conn)) {
        sx_loop_post(conn->worker->loop, &conn->reap);
    }
}

void sx_http_conn_drain(sx_http_conn *conn)
{
    if (conn->handshaking) {
        sx_http_conn_set_timeout(conn, SX_HTTP_DRAIN_READ_MS);
    } else if (!conn->closed && !conn->lingering) {
        conn->protocol->drain(conn);
    }
}

void sx_http_conn_linger(sx_http_conn *conn)
{
    sx_transport_finish(&conn->transport);
    conn->lingering = true;
    sx_http_conn_set_timeout(conn, LINGER_MS);
    sx_http_conn_watch(conn, EPOLLIN);
}

/* ---- Requests ---- */

void sx_http_exchange_init(sx_http_exchange *exchange, sx_http_worker *worker,
                           const sx_transport *transport)
{
    exchange->worker = worker;
    exchange->peer = transport->peer;
    exchange->remote = transport->remote;
    exchange->address = &transport->address;
    sx_budget_init(&exchange->budget, "one request", worker->config->max_request_bytes,
                   worker->config->memory);
}

void sx_http_exchange_begin(sx_http_exchange *exchange, sx_bytes body)
{
    sx_http_worker *worker = exchange->worker;
    const sx_http_config *config = worker->config;
    exchange->body = body;
    exchange->begun_ns = config->on_response != NULL ? sx_now_ns() : 0;
    exchange->subject.name[0] = '\0';
    sx_cancel_init(&exchange->cancel,
                   sx_loop_now_ns(worker->loop) + config->request_timeout_ms * SX_HTTP_MS);
    atomic_fetch_add_explicit(&worker->requests, 1, memory_order_relaxed);
    config->handler(config->user, exchange);
}

void sx_http_exchange_unread(const sx_http_exchange *exchange)
{
    const sx_http_config *config = exchange->worker->config;
    if (config->on_unread != NULL) {
        config->on_unread(config->user, exchange->remote);
    }
}

bool sx_http_body_is_admitted(const sx_http_worker *worker, const sx_buf *body, size_t more)
{
    const sx_budget *memory = worker->config->memory;
    if (memory == NULL || more < body->capacity - body->size ||
        body->size + more <= SX_HTTP_IN_BODY_BYTES) {
        return true;
    }
    const size_t doubled = SX_MIN(2 * body->capacity, body->max_bytes + 1);
    const size_t growth = SX_MAX(body->size + more + 1, doubled) - body->capacity;
    return sx_budget_has_room(memory, growth, memory->limit_bytes / 2);
}

int sx_http_memory_failure(const sx_http_exchange *exchange, char reason[SX_HTTP_REASON])
{
    const sx_budget *memory = exchange->worker->config->memory;
    if (memory == NULL || memory->limit_bytes == 0) {
        snprintf(reason, SX_HTTP_REASON, "out of memory");
        return 503;
    }
    snprintf(reason, SX_HTTP_REASON,
             "not enough memory for the request body: %zu of %zu bytes are in use by other "
             "requests; try again later",
             sx_budget_used(memory) - sx_budget_used(&exchange->budget), memory->limit_bytes);
    return 429;
}

sx_http_response sx_http_refusal(int status, const char *reason)
{
    sx_buf text;
    sx_buf_init(&text, 1024);
    sx_buf_printf(&text, "{\n    \"error\": \"%s\"\n}\n", reason);
    sx_http_response response = {.status = status, .content_type = "application/json"};
    response.retry_after_s = status == 429 || status == 503 ? SX_HTTP_RETRY_AFTER_S : 0;
    response.body = sx_buf_take(&text, &response.body_size);
    if (response.body == NULL) {
        sx_buf_deinit(&text);
        response.body_size = 0;
    }
    return response;
}

const sx_http_head *sx_http_request_head(const sx_http_exchange *exchange)
{
    return &exchange->head;
}

sx_bytes sx_http_request_body(const sx_http_exchange *exchange)
{
    return exchange->body;
}

void sx_http_request_align(sx_http_exchange *exchange, const void *part)
{
    const sx_bytes body = exchange->body;
    const uintptr_t offset = (uintptr_t)part - (uintptr_t)body.data;
    if (offset < body.size) { /* of the body, not of what was unpacked from it */
        const unsigned lead = (exchange->body_lead - (unsigned)((uintptr_t)part % 8)) % 8;
        atomic_store_explicit(&exchange->worker->body_lead, lead, memory_order_relaxed);
    }
}

int sx_http_request_loop(const sx_http_exchange *exchange)
{
    return exchange->worker->index;
}

int64_t sx_http_request_turn_ns(const sx_http_exchange *exchange)
{
    return sx_loop_now_ns(exchange->worker->loop);
}

const sx_cancel *sx_http_request_cancel(const sx_http_exchange *exchange)
{
    return &exchange->cancel;
}

void sx_http_request_set_deadline(sx_http_exchange *exchange, int64_t deadline_ns)
{
    const int64_t year_ns = (int64_t)365 * 24 * 3600 * 1000 * SX_HTTP_MS;
    exchange->cancel.deadline_ns =
        SX_MIN(deadline_ns, sx_loop_now_ns(exchange->worker->loop) + year_ns);
}

sx_budget *sx_http_request_budget(sx_http_exchange *exchange)
{
    return &exchange->budget;
}

void *sx_http_request_scratch(sx_http_exchange *exchange)
{
    return exchange->scratch;
}

bool sx_http_request_is_whole(const sx_http_exchange *exchange)
{
    return !exchange->partial;
}

void sx_http_request_take(sx_http_exchange *exchange, size_t size)
{
    exchange->taken = size;
}

void sx_http_request_await(sx_http_exchange *exchange)
{
    exchange->await(exchange);
}

const char *sx_http_request_peer(const sx_http_exchange *exchange)
{
    return exchange->peer[0] != '\0' ? exchange->peer : NULL;
}

int sx_http_request_address(const sx_http_exchange *exchange)
{
    return *exchange->address;
}

const char *sx_http_request_remote(const sx_http_exchange *exchange)
{
    return exchange->remote;
}

int64_t sx_http_request_begun_ns(const sx_http_exchange *exchange)
{
    return exchange->begun_ns;
}

void sx_http_request_set_subject(sx_http_exchange *exchange, const char *name, int64_t version)
{
    if (exchange->worker->config->on_response != NULL) { /* otherwise nobody asks */
        snprintf(exchange->subject.name, sizeof(exchange->subject.name), "%s", name);
        exchange->subject.version = version;
    }
}

const sx_http_subject *sx_http_request_subject(const sx_http_exchange *exchange)
{
    return &exchange->subject;
}

void sx_http_respond(sx_http_exchange *exchange, const sx_http_response *response)
{
    const sx_http_config *config = exchange->worker->config;
    if (response->on_sent == NULL) { /* no part that others follow */
        atomic_fetch_add_explicit(&exchange->worker->answered, 1, memory_order_relaxed);
        if (config->on_response != NULL) {
            config->on_response(config->user, exchange, response);
        }
    }
    exchange->response = *response;
    sx_loop_post(exchange->worker->loop, &exchange->answered);
}
