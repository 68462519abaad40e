/* What the array containers (IDX, npy) share: an element type with its byte order, and the copy
 * that turns foreign element order into ours. */
#ifndef SX_IO_ARRAY_H
#define SX_IO_ARRAY_H

#include <sextant/types.h>

/* The largest array that a reader makes unless told otherwise. */
#define SX_ARRAY_DEFAULT_MAX ((size_t)8 << 30)

/* Allocates a tensor of `type` (static shape) of at most max_bytes; the data are zero and freed
 * with sx_free. RESOURCE_EXHAUSTED names `name`. */
SX_MUST_USE sx_status sx_array_alloc(const sx_type *type, size_t max_bytes, const char *name,
                                     sx_tensor *out_tensor);

/* Copies `count` elements of `elem_bytes`, reversing each one's bytes when `swap`. */
void sx_array_copy(void *out, const void *in, size_t count, size_t elem_bytes, bool swap);

/* Copies a column-major array of this type into row-major order, swapping as above. */
void sx_array_copy_columns(const sx_type *type, void *out, const void *in, bool swap);

#endif
