/* Heap memory. All of Sextant's own code allocates through these functions, so that tests can make
 * any allocation fail. Sizes are checked for overflow; NULL means out of memory. */
#ifndef SX_BASE_MEMORY_H
#define SX_BASE_MEMORY_H

#include <sextant/status.h>

void *sx_alloc(size_t count, size_t elem_bytes);                /* zeroed; free with sx_free */
void *sx_realloc(void *block, size_t count, size_t elem_bytes); /* on NULL, `block` stays valid */
void *sx_alloc_aligned(size_t bytes, size_t align); /* not zeroed; free with sx_free_aligned */
void sx_free(void *block);
void sx_free_aligned(void *block);
char *sx_strdup(const char *text);

/* RESOURCE_EXHAUSTED "out of memory for a PNG decoder": the arguments are a printf format (a string
 * literal) that says what the memory was for, and its arguments. */
#define sx_no_memory(...) sx_status_no_memory(__FILE__, __LINE__, "out of memory " __VA_ARGS__)
SX_MUST_USE sx_status sx_status_no_memory(const char *file, int line, const char *format, ...)
    SX_PRINTF(3, 4);
/* Whether an error comes from sx_no_memory(), also with annotations: other errors of code
 * RESOURCE_EXHAUSTED are about a limit, and come again with more memory. */
bool sx_status_is_no_memory(sx_status status);

/* Marks `block` as living as long as the process: it no longer counts as live. */
void sx_alloc_keep(const void *block);

/* Makes the n-th allocation from now fail (1 = the next), once; 0 turns this off. For tests.
 * Objects of arenas count too, meanwhile. */
void sx_alloc_fail_after(long n);
/* For an allocator that gives out parts of its blocks: false if this part is the one to fail. */
bool sx_alloc_part(void);
/* The number of allocations so far, to test that a loop makes none. */
long sx_alloc_count(void);
/* The number of blocks not freed yet: a test ends with as many as it began with. */
long sx_alloc_live(void);

#endif
