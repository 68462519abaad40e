#include "data/set_writer.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/path.h"
#include "io/tfrecord.h"
#include "io/window.h"

static const int64_t bytes_per_shard = (int64_t)128 << 20;

struct sx_set_writer {
    char *prefix;
    sx_tfrecord_shards *files;
    int shards;
    int64_t total, written;
    int64_t *records; /* [shards] */
};

int sx_default_shards(int64_t bytes)
{
    return (int)SX_MIN(bytes / bytes_per_shard + 1, (int64_t)SX_MAX_SHARDS);
}

sx_status sx_set_writer_open(const char *prefix, int shards, int64_t total,
                             sx_set_writer **out_writer)
{
    sx_set_writer *writer = sx_alloc(1, sizeof(*writer));
    if (writer == NULL) {
        return sx_no_memory("writing %s", prefix);
    }
    writer->shards = shards;
    writer->total = total;
    sx_status status = sx_tfrecord_shards_create(prefix, shards, SX_CODEC_NONE, &writer->files);
    if (status == SX_OK) {
        writer->prefix = sx_strdup(prefix);
        writer->records = sx_alloc((size_t)shards, sizeof(*writer->records));
        if (writer->prefix == NULL || writer->records == NULL) {
            status = sx_no_memory("writing %s", prefix);
        }
    }
    if (status != SX_OK) {
        sx_set_writer_close(writer);
        return status;
    }
    *out_writer = writer;
    return SX_OK;
}

void sx_set_writer_close(sx_set_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    sx_tfrecord_shards_destroy(writer->files);
    sx_free(writer->records);
    sx_free(writer->prefix);
    sx_free(writer);
}

sx_status sx_set_writer_write(sx_set_writer *writer, sx_bytes record)
{
    int shard = (int)(writer->written * writer->shards / writer->total);
    SX_TRY(sx_tfrecord_shards_write(writer->files, shard, record));
    writer->records[shard]++;
    writer->written++;
    return SX_OK;
}

/* Size and checksum of a file that was just committed. */
static sx_status measure(const char *path, sx_set_file *out_file)
{
    uint64_t size;
    SX_TRY(sx_file_crc32c(path, &size, &out_file->crc32c));
    out_file->bytes = (int64_t)size;
    return SX_OK;
}

static sx_status describe_files(const sx_set_writer *writer, sx_arena *arena, sx_set_info *info,
                                int64_t *out_bytes)
{
    sx_set_file *files = sx_arena_array(arena, writer->shards, sx_set_file);
    *out_bytes = 0;
    if (files == NULL) {
        return sx_no_memory("writing %s", writer->prefix);
    }
    for (int i = 0; i < writer->shards; i++) {
        char *path = NULL;
        SX_TRY(sx_tfrecord_shard_name(writer->prefix, i, writer->shards, &path));
        sx_status status = measure(path, &files[i]);
        files[i].name = sx_arena_strdup(arena, sx_path_basename(path));
        files[i].records = writer->records[i];
        sx_free(path);
        SX_TRY(status);
        if (files[i].name == NULL) {
            return sx_no_memory("writing %s", writer->prefix);
        }
        *out_bytes += files[i].bytes;
    }
    info->files = files;
    info->file_count = writer->shards;
    return SX_OK;
}

sx_status sx_set_writer_finish(sx_set_writer *writer, const sx_set_info *info, sx_buf *text)
{
    sx_arena arena;
    sx_set_info full = *info;
    int64_t bytes = 0;
    SX_TRY(sx_tfrecord_shards_finish(writer->files));
    sx_arena_init(&arena, 0);
    full.set = sx_path_basename(writer->prefix);
    full.count = writer->written;
    sx_status status = describe_files(writer, &arena, &full, &bytes);
    if (status == SX_OK) {
        status = sx_set_info_save(writer->prefix, &full);
    }
    sx_arena_deinit(&arena);
    sx_buf_printf(text, "%s: %lld records in %d file%s, %.1f MiB\n", writer->prefix,
                  (long long)writer->written, writer->shards, writer->shards == 1 ? "" : "s",
                  (double)bytes / (1 << 20));
    return status;
}
