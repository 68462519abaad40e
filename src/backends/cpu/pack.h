/* Packs blocks of memory that live for a while into as little as can be found: blocks that are
 * alive at the same time do not overlap. Finding the least is hard (it is a rectangle packing
 * problem), so several orders are tried and the best is kept; which, depends on the blocks alone.
 *
 * No packing is smaller than the most bytes that are alive at once: sx_cpu_most_alive(). */
#ifndef SX_BACKENDS_CPU_PACK_H
#define SX_BACKENDS_CPU_PACK_H

#include <stdint.h>

#include "base/arena.h"

typedef struct sx_cpu_life {
    int64_t bytes;   /* a multiple of the alignment */
    int first, last; /* the steps at which it is alive, both included */
    int64_t offset;  /* set by sx_cpu_pack_lives() */
} sx_cpu_life;

/* Sets the offsets of the first n; the n_fixed behind them have theirs, and stay there. *out_bytes
 * is the end of the highest block of all. RESOURCE_EXHAUSTED: no memory to work in. The sum of all
 * bytes must not overflow. */
SX_MUST_USE sx_status sx_cpu_pack_lives(sx_cpu_life *lives, int n, int n_fixed, sx_arena *scratch,
                                        int64_t *out_bytes);

/* The most bytes that are alive at one step, and the first such step (may be NULL). */
SX_MUST_USE sx_status sx_cpu_most_alive(const sx_cpu_life *lives, int n, sx_arena *scratch,
                                        int64_t *out_bytes, int *out_step);

#endif
