/* See import_library.h: the signatures of a model, and what initializes it. */
#include "savedmodel/import_library.h"

#include <string.h>

#include <sextant/complex.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "proto/guard.h"
#include "savedmodel/import_library_ops.h"
#include "savedmodel/import_v1_control.h"
#include "savedmodel/tf_graph.h"

enum {
    MAX_NODES = 200000,
    MAX_FUNCTIONS = 10000,
    MAX_CALLS = 64,
    MAX_CONSTANT_BYTES = 1 << 30,
};

/* ---- Signatures ---- */

/* TensorFlow's rule for static shapes: an unknown rank or dimension goes with any other. */
static bool shapes_agree(const sx_type *a, const sx_type *b)
{
    bool agree = a->rank == b->rank;
    for (int d = 0; agree && d < a->rank; d++) {
        agree = a->dims[d] < 0 || b->dims[d] < 0 || a->dims[d] == b->dims[d];
    }
    return agree;
}

/* What a signature says about a tensor that it feeds, against what the Placeholder says. Up to
 * version 21 of GraphDef (TensorFlow 1.0), a Placeholder without a complete shape has the one of a
 * scalar. */
static sx_status check_placeholder(const Tensorflow__GraphDef *graph, const sx_signature_tensor *t,
                                   const Tensorflow__NodeDef *node)
{
    enum { LAST_WITHOUT_UNKNOWN_SHAPES = 21 };
    if (strcmp(node->op, "Placeholder") != 0 && strcmp(node->op, "PlaceholderWithDefault") != 0) {
        return SX_OK;
    }
    const Tensorflow__AttrValue *dtype = sx_tf_node_attr(node, "dtype");
    const Tensorflow__AttrValue *shape = sx_tf_node_attr(node, "shape");
    const int producer = graph->versions != NULL ? graph->versions->producer : 0;
    const bool legacy = producer <= LAST_WITHOUT_UNKNOWN_SHAPES &&
                        strcmp(node->op, "Placeholder") == 0 && shape != NULL &&
                        shape->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE &&
                        shape->shape->n_dim == 0;
    const bool has_dtype =
        dtype != NULL && dtype->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TYPE && t->tf_dtype > 0;
    const bool has_shape = shape != NULL &&
                           shape->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE &&
                           !t->unknown_rank && !t->no_shape && !legacy;
    const int own_dtype = has_dtype ? (int)dtype->type : t->tf_dtype;
    sx_type own;
    const bool known = sx_tf_type(own_dtype, has_shape ? shape->shape : NULL, &own);
    if (own_dtype == t->tf_dtype && (!has_shape || !known || shapes_agree(&own, &t->type))) {
        return SX_OK;
    }
    char says[SX_TF_TYPE_TEXT], is[SX_TF_TYPE_TEXT];
    return sx_error(SX_DATA_LOSS,
                    "input \"%.100s\" is %s in the signature, but %s \"%.200s\" is %s", t->key,
                    sx_tf_type_text(t->tf_dtype, &t->type, says), node->op, node->name,
                    sx_tf_type_text(own_dtype, &own, is));
}

/* Whether the number of its rows is unknown. */
static bool has_rows(const sx_signature_tensor *t)
{
    return !t->unknown_rank && t->type.rank > 0 && sx_dim_is_batch(t->type.dims[0]);
}

/* `rows`: the first dimension, if it is unknown. */
static sx_status feed(sx_library_importer *im, sx_tf_body *body, const sx_signature_tensor *t,
                      int64_t rows)
{
    sx_tf_ref ref;
    const int node = sx_tf_ref_parse(t->tensor, &ref) ? sx_tf_body_find_node(body, &ref) : -1;
    sx_tf_thing *fed = sx_arena_new(&im->arena, sx_tf_thing);
    sx_type type = t->type;
    if (fed == NULL) {
        return sx_import_memory();
    }
    if (node < 0 || ref.output != 0) {
        return sx_error(SX_DATA_LOSS,
                        "input \"%.100s\": the graph has no tensor \"%.100s\" to feed", t->key,
                        t->tensor);
    }
    if (type.dtype == SX_DTYPE_NONE) {
        char text[SX_TF_DTYPE_TEXT];
        return sx_error(SX_UNIMPLEMENTED, "input \"%.100s\" is %s, which is not supported", t->key,
                        sx_tf_dtype_text(t->tf_dtype, text));
    }
    SX_TRY(check_placeholder(sx_saved_model_graph(im->model), t, body->nodes[node]));
    type.rank = t->unknown_rank ? SX_UNKNOWN_RANK : type.rank;
    if (has_rows(t)) {
        type.dims[0] = rows;
    }
    if (sx_dtype_is_complex(type.dtype)) {
        SX_TRY(sx_tf_feed_complex(im, body, t->key, type, fed), "input \"%.100s\"", t->key);
    } else {
        *fed = (sx_tf_thing){.kind = SX_TF_VALUE, .value = sx_input(body->b, t->key, type)};
    }
    body->results[node] = fed;
    body->n_results[node] = 1;
    return SX_OK;
}

/* An asset's path takes the place of the tensor that is fed with it, and of the variable that keeps
 * that. */
static sx_status feed_asset(sx_library_importer *im, sx_tf_body *body, const sx_saved_asset *asset)
{
    sx_bytes *path = sx_arena_new(&im->arena, sx_bytes);
    sx_tf_thing *fed = sx_arena_array(&im->arena, 3, sx_tf_thing);
    sx_tf_ref ref;
    const int node = sx_tf_ref_parse(asset->tensor, &ref) ? sx_tf_body_find_node(body, &ref) : -1;
    if (path == NULL || fed == NULL) {
        return sx_import_memory();
    }
    if (node < 0 || ref.output != 0) {
        return sx_error(SX_DATA_LOSS, "asset \"%.100s\": the graph has no tensor \"%.100s\"",
                        asset->path, asset->tensor);
    }
    *path = (sx_bytes){asset->path, strlen(asset->path)};
    const sx_value value = sx_constant(body->b, (sx_tensor){sx_scalar_type(SX_STRING), path});
    fed[0] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = value};
    fed[1] = (sx_tf_thing){.kind = SX_TF_READ, .value = value};
    body->results[node] = &fed[0];
    body->n_results[node] = 1;
    for (size_t i = 0; i < body->n_nodes; i++) {
        const Tensorflow__NodeDef *assign = body->nodes[i];
        sx_tf_ref from, to;
        if (strcmp(assign->op, "AssignVariableOp") == 0 && assign->n_input >= 2 &&
            sx_tf_ref_parse(assign->input[0], &to) && sx_tf_ref_parse(assign->input[1], &from) &&
            sx_tf_body_find_node(body, &from) == node && sx_tf_body_find_node(body, &to) >= 0) {
            const int variable = sx_tf_body_find_node(body, &to);
            body->results[variable] = &fed[1];
            body->results[i] = &fed[2];
            body->n_results[variable] = body->n_results[i] = 1;
        }
    }
    return SX_OK;
}

static sx_status feed_assets(sx_library_importer *im, sx_tf_body *body)
{
    sx_saved_asset *assets = NULL;
    size_t n = 0;
    SX_TRY(sx_saved_model_assets(im->model, &im->arena, &assets, &n));
    for (size_t i = 0; i < n; i++) {
        SX_TRY(feed_asset(im, body, &assets[i]));
    }
    return SX_OK;
}

/* What the signature says about an output, against what the graph computes. */
static sx_status check_output(const sx_builder *b, const sx_signature_tensor *t,
                              const sx_tf_thing *y)
{
    const bool complex = y->kind == SX_TF_COMPLEX;
    sx_type type = sx_type_of_value(b, complex ? y->parts[0] : y->value);
    type.dtype = !complex ? type.dtype : type.dtype == SX_F32 ? SX_C64 : SX_C128;
    const bool vague = t->unknown_rank || t->no_shape || type.rank == SX_UNKNOWN_RANK;
    if (sx_builder_failed(b) ||
        ((vague || shapes_agree(&t->type, &type)) &&
         (t->tf_dtype <= 0 || sx_tf_plain_dtype(t->tf_dtype) == type.dtype))) {
        return SX_OK; /* a builder that failed says so itself */
    }
    char says[SX_TF_TYPE_TEXT], is[SX_TYPE_TEXT];
    return sx_error(SX_DATA_LOSS, "output \"%.100s\" is %s in the signature, but \"%.200s\" is %s",
                    t->key, sx_tf_type_text(t->tf_dtype, &t->type, says), t->tensor,
                    sx_type_format(&type, is, sizeof(is)));
}

static sx_status import_signature(sx_library_importer *im, const sx_signature *s)
{
    sx_tf_body body = {0};
    const char **roots = sx_arena_array(&im->arena, s->n_outputs + 1, const char *);
    if (roots == NULL) {
        return sx_import_memory();
    }
    im->refused.n = 0;
    SX_TRY(sx_tf_create_builder(im, &body.b));
    sx_status status = sx_tf_body_init(&body, im->nodes, im->n_graph_nodes);
    size_t n_sizes = 0, n_symbols = 0;
    for (size_t i = 0; i < s->n_inputs; i++) {
        n_sizes += has_rows(&s->inputs[i]);
    }
    for (size_t i = 0; i < s->n_inputs && status == SX_OK; i++) {
        const int64_t symbol = n_symbols < SX_MAX_SYMBOLS ? 1 + (int64_t)n_symbols : 0;
        n_symbols += has_rows(&s->inputs[i]);
        status = feed(im, &body, &s->inputs[i], n_sizes > 1 ? SX_UNKNOWN_DIM + symbol : SX_BATCH);
    }
    for (size_t i = 0; i < s->n_outputs && status == SX_OK; i++) {
        sx_tf_ref ref;
        roots[i] = s->outputs[i].tensor;
        if (!sx_tf_ref_parse(roots[i], &ref) || sx_tf_body_find_node(&body, &ref) < 0) {
            status = sx_error(SX_DATA_LOSS, "output \"%.100s\": the graph has no tensor \"%.100s\"",
                              s->outputs[i].key, roots[i]);
        }
    }
    if (status == SX_OK) {
        status = feed_assets(im, &body);
    }
    if (status == SX_OK) {
        status = sx_tf_import_roots(im, &body, roots, s->n_outputs);
    }
    if (status == SX_OK && im->refused.n > 0) {
        status = sx_import_refusals_error(&im->refused);
    }
    for (size_t i = 0; i < s->n_outputs && status == SX_OK; i++) {
        sx_tf_thing y = {0};
        status = sx_status_annotate(sx_tf_body_resolve(im, &body, roots[i], &y), __FILE__, __LINE__,
                                    "output \"%.100s\"", s->outputs[i].key);
        status = status != SX_OK ? status : sx_tf_settle(im, &body, &y);
        if (status == SX_OK && y.kind != SX_TF_VALUE && y.kind != SX_TF_COMPLEX) {
            status =
                sx_error(SX_UNIMPLEMENTED, "output \"%.100s\" is %s", s->outputs[i].key,
                         y.kind == SX_TF_OPTIONAL                        ? "an optional"
                         : y.kind == SX_TF_HANDLE || y.kind == SX_TF_REF ? "a variable's handle"
                                                                         : "a list of tensors");
        }
        if (status == SX_OK) {
            status = check_output(body.b, &s->outputs[i], &y);
        }
        if (status == SX_OK && y.kind == SX_TF_COMPLEX) {
            status = sx_status_annotate(sx_tf_give_complex(im, &body, &y), __FILE__, __LINE__,
                                        "output \"%.100s\"", s->outputs[i].key);
        }
        if (status == SX_OK) {
            sx_output(body.b, s->outputs[i].key, y.value);
        }
    }
    if (status == SX_OK) {
        status = sx_library_add(im->library, s->key, body.b);
    }
    sx_tf_body_deinit(&body);
    sx_builder_destroy(body.b);
    return status;
}

/* ---- Initialization ---- */

static sx_status import_initializer(sx_library_importer *im)
{
    const char *op = sx_saved_model_init_op(im->model);
    sx_tf_body body = {0};
    SX_TRY(sx_tf_create_builder(im, &body.b));
    sx_status status = sx_tf_body_init(&body, im->nodes, im->n_graph_nodes);
    if (status == SX_OK) {
        status = feed_assets(im, &body);
    }
    if (status == SX_OK) {
        status = sx_tf_import_roots(im, &body, &op, 1);
    }
    if (status == SX_OK && im->refused.n > 0) {
        status = sx_import_refusals_error(&im->refused);
    }
    if (status == SX_OK) {
        status = sx_library_add(im->library, SX_INIT_SIGNATURE, body.b);
    }
    sx_tf_body_deinit(&body);
    sx_builder_destroy(body.b);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s, initialization \"%.100s\"",
                              sx_saved_model_dir(im->model), op);
}

/* ---- All of a model ---- */

static sx_status import_all(sx_library_importer *im, sx_status *out_refused)
{
    const Tensorflow__FunctionDefLibrary *defs = sx_saved_model_graph(im->model)->library;
    size_t n;
    const sx_signature *signatures = sx_saved_model_signatures(im->model, &n);
    for (size_t i = 0; defs != NULL && i < defs->n_function; i++) {
        const Tensorflow__OpDef *signature = defs->function[i]->signature;
        if (signature != NULL) {
            SX_TRY(sx_map_put(&im->defs, signature->name, defs->function[i]));
        }
    }
    SX_TRY(sx_tf_read_gradients(im));
    const Tensorflow__GraphDef *graph = sx_saved_model_graph(im->model);
    sx_v1_functions made = {.model = im->model, .functions = &im->defs};
    for (size_t i = 0; defs != NULL && i < defs->n_function; i++) {
        const Tensorflow__FunctionDef *converted = NULL;
        if (defs->function[i]->signature != NULL) {
            SX_TRY(sx_import_v1_function(defs->function[i], im->limits.nodes, &im->arena, &made,
                                         &converted));
            SX_TRY(sx_map_put(&im->defs, converted->signature->name, (void *)(uintptr_t)converted));
        }
    }
    SX_TRY(sx_import_v1_control(graph->node, graph->n_node, im->limits.nodes, &im->arena, &made,
                                &im->nodes, &im->n_graph_nodes));
    SX_TRY(sx_tf_choose_implementations(im));
    SX_TRY(sx_tf_find_changes(im));
    if (out_refused == NULL) {
        SX_TRY(import_initializer(im));
        return sx_library_finish(im->library);
    }
    for (size_t i = 0; i < n; i++) {
        sx_status status =
            strcmp(signatures[i].key, SX_INIT_SIGNATURE) == 0
                ? sx_error(SX_UNIMPLEMENTED, "%s initializes the model; it cannot be run",
                           SX_INIT_SIGNATURE)
                : import_signature(im, &signatures[i]);
        const sx_code code = sx_status_code(status);
        if (code == SX_CANCELLED || code == SX_DEADLINE_EXCEEDED) { /* of the model, not of this */
            return status;
        }
        if (code == SX_RESOURCE_EXHAUSTED) {
            return sx_status_annotate(status, __FILE__, __LINE__, "%s, signature \"%s\"",
                                      sx_saved_model_dir(im->model), signatures[i].key);
        }
        out_refused[i] = status;
    }
    return sx_library_finish(im->library);
}

static int64_t or_default(int64_t limit, int64_t otherwise)
{
    return limit > 0 ? limit : otherwise;
}

/* The signatures; or, if out_refused is NULL, what initializes the model. */
static sx_status import_model(const sx_saved_model *model, const sx_import_limits *limits,
                              sx_library **out_library, sx_status *out_refused)
{
    const sx_import_limits none = {0};
    limits = limits != NULL ? limits : &none;
    if (!sx_saved_model_has_constants(model)) {
        return sx_error(SX_FAILED_PRECONDITION, "%s was imported before, and its constants freed",
                        sx_saved_model_dir(model));
    }
    sx_library_importer *im = sx_alloc(1, sizeof(*im));
    if (im == NULL) {
        return sx_import_memory();
    }
    size_t n;
    (void)sx_saved_model_signatures(model, &n);
    n = out_refused != NULL ? n : 0;
    for (size_t i = 0; i < n; i++) {
        out_refused[i] = SX_OK;
    }
    im->model = model;
    const size_t budget = sx_saved_model_budget(model);
    const int64_t constants = limits->memory != NULL ? MAX_CONSTANT_BYTES : (int64_t)budget;
    im->limits = (sx_import_limits){.nodes = or_default(limits->nodes, MAX_NODES),
                                    .functions = or_default(limits->functions, MAX_FUNCTIONS),
                                    .calls = or_default(limits->calls, MAX_CALLS),
                                    .constant_bytes = or_default(limits->constant_bytes, constants),
                                    .devices = limits->devices,
                                    .cancel = limits->cancel,
                                    .memory = limits->memory};
    sx_arena_init(&im->arena, limits->memory != NULL ? 0 : budget);
    im->arena.budget = limits->memory;
    sx_map_init(&im->defs);
    sx_map_init(&im->made);
    sx_map_init(&im->changes);
    sx_map_init(&im->changed);
    sx_map_init(&im->gradients);
    sx_map_init(&im->concrete);
    sx_map_init(&im->outside);
    sx_status status = sx_library_create(&im->library);
    if (status == SX_OK) {
        im->library->arena.budget = limits->memory;
        status = import_all(im, out_refused);
    }
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && limits->memory != NULL &&
        sx_budget_refused(limits->memory)) {
        const bool tells = !sx_status_is_no_memory(status); /* what is so large */
        sx_status over =
            sx_status_annotate(sx_budget_over(limits->memory, "the graph", 0), __FILE__, __LINE__,
                               "%s", tells ? sx_status_message(status) : sx_saved_model_dir(model));
        sx_status_free(status);
        status = over;
    }
    for (size_t i = 0; i < n && status != SX_OK; i++) {
        sx_status_free(out_refused[i]);
        out_refused[i] = SX_OK;
    }
    if (status == SX_OK) {
        *out_library = im->library;
    } else {
        sx_library_destroy(im->library);
    }
    sx_map_deinit(&im->defs);
    sx_map_deinit(&im->made);
    sx_map_deinit(&im->changes);
    sx_map_deinit(&im->changed);
    sx_map_deinit(&im->gradients);
    sx_map_deinit(&im->concrete);
    sx_map_deinit(&im->outside);
    sx_proto_free(im->objects);
    sx_arena_deinit(&im->arena);
    sx_free(im);
    return status;
}

sx_status sx_import_library(const sx_saved_model *model, const sx_import_limits *limits,
                            sx_library **out_library, sx_status *out_refused)
{
    return import_model(model, limits, out_library, out_refused);
}

sx_status sx_import_initializer(const sx_saved_model *model, const sx_import_limits *limits,
                                sx_library **out_library)
{
    *out_library = NULL;
    return sx_saved_model_init_op(model)[0] == '\0'
               ? SX_OK
               : import_model(model, limits, out_library, NULL);
}
