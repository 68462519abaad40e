/* One connection of the HTTP server; private to http_server.c and http_conn.c.
 *
 *            +-> HEAD -> BODY -> BUSY -> WRITE -+--> LINGER -> closed
 *            |                                  |
 *            +----------- keep-alive -----------+
 *
 *   HEAD    waiting for a request or reading its head (idle: no byte has arrived yet)
 *   BODY    reading the body
 *   BUSY    the exchange belongs to the handler
 *   WRITE   sending the response
 *   LINGER  our side is shut down; data from the peer is discarded for a while, so that the kernel
 *           does not reset the connection before the peer has read the response
 *
 * Read buffer:    | head | body if it fits, or chunk framing | pipelined ... | free |
 *                 0      head_size                           in_used         in_size
 * A body that fits after its head stays there (no copy); a larger one goes to `body`.
 *
 * A closed connection whose exchange is still with the handler is kept, without a descriptor, until
 * the handler responds. */
#ifndef SX_NET_HTTP_CONN_H
#define SX_NET_HTTP_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "net/http1.h"
#include "net/http_server.h"
#include "net/loop.h"

/* One event loop and its connections. Everything except the counters is used only by its thread. */
typedef struct sx_http_worker {
    sx_http_server *server;
    const sx_http_config *config;
    sx_loop *loop;
    int index;                  /* among the server's */
    struct sx_http_conn *conns; /* all, including closed ones still with the handler */
    int conn_count;
    atomic_int *open_connections; /* of the server */
    bool draining;
    void (*on_empty)(struct sx_http_worker *worker); /* draining and the last connection is gone */
    char date[40];                                   /* of the Date header, valid for date_second */
    int64_t date_second;
    atomic_uint_fast64_t accepted, shed, requests, refused, connections;
} sx_http_worker;

typedef enum sx_http_state {
    SX_CONN_HEAD,
    SX_CONN_BODY,
    SX_CONN_BUSY,
    SX_CONN_WRITE,
    SX_CONN_LINGER,
    SX_CONN_CLOSED,
} sx_http_state;

/* The part of a connection that the handler uses. */
struct sx_http_exchange {
    sx_http_head head;
    sx_bytes body;
    sx_cancel cancel;
    sx_http_response response; /* the handler's until `answered` is posted */
    sx_loop_task answered;
    struct sx_http_conn *conn;
    _Alignas(16) unsigned char scratch[SX_HTTP_SCRATCH];
};

typedef struct sx_http_conn {
    sx_http_worker *worker;
    struct sx_http_conn *next, **link; /* in worker->conns */
    sx_http_state state;
    sx_loop_io io;
    sx_loop_timer timer;
    sx_loop_task reap;   /* frees it, once closed */
    int64_t deadline_ns; /* of the current phase; the timer may be set earlier */
    bool with_handler;   /* the exchange is the handler's */
    bool keep_alive;     /* after this response */
    bool peer_finished;  /* has shut its side down */

    char *in; /* [in_size] */
    size_t in_size, in_used;
    size_t scanned;      /* of the head, see sx_http_head_parse */
    size_t request_size; /* bytes of `in` that belong to the current request */
    sx_buf body;         /* a body that does not fit behind its head, or was chunked */
    sx_budget budget;    /* of the current request */
    sx_http_chunks chunks;
    size_t phase_bytes;  /* transferred in this phase: received in BODY, sent in WRITE */
    int64_t progress_ns; /* time of the last transfer */

    char out_head[512];
    size_t out_head_size;
    char *out_body; /* heap, or NULL */
    size_t out_body_size;
    size_t out_sent; /* of head and body together */
    size_t lingered; /* bytes dropped */

    sx_http_exchange exchange;
} sx_http_conn;

/* The value of the Date header now; formatted once a second. Borrowed until the next call. */
const char *sx_http_worker_date(sx_http_worker *worker);

/* Takes ownership of `fd`; closes it if out of memory. */
void sx_http_conn_open(sx_http_worker *worker, int fd);
/* Starts draining: a connection without a complete request is closed soon, others after their
 * response. */
void sx_http_conn_drain(sx_http_conn *conn);
/* Closes the connection at once. It is freed after the handler has responded. */
void sx_http_conn_close(sx_http_conn *conn);

#endif
