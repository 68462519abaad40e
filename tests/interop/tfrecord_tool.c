/* What tests/interop/test_tfrecord.py asks of src/io and src/proto/example.
 *
 *   tfrecord_tool write CODEC IN OUT     records of IN to the TFRecord file OUT
 *   tfrecord_tool read CODEC IN OUT      the TFRecord file IN to records; CODEC auto looks itself
 *   tfrecord_tool index IN OUT           the same by number, through the index
 *   tfrecord_tool examples IN OUT        a TFRecord file of Examples, each parsed and written anew
 *   tfrecord_tool npy IN OUT             an .npy file, read and written anew
 *   tfrecord_tool inflate IN OUT         a gzip or zlib file
 *
 * "Records" are a plain file of { uint32 LE size, bytes }. Exit code 1 and the message on stderr
 * for an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/tfrecord.h"
#include "proto/example.h"

enum { MAX_BYTES = 1 << 30 };

static sx_codec codec_of(const char *name)
{
    sx_codec codec = SX_CODEC_AUTO;
    sx_codec_parse(name, &codec);
    return codec;
}

static sx_status write_records(const char *codec, const char *in, const char *out)
{
    char *data = NULL;
    size_t size = 0;
    sx_buf buf;
    sx_tfrecord_writer *writer = NULL;
    sx_buf_init(&buf, 0);
    SX_TRY(sx_file_read(in, MAX_BYTES, &data, &size));
    SX_TRY(sx_tfrecord_writer_create(codec_of(codec), sx_write_to_buf, &buf, &writer));
    for (size_t at = 0; at < size;) {
        uint32_t length;
        memcpy(&length, data + at, sizeof length);
        SX_TRY(sx_tfrecord_write(writer, (sx_bytes){data + at + 4, length}));
        at += 4 + length;
    }
    SX_TRY(sx_tfrecord_writer_finish(writer));
    SX_TRY(sx_commit_bytes(out, buf.data, buf.size));
    sx_tfrecord_writer_destroy(writer);
    sx_buf_deinit(&buf);
    sx_free(data);
    return SX_OK;
}

static void put_record(sx_buf *out, sx_bytes record)
{
    uint32_t size = (uint32_t)record.size;
    sx_buf_append(out, &size, sizeof size);
    sx_buf_append(out, record.data, record.size);
}

static sx_status read_records(const char *codec, const char *in, const char *out)
{
    sx_tfrecord_options options = {.codec = codec_of(codec)};
    sx_tfrecord_reader *reader = NULL;
    sx_buf buf;
    sx_buf_init(&buf, 0);
    SX_TRY(sx_tfrecord_reader_open(in, &options, &reader));
    for (bool more = true; more;) {
        sx_bytes record;
        SX_TRY(sx_tfrecord_next(reader, &record, &more));
        if (more) {
            put_record(&buf, record);
        }
    }
    SX_TRY(sx_commit_bytes(out, sx_buf_text(&buf), buf.size));
    sx_tfrecord_reader_destroy(reader);
    sx_buf_deinit(&buf);
    return SX_OK;
}

static sx_status read_by_number(const char *in, const char *out)
{
    sx_tfrecord_file *file = NULL;
    sx_buf buf;
    sx_buf_init(&buf, 0);
    SX_TRY(sx_tfrecord_file_open(in, NULL, &file));
    for (uint64_t i = 0; i < sx_tfrecord_file_count(file); i++) {
        sx_bytes record;
        uint64_t count;
        void *frame = sx_alloc(sx_tfrecord_file_run(file, i, 1, 0, &count), 1);
        SX_TRY(sx_tfrecord_file_read(file, i, 1, frame, &record, &count));
        put_record(&buf, record);
        sx_free(frame);
    }
    SX_TRY(sx_commit_bytes(out, sx_buf_text(&buf), buf.size));
    sx_tfrecord_file_close(file);
    sx_buf_deinit(&buf);
    return SX_OK;
}

/* Adds a parsed feature to a writer, through the values. */
static void copy_feature(sx_example_writer *writer, const sx_example_feature *feature)
{
    size_t n = feature->count;
    void *values = sx_alloc(n + 1, sizeof(sx_bytes));
    char *name = sx_alloc(feature->name.size + 1, 1);
    memcpy(name, feature->name.data, feature->name.size);
    switch (feature->kind) {
    case SX_FEATURE_BYTES:
        sx_example_add_bytes(writer, name, values, sx_feature_bytes(feature, values, n));
        break;
    case SX_FEATURE_FLOATS:
        sx_example_add_floats(writer, name, values, sx_feature_floats(feature, values, n));
        break;
    case SX_FEATURE_INTS:
        sx_example_add_ints(writer, name, values, sx_feature_ints(feature, values, n));
        break;
    case SX_FEATURE_EMPTY:
        break;
    }
    sx_free(name);
    sx_free(values);
}

static sx_status rewrite_examples(const char *in, const char *out)
{
    sx_tfrecord_reader *reader = NULL;
    sx_tfrecord_writer *writer = NULL;
    sx_example example;
    sx_example_writer copy;
    sx_buf file, record;
    sx_buf_init(&file, 0);
    sx_buf_init(&record, 0);
    sx_example_init(&example);
    sx_example_writer_init(&copy);
    SX_TRY(sx_tfrecord_reader_open(in, NULL, &reader));
    SX_TRY(sx_tfrecord_writer_create(SX_CODEC_NONE, sx_write_to_buf, &file, &writer));
    for (bool more = true; more;) {
        sx_bytes wire;
        SX_TRY(sx_tfrecord_next(reader, &wire, &more));
        if (more) {
            SX_TRY(sx_example_parse(&example, wire));
            for (size_t i = 0; i < example.count; i++) {
                copy_feature(&copy, &example.features[i]);
            }
            sx_buf_reset(&record);
            SX_TRY(sx_example_finish(&copy, &record));
            SX_TRY(sx_tfrecord_write(writer, (sx_bytes){record.data, record.size}));
        }
    }
    SX_TRY(sx_commit_bytes(out, sx_buf_text(&file), file.size));
    sx_tfrecord_writer_destroy(writer);
    sx_tfrecord_reader_destroy(reader);
    sx_example_writer_deinit(&copy);
    sx_example_deinit(&example);
    sx_buf_deinit(&record);
    sx_buf_deinit(&file);
    return SX_OK;
}

static sx_status rewrite_npy(const char *in, const char *out)
{
    sx_tensor tensor = {0};
    SX_TRY(sx_npy_read(in, 0, &tensor));
    sx_status status = sx_npy_write(out, &tensor);
    sx_free(tensor.data);
    return status;
}

static sx_status inflate_file(const char *in, const char *out)
{
    sx_bytes packed = {0};
    char *data = NULL;
    sx_buf buf;
    sx_buf_init(&buf, 0);
    SX_TRY(sx_file_read(in, MAX_BYTES, &data, &packed.size));
    packed.data = data;
    sx_status status = sx_inflate_all(sx_codec_guess(packed), packed, MAX_BYTES, in, &buf);
    if (status == SX_OK) {
        status = sx_commit_bytes(out, sx_buf_text(&buf), buf.size);
    }
    sx_buf_deinit(&buf);
    sx_free(data);
    return status;
}

static sx_status run(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (argc == 5 && strcmp(what, "write") == 0) {
        return write_records(argv[2], argv[3], argv[4]);
    }
    if (argc == 5 && strcmp(what, "read") == 0) {
        return read_records(argv[2], argv[3], argv[4]);
    }
    static const struct {
        const char *name;
        sx_status (*run)(const char *in, const char *out);
    } commands[] = {{"index", read_by_number},
                    {"examples", rewrite_examples},
                    {"npy", rewrite_npy},
                    {"inflate", inflate_file}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (argc == 4 && strcmp(what, commands[i].name) == 0) {
            return commands[i].run(argv[2], argv[3]);
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "see the comment of tests/interop/tfrecord_tool.c");
}

int main(int argc, char **argv)
{
    sx_status status = run(argc, argv);
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", sx_code_name(sx_status_code(status)),
                sx_status_message(status));
        sx_status_free(status);
        return 1;
    }
    return 0;
}
