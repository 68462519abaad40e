/* Events and errors: see objects.h. */
#include <string.h>

#include "base/memory.h"
#include "pjrt_ref/objects.h"

struct ref_callback {
    ref_on_ready_fn *fn;
    void *user;
    struct ref_callback *next;
};

sx_status ref_status_copy(sx_status status)
{
    return status == SX_OK ? SX_OK
                           : sx_error(sx_status_code(status), "%s", sx_status_message(status));
}

void *ref_error_of(sx_status status)
{
    return status;
}

ref_event *ref_event_create(void)
{
    ref_event *e = sx_alloc(1, sizeof(*e));
    if (e != NULL) {
        atomic_init(&e->refs, 1);
        pthread_mutex_init(&e->lock, NULL);
        pthread_cond_init(&e->changed, NULL);
    }
    return e;
}

ref_event *ref_event_retain(ref_event *e)
{
    atomic_fetch_add(&e->refs, 1);
    return e;
}

void ref_event_release(ref_event *e)
{
    if (e != NULL && atomic_fetch_sub(&e->refs, 1) == 1) {
        pthread_cond_destroy(&e->changed);
        pthread_mutex_destroy(&e->lock);
        sx_status_free(e->error);
        sx_free(e);
    }
}

void ref_event_end(ref_event *e, sx_status error)
{
    pthread_mutex_lock(&e->lock);
    struct ref_callback *callbacks = e->callbacks;
    e->callbacks = NULL;
    e->error = error;
    e->is_ready = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    while (callbacks != NULL) {
        struct ref_callback *next = callbacks->next;
        callbacks->fn(ref_error_of(ref_status_copy(error)), callbacks->user);
        sx_free(callbacks);
        callbacks = next;
    }
}

sx_status ref_event_await(ref_event *e)
{
    pthread_mutex_lock(&e->lock);
    while (!e->is_ready) {
        pthread_cond_wait(&e->changed, &e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return ref_status_copy(e->error); /* it does not change any more */
}

bool ref_event_is_ready(ref_event *e)
{
    pthread_mutex_lock(&e->lock);
    bool ready = e->is_ready;
    pthread_mutex_unlock(&e->lock);
    return ready;
}

sx_status ref_event_on_ready(ref_event *e, ref_on_ready_fn *fn, void *user)
{
    struct ref_callback *callback = sx_alloc(1, sizeof(*callback));
    if (callback == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a callback");
    }
    *callback = (struct ref_callback){.fn = fn, .user = user};
    pthread_mutex_lock(&e->lock);
    bool ready = e->is_ready;
    if (!ready) {
        callback->next = e->callbacks;
        e->callbacks = callback;
    }
    pthread_mutex_unlock(&e->lock);
    if (ready) {
        sx_free(callback);
        fn(ref_error_of(ref_status_copy(e->error)), user);
    }
    return SX_OK;
}
