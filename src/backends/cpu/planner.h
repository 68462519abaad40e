/* The planner's working state, shared by its steps; freed when the plan is done.
 *
 *   shard.c     whether the batch is divided into shards; graph/spmd.c divides it
 *   crop.c      borders that are never read
 *   units.c     graph nodes -> units: rows of kernels.def, fusion, views, combines
 *   filters.c   filters that all shards read -> units that pack them once
 *   schedule.c  units -> stages
 *   narrow.c    values on the grid of bfloat16 or 8 bits -> two bytes, one byte
 *   recompute.c values that are made again, for a limit of memory
 *   once.c      what follows from frozen arguments -> groups
 *   prepare.c   units -> the plan's steps, by their kernels
 *   place.c     values -> operands: results, in-place, lifetimes, arenas
 *   planner.c   the passes; calls the files above in order; the plan's constants */
#ifndef SX_BACKENDS_CPU_PLANNER_H
#define SX_BACKENDS_CPU_PLANNER_H

#include "backends/cpu/kernel.h"

/* A value to be placed. One per graph value (same index), then copies. */
typedef struct sx_cpu_pvalue {
    int64_t bytes;    /* of the larger shard, */
    int64_t lesser;   /* and of the smaller */
    bool own;         /* one for each shard, in its arena: a piece of the batch, a partial result */
    bool constant;    /* at CONST, given by `node` */
    int twin_of;      /* the graph's value that this one holds, too (narrow.c, recompute.c); or 0 */
    sx_cpu_form form; /* SX_BF16, SX_U8, SX_I8 if it is kept so (narrow.c); else not set */
    bool frozen;      /* the same in every execution */
    int root;         /* view of that one; itself if none */
    int maker;        /* unit, or -1: argument, constant, unused */
    sx_cpu_operand at;
    bool placed;
    /* lifetime in steps, of roots */
    int first, last;
} sx_cpu_pvalue;

typedef enum sx_cpu_unit_kind {
    SX_CPU_UNIT_KERNEL,
    SX_CPU_UNIT_COMBINE,
    SX_CPU_UNIT_COPY,
    SX_CPU_UNIT_FILTER, /* packs a filter for all shards */
    SX_CPU_UNIT_PACK,   /* float32 to a narrower form */
    SX_CPU_UNIT_UNPACK  /* and back */
} sx_cpu_unit_kind;

typedef struct sx_cpu_unit {
    sx_cpu_unit_kind kind;
    const sx_cpu_kernel *kernel;
    int *nodes; /* root first */
    int n_nodes;
    int *in, *out; /* pvalues */
    int n_in, n_out;
    unsigned in_place;
    bool sharded;
    int node; /* the greatest: order */
    int phase, level, stage, step;
    int state;            /* of the sort */
    bool last_of_all;     /* final copies */
    bool once;            /* run by the first execution alone */
    bool again;           /* makes once more what another unit has made (recompute.c) */
    sx_cpu_packed packed; /* bytes > 0: in[1] is read so, from the last of `in` (filters.c) */
    sx_cpu_operand scratch;
} sx_cpu_unit;

typedef struct sx_cpu_planner {
    sx_cpu_plan *plan;
    const sx_cpu_vec *vec;
    bool shares_large; /* the options' */
    sx_arena scratch;
    const sx_graph *g;   /* variants[0] */
    bool *own;           /* [n_values]: shards differ in it */
    bool *sharded;       /* [n_nodes]: computed by each shard */
    bool *cropped;       /* [n_nodes]: its values' types are parts that infer refuses (crop.c) */
    bool crop_failed;    /* another kernel got such a node: plan again without cropping */
    bool keeps_too_much; /* plan again without frozen variables */
    bool over_limit;     /* plan again with more values that are made again (recompute.c) */
    sx_cpu_pvalue *values;
    int n_values, max_values;
    sx_cpu_unit *units; /* after sort: in topological order */
    int n_units, max_units;
    int *hidden;         /* [n_nodes]: value that the node's kernel also makes, 0 = none */
    int *order;          /* [n_units]: unit of each step */
    const char *largest; /* the largest value placed: "float32[4,5] of matmul \"a\"" */
    int largest_frozen;  /* value: of those made once; 0 = none */
    int64_t target;      /* bytes alive at once, for recompute.c; 0 = any number */
    int64_t least;       /* and the fewest that it came to */
} sx_cpu_planner;

/* shard.c */
bool sx_cpu_has_batch(const sx_graph *g);
bool sx_cpu_divides_well(const sx_graph *g);   /* no node is computed whole, by one worker */
double sx_cpu_graph_flops(const sx_graph *g);  /* without regions */
double sx_cpu_region_flops(const sx_graph *g); /* of regions: loops with all trips they may make */
double sx_cpu_region_flops_of(const sx_graph *g, const sx_node *n); /* the same, of one node */

/* crop.c: marks the nodes of whose values it made types that infer refuses */
SX_MUST_USE sx_status sx_cpu_crop(sx_graph *g, sx_arena *scratch, bool *cropped);

/* units.c */
SX_MUST_USE sx_status sx_cpu_make_units(sx_cpu_planner *p);
SX_MUST_USE sx_status sx_cpu_add_value(sx_cpu_planner *p, const sx_cpu_pvalue *v, int *out_index);
SX_MUST_USE sx_status sx_cpu_add_unit(sx_cpu_planner *p, const sx_cpu_unit *u, int n_in, int n_out,
                                      sx_cpu_unit **out_unit);

/* filters.c */
SX_MUST_USE sx_status sx_cpu_share_filters(sx_cpu_planner *p);
/* The step of such a unit. */
SX_MUST_USE sx_status sx_cpu_prepare_filter(const sx_cpu_planner *p, const sx_cpu_unit *u,
                                            int variant, sx_cpu_step *step);

/* schedule.c */
SX_MUST_USE sx_status sx_cpu_schedule(sx_cpu_planner *p);

/* narrow.c: after the copies that it can do without are dropped, before the rest is placed */
SX_MUST_USE sx_status sx_cpu_narrow(sx_cpu_planner *p);
/* Makes the unit's operand read `twin`, which holds the value that it read, instead: through a view
 * if it read a view. */
SX_MUST_USE sx_status sx_cpu_read_twin(sx_cpu_planner *p, int unit, int operand, int twin);

/* recompute.c: makes values again until at most `target` bytes of temporaries are alive at once, or
 * no choice is left; *out_least: the fewest that it came to. Kernels' scratch memory is not
 * counted.
 */
SX_MUST_USE sx_status sx_cpu_recompute(sx_cpu_planner *p, int64_t target, int64_t *out_least);

/* prepare.c */
SX_MUST_USE sx_status sx_cpu_prepare_steps(sx_cpu_planner *p);
SX_MUST_USE sx_status sx_cpu_set_operands(sx_cpu_planner *p); /* when all values are placed */

/* place.c */
SX_MUST_USE sx_status sx_cpu_place_results(sx_cpu_planner *p); /* before the schedule: copies */
SX_MUST_USE sx_status sx_cpu_place_direct(sx_cpu_planner *p);  /* after it: drops most of them */
SX_MUST_USE sx_status sx_cpu_place_values(sx_cpu_planner *p);  /* when scratch sizes are known */
void sx_cpu_lifetimes(sx_cpu_planner *p); /* sets first and last of each value */

/* once.c: the lifetimes of what steps that run once make, and their order */
SX_MUST_USE sx_status sx_cpu_order_once(sx_cpu_planner *p);

/* "float32[4,5] of matmul \"a\"" for errors; a value of the graph. */
const char *sx_cpu_describe_value(sx_cpu_planner *p, int value);

static inline int sx_cpu_root(const sx_cpu_planner *p, int value)
{
    while (p->values[value].root != value) {
        value = p->values[value].root;
    }
    return value;
}

#endif
