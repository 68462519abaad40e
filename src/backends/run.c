/* Runs of executables (backend.h): one execution at a time, from its submission to its end, whoever
 * waits for it, and what is left behind if nobody does. */
#include <time.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/memory.h"

/* A call of on_done on this thread, and the one that it is made in. */
typedef struct calling {
    const sx_platform *platform;
    const struct calling *outer;
} calling;
static _Thread_local const calling *innermost;

bool sx_platform_calls_here(const sx_platform *platform)
{
    const calling *c = innermost;
    while (c != NULL && c->platform != platform) {
        c = c->outer;
    }
    return c != NULL;
}

sx_status sx_run_init(sx_run *run, sx_executable *executable)
{
    run->checked = sx_alloc((size_t)(executable->n_args + executable->n_results) + 1,
                            sizeof(sx_device_buffer *));
    if (run->checked == NULL) {
        return sx_no_memory("for a run");
    }
    run->executable = sx_executable_retain(executable);
    atomic_init(&run->refs, 1);
    atomic_init(&run->state, SX_RUN_IDLE);
    pthread_mutex_init(&run->mutex, NULL);
    pthread_cond_init(&run->ended, NULL);
    return SX_OK;
}

void sx_run_deinit(sx_run *run)
{
    if (run->executable == NULL) {
        return; /* sx_run_init() failed or was not reached */
    }
    sx_status_free(run->status);
    pthread_mutex_destroy(&run->mutex);
    pthread_cond_destroy(&run->ended);
    sx_executable_release(run->executable);
    sx_free(run->checked);
}

sx_status sx_run_create(sx_executable *e, sx_run **out)
{
    if (e->memory != NULL && !atomic_exchange(&e->run_charged, false) &&
        !sx_budget_charge(e->memory, e->run_bytes)) {
        return sx_budget_over(e->memory, "one more run with temporaries", e->run_bytes);
    }
    sx_status status = e->platform->backend->run_create(e, out);
    if (status != SX_OK) {
        sx_budget_release(e->memory, e->run_bytes);
    }
    return status;
}

static void release_run(sx_run *run)
{
    if (atomic_fetch_sub(&run->refs, 1) == 1) {
        const sx_executable *e = run->executable;
        sx_platform *platform = e->platform;
        sx_budget *memory = e->memory;
        const size_t bytes = e->run_bytes;
        const bool abandoned = run->abandoned;
        for (int i = 0; abandoned && i < e->n_args + e->n_results; i++) {
            sx_device_buffer_release(run->checked[i]);
        }
        platform->backend->run_destroy(run); /* and possibly the executable */
        sx_budget_release(memory, bytes);
        if (abandoned) {
            atomic_fetch_sub(&platform->abandoned, 1);
        }
    }
}

/* From here on, the backend handles the end of the pending execution; until then, the run exists.
 */
static void watch(sx_run *run)
{
    if (!run->watched) {
        run->watched = true;
        atomic_fetch_add(&run->refs, 1);
        run->executable->platform->backend->watch(run);
    }
}

void sx_run_destroy(sx_run *run)
{
    if (run == NULL) {
        return;
    }
    if (atomic_load(&run->state) == SX_RUN_PENDING) {
        const sx_executable *e = run->executable;
        atomic_fetch_add(&e->platform->abandoned, 1);
        run->abandoned = true;
        if (e->platform->backend->leave != NULL) {
            e->platform->backend->leave(run);
        }
        run->cancel = NULL;
        for (int i = 0; i < e->n_args + e->n_results; i++) {
            if (run->checked[i] != NULL) {
                sx_device_buffer_retain(run->checked[i]);
            }
        }
        watch(run);
    }
    release_run(run);
}

static sx_status check_buffer(const sx_executable *e, const sx_device_buffer *buffer,
                              const sx_type *type, const sx_device *device, const char *what, int i)
{
    char want[SX_TYPE_TEXT], got[SX_TYPE_TEXT];
    if (buffer == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s %d is missing, expected %s", what, i,
                        sx_type_format(type, want, sizeof(want)));
    }
    if (!sx_type_equal(&buffer->type, type)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s %d is %s, expected %s", what, i,
                        sx_type_format(&buffer->type, got, sizeof(got)),
                        sx_type_format(type, want, sizeof(want)));
    }
    if (buffer->device->platform != e->platform) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s %d is on %s of %s, but the program was compiled for %s of %s; copy it "
                        "with sx_device_buffer_copy()",
                        what, i, buffer->device->name, buffer->device->platform->backend->name,
                        e->platform->devices[0]->name, e->platform->backend->name);
    }
    if (buffer->memory != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s %d is in memory %s of %s, but programs compute in %s; copy it with "
                        "sx_device_buffer_copy()",
                        what, i, buffer->device->memories[buffer->memory].kind,
                        buffer->device->name, buffer->device->memories[0].kind);
    }
    if (buffer->device != device) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s %d is on %s, the first buffer of the execution on %s; copy it with "
                        "sx_device_buffer_copy()",
                        what, i, buffer->device->name, device->name);
    }
    return SX_OK;
}

/* What the execution writes must be read by nobody else, and written once. */
static sx_status check_written(const sx_executable *e, sx_device_buffer *const *args,
                               sx_device_buffer *const *outputs)
{
    for (int i = 0; i < e->n_results; i++) {
        const int assigned = e->result_args[i];
        const sx_device_buffer *written = assigned >= 0 ? args[assigned] : outputs[i];
        for (int k = 0; k < e->n_args; k++) {
            if (k == assigned || args[k] != written) {
                continue;
            }
            return assigned >= 0
                       ? sx_error(
                             SX_INVALID_ARGUMENT,
                             "arguments %d and %d are the same buffer, but the program updates it",
                             assigned, k)
                       : sx_error(SX_INVALID_ARGUMENT,
                                  "output %d and argument %d are the same buffer, but the program "
                                  "writes one while it reads the other",
                                  i, k);
        }
        for (int k = 0; k < i && assigned < 0; k++) {
            if (e->result_args[k] < 0 && outputs[k] == written) {
                return sx_error(SX_INVALID_ARGUMENT, "outputs %d and %d are the same buffer", k, i);
            }
        }
    }
    return SX_OK;
}

sx_status sx_run_prepare(sx_run *run, sx_device_buffer *const *args)
{
    const sx_executable *e = run->executable;
    if (atomic_load(&run->state) != SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION, "the run's last execution has not been awaited");
    }
    for (int i = 0; i < e->n_args; i++) {
        SX_TRY(check_buffer(e, args[i], &e->arg_types[i], args[0] != NULL ? args[0]->device : NULL,
                            "argument", i));
    }
    return e->platform->backend->prepare != NULL ? e->platform->backend->prepare(run, args) : SX_OK;
}

sx_status sx_run_submit(sx_run *run, sx_device_buffer *const *args,
                        sx_device_buffer *const *outputs)
{
    const sx_executable *e = run->executable;
    if (atomic_load(&run->state) != SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION, "the run's last execution has not been awaited");
    }
    const sx_device *device = NULL;
    bool same = true; /* mostly they are those of the last submission */
    for (int i = 0; i < e->n_args; i++) {
        device = device == NULL && args[i] != NULL ? args[i]->device : device;
        SX_TRY(check_buffer(e, args[i], &e->arg_types[i], device, "argument", i));
        SX_TRY(sx_device_buffer_check_kept(args[i]), "argument %d", i);
        same = same && run->checked[i] == args[i];
    }
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] < 0) {
            device = device == NULL && outputs[i] != NULL ? outputs[i]->device : device;
            SX_TRY(check_buffer(e, outputs[i], &e->result_types[i], device, "output", i));
            same = same && run->checked[e->n_args + i] == outputs[i];
        }
    }
    if (!same) {
        SX_TRY(check_written(e, args, outputs));
        for (int i = 0; i < e->n_args; i++) {
            run->checked[i] = args[i];
        }
        for (int i = 0; i < e->n_results; i++) {
            run->checked[e->n_args + i] = e->result_args[i] < 0 ? outputs[i] : NULL;
        }
    }
    run->watched = false;
    atomic_store(&run->state, SX_RUN_PENDING);
    sx_status status = e->platform->backend->submit(run, args, outputs);
    if (status != SX_OK) {
        atomic_store(&run->state, SX_RUN_IDLE);
    }
    return status;
}

void sx_run_lose(sx_run *run)
{
    const sx_executable *e = run->executable;
    for (int i = 0; i < e->n_results; i++) {
        if (e->result_args[i] >= 0) {
            atomic_store(&run->checked[e->result_args[i]]->lost, true);
        }
    }
}

void sx_run_end(sx_run *run, sx_status status)
{
    if (!run->watched) { /* on the owner's thread, the only one that waits */
        run->status = status;
        atomic_store(&run->state, SX_RUN_ENDED);
        return;
    }
    sx_platform *platform = run->executable->platform;
    atomic_fetch_add(&platform->ending,
                     1); /* the owner may close it as soon as the run has ended */
    pthread_mutex_lock(&run->mutex);
    void (*on_done)(sx_run *, void *) = run->on_done;
    void *user = run->user;
    run->on_done = NULL;
    run->status = status;
    atomic_store(&run->state, SX_RUN_ENDED);
    pthread_cond_broadcast(&run->ended);
    pthread_mutex_unlock(&run->mutex);
    if (on_done != NULL) {
        const calling call = {platform, innermost};
        innermost = &call;
        on_done(run, user);
        innermost = call.outer;
    }
    release_run(run);
    atomic_fetch_sub(&platform->ending, 1);
}

/* False when the deadline comes first. */
static bool wait_until(sx_run *run, int64_t deadline_ns)
{
    const struct timespec until = sx_timespec_of(deadline_ns);
    int late = 0;
    pthread_mutex_lock(&run->mutex);
    while (late == 0 && atomic_load(&run->state) == SX_RUN_PENDING) {
        late = pthread_cond_clockwait(&run->ended, &run->mutex, CLOCK_MONOTONIC, &until);
    }
    const bool ended = atomic_load(&run->state) != SX_RUN_PENDING;
    pthread_mutex_unlock(&run->mutex);
    return ended;
}

sx_status sx_run_await(sx_run *run, int64_t deadline_ns)
{
    const sx_platform *platform = run->executable->platform;
    if (atomic_load(&run->state) == SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "cannot wait for an execution that was not submitted");
    }
    if (atomic_load(&run->state) == SX_RUN_PENDING) {
        if (deadline_ns == SX_NO_DEADLINE && !run->watched) {
            platform->backend->await(run);
        } else {
            watch(run);
            if (!wait_until(run, deadline_ns)) {
                return sx_error(SX_DEADLINE_EXCEEDED, "%s has not finished the program in time",
                                platform->devices[0]->name);
            }
        }
    }
    sx_status status = run->status;
    run->status = SX_OK;
    atomic_store(&run->state, SX_RUN_IDLE);
    return status;
}

void sx_run_settle(sx_run *run)
{
    while (atomic_load(&run->refs) > 1) {
        sx_sleep_ns(20000);
    }
}

sx_status sx_run_on_done(sx_run *run, void (*on_done)(sx_run *run, void *user), void *user)
{
    if (atomic_load(&run->state) == SX_RUN_IDLE) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "on_done of an execution that was not submitted, or has been awaited");
    }
    pthread_mutex_lock(&run->mutex);
    const bool pending = atomic_load(&run->state) == SX_RUN_PENDING;
    const bool taken = pending && run->on_done != NULL;
    if (pending && !taken) {
        run->on_done = on_done;
        run->user = user;
    }
    pthread_mutex_unlock(&run->mutex);
    if (taken) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "an execution has one on_done, and this one has it already");
    }
    if (pending) {
        watch(run);
    } else {
        on_done(run, user);
    }
    return SX_OK;
}

void sx_run_set_cancel(sx_run *run, const sx_cancel *cancel)
{
    run->cancel = cancel;
}

bool sx_platform_may_outlast(const sx_platform *platform, int64_t deadline_ns)
{
    return platform->backend->await != NULL && deadline_ns != SX_NO_DEADLINE;
}

sx_status sx_run_execute_within(sx_run *run, sx_device_buffer *const *args,
                                sx_device_buffer *const *outputs, const sx_cancel *cancel)
{
    sx_run_set_cancel(run, cancel);
    sx_status status = sx_run_submit(run, args, outputs);
    if (status == SX_OK) {
        status = sx_run_await(run, cancel != NULL ? cancel->deadline_ns : SX_NO_DEADLINE);
    }
    if (atomic_load(&run->state) != SX_RUN_PENDING) {
        sx_run_set_cancel(run, NULL);
    }
    return status;
}

sx_status sx_run_execute(sx_run *run, sx_device_buffer *const *args,
                         sx_device_buffer *const *outputs)
{
    SX_TRY(sx_run_submit(run, args, outputs));
    return sx_run_await(run, SX_NO_DEADLINE);
}

sx_status sx_run_get_profile(sx_run *run, const sx_kernel_time **out_rows, int *out_count)
{
    const sx_backend *backend = run->executable->platform->backend;
    if (backend->profile == NULL) {
        return sx_error(SX_UNIMPLEMENTED, "device kind %s does not record kernel times",
                        backend->name);
    }
    return backend->profile(run, out_rows, out_count);
}

sx_status sx_execute(sx_executable *executable, sx_device_buffer *const *args,
                     sx_device_buffer *const *outputs)
{
    sx_run *run;
    SX_TRY(sx_run_create(executable, &run));
    sx_status status = sx_run_execute(run, args, outputs);
    sx_run_destroy(run);
    return status;
}
