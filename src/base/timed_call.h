/* A function that may never return, called with a deadline.
 *
 * Reading files can block forever (on a network mount whose server is gone), and a blocked thread
 * cannot be interrupted. So the function runs on its own thread, and the caller waits until a
 * deadline and then abandons the call: the thread ends when the function returns, or with the
 * process. Therefore everything that the function uses is owned by the call. The caller that
 * releases a call that is done frees it, with its unclaimed results, before the release returns;
 * the thread frees a call that was released earlier.
 *
 *   struct listing { sx_timed_call call; char *dir; ... };      embed it as the first member
 *   sx_timed_call_start(&listing->call)
 *   sx_timed_call_wait(&listing->call, cancel), or poll() its done_fd
 *   sx_timed_call_done(&listing->call) ? take the results : abandon
 *   sx_timed_call_release(&listing->call) */
#ifndef SX_BASE_TIMED_CALL_H
#define SX_BASE_TIMED_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cancel.h"

typedef struct sx_timed_call sx_timed_call;

typedef enum { SX_TIMED_CALL_RUNS, SX_TIMED_CALL_DONE, SX_TIMED_CALL_RELEASED } sx_timed_call_state;

struct sx_timed_call {
    void (*run)(sx_timed_call *call);     /* on the thread; stores its results in the struct */
    void (*destroy)(sx_timed_call *call); /* frees the struct and unclaimed results */
    int done_fd;                          /* readable when done; -1 before start */
    _Atomic(sx_timed_call_state) state;
};

/* Takes ownership of `call`, whose `run` and `destroy` are set; after an error it has been
 * destroyed. RESOURCE_EXHAUSTED: no file descriptor or thread available. */
SX_MUST_USE sx_status sx_timed_call_start(sx_timed_call *call);
/* Whether run() has returned; then the caller may read the results. */
bool sx_timed_call_done(const sx_timed_call *call);
/* Waits until it has. DEADLINE_EXCEEDED, CANCELLED: the token says so first, within 50 ms. */
SX_MUST_USE sx_status sx_timed_call_wait(const sx_timed_call *call, const sx_cancel *cancel);
void sx_timed_call_release(sx_timed_call *call); /* NULL is allowed */

#endif
