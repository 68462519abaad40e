/* Executions: see ref_submit() in objects.h.
 *
 * Submitting checks, makes the outputs' buffers and queues one job a device; then the caller has
 * its results' handles, and its donated buffers are dead. A job waits for its arguments, runs its
 * replica, fills its outputs, ends its event; what was donated is overwritten with 0xDB before it
 * is freed, so that whoever still looks at it sees that. */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "pjrt_ref/counts.h"
#include "pjrt_ref/fault.h"
#include "pjrt_ref/objects.h"
#include "pjrt_ref/run.h"

enum { POISON = 0xDB };

typedef struct replica_run {
    struct execution *x;
    ref_cell **args, **outputs;
    bool *donates; /* by this replica's handles */
    ref_event *end;
} replica_run;

typedef struct execution {
    atomic_int left; /* replicas that have not ended */
    ref_code *code;
    ref_meeting *meeting;
    sx_status fault; /* what it fails with, or SX_OK */
    bool is_stuck;
    int n, first;      /* replicas of this process, the first of them */
    replica_run *runs; /* [n] */
    ref_device **devices;
} execution;

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for an execution");
}

/* ---- Life ---- */

static void run_end(replica_run *run, const ref_code *code)
{
    for (int i = 0; i < code->program->main.n_args && run->args != NULL; i++) {
        ref_cell_release(run->args[i]);
    }
    for (int i = 0; i < code->n_outputs && run->outputs != NULL; i++) {
        ref_cell_release(run->outputs[i]);
    }
    sx_free(run->args);
    sx_free(run->outputs);
    sx_free(run->donates);
    ref_event_release(run->end);
}

static void execution_free(execution *x)
{
    for (int i = 0; i < x->n && x->runs != NULL; i++) {
        run_end(&x->runs[i], x->code);
    }
    ref_meeting_destroy(x->meeting);
    sx_status_free(x->fault);
    ref_code_release(x->code);
    sx_free(x->runs);
    sx_free(x->devices);
    sx_free(x);
}

static sx_status execution_create(const ref_loaded *l, int n, execution **out)
{
    ref_code *code = l->code;
    execution *x = sx_alloc(1, sizeof(*x));
    if (x == NULL) {
        return no_memory();
    }
    atomic_init(&x->left, n);
    x->code = ref_code_retain(code);
    x->n = n;
    x->first = l->first;
    x->runs = sx_alloc((size_t)n, sizeof(*x->runs));
    x->devices = sx_alloc((size_t)n, sizeof(ref_device *));
    sx_status status = x->runs == NULL || x->devices == NULL ? no_memory() : SX_OK;
    for (int i = 0; i < n && status == SX_OK; i++) {
        replica_run *run = &x->runs[i];
        run->x = x;
        run->args = sx_alloc((size_t)code->program->main.n_args + 1, sizeof(ref_cell *));
        run->outputs = sx_alloc((size_t)code->n_outputs + 1, sizeof(ref_cell *));
        run->donates = sx_alloc((size_t)code->program->main.n_args + 1, sizeof(bool));
        run->end = ref_event_create();
        status =
            run->args == NULL || run->outputs == NULL || run->donates == NULL || run->end == NULL
                ? no_memory()
                : SX_OK;
    }
    if (status == SX_OK && code->replicas > 1) {
        status = ref_meeting_create(n, code->replicas, n < code->replicas ? l->client->peers : NULL,
                                    &x->meeting);
    }
    if (status != SX_OK) {
        execution_free(x);
        return status;
    }
    *out = x;
    return SX_OK;
}

/* ---- On the device's thread ---- */

/* The arguments' arrays, each with a reference. */
static sx_status await_args(const replica_run *run, ref_array **arrays, int n)
{
    for (int i = 0; i < n; i++) {
        sx_status status = ref_event_await(run->args[i]->ready);
        if (status != SX_OK) {
            while (i-- > 0) {
                ref_array_release(arrays[i]);
            }
            return status;
        }
        arrays[i] = ref_array_retain(run->args[i]->array);
    }
    return SX_OK;
}

static void bury(replica_run *run, int n_args)
{
    for (int i = 0; i < n_args; i++) {
        sx_status_free(ref_event_await(run->args[i]->ready)); /* it may have failed before them */
        ref_array *a = run->args[i]->array;
        if (run->donates[i] && a != NULL && atomic_load(&a->refs) == 1) {
            memset(a->data, POISON, (size_t)a->bytes);
        }
        ref_cell_release(run->args[i]);
        run->args[i] = NULL;
    }
}

static sx_status run_replica(replica_run *run, int at, ref_array **args, ref_array **results)
{
    execution *x = run->x;
    ref_run options = {.program = x->code->program,
                       .memory = &x->devices[at]->memory,
                       .meeting = x->meeting,
                       .here = at,
                       .replica = x->first + at,
                       .step_us = x->devices[at]->client->step_us};
    while (x->is_stuck) {
        pause();
    }
    SX_TRY(ref_status_copy(x->fault));
    SX_TRY(await_args(run, args, x->code->program->main.n_args));
    return ref_execute(&options, args, results);
}

static void finish(replica_run *run, sx_status status, ref_array **results)
{
    execution *x = run->x;
    for (int i = 0; i < x->code->n_outputs; i++) {
        if (status == SX_OK) {
            ref_cell_fill(run->outputs[i], results[i]);
        } else {
            ref_event_end(run->outputs[i]->ready, ref_status_copy(status));
        }
    }
    bury(run, x->code->program->main.n_args);
    if (status != SX_OK && x->meeting != NULL) {
        ref_meeting_call_off(x->meeting);
    }
    ref_event_end(run->end, status);
    if (atomic_fetch_sub(&x->left, 1) == 1) {
        execution_free(x);
    }
}

static void run_job(void *user)
{
    replica_run *run = user;
    execution *x = run->x;
    size_t n_args = (size_t)x->code->program->main.n_args, n_out = (size_t)x->code->n_outputs;
    ref_array **arrays = sx_alloc(n_args + n_out + 1, sizeof(ref_array *));
    sx_status status = arrays == NULL
                           ? no_memory()
                           : run_replica(run, (int)(run - x->runs), arrays, arrays + n_args);
    finish(run, status, arrays == NULL ? NULL : arrays + n_args);
    sx_free(arrays);
}

/* ---- Submitting ---- */

static sx_status check_argument(const ref_code *code, const ref_device *device, int i,
                                const ref_buffer *b)
{
    char text[2][SX_TYPE_TEXT];
    const sx_type *type = ref_type_of(code->program, code->program->main.args[i]);
    if (atomic_load(&b->is_deleted)) {
        return sx_error(SX_INVALID_ARGUMENT, "argument %d: the buffer has been deleted or donated",
                        i);
    }
    if (b->device != device) {
        return sx_error(SX_INVALID_ARGUMENT, "argument %d is on device %d, the program on %d", i,
                        b->device->index, device->index);
    }
    return sx_type_equal(&b->type, type)
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "argument %d is %s, the program takes %s", i,
                          sx_type_format(&b->type, text[0], SX_TYPE_TEXT),
                          sx_type_format(type, text[1], SX_TYPE_TEXT));
}

static sx_status take_arguments(execution *x, ref_buffer *const *const *args, const bool *donates)
{
    int n_args = x->code->program->main.n_args;
    for (int r = 0; r < x->n; r++) {
        for (int i = 0; i < n_args; i++) {
            SX_TRY(check_argument(x->code, x->devices[r], i, args[r][i]), "replica %d", r);
            for (int k = 0; k < n_args; k++) {
                if (k != i && donates[i] && args[r][k] == args[r][i]) {
                    return sx_error(SX_INVALID_ARGUMENT,
                                    "argument %d is donated, and is argument %d too", i, k);
                }
            }
            x->runs[r].args[i] = ref_cell_retain(args[r][i]->cell);
            x->runs[r].donates[i] = donates[i];
        }
    }
    return SX_OK;
}

static void drop_outputs(const execution *x, ref_buffer **const *outputs)
{
    for (int r = 0; r < x->n; r++) {
        for (int i = 0; i < x->code->n_outputs; i++) {
            ref_buffer_destroy(outputs[r][i]);
            outputs[r][i] = NULL;
        }
    }
}

static sx_status make_outputs(execution *x, ref_buffer **const *outputs)
{
    const ref_program *p = x->code->program;
    for (int r = 0; r < x->n; r++) {
        memset(outputs[r], 0, (size_t)x->code->n_outputs * sizeof(outputs[r][0]));
    }
    for (int r = 0; r < x->n; r++) {
        for (int i = 0; i < x->code->n_outputs; i++) {
            SX_TRY(ref_buffer_create(x->devices[r], ref_type_of(p, p->main.results[i]),
                                     &outputs[r][i]));
            x->runs[r].outputs[i] = ref_cell_retain(outputs[r][i]->cell);
        }
    }
    return SX_OK;
}

/* A job that could not be queued ends at once, with the error. */
static void queue(execution *x, ref_client *client)
{
    ref_code *code = ref_code_retain(x->code); /* the last job may end the execution */
    int n = x->n;
    replica_run *runs = x->runs;
    ref_device **devices = sx_alloc((size_t)n, sizeof(ref_device *));
    if (devices != NULL) {
        memcpy(devices, x->devices, (size_t)n * sizeof(ref_device *));
    }
    pthread_mutex_lock(&client->submitting);
    for (int r = 0; r < n; r++) {
        sx_status status = devices == NULL
                               ? no_memory()
                               : ref_device_do(devices[r], REF_COMPUTES, run_job, &runs[r]);
        if (status != SX_OK) {
            finish(&runs[r], status, NULL);
        }
    }
    pthread_mutex_unlock(&client->submitting);
    sx_free(devices);
    ref_code_release(code);
}

sx_status ref_submit(ref_loaded *l, ref_device *const *devices, int n,
                     ref_buffer *const *const *args, const bool *donates,
                     ref_buffer **const *outputs, ref_event **events)
{
    execution *x = NULL;
    SX_TRY(execution_create(l, n, &x));
    memcpy(x->devices, devices, (size_t)n * sizeof(ref_device *));
    sx_status status = take_arguments(x, args, donates);
    if (status == SX_OK) {
        status = make_outputs(x, outputs);
        if (status != SX_OK) {
            drop_outputs(x, outputs);
        }
    }
    if (status != SX_OK) {
        execution_free(x);
        return status;
    }
    x->fault = ref_fault("later");
    x->is_stuck = ref_fault_due("stuck", NULL);
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < l->code->program->main.n_args; i++) {
            if (donates[i]) {
                atomic_store(&args[r][i]->is_deleted, true);
            }
            if (l->code->program->donors[i]) {
                atomic_fetch_add(&sx_pjrt_ref_counts.donations, 1);
            }
        }
        if (events != NULL) {
            events[r] = ref_event_retain(x->runs[r].end);
        }
    }
    atomic_fetch_add(&sx_pjrt_ref_counts.executions, 1);
    for (int r = 0; r < n; r++) {
        atomic_fetch_or(&sx_pjrt_ref_counts.devices, 1ul << devices[r]->index);
    }
    queue(x, l->client);
    for (int r = 0; r < n && events != NULL && ref_setting("within", 0) > 0; r++) {
        sx_status_free(ref_event_await(events[r])); /* its caller awaits it, too */
    }
    return SX_OK;
}
