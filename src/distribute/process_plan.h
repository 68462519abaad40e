/* Whether this process is one of several that train together, and which: from options, or from the
 * variable TF_CONFIG. */
#ifndef SX_DISTRIBUTE_PROCESS_PLAN_H
#define SX_DISTRIBUTE_PROCESS_PLAN_H

#include "base/arena.h"

/* What the options say; zeros = nothing. */
typedef struct sx_process_wish {
    const char *coordinator; /* "host:port" of process 0 */
    int count, index;
    /* TF_CONFIG may name several workers, if the options say nothing; else it must not contradict
     * them. */
    bool from_environment;
} sx_process_wish;

typedef struct sx_process_plan {
    int count, index;        /* 1, 0: this process alone */
    const char *coordinator; /* "host:port"; NULL if it is alone */
    const char *role;        /* "worker 1"; NULL = none */
    const char *explanation; /* a line, or "" */
} sx_process_plan;

/* Strings are in the arena, or borrowed from `wish`. Errors: INVALID_ARGUMENT: a contradiction, or
 * a TF_CONFIG that is malformed; UNIMPLEMENTED: one with parameter servers. */
SX_MUST_USE sx_status sx_process_plan_make(const sx_process_wish *wish, sx_arena *arena,
                                           sx_process_plan *out);

#endif
