/* One connection of the HTTP server; see http_conn.h for its states and buffers. */
#include "net/http_conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"

enum {
    IN_BODY_BYTES = 16 * 1024,    /* behind the largest head: small bodies, chunk framing */
    FIRST_BODY_BYTES = 64 * 1024, /* of a large body; doubled as data arrives */
    READ_BYTES = 256 * 1024,      /* maximum per event, so that other connections get their turn */
    LINGER_BYTES = 32 * 1024,     /* of a refused body that are still read and discarded */
    LINGER_MS = 1000,
    DRAIN_READ_MS = 250,              /* a request may be in transit when draining begins */
    BYTES_FOR_ONE_SECOND = 64 * 1024, /* slower transfers time out */
    RETRY_AFTER_S = 1,
};

static const int64_t ms = 1000000;

/* ---- Creation and destruction ---- */

static void on_event(void *user, uint32_t events);
static void on_timer(void *user);
static void on_answered(void *user);
static void on_reap(void *user);
static void serve_input(sx_http_conn *conn);

static void set_deadline(sx_http_conn *conn, int64_t deadline_ns)
{
    conn->deadline_ns = deadline_ns;
    /* A timer that fires early checks deadline_ns and is set again, so most requests do not touch
     * the wheel. */
    if (conn->timer.link == NULL || conn->timer.deadline_ns > deadline_ns) {
        sx_loop_timer_set(conn->worker->loop, &conn->timer, deadline_ns);
    }
}

static void set_timeout(sx_http_conn *conn, int timeout_ms)
{
    set_deadline(conn, sx_loop_now_ns(conn->worker->loop) + timeout_ms * ms);
}

/* The time for a part of a request. When draining, the time that sx_http_conn_drain() gave the
 * whole request is not extended. */
static void set_read_timeout(sx_http_conn *conn, int timeout_ms)
{
    if (!conn->worker->draining) {
        set_timeout(conn, timeout_ms);
    }
}

static void note_progress(sx_http_conn *conn, size_t bytes)
{
    conn->phase_bytes += bytes;
    conn->progress_ns = sx_loop_now_ns(conn->worker->loop);
}

static void link_conn(sx_http_conn *conn)
{
    sx_http_worker *worker = conn->worker;
    conn->next = worker->conns;
    conn->link = &worker->conns;
    if (conn->next != NULL) {
        conn->next->link = &conn->next;
    }
    worker->conns = conn;
    worker->conn_count++;
    atomic_fetch_add_explicit(&worker->connections, 1, memory_order_relaxed);
}

/* Frees a closed connection in a later turn of the loop, because the function that closed it may
 * still read its state. */
static void on_reap(void *user)
{
    sx_http_conn *conn = user;
    sx_http_worker *worker = conn->worker;
    *conn->link = conn->next;
    if (conn->next != NULL) {
        conn->next->link = conn->link;
    }
    sx_free(conn->out_body);
    sx_buf_deinit(&conn->body);
    sx_budget_release_all(&conn->budget);
    sx_free(conn->in);
    sx_free(conn);
    worker->conn_count--;
    atomic_fetch_sub(worker->open_connections, 1);
    if (worker->draining && worker->conn_count == 0) {
        worker->on_empty(worker);
    }
}

void sx_http_conn_open(sx_http_worker *worker, int fd)
{
    const size_t in_size = worker->config->max_head_bytes + IN_BODY_BYTES;
    sx_http_conn *conn = sx_alloc(1, sizeof(*conn));
    char *in = conn != NULL ? sx_realloc(NULL, in_size, 1) : NULL;
    if (in == NULL) {
        sx_free(conn);
        close(fd);
        atomic_fetch_sub(worker->open_connections, 1);
        return;
    }
    conn->worker = worker;
    conn->in = in;
    conn->in_size = in_size;
    conn->io = (sx_loop_io){.fd = fd, .events = EPOLLIN, .fn = on_event, .user = conn};
    conn->timer = (sx_loop_timer){.fn = on_timer, .user = conn};
    conn->reap = (sx_loop_task){.fn = on_reap, .user = conn};
    conn->exchange.answered = (sx_loop_task){.fn = on_answered, .user = conn};
    conn->exchange.conn = conn;
    sx_budget_init(&conn->budget, "one request", worker->config->max_request_bytes,
                   worker->config->memory);
    sx_buf_init(&conn->body, worker->config->max_body_bytes);
    conn->body.budget = &conn->budget;
    link_conn(conn);
    sx_status status = sx_loop_add(worker->loop, &conn->io);
    if (status != SX_OK) {
        sx_status_free(status);
        sx_http_conn_close(conn);
        return;
    }
    set_timeout(conn, worker->config->head_timeout_ms);
}

void sx_http_conn_close(sx_http_conn *conn)
{
    if (conn->state == SX_CONN_CLOSED) {
        return;
    }
    sx_loop_remove(conn->worker->loop, &conn->io);
    sx_loop_timer_cancel(conn->worker->loop, &conn->timer);
    close(conn->io.fd);
    conn->state = SX_CONN_CLOSED;
    atomic_fetch_sub_explicit(&conn->worker->connections, 1, memory_order_relaxed);
    if (conn->with_handler) {
        sx_cancel_request(&conn->exchange.cancel);
    } else {
        sx_loop_post(conn->worker->loop, &conn->reap);
    }
}

static bool is_idle(const sx_http_conn *conn)
{
    return conn->state == SX_CONN_HEAD && conn->in_used == 0;
}

void sx_http_conn_drain(sx_http_conn *conn)
{
    conn->keep_alive = false;
    if (conn->state == SX_CONN_HEAD || conn->state == SX_CONN_BODY) {
        set_timeout(conn, DRAIN_READ_MS);
    }
}

/* ---- Writing ---- */

/* The response has been sent: goes on with the next request, which may already be in the buffer
 * after the last one, or closes. */
static void finish_response(sx_http_conn *conn)
{
    sx_http_worker *worker = conn->worker;
    sx_free(conn->out_body);
    conn->out_body = NULL;
    conn->out_body_size = conn->out_head_size = conn->out_sent = 0;
    if (!conn->with_handler) {
        sx_buf_deinit(&conn->body);
        sx_budget_release_all(&conn->budget);
    }
    if (!conn->keep_alive || worker->draining) {
        if (conn->peer_finished) {
            sx_http_conn_close(conn);
            return;
        }
        shutdown(conn->io.fd, SHUT_WR);
        conn->state = SX_CONN_LINGER;
        conn->lingered = 0;
        set_timeout(conn, LINGER_MS);
        sx_loop_modify(worker->loop, &conn->io, EPOLLIN);
        return;
    }
    conn->in_used -= conn->request_size;
    memmove(conn->in, conn->in + conn->request_size, conn->in_used);
    conn->request_size = conn->scanned = 0;
    conn->state = SX_CONN_HEAD;
    set_timeout(conn, conn->in_used > 0 ? worker->config->head_timeout_ms
                                        : worker->config->idle_timeout_ms);
    if (!conn->peer_finished) {
        sx_loop_modify(worker->loop, &conn->io, EPOLLIN);
    }
    serve_input(conn);
    if (conn->peer_finished && (conn->state == SX_CONN_HEAD || conn->state == SX_CONN_BODY)) {
        sx_http_conn_close(conn); /* no more bytes will come */
    }
}

/* Sends as much as possible; returns true when the response has been sent, false if it must wait or
 * the connection is closed. */
static bool write_some(sx_http_conn *conn)
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
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        const ssize_t sent = sendmsg(conn->io.fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            sx_loop_modify(conn->worker->loop, &conn->io, EPOLLOUT);
            return false;
        }
        if (sent < 0) {
            sx_http_conn_close(conn);
            return false;
        }
        conn->out_sent += (size_t)sent;
        note_progress(conn, (size_t)sent);
    }
    return true;
}

static void begin_write(sx_http_conn *conn)
{
    conn->state = SX_CONN_WRITE;
    conn->out_sent = conn->phase_bytes = 0;
    note_progress(conn, 0);
    set_timeout(conn, conn->worker->config->write_timeout_ms);
    if (write_some(conn)) {
        finish_response(conn);
    }
}

/* Formats the head of a response and takes its body. The response to HEAD has no body. */
static void set_response(sx_http_conn *conn, const sx_http_response *response, bool head_only)
{
    const bool typed = response->content_type != NULL;
    char retry_after[40] = "";
    if (response->retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "Retry-After: %d\r\n", response->retry_after_s);
    }
    const int size = snprintf(
        conn->out_head, sizeof(conn->out_head),
        "HTTP/1.1 %d %s\r\nDate: %s\r\n%s%s%sContent-Length: %zu\r\n%s%s%s\r\n", response->status,
        sx_http_reason(response->status), sx_http_worker_date(conn->worker),
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
static void refuse(sx_http_conn *conn, int status, const char *reason)
{
    sx_buf text;
    sx_buf_init(&text, 1024);
    sx_buf_printf(&text, "{\n    \"error\": \"%s\"\n}\n", reason);
    sx_http_response response = {.status = status, .content_type = "application/json"};
    response.retry_after_s = status == 429 || status == 503 ? RETRY_AFTER_S : 0;
    response.body = sx_buf_take(&text, &response.body_size);
    if (response.body == NULL) {
        sx_buf_deinit(&text);
        response.body_size = 0;
    }
    atomic_fetch_add_explicit(&conn->worker->refused, 1, memory_order_relaxed);
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
    sx_http_conn *conn = user;
    conn->with_handler = false;
    sx_buf_deinit(&conn->body);        /* do not keep it while a slow peer reads the response */
    if (conn->state != SX_CONN_BUSY) { /* timed out or cut off meanwhile */
        sx_free(conn->exchange.response.body);
        if (conn->state == SX_CONN_CLOSED) {
            on_reap(conn);
        }
        return;
    }
    conn->keep_alive = conn->keep_alive && !conn->worker->draining;
    set_response(conn, &conn->exchange.response,
                 sx_http_text_is(conn->exchange.head.method, "HEAD"));
    begin_write(conn);
}

static void begin_exchange(sx_http_conn *conn, sx_bytes body)
{
    sx_http_exchange *exchange = &conn->exchange;
    const sx_http_config *config = conn->worker->config;
    exchange->body = body;
    sx_cancel_init(&exchange->cancel,
                   sx_loop_now_ns(conn->worker->loop) + config->request_timeout_ms * ms);
    memset(exchange->scratch, 0, sizeof(exchange->scratch));
    conn->state = SX_CONN_BUSY;
    conn->with_handler = true;
    conn->keep_alive = exchange->head.keep_alive && !conn->worker->draining;
    set_deadline(conn, exchange->cancel.deadline_ns);
    atomic_fetch_add_explicit(&conn->worker->requests, 1, memory_order_relaxed);
    config->handler(config->user, exchange);
}

const sx_http_head *sx_http_request_head(const sx_http_exchange *exchange)
{
    return &exchange->head;
}

sx_bytes sx_http_request_body(const sx_http_exchange *exchange)
{
    return exchange->body;
}

int sx_http_request_loop(const sx_http_exchange *exchange)
{
    return exchange->conn->worker->index;
}

const sx_cancel *sx_http_request_cancel(const sx_http_exchange *exchange)
{
    return &exchange->cancel;
}

sx_budget *sx_http_request_budget(sx_http_exchange *exchange)
{
    return &exchange->conn->budget;
}

void *sx_http_request_scratch(sx_http_exchange *exchange)
{
    return exchange->scratch;
}

void sx_http_respond(sx_http_exchange *exchange, const sx_http_response *response)
{
    exchange->response = *response;
    sx_loop_post(exchange->conn->worker->loop, &exchange->answered);
}

/* ---- Reading ---- */

/* Reads into [at, at + room); returns the count, 0 at the end of the stream or if no data is
 * available (then *out_again), -1 if the connection was closed. */
static ssize_t read_some(sx_http_conn *conn, char *at, size_t room, bool *out_again)
{
    ssize_t got;
    do {
        got = recv(conn->io.fd, at, room, 0);
    } while (got < 0 && errno == EINTR);
    *out_again = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (got < 0 && !*out_again) {
        sx_http_conn_close(conn);
        return -1;
    }
    if (got == 0) {
        conn->peer_finished = true;
    }
    return got < 0 ? 0 : got;
}

/* Whether the body's buffer may grow by `more` bytes. Large bodies are admitted while half of the
 * memory is free, so that unfinished ones leave room for running requests. */
static bool body_is_admitted(const sx_http_conn *conn, size_t more)
{
    const sx_budget *memory = conn->worker->config->memory;
    const sx_buf *body = &conn->body;
    if (memory == NULL || more < body->capacity - body->size ||
        body->size + more <= IN_BODY_BYTES) {
        return true;
    }
    const size_t doubled = SX_MIN(2 * body->capacity, body->max_bytes + 1);
    const size_t growth = SX_MAX(body->size + more + 1, doubled) - body->capacity;
    return sx_budget_has_room(memory, growth, memory->limit_bytes / 2);
}

/* Refuses a body that could not grow: the memory limit is reached (429), or malloc failed (503). */
static void refuse_memory(sx_http_conn *conn)
{
    const sx_budget *memory = conn->worker->config->memory;
    char reason[200];
    if (memory == NULL || memory->limit_bytes == 0) {
        refuse(conn, 503, "out of memory");
        return;
    }
    snprintf(reason, sizeof(reason),
             "not enough memory for the request body: %zu of %zu bytes are in use by other "
             "requests; try again later",
             sx_budget_used(memory) - sx_budget_used(&conn->budget), memory->limit_bytes);
    refuse(conn, 429, reason);
}

static bool body_fits_behind_head(const sx_http_conn *conn)
{
    return conn->exchange.head.content_length <= conn->in_size - conn->request_size;
}

/* False if it was sent in part: the stream is spoiled. */
static bool send_continue(const sx_http_conn *conn)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const ssize_t sent = send(conn->io.fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
    return sent <= 0 || (size_t)sent == sizeof(text) - 1;
}

/* Parses the head of a request; once it is complete, decides how the body is read. */
static void serve_head(sx_http_conn *conn)
{
    const sx_http_config *config = conn->worker->config;
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
    if (large && !body_is_admitted(conn, conn->body.max_bytes)) {
        refuse_memory(conn);
        return;
    }
    conn->state = SX_CONN_BODY;
    conn->phase_bytes = 0;
    note_progress(conn, conn->in_used - head_size);
    sx_http_chunks_init(&conn->chunks);
    set_read_timeout(conn, config->body_timeout_ms);
    /* If the socket buffer has no room for it, the peer waits and then sends anyway. */
    if (head->expect_continue && conn->in_used == head_size && !send_continue(conn)) {
        sx_http_conn_close(conn);
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
static void serve_chunks(sx_http_conn *conn)
{
    const size_t head_size = conn->request_size;
    size_t used = 0;
    sx_http_failure failure;
    if (!body_is_admitted(conn, conn->in_used - head_size)) {
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

static void serve_body(sx_http_conn *conn)
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

/* Parses the contents of the read buffer as far as possible. */
static void serve_input(sx_http_conn *conn)
{
    if (conn->state == SX_CONN_HEAD && conn->in_used > 0) {
        serve_head(conn);
    }
    if (conn->state == SX_CONN_BODY) {
        serve_body(conn);
    }
}

/* The peer has closed its connection, or has shut down its sending half and waits for the response.
 * The two look alike until something is sent: a closed connection answers with a reset, which ends
 * in sx_http_conn_close() and cancels the request. So an interim response is sent, which HTTP/1.1
 * clients must accept. An incomplete request is discarded. */
static void on_stream_end(sx_http_conn *conn)
{
    if (conn->state == SX_CONN_BUSY && conn->exchange.head.minor > 0 && !send_continue(conn)) {
        sx_http_conn_close(conn);
        return;
    }
    if (conn->state == SX_CONN_BUSY || conn->state == SX_CONN_WRITE) {
        conn->keep_alive = conn->keep_alive && conn->in_used > conn->request_size;
        sx_loop_modify(conn->worker->loop, &conn->io, 0);
    } else {
        sx_http_conn_close(conn);
    }
}

/* Reads a large body into its own buffer, which grows as data arrives, at most to the announced
 * length. */
static void read_large_body(sx_http_conn *conn)
{
    const size_t before = conn->body.size;
    const size_t left = (size_t)conn->exchange.head.content_length - before;
    const size_t room =
        SX_MIN(SX_MIN(left, SX_MAX(before, (size_t)FIRST_BODY_BYTES)), (size_t)READ_BYTES);
    bool again = false;
    char *at = body_is_admitted(conn, room) ? sx_buf_extend(&conn->body, room) : NULL;
    conn->body.size = before;
    if (at == NULL) {
        refuse_memory(conn);
        return;
    }
    const ssize_t got = read_some(conn, at, room, &again);
    if (got > 0) {
        conn->body.size += (size_t)got;
        note_progress(conn, (size_t)got);
        serve_body(conn);
    } else if (got == 0 && !again) {
        on_stream_end(conn);
    }
}

static void read_buffered(sx_http_conn *conn)
{
    const size_t room = conn->in_size - conn->in_used;
    bool again = false;
    if (room == 0) { /* pipelined beyond the buffer: the peer waits until the response is out */
        sx_loop_modify(conn->worker->loop, &conn->io, EPOLLRDHUP);
        return;
    }
    const bool was_idle = is_idle(conn);
    const ssize_t got = read_some(conn, conn->in + conn->in_used, room, &again);
    if (got > 0) {
        conn->in_used += (size_t)got;
        note_progress(conn, (size_t)got);
        if (was_idle) {
            set_read_timeout(conn, conn->worker->config->head_timeout_ms);
        }
        serve_input(conn);
    } else if (got == 0 && !again) {
        on_stream_end(conn);
    }
}

static void read_lingering(sx_http_conn *conn)
{
    char dropped[4096];
    bool again = false;
    const ssize_t got = read_some(conn, dropped, sizeof(dropped), &again);
    if (got > 0) {
        conn->lingered += (size_t)got;
        if (conn->lingered >= LINGER_BYTES) { /* enough; the timer closes the connection */
            sx_loop_modify(conn->worker->loop, &conn->io, 0);
        }
    } else if (got == 0 && !again) {
        sx_http_conn_close(conn);
    }
}

/* ---- Events ---- */

static void on_readable(sx_http_conn *conn)
{
    if (conn->state == SX_CONN_LINGER) {
        read_lingering(conn);
    } else if (conn->state == SX_CONN_BODY && !conn->exchange.head.chunked &&
               !body_fits_behind_head(conn)) {
        read_large_body(conn);
    } else {
        read_buffered(conn);
    }
}

static void on_event(void *user, uint32_t events)
{
    sx_http_conn *conn = user;
    if (events & (EPOLLERR | EPOLLHUP)) { /* both directions are gone */
        sx_http_conn_close(conn);
    } else if (events & EPOLLOUT) {
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
static void on_timeout(sx_http_conn *conn)
{
    if (is_idle(conn)) {
        sx_http_conn_close(conn);
        return;
    }
    if (conn->worker->draining && (conn->state == SX_CONN_HEAD || conn->state == SX_CONN_BODY)) {
        refuse(conn, 503, "the server is shutting down");
        return;
    }
    switch (conn->state) {
    case SX_CONN_HEAD:
        refuse(conn, 408, "timed out waiting for the request header");
        break;
    case SX_CONN_BODY:
        refuse(conn, 408, "timed out waiting for the request body");
        break;
    case SX_CONN_BUSY:
        sx_cancel_request(&conn->exchange.cancel);
        refuse(conn, 504, "request timed out");
        break;
    default:
        sx_http_conn_close(conn);
        break;
    }
}

static void on_timer(void *user)
{
    sx_http_conn *conn = user;
    const sx_http_config *config = conn->worker->config;
    int64_t deadline_ns = conn->deadline_ns;
    if ((conn->state == SX_CONN_BODY && !conn->worker->draining) || conn->state == SX_CONN_WRITE) {
        /* The deadline moves as long as bytes are transferred. */
        const int64_t earned_ms = (int64_t)(conn->phase_bytes * 1000 / BYTES_FOR_ONE_SECOND);
        const int64_t patience_ms =
            conn->state == SX_CONN_BODY ? config->body_timeout_ms : config->write_timeout_ms;
        deadline_ns = SX_MIN(deadline_ns + earned_ms * ms, conn->progress_ns + patience_ms * ms);
    }
    if (sx_loop_now_ns(conn->worker->loop) < deadline_ns) {
        sx_loop_timer_set(conn->worker->loop, &conn->timer, deadline_ns);
    } else {
        on_timeout(conn);
    }
}
