/* Parsing of TFRecord frames, shared by the sequential and the indexed reader. */
#ifndef SX_IO_TFRECORD_FRAME_H
#define SX_IO_TFRECORD_FRAME_H

#include <string.h>

#include "base/byte_order.h"
#include "io/crc32c.h"
#include "io/tfrecord.h"
#include "io/window.h"

/* Whether 12 bytes are a header: whether the checksum of the length matches. */
static inline bool sx_tfrecord_header_ok(const void *header)
{
    return sx_load_le32((const uint8_t *)header + 8) == sx_crc32c_mask(sx_crc32c(0, header, 8));
}

/* Whether `size` bytes of data match the checksum in the 4 bytes after them. */
static inline bool sx_tfrecord_data_ok(const void *data, size_t size)
{
    return sx_load_le32((const uint8_t *)data + size) == sx_crc32c_mask(sx_crc32c(0, data, size));
}

/* What is at `offset` of a file. */
typedef enum sx_tfrecord_place {
    SX_PLACE_RECORD,     /* a valid header whose data are inside the file */
    SX_PLACE_END,        /* the end of the file */
    SX_PLACE_CUT_HEADER, /* fewer than 12 bytes left */
    SX_PLACE_BAD_HEADER, /* the length does not match its checksum */
    SX_PLACE_TOO_LONG,   /* the length is over the limit */
    SX_PLACE_CUT_DATA,   /* the data extend beyond the end of the file */
} sx_tfrecord_place;

/* Checks the header, not the data; sets *out_length for RECORD, TOO_LONG and CUT_DATA. */
SX_MUST_USE sx_status sx_tfrecord_look(sx_window *window, uint64_t offset,
                                       uint64_t max_record_bytes, sx_tfrecord_place *out_place,
                                       uint64_t *out_length);

/* The first offset >= `from` of a complete record whose length and data verify; the window's size
 * if there is none. A length verifies by chance once in 2^32 bytes, so the data are checked too. */
SX_MUST_USE sx_status sx_tfrecord_resync(sx_window *window, uint64_t from,
                                         uint64_t max_record_bytes, uint64_t *out_offset);

/* The error (DATA_LOSS or RESOURCE_EXHAUSTED) for a place that is not a record. */
sx_status sx_tfrecord_place_error(sx_tfrecord_place place, const char *name, uint64_t number,
                                  uint64_t offset, uint64_t length, uint64_t max_record_bytes);
/* The error (DATA_LOSS) for data that do not match their checksum. */
sx_status sx_tfrecord_data_error(const char *name, uint64_t number, uint64_t offset);

/* Detects the compression from the first bytes of a file. */
SX_MUST_USE sx_status sx_tfrecord_detect(sx_window *window, sx_codec *out_codec);

enum { SX_TFRECORD_DEFAULT_MAX = 1 << 30 };

#endif
