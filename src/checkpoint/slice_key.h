/* The index keys of the pieces of a partitioned tensor: TensorFlow's
 * OrderedCode.
 *
 *   number 0 | string name | number rank | per dimension: signed start, signed length (-1 = all)
 *
 *   number   count of bytes, then that many, big-endian, none leading zero
 *   string   bytes, 00 as 00 ff and ff as ff 00, ended by 00 01
 *   signed   big-endian in n bytes of 7n - 1 bits and sign, its first n bits set to 1 (inverted if
 *            negative): -64..63 is one byte, 0x80 ^ value
 *
 * Source: tensorflow/tensorflow core/lib/strings/ordered_code.cc,
 * core/util/saved_tensor_slice_util.cc. */
#ifndef SX_CHECKPOINT_SLICE_KEY_H
#define SX_CHECKPOINT_SLICE_KEY_H

#include "base/buffer.h"

/* Appends the key of the piece [start, start + length) of tensor `name`; length -1 is a whole
 * dimension (whose start is 0). */
void sx_slice_key(sx_buf *out, const char *name, int rank, const int64_t *start,
                  const int64_t *length);

#endif
