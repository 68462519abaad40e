/* See http2_calls.h.
 *
 * A lane is a connection, or none yet: its first call makes an nghttp2 session, which keeps
 * requests until sx_http2_calls_wait has opened the connection. What calls are under way is in one
 * list, by deadline. If a connection is lost, its calls fail, and the lane is empty again. */
#include "net/http2_calls.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/wait.h"
#include "net/tls_client.h"

enum {
    STREAMS = 100,
    FIELDS = 16,             /* of a request */
    NAME_BYTES = 1024,       /* of their names */
    MAX_HEADERS = 1 << 20,   /* of an answer */
    READ_BYTES = 256 * 1024, /* at a time */
    WRITE_BYTES = 64 * 1024, /* collected before they are sent */
    STREAM_WINDOW = 8 << 20, /* of what the server may send */
    CONNECTION_WINDOW = 64 << 20,
    CONNECT_MS = 5000,
    RETRY_MS = 1,    /* after a UNIX socket had no room for a connection */
    AVOID_MS = 1000, /* a lane that was lost, while others have room */
    TIMEOUT_MS = 60000,
    EVENTS = 64,
};

typedef struct call call;

typedef enum lane_state { CLOSED, CONNECTING, GREETING, OPEN } lane_state;

typedef struct lane {
    sx_http2_calls *owner;
    lane_state state;
    nghttp2_session *session; /* NULL: there is no call */
    sx_transport transport;
    const struct addrinfo *address;            /* that is tried */
    int64_t connect_by_ns, retry_ns, avoid_ns; /* until then: give up, wait, use others */
    uint32_t events;                           /* that are waited for */
    int calls;
    sx_buf out; /* what the socket has not taken yet */
} lane;

struct call {
    lane *lane;
    int32_t stream;
    sx_bytes body;
    size_t body_sent;
    bool answered; /* the response is whole */
    int http_status;
    sx_buf headers, answer;
    int64_t deadline_ns;
    sx_http_done *done;
    void *user;
    call *before, *after; /* those under way, by deadline */
    call *next_free, *next;
};

struct sx_http2_calls {
    sx_arena arena;
    const char *url, *scheme, *authority, *host, *port, *path;
    struct sockaddr_un unix_socket;
    struct addrinfo unix_address, *found; /* found: from getaddrinfo() */
    const struct addrinfo *best;          /* the address that a connection begins with */
    sx_tls_client *tls;
    int epoll_fd;
    int last_lane; /* that a call was begun on */
    bool ended;    /* has a call, since the wait began */
    call *first, *last, *all, *free;
    uint8_t in[READ_BYTES];
    int lane_count;
    lane lanes[];
};

/* ---- Where to ---- */

/* Splits http[s]://HOST[:PORT]/PATH; HOST may be an IPv6 address in brackets. */
static sx_status split_url(sx_http2_calls *m, const char *url)
{
    const bool secure = strncasecmp(url, "https://", 8) == 0;
    if (!secure && strncasecmp(url, "http://", 7) != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: expected http:// or https://", url);
    }
    const char *authority = url + (secure ? 8 : 7);
    const size_t size = strcspn(authority, "/?#");
    const bool bracketed = authority[0] == '[';
    const size_t host_size = bracketed ? strcspn(authority, "]") - 1 : strcspn(authority, ":/?#");
    const char *port = authority + host_size + (bracketed ? 2 : 0);
    if (host_size == 0 || host_size >= size || port > authority + size) {
        port = authority + size;
    }
    m->url = sx_arena_strdup(&m->arena, url);
    m->scheme = secure ? "https" : "http";
    m->authority = sx_arena_strndup(&m->arena, authority, size);
    m->host = sx_arena_strndup(&m->arena, authority + bracketed, SX_MIN(host_size, size));
    m->port = *port == ':'
                  ? sx_arena_strndup(&m->arena, port + 1, (size_t)(authority + size - port) - 1)
              : secure ? "443"
                       : "80";
    m->path = authority[size] == '/' ? sx_arena_strdup(&m->arena, authority + size) : "/";
    return m->url != NULL && m->authority != NULL && m->host != NULL && m->port != NULL &&
                   m->path != NULL
               ? SX_OK
               : sx_no_memory("for an address");
}

static sx_status find_address(sx_http2_calls *m, const char *socket_path)
{
    if (socket_path != NULL) {
        struct sockaddr_un *at = &m->unix_socket;
        if (strlen(socket_path) >= sizeof(at->sun_path)) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: expected a path of up to %zu bytes",
                            socket_path, sizeof(at->sun_path) - 1);
        }
        at->sun_family = AF_UNIX;
        snprintf(at->sun_path, sizeof(at->sun_path), "%s", socket_path);
        m->unix_address = (struct addrinfo){.ai_family = AF_UNIX,
                                            .ai_socktype = SOCK_STREAM,
                                            .ai_addr = (struct sockaddr *)at,
                                            .ai_addrlen = sizeof(*at)};
        m->best = &m->unix_address;
        return SX_OK;
    }
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const int error = getaddrinfo(m->host, m->port, &hints, &m->found);
    m->best = m->found;
    return error == 0 ? SX_OK : sx_error(SX_UNAVAILABLE, "%s: %s", m->url, gai_strerror(error));
}

/* ---- Creation and destruction ---- */

sx_status sx_http2_calls_create(const sx_http_call *to, int connections, sx_http2_calls **out_calls)
{
    sx_http2_calls *m = sx_alloc(1, sizeof(*m) + (size_t)connections * sizeof(lane));
    sx_status status = SX_OK;
    if (m == NULL) {
        return sx_no_memory("for connections");
    }
    sx_arena_init(&m->arena, 0);
    m->lane_count = connections;
    for (int i = 0; i < connections; i++) {
        m->lanes[i].owner = m;
        sx_buf_init(&m->lanes[i].out, 0);
    }
    m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (m->epoll_fd < 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "connections: %s", strerror(errno));
    }
    if (status == SX_OK) {
        status = split_url(m, to->url);
    }
    if (status == SX_OK) {
        status = find_address(m, to->socket_path);
    }
    if (status == SX_OK && strcmp(m->scheme, "https") == 0) {
        status =
            sx_tls_client_create(m->host, to->ca_file, to->certificate_file, to->key_file, &m->tls);
    }
    if (status != SX_OK) {
        sx_http2_calls_destroy(m);
        return status;
    }
    *out_calls = m;
    return SX_OK;
}

static void close_lane(lane *l)
{
    if (l->state != CLOSED) {
        sx_transport_close(&l->transport); /* epoll forgets it */
    }
    nghttp2_session_del(l->session);
    l->session = NULL;
    l->state = CLOSED;
    sx_buf_reset(&l->out);
}

void sx_http2_calls_destroy(sx_http2_calls *m)
{
    if (m == NULL) {
        return;
    }
    for (int i = 0; i < m->lane_count; i++) {
        close_lane(&m->lanes[i]);
        sx_buf_deinit(&m->lanes[i].out);
    }
    while (m->all != NULL) {
        call *c = m->all;
        m->all = c->next;
        sx_buf_deinit(&c->headers);
        sx_buf_deinit(&c->answer);
        sx_free(c);
    }
    if (m->epoll_fd >= 0) {
        close(m->epoll_fd);
    }
    if (m->found != NULL) {
        freeaddrinfo(m->found);
    }
    sx_tls_client_destroy(m->tls);
    sx_arena_deinit(&m->arena);
    sx_free(m);
}

/* ---- The list ---- */

/* Deadlines mostly come in order. */
static void insert(sx_http2_calls *m, call *c)
{
    c->before = m->last;
    while (c->before != NULL && c->before->deadline_ns > c->deadline_ns) {
        c->before = c->before->before;
    }
    c->after = c->before != NULL ? c->before->after : m->first;
    *(c->before != NULL ? &c->before->after : &m->first) = c;
    *(c->after != NULL ? &c->after->before : &m->last) = c;
}

/* The call has ended; takes the status. */
static void finish(call *c, sx_status status)
{
    sx_http2_calls *m = c->lane->owner;
    *(c->before != NULL ? &c->before->after : &m->first) = c->after;
    *(c->after != NULL ? &c->after->before : &m->last) = c->before;
    c->lane->calls--;
    c->lane = NULL;
    m->ended = true;
    c->done(c->user, status, c->http_status, &c->headers, &c->answer);
    c->next_free = m->free;
    m->free = c;
}

/* The connection is lost, with the calls that it has; takes the status. */
static void lose(lane *l, sx_status status)
{
    call *next;
    close_lane(l);
    l->avoid_ns = sx_now_ns() + AVOID_MS * (int64_t)1000000;
    for (call *c = l->owner->first; c != NULL; c = next) {
        next = c->after;
        if (c->lane == l) {
            finish(c, sx_error(sx_status_code(status), "%s: %s", l->owner->url,
                               sx_status_message(status)));
        }
    }
    sx_status_free(status);
}

/* ---- Frames ---- */

static call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static ssize_t on_body_wanted(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
                              uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)source;
    (void)user;
    call *c = call_of(session, stream);
    if (c == NULL) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it was cancelled */
    }
    const size_t size = SX_MIN(room, c->body.size - c->body_sent);
    memcpy(to, (const char *)c->body.data + c->body_sent, size);
    c->body_sent += size;
    *flags |= c->body_sent == c->body.size ? NGHTTP2_DATA_FLAG_EOF : 0;
    return (ssize_t)size;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    (void)flags;
    (void)user;
    call *c = call_of(session, frame->hd.stream_id);
    if (c != NULL && name_size == 7 && memcmp(name, ":status", 7) == 0) {
        c->http_status = (int)strtol((const char *)value, NULL, 10);
    } else if (c != NULL) {
        sx_buf_append(&c->headers, name, name_size);
        sx_buf_puts(&c->headers, ": ");
        sx_buf_append(&c->headers, value, value_size);
        sx_buf_puts(&c->headers, "\r\n");
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *user)
{
    (void)flags;
    (void)user;
    call *c = call_of(session, stream);
    if (c != NULL) {
        sx_buf_append(&c->answer, data, size);
        if (c->answer.failed != 0) {
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
        }
    }
    return 0;
}

/* The rest of a request whose response is whole need not be sent. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    const bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    call *c = ends ? call_of(session, frame->hd.stream_id) : NULL;
    if (c != NULL) {
        c->answered = true;
        if (c->body_sent < c->body.size) {
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_CANCEL);
        }
    }
    return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    (void)user;
    call *c = call_of(session, stream);
    if (c == NULL) {
        return 0;
    }
    const char *url = c->lane->owner->url;
    sx_status status = SX_OK;
    if (c->answer.failed != 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "%s: the response is larger than %zu bytes", url,
                          c->answer.max_bytes);
    } else if (c->headers.failed != 0) {
        status = sx_error(SX_RESOURCE_EXHAUSTED, "%s: the response has too many headers", url);
    } else if (error != NGHTTP2_NO_ERROR && !c->answered) {
        status = sx_error(SX_UNAVAILABLE, "%s: the server has ended the call: %s", url,
                          nghttp2_http2_strerror(error));
    }
    finish(c, status);
    return 0;
}

static bool open_session(lane *l)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return false;
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    const int error = nghttp2_session_client_new(&l->session, callbacks, l);
    nghttp2_session_callbacks_del(callbacks);
    return error == 0 &&
           nghttp2_submit_settings(l->session, NGHTTP2_FLAG_NONE, settings, SX_COUNT(settings)) ==
               0 &&
           nghttp2_session_set_local_window_size(l->session, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW) == 0;
}

/* ---- Calls ---- */

static call *new_call(sx_http2_calls *m)
{
    call *c = m->free;
    if (c != NULL) {
        m->free = c->next_free;
        return c;
    }
    c = sx_alloc(1, sizeof(*c));
    if (c != NULL) {
        sx_buf_init(&c->headers, MAX_HEADERS);
        c->next = m->all;
        m->all = c;
    }
    return c;
}

/* The server has said GOAWAY. */
static bool takes_no_more(const lane *l)
{
    return l->session != NULL && nghttp2_session_check_request_allowed(l->session) == 0;
}

static bool has_room(const lane *l)
{
    if (l->calls == 0) {
        return true; /* on another connection, if this one takes no more */
    }
    const uint32_t most =
        nghttp2_session_get_remote_settings(l->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return l->calls < (int)SX_MIN(most, (uint32_t)STREAMS) && !takes_no_more(l);
}

/* One of those with room that have the fewest calls, in turn; -1: none has. A lane that was just
 * lost has few, but would lose the next ones, too. */
static int choose_lane(const sx_http2_calls *m)
{
    const int64_t now_ns = sx_now_ns();
    int best = -1, least = 0;
    for (int i = 1; i <= m->lane_count; i++) {
        const int at = (m->last_lane + i) % m->lane_count;
        const lane *l = &m->lanes[at];
        const bool avoided = l->state != OPEN && now_ns < l->avoid_ns;
        const int calls = l->calls + (avoided ? STREAMS : 0);
        if ((best < 0 || calls < least) && has_room(l)) {
            best = at;
            least = calls;
        }
    }
    return best;
}

bool sx_http2_calls_has_room(const sx_http2_calls *m)
{
    int at = 0;
    while (at < m->lane_count && !has_room(&m->lanes[at])) {
        at++;
    }
    return at < m->lane_count;
}

static nghttp2_nv field(const char *name, size_t name_size, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .namelen = name_size,
                        .value = (uint8_t *)(uintptr_t)value,
                        .valuelen = strlen(value)};
}

/* The request's header fields, of which nghttp2 makes copies; their names are in lower case. */
static sx_status submit(call *c, const sx_http_call *http)
{
    const sx_http2_calls *m = c->lane->owner;
    char names[NAME_BYTES];
    size_t used = 0, count = 0;
    nghttp2_nv fields[FIELDS];
    const nghttp2_data_provider body = {.read_callback = on_body_wanted};
    fields[count++] = field(":method", 7, "POST");
    fields[count++] = field(":scheme", 7, m->scheme);
    fields[count++] = field(":authority", 10, m->authority);
    fields[count++] = field(":path", 5, m->path);
    fields[count++] = field("user-agent", 10, "sextant/" SX_VERSION);
    fields[count++] = field("content-type", 12,
                            http->content_type != NULL ? http->content_type : "application/json");
    for (int i = 0; http->headers != NULL && http->headers[i] != NULL; i++) {
        const char *header = http->headers[i];
        const size_t size = strcspn(header, ":");
        if (count == FIELDS || header[size] == '\0' || size > sizeof(names) - used) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: too many headers, or one without a colon",
                            m->url);
        }
        for (size_t k = 0; k < size; k++) {
            names[used + k] = (char)tolower((unsigned char)header[k]);
        }
        fields[count++] =
            field(names + used, size, header + size + 1 + strspn(header + size + 1, " "));
        used += size;
    }
    c->stream = nghttp2_submit_request(c->lane->session, NULL, fields, count, &body, c);
    return c->stream > 0 ? SX_OK
                         : sx_error(SX_UNAVAILABLE, "%s: %s", m->url, nghttp2_strerror(c->stream));
}

sx_status sx_http2_calls_start(sx_http2_calls *m, const sx_http_call *http, size_t max_bytes,
                               sx_http_done *done, void *user)
{
    const int at = choose_lane(m);
    call *c = at >= 0 ? new_call(m) : NULL;
    if (at < 0) {
        return sx_error(SX_UNAVAILABLE, "%s: no connection has room for a call", m->url);
    }
    if (c == NULL) {
        return sx_no_memory("for a request to %s", m->url);
    }
    sx_buf_reset(&c->headers);
    sx_buf_reset(&c->answer);
    c->answer.max_bytes = max_bytes;
    c->lane = &m->lanes[at];
    c->body = http->body;
    c->body_sent = 0;
    c->answered = false;
    c->http_status = 0;
    const int timeout_ms = http->timeout_ms != 0 ? http->timeout_ms : TIMEOUT_MS;
    c->deadline_ns =
        timeout_ms == SX_HTTP_NO_TIMEOUT ? INT64_MAX : sx_now_ns() + timeout_ms * (int64_t)1000000;
    c->done = done;
    c->user = user;
    if (c->lane->calls == 0 && takes_no_more(c->lane)) {
        close_lane(c->lane);
    }
    sx_status status = c->lane->session != NULL || open_session(c->lane)
                           ? submit(c, http)
                           : sx_no_memory("for a connection to %s", m->url);
    if (status != SX_OK) {
        if (c->lane->calls == 0) {
            close_lane(c->lane);
        }
        c->lane = NULL;
        c->next_free = m->free;
        m->free = c;
        return status;
    }
    c->lane->calls++;
    m->last_lane = at;
    insert(m, c);
    return SX_OK;
}

/* Cancels what is late. Its stream may yet be in nghttp2, without a call. */
static void end_late(sx_http2_calls *m, int64_t now_ns)
{
    while (m->first != NULL && m->first->deadline_ns <= now_ns) {
        call *c = m->first;
        nghttp2_session *session = c->lane->session;
        nghttp2_session_set_stream_user_data(session, c->stream, NULL);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, c->stream, NGHTTP2_CANCEL);
        finish(c, sx_error(SX_DEADLINE_EXCEEDED, "%s: no complete response in time", m->url));
    }
}

/* ---- Connections ---- */

static void watch(lane *l, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = l};
    if (l->events != events) {
        epoll_ctl(l->owner->epoll_fd, l->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
                  l->transport.fd, &event);
        l->events = events;
    }
}

/* Begins to connect to the lane's address, or the first that follows for which that is possible. */
static void connect_lane(lane *l)
{
    int error = 0;
    for (; l->address != NULL; l->address = l->address->ai_next) {
        const struct addrinfo *to = l->address;
        const int one = 1,
                  fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || (connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS)) {
            error = errno;
            if (fd >= 0) {
                close(fd);
            }
            if (error == EAGAIN) { /* a UNIX socket, which has many that wait */
                l->retry_ns = sx_now_ns() + RETRY_MS * (int64_t)1000000;
                return;
            }
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        l->transport = (sx_transport){.fd = fd};
        l->state = CONNECTING;
        l->connect_by_ns = sx_now_ns() + CONNECT_MS * (int64_t)1000000;
        l->events = 0;
        watch(l, EPOLLOUT);
        return;
    }
    lose(l, sx_error(SX_UNAVAILABLE, "cannot connect: %s", strerror(error)));
}

static void try_next_address(lane *l, int error)
{
    sx_transport_close(&l->transport);
    l->state = CLOSED;
    if (l->address->ai_next == NULL) {
        l->owner->best = l->owner->found != NULL ? l->owner->found : l->owner->best;
        lose(l, sx_error(SX_UNAVAILABLE, "cannot connect: %s", strerror(error)));
        return;
    }
    l->address = l->address->ai_next;
    connect_lane(l);
}

static void greet(lane *l)
{
    const sx_handshake shaken = sx_transport_handshake(&l->transport);
    if (shaken == SX_HANDSHAKE_WANTS_READ || shaken == SX_HANDSHAKE_WANTS_WRITE) {
        watch(l, shaken == SX_HANDSHAKE_WANTS_READ ? EPOLLIN : EPOLLOUT);
        return;
    }
    sx_status status = l->transport.tls != NULL
                           ? sx_tls_client_check(&l->transport, shaken == SX_HANDSHAKE_DONE)
                           : SX_OK;
    if (status != SX_OK) {
        lose(l, status);
        return;
    }
    l->state = OPEN;
    l->owner->best = l->address;
    watch(l, EPOLLIN);
}

static void on_connected(lane *l)
{
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(l->transport.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        try_next_address(l, error);
    } else if (l->owner->tls != NULL && !sx_tls_client_begin(l->owner->tls, &l->transport)) {
        lose(l, sx_no_memory("for TLS"));
    } else {
        l->state = GREETING;
        greet(l);
    }
}

/* Sends what the session has, as far as the socket takes it. */
static void flush(lane *l)
{
    for (bool more = true, full = false; !full;) {
        while (more && l->out.size < WRITE_BYTES) {
            const uint8_t *data = NULL;
            const ssize_t size = nghttp2_session_mem_send(l->session, &data);
            if (size < 0) {
                lose(l, sx_error(SX_UNAVAILABLE, "%s", nghttp2_strerror((int)size)));
                return;
            }
            more = size > 0;
            sx_buf_append(&l->out, data, (size_t)size);
        }
        if (l->out.failed != 0) {
            lose(l, sx_no_memory("for requests"));
            return;
        }
        if (l->out.size == 0) {
            break;
        }
        const struct iovec part = {l->out.data, l->out.size};
        const ssize_t sent = sx_transport_send(&l->transport, &part, 1);
        if (sent < 0 && errno != EAGAIN) {
            lose(l, sx_error(SX_UNAVAILABLE, "connection lost: %s", strerror(errno)));
            return;
        }
        const size_t left = l->out.size - (size_t)SX_MAX(sent, (ssize_t)0);
        memmove(l->out.data, l->out.data + l->out.size - left, left);
        l->out.size = left;
        full = left > 0;
    }
    if (l->out.size == 0 && nghttp2_session_want_read(l->session) == 0 &&
        nghttp2_session_want_write(l->session) == 0) {
        lose(l, sx_error(SX_UNAVAILABLE, "the server has closed the connection"));
        return;
    }
    watch(l, EPOLLIN | (l->out.size > 0 ? (uint32_t)EPOLLOUT : 0));
}

static void receive(lane *l)
{
    do {
        const ssize_t got = sx_transport_recv(&l->transport, l->owner->in, READ_BYTES);
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got <= 0) {
            lose(l, sx_error(SX_UNAVAILABLE, "connection lost: %s",
                             got == 0 ? "closed by the server" : strerror(errno)));
            return;
        }
        const ssize_t used = nghttp2_session_mem_recv(l->session, l->owner->in, (size_t)got);
        if (used < 0) {
            lose(l, sx_error(SX_UNAVAILABLE, "%s", nghttp2_strerror((int)used)));
            return;
        }
    } while (sx_transport_pending(&l->transport));
}

/* ---- Waiting ---- */

/* Opens connections that calls wait for, sends what there is, ends what is late. */
static void act(sx_http2_calls *m)
{
    const int64_t now_ns = sx_now_ns();
    end_late(m, now_ns);
    for (int i = 0; i < m->lane_count; i++) {
        lane *l = &m->lanes[i];
        if (l->state == OPEN) {
            flush(l);
        } else if (l->state == CLOSED && l->calls > 0 && now_ns >= l->retry_ns) {
            l->address = m->best;
            connect_lane(l);
        } else if (l->state != CLOSED && now_ns >= l->connect_by_ns) {
            try_next_address(l, ETIMEDOUT);
        }
    }
}

static int64_t next_time(const sx_http2_calls *m, int64_t until_ns)
{
    int64_t next_ns = m->first != NULL ? SX_MIN(until_ns, m->first->deadline_ns) : until_ns;
    for (int i = 0; i < m->lane_count; i++) {
        const lane *l = &m->lanes[i];
        if (l->state == CONNECTING || l->state == GREETING) {
            next_ns = SX_MIN(next_ns, l->connect_by_ns);
        } else if (l->state == CLOSED && l->calls > 0) {
            next_ns = SX_MIN(next_ns, l->retry_ns);
        }
    }
    return next_ns;
}

static void on_event(lane *l, uint32_t events)
{
    if (l->state == CONNECTING) {
        on_connected(l);
    } else if (l->state == GREETING) {
        greet(l);
    } else if (l->state == OPEN && (events & ~(uint32_t)EPOLLOUT) != 0) {
        receive(l);
    } /* EPOLLOUT: see act() */
}

sx_status sx_http2_calls_wait(sx_http2_calls *m, int64_t until_ns)
{
    struct epoll_event events[EVENTS];
    bool interrupted = false;
    m->ended = false;
    do {
        act(m);
        const int64_t wait_ns = next_time(m, until_ns) - sx_now_ns();
        if (!m->ended && wait_ns > 0) {
            interrupted = !sx_wait_readable(m->epoll_fd, wait_ns);
        }
        const int count = epoll_wait(m->epoll_fd, events, EVENTS, 0);
        for (int i = 0; i < count; i++) {
            on_event(events[i].data.ptr, events[i].events);
        }
    } while (!m->ended && !interrupted && sx_now_ns() < until_ns);
    return SX_OK;
}
