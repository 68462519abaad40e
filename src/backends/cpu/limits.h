/* What this processor can do at most, through the kernels and libraries that the backend uses: the
 * rates beside which a profile puts those of kernels. Measured in about a second, with all threads
 * at work, and kept in the user cache for this processor, number of threads and library versions.
 * On a busy machine they are too low; measuring `again` replaces them. */
#ifndef SX_BACKENDS_CPU_LIMITS_H
#define SX_BACKENDS_CPU_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_cpu_limits {
    int threads;
    /* Multiplications and additions per second and thread. 0: this processor has no products of
     * bfloat16. */
    double f32, bf16, int8;
    double memory;       /* bytes per second, of all threads together */
    double cache;        /* the same per thread, of data in its second-level cache, */
    int64_t cache_bytes; /* which has that many; 0 = unknown */
    bool measured;       /* now, not read from the cache */
} sx_cpu_limits;

/* "AMD EPYC (AVX-512)": the processor and the vector loops that run on it. */
void sx_cpu_kind(char *text, size_t size);

/* threads: 0 = all. Without a home directory nothing is kept. */
SX_MUST_USE sx_status sx_cpu_limits_get(int threads, bool again, sx_cpu_limits *out);

#endif
