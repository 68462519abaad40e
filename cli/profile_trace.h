/* The recorded steps in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) opens: one
 * row for each thread, one above them for executions; and rows of the step loop, what is copied to
 * the device, and what the device computes. */
#ifndef SX_CLI_PROFILE_TRACE_H
#define SX_CLI_PROFILE_TRACE_H

#include "profile_report.h"

/* RESOURCE_EXHAUSTED: out of memory. */
SX_MUST_USE sx_status sx_put_profile_trace(sx_buf *out, const sx_profile_report *r);

#endif
