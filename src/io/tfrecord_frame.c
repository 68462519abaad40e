#include "io/tfrecord_frame.h"

#include <inttypes.h>

void sx_tfrecord_frame(sx_bytes data, uint8_t out_header[SX_TFRECORD_HEADER],
                       uint8_t out_footer[SX_TFRECORD_FOOTER])
{
    sx_store_u64(out_header, data.size);
    sx_store_u32(out_header + 8, sx_crc32c_mask(sx_crc32c(0, out_header, 8)));
    sx_store_u32(out_footer, sx_crc32c_mask(sx_crc32c(0, data.data, data.size)));
}

sx_tfrecord_place sx_tfrecord_look(sx_bytes bytes, size_t offset, uint64_t max_record_bytes,
                                   uint64_t *out_length)
{
    size_t left = bytes.size - offset;
    if (left == 0) {
        return SX_PLACE_END;
    }
    if (left < SX_TFRECORD_HEADER) {
        return SX_PLACE_CUT_HEADER;
    }
    const uint8_t *header = (const uint8_t *)bytes.data + offset;
    if (!sx_tfrecord_header_ok(header)) {
        return SX_PLACE_BAD_HEADER;
    }
    uint64_t length = sx_load_u64(header);
    *out_length = length;
    left -= SX_TFRECORD_HEADER;
    if (left < SX_TFRECORD_FOOTER || length > left - SX_TFRECORD_FOOTER) {
        return SX_PLACE_CUT_DATA;
    }
    return length > max_record_bytes ? SX_PLACE_TOO_LONG : SX_PLACE_RECORD;
}

size_t sx_tfrecord_resync(sx_bytes bytes, size_t from, uint64_t max_record_bytes)
{
    for (size_t offset = from; offset < bytes.size; offset++) {
        uint64_t length;
        const uint8_t *at = (const uint8_t *)bytes.data + offset;
        if (sx_tfrecord_look(bytes, offset, max_record_bytes, &length) == SX_PLACE_RECORD &&
            sx_tfrecord_data_ok(at + SX_TFRECORD_HEADER, (size_t)length)) {
            return offset;
        }
    }
    return bytes.size;
}

sx_status sx_tfrecord_place_error(sx_tfrecord_place place, const char *name, uint64_t number,
                                  uint64_t offset, uint64_t length, uint64_t max_record_bytes)
{
    static const char *const words[] = {
        [SX_PLACE_CUT_HEADER] = "the file ends inside the record's header",
        [SX_PLACE_BAD_HEADER] = "the record's length does not match its checksum",
        [SX_PLACE_CUT_DATA] = "the file ends inside the record's data",
    };
    if (place == SX_PLACE_TOO_LONG) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "%s: record %" PRIu64 " at offset %" PRIu64 " has %" PRIu64
                        " bytes, more than the limit of %" PRIu64,
                        name, number, offset, length, max_record_bytes);
    }
    return sx_error(SX_DATA_LOSS, "%s: record %" PRIu64 " at offset %" PRIu64 ": %s", name, number,
                    offset, words[place]);
}

sx_status sx_tfrecord_data_error(const char *name, uint64_t number, uint64_t offset)
{
    return sx_error(SX_DATA_LOSS,
                    "%s: record %" PRIu64 " at offset %" PRIu64
                    ": the record's data does not match its checksum",
                    name, number, offset);
}

/* Two bytes that look like zlib are weak evidence: a damaged plain file may start with them too. */
static bool inflates_to_records(sx_bytes bytes)
{
    uint8_t header[SX_TFRECORD_HEADER];
    size_t n = 0;
    sx_inflate *stream = NULL;
    sx_status status = sx_inflate_create(SX_CODEC_ZLIB, bytes, UINT64_MAX, "", &stream);
    if (status == SX_OK) {
        status = sx_inflate_read(stream, header, sizeof header, &n);
    }
    bool fits =
        status == SX_OK && (n == 0 || (n == sizeof header && sx_tfrecord_header_ok(header)));
    sx_status_free(status);
    sx_inflate_destroy(stream);
    return fits;
}

sx_codec sx_tfrecord_detect(sx_bytes bytes)
{
    if (bytes.size >= SX_TFRECORD_HEADER && sx_tfrecord_header_ok(bytes.data)) {
        return SX_CODEC_NONE;
    }
    sx_codec guess = sx_codec_guess(bytes);
    return guess == SX_CODEC_ZLIB && !inflates_to_records(bytes) ? SX_CODEC_NONE : guess;
}
