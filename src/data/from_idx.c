/* Converts IDX pairs (MNIST) to record files. */
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

/* Adds the features of `--format raw`. */
static void add_raw(sx_example_writer *example, const sx_tensor *image, int64_t label)
{
    sx_bytes pixels = {image->data, (size_t)sx_type_bytes(&image->type)};
    sx_example_add_bytes(example, "image_raw", &pixels, 1);
    sx_example_add_int(example, "label", label);
    sx_example_add_int(example, "height", image->type.dims[0]);
    sx_example_add_int(example, "width", image->type.dims[1]);
    sx_example_add_int(example, "depth", image->type.dims[2]);
}

/* Adds those of `--format png`; the text of a class is its label counted from 0. */
static sx_status add_png(sx_example_writer *example, const sx_tensor *image, int64_t label,
                         int label_base, sx_buf *png)
{
    char text[24];
    const int64_t *dims = image->type.dims;
    sx_image view = sx_image_view(image->data, (int)dims[0], (int)dims[1], (int)dims[2]);
    sx_buf_reset(png);
    SX_TRY(sx_png_encode(&view, png));
    sx_bytes encoded = {png->data, png->size};
    snprintf(text, sizeof(text), "%lld", (long long)(label - label_base));
    sx_example_add_bytes(example, "image/encoded", &encoded, 1);
    sx_example_add_text(example, "image/format", "PNG");
    sx_example_add_int(example, "image/height", dims[0]);
    sx_example_add_int(example, "image/width", dims[1]);
    sx_example_add_int(example, "image/class/label", label);
    sx_example_add_text(example, "image/class/text", text);
    return SX_OK;
}

static sx_status check_pair(const sx_from_idx_args *args, const sx_dataset *data)
{
    const sx_schema *schema = sx_dataset_schema(data);
    const sx_type *type = &schema->components[0].type;
    char text[SX_TYPE_TEXT];
    if (schema->count != 2 || strcmp(schema->components[0].name, "image") != 0 ||
        schema->components[1].type.dtype != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s and %s: expected uint8 images [n,H,W] and integer labels [n]; rows of "
                        "the first are %s",
                        args->images, args->labels, sx_type_format(type, text, sizeof(text)));
    }
    if (sx_type_elems(type) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: images without pixels: %s", args->images,
                        sx_type_format(type, text, sizeof(text)));
    }
    return SX_OK;
}

sx_status sx_from_idx(const sx_from_idx_args *args, sx_buf *text)
{
    static const sx_data_options options = {.struct_size = sizeof(options)};
    sx_dataset *data = NULL;
    sx_iterator *iterator = NULL;
    sx_set_writer *writer = NULL;
    sx_example_writer example;
    sx_buf found, record, png;
    sx_buf_init(&found, 0);
    sx_buf_init(&record, 0);
    sx_buf_init(&png, 0);
    sx_example_writer_init(&example);
    sx_status status = SX_OK;
    SX_TRY_GOTO(status, sx_source_idx(args->images, args->labels, &options, &found, &data), done);
    SX_TRY_GOTO(status, check_pair(args, data), done);
    sx_type type = sx_dataset_schema(data)->components[0].type;
    int64_t count = sx_dataset_records(data);
    int shards = args->shards != 0 ? args->shards : sx_default_shards(count * sx_type_bytes(&type));
    if (shards < 1 || shards > SX_MAX_SHARDS) {
        status = sx_error(SX_INVALID_ARGUMENT, "shards %d: expected 1 to %d", shards,
                          (int)SX_MAX_SHARDS);
        goto done;
    }
    SX_TRY_GOTO(status, sx_iterator_create(data, &iterator, .workers = -1), done);
    SX_TRY_GOTO(status, sx_set_writer_open(args->out, shards, count, &writer), done);
    for (int64_t i = 0; i < count; i++) {
        const struct sx_batch_data *one;
        SX_TRY_GOTO(status, sx_iterator_next(iterator, &one), done);
        int64_t label = *(const int64_t *)one->components[1].data;
        if (label < 0) {
            status = sx_error(SX_OUT_OF_RANGE, "%s: label %lld of example %lld is negative",
                              args->labels, (long long)label, (long long)i);
            goto done;
        }
        label += args->label_base;
        if (args->png) {
            status = add_png(&example, &one->components[0], label, args->label_base, &png);
        } else {
            add_raw(&example, &one->components[0], label);
        }
        sx_buf_reset(&record);
        if (status == SX_OK) {
            status = sx_example_finish(&example, &record);
        }
        if (status == SX_OK) {
            status = sx_set_writer_write(writer, (sx_bytes){record.data, record.size});
        }
        if (status != SX_OK) {
            goto done;
        }
        if (args->progress != NULL && (i % PROGRESS_EVERY == 0 || i + 1 == count) &&
            !args->progress(args->user, i + 1, count)) {
            status = sx_error(SX_CANCELLED, "interrupted; nothing was written to %s", args->out);
            goto done;
        }
    }
    sx_set_info info = {.label_base = args->label_base,
                        .image_key = args->png ? "image/encoded" : "image_raw",
                        .label_key = args->png ? "image/class/label" : "label",
                        .raw = !args->png};
    info.classes = sx_dataset_class_names(data, &info.class_count);
    memcpy(info.shape, type.dims, sizeof(info.shape));
    status = sx_set_writer_finish(writer, &info, text);
done:
    sx_set_writer_close(writer);
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);
    sx_example_writer_deinit(&example);
    sx_buf_deinit(&png);
    sx_buf_deinit(&record);
    sx_buf_deinit(&found);
    return status;
}
