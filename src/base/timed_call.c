/* See timed_call.h. */
#include "base/timed_call.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/thread.h"

enum { LOOK_MS = 50 }; /* at the token */

static void destroy(sx_timed_call *call)
{
    if (call->done_fd >= 0) {
        close(call->done_fd);
    }
    call->destroy(call);
}

/* The thread and the caller each leave the call once. The first does not touch it again; the second
 * destroys it. */
static void leave(sx_timed_call *call, sx_timed_call_state to)
{
    if (atomic_exchange_explicit(&call->state, to, memory_order_acq_rel) != SX_TIMED_CALL_RUNS) {
        destroy(call);
    }
}

void sx_timed_call_release(sx_timed_call *call)
{
    if (call != NULL) {
        leave(call, SX_TIMED_CALL_RELEASED);
    }
}

bool sx_timed_call_done(const sx_timed_call *call)
{
    return atomic_load_explicit(&call->state, memory_order_acquire) == SX_TIMED_CALL_DONE;
}

sx_status sx_timed_call_wait(const sx_timed_call *call, const sx_cancel *cancel)
{
    while (!sx_timed_call_done(call)) {
        SX_TRY(sx_cancel_check(cancel));
        int64_t wait_ms = LOOK_MS;
        if (cancel != NULL && cancel->deadline_ns != INT64_MAX) {
            const int64_t left_ns = cancel->deadline_ns - sx_now_ns();
            wait_ms = left_ns <= 0 ? 0 : SX_MIN(wait_ms, left_ns / 1000000 + 1);
        }
        struct pollfd fd = {.fd = call->done_fd, .events = POLLIN};
        poll(&fd, 1, (int)wait_ms);
    }
    return SX_OK;
}

static void *run_thread(void *user)
{
    sx_timed_call *call = user;
    const uint64_t one = 1;
    call->run(call);
    /* Before the state says so: the caller may free a call that is done. Until then a caller that
     * polls is woken at once and looks again. */
    const ssize_t written = write(call->done_fd, &one, sizeof(one));
    (void)written; /* cannot block: the counter was 0 */
    leave(call, SX_TIMED_CALL_DONE);
    return NULL;
}

sx_status sx_timed_call_start(sx_timed_call *call)
{
    pthread_t thread;
    pthread_attr_t attr;
    atomic_init(&call->state, SX_TIMED_CALL_RUNS);
    call->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (call->done_fd < 0) {
        destroy(call);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of file descriptors");
    }
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    const int error = sx_thread_create(&thread, &attr, run_thread, call);
    pthread_attr_destroy(&attr);
    if (error != 0) {
        destroy(call);
        return sx_error(SX_RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
    }
    return SX_OK;
}
