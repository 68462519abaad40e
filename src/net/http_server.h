/* An HTTP server: event loops that read complete requests and pass them to one function. It speaks
 * HTTP/1.1 and HTTP/2, with and without TLS: a connection whose first bytes are the preface of
 * HTTP/2 is one.
 *
 * Life of a request:
 *   accept -> read head -> read body -> handler(exchange) ... sx_http_respond(exchange) -> write
 * The handler runs on a loop's thread and delays all connections of that loop until it returns: it
 * may compute a quick response itself, but must not wait, and passes longer work to another thread.
 * sx_http_respond is called once per request, from any thread; the exchange must not be used
 * afterwards. HTTP/1.1 serves the requests of a connection one at a time, in order; pipelined ones
 * wait in the read buffer. HTTP/2 serves up to max_streams of them at once.
 *
 * Every resource is bounded: head, body, memory of all requests, time for each phase, connections;
 * a slow or silent peer is disconnected by a timer. When descriptors run out, the server closes new
 * connections and continues.
 *
 * Life cycle: create (binds) -> start (threads) -> drain -> destroy. */
#ifndef SX_NET_HTTP_SERVER_H
#define SX_NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/budget.h"
#include "base/cancel.h"
#include "net/http1.h"
#include "net/tls.h"

typedef struct sx_http_server sx_http_server;
typedef struct sx_http_exchange sx_http_exchange;
typedef struct sx_http_response sx_http_response;

/* Called when a complete request has arrived; see above. */
typedef void sx_http_handler(void *user, sx_http_exchange *exchange);

/* Where to listen. A zero takes the default in the comment. */
typedef struct sx_http_address {
    const char *host; /* every address */
    int port;         /* the kernel chooses */
    const char *path; /* of a UNIX socket, instead of host and port */
    int shared_fd;    /* > 0: a socket that listens already, instead of these (sx_listen_shared) */
    sx_tls *tls;      /* none: plain; must outlive the server */
} sx_http_address;

/* A zero takes the default in the comment. */
typedef struct sx_http_config {
    const sx_http_address *addresses; /* [address_count] */
    int address_count;                /* 0: one address, of defaults */
    int loops;                        /* 1 */
    int backlog;                      /* 1024 */
    int max_connections;              /* 10,000, over all loops */
    int max_streams;                  /* 128 requests at a time of an HTTP/2 connection */
    size_t max_head_bytes;            /* 16 KiB */
    size_t max_body_bytes; /* 64 MiB, as sent; lowered to max_request_bytes and half of `memory` */
    /* Memory of all requests: bodies from their first byte on, what handlers charge, responses
     * until they are sent. Bodies are admitted while half of it is free (else 429). Default: no
     * limit */
    sx_budget *memory;
    size_t max_request_bytes; /* of `memory`, for one request; no limit */
    int head_timeout_ms;      /* 10 s, from the first byte of a request to its last header */
    int body_timeout_ms; /* 30 s without a byte; 30 s in total plus 1 s for every 64 KiB received */
    int write_timeout_ms; /* 30 s, likewise for bytes sent */
    int idle_timeout_ms; /* 60 s between requests; an HTTP/2 connection that answers a PING stays */
    int request_timeout_ms; /* 30 s for the handler; then 504, and its response is discarded */
    sx_http_handler *handler;
    void *user;
    /* Whether the handler takes a request in parts, of HTTP/2: it is called for what has arrived,
     * and again for what comes later; see sx_http_request_await. NULL: none */
    bool (*takes_parts)(const sx_http_head *head);
    /* Called when a connection, or a stream of HTTP/2, is closed because its peer (of
     * sx_http_request_remote) has not read a response in time; on the loop's thread. NULL: none */
    void (*on_unread)(void *user, const char *remote);
    /* Called with the response of the handler, or the last part of it, by the thread that responds;
     * NULL: none */
    void (*on_response)(void *user, const sx_http_exchange *exchange,
                        const sx_http_response *response);
} sx_http_config;

/* Binds the addresses and prepares the loops. Errors: as sx_listen; RESOURCE_EXHAUSTED. `config` is
 * copied, and its addresses are only used during the call. */
SX_MUST_USE sx_status sx_http_server_create(const sx_http_config *config,
                                            sx_http_server **out_server);
int sx_http_server_port(const sx_http_server *server, int address); /* 0 for a UNIX socket */
SX_MUST_USE sx_status sx_http_server_start(sx_http_server *server);

/* Stops accepting; finishes running requests (with Connection: close, or GOAWAY) and closes idle
 * connections.
 * Returns true when all connections have ended, false if `grace_ms` passed first; the remaining
 * connections are then closed. Call it once. */
bool sx_http_server_drain(sx_http_server *server, int grace_ms);

/* Waits for the threads and frees everything. Drains with grace 0 if not drained before. Handlers
 * must still respond to every exchange. NULL is allowed. */
void sx_http_server_destroy(sx_http_server *server);

typedef struct sx_http_stats {
    uint64_t accepted; /* connections */
    uint64_t shed;     /* of these, closed at once: out of descriptors, or over max_connections */
    uint64_t requests; /* handed to the handler */
    uint64_t answered; /* of these, by the handler */
    uint64_t refused;  /* responses of the server itself: protocol errors, timeouts */
    uint64_t connections; /* open now */
} sx_http_stats;

sx_http_stats sx_http_server_stats(const sx_http_server *server);

/* ---- Interface for handlers ---- */

/* Borrowed until sx_http_respond. */
const sx_http_head *sx_http_request_head(const sx_http_exchange *exchange);
sx_bytes sx_http_request_body(const sx_http_exchange *exchange); /* still content-encoded */
/* When the loop's thread began to look at what has arrived, of sx_now_ns(): what its handlers take
 * since then, every connection of the loop waits for. Only in the handler itself. */
int64_t sx_http_request_turn_ns(const sx_http_exchange *exchange);
/* The number of the loop whose thread runs the handler, in [0, loops): for per-thread state. */
int sx_http_request_loop(const sx_http_exchange *exchange);
/* The number of the address at which the connection was accepted. */
int sx_http_request_address(const sx_http_exchange *exchange);
/* The common name in the client's certificate, which the TLS port has verified; NULL: none. */
const char *sx_http_request_peer(const sx_http_exchange *exchange);
/* The address and port of the peer, as text; "": a UNIX socket. */
const char *sx_http_request_remote(const sx_http_exchange *exchange);
/* When it was complete; only in on_response, as what follows. */
int64_t sx_http_request_begun_ns(const sx_http_exchange *exchange);

/* What a request turned out to be about, for who logs it. */
typedef struct sx_http_subject {
    char name[96]; /* cut if longer; "": not known */
    int64_t version;
} sx_http_subject;
void sx_http_request_set_subject(sx_http_exchange *exchange, const char *name, int64_t version);
const sx_http_subject *sx_http_request_subject(const sx_http_exchange *exchange);
/* Bodies that the connection's loop receives from now on begin where that aligns what lies at the
 * offset of `part`, in the body, to 8 bytes: of requests that are alike, it can be used in place.
 * HTTP/2 only. */
void sx_http_request_align(sx_http_exchange *exchange, const void *part);
/* Tells the handler to stop: at the request's deadline, or when the peer has closed its connection
 * (or its sending half, which looks the same). The handler must still respond. */
const sx_cancel *sx_http_request_cancel(const sx_http_exchange *exchange);
/* Changes the deadline, of sx_now_ns(); INT64_MAX = none. Only in the handler itself, before the
 * exchange is passed to another thread. */
void sx_http_request_set_deadline(sx_http_exchange *exchange, int64_t deadline_ns);
/* The memory budget of this request; its charges are released when the response has been sent. */
sx_budget *sx_http_request_budget(sx_http_exchange *exchange);

/* ---- A request in parts; all of this on the loop's thread ---- */

/* Whether nothing comes any more. */
bool sx_http_request_is_whole(const sx_http_exchange *exchange);
/* The first bytes of the body are done with. */
void sx_http_request_take(sx_http_exchange *exchange, size_t size);
/* Instead of a response, or after a part of one (on_sent): the handler is called again when more
 * has arrived, or the request has ended; its body is then what was not taken, and what came. */
void sx_http_request_await(sx_http_exchange *exchange);

/* Memory for the handler's own state of the request, so that queuing needs no allocation. It is
 * not zeroed. */
enum { SX_HTTP_SCRATCH = 1024 };
void *sx_http_request_scratch(sx_http_exchange *exchange);

struct sx_http_response {
    int status;
    const char *content_type; /* static, or in the exchange's scratch memory; NULL = none */
    const char *headers;      /* more header lines, each with CRLF; likewise */
    char *body;               /* from sx_alloc; always takes ownership; NULL = empty */
    size_t body_size;
    int retry_after_s; /* a Retry-After header; 0 = none */
    /* The next fields are HTTP/2's. So many bytes behind the body, in the same block, are header
     * lines that are sent after it. If there is no body at all, they are part of the head. */
    size_t trailers_size;
    /* Not NULL: the response goes on. The function is called on the loop's thread when this part
     * has been sent; the exchange is then the handler's again, which responds with the next part.
     * Status and headers count in the first part only. */
    void (*on_sent)(void *user, sx_http_exchange *exchange);
};

void sx_http_respond(sx_http_exchange *exchange, const sx_http_response *response);

/* The standard phrase, "Not Found"; "Unknown" for codes outside the table. Static. */
const char *sx_http_reason(int status);

#endif
