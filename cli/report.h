/* What `train` tells: a progress line on a terminal, plain lines elsewhere, or one JSON object for
 * each event (--json-log). An observer of training events. */
#ifndef SX_CLI_REPORT_H
#define SX_CLI_REPORT_H

#include <sextant/train.h>

#include "terminal.h"
#include "waiting.h"

typedef struct sx_report {
    sx_terminal terminal;     /* of stdout */
    bool json;                /* one object for each event instead of lines for people */
    bool quiet;               /* no lines for people: only warnings are logged */
    const char *unit;         /* "img/s", "ex/s" */
    const char *rerun;        /* how to go on after a stop; NULL = nothing was kept */
    bool drawn;               /* a progress line is on the terminal */
    int64_t eval_examples;    /* of the evaluation under way; 0 = unknown */
    sx_waiting compiling;     /* the line of a compile that takes long */
    int compiled, from_cache; /* programs so far */
} sx_report;

/* The observer; `user` is an sx_report. */
void sx_report_event(void *user, const sx_train_event *event);
/* After the last event: what still ticks, ends. */
void sx_report_end(sx_report *r);

/* "accuracy = 0.9123, loss = 0.31": names sorted, as TensorFlow prints results. */
void sx_put_results(sx_buf *out, const sx_metric *metrics, int n);

/* "1,024 of 1,026 examples (steps = 1)": how much of the data an evaluation limited to so many
 * batches has seen; `available` 0 = unknown. */
void sx_put_scored(sx_buf *out, int64_t examples, int64_t available, int64_t steps);

#endif
