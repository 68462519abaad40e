/* The instruction sets for which the cpu backend's loops are compiled. */
#ifndef SX_TESTS_BACKENDS_VECS_H
#define SX_TESTS_BACKENDS_VECS_H

#include "harness.h"

#include <stdlib.h>

#include "backends/cpu/vec/vec.h"

static const sx_cpu_vec *const vecs[] = {
#if defined(__x86_64__)
    &sx_cpu_vec_v4,
    &sx_cpu_vec_v3,
#endif
    &sx_cpu_vec_base,
};

/* Whether this processor has it. */
static inline bool runs(const sx_cpu_vec *vec)
{
    setenv("SEXTANT_CPU_VEC", vec->name, 1);
    const bool found = sx_cpu_vec_best() == vec;
    unsetenv("SEXTANT_CPU_VEC");
    return found;
}

#endif
