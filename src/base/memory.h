/* Heap memory. The three allocating calls check their products, return zeroed memory (but for
 * sx_realloc's tail) and NULL when out of memory or when a test's fail point says so; everything of
 * ours allocates through them, so that `fail the Nth allocation` reaches every path. */
#ifndef SX_BASE_MEMORY_H
#define SX_BASE_MEMORY_H

#include <stddef.h>

void *sx_alloc(size_t count, size_t elem_bytes);                /* free with sx_free */
void *sx_realloc(void *block, size_t count, size_t elem_bytes); /* as realloc; block kept on NULL */
void *sx_alloc_aligned(size_t bytes, size_t align); /* free with sx_free_aligned; NOT zeroed */
void sx_free(void *block);
void sx_free_aligned(void *block);
char *sx_strdup(const char *text); /* NULL when out of memory */

/* Makes the n-th allocation from now fail (1 = the next), once; 0 switches it off. Tests only. */
void sx_alloc_fail_after(long n);
/* How many allocations there have been: the step loop's test counts that none are added. */
long sx_alloc_count(void);

#endif
