/* See timed_call.h. */
#include "serve/timed_call.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

void sx_timed_call_release(sx_timed_call *call)
{
    if (call == NULL || atomic_fetch_sub_explicit(&call->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (call->done_fd >= 0) {
        close(call->done_fd);
    }
    call->destroy(call);
}

bool sx_timed_call_done(const sx_timed_call *call)
{
    return atomic_load_explicit(&call->done, memory_order_acquire);
}

static void *run_thread(void *user)
{
    sx_timed_call *call = user;
    const uint64_t one = 1;
    call->run(call);
    atomic_store_explicit(&call->done, true, memory_order_release);
    const ssize_t written = write(call->done_fd, &one, sizeof(one));
    (void)written; /* cannot block: the counter was 0 */
    sx_timed_call_release(call);
    return NULL;
}

sx_status sx_timed_call_start(sx_timed_call *call)
{
    pthread_t thread;
    pthread_attr_t attr;
    atomic_init(&call->users, 2);
    atomic_init(&call->done, false);
    call->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->done_fd < 0) {
        atomic_store(&call->users, 1);
        sx_timed_call_release(call);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of file descriptors");
    }
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    const int error = sx_thread_create(&thread, &attr, run_thread, call);
    pthread_attr_destroy(&attr);
    if (error != 0) {
        atomic_store(&call->users, 1);
        sx_timed_call_release(call);
        return sx_error(SX_RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
    }
    return SX_OK;
}
