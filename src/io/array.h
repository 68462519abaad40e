/* Shared by the array formats (IDX, npy): allocating tensors, and converting byte order and the
 * order of dimensions. */
#ifndef SX_IO_ARRAY_H
#define SX_IO_ARRAY_H

#include <sextant/types.h>

#include "io/window.h"

/* The default maximum size of an array. */
#define SX_ARRAY_DEFAULT_MAX ((size_t)8 << 30)

/* Allocates a zeroed tensor of a static type, of at most max_bytes; free its data with sx_free.
 * Errors: RESOURCE_EXHAUSTED, with `name` in the message. */
SX_MUST_USE sx_status sx_array_alloc(const sx_type *type, size_t max_bytes, const char *name,
                                     sx_tensor *out_tensor);

/* Reads an array of this type from `offset` of the window; `swap` reverses the bytes of each
 * element. */
SX_MUST_USE sx_status sx_array_read(sx_window *window, uint64_t offset, const sx_type *type,
                                    bool swap, void *out);

/* Copies a column-major array of this type into row-major order, swapping as above. */
void sx_array_copy_columns(const sx_type *type, void *out, const void *in, bool swap);

#endif
