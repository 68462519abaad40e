/* An HTTP/2 client for tests, over nghttp2: one connection, any number of streams, each waited for
 * with a limit. And frames as bytes, for peers that misbehave. */
#ifndef SX_TESTS_NET_HTTP2_CLIENT_H
#define SX_TESTS_NET_HTTP2_CLIENT_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "net/client.h"

enum { H2_STREAMS = 256, H2_SHOWN = 4096 };

struct h2_answer {
    int status;
    char fields[H2_SHOWN]; /* "name: value\n" of head and trailers */
    char body[H2_SHOWN];   /* its beginning, with a NUL */
    size_t body_size;
    const char *upload; /* the request's body */
    size_t upload_size, uploaded;
    bool closed;
    uint32_t error; /* why it was closed */
};

struct h2_client {
    int fd;
    nghttp2_session *session;
    struct h2_answer *answers; /* [H2_STREAMS], by (stream - 1) / 2 */
    bool goaway;
    uint32_t goaway_error;
};

static inline struct h2_answer *h2_answer(struct h2_client *client, int32_t id)
{
    return &client->answers[(id - 1) / 2];
}

static inline int h2_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                               const uint8_t *name, size_t name_size, const uint8_t *value,
                               size_t value_size, uint8_t flags, void *user)
{
    struct h2_answer *answer = h2_answer(user, frame->hd.stream_id);
    const size_t used = strlen(answer->fields);
    (void)session;
    (void)flags;
    (void)name_size;
    if (strcmp((const char *)name, ":status") == 0) {
        answer->status = (int)strtol((const char *)value, NULL, 10);
    }
    snprintf(answer->fields + used, sizeof(answer->fields) - used, "%s: %.*s\n", (const char *)name,
             (int)value_size, (const char *)value);
    return 0;
}

static inline int h2_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                             const uint8_t *data, size_t size, void *user)
{
    struct h2_answer *answer = h2_answer(user, id);
    (void)session;
    (void)flags;
    for (size_t i = 0; i < size && answer->body_size + i + 1 < sizeof(answer->body); i++) {
        answer->body[answer->body_size + i] = (char)data[i];
    }
    answer->body_size += size;
    return 0;
}

static inline int h2_on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)session;
    h2_answer(user, id)->closed = true;
    h2_answer(user, id)->error = error;
    return 0;
}

static inline int h2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_client *client = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->goaway = true;
        client->goaway_error = frame->goaway.error_code;
    }
    return 0;
}

static inline ssize_t h2_upload(nghttp2_session *session, int32_t id, uint8_t *out, size_t length,
                                uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct h2_answer *answer = h2_answer(user, id);
    const size_t left = answer->upload_size - answer->uploaded;
    const size_t size = left < length ? left : length;
    (void)session;
    (void)source;
    memcpy(out, answer->upload + answer->uploaded, size);
    answer->uploaded += size;
    *flags |= size == left ? NGHTTP2_DATA_FLAG_EOF : 0;
    return (ssize_t)size;
}

/* Over a connected socket; `window` is what the server may send of one stream. */
static inline void h2_open_on(struct h2_client *client, int fd, uint32_t window)
{
    nghttp2_session_callbacks *callbacks;
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    memset(client, 0, sizeof(*client));
    client->fd = fd;
    client->answers = calloc(H2_STREAMS, sizeof(client->answers[0]));
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, h2_on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_on_frame);
    nghttp2_session_client_new(&client->session, callbacks, client);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(client->session, 0, settings, 1);
}

static inline void h2_open(struct h2_client *client, int port)
{
    h2_open_on(client, client_connect(port), 1 << 20);
}

static inline void h2_close(struct h2_client *client)
{
    nghttp2_session_del(client->session);
    free(client->answers);
    close(client->fd);
}

/* Begins a request, a POST if there is a body, with more header fields: names and values in turn,
 * then NULL. Returns the stream. */
static inline int32_t h2_request(struct h2_client *client, const char *path, const char *body,
                                 size_t size, const char *const *more)
{
    nghttp2_nv fields[40] = {{0}};
    size_t count = 0;
    const char *fixed[] = {":method",    body != NULL ? "POST" : "GET",
                           ":scheme",    "http",
                           ":authority", "localhost",
                           ":path",      path,
                           NULL};
    for (const char *const *list = fixed; list != NULL; list = list == fixed ? more : NULL) {
        for (size_t i = 0; list[i] != NULL; i += 2) {
            fields[count++] = (nghttp2_nv){(uint8_t *)list[i], (uint8_t *)list[i + 1],
                                           strlen(list[i]), strlen(list[i + 1]), 0};
        }
    }
    const nghttp2_data_provider upload = {.read_callback = h2_upload};
    const int32_t id = nghttp2_submit_request(client->session, NULL, fields, count,
                                              body != NULL ? &upload : NULL, NULL);
    if (id > 0) {
        h2_answer(client, id)->upload = body;
        h2_answer(client, id)->upload_size = size;
    }
    return id;
}

/* Sends what is to be sent, and reads once, waiting at most so long; false if the connection is at
 * its end or nothing came. */
static inline bool h2_turn(struct h2_client *client, int wait_ms)
{
    const uint8_t *data;
    char in[65536];
    ssize_t size;
    while ((size = nghttp2_session_mem_send(client->session, &data)) > 0) {
        if (!client_send(client->fd, (const char *)data, (size_t)size)) {
            break;
        }
    }
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};
    if (poll(&wait, 1, wait_ms) <= 0) {
        return false;
    }
    size = recv(client->fd, in, sizeof(in), 0);
    return size > 0 &&
           nghttp2_session_mem_recv(client->session, (const uint8_t *)in, (size_t)size) >= 0;
}

/* The answer of a stream, when it is complete. */
static inline struct h2_answer *h2_wait(struct h2_client *client, int32_t id)
{
    struct h2_answer *answer = h2_answer(client, id);
    while (!answer->closed && h2_turn(client, 20000)) {
    }
    return answer;
}

/* ---- Frames as bytes ---- */

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Writes a frame; returns its size. */
static inline size_t h2_frame(char *out, int type, int flags, uint32_t stream, const void *payload,
                              size_t size)
{
    const unsigned char head[9] = {
        (unsigned char)(size >> 16),   (unsigned char)(size >> 8),   (unsigned char)size,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    memcpy(out, head, 9);
    if (size > 0) {
        memcpy(out + 9, payload, size);
    }
    return 9 + size;
}

/* A head in literals without indexing: GET of the path. */
static inline size_t h2_head(char *out, int flags, uint32_t stream, const char *path)
{
    char block[256];
    size_t size = 0;
    block[size++] = (char)0x82; /* :method GET */
    block[size++] = (char)0x86; /* :scheme http */
    block[size++] = 0x01;       /* :authority */
    block[size++] = 1;
    block[size++] = 'a';
    block[size++] = 0x04; /* :path */
    block[size++] = (char)strlen(path);
    memcpy(block + size, path, strlen(path));
    size += strlen(path);
    return h2_frame(out, 1, flags, stream, block, size);
}

/* Reads until the peer closes; the error of its GOAWAY, or -1 if there was none. */
static inline int h2_read_goaway(int fd)
{
    int error = -1;
    for (;;) {
        unsigned char head[9], payload[65536];
        for (size_t i = 0; i < 9; i++) {
            const int c = client_byte(fd);
            if (c < 0) {
                return error;
            }
            head[i] = (unsigned char)c;
        }
        const size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        for (size_t i = 0; i < size; i++) {
            const int c = client_byte(fd);
            if (c < 0) {
                return error;
            }
            payload[i % sizeof(payload)] = (unsigned char)c;
        }
        if (head[3] == 7) {
            error = payload[4] << 24 | payload[5] << 16 | payload[6] << 8 | payload[7];
        }
    }
}

#endif
