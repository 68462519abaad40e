/* Threads with one bounded queue; see executor.h. */
#include "serve/executor.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/thread.h"

struct thread {
    sx_executor *executor;
    int index;
    pthread_t id;
};

struct sx_executor {
    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t wanted; /* there is a job that may be taken, or the executor stops */
    sx_executor_job *first, **last;
    size_t queued, max_queued;
    bool stopping;
    int at_work, max_at_work; /* threads with a job that has not left */
    int idle;                 /* threads that wait for a job */
    int started, max_threads;
    struct thread threads[]; /* [max_threads] */
};

static bool may_take(const sx_executor *executor)
{
    return executor->first != NULL && executor->at_work < executor->max_at_work;
}

static void *run_thread(void *user);

static int start_thread(sx_executor *executor)
{
    const int i = executor->started;
    executor->threads[i] = (struct thread){.executor = executor, .index = i};
    const int error =
        sx_thread_create(&executor->threads[i].id, NULL, run_thread, &executor->threads[i]);
    executor->started += error == 0;
    return error;
}

/* With the mutex held: lets a thread take the next job, if one may. One that cannot be started is
 * no error: a thread that ends its job takes it. */
static void stir(sx_executor *executor)
{
    if (!may_take(executor)) {
        return;
    }
    if (executor->idle > 0) {
        pthread_cond_signal(&executor->wanted);
    } else if (executor->started < executor->max_threads) {
        (void)start_thread(executor);
    }
}

/* The next job; NULL when the executor stops and the queue is empty. */
static sx_executor_job *take_job(sx_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    while (!may_take(executor) && !(executor->stopping && executor->first == NULL)) {
        executor->idle++;
        pthread_cond_wait(&executor->wanted, &executor->mutex);
        executor->idle--;
    }
    sx_executor_job *job = executor->first;
    if (job != NULL) {
        executor->first = job->next;
        executor->queued--;
        executor->at_work++;
        if (executor->first == NULL) {
            executor->last = &executor->first;
            if (executor->stopping) {
                pthread_cond_broadcast(&executor->wanted);
            }
        }
        stir(executor);
    }
    pthread_mutex_unlock(&executor->mutex);
    return job;
}

void sx_executor_leave(sx_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    executor->at_work--;
    stir(executor);
    pthread_mutex_unlock(&executor->mutex);
}

void sx_executor_return(sx_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    executor->at_work++;
    pthread_mutex_unlock(&executor->mutex);
}

static void *run_thread(void *user)
{
    struct thread *thread = user;
    for (sx_executor_job *job; (job = take_job(thread->executor)) != NULL;) {
        job->fn(job, thread->index);
        sx_executor_leave(thread->executor);
    }
    return NULL;
}

sx_status sx_executor_create(int threads, int max_threads, size_t max_queued, sx_executor **out)
{
    max_threads = SX_MAX(threads, max_threads);
    sx_executor *executor =
        sx_alloc(1, sizeof(*executor) + (size_t)max_threads * sizeof(executor->threads[0]));
    if (executor == NULL) {
        return sx_no_memory("for an executor");
    }
    executor->last = &executor->first;
    executor->max_queued = max_queued;
    executor->max_at_work = threads;
    executor->max_threads = max_threads;
    pthread_mutex_init(&executor->mutex, NULL);
    pthread_cond_init(&executor->wanted, NULL);
    int error = 0;
    pthread_mutex_lock(&executor->mutex);
    for (int i = 0; i < threads && error == 0; i++) {
        error = start_thread(executor);
    }
    pthread_mutex_unlock(&executor->mutex);
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
    pthread_cond_broadcast(&executor->wanted);
    /* Threads may still be started, for jobs whose threads have left, until the queue is empty. */
    for (int i = 0; i < executor->started; i++) {
        pthread_mutex_unlock(&executor->mutex);
        pthread_join(executor->threads[i].id, NULL);
        pthread_mutex_lock(&executor->mutex);
    }
    executor->started = executor->max_threads = 0;
    pthread_mutex_unlock(&executor->mutex);
}

void sx_executor_destroy(sx_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    sx_executor_stop(executor);
    pthread_cond_destroy(&executor->wanted);
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
        stir(executor);
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
