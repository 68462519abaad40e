/* The worker pool: threads that run the same function side by side (design D4). A pool that takes
 * all processors of the process pins its threads, one to each (the caller's own thread is left
 * alone).
 *
 * sx_pool_run(pool, fn, user) calls fn(user, worker) once for every worker in [0, workers), the
 * caller itself being worker 0, and returns when all have returned. Workers spin for a few
 * microseconds between runs, then sleep: a step of many short phases does not pay a wake-up each.
 * A pool has one owner; runs do not nest. Cancellation is the functions' own affair. */
#ifndef SX_BASE_POOL_H
#define SX_BASE_POOL_H

#include <sextant/status.h>

typedef struct sx_pool sx_pool;
typedef void sx_pool_fn(void *user, int worker);

/* `workers` <= 0 means as many as this process may use: affinity mask and cgroup cpu.max. */
SX_MUST_USE sx_status sx_pool_create(int workers, sx_pool **out_pool);
void sx_pool_destroy(sx_pool *pool); /* NULL is fine */
int sx_pool_workers(const sx_pool *pool);
void sx_pool_run(sx_pool *pool, sx_pool_fn *fn, void *user);

/* A barrier among all workers of the pool's current run; every worker must reach it. */
void sx_pool_barrier(sx_pool *pool);

/* The processors that this process may use (affinity, cgroup quota rounded up); at least 1. */
int sx_cpu_count(void);

#endif
