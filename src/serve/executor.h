/* A fixed set of threads with one bounded queue: where requests are parsed, run and answered.
 *
 * Jobs are embedded in their owners (no allocation), run in the order of submission, and every job
 * that was accepted is run, the queue's rest included when the executor is destroyed: a job looks
 * itself whether it still makes sense. */
#ifndef SX_SERVE_EXECUTOR_H
#define SX_SERVE_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

typedef struct sx_executor sx_executor;

/* `worker` is the number of the thread, in [0, threads): an index for per-thread state. */
typedef struct sx_executor_job {
    void (*fn)(struct sx_executor_job *job, int worker);
    struct sx_executor_job *next;
} sx_executor_job;

SX_MUST_USE sx_status sx_executor_create(int threads, size_t max_queued, sx_executor **out);
/* Runs what is queued, then ends the threads; nothing more is accepted. Idempotent; NULL is fine.
 */
void sx_executor_stop(sx_executor *executor);
void sx_executor_destroy(sx_executor *executor); /* stops first; NULL is fine */

/* False if the queue is full, or the executor stopped. Any thread. */
SX_MUST_USE bool sx_executor_submit(sx_executor *executor, sx_executor_job *job);

size_t sx_executor_queued(sx_executor *executor);

#endif
