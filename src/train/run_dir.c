/* See run_dir.h. */
#include "train/run_dir.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ir.h"
#include "io/commit.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"
#include "nn/model_program.h"
#include "nn/preprocess_graph.h"
#include "train/checkpoint.h"
#include "train/history.h"

enum { MAX_JSON_BYTES = 1 << 24, MAX_GRAPH_BYTES = 1 << 30, MAX_CLASSES = 1 << 20 };

static const char INFO_FILE[] = "sextant.json", BEST_DIR[] = "best";
static const char *const graph_files[SX_RUN_GRAPHS] = {
    [SX_TRAIN] = "graphs/train.graph",
    [SX_EVAL] = "graphs/eval.graph",
    [SX_PREDICT] = "graphs/predict.graph",
    [SX_RUN_PREPROCESS] = "graphs/preprocess.graph",
};

void sx_run_graphs_destroy(sx_run_graphs *graphs)
{
    for (int i = 0; i < SX_RUN_GRAPHS; i++) {
        sx_graph_destroy(graphs->by_mode[i]);
        sx_status_free(graphs->lost[i]);
        graphs->by_mode[i] = NULL;
        graphs->lost[i] = SX_OK;
    }
}

bool sx_run_exists(const char *dir)
{
    char *path = NULL;
    sx_status status = sx_path_join(dir, INFO_FILE, &path);
    bool exists = status == SX_OK && sx_path_exists(path);
    sx_status_free(status);
    sx_free(path);
    return exists || sx_backup_exists(dir, INFO_FILE);
}

/* ---- Checks before a new run ---- */

/* The files that have copies. */
static const char *const copied[] = {"graphs/train.graph",   "graphs/eval.graph",
                                     "graphs/predict.graph", "graphs/preprocess.graph",
                                     SX_HISTORY_FILE,        INFO_FILE};

/* What a run consists of besides its checkpoints. sextant.json is deleted last: a run that is half
 * deleted is still a run and can be deleted again. */
static const char *const parts[] = {"checkpoint", BEST_DIR, "history.json", "graphs", INFO_FILE};

static bool is_part(const char *name)
{
    bool found = strncmp(name, SX_CHECKPOINT_BASENAME "-", sizeof(SX_CHECKPOINT_BASENAME)) == 0;
    for (size_t i = 0; i < SX_COUNT(parts); i++) {
        found |= strcmp(name, parts[i]) == 0;
    }
    return found;
}

sx_status sx_run_check_place(const char *dir)
{
    enum { NAMED = 3 };
    sx_paths names = {0};
    if (!sx_path_exists(dir) || sx_run_exists(dir)) {
        return SX_OK;
    }
    SX_TRY(sx_dir_list(dir, &names));
    bool has_part = false;
    size_t others = 0;
    sx_buf text;
    sx_buf_init(&text, 1 << 12);
    for (size_t i = 0; i < names.count; i++) {
        has_part |= is_part(names.items[i]);
        if (strcmp(names.items[i], "lost+found") != 0 && others++ < NAMED) {
            sx_buf_printf(&text, "%s%s", others > 1 ? ", " : "", names.items[i]);
        }
    }
    sx_status status = SX_OK;
    if (others > 0 && !has_part) {
        status = sx_error(SX_FAILED_PRECONDITION,
                          "%s is not empty and not a run directory (it has %s%s)", dir,
                          sx_buf_text(&text), others > NAMED ? ", …" : "");
    }
    sx_buf_deinit(&text);
    sx_paths_deinit(&names);
    return status;
}

/* ---- sextant.json: writing ---- */

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

static sx_status info_to_json(const sx_run_info *info, json_t **out)
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
               : sx_error(SX_INVALID_ARGUMENT, "%s: a string is not valid UTF-8", INFO_FILE);
}

/* ---- sextant.json: reading ---- */

static sx_status wrong(const char *what)
{
    return sx_error(SX_DATA_LOSS, "%s is missing or corrupt", what);
}

static sx_status copy_text(sx_arena *arena, const json_t *json, const char **out)
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
        SX_TRY(copy_text(arena, json_array_get(json, i), &texts[i]));
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
        SX_TRY(copy_text(arena, value, &values[info->n_params]));
        if (names[info->n_params] == NULL || values[info->n_params] == NULL) {
            return wrong("params");
        }
        info->n_params++;
    }
    return SX_OK;
}

static sx_status data_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    SX_TRY(copy_text(arena, json_object_get(json, "spec"), &info->data));
    SX_TRY(copy_text(arena, json_object_get(json, "description"), &info->data_description));
    SX_TRY(copy_text(arena, json_object_get(json, "image_key"), &info->image_key));
    SX_TRY(copy_text(arena, json_object_get(json, "label_key"), &info->label_key));
    info->records = json_integer_value(json_object_get(json, "records"));
    info->label_base = (int)json_integer_value(json_object_get(json, "label_base"));
    return SX_OK;
}

static sx_status model_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    SX_TRY(copy_text(arena, json_object_get(json, "name"), &info->model));
    SX_TRY(copy_text(arena, json_object_get(json, "source"), &info->source));
    SX_TRY(copy_text(arena, json_object_get(json, "sha256"), &info->source_sha256));
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

static sx_status info_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
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

/* ---- The four files and their copies ----
 *
 * sextant.json has the CRC-32C of each graph and, as its member "crc32c", its own: damage that
 * still parses is found, too. Runs that were written without checksums have no copies. */

typedef struct info_check {
    bool sealed; /* a checksum is required */
    json_t *json;
} info_check;

static sx_status check_info(void *user, const char *text, size_t size)
{
    info_check *check = user;
    json_error_t error;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_DATA_LOSS, "line %d: %s", error.line, error.text);
    }
    sx_status status = check->sealed || json_object_get(json, SX_JSON_SEAL) != NULL
                           ? sx_json_check_seal(json)
                           : SX_OK;
    if (status != SX_OK) {
        json_decref(json);
        return status;
    }
    check->json = json;
    return SX_OK;
}

/* `user` is the checksum as text, NULL = unknown. */
static sx_status check_graph(void *user, const char *text, size_t size)
{
    char actual[9];
    const char *expected = user;
    snprintf(actual, sizeof(actual), "%08" PRIx32, sx_crc32c(0, text, size));
    return expected == NULL || strcmp(actual, expected) == 0
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "the checksum is %s, expected %s", actual, expected);
}

static sx_backup_file info_file(const char *dir, info_check *check, sx_warn_fn *warn,
                                void *warn_user)
{
    *check = (info_check){.sealed = sx_backup_exists(dir, INFO_FILE)};
    return (sx_backup_file){.dir = dir,
                            .name = INFO_FILE,
                            .max_bytes = MAX_JSON_BYTES,
                            .check = check_info,
                            .check_user = check,
                            .warn = warn,
                            .warn_user = warn_user};
}

static sx_backup_file graph_file(const char *dir, int mode, const char *crc32c, sx_warn_fn *warn,
                                 void *warn_user)
{
    return (sx_backup_file){.dir = dir,
                            .name = graph_files[mode],
                            .max_bytes = MAX_GRAPH_BYTES,
                            .check = check_graph,
                            .check_user = (void *)(uintptr_t)crc32c,
                            .warn = warn,
                            .warn_user = warn_user};
}

/* Adds to an error that the run is lost what is left of it. */
static sx_status say_what_is_left(const char *dir, sx_status lost)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    if (status == SX_OK && list.count > 0) {
        status = sx_error(sx_status_code(lost),
                          "%s; %zu checkpoint%s left: train a new run in another directory with "
                          "--warm-start-from %s, or restore the file",
                          sx_status_message(lost), list.count, list.count == 1 ? " is" : "s are",
                          list.items[list.count - 1].prefix);
    } else if (status == SX_OK) {
        status = sx_error(sx_status_code(lost),
                          "%s; there are no checkpoints: start over with "
                          "--fresh",
                          sx_status_message(lost));
    }
    sx_status_free(lost);
    sx_arena_deinit(&arena);
    return status;
}

/* ---- Reading a run ---- */

static sx_status checksums_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    for (int mode = 0; mode < SX_RUN_GRAPHS; mode++) {
        SX_TRY(
            copy_text(arena, json_object_get(json, graph_files[mode]), &info->graph_crc32c[mode]));
    }
    return SX_OK;
}

sx_status sx_run_read(const char *dir, sx_arena *arena, sx_warn_fn *warn, void *warn_user,
                      sx_run_info *out_info)
{
    info_check check;
    char *text = NULL;
    size_t size = 0;
    sx_run_info info = {0};
    const sx_backup_file file = info_file(dir, &check, warn, warn_user);
    sx_status status = sx_backup_read(&file, &text, &size);
    sx_free(text);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = sx_run_check_new(dir);
        return status != SX_OK ? status
                               : sx_error(SX_NOT_FOUND, "%s is not a run directory (it has no %s)",
                                          dir, INFO_FILE);
    }
    if (sx_status_code(status) == SX_DATA_LOSS) {
        return say_what_is_left(dir, status);
    }
    SX_TRY(status);
    status = info_from_json(check.json, arena, &info);
    if (status == SX_OK) {
        status = checksums_from_json(json_object_get(check.json, "checksums"), arena, &info);
    }
    json_decref(check.json);
    SX_TRY(status, "%s/%s", dir, INFO_FILE);
    *out_info = info;
    return SX_OK;
}

sx_status sx_run_check_new(const char *dir)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    if (status == SX_OK && list.count > 0) {
        const char *newest = list.items[list.count - 1].prefix;
        status =
            sx_error(SX_FAILED_PRECONDITION,
                     "%s contains %zu checkpoint%s (%s), but %s and its copy in %s are missing; "
                     "to keep the weights, train in another directory with --warm-start-from "
                     "%s; to delete them, start over with --fresh",
                     dir, list.count, list.count == 1 ? "" : "s", sx_path_basename(newest),
                     INFO_FILE, SX_BACKUP_DIR, newest);
    }
    sx_arena_deinit(&arena);
    return status;
}

static sx_status read_graph(const char *dir, int mode, const sx_run_info *info, sx_warn_fn *warn,
                            void *warn_user, sx_graph **out)
{
    char *text = NULL;
    size_t size = 0;
    const sx_backup_file file = graph_file(dir, mode, info->graph_crc32c[mode], warn, warn_user);
    sx_status status = sx_backup_read(&file, &text, &size);
    if (status != SX_OK) {
        bool lost =
            sx_status_code(status) == SX_NOT_FOUND || sx_status_code(status) == SX_DATA_LOSS;
        return lost ? say_what_is_left(dir, status) : status;
    }
    status = sx_graph_parse(text, size, out);
    sx_free(text);
    const sx_code code = sx_status_code(status);
    if (code == SX_INVALID_ARGUMENT || code == SX_DATA_LOSS) {
        sx_status damaged =
            sx_error(SX_DATA_LOSS, "%s/%s: damaged, and there is no intact copy in %s: %s", dir,
                     graph_files[mode], SX_BACKUP_DIR, sx_status_message(status));
        sx_status_free(status);
        return say_what_is_left(dir, damaged);
    }
    if (status == SX_OK) {
        status = mode == SX_RUN_PREPROCESS
                     ? sx_preprocess_graph_check(*out, &info->declared, &info->inputs)
                     : sx_program_check_inputs(*out, (sx_mode)mode, &info->inputs);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s/%s", dir, graph_files[mode]);
}

static int graph_count(const sx_run_info *info)
{
    return info->has_program ? SX_RUN_GRAPHS : SX_RUN_PREPROCESS;
}

sx_status sx_run_read_graphs(const char *dir, const sx_run_info *info, sx_warn_fn *warn,
                             void *warn_user, sx_run_graphs *out_graphs)
{
    sx_run_graphs graphs = {{NULL}, {SX_OK}};
    for (int mode = 0; mode < graph_count(info); mode++) {
        sx_status status = read_graph(dir, mode, info, warn, warn_user, &graphs.by_mode[mode]);
        const sx_code code = sx_status_code(status);
        if (code == SX_NOT_FOUND || code == SX_DATA_LOSS) {
            graphs.lost[mode] = status;
        } else if (status != SX_OK) {
            sx_run_graphs_destroy(&graphs);
            return status;
        }
    }
    *out_graphs = graphs;
    return SX_OK;
}

sx_status sx_run_graph_lost(const sx_run_graphs *graphs, int which)
{
    sx_status lost = graphs->lost[which];
    return lost == SX_OK ? SX_OK : sx_error(sx_status_code(lost), "%s", sx_status_message(lost));
}

/* ---- Writing a run ---- */

/* Commits the files, then the copies, sextant.json last each time: the run is there with it. Takes
 * sextant.json without checksums. */
static sx_status write_files(const char *dir, json_t *info, const char *const graphs[SX_RUN_GRAPHS])
{
    char *graph_dir = NULL, *text = NULL;
    sx_commit *commit = NULL;
    json_t *checksums = json_object();
    for (int mode = 0; mode < SX_RUN_GRAPHS && graphs[mode] != NULL; mode++) {
        char crc32c[9];
        snprintf(crc32c, sizeof(crc32c), "%08" PRIx32,
                 sx_crc32c(0, graphs[mode], strlen(graphs[mode])));
        json_object_set_new(checksums, graph_files[mode], json_string(crc32c));
    }
    json_object_set_new(info, "checksums", checksums);
    sx_status status;
    SX_TRY_GOTO(status, sx_json_seal(info), done);
    SX_TRY_GOTO(status, sx_json_text(info, JSON_INDENT(2), &text), done);
    SX_TRY_GOTO(status, sx_path_join(dir, "graphs", &graph_dir), done);
    SX_TRY_GOTO(status, sx_dir_create(graph_dir), done);
    SX_TRY_GOTO(status, sx_backup_make_dir(dir), done);
    for (int copies = 0; copies <= 1; copies++) {
        sx_status (*add)(sx_commit *, const char *, const char *, const char *, size_t) =
            copies ? sx_backup_add_copy : sx_backup_add_file;
        SX_TRY_GOTO(status, sx_commit_create(&commit), done);
        for (int mode = 0; mode < SX_RUN_GRAPHS && graphs[mode] != NULL; mode++) {
            SX_TRY_GOTO(status,
                        add(commit, dir, graph_files[mode], graphs[mode], strlen(graphs[mode])),
                        done);
        }
        SX_TRY_GOTO(status, add(commit, dir, INFO_FILE, text, strlen(text)), done);
        SX_TRY_GOTO(status, sx_commit_finish(commit), done);
        sx_commit_destroy(commit);
        commit = NULL;
    }
done:
    sx_commit_destroy(commit);
    sx_free(graph_dir);
    sx_free(text);
    return status;
}

sx_status sx_run_write(const char *dir, const sx_run_info *info, const sx_run_graphs *graphs)
{
    json_t *json = NULL;
    char *texts[SX_RUN_GRAPHS] = {NULL};
    sx_status status = info_to_json(info, &json);
    for (int mode = 0; mode < graph_count(info) && status == SX_OK; mode++) {
        status = sx_run_graph_lost(graphs, mode);
        status = status == SX_OK ? sx_graph_print(graphs->by_mode[mode], &texts[mode]) : status;
    }
    if (status == SX_OK) {
        status = write_files(dir, json, (const char *const *)texts);
    }
    for (int mode = 0; mode < SX_RUN_GRAPHS; mode++) {
        sx_text_free(texts[mode]);
    }
    json_decref(json);
    return status;
}

/* A run that was written without checksums, before there was preprocessing, gets them, and copies.
 */
static sx_status add_checksums(const char *dir, json_t *info)
{
    char *texts[SX_RUN_GRAPHS] = {NULL};
    sx_status status = SX_OK;
    for (int mode = 0; mode < SX_RUN_PREPROCESS && status == SX_OK; mode++) {
        size_t size = 0;
        const sx_backup_file file = graph_file(dir, mode, NULL, NULL, NULL);
        status = sx_backup_read(&file, &texts[mode], &size);
    }
    if (status == SX_OK) {
        status = write_files(dir, info, (const char *const *)texts);
    }
    for (int mode = 0; mode < SX_RUN_GRAPHS; mode++) {
        sx_free(texts[mode]);
    }
    return status;
}

sx_status sx_run_repair(const char *dir, sx_warn_fn *warn, void *warn_user)
{
    info_check check;
    sx_backup_file file = info_file(dir, &check, warn, warn_user);
    sx_status status = sx_backup_repair(&file);
    json_t *info = check.json, *checksums = json_object_get(info, "checksums");
    if (status == SX_OK && checksums == NULL) {
        status = add_checksums(dir, info);
    }
    for (int mode = 0; mode < SX_RUN_GRAPHS && status == SX_OK; mode++) {
        const char *crc32c = json_string_value(json_object_get(checksums, graph_files[mode]));
        if (crc32c != NULL) {
            file = graph_file(dir, mode, crc32c, warn, warn_user);
            status = sx_backup_repair(&file);
        }
    }
    json_decref(info);
    return status;
}

/* ---- Another model's directory ---- */

/* The variable's type; NULL if the graph has no such variable. */
static const sx_type *variable_type(const sx_graph *g, const char *name)
{
    int i = sx_graph_find_arg(g, name);
    return i >= 0 && g->args[i].kind == SX_ARG_VARIABLE ? sx_graph_type(g, g->args[i].value) : NULL;
}

static sx_status differs(const char *dir, const char *name, const sx_type *has,
                         const sx_type *wants)
{
    char a[SX_TYPE_TEXT] = "missing", b[SX_TYPE_TEXT] = "missing";
    if (has != NULL) {
        sx_type_format(has, a, sizeof(a));
    }
    if (wants != NULL) {
        sx_type_format(wants, b, sizeof(b));
    }
    return sx_error(SX_FAILED_PRECONDITION,
                    "%s contains another model: variable \"%s\" is %s there, but %s in this model; "
                    "use another model directory, or start over with --fresh",
                    dir, name, a, b);
}

sx_status sx_run_check_variables(const char *dir, const sx_graph *stored, const sx_graph *wanted)
{
    for (int i = 0; i < wanted->n_args; i++) {
        const sx_arg *arg = &wanted->args[i];
        if (arg->kind != SX_ARG_VARIABLE) {
            continue;
        }
        const sx_type *wants = sx_graph_type(wanted, arg->value),
                      *has = variable_type(stored, arg->name);
        if (has == NULL || !sx_type_equal(has, wants)) {
            return differs(dir, arg->name, has, wants);
        }
    }
    for (int i = 0; i < stored->n_args; i++) {
        const sx_arg *arg = &stored->args[i];
        if (arg->kind == SX_ARG_VARIABLE && variable_type(wanted, arg->name) == NULL) {
            return differs(dir, arg->name, sx_graph_type(stored, arg->value), NULL);
        }
    }
    return SX_OK;
}

/* ---- Deleting ---- */

static sx_status delete_named(const char *dir, const char *name)
{
    char *path = NULL;
    SX_TRY(sx_path_join(dir, name, &path));
    sx_status status = sx_dir_remove(path);
    sx_free(path);
    return status;
}

static sx_status sweep_folder(const char *dir, const char *name)
{
    char *path = NULL;
    SX_TRY(sx_path_join(dir, name, &path));
    sx_status status = sx_path_is_dir(path) ? sx_checkpoints_sweep(path) : SX_OK;
    sx_free(path);
    return status;
}

sx_status sx_run_clean_up(const char *dir, int64_t best_step,
                          const sx_checkpoint_retention *retention)
{
    char *best = NULL;
    SX_TRY(sx_checkpoints_sweep(dir));
    SX_TRY(sx_checkpoints_adopt(dir, retention));
    SX_TRY(sweep_folder(dir, "graphs"));
    SX_TRY(sweep_folder(dir, BEST_DIR));
    SX_TRY(sweep_folder(dir, SX_BACKUP_DIR));
    if (best_step < 0) {
        return SX_OK; /* history.json may be lost: no reason to delete the best checkpoint */
    }
    SX_TRY(sx_path_join(dir, BEST_DIR, &best));
    sx_status status = sx_checkpoint_keep_only(best, best_step);
    sx_free(best);
    return status;
}

static sx_status delete_checkpoints(const char *dir)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    for (size_t i = 0; i < list.count && status == SX_OK; i++) {
        if (strncmp(sx_path_basename(list.items[i].prefix), SX_CHECKPOINT_BASENAME "-",
                    sizeof(SX_CHECKPOINT_BASENAME)) == 0) {
            status = sx_checkpoint_delete(list.items[i].prefix);
        }
    }
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_run_delete(const char *dir)
{
    if (!sx_path_exists(dir)) {
        return SX_OK;
    }
    SX_TRY(delete_checkpoints(dir));
    SX_TRY(sx_checkpoints_sweep(dir));
    SX_TRY(sx_backup_delete(dir, copied, SX_COUNT(copied)));
    for (size_t i = 0; i < SX_COUNT(parts); i++) {
        SX_TRY(delete_named(dir, parts[i]));
    }
    return SX_OK;
}
