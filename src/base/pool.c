/* The worker pool: one gate that starts a run, one barrier that ends it.
 *
 *   owner      publish fn, user -> open `start` -> fn(user, 0) -> barrier -> return
 *   worker i   wait at `start`  -> fn(user, i)                 -> barrier -> wait at `start`
 *
 * A gate is a counter. A thread waits until the counter differs from the value it last saw: it
 * spins for SPIN_NS, then sleeps on a futex. No wake-up is lost: a sleeper increments `sleepers`
 * before the kernel compares the counter again, and the opener changes the counter before it reads
 * `sleepers`; all four operations are sequentially consistent.
 *
 * The barrier is also a gate (the phase), opened by the last of `workers` arrivals. A worker that
 * is slow to leave a phase cannot miss the next one, which requires its own arrival.
 *
 * Only pthreads and C11 atomics without fences are used, so that ThreadSanitizer sees every edge.
 */
#include "base/pool.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    MAX_WORKERS = 1024,
    CACHE_LINE = 64,
    SPIN_NS = 20 * 1000, /* longer than the serial piece between two phases of a step */
    PAUSES = 50,         /* about a microsecond */
};

typedef struct gate {
    alignas(CACHE_LINE) atomic_uint number;
    atomic_uint sleepers;
} gate;

typedef struct worker {
    sx_pool *pool;
    int index;
    pthread_t thread;
} worker;

struct sx_pool {
    gate start; /* opened once for each run, and once to stop */
    gate phase; /* opened once for each barrier */
    alignas(CACHE_LINE) atomic_int arrived;
    alignas(CACHE_LINE) sx_pool_fn *fn; /* written by the owner before `start` opens */
    void *user;
    bool stopping;
    bool spin; /* false when there are more workers than processors */
    int workers;
    int started; /* threads that exist: workers[1 .. started] */
    worker worker[];
};

static atomic_int running; /* threads in runs, of all pools */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Polls the gate for about SPIN_NS, true if it opened. After PAUSES polls it yields the processor
 * between polls, because on a loaded machine the awaited thread may be queued behind this one. */
static bool spin_at(gate *g, unsigned seen)
{
    for (int i = 0; i < PAUSES; i++) {
        if (atomic_load_explicit(&g->number, memory_order_acquire) != seen) {
            return true;
        }
        pause_cpu();
    }
    int64_t deadline = sx_now_ns() + SPIN_NS;
    do {
        if (atomic_load_explicit(&g->number, memory_order_acquire) != seen) {
            return true;
        }
        sched_yield();
    } while (sx_now_ns() < deadline);
    return false;
}

/* Returns when the counter is no longer `seen`. */
static void gate_wait(gate *g, unsigned seen, bool spin)
{
    if (spin && spin_at(g, seen)) {
        return;
    }
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->number) == seen) {
        syscall(SYS_futex, &g->number, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    atomic_fetch_sub(&g->sleepers, 1);
}

static void gate_open(gate *g)
{
    atomic_fetch_add(&g->number, 1);
    if (atomic_load(&g->sleepers) != 0) {
        syscall(SYS_futex, &g->number, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

void sx_pool_barrier(sx_pool *pool)
{
    unsigned seen = atomic_load_explicit(&pool->phase.number, memory_order_acquire);
    if (atomic_fetch_add(&pool->arrived, 1) + 1 < pool->workers) {
        gate_wait(&pool->phase, seen, pool->spin);
        return;
    }
    atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
    gate_open(&pool->phase);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    sx_pool *pool = self->pool;
    for (unsigned seen = 0;; seen++) {
        gate_wait(&pool->start, seen, pool->spin);
        if (pool->stopping) {
            return NULL;
        }
        pool->fn(pool->user, self->index);
        sx_pool_barrier(pool);
    }
}

void sx_pool_run(sx_pool *pool, sx_pool_fn *fn, void *user)
{
    if (pool->workers == 1) {
        fn(user, 0);
        return;
    }
    pool->fn = fn;
    pool->user = user;
    atomic_fetch_add_explicit(&running, pool->workers, memory_order_relaxed);
    gate_open(&pool->start);
    fn(user, 0);
    sx_pool_barrier(pool);
    atomic_fetch_sub_explicit(&running, pool->workers, memory_order_relaxed);
}

int sx_pool_running(void)
{
    return atomic_load_explicit(&running, memory_order_relaxed);
}

/* Pins each worker except the caller's thread to a processor if the pool uses all of them; with
 * fewer workers the kernel places them better. Failures are ignored. */
static void pin_workers(sx_pool *pool)
{
    int cpus[MAX_WORKERS];
    if (sx_cpu_affinity(cpus, MAX_WORKERS) != pool->workers) {
        return;
    }
    for (int i = 1; i < pool->workers; i++) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus[i] + 1);
        if (set == NULL) {
            return;
        }
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus[i] + 1);
        CPU_ZERO_S(bytes, set);
        CPU_SET_S((size_t)cpus[i], bytes, set);
        (void)pthread_setaffinity_np(pool->worker[i].thread, bytes, set);
        CPU_FREE(set);
    }
}

static sx_status start_worker(sx_pool *pool, int index)
{
    worker *w = &pool->worker[index];
    *w = (worker){.pool = pool, .index = index};
    int error = sx_thread_create(&w->thread, NULL, worker_main, w);
    if (error != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "cannot start worker thread %d of %d: %s; use fewer threads or raise the "
                        "process limit (ulimit -u)",
                        index, pool->workers, strerror(error));
    }
    pool->started = index;
    char name[24]; /* the kernel keeps 15 characters, which no pool fills */
    snprintf(name, sizeof(name), "sextant-%d", index);
    (void)pthread_setname_np(w->thread, name);
    return SX_OK;
}

sx_status sx_pool_create(int workers, sx_pool **out_pool)
{
    int cpus = sx_cpu_count();
    workers = workers <= 0 ? SX_MIN(cpus, (int)MAX_WORKERS) : workers;
    if (workers > MAX_WORKERS) {
        return sx_error(SX_INVALID_ARGUMENT, "%d worker threads requested; the maximum is %d",
                        workers, MAX_WORKERS);
    }
    size_t bytes = sizeof(sx_pool) + (size_t)workers * sizeof(worker);
    sx_pool *pool = sx_alloc_aligned(bytes, CACHE_LINE);
    if (pool == NULL) {
        return sx_no_memory("for %d worker threads", workers);
    }
    memset(pool, 0, bytes);
    pool->workers = workers;
    pool->spin = workers <= cpus;
    for (int i = 1; i < workers; i++) {
        sx_status status = start_worker(pool, i);
        if (status != SX_OK) {
            sx_pool_destroy(pool);
            return status;
        }
    }
    pin_workers(pool);
    *out_pool = pool;
    return SX_OK;
}

void sx_pool_destroy(sx_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pool->stopping = true;
    gate_open(&pool->start);
    for (int i = 1; i <= pool->started; i++) {
        pthread_join(pool->worker[i].thread, NULL);
    }
    sx_free_aligned(pool);
}

int sx_pool_workers(const sx_pool *pool)
{
    return pool->workers;
}
