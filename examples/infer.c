/* Classifies images with a SavedModel that has the signature image_bytes -> probabilities, classid,
 * class, as written by `sextant export` for a model trained on images.
 *
 *     infer MODEL_VERSION_DIR IMAGE...           infer models/flowers/1 rose.jpg tulip.jpg */
#include <stdio.h>
#include <stdlib.h>

#include <sextant/sextant.h>

static sx_status read_file(const char *path, sx_bytes *out)
{
    static const size_t limit = (size_t)64 << 20;
    FILE *file = fopen(path, "rb");
    char *data = file != NULL ? malloc(limit) : NULL;
    size_t size = data != NULL ? fread(data, 1, limit, file) : 0;
    bool whole = size > 0 && size < limit && !ferror(file);
    if (file != NULL) {
        fclose(file);
    }
    if (!whole) {
        free(data);
        return sx_error(SX_NOT_FOUND, "cannot read %s", path);
    }
    *out = (sx_bytes){data, size};
    return SX_OK;
}

static sx_status show(const sx_outputs *outputs, char *const *paths, int n)
{
    const sx_tensor *probabilities = sx_outputs_find(outputs, "probabilities"); /* [n,classes] */
    const sx_tensor *classid = sx_outputs_find(outputs, "classid");             /* [n] int32 */
    const sx_tensor *names = sx_outputs_find(outputs, "class");                 /* [n] string */
    if (probabilities == NULL || classid == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "the model is not a classifier");
    }
    for (int i = 0; i < n; i++) {
        int id = ((const int32_t *)classid->data)[i];
        float p =
            ((const float *)probabilities->data)[(int64_t)i * probabilities->type.dims[1] + id];
        sx_bytes name = names != NULL ? ((const sx_bytes *)names->data)[i] : (sx_bytes){"", 0};
        printf("%s: class %d %.*s, probability %.3f\n", paths[i], id, (int)name.size,
               (const char *)name.data, (double)p);
    }
    return SX_OK;
}

static sx_status run(const char *dir, char *const *paths, int n, sx_bytes *images)
{
    sx_servable *model = NULL;
    sx_outputs *outputs = NULL;
    sx_status status = SX_OK;
    for (int i = 0; i < n; i++) {
        SX_TRY(read_file(paths[i], &images[i]));
    }
    SX_TRY(sx_servable_load(dir, NULL, &model));
    const sx_tensor input = {sx_type_of(SX_STRING, n), images};
    SX_TRY_GOTO(status, sx_servable_run(model, "serving_default", &input, &outputs), done);
    status = show(outputs, paths, n);
done:
    sx_outputs_free(outputs);
    sx_servable_release(model);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL_VERSION_DIR IMAGE...\n", argv[0]);
        return 2;
    }
    int n = argc - 2;
    sx_bytes *images = calloc((size_t)n, sizeof(*images));
    sx_status status = images != NULL ? run(argv[1], argv + 2, n, images)
                                      : sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    for (int i = 0; images != NULL && i < n; i++) {
        free((void *)(uintptr_t)images[i].data);
    }
    free(images);
    int code = status != SX_OK;
    sx_status_free(status);
    return code;
}
