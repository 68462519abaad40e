/* Walks the graph of a signature: the nodes that the outputs need, in topological order, with
 * functions inlined. */
#include "savedmodel/import.h"

#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "savedmodel/export.h"
#include "savedmodel/import_internal.h"
#include "savedmodel/tf_graph.h"

enum {
    MAX_INLINED_NODES = 200000,
    MAX_CALL_DEPTH = 64,
    MIN_OUTPUT_ROOM = 8, /* for an operator; a call has as many outputs as its function */
};

/* A body being imported: the graph, or one call of a function. */
struct frame {
    Tensorflow__NodeDef *const *nodes;
    size_t n_nodes;
    sx_map index;          /* name -> node number + 1 */
    sx_imported **results; /* [n_nodes], NULL until imported */
    int *n_results;
    const Tensorflow__OpDef *signature; /* of the function, or NULL */
    const sx_imported *args;
    int n_args;
    int *order; /* the needed nodes, inputs first */
    int n_order;
};

static sx_status call_function(sx_importer *im, const Tensorflow__FunctionDef *function,
                               sx_import_node *n);
static const Tensorflow__FunctionDef *called(const sx_importer *im,
                                             const Tensorflow__NodeDef *node);

/* ---- References ---- */

/* The number of the node that a reference names, or -1. */
static int find_node(const struct frame *f, const sx_tf_ref *ref)
{
    return (int)(uintptr_t)sx_map_get_bytes(&f->index, ref->node, ref->node_bytes) - 1;
}

/* The tensor that a reference names. UNIMPLEMENTED: an output of the node that is not imported.
 * DATA_LOSS: one that it does not have. */
static sx_status resolve(const sx_importer *im, const struct frame *f, const char *text,
                         sx_imported *out)
{
    sx_tf_ref ref;
    if (!sx_tf_ref_parse(text, &ref)) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\" is not a tensor reference", text);
    }
    int arg = sx_import_find_arg(f->signature, &ref), node = find_node(f, &ref);
    if (arg >= 0) {
        if (arg >= f->n_args) {
            return sx_error(SX_DATA_LOSS, "missing argument \"%.100s\" of the function", text);
        }
        *out = f->args[arg];
        return SX_OK;
    }
    if (node < 0 || f->results[node] == NULL) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\": no such node", text);
    }
    const sx_imported *results = f->results[node];
    const Tensorflow__NodeDef *source = f->nodes[node];
    const Tensorflow__FunctionDef *function = called(im, source);
    const int output = sx_import_output_of(function, source, &ref),
              n_outputs = function != NULL ? (int)function->signature->n_output_arg
                                           : sx_tf_op_outputs(source->op);
    if (n_outputs >= 0 && output >= n_outputs) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\": %.100s \"%.200s\" has %d output%s", text,
                        source->op, source->name, n_outputs, n_outputs == 1 ? "" : "s");
    }
    if (output >= 0 && output < f->n_results[node] && results[output].kind != SX_IMPORTED_NONE) {
        *out = results[output];
    } else if (results[0].kind == SX_IMPORTED_REFUSED) {
        *out = results[0];
    } else {
        return sx_error(SX_UNIMPLEMENTED, "\"%.100s\": output %d of %.100s is not supported", text,
                        output, source->op);
    }
    return SX_OK;
}

/* ---- Order ---- */

/* Decoded images come from a marked node: the nodes before it run on the host. */
static bool is_leaf(const struct frame *f, int node)
{
    return f->results[node] != NULL ||
           sx_tf_node_attr(f->nodes[node], SX_PREPROCESS_ATTRIBUTE) != NULL;
}

struct visit {
    int node;
    size_t next; /* next input to visit */
};

enum { UNSEEN = 0, OPEN, DONE };

struct walk {
    struct frame *f;
    struct visit *stack; /* [n_nodes] */
    int depth;
    uint8_t *state; /* [n_nodes] */
};

static sx_status enter(struct walk *w, const char *text)
{
    sx_tf_ref ref;
    if (!sx_tf_ref_parse(text, &ref)) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\" is not a tensor reference", text);
    }
    int node = find_node(w->f, &ref);
    if (ref.control && node >= 0 && strncmp(w->f->nodes[node]->op, "Assign", 6) == 0) {
        return sx_error(SX_UNIMPLEMENTED, "it runs after \"%.200s\", which assigns a variable",
                        w->f->nodes[node]->name);
    }
    if (ref.control || sx_import_find_arg(w->f->signature, &ref) >= 0) {
        return SX_OK;
    }
    if (node < 0) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\": no such node", text);
    }
    if (w->state[node] == OPEN) {
        return sx_error(SX_DATA_LOSS, "node \"%.200s\" depends on itself", w->f->nodes[node]->name);
    }
    if (w->state[node] == UNSEEN) {
        w->state[node] = OPEN;
        w->stack[w->depth++] = (struct visit){node, 0};
    }
    return SX_OK;
}

/* Appends the nodes that `root` needs to the order. Uses an explicit stack, because a graph may be
 * as deep as it is large. */
static sx_status walk_from(struct walk *w, const char *root)
{
    SX_TRY(enter(w, root));
    while (w->depth > 0) {
        struct visit *top = &w->stack[w->depth - 1];
        const Tensorflow__NodeDef *node = w->f->nodes[top->node];
        if (!is_leaf(w->f, top->node) && top->next < node->n_input) {
            SX_TRY(enter(w, node->input[top->next++]), "node \"%.200s\"", node->name);
            continue;
        }
        w->state[top->node] = DONE;
        w->f->order[w->f->n_order++] = top->node;
        w->depth--;
    }
    return SX_OK;
}

static sx_status order_from(struct frame *f, const char *const *roots, size_t n)
{
    struct walk w = {.f = f,
                     .stack = sx_alloc(f->n_nodes + 1, sizeof(struct visit)),
                     .state = sx_alloc(f->n_nodes + 1, 1)};
    sx_status status = w.stack == NULL || w.state == NULL ? sx_import_memory() : SX_OK;
    for (size_t i = 0; i < n && status == SX_OK; i++) {
        status = walk_from(&w, roots[i]);
    }
    sx_free(w.stack);
    sx_free(w.state);
    return status;
}

/* ---- Nodes ---- */

static const Tensorflow__FunctionDef *find_function(const sx_importer *im, const char *name)
{
    const Tensorflow__FunctionDefLibrary *library = sx_saved_model_graph(im->model)->library;
    for (size_t i = 0; library != NULL && i < library->n_function; i++) {
        const Tensorflow__OpDef *signature = library->function[i]->signature;
        if (signature != NULL && strcmp(signature->name, name) == 0) {
            return library->function[i];
        }
    }
    return NULL;
}

/* The function that a node calls, or NULL. */
static const Tensorflow__FunctionDef *called(const sx_importer *im, const Tensorflow__NodeDef *node)
{
    const char *name = sx_import_called(node, sx_import_find(node->op) != NULL);
    return name != NULL ? find_function(im, name) : NULL;
}

/* Records that the node, and so everything that reads it, cannot be imported. The import continues,
 * to find all such nodes. */
static sx_status refuse(sx_importer *im, sx_import_node *n, const char *why)
{
    SX_TRY(sx_import_refuse(&im->refused, im->arena, n->node, why));
    for (int i = 0; i <= n->n_out; i++) { /* one more, for a node without outputs */
        n->out[i] = (sx_imported){.kind = SX_IMPORTED_REFUSED};
    }
    return SX_OK;
}

static sx_status take_inputs(sx_importer *im, const struct frame *f, sx_import_node *n)
{
    sx_imported *in = sx_arena_array(im->arena, n->node->n_input + 1, sx_imported);
    if (in == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < n->node->n_input && !(n->node->input[i][0] == '^'); i++) {
        SX_TRY(resolve(im, f, n->node->input[i], &in[n->n_in++]));
    }
    n->in = in;
    return SX_OK;
}

static bool has_refused_input(const sx_import_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind == SX_IMPORTED_REFUSED) {
            return true;
        }
    }
    return false;
}

static sx_status run_row(sx_importer *im, sx_import_node *n)
{
    n->row = sx_import_find(n->node->op);
    if (n->row == NULL) {
        return refuse(im, n, "");
    }
    if (has_refused_input(n)) {
        for (int i = 0; i < n->n_out; i++) {
            n->out[i] = (sx_imported){.kind = SX_IMPORTED_REFUSED};
        }
        return SX_OK;
    }
    (void)sx_scope_begin(im->b, n->node->name, NULL);
    sx_status status = n->row->import(im, n);
    sx_scope_end(im->b);
    if (sx_builder_failed(im->b)) { /* later nodes lack input types: the first error counts */
        sx_graph *none = NULL;
        sx_status_free(status);
        return sx_builder_finish(im->b, &none);
    }
    return status;
}

static sx_status import_node(sx_importer *im, struct frame *f, int i)
{
    if (f->results[i] != NULL) { /* fed */
        return SX_OK;
    }
    if (++im->n_nodes > MAX_INLINED_NODES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d nodes after inlining functions",
                        MAX_INLINED_NODES);
    }
    sx_import_node n = {.node = f->nodes[i]};
    const Tensorflow__FunctionDef *function = called(im, n.node);
    n.n_out = function != NULL ? (int)function->signature->n_output_arg
                               : SX_MAX((int)n.node->n_input, MIN_OUTPUT_ROOM);
    n.out = sx_arena_array(im->arena, n.n_out + 1, sx_imported);
    if (n.out == NULL) {
        return sx_import_memory();
    }
    sx_status status = is_leaf(f, i) ? SX_OK : take_inputs(im, f, &n);
    if (status == SX_OK) {
        status = function != NULL ? call_function(im, function, &n) : run_row(im, &n);
    }
    if (sx_status_code(status) == SX_UNIMPLEMENTED) {
        sx_status refused = refuse(im, &n, sx_status_message(status));
        sx_status_free(status);
        status = refused;
    }
    SX_TRY(status);
    f->results[i] = n.out;
    f->n_results[i] = n.n_out;
    return SX_OK;
}

static sx_status import_order(sx_importer *im, struct frame *f)
{
    for (int i = 0; i < f->n_order; i++) {
        const Tensorflow__NodeDef *node = f->nodes[f->order[i]];
        SX_TRY(import_node(im, f, f->order[i]), "%.100s \"%.200s\"", node->op, node->name);
    }
    return SX_OK;
}

/* ---- Frames ---- */

static sx_status frame_init(struct frame *f, Tensorflow__NodeDef *const *nodes, size_t n,
                            const Tensorflow__OpDef *signature)
{
    *f = (struct frame){.nodes = nodes, .n_nodes = n, .signature = signature};
    sx_map_init(&f->index);
    f->results = sx_alloc(n + 1, sizeof(*f->results));
    f->n_results = sx_alloc(n + 1, sizeof(*f->n_results));
    f->order = sx_alloc(n + 1, sizeof(*f->order));
    if (f->results == NULL || f->n_results == NULL || f->order == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < n; i++) {
        if (sx_map_has(&f->index, nodes[i]->name)) {
            return sx_error(SX_DATA_LOSS, "node name \"%.200s\" is not unique", nodes[i]->name);
        }
        SX_TRY(sx_map_put(&f->index, nodes[i]->name, (void *)(uintptr_t)(i + 1)));
    }
    return sx_import_check_edges(nodes, n, &f->index, signature);
}

static void frame_deinit(struct frame *f)
{
    sx_map_deinit(&f->index);
    sx_free(f->results);
    sx_free(f->n_results);
    sx_free(f->order);
}

static sx_status import_function(sx_importer *im, const Tensorflow__FunctionDef *function,
                                 struct frame *f, sx_import_node *n)
{
    const char **roots = sx_arena_array(im->arena, n->n_out + 1, const char *);
    if (roots == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_import_returned(function, roots));
    for (size_t i = 0; i < function->n_control_ret; i++) { /* what it runs for its effect */
        sx_tf_ref ref;
        const int node =
            sx_tf_ref_parse(function->control_ret[i]->value, &ref) ? find_node(f, &ref) : -1;
        if (node >= 0 && strncmp(f->nodes[node]->op, "Assign", 6) == 0) {
            return sx_error(SX_UNIMPLEMENTED, "function \"%.100s\" assigns a variable",
                            function->signature->name);
        }
    }
    SX_TRY(order_from(f, roots, (size_t)n->n_out));
    SX_TRY(import_order(im, f));
    for (int i = 0; i < n->n_out; i++) {
        SX_TRY(resolve(im, f, roots[i], &n->out[i]));
    }
    return SX_OK;
}

static sx_status call_function(sx_importer *im, const Tensorflow__FunctionDef *function,
                               sx_import_node *n)
{
    if (im->depth == MAX_CALL_DEPTH) {
        return sx_error(SX_DATA_LOSS, "function calls nest deeper than %d", MAX_CALL_DEPTH);
    }
    struct frame f;
    sx_status status =
        frame_init(&f, function->node_def, function->n_node_def, function->signature);
    f.args = n->in;
    f.n_args = n->n_in;
    im->depth++;
    if (status == SX_OK) {
        status = import_function(im, function, &f, n);
    }
    im->depth--;
    frame_deinit(&f);
    return status;
}

/* ---- The signature ---- */

/* The value of an input of the signature: an input of the graph, or the encoded images. */
static sx_status feed(sx_importer *im, const sx_signature_tensor *t, sx_imported *out)
{
    if (t->type.dtype == SX_STRING) {
        *out = (sx_imported){.kind = SX_IMPORTED_STRINGS};
        return SX_OK;
    }
    bool fits = t->type.dtype != SX_DTYPE_NONE && !t->unknown_rank;
    for (int d = 1; fits && d < t->type.rank; d++) {
        fits = t->type.dims[d] >= 0;
    }
    if (!fits) {
        char text[SX_TYPE_TEXT];
        return sx_error(
            SX_UNIMPLEMENTED, "input \"%.100s\" is %s; every dimension but the first must be known",
            t->key,
            t->unknown_rank ? "of unknown rank" : sx_type_format(&t->type, text, sizeof(text)));
    }
    *out = (sx_imported){.kind = SX_IMPORTED_VALUE, .value = sx_input(im->b, t->key, t->type)};
    return SX_OK;
}

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
    char says[SX_TYPE_TEXT], is[SX_TYPE_TEXT];
    return sx_error(SX_DATA_LOSS,
                    "input \"%.100s\" is %s in the signature, but %s \"%.200s\" is %s", t->key,
                    sx_type_format(&t->type, says, sizeof(says)), node->op, node->name,
                    sx_type_format(&own, is, sizeof(is)));
}

static sx_status feed_all(sx_importer *im, struct frame *f)
{
    const sx_signature *s = im->result->signature;
    for (size_t i = 0; i < s->n_inputs; i++) {
        sx_tf_ref ref;
        int node = sx_tf_ref_parse(s->inputs[i].tensor, &ref) ? find_node(f, &ref) : -1;
        sx_imported *value = sx_arena_new(im->arena, sx_imported);
        if (value == NULL) {
            return sx_import_memory();
        }
        if (node < 0 || ref.output != 0) {
            return sx_error(SX_DATA_LOSS,
                            "input \"%.100s\": the graph has no tensor \"%.100s\" to feed",
                            s->inputs[i].key, s->inputs[i].tensor);
        }
        SX_TRY(check_placeholder(sx_saved_model_graph(im->model), &s->inputs[i], f->nodes[node]));
        SX_TRY(feed(im, &s->inputs[i], value));
        f->results[node] = value;
        f->n_results[node] = 1;
    }
    return SX_OK;
}

static sx_status add_lookup(sx_importer *im, const char *key, const sx_imported *v)
{
    char *index = sx_arena_printf(im->arena, "%s/index", key);
    if (index == NULL) {
        return sx_import_memory();
    }
    sx_output(im->b, index, v->value);
    im->result->lookups[im->result->n_lookups++] =
        (sx_import_lookup){key, index, v->constant.data, sx_type_elems(&v->constant.type)};
    return SX_OK;
}

static sx_status add_output(sx_importer *im, const sx_signature_tensor *t, const sx_imported *v)
{
    const char *key = t->key;
    const bool lookup = v->kind == SX_IMPORTED_LOOKUP;
    sx_value value = v->value;
    if (!lookup) {
        SX_TRY(sx_import_value(im, v, &value), "output \"%.100s\"", key);
    }
    sx_type type = sx_type_of_value(im->b, value);
    type.dtype = lookup ? SX_STRING : type.dtype;
    const bool shape_agrees = t->unknown_rank || t->no_shape || shapes_agree(&t->type, &type);
    if (type.dtype != SX_DTYPE_NONE && /* the builder has not failed */
        (!shape_agrees || (t->tf_dtype > 0 && t->tf_dtype != (int)type.dtype))) {
        char says[SX_TYPE_TEXT], is[SX_TYPE_TEXT];
        return sx_error(SX_DATA_LOSS,
                        "output \"%.100s\" is %s in the signature, but \"%.200s\" is %s", key,
                        sx_type_format(&t->type, says, sizeof(says)), t->tensor,
                        sx_type_format(&type, is, sizeof(is)));
    }
    if (lookup) {
        return add_lookup(im, key, v);
    }
    if (sx_batch_axis(&type) > 0) { /* the predictor joins the rows of several executions */
        char text[SX_TYPE_TEXT];
        return sx_error(SX_UNIMPLEMENTED,
                        "output \"%.100s\" is %s; the batch must be its first dimension", key,
                        sx_type_format(&type, text, sizeof(text)));
    }
    sx_output(im->b, key, value);
    return SX_OK;
}

static sx_status add_outputs(sx_importer *im, struct frame *f)
{
    const sx_signature *s = im->result->signature;
    im->result->lookups = sx_arena_array(im->arena, s->n_outputs + 1, sx_import_lookup);
    if (im->result->lookups == NULL) {
        return sx_import_memory();
    }
    if (im->refused.n > 0) {
        return sx_import_refusals_error(&im->refused);
    }
    for (size_t i = 0; i < s->n_outputs; i++) {
        sx_imported value = {0};
        SX_TRY(resolve(im, f, s->outputs[i].tensor, &value), "output \"%.100s\"",
               s->outputs[i].key);
        SX_TRY(add_output(im, &s->outputs[i], &value));
    }
    return SX_OK;
}

static sx_status import_outputs(sx_importer *im, struct frame *f)
{
    const sx_signature *s = im->result->signature;
    const char **roots = sx_arena_array(im->arena, s->n_outputs + 1, const char *);
    if (roots == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < s->n_outputs; i++) {
        roots[i] = s->outputs[i].tensor;
    }
    SX_TRY(feed_all(im, f));
    SX_TRY(order_from(f, roots, s->n_outputs));
    SX_TRY(import_order(im, f));
    return add_outputs(im, f);
}

static sx_status import_graph(sx_importer *im)
{
    const Tensorflow__GraphDef *graph = sx_saved_model_graph(im->model);
    struct frame f;
    sx_status status = frame_init(&f, graph->node, graph->n_node, NULL);
    if (status == SX_OK) {
        status = import_outputs(im, &f);
    }
    frame_deinit(&f);
    SX_TRY(status);
    return sx_builder_finish(im->b, &im->result->graph);
}

static sx_status import_into(const sx_saved_model *model, const char *signature, sx_import *result)
{
    sx_importer im = {.model = model, .result = result, .arena = &result->arena};
    SX_TRY(sx_saved_model_find_signature(model, signature, &result->signature));
    SX_TRY(sx_builder_create(&im.b));
    sx_builder_arena(im.b)->budget = result->arena.budget;
    sx_status status = import_graph(&im);
    sx_builder_destroy(im.b);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s, signature \"%s\"",
                              sx_saved_model_dir(model), signature);
}

sx_status sx_import_signature(const sx_saved_model *model, const char *signature, sx_budget *memory,
                              sx_import **out_import)
{
    sx_import *import = sx_alloc(1, sizeof(*import));
    if (import == NULL) {
        return sx_import_memory();
    }
    sx_arena_init(&import->arena, sx_saved_model_budget(model));
    import->arena.budget = memory;
    sx_status status = import_into(model, signature, import);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && sx_budget_refused(memory)) {
        sx_status_free(status);
        status = sx_budget_over(memory, "the graph", 0);
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s, signature \"%s\"",
                                    sx_saved_model_dir(model), signature);
    }
    if (status != SX_OK) {
        sx_import_destroy(import);
        return status;
    }
    *out_import = import;
    return SX_OK;
}

void sx_import_destroy(sx_import *import)
{
    if (import != NULL) {
        sx_graph_destroy(import->graph);
        sx_arena_deinit(&import->arena);
        sx_free(import);
    }
}
