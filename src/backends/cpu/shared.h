/* Memory that executables of one platform share: large constants, and what they make of frozen
 * arguments, such as packed filters. Programs of one model for several batch sizes mostly have the
 * same ones.
 *
 * A block is immutable and counted by its users. Blocks are found by their contents, which are
 * compared in full, and of several whose pieces are the same a few. Each is charged once, to the
 * budget that its first user has paid from; users with other budgets have blocks of their own. Any
 * number of threads. */
#ifndef SX_BACKENDS_CPU_SHARED_H
#define SX_BACKENDS_CPU_SHARED_H

#include <stdint.h>

#include "base/budget.h"

typedef struct sx_cpu_shared sx_cpu_shared; /* the blocks of a platform */

typedef struct sx_cpu_block {
    char *data; /* aligned */
    int64_t bytes;
    /* of shared.c: */
    sx_cpu_shared *owner;
    struct sx_cpu_block *next;
    sx_budget *memory;
    uint32_t hash;
    int refs;
} sx_cpu_block;

SX_MUST_USE sx_status sx_cpu_shared_create(sx_cpu_shared **out);
void sx_cpu_shared_destroy(sx_cpu_shared *shared); /* NULL is fine; it has no blocks */

/* A reference to the block with these contents, a new one or one that exists. `data`, of
 * sx_alloc_aligned(), becomes the block's or is freed, also after an error. `bytes` have been
 * charged to `memory` (may be NULL): it gets them back at once if the block exists, else when that
 * is freed; not after an error. */
SX_MUST_USE sx_status sx_cpu_block_get(sx_cpu_shared *shared, char *data, int64_t bytes,
                                       sx_budget *memory, sx_cpu_block **out);
void sx_cpu_block_release(sx_cpu_block *block); /* NULL is fine */

#endif
