/* NumPy's .npy files.
 *
 *   93 'NUMPY' | major | minor | header size: uint16 (v1) or uint32 (v2, v3) | header | elements
 *   header = Python dict {'descr': '<f4', 'fortran_order': False, 'shape': (3,), } padded to 64
 *
 * Reads the element types of sx_dtype in either byte order and either order of dimensions, rank up
 * to SX_MAX_RANK; bfloat16 is numpy's '<V2'. Strings are read from bytes ('|S5', zeros at the end
 * removed) and from text ('<U5', as UTF-8), and written as bytes. Writes v1.0, row-major,
 * little-endian, identical to the output of numpy.save. Pickled objects ('O') are rejected, as
 * reading them would run code. */
#ifndef SX_IO_NPY_H
#define SX_IO_NPY_H

#include <sextant/types.h>

#include "base/buffer.h"

enum { SX_NPY_MAX_HEADER = 65536, SX_NPY_MAX_HEAD = 12 + SX_NPY_MAX_HEADER };

/* How many bytes the file has by its header. `head`: its first SX_NPY_MAX_HEAD bytes, or all. Of
 * elements that sx_npy_parse() refuses it is the header alone. */
SX_MUST_USE sx_status sx_npy_size(sx_bytes head, const char *name, uint64_t *out_bytes);

/* Parses .npy bytes. The tensor's data is a copy, of strings with their text: free it with sx_free.
 * max_bytes 0 = 8 GiB. */
SX_MUST_USE sx_status sx_npy_parse(sx_bytes bytes, size_t max_bytes, const char *name,
                                   sx_tensor *out_tensor);
SX_MUST_USE sx_status sx_npy_read(const char *path, size_t max_bytes, sx_tensor *out_tensor);

/* Appends everything before the elements. UNIMPLEMENTED for strings. */
SX_MUST_USE sx_status sx_npy_header(const sx_type *type, sx_buf *out);
/* Writes a file atomically. */
SX_MUST_USE sx_status sx_npy_write(const char *path, const sx_tensor *tensor);

#endif
