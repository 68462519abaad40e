/* The interface of a kernel: a row of kernels.def names its operator, match() decides which nodes
 * it takes, prepare() creates the step.
 *
 * The planner walks the graph from its end and tries the rows of a node's operator in order; the
 * first whose match() accepts gets the node and the producers that match() claimed. It walks twice,
 * first with the rows that are `early`. Every operator
 * falls back to its host kernel. So the choice depends only on the graph, its shapes and the CPU's
 * instruction sets. */
#ifndef SX_BACKENDS_CPU_KERNEL_H
#define SX_BACKENDS_CPU_KERNEL_H

#include <string.h>

#include "backends/cpu/plan.h"
#include "backends/cpu/vec/vec.h"

enum { SX_CPU_MAX_NODES = 24, SX_CPU_MAX_VALUES = 4096 /* as a node's inputs */ };

/* ---- Forms of values ---- */

/* How the elements of a float32 value may lie in memory, because they are on a grid: as bfloat16,
 * or as 8-bit integers of which `step` makes the elements. SX_F32: as they are. */
typedef struct sx_cpu_form {
    sx_dtype dtype; /* SX_F32, SX_BF16, SX_U8, SX_I8 */
    float step;     /* of the integers, */
    bool full;      /* which are all that the dtype has: what is beyond them is clipped to them */
} sx_cpu_form;

static inline bool sx_cpu_form_is_bytes(const sx_cpu_form *f)
{
    return f->dtype == SX_U8 || f->dtype == SX_I8;
}
/* The form in bytes of what a quantizer with a constant range makes, or a max pool or view of that;
 * false if it has none (narrow.c). */
bool sx_cpu_byte_form(const sx_graph *g, sx_value v, sx_cpu_form *out);

/* ---- Matching ---- */

typedef struct sx_cpu_kernel sx_cpu_kernel;

typedef struct sx_cpu_match {
    const sx_graph *graph; /* of the larger shard */
    int root;              /* node */
    const int *uses;       /* [n_values]: reads by nodes and results */
    const int *readers;    /* [n_values]: for uses == 1 the node that reads it, -1 = a result */
    const bool *claimed;   /* [n_nodes] */
    const bool *sharded;   /* [n_nodes] */
    const int *hidden;     /* [n_nodes]: extra values that a gradient needs from a node, 0 = none */
    const sx_cpu_vec *vec;
    int shards;
    int64_t examples; /* of the larger shard */
    bool frozen;      /* variables keep their values: a kernel may prepare them once */
    bool region;      /* of a loop or a branch */
    bool integers;    /* products of quantized operands may multiply integers */
    /* The result; initially only the root with its inputs and outputs. */
    int nodes[SX_CPU_MAX_NODES]; /* root first, then the claimed ones */
    int n_nodes;
    sx_value in[SX_CPU_MAX_VALUES], out[SX_MAX_OUTPUTS];
    int n_in, n_out;
    /* A value that is not in the graph: `hidden_bytes` written after the outputs of the kernel of
     * `hidden_node`, which is matched later, and read by this one after its inputs. -1 = none. */
    int hidden_node;
    int64_t hidden_bytes;
    sx_status error;   /* out of memory while matching: ends the planning */
    unsigned in_place; /* bit i: out[0] may overwrite in[i] if this is its last use */
} sx_cpu_match;

/* The node that makes `v`, if it may be claimed: not yet claimed, `v` its only used output and read
 * once, sharded as the root is. -1 otherwise. */
int sx_cpu_claimable(const sx_cpu_match *m, sx_value v, int op);
void sx_cpu_claim(sx_cpu_match *m, int node);
/* The node that makes `v`, claimed; NULL if it may not be. */
const sx_node *sx_cpu_claim_maker(sx_cpu_match *m, sx_value v, int op);
/* What a value is a view of, of its dtype: views that only the next one reads. */
sx_value sx_cpu_behind_views(const sx_cpu_match *m, sx_value v);
/* Any node whose result is of a dtype of a fixed size. */
bool sx_cpu_match_sized(sx_cpu_match *m);

static inline const sx_node *sx_cpu_node(const sx_cpu_match *m, int i)
{
    return &m->graph->nodes[m->nodes[i]];
}
static inline bool sx_cpu_is_f32(const sx_cpu_match *m, sx_value v)
{
    return sx_graph_type(m->graph, v)->dtype == SX_F32;
}

/* ---- Preparing ---- */

/* A filter, in[1] of a kernel, in the form that it multiplies. */
typedef struct sx_cpu_packed {
    int64_t bytes;   /* 0: it is read as it lies there */
    uint64_t layout; /* two forms of one filter are the same if this is */
} sx_cpu_packed;

typedef struct sx_cpu_site {
    sx_cpu_plan *plan;
    const sx_graph *graph; /* of this variant */
    const sx_node *const *nodes;
    int n_nodes;
    const sx_value *values_in, *values_out;
    const sx_type *in, *out; /* of this variant */
    int n_in, n_out;
    const sx_cpu_form *forms; /* [n_in + n_out]: only what the kernel's row allows */
    unsigned narrow_in;       /* bit i: in[i] lies there as bfloat16 or bytes */
    bool narrow_out;          /* out[0] is to be written so */
    unsigned frozen_in;   /* bit i: in[i] is the same in every execution (sx_cpu_step.read_once) */
    sx_cpu_packed packed; /* what lies in the step's kept memory: a step before has packed in[1] */
    bool divided;         /* workers may divide the step's range: not where each has a shard */
    const sx_cpu_vec *vec;
} sx_cpu_site;

struct sx_cpu_kernel {
    const char *name;
    int op; /* of the root */
    bool (*match)(sx_cpu_match *m);
    /* Fills step: run, data (from the plan's arena), scratch_bytes, range, flops. */
    sx_status (*prepare)(const sx_cpu_site *site, sx_cpu_step *step);
    /* What it packs in[1] to, if that is the same for all shards, so that one step does it for all
     * of them (filters.c); fills `step` if that is not NULL. in: in[1]; out: the packed form. The
     * site has no operands. */
    sx_status (*pack)(const sx_cpu_site *site, sx_cpu_packed *out, sx_cpu_step *step);
    unsigned narrow_in;   /* bit i: in[i] may also be bfloat16, */
    bool narrow_in_place; /* and those of in_place, */
    bool narrow_out;      /* and out[0] */
    unsigned bytes_in;    /* the same for integers of 8 bits */
    bool bytes_out;
    bool parts; /* takes sizes from types: values may be parts (sx_op_def.parts_fit) */
    bool early; /* matched before all others: an elementwise group would take the pattern's end */
};

/* `bytes` from the plan's arena; NULL when out of memory. */
#define sx_cpu_new(site, type) sx_arena_new(&(site)->plan->arena, type)
/* Calls destroy(object) when the plan is destroyed, or at once if that cannot be recorded. */
SX_MUST_USE sx_status sx_cpu_own(const sx_cpu_site *site, void *object, void (*destroy)(void *));
sx_status sx_cpu_no_memory(void);
sx_status sx_cpu_too_large(const char *largest); /* RESOURCE_EXHAUSTED */
int64_t sx_cpu_round_up(int64_t bytes);          /* to SX_CPU_ALIGN */

/* Whether x is sizes[0] kept by sizes[1] reduced by sizes[2] kept ..., `most` sizes, the last ones
 * perhaps 1: neighbouring axes are joined, and those of size 1 count as any (kernels/reduce.c). */
bool sx_cpu_axis_runs(const sx_type *x, const sx_ints *reduced, int most, int64_t *sizes);

/* The rows, best first for each operator. */
extern const sx_cpu_kernel *const sx_cpu_kernels[];
extern const int sx_cpu_kernel_count;
/* After the rows: any elementwise operator (strided.c); then any operator at all. */
extern const sx_cpu_kernel sx_cpu_kernel_strided, sx_cpu_kernel_host;
/* Whether nodes of the operator are computed by a kernel, or need none: constants, and views of
 * their input. */
bool sx_cpu_has_kernel(const sx_op_def *op);
enum { SX_CPU_KERNEL_TABLE_VERSION = 29 };

/* ---- Running ---- */

/* Repeats the first `done` of `total` bytes, done > 0. */
static inline void sx_cpu_repeat(char *y, size_t done, size_t total)
{
    for (; done < total; done *= 2) {
        memcpy(y + done, y, done < total - done ? done : total - done);
    }
}

/* Walks an array of `rank` dimensions row by row, a row being its last dimension: `at` and the
 * offset, whose strides are given, move on to the next row; after the last, to the first. */
static inline void sx_cpu_next_row(int rank, const int64_t *size, const int64_t *stride,
                                   int64_t *at, int64_t *offset)
{
    for (int d = rank - 2; d >= 0; d--) {
        *offset += stride[d];
        if (++at[d] < size[d]) {
            return;
        }
        *offset -= size[d] * stride[d];
        at[d] = 0;
    }
}

/* ---- Steps that the planner itself adds ---- */

/* out = in, bytes. */
sx_status sx_cpu_prepare_copy(const sx_cpu_site *site, int64_t bytes, sx_cpu_step *step);

/* out = in: float32 on the form's grid in that form, or back. */
sx_status sx_cpu_prepare_packing(const sx_cpu_site *site, int64_t elems, const sx_cpu_form *form,
                                 bool pack, sx_cpu_step *step);
/* The same at once: to and from a form that is not SX_F32. */
void sx_cpu_to_form(const sx_cpu_vec *vec, const sx_cpu_form *form, const float *x, void *y,
                    int64_t n);
void sx_cpu_from_form(const sx_cpu_vec *vec, const sx_cpu_form *form, const void *x, float *y,
                      int64_t n);
static inline int64_t sx_cpu_form_bytes(const sx_cpu_form *f)
{
    return (int64_t)sx_dtype_bytes(f->dtype);
}

typedef struct sx_cpu_combine_data {
    const sx_cpu_vec *vec;
    int32_t combine; /* sx_combine */
    int shards;
    sx_dtype dtype;
    int64_t elems;
    const int64_t *counts; /* [shards], moments: elements behind each partial */
} sx_cpu_combine_data;

/* in: a partial result of each shard, out: the whole; two of each for moments. */
void sx_cpu_run_combine(const sx_cpu_step *step, const sx_cpu_call *call);

#endif
