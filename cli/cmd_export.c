/* sextant export */
#include <stdio.h>

#include "base/memory.h"
#include "command.h"
#include "run_args.h"
#include "savedmodel/export.h"

typedef struct options {
    const char *out, *checkpoint, *version;
} options;

static const sx_option rows[] = {
    {"out", SX_OPTION_STRING, SX_OPT(options, out), "the model's folder, under which versions lie",
     "DIR", .required = true},
    {"version", SX_OPTION_STRING, SX_OPT(options, version),
     "the version's folder, a number that keeps its zeros; default: the highest + 1", "N"},
    SX_CHECKPOINT_ROW(options),
};
static const options defaults = {.checkpoint = "latest"};

static sx_status read_variable(void *session, const char *name, const sx_type *type, void *out)
{
    int i = sx_session_find_variable(session, name);
    if (i < 0 || !sx_type_equal(&sx_session_variable_at(session, i)->type, type)) {
        return sx_error(SX_INTERNAL, "the session has no variable %s of that type", name);
    }
    return sx_session_read_variable(session, i, out);
}

static sx_status export_run(const options *o, sx_trainer *trainer)
{
    const sx_run_info *info = sx_trainer_info(trainer);
    char *dir = NULL;
    sx_export_request request = {
        .graph = sx_trainer_graph(trainer, SX_PREDICT),
        .read_variable = read_variable,
        .user = sx_trainer_session(trainer),
        .preprocess = info->has_preprocess ? &info->preprocess : NULL,
        .class_names = info->class_names,
        .n_classes = info->n_classes,
        .base = o->out,
        .version = o->version,
    };
    SX_TRY(sx_export_saved_model(&request, &dir));
    printf("%s\n", dir);
    sx_free(dir);
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_trainer *trainer = NULL;
    sx_run_config config = {.struct_size = sizeof(config)};
    SX_TRY(sx_open_run(inv, inv->words.items[0], o->checkpoint, &config, &trainer));
    sx_status status = export_run(o, trainer);
    sx_trainer_destroy(trainer);
    return status;
}

const sx_command sx_command_export = {
    .name = "export",
    .summary = "a run's checkpoint as a SavedModel, in the next version's folder",
    .words = "RUN_DIR",
    .about = "A model of images gets the signatures serving_default (encoded images, decoded and "
             "preprocessed in\nthe graph) and tensors (float images); others serving_default on "
             "their float features. The folder\nappears when it is whole; its path is printed.",
    .examples = "  sextant export run1 --out models/flowers\n"
                "  sextant export run1 --out models/flowers --version 0001 --checkpoint best",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
