/* The worker pool: threads that run the same function in parallel. A pool that uses all
 * processors of the process pins its threads, one to each, except for the caller's thread.
 *
 * sx_pool_run(pool, fn, user) calls fn(user, worker) once for each worker in [0, workers) and
 * returns when all calls have returned; worker 0 is the calling thread. Between runs, workers spin
 * for a few microseconds before they sleep, so a step of many short phases does not pay for a
 * wake-up in each. A pool must be used by one thread at a time; runs do not nest. There is no
 * cancellation: a function that can be cancelled must check for it. */
#ifndef SX_BASE_POOL_H
#define SX_BASE_POOL_H

#include <sextant/status.h>

typedef struct sx_pool sx_pool;
typedef void sx_pool_fn(void *user, int worker);

/* `workers` <= 0 means sx_cpu_count(). */
SX_MUST_USE sx_status sx_pool_create(int workers, sx_pool **out_pool);
void sx_pool_destroy(sx_pool *pool); /* NULL is fine */
int sx_pool_workers(const sx_pool *pool);
void sx_pool_run(sx_pool *pool, sx_pool_fn *fn, void *user);

/* A barrier for the workers of the current run; every worker must reach it. */
void sx_pool_barrier(sx_pool *pool);

/* The threads of all pools of the process that are in a run now. */
int sx_pool_running(void);

/* The number of processors that this process may use (affinity, cgroup quota rounded up); >= 1. */
int sx_cpu_count(void);

#endif
