/* A connection that speaks HTTP/1.1.
 *
 *   HEAD -> BODY -> BUSY -> WRITE -+-> lingers
 *     ^                            |
 *     +-------- keep-alive --------+
 *
 *   HEAD    waiting for a request or reading its head (idle: no byte has arrived yet)
 *   BODY    reading the body
 *   BUSY    the exchange belongs to the handler
 *   WRITE   sending the response
 *
 * Read buffer:    | head | body if it fits, or chunk framing | pipelined ... | free |
 *                 0      head_size                           in_used         in_size
 * A body that fits after its head stays there (no copy); a larger one goes to `body`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/http_conn.h"

enum {
    FIRST_BODY_BYTES = 64 * 1024, /* of a large body; doubled as data arrives */
    READ_BYTES = 256 * 1024,      /* maximum per event, so that other connections get their turn */
};

enum state {
    HEAD,
    BODY,
    BUSY,
    WRITE,
};

struct http1 {
    sx_http_conn base; /* must be first: converted by address */
    enum state state;
    bool with_handler;  /* the exchange is the handler's */
    bool keep_alive;    /* after this response */
    bool peer_finished; /* has shut its side down */
    bool begun;         /* has had a request: no preface of HTTP/2 may follow */

    char *in; /* [in_size] */
    size_t in_size, in_used;
    size_t scanned;      /* of the head, see sx_http_head_parse */
    size_t request_size; /* bytes of `in` that belong to the current request */
    sx_buf body;         /* a body that does not fit behind its head, or was chunked */
    sx_http_chunks chunks;
    sx_http_pace pace; /* of receiving in BODY, of sending in WRITE */

    char out_head[512];
    size_t out_head_size;
    char *out_body; /* heap, or NULL */
    size_t out_body_size;
    size_t out_sent; /* of head and body together */

    sx_http_exchange exchange;
};

static void serve_input(struct http1 *conn);

static int64_t now_ns(const struct http1 *conn)
{
    return sx_loop_now_ns(conn->base.worker->loop);
}

/* The time for a part of a request. When draining, the time that drain() gave the whole request is
 * not extended. */
static void set_read_timeout(struct http1 *conn, int timeout_ms)
{
    if (!conn->base.worker->draining) {
        sx_http_conn_set_timeout(&conn->base, timeout_ms);
    }
}

static bool is_idle(const struct http1 *conn)
{
    return conn->state == HEAD && conn->in_used == 0;
}

static void drain(sx_http_conn *base)
{
    struct http1 *conn = (struct http1 *)base;
    conn->keep_alive = false;
    if (conn->state == HEAD || conn->state == BODY) {
        sx_http_conn_set_timeout(base, SX_HTTP_DRAIN_READ_MS);
    }
}

/* ---- Writing ---- */

/* The response has been sent: goes on with the next request, which may already be in the buffer
 * after the last one, or closes. */
static void finish_response(struct http1 *conn)
{
    sx_http_worker *worker = conn->base.worker;
    sx_free(conn->out_body);
    conn->out_body = NULL;
    conn->out_body_size = conn->out_head_size = conn->out_sent = 0;
    if (!conn->with_handler) {
        sx_buf_deinit(&conn->body);
        sx_budget_release_all(&conn->exchange.budget);
    }
    if (!conn->keep_alive || worker->draining) {
        if (conn->peer_finished) {
            sx_http_conn_close(&conn->base);
            return;
        }
        sx_http_conn_linger(&conn->base);
        return;
    }
    conn->in_used -= conn->request_size;
    memmove(conn->in, conn->in + conn->request_size, conn->in_used);
    conn->request_size = conn->scanned = 0;
    conn->state = HEAD;
    sx_http_conn_set_timeout(&conn->base, conn->in_used > 0 ? worker->config->head_timeout_ms
                                                            : worker->config->idle_timeout_ms);
    if (!conn->peer_finished) {
        sx_http_conn_watch(&conn->base, EPOLLIN);
    }
    serve_input(conn);
    if (conn->peer_finished && (conn->state == HEAD || conn->state == BODY)) {
        sx_http_conn_close(&conn->base); /* no more bytes will come */
    }
}

/* Sends as much as possible; returns true when the response has been sent, false if it must wait or
 * the connection is closed. */
static bool write_some(struct http1 *conn)
{
    const size_t total = conn->out_head_size + conn->out_body_size;
    while (conn->out_sent < total) {
        struct iovec parts[2];
        int count = 0;
        if (conn->out_sent < conn->out_head_size) {
            parts[count++] = (struct iovec){conn->out_head + conn->out_sent,
                                            conn->out_head_size - conn->out_sent};
        }
        const size_t body_sent =
            conn->out_sent > conn->out_head_size ? conn->out_sent - conn->out_head_size : 0;
        if (body_sent < conn->out_body_size) {
            parts[count++] =
                (struct iovec){conn->out_body + body_sent, conn->out_body_size - body_sent};
        }
        const ssize_t sent = sx_transport_send(&conn->base.transport, parts, count);
        if (sent < 0 && errno == EAGAIN) {
            sx_http_conn_watch(&conn->base, EPOLLOUT);
            return false;
        }
        if (sent < 0) {
            sx_http_conn_close(&conn->base);
            return false;
        }
        conn->out_sent += (size_t)sent;
        sx_http_pace_note(&conn->pace, now_ns(conn), (size_t)sent);
    }
    return true;
}

static void begin_write(struct http1 *conn)
{
    const int timeout_ms = conn->base.worker->config->write_timeout_ms;
    conn->state = WRITE;
    conn->out_sent = 0;
    sx_http_pace_begin(&conn->pace, now_ns(conn), timeout_ms);
    sx_http_conn_set_timeout(&conn->base, timeout_ms);
    if (write_some(conn)) {
        finish_response(conn);
    }
}

/* Formats the head of a response and takes its body. The response to HEAD has no body. */
static void set_response(struct http1 *conn, const sx_http_response *response, bool head_only)
{
    const bool typed = response->content_type != NULL;
    char retry_after[40] = "";
    if (response->retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "Retry-After: %d\r\n", response->retry_after_s);
    }
    const int size = snprintf(
        conn->out_head, sizeof(conn->out_head),
        "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%sContent-Length: %zu\r\n%s%s%s\r\n", response->status,
        sx_http_reason(response->status), sx_http_worker_date(conn->base.worker),
        typed ? "Content-Type: " : "", typed ? response->content_type : "", typed ? "\r\n" : "",
        response->body_size, retry_after,
        !conn->keep_alive                ? "Connection: close\r\n"
        : conn->exchange.head.minor == 0 ? "Connection: keep-alive\r\n"
                                         : "",
        response->headers != NULL ? response->headers : "");
    if (size < 0 || (size_t)size >= sizeof(conn->out_head)) {
        conn->keep_alive = false; /* the handler's headers are too large: not sent */
        conn->out_head_size = (size_t)snprintf(conn->out_head, sizeof(conn->out_head),
                                               "HTTP/1.1 500 Internal Server Error\r\n"
                                               "Content-Length: 0\r\nConnection: close\r\n\r\n");
        head_only = true;
    } else {
        conn->out_head_size = (size_t)size;
    }
    conn->out_body = response->body;
    conn->out_body_size = head_only ? 0 : response->body_size;
}

/* Responds without the handler and closes: the rest of the connection's data cannot be trusted.
 * `reason` must need no escapes in JSON. */
static void refuse(struct http1 *conn, int status, const char *reason)
{
    const sx_http_response response = sx_http_refusal(status, reason);
    atomic_fetch_add_explicit(&conn->base.worker->refused, 1, memory_order_relaxed);
    conn->keep_alive = false;
    if (!conn->with_handler) {
        sx_buf_deinit(&conn->body); /* a partial body is not needed any more */
    }
    set_response(conn, &response, false);
    begin_write(conn);
}

/* ---- The exchange ---- */

/* The handler's response has been posted to the loop's thread. */
static void on_answered(void *user)
{
    struct http1 *conn = user;
    conn->with_handler = false;
    sx_buf_deinit(&conn->body); /* do not keep it while a slow peer reads the response */
    if (conn->base.closed || conn->state != BUSY) { /* timed out or cut off meanwhile */
        sx_free(conn->exchange.response.body);
        if (conn->base.closed) {
            sx_loop_post(conn->base.worker->loop, &conn->base.reap);
        }
        return;
    }
    conn->keep_alive = conn->keep_alive && !conn->base.worker->draining;
    set_response(conn, &conn->exchange.response,
                 sx_http_text_is(conn->exchange.head.method, "HEAD"));
    begin_write(conn);
}

static void begin_exchange(struct http1 *conn, sx_bytes body)
{
    conn->state = BUSY;
    conn->with_handler = conn->begun = true;
    conn->keep_alive = conn->exchange.head.keep_alive && !conn->base.worker->draining;
    sx_http_exchange_begin(&conn->exchange, body);
    sx_http_conn_set_deadline(&conn->base, conn->exchange.cancel.deadline_ns);
}

/* ---- Reading ---- */

/* Reads into [at, at + room); returns the count, 0 at the end of the stream or if no data is
 * available (then *out_again), -1 if the connection was closed. */
static ssize_t read_some(struct http1 *conn, char *at, size_t room, bool *out_again)
{
    const ssize_t got = sx_transport_recv(&conn->base.transport, at, room);
    *out_again = got < 0 && errno == EAGAIN;
    if (got < 0 && !*out_again) {
        sx_http_conn_close(&conn->base);
        return -1;
    }
    if (got == 0) {
        conn->peer_finished = true;
    }
    return got < 0 ? 0 : got;
}

static void refuse_memory(struct http1 *conn)
{
    char reason[SX_HTTP_REASON];
    const int status = sx_http_memory_failure(&conn->exchange, reason);
    refuse(conn, status, reason);
}

static bool body_fits_behind_head(const struct http1 *conn)
{
    return conn->exchange.head.content_length <= conn->in_size - conn->request_size;
}

/* False if it was sent in part: the stream is spoiled. */
static bool send_continue(struct http1 *conn)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct iovec part = {text, sizeof(text) - 1};
    const ssize_t sent = sx_transport_send(&conn->base.transport, &part, 1);
    return sent <= 0 || (size_t)sent == sizeof(text) - 1;
}

/* Parses the head of a request; once it is complete, decides how the body is read. */
static void serve_head(struct http1 *conn)
{
    const sx_http_config *config = conn->base.worker->config;
    const sx_http_head *head = &conn->exchange.head;
    const size_t max_bytes = config->max_body_bytes;
    size_t head_size = 0;
    sx_http_failure failure;
    const sx_http_progress progress =
        sx_http_head_parse(conn->in, conn->in_used, config->max_head_bytes, &conn->scanned,
                           &conn->exchange.head, &head_size, &failure);
    if (progress == SX_HTTP_BAD) {
        refuse(conn, failure.status, failure.reason);
        return;
    }
    if (progress != SX_HTTP_DONE) {
        return;
    }
    if (head->content_length > max_bytes) {
        char reason[160];
        snprintf(reason, sizeof(reason),
                 "request body too large: %" PRIu64 " bytes, the limit is %zu",
                 head->content_length, max_bytes);
        refuse(conn, 413, reason);
        return;
    }
    conn->request_size = head_size;
    conn->body.max_bytes =
        head->chunked ? max_bytes : SX_MAX((size_t)head->content_length, (size_t)1);
    const bool large = !head->chunked && !body_fits_behind_head(conn);
    /* Refused here if it does not fit now, before the 100-continue; charged as it arrives. */
    if (large && !sx_http_body_is_admitted(conn->base.worker, &conn->body, conn->body.max_bytes)) {
        refuse_memory(conn);
        return;
    }
    conn->state = BODY;
    sx_http_pace_begin(&conn->pace, now_ns(conn), config->body_timeout_ms);
    sx_http_pace_note(&conn->pace, now_ns(conn), conn->in_used - head_size);
    sx_http_chunks_init(&conn->chunks);
    set_read_timeout(conn, config->body_timeout_ms);
    /* If the socket buffer has no room for it, the peer waits and then sends anyway. */
    if (head->expect_continue && conn->in_used == head_size && !send_continue(conn)) {
        sx_http_conn_close(&conn->base);
        return;
    }
    if (large) { /* moves the part of the body that came with the head */
        sx_buf_append(&conn->body, conn->in + head_size, conn->in_used - head_size);
        conn->in_used = head_size;
        if (conn->body.failed) {
            refuse_memory(conn);
        }
    }
}

/* Decodes chunks from the read buffer; consumed bytes are removed from it. */
static void serve_chunks(struct http1 *conn)
{
    const size_t head_size = conn->request_size;
    size_t used = 0;
    sx_http_failure failure;
    if (!sx_http_body_is_admitted(conn->base.worker, &conn->body, conn->in_used - head_size)) {
        refuse_memory(conn);
        return;
    }
    const sx_http_progress progress =
        sx_http_chunks_decode(&conn->chunks, conn->in + head_size, conn->in_used - head_size,
                              &conn->body, &used, &failure);
    if (progress == SX_HTTP_BAD && conn->body.failed) {
        refuse_memory(conn);
        return;
    }
    if (progress == SX_HTTP_BAD) {
        refuse(conn, failure.status, failure.reason);
        return;
    }
    memmove(conn->in + head_size, conn->in + head_size + used, conn->in_used - head_size - used);
    conn->in_used -= used;
    if (progress == SX_HTTP_DONE) {
        begin_exchange(conn, (sx_bytes){sx_buf_text(&conn->body), conn->body.size});
    }
}

static void serve_body(struct http1 *conn)
{
    const size_t length = (size_t)conn->exchange.head.content_length;
    const size_t head_size = conn->request_size;
    if (conn->exchange.head.chunked) {
        serve_chunks(conn);
    } else if (!body_fits_behind_head(conn)) {
        if (conn->body.size == length) {
            begin_exchange(conn, (sx_bytes){conn->body.data, length});
        }
    } else if (conn->in_used - head_size >= length) {
        conn->request_size = head_size + length;
        begin_exchange(conn, (sx_bytes){conn->in + head_size, length});
    }
}

/* Whether the connection's first bytes are the preface of HTTP/2, as far as they have arrived. Once
 * they are complete, a connection of that protocol goes on with them. */
static bool is_http2(struct http1 *conn)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const size_t size = sizeof(preface) - 1;
    if (conn->begun || memcmp(conn->in, preface, SX_MIN(conn->in_used, size)) != 0) {
        return false;
    }
    if (conn->in_used >= size) {
        atomic_fetch_add(conn->base.worker->open_connections, 1); /* until this one is freed */
        sx_http2_open(conn->base.worker, sx_http_conn_hand_over(&conn->base),
                      (sx_bytes){conn->in, conn->in_used});
    }
    return true;
}

/* Parses the contents of the read buffer as far as possible. */
static void serve_input(struct http1 *conn)
{
    if (conn->state == HEAD && conn->in_used > 0 && !is_http2(conn)) {
        serve_head(conn);
    }
    if (conn->state == BODY && !conn->base.closed) {
        serve_body(conn);
    }
}

/* The peer has closed its connection, or has shut down its sending half and waits for the response.
 * The two look alike until something is sent: a closed connection answers with a reset, which ends
 * in sx_http_conn_close() and cancels the request. So an interim response is sent, which HTTP/1.1
 * clients must accept. An incomplete request is discarded. */
static void on_stream_end(struct http1 *conn)
{
    if (conn->state == BUSY && conn->exchange.head.minor > 0 && !send_continue(conn)) {
        sx_http_conn_close(&conn->base);
        return;
    }
    if (conn->state == BUSY || conn->state == WRITE) {
        conn->keep_alive = conn->keep_alive && conn->in_used > conn->request_size;
        sx_http_conn_watch(&conn->base, 0);
    } else {
        sx_http_conn_close(&conn->base);
    }
}

/* Reads a large body into its own buffer, which grows as data arrives, at most to the announced
 * length. */
static void read_large_body(struct http1 *conn)
{
    const size_t before = conn->body.size;
    const size_t left = (size_t)conn->exchange.head.content_length - before;
    const size_t room =
        SX_MIN(SX_MIN(left, SX_MAX(before, (size_t)FIRST_BODY_BYTES)), (size_t)READ_BYTES);
    bool again = false;
    char *at = sx_http_body_is_admitted(conn->base.worker, &conn->body, room)
                   ? sx_buf_extend(&conn->body, room)
                   : NULL;
    conn->body.size = before;
    if (at == NULL) {
        refuse_memory(conn);
        return;
    }
    const ssize_t got = read_some(conn, at, room, &again);
    if (got > 0) {
        conn->body.size += (size_t)got;
        sx_http_pace_note(&conn->pace, now_ns(conn), (size_t)got);
        serve_body(conn);
    } else if (got == 0 && !again) {
        on_stream_end(conn);
    }
}

static void read_buffered(struct http1 *conn)
{
    const size_t room = conn->in_size - conn->in_used;
    bool again = false;
    if (room == 0) { /* pipelined beyond the buffer: the peer waits until the response is out */
        sx_http_conn_watch(&conn->base, EPOLLRDHUP);
        return;
    }
    const bool was_idle = is_idle(conn);
    const ssize_t got = read_some(conn, conn->in + conn->in_used, room, &again);
    if (got > 0) {
        conn->in_used += (size_t)got;
        sx_http_pace_note(&conn->pace, now_ns(conn), (size_t)got);
        if (was_idle) {
            set_read_timeout(conn, conn->base.worker->config->head_timeout_ms);
        }
        serve_input(conn);
    } else if (got == 0 && !again) {
        on_stream_end(conn);
    }
}

/* ---- Events ---- */

static void on_readable(struct http1 *conn)
{
    if (conn->state == BODY && !conn->exchange.head.chunked && !body_fits_behind_head(conn)) {
        read_large_body(conn);
    } else {
        read_buffered(conn);
    }
}

static void on_event(sx_http_conn *base, uint32_t events)
{
    struct http1 *conn = (struct http1 *)base;
    if (events & EPOLLOUT) {
        if (write_some(conn)) {
            finish_response(conn);
        }
    } else if (events & EPOLLIN) {
        on_readable(conn);
    } else if (events & EPOLLRDHUP) { /* behind a full read buffer */
        on_stream_end(conn);
    }
}

/* Handles the timeout of the current phase. */
static void on_timeout(struct http1 *conn)
{
    if (is_idle(conn)) {
        sx_http_conn_close(&conn->base);
        return;
    }
    if (conn->base.worker->draining && (conn->state == HEAD || conn->state == BODY)) {
        refuse(conn, 503, "the server is shutting down");
        return;
    }
    switch (conn->state) {
    case HEAD:
        refuse(conn, 408, "timed out waiting for the request header");
        break;
    case BODY:
        refuse(conn, 408, "timed out waiting for the request body");
        break;
    case BUSY:
        sx_cancel_request(&conn->exchange.cancel);
        refuse(conn, 504, "request timed out");
        break;
    default:
        sx_http_exchange_unread(&conn->exchange);
        sx_http_conn_close(&conn->base);
        break;
    }
}

static void on_timer(sx_http_conn *base)
{
    struct http1 *conn = (struct http1 *)base;
    const sx_http_config *config = base->worker->config;
    int64_t deadline_ns = base->deadline_ns;
    if (conn->state == BODY && !base->worker->draining) {
        deadline_ns = sx_http_pace_deadline(&conn->pace, config->body_timeout_ms);
    } else if (conn->state == WRITE) {
        deadline_ns = sx_http_pace_deadline(&conn->pace, config->write_timeout_ms);
    }
    if (now_ns(conn) < deadline_ns) {
        sx_loop_timer_set(base->worker->loop, &base->timer, deadline_ns);
    } else {
        on_timeout(conn);
    }
}

/* ---- Creation and destruction ---- */

static bool abandon(sx_http_conn *base)
{
    struct http1 *conn = (struct http1 *)base;
    if (conn->with_handler) {
        sx_cancel_request(&conn->exchange.cancel);
    }
    return conn->with_handler;
}

static void destroy(sx_http_conn *base)
{
    struct http1 *conn = (struct http1 *)base;
    sx_free(conn->out_body);
    sx_buf_deinit(&conn->body);
    sx_budget_release_all(&conn->exchange.budget);
    sx_free(conn->in);
    sx_free(conn);
}

static const sx_http_protocol http1 = {on_event, on_timer, drain, abandon, destroy};

void sx_http1_open(sx_http_worker *worker, sx_transport transport)
{
    const size_t in_size = worker->config->max_head_bytes + SX_HTTP_IN_BODY_BYTES;
    struct http1 *conn = sx_alloc(1, sizeof(*conn));
    char *in = conn != NULL ? sx_realloc(NULL, in_size, 1) : NULL;
    if (in == NULL) {
        sx_free(conn);
        sx_transport_close(&transport);
        atomic_fetch_sub(worker->open_connections, 1);
        return;
    }
    conn->base.protocol = &http1;
    conn->base.handshaking = transport.tls != NULL;
    conn->in = in;
    conn->in_size = in_size;
    conn->exchange.answered = (sx_loop_task){.fn = on_answered, .user = conn};
    sx_http_exchange_init(&conn->exchange, worker, &conn->base.transport);
    sx_buf_init(&conn->body, worker->config->max_body_bytes);
    conn->body.budget = &conn->exchange.budget;
    sx_http_conn_begin(&conn->base, worker, transport);
}
