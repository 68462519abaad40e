/* What `profile` says about the step loop: where its time goes (runtime/timeline_sums.h), what
 * bounds it. */
#ifndef SX_CLI_PROFILE_TIMELINE_H
#define SX_CLI_PROFILE_TIMELINE_H

#include "base/buffer.h"
#include "runtime/timeline_sums.h"

/* One of SX_SPAN_INPUT …: for JSON and tables; what it is; a letter and a color. */
extern const struct sx_span_name {
    const char *key, *name;
    char letter;
    const char *color;
} sx_span_names[SX_SPANS];

/* "input", "transfer", "compute", "host", "idle" */
const char *sx_bound_key(sx_bound bound);
typedef struct sx_bound_about {
    double input_rate; /* examples per second that the pipeline gives alone; 0 = unknown */
    const char *unit;  /* what examples are: "images" */
    bool loops;        /* the device can run several steps per launch */
} sx_bound_about;
/* One line without its newline: "what bounds this run: …". */
void sx_put_bound(sx_buf *out, const sx_timeline_sums *s, const sx_bound_about *about);
/* The tables, and bars of letters for each of the last launches. */
void sx_put_timeline(sx_buf *out, const sx_timeline_sums *s);

#endif
