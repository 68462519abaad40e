/* The Cloud TPU API's description of a node: the parts that are used. Source: Cloud TPU API v2,
 * projects.locations.nodes (also v1, with a single ipAddress and port). */
#ifndef SX_DISTRIBUTE_TPU_NODE_H
#define SX_DISTRIBUTE_TPU_NODE_H

#include "base/arena.h"

enum { SX_MAX_TPU_WORKERS = 4096 };

typedef struct sx_tpu_node {
    const char *state;            /* "READY", "CREATING", "PREEMPTED", …; NULL = not given */
    const char *health;           /* "HEALTHY"; NULL = not given */
    const char *accelerator_type; /* "v5litepod-8"; NULL = not given */
    int n_workers;
    const char *const *workers; /* "10.1.2.3:8470" */
} sx_tpu_node;

/* Errors: INVALID_ARGUMENT: an invalid member. */
SX_MUST_USE sx_status sx_tpu_node_parse(const char *text, size_t size, sx_arena *arena,
                                        sx_tpu_node *out);

/* The message of an error response {"error": {"message": …}}, in the arena; NULL if the text is not
 * one. */
const char *sx_tpu_node_error(const char *text, size_t size, sx_arena *arena);

#endif
