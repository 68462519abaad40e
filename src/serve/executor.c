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
    bool at_work; /* has a place */
    pthread_t id;
};

struct line {
    sx_executor_job *first, **last;
};

struct sx_executor {
    pthread_mutex_t mutex;             /* guards everything below */
    pthread_cond_t wanted;             /* there is a job that may be taken, or the executor stops */
    struct line running, resumed, new; /* the first one needs no place */
    size_t queued, max_queued;         /* new ones */
    size_t open;                       /* accepted, and not ended */
    bool stopping;
    int at_work, max_at_work; /* places */
    int idle;                 /* threads that wait for a job */
    int started, max_threads;
    struct thread threads[]; /* [max_threads] */
};

static void append(struct line *line, sx_executor_job *job)
{
    job->next = NULL;
    *line->last = job;
    line->last = &job->next;
}

static sx_executor_job *take_first(struct line *line)
{
    sx_executor_job *job = line->first;
    line->first = job->next;
    line->last = line->first == NULL ? &line->first : line->last;
    return job;
}

/* The line of the next job; NULL: none may be taken. */
static struct line *next_line(sx_executor *executor)
{
    if (executor->running.first != NULL) {
        return &executor->running;
    }
    if (executor->at_work == executor->max_at_work) {
        return NULL;
    }
    return executor->resumed.first != NULL ? &executor->resumed
           : executor->new.first != NULL   ? &executor->new
                                           : NULL;
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
    if (next_line(executor) == NULL) {
        return;
    }
    if (executor->idle > 0) {
        pthread_cond_signal(&executor->wanted);
    } else if (executor->started < executor->max_threads) {
        (void)start_thread(executor);
    }
}

static void set_at_work(struct thread *thread, bool at_work)
{
    thread->executor->at_work += (int)at_work - (int)thread->at_work;
    thread->at_work = at_work;
}

/* The next job, after one that has `ended`; NULL when the executor stops and there is none. */
static sx_executor_job *take_job(struct thread *thread, bool ended)
{
    sx_executor *executor = thread->executor;
    struct line *line;
    sx_executor_job *job = NULL;
    pthread_mutex_lock(&executor->mutex);
    executor->open -= ended;
    set_at_work(thread, false);
    while ((line = next_line(executor)) == NULL && !(executor->stopping && executor->open == 0)) {
        executor->idle++;
        pthread_cond_wait(&executor->wanted, &executor->mutex);
        executor->idle--;
    }
    if (line != NULL) {
        job = take_first(line);
        executor->queued -= line == &executor->new;
        set_at_work(thread, line != &executor->running);
        stir(executor);
    } else {
        pthread_cond_broadcast(&executor->wanted);
    }
    pthread_mutex_unlock(&executor->mutex);
    return job;
}

void sx_executor_leave(sx_executor *executor, int worker)
{
    pthread_mutex_lock(&executor->mutex);
    set_at_work(&executor->threads[worker], false);
    stir(executor);
    pthread_mutex_unlock(&executor->mutex);
}

bool sx_executor_return(sx_executor *executor, int worker)
{
    pthread_mutex_lock(&executor->mutex);
    const bool free = executor->at_work < executor->max_at_work;
    set_at_work(&executor->threads[worker], free);
    pthread_mutex_unlock(&executor->mutex);
    return free;
}

static void *run_thread(void *user)
{
    struct thread *thread = user;
    bool ended = false;
    for (sx_executor_job *job; (job = take_job(thread, ended)) != NULL;) {
        ended = job->fn(job, thread->index);
    }
    return NULL;
}

sx_status sx_executor_create(int threads, int running, size_t max_queued, sx_executor **out)
{
    const int max_threads = threads + running;
    sx_executor *executor =
        sx_alloc(1, sizeof(*executor) + (size_t)max_threads * sizeof(executor->threads[0]));
    if (executor == NULL) {
        return sx_no_memory("for an executor");
    }
    executor->running.last = &executor->running.first;
    executor->resumed.last = &executor->resumed.first;
    executor->new.last = &executor->new.first;
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
    /* Threads may still be started until the last job has ended. */
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
    pthread_mutex_lock(&executor->mutex);
    const bool accepted = executor->queued < executor->max_queued && !executor->stopping;
    if (accepted) {
        append(&executor->new, job);
        executor->queued++;
        executor->open++;
        stir(executor);
    }
    pthread_mutex_unlock(&executor->mutex);
    return accepted;
}

void sx_executor_resume(sx_executor *executor, sx_executor_job *job, bool runs)
{
    pthread_mutex_lock(&executor->mutex);
    append(runs ? &executor->running : &executor->resumed, job);
    stir(executor);
    pthread_mutex_unlock(&executor->mutex);
}

size_t sx_executor_queued(sx_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    const size_t queued = executor->queued;
    pthread_mutex_unlock(&executor->mutex);
    return queued;
}
