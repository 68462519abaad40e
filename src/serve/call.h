/* Calls: requests on a model's version, whatever their protocol. The front ends (rest,
 * grpc_services) read them and answer them; what they share is here: the models, the threads that
 * run calls, and what is counted.
 *
 * Life of a call:
 *   loop thread       acquire the model's version, submit
 *   executor thread   waits for the model, if that has to be loaded
 *                     reads the request: the front end says what is to run
 *   batcher           the call waits for a run state, and perhaps runs together with others
 *   executor thread   prints the outputs, responds
 *
 * A call that waits, for its model or its turn, holds no thread: any one goes on with it. Small
 * calls of a version whose recent calls took less time than waking another thread are run by the
 * loop's thread itself, at once, for at most a millisecond of each of its turns; calls that decode
 * images always go to the executor. */
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
    int run_states;        /* those of the batcher, a thread for each; as many as processors */
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
int sx_calls_threads(const sx_calls *calls);         /* most of them, those that run included */
size_t sx_calls_queued(const sx_calls *calls);
size_t sx_calls_max_body_bytes(const sx_calls *calls);

typedef struct sx_call sx_call;

/* What a front end does in a call, one after the other; static. An error goes to `respond`.
 * `worker`: the thread, in [0, sx_calls_threads()), or sx_calls_threads() + loop. */
typedef struct sx_call_steps {
    /* Acquires a version, if the call has none, and nothing to wait for; NULL: it has. */
    sx_status (*find)(sx_call *call);
    /* Reads the request, and says what is to run, if anything: sx_call_set_run(). */
    sx_status (*read)(sx_call *call, int worker);
    /* Appends the answer to `out`, after the run; may say that more is to run. */
    sx_status (*print)(sx_call *call, const sx_tensor *outputs);
    /* sx_call_end(), then sends the answer, or the error; takes the status. */
    void (*respond)(sx_call *call, sx_status status, int worker);
} sx_call_steps;

/* Lives in the exchange's scratch memory, first in a struct of the front end's, which sets what is
 * before the empty line. */
struct sx_call {
    sx_executor_job job; /* first: converted by address; its function is set here */
    const sx_call_steps *steps;
    sx_calls *calls;
    sx_http_exchange *exchange;
    int64_t arrived_ns;
    sx_metric_api api; /* for the metrics */
    sx_entrypoint entrypoint;
    bool uncounted;   /* no request in the metrics */
    bool logs_itself; /* the front end logs it */

    sx_served *servable; /* NULL: see `awaited` */
    sx_awaited awaited;
    sx_logged *logged; /* NULL: this request is not logged */
    enum { SX_CALL_NEW, SX_CALL_AWAITS, SX_CALL_RUNS } stage;
    bool on_executor, on_loop;
    int64_t begun_ns, run_ns;
    sx_arena arena; /* these three from its beginning to sx_call_end(), which takes no `out` */
    sx_buf inflated, out;
    bool runs; /* a run is to begin, or has: of these */
    const sx_serve_signature *signature;
    const sx_tensor *inputs;
    void *read; /* the front end's: what it has read; in the arena */
    sx_batch_task task;
};

/* Acquires a version for the call, or what it has to wait for. Errors: those of sx_auth_check and
 * sx_manager_acquire; the latter are counted. */
SX_MUST_USE sx_status sx_call_acquire(sx_call *call, const sx_model_spec *spec);
/* Runs the call's steps: at once, on the loop's thread, or on the executor; without a version:
 * always there. UNAVAILABLE: the queue is full, and the version was released. */
SX_MUST_USE sx_status sx_call_submit(sx_call *call);
/* The same of a job that is no call. */
SX_MUST_USE sx_status sx_calls_submit(sx_calls *calls, sx_executor_job *job);
/* What runs after the step that says so; the call's until it has been printed. */
void sx_call_set_run(sx_call *call, const sx_serve_signature *signature, const sx_tensor *inputs);
/* Whether `*status` is for want of memory that the call's budget refused; it then gets the budget's
 * figures. */
bool sx_call_explain_budget(const sx_call *call, sx_status *status);
/* The spec of what a call runs; borrowed as long as it has its version. */
sx_predict_spec sx_call_spec(const sx_call *call, const char *signature);
/* Ends a call: counts its outcome and time, frees what it has read, and releases its version, or
 * what it waits for. Before its response. */
void sx_call_end(sx_call *call, sx_code code);

#endif
