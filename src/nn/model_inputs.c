/* See model_inputs.h. */
#include "nn/model_inputs.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "data/feature_spec.h"

const char *const sx_input_kind_names[SX_INPUT_KINDS] = {
    [SX_INPUT_FEATURE] = "feature", [SX_INPUT_LABEL] = "label", [SX_INPUT_WEIGHT] = "weight"};

/* ---- Without names ---- */

sx_status sx_model_inputs_unnamed(const sx_type *features, const sx_type *labels, sx_arena *arena,
                                  sx_model_inputs *out_inputs)
{
    sx_model_input *items = sx_arena_array(arena, 2, sx_model_input);
    if (items == NULL) {
        return sx_no_memory("for a model's inputs");
    }
    items[0] = (sx_model_input){SX_INPUT_FEATURE, SX_FEATURES, SX_FEATURES, *features, NULL};
    items[1] = (sx_model_input){SX_INPUT_LABEL, SX_LABELS, SX_LABELS, *labels, NULL};
    *out_inputs = (sx_model_inputs){.n = 2, .items = items};
    return SX_OK;
}

/* ---- By name ---- */

static const struct {
    const char *kind, *prefix;
    sx_dtype dtype; /* of a row that gives none */
} kinds[SX_INPUT_KINDS] = {
    [SX_INPUT_FEATURE] = {"input", SX_FEATURES "/", SX_F32},
    [SX_INPUT_LABEL] = {"label", SX_LABELS "/", SX_I32},
    [SX_INPUT_WEIGHT] = {"example_weight", "", SX_F32},
};

/* The inputs made so far. */
typedef struct list {
    sx_arena *arena;
    sx_model_input *items; /* [SX_MAX_MODEL_INPUTS] */
    int n;
    const int *image; /* [3], or NULL */
} list;

static sx_status add(list *l, sx_input_kind kind, const char *name, const sx_type *type,
                     const sx_feature_spec *spec)
{
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->items[i].name, name) == 0) {
            return sx_error(SX_INVALID_ARGUMENT, "%s \"%s\": the name is used twice",
                            kinds[kind].kind, name);
        }
    }
    if (l->n == SX_MAX_MODEL_INPUTS) {
        return sx_error(SX_INVALID_ARGUMENT, "more than %d inputs, labels and masks",
                        (int)SX_MAX_MODEL_INPUTS);
    }
    const char *program_name = kind == SX_INPUT_WEIGHT
                                   ? SX_WEIGHTS
                                   : sx_arena_printf(l->arena, "%s%s", kinds[kind].prefix, name);
    if (program_name == NULL) {
        return sx_no_memory("for a model's inputs");
    }
    l->items[l->n] = (sx_model_input){.kind = kind,
                                      .name = name,
                                      .program_name = program_name,
                                      .type = {.dtype = type->dtype, .rank = type->rank + 1},
                                      .spec = spec};
    l->items[l->n].type.dims[0] = SX_BATCH;
    memcpy(l->items[l->n].type.dims + 1, type->dims, (size_t)type->rank * sizeof(type->dims[0]));
    l->n++;
    return SX_OK;
}

static sx_status add_row(list *l, sx_input_kind kind, const sx_feature_spec *row)
{
    sx_feature_spec *spec = sx_arena_array(l->arena, 1, sx_feature_spec);
    sx_type type, mask;
    if (spec == NULL) {
        return sx_no_memory("for a model's inputs");
    }
    *spec = *row;
    spec->dtype = row->dtype != SX_DTYPE_NONE ? row->dtype
                  : row->image                ? SX_STRING
                                              : kinds[kind].dtype;
    SX_TRY(sx_feature_spec_check(spec, kinds[kind].kind, &type, &mask));
    spec->name = sx_arena_strdup(l->arena, row->name);
    spec->key = sx_arena_strdup(l->arena, row->key != NULL ? row->key : row->name);
    spec->default_text =
        row->default_text != NULL ? sx_arena_strdup(l->arena, row->default_text) : NULL;
    if (spec->name == NULL || spec->key == NULL ||
        (row->default_text != NULL && spec->default_text == NULL)) {
        return sx_no_memory("for a model's inputs");
    }
    if (row->image && kind == SX_INPUT_FEATURE) {
        const sx_model_inputs before = {.n = l->n, .items = l->items};
        if (l->image == NULL || l->image[0] == 0 || sx_model_inputs_image(&before) != NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is an image, but %s", spec->name,
                            l->image == NULL || l->image[0] == 0
                                ? "the model does not set .image = {height, width, channels}"
                                : "another input is one, too");
        }
        type = sx_type_of(SX_F32, l->image[0], l->image[1], l->image[2]);
        return add(l, kind, spec->name, &type, spec);
    }
    if (kind == SX_INPUT_WEIGHT && type.dtype == SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT, "example_weight \"%s\" is a string", spec->name);
    }
    SX_TRY(add(l, kind, spec->name, &type, spec));
    if (spec->max_length == 0) {
        return SX_OK;
    }
    const char *name = sx_arena_printf(l->arena, "%s" SX_MASK_SUFFIX, spec->name);
    return name == NULL ? sx_no_memory("for a model's inputs") : add(l, kind, name, &mask, NULL);
}

sx_status sx_model_inputs_named(const sx_feature_spec *features, int n_features,
                                const sx_feature_spec *labels, int n_labels, const char *weight,
                                const int image[3], sx_arena *arena, sx_model_inputs *out_inputs)
{
    list l = {.arena = arena,
              .items = sx_arena_array(arena, SX_MAX_MODEL_INPUTS, sx_model_input),
              .image = image};
    if (l.items == NULL) {
        return sx_no_memory("for a model's inputs");
    }
    if (n_features < 1 || n_features > SX_MAX_FEATURES || n_labels > SX_MAX_LABELS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%d inputs and %d labels, expected 1 to %d inputs and at most %d labels",
                        n_features, n_labels, (int)SX_MAX_FEATURES, (int)SX_MAX_LABELS);
    }
    for (int i = 0; i < n_features; i++) {
        SX_TRY(add_row(&l, SX_INPUT_FEATURE, &features[i]));
    }
    for (int i = 0; i < n_labels; i++) {
        SX_TRY(add_row(&l, SX_INPUT_LABEL, &labels[i]));
    }
    if (weight != NULL) {
        SX_TRY(add_row(&l, SX_INPUT_WEIGHT, &(sx_feature_spec){.name = weight}));
    }
    *out_inputs = (sx_model_inputs){.named = true, .n = l.n, .items = l.items};
    return SX_OK;
}

const sx_model_input *sx_model_inputs_label(const sx_model_inputs *inputs, const char *name)
{
    for (int i = 0; i < inputs->n; i++) {
        const sx_model_input *input = &inputs->items[i];
        if (input->kind == SX_INPUT_LABEL && strcmp(input->name, name) == 0) {
            return input;
        }
    }
    return NULL;
}

/* Adds what preprocessing gives, whose type is that of a batch. */
static sx_status add_given(list *l, sx_input_kind kind, const sx_component *given,
                           const sx_feature_spec *spec)
{
    const sx_type *batch = &given->type;
    sx_feature_spec one = {.name = given->name, .dtype = batch->dtype};
    sx_type type, mask;
    char text[SX_TYPE_TEXT];
    bool fits = batch->rank > 0 && batch->rank <= SX_MAX_FEATURE_RANK + 1 &&
                batch->dims[0] == SX_BATCH && batch->dtype != SX_STRING;
    for (int k = 1; k < batch->rank && fits; k++) {
        one.dims[k - 1] = batch->dims[k];
        fits = batch->dims[k] > 0;
    }
    if (!fits) {
        return sx_error(
            SX_INVALID_ARGUMENT, "%s \"%s\" is %s; expected numbers for each example, [N, ...]",
            sx_input_kind_names[kind], given->name, sx_type_format(batch, text, sizeof(text)));
    }
    SX_TRY(sx_feature_spec_check(&one, sx_input_kind_names[kind], &type, &mask));
    const char *name = sx_arena_strdup(l->arena, given->name);
    return name == NULL ? sx_no_memory("for a model's inputs") : add(l, kind, name, &type, spec);
}

sx_status sx_model_inputs_given(const sx_model_inputs *declared, const sx_component *given, int n,
                                sx_arena *arena, sx_model_inputs *out_inputs)
{
    list l = {.arena = arena, .items = sx_arena_array(arena, SX_MAX_MODEL_INPUTS, sx_model_input)};
    if (l.items == NULL) {
        return sx_no_memory("for a model's inputs");
    }
    for (int i = 0; i < n; i++) {
        if (sx_model_inputs_label(declared, given[i].name) == NULL) {
            SX_TRY(add_given(&l, SX_INPUT_FEATURE, &given[i], NULL));
        }
    }
    for (int i = 0; i < declared->n; i++) {
        const sx_model_input *item = &declared->items[i];
        sx_type type = {.dtype = item->type.dtype, .rank = item->type.rank - 1};
        int made = 0;
        while (made < n && strcmp(given[made].name, item->name) != 0) {
            made++;
        }
        if (item->kind == SX_INPUT_LABEL && made < n) {
            SX_TRY(add_given(&l, SX_INPUT_LABEL, &given[made], item->spec));
        } else if (item->kind == SX_INPUT_LABEL && type.dtype == SX_STRING) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "label \"%s\" is a string, which cannot be sent to a device; "
                            "preprocessing must give its number: sx_output(b, \"%s\", …)",
                            item->name, item->name);
        } else if (item->kind != SX_INPUT_FEATURE) {
            memcpy(type.dims, item->type.dims + 1, (size_t)type.rank * sizeof(type.dims[0]));
            SX_TRY(add(&l, item->kind, item->name, &type, item->spec));
        }
    }
    *out_inputs = (sx_model_inputs){.named = true, .n = l.n, .items = l.items};
    return SX_OK;
}

/* ---- Of a model ---- */

bool sx_model_has_names(const sx_model_def *def)
{
    return def->inputs[0].name != NULL || def->labels[0].name != NULL ||
           def->example_weight != NULL;
}

sx_status sx_model_check_sizes(const sx_model_def *def)
{
    const int *image = def->image;
    bool none = image[0] == 0 && image[1] >= 0 && image[2] >= 0;
    if (!none && (image[0] <= 0 || image[1] <= 0 || image[2] <= 0)) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "model \"%s\" sets .image = {%d, %d, %d}, expected a positive height, width "
            "and number of channels",
            def->name, image[0], image[1], image[2]);
    }
    if (def->features < 0 || def->num_classes < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "model \"%s\" sets %s = %d, expected at least 0",
                        def->name, def->features < 0 ? ".features" : ".num_classes",
                        def->features < 0 ? def->features : def->num_classes);
    }
    return SX_OK;
}

static int count_rows(const sx_feature_spec *rows, int max)
{
    int n = 0;
    while (n < max && rows[n].name != NULL) {
        n++;
    }
    return n;
}

sx_status sx_model_inputs_of(const sx_model_def *def, sx_arena *arena, sx_model_inputs *out_inputs)
{
    const bool image = def->image[0] > 0 && def->image[1] > 0 && def->image[2] > 0;
    const sx_type labels = sx_type_of(SX_I32, SX_BATCH);
    sx_type features;
    SX_TRY(sx_model_check_sizes(def));
    if (sx_model_has_names(def)) {
        bool has_image = false;
        for (int i = 0; i < count_rows(def->inputs, SX_MAX_FEATURES); i++) {
            has_image |= def->inputs[i].image;
        }
        if ((def->image[0] > 0 && !has_image) || def->features > 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "model \"%s\" sets .image or .features and also .inputs, .labels or "
                            ".example_weight; declare all features in .inputs, labels in .labels; "
                            "the input that is the image has .image = true",
                            def->name);
        }
        SX_TRY(sx_model_inputs_named(def->inputs, count_rows(def->inputs, SX_MAX_FEATURES),
                                     def->labels, count_rows(def->labels, SX_MAX_LABELS),
                                     def->example_weight, def->image, arena, out_inputs),
               "model \"%s\"", def->name);
        for (int i = 0; i < out_inputs->n && def->preprocess == NULL; i++) {
            if (out_inputs->items[i].type.dtype == SX_STRING) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "model \"%s\": %s \"%s\" is a string, which cannot be sent to a "
                                "device; make numbers of it in a function, .preprocess",
                                def->name, kinds[out_inputs->items[i].kind].kind,
                                out_inputs->items[i].name);
            }
        }
        return SX_OK;
    }
    if (def->preprocess != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "model \"%s\" sets .preprocess but not .inputs, the features that its "
                        "function takes",
                        def->name);
    }
    if (!image && def->features <= 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "model \"%s\" sets neither .image = {height, width, channels} nor "
                        ".features = n nor .inputs",
                        def->name);
    }
    features = image ? sx_type_of(SX_F32, SX_BATCH, def->image[0], def->image[1], def->image[2])
                     : sx_type_of(SX_F32, SX_BATCH, def->features);
    return sx_model_inputs_unnamed(&features, &labels, arena, out_inputs);
}

const sx_model_input *sx_model_inputs_image(const sx_model_inputs *inputs)
{
    for (int i = 0; i < inputs->n; i++) {
        if (inputs->items[i].spec != NULL && inputs->items[i].spec->image) {
            return &inputs->items[i];
        }
    }
    return NULL;
}

int sx_model_inputs_find(const sx_model_inputs *inputs, const char *program_name)
{
    for (int i = 0; i < inputs->n; i++) {
        if (strcmp(inputs->items[i].program_name, program_name) == 0) {
            return i;
        }
    }
    return -1;
}

const sx_model_input *sx_model_inputs_first(const sx_model_inputs *inputs, sx_input_kind kind)
{
    for (int i = 0; i < inputs->n; i++) {
        if (inputs->items[i].kind == kind) {
            return &inputs->items[i];
        }
    }
    return NULL;
}

bool sx_mode_feeds(sx_mode mode, const sx_model_input *input)
{
    return mode != SX_PREDICT || input->kind == SX_INPUT_FEATURE;
}

bool sx_mode_takes(sx_mode mode, const sx_model_input *input)
{
    return sx_mode_feeds(mode, input) && (input->kind != SX_INPUT_WEIGHT || mode == SX_TRAIN);
}

sx_status sx_model_inputs_specs(const sx_model_inputs *inputs, sx_mode mode, sx_arena *arena,
                                const sx_feature_spec **out_specs, int *out_n)
{
    sx_feature_spec *specs = sx_arena_array(arena, inputs->n + 1, sx_feature_spec);
    int n = 0;
    if (specs == NULL) {
        return sx_no_memory("for a model's inputs");
    }
    for (int i = 0; i < inputs->n; i++) {
        if (inputs->items[i].spec != NULL && sx_mode_feeds(mode, &inputs->items[i])) {
            specs[n++] = *inputs->items[i].spec;
        }
    }
    *out_specs = specs;
    *out_n = n;
    return SX_OK;
}

/* ---- In the model's function ---- */

static sx_value find_value(sx_builder *b, const char *kind, const char *name,
                           const sx_named_value *map, int n, const char *file, int line)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(map[i].name, name) == 0) {
            return map[i].value;
        }
    }
    const char *slash = strrchr(file, '/');
    if (sx_builder_failed(b)) {
        return SX_NO_VALUE;
    }
    const char *names[SX_MAX_MODEL_INPUTS];
    sx_buf known;
    sx_buf_init(&known, 1 << 14);
    for (int i = 0; i < n && i < SX_MAX_MODEL_INPUTS; i++) {
        names[i] = map[i].name;
    }
    sx_nearest_list(name, names, (size_t)SX_MIN(n, SX_MAX_MODEL_INPUTS), &known);
    sx_builder_fail(b, sx_error(SX_NOT_FOUND, "%s:%d: the model has no %s \"%s\" %s",
                                slash != NULL ? slash + 1 : file, line, kind, name,
                                sx_buf_text(&known)));
    sx_buf_deinit(&known);
    return SX_NO_VALUE;
}

sx_value sx_feature_at(sx_builder *b, const sx_batch *in, const char *name, const char *file,
                       int line)
{
    return find_value(b, "feature", name, in->feature_map, in->n_features, file, line);
}

sx_value sx_label_at(sx_builder *b, const sx_batch *in, const char *name, const char *file,
                     int line)
{
    return in->mode == SX_PREDICT
               ? SX_NO_VALUE
               : find_value(b, "label", name, in->label_map, in->n_labels, file, line);
}
