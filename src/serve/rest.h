/* The REST API over the HTTP server: routes, error bodies, status, metadata, metrics, and predict,
 * which runs on the executor's threads.
 *
 * Life of a predict request:
 *   handler (loop thread)   route, take hold of the model's version, queue
 *   executor thread         gunzip -> parse into tensors -> run -> print -> respond
 * A model version that has answered in less time than it takes to wake another thread is run by the
 * loop's thread itself, while its requests stay small and quick; images are always left to the
 * executor.
 *
 * A request waits in the executor's queue, and is refused there when that is full (503). What it
 * needs is charged to its memory budget first: 413 if that exceeds what one request may have, 429
 * if other requests hold the memory. Work stops when the deadline passes (504) or the client closes
 * its connection. 429 and 503 come with Retry-After. */
#ifndef SX_SERVE_REST_H
#define SX_SERVE_REST_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

#include "net/http_server.h"
#include "serve/lifecycle.h"
#include "serve/predict_json.h"

typedef struct sx_rest sx_rest;

/* A zero takes the default in the comment. */
typedef struct sx_rest_config {
    sx_lifecycle **models; /* [model_count]; borrowed until destroy */
    size_t model_count;
    int threads;           /* as many as processors */
    int loops;             /* of the HTTP server; 1 */
    size_t max_queued;     /* 1024 */
    size_t max_body_bytes; /* 64 MiB, after decompression */
    bool cors;
    const char *metrics_path; /* NULL = none */
    const sx_budget *memory;  /* of all requests, for the metrics; NULL = none */
    sx_float_format float_format;
} sx_rest_config;

SX_MUST_USE sx_status sx_rest_create(const sx_rest_config *config, sx_rest **out_rest);
/* Answers what is queued and ends the threads; later requests get 503. The models and the HTTP
 * server must still be there. Idempotent; NULL is fine. */
void sx_rest_stop(sx_rest *rest);
/* Stops, and frees: no request may come any more. NULL is fine. */
void sx_rest_destroy(sx_rest *rest);

/* The sx_http_handler; `rest` is its user. */
void sx_rest_handle(void *rest, sx_http_exchange *exchange);

/* The server whose counters the metrics page shows; before it starts. */
void sx_rest_set_server(sx_rest *rest, const sx_http_server *server);

/* The HTTP status of an error, as TensorFlow Serving maps them. */
int sx_rest_http_status(sx_code code);

#endif
