/* sx_iterator: the running state of a pipeline.
 *
 *   slots   [ k | k+1 | k+2 | ... ]      a ring of batches; batch b lives in slot b mod slots
 *             ^     ^     ^
 *             |     |     dispatch: the batch whose rows are being handed to workers
 *             |     next: what next() returns next
 *             held: the caller's batch (next - 1), released by the next call
 *
 * Workers take chunks of consecutive rows from the dispatch frontier and compute the order while
 * holding the lock, then produce the elements without it, directly in the rows of the slot. So the
 * stream is ordered by addressing, not by waiting, and its content does not depend on the workers.
 *
 * Where the caller computes on all processors between two calls of next(), workers would only take
 * turns with its threads, which wait for one another in every step: the step loses more time than a
 * worker gains. So workers whose number is tuned yield: they stop when they find the processors
 * taken, and when the ring is empty the caller waits until all of them have filled it.
 *
 * All memory is allocated at the start, except for strings. Strings that point into data read by
 * the source are read into memory of the batch, one scratch per chunk; others are copied into
 * buffers of the row. Both grow to the largest size seen. */
#include <pthread.h>
#include <string.h>

#include "base/args.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/thread.h"
#include "data/part.h"
#include "data/plan.h"

enum {
    MAX_WORKERS = 256,
    MAX_CHUNK = 64, /* maximum number of rows in a chunk */
    MAX_SLOTS = 4096,
    AUTO_ELEMENTS = 256,           /* prefetched by default, if the budget allows */
    AUTO_BYTES = 32 << 20,         /* and they take no more than this: memory costs time, too */
    AUTO_SLOTS = 3,                /* or this many batches, if that is more */
    STRING_GUESS_BYTES = 64 << 10, /* assumed size of a string, for the budget */
    TUNE_BATCHES = 2,
    TUNE_NS = 20 * 1000 * 1000,
    FILL_NS = 100 * 1000 * 1000, /* after which a caller with a batch waits no longer for more */
};
static const size_t max_string_bytes = (size_t)1 << 30;

/* A copy of one string of one row. */
struct kept_string {
    char *data;
    size_t capacity;
};

struct slot {
    sx_plan_batch where;
    int64_t number;
    int64_t given, done; /* rows handed out; rows produced */
    int chunks;          /* handed out */
    bool ends_epoch;
    sx_status error; /* of the first failing row */
    int64_t error_row;
    sx_tensor components[SX_MAX_COMPONENTS];
    int64_t *ids;                                   /* [batch] */
    uint64_t *epochs;                               /* [batch] */
    struct kept_string *strings[SX_MAX_COMPONENTS]; /* [batch * elems]; NULL = none to copy */
    sx_scratch *read; /* [most_chunks] memory of the strings; NULL = none owned by the batch */
};

struct worker {
    struct sx_iterator *iterator;
    int index;
    pthread_t thread;
    sx_producer *producer;
};

/* Rows [first, first + count) of a slot. */
struct chunk {
    struct slot *slot;
    int64_t first, count;
    sx_scratch *read; /* one of the slot's */
};

struct sx_iterator {
    sx_plan plan;
    sx_part part;
    struct slot *slots;
    int slot_count;
    int most_chunks; /* that a batch is cut into */
    int64_t row_bytes[SX_MAX_COMPONENTS];
    struct worker *workers;
    int worker_count; /* threads that may run; 0 = the caller's own */
    int thread_count; /* threads that run */
    bool tuned;

    pthread_mutex_t lock;
    pthread_cond_t work;  /* room in the ring, more workers wanted, or stop */
    pthread_cond_t ready; /* a batch is done, or no worker is busy */
    int64_t next, dispatch;
    bool held; /* batch next - 1 is with the caller */
    bool stop, pause;
    bool waiting;          /* the caller, for a batch */
    bool yielding;         /* workers leave the processors to the caller until it waits */
    int64_t wait_began_ns; /* if waiting */
    int active;            /* workers allowed to work */
    int in_flight;         /* chunks being produced */
    int sleeping;          /* workers that wait for work */

    struct sx_batch_data batch;
    sx_iterator_stats stats;
    int64_t cpu_ns; /* the processor time in stats.busy_ns */
    int64_t tune_since_ns, tune_wait_ns, tune_busy_ns, tune_batches;
};

/* ---- Making ---- */

static sx_status make_component(sx_iterator *it, struct slot *slot, int c)
{
    const sx_type *type = &it->plan.element.components[c].type;
    size_t rows = (size_t)it->plan.batch_size, bytes, strings;
    if (!sx_mul_size(rows, sx_data_bytes(type), &bytes)) {
        return sx_no_memory("for an iterator");
    }
    slot->components[c].data = sx_alloc_aligned(SX_MAX(bytes, (size_t)1), 64);
    if (slot->components[c].data == NULL) {
        return sx_no_memory(
            "for a batch of %lld x %zu bytes of \"%s\"; use a smaller batch or smaller elements",
            (long long)it->plan.batch_size, sx_data_bytes(type),
            it->plan.element.components[c].name);
    }
    slot->components[c].type =
        it->plan.batched ? it->plan.dataset->schema.components[c].type : *type;
    if (type->dtype != SX_STRING) {
        return SX_OK;
    }
    if (it->plan.strings_life == SX_STRINGS_ELEMENT) {
        if (!sx_mul_size(rows, (size_t)sx_type_elems(type), &strings)) {
            return sx_no_memory("for an iterator");
        }
        slot->strings[c] = sx_alloc(strings, sizeof(*slot->strings[c]));
        return slot->strings[c] == NULL ? sx_no_memory("for an iterator") : SX_OK;
    }
    if (it->plan.strings_life == SX_STRINGS_READ && slot->read == NULL) {
        slot->read = sx_alloc((size_t)it->most_chunks, sizeof(*slot->read));
        for (int i = 0; slot->read != NULL && i < it->most_chunks; i++) {
            sx_scratch_init(&slot->read[i]);
            slot->read[i].limit_bytes = SIZE_MAX / 2;
        }
        return slot->read == NULL ? sx_no_memory("for an iterator") : SX_OK;
    }
    return SX_OK;
}

static sx_status make_slot(sx_iterator *it, struct slot *slot)
{
    for (int c = 0; c < it->plan.element.count; c++) {
        SX_TRY(make_component(it, slot, c));
    }
    slot->ids = sx_alloc((size_t)it->plan.batch_size, sizeof(*slot->ids));
    slot->epochs = sx_alloc((size_t)it->plan.batch_size, sizeof(*slot->epochs));
    slot->number = -1;
    return slot->ids == NULL || slot->epochs == NULL ? sx_no_memory("for an iterator") : SX_OK;
}

static void free_slot(const sx_iterator *it, struct slot *slot)
{
    for (int c = 0; c < it->plan.element.count; c++) {
        int64_t strings = it->plan.batch_size * sx_type_elems(&it->plan.element.components[c].type);
        for (int64_t i = 0; slot->strings[c] != NULL && i < strings; i++) {
            sx_free(slot->strings[c][i].data);
        }
        sx_free(slot->strings[c]);
        sx_free_aligned(slot->components[c].data);
    }
    for (int i = 0; slot->read != NULL && i < it->most_chunks; i++) {
        sx_scratch_deinit(&slot->read[i]);
    }
    sx_free(slot->read);
    sx_free(slot->ids);
    sx_free(slot->epochs);
    sx_status_free(slot->error);
}

/* The bytes of one batch, with an assumed size of strings. */
static int64_t slot_bytes(const sx_plan *plan)
{
    int64_t bytes = 0;
    for (int c = 0; c < plan->element.count; c++) {
        const sx_type *type = &plan->element.components[c].type;
        bytes += (int64_t)sx_data_bytes(type);
        bytes += type->dtype == SX_STRING ? STRING_GUESS_BYTES * sx_type_elems(type) : 0;
    }
    return bytes > 0 ? bytes * plan->batch_size : plan->batch_size;
}

/* One slot is the caller's, the others are prefetched. */
static int choose_slots(const sx_plan *plan, const sx_iterator_args *args)
{
    if (args->prefetch > 0) {
        return SX_MIN(args->prefetch + 1, (int)MAX_SLOTS);
    }
    int64_t budget = args->memory_budget > 0 ? args->memory_budget
                                             : SX_MIN(sx_ram_bytes() / 8, (int64_t)1 << 30);
    int64_t bytes = SX_MAX(slot_bytes(plan), (int64_t)1);
    int64_t few = SX_MIN(AUTO_ELEMENTS / plan->batch_size, AUTO_BYTES / bytes);
    int64_t want = SX_MAX((int64_t)AUTO_SLOTS, few) + 1;
    int64_t fit = budget / bytes;
    int64_t slots = SX_MIN(SX_MAX(fit, (int64_t)2), want);
    return (int)SX_MAX(SX_MIN(slots, plan->total), (int64_t)2);
}

static sx_status make_workers(sx_iterator *it, int workers)
{
    int producers = SX_MAX(workers, 1); /* without threads the caller uses the first */
    it->workers = sx_alloc((size_t)producers, sizeof(*it->workers));
    if (it->workers == NULL) {
        return sx_no_memory("for an iterator");
    }
    it->worker_count = workers;
    for (int i = 0; i < producers; i++) {
        it->workers[i].iterator = it;
        it->workers[i].index = i;
        it->workers[i].producer = sx_alloc(1, sizeof(sx_producer));
        if (it->workers[i].producer == NULL) {
            return sx_no_memory("for an iterator");
        }
        SX_TRY(sx_producer_init(it->workers[i].producer, &it->plan));
    }
    return SX_OK;
}

static void free_workers(sx_iterator *it)
{
    for (int i = 0; it->workers != NULL && i < SX_MAX(it->worker_count, 1); i++) {
        if (it->workers[i].producer != NULL) {
            sx_producer_deinit(it->workers[i].producer, &it->plan);
            sx_free(it->workers[i].producer);
        }
    }
    sx_free(it->workers);
}

static sx_status fill_iterator(sx_iterator *it, const sx_iterator_args *args)
{
    it->tuned = args->workers == 0;
    int workers = args->workers < 0 ? 0 : args->workers == 0 ? sx_cpu_count() : args->workers;
    SX_TRY(make_workers(it, SX_MIN(workers, (int)MAX_WORKERS)));
    /* As chunk_rows() cuts: rows / (rows / 4 workers, rounded down) <= 8 workers, or MAX_CHUNK rows
     * each; one more for a rest. */
    it->most_chunks = (int)SX_MIN(it->plan.batch_size, it->plan.batch_size / MAX_CHUNK +
                                                           8 * SX_MAX(it->worker_count, 1) + 1);
    it->active = it->tuned ? 1 : it->worker_count;
    int slots = it->worker_count == 0 ? 1 : choose_slots(&it->plan, args);
    it->slots = sx_alloc((size_t)slots, sizeof(*it->slots));
    if (it->slots == NULL) {
        return sx_no_memory("for an iterator");
    }
    it->slot_count = slots;
    for (int i = 0; i < slots; i++) {
        SX_TRY(make_slot(it, &it->slots[i]));
    }
    for (int c = 0; c < it->plan.element.count; c++) {
        it->row_bytes[c] = (int64_t)sx_data_bytes(&it->plan.element.components[c].type);
    }
    return SX_OK;
}

sx_status sx_iterator_create_at(sx_dataset *dataset, const sx_iterator_args *args,
                                sx_iterator **out_iterator)
{
    SX_TAKE_ARGS(sx_iterator_args, args);
    sx_iterator *it = sx_alloc(1, sizeof(*it));
    if (it == NULL) {
        return sx_no_memory("for an iterator");
    }
    sx_status status = sx_plan_init(&it->plan, dataset);
    if (status != SX_OK) {
        sx_free(it);
        return status;
    }
    pthread_mutex_init(&it->lock, NULL);
    pthread_cond_init(&it->work, NULL);
    pthread_cond_init(&it->ready, NULL);
    status = fill_iterator(it, args);
    if (status != SX_OK) {
        sx_iterator_destroy(it);
        return status;
    }
    *out_iterator = it;
    return SX_OK;
}

void sx_iterator_destroy(sx_iterator *it)
{
    if (it == NULL) {
        return;
    }
    pthread_mutex_lock(&it->lock);
    it->stop = true;
    pthread_cond_broadcast(&it->work);
    pthread_mutex_unlock(&it->lock);
    for (int i = 0; i < it->thread_count; i++) {
        pthread_join(it->workers[i].thread, NULL);
    }
    free_workers(it);
    for (int i = 0; i < it->slot_count; i++) {
        free_slot(it, &it->slots[i]);
    }
    sx_free(it->slots);
    pthread_cond_destroy(&it->ready);
    pthread_cond_destroy(&it->work);
    pthread_mutex_destroy(&it->lock);
    sx_plan_deinit(&it->plan);
    sx_free(it);
}

/* ---- Handing out rows (under the lock) ---- */

static void keep_error(struct slot *slot, int64_t row, sx_status status)
{
    if (slot->error != SX_OK && slot->error_row <= row) {
        sx_status_free(status);
        return;
    }
    sx_status_free(slot->error);
    slot->error = status;
    slot->error_row = row;
}

/* The epoch of batch `number`'s first element. */
static sx_status first_epoch(sx_iterator *it, int64_t number, uint64_t *out_epoch)
{
    sx_plan_batch where;
    int64_t record;
    SX_TRY(sx_plan_locate_batch(&it->plan, number, &where));
    return sx_plan_locate(&it->plan, &where, 0, out_epoch, &record);
}

static sx_status locate_slot(sx_iterator *it, struct slot *slot)
{
    uint64_t epoch, next_epoch;
    SX_TRY(sx_plan_locate_batch(&it->plan, slot->number, &slot->where));
    slot->ends_epoch = slot->number + 1 == it->plan.total;
    if (!slot->ends_epoch) {
        SX_TRY(first_epoch(it, slot->number + 1, &next_epoch));
        SX_TRY(first_epoch(it, slot->number, &epoch));
        slot->ends_epoch = epoch != next_epoch;
    }
    return SX_OK;
}

/* Assigns the slot to batch `number`. */
static void begin_slot(sx_iterator *it, struct slot *slot, int64_t number)
{
    slot->number = number;
    slot->given = slot->done = slot->chunks = 0;
    sx_status_free(slot->error);
    slot->error = SX_OK;
    slot->where.size = 0;
    sx_status status = locate_slot(it, slot);
    if (status != SX_OK) {
        keep_error(slot, 0, status);
    }
}

static bool slot_done(const struct slot *slot)
{
    return slot->done == slot->where.size;
}

static bool has_room(const sx_iterator *it)
{
    int64_t first_in_use = it->next - (it->held ? 1 : 0);
    return !it->pause && it->dispatch < it->plan.total &&
           it->dispatch < first_in_use + it->slot_count;
}

static bool batch_ready(const sx_iterator *it)
{
    const struct slot *slot = &it->slots[it->next % it->slot_count];
    return slot->number == it->next && slot_done(slot);
}

static int64_t chunk_rows(const sx_iterator *it, const struct slot *slot)
{
    int64_t share = it->active > 0 ? slot->where.size / (4 * it->active) : slot->where.size;
    share = SX_MAX((int64_t)1, SX_MIN(share, (int64_t)MAX_CHUNK));
    return SX_MIN(share, slot->where.size - slot->given);
}

/* The next rows of the dispatch frontier; has_room() holds. A slot that could not be located has no
 * rows: its chunk is empty. */
static struct chunk take_chunk(sx_iterator *it)
{
    struct slot *slot = &it->slots[it->dispatch % it->slot_count];
    if (slot->number != it->dispatch) {
        begin_slot(it, slot, it->dispatch);
    }
    struct chunk chunk = {slot, slot->given, chunk_rows(it, slot), NULL};
    if (slot->read != NULL) {
        chunk.read = &slot->read[slot->chunks++];
    }
    for (int64_t row = chunk.first; row < chunk.first + chunk.count; row++) {
        sx_status status =
            sx_plan_locate(&it->plan, &slot->where, row, &slot->epochs[row], &slot->ids[row]);
        if (status != SX_OK) {
            keep_error(slot, row, status);
            slot->ids[row] = -1;
        }
    }
    slot->given += chunk.count;
    if (slot->given == slot->where.size) {
        it->dispatch++;
    }
    return chunk;
}

/* ---- Making rows (outside the lock) ---- */

static sx_status keep_string(struct kept_string *kept, sx_bytes *string)
{
    if (string->size > max_string_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "string of %zu bytes; a batch takes at most %zu",
                        string->size, max_string_bytes);
    }
    if (string->size > kept->capacity || kept->data == NULL) {
        size_t capacity = sx_align_up(string->size + string->size / 4 + 1, 64);
        char *data = sx_realloc(kept->data, capacity, 1);
        if (data == NULL) {
            return sx_no_memory("for an iterator");
        }
        kept->data = data;
        kept->capacity = capacity;
    }
    if (string->size != 0) {
        memcpy(kept->data, string->data, string->size);
    }
    string->data = kept->data;
    return SX_OK;
}

static sx_status keep_strings(const sx_iterator *it, struct slot *slot, int64_t row,
                              void *const *destinations)
{
    for (int c = 0; c < it->plan.element.count; c++) {
        int64_t elems = sx_type_elems(&it->plan.element.components[c].type);
        sx_bytes *strings = destinations[c];
        for (int64_t i = 0; slot->strings[c] != NULL && i < elems; i++) {
            SX_TRY(keep_string(&slot->strings[c][row * elems + i], &strings[i]));
        }
    }
    return SX_OK;
}

static sx_status make_row(const sx_iterator *it, sx_producer *producer, struct slot *slot,
                          int64_t row)
{
    void *destinations[SX_MAX_COMPONENTS];
    for (int c = 0; c < it->plan.element.count; c++) {
        destinations[c] = (char *)slot->components[c].data + row * it->row_bytes[c];
    }
    SX_TRY(sx_producer_run(producer, &it->plan, slot->epochs[row], slot->ids[row], destinations));
    return keep_strings(it, slot, row, destinations);
}

/* The first error among the chunk's rows that are read here; *out_row says which. Later rows are
 * skipped: the batch will not be returned. */
static sx_status make_rows(const sx_iterator *it, sx_producer *producer, const struct chunk *chunk,
                           int64_t *out_row)
{
    int64_t first, end;
    sx_part_rows(&it->part, chunk->slot->where.size, &first, &end);
    first = SX_MAX(first, chunk->first);
    end = SX_MIN(end, chunk->first + chunk->count);
    if (chunk->read != NULL) {
        sx_scratch_reset(chunk->read);
    }
    if (end <= first) {
        return SX_OK;
    }
    sx_producer_begin(producer, chunk->slot->ids + first, end - first, chunk->read);
    for (int64_t row = first; row < end; row++) {
        if (chunk->slot->ids[row] < 0) {
            continue;
        }
        sx_status status = make_row(it, producer, chunk->slot, row);
        if (status != SX_OK) {
            *out_row = row;
            return status;
        }
    }
    return SX_OK;
}

/* Takes and produces one chunk; called with the lock held, which is released meanwhile. */
static void work_once(sx_iterator *it, sx_producer *producer)
{
    struct chunk chunk = take_chunk(it);
    it->in_flight++;
    pthread_mutex_unlock(&it->lock);
    int64_t row = 0, begin_ns = sx_now_ns(), begin_cpu_ns = sx_thread_cpu_ns();
    sx_status status = make_rows(it, producer, &chunk, &row);
    int64_t busy_ns = sx_now_ns() - begin_ns, cpu_ns = sx_thread_cpu_ns() - begin_cpu_ns;
    pthread_mutex_lock(&it->lock);
    it->in_flight--;
    it->stats.busy_ns += busy_ns;
    it->cpu_ns += cpu_ns;
    if (status != SX_OK) {
        keep_error(chunk.slot, row, status);
    }
    chunk.slot->done += chunk.count;
    if (it->in_flight == 0 || (slot_done(chunk.slot) && chunk.slot->number == it->next)) {
        pthread_cond_signal(&it->ready);
    }
}

/* Whether workers may take a chunk. While the caller computes, a worker that finds all processors
 * taken makes all yield, unless their work is mostly waiting, for files. */
static bool may_work(sx_iterator *it)
{
    if (!has_room(it)) {
        return false;
    }
    if (it->waiting) {
        return !it->yielding || !batch_ready(it) || sx_now_ns() - it->wait_began_ns < FILL_NS;
    }
    if (it->tuned && !it->yielding && it->cpu_ns > it->stats.busy_ns / 4 &&
        sx_pool_running() + it->in_flight >= it->worker_count) {
        it->yielding = true;
        it->active = it->worker_count;
    }
    return !it->yielding;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    sx_iterator *it = worker->iterator;
    pthread_mutex_lock(&it->lock);
    while (!it->stop) {
        if (worker->index < it->active && may_work(it)) {
            work_once(it, worker->producer);
        } else {
            it->sleeping++;
            pthread_cond_wait(&it->work, &it->lock);
            it->sleeping--;
        }
    }
    pthread_mutex_unlock(&it->lock);
    return NULL;
}

/* ---- Next ---- */

static sx_status start_threads(sx_iterator *it)
{
    while (it->thread_count < it->active) {
        struct worker *worker = &it->workers[it->thread_count];
        int error = sx_thread_create(&worker->thread, NULL, worker_main, worker);
        if (error != 0) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "iterator: cannot start a thread: %s",
                            strerror(error));
        }
        it->thread_count++;
    }
    return SX_OK;
}

static void make_batch_here(sx_iterator *it)
{
    while (!batch_ready(it)) {
        work_once(it, it->workers[0].producer);
    }
}

static void await_batch(sx_iterator *it)
{
    if (batch_ready(it)) {
        return;
    }
    it->wait_began_ns = sx_now_ns();
    if (it->worker_count == 0) {
        make_batch_here(it);
    }
    it->waiting = true;
    if (it->yielding) {
        pthread_cond_broadcast(&it->work);
    }
    while (!batch_ready(it) || (it->yielding && (it->in_flight > 0 || may_work(it)))) {
        pthread_cond_wait(&it->ready, &it->lock);
    }
    it->waiting = it->yielding = false;
    it->stats.wait_ns += sx_now_ns() - it->wait_began_ns;
}

/* Adds a worker while the caller spends more than a twentieth of its time waiting; takes one away
 * while the others could do its work with a fifth of their time to spare, since it would only be in
 * the way of the caller's threads. */
static void tune(sx_iterator *it)
{
    int64_t now_ns = sx_now_ns(), elapsed_ns = now_ns - it->tune_since_ns;
    if (!it->tuned || (++it->tune_batches < TUNE_BATCHES && it->tune_since_ns != 0) ||
        elapsed_ns < TUNE_NS) {
        return;
    }
    int64_t waited_ns = it->stats.wait_ns - it->tune_wait_ns;
    int64_t busy_ns = it->stats.busy_ns - it->tune_busy_ns;
    if (it->tune_since_ns == 0) {
        /* the first batch begins the first period */
    } else if (waited_ns > elapsed_ns / 20) {
        it->active += it->active < it->worker_count ? 1 : 0;
        pthread_cond_broadcast(&it->work);
    } else if (it->active > 1 && busy_ns < elapsed_ns / 5 * 4 * (it->active - 1)) {
        it->active--;
    }
    it->tune_since_ns = now_ns;
    it->tune_wait_ns = it->stats.wait_ns;
    it->tune_busy_ns = it->stats.busy_ns;
    it->tune_batches = 0;
}

static void show_batch(sx_iterator *it, struct slot *slot)
{
    if (it->plan.batched) {
        for (int c = 0; c < it->plan.element.count; c++) {
            slot->components[c].type.dims[0] = slot->where.size;
        }
    }
    it->batch = (struct sx_batch_data){.size = slot->where.size,
                                       .count = it->plan.element.count,
                                       .components = slot->components,
                                       .ids = slot->ids,
                                       .epoch = slot->epochs[0],
                                       .number = slot->number,
                                       .ends_epoch = slot->ends_epoch};
    it->stats.batches++;
    it->stats.elements += slot->where.size;
}

static sx_status copy_error(sx_status status)
{
    sx_code code = sx_status_code(status);
    code = code == SX_OUT_OF_RANGE ? SX_INVALID_ARGUMENT : code; /* which means the end here */
    return sx_error(code, "%s", sx_status_message(status));
}

/* Releases the caller's batch, so that workers can use its slot. They are woken when a quarter of
 * the ring is free, to save wake-ups with small batches. (If no batch is being produced, the whole
 * ring is free, so this cannot deadlock.) */
static void drop_held(sx_iterator *it)
{
    it->held = false;
    if (it->sleeping > 0 && it->next + it->slot_count - it->dispatch >= it->slot_count / 4) {
        pthread_cond_broadcast(&it->work);
    }
}

static sx_status next_locked(sx_iterator *it)
{
    drop_held(it);
    if (it->next >= it->plan.total) {
        return sx_error(SX_OUT_OF_RANGE, "end of data after %lld batches",
                        (long long)it->plan.total);
    }
    SX_TRY(start_threads(it));
    await_batch(it);
    struct slot *slot = &it->slots[it->next % it->slot_count];
    if (slot->error != SX_OK) {
        return copy_error(slot->error);
    }
    show_batch(it, slot);
    it->next++;
    it->held = true;
    tune(it);
    return SX_OK;
}

void sx_iterator_take_part(sx_iterator *it, const sx_part *part)
{
    it->part = *part;
}

sx_dataset *sx_iterator_dataset(const sx_iterator *it)
{
    return it->plan.dataset;
}

sx_status sx_iterator_next(sx_iterator *it, const struct sx_batch_data **out_batch)
{
    pthread_mutex_lock(&it->lock);
    sx_status status = next_locked(it);
    pthread_mutex_unlock(&it->lock);
    if (status == SX_OK) {
        *out_batch = &it->batch;
    }
    return status;
}

/* ---- The cursor ----
 *
 *   0  "SXCURSR1"
 *   8  fingerprint of the pipeline, uint64 LE
 *  16  records in the source, int64 LE
 *  24  number of the next batch, int64 LE
 *  32  FNV-1a 64 of bytes [0, 32), uint64 LE */

static const char cursor_magic[8] = {'S', 'X', 'C', 'U', 'R', 'S', 'R', '1'};

static void put_u64(uint8_t *to, uint64_t x)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(x >> (8 * i));
    }
}

static uint64_t get_u64(const uint8_t *from)
{
    uint64_t x = 0;
    for (int i = 7; i >= 0; i--) {
        x = x << 8 | from[i];
    }
    return x;
}

void sx_iterator_save(const sx_iterator *it, uint8_t cursor[SX_CURSOR_BYTES])
{
    memcpy(cursor, cursor_magic, sizeof(cursor_magic));
    put_u64(cursor + 8, it->plan.fingerprint);
    put_u64(cursor + 16, (uint64_t)it->plan.dataset->source->count);
    put_u64(cursor + 24, (uint64_t)it->next);
    put_u64(cursor + 32, sx_hash64(cursor, 32));
}

sx_status sx_iterator_restore(sx_iterator *it, const uint8_t cursor[SX_CURSOR_BYTES])
{
    if (memcmp(cursor, cursor_magic, sizeof(cursor_magic)) != 0 ||
        get_u64(cursor + 32) != sx_hash64(cursor, 32)) {
        return sx_error(SX_DATA_LOSS, "data cursor: invalid or damaged (%d bytes)",
                        (int)SX_CURSOR_BYTES);
    }
    int64_t records = (int64_t)get_u64(cursor + 16);
    if (records != it->plan.dataset->source->count) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "data cursor: saved for %lld records, but the data set has %lld",
                        (long long)records, (long long)it->plan.dataset->source->count);
    }
    if (get_u64(cursor + 8) != it->plan.fingerprint) {
        return sx_error(
            SX_FAILED_PRECONDITION,
            "data cursor: saved for a different pipeline (order, seed, maps or batch size)");
    }
    return sx_iterator_seek(it, (int64_t)get_u64(cursor + 24));
}

/* Waits until no worker is busy, and discards all prefetched batches. */
static void forget_all(sx_iterator *it)
{
    it->pause = true;
    while (it->in_flight != 0) {
        pthread_cond_wait(&it->ready, &it->lock);
    }
    it->pause = false;
    it->held = false;
    for (int i = 0; i < it->slot_count; i++) {
        it->slots[i].number = -1;
        it->slots[i].where.size = 0;
    }
}

sx_status sx_iterator_seek(sx_iterator *it, int64_t number)
{
    if (number < 0 || number > it->plan.total) {
        return sx_error(SX_OUT_OF_RANGE, "cannot continue at batch %lld: the data has %lld",
                        (long long)number, (long long)it->plan.total);
    }
    pthread_mutex_lock(&it->lock);
    if (number != it->next) {
        forget_all(it);
        it->next = it->dispatch = number;
        pthread_cond_broadcast(&it->work);
    }
    pthread_mutex_unlock(&it->lock);
    return SX_OK;
}

void sx_iterator_get_stats(const sx_iterator *iterator, sx_iterator_stats *out_stats)
{
    sx_iterator *it = (sx_iterator *)(uintptr_t)iterator; /* the lock is not part of its value */
    pthread_mutex_lock(&it->lock);
    *out_stats = it->stats;
    out_stats->workers = it->active;
    out_stats->prefetch = it->slot_count - 1;
    pthread_mutex_unlock(&it->lock);
}
