/* A cache of values that are expensive to build, by key: compiled programs.
 *
 * Any number of threads may use it. The first thread that requests a key builds its value; threads
 * that request the same key meanwhile wait for it, each until its own deadline. Callers get a
 * reference: an evicted value lives until its last user releases it. The least recently used values
 * are evicted when their number or their total size exceeds a limit. A failure is returned to the
 * threads that wait for it and is not stored: the next request tries again. If the thread that
 * builds was cancelled, one of those that wait builds the value. */
#ifndef SX_BASE_BUILD_CACHE_H
#define SX_BASE_BUILD_CACHE_H

#include <stdint.h>

#include "base/cancel.h"

typedef struct sx_build_cache sx_build_cache;

typedef struct sx_build_cache_options {
    int64_t max_entries; /* 0 = 256 */
    int64_t max_bytes;   /* 0 = no limit */
    void (*destroy)(void *value);
} sx_build_cache_options;

/* Builds a value; *out_bytes is its size for max_bytes. */
typedef sx_status sx_build_cache_fn(void *user, void **out_value, int64_t *out_bytes);

typedef struct sx_built sx_built; /* a reference to a value */

SX_MUST_USE sx_status sx_build_cache_create(const sx_build_cache_options *options,
                                            sx_build_cache **out);
void sx_build_cache_destroy(sx_build_cache *cache); /* NULL is fine; must not be in use */

/* The value of `key`, which has `size` bytes. Errors: those of `build`; CANCELLED,
 * DEADLINE_EXCEEDED: while waiting for another thread. */
SX_MUST_USE sx_status sx_build_cache_get(sx_build_cache *cache, const void *key, size_t size,
                                         sx_build_cache_fn *build, void *user,
                                         const sx_cancel *cancel, sx_built **out);
/* Removes up to `count` of the least recently used values; returns how many there were. */
int64_t sx_build_cache_evict(sx_build_cache *cache, int64_t count);

void *sx_built_value(const sx_built *built);
sx_built *sx_built_retain(sx_built *built);
void sx_built_release(sx_built *built); /* NULL is fine */

typedef struct sx_build_cache_stats {
    int64_t entries, bytes;        /* at present */
    int64_t builds, hits, evicted; /* since the beginning */
} sx_build_cache_stats;
void sx_build_cache_get_stats(sx_build_cache *cache, sx_build_cache_stats *out);

#endif
