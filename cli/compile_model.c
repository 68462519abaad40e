/* See compile_model.h. */
#include "compile_model.h"

#include <string.h>

#include "base/memory.h"
#include "graph/specialize_examples.h"
#include "nn/model_program.h"
#include "savedmodel/import_library.h"
#include "savedmodel/versions.h"

/* ---- What is stored already ---- */

/* A usage error for options that were fixed when a stored graph was built. */
static sx_status no_choices(sx_invocation *inv, const sx_compile_model_request *r, const char *kind)
{
    const char *given = r->precision != NULL                          ? "--precision"
                        : r->image_size > 0                           ? "--image-size"
                        : r->params->count > 0 || inv->rest.count > 0 ? "a parameter"
                                                                      : NULL;
    return given == NULL ? SX_OK
                         : sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                                  "%s is compiled as it was built; %s applies "
                                                  "only to zoo models and C files",
                                                  kind, given));
}

static sx_status open_run(sx_invocation *inv, const sx_compile_model_request *r,
                          sx_compile_model *out)
{
    static const char *const names[] = {[SX_TRAIN] = "train", [SX_PREDICT] = "predict"};
    sx_run_info info = {0};
    SX_TRY(no_choices(inv, r, "a run"));
    SX_TRY(sx_run_read(r->name, &inv->arena, NULL, NULL, &info));
    SX_TRY(sx_run_read_graphs(r->name, &info, NULL, NULL, &out->run));
    out->precision = info.precision;
    out->graph = out->run.by_mode[r->mode];
    SX_TRY(sx_run_graph_lost(&out->run, r->mode));
    return out->graph != NULL
               ? SX_OK
               : sx_error(SX_NOT_FOUND, "%s has no %s graph", r->name, names[r->mode]);
}

static sx_status open_saved(sx_invocation *inv, const sx_compile_model_request *r, const char *dir,
                            sx_compile_model *out)
{
    const char *signature = r->signature != NULL ? r->signature : SX_SERVING_DEFAULT;
    const sx_signature *found = NULL;
    SX_TRY(no_choices(inv, r, "a SavedModel"));
    if (r->mode != SX_PREDICT) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "%s is a SavedModel, which has no training step; use "
                                      "--mode predict, or name the run it was exported from",
                                      r->name));
    }
    SX_TRY(sx_saved_model_open(dir, &out->saved));
    SX_TRY(sx_saved_model_find_signature(out->saved, signature, &found));
    size_t n;
    const sx_signature *all = sx_saved_model_signatures(out->saved, &n);
    sx_status *refused = sx_arena_array(&inv->arena, n + 1, sx_status);
    if (refused == NULL) {
        return sx_no_memory("for a model");
    }
    sx_status status = sx_import_library(out->saved, NULL, &out->library, refused);
    for (size_t i = 0; i < n; i++) {
        if (status == SX_OK && &all[i] == found) {
            status = sx_status_annotate(refused[i], __FILE__, __LINE__, "%s, signature \"%s\"", dir,
                                        found->key);
        } else {
            sx_status_free(refused[i]);
        }
    }
    SX_TRY(status);
    int device = 0;
    SX_TRY(sx_specialize_examples(out->library, sx_library_find(out->library, found->key), NULL,
                                  &out->examples, &device));
    if (out->examples == NULL) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s, signature \"%s\": it is no single program for any batch size: its "
                        "examples depend on one another, or shapes are known only when it runs",
                        r->name, found->key);
    }
    out->graph = out->examples->steps[device].graph;
    out->precision = SX_F32;
    return SX_OK;
}

/* ---- What is built now ---- */

static sx_status build(sx_invocation *inv, const sx_compile_model_request *r, sx_compile_model *out)
{
    const sx_model_args *args = &out->args;
    out->precision = r->precision == NULL                    ? r->by_default
                     : strcmp(r->precision, "bfloat16") == 0 ? SX_BF16
                                                             : SX_F32;
    sx_model_inputs inputs;
    SX_TRY(sx_model_inputs_of(args->def, &inv->arena, &inputs));
    const bool resized = r->image_size > 0 && !inputs.named && inputs.items[0].type.rank == 4;
    if (resized) {
        sx_type image = inputs.items[0].type;
        image.dims[1] = image.dims[2] = r->image_size;
        SX_TRY(sx_model_inputs_unnamed(&image, &inputs.items[1].type, &inv->arena, &inputs));
    }
    const sx_program_request request = {
        .def = args->def,
        .params = args->params,
        .inputs = resized ? &inputs : NULL,
        .mode = r->mode,
        .precision = out->precision,
    };
    SX_TRY(sx_build_program(&request, &out->built));
    out->graph = out->built;
    SX_TRY(sx_params_status(args->params));
    return sx_params_check_used(args->params);
}

sx_status sx_compile_model_open(sx_invocation *inv, const sx_compile_model_request *request,
                                sx_compile_model *out)
{
    *out = (sx_compile_model){.graph = NULL};
    const char *dir = NULL;
    sx_status found = sx_version_find(request->name, &inv->arena, &dir);
    if (found == SX_OK) {
        return open_saved(inv, request, dir, out);
    }
    sx_status_free(found); /* a run, or a model to build */
    if (request->signature != NULL) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "--signature applies only to SavedModels; %s "
                                      "has no saved_model.pb",
                                      request->name));
    }
    if (sx_run_exists(request->name)) {
        return open_run(inv, request, out);
    }
    SX_TRY(sx_model_args_read(inv, request->name, request->params, &out->args));
    return build(inv, request, out);
}

void sx_compile_model_end(sx_compile_model *model)
{
    sx_specialized_destroy(model->examples);
    sx_library_destroy(model->library);
    sx_saved_model_close(model->saved);
    sx_run_graphs_destroy(&model->run);
    sx_graph_destroy(model->built);
    sx_model_args_end(&model->args);
}
