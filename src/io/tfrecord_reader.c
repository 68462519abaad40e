#include "base/byte_order.h"
#include "io/tfrecord.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/tfrecord_frame.h"

struct sx_tfrecord_reader {
    char *name;
    sx_file *file;    /* NULL if the bytes are the caller's */
    sx_window window; /* over the contents, possibly compressed */
    sx_tfrecord_options options;
    uint64_t number;    /* of the next record */
    uint64_t offset;    /* of the next record, in the uncompressed stream */
    bool ended, failed; /* failed: a compressed stream that cannot go on */
    sx_tfrecord_damage damage;
    sx_inflate *inflate; /* NULL when plain */
    sx_buf record;       /* compressed files: the current record and its footer */
};

/* ---- Open ---- */

static sx_status start(sx_tfrecord_reader *reader)
{
    sx_tfrecord_options *o = &reader->options;
    if (o->max_record_bytes == 0) {
        o->max_record_bytes = SX_TFRECORD_DEFAULT_MAX;
    }
    if (o->codec == SX_CODEC_AUTO) {
        SX_TRY(sx_tfrecord_detect(&reader->window, &o->codec));
    }
    sx_buf_init(&reader->record, (size_t)o->max_record_bytes + SX_TFRECORD_FOOTER);
    return o->codec == SX_CODEC_NONE ? SX_OK
                                     : sx_inflate_create_over(o->codec, &reader->window, UINT64_MAX,
                                                              reader->name, &reader->inflate);
}

/* `file` is the reader's from here on; NULL: over `bytes`. */
static sx_status open_over(sx_file *file, sx_bytes bytes, const char *name,
                           const sx_tfrecord_options *options, sx_tfrecord_reader **out_reader)
{
    sx_tfrecord_reader *reader = sx_alloc(1, sizeof *reader);
    char *copy = sx_strdup(name);
    if (reader == NULL || copy == NULL) {
        sx_free(reader);
        sx_free(copy);
        sx_file_close(file);
        return sx_no_memory("reading %s", name);
    }
    reader->name = copy;
    reader->file = file;
    if (file != NULL) {
        sx_window_init(&reader->window, file);
    } else {
        sx_window_init_bytes(&reader->window, bytes);
    }
    reader->options = options != NULL ? *options : (sx_tfrecord_options){0};
    sx_status status = start(reader);
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
    sx_file *file;
    SX_TRY(sx_file_open(path, &file));
    return open_over(file, (sx_bytes){0}, path, options, out_reader);
}

sx_status sx_tfrecord_reader_over(sx_bytes bytes, const char *name,
                                  const sx_tfrecord_options *options,
                                  sx_tfrecord_reader **out_reader)
{
    return open_over(NULL, bytes, name, options, out_reader);
}

void sx_tfrecord_reader_destroy(sx_tfrecord_reader *reader)
{
    if (reader != NULL) {
        sx_inflate_destroy(reader->inflate);
        sx_buf_deinit(&reader->record);
        sx_window_deinit(&reader->window);
        sx_file_close(reader->file);
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

/* ---- Plain ---- */

/* Skips damage at the reader's offset: a record with damaged data, or everything up to the next
 * valid record. */
static sx_status skip_plain(sx_tfrecord_reader *reader, sx_tfrecord_place place, uint64_t length)
{
    uint64_t next = reader->offset + SX_TFRECORD_HEADER + length + SX_TFRECORD_FOOTER;
    if (place != SX_PLACE_RECORD && place != SX_PLACE_TOO_LONG) {
        SX_TRY(sx_tfrecord_resync(&reader->window, reader->offset + 1,
                                  reader->options.max_record_bytes, &next));
    }
    count_damage(reader, next - reader->offset);
    reader->offset = next;
    return SX_OK;
}

static sx_status next_plain(sx_tfrecord_reader *reader, sx_bytes *out_record, bool *out_more)
{
    uint64_t limit = reader->options.max_record_bytes;
    for (;;) {
        uint64_t length = 0, offset = reader->offset;
        sx_tfrecord_place place;
        SX_TRY(sx_tfrecord_look(&reader->window, offset, limit, &place, &length));
        if (place == SX_PLACE_END) {
            reader->ended = true;
            *out_more = false;
            return SX_OK;
        }
        const void *data = NULL;
        if (place == SX_PLACE_RECORD) {
            SX_TRY(sx_window_look(&reader->window, offset + SX_TFRECORD_HEADER,
                                  (size_t)length + SX_TFRECORD_FOOTER, &data));
        }
        if (data != NULL && sx_tfrecord_data_ok(data, (size_t)length)) {
            *out_record = (sx_bytes){data, (size_t)length};
            *out_more = true;
            reader->offset += SX_TFRECORD_HEADER + length + SX_TFRECORD_FOOTER;
            reader->number++;
            return SX_OK;
        }
        if (!reader->options.skip_corrupt) {
            return place == SX_PLACE_RECORD
                       ? sx_tfrecord_data_error(reader->name, reader->number, offset)
                       : sx_tfrecord_place_error(place, reader->name, reader->number, offset,
                                                 length, limit);
        }
        SX_TRY(skip_plain(reader, place, length));
    }
}

/* ---- Compressed ---- */

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
    uint64_t length = place == SX_PLACE_RECORD ? sx_load_le64(header) : 0;
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
