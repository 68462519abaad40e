/* What the cpu backend can be told when it is opened. */
#ifndef SX_BACKENDS_CPU_OPTIONS_H
#define SX_BACKENDS_CPU_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sx_cpu_options {
    int threads; /* workers; 0 = as many as this process may use */
    /* Shards of graphs that assign no variable, where the compile options leave them to us, so that
     * their bits do not depend on the threads: a row of a matrix product depends on how many rows
     * there are (oneDNN 2.6: alone, and with AVX2 the last three). 0 = as many as threads. */
    int eval_shards;
    /* Products of quantized operands multiply integers (kernels/int8.c): faster, and one step of
     * the grid may lie between a result and that of float32. */
    bool integers;
    /* Frozen graphs (sx_compile_options.frozen): products by frozen filters and matrices multiply
     * bfloat16, and what lies between them takes 2 bytes, where the processor is faster at that
     * (sx_cpu_has_bf16). */
    bool bfloat16;
    /* Of programs that assign variables, training steps: arguments, outputs and temporaries take at
     * most so many bytes. Values are computed again where this is needed (recompute.c), which costs
     * time and changes no bits; a program that needs more is RESOURCE_EXHAUSTED. 0 = any number. */
    int64_t memory_limit_bytes;
    struct sx_profile *profile; /* gets the times of all kernels (profile.h); NULL: none are kept */
} sx_cpu_options;

/* Whether this processor multiplies bfloat16 faster than float32: AMX, AVX512_BF16 of most. */
bool sx_cpu_has_bf16(void);

#endif
