/* An HTTP/1.1 server: event loops that read complete requests and pass them to one function.
 *
 * Life of a request:
 *   accept -> read head -> read body -> handler(exchange) ... sx_http_respond(exchange) -> write
 * The handler runs on a loop's thread and delays all connections of that loop until it returns: it
 * may compute a quick response itself, but must not wait, and passes longer work to another thread.
 * sx_http_respond is called once per request, from any thread; the exchange must not be used
 * afterwards. Requests of one connection are served one at a time, in order; pipelined ones wait in
 * the read buffer.
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

typedef struct sx_http_server sx_http_server;
typedef struct sx_http_exchange sx_http_exchange;

/* Called when a complete request has arrived; see above. */
typedef void sx_http_handler(void *user, sx_http_exchange *exchange);

/* A zero takes the default in the comment. */
typedef struct sx_http_config {
    const char *host;      /* every address */
    int port;              /* the kernel chooses */
    int loops;             /* 1 */
    int backlog;           /* 1024 */
    int max_connections;   /* 10,000, over all loops */
    size_t max_head_bytes; /* 16 KiB */
    size_t max_body_bytes; /* 64 MiB, as sent; lowered to max_request_bytes and half of `memory` */
    /* Memory of all requests: bodies from their first byte on, what handlers charge, responses
     * until they are sent. Bodies are admitted while half of it is free (else 429). Default: no
     * limit */
    sx_budget *memory;
    size_t max_request_bytes; /* of `memory`, for one request; no limit */
    int head_timeout_ms;      /* 10 s, from the first byte of a request to its last header */
    int body_timeout_ms; /* 30 s without a byte; 30 s in total plus 1 s for every 64 KiB received */
    int write_timeout_ms;   /* 30 s, likewise for bytes sent */
    int idle_timeout_ms;    /* 60 s between requests */
    int request_timeout_ms; /* 30 s for the handler; then 504, and its response is discarded */
    sx_http_handler *handler;
    void *user;
} sx_http_config;

/* Binds the port and prepares the loops. Errors: as sx_listen; RESOURCE_EXHAUSTED. `config` is
 * copied except `host`, which is only used during the call. */
SX_MUST_USE sx_status sx_http_server_create(const sx_http_config *config,
                                            sx_http_server **out_server);
int sx_http_server_port(const sx_http_server *server);
SX_MUST_USE sx_status sx_http_server_start(sx_http_server *server);

/* Stops accepting; finishes running requests (with Connection: close) and closes idle connections.
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
    uint64_t refused;  /* responses of the server itself: protocol errors, timeouts */
    uint64_t connections; /* open now */
} sx_http_stats;

sx_http_stats sx_http_server_stats(const sx_http_server *server);

/* ---- Interface for handlers ---- */

/* Borrowed until sx_http_respond. */
const sx_http_head *sx_http_request_head(const sx_http_exchange *exchange);
sx_bytes sx_http_request_body(const sx_http_exchange *exchange); /* still content-encoded */
/* The number of the loop whose thread runs the handler, in [0, loops): for per-thread state. */
int sx_http_request_loop(const sx_http_exchange *exchange);
/* Tells the handler to stop: at the request's deadline, or when the peer has closed its connection
 * (or its sending half, which looks the same). The handler must still respond. */
const sx_cancel *sx_http_request_cancel(const sx_http_exchange *exchange);
/* The memory budget of this request; its charges are released when the response has been sent. */
sx_budget *sx_http_request_budget(sx_http_exchange *exchange);

/* Memory for the handler's own state of the request, zeroed, so that queuing needs no allocation.
 */
enum { SX_HTTP_SCRATCH = 192 };
void *sx_http_request_scratch(sx_http_exchange *exchange);

typedef struct sx_http_response {
    int status;
    const char *content_type; /* static; NULL = none */
    const char *headers; /* more header lines, each with CRLF; static or outliving the call; NULL */
    char *body;          /* from sx_alloc; always takes ownership; NULL = empty */
    size_t body_size;
    int retry_after_s; /* a Retry-After header; 0 = none */
} sx_http_response;

void sx_http_respond(sx_http_exchange *exchange, const sx_http_response *response);

/* The standard phrase, "Not Found"; "Unknown" for codes outside the table. Static. */
const char *sx_http_reason(int status);

#endif
