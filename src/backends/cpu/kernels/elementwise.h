/* An elementwise group: a node and the elementwise producers that only it reads, as one tape. Also
 * for kernels that take a group's result as it is made (sums.c). */
#ifndef SX_BACKENDS_CPU_KERNELS_ELEMENTWISE_H
#define SX_BACKENDS_CPU_KERNELS_ELEMENTWISE_H

#include "backends/cpu/kernel.h"

/* A batch norm of a group, whose factors are computed at the start of a call. */
typedef struct sx_cpu_folded {
    bool gradient;
    int stat; /* first of its inputs, in the step's */
    float epsilon;
} sx_cpu_folded;

typedef struct sx_cpu_group {
    sx_vec_tape tape;
    int first_in, n_in; /* the tape's in the step's, without folded vectors */
    int n_norms;
    sx_cpu_folded norms[SX_VEC_INPUTS];
    int64_t channels, elems, scratch_bytes;
} sx_cpu_group;

/* Whether node k is elementwise: it is claimed, and then all producers that fit. What the group
 * reads follows the inputs of the match, of which bits of in_place say what may be overwritten. */
bool sx_cpu_match_group(sx_cpu_match *m, int k);
/* The group of the site's nodes from `first_node` on, which reads its inputs from `first_in` on;
 * its result of that type is written as bfloat16 if `narrow`. */
SX_MUST_USE sx_status sx_cpu_prepare_group(const sx_cpu_site *site, int first_node, int first_in,
                                           const sx_type *out, bool narrow, sx_cpu_group *g);
/* Sets in[SX_VEC_INPUTS], the tape's inputs in this call. */
void sx_cpu_begin_group(const sx_cpu_group *g, const sx_cpu_step *step, const sx_cpu_call *call,
                        float *scratch, const float **in);
/* Where element i of its result `out` lies. */
static inline void *sx_cpu_group_at(const sx_cpu_group *g, void *out, int64_t i)
{
    return (char *)out + i * (int64_t)(g->tape.narrow_out ? sizeof(uint16_t) : sizeof(float));
}

#endif
