/* sextant export */
#include <stdio.h>

#include "command.h"
#include "run_args.h"
#include "savedmodel/versions.h"

typedef struct options {
    const char *out, *checkpoint, *version;
} options;

static const sx_option rows[] = {
    {"out", SX_OPTION_STRING, SX_OPT(options, out),
     "model directory; the version is written to a subdirectory", "DIR", .required = true},
    {"version", SX_OPTION_STRING, SX_OPT(options, version),
     "version number; leading zeros are kept; default: the highest + 1", "N"},
    SX_CHECKPOINT_ROW(options),
};
static const options defaults = {.checkpoint = "latest"};

static sx_status export_run(const options *o, sx_trainer *trainer)
{
    char *dir = NULL;
    SX_TRY(sx_trainer_export(trainer, o->out, o->version, NULL, &dir));
    printf("%s\n", dir);
    sx_text_free(dir);
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_trainer *trainer = NULL;
    if (o->version != NULL && sx_version_number(o->version) < 0) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "--version is \"%s\", expected digits only, below 2^63",
                                      o->version));
    }
    sx_run_config config = {.struct_size = sizeof(config)};
    SX_TRY(sx_open_run(inv, inv->words.items[0], o->checkpoint, &config, &trainer));
    sx_status status = export_run(o, trainer);
    sx_trainer_destroy(trainer);
    return status;
}

const sx_command sx_command_export = {
    .name = "export",
    .summary = "export a checkpoint as a SavedModel",
    .words = "RUN_DIR",
    .about = "An image model gets two signatures: serving_default takes encoded images, which the "
             "graph decodes and preprocesses; tensors takes float images. For a model with "
             "preprocessing of its own, serving_default takes the inputs that the model declares, "
             "and tensors the results of the preprocessing. Other models get serving_default, "
             "which takes their features. The version directory appears only when it is complete; "
             "its path is printed.",
    .examples = "  sextant export run1 --out models/flowers\n"
                "  sextant export run1 --out models/flowers --version 0001 --checkpoint best",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
