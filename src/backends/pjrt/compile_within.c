/* See compile_within.h. */
#include "backends/pjrt/compile_within.h"

#include <string.h>

#include "base/memory.h"
#include "base/timed_call.h"

enum { MAX_LEFT = 4 };

struct sx_pjrt_compiling {
    sx_timed_call call;
    sx_pjrt_platform *platform;
    sx_pjrt_compile_request request; /* its text is owned, the rest the platform's */
    struct sx_pjrt_compiling *next;  /* of those that were left */
    /* The platform's compile_lock guards: */
    bool left, finished;
    sx_status status; /* finished: the result, which the caller or the platform takes */
    sx_pjrt_compiled made;
};
typedef struct sx_pjrt_compiling compiling;

static void run(sx_timed_call *call)
{
    compiling *job = (compiling *)call;
    sx_pjrt_platform *p = job->platform;
    sx_pjrt_compiled made = {0};
    sx_status status = sx_pjrt_compile_program(p->client, &job->request, &made);
    pthread_mutex_lock(&p->compile_lock);
    job->status = status;
    job->made = made;
    job->finished = true;
    if (job->left) {
        atomic_fetch_sub(&p->head.abandoned, 1);
    }
    pthread_mutex_unlock(&p->compile_lock);
}

static void destroy(sx_timed_call *call)
{
    compiling *job = (compiling *)call;
    sx_free((void *)(uintptr_t)job->request.text);
    sx_free(job);
}

/* Of one that has finished and whose result nobody took. */
static void drop(compiling *job)
{
    if (job->status == SX_OK) {
        sx_pjrt_end(job->platform->client->plugin, SX_PJRT_LOADED_DESTROY, job->made.loaded);
    }
    sx_status_free(job->status);
    sx_timed_call_release(&job->call);
}

static sx_status begin(sx_pjrt_platform *p, const sx_pjrt_compile_request *request, compiling **out)
{
    compiling *job = sx_alloc(1, sizeof(*job));
    char *text = sx_alloc(request->size + 1, 1);
    if (job == NULL || text == NULL) {
        sx_free(job);
        sx_free(text);
        return sx_no_memory("for a program of %zu bytes", request->size);
    }
    memcpy(text, request->text, request->size);
    *job =
        (compiling){.call = {.run = run, .destroy = destroy}, .platform = p, .request = *request};
    job->request.text = text;
    SX_TRY(sx_timed_call_start(&job->call));
    *out = job;
    return SX_OK;
}

/* Takes the program from those that were left; else *out is NULL, and there is room for one more.
 * The lock is held. */
static sx_status take(sx_pjrt_platform *p, const sx_pjrt_compile_request *request, compiling **out)
{
    int n = 0;
    *out = NULL;
    for (compiling **at = &p->compiling; *at != NULL;) {
        compiling *job = *at;
        const sx_pjrt_compile_request *its = &job->request;
        const bool same = its->size == request->size && its->unfused == request->unfused &&
                          memcmp(its->text, request->text, its->size) == 0;
        if (same) {
            *at = job->next;
            *out = job;
            if (job->left && !job->finished) {
                job->left = false;
                atomic_fetch_sub(&p->head.abandoned, 1);
            }
            return SX_OK;
        }
        n++;
        at = &job->next;
    }
    for (compiling **at = &p->compiling; n >= MAX_LEFT && *at != NULL;) {
        compiling *job = *at;
        if (!job->finished) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        drop(job);
        n--;
    }
    return n < MAX_LEFT
               ? SX_OK
               : sx_error(SX_UNAVAILABLE,
                          "%s has not answered for %d programs, which it is still compiling",
                          p->client->plugin->path, n);
}

sx_status sx_pjrt_compile_within(sx_pjrt_platform *p, const sx_pjrt_compile_request *request,
                                 const sx_cancel *cancel, sx_pjrt_compiled *out)
{
    compiling *job = NULL;
    if (cancel == NULL || cancel->deadline_ns == SX_NO_DEADLINE) {
        return sx_pjrt_compile_program(p->client, request, out);
    }
    pthread_mutex_lock(&p->compile_lock);
    sx_status status = take(p, request, &job);
    pthread_mutex_unlock(&p->compile_lock);
    if (status == SX_OK && job == NULL) {
        status = begin(p, request, &job);
    }
    SX_TRY(status);
    sx_status late = sx_timed_call_wait(&job->call, cancel);
    pthread_mutex_lock(&p->compile_lock);
    const bool finished = job->finished;
    if (!finished) {
        job->left = true;
        atomic_fetch_add(&p->head.abandoned, 1);
        job->next = p->compiling;
        p->compiling = job;
    }
    pthread_mutex_unlock(&p->compile_lock);
    SX_TRY(finished ? SX_OK : late, "%s has not compiled the program in time",
           p->client->plugin->path);
    sx_status_free(late); /* it came just in time */
    status = job->status;
    *out = job->made;
    sx_timed_call_release(&job->call);
    return status;
}

void sx_pjrt_forget_compiling(sx_pjrt_platform *p)
{
    while (p->compiling != NULL) {
        compiling *job = p->compiling;
        p->compiling = job->next;
        drop(job);
    }
}
