/* Copies between the host's memory and devices. */
#ifndef PJRT_REF_TRANSFER_H
#define PJRT_REF_TRANSFER_H

#include "pjrt_ref/objects.h"

/* A new buffer of `data`, whose strides are in bytes (NULL = row-major). With out_done NULL the
 * data are read in the call; else they must stay until that event has ended. */
SX_MUST_USE sx_status ref_put_data(ref_device *d, const sx_type *type, const void *data,
                                   const int64_t *strides, ref_event **out_done, ref_buffer **out);

/* Copies out into `data` in the order of minor_to_major[rank] (NULL = the buffer's own). */
SX_MUST_USE sx_status ref_get_data(ref_buffer *b, const int64_t *minor_to_major, void *data,
                                   ref_event **out_done);

/* A new buffer with the same contents. */
SX_MUST_USE sx_status ref_copy_buffer(ref_buffer *b, ref_device *to, ref_buffer **out);

#endif
