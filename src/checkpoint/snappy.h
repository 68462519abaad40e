/* Snappy's raw format, reading only: a few writers compress the blocks of SSTables with it.
 *
 *   varint32 length of the output | elements
 *   element = literal bytes, or a copy of earlier output; the low two bits of its tag say which
 *
 * Source: google/snappy format_description.txt. */
#ifndef SX_CHECKPOINT_SNAPPY_H
#define SX_CHECKPOINT_SNAPPY_H

#include <sextant/types.h>

/* The unpacked length according to the header of `packed`. DATA_LOSS if the header is truncated or
 * over 32 bits. Nothing else is checked. */
SX_MUST_USE sx_status sx_snappy_length(sx_bytes packed, size_t *out_length);

/* Unpacks into out[length], where `length` is from sx_snappy_length. DATA_LOSS: an element that
 * extends outside the input or output, or a total other than `length` bytes. */
SX_MUST_USE sx_status sx_snappy_unpack(sx_bytes packed, uint8_t *out, size_t length);

#endif
