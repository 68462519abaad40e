/* Threads with one bounded queue: on which requests are parsed, run and answered.
 *
 * Jobs are embedded in their owners (no allocation) and are taken in the order of submission, by
 * as many threads at once as are told. A job that has to wait for something gives its thread up,
 * and is resumed later. One that runs a model leaves its place to others meanwhile: there are as
 * many more threads as models run at once. Every accepted job is run to its end, including those
 * still queued, or waiting, when the executor is stopped: a job checks itself whether it has
 * expired. */
#ifndef SX_SERVE_EXECUTOR_H
#define SX_SERVE_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/status.h>

typedef struct sx_executor sx_executor;

/* `worker` is the thread's index in [0, threads + running), for per-thread state. */
typedef struct sx_executor_job {
    /* Whether the job has ended. If not, it is resumed, perhaps before this returns: it is not to
     * be touched then. */
    bool (*fn)(struct sx_executor_job *job, int worker);
    struct sx_executor_job *next;
} sx_executor_job;

/* `threads` work at once; `running` more are started when they are needed. */
SX_MUST_USE sx_status sx_executor_create(int threads, int running, size_t max_queued,
                                         sx_executor **out);
/* Waits for the jobs to end, then ends the threads; no more jobs are accepted. Idempotent; NULL is
 * allowed. */
void sx_executor_stop(sx_executor *executor);
void sx_executor_destroy(sx_executor *executor); /* stops first; NULL is allowed */

/* False if the queue is full or the executor has stopped. Any thread. */
SX_MUST_USE bool sx_executor_submit(sx_executor *executor, sx_executor_job *job);
/* A job that has not ended goes on, before those that have not begun. `runs`: it runs a model, at
 * once and without a place; no more than `running` do. Any thread. */
void sx_executor_resume(sx_executor *executor, sx_executor_job *job, bool runs);

/* Before a job runs a model, on its thread. */
void sx_executor_leave(sx_executor *executor, int worker);
/* After it has, or was resumed for that: false if all places are taken. The job is then to be
 * resumed. */
SX_MUST_USE bool sx_executor_return(sx_executor *executor, int worker);

size_t sx_executor_queued(sx_executor *executor); /* those that have not begun */

#endif
