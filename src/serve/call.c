/* Calls; see call.h. */
#include "serve/call.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "serve/metrics.h"
#include "serve/shadow.h"

enum {
    INLINE_BODY_BYTES = 16 * 1024, /* larger calls always go to the executor */
    INLINE_NS = 40000,             /* about the cost of passing a call to another thread and back */
    TURN_NS = 1000000,             /* of a loop's turn that its thread spends on calls itself */
};

struct sx_calls {
    sx_calls_config config;
    sx_executor *executor;
    sx_shadow *shadow;
};

/* ---- Creation and destruction ---- */

sx_status sx_calls_create(const sx_calls_config *config, sx_calls **out_calls)
{
    sx_calls *calls = sx_alloc(1, sizeof(*calls));
    if (calls == NULL) {
        return sx_no_memory("for the threads of a server");
    }
    calls->config = *config;
    calls->config.threads = config->threads > 0 ? config->threads : sx_cpu_count();
    calls->config.run_states = config->run_states > 0 ? config->run_states : sx_cpu_count();
    calls->config.max_queued = config->max_queued > 0 ? config->max_queued : 1024;
    sx_status status = sx_executor_create(calls->config.threads, calls->config.run_states,
                                          calls->config.max_queued, &calls->executor);
    status = status == SX_OK ? sx_shadow_create(&calls->shadow) : status;
    if (status != SX_OK) {
        sx_calls_destroy(calls);
        return status;
    }
    *out_calls = calls;
    return SX_OK;
}

void sx_calls_stop(sx_calls *calls)
{
    if (calls != NULL) {
        sx_executor_stop(calls->executor);
        sx_shadow_stop(calls->shadow);
    }
}

void sx_calls_destroy(sx_calls *calls)
{
    if (calls != NULL) {
        sx_executor_destroy(calls->executor);
        sx_shadow_destroy(calls->shadow);
        sx_free(calls);
    }
}

sx_manager *sx_calls_manager(const sx_calls *calls)
{
    return calls->config.manager;
}

int sx_calls_threads(const sx_calls *calls)
{
    return calls->config.threads + calls->config.run_states;
}

sx_request_log *sx_calls_log(const sx_calls *calls)
{
    return calls->config.log;
}

size_t sx_calls_queued(const sx_calls *calls)
{
    return sx_executor_queued(calls->executor);
}

size_t sx_calls_max_body_bytes(const sx_calls *calls)
{
    return calls->config.max_body_bytes;
}

/* ---- One call ---- */

/* Records the time of a successful request: from parsing to printing. The estimate is a decaying
 * maximum: a slow one raises it at once, quick ones lower it gradually. */
static void note_cost(sx_served_pace *pace, int64_t sample_ns)
{
    const int64_t known = atomic_load_explicit(&pace->cost_ns, memory_order_relaxed);
    const int64_t before = known != 0 ? known : sample_ns;
    const int64_t decayed = before - before / 16 + sample_ns / 16;
    atomic_store_explicit(&pace->cost_ns, SX_MAX(sample_ns, decayed), memory_order_relaxed);
}

/* Records how long it took to read a request. Those that were disturbed count little. */
static void note_read(sx_served_pace *pace, int64_t sample_ns)
{
    const int64_t known = atomic_load_explicit(&pace->read_ns, memory_order_relaxed);
    const int64_t read_ns =
        known == 0 || sample_ns < known ? sample_ns : known + (sample_ns - known) / 8;
    atomic_store_explicit(&pace->read_ns, read_ns, memory_order_relaxed);
}

/* Whether the loop's thread may run the request itself: only if it is known to be quick, does not
 * wait for the device, and no small input may take long, as an encoded image does. */
static bool is_quick(const sx_call *call)
{
    sx_served_pace *pace = sx_served_pace_of(call->servable);
    const int64_t cost_ns = atomic_load_explicit(&pace->cost_ns, memory_order_relaxed);
    size_t count;
    const sx_serve_signature *signatures = sx_served_signatures(call->servable, &count);
    for (size_t i = 0; i < count; i++) {
        if (signatures[i].may_take_long) { /* the signature is only known from the body */
            return false;
        }
    }
    return cost_ns > 0 && cost_ns < INLINE_NS &&
           atomic_load_explicit(&pace->on_executor, memory_order_relaxed) == 0 &&
           call->arrived_ns - sx_http_request_turn_ns(call->exchange) < TURN_NS &&
           sx_http_request_body(call->exchange).size <= INLINE_BODY_BYTES &&
           sx_http_request_head(call->exchange)->coding == SX_HTTP_IDENTITY;
}

static void count(const sx_call *call, sx_code code)
{
    if (!call->uncounted) {
        sx_metrics_count(sx_served_metrics(call->servable), code);
    }
}

/* The call has its version: for the logs. */
static void note_version(sx_call *call)
{
    const char *name = sx_served_name(call->servable);
    sx_http_request_set_subject(call->exchange, name, sx_served_version(call->servable));
    call->logged = sx_request_log_sample(call->calls->config.log, name);
}

sx_status sx_call_acquire(sx_call *call, const sx_model_spec *spec)
{
    sx_manager *manager = call->calls->config.manager;
    sx_model_spec asked = *spec;
    sx_auth *auth = call->calls->config.auth;
    asked.head = sx_http_request_head(call->exchange);
    if (auth != NULL) {
        /* invented names would take the places of a client's buckets, which then begin anew */
        const bool runs = sx_manager_has(manager, spec->name);
        SX_TRY(sx_auth_check(auth, call->exchange, spec->name,
                             call->uncounted ? SX_AUTH_LOOK
                             : runs          ? SX_AUTH_RUN
                                             : SX_AUTH_PREDICT));
    }
    sx_status status =
        sx_manager_acquire_or_await(manager, &asked, &call->servable, &call->awaited);
    if (status != SX_OK && !call->uncounted) {
        sx_manager_count(manager, spec->name, sx_status_code(status));
    }
    if (call->servable != NULL) {
        note_version(call);
    }
    return status;
}

/* ---- Its steps ---- */

static void wake_run(sx_batch_task *task, bool runs)
{
    sx_call *call = (sx_call *)((char *)task - offsetof(sx_call, task));
    sx_executor_resume(call->calls->executor, &call->job, runs);
}

static void wake_awaiting(sx_awaited *awaited)
{
    sx_call *call = (sx_call *)((char *)awaited - offsetof(sx_call, awaited));
    sx_executor_resume(call->calls->executor, &call->job, false);
}

/* UNAVAILABLE: the call is not worth reading, as it cannot be answered in time any more. */
static sx_status admit(const sx_call *call)
{
    if (!call->on_executor || call->uncounted) {
        return SX_OK;
    }
    const int64_t read_ns =
        atomic_load_explicit(&sx_served_pace_of(call->servable)->read_ns, memory_order_relaxed);
    return sx_served_admit(call->servable, sx_http_request_cancel(call->exchange),
                           call->begun_ns + read_ns, sx_executor_queued(call->calls->executor) > 0);
}

static sx_status begin(sx_call *call)
{
    sx_arena_init(&call->arena, 0);
    sx_buf_init(&call->inflated, 0);
    sx_buf_init(&call->out, SIZE_MAX / 4); /* limited by the budget, as the others */
    call->arena.budget = call->inflated.budget = call->out.budget =
        sx_http_request_budget(call->exchange);
    call->begun_ns = sx_now_ns();
    SX_TRY(sx_cancel_check(sx_http_request_cancel(call->exchange)));
    SX_TRY(admit(call));
    return call->steps->find != NULL ? call->steps->find(call) : SX_OK;
}

/* The version that the call has waited for. */
static sx_status take_awaited(sx_call *call)
{
    sx_model_metrics *metrics = sx_lifecycle_metrics(call->awaited.lifecycle);
    sx_status status = call->awaited.status;
    call->servable = call->awaited.servable;
    if (status != SX_OK && !call->uncounted) {
        sx_metrics_count(metrics, sx_status_code(status));
    }
    sx_lifecycle_end_await(&call->awaited);
    if (status == SX_OK) {
        note_version(call);
    }
    return status;
}

/* Begins what is to run. */
static sx_batch_state begin_run(sx_call *call)
{
    const sx_serve_signature *signature = call->signature;
    const size_t count = signature->output_count;
    sx_batch_task *task = &call->task;
    sx_tensor *outputs = sx_arena_array(&call->arena, SX_MAX(count, (size_t)1), sx_tensor);
    *task = (sx_batch_task){.request = {.inputs = call->inputs,
                                        .cancel = sx_http_request_cancel(call->exchange),
                                        .arena = &call->arena,
                                        .outputs = outputs},
                            .wake = wake_run};
    call->run_ns = sx_now_ns();
    task->status = outputs == NULL ? sx_no_memory("for %zu outputs", count)
                                   : sx_cancel_check(task->request.cancel);
    if (task->status != SX_OK) {
        return SX_BATCH_ENDED;
    }
    sx_batch_line *line = call->on_loop ? NULL : sx_served_line(call->servable, signature);
    if (line != NULL) {
        return sx_batch_line_begin(line, task);
    }
    task->status = sx_served_run(call->servable, signature, call->inputs, task->request.cancel,
                                 &call->arena, outputs);
    return SX_BATCH_ENDED;
}

/* What has run goes to the metrics, the logs, the shadow, and to the front end, which may have more
 * to run. */
static sx_status end_run(sx_call *call)
{
    const sx_serve_signature *signature = call->signature;
    const sx_tensor *outputs = call->task.request.outputs;
    call->runs = false;
    SX_TRY(call->task.status);
    sx_latency_add(&sx_served_metrics(call->servable)->run_latency[call->api],
                   sx_now_ns() - call->run_ns);
    if (call->logged != NULL && !call->logs_itself) {
        const sx_predict_spec ran = sx_call_spec(call, signature->name);
        sx_log_run(call->logged, &ran, signature, call->inputs, outputs);
    }
    double tolerance;
    sx_served *shadow =
        sx_manager_acquire_shadow(call->calls->config.manager, call->servable, &tolerance);
    if (shadow != NULL) {
        sx_shadow_run(call->calls->shadow, shadow, tolerance, signature, call->inputs, outputs);
    }
    sx_status status = call->steps->print(call, outputs);
    sx_merged_release(call->task.batch);
    return status;
}

/* Until the run has ended. False: the call goes on later, perhaps already: it is not to be touched.
 */
static bool finish_run(sx_call *call, sx_batch_state state, int worker)
{
    if (state == SX_BATCH_WAITS) {
        return false;
    }
    sx_executor *executor = call->calls->executor;
    const bool leads = state == SX_BATCH_LEADS;
    while (state == SX_BATCH_LEADS) {
        sx_executor_leave(executor, worker);
        state = sx_batch_task_go_on(&call->task);
    }
    if (state == SX_BATCH_WAITS) {
        return false;
    }
    if (leads && !sx_executor_return(executor, worker)) {
        sx_executor_resume(executor, &call->job, false);
        return false;
    }
    return true;
}

/* Until the call has its version and has read its request. False: as above. */
static bool prepare(sx_call *call, int worker, sx_status *status)
{
    if (call->stage == SX_CALL_NEW) {
        *status = begin(call);
        if (*status == SX_OK && call->awaited.lifecycle != NULL) {
            call->stage = SX_CALL_AWAITS;
            call->awaited.cancel = sx_http_request_cancel(call->exchange);
            call->awaited.wake = wake_awaiting;
            if (!sx_lifecycle_await(&call->awaited)) {
                return false;
            }
        }
    }
    if (call->stage == SX_CALL_AWAITS) {
        *status = take_awaited(call);
    }
    call->stage = SX_CALL_RUNS;
    if (*status == SX_OK) {
        *status = call->steps->read(call, worker);
    }
    if (*status == SX_OK && call->on_executor) {
        note_read(sx_served_pace_of(call->servable), sx_now_ns() - call->begun_ns);
    }
    return true;
}

/* The function of a call's job. */
static bool run_call(sx_executor_job *job, int worker)
{
    sx_call *call = (sx_call *)job;
    sx_status status = SX_OK;
    sx_batch_state state;
    bool runs = true;
    if (call->stage == SX_CALL_RUNS) {
        state =
            call->task.state == SX_BATCH_LEADS ? SX_BATCH_LEADS : sx_batch_task_go_on(&call->task);
    } else {
        if (!prepare(call, worker, &status)) {
            return false;
        }
        runs = status == SX_OK && call->runs;
        state = runs ? begin_run(call) : SX_BATCH_ENDED;
    }
    while (runs) {
        if (!finish_run(call, state, worker)) {
            return false;
        }
        status = end_run(call);
        runs = status == SX_OK && call->runs;
        state = runs ? begin_run(call) : SX_BATCH_ENDED;
    }
    call->steps->respond(call, status, worker);
    return true;
}

sx_status sx_calls_submit(sx_calls *calls, sx_executor_job *job)
{
    return sx_executor_submit(calls->executor, job)
               ? SX_OK
               : sx_error(SX_UNAVAILABLE,
                          "server overloaded: %zu requests are queued; try again later",
                          calls->config.max_queued);
}

sx_status sx_call_submit(sx_call *call)
{
    sx_calls *calls = call->calls;
    call->job.fn = run_call;
    if (call->servable != NULL && is_quick(call)) {
        call->on_loop = true;
        (void)run_call(&call->job, sx_calls_threads(calls) + sx_http_request_loop(call->exchange));
        return SX_OK;
    }
    call->on_executor = call->servable != NULL;
    if (call->on_executor) {
        atomic_fetch_add_explicit(&sx_served_pace_of(call->servable)->on_executor, 1,
                                  memory_order_relaxed);
    }
    sx_status status = sx_calls_submit(calls, &call->job);
    if (status == SX_OK) {
        return SX_OK;
    }
    if (call->on_executor) {
        atomic_fetch_sub_explicit(&sx_served_pace_of(call->servable)->on_executor, 1,
                                  memory_order_relaxed);
        count(call, SX_UNAVAILABLE);
        sx_served_release(call->servable);
    }
    if (call->awaited.lifecycle != NULL) {
        sx_lifecycle_end_await(&call->awaited);
    }
    return status;
}

/* ---- For the front ends ---- */

void sx_call_set_run(sx_call *call, const sx_serve_signature *signature, const sx_tensor *inputs)
{
    call->runs = true;
    call->signature = signature;
    call->inputs = inputs;
}

sx_predict_spec sx_call_spec(const sx_call *call, const char *signature)
{
    const char *name = sx_served_name(call->servable);
    return (sx_predict_spec){.name = {name, strlen(name)},
                             .label = {"", 0},
                             .version = sx_served_version(call->servable),
                             .signature = {signature, strlen(signature)}};
}

bool sx_call_explain_budget(const sx_call *call, sx_status *status)
{
    const sx_budget *budget = sx_http_request_budget(call->exchange);
    if (sx_status_code(*status) != SX_RESOURCE_EXHAUSTED || !sx_budget_refused(budget)) {
        return false;
    }
    sx_status explained = sx_status_annotate(sx_budget_error(budget), __FILE__, __LINE__, "%s",
                                             sx_status_message(*status));
    sx_status_free(*status);
    *status = explained;
    return true;
}

void sx_call_end(sx_call *call, sx_code code)
{
    sx_arena_deinit(&call->arena);
    sx_buf_deinit(&call->inflated);
    if (call->awaited.lifecycle != NULL) {
        sx_lifecycle_end_await(&call->awaited);
    }
    if (call->servable == NULL) { /* it waited in vain, which has been counted */
        return;
    }
    const int64_t end_ns = sx_now_ns();
    sx_served_pace *pace = sx_served_pace_of(call->servable);
    sx_model_metrics *metrics = sx_served_metrics(call->servable);
    if (code == SX_CODE_OK && !call->uncounted) {
        note_cost(pace, end_ns - call->begun_ns);
        sx_latency_add(&metrics->request_latency[call->api][call->entrypoint],
                       end_ns - call->arrived_ns);
    }
    count(call, code);
    if (!call->uncounted) {
        sx_served_count(call->servable, code == SX_CODE_OK, end_ns - call->arrived_ns);
    }
    if (call->on_executor) {
        atomic_fetch_sub_explicit(&pace->on_executor, 1, memory_order_relaxed);
    }
    sx_served_release(call->servable);
}
