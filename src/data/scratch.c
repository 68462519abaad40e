#include "data/scratch.h"

#include "base/checked.h"
#include "base/memory.h"

enum { ALIGN = 64 };

/* One overflow allocation: this header, padded to ALIGN, then the bytes. */
struct sx_scratch_more {
    struct sx_scratch_more *next;
};

void sx_scratch_init(sx_scratch *scratch)
{
    *scratch = (sx_scratch){.limit_bytes = (size_t)2 << 30};
}

static void free_overflow(sx_scratch *scratch)
{
    while (scratch->more != NULL) {
        struct sx_scratch_more *next = scratch->more->next;
        sx_free_aligned(scratch->more);
        scratch->more = next;
    }
}

void sx_scratch_deinit(sx_scratch *scratch)
{
    free_overflow(scratch);
    sx_free_aligned(scratch->block);
    sx_scratch_init(scratch);
}

void sx_scratch_reset(sx_scratch *scratch)
{
    if (scratch->more != NULL) {
        free_overflow(scratch);
        size_t size = sx_align_up(scratch->total_bytes, 4096);
        sx_free_aligned(scratch->block);
        scratch->block = sx_alloc_aligned(size, ALIGN);
        scratch->size = scratch->block == NULL ? 0 : size;
    }
    scratch->used = 0;
    scratch->total_bytes = 0;
}

void *sx_scratch_alloc(sx_scratch *scratch, size_t bytes)
{
    if (bytes > scratch->limit_bytes || scratch->total_bytes > scratch->limit_bytes - bytes) {
        return NULL;
    }
    size_t padded = sx_align_up(SX_MAX(bytes, (size_t)1), ALIGN);
    scratch->total_bytes += padded;
    if (scratch->size - scratch->used >= padded) {
        void *result = scratch->block + scratch->used;
        scratch->used += padded;
        return result;
    }
    struct sx_scratch_more *more = sx_alloc_aligned(padded + ALIGN, ALIGN);
    if (more == NULL) {
        return NULL;
    }
    more->next = scratch->more;
    scratch->more = more;
    return (unsigned char *)more + ALIGN;
}
