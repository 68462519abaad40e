#include "io/tfrecord_frame.h"

#include <inttypes.h>

#include "base/byte_order.h"
#include "base/checked.h"

void sx_tfrecord_frame(sx_bytes data, uint8_t out_header[SX_TFRECORD_HEADER],
                       uint8_t out_footer[SX_TFRECORD_FOOTER])
{
    sx_store_le64(out_header, data.size);
    sx_store_le32(out_header + 8, sx_crc32c_mask(sx_crc32c(0, out_header, 8)));
    sx_store_le32(out_footer, sx_crc32c_mask(sx_crc32c(0, data.data, data.size)));
}

sx_status sx_tfrecord_look(sx_window *window, uint64_t offset, uint64_t max_record_bytes,
                           sx_tfrecord_place *out_place, uint64_t *out_length)
{
    uint64_t left = window->size - offset;
    const void *header;
    if (left < SX_TFRECORD_HEADER) {
        *out_place = left == 0 ? SX_PLACE_END : SX_PLACE_CUT_HEADER;
        return SX_OK;
    }
    SX_TRY(sx_window_look(window, offset, SX_TFRECORD_HEADER, &header));
    if (!sx_tfrecord_header_ok(header)) {
        *out_place = SX_PLACE_BAD_HEADER;
        return SX_OK;
    }
    uint64_t length = sx_load_le64(header);
    *out_length = length;
    left -= SX_TFRECORD_HEADER;
    bool cut = left < SX_TFRECORD_FOOTER || length > left - SX_TFRECORD_FOOTER;
    *out_place = cut                         ? SX_PLACE_CUT_DATA
                 : length > max_record_bytes ? SX_PLACE_TOO_LONG
                                             : SX_PLACE_RECORD;
    return SX_OK;
}

sx_status sx_tfrecord_resync(sx_window *window, uint64_t from, uint64_t max_record_bytes,
                             uint64_t *out_offset)
{
    for (uint64_t offset = from; offset < window->size; offset++) {
        uint64_t length = 0;
        sx_tfrecord_place place;
        const void *data;
        SX_TRY(sx_tfrecord_look(window, offset, max_record_bytes, &place, &length));
        if (place != SX_PLACE_RECORD) {
            continue;
        }
        SX_TRY(sx_window_look(window, offset + SX_TFRECORD_HEADER,
                              (size_t)length + SX_TFRECORD_FOOTER, &data));
        if (sx_tfrecord_data_ok(data, (size_t)length)) {
            *out_offset = offset;
            return SX_OK;
        }
    }
    *out_offset = window->size;
    return SX_OK;
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

sx_status sx_tfrecord_detect(sx_window *window, sx_codec *out_codec)
{
    enum { HEAD_BYTES = 1 << 12 }; /* more than a Huffman table and a header need */
    sx_bytes head = {NULL, (size_t)SX_MIN(window->size, (uint64_t)HEAD_BYTES)};
    SX_TRY(sx_window_look(window, 0, head.size, &head.data));
    if (head.size >= SX_TFRECORD_HEADER && sx_tfrecord_header_ok(head.data)) {
        *out_codec = SX_CODEC_NONE;
        return SX_OK;
    }
    sx_codec guess = sx_codec_guess(head);
    *out_codec = guess == SX_CODEC_ZLIB && !inflates_to_records(head) ? SX_CODEC_NONE : guess;
    return SX_OK;
}
