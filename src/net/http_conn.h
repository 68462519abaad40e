/* A connection of the HTTP server: what both protocols share. Private to http_server.c,
 * http_conn.c, http1_conn.c, http2_conn.c and http2_stream.c.
 *
 *   accepted -> handshake (TLS) -> HTTP/1.1 -> linger -> closed
 *                                     |  \--------------/  |
 *                                     \-> HTTP/2 ----------/
 *
 * Every connection begins as HTTP/1.1; if its first bytes are the preface of HTTP/2, another
 * connection takes over its transport. Lingering: our side is shut down, and what the peer still
 * sends is discarded for a while, so that the kernel does not reset the connection before the peer
 * has read the last response.
 *
 * A closed connection some of whose exchanges are still with the handler is kept, without a
 * descriptor, until the handler has responded to them. */
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
#include "net/transport.h"

typedef struct sx_http_conn sx_http_conn;

/* One event loop and its connections. Everything except the counters is used only by its thread. */
typedef struct sx_http_worker {
    sx_http_server *server;
    const sx_http_config *config;
    sx_loop *loop;
    int index;           /* among the server's */
    sx_http_conn *conns; /* all, including closed ones still with the handler */
    int conn_count;
    atomic_int *open_connections; /* of the server */
    bool draining;
    void (*on_empty)(struct sx_http_worker *worker); /* draining and the last connection is gone */
    char date[40];                                   /* of the Date header, valid for date_second */
    int64_t date_second;
    sx_buf in, out;        /* of HTTP/2: what is being read or written in this turn */
    atomic_uint body_lead; /* of HTTP/2: bytes before a body, less than 8 */
    atomic_uint_fast64_t accepted, shed, requests, answered, refused, connections;
} sx_http_worker;

/* What a protocol does with its connections. */
typedef struct sx_http_protocol {
    void (*on_event)(sx_http_conn *conn, uint32_t events);
    void (*on_timer)(sx_http_conn *conn); /* conn->deadline_ns may have passed */
    /* Draining begins: a connection without a complete request is closed soon, others after their
     * responses. */
    void (*drain)(sx_http_conn *conn);
    /* The connection is closed: requests its exchanges to stop. Whether the handler still holds one
     * of them; the last of them then posts `reap`. */
    bool (*abandon)(sx_http_conn *conn);
    void (*destroy)(sx_http_conn *conn); /* frees it */
} sx_http_protocol;

/* The first member of each protocol's connection. */
struct sx_http_conn {
    const sx_http_protocol *protocol;
    sx_http_worker *worker;
    sx_http_conn *next, **link; /* in worker->conns */
    sx_transport transport;
    sx_loop_io io;
    sx_loop_timer timer;
    sx_loop_task reap;   /* frees it, once closed */
    sx_loop_task again;  /* reads what the transport holds */
    int64_t deadline_ns; /* of the current phase; the timer may be set earlier */
    size_t lingered;     /* bytes dropped */
    bool again_posted, handshaking, lingering, closed;
};

/* A request; the part of its state that the handler uses. */
struct sx_http_exchange {
    sx_http_head head;
    sx_bytes body;
    unsigned body_lead; /* bytes before it */
    sx_cancel cancel;
    sx_budget budget;
    sx_http_response response; /* the handler's until `answered` is posted */
    sx_loop_task answered;     /* the protocol's */
    sx_http_worker *worker;
    const char *peer, *remote; /* the transport's */
    const int *address;        /* likewise */
    int64_t begun_ns;
    sx_http_subject subject;
    bool partial;                              /* more of the request may come */
    size_t taken;                              /* of the body */
    void (*await)(sx_http_exchange *exchange); /* of a request that is taken in parts */
    _Alignas(16) unsigned char scratch[SX_HTTP_SCRATCH];
};

/* Progress of a transfer, whose deadline moves as long as bytes are transferred. */
typedef struct sx_http_pace {
    int64_t deadline_ns; /* without any byte */
    int64_t progress_ns; /* time of the last byte */
    size_t bytes;
} sx_http_pace;

void sx_http_pace_begin(sx_http_pace *pace, int64_t now_ns, int timeout_ms);
void sx_http_pace_note(sx_http_pace *pace, int64_t now_ns, size_t bytes);
int64_t sx_http_pace_deadline(const sx_http_pace *pace, int timeout_ms);

enum {
    SX_HTTP_IN_BODY_BYTES = 16 * 1024, /* a body of this size is always admitted */
    SX_HTTP_DRAIN_READ_MS = 250,       /* a request may be in transit when draining begins */
    SX_HTTP_RETRY_AFTER_S = 1,
};
#define SX_HTTP_MS ((int64_t)1000000)

/* ---- Connections ---- */

/* Adds a connection, whose `protocol` is set, to the worker's. On failure the transport is closed
 * and the connection freed later. */
void sx_http_conn_begin(sx_http_conn *conn, sx_http_worker *worker, sx_transport transport);
/* Takes the transport away from a connection, which is freed later. */
sx_transport sx_http_conn_hand_over(sx_http_conn *conn);
/* Closes the connection at once. It is freed after the handler has responded. */
void sx_http_conn_close(sx_http_conn *conn);
/* The server drains. */
void sx_http_conn_drain(sx_http_conn *conn);
/* Closes it when the peer has read all that was sent. */
void sx_http_conn_linger(sx_http_conn *conn);

/* Sets the events to wait for; also of bytes that the transport already holds. */
void sx_http_conn_watch(sx_http_conn *conn, uint32_t events);
void sx_http_conn_set_deadline(sx_http_conn *conn, int64_t deadline_ns);
void sx_http_conn_set_timeout(sx_http_conn *conn, int timeout_ms); /* from now */

/* Takes ownership of the transport; closes it if out of memory. */
void sx_http1_open(sx_http_worker *worker, sx_transport transport);
/* The same for a connection that began with `first`, the preface of HTTP/2. */
void sx_http2_open(sx_http_worker *worker, sx_transport transport, sx_bytes first);

/* ---- Requests ---- */

/* Prepares an exchange for its next request; `answered` must be set. */
void sx_http_exchange_init(sx_http_exchange *exchange, sx_http_worker *worker,
                           const sx_transport *transport);
/* Passes a complete request to the handler. */
void sx_http_exchange_begin(sx_http_exchange *exchange, sx_bytes body);
/* Says that its response was not read in time. */
void sx_http_exchange_unread(const sx_http_exchange *exchange);
/* Whether the buffer of a body may grow by `more` bytes. Large bodies are admitted while half of
 * the memory is free, so that unfinished ones leave room for running requests. */
bool sx_http_body_is_admitted(const sx_http_worker *worker, const sx_buf *body, size_t more);
/* The status for a body that could not grow: the memory limit is reached (429), or malloc failed
 * (503); and why, in `reason`. */
enum { SX_HTTP_REASON = 200 };
int sx_http_memory_failure(const sx_http_exchange *exchange, char reason[SX_HTTP_REASON]);
/* The response of the server itself; `reason` must need no escapes in JSON. */
sx_http_response sx_http_refusal(int status, const char *reason);

/* The value of the Date header now; formatted once a second. Borrowed until the next call. */
const char *sx_http_worker_date(sx_http_worker *worker);

#endif
