/* Slots (session.h): several threads run one program.
 *
 *   program ── slots of a batch size   newest first; the list only grows while the program lives
 *                └── slot              EMPTY ──make──> IDLE <──take, give back──> BUSY
 *                                        └────────── empty ────────────┘
 *
 * A thread takes an idle slot with one compare-and-swap and releases it with one store. Only if
 * there is none, it locks the session's gate and creates a slot, or waits. It increments `waiters`
 * before it looks again, and a thread that releases a slot reads `waiters` after the store, so that
 * no wake-up is lost. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdalign.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "runtime/program.h"

enum { EMPTY, IDLE, BUSY };
enum { MAX_SLOTS = 1024, CACHE_LINE = 64 };

struct sx_slot {
    alignas(CACHE_LINE) atomic_int state;
    sx_program *program;
    sx_slots *slots;       /* that it is one of */
    sx_compiled *compiled; /* NULL while EMPTY */
    int device;            /* of the session */
};

struct sx_slots {
    sx_slot *slot; /* [most] */
    int most;
    int made; /* under the gate's lock */
    int64_t batch;
    sx_executable *executable; /* NULL until compiled, and after emptying; under the gate's lock */
    sx_slots *next;
};

void sx_slot_gate_init(sx_slot_gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    atomic_init(&gate->waiters, 0);
}

void sx_slot_gate_deinit(sx_slot_gate *gate)
{
    pthread_mutex_destroy(&gate->lock);
    pthread_cond_destroy(&gate->changed);
}

void sx_slots_destroy(sx_program *p)
{
    sx_slots *next;
    for (sx_slots *z = atomic_load(&p->slots); z != NULL; z = next) {
        next = z->next;
        for (int i = 0; i < z->most; i++) {
            sx_compiled_destroy(p, z->slot[i].compiled);
        }
        sx_executable_release(z->executable);
        sx_free_aligned(z->slot);
        sx_free(z);
    }
    atomic_store(&p->slots, NULL);
}

static sx_slots *find_slots(sx_program *p, int64_t batch)
{
    sx_slots *z = atomic_load_explicit(&p->slots, memory_order_acquire);
    while (z != NULL && z->batch != batch) {
        z = z->next;
    }
    return z;
}

static sx_slot *take_idle(sx_slots *z)
{
    for (int i = 0; i < z->most; i++) {
        int idle = IDLE;
        if (atomic_load(&z->slot[i].state) == IDLE &&
            atomic_compare_exchange_strong(&z->slot[i].state, &idle, BUSY)) {
            return &z->slot[i];
        }
    }
    return NULL;
}

/* ---- Creating, with the gate locked ---- */

static sx_status add_slots(sx_program *p, int64_t batch, sx_slots **out)
{
    for (int i = 0; i < p->graph->n_results; i++) {
        if (p->graph->results[i].arg >= 0) {
            return sx_error(SX_FAILED_PRECONDITION,
                            "the program updates variable \"%s\" and cannot be shared by threads",
                            p->graph->args[p->graph->results[i].arg].name);
        }
    }
    const int wish = sx_session_get_options(p->session)->slots;
    sx_slots *z = sx_alloc(1, sizeof(*z));
    if (z == NULL) {
        return sx_no_memory("for the slots of a program");
    }
    z->batch = batch;
    z->most = SX_MAX(wish > 0 ? wish : sx_cpu_count(), sx_session_slot_devices(p->session));
    z->most = SX_MIN(z->most, (int)MAX_SLOTS);
    z->slot = sx_alloc_aligned((size_t)z->most * sizeof(sx_slot), CACHE_LINE);
    if (z->slot == NULL) {
        sx_free(z);
        return sx_no_memory("for the slots of a program");
    }
    for (int i = 0; i < z->most; i++) {
        z->slot[i].program = p;
        z->slot[i].slots = z;
        z->slot[i].compiled = NULL;
        atomic_init(&z->slot[i].state, EMPTY);
    }
    z->next = atomic_load(&p->slots);
    atomic_store_explicit(&p->slots, z, memory_order_release);
    *out = z;
    return SX_OK;
}

/* The executable of another program of the session that computes the same, or NULL: signatures of a
 * model often differ in names alone. */
static sx_executable *find_equal(sx_program *p, int64_t batch)
{
    for (sx_program *q = sx_session_programs(p->session); q != NULL; q = q->next) {
        const bool equal = q != p && p->digest != NULL && q->digest != NULL &&
                           memcmp(p->digest, q->digest, sizeof(*p->digest)) == 0;
        const sx_slots *z = equal ? find_slots(q, batch) : NULL;
        if (z != NULL && z->executable != NULL) {
            return sx_executable_retain(z->executable);
        }
    }
    return NULL;
}

static sx_status compile_slots(sx_program *p, sx_slots *z, int64_t deadline_ns)
{
    sx_cancel cancel;
    sx_cancel_init(&cancel, deadline_ns);
    z->executable = z->executable != NULL ? z->executable : find_equal(p, z->batch);
    return z->executable != NULL
               ? SX_OK
               : sx_program_compile(p, SX_ONE_STEP(z->batch), &cancel, &z->executable);
}

/* The device with the fewest slots, the first of several. */
static int choose_device(const sx_program *p, const sx_slots *z)
{
    const int devices = sx_session_slot_devices(p->session);
    int best = 0, fewest = INT_MAX;
    for (int d = 0; d < devices; d++) {
        int count = 0;
        for (int i = 0; i < z->most; i++) {
            count += z->slot[i].compiled != NULL && z->slot[i].device == d;
        }
        best = count < fewest ? d : best;
        fewest = SX_MIN(fewest, count);
    }
    return best;
}

/* Creates a slot and takes it; *out is NULL if no more slots may be created. */
static sx_status make_slot(sx_program *p, sx_slots *z, int64_t deadline_ns, sx_slot **out)
{
    *out = NULL;
    sx_compiled *c = NULL;
    sx_status status = compile_slots(p, z, deadline_ns);
    if (status == SX_OK && z->made > 0 &&
        (z->made == z->most || z->made == z->executable->max_runs)) {
        return SX_OK;
    }
    const int device = choose_device(p, z);
    if (status == SX_OK) {
        status = sx_program_bind(p, z->executable, z->batch, 1, device, &c);
    }
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && z->made > 0) {
        sx_status_free(status);
        return SX_OK;
    }
    if (status != SX_OK) {
        sx_executable_release(z->executable);
        z->executable = NULL;
        return sx_status_annotate(status, __FILE__, __LINE__, "compiling for batch size %" PRId64,
                                  z->batch);
    }
    sx_slot *slot = z->slot;
    while (slot->compiled != NULL) {
        slot++;
    }
    slot->compiled = c;
    slot->device = device;
    atomic_store(&slot->state, BUSY);
    z->made++;
    *out = slot;
    return SX_OK;
}

/* Waits until no slot of the session is taken, and frees all; false if there were none. While
 * waiting, the gate is unlocked, but no slots are created. */
static bool empty_slots(sx_session *s)
{
    sx_slot_gate *gate = sx_session_gate(s);
    bool any = false;
    gate->emptying = true;
    for (sx_program *p = sx_session_programs(s); p != NULL; p = p->next) {
        for (sx_slots *z = atomic_load(&p->slots); z != NULL; z = z->next) {
            any |= z->executable != NULL;
            for (int i = 0; z->made > 0;) {
                int state = IDLE;
                if (atomic_compare_exchange_strong(&z->slot[i].state, &state, BUSY)) {
                    sx_compiled_destroy(p, z->slot[i].compiled);
                    z->slot[i].compiled = NULL;
                    atomic_store(&z->slot[i].state, EMPTY);
                    z->made--;
                } else if (state == BUSY) {
                    pthread_cond_wait(&gate->changed, &gate->lock);
                    continue;
                }
                i++;
            }
            sx_executable_release(z->executable);
            z->executable = NULL;
        }
    }
    gate->emptying = false;
    pthread_cond_broadcast(&gate->changed);
    return any;
}

/* ---- Taking ---- */

/* The gate is locked, and this thread is counted in `waiters`. */
static sx_status make_or_wait(sx_program *p, int64_t batch, int64_t deadline_ns, sx_slot **out)
{
    sx_slot_gate *gate = sx_session_gate(p->session);
    const struct timespec until = sx_timespec_of(deadline_ns);
    bool emptied = false, late = false;
    for (;;) {
        sx_slots *z = find_slots(p, batch);
        *out = z != NULL ? take_idle(z) : NULL;
        if (*out == NULL && !gate->emptying) {
            if (z == NULL) {
                SX_TRY(add_slots(p, batch, &z));
            }
            sx_status status = make_slot(p, z, deadline_ns, out);
            if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && !emptied &&
                empty_slots(p->session)) { /* again, alone */
                sx_status_free(status);
                emptied = true;
                continue;
            }
            SX_TRY(status);
        }
        if (*out != NULL) {
            return SX_OK;
        }
        if (late) {
            return sx_error(SX_DEADLINE_EXCEEDED,
                            "the program's runs were all in use until the deadline");
        }
        late = pthread_cond_clockwait(&gate->changed, &gate->lock, CLOCK_MONOTONIC, &until) ==
               ETIMEDOUT;
    }
}

sx_status sx_program_acquire(sx_program *p, int64_t batch, int64_t deadline_ns, sx_slot **out_slot)
{
    sx_slots *z = find_slots(p, batch);
    *out_slot = z != NULL ? take_idle(z) : NULL;
    if (*out_slot != NULL) {
        return SX_OK;
    }
    sx_slot_gate *gate = sx_session_gate(p->session);
    pthread_mutex_lock(&gate->lock);
    atomic_fetch_add(&gate->waiters, 1);
    sx_status status = make_or_wait(p, batch, deadline_ns, out_slot);
    atomic_fetch_sub(&gate->waiters, 1);
    pthread_mutex_unlock(&gate->lock);
    return status;
}

sx_status sx_program_try_acquire(sx_program *p, int64_t batch, sx_slot **out_slot)
{
    sx_slots *z = find_slots(p, batch);
    *out_slot = z != NULL ? take_idle(z) : NULL;
    if (*out_slot != NULL || z == NULL) {
        return SX_OK;
    }
    sx_slot_gate *gate = sx_session_gate(p->session);
    pthread_mutex_lock(&gate->lock);
    sx_status status = SX_OK;
    if (!gate->emptying && z->executable != NULL && z->made > 0) {
        status = make_slot(p, z, SX_NO_DEADLINE, out_slot);
    }
    pthread_mutex_unlock(&gate->lock);
    return status;
}

/* Leaves the slot's execution, which has not ended, to the device: the slot is made again when it
 * is needed. */
static void abandon(sx_slot *slot)
{
    sx_slot_gate *gate = sx_session_gate(slot->program->session);
    pthread_mutex_lock(&gate->lock);
    sx_compiled_destroy(slot->program, slot->compiled);
    slot->compiled = NULL;
    slot->slots->made--;
    atomic_store(&slot->state, EMPTY);
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

void sx_slot_release(sx_slot *slot)
{
    sx_slot_gate *gate = sx_session_gate(slot->program->session);
    if (atomic_load(&slot->compiled->run->state) == SX_RUN_PENDING) {
        abandon(slot);
        return;
    }
    atomic_store(&slot->state, IDLE);
    if (atomic_load(&gate->waiters) > 0) {
        pthread_mutex_lock(&gate->lock);
        pthread_cond_broadcast(&gate->changed);
        pthread_mutex_unlock(&gate->lock);
    }
}

bool sx_slot_is_wide(const sx_slot *slot)
{
    return slot->compiled->executable->max_runs == 1;
}

sx_status sx_program_compile_slots(sx_program *p, int64_t batch, bool *out_wide)
{
    sx_slot_gate *gate = sx_session_gate(p->session);
    pthread_mutex_lock(&gate->lock);
    sx_slots *z = find_slots(p, batch);
    sx_status status = z != NULL ? SX_OK : add_slots(p, batch, &z);
    status = status == SX_OK ? compile_slots(p, z, SX_NO_DEADLINE) : status;
    *out_wide = status == SX_OK && z->executable->max_runs == 1;
    pthread_mutex_unlock(&gate->lock);
    return status;
}

sx_status sx_slot_warm_up(sx_slot *slot)
{
    return sx_run_prepare(slot->compiled->run, slot->compiled->args);
}

sx_status sx_slot_begin(sx_slot *slot, const void *const *inputs, const sx_cancel *cancel)
{
    const sx_program *p = slot->program;
    const sx_compiled *c = slot->compiled;
    const bool borrow = !sx_platform_may_outlast(
        c->executable->platform, cancel != NULL ? cancel->deadline_ns : SX_NO_DEADLINE);
    for (int i = 0; i < p->n_inputs; i++) {
        SX_TRY(sx_device_buffer_write(c->args[p->inputs[i]], inputs[i], borrow));
    }
    sx_run_set_cancel(c->run, cancel);
    sx_status status = sx_run_submit(c->run, c->args, c->outputs);
    if (status != SX_OK) {
        sx_run_set_cancel(c->run, NULL);
    }
    return status;
}

sx_status sx_slot_end(sx_slot *slot, const sx_cancel *cancel)
{
    sx_run *run = slot->compiled->run;
    sx_status status = sx_run_await(run, cancel != NULL ? cancel->deadline_ns : SX_NO_DEADLINE);
    if (atomic_load(&run->state) != SX_RUN_PENDING) {
        sx_run_set_cancel(run, NULL);
    }
    return status;
}

sx_status sx_slot_read_output(sx_slot *slot, int i, void *data, int64_t deadline_ns)
{
    return sx_device_buffer_read_within(slot->compiled->outputs[slot->program->outputs[i]], data,
                                        deadline_ns);
}
