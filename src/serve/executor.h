/* Threads with one bounded queue: on which requests are parsed and answered.
 *
 * Jobs are embedded in their owners (no allocation) and are taken in the order of submission, by
 * as many threads at once as are told. A job that waits, or computes on a run state, leaves:
 * another thread takes its place meanwhile. Every accepted job is run, including those still queued
 * when the executor is destroyed: a job checks itself whether it has expired. */
#ifndef SX_SERVE_EXECUTOR_H
#define SX_SERVE_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

typedef struct sx_executor sx_executor;

/* `worker` is the thread's index in [0, max_threads), for per-thread state. */
typedef struct sx_executor_job {
    void (*fn)(struct sx_executor_job *job, int worker);
    struct sx_executor_job *next;
} sx_executor_job;

/* `threads` work at once; those that have left count only in `max_threads`, and are started when
 * they are needed. */
SX_MUST_USE sx_status sx_executor_create(int threads, int max_threads, size_t max_queued,
                                         sx_executor **out);
/* Runs the queued jobs, then ends the threads; no more jobs are accepted. Idempotent; NULL is
 * allowed. */
void sx_executor_stop(sx_executor *executor);
void sx_executor_destroy(sx_executor *executor); /* stops first; NULL is allowed */

/* False if the queue is full or the executor has stopped. Any thread. */
SX_MUST_USE bool sx_executor_submit(sx_executor *executor, sx_executor_job *job);

/* Around what a job waits for, on its thread. It comes back at once: there may be more threads at
 * work than told, for a while. */
void sx_executor_leave(sx_executor *executor);
void sx_executor_return(sx_executor *executor);

size_t sx_executor_queued(sx_executor *executor);

#endif
