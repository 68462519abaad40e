#include "precision_args.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sextant/data.h>

#include "backends/cpu/options.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data_args.h"
#include "image/encode.h"
#include "npy_files.h"
#include "run_inputs.h"
#include "savedmodel/saved_model_read.h"
#include "savedmodel/versions.h"

enum { EXAMPLES = 256 };

sx_status sx_precision_args_check(sx_invocation *inv, const sx_precision_args *args)
{
    const bool is_int8 = args->precision != NULL && strcmp(args->precision, "int8") == 0;
    sx_status status = SX_OK;
    if (is_int8 && args->calibration.count == 0) {
        status = sx_error(SX_INVALID_ARGUMENT,
                          "--precision int8 needs examples of the inputs: give --calibration");
    } else if (!is_int8 && (args->calibration.count > 0 || args->examples > 0)) {
        status =
            sx_error(SX_INVALID_ARGUMENT, "--%s is for --precision int8",
                     args->calibration.count > 0 ? sx_option_typed(inv, "calibration")
                                                 : sx_option_typed(inv, "calibration-examples"));
    }
    if (status == SX_OK && sx_precision_args_want_bfloat16(args)) {
        sx_say_bfloat16();
    }
    return sx_usage(inv, status);
}

bool sx_precision_args_want_bfloat16(const sx_precision_args *args)
{
    return args->precision != NULL && strcmp(args->precision, "bfloat16") == 0;
}

void sx_say_bfloat16(void)
{
    if (!sx_cpu_has_bf16()) {
        fprintf(stderr, "bfloat16: this processor multiplies it no faster than float32; the CPU "
                        "computes in float32\n");
    }
}

/* ---- The report ---- */

static void print_report(void *user, const sx_int8_report *r)
{
    (void)user;
    fprintf(stderr, "int8: %d of %d products, calibrated with %" PRId64 " example%s of %s\n",
            r->products, r->products + r->skipped, r->examples, r->examples == 1 ? "" : "s",
            r->signature);
    if (r->output != NULL) {
        fprintf(stderr,
                "int8: %s differs from float32 by %.3g on average, %.3g at most (of %.3g)\n",
                r->output, r->mean_difference, r->max_difference, r->greatest);
    }
    if (!isnan(r->agreement)) {
        fprintf(stderr, "int8: the same answer as float32 for %.2f %% of the examples\n",
                100 * r->agreement);
    }
    if (!isnan(r->accuracy)) {
        fprintf(stderr, "int8: accuracy %.2f %%, in float32 %.2f %%\n", 100 * r->accuracy,
                100 * r->accuracy_float32);
    }
}

/* ---- Examples of data ---- */

typedef struct reading {
    sx_invocation *inv;
    const sx_signature_tensor *input;
    int64_t examples, n;
    sx_bytes *images; /* [examples] */
    int64_t *labels;  /* [examples]; NULL: none */
} reading;

static sx_status copy_bytes(reading *r, const void *data, size_t size)
{
    void *copy = sx_arena_memdup(&r->inv->arena, data, size);
    if (copy == NULL) {
        return sx_no_memory("for the calibration");
    }
    r->images[r->n] = (sx_bytes){copy, size};
    return SX_OK;
}

/* uint8 [H,W] or [H,W,C], as PNG: what a model decodes. */
static sx_status encode_pixels(reading *r, const sx_tensor *pixels)
{
    const sx_type *t = &pixels->type;
    const sx_image image = {.height = (int)t->dims[0],
                            .width = (int)t->dims[1],
                            .channels = t->rank == 3 ? (int)t->dims[2] : 1,
                            .dtype = SX_U8,
                            .pixels = pixels->data};
    sx_buf png;
    sx_buf_init(&png, 0);
    sx_status status = sx_png_encode(&image, &png);
    if (status == SX_OK) {
        status = copy_bytes(r, sx_buf_text(&png), png.size);
    }
    sx_buf_deinit(&png);
    return status;
}

static sx_status take_element(reading *r, const struct sx_batch_data *element, int image, int label)
{
    const sx_tensor *x = &element->components[image];
    if (x->type.dtype == SX_STRING) {
        const sx_bytes *bytes = x->data;
        SX_TRY(copy_bytes(r, bytes->data, bytes->size));
    } else {
        SX_TRY(encode_pixels(r, x));
    }
    if (r->labels != NULL) {
        const sx_tensor *y = &element->components[label];
        r->labels[r->n] =
            y->type.dtype == SX_I64 ? *(const int64_t *)y->data : *(const int32_t *)y->data;
    }
    r->n++;
    return SX_OK;
}

static bool is_image(const sx_type *t)
{
    return (t->dtype == SX_STRING && t->rank == 0) ||
           (t->dtype == SX_U8 && (t->rank == 2 || t->rank == 3));
}

static sx_status read_elements(reading *r, sx_dataset *data)
{
    const int image = sx_dataset_find(data, "image"), label = sx_dataset_find(data, "label");
    const sx_schema *schema = sx_dataset_schema(data);
    sx_iterator *it;
    if (image < 0 || !is_image(&schema->components[image].type)) {
        return sx_error(SX_INVALID_ARGUMENT, "--calibration: the data has no images");
    }
    const sx_type *y = label >= 0 ? &schema->components[label].type : NULL;
    const bool has_labels = y != NULL && y->rank == 0 && (y->dtype == SX_I64 || y->dtype == SX_I32);
    r->examples = SX_MIN(r->examples, sx_dataset_count(data));
    r->images = sx_arena_array(&r->inv->arena, r->examples + 1, sx_bytes);
    r->labels = has_labels ? sx_arena_array(&r->inv->arena, r->examples + 1, int64_t) : NULL;
    if (r->images == NULL || (has_labels && r->labels == NULL)) {
        return sx_no_memory("for the calibration");
    }
    SX_TRY(sx_iterator_create(data, &it, .workers = -1));
    sx_status status = SX_OK;
    while (status == SX_OK && r->n < r->examples) {
        const struct sx_batch_data *element;
        status = sx_iterator_next(it, &element);
        status = status == SX_OK ? take_element(r, element, image, label) : status;
    }
    sx_iterator_destroy(it);
    return status;
}

/* Drawn at random: the first ones of class folders are all of one class. */
static sx_status read_data(reading *r, const sx_words *words, sx_int8_calibration *out)
{
    const char *spec;
    sx_dataset *data = NULL;
    sx_data_options how = {.struct_size = sizeof(how)};
    if (r->input == NULL || r->input->type.dtype != SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "--calibration: the signature takes arrays; give [NAME=]X.npy (\"sextant "
                        "data take --size\" makes one of images)");
    }
    SX_TRY(sx_data_spec(r->inv, words, &spec));
    SX_TRY(sx_data_args_open(spec, &how, &data, NULL));
    sx_status status = sx_dataset_shuffle(&data, .seed = 1);
    status = status == SX_OK ? read_elements(r, data) : status;
    sx_dataset_release(data);
    SX_TRY(status);
    sx_tensor *inputs = sx_arena_array(&r->inv->arena, 1, sx_tensor);
    if (inputs == NULL) {
        return sx_no_memory("for the calibration");
    }
    inputs[0] = (sx_tensor){sx_type_of(SX_STRING, r->n), r->images};
    out->inputs = inputs;
    out->labels = r->labels;
    return SX_OK;
}

/* ---- Examples in arrays ---- */

static bool is_array(const char *word)
{
    const size_t n = strlen(word);
    return n > 4 && strcmp(word + n - 4, ".npy") == 0;
}

/* The first rows of the array for an input, copied. */
static sx_status take_array(reading *r, const sx_signature *signature, const char *key,
                            const sx_npy_file *files, int n, sx_tensor *out)
{
    const sx_npy_file *found = NULL;
    for (int k = 0; k < n; k++) {
        const bool same =
            files[k].name == NULL ? signature->n_inputs == 1 : strcmp(files[k].name, key) == 0;
        found = same ? &files[k] : found;
    }
    if (found == NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "--calibration: input \"%s\" of signature %s is missing; give %s=X.npy",
                        key, signature->key, key);
    }
    *out = found->tensor;
    if (out->type.rank > 0) {
        out->type.dims[0] = SX_MIN(out->type.dims[0], r->examples);
    }
    out->data =
        sx_arena_memdup(&r->inv->arena, found->tensor.data, (size_t)sx_type_bytes(&out->type));
    return out->data != NULL ? SX_OK : sx_no_memory("for the calibration");
}

static sx_status read_arrays(reading *r, const sx_signature *signature, const sx_words *words,
                             sx_int8_calibration *out)
{
    sx_npy_file *files;
    sx_status status = SX_OK;
    sx_tensor *inputs = sx_arena_array(&r->inv->arena, signature->n_inputs + 1, sx_tensor);
    if (inputs == NULL) {
        return sx_no_memory("for the calibration");
    }
    SX_TRY(sx_npy_files_read(r->inv, words, &files), "--calibration");
    for (size_t i = 0; i < signature->n_inputs && status == SX_OK; i++) {
        status =
            take_array(r, signature, signature->inputs[i].key, files, words->count, &inputs[i]);
    }
    sx_npy_files_free(files, words->count);
    out->inputs = inputs;
    return status;
}

/* ---- Reading ---- */

static bool all_arrays(const sx_words *words)
{
    bool arrays = true;
    for (int i = 0; i < words->count; i++) {
        arrays = arrays && is_array(words->items[i]);
    }
    return arrays;
}

static bool takes_images(const sx_signature *s)
{
    return s->n_inputs == 1 && s->inputs[0].type.dtype == SX_STRING;
}

/* The signature given, else serving_default; or if that takes images where arrays are given, or the
 * other way round, the first that does not. */
static sx_status choose_signature(const sx_saved_model *model, const char *given, bool arrays,
                                  const sx_signature **out)
{
    size_t n;
    const sx_signature *all = sx_saved_model_signatures(model, &n);
    sx_status status =
        sx_saved_model_find_signature(model, given != NULL ? given : "serving_default", out);
    if (given != NULL || (status == SX_OK && takes_images(*out) != arrays)) {
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        if (takes_images(&all[i]) != arrays) {
            sx_status_free(status);
            *out = &all[i];
            return SX_OK;
        }
    }
    return status;
}

static sx_status read_for(sx_invocation *inv, const sx_precision_args *args,
                          const sx_signature *signature, sx_int8_calibration *out)
{
    reading r = {.inv = inv,
                 .input = signature->n_inputs == 1 ? &signature->inputs[0] : NULL,
                 .examples = args->examples > 0 ? args->examples : EXAMPLES};
    return all_arrays(&args->calibration) ? read_arrays(&r, signature, &args->calibration, out)
                                          : read_data(&r, &args->calibration, out);
}

sx_status sx_precision_args_read(sx_invocation *inv, const sx_precision_args *args, const char *dir,
                                 const char *tags, const char *signature,
                                 const sx_int8_calibration **out)
{
    const sx_signature *found;
    sx_saved_model *model;
    *out = NULL;
    if (args->calibration.count == 0) {
        return SX_OK;
    }
    sx_int8_calibration *c = sx_arena_new(&inv->arena, sx_int8_calibration);
    sx_budget memory;
    sx_budget_init(&memory, "the model", 0, NULL);
    if (c == NULL) {
        return sx_no_memory("for the calibration");
    }
    SX_TRY(sx_version_find(dir, &inv->arena, &dir));
    SX_TRY(sx_saved_model_open_within(dir, tags, &memory, &model));
    sx_status status = choose_signature(model, signature, all_arrays(&args->calibration), &found);
    if (status == SX_OK) {
        c->signature = sx_arena_strdup(&inv->arena, found->key);
        status = c->signature == NULL ? sx_no_memory("for the calibration")
                                      : read_for(inv, args, found, c);
    }
    sx_saved_model_close(model);
    c->on_report = print_report;
    *out = c;
    return status;
}
