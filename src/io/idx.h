/* IDX, the file format of MNIST, big-endian.
 *
 *   00 00 | type | rank | rank x uint32 sizes | elements, row-major
 *   type: 08 uint8   09 int8   0B int16   0C int32   0D float32   0E float64
 *
 * Files are usually distributed compressed with gzip; both forms are read, detected by content. */
#ifndef SX_IO_IDX_H
#define SX_IO_IDX_H

#include <stdbool.h>

#include <sextant/types.h>

/* Parses uncompressed IDX bytes into a tensor in native byte order; free its data with sx_free.
 * max_bytes 0 = 8 GiB. DATA_LOSS: the length of the file does not match its header. */
SX_MUST_USE sx_status sx_idx_parse(sx_bytes bytes, size_t max_bytes, const char *name,
                                   sx_tensor *out_tensor);
/* The same from a file, compressed or not. */
SX_MUST_USE sx_status sx_idx_read(const char *path, size_t max_bytes, sx_tensor *out_tensor);

#endif
