/* The standard map of image classification: turns an encoded image or pixels, and a label, into a
 * float image and a checked label. See image/preprocess.h for the pixels. */
#include <string.h>

#include "base/args.h"
#include "base/integer.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/image_pipeline.h"
#include "io/json_text.h"

struct pipeline {
    sx_preprocess pre;
    bool bytes; /* images stay uint8 */
    sx_image_args args;
    int image, label;                    /* components of the input; label −1 = none */
    int n_kept, kept[SX_MAX_COMPONENTS]; /* that follow the image as they are */
};

static sx_status worker_create(void *user, void **out_worker)
{
    const struct pipeline *self = user;
    sx_preprocess_scratch *scratch = sx_alloc(1, sizeof(*scratch));
    if (scratch == NULL) {
        return sx_no_memory("for preprocessing");
    }
    scratch->bytes = self->bytes;
    *out_worker = scratch;
    return SX_OK;
}

static void worker_destroy(void *worker)
{
    sx_preprocess_scratch_deinit(worker);
    sx_free(worker);
}

/* uint8 [H,W] or [H,W,C] as an image. */
static sx_image view_of(const sx_tensor *tensor)
{
    int channels = tensor->type.rank == 3 ? (int)tensor->type.dims[2] : 1;
    return sx_image_view(tensor->data, (int)tensor->type.dims[0], (int)tensor->type.dims[1],
                         channels);
}

static sx_status run_image(const struct pipeline *self, const sx_map_call *call)
{
    const sx_tensor *in = &call->in[self->image];
    sx_augment_key key = {self->args.seed, (uint32_t)call->epoch, (uint64_t)call->record};
    const sx_augment_key *random = self->args.training ? &key : NULL;
    if (in->type.dtype == SX_STRING) {
        return sx_preprocess_encoded(&self->pre, *(const sx_bytes *)in->data, random, call->worker,
                                     call->out[0].data);
    }
    sx_image pixels = view_of(in);
    return sx_preprocess_pixels(&self->pre, &pixels, random, call->worker, call->out[0].data);
}

static sx_status run_label(const struct pipeline *self, const sx_map_call *call)
{
    int64_t label = sx_integer_at(&call->in[self->label], 0);
    int64_t end = self->args.num_classes > 0 ? self->args.num_classes : INT32_MAX;
    if (label < 0 || label >= end) {
        return sx_error(
            SX_OUT_OF_RANGE,
            "label %lld out of range [0, %lld); if labels start at 1, set the label base to 1",
            (long long)label, (long long)end);
    }
    if (call->out[1].type.dtype == SX_I32) {
        *(int32_t *)call->out[1].data = (int32_t)label;
    } else {
        *(int64_t *)call->out[1].data = label;
    }
    return SX_OK;
}

static sx_status run(const sx_map_call *call, void *user)
{
    const struct pipeline *self = user;
    if (self->label >= 0) {
        SX_TRY(run_label(self, call));
    }
    for (int i = 0; i < self->n_kept; i++) {
        const sx_tensor *in = &call->in[self->kept[i]];
        memcpy(call->out[1 + i].data, in->data, sx_data_bytes(&in->type));
    }
    return run_image(self, call);
}

static sx_status check_image(const sx_dataset *dataset, const char *name, int image)
{
    char text[SX_TYPE_TEXT];
    if (image < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "image pipeline: the data has no component \"%s\"",
                        name);
    }
    const sx_type *type = &sx_dataset_schema(dataset)->components[image].type;
    bool encoded = type->dtype == SX_STRING && type->rank == 0;
    bool raw = type->dtype == SX_U8 && (type->rank == 2 || type->rank == 3);
    if (!encoded && !raw) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "image pipeline: \"%s\" is %s; expected an encoded string or uint8 "
                        "[H,W,C]",
                        name, sx_type_format(type, text, sizeof(text)));
    }
    return SX_OK;
}

static sx_status check_label(const sx_dataset *dataset, int label)
{
    if (label < 0) {
        return SX_OK;
    }
    const sx_type *type = &sx_dataset_schema(dataset)->components[label].type;
    char text[SX_TYPE_TEXT];
    if (!sx_dtype_is_integer(type->dtype) || type->dtype == SX_U64 || type->rank != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "image pipeline: \"label\" is %s; expected an integer scalar",
                        sx_type_format(type, text, sizeof(text)));
    }
    return SX_OK;
}

/* The hash of everything that changes the results. */
static sx_status hash_parameters(const struct pipeline *self, uint64_t *out_hash)
{
    json_t *json = NULL;
    SX_TRY(sx_preprocess_to_json(&self->pre, &json));
    char *text = NULL;
    sx_status status = sx_json_text(json, JSON_COMPACT, &text);
    json_decref(json);
    if (status != SX_OK) {
        return status;
    }
    uint64_t parts[] = {sx_hash64(text, strlen(text)), self->args.training,
                        self->args.training ? self->args.seed : 0};
    sx_free(text);
    *out_hash = sx_hash64(parts, sizeof(parts));
    return SX_OK;
}

static sx_type image_type(const struct pipeline *self)
{
    return sx_type_of(self->bytes ? SX_U8 : SX_F32, self->pre.height, self->pre.width,
                      self->pre.channels);
}

static sx_status add_map(sx_dataset **dataset, struct pipeline *self)
{
    sx_component components[] = {
        {"image", image_type(self)},
        {"label", sx_scalar_type(self->args.label_dtype)},
    };
    uint64_t fingerprint = 0;
    SX_TRY(hash_parameters(self, &fingerprint));
    return sx_dataset_map(dataset, .name = "image", .fn = run, .count = self->label >= 0 ? 2 : 1,
                          .components = components, .user = self, .release = sx_free,
                          .worker_create = worker_create, .worker_destroy = worker_destroy,
                          .fingerprint = fingerprint);
}

sx_status sx_dataset_preprocess_at(sx_dataset **dataset, const sx_preprocess *pre, bool bytes,
                                   const sx_image_args *args)
{
    int image = sx_dataset_find(*dataset, "image"), label = sx_dataset_find(*dataset, "label");
    SX_TRY(check_image(*dataset, "image", image));
    SX_TRY(check_label(*dataset, label));
    SX_TRY(sx_preprocess_check(pre));
    struct pipeline *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("for an image pipeline");
    }
    self->pre = *pre;
    self->bytes = bytes;
    self->args = *args;
    self->args.label_dtype = args->label_dtype == SX_I32 ? SX_I32 : SX_I64;
    self->image = image;
    self->label = label;
    sx_status status = add_map(dataset, self);
    if (status != SX_OK) {
        sx_free(self);
    }
    return status;
}

sx_status sx_dataset_preprocess_component(sx_dataset **dataset, const char *component,
                                          const sx_preprocess *pre, bool bytes, bool training,
                                          uint64_t seed)
{
    const sx_schema *schema = sx_dataset_schema(*dataset);
    const int image = sx_dataset_find(*dataset, component);
    sx_component components[SX_MAX_COMPONENTS];
    uint64_t fingerprint = 0;
    SX_TRY(check_image(*dataset, component, image));
    SX_TRY(sx_preprocess_check(pre));
    struct pipeline *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("for an image pipeline");
    }
    *self = (struct pipeline){.pre = *pre,
                              .bytes = bytes,
                              .args = {.training = training, .seed = seed},
                              .image = image,
                              .label = -1};
    components[0] = (sx_component){component, image_type(self)};
    for (int i = 0; i < schema->count; i++) {
        if (i != image) {
            components[1 + self->n_kept] = schema->components[i];
            self->kept[self->n_kept++] = i;
        }
    }
    sx_status status = hash_parameters(self, &fingerprint);
    if (status == SX_OK) {
        status = sx_dataset_map(dataset, .name = "image", .fn = run, .count = 1 + self->n_kept,
                                .components = components, .user = self, .release = sx_free,
                                .worker_create = worker_create, .worker_destroy = worker_destroy,
                                .fingerprint = fingerprint, .views = true);
    }
    if (status != SX_OK) {
        sx_free(self);
    }
    return status;
}

sx_status sx_image_pipeline_at(sx_dataset **dataset, const sx_image_args *args)
{
    SX_TAKE_ARGS(sx_image_args, args);
    sx_preprocess pre;
    SX_TRY(sx_preprocess_make(SX_PREPROCESS_WISH(args), &pre), "image pipeline");
    return sx_dataset_preprocess_at(dataset, &pre, false, args);
}
