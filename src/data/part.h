/* The part of each batch that is read, where several processes share batches: a batch has the same
 * rows in all of them, but only some of these are made. The others' bytes are not set. */
#ifndef SX_DATA_PART_H
#define SX_DATA_PART_H

#include <sextant/data.h>

/* Part `index` of `count` equal ones; {0} = everything. */
typedef struct sx_part {
    int index, count;
    int64_t divisor; /* batches that it does not divide are read whole */
    int64_t full;    /* > 0: so are all but those of this size */
} sx_part;

static inline bool sx_part_is_whole(const sx_part *part, int64_t size)
{
    return part->count <= 1 || size % part->divisor != 0 || (part->full > 0 && size != part->full);
}

/* The rows [*out_first, *out_end) of a batch of `size`. */
static inline void sx_part_rows(const sx_part *part, int64_t size, int64_t *out_first,
                                int64_t *out_end)
{
    const bool whole = sx_part_is_whole(part, size);
    *out_first = whole ? 0 : size / part->count * part->index;
    *out_end = whole ? size : size / part->count * (part->index + 1);
}

/* Before the first batch. */
void sx_iterator_take_part(sx_iterator *iterator, const sx_part *part);

#endif
