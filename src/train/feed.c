/* See feed.h. */
#include "train/feed.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/integer.h"
#include "base/memory.h"
#include "data/image_pipeline.h"
#include "data/relabel.h"
#include "graph/ir.h"
#include "nn/model_program.h"
#include "train/byte_images.h"
#include "train/misfit.h"
#include "train/preprocess_map.h"

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

static sx_status add_image_map(sx_dataset **data, const sx_run_info *info, const sx_feed_args *args)
{
    if (!sx_feed_needs_preprocess(*data)) {
        return SX_OK;
    }
    if (!info->has_preprocess) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the data has encoded images, but \"%s\" is a model on arrays",
                        info->model);
    }
    return sx_dataset_preprocess_at(data, &info->preprocess, args->bytes,
                                    SX_ARGS_(sx_image_args, .training = args->mode == SX_TRAIN,
                                             .seed = info->seed, .num_classes = (int)args->classes,
                                             .label_dtype = SX_I32));
}

/* Of the named input that is an image; float data are taken as they are. */
static sx_status add_named_image_map(sx_dataset **data, const sx_run_info *info,
                                     const sx_feed_args *args)
{
    const sx_model_input *image = sx_model_inputs_image(&info->declared);
    const int found = sx_dataset_find(*data, image->name);
    if (found < 0) {
        return sx_missing_input(*data, info, image);
    }
    return sx_dataset_schema(*data)->components[found].type.dtype == SX_F32
               ? SX_OK
               : sx_dataset_preprocess_component(data, image->name, &info->preprocess, args->bytes,
                                                 args->mode == SX_TRAIN, info->seed);
}

sx_status sx_feed_preprocess(sx_dataset **data, const sx_run_info *info, const sx_feed_args *args)
{
    if (args->mode != SX_TRAIN) { /* data that lack a class */
        SX_TRY(sx_dataset_relabel(data, info->class_names, info->n_classes));
    }
    if (!info->inputs.named) {
        SX_TRY(add_image_map(data, info, args));
    } else if (info->has_preprocess) {
        SX_TRY(add_named_image_map(data, info, args));
    }
    return args->preprocess != NULL
               ? sx_dataset_run_preprocess(data, args->preprocess, info, args->mode)
               : SX_OK;
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

/* Whether the input is a label that names a class, from 0: integer labels without a name; of named
 * inputs, the only label of a classifier. */
static bool is_class_label(const sx_model_inputs *inputs, int i, int64_t classes)
{
    const sx_model_input *input = &inputs->items[i];
    if (input->kind != SX_INPUT_LABEL || input->type.dtype != SX_I32) {
        return false;
    }
    bool only = sx_model_inputs_first(inputs, SX_INPUT_LABEL) == input &&
                (i + 1 == inputs->n || inputs->items[i + 1].kind != SX_INPUT_LABEL);
    return !inputs->named || (only && input->type.rank == 1 && classes > 0);
}

/* Finds the components, and checks that the data fit the model, without reading a record. */
static sx_status find_columns(sx_feed *input, const sx_run_info *info, const sx_feed_args *args)
{
    int unnamed[SX_INPUT_KINDS] = {-1, -1, -1};
    if (!info->inputs.named) {
        sx_feed_components(input->data, &unnamed[SX_INPUT_FEATURE], &unnamed[SX_INPUT_LABEL]);
    }
    const sx_schema *schema = sx_dataset_schema(input->data);
    for (int i = 0; i < info->inputs.n; i++) {
        const sx_model_input *wanted = &info->inputs.items[i];
        sx_feed_column *column = &input->columns[i];
        if (!sx_mode_feeds(args->mode, wanted)) {
            continue;
        }
        column->component =
            info->inputs.named ? sx_dataset_find(input->data, wanted->name) : unnamed[wanted->kind];
        if (column->component < 0) {
            return info->inputs.named
                       ? sx_missing_input(input->data, info, wanted)
                       : sx_error(SX_INVALID_ARGUMENT, "the data has no labels: expected a "
                                                       "component \"label\" or \"labels\"");
        }
        const sx_component *c = &schema->components[column->component];
        sx_model_input fed = *wanted;
        if (args->bytes && wanted == sx_byte_image(info)) {
            fed.type.dtype = SX_U8;
        }
        SX_TRY(sx_check_input(c, info, &fed, args->program));
        column->dtype = fed.type.dtype;
        column->is_class = is_class_label(&info->inputs, i, args->classes);
    }
    return args->mode == SX_PREDICT ? SX_OK : sx_check_class_names(input->data, info);
}

static sx_status build_pipeline(sx_feed *input, const sx_run_info *info, const sx_feed_args *args)
{
    if (sx_dataset_batch_size(input->data) == 0) {
        SX_TRY(sx_feed_preprocess(&input->data, info, args));
        SX_TRY(order_elements(input, info, args));
    }
    SX_TRY(find_columns(input, info, args));
    if (sx_dataset_count(input->data) != SX_ENDLESS) {
        input->steps_per_epoch = sx_dataset_count(input->data);
        if (input->steps_per_epoch == 0) {
            return sx_error(SX_INVALID_ARGUMENT, "the data is empty");
        }
        return args->repeat ? sx_dataset_repeat(&input->data, 0) : SX_OK;
    }
    return SX_OK;
}

/* The number of elements of one example. */
static int64_t example_elems(const sx_model_input *input)
{
    sx_type one = sx_type_with_batch(input->type, 1);
    return sx_type_elems(&one);
}

static sx_status make_buffers(sx_feed *input)
{
    input->max_batch = sx_dataset_batch_size(input->data);
    for (int i = 0; i < input->inputs->n; i++) {
        sx_feed_column *column = &input->columns[i];
        const sx_model_input *wanted = &input->inputs->items[i];
        if (column->component < 0 || wanted->type.dtype != SX_I32) {
            continue;
        }
        sx_dtype dtype = sx_dataset_schema(input->data)->components[column->component].type.dtype;
        int64_t elems;
        if (!column->is_class && !sx_feed_converts(dtype)) {
            continue;
        }
        if (!sx_mul_i64(input->max_batch, example_elems(wanted), &elems)) {
            return sx_no_memory("for the input");
        }
        column->converted = sx_alloc((size_t)elems, sizeof(int32_t));
        if (column->converted == NULL) {
            return sx_no_memory("for the input");
        }
    }
    return SX_OK;
}

/* `iterator` is the caller's; NULL = makes one. */
static sx_status open_feed(sx_feed *input, const sx_run_info *info, sx_dataset *data,
                           sx_iterator *iterator, const sx_feed_args *args)
{
    *input = (sx_feed){.inputs = &info->inputs,
                       .data = sx_dataset_retain(data),
                       .iterator = iterator,
                       .borrowed = iterator != NULL,
                       .classes = args->classes,
                       .part = args->part};
    for (int i = 0; i < SX_MAX_MODEL_INPUTS; i++) {
        input->columns[i].component = -1;
    }
    sx_status status = build_pipeline(input, info, args);
    if (status == SX_OK) {
        status = make_buffers(input);
    }
    if (status == SX_OK && !input->borrowed) {
        status = sx_iterator_create(input->data, &input->iterator);
    }
    if (status == SX_OK && !input->borrowed) {
        sx_iterator_take_part(input->iterator, &input->part);
    }
    if (status != SX_OK) {
        sx_feed_deinit(input);
    }
    return status;
}

sx_status sx_feed_init(sx_feed *input, const sx_run_info *info, sx_dataset *data,
                       const sx_feed_args *args)
{
    return open_feed(input, info, data, NULL, args);
}

sx_status sx_feed_borrow(sx_feed *input, const sx_run_info *info, sx_iterator *iterator,
                         const sx_feed_args *args)
{
    sx_dataset *data = sx_iterator_dataset(iterator);
    if (sx_dataset_batch_size(data) == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the iterator's data is not batched; call sx_dataset_batch() first");
    }
    return open_feed(input, info, data, iterator, args);
}

void sx_feed_deinit(sx_feed *input)
{
    if (!input->borrowed) {
        sx_iterator_destroy(input->iterator);
    }
    sx_dataset_release(input->data);
    for (int i = 0; i < SX_MAX_MODEL_INPUTS; i++) {
        sx_free(input->columns[i].converted);
    }
    *input = (sx_feed){0};
}

/* ---- Running ---- */

static sx_status bad_integer(const sx_feed *input, int i, int64_t value, int64_t record)
{
    char name[512];
    sx_dataset_record_name(input->data, record, name, sizeof(name));
    return input->columns[i].is_class
               ? sx_error(SX_INVALID_ARGUMENT,
                          "%s: label %" PRId64 " is outside the classes [0, %" PRId64 ")", name,
                          value, input->classes)
               : sx_error(SX_INVALID_ARGUMENT, "%s: \"%s\" is %" PRId64 ", which is not an int32",
                          name, input->inputs->items[i].name, value);
}

/* Converts an input to int32 and checks its range. */
static sx_status convert(sx_feed *input, int i, const struct sx_batch_data *batch)
{
    const sx_feed_column *column = &input->columns[i];
    const sx_tensor *t = &batch->components[column->component];
    int64_t per_example = example_elems(&input->inputs->items[i]);
    int64_t low = column->is_class ? 0 : INT32_MIN;
    int64_t high = column->is_class && input->classes > 0 ? input->classes - 1 : INT32_MAX;
    int64_t first, end;
    sx_part_rows(&input->part, batch->size, &first, &end);
    for (int64_t k = first * per_example; k < end * per_example; k++) {
        int64_t value = sx_integer_at(t, (size_t)k);
        if (value < low || value > high) {
            return bad_integer(input, i, value, batch->ids[k / per_example]);
        }
        column->converted[k] = (int32_t)value;
    }
    return SX_OK;
}

static sx_status check_weights(const sx_feed *input, int i, const struct sx_batch_data *batch)
{
    const float *weights = batch->components[input->columns[i].component].data;
    int64_t first, end;
    sx_part_rows(&input->part, batch->size, &first, &end);
    for (int64_t k = first; k < end; k++) {
        if (!(weights[k] >= 0) || isinf(weights[k])) {
            char name[512];
            sx_dataset_record_name(input->data, batch->ids[k], name, sizeof(name));
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: the weight \"%s\" is %g, expected a finite number that is not "
                            "negative",
                            name, input->inputs->items[i].name, (double)weights[k]);
        }
    }
    return SX_OK;
}

sx_status sx_feed_next(sx_feed *input, sx_feed_batch *out_batch)
{
    const struct sx_batch_data *batch;
    SX_TRY(sx_iterator_next(input->iterator, &batch));
    sx_feed_batch out = {.ids = batch->ids, .size = batch->size, .ends_epoch = batch->ends_epoch};
    for (int i = 0; i < input->inputs->n; i++) {
        const sx_feed_column *column = &input->columns[i];
        if (column->component >= 0 && input->inputs->items[i].kind == SX_INPUT_WEIGHT) {
            SX_TRY(check_weights(input, i, batch));
        }
        if (column->converted != NULL) {
            SX_TRY(convert(input, i, batch));
            out.inputs[i] = column->converted;
        } else if (column->component >= 0) {
            out.inputs[i] = batch->components[column->component].data;
        }
    }
    *out_batch = out;
    return SX_OK;
}

sx_status sx_feed_order(const sx_model_inputs *inputs, const sx_program *program,
                        int out_order[SX_MAX_MODEL_INPUTS], int *out_n)
{
    int n = sx_program_input_count(program);
    for (int i = 0; i < n; i++) {
        const char *name = sx_program_input_name(program, i);
        int found = sx_model_inputs_find(inputs, name);
        if (i >= SX_MAX_MODEL_INPUTS || found < 0) {
            return sx_error(SX_INTERNAL, "the program's input \"%s\" is not fed", name);
        }
        out_order[i] = found;
    }
    *out_n = n;
    return SX_OK;
}

void sx_feed_bind(const sx_feed_batch *batch, const int *order, int n, const void **out_inputs)
{
    for (int i = 0; i < n; i++) {
        out_inputs[i] = batch->inputs[order[i]];
    }
}

/* ---- Rows ---- */

sx_status sx_feed_rows_init(sx_feed_rows *rows, const sx_feed *feed, int64_t room)
{
    *rows = (sx_feed_rows){.n = feed->inputs->n, .room = room};
    rows->ids = sx_alloc((size_t)room, sizeof(int64_t));
    bool made = rows->ids != NULL;
    for (int i = 0; i < rows->n && made; i++) {
        size_t total;
        sx_type row = sx_type_with_batch(feed->inputs->items[i].type, 1);
        row.dtype = feed->columns[i].dtype;
        int64_t bytes = sx_type_bytes(&row);
        if (feed->columns[i].component < 0) {
            continue;
        }
        rows->inputs[i].bytes = (size_t)bytes;
        made = bytes >= 0 && sx_mul_size((size_t)bytes, (size_t)room, &total);
        rows->inputs[i].data = made ? sx_alloc_aligned(total + 1, 64) : NULL;
        made = rows->inputs[i].data != NULL;
    }
    if (!made) {
        sx_feed_rows_deinit(rows);
        return sx_no_memory("for the input");
    }
    return SX_OK;
}

void sx_feed_rows_deinit(sx_feed_rows *rows)
{
    for (int i = 0; i < rows->n; i++) {
        sx_free_aligned(rows->inputs[i].data);
    }
    sx_free(rows->ids);
    *rows = (sx_feed_rows){0};
}

void sx_feed_rows_put(sx_feed_rows *rows, int64_t at, const sx_feed_batch *batch, int64_t from,
                      int64_t count)
{
    for (int i = 0; i < rows->n; i++) {
        size_t bytes = rows->inputs[i].bytes;
        if (rows->inputs[i].data != NULL) {
            memcpy(rows->inputs[i].data + (size_t)at * bytes,
                   (const char *)batch->inputs[i] + (size_t)from * bytes, (size_t)count * bytes);
        }
    }
    memcpy(rows->ids + at, batch->ids + from, (size_t)count * sizeof(int64_t));
}

/* Fills rows [from, room) with copies of row 0. */
static void pad_rows(sx_feed_rows *rows, int64_t from)
{
    for (int i = 0; i < rows->n; i++) {
        char *data = rows->inputs[i].data;
        for (int64_t k = from; k < rows->room && data != NULL; k++) {
            memcpy(data + (size_t)k * rows->inputs[i].bytes, data, rows->inputs[i].bytes);
        }
    }
}

sx_feed_batch sx_feed_rows_batch(const sx_feed_rows *rows, int64_t size)
{
    sx_feed_batch batch = {.ids = rows->ids, .size = size};
    for (int i = 0; i < rows->n; i++) {
        batch.inputs[i] = rows->inputs[i].data;
    }
    return batch;
}

/* ---- Fixed batches ---- */

sx_status sx_rebatch_init(sx_rebatch *r, sx_feed *input, int64_t size)
{
    *r = (sx_rebatch){.input = input, .size = size};
    return sx_feed_rows_init(&r->rows, input, size);
}

void sx_rebatch_deinit(sx_rebatch *r)
{
    sx_feed_rows_deinit(&r->rows);
    *r = (sx_rebatch){0};
}

/* Copies rows of the pending batch to row `at`; returns their number. */
static int64_t take_rows(sx_rebatch *r, int64_t at)
{
    int64_t n = SX_MIN(r->size - at, r->pending.size - r->taken);
    sx_feed_rows_put(&r->rows, at, &r->pending, r->taken, n);
    r->taken += n;
    return n;
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
    pad_rows(&r->rows, rows);
    *out_batch = sx_feed_rows_batch(&r->rows, rows);
    return SX_OK;
}
