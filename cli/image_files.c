#include "image_files.h"

#include "base/memory.h"
#include "command.h"
#include "data/dataset.h"
#include "image/format.h"
#include "io/file.h"

static const size_t max_file_bytes = (size_t)1 << 30;

static sx_status read_one(const char *path, sx_bytes *out)
{
    char *data = NULL;
    size_t size = 0;
    sx_image_info info;
    SX_TRY(sx_file_read_stream(path, max_file_bytes, sx_stop_flag(), &data, &size));
    sx_bytes bytes = {data, size};
    sx_status status = sx_image_probe(bytes, &info);
    if (status == SX_OK && info.format != SX_FORMAT_JPEG && info.format != SX_FORMAT_PNG) {
        status = sx_error(SX_INVALID_ARGUMENT, "unsupported format %s; expected JPEG or PNG",
                          sx_image_format_name(info.format));
    }
    if (status != SX_OK) {
        sx_free(data);
        return sx_status_annotate(status, __FILE__, __LINE__, "%s", path);
    }
    *out = bytes;
    return SX_OK;
}

sx_status sx_image_files_read(const sx_words *words, sx_image_files *out_files)
{
    sx_image_files files = {.paths = (const char *const *)words->items};
    files.bytes = sx_alloc((size_t)words->count + 1, sizeof(sx_bytes));
    if (files.bytes == NULL) {
        return sx_no_memory("reading images");
    }
    for (; files.count < words->count; files.count++) {
        sx_status status = read_one(words->items[files.count], &files.bytes[files.count]);
        if (status != SX_OK) {
            sx_image_files_free(&files);
            return status;
        }
    }
    *out_files = files;
    return SX_OK;
}

/* ---- As a data set ---- */

typedef struct source {
    sx_source head;
    const sx_image_files *files;
} source;

static sx_status read_file(sx_source *head, int64_t record, sx_scratch *scratch, sx_tensor *out)
{
    (void)scratch;
    out[0].data = &((source *)head)->files->bytes[record];
    return SX_OK;
}

static void name_file(const sx_source *head, int64_t record, sx_buf *out)
{
    sx_buf_puts(out, ((const source *)head)->files->paths[record]);
}

static bool put_file(const sx_source *head, int64_t record, sx_buf *out)
{
    name_file(head, record, out);
    return true;
}

static void destroy_source(sx_source *head)
{
    sx_free(head);
}

static const sx_source_def source_def = {
    .kind = "image-files",
    .stable = true,
    .read = read_file,
    .name_record = name_file,
    .file = put_file,
    .destroy = destroy_source,
};

sx_status sx_image_files_dataset(const sx_image_files *files, sx_dataset **out_dataset)
{
    source *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("reading images");
    }
    self->files = files;
    self->head = (sx_source){
        .def = &source_def,
        .schema = {1, {{"image", sx_scalar_type(SX_STRING)}}},
        .count = files->count,
    };
    return sx_dataset_from_source(&self->head, out_dataset);
}

void sx_image_files_free(sx_image_files *files)
{
    for (int i = 0; i < files->count; i++) {
        sx_free((void *)(uintptr_t)files->bytes[i].data);
    }
    sx_free(files->bytes);
    *files = (sx_image_files){0};
}
