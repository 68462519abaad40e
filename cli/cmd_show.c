/* sextant show: describes a SavedModel or a run; with --dir, as saved_model_cli does. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "answer.h"
#include "checkpoint/checkpoint_state.h"
#include "command.h"
#include "dir_hint.h"
#include "other_model.h"
#include "io/path.h"
#include "savedmodel/saved_model_read.h"
#include "savedmodel/versions.h"
#include "saved_model_text.h"
#include "terminal.h"
#include "train/run_dir.h"

typedef struct options {
    const char *dir, *tag_set, *signature_def;
    bool all, list_ops;
} options;

static const sx_option rows[] = {
    {"dir", SX_OPTION_STRING, SX_OPT(options, dir), "directory of the SavedModel", "MODEL_DIR",
     .group = "As saved_model_cli prints it"},
    {"all", SX_OPTION_FLAG, SX_OPT(options, all),
     "everything: signatures, operators, functions of each graph"},
    {"tag-set", SX_OPTION_STRING, SX_OPT(options, tag_set),
     "the graph with these tags, comma-separated: its signatures; without it, list the tags",
     "TAGS"},
    {"signature-def", SX_OPTION_STRING, SX_OPT(options, signature_def),
     "inputs and outputs of this signature of the graph", "NAME"},
    {"list-ops", SX_OPTION_FLAG, SX_OPT(options, list_ops), "operators of the graph"},
};

/* ---- A SavedModel ---- */

static void put_ports(sx_buf *out, const char *kind, const sx_signature_tensor *ports, size_t n)
{
    char text[SX_TF_TYPE_TEXT];
    for (size_t i = 0; i < n; i++) {
        sx_buf_printf(
            out, "  %s  %-16s %-28s %s\n", kind, ports[i].key,
            sx_tf_type_text(ports[i].tf_dtype, ports[i].unknown_rank ? NULL : &ports[i].type, text),
            ports[i].tensor);
    }
}

static void put_variables(sx_buf *out, const sx_bundle *variables)
{
    int64_t tensors = 0, values = 0, bytes = 0;
    size_t n = variables != NULL ? sx_bundle_count(variables) : 0;
    for (size_t i = 0; i < n; i++) {
        const sx_bundle_entry *e = sx_bundle_at(variables, i);
        if (e->type.dtype != SX_DTYPE_NONE && e->type.dtype != SX_STRING) {
            tensors++;
            values += sx_type_elems(&e->type);
            bytes += (int64_t)e->size;
        }
    }
    sx_buf_puts(out, "variables: ");
    sx_put_grouped(out, (double)tensors);
    sx_buf_puts(out, tensors == 1 ? " tensor, " : " tensors, ");
    sx_put_grouped(out, (double)values);
    sx_buf_puts(out, values == 1 ? " value, " : " values, ");
    sx_buf_put_size(out, (double)bytes);
    sx_buf_puts(out, "\n");
}

static void put_names(sx_buf *out, const char *const *names, int n)
{
    sx_buf_printf(out, "classes: %d", n);
    for (int i = 0; i < n; i++) {
        sx_buf_printf(out, "%s%s", i > 0 ? ", " : ": ", names[i]);
    }
    sx_buf_putc(out, '\n');
}

static sx_status put_saved_model(sx_buf *out, const char *dir)
{
    sx_saved_model *model = NULL;
    sx_class_names names;
    SX_TRY(sx_class_names_read(dir, &names));
    sx_status status = sx_saved_model_open(dir, &model);
    if (status == SX_OK) {
        size_t n = 0;
        const sx_signature *signatures = sx_saved_model_signatures(model, &n);
        sx_buf_printf(out, "SavedModel %s\n", dir);
        for (size_t i = 0; i < n; i++) {
            if (strcmp(signatures[i].key, SX_INIT_SIGNATURE) == 0) { /* loading the model runs it */
                continue;
            }
            sx_buf_printf(out, "signature %s (%s)\n", signatures[i].key, signatures[i].method);
            put_ports(out, "in ", signatures[i].inputs, signatures[i].n_inputs);
            put_ports(out, "out", signatures[i].outputs, signatures[i].n_outputs);
        }
        put_variables(out, sx_saved_model_variables(model));
        if (names.count > 0) {
            put_names(out, (const char *const *)names.items, names.count);
        }
        sx_saved_model_close(model);
    }
    sx_class_names_free(&names);
    return status;
}

/* ---- A run ---- */

static sx_status put_checkpoints(sx_buf *out, const char *dir, sx_arena *arena)
{
    sx_checkpoints list = {0};
    SX_TRY(sx_checkpoints_list(dir, arena, &list));
    sx_buf_printf(out, "checkpoints:");
    for (size_t i = 0; i < list.count; i++) {
        sx_buf_printf(out, " %lld", (long long)list.items[i].step);
    }
    sx_buf_printf(out, "%s\n", list.count == 0 ? " none" : "");
    return SX_OK;
}

static sx_status put_run(sx_buf *out, const char *dir, sx_arena *arena)
{
    sx_run_info info = {0};
    SX_TRY(sx_run_read(dir, arena, NULL, NULL, &info));
    sx_buf_printf(out, "run %s\nmodel: %s (%s)\n", dir, info.model, info.source);
    for (int i = 0; i < info.n_params; i++) {
        sx_buf_printf(out, "parameter: %s=%s\n", info.param_names[i], info.param_values[i]);
    }
    for (int i = 0; i < info.declared.n; i++) {
        const sx_model_input *in = &info.declared.items[i];
        char type[SX_TYPE_TEXT];
        sx_type_format(&in->type, type, sizeof(type));
        if (info.inputs.named) {
            sx_buf_printf(out, "%s: %s %s%s\n", sx_input_kind_names[in->kind], in->name, type,
                          in->spec != NULL && in->spec->image ? ", preprocessed from images" : "");
        } else if (in->kind == SX_INPUT_FEATURE) {
            sx_buf_printf(out, "features: %s%s\n", type,
                          info.has_preprocess ? ", preprocessed from images" : "");
        }
    }
    for (int i = 0; i < info.inputs.n && info.has_program; i++) {
        const sx_model_input *in = &info.inputs.items[i];
        char type[SX_TYPE_TEXT];
        if (in->kind == SX_INPUT_FEATURE) {
            sx_buf_printf(out, "preprocessed: %s %s\n", in->name,
                          sx_type_format(&in->type, type, sizeof(type)));
        }
    }
    sx_buf_printf(out, "data: %s\nseed: %llu\n", info.data != NULL ? info.data : "(not recorded)",
                  (unsigned long long)info.seed);
    if (info.n_classes > 0) {
        put_names(out, info.class_names, info.n_classes);
    }
    return put_checkpoints(out, dir, arena);
}

static sx_status describe(sx_invocation *inv, sx_buf *out)
{
    const char *path = inv->words.items[0], *dir = NULL;
    struct stat info;
    if (lstat(path, &info) != 0 && sx_other_model(&inv->arena, path) == NULL) {
        return sx_error(SX_NOT_FOUND, "%s: no such directory", path);
    }
    sx_status status = sx_version_find(path, &inv->arena, &dir);
    if (status == SX_OK) {
        return put_saved_model(out, dir);
    }
    if (sx_run_exists(path)) {
        sx_status_free(status);
        return put_run(out, path, &inv->arena);
    }
    status = sx_status_annotate(status, __FILE__, __LINE__,
                                "%s is neither a SavedModel nor a run (no sextant.json)", path);
    return sx_dir_explain(status, &inv->arena, path, SX_WANTED_ANY);
}

/* ---- In the words of saved_model_cli ---- */

/* saved_model_cli show */
static sx_status put_parts(sx_buf *out, const Tensorflow__SavedModel *model, const void *given)
{
    const options *o = given;
    const Tensorflow__MetaGraphDef *graph = NULL;
    if (o->all) {
        return sx_put_saved_model(out, model);
    }
    if (o->tag_set == NULL) {
        sx_buf_puts(out,
                    o->list_ops ? "--list_ops must be paired with a tag-set or with --all.\n" : "");
        sx_put_tag_sets(out, model);
        return SX_OK;
    }
    SX_TRY(sx_saved_model_tagged(model, o->tag_set, &graph));
    if (o->list_ops) {
        SX_TRY(sx_put_operators(out, graph));
    }
    if (o->signature_def != NULL) {
        return sx_put_signature(out, graph, o->signature_def);
    }
    sx_put_signature_keys(out, graph);
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const bool parts =
        o->dir != NULL || o->all || o->list_ops || o->tag_set != NULL || o->signature_def != NULL;
    if ((o->dir != NULL) == (inv->words.count == 1)) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, o->dir != NULL
                                                               ? "give MODEL_DIR or --dir, not both"
                                                               : "give the directory to describe"));
    }
    if (parts) {
        return sx_print_saved_model(&inv->arena, o->dir != NULL ? o->dir : inv->words.items[0],
                                    put_parts, o);
    }
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = describe(inv, &text);
    if (status == SX_OK) {
        sx_print_visible(stdout, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_show = {
    .name = "show",
    .summary = "describe a SavedModel or a run",
    .words = "[MODEL_DIR|RUN_DIR]",
    .about =
        "SavedModel: signatures with their inputs and outputs, variables, class names; of a "
        "directory of versions, the highest. Run: model, parameters, data, checkpoints. The "
        "options below are those of TensorFlow's saved_model_cli show, and print the same text.",
    .examples = "  sextant show models/flowers\n"
                "  sextant show run1\n"
                "  sextant show --dir models/flowers/1 --all\n"
                "  sextant show --dir models/flowers/1 --tag_set serve --signature_def "
                "serving_default",
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    .run = run,
};
