/* A function that may never return, called with a deadline.
 *
 * Reading files can block for ever (a network mount whose server is gone), and nothing can force a
 * thread out of that. So the function runs on a thread of its own, and its caller waits as long as
 * it wants to and then gives the call up: the thread ends whenever it can, or with the process.
 * Everything that the function touches therefore belongs to the call, which is freed by whoever
 * lets go of it last, the thread or the caller.
 *
 *   struct listing { sx_timed_call call; char *dir; ... };      embed it as the first member
 *   sx_timed_call_start(&listing->call)
 *   poll(listing->call.done_fd)  until it is readable, or the caller has had enough
 *   sx_timed_call_done(&listing->call) ? take the results : give up
 *   sx_timed_call_release(&listing->call) */
#ifndef SX_SERVE_TIMED_CALL_H
#define SX_SERVE_TIMED_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sextant/status.h>

typedef struct sx_timed_call sx_timed_call;

struct sx_timed_call {
    void (*run)(sx_timed_call *call);     /* on the thread; leaves its results in the struct */
    void (*destroy)(sx_timed_call *call); /* frees the struct and the results nobody has taken */
    int done_fd;                          /* readable when done; -1 before start */
    atomic_int users;                     /* the caller, the thread */
    atomic_bool done;
};

/* Takes `call`, whose `run` and `destroy` are set: also after an error, when it is destroyed.
 * RESOURCE_EXHAUSTED: no descriptor or thread for it. */
SX_MUST_USE sx_status sx_timed_call_start(sx_timed_call *call);
/* True when run() has returned: from then on the results are the caller's to read. */
bool sx_timed_call_done(const sx_timed_call *call);
void sx_timed_call_release(sx_timed_call *call); /* NULL is fine */

#endif
