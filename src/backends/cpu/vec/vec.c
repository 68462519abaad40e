/* Which instruction set: see vec.h. */
#include "backends/cpu/vec/vec.h"

#include <stdlib.h>
#include <string.h>

typedef struct row {
    const sx_cpu_vec *vec;
    bool (*runs)(void);
} row;

static bool always(void)
{
    return true;
}

#if defined(__x86_64__)
static bool runs_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static bool runs_v4(void)
{
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static const row rows[] = {
#if defined(__x86_64__)
    {&sx_cpu_vec_v4, runs_v4},
    {&sx_cpu_vec_v3, runs_v3},
#endif
    {&sx_cpu_vec_base, always},
};

const sx_cpu_vec *sx_cpu_vec_best(void)
{
    const char *wanted = getenv("SEXTANT_CPU_VEC");
    const size_t n = sizeof(rows) / sizeof(rows[0]);
    for (size_t i = 0; i < n; i++) {
        bool named = wanted == NULL || strcmp(wanted, rows[i].vec->name) == 0;
        if (named && rows[i].runs()) {
            return rows[i].vec;
        }
    }
    return wanted != NULL ? rows[n - 1].vec : &sx_cpu_vec_base;
}
