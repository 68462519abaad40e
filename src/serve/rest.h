/* The REST API over the HTTP server: routes, error bodies, status, metadata, metrics, and predict,
 * which runs on the executor's threads, or on the loop's thread if it is known to be quick.
 *
 * Life of a predict request:
 *   handler (loop thread)   route, acquire the model's version, queue
 *   executor thread         gunzip -> parse into tensors -> run -> print -> respond
 * Small requests to a version whose recent requests took less time than waking another thread are
 * run by the loop's thread itself; requests that decode images always go to the executor.
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
#include "serve/executor.h"
#include "serve/manager.h"
#include "serve/predict_json.h"

typedef struct sx_rest sx_rest;

/* A zero takes the default in the comment. */
typedef struct sx_rest_config {
    sx_manager *manager;   /* required; borrowed until destroy */
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
/* Finishes the queued requests and ends the threads; later requests get 503. The models and the
 * HTTP server must still exist. Idempotent; NULL is allowed. */
void sx_rest_stop(sx_rest *rest);
/* Stops and frees; no more requests may arrive. NULL is allowed. */
void sx_rest_destroy(sx_rest *rest);

/* The sx_http_handler; `rest` is its user. */
void sx_rest_handle(void *rest, sx_http_exchange *exchange);

/* ---- Calls ---- */

/* A request on a model's version, of this or another front end over the same models and threads. It
 * lives in the exchange's scratch memory, first in a struct of the front end's. */
typedef struct sx_rest_call {
    sx_executor_job job; /* its function runs the request */
    sx_rest *rest;
    sx_http_exchange *exchange;
    sx_served *servable;
    int64_t arrived_ns, begun_ns;
    bool on_executor;
} sx_rest_call;

/* Acquires a version for the call. Errors: those of sx_manager_acquire; they are counted. */
SX_MUST_USE sx_status sx_rest_acquire(sx_rest_call *call, const sx_model_spec *spec);
/* Runs the call's function: at once, on the loop's thread, if the version is known to be quick and
 * the request is small, or on the executor; `worker` is its thread, or threads + loop. Without a
 * version, which the function then acquires: always on the executor. UNAVAILABLE: the queue is
 * full, and the version was released. */
SX_MUST_USE sx_status sx_rest_submit(sx_rest_call *call);
/* Ends a call: counts its outcome and time, and releases its version. Before its response. */
void sx_rest_end(sx_rest_call *call, sx_code code);

/* sx_served_run, which is timed. */
SX_MUST_USE sx_status sx_rest_run(sx_rest_call *call, const sx_serve_signature *signature,
                                  const sx_tensor *inputs, sx_arena *arena,
                                  sx_tensor **out_outputs);
size_t sx_rest_max_body_bytes(const sx_rest *rest);
/* sx_manager_ready of its models. */
bool sx_rest_ready(const sx_rest *rest);

/* Sets the server whose counters the metrics page shows; call it before the server starts. */
void sx_rest_set_server(sx_rest *rest, const sx_http_server *server);

#endif
