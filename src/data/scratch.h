/* sx_scratch: the memory of one worker for one element, or of one batch for the data that its rows
 * point to.
 *
 *   main block  [ ................used|free........ ]
 *   overflow -> block -> block        only in elements larger than any before
 *
 * reset() frees everything; if there was overflow, the main block is replaced by one large enough
 * for all of it, so that a stream of similar elements stops allocating after the first few. */
#ifndef SX_DATA_SCRATCH_H
#define SX_DATA_SCRATCH_H

#include <stddef.h>

#include <sextant/data.h>

struct sx_scratch {
    unsigned char *block; /* aligned to 64; NULL before the first use */
    size_t size, used;
    struct sx_scratch_more *more; /* overflow of this element, newest first */
    size_t total_bytes;           /* requested since the last reset, including overflow */
    size_t limit_bytes;           /* of total_bytes; init() sets 2 GiB */
};

void sx_scratch_init(sx_scratch *scratch);
void sx_scratch_deinit(sx_scratch *scratch);
void sx_scratch_reset(sx_scratch *scratch);

#endif
