/* Examples out of a dataset into .npy files. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/prepare.h"
#include "data/sniff.h"
#include "image/decode.h"
#include "io/npy.h"
#include "io/path.h"

struct taking {
    sx_dataset *dataset; /* cut to the examples asked for */
    int64_t count;
    int features, label; /* components; label −1 = none */
    bool encoded;        /* the features are images to be decoded */
    sx_tensor x, y;      /* owned */
    sx_image image;
};

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

static sx_status put_image(struct taking *t, int64_t i, const sx_bytes *encoded)
{
    SX_TRY(sx_image_decode(*encoded, NULL, &t->image));
    sx_type type = sx_type_of(SX_U8, t->image.height, t->image.width, t->image.channels);
    if (t->x.data != NULL && memcmp(t->x.type.dims + 1, type.dims, 3 * sizeof(type.dims[0])) != 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(
            SX_INVALID_ARGUMENT,
            "image of %s, but the first is [%lld,%lld,%lld]; use --size to resize all images",
            sx_type_format(&type, text, sizeof(text)), (long long)t->x.type.dims[1],
            (long long)t->x.type.dims[2], (long long)t->x.type.dims[3]);
    }
    return put_row(&t->x, &type, t->count, i, t->image.pixels);
}

static sx_status take_one(struct taking *t, int64_t i, const struct sx_batch_data *one)
{
    const sx_tensor *x = &one->components[t->features];
    SX_TRY(t->encoded ? put_image(t, i, x->data) : put_row(&t->x, &x->type, t->count, i, x->data));
    if (t->label < 0) {
        return SX_OK;
    }
    const sx_tensor *y = &one->components[t->label];
    return put_row(&t->y, &y->type, t->count, i, y->data);
}

static sx_status take_all(struct taking *t)
{
    sx_iterator *iterator = NULL;
    SX_TRY(sx_iterator_create(t->dataset, &iterator, .workers = -1));
    sx_status status = SX_OK;
    for (int64_t i = 0; i < t->count && status == SX_OK; i++) {
        const struct sx_batch_data *one;
        status = sx_iterator_next(iterator, &one);
        if (status == SX_OK) {
            status = take_one(t, i, one);
        }
        if (status == SX_OK) {
            continue;
        }
        status = sx_status_annotate(status, __FILE__, __LINE__, "example %lld", (long long)i);
    }
    sx_iterator_destroy(iterator);
    return status;
}

static sx_status find_components(struct taking *t, const char *label_path)
{
    t->features = sx_dataset_find(t->dataset, "image");
    if (t->features < 0) {
        t->features = sx_dataset_find(t->dataset, "features");
    }
    t->label = label_path == NULL ? -1 : sx_dataset_find(t->dataset, "label");
    if (t->features < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the data has no component \"image\" or \"features\"");
    }
    if (label_path != NULL && t->label < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "the data has no labels to write to %s", label_path);
    }
    t->encoded = sx_dataset_schema(t->dataset)->components[t->features].type.dtype == SX_STRING;
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

static sx_status run(struct taking *t, int64_t first, const char *path, const char *label_path)
{
    int64_t there = sx_dataset_count(t->dataset);
    if (first < 0 || t->count < 1 || first > there || t->count > there - first) {
        return sx_error(SX_OUT_OF_RANGE, "examples %lld to %lld requested; the data has %lld",
                        (long long)first, (long long)(first + t->count - 1), (long long)there);
    }
    SX_TRY(find_components(t, label_path));
    if (label_path != NULL && strcmp(path, label_path) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: expected different files for examples and labels",
                        path);
    }
    SX_TRY(check_replaceable(path));
    if (label_path != NULL) {
        SX_TRY(check_replaceable(label_path));
    }
    SX_TRY(sx_dataset_skip(&t->dataset, first));
    SX_TRY(sx_dataset_take(&t->dataset, t->count));
    SX_TRY(take_all(t));
    SX_TRY(sx_npy_write(path, &t->x));
    return label_path == NULL ? SX_OK : sx_npy_write(label_path, &t->y);
}

sx_status sx_data_take(sx_dataset *dataset, int64_t first, int64_t count, const char *path,
                       const char *label_path)
{
    struct taking t = {.dataset = sx_dataset_retain(dataset), .count = count};
    sx_status status = run(&t, first, path, label_path);
    sx_dataset_release(t.dataset);
    sx_image_deinit(&t.image);
    sx_free(t.x.data);
    sx_free(t.y.data);
    return status;
}
