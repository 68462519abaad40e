/* A connection that speaks HTTP/2. nghttp2 knows frames and HPACK; sockets, buffers, budgets,
 * deadlines and limits are ours.
 *
 * Life of a stream:  HEAD -> BODY -> BUSY -> WRITE -> closed
 *                             ^       ^       |
 *                             |       +-------+   a response in parts
 *                             +-------+           a request in parts
 *   BUSY   the exchange belongs to the handler
 * If the peer resets a stream whose exchange is with the handler, or the connection closes, the
 * exchange is told to stop; the stream is gone, and freed when the handler responds.
 *
 * What is read goes through one buffer of the worker, and what is written through another, so that
 * an idle connection holds no memory but nghttp2's. What the socket does not take stays in `out`.
 *
 * Flow control: windows are large, so that a tensor does not wait for round trips, and are refilled
 * as bytes arrive, because each byte is charged to its request's budget, which is what limits them.
 * So is what a stream itself holds: where there is no room for it, it is refused (REFUSED_STREAM:
 * the client may try again).
 *
 * Floods: every connection has credit. A frame that carries nothing costs one (also a request,
 * until it is answered, a reset, a PING, a setting, a small piece of a body); what is useful earns
 * some, and time does. Without credit the connection ends with GOAWAY(ENHANCE_YOUR_CALM). Limits of
 * nghttp2 itself: CONTINUATION frames of one head, outstanding acknowledgements, settings in a
 * frame, the size of a head (64 KiB). */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/grpc.h"
#include "net/http_conn.h"

enum {
    READ_BYTES = 256 * 1024,      /* at a time */
    READS = 2,                    /* in a turn, so that other connections get theirs */
    WRITE_BYTES = 64 * 1024,      /* collected before they are sent */
    DATA_BYTES = 32 * 1024,       /* the most of a frame that we send */
    STREAM_WINDOW = 8 << 20,      /* of what a peer may send */
    CONNECTION_WINDOW = 64 << 20, /* on all streams together */
    FRAME_BYTES = 256 * 1024,     /* the most of a frame that a peer may send */
    FIELDS = 40,                  /* header fields of a response */
    CREDIT = 500,
    CREDIT_PER_SECOND = 50,
    RESPONSE_CREDIT = 3,
    FRAME_CREDIT = 2,  /* of a piece of a body that is sent: the peer updates windows */
    SMALL_PIECE = 256, /* bytes of a piece of a body that earns nothing */
    HEAD_BYTES = 1024, /* of a stream's head, and what nghttp2 holds of it; charged at once */
};

enum state {
    HEAD,
    BODY,
    BUSY,
    WRITE,
};

struct stream {
    sx_http_exchange exchange;
    struct http2 *conn;
    struct stream *next, **link; /* in conn->streams */
    int32_t id;
    enum state state;
    bool with_handler;       /* the exchange is; also beyond its deadline */
    bool gone;               /* nghttp2 has forgotten it */
    bool submitted;          /* the head of the response */
    bool whole;              /* the request has arrived */
    bool in_parts;           /* the handler takes it so */
    bool fresh;              /* some of it has arrived since the handler was called */
    sx_loop_task again;      /* calls the handler */
    sx_http_failure failure; /* of the head; status 0 = none */
    size_t head_bytes, head_charged;
    int kept_count;
    nghttp2_rcbuf *kept[2 * (SX_HTTP_MAX_HEADERS + 4)]; /* the texts of the head */
    sx_buf body;
    int64_t deadline_ns; /* of HEAD and BUSY */
    sx_http_pace pace;   /* of BODY and WRITE */
    sx_http_response response;
    size_t sent; /* of the response's body */
};

struct http2 {
    sx_http_conn base; /* must be first: converted by address */
    nghttp2_session *session;
    struct stream *streams; /* all, including those that are gone */
    int stream_count, with_handler;
    int credit;
    int64_t credit_ns; /* when it was last increased for time */
    int64_t heard_ns;  /* when bytes came last */
    bool asked;        /* a PING has been sent into the silence */
    bool flooded;      /* had no credit left */
    bool last_goaway;  /* of the drain has been sent */
    sx_buf out;        /* what the socket did not take */
    size_t out_sent;
    sx_http_pace pace; /* of sending `out` */
    sx_loop_task flush;
    bool flush_posted;
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

/* ---- Small parts ---- */

static int64_t now_ns(const struct http2 *conn)
{
    return sx_loop_now_ns(conn->base.worker->loop);
}

/* The timer is set to the earliest time at which something may have to be done. */
static void remind(struct http2 *conn, int64_t at_ns)
{
    if (conn->base.timer.link == NULL || at_ns < conn->base.timer.deadline_ns) {
        sx_loop_timer_set(conn->base.worker->loop, &conn->base.timer, at_ns);
    }
}

static void set_stream_timeout(struct stream *stream, int timeout_ms)
{
    stream->deadline_ns = now_ns(stream->conn) + timeout_ms * SX_HTTP_MS;
    remind(stream->conn, stream->deadline_ns);
}

static void begin_pace(struct http2 *conn, sx_http_pace *pace, int timeout_ms)
{
    sx_http_pace_begin(pace, now_ns(conn), timeout_ms);
    remind(conn, pace->deadline_ns);
}

/* Writes in a later turn of the loop, what all responses of this one have to say. */
static void post_flush(struct http2 *conn)
{
    if (!conn->flush_posted) {
        conn->flush_posted = true;
        sx_loop_post(conn->base.worker->loop, &conn->flush);
    }
}

static void earn(struct http2 *conn, int credit)
{
    conn->credit = SX_MIN(conn->credit + credit, CREDIT);
}

/* False if the connection has none left. */
static bool spend(struct http2 *conn)
{
    const int64_t now = now_ns(conn);
    const int64_t refill = (now - conn->credit_ns) / (1000 * SX_HTTP_MS / CREDIT_PER_SECOND);
    if (refill > 0) {
        conn->credit_ns = now;
        earn(conn, (int)SX_MIN(refill, (int64_t)CREDIT));
    }
    return --conn->credit >= 0;
}

/* ---- Streams ---- */

static struct stream *stream_of(struct http2 *conn, int32_t id)
{
    return nghttp2_session_get_stream_user_data(conn->session, id);
}

static struct stream *new_stream(struct http2 *conn, int32_t id)
{
    struct stream *stream = sx_alloc(1, sizeof(*stream));
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

static void free_stream(struct stream *stream)
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

/* The peer, or the connection, has ended the stream. */
static void end_stream(struct stream *stream)
{
    stream->gone = true;
    if (stream->with_handler) {
        sx_cancel_request(&stream->exchange.cancel);
    } else {
        free_stream(stream);
    }
}

/* Charges what a stream holds from its beginning on; false: there is no room for it. Several
 * streams of a connection leave half of the memory to others. */
static bool charge_stream(struct stream *stream)
{
    struct http2 *conn = stream->conn;
    const sx_budget *memory = conn->base.worker->config->memory;
    const size_t bytes = sizeof(*stream) + HEAD_BYTES;
    sx_http_exchange_init(&stream->exchange, conn->base.worker, &conn->base.transport);
    stream->head_charged = HEAD_BYTES;
    return (memory == NULL || conn->stream_count == 1 ||
            sx_budget_has_room(memory, bytes, memory->limit_bytes / 2)) &&
           sx_budget_charge(&stream->exchange.budget, bytes);
}

/* Charges the texts of its head beyond that. */
static bool charge_head(struct stream *stream)
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

static const char *trailers_of(const struct stream *stream)
{
    return stream->response.body + stream->response.body_size;
}

static ssize_t next_piece(nghttp2_session *session, int32_t id, uint8_t *out, size_t length,
                          uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct stream *stream = source->ptr;
    (void)out;
    (void)user;
    const size_t left = stream->response.body_size - stream->sent;
    const size_t size = SX_MIN(left, length);
    const bool more =
        stream->response.on_sent != NULL || stream->state == BUSY || stream->state == BODY;
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
    struct http2 *conn = user;
    struct stream *stream = source->ptr;
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
    sx_http_pace_note(&stream->pace, now_ns(conn), length);
    earn(conn, FRAME_CREDIT);
    if (stream->sent == response->body_size && response->on_sent != NULL) {
        void (*on_sent)(void *, sx_http_exchange *) = response->on_sent;
        sx_free(response->body);
        *response = (sx_http_response){0};
        stream->sent = 0;
        stream->state = BUSY;
        stream->deadline_ns = stream->exchange.cancel.deadline_ns;
        stream->with_handler = true;
        conn->with_handler++;
        remind(conn, stream->deadline_ns);
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
static int submit_head(struct stream *stream)
{
    struct http2 *conn = stream->conn;
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
static void respond(struct stream *stream, const sx_http_response *response)
{
    struct http2 *conn = stream->conn;
    stream->response = *response;
    stream->sent = 0;
    stream->state = WRITE;
    begin_pace(conn, &stream->pace, conn->base.worker->config->write_timeout_ms);
    earn(conn, RESPONSE_CREDIT);
    const int error = stream->submitted ? nghttp2_session_resume_data(conn->session, stream->id)
                                        : submit_head(stream);
    if (error != 0) {
        nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_INTERNAL_ERROR);
    }
    post_flush(conn);
}

/* Responds without the handler. What else comes of the request is dropped. `reason` must need no
 * escapes in JSON. */
static void refuse(struct stream *stream, int status, const char *reason)
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
static bool take_back(struct stream *stream)
{
    struct http2 *conn = stream->conn;
    conn->with_handler--;
    stream->with_handler = false;
    const bool gone = stream->gone;
    if (gone) {
        free_stream(stream);
    }
    if (conn->base.closed && conn->with_handler == 0) {
        sx_loop_post(conn->base.worker->loop, &conn->base.reap);
    }
    return !gone;
}

/* Removes what the handler has taken of a request in parts. */
static void drop_taken(struct stream *stream)
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
    struct stream *stream = user;
    if (stream->in_parts) {
        drop_taken(stream);
    } else {
        sx_buf_deinit(&stream->body); /* do not keep it while a slow peer reads the response */
    }
    if (stream->gone || stream->state != BUSY) { /* timed out or cut off meanwhile */
        sx_free(stream->exchange.response.body);
        (void)take_back(stream);
        return;
    }
    (void)take_back(stream);
    respond(stream, &stream->exchange.response);
}

/* ---- Requests ---- */

static void begin_exchange(struct stream *stream)
{
    sx_http_exchange *exchange = &stream->exchange;
    stream->state = BUSY;
    stream->fresh = false;
    stream->with_handler = true;
    stream->conn->with_handler++;
    exchange->partial = !stream->whole;
    const size_t lead = stream->body.size > 0 ? exchange->body_lead : 0;
    sx_http_exchange_begin(exchange,
                           (sx_bytes){sx_buf_text(&stream->body) + lead, stream->body.size - lead});
    stream->deadline_ns = exchange->cancel.deadline_ns;
    remind(stream->conn, stream->deadline_ns);
}

static void on_again(void *user)
{
    struct stream *stream = user;
    if (take_back(stream)) {
        begin_exchange(stream);
    }
}

/* The handler waits for more of the request. What has come meanwhile it gets in a turn of its own:
 * it may be in the middle of its last one. */
static void on_await(sx_http_exchange *exchange)
{
    struct stream *stream = (struct stream *)exchange;
    drop_taken(stream);
    if (stream->whole || stream->fresh) {
        sx_loop_post(stream->conn->base.worker->loop, &stream->again);
        return;
    }
    stream->state = BODY;
    begin_pace(stream->conn, &stream->pace, stream->conn->base.worker->config->body_timeout_ms);
    (void)take_back(stream);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *user)
{
    struct http2 *conn = user;
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
    struct http2 *conn = user;
    const sx_http_config *config = conn->base.worker->config;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) { /* trailers */
        return 0;
    }
    /* Streams that the peer has reset count as long as they keep the handler busy. */
    struct stream *stream = conn->stream_count < 2 * config->max_streams && !conn->flooded
                                ? new_stream(conn, frame->hd.stream_id)
                                : NULL;
    if (stream != NULL && !charge_stream(stream)) {
        free_stream(stream);
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
static sx_http_text keep(struct stream *stream, nghttp2_rcbuf *text)
{
    const nghttp2_vec view = nghttp2_rcbuf_get_buf(text);
    nghttp2_rcbuf_incref(text);
    stream->kept[stream->kept_count++] = text;
    return (sx_http_text){(const char *)view.base, view.len};
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    struct http2 *conn = user;
    struct stream *stream = stream_of(conn, frame->hd.stream_id);
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

static void on_head(struct stream *stream)
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
    stream->state = BODY;
    stream->in_parts = config->takes_parts != NULL && config->takes_parts(head);
    begin_pace(stream->conn, &stream->pace, config->body_timeout_ms);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2 *conn = user;
    struct stream *stream = stream_of(conn, frame->hd.stream_id);
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
    if (stream->state == BODY && (stream->whole || (stream->in_parts && stream->fresh))) {
        begin_exchange(stream);
    }
    return 0;
}

/* The first bytes of a body follow. */
static void begin_body(struct stream *stream)
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
    struct stream *stream = stream_of(user, id);
    (void)flags;
    if (stream == NULL || (stream->state != BODY && !stream->in_parts)) { /* it was refused */
        return 0;
    }
    sx_buf *body = &stream->body;
    if (body->size == 0 && size > 0 && !stream->in_parts) {
        begin_body(stream);
    }
    stream->fresh = true;
    char reason[SX_HTTP_REASON];
    const bool admitted = sx_http_body_is_admitted(stream->conn->base.worker, body, size);
    if (stream->state != BODY && (!admitted || size > body->max_bytes - body->size)) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM);
        return 0; /* more than the answers so far are waited for */
    }
    sx_http_pace_note(&stream->pace, now_ns(stream->conn), size);
    if (admitted && size > body->max_bytes - body->size) {
        snprintf(reason, sizeof(reason), "request body too large: the limit is %zu bytes",
                 body->max_bytes - stream->exchange.body_lead);
        refuse(stream, 413, reason);
        return 0;
    }
    if (admitted) {
        sx_buf_append(body, data, size);
    }
    if (stream->state != BODY && body->failed) {
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
    struct stream *stream;
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
    struct stream *stream = stream_of(user, id);
    (void)error;
    if (stream != NULL) {
        nghttp2_session_set_stream_user_data(session, id, NULL);
        end_stream(stream);
    }
    return 0;
}

/* ---- Reading and writing ---- */

/* Collects what nghttp2 has to say, at most WRITE_BYTES and a frame, in the worker's buffer. */
static bool collect(struct http2 *conn)
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
static ssize_t send_some(struct http2 *conn, const char *data, size_t size)
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
static bool send_rest(struct http2 *conn)
{
    const size_t left = conn->out.size - conn->out_sent;
    const ssize_t sent = send_some(conn, conn->out.data + conn->out_sent, left);
    if (sent < 0) {
        return false;
    }
    conn->out_sent += (size_t)sent;
    sx_http_pace_note(&conn->pace, now_ns(conn), (size_t)sent);
    if ((size_t)sent < left) {
        return false;
    }
    sx_buf_deinit(&conn->out);
    conn->out_sent = 0;
    return true;
}

/* The session has nothing more to read or write. Its memory is not kept as long as the connection
 * lingers: who floods and connects again has many that do. */
static void finish(struct http2 *conn)
{
    struct stream *next;
    for (struct stream *stream = conn->streams; stream != NULL; stream = next) {
        next = stream->next;
        end_stream(stream);
    }
    nghttp2_session_del(conn->session);
    conn->session = NULL;
    sx_http_conn_linger(&conn->base);
}

static void flush(struct http2 *conn)
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
            begin_pace(conn, &conn->pace, conn->base.worker->config->write_timeout_ms);
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
    struct http2 *conn = user;
    conn->flush_posted = false;
    flush(conn);
}

/* Passes bytes to nghttp2; false if the connection has ended. */
static bool take(struct http2 *conn, const void *data, size_t size)
{
    conn->heard_ns = now_ns(conn);
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
static bool read_some(struct http2 *conn)
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
    struct http2 *conn = (struct http2 *)base;
    for (int i = 0; i < READS && events & EPOLLIN && read_some(conn); i++) {
    }
    flush(conn);
}

/* ---- Time ---- */

/* Acts on a stream whose time is over; returns the time of its next deadline. */
static int64_t check_stream(struct stream *stream, int64_t now)
{
    const sx_http_config *config = stream->conn->base.worker->config;
    const int64_t deadline_ns =
        stream->state == BODY    ? sx_http_pace_deadline(&stream->pace, config->body_timeout_ms)
        : stream->state == WRITE ? sx_http_pace_deadline(&stream->pace, config->write_timeout_ms)
                                 : stream->deadline_ns;
    const bool unfinished = stream->in_parts && stream->conn->base.worker->draining &&
                            stream->state == BODY && !stream->gone;
    if (unfinished) { /* it may go on for as long as the peer likes */
        refuse(stream, 503, "the server is stopping");
        return now + config->write_timeout_ms * SX_HTTP_MS;
    }
    if (stream->gone || now < deadline_ns) {
        return stream->gone ? INT64_MAX : deadline_ns;
    }
    switch (stream->state) {
    case BODY:
        refuse(stream, 408, "timed out waiting for the request body");
        break;
    case BUSY:
        sx_cancel_request(&stream->exchange.cancel);
        refuse(stream, 504, "request timed out");
        break;
    default: /* a head that does not end, or a peer that does not read */
        if (stream->state == WRITE) {
            sx_http_exchange_unread(&stream->exchange);
        }
        nghttp2_submit_rst_stream(stream->conn->session, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_CANCEL);
        break;
    }
    return now + config->write_timeout_ms * SX_HTTP_MS;
}

/* Whether a head has begun and does not end in time: nothing else can be read or reset. */
static bool is_stuck_in_head(const struct http2 *conn, int64_t now)
{
    for (const struct stream *stream = conn->streams; stream != NULL; stream = stream->next) {
        if (!stream->gone && stream->state == HEAD && now >= stream->deadline_ns) {
            return true;
        }
    }
    return false;
}

/* A connection that has been silent is asked with a PING whether it is alive; the next deadline. */
static int64_t check_silence(struct http2 *conn, int64_t now)
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
    struct http2 *conn = (struct http2 *)base;
    const sx_http_config *config = base->worker->config;
    const int64_t now = now_ns(conn);
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
    for (struct stream *stream = conn->streams; stream != NULL; stream = stream->next) {
        next_ns = SX_MIN(next_ns, check_stream(stream, now));
    }
    flush(conn);
    if (!base->closed && !base->lingering) {
        remind(conn, next_ns);
    }
}

/* Tells the peer to begin no more streams; those that are already on their way are served. */
static void drain(sx_http_conn *base)
{
    struct http2 *conn = (struct http2 *)base;
    nghttp2_submit_shutdown_notice(conn->session);
    remind(conn, now_ns(conn) + SX_HTTP_DRAIN_READ_MS * SX_HTTP_MS);
    post_flush(conn);
}

/* ---- Creation and destruction ---- */

static bool abandon(sx_http_conn *base)
{
    struct http2 *conn = (struct http2 *)base;
    for (struct stream *stream = conn->streams; stream != NULL; stream = stream->next) {
        stream->gone = true;
        if (stream->with_handler) {
            sx_cancel_request(&stream->exchange.cancel);
        }
    }
    return conn->with_handler > 0;
}

static void destroy(sx_http_conn *base)
{
    struct http2 *conn = (struct http2 *)base;
    while (conn->streams != NULL) {
        free_stream(conn->streams);
    }
    nghttp2_session_del(conn->session);
    sx_buf_deinit(&conn->out);
    sx_free(conn);
}

static const sx_http_protocol http2 = {on_event, on_timer, drain, abandon, destroy};

static bool new_session(struct http2 *conn)
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
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_piece);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, piece_length);
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
    struct http2 *conn = sx_alloc(1, sizeof(*conn));
    if (conn == NULL) {
        sx_transport_close(&transport);
        atomic_fetch_sub(worker->open_connections, 1);
        return;
    }
    conn->base.protocol = &http2;
    conn->flush = (sx_loop_task){.fn = on_flush, .user = conn};
    conn->credit = CREDIT;
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
    remind(conn, check_silence(conn, conn->heard_ns));
    if (take(conn, first.data, first.size)) {
        flush(conn);
    }
}
