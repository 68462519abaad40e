/* Copies examples of a dataset to .npy files. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/prepare.h"
#include "data/sniff.h"
#include "image/decode.h"
#include "io/npy.h"
#include "io/path.h"

static sx_status make_tensor(const sx_type *element, int64_t count, sx_tensor *out_tensor)
{
    char text[SX_TYPE_TEXT];
    sx_type type = *element;
    if (type.rank == SX_MAX_RANK || type.dtype == SX_STRING) {
        return sx_error(SX_UNIMPLEMENTED, "cannot store examples of %s in a .npy array",
                        sx_type_format(element, text, sizeof(text)));
    }
    memmove(type.dims + 1, type.dims, (size_t)type.rank * sizeof(type.dims[0]));
    type.dims[0] = count;
    type.rank++;
    int64_t bytes = sx_type_bytes(&type);
    void *data = bytes < 0 ? NULL : sx_alloc((size_t)SX_MAX(bytes, (int64_t)1), 1);
    if (data == NULL) {
        return sx_no_memory("for %s", sx_type_format(&type, text, sizeof(text)));
    }
    *out_tensor = (sx_tensor){type, data};
    return SX_OK;
}

/* Copies `bytes` of an element to row `i`, which the first one sizes. */
static sx_status put_row(sx_tensor *all, const sx_type *element, int64_t count, int64_t i,
                         const void *data)
{
    if (all->data == NULL) {
        SX_TRY(make_tensor(element, count, all));
    }
    size_t bytes = (size_t)sx_type_bytes(element);
    memcpy((char *)all->data + (size_t)i * bytes, data, bytes);
    return SX_OK;
}

/* A typing mistake must not replace the data set by an excerpt of it. */
static sx_status check_replaceable(const char *path)
{
    sx_file_kind kind = SX_FILE_EMPTY;
    if (sx_path_exists(path) && !sx_path_is_dir(path)) {
        SX_TRY(sx_sniff_file(path, &kind));
    }
    return kind == SX_FILE_EMPTY || kind == SX_FILE_NPY
               ? SX_OK
               : sx_error(SX_FAILED_PRECONDITION,
                          "%s already exists and is not a .npy file; remove it first", path);
}

/* The image in `encoded`, decoded to row `i`. */
static sx_status put_image(sx_tensor *all, int64_t count, int64_t i, const sx_bytes *encoded,
                           sx_image *image)
{
    SX_TRY(sx_image_decode(*encoded, NULL, image));
    sx_type type = sx_type_of(SX_U8, image->height, image->width, image->channels);
    if (all->data != NULL && memcmp(all->type.dims + 1, type.dims, 3 * sizeof(type.dims[0])) != 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(
            SX_INVALID_ARGUMENT,
            "image of %s, but the first is [%lld,%lld,%lld]; use --size to resize all images",
            sx_type_format(&type, text, sizeof(text)), (long long)all->type.dims[1],
            (long long)all->type.dims[2], (long long)all->type.dims[3]);
    }
    return put_row(all, &type, count, i, image->pixels);
}

sx_status sx_data_take(sx_dataset *dataset, int64_t first, int64_t count, const char *path,
                       const char *label_path)
{
    int64_t there = sx_dataset_count(dataset);
    if (first < 0 || count < 1 || first > there || count > there - first) {
        return sx_error(SX_OUT_OF_RANGE, "examples %lld to %lld requested; the data has %lld",
                        (long long)first, (long long)(first + count - 1), (long long)there);
    }
    int features = sx_dataset_find(dataset, "image");
    features = features >= 0 ? features : sx_dataset_find(dataset, "features");
    int label = label_path == NULL ? -1 : sx_dataset_find(dataset, "label");
    if (features < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the data has no component \"image\" or \"features\"");
    }
    if (label_path != NULL && label < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the data has no labels to write to %s", label_path);
    }
    if (label_path != NULL && strcmp(path, label_path) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: expected different files for examples and labels",
                        path);
    }
    SX_TRY(check_replaceable(path));
    if (label_path != NULL) {
        SX_TRY(check_replaceable(label_path));
    }

    bool encoded = sx_dataset_schema(dataset)->components[features].type.dtype == SX_STRING;
    sx_iterator *iterator = NULL;
    sx_tensor x = {.data = NULL}, y = {.data = NULL};
    sx_image image = {.pixels = NULL};
    sx_dataset *chosen = sx_dataset_retain(dataset);
    sx_status status = sx_dataset_skip(&chosen, first);
    if (status == SX_OK) {
        status = sx_dataset_take(&chosen, count);
    }
    if (status == SX_OK) {
        status = sx_iterator_create(chosen, &iterator, .workers = -1);
    }
    for (int64_t i = 0; i < count && status == SX_OK; i++) {
        const struct sx_batch_data *one;
        status = sx_iterator_next(iterator, &one);
        if (status == SX_OK) {
            const sx_tensor *in = &one->components[features];
            status = encoded ? put_image(&x, count, i, in->data, &image)
                             : put_row(&x, &in->type, count, i, in->data);
        }
        if (status == SX_OK && label >= 0) {
            const sx_tensor *in = &one->components[label];
            status = put_row(&y, &in->type, count, i, in->data);
        }
        if (status != SX_OK) {
            status = sx_status_annotate(status, __FILE__, __LINE__, "example %lld", (long long)i);
        }
    }
    if (status == SX_OK) {
        status = sx_npy_write(path, &x);
    }
    if (status == SX_OK && label_path != NULL) {
        status = sx_npy_write(label_path, &y);
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(chosen);
    sx_image_deinit(&image);
    sx_free(x.data);
    sx_free(y.data);
    return status;
}
