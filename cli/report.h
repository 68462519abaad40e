/* The output of `train`, an observer of training events: a progress line on a terminal, plain lines
 * elsewhere, or one JSON object per event (--json-log). */
#ifndef SX_CLI_REPORT_H
#define SX_CLI_REPORT_H

#include <sextant/train.h>

#include "terminal.h"
#include "waiting.h"

typedef struct sx_report {
    sx_terminal terminal;     /* of stdout */
    bool json;                /* one JSON object per event instead of text */
    bool quiet;               /* no text output, only logged warnings */
    const char *unit;         /* "img/s", "ex/s" */
    const char *rerun;        /* how to continue after a stop; NULL = no checkpoint was kept */
    bool drawn;               /* a progress line is on the terminal */
    int64_t draw_again_at_ns; /* not before */
    int64_t eval_examples;    /* of the current evaluation; 0 = unknown */
    sx_waiting compiling;     /* the line shown during a long compile */
    int compiled, from_cache; /* programs so far */
} sx_report;

/* The observer; `user` is an sx_report. */
void sx_report_event(void *user, const sx_train_event *event);
/* Call it after the last event; ends the waiting line. */
void sx_report_end(sx_report *r);

/* "accuracy = 0.9123, loss = 0.31": names sorted, as TensorFlow prints results. */
void sx_put_results(sx_buf *out, const sx_metric *metrics, int n);

/* "1,024 of 1,026 examples (steps = 1)": how much of the data a limited evaluation has covered;
 * `available` 0 = unknown. */
void sx_put_scored(sx_buf *out, int64_t examples, int64_t available, int64_t steps);

#endif
