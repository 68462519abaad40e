#include "io/tfrecord.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/tfrecord_frame.h"

struct sx_tfrecord_reader {
    char *name;
    sx_file_map map; /* zero if the bytes are the caller's */
    sx_bytes bytes;  /* the file's contents, possibly compressed */
    sx_tfrecord_options options;
    uint64_t number;    /* of the next record */
    uint64_t offset;    /* of the next record, in the uncompressed stream */
    bool ended, failed; /* failed: a compressed stream that cannot go on */
    sx_tfrecord_damage damage;
    sx_inflate *inflate; /* NULL when plain */
    sx_buf record;       /* compressed files: the current record and its footer */
};

/* ---- open --------------------------------------------------------------------------------- */

static sx_status reader_init(sx_tfrecord_reader *reader, const char *name)
{
    reader->name = sx_strdup(name);
    if (reader->name == NULL) {
        return sx_no_memory("reading %s", name);
    }
    if (reader->options.max_record_bytes == 0) {
        reader->options.max_record_bytes = SX_TFRECORD_DEFAULT_MAX;
    }
    if (reader->options.codec == SX_CODEC_AUTO) {
        reader->options.codec = sx_tfrecord_detect(reader->bytes);
    }
    sx_buf_init(&reader->record, (size_t)reader->options.max_record_bytes + SX_TFRECORD_FOOTER);
    if (reader->options.codec == SX_CODEC_NONE) {
        return SX_OK;
    }
    return sx_inflate_create(reader->options.codec, reader->bytes, UINT64_MAX, name,
                             &reader->inflate);
}

static sx_status open_over(sx_file_map map, sx_bytes bytes, const char *name,
                           const sx_tfrecord_options *options, sx_tfrecord_reader **out_reader)
{
    sx_tfrecord_reader *reader = sx_alloc(1, sizeof *reader);
    if (reader == NULL) {
        sx_file_map_close(&map);
        return sx_no_memory("reading %s", name);
    }
    reader->map = map;
    reader->bytes = bytes;
    reader->options = options != NULL ? *options : (sx_tfrecord_options){0};
    sx_status status = reader_init(reader, name);
    if (status != SX_OK) {
        sx_tfrecord_reader_destroy(reader);
        return status;
    }
    *out_reader = reader;
    return SX_OK;
}

sx_status sx_tfrecord_reader_open(const char *path, const sx_tfrecord_options *options,
                                  sx_tfrecord_reader **out_reader)
{
    sx_file_map map;
    SX_TRY(sx_file_map_open(path, SX_ACCESS_SEQUENTIAL, &map));
    return open_over(map, map.view, path, options, out_reader);
}

sx_status sx_tfrecord_reader_over(sx_bytes bytes, const char *name,
                                  const sx_tfrecord_options *options,
                                  sx_tfrecord_reader **out_reader)
{
    return open_over((sx_file_map){0}, bytes, name, options, out_reader);
}

void sx_tfrecord_reader_destroy(sx_tfrecord_reader *reader)
{
    if (reader != NULL) {
        sx_inflate_destroy(reader->inflate);
        sx_buf_deinit(&reader->record);
        sx_file_map_close(&reader->map);
        sx_free(reader->name);
        sx_free(reader);
    }
}

sx_tfrecord_damage sx_tfrecord_reader_damage(const sx_tfrecord_reader *reader)
{
    return reader->damage;
}

static void count_damage(sx_tfrecord_reader *reader, uint64_t bytes)
{
    reader->damage.places++;
    reader->damage.bytes += bytes;
}

/* ---- plain -------------------------------------------------------------------------------- */

/* Skips damage at the reader's offset: a record with damaged data, or everything up to the next
 * valid record. */
static void skip_plain(sx_tfrecord_reader *reader, sx_tfrecord_place place, uint64_t length)
{
    size_t next = (size_t)reader->offset + SX_TFRECORD_HEADER + (size_t)length + SX_TFRECORD_FOOTER;
    if (place != SX_PLACE_RECORD && place != SX_PLACE_TOO_LONG) {
        next = sx_tfrecord_resync(reader->bytes, (size_t)reader->offset + 1,
                                  reader->options.max_record_bytes);
    }
    count_damage(reader, next - reader->offset);
    reader->offset = next;
}

static sx_status next_plain(sx_tfrecord_reader *reader, sx_bytes *out_record, bool *out_more)
{
    uint64_t limit = reader->options.max_record_bytes;
    for (;;) {
        uint64_t length = 0;
        sx_tfrecord_place place =
            sx_tfrecord_look(reader->bytes, (size_t)reader->offset, limit, &length);
        if (place == SX_PLACE_END) {
            reader->ended = true;
            *out_more = false;
            return SX_OK;
        }
        const uint8_t *data =
            (const uint8_t *)reader->bytes.data + reader->offset + SX_TFRECORD_HEADER;
        if (place == SX_PLACE_RECORD && sx_tfrecord_data_ok(data, (size_t)length)) {
            *out_record = (sx_bytes){data, (size_t)length};
            *out_more = true;
            reader->offset += SX_TFRECORD_HEADER + length + SX_TFRECORD_FOOTER;
            reader->number++;
            return SX_OK;
        }
        if (!reader->options.skip_corrupt) {
            return place == SX_PLACE_RECORD
                       ? sx_tfrecord_data_error(reader->name, reader->number, reader->offset)
                       : sx_tfrecord_place_error(place, reader->name, reader->number,
                                                 reader->offset, length, limit);
        }
        skip_plain(reader, place, length);
    }
}

/* ---- compressed --------------------------------------------------------------------------- */

/* Reads a record's data and footer in growing pieces, so that memory grows with the bytes actually
 * read and not with the length that the file claims. */
static sx_status inflate_record(sx_tfrecord_reader *reader, uint64_t want, uint64_t *out_got)
{
    sx_buf_reset(&reader->record);
    size_t got = 0;
    while (got < want) {
        size_t piece = (size_t)SX_MIN(want - got, SX_MAX((uint64_t)1 << 16, (uint64_t)got));
        void *space = sx_buf_extend(&reader->record, piece);
        if (space == NULL) {
            return sx_buf_status(&reader->record);
        }
        size_t n;
        sx_status status = sx_inflate_read(reader->inflate, space, piece, &n);
        got += n;
        *out_got = got;
        if (status != SX_OK || n < piece) {
            return status;
        }
    }
    return SX_OK;
}

/* Reads the next record; *out_more = false at the end. If the error can be skipped, *out_length is
 * set and the stream is positioned after the record. */
static sx_status read_compressed(sx_tfrecord_reader *reader, sx_bytes *out_record, bool *out_more,
                                 bool *out_behind, uint64_t *out_length)
{
    uint8_t header[SX_TFRECORD_HEADER];
    size_t n;
    uint64_t limit = reader->options.max_record_bytes, got = 0;
    SX_TRY(sx_inflate_read(reader->inflate, header, sizeof header, &n),
           "record %llu at offset %llu", (unsigned long long)reader->number,
           (unsigned long long)reader->offset);
    if (n == 0) {
        *out_more = false;
        return SX_OK;
    }
    sx_tfrecord_place place = n < sizeof header                ? SX_PLACE_CUT_HEADER
                              : !sx_tfrecord_header_ok(header) ? SX_PLACE_BAD_HEADER
                                                               : SX_PLACE_RECORD;
    uint64_t length = place == SX_PLACE_RECORD ? sx_load_u64(header) : 0;
    if (length > limit) {
        place = SX_PLACE_TOO_LONG;
    }
    if (place == SX_PLACE_RECORD) {
        SX_TRY(inflate_record(reader, length + SX_TFRECORD_FOOTER, &got),
               "record %llu at offset %llu", (unsigned long long)reader->number,
               (unsigned long long)reader->offset);
        place = got < length + SX_TFRECORD_FOOTER ? SX_PLACE_CUT_DATA : SX_PLACE_RECORD;
    }
    if (place != SX_PLACE_RECORD) {
        return sx_tfrecord_place_error(place, reader->name, reader->number, reader->offset, length,
                                       limit);
    }
    *out_behind = true;
    *out_length = length;
    if (!sx_tfrecord_data_ok(reader->record.data, (size_t)length)) {
        return sx_tfrecord_data_error(reader->name, reader->number, reader->offset);
    }
    *out_record = (sx_bytes){reader->record.data, (size_t)length};
    *out_more = true;
    return SX_OK;
}

static sx_status next_compressed(sx_tfrecord_reader *reader, sx_bytes *out_record, bool *out_more)
{
    for (;;) {
        bool behind = false, more = false;
        uint64_t length = 0;
        sx_status status = read_compressed(reader, out_record, &more, &behind, &length);
        uint64_t whole = SX_TFRECORD_HEADER + length + SX_TFRECORD_FOOTER;
        if (status == SX_OK) {
            reader->ended = !more;
            reader->offset += more ? whole : 0;
            reader->number += more;
            *out_more = more;
            return SX_OK;
        }
        if (!reader->options.skip_corrupt || sx_status_code(status) != SX_DATA_LOSS) {
            reader->failed = true;
            return status;
        }
        sx_status_free(status);
        count_damage(reader, behind ? whole : 0);
        reader->offset += behind ? whole : 0;
        if (!behind) {
            reader->ended = true;
            *out_more = false;
            return SX_OK;
        }
    }
}

sx_status sx_tfrecord_next(sx_tfrecord_reader *reader, sx_bytes *out_record, bool *out_more)
{
    if (reader->failed) {
        return sx_error(SX_FAILED_PRECONDITION, "%s: an earlier read failed", reader->name);
    }
    if (reader->ended) {
        *out_more = false;
        return SX_OK;
    }
    return reader->inflate != NULL ? next_compressed(reader, out_record, out_more)
                                   : next_plain(reader, out_record, out_more);
}
