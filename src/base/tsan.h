/* What ThreadSanitizer cannot see of a library that it does not instrument (libgomp): that what one
 * thread did before sx_tsan_release(at) happened before what another does after
 * sx_tsan_acquire(at). Nothing in other builds. */
#ifndef SX_BASE_TSAN_H
#define SX_BASE_TSAN_H

#if defined(__SANITIZE_THREAD__)
/* ABI of compiler-rt's and GCC's libtsan (sanitizer/tsan_interface.h) */
void __tsan_acquire(void *at);
void __tsan_release(void *at);

static inline void sx_tsan_acquire(void *at)
{
    __tsan_acquire(at);
}

static inline void sx_tsan_release(void *at)
{
    __tsan_release(at);
}
#else
static inline void sx_tsan_acquire(void *at)
{
    (void)at;
}

static inline void sx_tsan_release(void *at)
{
    (void)at;
}
#endif

#endif
