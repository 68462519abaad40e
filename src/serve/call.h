/* Calls: requests on a model's version, whatever their protocol. The front ends (rest,
 * grpc_services) read them and answer them; what they share is here: the models, the threads that
 * run calls, and what is counted.
 *
 * Life of a call:
 *   loop thread       acquire the model's version, submit
 *   executor thread   the front end's function: parse, sx_call_run, print, sx_call_end, respond
 *   batcher           inside sx_call_run: waits for a run state, perhaps runs together with others
 * Small calls of a version whose recent calls took less time than waking another thread are run by
 * the loop's thread itself, at once, for at most a millisecond of each of its turns; calls that
 * decode images always go to the executor. */
#ifndef SX_SERVE_CALL_H
#define SX_SERVE_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "net/http_server.h"
#include "serve/auth.h"
#include "serve/executor.h"
#include "serve/manager.h"
#include "serve/request_log.h"

typedef struct sx_calls sx_calls;

/* A zero takes the default in the comment. */
typedef struct sx_calls_config {
    sx_manager *manager;   /* required; borrowed until destroy */
    sx_auth *auth;         /* who may call a model; NULL: everybody; likewise */
    sx_request_log *log;   /* NULL: none; likewise */
    int threads;           /* that parse and answer at once; as many as processors */
    int max_waiting;       /* 256: more threads, of calls that wait or run; negative: none */
    size_t max_queued;     /* 1024 */
    size_t max_body_bytes; /* required: of a message, after decompression */
} sx_calls_config;

SX_MUST_USE sx_status sx_calls_create(const sx_calls_config *config, sx_calls **out_calls);
/* Finishes the queued calls and ends the threads; later calls are refused. The models and the HTTP
 * server must still exist. Idempotent; NULL is allowed. */
void sx_calls_stop(sx_calls *calls);
void sx_calls_destroy(sx_calls *calls); /* stops first; NULL is allowed */

sx_manager *sx_calls_manager(const sx_calls *calls);
sx_request_log *sx_calls_log(const sx_calls *calls); /* NULL: none */
int sx_calls_threads(const sx_calls *calls);         /* most of them, those that wait included */
size_t sx_calls_queued(const sx_calls *calls);
size_t sx_calls_max_body_bytes(const sx_calls *calls);

/* Lives in the exchange's scratch memory, first in a struct of the front end's. */
typedef struct sx_call {
    sx_executor_job job; /* its function runs the call */
    sx_calls *calls;
    sx_http_exchange *exchange;
    sx_served *servable; /* NULL: see `awaited` */
    sx_awaited awaited;
    int64_t arrived_ns, begun_ns;
    struct sx_call_batch *batches; /* in which its outputs lie, until sx_call_end() */
    bool on_executor, on_loop;
    sx_metric_api api; /* for the metrics */
    sx_entrypoint entrypoint;
    bool uncounted;    /* no request in the metrics */
    sx_logged *logged; /* NULL: this request is not logged */
    bool logs_itself;  /* the front end logs it, not sx_call_run() */
} sx_call;

/* Acquires a version for the call, or what it has to wait for. Errors: those of sx_auth_check and
 * sx_manager_acquire; the latter are counted. */
SX_MUST_USE sx_status sx_call_acquire(sx_call *call, const sx_model_spec *spec);
/* Runs the call's function: at once, on the loop's thread, or on the executor; `worker` is its
 * thread, or sx_calls_threads() + loop. Without a version, which the function then acquires: always
 * on the executor. UNAVAILABLE: the queue is full, and the version was released. */
SX_MUST_USE sx_status sx_call_submit(sx_call *call);
/* In the call's function, on the executor, before its version is used: waits until it is loaded, if
 * it has to be. */
SX_MUST_USE sx_status sx_call_await(sx_call *call);
/* sx_served_run_batched, which is timed. The outputs' data is valid until sx_call_end(). */
SX_MUST_USE sx_status sx_call_run(sx_call *call, const sx_serve_signature *signature,
                                  const sx_tensor *inputs, sx_arena *arena,
                                  sx_tensor **out_outputs);
/* Whether `*status` is for want of memory that the call's budget refused; it then gets the budget's
 * figures. */
bool sx_call_explain_budget(const sx_call *call, sx_status *status);
/* The spec of what a call runs; borrowed as long as it has its version. */
sx_predict_spec sx_call_spec(const sx_call *call, const char *signature);
/* Ends a call: counts its outcome and time, and releases its version, or what it waits for. Before
 * its response. */
void sx_call_end(sx_call *call, sx_code code);

#endif
