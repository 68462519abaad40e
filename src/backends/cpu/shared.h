/* Memory that executables of all platforms share: large constants, and what they make of frozen
 * arguments, such as packed filters. Programs of one model for several batch sizes mostly have the
 * same ones, and so do versions of a model that a server has loaded.
 *
 * A block is immutable and counted by its users. Blocks are found by their contents, which are
 * compared in full, and of several whose pieces are the same a few. Each budget is charged once for
 * what it uses, whoever else uses it: what is used stays within a budget when others go. Any number
 * of threads. */
#ifndef SX_BACKENDS_CPU_SHARED_H
#define SX_BACKENDS_CPU_SHARED_H

#include <stdint.h>

#include "base/budget.h"

/* Of one budget. */
typedef struct sx_cpu_block {
    char *data; /* aligned */
    int64_t bytes;
    /* of shared.c: */
    struct sx_cpu_contents *contents;
    struct sx_cpu_block *next; /* of the same contents */
    sx_budget *memory;
    int refs;
} sx_cpu_block;

/* A reference to the block with these contents, a new one or one that exists. `data`, of
 * sx_alloc_aligned(), becomes the block's or is freed, also after an error. `bytes` have been
 * charged to `memory` (may be NULL): it gets them back at once if it has the block already, else
 * when its last reference is released; not after an error. */
SX_MUST_USE sx_status sx_cpu_block_get(char *data, int64_t bytes, sx_budget *memory,
                                       sx_cpu_block **out);
void sx_cpu_block_release(sx_cpu_block *block); /* NULL is fine */

#endif
