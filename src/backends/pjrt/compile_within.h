/* Compiling until a deadline. Client_Compile blocks for as long as the plugin takes, so it runs on
 * a thread of its own, which a caller whose token says so leaves. What the thread compiles is kept
 * by the platform, for the next caller that asks for the same program: one that takes longer than
 * the deadlines of its callers is compiled once. A few are kept; while they all are still
 * compiling, other programs are refused. */
#ifndef SX_BACKENDS_PJRT_COMPILE_WITHIN_H
#define SX_BACKENDS_PJRT_COMPILE_WITHIN_H

#include "backends/pjrt/compile.h"
#include "backends/pjrt/pjrt.h"

/* As sx_pjrt_compile_program(); without a token, or with one that has no deadline, on this thread.
 * Errors: DEADLINE_EXCEEDED, CANCELLED: `cancel` says so; UNAVAILABLE: too many programs that were
 * left are still compiling. They name the plugin. */
SX_MUST_USE sx_status sx_pjrt_compile_within(sx_pjrt_platform *p,
                                             const sx_pjrt_compile_request *request,
                                             const sx_cancel *cancel, sx_pjrt_compiled *out);
/* Destroys what is kept; nothing is compiling (sx_platform.abandoned). */
void sx_pjrt_forget_compiling(sx_pjrt_platform *p);

#endif
