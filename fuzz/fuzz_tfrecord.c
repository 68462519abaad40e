/* TFRecord framing: strict and skipping, told and detected compression. What the strict reader
 * hands out verifies; the skipping one ends, and accounts for every byte of a plain file. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "io/tfrecord.h"

static void read_all(sx_bytes bytes, sx_tfrecord_options options)
{
    sx_tfrecord_reader *reader = NULL;
    options.max_record_bytes = 1 << 20;
    sx_status status = sx_tfrecord_reader_over(bytes, "fuzz", &options, &reader);
    uint64_t seen = 0;
    bool more = status == SX_OK;
    while (more && status == SX_OK) {
        sx_bytes record = {0};
        status = sx_tfrecord_next(reader, &record, &more);
        if (status == SX_OK && more) {
            seen += SX_TFRECORD_HEADER + record.size + SX_TFRECORD_FOOTER;
        }
    }
    if (options.skip_corrupt && options.codec == SX_CODEC_NONE) {
        assert(status == SX_OK);
        assert(seen + sx_tfrecord_reader_damage(reader).bytes == bytes.size);
    }
    sx_status_free(status);
    sx_tfrecord_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const sx_codec codecs[] = {SX_CODEC_AUTO, SX_CODEC_NONE, SX_CODEC_GZIP, SX_CODEC_ZLIB};
    for (int i = 0; i < 8; i++) {
        read_all((sx_bytes){data, size},
                 (sx_tfrecord_options){.codec = codecs[i / 2], .skip_corrupt = i % 2});
    }
    return 0;
}
