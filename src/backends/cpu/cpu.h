/* The backend's objects, of cpu.c and kept.c. */
#ifndef SX_BACKENDS_CPU_CPU_H
#define SX_BACKENDS_CPU_CPU_H

#include <pthread.h>

#include "backends/cpu/kernel.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/shared.h"
#include "backends/profile.h"
#include "base/pool.h"

typedef struct sx_cpu_platform {
    sx_platform head;
    sx_device device;
    sx_device *devices[1];
    char kind[160];
    int workers;
    sx_profile *profile;        /* the options' */
    int eval_shards;            /* the options' */
    bool integers;              /* the options' */
    bool bfloat16;              /* the options' */
    int64_t memory_limit_bytes; /* the options' */
    sx_pool *pool;
    pthread_mutex_t running; /* the pool has one run at a time */
} sx_cpu_platform;

typedef struct sx_cpu_buffer {
    sx_device_buffer head;
    void *block;      /* as allocated */
    char *own;        /* in it: row-major */
    const char *data; /* own, or borrowed */
    const sx_buffer_source *source;
    atomic_bool absent; /* the value is still to be read from the source */
    pthread_mutex_t fetching;
} sx_cpu_buffer;

typedef struct sx_cpu_executable {
    sx_executable head;
    sx_cpu_plan *plan;
    bool profile;
    char numerics[256];
    pthread_mutex_t making;
    char *kept;            /* of plan->kept_bytes, filled by the first execution */
    sx_cpu_block **blocks; /* [plan->n_large]; NULL: not made yet, or read no more */
    /* Written under the mutex; from then on the kept memory and the blocks do not change. */
    atomic_bool kept_is_made;
} sx_cpu_executable;

typedef struct sx_cpu_run {
    sx_run head;
    char *arenas;      /* [shards] of shard_bytes, then common_bytes */
    char ***bases;     /* [shards][spaces] */
    void **states;     /* [shards][steps] */
    int64_t *times_ns; /* [workers][steps], or NULL; behind them: */
    int64_t *least_ns; /* [steps], of one call by worker 0 */
    int64_t calls;
    bool recording;           /* this execution's times are kept */
    sx_profile_event *events; /* [workers][MAX_EVENTS]; NULL: they are not kept */
    int *n_events;            /* [workers] */
    sx_kernel_time *profile;  /* [steps] */
    _Atomic(sx_status) fault; /* of the running execution */
    int workers;              /* that run it */
    bool has_blocks;          /* the bases of blocks are set */
    sx_cpu_pace pace;         /* of a plan with a team */
    sx_cpu_pacing pacing;     /* of the running execution */
    int64_t start_ns;         /* the same */
} sx_cpu_run;

static inline sx_cpu_platform *sx_cpu_platform_of(const sx_executable *e)
{
    return (sx_cpu_platform *)e->platform;
}

static inline const sx_cpu_plan *sx_cpu_plan_of(const sx_cpu_run *r)
{
    return ((const sx_cpu_executable *)r->head.executable)->plan;
}

/* The buffer has its value in its own memory, if it has a source. */
SX_MUST_USE sx_status sx_cpu_fetch(sx_cpu_buffer *b);

/* A call of the steps of a shard; common stages run in that of shard 0. */
sx_cpu_call sx_cpu_call_of(sx_cpu_run *r, int shard);

/* kept.c: the run's bases refer to the executable's blocks. */
void sx_cpu_set_block_bases(sx_cpu_run *r, const sx_cpu_executable *e);

/* kept.c: all that an execution reads is there. */
SX_MUST_USE sx_status sx_cpu_need_values(sx_cpu_run *r, sx_device_buffer *const *args);

#endif
