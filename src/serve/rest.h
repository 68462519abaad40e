/* The REST API over the HTTP server: routes, error bodies, status, metadata, metrics, and predict,
 * which is a call (call.h): gunzip -> parse into tensors -> run -> print -> respond.
 *
 * A request is refused if the executor's queue is full (503). Memory is charged to the request's
 * budget before it is allocated: 413 if it exceeds the limit of one request, 429 if other requests
 * use the memory. Work stops when the deadline passes (504) or the client closes its connection.
 * Responses 429 and 503 have a Retry-After header. */
#ifndef SX_SERVE_REST_H
#define SX_SERVE_REST_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

#include "net/http_server.h"
#include "serve/call.h"
#include "serve/managed.h"
#include "serve/predict_json.h"

typedef struct sx_rest sx_rest;

/* A zero takes the default in the comment. */
typedef struct sx_rest_config {
    sx_calls *calls;     /* required; borrowed until destroy */
    sx_managed *managed; /* models that clients create; likewise; NULL = none */
    bool secure;         /* the address of REST has TLS */
    int loops;           /* of the HTTP server; 1 */
    bool cors;
    bool identities;          /* requests need one: pages of other origins may send theirs */
    const char *metrics_path; /* NULL = none */
    const sx_budget *memory;  /* of all requests, for the metrics; NULL = none */
    sx_batcher *batcher;      /* likewise; NULL = none */
    sx_float_format float_format;
} sx_rest_config;

SX_MUST_USE sx_status sx_rest_create(const sx_rest_config *config, sx_rest **out_rest);
void sx_rest_destroy(sx_rest *rest); /* no more requests may arrive; NULL is allowed */

/* The sx_http_handler; `rest` is its user. */
void sx_rest_handle(void *rest, sx_http_exchange *exchange);

/* Sets the server whose counters the metrics page shows; call it before the server starts. */
void sx_rest_set_server(sx_rest *rest, const sx_http_server *server);

#endif
