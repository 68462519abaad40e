#include "io/tfrecord.h"

#include "base/checked.h"
#include "base/memory.h"
#include "io/path.h"

/* ---- One stream ---- */

struct sx_tfrecord_writer {
    sx_write_fn *write; /* the sink, or the compressor before it */
    void *user;
    sx_deflate *deflate; /* NULL when plain */
};

sx_status sx_tfrecord_writer_create(sx_codec codec, sx_write_fn *sink, void *user,
                                    sx_tfrecord_writer **out_writer)
{
    sx_tfrecord_writer *writer = sx_alloc(1, sizeof *writer);
    if (writer == NULL) {
        return sx_no_memory("for a record writer");
    }
    writer->write = sink;
    writer->user = user;
    if (codec == SX_CODEC_GZIP || codec == SX_CODEC_ZLIB) {
        sx_status status = sx_deflate_create(codec, -1, sink, user, &writer->deflate);
        if (status != SX_OK) {
            sx_free(writer);
            return status;
        }
        writer->write = sx_deflate_write;
        writer->user = writer->deflate;
    }
    *out_writer = writer;
    return SX_OK;
}

void sx_tfrecord_writer_destroy(sx_tfrecord_writer *writer)
{
    if (writer != NULL) {
        sx_deflate_destroy(writer->deflate);
        sx_free(writer);
    }
}

sx_status sx_tfrecord_write(sx_tfrecord_writer *writer, sx_bytes record)
{
    uint8_t header[SX_TFRECORD_HEADER], footer[SX_TFRECORD_FOOTER];
    sx_tfrecord_frame(record, header, footer);
    SX_TRY(writer->write(writer->user, header, sizeof header));
    SX_TRY(writer->write(writer->user, record.data, record.size));
    return writer->write(writer->user, footer, sizeof footer);
}

sx_status sx_tfrecord_writer_finish(sx_tfrecord_writer *writer)
{
    return writer->deflate == NULL ? SX_OK : sx_deflate_finish(writer->deflate);
}

/* ---- Shards ---- */

struct sx_tfrecord_shards {
    sx_commit *commit;
    sx_tfrecord_writer **writers; /* [count] */
    int count;
};

sx_status sx_tfrecord_shard_name(const char *prefix, int shard, int count, char **out_path)
{
    return sx_path_format(out_path, "%s-%05d-of-%05d", prefix, shard, count);
}

static sx_status make_parent(const char *prefix)
{
    char *dir;
    SX_TRY(sx_path_dirname(prefix, &dir));
    sx_status status = sx_dir_create(dir);
    sx_free(dir);
    return status;
}

static sx_status open_shard(sx_tfrecord_shards *shards, const char *prefix, int shard,
                            sx_codec codec)
{
    char *path;
    sx_commit_file *file = NULL;
    SX_TRY(sx_tfrecord_shard_name(prefix, shard, shards->count, &path));
    sx_status status = sx_commit_add(shards->commit, path, &file);
    sx_free(path);
    SX_TRY(status);
    return sx_tfrecord_writer_create(codec, sx_commit_write, file, &shards->writers[shard]);
}

sx_status sx_tfrecord_shards_create(const char *prefix, int count, sx_codec codec,
                                    sx_tfrecord_shards **out_shards)
{
    if (count < 1 || count > SX_MAX_SHARDS) {
        return sx_error(SX_INVALID_ARGUMENT, "%d shards for %s: expected 1 to %d", count, prefix,
                        SX_MAX_SHARDS);
    }
    SX_TRY(make_parent(prefix));
    sx_tfrecord_shards *shards = sx_alloc(1, sizeof *shards);
    if (shards == NULL) {
        return sx_no_memory("writing %s", prefix);
    }
    shards->count = count;
    shards->writers = sx_alloc((size_t)count, sizeof(sx_tfrecord_writer *));
    sx_status status = shards->writers != NULL ? sx_commit_create(&shards->commit)
                                               : sx_no_memory("writing %s", prefix);
    for (int i = 0; i < count && status == SX_OK; i++) {
        status = open_shard(shards, prefix, i, codec);
    }
    if (status != SX_OK) {
        sx_tfrecord_shards_destroy(shards);
        return status;
    }
    *out_shards = shards;
    return SX_OK;
}

sx_status sx_tfrecord_shards_write(sx_tfrecord_shards *shards, int shard, sx_bytes record)
{
    if (shard < 0 || shard >= shards->count) {
        return sx_error(SX_INVALID_ARGUMENT, "shard %d of %d", shard, shards->count);
    }
    return sx_tfrecord_write(shards->writers[shard], record);
}

sx_status sx_tfrecord_shards_finish(sx_tfrecord_shards *shards)
{
    for (int i = 0; i < shards->count; i++) {
        SX_TRY(sx_tfrecord_writer_finish(shards->writers[i]));
    }
    return sx_commit_finish(shards->commit);
}

void sx_tfrecord_shards_destroy(sx_tfrecord_shards *shards)
{
    if (shards == NULL) {
        return;
    }
    for (int i = 0; shards->writers != NULL && i < shards->count; i++) {
        sx_tfrecord_writer_destroy(shards->writers[i]);
    }
    sx_commit_destroy(shards->commit);
    sx_free(shards->writers);
    sx_free(shards);
}
