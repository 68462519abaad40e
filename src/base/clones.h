/* SX_CLONES before a function: it is compiled once for each class of x86 CPU and selected at load
 * time.
 *
 * All versions give the same bits, because the build disables fused multiply-adds
 * (-ffp-contract=off): they differ only in the width of vectors. ThreadSanitizer does not support
 * the selection. Static functions only: GCC exports the selection of others from the library. */
#ifndef SX_BASE_CLONES_H
#define SX_BASE_CLONES_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SX_NO_CLONES 1
#endif
#endif

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(SX_NO_CLONES)
#define SX_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define SX_CLONES
#endif

#endif
