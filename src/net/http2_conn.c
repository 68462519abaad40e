/* A connection that speaks HTTP/2: its bytes and its time. nghttp2 knows frames and HPACK; sockets,
 * buffers, budgets, deadlines and limits are ours. Streams are http2_stream.c's.
 *
 * What is read goes through one buffer of the worker, and what is written through another, so that
 * an idle connection holds no memory but nghttp2's. What the socket does not take stays in `out`.
 *
 * Flow control: windows are large, so that a tensor does not wait for round trips, and are refilled
 * as bytes arrive, because each byte is charged to its request's budget, which is what limits them.
 *
 * Limits of nghttp2 itself: CONTINUATION frames of one head, outstanding acknowledgements, settings
 * in a frame, the size of a head (64 KiB). */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/http2.h"

enum {
    READ_BYTES = 256 * 1024,      /* at a time */
    READS = 2,                    /* in a turn, so that other connections get theirs */
    WRITE_BYTES = 64 * 1024,      /* collected before they are sent */
    STREAM_WINDOW = 8 << 20,      /* of what a peer may send */
    CONNECTION_WINDOW = 64 << 20, /* on all streams together */
    FRAME_BYTES = 256 * 1024,     /* the most of a frame that a peer may send */
};

/* ---- Memory of nghttp2 ---- */

static void *get_memory(size_t size, void *user)
{
    (void)user;
    return sx_realloc(NULL, size, 1);
}

static void *get_zeroed(size_t count, size_t size, void *user)
{
    (void)user;
    return sx_alloc(count, size);
}

static void *change_memory(void *block, size_t size, void *user)
{
    (void)user;
    return sx_realloc(block, size, 1);
}

static void put_memory(void *block, void *user)
{
    (void)user;
    sx_free(block);
}

/* ---- For streams ---- */

int64_t sx_http2_now_ns(const sx_http2 *conn)
{
    return sx_loop_now_ns(conn->base.worker->loop);
}

void sx_http2_remind(sx_http2 *conn, int64_t at_ns)
{
    if (conn->base.timer.link == NULL || at_ns < conn->base.timer.deadline_ns) {
        sx_loop_timer_set(conn->base.worker->loop, &conn->base.timer, at_ns);
    }
}

void sx_http2_begin_pace(sx_http2 *conn, sx_http_pace *pace, int timeout_ms)
{
    sx_http_pace_begin(pace, sx_http2_now_ns(conn), timeout_ms);
    sx_http2_remind(conn, pace->deadline_ns);
}

void sx_http2_post_flush(sx_http2 *conn)
{
    if (!conn->flush_posted) {
        conn->flush_posted = true;
        sx_loop_post(conn->base.worker->loop, &conn->flush);
    }
}

/* ---- Reading and writing ---- */

/* Collects what nghttp2 has to say, at most WRITE_BYTES and a frame, in the worker's buffer. */
static bool collect(sx_http2 *conn)
{
    sx_buf *out = &conn->base.worker->out;
    const uint8_t *data;
    ssize_t size = 1;
    sx_buf_reset(out);
    while (out->size < WRITE_BYTES && size > 0) {
        const size_t before = out->size;
        size = nghttp2_session_mem_send(conn->session, &data);
        if (size > 0) {
            sx_buf_append(out, data, (size_t)size);
        } else if (size == 0 && out->size > before) { /* of send_piece() */
            size = 1;
        }
    }
    return size >= 0 && !out->failed;
}

/* Sends [data, data + size); the number of bytes, or -1 if the connection was closed. */
static ssize_t send_some(sx_http2 *conn, const char *data, size_t size)
{
    size_t sent = 0;
    while (sent < size) {
        const struct iovec part = {(char *)data + sent, size - sent};
        const ssize_t now = sx_transport_send(&conn->base.transport, &part, 1);
        if (now < 0 && errno == EAGAIN) {
            break;
        }
        if (now < 0) {
            sx_http_conn_close(&conn->base);
            return -1;
        }
        sent += (size_t)now;
    }
    return (ssize_t)sent;
}

/* Sends what was left of the last turn; false if some of it still is, or the connection closed. */
static bool send_rest(sx_http2 *conn)
{
    const size_t left = conn->out.size - conn->out_sent;
    const ssize_t sent = send_some(conn, conn->out.data + conn->out_sent, left);
    if (sent < 0) {
        return false;
    }
    conn->out_sent += (size_t)sent;
    sx_http_pace_note(&conn->pace, sx_http2_now_ns(conn), (size_t)sent);
    if ((size_t)sent < left) {
        return false;
    }
    sx_buf_deinit(&conn->out);
    conn->out_sent = 0;
    return true;
}

/* The session has nothing more to read or write. Its memory is not kept as long as the connection
 * lingers: who floods and connects again has many that do. */
static void finish(sx_http2 *conn)
{
    sx_http2_stream *next;
    for (sx_http2_stream *stream = conn->streams; stream != NULL; stream = next) {
        next = stream->next;
        sx_http2_stream_end(stream);
    }
    nghttp2_session_del(conn->session);
    conn->session = NULL;
    sx_http_conn_linger(&conn->base);
}

static void flush(sx_http2 *conn)
{
    sx_buf *out = &conn->base.worker->out;
    if (conn->base.closed || conn->base.lingering ||
        (conn->out.size > 0 && !send_rest(conn))) { /* waits for EPOLLOUT */
        return;
    }
    do {
        if (!collect(conn)) {
            sx_http_conn_close(&conn->base);
            return;
        }
        const ssize_t sent = send_some(conn, out->data, out->size);
        if (sent < 0) {
            return;
        }
        if ((size_t)sent < out->size) {
            sx_buf_append(&conn->out, out->data + sent, out->size - (size_t)sent);
            if (conn->out.failed) {
                sx_http_conn_close(&conn->base);
                return;
            }
            sx_http2_begin_pace(conn, &conn->pace, conn->base.worker->config->write_timeout_ms);
            sx_http_conn_watch(&conn->base, EPOLLIN | EPOLLOUT);
            return;
        }
    } while (out->size >= WRITE_BYTES);
    if (!nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session)) {
        finish(conn);
        return;
    }
    sx_http_conn_watch(&conn->base, EPOLLIN);
}

static void on_flush(void *user)
{
    sx_http2 *conn = user;
    conn->flush_posted = false;
    flush(conn);
}

/* Passes bytes to nghttp2; false if the connection has ended. */
static bool take(sx_http2 *conn, const void *data, size_t size)
{
    conn->heard_ns = sx_http2_now_ns(conn);
    conn->asked = false;
    const ssize_t used = nghttp2_session_mem_recv(conn->session, data, size);
    if (used >= 0) {
        return true;
    }
    atomic_fetch_add_explicit(&conn->base.worker->refused, 1, memory_order_relaxed);
    if (used == NGHTTP2_ERR_NOMEM || used == NGHTTP2_ERR_CALLBACK_FAILURE) {
        sx_http_conn_close(&conn->base);
        return false;
    }
    nghttp2_session_terminate_session(conn->session, used == NGHTTP2_ERR_FLOODED
                                                         ? NGHTTP2_ENHANCE_YOUR_CALM
                                                         : NGHTTP2_PROTOCOL_ERROR);
    flush(conn);
    if (!conn->base.closed && !conn->base.lingering) {
        finish(conn);
    }
    return false;
}

/* Reads; false if nothing is left to read now, or the connection has ended: a peer that has shut
 * down its sending half gets no answers. */
static bool read_some(sx_http2 *conn)
{
    sx_buf *in = &conn->base.worker->in;
    sx_buf_reset(in);
    char *at = sx_buf_extend(in, READ_BYTES);
    const ssize_t got = at != NULL ? sx_transport_recv(&conn->base.transport, at, READ_BYTES) : 0;
    if (got < 0 && errno == EAGAIN) {
        return false;
    }
    if (got <= 0) {
        sx_http_conn_close(&conn->base);
        return false;
    }
    return take(conn, at, (size_t)got) && (size_t)got == READ_BYTES;
}

static void on_event(sx_http_conn *base, uint32_t events)
{
    sx_http2 *conn = (sx_http2 *)base;
    for (int i = 0; i < READS && events & EPOLLIN && read_some(conn); i++) {
    }
    flush(conn);
}

/* ---- Time ---- */

/* Whether a head has begun and does not end in time: nothing else can be read or reset. */
static bool is_stuck_in_head(const sx_http2 *conn, int64_t now)
{
    for (const sx_http2_stream *stream = conn->streams; stream != NULL; stream = stream->next) {
        if (!stream->gone && stream->state == SX_HTTP2_HEAD && now >= stream->deadline_ns) {
            return true;
        }
    }
    return false;
}

/* A connection that has been silent is asked with a PING whether it is alive; the next deadline. */
static int64_t check_silence(sx_http2 *conn, int64_t now)
{
    const int64_t patience_ns = conn->base.worker->config->idle_timeout_ms * SX_HTTP_MS;
    if (now - conn->heard_ns >= patience_ns && !conn->asked) {
        conn->asked = true;
        conn->heard_ns = now;
        nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL);
    }
    return conn->heard_ns + patience_ns;
}

static void on_timer(sx_http_conn *base)
{
    sx_http2 *conn = (sx_http2 *)base;
    const sx_http_config *config = base->worker->config;
    const int64_t now = sx_http2_now_ns(conn);
    const int64_t unsent_ns = conn->out.size > 0
                                  ? sx_http_pace_deadline(&conn->pace, config->write_timeout_ms)
                                  : INT64_MAX;
    const bool silent = conn->asked && now - conn->heard_ns >= config->idle_timeout_ms * SX_HTTP_MS;
    if (now >= unsent_ns || silent || is_stuck_in_head(conn, now)) {
        sx_http_conn_close(base);
        return;
    }
    if (base->worker->draining && !conn->last_goaway) {
        conn->last_goaway = true;
        nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(conn->session),
                              NGHTTP2_NO_ERROR, NULL, 0);
    }
    int64_t next_ns = SX_MIN(unsent_ns, check_silence(conn, now));
    for (sx_http2_stream *stream = conn->streams; stream != NULL; stream = stream->next) {
        next_ns = SX_MIN(next_ns, sx_http2_stream_check(stream, now));
    }
    flush(conn);
    if (!base->closed && !base->lingering) {
        sx_http2_remind(conn, next_ns);
    }
}

/* Tells the peer to begin no more streams; those that are already on their way are served. */
static void drain(sx_http_conn *base)
{
    sx_http2 *conn = (sx_http2 *)base;
    nghttp2_submit_shutdown_notice(conn->session);
    sx_http2_remind(conn, sx_http2_now_ns(conn) + SX_HTTP_DRAIN_READ_MS * SX_HTTP_MS);
    sx_http2_post_flush(conn);
}

/* ---- Creation and destruction ---- */

static bool abandon(sx_http_conn *base)
{
    sx_http2 *conn = (sx_http2 *)base;
    for (sx_http2_stream *stream = conn->streams; stream != NULL; stream = stream->next) {
        stream->gone = true;
        if (stream->with_handler) {
            sx_cancel_request(&stream->exchange.cancel);
        }
    }
    return conn->with_handler > 0;
}

static void destroy(sx_http_conn *base)
{
    sx_http2 *conn = (sx_http2 *)base;
    while (conn->streams != NULL) {
        sx_http2_stream_free(conn->streams);
    }
    nghttp2_session_del(conn->session);
    sx_buf_deinit(&conn->out);
    sx_free(conn);
}

static const sx_http_protocol http2 = {on_event, on_timer, drain, abandon, destroy};

static bool new_session(sx_http2 *conn)
{
    static nghttp2_mem memory = {NULL, get_memory, put_memory, get_zeroed, change_memory};
    const sx_http_config *config = conn->base.worker->config;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)config->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)config->max_head_bytes},
    };
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return false;
    }
    sx_http2_set_callbacks(callbacks);
    const int error = nghttp2_session_server_new3(&conn->session, callbacks, conn, NULL, &memory);
    nghttp2_session_callbacks_del(callbacks);
    return error == 0 &&
           nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
                                   SX_COUNT(settings)) == 0 &&
           nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW) == 0;
}

void sx_http2_open(sx_http_worker *worker, sx_transport transport, sx_bytes first)
{
    sx_http2 *conn = sx_alloc(1, sizeof(*conn));
    if (conn == NULL) {
        sx_transport_close(&transport);
        atomic_fetch_sub(worker->open_connections, 1);
        return;
    }
    conn->base.protocol = &http2;
    conn->flush = (sx_loop_task){.fn = on_flush, .user = conn};
    conn->credit = SX_HTTP2_CREDIT;
    conn->credit_ns = conn->heard_ns = sx_loop_now_ns(worker->loop);
    sx_buf_init(&conn->out, 0);
    conn->out.budget = worker->config->memory; /* of peers that do not read there may be many */
    sx_http_conn_begin(&conn->base, worker, transport);
    if (conn->base.closed) {
        return;
    }
    if (!new_session(conn)) {
        sx_http_conn_close(&conn->base);
        return;
    }
    if (worker->draining) {
        drain(&conn->base);
    }
    sx_http2_remind(conn, check_silence(conn, conn->heard_ns));
    if (take(conn, first.data, first.size)) {
        flush(conn);
    }
}
