/* The plan: made by compile() from a graph, run by execute(). Immutable once built.
 *
 *   graph node ──┐ fused
 *   graph node ──┴─> unit ──> step (one per variant of shard size: prepared kernel, operands)
 *
 *   stage 0      stage 1        stage 2      ...      a barrier between stages
 *   sharded      common         common
 *   [shard 0]    [step a]       [steps ranges]
 *   [shard 1]    [step b]
 *
 * sx_pass_spmd() has divided the graph: a shard is a replica. Values with the batch dimension live
 * in pieces, one per shard, and so do partial results; others are common. A sharded stage runs its
 * steps for each shard, one after the other; a worker owns the shards worker, worker + workers, ...
 * The steps of a common stage are independent: small ones are distributed over the workers, large
 * elementwise ones are split into ranges. all_reduce is a combine step, which joins partial results
 * in a fixed tree. So no bit depends on the assignment or number of workers.
 *
 * Operands are (space, offset); execute() fills a table of the spaces' addresses per shard:
 *
 *   SX_CPU_SHARD    this shard's own arena: pieces of temporaries, partials, scratch
 *   SX_CPU_COMMON   common temporaries: in the shards' arenas, while these have room, and behind
 *                   the last of them; from the beginning of the first
 *   SX_CPU_CONST    constants
 *   SX_CPU_KEPT     what follows from frozen arguments alone: computed by the first execution, kept
 *                   with the executable
 *   SX_CPU_ONCE     the same, read only while that is computed
 *   SX_CPU_ARGS+i   argument i (its piece, if it has the batch dimension), then the outputs
 *   first_large+i   large constants and large parts of what is kept: blocks of their own, shared
 *                   with other executables (shared.h) */
#ifndef SX_BACKENDS_CPU_PLAN_H
#define SX_BACKENDS_CPU_PLAN_H

#include "backends/backend.h"
#include "backends/cpu/shared.h"
#include "base/arena.h"
#include "base/checked.h"

enum { SX_CPU_SHARD = 0, SX_CPU_COMMON, SX_CPU_CONST, SX_CPU_KEPT, SX_CPU_ONCE, SX_CPU_ARGS };
enum { SX_CPU_ALIGN = 64, SX_CPU_LARGE = 64 << 10 }; /* bytes */
enum { SX_CPU_SPLIT = 64 };                          /* elements */

typedef struct sx_cpu_operand {
    int space;
    int64_t offset;
} sx_cpu_operand;

/* One running call of a step: the state that is not in the plan. */
typedef struct sx_cpu_call {
    char *const *bases;              /* [spaces] of this shard */
    char *const *const *shard_bases; /* [shards][spaces] */
    void *const *states;             /* [steps] of this shard: the results of make_state() */
    int shard;
    int64_t first_example; /* of this shard, in the batch */
    int64_t begin, end;    /* the elements of a ranged step for this call, */
    int part;              /* and which of the parts these are: each may have scratch of its own */
    int team;              /* threads of oneDNN's team that may divide a step; 1: none */
    bool alone;            /* the team is left out: its other threads have no processor */
    sx_budget *memory;     /* of the executable: charged for what host kernels allocate; or NULL */
    const sx_cancel *cancel;   /* looked at between steps and between the trips of loops; or NULL */
    _Atomic(sx_status) *fault; /* of the execution: the first step that failed */
} sx_cpu_call;

/* Records `status` as the error of the execution, unless there is one already; takes ownership. */
void sx_cpu_fail(const sx_cpu_call *call, sx_status status);

typedef struct sx_cpu_step sx_cpu_step;
typedef void sx_cpu_run_fn(const sx_cpu_step *step, const sx_cpu_call *call);

struct sx_cpu_step {
    sx_cpu_run_fn *run;
    const void *data; /* of the kernel, immutable: shared by runs */
    /* Creates the state of one call at a time, for each run and shard. NULL: none. */
    sx_status (*make_state)(const sx_cpu_step *step, void **out);
    void (*destroy_state)(void *state);
    const sx_cpu_operand *in, *out;
    int n_in, n_out;
    sx_cpu_operand scratch;
    int64_t scratch_bytes;
    int64_t
        range; /* > 0: elements that may be split among workers, at multiples of SX_CPU_SPLIT, */
    int64_t grain; /* so many for each at least; the planner sets it, a kernel may */
    const char *kernel, *node, *ops; /* ops: of the nodes, in their order */
    double flops, bytes;             /* of one call */
    bool host;                       /* the operator's host kernel */
    bool onednn;                     /* which has a team of its own, where the plan has one */
    bool bf16;                       /* products of bfloat16 */
    int index;                       /* in the plan's steps */
    bool looks; /* enough is computed before it that the deadline is worth a look */
    /* Frozen arguments: `once` says that the first execution alone runs the step; another step may
     * have a part that it alone runs, which writes to `kept`. */
    bool once;
    void (*prepare_once)(const sx_cpu_step *step, const sx_cpu_call *call);
    int64_t kept_bytes;
    sx_cpu_operand kept; /* or what a step of its own has packed for all shards (filters.c) */
    unsigned prepares;   /* bit i: that part reads in[i], */
    unsigned read_once;  /* which nothing else of the step reads */
    unsigned over; /* of `once`, bit i, of one at most: in[i] is an argument that no other step
                      reads, and may lie where out[0] does */
};

static inline void *sx_cpu_at(const sx_cpu_call *call, sx_cpu_operand o)
{
    return call->bases[o.space] + o.offset;
}
static inline void *sx_cpu_in(const sx_cpu_step *s, const sx_cpu_call *call, int i)
{
    return sx_cpu_at(call, s->in[i]);
}
static inline void *sx_cpu_out(const sx_cpu_step *s, const sx_cpu_call *call, int i)
{
    return sx_cpu_at(call, s->out[i]);
}

/* Into how many parts `workers` divide a step, of `grain` elements at least; 1: it is not. */
static inline int64_t sx_cpu_parts_of(const sx_cpu_step *s, int64_t grain, int workers)
{
    const int64_t blocks = (s->range + SX_CPU_SPLIT - 1) / SX_CPU_SPLIT;
    const int64_t most = SX_MIN(workers, blocks);
    return most < 2 || s->range < 2 * grain ? 1 : SX_MIN(s->range / grain, most);
}

static inline bool sx_cpu_has_failed(const sx_cpu_call *call)
{
    return atomic_load_explicit(call->fault, memory_order_relaxed) != SX_OK;
}
/* Whether to stop before step `next`: a step has failed, or the caller's token says so. `region`:
 * the step whose body contains `next`, named in the error; NULL if none does. */
bool sx_cpu_stops(const sx_cpu_call *call, const sx_cpu_step *next, const sx_cpu_step *region);

typedef struct sx_cpu_stage {
    int first, count; /* of steps */
    bool sharded;
    bool serial; /* common and small: one worker does it */
} sx_cpu_stage;

typedef struct sx_cpu_cleanup {
    void (*destroy)(void *object);
    void *object;
    struct sx_cpu_cleanup *next;
} sx_cpu_cleanup;

/* What has a space of its own. */
typedef struct sx_cpu_large {
    int64_t bytes;
    bool kept;           /* made by the first execution; else a constant, */
    bool read_once;      /* which that alone reads */
    sx_cpu_block *block; /* of a constant: the executable takes it */
} sx_cpu_large;

enum { SX_CPU_MAX_PARTS = 8 };

typedef struct sx_cpu_plan {
    sx_arena arena;
    sx_arena parts[SX_CPU_MAX_PARTS]; /* [n_parts]: of the threads that prepared the steps */
    int n_parts;
    sx_graph *graph;       /* after the passes; batch symbolic */
    sx_graph *variants[2]; /* the program of the larger shards, of the smaller: the same nodes */
    int64_t batch;
    int shards;
    int larger;        /* the first `larger` shards have one example more */
    int64_t shard_max; /* examples of the larger */
    int n_variants;
    sx_cpu_step *steps[2]; /* [n_variants][n_steps] */
    int n_steps;
    sx_cpu_stage *stages;
    int n_stages;
    int n_spaces;
    int64_t shard_bytes;  /* of the arena of one shard */
    int64_t common_bytes; /* behind the arenas of all */
    int64_t const_bytes;
    bool frozen;   /* variables keep their values */
    bool region;   /* sx_cpu_plan_options.region */
    bool integers; /* sx_cpu_options.integers */
    bool rounds;   /* frozen, and products may be of bfloat16 */
    int64_t kept_bytes, once_bytes;
    int *once_order;   /* steps with a part that the first execution alone runs, group by group */
    int *once_groups;  /* [n_once_groups + 1]: where each begins in once_order (once.c) */
    int *once_by_size; /* [n_once_groups]: the groups, largest first */
    int n_once_groups;
    char *constants;
    sx_cpu_large *large; /* [n_large] */
    int first_large, n_large, max_large;
    int64_t large_bytes;
    const bool *arg_batched, *out_batched;
    bool *arg_read_once; /* by the first execution at most, to make what is kept */
    const int64_t *arg_example_bytes, *out_example_bytes;
    bool parallel; /* enough work to use the pool */
    bool team;     /* one shard of much work: oneDNN may use its own team */
    bool flushes;  /* a training step: subnormal numbers are zeros (subnormal.h). Not of a team,
                      whose  threads are not ours: bits would depend on who computes a part */
    bool bf16;     /* some products are of bfloat16 */
    int workers;   /* of the platform */
    double flops;
    sx_cpu_cleanup *cleanups;
    struct sx_cpu_memory_map *map; /* memory_map.h; NULL: not asked for */
} sx_cpu_plan;

typedef struct sx_cpu_plan_options {
    int64_t batch;
    int shards;       /* 0 = choose */
    int eval_shards;  /* sx_cpu_options.eval_shards */
    int workers;      /* of the platform */
    bool region;      /* of a node, which may not be run: kernels prepare frozen arguments,
                         but no step is run for that */
    bool team;        /* of a region: the plan that it is part of has a team */
    bool frozen;      /* sx_compile_options.frozen */
    bool integers;    /* sx_cpu_options.integers */
    bool bfloat16;    /* sx_cpu_options.bfloat16 */
    bool of_training; /* sx_compile_options.of_training */
    bool settled;     /* sx_compile_options.settled */
    int64_t memory_limit_bytes; /* sx_cpu_options.memory_limit_bytes */
    sx_executable *executable;  /* charged for the plan's memory before it is allocated */
    bool shares_large;          /* large blocks are of their own, and shared (shared.h) */
    bool map;                   /* fill the plan's map */
} sx_cpu_plan_options;

SX_MUST_USE sx_status sx_cpu_plan_create(const sx_graph *graph, const sx_cpu_plan_options *options,
                                         sx_cpu_plan **out);
/* The graph after the passes that see all of it, and the shards of its plan. */
SX_MUST_USE sx_status sx_cpu_plan_settle(const sx_graph *graph, const sx_cpu_plan_options *options,
                                         sx_graph **out, int *out_shards);
void sx_cpu_plan_destroy(sx_cpu_plan *plan); /* NULL is fine */

static inline int64_t sx_cpu_shard_first(const sx_cpu_plan *p, int shard)
{
    int small = shard > p->larger ? shard - p->larger : 0;
    return (int64_t)shard * p->shard_max - small;
}

#endif
