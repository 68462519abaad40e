/* Asks a model server to classify images, by a model with the signature image_bytes ->
 * probabilities, classid, as written by `sextant export` for a model trained on images.
 *
 *     client SERVER MODEL rest|grpc IMAGE...     client localhost:8500 flowers grpc rose.jpg */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static sx_status show(const sx_client_answer *answer, char *const *paths, int n)
{
    const sx_tensor *probabilities =
        sx_client_answer_find(answer, "probabilities");                  /* [n,classes] */
    const sx_tensor *classid = sx_client_answer_find(answer, "classid"); /* [n] int32 */
    if (probabilities == NULL || classid == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "the model is not a classifier");
    }
    for (int i = 0; i < n; i++) {
        int id = ((const int32_t *)classid->data)[i];
        float p =
            ((const float *)probabilities->data)[(int64_t)i * probabilities->type.dims[1] + id];
        printf("%s: class %d, probability %.3f\n", paths[i], id, (double)p);
    }
    return SX_OK;
}

static sx_status run(char **argv, char *const *paths, int n, sx_bytes *images)
{
    sx_client *client = NULL;
    sx_client_answer *answer = NULL;
    sx_status status = SX_OK;
    for (int i = 0; i < n; i++) {
        SX_TRY(read_file(paths[i], &images[i]));
    }
    const sx_client_options options = {
        .struct_size = sizeof(options),
        .protocol = strcmp(argv[3], "grpc") == 0 ? SX_CLIENT_GRPC : SX_CLIENT_REST,
        .timeout_ms = 10000,
    };
    SX_TRY(sx_client_open(argv[1], &options, &client));
    const sx_client_model model = {.name = argv[2]};
    const sx_client_tensor input = {"image_bytes", {sx_type_of(SX_STRING, n), images}};
    SX_TRY_GOTO(status, sx_client_predict(client, &model, &input, 1, &answer), done);
    status = show(answer, paths, n);
done:
    sx_client_answer_free(answer);
    sx_client_close(client);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s SERVER MODEL rest|grpc IMAGE...\n", argv[0]);
        return 2;
    }
    int n = argc - 4;
    sx_bytes *images = calloc((size_t)n, sizeof(*images));
    sx_status status = images != NULL ? run(argv, argv + 4, n, images)
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
