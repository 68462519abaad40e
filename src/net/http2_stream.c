/* The streams of a connection that speaks HTTP/2: requests and their responses.
 *
 * Life of a stream:  HEAD -> BODY -> BUSY -> WRITE -> closed
 *                             ^       ^       |
 *                             |       +-------+   a response in parts
 *                             +-------+           a request in parts
 *   BUSY   the exchange belongs to the handler
 * If the peer resets a stream whose exchange is with the handler, or the connection closes, the
 * exchange is told to stop; the stream is gone, and freed when the handler responds.
 *
 * What a stream holds is charged to its request's budget: where there is no room for it, it is
 * refused (REFUSED_STREAM: the client may try again).
 *
 * Floods: every connection has credit. A frame that carries nothing costs one (also a request,
 * until it is answered, a reset, a PING, a setting, a small piece of a body); what is useful earns
 * some, and time does. Without credit the connection ends with GOAWAY(ENHANCE_YOUR_CALM). */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "net/http2.h"

enum {
    DATA_BYTES = 32 * 1024, /* the most of a frame that we send */
    FIELDS = 40,            /* header fields of a response */
    CREDIT_PER_SECOND = 50,
    RESPONSE_CREDIT = 3,
    FRAME_CREDIT = 2,  /* of a piece of a body that is sent: the peer updates windows */
    SMALL_PIECE = 256, /* bytes of a piece of a body that earns nothing */
    HEAD_BYTES = 1024, /* of a stream's head, and what nghttp2 holds of it; charged at once */
};

/* ---- Credit ---- */

static void earn(sx_http2 *conn, int credit)
{
    conn->credit = SX_MIN(conn->credit + credit, SX_HTTP2_CREDIT);
}

/* False if the connection has none left. */
static bool spend(sx_http2 *conn)
{
    const int64_t now = sx_http2_now_ns(conn);
    const int64_t refill = (now - conn->credit_ns) / (1000 * SX_HTTP_MS / CREDIT_PER_SECOND);
    if (refill > 0) {
        conn->credit_ns = now;
        earn(conn, (int)SX_MIN(refill, (int64_t)SX_HTTP2_CREDIT));
    }
    return --conn->credit >= 0;
}

/* ---- Streams ---- */

static void set_stream_timeout(sx_http2_stream *stream, int timeout_ms)
{
    stream->deadline_ns = sx_http2_now_ns(stream->conn) + timeout_ms * SX_HTTP_MS;
    sx_http2_remind(stream->conn, stream->deadline_ns);
}

static sx_http2_stream *stream_of(sx_http2 *conn, int32_t id)
{
    return nghttp2_session_get_stream_user_data(conn->session, id);
}

static sx_http2_stream *new_stream(sx_http2 *conn, int32_t id)
{
    sx_http2_stream *stream = sx_alloc(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    stream->conn = conn;
    stream->id = id;
    stream->next = conn->streams;
    stream->link = &conn->streams;
    if (stream->next != NULL) {
        stream->next->link = &stream->next;
    }
    conn->streams = stream;
    conn->stream_count++;
    return stream;
}

void sx_http2_stream_free(sx_http2_stream *stream)
{
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    }
    stream->conn->stream_count--;
    for (int i = 0; i < stream->kept_count; i++) {
        nghttp2_rcbuf_decref(stream->kept[i]);
    }
    sx_free(stream->response.body);
    sx_buf_deinit(&stream->body);
    sx_budget_release_all(&stream->exchange.budget);
    sx_free(stream);
}

void sx_http2_stream_end(sx_http2_stream *stream)
{
    stream->gone = true;
    if (stream->with_handler) {
        sx_cancel_request(&stream->exchange.cancel);
    } else {
        sx_http2_stream_free(stream);
    }
}

/* Charges what a stream holds from its beginning on; false: there is no room for it. Several
 * streams of a connection leave half of the memory to others. */
static bool charge_stream(sx_http2_stream *stream)
{
    sx_http2 *conn = stream->conn;
    const sx_budget *memory = conn->base.worker->config->memory;
    const size_t bytes = sizeof(*stream) + HEAD_BYTES;
    sx_http_exchange_init(&stream->exchange, conn->base.worker, &conn->base.transport);
    stream->head_charged = HEAD_BYTES;
    return (memory == NULL || conn->stream_count == 1 ||
            sx_budget_has_room(memory, bytes, memory->limit_bytes / 2)) &&
           sx_budget_charge(&stream->exchange.budget, bytes);
}

/* Charges the texts of its head beyond that. */
static bool charge_head(sx_http2_stream *stream)
{
    const size_t more = stream->head_bytes > stream->head_charged
                            ? stream->head_bytes - stream->head_charged + HEAD_BYTES
                            : 0;
    stream->head_charged += more;
    return more == 0 || sx_budget_charge(&stream->exchange.budget, more);
}

/* ---- Responses ---- */

/* The fields of a response's head or trailers. */
struct fields {
    nghttp2_nv items[FIELDS];
    size_t count;
    bool overflow;
};

static void add_field(struct fields *fields, sx_http_text name, sx_http_text value)
{
    if (fields->count == FIELDS) {
        fields->overflow = true;
        return;
    }
    fields->items[fields->count++] = (nghttp2_nv){(uint8_t *)name.data, (uint8_t *)value.data,
                                                  name.size, value.size, NGHTTP2_NV_FLAG_NONE};
}

static void add_named(struct fields *fields, const char *name, const char *value)
{
    add_field(fields, (sx_http_text){name, strlen(name)}, (sx_http_text){value, strlen(value)});
}

/* Adds header lines, "name: value CRLF"; nghttp2 writes names in lower case. */
static void add_lines(struct fields *fields, const char *lines, size_t size)
{
    while (size > 0) {
        const char *end = memchr(lines, '\n', size);
        const size_t line = end != NULL ? (size_t)(end - lines) + 1 : size;
        const char *colon = memchr(lines, ':', line);
        if (colon != NULL && line >= (size_t)(colon - lines) + 4) {
            const size_t name = (size_t)(colon - lines);
            add_field(fields, (sx_http_text){lines, name},
                      (sx_http_text){colon + 2, line - name - 4});
        }
        lines += line;
        size -= line;
    }
}

static const char *trailers_of(const sx_http2_stream *stream)
{
    return stream->response.body + stream->response.body_size;
}

static ssize_t next_piece(nghttp2_session *session, int32_t id, uint8_t *out, size_t length,
                          uint32_t *flags, nghttp2_data_source *source, void *user)
{
    sx_http2_stream *stream = source->ptr;
    (void)out;
    (void)user;
    const size_t left = stream->response.body_size - stream->sent;
    const size_t size = SX_MIN(left, length);
    const bool more = stream->response.on_sent != NULL || stream->state == SX_HTTP2_BUSY ||
                      stream->state == SX_HTTP2_BODY;
    if (size == 0 && more) {
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (size < left || more) {
        return (ssize_t)size;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->response.trailers_size > 0) {
        struct fields fields = {.count = 0};
        add_lines(&fields, trailers_of(stream), stream->response.trailers_size);
        if (nghttp2_submit_trailer(session, id, fields.items, fields.count) != 0) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return (ssize_t)size;
}

/* Copies a piece that next_piece() announced behind its frame header. */
static int send_piece(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                      size_t length, nghttp2_data_source *source, void *user)
{
    sx_http2 *conn = user;
    sx_http2_stream *stream = source->ptr;
    sx_http_response *response = &stream->response;
    sx_buf *out = &conn->base.worker->out;
    (void)session;
    (void)frame;
    sx_buf_append(out, header, 9);
    sx_buf_append(out, response->body + stream->sent, length);
    if (out->failed) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    stream->sent += length;
    sx_http_pace_note(&stream->pace, sx_http2_now_ns(conn), length);
    earn(conn, FRAME_CREDIT);
    if (stream->sent == response->body_size && response->on_sent != NULL) {
        void (*on_sent)(void *, sx_http_exchange *) = response->on_sent;
        sx_free(response->body);
        *response = (sx_http_response){0};
        stream->sent = 0;
        stream->state = SX_HTTP2_BUSY;
        stream->deadline_ns = stream->exchange.cancel.deadline_ns;
        stream->with_handler = true;
        conn->with_handler++;
        sx_http2_remind(conn, stream->deadline_ns);
        on_sent(conn->base.worker->config->user, &stream->exchange);
    }
    return 0;
}

static ssize_t piece_length(nghttp2_session *session, uint8_t type, int32_t id,
                            int32_t connection_window, int32_t stream_window, uint32_t frame_size,
                            void *user)
{
    (void)session;
    (void)type;
    (void)id;
    (void)user;
    const int32_t window = SX_MIN(connection_window, stream_window);
    return SX_MIN((ssize_t)SX_MIN(frame_size, (uint32_t)DATA_BYTES), (ssize_t)window);
}

/* Submits the head of the response, which goes on with its body. */
static int submit_head(sx_http2_stream *stream)
{
    sx_http2 *conn = stream->conn;
    sx_http_response *response = &stream->response;
    struct fields fields = {.count = 0};
    char status[16], length[24], retry_after[16];
    const bool head_only = sx_http_text_is(stream->exchange.head.method, "HEAD");
    const bool grpc = response->trailers_size > 0 || response->on_sent != NULL;
    snprintf(status, sizeof(status), "%03d", response->status);
    add_named(&fields, ":status", status);
    if (response->content_type != NULL) {
        add_named(&fields, "content-type", response->content_type);
    }
    if (!grpc) { /* its servers send neither */
        snprintf(length, sizeof(length), "%zu", response->body_size);
        add_named(&fields, "date", sx_http_worker_date(conn->base.worker));
        add_named(&fields, "content-length", length);
    }
    if (response->retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "%d", response->retry_after_s);
        add_named(&fields, "retry-after", retry_after);
    }
    if (response->headers != NULL) {
        add_lines(&fields, response->headers, strlen(response->headers));
    }
    if (response->body_size == 0 && response->on_sent == NULL) { /* all in the head */
        add_lines(&fields, trailers_of(stream), response->trailers_size);
        response->trailers_size = 0;
    }
    const bool empty = head_only || (response->body_size == 0 && response->on_sent == NULL);
    const nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = next_piece};
    stream->submitted = true;
    return fields.overflow ? NGHTTP2_ERR_INVALID_ARGUMENT
                           : nghttp2_submit_response(conn->session, stream->id, fields.items,
                                                     fields.count, empty ? NULL : &provider);
}

/* Sends a response, or a part of one; takes its body. */
static void respond(sx_http2_stream *stream, const sx_http_response *response)
{
    sx_http2 *conn = stream->conn;
    stream->response = *response;
    stream->sent = 0;
    stream->state = SX_HTTP2_WRITE;
    sx_http2_begin_pace(conn, &stream->pace, conn->base.worker->config->write_timeout_ms);
    earn(conn, RESPONSE_CREDIT);
    const int error = stream->submitted ? nghttp2_session_resume_data(conn->session, stream->id)
                                        : submit_head(stream);
    if (error != 0) {
        nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_INTERNAL_ERROR);
    }
    sx_http2_post_flush(conn);
}

/* Responds without the handler. What else comes of the request is dropped. `reason` must need no
 * escapes in JSON. */
static void refuse(sx_http2_stream *stream, int status, const char *reason)
{
    sx_http_worker *worker = stream->conn->base.worker;
    const sx_http_response response = sx_grpc_is_call(&stream->exchange.head)
                                          ? sx_grpc_refusal(status, reason)
                                          : sx_http_refusal(status, reason);
    atomic_fetch_add_explicit(&worker->refused, 1, memory_order_relaxed);
    if (!stream->with_handler) {
        sx_buf_deinit(&stream->body);
    }
    respond(stream, &response);
}

/* The exchange is no longer with the handler. False if the stream is gone, and now freed. */
static bool take_back(sx_http2_stream *stream)
{
    sx_http2 *conn = stream->conn;
    conn->with_handler--;
    stream->with_handler = false;
    const bool gone = stream->gone;
    if (gone) {
        sx_http2_stream_free(stream);
    }
    if (conn->base.closed && conn->with_handler == 0) {
        sx_loop_post(conn->base.worker->loop, &conn->base.reap);
    }
    return !gone;
}

/* Removes what the handler has taken of a request in parts. */
static void drop_taken(sx_http2_stream *stream)
{
    sx_buf *body = &stream->body;
    const size_t taken = SX_MIN(stream->exchange.taken, body->size);
    if (taken > 0) {
        memmove(body->data, body->data + taken, body->size - taken);
        body->size -= taken;
    }
    stream->exchange.taken = 0;
}

/* The handler has responded; on the loop's thread. */
static void on_answered(void *user)
{
    sx_http2_stream *stream = user;
    if (stream->in_parts) {
        drop_taken(stream);
    } else {
        sx_buf_deinit(&stream->body); /* do not keep it while a slow peer reads the response */
    }
    if (stream->gone || stream->state != SX_HTTP2_BUSY) { /* timed out or cut off meanwhile */
        sx_free(stream->exchange.response.body);
        (void)take_back(stream);
        return;
    }
    (void)take_back(stream);
    respond(stream, &stream->exchange.response);
}

/* ---- Requests ---- */

static void begin_exchange(sx_http2_stream *stream)
{
    sx_http_exchange *exchange = &stream->exchange;
    stream->state = SX_HTTP2_BUSY;
    stream->fresh = false;
    stream->with_handler = true;
    stream->conn->with_handler++;
    exchange->partial = !stream->whole;
    const size_t lead = stream->body.size > 0 ? exchange->body_lead : 0;
    sx_http_exchange_begin(exchange,
                           (sx_bytes){sx_buf_text(&stream->body) + lead, stream->body.size - lead});
    stream->deadline_ns = exchange->cancel.deadline_ns;
    sx_http2_remind(stream->conn, stream->deadline_ns);
}

static void on_again(void *user)
{
    sx_http2_stream *stream = user;
    if (take_back(stream)) {
        begin_exchange(stream);
    }
}

/* The handler waits for more of the request. What has come meanwhile it gets in a turn of its own:
 * it may be in the middle of its last one. */
static void on_await(sx_http_exchange *exchange)
{
    sx_http2_stream *stream = (sx_http2_stream *)exchange;
    drop_taken(stream);
    if (stream->whole || stream->fresh) {
        sx_loop_post(stream->conn->base.worker->loop, &stream->again);
        return;
    }
    stream->state = SX_HTTP2_BODY;
    sx_http2_begin_pace(stream->conn, &stream->pace,
                        stream->conn->base.worker->config->body_timeout_ms);
    (void)take_back(stream);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *user)
{
    sx_http2 *conn = user;
    const bool data = header->type == NGHTTP2_DATA;
    if (data && header->length >= SMALL_PIECE) {
        earn(conn, 1);
    } else if (!(data && header->flags & NGHTTP2_FLAG_END_STREAM) && !spend(conn) &&
               !conn->flooded) {
        conn->flooded = true;
        atomic_fetch_add_explicit(&conn->base.worker->refused, 1, memory_order_relaxed);
        nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    sx_http2 *conn = user;
    const sx_http_config *config = conn->base.worker->config;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) { /* trailers */
        return 0;
    }
    /* Streams that the peer has reset count as long as they keep the handler busy. */
    sx_http2_stream *stream = conn->stream_count < 2 * config->max_streams && !conn->flooded
                                  ? new_stream(conn, frame->hd.stream_id)
                                  : NULL;
    if (stream != NULL && !charge_stream(stream)) {
        sx_http2_stream_free(stream);
        stream = NULL;
    }
    if (stream == NULL) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    stream->exchange.answered = (sx_loop_task){.fn = on_answered, .user = stream};
    stream->exchange.await = on_await;
    stream->again = (sx_loop_task){.fn = on_again, .user = stream};
    sx_buf_init(&stream->body, config->max_body_bytes);
    stream->body.budget = &stream->exchange.budget;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    set_stream_timeout(stream, config->head_timeout_ms);
    return 0;
}

/* The text of a field, which is kept as long as the stream. */
static sx_http_text keep(sx_http2_stream *stream, nghttp2_rcbuf *text)
{
    const nghttp2_vec view = nghttp2_rcbuf_get_buf(text);
    nghttp2_rcbuf_incref(text);
    stream->kept[stream->kept_count++] = text;
    return (sx_http_text){(const char *)view.base, view.len};
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    sx_http2 *conn = user;
    sx_http2_stream *stream = stream_of(conn, frame->hd.stream_id);
    (void)session;
    (void)flags;
    if (stream == NULL || frame->headers.cat != NGHTTP2_HCAT_REQUEST ||
        stream->failure.status != 0) {
        return 0;
    }
    sx_http_head *head = &stream->exchange.head;
    const nghttp2_vec text = nghttp2_rcbuf_get_buf(name);
    const sx_http_text name_text = {(const char *)text.base, text.len};
    stream->head_bytes += text.len + nghttp2_rcbuf_get_buf(value).len + 32;
    if (stream->head_bytes > conn->base.worker->config->max_head_bytes) {
        stream->failure = (sx_http_failure){431, "request header too large"};
    } else if (!charge_head(stream)) {
        stream->failure = (sx_http_failure){429, "not enough memory for the request header"};
    } else if (sx_http_text_is(name_text, ":method")) {
        head->method = keep(stream, value);
    } else if (sx_http_text_is(name_text, ":path")) {
        head->target = keep(stream, value);
    } else if (text.len > 0 && text.base[0] == ':') {
        return 0; /* authority and scheme do not matter */
    } else if (head->header_count == SX_HTTP_MAX_HEADERS) {
        stream->failure = (sx_http_failure){431, "too many headers"};
    } else {
        sx_http_header *header = &head->headers[head->header_count++];
        header->name = keep(stream, name);
        header->value = keep(stream, value);
    }
    return 0;
}

static void on_head(sx_http2_stream *stream)
{
    const sx_http_config *config = stream->conn->base.worker->config;
    sx_http_head *head = &stream->exchange.head;
    sx_http_failure *failure = &stream->failure;
    if (failure->status != 0 || !sx_http_head_complete(head, failure)) {
        refuse(stream, failure->status, failure->reason);
        return;
    }
    if (head->content_length > config->max_body_bytes) {
        char reason[SX_HTTP_REASON];
        snprintf(reason, sizeof(reason), "request body too large: %llu bytes, the limit is %zu",
                 (unsigned long long)head->content_length, config->max_body_bytes);
        refuse(stream, 413, reason);
        return;
    }
    stream->state = SX_HTTP2_BODY;
    stream->in_parts = config->takes_parts != NULL && config->takes_parts(head);
    sx_http2_begin_pace(stream->conn, &stream->pace, config->body_timeout_ms);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    sx_http2 *conn = user;
    sx_http2_stream *stream = stream_of(conn, frame->hd.stream_id);
    (void)session;
    const bool data = frame->hd.type == NGHTTP2_DATA, head = frame->hd.type == NGHTTP2_HEADERS;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK) {
        conn->asked = false;
    }
    if (stream == NULL || !(data || head)) {
        return 0;
    }
    if (head && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        on_head(stream);
    }
    stream->whole = stream->whole || frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (stream->state == SX_HTTP2_BODY && (stream->whole || (stream->in_parts && stream->fresh))) {
        begin_exchange(stream);
    }
    return 0;
}

/* The first bytes of a body follow. */
static void begin_body(sx_http2_stream *stream)
{
    const unsigned lead =
        atomic_load_explicit(&stream->conn->base.worker->body_lead, memory_order_relaxed);
    if (lead > 0) {
        stream->exchange.body_lead = lead;
        stream->body.max_bytes += lead;
        (void)sx_buf_extend(&stream->body, lead);
    }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *user)
{
    sx_http2_stream *stream = stream_of(user, id);
    (void)flags;
    if (stream == NULL ||
        (stream->state != SX_HTTP2_BODY && !stream->in_parts)) { /* it was refused */
        return 0;
    }
    sx_buf *body = &stream->body;
    if (body->size == 0 && size > 0 && !stream->in_parts) {
        begin_body(stream);
    }
    stream->fresh = true;
    char reason[SX_HTTP_REASON];
    const bool admitted = sx_http_body_is_admitted(stream->conn->base.worker, body, size);
    if (stream->state != SX_HTTP2_BODY && (!admitted || size > body->max_bytes - body->size)) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM);
        return 0; /* more than the answers so far are waited for */
    }
    sx_http_pace_note(&stream->pace, sx_http2_now_ns(stream->conn), size);
    if (admitted && size > body->max_bytes - body->size) {
        snprintf(reason, sizeof(reason), "request body too large: the limit is %zu bytes",
                 body->max_bytes - stream->exchange.body_lead);
        refuse(stream, 413, reason);
        return 0;
    }
    if (admitted) {
        sx_buf_append(body, data, size);
    }
    if (stream->state != SX_HTTP2_BODY && body->failed) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    } else if (!admitted || body->failed) {
        const int status = sx_http_memory_failure(&stream->exchange, reason);
        refuse(stream, status, reason);
    }
    return 0;
}

/* A response that ends before its request tells the peer to send no more of it. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    sx_http2_stream *stream;
    const bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
                      (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS);
    if (ends && (stream = stream_of(user, frame->hd.stream_id)) != NULL && !stream->whole) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_NO_ERROR);
    }
    return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    sx_http2_stream *stream = stream_of(user, id);
    (void)error;
    if (stream != NULL) {
        nghttp2_session_set_stream_user_data(session, id, NULL);
        sx_http2_stream_end(stream);
    }
    return 0;
}

/* ---- Time ---- */

int64_t sx_http2_stream_check(sx_http2_stream *stream, int64_t now)
{
    const sx_http_config *config = stream->conn->base.worker->config;
    const int64_t deadline_ns = stream->state == SX_HTTP2_BODY
                                    ? sx_http_pace_deadline(&stream->pace, config->body_timeout_ms)
                                : stream->state == SX_HTTP2_WRITE
                                    ? sx_http_pace_deadline(&stream->pace, config->write_timeout_ms)
                                    : stream->deadline_ns;
    const bool unfinished = stream->in_parts && stream->conn->base.worker->draining &&
                            stream->state == SX_HTTP2_BODY && !stream->gone;
    if (unfinished) { /* it may go on for as long as the peer likes */
        refuse(stream, 503, "the server is stopping");
        return now + config->write_timeout_ms * SX_HTTP_MS;
    }
    if (stream->gone || now < deadline_ns) {
        return stream->gone ? INT64_MAX : deadline_ns;
    }
    switch (stream->state) {
    case SX_HTTP2_BODY:
        refuse(stream, 408, "timed out waiting for the request body");
        break;
    case SX_HTTP2_BUSY:
        sx_cancel_request(&stream->exchange.cancel);
        refuse(stream, 504, "request timed out");
        break;
    default: /* a head that does not end, or a peer that does not read */
        if (stream->state == SX_HTTP2_WRITE) {
            sx_http_exchange_unread(&stream->exchange);
        }
        nghttp2_submit_rst_stream(stream->conn->session, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_CANCEL);
        break;
    }
    return now + config->write_timeout_ms * SX_HTTP_MS;
}

/* ---- Callbacks ---- */

void sx_http2_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_piece);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, piece_length);
}
