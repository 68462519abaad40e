/* The calls of one signature that wait, and which of them run next. Without threads and without a
 * clock: the batcher (batcher.h) holds a mutex, and says what time it is.
 *
 * SX_BATCH_CONSERVE: whoever can run takes what waits, at once. The call with the earliest deadline
 * is first; one without a deadline counts as due after 30 s. A call is refused if those before it
 * leave it too little time; one that waits is dropped if its client is gone, its deadline has
 * passed, or it would take longer than what is left of it. A batch is as large as the deadline of
 * its first call allows, with something to spare, unless so many wait that it pays to pass over
 * those that have nothing to spare. If the calls do not fill an allowed size to three quarters, the
 * next smaller size runs, full.
 *
 * SX_BATCH_TFS: TensorFlow Serving's policy, as a yardstick. Calls in the order of arrival; a batch
 * runs when the next call does not fit, or when its first call has waited for the timeout; it is
 * dropped only if the deadlines of all its calls have passed. */
#ifndef SX_SERVE_BATCH_QUEUE_H
#define SX_SERVE_BATCH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/cancel.h"

enum { SX_BATCH_SIZES = 32 };

typedef enum sx_batch_policy { SX_BATCH_CONSERVE, SX_BATCH_TFS } sx_batch_policy;

typedef struct sx_batch_rules {
    sx_batch_policy policy;
    int64_t max_rows;              /* of a batch; a call that has more is no part of one */
    int64_t max_queued_rows;       /* beyond these, calls are refused */
    int64_t timeout_ns;            /* SX_BATCH_TFS */
    int64_t sizes[SX_BATCH_SIZES]; /* [size_count], ascending: rows that are run at once */
    int size_count;                /* 0: any number */
} sx_batch_rules;

/* A call that waits; its owner's. */
typedef struct sx_batch_call {
    const sx_tensor *inputs; /* [input_count of the queue]; dimension 0 is `rows` */
    int64_t rows;
    bool alone; /* is not merged with others */
    int64_t arrived_ns;
    const sx_cancel *cancel;    /* NULL = none */
    struct sx_batch_call *next; /* in the queue, in a batch or among those that were dropped */
} sx_batch_call;

typedef struct sx_batch_queue {
    sx_batch_rules rules;
    size_t input_count;
    sx_batch_call *first, *last;
    size_t calls;
    int64_t rows;
    int run_states;                     /* that may run its calls at once; 0: 1 */
    int64_t run_ns[SX_BATCH_SIZES + 1]; /* recent runs of each size; the last: of more rows than all
                                           of them. 0 = unknown */
    double spread;                      /* how far runs are from run_ns, as a share of it */
    int64_t latest_rows;                /* of the batch that was taken last */
    int64_t free_ns;                    /* when a run state is expected to be free again */
    int short_of_time; /* how many of 1024 recent calls had too little time for an answer */
} sx_batch_queue;

/* The smallest size that has room for `rows`; if none has, or there are none, `rows`. */
int64_t sx_batch_size_for(const sx_batch_rules *rules, int64_t rows);

/* Whether a call that arrives, and is not added yet, may be in time. If nothing waits here or
 * elsewhere (`others_wait`), it may always try. UNAVAILABLE: no. */
SX_MUST_USE sx_status sx_batch_queue_admit(sx_batch_queue *queue, const sx_batch_call *call,
                                           bool others_wait);
/* UNAVAILABLE: the queue is full, or too much waits for the call to be in time. */
SX_MUST_USE sx_status sx_batch_queue_add(sx_batch_queue *queue, sx_batch_call *call);
/* When a batch may run, perhaps in the past; INT64_MAX: nothing waits. */
int64_t sx_batch_queue_due_ns(const sx_batch_queue *queue);
/* Removes the calls that are not worth running. */
sx_batch_call *sx_batch_queue_drop(sx_batch_queue *queue, int64_t now_ns);
/* Removes the calls of the next batch, first the one that has waited for it longest (or has the
 * earliest deadline). NULL: nothing waits. */
sx_batch_call *sx_batch_queue_take(sx_batch_queue *queue, int64_t now_ns);
/* A run of so many rows took so long. */
void sx_batch_queue_note_run(sx_batch_queue *queue, int64_t rows, int64_t run_ns);
/* A run of so many rows was stopped after so long, as nobody waited for it any more. */
void sx_batch_queue_note_stopped(sx_batch_queue *queue, int64_t rows, int64_t run_ns);
/* What a run of so many rows is expected to take; 0 = unknown. Of a size that is not known: as much
 * as runs of a smaller one for as many rows, or as one of a larger one. */
int64_t sx_batch_queue_run_ns(const sx_batch_queue *queue, int64_t rows);

#endif
