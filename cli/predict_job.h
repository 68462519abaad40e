/* A directory of predictions that several processes write, each one shard at a time:
 *
 *   job.json                         what is predicted: a process that means something else is
 * refused prediction.results-00002-of-00008  shard 2, complete; errors, if any, are in
 * prediction.errors-…
 *
 * A process holds a lock on byte k of job.json while it works on shard k; the system releases it
 * however the process ends. A shard appears when it is complete, so that a job continues where it
 * was stopped. */
#ifndef SX_CLI_PREDICT_JOB_H
#define SX_CLI_PREDICT_JOB_H

#include <jansson.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "io/commit.h"

typedef struct sx_predict_job {
    const char *dir; /* borrowed */
    int64_t shards, count;
    int fd; /* of job.json */
} sx_predict_job;

enum { SX_PREDICT_JOB_SHARDS = 99999 };

/* Creates the job in `dir`, or continues it. `settings` is what makes it this job; `shards` 0 means
 * as many as the job has, or in a new one, one for each 1,000 of its `count` examples, 1 to 1,000.
 * Errors: FAILED_PRECONDITION: the directory has another job: names the first setting that differs,
 * or files that are no job. Close it also after an error. */
SX_MUST_USE sx_status sx_predict_job_open(const char *dir, const json_t *settings, int64_t shards,
                                          int64_t count, sx_predict_job *out_job);
void sx_predict_job_close(sx_predict_job *job);

/* Takes a shard that is not complete and that no process works on, from `*shard` on; -1: there is
 * none. Release it when it is committed, or given up. */
SX_MUST_USE sx_status sx_predict_job_take(sx_predict_job *job, int64_t *shard);
void sx_predict_job_release(sx_predict_job *job, int64_t shard);

/* The examples of a shard: [*out_begin, *out_end). */
void sx_predict_job_range(const sx_predict_job *job, int64_t shard, int64_t *out_begin,
                          int64_t *out_end);
/* DIR/prediction.results-00002-of-00008, for "results"; NULL if out of memory. */
const char *sx_predict_job_path(const sx_predict_job *job, const char *what, int64_t shard,
                                sx_arena *arena);
/* The shards that are complete, and their examples. */
SX_MUST_USE sx_status sx_predict_job_done(const sx_predict_job *job, int64_t *out_shards,
                                          int64_t *out_examples);

#endif
