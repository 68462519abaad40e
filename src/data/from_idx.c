/* IDX pairs (MNIST) to record files. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/prepare.h"
#include "data/set_writer.h"
#include "data/sources.h"
#include "image/encode.h"
#include "io/tfrecord.h"
#include "proto/example.h"

enum { PROGRESS_EVERY = 1024 };

struct job {
    const sx_from_idx_args *args;
    sx_iterator *iterator;
    sx_type type; /* uint8 [H,W,C] */
    int64_t count;
    sx_set_writer *writer;
    sx_example_writer example;
    sx_buf record, png;
};

static void add_raw(struct job *job, const struct sx_batch_data *one, int64_t label)
{
    sx_bytes pixels = {one->components[0].data, (size_t)sx_type_bytes(&job->type)};
    sx_example_add_bytes(&job->example, "image_raw", &pixels, 1);
    sx_example_add_int(&job->example, "label", label);
    sx_example_add_int(&job->example, "height", job->type.dims[0]);
    sx_example_add_int(&job->example, "width", job->type.dims[1]);
    sx_example_add_int(&job->example, "depth", job->type.dims[2]);
}

static sx_status add_png(struct job *job, const struct sx_batch_data *one, int64_t label)
{
    char text[24];
    const int64_t *dims = job->type.dims;
    sx_image image =
        sx_image_view(one->components[0].data, (int)dims[0], (int)dims[1], (int)dims[2]);
    sx_buf_reset(&job->png);
    SX_TRY(sx_png_encode(&image, &job->png));
    sx_bytes encoded = {job->png.data, job->png.size};
    snprintf(text, sizeof(text), "%lld", (long long)(label - job->args->label_base));
    sx_example_add_bytes(&job->example, "image/encoded", &encoded, 1);
    sx_example_add_text(&job->example, "image/format", "PNG");
    sx_example_add_int(&job->example, "image/height", dims[0]);
    sx_example_add_int(&job->example, "image/width", dims[1]);
    sx_example_add_int(&job->example, "image/class/label", label);
    sx_example_add_text(&job->example, "image/class/text", text);
    return SX_OK;
}

static sx_status write_one(struct job *job, const struct sx_batch_data *one)
{
    int64_t label = *(const int64_t *)one->components[1].data;
    if (label < 0) {
        return sx_error(SX_OUT_OF_RANGE, "%s: label %lld of example %lld is negative",
                        job->args->labels, (long long)label, (long long)one->number);
    }
    label += job->args->label_base;
    if (job->args->png) {
        SX_TRY(add_png(job, one, label));
    } else {
        add_raw(job, one, label);
    }
    sx_buf_reset(&job->record);
    SX_TRY(sx_example_finish(&job->example, &job->record));
    return sx_set_writer_write(job->writer, (sx_bytes){job->record.data, job->record.size});
}

static sx_status write_all(struct job *job)
{
    const sx_from_idx_args *args = job->args;
    for (int64_t i = 0; i < job->count; i++) {
        const struct sx_batch_data *one;
        SX_TRY(sx_iterator_next(job->iterator, &one));
        SX_TRY(write_one(job, one));
        if (args->progress != NULL && (i % PROGRESS_EVERY == 0 || i + 1 == job->count) &&
            !args->progress(args->user, i + 1, job->count)) {
            return sx_error(SX_CANCELLED, "interrupted; nothing was written to %s", args->out);
        }
    }
    return SX_OK;
}

static sx_status check_pair(const struct job *job, const sx_dataset *data)
{
    const sx_schema *schema = sx_dataset_schema(data);
    char text[SX_TYPE_TEXT];
    if (sx_type_elems(&schema->components[0].type) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: images without pixels: %s", job->args->images,
                        sx_type_format(&schema->components[0].type, text, sizeof(text)));
    }
    if (schema->count != 2 || strcmp(schema->components[0].name, "image") != 0 ||
        schema->components[1].type.dtype != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s and %s: expected uint8 images [n,H,W] and integer labels [n]; rows of "
                        "the first are %s",
                        job->args->images, job->args->labels,
                        sx_type_format(&schema->components[0].type, text, sizeof(text)));
    }
    return SX_OK;
}

static sx_status run(struct job *job, sx_dataset *data, sx_buf *text)
{
    const sx_from_idx_args *args = job->args;
    int class_count;
    SX_TRY(check_pair(job, data));
    job->type = sx_dataset_schema(data)->components[0].type;
    job->count = sx_dataset_records(data);
    int shards = args->shards != 0 ? args->shards
                                   : sx_default_shards(job->count * sx_type_bytes(&job->type));
    if (shards < 1 || shards > SX_MAX_SHARDS) {
        return sx_error(SX_INVALID_ARGUMENT, "shards %d: expected 1 to %d", shards,
                        (int)SX_MAX_SHARDS);
    }
    SX_TRY(sx_iterator_create(data, &job->iterator, .workers = -1));
    SX_TRY(sx_set_writer_open(args->out, shards, job->count, &job->writer));
    SX_TRY(write_all(job));
    sx_set_info info = {.label_base = args->label_base,
                        .classes = sx_dataset_class_names(data, &class_count),
                        .image_key = args->png ? "image/encoded" : "image_raw",
                        .label_key = args->png ? "image/class/label" : "label",
                        .raw = !args->png};
    info.class_count = class_count;
    memcpy(info.shape, job->type.dims, sizeof(info.shape));
    return sx_set_writer_finish(job->writer, &info, text);
}

sx_status sx_from_idx(const sx_from_idx_args *args, sx_buf *text)
{
    static const sx_data_options options = {.struct_size = sizeof(options)};
    struct job job = {.args = args};
    sx_dataset *data = NULL;
    sx_buf found;
    sx_buf_init(&found, 0);
    sx_example_writer_init(&job.example);
    sx_buf_init(&job.record, 0);
    sx_buf_init(&job.png, 0);
    sx_status status = sx_source_idx(args->images, args->labels, &options, &found, &data);
    if (status == SX_OK) {
        status = run(&job, data, text);
    }
    sx_set_writer_close(job.writer);
    sx_iterator_destroy(job.iterator);
    sx_dataset_release(data);
    sx_buf_deinit(&job.png);
    sx_buf_deinit(&job.record);
    sx_example_writer_deinit(&job.example);
    sx_buf_deinit(&found);
    return status;
}
