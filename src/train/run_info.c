/* See run_info.h. */
#include "train/run_info.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { MAX_CLASSES = 1 << 20 };

/* ---- Writing ---- */

static json_t *type_to_json(const sx_type *type)
{
    json_t *shape = json_array();
    for (int i = 0; i < type->rank; i++) {
        json_array_append_new(shape, type->dims[i] == SX_BATCH ? json_null()
                                                               : json_integer(type->dims[i]));
    }
    return json_pack("{s:s, s:o}", "dtype", sx_dtype_name(type->dtype), "shape", shape);
}

/* {"dtype": "int32", "shape": [2]}: with the dimensions as they are declared. */
static json_t *spec_to_json(const sx_feature_spec *spec)
{
    json_t *shape = json_array();
    for (int i = 0; i < SX_MAX_FEATURE_RANK && spec->dims[i] != 0; i++) {
        json_array_append_new(shape, json_integer(spec->dims[i]));
    }
    json_t *json = json_pack("{s:s, s:s, s:o, s:s}", "name", spec->name, "dtype",
                             sx_dtype_name(spec->dtype), "shape", shape, "key", spec->key);
    if (json != NULL && spec->image) {
        json_object_set_new(json, "image", json_true());
    }
    if (json != NULL && spec->max_length > 0) {
        json_object_update_new(
            json, json_pack("{s:I, s:b, s:f}", "max_length", (json_int_t)spec->max_length,
                            "truncate", (int)spec->truncate, "padding_value", spec->padding_value));
    }
    if (json != NULL && spec->optional) {
        json_object_set_new(json, "default_value",
                            spec->dtype != SX_STRING     ? json_real(spec->default_value)
                            : spec->default_text != NULL ? json_string(spec->default_text)
                                                         : json_string(""));
    }
    return json;
}

/* {"features": [...], "labels": [...], "example_weight": null}: what a model with named inputs
 * declares. */
static json_t *inputs_to_json(const sx_model_inputs *inputs)
{
    json_t *lists[2];
    for (int k = SX_INPUT_FEATURE; k <= SX_INPUT_LABEL; k++) {
        lists[k] = json_array();
        for (int i = 0; i < inputs->n; i++) {
            if ((int)inputs->items[i].kind == k && inputs->items[i].spec != NULL) {
                json_array_append_new(lists[k], spec_to_json(inputs->items[i].spec));
            }
        }
    }
    const sx_model_input *weight = sx_model_inputs_first(inputs, SX_INPUT_WEIGHT);
    return json_pack("{s:o, s:o, s:s?}", "features", lists[SX_INPUT_FEATURE], "labels",
                     lists[SX_INPUT_LABEL], "example_weight", weight != NULL ? weight->name : NULL);
}

/* What preprocessing gives, [{"name": "city", "dtype": "float32", "shape": [null, 10]}]: features,
 * or the labels that it changes. */
static json_t *given_to_json(const sx_run_info *info, sx_input_kind kind)
{
    const sx_model_inputs *inputs = &info->inputs;
    json_t *list = json_array();
    for (int i = 0; i < inputs->n; i++) {
        const sx_model_input *was = sx_model_inputs_label(&info->declared, inputs->items[i].name);
        if (inputs->items[i].kind == kind &&
            (was == NULL || !sx_type_equal(&was->type, &inputs->items[i].type))) {
            json_t *one = type_to_json(&inputs->items[i].type);
            json_object_set_new(one, "name", json_string(inputs->items[i].name));
            json_array_append_new(list, one);
        }
    }
    return list;
}

static bool changes_labels(const sx_run_info *info)
{
    bool any = false;
    for (int i = 0; i < info->inputs.n && info->has_program; i++) {
        const sx_model_input *was =
            sx_model_inputs_label(&info->declared, info->inputs.items[i].name);
        any = any || (was != NULL && !sx_type_equal(&was->type, &info->inputs.items[i].type));
    }
    return any;
}

static json_t *texts_to_json(const char *const *texts, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(array, json_string(texts[i]));
    }
    return array;
}

static json_t *params_to_json(const sx_run_info *info)
{
    json_t *object = json_object();
    for (int i = 0; i < info->n_params; i++) {
        json_object_set_new(object, info->param_names[i], json_string(info->param_values[i]));
    }
    return object;
}

static json_t *data_to_json(const sx_run_info *info)
{
    return json_pack("{s:s?, s:s?, s:I, s:s?, s:s?, s:i}", "spec", info->data, "description",
                     info->data_description, "records", (json_int_t)info->records, "image_key",
                     info->image_key, "label_key", info->label_key, "label_base", info->label_base);
}

sx_status sx_run_info_to_json(const sx_run_info *info, json_t **out)
{
    const bool named = info->inputs.named;
    json_t *preprocess = NULL;
    if (info->has_preprocess) {
        SX_TRY(sx_preprocess_to_json(&info->preprocess, &preprocess));
    }
    json_t *classes =
        info->class_names != NULL ? texts_to_json(info->class_names, info->n_classes) : json_null();
    json_t *config = info->config != NULL ? json_incref(info->config) : json_object();
    /* seed as text: JSON's integers are signed */
    char seed[32];
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)info->seed);
    *out = json_pack(
        "{s:i, s:{s:s, s:s, s:s?}, s:o, s:s, s:s, s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o, s:I, s:o, "
        "s:f, s:o*}",
        "format",
        changes_labels(info)                                                  ? 4
        : info->has_program || sx_model_inputs_image(&info->declared) != NULL ? 3
        : named                                                               ? 2
                                                                              : 1,
        "model", "name", info->model, "source", info->source, "sha256", info->source_sha256,
        "params", params_to_json(info), "seed", seed, "precision", sx_dtype_name(info->precision),
        "preprocess", preprocess != NULL ? preprocess : json_null(), "class_names", classes,
        "inputs", named ? inputs_to_json(&info->declared) : NULL, "preprocessed_features",
        info->has_program ? given_to_json(info, SX_INPUT_FEATURE) : NULL, "features",
        named ? NULL : type_to_json(&info->inputs.items[SX_INPUT_FEATURE].type), "labels",
        named ? NULL : type_to_json(&info->inputs.items[SX_INPUT_LABEL].type), "data",
        data_to_json(info), "execution_batch", (json_int_t)info->execution_batch, "config", config,
        "learning_rate", info->learning_rate, "preprocessed_labels",
        changes_labels(info) ? given_to_json(info, SX_INPUT_LABEL) : NULL);
    return *out != NULL
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "%s: a string is not valid UTF-8", SX_RUN_INFO_FILE);
}

/* ---- Reading ---- */

static sx_status wrong(const char *what)
{
    return sx_error(SX_DATA_LOSS, "%s is missing or corrupt", what);
}

sx_status sx_run_copy_text(sx_arena *arena, const json_t *json, const char **out)
{
    *out = NULL;
    if (json_is_string(json)) {
        *out = sx_arena_strdup(arena, json_string_value(json));
        return *out != NULL ? SX_OK : sx_no_memory("for a run");
    }
    return SX_OK;
}

static sx_status type_from_json(const json_t *json, const char *what, sx_type *out)
{
    const json_t *shape = json_object_get(json, "shape");
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    sx_type type = {0};
    if (dtype == NULL || !sx_dtype_parse(dtype, &type.dtype) || !json_is_array(shape) ||
        json_array_size(shape) > SX_MAX_RANK) {
        return wrong(what);
    }
    type.rank = (int)json_array_size(shape);
    for (int i = 0; i < type.rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        type.dims[i] = json_is_null(dim) ? SX_BATCH : json_integer_value(dim);
        if (!json_is_null(dim) && type.dims[i] < 1) {
            return wrong(what);
        }
    }
    *out = type;
    return SX_OK;
}

static sx_status spec_from_json(const json_t *json, sx_feature_spec *out)
{
    const json_t *shape = json_object_get(json, "shape"),
                 *otherwise = json_object_get(json, "default_value");
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    sx_feature_spec spec = {.name = json_string_value(json_object_get(json, "name")),
                            .key = json_string_value(json_object_get(json, "key")),
                            .max_length = json_integer_value(json_object_get(json, "max_length")),
                            .truncate = json_is_true(json_object_get(json, "truncate")),
                            .padding_value =
                                json_number_value(json_object_get(json, "padding_value")),
                            .optional = otherwise != NULL,
                            .image = json_is_true(json_object_get(json, "image")),
                            .default_value = json_number_value(otherwise),
                            .default_text = json_string_value(otherwise)};
    if (spec.name == NULL || dtype == NULL || !sx_dtype_parse(dtype, &spec.dtype) ||
        !json_is_array(shape) || json_array_size(shape) > SX_MAX_FEATURE_RANK) {
        return wrong("inputs");
    }
    for (size_t i = 0; i < json_array_size(shape); i++) {
        spec.dims[i] = json_integer_value(json_array_get(shape, i));
        if (spec.dims[i] < 1) {
            return wrong("inputs");
        }
    }
    *out = spec;
    return SX_OK;
}

static sx_status specs_from_json(const json_t *json, int max, sx_feature_spec *out, int *out_n)
{
    size_t n = json_array_size(json);
    if (!json_is_array(json) || n > (size_t)max) {
        return wrong("inputs");
    }
    for (size_t i = 0; i < n; i++) {
        SX_TRY(spec_from_json(json_array_get(json, i), &out[i]));
    }
    *out_n = (int)n;
    return SX_OK;
}

/* Appends what preprocessing gives. */
static sx_status given_from_json(const json_t *json, const char *what, sx_component *out, int *n)
{
    const size_t count = json_array_size(json);
    if (!json_is_array(json) || count > (size_t)(SX_MAX_COMPONENTS - *n)) {
        return wrong(what);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(json, i);
        out[*n].name = json_string_value(json_object_get(one, "name"));
        if (out[*n].name == NULL) {
            return wrong(what);
        }
        SX_TRY(type_from_json(one, what, &out[(*n)++].type));
    }
    return SX_OK;
}

/* Named inputs, or else the types of the features and labels. */
static sx_status inputs_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    const json_t *inputs = json_object_get(json, "inputs"),
                 *preprocessed = json_object_get(json, "preprocessed_features"),
                 *labels_given = json_object_get(json, "preprocessed_labels");
    if (inputs == NULL) {
        sx_type features, labels;
        SX_TRY(type_from_json(json_object_get(json, "features"), "features", &features));
        SX_TRY(type_from_json(json_object_get(json, "labels"), "labels", &labels));
        SX_TRY(sx_model_inputs_unnamed(&features, &labels, arena, &info->inputs));
        info->declared = info->inputs;
        return SX_OK;
    }
    sx_feature_spec features[SX_MAX_FEATURES], labels[SX_MAX_LABELS];
    int n_features, n_labels;
    SX_TRY(specs_from_json(json_object_get(inputs, "features"), SX_MAX_FEATURES, features,
                           &n_features));
    SX_TRY(specs_from_json(json_object_get(inputs, "labels"), SX_MAX_LABELS, labels, &n_labels));
    const int image[] = {info->preprocess.height, info->preprocess.width,
                         info->preprocess.channels}; /* zeros without preprocessing */
    SX_TRY(sx_model_inputs_named(features, n_features, labels, n_labels,
                                 json_string_value(json_object_get(inputs, "example_weight")),
                                 image, arena, &info->declared));
    info->has_program = preprocessed != NULL;
    if (preprocessed == NULL) {
        info->inputs = info->declared;
        return SX_OK;
    }
    sx_component given[SX_MAX_COMPONENTS];
    int n = 0;
    SX_TRY(given_from_json(preprocessed, "preprocessed_features", given, &n));
    if (n < 1) {
        return wrong("preprocessed_features");
    }
    if (labels_given != NULL) {
        SX_TRY(given_from_json(labels_given, "preprocessed_labels", given, &n));
    }
    return sx_model_inputs_given(&info->declared, given, n, arena, &info->inputs);
}

static sx_status texts_from_json(const json_t *json, sx_arena *arena, const char *const **out,
                                 int *n)
{
    size_t count = json_array_size(json);
    const char **texts = sx_arena_array(arena, count + 1, const char *);
    if (texts == NULL || count > MAX_CLASSES) {
        return sx_no_memory("for a run");
    }
    for (size_t i = 0; i < count; i++) {
        SX_TRY(sx_run_copy_text(arena, json_array_get(json, i), &texts[i]));
        if (texts[i] == NULL) {
            return wrong("class_names");
        }
    }
    *out = count > 0 ? texts : NULL;
    *n = (int)count;
    return SX_OK;
}

static sx_status params_from_json(json_t *json, sx_arena *arena, sx_run_info *info)
{
    size_t count = json_object_size(json);
    const char **names = sx_arena_array(arena, count + 1, const char *);
    const char **values = sx_arena_array(arena, count + 1, const char *);
    if (names == NULL || values == NULL) {
        return sx_no_memory("for a run");
    }
    info->param_names = names;
    info->param_values = values;
    const char *name;
    json_t *value;
    json_object_foreach(json, name, value)
    {
        names[info->n_params] = sx_arena_strdup(arena, name);
        SX_TRY(sx_run_copy_text(arena, value, &values[info->n_params]));
        if (names[info->n_params] == NULL || values[info->n_params] == NULL) {
            return wrong("params");
        }
        info->n_params++;
    }
    return SX_OK;
}

static sx_status data_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "spec"), &info->data));
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "description"), &info->data_description));
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "image_key"), &info->image_key));
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "label_key"), &info->label_key));
    info->records = json_integer_value(json_object_get(json, "records"));
    info->label_base = (int)json_integer_value(json_object_get(json, "label_base"));
    return SX_OK;
}

static sx_status model_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "name"), &info->model));
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "source"), &info->source));
    SX_TRY(sx_run_copy_text(arena, json_object_get(json, "sha256"), &info->source_sha256));
    return info->model != NULL && info->source != NULL ? SX_OK : wrong("model");
}

static sx_status preprocess_from_json(const json_t *json, sx_run_info *info)
{
    info->has_preprocess = json_is_object(json);
    return info->has_preprocess ? sx_preprocess_from_json(json, &info->preprocess) : SX_OK;
}

/* The default is float32. */
static sx_status precision_from_json(const json_t *json, sx_run_info *info)
{
    const char *name = json_string_value(json);
    info->precision = SX_F32;
    if (name != NULL && (!sx_dtype_parse(name, &info->precision) ||
                         (info->precision != SX_F32 && info->precision != SX_BF16))) {
        return wrong("precision");
    }
    return SX_OK;
}

sx_status sx_run_info_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    json_int_t format = json_integer_value(json_object_get(json, "format"));
    if (format > SX_RUN_FORMAT) {
        return sx_error(
            SX_UNIMPLEMENTED,
            "format %lld was written by a newer version; this version supports up to %d",
            (long long)format, (int)SX_RUN_FORMAT);
    }
    const char *seed = json_string_value(json_object_get(json, "seed"));
    info->execution_batch = json_integer_value(json_object_get(json, "execution_batch"));
    if (format < 1 || seed == NULL || info->execution_batch < 1) {
        return wrong("format, seed or execution_batch");
    }
    info->train_batch =
        json_integer_value(json_object_get(json_object_get(json, "config"), "train_batch_size"));
    info->seed = strtoull(seed, NULL, 10);
    info->learning_rate = json_number_value(json_object_get(json, "learning_rate"));
    SX_TRY(precision_from_json(json_object_get(json, "precision"), info));
    SX_TRY(model_from_json(json_object_get(json, "model"), arena, info));
    SX_TRY(params_from_json(json_object_get(json, "params"), arena, info));
    SX_TRY(preprocess_from_json(json_object_get(json, "preprocess"), info), "preprocess");
    SX_TRY(texts_from_json(json_object_get(json, "class_names"), arena, &info->class_names,
                           &info->n_classes));
    SX_TRY(inputs_from_json(json, arena, info));
    return data_from_json(json_object_get(json, "data"), arena, info);
}
