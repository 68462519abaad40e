/* Numbers below 1.2e-38 as zeros, for the calling thread. Gradients of a network that has learned
 * its batch, and moments of weights that are not used any more, become that small; processors then
 * take a hundred times longer for each (measured: a step of mlp 0.15 -> 0.8 ms). TensorFlow and XLA
 * flush them, too. */
#ifndef SX_BACKENDS_CPU_SUBNORMAL_H
#define SX_BACKENDS_CPU_SUBNORMAL_H

#ifdef __SSE__
#include <xmmintrin.h>

enum { SX_FLUSH_RESULTS = 1 << 15, SX_FLUSH_OPERANDS = 1 << 6 };

/* Returns what sx_subnormals_restore() takes. */
static inline unsigned sx_subnormals_flush(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | SX_FLUSH_RESULTS | SX_FLUSH_OPERANDS);
    return before;
}
static inline void sx_subnormals_restore(unsigned before)
{
    _mm_setcsr(before);
}
#else
static inline unsigned sx_subnormals_flush(void)
{
    return 0;
}
static inline void sx_subnormals_restore(unsigned before)
{
    (void)before;
}
#endif

#endif
