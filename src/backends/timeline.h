/* When the parts of steps happen. The thread of the step loop reads input, copies it together,
 * hands it to the device, waits for results and shows them; the device copies and computes
 * meanwhile.
 *
 *   loop      input, stage, submit │ input, stage, submit │ wait      │ show │ input, …
 *   copies    ── transfer ──       │    ── transfer ──    │
 *   device                 ── compute 1 ─────────────────────────────── compute 2 ──────
 *
 * Filled by the step loop, and by the backend of a platform that was opened with it (backend.h);
 * thread-safe. A timeline that is NULL takes nothing, and costs nothing. */
#ifndef SX_BACKENDS_TIMELINE_H
#define SX_BACKENDS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_timeline sx_timeline;

typedef enum sx_span_kind {
    /* Of the loop's thread: */
    SX_SPAN_INPUT = 0, /* it takes a batch from the input pipeline */
    SX_SPAN_STAGE,     /* copies the batches of a launch together */
    SX_SPAN_SUBMIT,    /* hands copies and the launch to the device */
    SX_SPAN_WAIT,      /* waits for a launch and its results */
    SX_SPAN_SHOW,      /* shows the results of its steps to the caller */
    /* Of the device: */
    SX_SPAN_TRANSFER, /* a copy to it */
    SX_SPAN_COMPUTE,  /* a launch */
    SX_SPANS
} sx_span_kind;

typedef struct sx_timeline_span {
    int64_t start_ns, end_ns; /* of sx_now_ns() */
    int64_t bytes;            /* of a copy */
    int launch;               /* from 1 */
    sx_span_kind kind;
} sx_timeline_span;

SX_MUST_USE sx_status sx_timeline_create(sx_timeline **out);
/* NULL is fine. Waits for what the device was asked for; if that does not end in a few seconds, the
 * timeline is left to it. */
void sx_timeline_destroy(sx_timeline *t);

/* ---- For the step loop ---- */

/* The next launch begins: what is added from now on belongs to it. Returns its number. */
int sx_timeline_next_launch(sx_timeline *t);
/* How many steps the launch has, of so many examples together. */
void sx_timeline_set_steps(sx_timeline *t, int launch, int64_t steps, int64_t examples);
/* The time; 0 without a timeline. */
int64_t sx_timeline_now(const sx_timeline *t);
/* Something began at `start_ns` (of sx_timeline_now()) and has ended now. */
void sx_timeline_add(sx_timeline *t, sx_span_kind kind, int launch, int64_t start_ns);

/* ---- For backends: what a device does by itself ---- */

/* Something of the launch in progress was handed to the device at `start_ns`. NULL: the timeline is
 * NULL, or out of memory. The caller calls one of the two, from any thread. */
typedef struct sx_timeline_work sx_timeline_work;
sx_timeline_work *sx_timeline_begin(sx_timeline *t, sx_span_kind kind, int64_t start_ns,
                                    int64_t bytes);
void sx_timeline_end(sx_timeline_work *work);  /* now */
void sx_timeline_drop(sx_timeline_work *work); /* when is unknown */

/* ---- For readers ---- */

typedef struct sx_timeline_launch {
    int64_t steps, examples; /* 0: nothing was fed any more */
} sx_timeline_launch;

/* The spans in the order of their start, and the launches, number 1 at index 0; valid until the
 * next call with this timeline. Waits, a few seconds at most, for what the device has not ended.
 * What was handed to the device begins when it can: a copy after the one before it, a launch after
 * the launch before it and after its own copies. A copy whose end was told only after its launch
 * had ended is taken to be as fast as the fastest of the others. A device that does it within the
 * call is waited for. */
SX_MUST_USE sx_status sx_timeline_read(sx_timeline *t, const sx_timeline_span **out_spans,
                                       int *out_n, const sx_timeline_launch **out_launches,
                                       int *out_launch_n);

#endif
