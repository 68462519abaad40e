/* The counters are process-wide because a test must be able to fail any allocation. They and the
 * log sink are the only global state of this layer. */
#include "base/memory.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"

static atomic_long allocations; /* so far, including failed ones */
static atomic_long fail_at;     /* the value of `allocations` to fail at; 0 = none */
static atomic_long live;        /* blocks that are not freed */

/* Counts an allocation; false if it must fail. */
static bool admit(void)
{
    long number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    return number != atomic_load_explicit(&fail_at, memory_order_relaxed);
}

bool sx_alloc_part(void)
{
    return atomic_load_explicit(&fail_at, memory_order_relaxed) == 0 || admit();
}

static void *add_live(void *block)
{
    if (block != NULL) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return block;
}

/* A large block lies on the processor's huge pages where the system lets programs ask for them:
 * touching 100 MB for the first time takes 50 page faults then, not 25,000, which are most of the
 * time of loading a model. */
enum { HUGE_PAGE_BYTES = 2 << 20 };

static void *ask_for_huge_pages(void *block, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    const size_t skip = (HUGE_PAGE_BYTES - (uintptr_t)block % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    if (block != NULL && bytes >= skip + HUGE_PAGE_BYTES) {
        /* whether the system does it is its own affair */
        (void)madvise((char *)block + skip, (bytes - skip) & ~(size_t)(HUGE_PAGE_BYTES - 1),
                      MADV_HUGEPAGE);
    }
#endif
    return block;
}

void *sx_alloc(size_t count, size_t elem_bytes)
{
    size_t bytes;
    if (!admit() || !sx_mul_size(count, elem_bytes, &bytes)) {
        return NULL;
    }
    return add_live(ask_for_huge_pages(calloc(1, bytes == 0 ? 1 : bytes), bytes));
}

void *sx_realloc(void *block, size_t count, size_t elem_bytes)
{
    size_t bytes;
    if (!admit() || !sx_mul_size(count, elem_bytes, &bytes)) {
        return NULL;
    }
    void *grown = realloc(block, bytes == 0 ? 1 : bytes);
    return block == NULL ? add_live(grown) : grown;
}

void *sx_alloc_aligned(size_t bytes, size_t align)
{
    void *block = NULL;
    align = bytes >= HUGE_PAGE_BYTES && align < HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : align;
    if (!admit() || posix_memalign(&block, align, bytes == 0 ? 1 : bytes) != 0) {
        return NULL;
    }
    return add_live(ask_for_huge_pages(block, bytes));
}

void sx_alloc_keep(const void *block)
{
    if (block != NULL) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    }
}

void sx_free(void *block)
{
    sx_alloc_keep(block);
    free(block);
}

void sx_free_aligned(void *block)
{
    sx_free(block);
}

char *sx_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = sx_alloc(size, 1);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

void sx_alloc_fail_after(long n)
{
    long now = atomic_load_explicit(&allocations, memory_order_relaxed);
    atomic_store_explicit(&fail_at,
                          n <= 0               ? 0
                          : n > LONG_MAX - now ? LONG_MAX
                                               : now + n,
                          memory_order_relaxed);
}

long sx_alloc_count(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

long sx_alloc_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}
