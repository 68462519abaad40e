/* Copies between the host's memory and devices. */
#ifndef PJRT_REF_TRANSFER_H
#define PJRT_REF_TRANSFER_H

#include "pjrt_ref/objects.h"

/* A new buffer of `data`, whose strides are in bytes (NULL = row-major). With out_done NULL the
 * data are read in the call; else they must stay until that event has ended. */
SX_MUST_USE sx_status ref_put_data(ref_device *d, const sx_type *type, const void *data,
                                   const int64_t *strides, ref_event **out_done, ref_buffer **out);

/* An array that is filled piece by piece; until then its bytes are ones. */
typedef struct ref_filling ref_filling;
SX_MUST_USE sx_status ref_filling_create(ref_device *d, const sx_type *type, ref_filling **out);
/* Fails the array if its last piece has not been put. */
void ref_filling_destroy(ref_filling *f);
/* The array's buffer, once; NULL: it has been taken. */
ref_buffer *ref_filling_take(ref_filling *f);
/* `data` must stay until the event has ended. With the last piece the array has its value. */
SX_MUST_USE sx_status ref_filling_put(ref_filling *f, const void *data, int64_t offset,
                                      int64_t bytes, bool is_last, ref_event **out_done);

/* Copies out into `data` in the order of minor_to_major[rank] (NULL = the buffer's own). */
SX_MUST_USE sx_status ref_get_data(ref_buffer *b, const int64_t *minor_to_major, void *data,
                                   ref_event **out_done);

/* A new buffer with the same contents. */
SX_MUST_USE sx_status ref_copy_buffer(ref_buffer *b, ref_device *to, ref_buffer **out);

#endif
