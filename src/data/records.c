#include "data/records.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "io/tfrecord.h"

enum {
    RUN = 64,             /* records read at once to check them */
    READ_BYTES = 1 << 18, /* of one read; half of a small L2 cache, so that the data are still
                             cached for the checksum */
};

/* One file: either read by number (`file`) or decompressed (`data`, `offsets`). */
struct record_file {
    char *path;
    sx_tfrecord_file *file;
    sx_buf data;
    uint64_t *offsets; /* [in_file + 1]; record i is data[offsets[i] .. offsets[i + 1]) */
    size_t offset_capacity;
    int64_t in_file;      /* records in the file */
    uint64_t *good;       /* [count] numbers within the file; NULL = all of them */
    int64_t first, count; /* their numbers in the set */
};

struct sx_records {
    struct record_file *files; /* [file_count] */
    size_t file_count;
    int64_t count;
    int64_t memory_bytes, budget;
    sx_records_options options;
    sx_records_damage dropped;
};

/* ---- Compressed files ---- */

static sx_status add_offset(struct record_file *file)
{
    if ((size_t)file->in_file + 2 > file->offset_capacity) {
        size_t capacity = SX_MAX((size_t)1024, file->offset_capacity * 2);
        uint64_t *offsets = sx_realloc(file->offsets, capacity, sizeof(*offsets));
        if (offsets == NULL) {
            return sx_no_memory("reading %s", file->path);
        }
        file->offsets = offsets;
        file->offset_capacity = capacity;
    }
    file->offsets[++file->in_file] = file->data.size;
    return SX_OK;
}

static sx_status keep_record(struct sx_records *self, struct record_file *file, sx_bytes record)
{
    int64_t bytes = (int64_t)record.size + 8;
    if (bytes > self->budget - self->memory_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "%s: compressed record files are kept decompressed in memory, and this set "
                        "needs more than %lld MiB; decompress the files or raise the memory budget",
                        file->path, (long long)(self->budget >> 20));
    }
    self->memory_bytes += bytes;
    sx_buf_append(&file->data, record.data, record.size);
    SX_TRY(sx_buf_status(&file->data));
    return add_offset(file);
}

static sx_status read_compressed(struct sx_records *self, struct record_file *file, sx_codec codec)
{
    sx_tfrecord_options options = {.codec = codec, .skip_corrupt = self->options.skip_corrupt};
    sx_tfrecord_reader *reader = NULL;
    SX_TRY(sx_tfrecord_reader_open(file->path, &options, &reader));
    file->offsets = sx_alloc(1024, sizeof(*file->offsets));
    file->offset_capacity = 1024;
    sx_status status = file->offsets == NULL ? sx_no_memory("reading %s", file->path) : SX_OK;
    bool more = true;
    while (status == SX_OK && more) {
        sx_bytes record;
        status = sx_tfrecord_next(reader, &record, &more);
        if (status == SX_OK && more) {
            status = keep_record(self, file, record);
        }
    }
    self->dropped.places += (int64_t)sx_tfrecord_reader_damage(reader).places;
    sx_tfrecord_reader_destroy(reader);
    return status;
}

/* ---- Opening ---- */

/* Reads records [first, first + count) of the file, the first *out_count of them. */
static sx_status read_in_file(const struct record_file *file, uint64_t first, uint64_t count,
                              sx_scratch *scratch, sx_bytes *out_records, int64_t *out_count)
{
    if (file->file != NULL) {
        size_t bytes = sx_tfrecord_file_run(file->file, first, count, READ_BYTES, &count);
        void *frames = sx_scratch_alloc(scratch, bytes);
        if (frames == NULL) {
            return sx_no_memory("reading %zu bytes of %s", bytes, file->path);
        }
        SX_TRY(sx_tfrecord_file_read(file->file, first, count, frames, out_records, &count));
    } else {
        const char *data = sx_buf_text(&file->data);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t *at = &file->offsets[first + i];
            out_records[i] = (sx_bytes){data + at[0], (size_t)(at[1] - at[0])};
        }
    }
    *out_count = (int64_t)count;
    return SX_OK;
}

/* Records which records are good; leaves `good` NULL if all are. */
static sx_status find_good(struct sx_records *self, struct record_file *file)
{
    uint64_t *good = sx_alloc((size_t)SX_MAX(file->in_file, (int64_t)1), sizeof(*good));
    if (good == NULL) {
        return sx_no_memory("reading %s", file->path);
    }
    int64_t count = 0;
    sx_scratch scratch;
    sx_scratch_init(&scratch);
    for (int64_t i = 0, n = 1; i < file->in_file; i += n) {
        sx_bytes records[RUN];
        sx_scratch_reset(&scratch);
        sx_status status =
            read_in_file(file, (uint64_t)i, (uint64_t)SX_MIN(file->in_file - i, (int64_t)RUN),
                         &scratch, records, &n);
        n = status == SX_OK ? n : 1;
        for (int64_t k = 0; k < n; k++) {
            if (status == SX_OK && self->options.check != NULL) {
                status = self->options.check(records[k]);
            }
            if (status == SX_OK) {
                good[count++] = (uint64_t)(i + k);
            }
            sx_status_free(status);
            status = SX_OK;
        }
    }
    sx_scratch_deinit(&scratch);
    file->count = count;
    self->dropped.records += file->in_file - count;
    if (count == file->in_file) {
        sx_free(good);
    } else {
        file->good = good;
    }
    return SX_OK;
}

/* Whether skip_corrupt finds records in a file that is damaged. */
static bool skipping_helps(const struct record_file *file, sx_codec codec)
{
    const sx_tfrecord_options options = {.codec = codec, .skip_corrupt = true};
    sx_tfrecord_file *opened = NULL;
    sx_status status = sx_tfrecord_file_open(file->path, &options, &opened);
    bool helps = status == SX_OK && sx_tfrecord_file_count(opened) > 0;
    sx_status_free(status);
    sx_tfrecord_file_close(opened);
    return helps;
}

static sx_status open_file(struct sx_records *self, struct record_file *file)
{
    sx_codec codec = SX_CODEC_AUTO;
    if (self->options.compression != NULL && !sx_codec_parse(self->options.compression, &codec)) {
        return sx_error(SX_INVALID_ARGUMENT, "compression \"%s\": expected none, gzip or zlib",
                        self->options.compression);
    }
    sx_tfrecord_options options = {.codec = codec, .skip_corrupt = self->options.skip_corrupt};
    sx_status status = SX_OK;
    if (codec == SX_CODEC_AUTO || codec == SX_CODEC_NONE) {
        status = sx_tfrecord_file_open(file->path, &options, &file->file);
    }
    if (file->file != NULL) {
        file->in_file = (int64_t)sx_tfrecord_file_count(file->file);
        self->dropped.places += (int64_t)sx_tfrecord_file_damage(file->file).places;
    } else if (status == SX_OK || sx_status_code(status) == SX_FAILED_PRECONDITION) {
        sx_status_free(status);
        status = read_compressed(self, file, codec);
    } else if (sx_status_code(status) == SX_DATA_LOSS && !self->options.skip_corrupt &&
               skipping_helps(file, codec)) {
        status = sx_hint_skip_corrupt(status);
    }
    SX_TRY(status);
    file->first = self->count;
    file->count = file->in_file;
    if (self->options.skip_corrupt) {
        SX_TRY(find_good(self, file));
    }
    self->count += file->count;
    return SX_OK;
}

static sx_status open_files(struct sx_records *self, const char *const *paths, size_t count)
{
    self->files = sx_alloc(count, sizeof(*self->files));
    if (self->files == NULL) {
        return sx_no_memory("reading %s", paths[0]);
    }
    for (size_t i = 0; i < count; i++) {
        struct record_file *file = &self->files[self->file_count++];
        sx_buf_init(&file->data, (size_t)1 << 46);
        file->path = sx_strdup(paths[i]);
        if (file->path == NULL) {
            return sx_no_memory("reading %s", paths[i]);
        }
        SX_TRY(open_file(self, file));
    }
    return SX_OK;
}

sx_status sx_records_open(const char *const *paths, size_t count, const sx_records_options *options,
                          sx_records **out_records)
{
    sx_records *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("reading %s", paths[0]);
    }
    self->options = *options;
    self->budget = options->memory_budget > 0 ? options->memory_budget : sx_ram_bytes() / 2;
    sx_status status = open_files(self, paths, count);
    if (status != SX_OK) {
        sx_records_close(self);
        return status;
    }
    *out_records = self;
    return SX_OK;
}

void sx_records_close(sx_records *records)
{
    if (records == NULL) {
        return;
    }
    for (size_t i = 0; i < records->file_count; i++) {
        struct record_file *file = &records->files[i];
        sx_tfrecord_file_close(file->file);
        sx_buf_deinit(&file->data);
        sx_free(file->offsets);
        sx_free(file->good);
        sx_free(file->path);
    }
    sx_free(records->files);
    sx_free(records);
}

/* ---- Reading ---- */

int64_t sx_records_count(const sx_records *records)
{
    return records->count;
}

sx_records_damage sx_records_dropped(const sx_records *records)
{
    return records->dropped;
}

int64_t sx_records_memory_bytes(const sx_records *records)
{
    return records->memory_bytes;
}

/* The file that contains record `number`, and its number in that file. */
static const struct record_file *find_file(const sx_records *self, int64_t number,
                                           uint64_t *out_in_file)
{
    size_t low = 0, high = self->file_count - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (self->files[middle].first <= number) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    const struct record_file *file = &self->files[low];
    int64_t i = number - file->first;
    *out_in_file = file->good == NULL ? (uint64_t)i : file->good[i];
    return file;
}

sx_status sx_records_read(const sx_records *records, int64_t first, int64_t count,
                          sx_scratch *scratch, sx_bytes *out_records, int64_t *out_count)
{
    if (first < 0 || first >= records->count) {
        return sx_error(SX_OUT_OF_RANGE, "record %lld of %lld", (long long)first,
                        (long long)records->count);
    }
    uint64_t in_file;
    const struct record_file *file = find_file(records, first, &in_file);
    int64_t at = first - file->first, n = 1, most = SX_MIN(count, file->count - at);
    while (n < most && (file->good == NULL || file->good[at + n] == in_file + (uint64_t)n)) {
        n++;
    }
    return read_in_file(file, in_file, (uint64_t)n, scratch, out_records, out_count);
}

void sx_records_name(const sx_records *records, int64_t number, sx_buf *out)
{
    uint64_t in_file;
    const struct record_file *file = find_file(records, number, &in_file);
    sx_buf_printf(out, "%s: record %llu", file->path, (unsigned long long)in_file);
}
