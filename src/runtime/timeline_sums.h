/* Where the time of the step loop goes, from its timeline (backends/timeline.h), and what bounds
 * it.
 *
 * In a steady state, what takes longest hides the rest: while the device computes one launch, the
 * next is read, copied together and copied to the device. So of input, transfer, computing and the
 * loop's own work, the one that is busy for the largest share of the time is what bounds the run;
 * making another faster changes nothing.
 *
 * Where nothing is busy for most of the time, parts wait for each other: launches that compute less
 * than it takes to hand them over and to learn that they have ended, or a loop that the device
 * waits for because nothing overlaps. Then what bounds the run is that the device is idle. */
#ifndef SX_RUNTIME_TIMELINE_SUMS_H
#define SX_RUNTIME_TIMELINE_SUMS_H

#include "backends/timeline.h"
#include "base/arena.h"

typedef enum sx_bound {
    SX_BOUND_INPUT = 0,
    SX_BOUND_TRANSFER,
    SX_BOUND_COMPUTE,
    SX_BOUND_HOST,
    SX_BOUND_IDLE, /* the device does nothing for longer than any of these is busy */
    SX_BOUNDS
} sx_bound;

/* One launch, from the end of the one before it on the device to its own. */
typedef struct sx_timeline_row {
    int launch;
    int64_t steps, examples;
    int64_t start_ns, end_ns;
    double seconds[SX_SPANS]; /* what was done in that time, for whatever launch */
    double bytes;             /* copied to the device in it */
} sx_timeline_row;

typedef struct sx_timeline_sums {
    const sx_timeline_span *spans; /* all, in the order of their start */
    int n_spans;
    sx_timeline_row *rows; /* the launches that count */
    int n;
    sx_timeline_row all; /* their sums */
    double total;        /* seconds, of these launches */
    double host;         /* of the loop's own work: staging, submitting, showing */
    double idle;         /* while the device neither computes nor is copied to */
    double idle_input;   /* of that, while the loop takes input, */
    double idle_host;    /* stages, or shows results; */
    double idle_launch;  /* else: it hands over, waits, or learns of the end */
    bool copies;         /* there are copies to the device */
    sx_bound bound;
} sx_timeline_sums;

/* Of the launches `first` to `last`, from 1. Allocates in `arena`; the spans are the timeline's.
 * FAILED_PRECONDITION: the device did not say when one of them ended. */
SX_MUST_USE sx_status sx_timeline_sum(sx_timeline *timeline, int64_t first, int64_t last,
                                      sx_arena *arena, sx_timeline_sums *out);
/* Seconds that this part is busy in the time of the launches. */
double sx_timeline_busy(const sx_timeline_sums *s, sx_bound part);
/* Seconds of both spans' times. */
double sx_span_overlap(const sx_timeline_span *a, const sx_timeline_span *b);

#endif
