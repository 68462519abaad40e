#include "savedmodel/export.h"

#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "checkpoint/bundle.h"
#include "graph/builder.h"
#include "graph/ops/preprocess_image.h"
#include "savedmodel/export_body.h"

struct exporter {
    const sx_export_request *request;
    const sx_graph *graph;
    sx_saved_model_writer *model;
    sx_tf_exporter *nodes;
    sx_tf_writer *w;
    sx_tf_value *values; /* [graph->n_values] */
    sx_tf_value *raw;    /* [preprocess_graph->n_values] */
    sx_arena arena;
    const sx_arg *input;     /* the first */
    sx_tf_value image_bytes; /* with preprocessing */
    sx_tf_value classes;     /* the output `class` */
    bool has_classes;
};

/* ---- Before anything is written ---- */

static sx_status check_operators(const struct exporter *e)
{
    const sx_graph *graphs[2] = {e->request->graph, e->request->preprocess_graph};
    return sx_tf_exporter_check(e->nodes, graphs, graphs[1] != NULL ? 2 : 1);
}

static sx_status find_input(struct exporter *e)
{
    for (int i = 0; i < e->graph->n_args; i++) {
        const sx_arg *arg = &e->graph->args[i];
        if (arg->kind != SX_ARG_INPUT) {
            continue;
        }
        if (e->input != NULL &&
            ((e->request->preprocess != NULL && e->request->image_input == NULL) ||
             e->request->features_key != NULL)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the predict graph has inputs \"%s\" and \"%s\", expected only one",
                            e->input->name, arg->name);
        }
        e->input = e->input != NULL ? e->input : arg;
    }
    return e->input != NULL ? SX_OK
                            : sx_error(SX_INVALID_ARGUMENT, "the predict graph has no input");
}

/* The graph that serving_default feeds. */
static const sx_graph *taker(const struct exporter *e)
{
    return e->request->preprocess_graph != NULL ? e->request->preprocess_graph : e->graph;
}

static sx_status check_input(const struct exporter *e)
{
    const sx_preprocess *pre = e->request->preprocess;
    const char *name = e->request->image_input;
    const sx_graph *graph = taker(e);
    const sx_arg *input = e->input;
    if (pre == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_preprocess_check(pre));
    if (name != NULL) {
        const int found = sx_graph_find_arg(graph, name);
        if (found < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "there is no input \"%s\"", name);
        }
        input = &graph->args[found];
    }
    const sx_type *type = sx_graph_type(graph, input->value);
    sx_type image = sx_type_of(SX_F32, SX_BATCH, pre->height, pre->width, pre->channels);
    if (!sx_type_equal(type, &image)) {
        char got[SX_TYPE_TEXT], wanted[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is %s, but preprocessing produces %s",
                        input->name, sx_type_format(type, got, sizeof(got)),
                        sx_type_format(&image, wanted, sizeof(wanted)));
    }
    return SX_OK;
}

/* ---- Nodes ---- */

static sx_tf_value placeholder(sx_tf_writer *w, const char *name, const sx_type *type)
{
    return sx_tf_add(
        w, "Placeholder", name, SX_TF_NO_IN,
        sx_tf_attrs(sx_tf_attr_type("dtype", type->dtype), sx_tf_attr_shape("shape", type)));
}

/* The float batch decoded from the input `name`: a graph of one node. */
static sx_status write_images(struct exporter *e, const char *name, sx_tf_value *out)
{
    const sx_type bytes_type = sx_type_of(SX_STRING, SX_BATCH);
    const sx_preprocess_image_attrs attrs = sx_preprocess_image_attrs_of(e->request->preprocess);
    sx_builder *b = NULL;
    sx_graph *graph = NULL;
    sx_status status = SX_OK;
    SX_TRY(sx_builder_create(&b));
    const sx_value images = sx_input(b, name, bytes_type);
    const sx_value decoded = sx_build_node(b, &(sx_node_spec){.op = &sx_op_preprocess_image,
                                                              .name = "preprocess",
                                                              .attrs = &attrs,
                                                              .inputs = &images,
                                                              .n_inputs = 1,
                                                              .device = "",
                                                              .file = ""});
    sx_output(b, "image", decoded);
    SX_TRY_GOTO(status, sx_builder_finish(b, &graph), done);
    sx_tf_value *values = sx_arena_array(&e->arena, graph->n_values, sx_tf_value);
    if (values == NULL) {
        status = sx_no_memory("exporting a model");
        goto done;
    }
    e->image_bytes = placeholder(e->w, name, &bytes_type);
    values[images.id] = e->image_bytes;
    SX_TRY_GOTO(status, sx_tf_exporter_nodes(e->nodes, e->w, graph, values), done);
    *out = values[decoded.id];
done:
    sx_graph_destroy(graph);
    sx_builder_destroy(b);
    return status;
}

/* The name of an input in the signature. */
static const char *input_key(const struct exporter *e, const sx_arg *input)
{
    const char *prefix = e->request->input_prefix;
    size_t size = prefix != NULL ? strlen(prefix) : 0;
    bool begins = size > 0 && strncmp(input->name, prefix, size) == 0;
    return begins ? input->name + size : input->name;
}

static sx_tf_value placeholder_with_default(struct exporter *e, const char *name,
                                            sx_tf_value otherwise, const sx_type *type)
{
    return sx_tf_add(
        e->w, "PlaceholderWithDefault", name, sx_tf_in(otherwise),
        sx_tf_attrs(sx_tf_attr_type("dtype", type->dtype), sx_tf_attr_shape("shape", type)));
}

static bool is_image(const struct exporter *e, const sx_arg *arg)
{
    return e->request->image_input != NULL && strcmp(arg->name, e->request->image_input) == 0;
}

/* The inputs of a graph; that of images can be fed decoded, too. */
static sx_status write_placeholders(struct exporter *e, const sx_graph *graph, sx_tf_value *values)
{
    for (int i = 0; i < graph->n_args; i++) {
        const sx_arg *arg = &graph->args[i];
        const sx_type *type = sx_graph_type(graph, arg->value);
        const char *key = input_key(e, arg);
        if (arg->kind == SX_ARG_INPUT && is_image(e, arg)) {
            const char *name = sx_arena_printf(&e->arena, SX_TENSORS_SIGNATURE "/%s", key);
            sx_tf_value decoded = {-1, 0};
            SX_TRY(name == NULL ? sx_no_memory("exporting a model")
                                : write_images(e, key, &decoded));
            values[arg->value.id] = placeholder_with_default(e, name, decoded, type);
        } else if (arg->kind == SX_ARG_INPUT) {
            values[arg->value.id] = placeholder(e->w, key, type);
        }
    }
    return SX_OK;
}

/* The nodes of preprocessing, and the model's inputs after them. */
static sx_status write_preprocess(struct exporter *e)
{
    const sx_graph *pre = e->request->preprocess_graph;
    e->raw = sx_arena_array(&e->arena, pre->n_values, sx_tf_value);
    if (e->raw == NULL) {
        return sx_no_memory("exporting a model");
    }
    SX_TRY(write_placeholders(e, pre, e->raw));
    sx_tf_scope_push(e->w, "preprocess");
    sx_status status = sx_tf_exporter_nodes(e->nodes, e->w, pre, e->raw);
    sx_tf_scope_pop(e->w);
    SX_TRY(status);
    for (int i = 0; i < e->graph->n_args; i++) {
        const sx_arg *arg = &e->graph->args[i];
        if (arg->kind != SX_ARG_INPUT) {
            continue;
        }
        const char *key = input_key(e, arg);
        const int found = sx_graph_find_output(pre, key);
        const sx_type *type = sx_graph_type(e->graph, arg->value);
        if (found < 0 || !sx_type_equal(sx_graph_type(pre, pre->results[found].value), type)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "preprocessing gives no \"%s\" of the type of the model's input", key);
        }
        const char *name = sx_arena_printf(&e->arena, SX_TENSORS_SIGNATURE "/%s", key);
        if (name == NULL) {
            return sx_no_memory("exporting a model");
        }
        e->values[arg->value.id] =
            placeholder_with_default(e, name, e->raw[pre->results[found].value.id], type);
    }
    return SX_OK;
}

static sx_status write_inputs(struct exporter *e)
{
    const sx_type *type = sx_graph_type(e->graph, e->input->value);
    if (e->request->preprocess != NULL && e->request->image_input == NULL) {
        sx_tf_value decoded = {-1, 0};
        SX_TRY(write_images(e, SX_INPUT_IMAGE_BYTES, &decoded));
        e->values[e->input->value.id] = placeholder_with_default(e, SX_INPUT_IMAGE, decoded, type);
        return SX_OK;
    }
    if (e->request->preprocess_graph != NULL) {
        return write_preprocess(e);
    }
    return write_placeholders(e, e->graph, e->values);
}

static void write_variables(struct exporter *e)
{
    for (int i = 0; i < e->graph->n_args; i++) {
        const sx_arg *arg = &e->graph->args[i];
        if (arg->kind == SX_ARG_VARIABLE) {
            e->values[arg->value.id] =
                sx_saved_model_variable(e->model, arg->name, sx_graph_type(e->graph, arg->value),
                                        arg->role == SX_ROLE_WEIGHT);
        }
    }
}

static sx_status write_body(struct exporter *e)
{
    SX_TRY(write_inputs(e));
    write_variables(e);
    return sx_tf_exporter_nodes(e->nodes, e->w, e->graph, e->values);
}

/* ---- Classes ---- */

static sx_status write_class_asset(struct exporter *e, const sx_bytes *names, int n)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    for (int i = 0; i < n; i++) {
        sx_buf_append(&text, names[i].data, names[i].size);
        sx_buf_putc(&text, '\n');
    }
    sx_status status = sx_buf_status(&text);
    if (status == SX_OK) {
        (void)sx_saved_model_asset(e->model, SX_CLASSES_ASSET,
                                   (sx_bytes){sx_buf_text(&text), text.size});
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status write_classes(struct exporter *e)
{
    int n = e->request->n_classes, found = sx_graph_find_output(e->graph, SX_CLASSID_OUTPUT);
    if (e->request->class_names == NULL || n <= 0) {
        return SX_OK;
    }
    sx_bytes *names = sx_arena_array(&e->arena, n, sx_bytes);
    if (names == NULL) {
        return sx_no_memory("exporting a model");
    }
    for (int i = 0; i < n; i++) {
        names[i] = (sx_bytes){e->request->class_names[i], strlen(e->request->class_names[i])};
    }
    SX_TRY(write_class_asset(e, names, n));
    if (found < 0) {
        return SX_OK;
    }
    sx_value classid = e->graph->results[found].value;
    int index_type = (int)sx_graph_type(e->graph, classid)->dtype;
    sx_tf_value table =
        sx_tf_const(e->w, "class_names", &(sx_tensor){sx_type_of(SX_STRING, n), names});
    e->classes = sx_tf_add(
        e->w, "GatherV2", SX_CLASS_OUTPUT,
        sx_tf_in(table, e->values[classid.id], sx_tf_const_i32(e->w, "class_axis", 0)),
        sx_tf_attrs(sx_tf_attr_type("Tparams", SX_STRING), sx_tf_attr_type("Tindices", index_type),
                    sx_tf_attr_type("Taxis", SX_I32)));
    e->has_classes = true;
    return SX_OK;
}

/* ---- Signatures ---- */

static void write_outputs(struct exporter *e)
{
    for (int i = 0; i < e->graph->n_results; i++) {
        const sx_result *r = &e->graph->results[i];
        if (r->arg == SX_RESULT_IS_OUTPUT) {
            sx_saved_model_output(e->model, r->name, e->values[r->value.id],
                                  sx_graph_type(e->graph, r->value));
        }
    }
    if (e->has_classes) {
        const sx_type names_type = sx_type_of(SX_STRING, SX_BATCH);
        sx_saved_model_output(e->model, SX_CLASS_OUTPUT, e->classes, &names_type);
    }
}

static void write_signature(struct exporter *e, const char *key, const char *input,
                            sx_tf_value value, const sx_type *type)
{
    sx_saved_model_signature(e->model, key);
    sx_saved_model_input(e->model, input, value, type);
    write_outputs(e);
}

/* With the inputs of a graph; `encoded`: images as strings. */
static void write_signature_of(struct exporter *e, const char *key, const sx_graph *graph,
                               const sx_tf_value *values, bool encoded)
{
    const sx_type bytes_type = sx_type_of(SX_STRING, SX_BATCH);
    const char *features = e->request->features_key, *bytes = e->request->image_bytes_key;
    sx_saved_model_signature(e->model, key);
    for (int i = 0; i < graph->n_args; i++) {
        const sx_arg *arg = &graph->args[i];
        if (arg->kind == SX_ARG_INPUT && encoded && is_image(e, arg)) {
            sx_saved_model_input(e->model, bytes != NULL ? bytes : input_key(e, arg),
                                 e->image_bytes, &bytes_type);
        } else if (arg->kind == SX_ARG_INPUT) {
            sx_saved_model_input(e->model, features != NULL ? features : input_key(e, arg),
                                 values[arg->value.id], sx_graph_type(graph, arg->value));
        }
    }
    write_outputs(e);
}

static void write_signatures(struct exporter *e)
{
    const sx_type bytes_type = sx_type_of(SX_STRING, SX_BATCH);
    const sx_type *type = sx_graph_type(e->graph, e->input->value);
    sx_tf_value value = e->values[e->input->value.id];
    const char *bytes = e->request->image_bytes_key, *features = e->request->features_key;
    if (e->request->preprocess == NULL || e->request->image_input != NULL) {
        const bool raw = e->request->preprocess_graph != NULL;
        write_signature_of(e, SX_SERVING_DEFAULT, taker(e), raw ? e->raw : e->values, true);
        if ((raw || e->request->preprocess != NULL) && !e->request->no_tensors) {
            write_signature_of(e, SX_TENSORS_SIGNATURE, e->graph, e->values, false);
        }
        return;
    }
    write_signature(e, SX_SERVING_DEFAULT, bytes != NULL ? bytes : SX_INPUT_IMAGE_BYTES,
                    e->image_bytes, &bytes_type);
    if (!e->request->no_tensors) {
        write_signature(e, SX_TENSORS_SIGNATURE, features != NULL ? features : SX_INPUT_IMAGE,
                        value, type);
    }
}

static sx_status write_model(struct exporter *e, char **out_dir)
{
    SX_TRY(check_operators(e));
    SX_TRY(find_input(e));
    SX_TRY(check_input(e));
    SX_TRY(write_body(e));
    SX_TRY(write_classes(e));
    write_signatures(e);
    return sx_saved_model_write_version(e->model, e->request->base, e->request->version,
                                        e->request->read_variable, e->request->user, out_dir);
}

sx_status sx_export_saved_model(const sx_export_request *request, char **out_dir)
{
    struct exporter e = {.request = request, .graph = request->graph};
    sx_status status = SX_OK;
    sx_arena_init(&e.arena, 0);
    SX_TRY_GOTO(status, sx_tf_exporter_create(NULL, &e.nodes), done);
    SX_TRY_GOTO(status, sx_saved_model_writer_create(&e.model), done);
    e.w = sx_saved_model_nodes(e.model);
    e.values = sx_arena_array(&e.arena, request->graph->n_values, sx_tf_value);
    status = e.values == NULL ? sx_no_memory("exporting a model") : write_model(&e, out_dir);
done:
    sx_saved_model_writer_destroy(e.model);
    sx_tf_exporter_destroy(e.nodes);
    sx_arena_deinit(&e.arena);
    return status;
}
