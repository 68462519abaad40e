/* sextant show: describes a SavedModel or a run. */
#include <stdio.h>

#include "answer.h"
#include "checkpoint/checkpoint_state.h"
#include "command.h"
#include "dir_hint.h"
#include "io/path.h"
#include "savedmodel/saved_model_read.h"
#include "savedmodel/versions.h"
#include "terminal.h"
#include "train/run_dir.h"

/* ---- A SavedModel ---- */

static void print_ports(const char *kind, const sx_signature_tensor *ports, size_t n)
{
    char type[SX_TYPE_TEXT];
    for (size_t i = 0; i < n; i++) {
        bool whole = !ports[i].unknown_rank;
        printf("  %s  %-16s %-28s %s\n", kind, ports[i].key,
               whole ? sx_type_format(&ports[i].type, type, sizeof(type))
                     : sx_dtype_name(ports[i].type.dtype),
               ports[i].tensor);
    }
}

static void print_variables(const sx_bundle *variables)
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
    sx_buf text;
    sx_buf_init(&text, 4096);
    sx_put_grouped(&text, (double)tensors);
    sx_buf_puts(&text, " tensors, ");
    sx_put_grouped(&text, (double)values);
    sx_buf_puts(&text, " values, ");
    sx_buf_put_size(&text, (double)bytes);
    printf("variables: %s\n", sx_buf_text(&text));
    sx_buf_deinit(&text);
}

static void print_names(const char *const *names, int n)
{
    printf("classes: %d", n);
    for (int i = 0; i < n; i++) {
        printf("%s%s", i > 0 ? ", " : ": ", names[i]);
    }
    putchar('\n');
}

static sx_status print_saved_model(const char *dir)
{
    sx_saved_model *model = NULL;
    sx_class_names names;
    SX_TRY(sx_class_names_read(dir, &names));
    sx_status status = sx_saved_model_open(dir, &model);
    if (status == SX_OK) {
        size_t n = 0;
        const sx_signature *signatures = sx_saved_model_signatures(model, &n);
        printf("SavedModel %s\n", dir);
        for (size_t i = 0; i < n; i++) {
            printf("signature %s (%s)\n", signatures[i].key, signatures[i].method);
            print_ports("in ", signatures[i].inputs, signatures[i].n_inputs);
            print_ports("out", signatures[i].outputs, signatures[i].n_outputs);
        }
        print_variables(sx_saved_model_variables(model));
        if (names.count > 0) {
            print_names((const char *const *)names.items, names.count);
        }
        sx_saved_model_close(model);
    }
    sx_class_names_free(&names);
    return status;
}

/* ---- A run ---- */

static sx_status print_checkpoints(const char *dir, sx_arena *arena)
{
    sx_checkpoints list = {0};
    SX_TRY(sx_checkpoints_list(dir, arena, &list));
    printf("checkpoints:");
    for (size_t i = 0; i < list.count; i++) {
        printf(" %lld", (long long)list.items[i].step);
    }
    printf("%s\n", list.count == 0 ? " none" : "");
    return SX_OK;
}

static sx_status print_run(const char *dir, sx_arena *arena)
{
    sx_run_info info = {0};
    SX_TRY(sx_run_read(dir, arena, NULL, NULL, &info));
    printf("run %s\nmodel: %s (%s)\n", dir, info.model, info.source);
    for (int i = 0; i < info.n_params; i++) {
        printf("parameter: %s=%s\n", info.param_names[i], info.param_values[i]);
    }
    for (int i = 0; i < info.inputs.n; i++) {
        static const char *const kinds[SX_INPUT_KINDS] = {"feature", "label", "weight"};
        const sx_model_input *in = &info.inputs.items[i];
        char type[SX_TYPE_TEXT];
        sx_type_format(&in->type, type, sizeof(type));
        if (info.inputs.named) {
            printf("%s: %s %s\n", kinds[in->kind], in->name, type);
        } else if (in->kind == SX_INPUT_FEATURE) {
            printf("features: %s%s\n", type,
                   info.has_preprocess ? ", preprocessed from images" : "");
        }
    }
    printf("data: %s\nseed: %llu\n", info.data != NULL ? info.data : "(not recorded)",
           (unsigned long long)info.seed);
    if (info.n_classes > 0) {
        print_names(info.class_names, info.n_classes);
    }
    return print_checkpoints(dir, arena);
}

static sx_status run(sx_invocation *inv)
{
    const char *path = inv->words.items[0], *dir = NULL;
    if (!sx_path_exists(path)) {
        return sx_error(SX_NOT_FOUND, "%s: no such directory", path);
    }
    sx_status status = sx_version_find(path, &inv->arena, &dir);
    if (status == SX_OK) {
        return print_saved_model(dir);
    }
    if (sx_run_exists(path)) {
        sx_status_free(status);
        return print_run(path, &inv->arena);
    }
    status = sx_status_annotate(status, __FILE__, __LINE__,
                                "%s is neither a SavedModel nor a run (no sextant.json)", path);
    return sx_dir_explain(status, &inv->arena, path, SX_WANTED_ANY);
}

const sx_command sx_command_show = {
    .name = "show",
    .summary = "describe a SavedModel or a run",
    .words = "MODEL_DIR|RUN_DIR",
    .about = "SavedModel: signatures with their inputs and outputs, variables, class names; of a "
             "directory of versions, the highest. Run: model, parameters, data, checkpoints.",
    .examples = "  sextant show models/flowers\n  sextant show run1",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
