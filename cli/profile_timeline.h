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

/* "input", "transfer", "compute", "host" */
const char *sx_bound_key(sx_bound bound);
/* One line without its newline: "what bounds this run: …". `input_rate`: examples per second that
 * the pipeline gives alone, 0 = unknown; `unit`: "images". */
void sx_put_bound(sx_buf *out, const sx_timeline_sums *s, double input_rate, const char *unit);
/* The tables, and bars of letters for each of the last launches. */
void sx_put_timeline(sx_buf *out, const sx_timeline_sums *s);

#endif
