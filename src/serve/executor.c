/* A fixed set of threads with one bounded queue; see executor.h. */
#include "serve/executor.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"

struct thread {
    sx_executor *executor;
    int index;
    pthread_t id;
};

struct sx_executor {
    pthread_mutex_t mutex; /* guards everything except the threads */
    pthread_cond_t submitted;
    sx_executor_job *first, **last;
    size_t queued, max_queued;
    bool stopping;
    int started;
    struct thread threads[];
};

/* The next job; NULL when the executor stops and the queue is empty. */
static sx_executor_job *take_job(sx_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    while (executor->first == NULL && !executor->stopping) {
        pthread_cond_wait(&executor->submitted, &executor->mutex);
    }
    sx_executor_job *job = executor->first;
    if (job != NULL) {
        executor->first = job->next;
        executor->queued--;
        if (executor->first == NULL) {
            executor->last = &executor->first;
        }
    }
    pthread_mutex_unlock(&executor->mutex);
    return job;
}

static void *run_thread(void *user)
{
    struct thread *thread = user;
    for (sx_executor_job *job; (job = take_job(thread->executor)) != NULL;) {
        job->fn(job, thread->index);
    }
    return NULL;
}

sx_status sx_executor_create(int threads, size_t max_queued, sx_executor **out)
{
    sx_executor *executor =
        sx_alloc(1, sizeof(*executor) + (size_t)threads * sizeof(executor->threads[0]));
    if (executor == NULL) {
        return sx_no_memory("for an executor");
    }
    executor->last = &executor->first;
    executor->max_queued = max_queued;
    pthread_mutex_init(&executor->mutex, NULL);
    pthread_cond_init(&executor->submitted, NULL);
    int error = 0;
    for (int i = 0; i < threads && error == 0; i++) {
        executor->threads[i] = (struct thread){.executor = executor, .index = i};
        error = sx_thread_create(&executor->threads[i].id, NULL, run_thread, &executor->threads[i]);
        executor->started += error == 0;
    }
    if (error != 0) {
        sx_status status = sx_error(SX_RESOURCE_EXHAUSTED, "executor: cannot start %d threads: %s",
                                    threads, strerror(error));
        sx_executor_destroy(executor);
        return status;
    }
    *out = executor;
    return SX_OK;
}

void sx_executor_stop(sx_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    pthread_mutex_lock(&executor->mutex);
    executor->stopping = true;
    pthread_cond_broadcast(&executor->submitted);
    pthread_mutex_unlock(&executor->mutex);
    for (int i = 0; i < executor->started; i++) {
        pthread_join(executor->threads[i].id, NULL);
    }
    executor->started = 0;
}

void sx_executor_destroy(sx_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    sx_executor_stop(executor);
    pthread_cond_destroy(&executor->submitted);
    pthread_mutex_destroy(&executor->mutex);
    sx_free(executor);
}

bool sx_executor_submit(sx_executor *executor, sx_executor_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&executor->mutex);
    const bool accepted = executor->queued < executor->max_queued && !executor->stopping;
    if (accepted) {
        *executor->last = job;
        executor->last = &job->next;
        executor->queued++;
        pthread_cond_signal(&executor->submitted);
    }
    pthread_mutex_unlock(&executor->mutex);
    return accepted;
}

size_t sx_executor_queued(sx_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    const size_t queued = executor->queued;
    pthread_mutex_unlock(&executor->mutex);
    return queued;
}
