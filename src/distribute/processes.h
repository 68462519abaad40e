/* Several processes that train together, in step. Process 0, the chief, keeps the store that they
 * share (store.h); it alone writes files. Each process tells the store once a second that it is
 * alive, and learns from it when another is lost.
 *
 *   join ── compare what must be equal ── agree, agree, … ── leave
 *
 * All processes call agree, compare and meet in the same order. An error of any of them, or the
 * loss of a process, is the error of all: UNAVAILABLE, with the name of the process. The functions
 * may be called by any thread; those that must be called in order, by one.
 *
 * Until the processes first agree or meet, a request of this one to stop ends its waits at once,
 * and with them the run: CANCELLED. From then on they stop together (sx_processes_want_stop). */
#ifndef SX_DISTRIBUTE_PROCESSES_H
#define SX_DISTRIBUTE_PROCESSES_H

#include <signal.h>

#include "backends/pjrt/options.h"
#include "distribute/process_plan.h"

typedef struct sx_processes sx_processes;

typedef struct sx_processes_options {
    const sx_process_plan *plan; /* of more than one process */
    int join_secs, lost_secs; /* in which all must have come; without a sign of one; 0 = 60, 10 */
    const volatile sig_atomic_t *stop; /* nonzero: this process is to stop; NULL = never */
} sx_processes_options;

enum { SX_JOIN_SECS = 60, SX_LOST_SECS = 10 };

/* Waits until all have come. Errors: UNAVAILABLE: some have not (names them), or the chief is not
 * to be reached; ALREADY_EXISTS: another process has this one's number; CANCELLED: stopped. */
SX_MUST_USE sx_status sx_processes_join(const sx_processes_options *options, sx_processes **out);
/* Leaves the others; the chief waits a few seconds for them. NULL is fine. */
void sx_processes_destroy(sx_processes *p);

int sx_processes_count(const sx_processes *p);
int sx_processes_index(const sx_processes *p);
static inline bool sx_is_chief(const sx_processes *p)
{
    return p == NULL || sx_processes_index(p) == 0;
}
/* For the pjrt backend. Borrowed. */
const sx_pjrt_processes *sx_processes_of_pjrt(sx_processes *p);

/* Waits until all processes are here. */
SX_MUST_USE sx_status sx_processes_meet(sx_processes *p);
/* The chief's n values on all processes. */
SX_MUST_USE sx_status sx_processes_agree(sx_processes *p, int64_t *values, int n);
/* A value that must be equal on all: the error names the process and `what` is not. */
SX_MUST_USE sx_status sx_processes_compare(sx_processes *p, const char *what, const char *value);

/* Tells the chief that this process was asked to stop. */
void sx_processes_want_stop(sx_processes *p);
/* Of the chief: whether any process was asked to. */
bool sx_processes_stop_wanted(sx_processes *p);

/* The failure of the run, if one is known. Does not wait. */
SX_MUST_USE sx_status sx_processes_check(sx_processes *p);
/* The same once it has been known for some seconds, in which a device should have failed, too. */
SX_MUST_USE sx_status sx_processes_give_up(void *processes);
/* Tells the others that this process fails; returns why the run does: the loss of another, if that
 * is behind it, or `status`. Takes it over; SX_OK stays. */
SX_MUST_USE sx_status sx_processes_blame(sx_processes *p, sx_status status);
/* The same at the end of this process's work: nothing if the failure was returned already, which
 * `status` is then due to, or this is a stop (CANCELLED), or p is NULL. */
SX_MUST_USE sx_status sx_processes_end(sx_processes *p, sx_status status);

#endif
