/* What a device that is not cpu computes, operation by operation, as it recorded it (backend.h,
 * sx_platform_record()): summed by the operation of its compiler, by our operator, by layer. */
#ifndef SX_CLI_PROFILE_OPS_H
#define SX_CLI_PROFILE_OPS_H

#include "backends/backend.h"
#include "profile_causes.h"

typedef struct sx_profile_op {
    const char *name, *node; /* node: "" = unknown */
    int64_t calls;
    double seconds;
} sx_profile_op;

typedef struct sx_profile_op_event {
    int op, line;
    int64_t start_ns;
    double seconds;
} sx_profile_op_event;

enum { SX_PROFILE_LINES = 256 };

typedef struct sx_profile_ops {
    sx_arena *arena; /* of the texts */
    sx_profile_op *items;
    int n, max;
    /* name and node -> index + 1: programs may call different operations the same */
    sx_map by_name;
    const char *lines[SX_PROFILE_LINES];
    int n_lines;
    sx_profile_op_event *events; /* of the first; for a trace */
    int n_events, max_events;
    bool is_short_of_memory;
    int64_t steps; /* of how many it is; 0 = nothing was recorded */
    int devices;   /* on how many */
} sx_profile_ops;

void sx_profile_ops_init(sx_profile_ops *ops, sx_arena *arena);
void sx_profile_ops_deinit(sx_profile_ops *ops);
/* An sx_device_op_visit; `ops` is an sx_profile_ops. */
void sx_profile_ops_add(void *ops, const sx_device_op *op);

/* The tables, as of so many steps; rates are by the counts of `nodes`, limits unknown. out->total
 * and out->whole are set by the caller. Allocates in the ops' arena. */
SX_MUST_USE sx_status sx_profile_ops_group(const sx_profile_ops *ops, const sx_profile_nodes *nodes,
                                           int64_t steps, sx_profile_causes *out);

#endif
