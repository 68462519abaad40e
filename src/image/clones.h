/* SX_CLONES before a function: compiled once for each class of x86 and chosen at load time.
 *
 * Safe for results, because the build forbids fused multiply-adds (-ffp-contract=off): the classes
 * differ in the width of vectors, never in a bit. ThreadSanitizer cannot run the chooser. */
#ifndef SX_IMAGE_CLONES_H
#define SX_IMAGE_CLONES_H

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
