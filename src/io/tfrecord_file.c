/* Records by number. The index, in memory and in the sidecar `<file>.index` (little-endian):
 *
 *   8  "SXTFIDX1"
 *   8  size of the data file       8  its modification time, ns since the epoch
 *   8  count                       8  damage: places      8  damage: bytes
 *   count x { 8 offset of the header, 8 length of the data }
 *   4  CRC32C (unmasked) of all above
 *
 * The index is a cache: if the size or time differ, or it is corrupt, it is silently rebuilt. */
#include "base/byte_order.h"
#include "io/tfrecord.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/sidecar.h"
#include "io/tfrecord_frame.h"

enum { INDEX_HEADER = 48, INDEX_ENTRY = 16, INDEX_FOOTER = 4 };

static const char index_magic[8] = {'S', 'X', 'T', 'F', 'I', 'D', 'X', '1'};
static const char index_suffix[] = ".index";

struct entry {
    uint64_t offset, length;
};

struct sx_tfrecord_file {
    char *path;
    sx_file *file;
    struct entry *entries; /* [count], ascending, each inside the file */
    uint64_t count;
    size_t capacity;
    sx_tfrecord_damage damage;
    sx_tfrecord_options options;
};

/* ---- Building ---- */

static sx_status add_entry(sx_tfrecord_file *file, struct entry entry)
{
    if (file->count == file->capacity) {
        size_t capacity = file->capacity == 0 ? 256 : 2 * file->capacity;
        struct entry *entries = sx_realloc(file->entries, capacity, sizeof *entries);
        if (entries == NULL) {
            return sx_no_memory("indexing %s", file->path);
        }
        file->entries = entries;
        file->capacity = capacity;
    }
    file->entries[file->count++] = entry;
    return SX_OK;
}

/* Reads every header but no data, so damaged data is not detected here. */
static sx_status build_index(sx_tfrecord_file *file, sx_window *window)
{
    uint64_t limit = file->options.max_record_bytes;
    for (uint64_t offset = 0;;) {
        uint64_t length = 0;
        sx_tfrecord_place place;
        SX_TRY(sx_tfrecord_look(window, offset, limit, &place, &length));
        uint64_t next = offset + SX_TFRECORD_HEADER + length + SX_TFRECORD_FOOTER;
        if (place == SX_PLACE_END) {
            return SX_OK;
        }
        if (place == SX_PLACE_RECORD) {
            SX_TRY(add_entry(file, (struct entry){offset, length}));
        } else if (!file->options.skip_corrupt) {
            return sx_tfrecord_place_error(place, file->path, file->count, offset, length, limit);
        } else {
            if (place != SX_PLACE_TOO_LONG) {
                SX_TRY(sx_tfrecord_resync(window, offset + 1, limit, &next));
            }
            file->damage.places++;
            file->damage.bytes += next - offset;
        }
        offset = next;
    }
}

/* ---- Saving and loading ---- */

static sx_status save_index(const sx_tfrecord_file *file)
{
    sx_buf buf;
    sx_buf_init(&buf, SIZE_MAX / 4);
    const uint64_t words[] = {sx_file_size(file->file), sx_file_mtime_ns(file->file), file->count,
                              file->damage.places, file->damage.bytes};
    sx_buf_append(&buf, index_magic, sizeof index_magic);
    for (size_t i = 0; i < SX_COUNT(words); i++) {
        uint8_t word[8];
        sx_store_le64(word, words[i]);
        sx_buf_append(&buf, word, sizeof word);
    }
    uint8_t *at = sx_buf_extend(&buf, (size_t)file->count * INDEX_ENTRY);
    for (uint64_t i = 0; at != NULL && i < file->count; i++, at += INDEX_ENTRY) {
        sx_store_le64(at, file->entries[i].offset);
        sx_store_le64(at + 8, file->entries[i].length);
    }
    uint8_t crc[INDEX_FOOTER];
    sx_store_le32(crc, sx_crc32c(0, buf.data, buf.size));
    sx_buf_append(&buf, crc, sizeof crc);
    char *path = NULL;
    sx_status status = sx_buf_status(&buf);
    if (status == SX_OK) {
        status = sx_sidecar_place(file->path, index_suffix, &path);
    }
    if (status == SX_OK) {
        status = sx_commit_bytes(path, buf.data, buf.size);
    }
    sx_free(path);
    sx_buf_deinit(&buf);
    return status;
}

/* Whether these bytes are a complete, valid index of this file. */
static bool index_fits(const sx_tfrecord_file *file, const uint8_t *index, size_t size)
{
    uint64_t file_size = sx_file_size(file->file);
    if (size < INDEX_HEADER + INDEX_FOOTER || memcmp(index, index_magic, sizeof index_magic) != 0 ||
        sx_load_le64(index + 8) != file_size ||
        sx_load_le64(index + 16) != sx_file_mtime_ns(file->file)) {
        return false;
    }
    size_t body = size - INDEX_HEADER - INDEX_FOOTER;
    if (body % INDEX_ENTRY != 0 || sx_load_le64(index + 24) != body / INDEX_ENTRY ||
        sx_load_le32(index + size - INDEX_FOOTER) != sx_crc32c(0, index, size - INDEX_FOOTER)) {
        return false;
    }
    uint64_t end = 0;
    for (size_t at = INDEX_HEADER; at < INDEX_HEADER + body; at += INDEX_ENTRY) {
        uint64_t offset = sx_load_le64(index + at), length = sx_load_le64(index + at + 8);
        const uint64_t frame = SX_TFRECORD_HEADER + SX_TFRECORD_FOOTER;
        if (offset < end || offset > file_size || file_size - offset < frame ||
            length > file_size - offset - frame || length > file->options.max_record_bytes) {
            return false;
        }
        end = offset + frame + length;
    }
    return true;
}

/* Loads the index if there is a valid one. An index that records damage is only used with
 * skip_corrupt; otherwise the index is rebuilt, to report where the damage is. */
static bool load_index(sx_tfrecord_file *file)
{
    char *path = NULL, *index = NULL;
    size_t size = 0;
    sx_status status = sx_sidecar_find(file->path, index_suffix, &path);
    if (status == SX_OK) {
        uint64_t most = INDEX_HEADER + sx_file_size(file->file) + INDEX_FOOTER;
        status = sx_file_read(path, (size_t)most, &index, &size);
    }
    sx_free(path);
    bool fits = status == SX_OK && index_fits(file, (const uint8_t *)index, size);
    const uint8_t *at = (const uint8_t *)index;
    if (fits) {
        file->damage = (sx_tfrecord_damage){sx_load_le64(at + 32), sx_load_le64(at + 40)};
        fits = file->options.skip_corrupt || file->damage.places == 0;
    }
    uint64_t count = fits ? sx_load_le64(at + 24) : 0;
    for (uint64_t i = 0; i < count && fits; i++) {
        const uint8_t *entry = at + INDEX_HEADER + i * INDEX_ENTRY;
        sx_status added =
            add_entry(file, (struct entry){sx_load_le64(entry), sx_load_le64(entry + 8)});
        fits = added == SX_OK;
        sx_status_free(added);
    }
    if (!fits) {
        file->count = 0;
        file->damage = (sx_tfrecord_damage){0};
    }
    sx_status_free(status);
    sx_free(index);
    return fits;
}

/* ---- The file ---- */

static sx_status open_and_index(sx_tfrecord_file *file)
{
    sx_window window = {0};
    sx_codec codec = file->options.codec;
    SX_TRY(sx_file_open(file->path, &file->file));
    sx_window_init(&window, file->file);
    sx_status status = codec == SX_CODEC_AUTO ? sx_tfrecord_detect(&window, &codec) : SX_OK;
    if (status == SX_OK && codec != SX_CODEC_NONE) {
        status = sx_error(SX_FAILED_PRECONDITION,
                          "%s is %s-compressed: its records can only be read in order", file->path,
                          sx_codec_name(codec));
    }
    bool loaded = status == SX_OK && load_index(file);
    if (status == SX_OK && !loaded) {
        status = build_index(file, &window);
    }
    sx_window_deinit(&window);
    if (status != SX_OK || loaded) {
        return status;
    }
    sx_status saved = save_index(file);
    if (saved != SX_OK) {
        sx_log(SX_LOG_DEBUG, "no index saved for %s: %s", file->path, sx_status_message(saved));
        sx_status_free(saved);
    }
    return SX_OK;
}

sx_status sx_tfrecord_file_open(const char *path, const sx_tfrecord_options *options,
                                sx_tfrecord_file **out_file)
{
    sx_tfrecord_file *file = sx_alloc(1, sizeof *file);
    char *copy = sx_strdup(path);
    if (file == NULL || copy == NULL) {
        sx_free(file);
        sx_free(copy);
        return sx_no_memory("opening %s", path);
    }
    file->path = copy;
    file->options = options != NULL ? *options : (sx_tfrecord_options){0};
    if (file->options.max_record_bytes == 0) {
        file->options.max_record_bytes = SX_TFRECORD_DEFAULT_MAX;
    }
    sx_status status = open_and_index(file);
    if (status != SX_OK) {
        sx_tfrecord_file_close(file);
        return status;
    }
    *out_file = file;
    return SX_OK;
}

void sx_tfrecord_file_close(sx_tfrecord_file *file)
{
    if (file != NULL) {
        sx_file_close(file->file);
        sx_free(file->entries);
        sx_free(file->path);
        sx_free(file);
    }
}

uint64_t sx_tfrecord_file_count(const sx_tfrecord_file *file)
{
    return file->count;
}

sx_tfrecord_damage sx_tfrecord_file_damage(const sx_tfrecord_file *file)
{
    return file->damage;
}

static size_t frame_bytes(struct entry entry)
{
    return SX_TFRECORD_HEADER + (size_t)entry.length + SX_TFRECORD_FOOTER;
}

size_t sx_tfrecord_file_run(const sx_tfrecord_file *file, uint64_t first, uint64_t count,
                            size_t max_bytes, uint64_t *out_count)
{
    size_t bytes = 0;
    uint64_t n = 0;
    uint64_t most = first < file->count ? SX_MIN(count, file->count - first) : 0;
    for (const struct entry *entries = &file->entries[first]; n < most; n++) {
        size_t frame = frame_bytes(entries[n]);
        bool fits = bytes <= max_bytes && frame <= max_bytes - bytes;
        if (n > 0 && (!fits || entries[n].offset != entries[0].offset + bytes)) {
            break;
        }
        bytes += frame;
    }
    *out_count = n;
    return bytes;
}

sx_status sx_tfrecord_file_read(const sx_tfrecord_file *file, uint64_t first, uint64_t count,
                                void *frames, sx_bytes *out_records, uint64_t *out_count)
{
    size_t bytes = sx_tfrecord_file_run(file, first, count, SIZE_MAX, &count);
    if (bytes == 0) {
        return sx_error(SX_OUT_OF_RANGE,
                        "%s: no record %" PRIu64 ": the file has %" PRIu64
                        " records, counted from 0",
                        file->path, first, file->count);
    }
    const struct entry *entries = &file->entries[first];
    sx_status status = sx_file_read_at(file->file, entries[0].offset, frames, bytes);
    if (status != SX_OK && count > 1) { /* which of the records, the next call finds out */
        sx_status_free(status);
        count = 1;
        status = sx_file_read_at(file->file, entries[0].offset, frames, frame_bytes(entries[0]));
    }
    SX_TRY(status, "%s: record %" PRIu64, file->path, first);
    const uint8_t *frame = frames;
    for (uint64_t i = 0; i < count; i++) {
        size_t length = (size_t)entries[i].length;
        const uint8_t *data = frame + SX_TFRECORD_HEADER;
        if (sx_load_le64(frame) != length || !sx_tfrecord_data_ok(data, length)) {
            if (i == 0) {
                return sx_tfrecord_data_error(file->path, first, entries[0].offset);
            }
            count = i;
            break;
        }
        out_records[i] = (sx_bytes){data, length};
        frame += frame_bytes(entries[i]);
    }
    *out_count = count;
    return SX_OK;
}
