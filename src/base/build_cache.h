/* Values that are costly to make, by key: compiled programs.
 *
 * Any number of threads ask; the first that asks for a key makes its value, the others wait for it,
 * each until its own deadline, or make something else meanwhile. Values are handed out referenced:
 * one that is evicted lives until its last user releases it. Least recently used values go when
 * there are more than a number of them, or than a sum of bytes. A failure is handed to those who
 * wait for it and not kept: the next who asks tries again. */
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

/* Makes a value; *out_bytes is what it counts for. */
typedef sx_status sx_build_fn(void *user, void **out_value, int64_t *out_bytes);

typedef struct sx_built sx_built; /* a reference to a value */

SX_MUST_USE sx_status sx_build_cache_create(const sx_build_cache_options *options,
                                            sx_build_cache **out);
void sx_build_cache_destroy(sx_build_cache *cache); /* NULL is fine; nobody uses it any more */

/* The value of `key`, which is `size` bytes. Errors: what `build` gives; CANCELLED,
 * DEADLINE_EXCEEDED while waiting for another thread's. */
SX_MUST_USE sx_status sx_build_cache_get(sx_build_cache *cache, const void *key, size_t size,
                                         sx_build_fn *build, void *user, const sx_cancel *cancel,
                                         sx_built **out);
void *sx_built_value(const sx_built *built);
sx_built *sx_built_retain(sx_built *built);
void sx_built_release(sx_built *built); /* NULL is fine */

typedef struct sx_build_cache_stats {
    int64_t entries, bytes;        /* now */
    int64_t builds, hits, evicted; /* since the beginning */
} sx_build_cache_stats;
void sx_build_cache_get_stats(sx_build_cache *cache, sx_build_cache_stats *out);

#endif
