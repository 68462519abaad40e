/* The nodes that a signature or a function needs, inputs first, and the functions that they call.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "savedmodel/import_library_ops.h"
#include "savedmodel/tf_graph.h"

/* ---- References ---- */

int sx_tf_body_find_arg(const sx_tf_body *body, const sx_tf_ref *ref)
{
    return (int)(uintptr_t)sx_map_get_bytes(&body->arg_index, ref->node, ref->node_bytes) - 1;
}

int sx_tf_body_find_node(const sx_tf_body *body, const sx_tf_ref *ref)
{
    return (int)(uintptr_t)sx_map_get_bytes(&body->index, ref->node, ref->node_bytes) - 1;
}

const sx_tf_thing *sx_tf_body_results(const sx_tf_body *body, int node, sx_tf_thing *one,
                                      int *out_n)
{
    *out_n = body->n_results[node];
    if (body->results[node] != NULL || !sx_value_is(body->plain[node])) {
        return body->results[node];
    }
    *one = (sx_tf_thing){.kind = SX_TF_VALUE,
                         .value = body->plain[node],
                         .known = sx_tf_constant_of(body->b, body->plain[node])};
    *out_n = 1;
    return one;
}

/* The function that a node calls, or NULL. */
static const Tensorflow__FunctionDef *called(const sx_library_importer *im,
                                             const Tensorflow__NodeDef *node)
{
    const char *name = sx_import_called(node, sx_tf_import_has_op(node->op));
    return name != NULL ? sx_map_get(&im->defs, name) : NULL;
}

sx_status sx_tf_body_resolve(const sx_library_importer *im, const sx_tf_body *body,
                             const char *text, sx_tf_thing *out)
{
    sx_tf_ref ref;
    if (!sx_tf_ref_parse(text, &ref)) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\" is not a tensor reference", text);
    }
    const int arg = sx_tf_body_find_arg(body, &ref), node = sx_tf_body_find_node(body, &ref);
    if (arg >= 0) {
        *out = body->args[arg];
        return SX_OK;
    }
    sx_tf_thing one;
    int n_results = 0;
    const sx_tf_thing *results =
        node >= 0 ? sx_tf_body_results(body, node, &one, &n_results) : NULL;
    if (results == NULL) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\": no such node", text);
    }
    const Tensorflow__NodeDef *source = body->nodes[node];
    const Tensorflow__FunctionDef *function = called(im, source);
    const Tensorflow__OpDef *op =
        function == NULL ? sx_saved_model_find_op(im->model, source->op) : NULL;
    const int output = sx_import_output_of(function, op, source, &ref),
              n_outputs = function != NULL ? (int)function->signature->n_output_arg
                                           : sx_tf_op_outputs(source->op);
    if (n_outputs >= 0 && output >= n_outputs) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\": %.100s \"%.200s\" has %d output%s", text,
                        source->op, source->name, n_outputs, n_outputs == 1 ? "" : "s");
    }
    if (output >= 0 && output < n_results && results[output].kind != SX_TF_NOTHING) {
        *out = results[output];
    } else if (results[0].kind == SX_TF_REFUSED) {
        *out = results[0];
    } else {
        return sx_error(SX_UNIMPLEMENTED, "\"%.100s\": output %d of %.100s is not supported", text,
                        output, source->op);
    }
    return SX_OK;
}

/* ---- Nodes ---- */

/* Records that the node, and so everything that reads it, cannot be imported. The import goes on,
 * to find all such nodes. */
static sx_status refuse(sx_library_importer *im, const sx_tf_body *body, sx_tf_import_node *n,
                        const char *why)
{
    const Tensorflow__FunctionDef *function = body->function;
    SX_TRY(sx_import_refuse(&im->refused, &im->arena, n->node,
                            function != NULL ? function->signature->name : NULL, why));
    for (int i = 0; i < n->n_out; i++) {
        n->out[i] = (sx_tf_thing){.kind = SX_TF_REFUSED};
    }
    return SX_OK;
}

/* A call: n->out gets the results. */
static sx_status import_call(sx_library_importer *im, sx_tf_body *body,
                             const Tensorflow__FunctionDef *function, sx_tf_import_node *n);

sx_status sx_tf_create_builder(const sx_library_importer *im, sx_builder **out_b)
{
    SX_TRY(sx_builder_create_function(out_b));
    sx_builder_arena(*out_b)->budget = im->limits.memory;
    return SX_OK;
}

sx_status sx_tf_first_error(sx_builder *b, sx_status status)
{
    sx_graph *none = NULL;
    if (!sx_builder_failed(b)) {
        return status;
    }
    sx_status first = sx_builder_finish(b, &none);
    const bool told = status != SX_OK && sx_status_code(first) == SX_FAILED_PRECONDITION;
    sx_status_free(told ? first : status); /* told by a node of a call in place */
    return told ? status : first;
}

/* The ranks that TensorFlow knew of a node's outputs and we do not; running the function checks
 * them. Not the sizes: a set_shape() that is wrong about them does no harm there. */
static void take_ranks(sx_tf_body *body, const sx_tf_import_node *n)
{
    const Tensorflow__AttrValue *shapes = sx_tf_node_attr(n->node, "_output_shapes");
    const bool listed = shapes != NULL && shapes->list != NULL &&
                        shapes->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST;
    for (int k = 0; listed && k < n->n_out && k < (int)shapes->list->n_shape; k++) {
        const Tensorflow__TensorShapeProto *shape = shapes->list->shape[k];
        const sx_tf_thing *y = &n->out[k];
        if (shape->unknown_rank || shape->n_dim > SX_MAX_RANK) {
            continue;
        }
        if (y->kind == SX_TF_VALUE) {
            sx_builder_know_rank(body->b, y->value, (int)shape->n_dim);
        }
        for (int p = 0; p < 2 && y->kind == SX_TF_COMPLEX; p++) {
            sx_builder_know_rank(body->b, y->parts[p], (int)shape->n_dim);
        }
    }
}

/* Keeps the outputs of node number i, all of which are values, and frees what its import needed
 * beside them since `before`: most nodes of a model are such, and it may have many. */
static sx_status keep_outputs(sx_library_importer *im, sx_tf_body *body, int i,
                              const sx_arena_mark *before, sx_tf_import_node *n)
{
    enum { MOST = 16 };
    sx_value values[MOST];
    int n_made = 0;
    for (int k = 0; k < n->n_out; k++) {
        const sx_tf_thing *y = &n->out[k];
        n_made = y->kind != SX_TF_NOTHING ? k + 1 : n_made;
        if ((y->kind != SX_TF_NOTHING && y->kind != SX_TF_VALUE) || n_made > MOST) {
            return SX_OK;
        }
        if (k < MOST) {
            values[k] = y->kind == SX_TF_VALUE ? y->value : SX_NO_VALUE;
        }
    }
    sx_arena_rewind(&im->arena, before);
    if (n_made == 1) {
        body->plain[i] = values[0];
        n->out = NULL;
        n->n_out = 0;
        return SX_OK;
    }
    n->n_out = SX_MAX(n_made, 1);
    n->out = sx_arena_array(&im->arena, n->n_out, sx_tf_thing);
    if (n->out == NULL) {
        return sx_import_memory();
    }
    for (int k = 0; k < n_made; k++) {
        if (sx_value_is(values[k])) {
            n->out[k] = (sx_tf_thing){.kind = SX_TF_VALUE,
                                      .value = values[k],
                                      .known = sx_tf_constant_of(body->b, values[k])};
        }
    }
    return SX_OK;
}

static sx_status check_nodes(const sx_library_importer *im, int64_t n)
{
    return n <= im->limits.nodes
               ? SX_OK
               : sx_error(SX_RESOURCE_EXHAUSTED, "more than %lld nodes in all functions",
                          (long long)im->limits.nodes);
}

static sx_status import_node(sx_library_importer *im, sx_tf_body *body, int i)
{
    enum { MIN_OUTPUT_ROOM = 8 };
    sx_tf_import_node n = {.node = body->nodes[i]};
    const sx_tf_form *composed_form = NULL;
    const sx_op_def *composed = sx_tf_composed_op(n.node, &composed_form);
    const Tensorflow__FunctionDef *function = called(im, n.node);
    SX_TRY(check_nodes(im, ++im->n_nodes));
    const sx_tf_form *form = NULL;
    const sx_op_def *op = function == NULL ? sx_op_find_tf(n.node->op, &form) : NULL;
    const bool parses = strncmp(n.node->op, "Parse", strlen("Parse")) == 0; /* records */
    const int room =
        parses || (op != NULL && op->n_out == SX_VARIADIC) ? SX_MAX_OUTPUTS : MIN_OUTPUT_ROOM;
    n.n_out = function != NULL ? (int)function->signature->n_output_arg + 1
                               : SX_MAX((int)n.node->n_input, room);
    const sx_arena_mark before = sx_arena_mark_here(&im->arena);
    const int refused_before = im->refused.n;
    n.out = sx_arena_array(&im->arena, n.n_out, sx_tf_thing);
    sx_tf_thing *in = sx_arena_array(&im->arena, n.node->n_input + 1, sx_tf_thing);
    if (n.out == NULL || in == NULL) {
        return sx_import_memory();
    }
    bool refused = false;
    sx_status status = SX_OK;
    for (size_t k = 0; k < n.node->n_input && status == SX_OK && composed == NULL; k++) {
        if (n.node->input[k][0] != '^') {
            status = sx_tf_body_resolve(im, body, n.node->input[k], &in[n.n_in]);
            refused = refused || in[n.n_in].kind == SX_TF_REFUSED;
            n.n_in++;
        }
    }
    n.in = in;
    char unknown[SX_TF_DTYPE_TEXT];
    if (status == SX_OK && function == NULL && sx_import_is_call(n.node->op)) {
        status = sx_tf_import_function_of(im, n.node, "f", &function); /* says what is missing */
    } else if (status == SX_OK && function == NULL && !sx_tf_import_has_op(n.node->op)) {
        status = refuse(im, body, &n, sx_tf_import_why_not(n.node->op));
    } else if (status == SX_OK && function == NULL && sx_import_has_new_dtype(n.node, unknown)) {
        status = sx_error(SX_UNIMPLEMENTED, "%s is not supported", unknown);
    } else if (status == SX_OK && refused) {
        for (int k = 0; k < n.n_out; k++) {
            n.out[k] = (sx_tf_thing){.kind = SX_TF_REFUSED};
        }
    } else if (status == SX_OK) {
        (void)sx_scope_begin(body->b, n.node->name, NULL);
        if (im->limits.devices) {
            sx_device_scope_begin(body->b, n.node->device);
        }
        status = composed != NULL ? sx_tf_import_composed(im, body, i, composed, composed_form, &n)
                 : function != NULL ? import_call(im, body, function, &n)
                                    : sx_tf_import_op(im, body, &n);
        if (im->limits.devices) {
            sx_device_scope_end(body->b);
        }
        sx_scope_end(body->b);
        status = sx_tf_first_error(body->b, status);
        if (status == SX_OK) {
            take_ranks(body, &n);
        }
    }
    if (sx_status_code(status) == SX_UNIMPLEMENTED) {
        sx_status kept = refuse(im, body, &n, sx_status_message(status));
        sx_status_free(status);
        status = kept;
        im->innermost = im->depth;
    }
    if (status == SX_OK && composed == NULL && function == NULL &&
        im->refused.n == refused_before && !sx_tf_import_keeps(n.node)) {
        status = keep_outputs(im, body, i, &before, &n);
    }
    body->results[i] = n.out;
    body->n_results[i] = n.n_out;
    return status;
}

/* ---- Order ---- */

typedef struct visit {
    const char *const *captures; /* [n_captures] */
    size_t n_captures;
    uint32_t node, next; /* next: input to visit; after those, captures of its gradient */
} visit;

typedef struct walk {
    sx_library_importer *im;
    sx_tf_body *body;
    visit *stack;  /* [n_nodes]: a graph may be as deep as it is large */
    bool *entered; /* [n_nodes] */
    int depth;
} walk;

static sx_status enter(walk *w, const char *text)
{
    sx_tf_ref ref;
    if (!sx_tf_ref_parse(text, &ref)) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\" is not a tensor reference", text);
    }
    const int node = sx_tf_body_find_node(w->body, &ref);
    sx_tf_thing one;
    int n;
    if (sx_tf_body_find_arg(w->body, &ref) >= 0 ||
        (node >= 0 && sx_tf_body_results(w->body, node, &one, &n) != NULL)) {
        return SX_OK;
    }
    if (node < 0) {
        return sx_error(SX_DATA_LOSS, "\"%.100s\": no such node", text);
    }
    if (w->entered[node]) {
        return sx_error(SX_DATA_LOSS, "node \"%.200s\" depends on itself",
                        w->body->nodes[node]->name);
    }
    SX_TRY(check_nodes(w->im, w->im->n_nodes + w->depth + 1)); /* before any of a chain is built */
    w->entered[node] = true;
    visit *top = &w->stack[w->depth++];
    *top = (visit){.node = (uint32_t)node};
    return sx_tf_gradient_captures(w->im, w->body, w->body->nodes[node], &top->captures,
                                   &top->n_captures);
}

/* Imports what `root` needs, then the node that it names. Nodes before which others must run, by
 * control edges, come after them. */
static sx_status import_from(walk *w, const char *root)
{
    SX_TRY(enter(w, root));
    while (w->depth > 0) {
        visit *top = &w->stack[w->depth - 1];
        const Tensorflow__NodeDef *node = w->body->nodes[top->node];
        const sx_tf_form *form = NULL;
        if (top->next < node->n_input && sx_tf_composed_op(node, &form) == NULL) {
            SX_TRY(enter(w, node->input[top->next++]), "node \"%.200s\"", node->name);
            continue;
        }
        if (top->n_captures > 0) {
            SX_TRY(enter(w, top->captures[--top->n_captures]), "node \"%.200s\"", node->name);
            continue;
        }
        SX_TRY(sx_cancel_check(w->im->limits.cancel));
        sx_status status = import_node(w->im, w->body, (int)top->node);
        if (status != SX_OK && called(w->im, node) == NULL) { /* else the function is named */
            w->im->innermost = w->im->depth;
            status = sx_status_annotate(status, __FILE__, __LINE__, "%.100s \"%.200s\"", node->op,
                                        node->name);
        }
        SX_TRY(status);
        w->depth--;
    }
    return SX_OK;
}

sx_status sx_tf_import_roots(sx_library_importer *im, sx_tf_body *body, const char *const *roots,
                             size_t n)
{
    walk w = {.im = im,
              .body = body,
              .stack = sx_alloc(body->n_nodes + 1, sizeof(visit)),
              .entered = sx_alloc(body->n_nodes + 1, sizeof(bool))};
    sx_status status = w.stack == NULL || w.entered == NULL ? sx_import_memory() : SX_OK;
    for (size_t i = 0; i < n && status == SX_OK; i++) {
        status = import_from(&w, roots[i]);
    }
    sx_free(w.stack);
    sx_free(w.entered);
    return status;
}

sx_status sx_tf_body_init(sx_tf_body *body, Tensorflow__NodeDef *const *nodes, size_t n)
{
    body->nodes = nodes;
    body->n_nodes = n;
    sx_map_init_borrowed(&body->index); /* names are the model's */
    sx_map_init_borrowed(&body->arg_index);
    body->results = sx_alloc(n + 1, sizeof(*body->results));
    body->n_results = sx_alloc(n + 1, sizeof(*body->n_results));
    body->plain = sx_alloc(n + 1, sizeof(*body->plain));
    if (body->results == NULL || body->n_results == NULL || body->plain == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < n; i++) {
        if (sx_map_has(&body->index, nodes[i]->name)) {
            return sx_error(SX_DATA_LOSS, "node name \"%.200s\" is not unique", nodes[i]->name);
        }
        SX_TRY(sx_map_put(&body->index, nodes[i]->name, (void *)(uintptr_t)(i + 1)));
    }
    const Tensorflow__OpDef *signature = body->function != NULL ? body->function->signature : NULL;
    for (size_t i = 0; signature != NULL && i < signature->n_input_arg; i++) {
        const char *name = signature->input_arg[i]->name;
        if (!sx_map_has(&body->arg_index, name)) {
            SX_TRY(sx_map_put(&body->arg_index, name, (void *)(uintptr_t)(i + 1)));
        }
    }
    return sx_import_check_edges(nodes, n, &body->index, &body->arg_index);
}

void sx_tf_body_deinit(sx_tf_body *body)
{
    sx_map_deinit(&body->index);
    sx_map_deinit(&body->arg_index);
    sx_free(body->results);
    sx_free(body->n_results);
    sx_free(body->plain);
}

/* ---- Functions ---- */

sx_status sx_tf_import_function_of(const sx_library_importer *im, const Tensorflow__NodeDef *node,
                                   const char *attr, const Tensorflow__FunctionDef **out)
{
    const Tensorflow__AttrValue *f = sx_tf_node_attr(node, attr);
    const bool named =
        f != NULL && f->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && f->func != NULL;
    *out = named ? sx_map_get(&im->defs, f->func->name) : NULL;
    if (*out != NULL) {
        return SX_OK;
    }
    return named ? sx_error(SX_DATA_LOSS,
                            "attribute %s names function \"%.200s\", which the model does not have",
                            attr, f->func->name)
                 : sx_error(SX_DATA_LOSS, "attribute %s names no function of the model", attr);
}

static sx_status import_body(sx_library_importer *im, const sx_tf_body *outer,
                             const Tensorflow__FunctionDef *function, sx_builder *b,
                             const sx_tf_thing *args, int n_args, sx_tf_thing *out)
{
    const Tensorflow__OpDef *signature = function->signature;
    const size_t n_out = signature->n_output_arg, n_roots = n_out + function->n_control_ret;
    if (im->depth >= im->limits.calls) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "function calls nest deeper than %lld",
                        (long long)im->limits.calls);
    }
    if ((size_t)n_args != signature->n_input_arg) {
        return sx_error(SX_DATA_LOSS, "%d argument%s given, expected %zu", n_args,
                        n_args == 1 ? " is" : "s are", signature->n_input_arg);
    }
    const char **roots = sx_arena_array(&im->arena, n_roots + 1, const char *);
    if (roots == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_import_returned(function, roots));
    for (size_t i = n_out; i < n_roots; i++) { /* what runs for its effect */
        roots[i] = function->control_ret[i - n_out]->value;
    }
    sx_tf_body body = {
        .b = b, .function = function, .outer = outer, .args = args, .n_args = n_args};
    im->innermost = ++im->depth;
    im->untold = 0;
    sx_status status = sx_tf_body_init(&body, function->node_def, function->n_node_def);
    if (status == SX_OK) {
        status = sx_tf_import_roots(im, &body, roots, n_roots);
    }
    for (size_t i = 0; i < n_out && status == SX_OK; i++) {
        status = sx_tf_body_resolve(im, &body, roots[i], &out[i]);
        status = status != SX_OK ? status : sx_tf_settle(im, &body, &out[i]);
    }
    im->depth--;
    im->innermost = status == SX_OK ? im->depth : im->innermost;
    sx_tf_body_deinit(&body);
    return status;
}

/* Names the function that is called and in which there is an error: of calls in calls the first and
 * the last. */
static sx_status tell_function(sx_library_importer *im, const Tensorflow__FunctionDef *function,
                               sx_status status)
{
    const int64_t depth = im->depth + 1;
    if (status == SX_OK) {
        return SX_OK;
    }
    if (depth >= im->innermost) {
        im->untold = 0;
    } else if (depth > 1) {
        im->untold++;
        return status;
    } else if (im->untold > 0) {
        status = sx_status_annotate(status, __FILE__, __LINE__, "... %d more ...", im->untold);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "function \"%.100s\"",
                              function->signature->name);
}

sx_status sx_tf_import_body(sx_library_importer *im, const Tensorflow__FunctionDef *function,
                            sx_builder *b, const sx_tf_thing *args, int n_args, sx_tf_thing *out)
{
    return import_body(im, NULL, function, b, args, n_args, out);
}

/* A function of the library. */
typedef struct made_function {
    const char *name;     /* NULL while it is being made */
    sx_tf_thing *results; /* kinds and, of values, types in `variable` */
    int n_results;
    bool refused;
    bool in_place; /* it returns what has no value: it is no function of ours */
} made_function;

static sx_status unique_name(sx_library_importer *im, const char *name, const char **out)
{
    const sx_signature *signature = NULL; /* whose key is its function's name */
    sx_status found = sx_saved_model_find_signature(im->model, name, &signature);
    bool taken = found == SX_OK || sx_library_find(im->library, name) != NULL;
    sx_status_free(found);
    *out = name;
    for (int k = 2; taken; k++) {
        *out = sx_arena_printf(&im->arena, "%s#%d", name, k);
        if (*out == NULL) {
            return sx_import_memory();
        }
        taken = sx_library_find(im->library, *out) != NULL;
    }
    return SX_OK;
}

static sx_status make_function(sx_library_importer *im, const Tensorflow__FunctionDef *function,
                               sx_tf_thing *args, int n_args, made_function *made)
{
    const Tensorflow__OpDef *signature = function->signature;
    const int refused_before = im->refused.n;
    sx_builder *b = NULL;
    made->n_results = (int)signature->n_output_arg;
    made->results = sx_arena_array(&im->arena, made->n_results + 1, sx_tf_thing);
    if (made->results == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_create_builder(im, &b));
    for (int i = 0; i < n_args && (size_t)i < signature->n_input_arg; i++) {
        const sx_type type =
            args[i].kind == SX_TF_HANDLE ? sx_scalar_type(SX_RESOURCE) : args[i].variable;
        args[i].value = sx_input(b, signature->input_arg[i]->name, type);
    }
    sx_status status = sx_tf_import_body(im, function, b, args, n_args, made->results);
    made->refused = im->refused.n > refused_before;
    for (int i = 0; i < made->n_results && status == SX_OK; i++) {
        made->refused = made->refused || made->results[i].kind == SX_TF_REFUSED;
    }
    for (int i = 0; i < made->n_results && status == SX_OK && !made->refused; i++) {
        made->in_place = made->in_place || !sx_value_is(made->results[i].value);
    }
    const bool adds = !made->refused && !made->in_place;
    for (int i = 0; i < made->n_results && status == SX_OK && adds; i++) {
        sx_tf_thing *y = &made->results[i];
        sx_output(b, signature->output_arg[i]->name, y->value);
        y->variable = y->kind == SX_TF_HANDLE ? y->variable : sx_type_of_value(b, y->value);
    }
    const char *name = NULL;
    if (status == SX_OK && adds) {
        status = im->library->n_functions >= im->limits.functions
                     ? sx_error(SX_RESOURCE_EXHAUSTED, "more than %lld functions",
                                (long long)im->limits.functions)
                     : unique_name(im, signature->name, &name);
    }
    if (status == SX_OK && adds) {
        status = sx_library_add(im->library, name, b);
        made->name = name;
    }
    sx_builder_destroy(b);
    return status;
}

/* The call's nodes in its place: where a function cannot take or return what the call does. */
static sx_status import_inline(sx_library_importer *im, sx_tf_body *body,
                               const Tensorflow__FunctionDef *function, sx_tf_import_node *n)
{
    return tell_function(im, function,
                         import_body(im, body, function, body->b, n->in, n->n_in, n->out));
}

static sx_status import_call(sx_library_importer *im, sx_tf_body *body,
                             const Tensorflow__FunctionDef *function, sx_tf_import_node *n)
{
    bool in_place = false;
    SX_TRY(sx_tf_gradients_read_outside(im, function, &in_place));
    in_place = in_place || im->trials > 0;
    sx_tf_thing *given = sx_arena_memdup(&im->arena, n->in, ((size_t)n->n_in + 1) * sizeof(*given));
    if (given == NULL) {
        return sx_import_memory();
    }
    n->in = given;
    for (int i = 0; i < n->n_in; i++) {
        SX_TRY(sx_tf_settle(im, body, &given[i]));
        if (n->in[i].kind == SX_TF_REF) {
            return sx_error(SX_UNIMPLEMENTED, "argument %d is a variable of TensorFlow 1", i);
        }
        in_place = in_place || !sx_value_is(n->in[i].value);
    }
    if (in_place) {
        return import_inline(im, body, function, n);
    }
    sx_buf key;
    sx_buf_init(&key, 1 << 16);
    sx_buf_puts(&key, function->signature->name);
    sx_tf_thing *args = sx_arena_memdup(&im->arena, n->in, ((size_t)n->n_in + 1) * sizeof(*args));
    sx_value *in = sx_arena_array(&im->arena, n->n_in + 1, sx_value);
    for (int i = 0; i < n->n_in && args != NULL && in != NULL; i++) {
        char text[SX_TYPE_TEXT];
        in[i] = args[i].value;
        args[i].known = NULL;
        args[i].variable = args[i].kind == SX_TF_HANDLE ? args[i].variable
                                                        : sx_type_of_value(body->b, args[i].value);
        sx_buf_printf(&key, " %d%s", (int)args[i].kind,
                      sx_type_format(&args[i].variable, text, sizeof(text)));
    }
    made_function *made = sx_map_get(&im->made, sx_buf_text(&key));
    sx_status status = args == NULL || in == NULL ? sx_import_memory() : sx_buf_status(&key);
    if (status == SX_OK && made == NULL) {
        made = sx_arena_new(&im->arena, made_function);
        status = made == NULL ? sx_import_memory() : sx_map_put(&im->made, sx_buf_text(&key), made);
        status = status != SX_OK ? status : make_function(im, function, args, n->n_in, made);
        status = tell_function(im, function, status);
        if (status != SX_OK || made->refused) { /* another signature is to say why, too */
            sx_status forgot = sx_map_put(&im->made, sx_buf_text(&key), NULL);
            if (status == SX_OK) {
                status = forgot;
            } else {
                sx_status_free(forgot);
            }
        }
    } else if (status == SX_OK && made->name == NULL && !made->in_place) {
        status = sx_error(SX_UNIMPLEMENTED, "function \"%.100s\" calls itself",
                          function->signature->name);
    }
    sx_buf_deinit(&key);
    SX_TRY(status);
    if (made->in_place && !made->refused) {
        return import_inline(im, body, function, n);
    }
    if (made->refused) {
        for (int i = 0; i < n->n_out; i++) {
            n->out[i] = (sx_tf_thing){.kind = SX_TF_REFUSED};
        }
        return SX_OK;
    }
    sx_type types[SX_MAX_OUTPUTS];
    if (made->n_results > SX_MAX_OUTPUTS) {
        return sx_error(SX_UNIMPLEMENTED, "function \"%.100s\" has %d outputs, more than %d",
                        made->name, made->n_results, SX_MAX_OUTPUTS);
    }
    for (int i = 0; i < made->n_results; i++) {
        types[i] = made->results[i].kind == SX_TF_HANDLE ? sx_scalar_type(SX_RESOURCE)
                                                         : made->results[i].variable;
    }
    const sx_value first =
        made->n_results == 0
            ? SX_NO_VALUE
            : sx_build_node(body->b,
                            &(sx_node_spec){.op = &sx_op_call,
                                            .attrs = &(sx_call_attrs){.function = made->name},
                                            .inputs = in,
                                            .n_inputs = n->n_in,
                                            .types = types,
                                            .n_types = made->n_results,
                                            .device = "",
                                            .file = ""});
    for (int i = 0; i < made->n_results; i++) {
        n->out[i] = made->results[i];
        n->out[i].value = sx_output_of(first, i);
        n->out[i].known = NULL;
    }
    return SX_OK;
}
