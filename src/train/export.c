/* A trainer's model as a SavedModel. See trainer.h. */
#include "savedmodel/export.h"

#include <sextant/graph.h>

#include "base/checked.h"
#include "graph/passes/passes.h"
#include "nn/preprocess_graph.h"
#include "train/state.h"

static sx_status read_variable(void *user, const char *name, const sx_type *type, void *out)
{
    sx_session *session = user;
    int i = sx_session_find_variable(session, name);
    if (i < 0 || !sx_type_equal(&sx_session_variable_at(session, i)->type, type)) {
        return sx_error(SX_INTERNAL, "the session has no variable \"%s\" of this type", name);
    }
    return sx_session_read_variable(session, i, out);
}

/* The preprocessing of encoded images when serving. */
static sx_status choose_preprocess(const sx_trainer *t, const char *recipe, sx_preprocess *out)
{
    *out = t->info.preprocess;
    if (recipe == NULL) {
        return SX_OK;
    }
    if (!t->info.has_preprocess) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "recipe \"%s\" is for models on images, but \"%s\" is a model on arrays",
                        recipe, t->info.model);
    }
    return sx_preprocess_recipe(recipe, t->info.preprocess.height, t->info.preprocess.width,
                                t->info.preprocess.channels, out);
}

/* Exported models compute in float32 whatever the training precision: TensorFlow has few bfloat16
 * kernels for CPUs, and they are slow. The caller owns *out. */
static sx_status float32_graph(const sx_trainer *t, sx_graph **out)
{
    static sx_status (*const passes[])(const sx_graph *, sx_graph **) = {
        sx_pass_drop_bf16, sx_pass_simplify, sx_pass_drop_dead};
    sx_graph *g = NULL;
    for (size_t i = 0; i < SX_COUNT(passes); i++) {
        sx_graph *next = NULL;
        sx_status status = passes[i](g != NULL ? g : t->graphs.by_mode[SX_PREDICT], &next);
        sx_graph_destroy(g);
        if (status != SX_OK) {
            return status;
        }
        g = next;
    }
    *out = g;
    return SX_OK;
}

static sx_status export_graph(sx_trainer *t, const sx_graph *graph, const char *base,
                              const char *version, const sx_serving_input *in, char **out_dir)
{
    sx_preprocess preprocess;
    SX_TRY(choose_preprocess(t, in->recipe, &preprocess));
    const sx_model_input *image = sx_model_inputs_image(&t->info.declared);
    const sx_graph *whole = t->graphs.by_mode[SX_RUN_PREPROCESS];
    sx_graph *features = NULL;
    if (whole != NULL) {
        SX_TRY(sx_preprocess_features(whole, &t->info.declared, &features));
    }
    const sx_export_request request = {
        .graph = graph,
        .read_variable = read_variable,
        .user = t->session,
        .preprocess = t->info.has_preprocess ? &preprocess : NULL,
        .image_input = image != NULL ? image->program_name : NULL,
        .preprocess_graph = features,
        .image_bytes_key = in->image_bytes,
        .features_key = in->features,
        .input_prefix = t->info.inputs.named ? SX_FEATURES "/" : NULL,
        .no_tensors = in->no_tensors,
        .class_names = t->info.class_names,
        .n_classes = t->info.class_names != NULL ? t->info.n_classes : 0,
        .base = base,
        .version = version,
    };
    sx_status status = sx_export_saved_model(&request, out_dir);
    sx_graph_destroy(features);
    return sx_status_annotate(status, __FILE__, __LINE__, "exporting");
}

sx_status sx_trainer_export(sx_trainer *t, const char *base, const char *version,
                            const sx_serving_input *serving, char **out_dir)
{
    static const sx_serving_input usual = {0};
    sx_program *program;
    sx_graph *wide = NULL;
    char *dir = NULL;
    SX_TRY(sx_trainer_check_chief(t, "export"));
    if (!t->has_state) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the model has not been trained, and no checkpoint is loaded");
    }
    SX_TRY(sx_trainer_program(t, SX_PREDICT, &program));
    if (t->info.precision == SX_BF16) {
        SX_TRY(float32_graph(t, &wide));
    }
    const sx_graph *graph = wide != NULL ? wide : t->graphs.by_mode[SX_PREDICT];
    sx_status status =
        export_graph(t, graph, base, version, serving != NULL ? serving : &usual, &dir);
    sx_graph_destroy(wide);
    SX_TRY(status);
    if (out_dir != NULL) {
        *out_dir = dir;
    } else {
        sx_text_free(dir);
    }
    return SX_OK;
}
