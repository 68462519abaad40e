/* See feed.h. */
#include "train/feed.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/image_pipeline.h"
#include "graph/ir.h"
#include "train/misfit.h"

/* ---- Features and labels ---- */

static int find_either(const sx_dataset *data, const char *a, const char *b)
{
    int i = sx_dataset_find(data, a);
    return i >= 0 ? i : sx_dataset_find(data, b);
}

void sx_feed_components(const sx_dataset *data, int *out_features, int *out_labels)
{
    int count = sx_dataset_schema(data)->count;
    int features = find_either(data, "features", "image"),
        labels = find_either(data, "labels", "label");
    if (features < 0) {
        features = labels == 0 && count > 1 ? 1 : 0;
    }
    if (labels < 0 && count == 2) {
        labels = 1 - features;
    }
    *out_features = features;
    *out_labels = labels;
}

bool sx_feed_needs_preprocess(const sx_dataset *data)
{
    int features, labels;
    sx_feed_components(data, &features, &labels);
    sx_dtype dtype = sx_dataset_schema(data)->components[features].type.dtype;
    return dtype == SX_STRING || dtype == SX_U8;
}

sx_status sx_model_preprocess(const sx_model_def *def, const char *recipe, const char *augment,
                              int label_base, sx_preprocess *out)
{
    sx_preprocess_wish wish = *SX_PREPROCESS_WISH(def);
    if (recipe != NULL) {
        wish.recipe = recipe;
    }
    SX_TRY(sx_preprocess_make(&wish, out));
    out->label_base = label_base;
    SX_TRY(sx_preprocess_check(out));
    return augment != NULL ? sx_preprocess_set_augment(out, augment) : SX_OK;
}

/* ---- Creation ---- */

static sx_status add_image_map(sx_feed *input, const sx_run_info *info, const sx_feed_args *args)
{
    if (!sx_feed_needs_preprocess(input->data)) {
        return SX_OK;
    }
    if (!info->has_preprocess) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the data are encoded images, but \"%s\" is a model on arrays",
                        info->model);
    }
    return sx_dataset_preprocess(&input->data, &info->preprocess,
                                 .training = args->mode == SX_TRAIN, .seed = info->seed,
                                 .num_classes = (int)args->classes, .label_dtype = SX_I32);
}

/* Limits the batch size to the number of examples: buffers and programs are made for it. */
static int64_t useful_batch_size(const sx_dataset *data, int64_t wanted)
{
    int64_t count = sx_dataset_count(data);
    return count == SX_ENDLESS || count == 0 ? wanted : SX_MIN(wanted, count);
}

static sx_status order_elements(sx_feed *input, const sx_run_info *info, const sx_feed_args *args)
{
    if (args->mode == SX_TRAIN && !args->no_shuffle) {
        SX_TRY(sx_dataset_shuffle(&input->data, .seed = info->seed));
    }
    return sx_dataset_batch(&input->data, .size = useful_batch_size(input->data, args->batch_size));
}

/* Checks that the data fit the model, without reading a record. */
static sx_status check(const sx_feed *input, const sx_run_info *info, const sx_feed_args *args)
{
    const sx_component *components = sx_dataset_schema(input->data)->components;
    SX_TRY(sx_check_features(&components[input->features], info, args->program));
    if (args->mode == SX_PREDICT) {
        return SX_OK;
    }
    if (input->labels < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the data have no labels: expected a component \"label\" or \"labels\"");
    }
    SX_TRY(sx_check_labels(&components[input->labels], info, args->program));
    return sx_check_class_names(input->data, info);
}

static sx_status build_pipeline(sx_feed *input, const sx_run_info *info, const sx_feed_args *args)
{
    if (sx_dataset_batch_size(input->data) == 0) {
        SX_TRY(add_image_map(input, info, args));
        SX_TRY(order_elements(input, info, args));
    }
    sx_feed_components(input->data, &input->features, &input->labels);
    SX_TRY(check(input, info, args));
    if (sx_dataset_count(input->data) != SX_ENDLESS) {
        input->steps_per_epoch = sx_dataset_count(input->data);
        if (input->steps_per_epoch == 0) {
            return sx_error(SX_INVALID_ARGUMENT, "the data are empty");
        }
        return args->repeat ? sx_dataset_repeat(&input->data, 0) : SX_OK;
    }
    return SX_OK;
}

/* The number of elements in one example's label. */
static int64_t label_elems(const sx_feed *input)
{
    sx_type one = sx_type_with_batch(input->label_type, 1);
    return sx_type_elems(&one);
}

static sx_status make_buffers(sx_feed *input)
{
    int64_t elems;
    input->max_batch = sx_dataset_batch_size(input->data);
    if (input->labels < 0 || input->label_type.dtype != SX_I32) {
        return SX_OK;
    }
    if (!sx_mul_i64(input->max_batch, label_elems(input), &elems)) {
        return sx_no_memory("for the input");
    }
    input->label_buffer = sx_alloc((size_t)elems, sizeof(int32_t));
    return input->label_buffer != NULL ? SX_OK : sx_no_memory("for the input");
}

sx_status sx_feed_init(sx_feed *input, const sx_run_info *info, sx_dataset *data,
                       const sx_feed_args *args)
{
    *input = (sx_feed){.data = sx_dataset_retain(data),
                       .labels = -1,
                       .label_type = info->labels,
                       .classes = args->classes};
    sx_status status = build_pipeline(input, info, args);
    if (status == SX_OK && args->mode == SX_PREDICT) {
        input->labels = -1;
    }
    if (status == SX_OK) {
        status = make_buffers(input);
    }
    if (status == SX_OK) {
        status = sx_iterator_create(input->data, &input->iterator);
    }
    if (status != SX_OK) {
        sx_feed_deinit(input);
    }
    return status;
}

void sx_feed_deinit(sx_feed *input)
{
    sx_iterator_destroy(input->iterator);
    sx_dataset_release(input->data);
    sx_free(input->label_buffer);
    *input = (sx_feed){.labels = -1};
}

/* ---- Running ---- */

static int64_t read_label(const sx_tensor *t, int64_t i)
{
    switch (t->type.dtype) {
    case SX_U8:
        return ((const uint8_t *)t->data)[i];
    case SX_I32:
        return ((const int32_t *)t->data)[i];
    default:
        return ((const int64_t *)t->data)[i];
    }
}

static sx_status bad_label(const sx_feed *input, int64_t label, int64_t record)
{
    char name[512];
    sx_dataset_record_name(input->data, record, name, sizeof(name));
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s: label %" PRId64 " is outside the classes [0, %" PRId64 ")", name, label,
                    input->classes);
}

/* Converts labels to int32 and checks their range. */
static sx_status convert_labels(sx_feed *input, const struct sx_batch_data *batch)
{
    const sx_tensor *t = &batch->components[input->labels];
    int64_t per_example = label_elems(input);
    int64_t end = input->classes > 0 ? input->classes : INT32_MAX;
    for (int64_t i = 0; i < batch->size * per_example; i++) {
        int64_t label = read_label(t, i);
        if (label < 0 || label >= end) {
            return bad_label(input, label, batch->ids[i / per_example]);
        }
        input->label_buffer[i] = (int32_t)label;
    }
    return SX_OK;
}

sx_status sx_feed_next(sx_feed *input, sx_feed_batch *out_batch)
{
    const struct sx_batch_data *batch;
    SX_TRY(sx_iterator_next(input->iterator, &batch));
    const void *labels = NULL;
    if (input->labels >= 0 && input->label_buffer != NULL) {
        SX_TRY(convert_labels(input, batch));
        labels = input->label_buffer;
    } else if (input->labels >= 0) {
        labels = batch->components[input->labels].data;
    }
    *out_batch = (sx_feed_batch){.features = batch->components[input->features].data,
                                 .labels = labels,
                                 .ids = batch->ids,
                                 .size = batch->size,
                                 .ends_epoch = batch->ends_epoch};
    return SX_OK;
}

/* ---- Fixed batches ---- */

sx_status sx_feed_row_bytes(const sx_type *batch_type, size_t *out)
{
    sx_type row = sx_type_with_batch(*batch_type, 1);
    int64_t bytes = sx_type_bytes(&row);
    if (bytes < 0) {
        return sx_no_memory("for the input");
    }
    *out = (size_t)bytes;
    return SX_OK;
}

sx_status sx_rebatch_init(sx_rebatch *r, sx_feed *input, const sx_run_info *info, int64_t size,
                          bool with_labels)
{
    size_t feature_total, label_total = 0;
    *r = (sx_rebatch){.input = input, .size = size};
    SX_TRY(sx_feed_row_bytes(&info->features, &r->feature_bytes));
    if (with_labels) {
        SX_TRY(sx_feed_row_bytes(&info->labels, &r->label_bytes));
    }
    if (!sx_mul_size(r->feature_bytes, (size_t)size, &feature_total) ||
        !sx_mul_size(r->label_bytes, (size_t)size, &label_total)) {
        return sx_no_memory("for the input");
    }
    r->features = sx_alloc_aligned(feature_total + 1, 64);
    r->labels = sx_alloc_aligned(label_total + 1, 64);
    r->ids = sx_alloc((size_t)size, sizeof(int64_t));
    if (r->features == NULL || r->labels == NULL || r->ids == NULL) {
        sx_rebatch_deinit(r);
        return sx_no_memory("for the input");
    }
    return SX_OK;
}

void sx_rebatch_deinit(sx_rebatch *r)
{
    sx_free_aligned(r->features);
    sx_free_aligned(r->labels);
    sx_free(r->ids);
    *r = (sx_rebatch){0};
}

/* Copies rows of the pending batch to row `at`; returns their number. */
static int64_t take_rows(sx_rebatch *r, int64_t at)
{
    int64_t n = SX_MIN(r->size - at, r->pending.size - r->taken);
    size_t from = (size_t)r->taken, to = (size_t)at, count = (size_t)n;
    memcpy(r->features + to * r->feature_bytes,
           (const char *)r->pending.features + from * r->feature_bytes, count * r->feature_bytes);
    if (r->label_bytes > 0) {
        memcpy(r->labels + to * r->label_bytes,
               (const char *)r->pending.labels + from * r->label_bytes, count * r->label_bytes);
    }
    memcpy(r->ids + to, r->pending.ids + from, count * sizeof(int64_t));
    r->taken += n;
    return n;
}

static void pad(sx_rebatch *r, int64_t rows)
{
    for (int64_t i = rows; i < r->size; i++) {
        memcpy(r->features + (size_t)i * r->feature_bytes, r->features, r->feature_bytes);
        memcpy(r->labels + (size_t)i * r->label_bytes, r->labels, r->label_bytes);
    }
}

/* Fetches a batch if no rows are pending. */
static sx_status refill(sx_rebatch *r)
{
    if (r->taken < r->pending.size) {
        return SX_OK;
    }
    sx_status status = sx_feed_next(r->input, &r->pending);
    r->taken = 0;
    if (sx_status_code(status) == SX_OUT_OF_RANGE) {
        sx_status_free(status);
        r->pending = (sx_feed_batch){0};
        r->ended = true;
        return SX_OK;
    }
    return status;
}

sx_status sx_rebatch_next(sx_rebatch *r, sx_feed_batch *out_batch)
{
    int64_t rows = 0;
    while (rows < r->size && !r->ended) {
        SX_TRY(refill(r));
        if (rows == 0 && r->taken == 0 && r->pending.size == r->size) { /* fits: nothing to copy */
            r->taken = r->size;
            *out_batch = r->pending;
            return SX_OK;
        }
        rows += r->ended ? 0 : take_rows(r, rows);
    }
    if (rows == 0) {
        return sx_error(SX_OUT_OF_RANGE, "end of the data");
    }
    pad(r, rows);
    *out_batch = (sx_feed_batch){.features = r->features,
                                 .labels = r->label_bytes > 0 ? r->labels : NULL,
                                 .ids = r->ids,
                                 .size = rows};
    return SX_OK;
}
