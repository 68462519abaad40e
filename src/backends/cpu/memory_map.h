/* What a plan's memory of temporaries looks like: every value and scratch memory with its place and
 * its life; for `sextant compile --memory`. */
#ifndef SX_BACKENDS_CPU_MEMORY_MAP_H
#define SX_BACKENDS_CPU_MEMORY_MAP_H

#include <stdbool.h>

#include "backends/cpu/pack.h"

typedef struct sx_cpu_mapped {
    sx_cpu_life life; /* the offset is in the arena of a shard, or in all of the memory: */
    bool common;
    const char *what;  /* "float32[4,5] of matmul \"a\"", "scratch memory of …" */
    const char *layer; /* the node's name; "" if there is none */
    bool scratch;
    bool again; /* made again, for a memory limit */
} sx_cpu_mapped;

typedef struct sx_cpu_memory_map {
    sx_cpu_mapped *blocks;
    int n, n_steps;
    int shards;
    int64_t shard_bytes; /* the arena of one; they lie one after another, */
    int64_t bytes;       /* and common values in them, and behind them; all together */
    /* The least that any placement takes: the most bytes alive at once, of all shards together. */
    int64_t least_bytes;
    int least_step;           /* where that is */
    const char **step_layers; /* [n_steps] */
    int again_steps;          /* that compute again, for a memory limit, */
    double again_flops;       /* of one shard, and what they compute */
} sx_cpu_memory_map;

#endif
