/* Builds a run from a model and data: its description, its parameters, its graphs. See
 * state.h. */
#include <string.h>

#include "base/memory.h"
#include "graph/ir.h"
#include "io/fetch.h"
#include "nn/model_program.h"
#include "nn/optimizer.h"
#include "nn/preprocess_graph.h"
#include "train/choose_strategy.h"
#include "train/misfit.h"
#include "train/state.h"

/* The device batch of evaluation and prediction: large enough to use the machine well, small enough
 * to waste little on the last batch. Stored with the run, because results depend on it bit by bit.
 */
enum { EXECUTION_BATCH = 32 };

/* ---- Run description ---- */

static sx_status copy_text(sx_trainer *t, const char *text, const char **out)
{
    *out = text != NULL ? sx_arena_strdup(&t->arena, text) : NULL;
    return text == NULL || *out != NULL ? SX_OK : sx_no_memory("building a run");
}

static sx_status copy_class_names(sx_trainer *t, const sx_dataset *data)
{
    int n = 0;
    const char *const *names = sx_dataset_class_names(data, &n);
    if (names == NULL || n == 0) {
        return SX_OK;
    }
    const char **copy = sx_arena_array(&t->arena, n, const char *);
    if (copy == NULL) {
        return sx_no_memory("building a run");
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(copy_text(t, names[i], &copy[i]));
    }
    t->info.class_names = copy;
    t->info.n_classes = n;
    return SX_OK;
}

static sx_type with_batch_dim(const sx_dataset *data, int component)
{
    sx_type type = sx_dataset_schema(data)->components[component].type;
    if (sx_dataset_batch_size(data) > 0 || type.rank == SX_MAX_RANK) {
        return type;
    }
    sx_type batch = {.dtype = type.dtype, .rank = type.rank + 1, .dims = {SX_BATCH}};
    memcpy(batch.dims + 1, type.dims, (size_t)type.rank * sizeof(type.dims[0]));
    return batch;
}

/* The inputs of a model without named ones: the features that it declares or else those of the
 * data; labels as in the data, where integers of any width are int32 in the program. */
static sx_status describe_unnamed_inputs(sx_trainer *t, const sx_trainer_options *o)
{
    const bool shaped = o->def->image[0] > 0 || o->def->features > 0;
    sx_type features, labels = sx_type_of(SX_I32, SX_BATCH);
    int features_at = -1, labels_at = -1;
    if (o->data != NULL) {
        sx_feed_components(o->data, &features_at, &labels_at);
    }
    if (labels_at >= 0) {
        SX_TRY(sx_check_for_device(&sx_dataset_schema(o->data)->components[labels_at]));
        labels = with_batch_dim(o->data, labels_at);
        labels.dtype = sx_dtype_is_integer(labels.dtype) ? SX_I32 : labels.dtype;
    }
    if (shaped || o->data == NULL) {
        SX_TRY(sx_model_inputs_of(o->def, &t->arena, &t->info.inputs));
        features = t->info.inputs.items[0].type;
    } else {
        SX_TRY(sx_check_for_device(&sx_dataset_schema(o->data)->components[features_at]));
        features = with_batch_dim(o->data, features_at);
    }
    SX_TRY(sx_model_inputs_unnamed(&features, &labels, &t->arena, &t->info.inputs));
    t->info.has_preprocess =
        o->def->image[0] > 0 && (o->data == NULL || sx_feed_needs_preprocess(o->data));
    return t->info.has_preprocess ? sx_model_preprocess(o->def, o->recipe, o->augment,
                                                        o->label_base, &t->info.preprocess)
                                  : SX_OK;
}

static sx_status describe_inputs(sx_trainer *t, const sx_trainer_options *o)
{
    SX_TRY(sx_model_check_sizes(o->def));
    t->info.has_program = o->def->preprocess != NULL;
    SX_TRY(sx_model_has_names(o->def) || t->info.has_program
               ? sx_model_inputs_of(o->def, &t->arena, &t->info.inputs)
               : describe_unnamed_inputs(t, o));
    t->info.declared = t->info.inputs;
    if (sx_model_inputs_image(&t->info.declared) != NULL) {
        t->info.has_preprocess = true;
        SX_TRY(sx_model_preprocess(o->def, o->recipe, o->augment, 0, &t->info.preprocess));
    }
    return SX_OK;
}

static sx_status describe_source(sx_trainer *t, const sx_trainer_options *o)
{
    const char *source = o->source != NULL ? o->source : "function";
    SX_TRY(copy_text(t, o->def->name != NULL ? o->def->name : "model", &t->info.model));
    SX_TRY(copy_text(t, source, &t->info.source));
    if (o->source != NULL && strcmp(o->source, "zoo") != 0) {
        char hex[65];
        SX_TRY(sx_file_sha256(o->source, hex));
        SX_TRY(copy_text(t, hex, &t->info.source_sha256));
    }
    return SX_OK;
}

static sx_status describe_data(sx_trainer *t, const sx_trainer_options *o)
{
    SX_TRY(copy_text(t, o->data_spec, &t->info.data));
    SX_TRY(copy_text(t, o->data_description, &t->info.data_description));
    SX_TRY(copy_text(t, o->image_key, &t->info.image_key));
    SX_TRY(copy_text(t, o->label_key, &t->info.label_key));
    t->info.label_base = o->label_base;
    if (o->data != NULL) {
        t->info.records = sx_dataset_records(o->data);
        SX_TRY(copy_class_names(t, o->data));
    }
    return SX_OK;
}

/* The run is read again later, with warnings. */
static void ignore_warning(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* The requested precision, or else that of the run being continued. */
static sx_status describe_precision(sx_trainer *t)
{
    sx_run_info stored = {.precision = SX_F32};
    t->info.precision = t->config.precision;
    if (t->info.precision != SX_DTYPE_NONE) {
        return SX_OK;
    }
    if (t->config.model_dir != NULL && !t->config.fresh && sx_run_exists(t->config.model_dir)) {
        SX_TRY(sx_run_read(t->config.model_dir, &t->arena, ignore_warning, NULL, &stored));
    }
    t->info.precision = stored.precision;
    return SX_OK;
}

static sx_status describe(sx_trainer *t, const sx_trainer_options *o)
{
    SX_TRY(describe_precision(t));
    t->info.seed = t->config.tf_random_seed;
    t->info.execution_batch = EXECUTION_BATCH;
    SX_TRY(describe_source(t, o));
    SX_TRY(describe_data(t, o));
    return describe_inputs(t, o);
}

/* ---- Parameters ---- */

/* The caller's parameters; num_classes from the model or the data if the caller did not set it. */
static sx_status complete_params(const sx_trainer *t, const sx_trainer_options *o,
                                 sx_params *params)
{
    char text[32];
    SX_TRY(sx_params_add_all(params, o->params));
    SX_TRY(sx_params_check_reserved(params));
    int classes = o->def->num_classes > 0 ? o->def->num_classes : t->info.n_classes;
    snprintf(text, sizeof(text), "%d", classes);
    return classes > 0 ? sx_params_set_default(params, "num_classes", text) : SX_OK;
}

static sx_status keep_params(sx_trainer *t, const sx_params *params)
{
    int n = sx_params_count(params);
    const char **names = sx_arena_array(&t->arena, n + 1, const char *);
    const char **values = sx_arena_array(&t->arena, n + 1, const char *);
    if (names == NULL || values == NULL) {
        return sx_no_memory("building a run");
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(copy_text(t, sx_params_name(params, i), &names[i]));
        SX_TRY(copy_text(t, sx_params_value(params, i), &values[i]));
    }
    t->info.param_names = names;
    t->info.param_values = values;
    t->info.n_params = n;
    return SX_OK;
}

/* ---- Graphs ---- */

/* Examples in a step's batch, and steps of an epoch, 0 = unknown. */
static void measure_steps(const sx_trainer *t, const sx_trainer_options *o, int64_t *out_batch,
                          int64_t *out_steps)
{
    int64_t own = o->data != NULL ? sx_dataset_batch_size(o->data) : 0;
    int64_t count = o->data != NULL ? sx_dataset_count(o->data) : SX_ENDLESS;
    int64_t batch = own > 0 ? own : t->config.train_batch_size;
    *out_batch = o->step_batch > 0 ? o->step_batch : batch;
    if (o->steps_per_epoch > 0 || count == SX_ENDLESS) {
        *out_steps = o->steps_per_epoch;
    } else {
        *out_steps = own > 0 ? count : (count + batch - 1) / batch;
    }
}

static sx_status keep_rate_text(sx_trainer *t, const sx_program_request *r)
{
    char text[256];
    sx_optimizer_rate_text(r->out_optimizer, r->batch, r->steps_per_epoch, text, sizeof(text));
    return text[0] != '\0' ? copy_text(t, text, &t->rate_text) : SX_OK;
}

static sx_status build_graphs(sx_trainer *t, const sx_trainer_options *o, const sx_params *params,
                              sx_run_graphs *out)
{
    sx_optimizer optimizer = {0};
    sx_program_request request = {.def = o->def,
                                  .params = params,
                                  .inputs = &t->info.inputs,
                                  .optimizer = o->optimizer,
                                  .replicas = sx_run_config_replicas(&t->config),
                                  .precision = t->info.precision,
                                  .out_optimizer = &optimizer,
                                  .out_host = &t->host};
    measure_steps(t, o, &request.batch, &request.steps_per_epoch);
    if (t->info.has_program) {
        SX_TRY(sx_build_preprocess(o->def, params, &t->info.declared, &t->arena,
                                   &out->by_mode[SX_RUN_PREPROCESS], &t->info.inputs));
    }
    for (int mode = 0; mode < 3; mode++) {
        request.mode = (sx_mode)mode;
        request.step = mode == SX_TRAIN ? o->train_step : NULL;
        request.step_trains_run = request.step != NULL;
        SX_TRY(sx_build_program(&request, &out->by_mode[mode]));
    }
    t->info.learning_rate = optimizer.learning_rate;
    return keep_rate_text(t, &request);
}

sx_status sx_trainer_stored_params(const sx_trainer *t, sx_params *params)
{
    for (int i = 0; i < t->info.n_params; i++) {
        SX_TRY(sx_params_set(params, t->info.param_names[i], t->info.param_values[i]));
    }
    return SX_OK;
}

sx_status sx_trainer_know_model(sx_trainer *t, const sx_model_def *def)
{
    sx_params *params = NULL;
    sx_graph *graph = NULL;
    SX_TRY(sx_params_create(&params));
    sx_status status = sx_trainer_stored_params(t, params);
    if (status == SX_OK) {
        status = sx_build_program(&(sx_program_request){.def = def,
                                                        .params = params,
                                                        .inputs = &t->info.inputs,
                                                        .mode = SX_EVAL,
                                                        .precision = t->info.precision,
                                                        .out_host = &t->host},
                                  &graph);
    }
    sx_graph_destroy(graph);
    sx_params_destroy(params);
    return status;
}

sx_status sx_trainer_build(sx_trainer *t, const sx_trainer_options *o)
{
    sx_params *params = NULL;
    SX_TRY(describe(t, o));
    SX_TRY(sx_params_create(&params));
    sx_status status = complete_params(t, o, params);
    bool bad_params = status != SX_OK;
    if (status == SX_OK) {
        status = build_graphs(t, o, params, &t->graphs);
        sx_status values = sx_params_status(params);
        bad_params = values != SX_OK;
        sx_status_free(values);
        bool shaped = o->def->image[0] > 0 || o->def->features > 0 || sx_model_has_names(o->def);
        if (!shaped && !bad_params && o->data != NULL && sx_feed_needs_preprocess(o->data)) {
            status = sx_status_annotate(status, __FILE__, __LINE__,
                                        "model \"%s\" sets neither .image = {height, width, "
                                        "channels} nor .features = n nor .inputs, and gets the "
                                        "images as they are",
                                        t->info.model);
        }
    }
    if (status == SX_OK) {
        status = sx_params_check_used(params);
        bad_params = status != SX_OK;
    }
    if (bad_params && o->out_bad_params != NULL) {
        *o->out_bad_params = true;
    }
    if (status == SX_OK) {
        status = keep_params(t, params);
    }
    if (status == SX_OK) {
        status = sx_check_classes(&t->info, t->graphs.by_mode[SX_PREDICT],
                                  sx_params_was_asked(params, "num_classes"));
    }
    sx_params_destroy(params);
    return status;
}
