/* The Cloud TPU API's answer to a question about a node: what we need of it.
 * Source: Cloud TPU API v2 (and v1, whose single ipAddress and port it still knows),
 * projects.locations.nodes. */
#ifndef SX_DISTRIBUTE_TPU_NODE_H
#define SX_DISTRIBUTE_TPU_NODE_H

#include "base/arena.h"

enum { SX_MAX_TPU_WORKERS = 4096 };

typedef struct sx_tpu_node {
    const char *state;            /* "READY", "CREATING", "PREEMPTED", …; NULL = not said */
    const char *health;           /* "HEALTHY"; NULL = not said */
    const char *accelerator_type; /* "v5litepod-8"; NULL = not said */
    int n_workers;
    const char *const *workers; /* "10.1.2.3:8470" */
} sx_tpu_node;

/* INVALID_ARGUMENT: what of the answer is not as it should be. */
SX_MUST_USE sx_status sx_tpu_node_parse(const char *text, size_t size, sx_arena *arena,
                                        sx_tpu_node *out);

/* The message of the API's error answer {"error": {"message": …}} into the arena; NULL if the text
 * is no such answer. */
const char *sx_tpu_node_error(const char *text, size_t size, sx_arena *arena);

#endif
