/* Nodes whose gradient TensorFlow takes from a function (tf.custom_gradient): those with an
 * attribute _gradient_op_type, nearly always IdentityN(results..., arguments...).
 *
 *   library.registered_gradients   type -> gradient function, if the model was saved with it
 *   its arguments                  a gradient for each output of the node, then what it captures
 *   its captures                   tensors of the function that the node is in, by the object graph
 *   its results                    gradients of the node's inputs, but for those that the object
 *                                  graph says are None
 *
 * The outputs become those of a custom_gradient, with the function as its region, or of a
 * refuse_gradient if there is none that can be imported: a model that is only run does not need it.
 * Of tf.nn.silu, which Keras saves without, the gradient is that of its formula. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "proto/guard.h"
#include "savedmodel/import_library_ops.h"
#include "savedmodel/names.h"
#include "savedmodel/tf_graph.h"

typedef const Tensorflow__FunctionDef function_def;
typedef const Tensorflow__SavedConcreteFunction saved_function;

/* ---- What the model says ---- */

sx_status sx_tf_read_gradients(sx_library_importer *im)
{
    const Tensorflow__MetaGraphDef *meta = sx_saved_model_meta(im->model);
    const Tensorflow__FunctionDefLibrary *library = meta->graph_def->library;
    const size_t n = library != NULL ? library->n_registered_gradients : 0;
    ProtobufCMessage *message = NULL;
    if (n == 0) {
        return SX_OK;
    }
    SX_TRY(sx_proto_unpack(&tensorflow__saved_object_graph__descriptor,
                           (sx_bytes){meta->object_graph_def.data, meta->object_graph_def.len},
                           &(sx_proto_limits){.max_bytes = sx_saved_model_budget(im->model)},
                           "the object graph", &message),
           "%s", sx_saved_model_dir(im->model));
    im->objects = (Tensorflow__SavedObjectGraph *)message;
    for (size_t i = 0; i < n; i++) {
        const Tensorflow__RegisteredGradient *g = library->registered_gradients[i];
        SX_TRY(sx_map_put(&im->gradients, g->registered_op_type, (void *)(uintptr_t)g));
    }
    for (size_t i = 0; i < im->objects->n_concrete_functions; i++) {
        SX_TRY(sx_map_put(&im->concrete, im->objects->concrete_functions[i]->key,
                          im->objects->concrete_functions[i]->value));
    }
    return SX_OK;
}

/* The node's type of gradient; NULL: it has none. */
static const ProtobufCBinaryData *type_of(const Tensorflow__NodeDef *node)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(node, "_gradient_op_type");
    return a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S ? &a->s : NULL;
}

static const Tensorflow__RegisteredGradient *registered_of(const sx_library_importer *im,
                                                           const Tensorflow__NodeDef *node)
{
    const ProtobufCBinaryData *type = type_of(node);
    return type != NULL ? sx_map_get_bytes(&im->gradients, (const char *)type->data, type->len)
                        : NULL;
}

/* What the node's gradient function captures and gives; NULL: it has none, or nothing is known. */
static saved_function *gradient_of(const sx_library_importer *im, const Tensorflow__NodeDef *node)
{
    const Tensorflow__RegisteredGradient *g = registered_of(im, node);
    return g != NULL ? sx_map_get(&im->concrete, g->gradient_func) : NULL;
}

/* The object that a gradient function captures; NULL: there is none of that number. */
static const Tensorflow__SavedObject *captured(const sx_library_importer *im, int64_t id)
{
    return id >= 0 && (uint64_t)id < im->objects->n_nodes ? im->objects->nodes[id] : NULL;
}

/* The tensor of this body that the object is, or NULL. */
static const char *tensor_here(const sx_tf_body *body, const Tensorflow__SavedObject *o)
{
    const Tensorflow__CapturedTensor *t =
        o != NULL && o->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CAPTURED_TENSOR
            ? o->captured_tensor
            : NULL;
    sx_tf_ref ref;
    const bool here =
        t != NULL && body->function != NULL &&
        strcmp(t->concrete_function, body->function->signature->name) == 0 &&
        sx_tf_ref_parse(t->name, &ref) && !ref.control &&
        (sx_tf_body_find_arg(body, &ref) >= 0 || sx_tf_body_find_node(body, &ref) >= 0);
    return here ? t->name : NULL;
}

/* ---- What functions read outside ---- */

/* The objects that gradient functions of a function's nodes capture, and that are nothing of it. */
typedef struct outside {
    int64_t *ids; /* [n] */
    int n, capacity;
} outside;

/* Whether the object is something of the function: a tensor, or what it captures itself. */
static bool is_inside(const sx_library_importer *im, function_def *function, int64_t id)
{
    const char *name = function->signature->name;
    const Tensorflow__SavedObject *o = captured(im, id);
    if (o == NULL || o->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT) {
        return true; /* an error, the graph's */
    }
    if (o->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CAPTURED_TENSOR) {
        return strcmp(o->captured_tensor->concrete_function, name) == 0;
    }
    saved_function *saved = sx_map_get(&im->concrete, name);
    bool any = false;
    for (size_t i = 0; saved != NULL && i < saved->n_bound_inputs; i++) {
        any = any || saved->bound_inputs[i] == id;
    }
    return any;
}

static sx_status add_outside(sx_library_importer *im, outside *list, int64_t id)
{
    bool had = false;
    for (int i = 0; i < list->n; i++) {
        had = had || list->ids[i] == id;
    }
    if (!had && list->n == list->capacity) {
        const int wanted = SX_MAX(8, 2 * list->capacity);
        int64_t *grown = sx_arena_array(&im->arena, wanted, int64_t);
        if (grown == NULL) {
            return sx_import_memory();
        }
        for (int i = 0; i < list->n; i++) {
            grown[i] = list->ids[i];
        }
        list->ids = grown;
        list->capacity = wanted;
    }
    if (!had) {
        list->ids[list->n++] = id;
    }
    return SX_OK;
}

/* A place where a node names a function. */
typedef struct place {
    size_t attr, item; /* item: of a list */
} place;

/* The next function that a node names as what it calls, as a branch, or for its loop; the last is
 * that of its operator's name. False: there is none. */
static bool next_function(const sx_library_importer *im, const Tensorflow__NodeDef *node, place *at,
                          function_def **out)
{
    *out = NULL;
    while (*out == NULL && at->attr < node->n_attr) {
        const Tensorflow__AttrValue *a = node->attr[at->attr]->value;
        const bool is_list =
            a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL;
        const bool is_one =
            a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && a->func != NULL;
        if (is_list && at->item < a->list->n_func) {
            *out = sx_map_get(&im->defs, a->list->func[at->item++]->name);
            continue;
        }
        *out = is_one ? sx_map_get(&im->defs, a->func->name) : NULL;
        *at = (place){.attr = at->attr + 1};
    }
    if (*out == NULL && at->attr == node->n_attr) {
        *out = sx_tf_import_has_op(node->op) ? NULL : sx_map_get(&im->defs, node->op);
        at->attr++;
    }
    return *out != NULL;
}

/* Of functions that call one another, the first to be asked about lacks what is not known yet. */
static sx_status find_outside(sx_library_importer *im, function_def *function, outside **out)
{
    const char *name = function->signature->name;
    outside *list = sx_map_get(&im->outside, name);
    *out = list;
    if (list != NULL) {
        return SX_OK;
    }
    list = *out = sx_arena_new(&im->arena, outside);
    if (list == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_map_put(&im->outside, name, list));
    for (size_t i = 0; i < function->n_node_def; i++) {
        const Tensorflow__NodeDef *node = function->node_def[i];
        saved_function *saved = gradient_of(im, node);
        for (size_t k = 0; saved != NULL && k < saved->n_bound_inputs; k++) {
            if (!is_inside(im, function, saved->bound_inputs[k])) {
                SX_TRY(add_outside(im, list, saved->bound_inputs[k]));
            }
        }
        function_def *callee = NULL;
        for (place at = {0}; next_function(im, node, &at, &callee);) {
            outside *of_callee = NULL;
            if (im->depth < im->limits.calls) {
                im->depth++;
                sx_status status = find_outside(im, callee, &of_callee);
                im->depth--;
                SX_TRY(status);
            }
            for (int k = 0; of_callee != NULL && k < of_callee->n; k++) {
                if (!is_inside(im, function, of_callee->ids[k])) {
                    SX_TRY(add_outside(im, list, of_callee->ids[k]));
                }
            }
        }
    }
    return SX_OK;
}

sx_status sx_tf_gradients_read_outside(sx_library_importer *im, function_def *function, bool *out)
{
    outside *list = NULL;
    *out = false;
    if (im->objects != NULL) {
        SX_TRY(find_outside(im, function, &list));
        *out = list->n > 0;
    }
    return SX_OK;
}

sx_status sx_tf_gradient_captures(sx_library_importer *im, const sx_tf_body *body,
                                  const Tensorflow__NodeDef *node, const char *const **out,
                                  size_t *out_n)
{
    *out_n = 0;
    if (im->objects == NULL) {
        return SX_OK;
    }
    saved_function *saved = gradient_of(im, node);
    outside all = {NULL, 0, 0};
    for (size_t i = 0; saved != NULL && i < saved->n_bound_inputs; i++) {
        SX_TRY(add_outside(im, &all, saved->bound_inputs[i]));
    }
    function_def *callee = NULL;
    for (place at = {0}; next_function(im, node, &at, &callee);) {
        outside *of_callee = NULL;
        SX_TRY(find_outside(im, callee, &of_callee));
        for (int k = 0; k < of_callee->n; k++) {
            SX_TRY(add_outside(im, &all, of_callee->ids[k]));
        }
    }
    const char **names = sx_arena_array(&im->arena, all.n + 1, const char *);
    if (names == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < all.n; i++) {
        const char *name = tensor_here(body, captured(im, all.ids[i]));
        if (name != NULL) {
            names[(*out_n)++] = name;
        }
    }
    *out = names;
    return SX_OK;
}

/* ---- The node ---- */

/* What becomes of a node. */
typedef struct custom {
    sx_tf_op_node *x;
    const char *type;
    sx_tf_thing **y; /* [n_y]: outputs that something reads, through which gradients come */
    int n_y;
    sx_value *operands; /* of the node that takes its place: y first */
    int n_operands;
} custom;

static bool is_float(const sx_tf_op_node *x, const sx_tf_thing *t)
{
    return (t->kind == SX_TF_VALUE || t->kind == SX_TF_LIST || t->kind == SX_TF_READ) &&
           sx_value_is(t->value) && sx_dtype_is_float(sx_type_of_value(x->b, t->value).dtype);
}

/* The references to a node's outputs, one after another. */
struct sx_tf_use {
    sx_tf_ref ref;
    struct sx_tf_use *next;
};

static sx_status add_use(sx_arena *arena, sx_tf_body *body, const char *text)
{
    sx_tf_ref ref;
    const int node =
        sx_tf_ref_parse(text, &ref) && !ref.control ? sx_tf_body_find_node(body, &ref) : -1;
    if (node < 0) {
        return SX_OK;
    }
    struct sx_tf_use *use = sx_arena_new(arena, struct sx_tf_use);
    if (use == NULL) {
        return sx_import_memory();
    }
    *use = (struct sx_tf_use){ref, body->uses[node]};
    body->uses[node] = use;
    return SX_OK;
}

static sx_status find_uses(sx_arena *arena, sx_tf_body *body)
{
    body->uses = sx_arena_array(arena, body->n_nodes + 1, struct sx_tf_use *);
    if (body->uses == NULL) {
        return sx_import_memory();
    }
    for (size_t i = 0; i < body->n_nodes; i++) {
        for (size_t k = 0; k < body->nodes[i]->n_input; k++) {
            SX_TRY(add_use(arena, body, body->nodes[i]->input[k]));
        }
    }
    for (size_t i = 0; body->function != NULL && i < body->function->n_ret; i++) {
        SX_TRY(add_use(arena, body, body->function->ret[i]->value));
    }
    return SX_OK;
}

/* Outputs that nodes or results of the function read; of the graph, all. */
static sx_status find_outputs(custom *c)
{
    const sx_tf_op_node *x = c->x;
    const Tensorflow__NodeDef *node = x->n->node;
    function_def *function = x->body->function;
    const sx_tf_ref itself = {.node = node->name, .node_bytes = strlen(node->name)};
    const int at = sx_tf_body_find_node(x->body, &itself);
    bool *read = sx_arena_array(&x->im->arena, x->n->n_out + 1, bool);
    c->y = sx_arena_array(&x->im->arena, x->n->n_out + 1, sx_tf_thing *);
    if (read == NULL || c->y == NULL) {
        return sx_import_memory();
    }
    if (x->body->uses == NULL) {
        SX_TRY(find_uses(&x->im->arena, x->body));
    }
    for (const struct sx_tf_use *use = at >= 0 ? x->body->uses[at] : NULL; use != NULL;
         use = use->next) {
        const int output = sx_import_output_of(NULL, sx_saved_model_find_op(x->im->model, node->op),
                                               node, &use->ref);
        if (output >= 0 && output < x->n->n_out) {
            read[output] = true;
        }
    }
    for (int i = 0; i < x->n->n_out; i++) {
        sx_tf_thing *y = &x->n->out[i];
        const bool flows = is_float(x, y) || y->kind == SX_TF_COMPLEX;
        if (flows && y->kind != SX_TF_READ && (read[i] || function == NULL)) {
            c->y[c->n_y++] = y;
        }
    }
    return SX_OK;
}

/* Appends what gradients may pass to: numbers, the parts of complex ones, what a variable holds. */
static sx_status add_operand(custom *c, const sx_tf_thing *t)
{
    sx_value v = t->value;
    if (t->kind == SX_TF_COMPLEX) {
        c->operands[c->n_operands++] = t->parts[0];
        c->operands[c->n_operands++] = t->parts[1];
    } else if (t->kind == SX_TF_HANDLE && sx_dtype_is_float(t->variable.dtype)) {
        SX_TRY(sx_tf_read_handle(c->x, t, &v));
        c->operands[c->n_operands++] = v;
    } else if (is_float(c->x, t)) {
        c->operands[c->n_operands++] = v;
    }
    return SX_OK;
}

/* Puts a node over the operands: its outputs take the place of those that are read. */
static sx_status put_node(custom *c, const sx_op_def *op, const void *attrs, int n_results)
{
    sx_type *types = sx_arena_array(&c->x->im->arena, n_results + 1, sx_type);
    if (types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_results; i++) {
        types[i] = sx_type_of_value(c->x->b, c->operands[i]);
    }
    const sx_value first = sx_build_node(c->x->b, &(sx_node_spec){.op = op,
                                                                  .attrs = attrs,
                                                                  .inputs = c->operands,
                                                                  .n_inputs = c->n_operands,
                                                                  .types = types,
                                                                  .n_types = n_results,
                                                                  .device = "",
                                                                  .file = ""});
    for (int i = 0, k = 0; i < c->n_y; i++) {
        sx_tf_thing *y = c->y[i];
        y->known = NULL;
        if (y->kind == SX_TF_COMPLEX) {
            y->parts[0] = sx_output_of(first, k++);
            y->parts[1] = sx_output_of(first, k++);
            y->value = SX_NO_VALUE;
        } else {
            y->value = sx_output_of(first, k++);
        }
    }
    return SX_OK;
}

/* The gradient is an error that says why. */
static sx_status refuse(custom *c, const char *why)
{
    const sx_tf_op_node *x = c->x;
    const Tensorflow__NodeDef *node = x->n->node;
    function_def *function = x->body->function;
    const char *text = sx_arena_printf(
        &x->im->arena, "the gradient of %.100s \"%.200s\"%s%.100s%s, of type \"%.100s\", %s",
        node->op, node->name, function != NULL ? " of function \"" : "",
        function != NULL ? function->signature->name : "", function != NULL ? "\"" : "", c->type,
        why);
    c->n_operands = 0;
    if (text == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < c->n_y; i++) {
        SX_TRY(add_operand(c, c->y[i]));
    }
    const int n_results = c->n_operands;
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(add_operand(c, &x->n->in[i]));
    }
    return put_node(c, &sx_op_refuse_gradient,
                    &(sx_refuse_gradient_attrs){.results = n_results, .why = text}, n_results);
}

/* ---- tf.nn.silu ---- */

/* IdentityN(x * sigmoid(beta * x), x, beta), or without beta: the gradient that TensorFlow has for
 * it is that of the formula. */
static bool is_silu(const sx_tf_op_node *x)
{
    const sx_tf_thing *in = x->n->in;
    if (strcmp(x->n->node->op, "IdentityN") != 0 || x->n->n_in < 2 || x->n->n_in > 3) {
        return false;
    }
    for (int i = 0; i < x->n->n_in; i++) {
        if (in[i].kind != SX_TF_VALUE || !is_float(x, &in[i])) {
            return false;
        }
    }
    const sx_value v = in[1].value, beta = x->n->n_in == 3 ? in[2].value : SX_NO_VALUE;
    const sx_node *y = sx_builder_maker(x->b, in[0].value);
    if (y->op != &sx_op_mul || (y->inputs[0].id != v.id && y->inputs[1].id != v.id)) {
        return false;
    }
    const sx_node *gate = sx_builder_maker(x->b, y->inputs[y->inputs[0].id == v.id ? 1 : 0]);
    if (gate->op != &sx_op_sigmoid) {
        return false;
    }
    const sx_node *scaled = sx_builder_maker(x->b, gate->inputs[0]);
    return x->n->n_in == 2
               ? gate->inputs[0].id == v.id
               : scaled->op == &sx_op_mul &&
                     ((scaled->inputs[0].id == v.id && scaled->inputs[1].id == beta.id) ||
                      (scaled->inputs[1].id == v.id && scaled->inputs[0].id == beta.id));
}

/* ---- The gradient function as a region ---- */

/* The gradient functions that are being imported, innermost first. */
struct sx_tf_active_gradient {
    const char *type;
    const struct sx_tf_active_gradient *outer;
};

typedef struct region {
    custom *c;
    function_def *function;
    saved_function *saved;
    sx_builder *b;
    sx_tf_thing *args; /* [n_grads + captures] of the function */
    int n_grads;
    int *gradients; /* [n_gradients]: inputs of the node that the results are gradients of */
    int n_gradients;
} region;

/* Passes a thing to the region: what it is inside. Small constants are constants there, too. */
static sx_status pass(region *r, const sx_tf_thing *t, sx_tf_thing *inside)
{
    enum { MOST_ELEMS = 64 };
    custom *c = r->c;
    const sx_tf_op_node *x = c->x;
    sx_tf_op_node there = *x;
    there.b = r->b;
    *inside = *t;
    inside->known = NULL;
    inside->length = SX_NO_VALUE;
    sx_value v = t->value;
    if (t->kind == SX_TF_TABLE) {
        return SX_OK;
    }
    if (t->kind == SX_TF_HANDLE || t->kind == SX_TF_REF) {
        SX_TRY(sx_tf_read_handle(x, t, &v));
        inside->kind = SX_TF_READ;
    } else if (t->kind == SX_TF_COMPLEX) {
        SX_TRY(sx_tf_join_complex(x, t, &v));
    }
    if (t->kind == SX_TF_NOTHING || t->kind == SX_TF_REFUSED || !sx_value_is(v)) {
        return sx_tf_unsupported("a tensor that it reads cannot be imported");
    }
    const sx_tensor *known = t->kind == SX_TF_VALUE ? sx_tf_constant_of(x->b, v) : NULL;
    if (known != NULL && sx_dtype_bytes(known->type.dtype) > 0 && sx_type_is_static(&known->type) &&
        sx_type_elems(&known->type) <= MOST_ELEMS) {
        SX_TRY(sx_tf_constant(&there, known->type, known->data, &inside->value));
        inside->known = sx_tf_constant_of(r->b, inside->value);
        return SX_OK;
    }
    char name[32];
    snprintf(name, sizeof(name), "x%d", c->n_operands);
    inside->value = sx_input(r->b, name, sx_type_of_value(x->b, v));
    c->operands[c->n_operands++] = v;
    if (t->kind == SX_TF_COMPLEX) {
        const sx_value both = inside->value;
        SX_TRY(sx_tf_split_complex(&there, both, inside));
    }
    return SX_OK;
}

/* What an object is in a body: a tensor, or an argument by which its function captures it, too. */
static sx_status find_in(const sx_library_importer *im, const sx_tf_body *body, int64_t id,
                         sx_tf_thing *out, bool *out_found)
{
    const char *name = tensor_here(body, captured(im, id));
    saved_function *saved =
        body->function != NULL ? sx_map_get(&im->concrete, body->function->signature->name) : NULL;
    *out_found = name != NULL;
    if (name != NULL) {
        return sx_tf_body_resolve(im, body, name, out);
    }
    for (size_t i = 0; saved != NULL && i < saved->n_bound_inputs && !*out_found; i++) {
        const int64_t arg = (int64_t)body->n_args - (int64_t)saved->n_bound_inputs + (int64_t)i;
        if (saved->bound_inputs[i] == id && arg >= 0) {
            *out = body->args[arg];
            *out_found = true;
        }
    }
    return SX_OK;
}

/* What an object is in the node's body, in one that this is part of, or what the node whose region
 * that is passes to it. */
static sx_status find_object(const sx_tf_op_node *x, int64_t id, sx_tf_thing *out, bool *out_found)
{
    *out_found = false;
    for (const sx_tf_body *body = x->body; body != NULL && !*out_found; body = body->outer) {
        SX_TRY(find_in(x->im, body, id, out, out_found));
    }
    const sx_tf_passed *passed = x->im->passed;
    /* values of another builder mean nothing here, as in a gradient function */
    const int n = passed != NULL && passed->b == x->b ? passed->n : 0;
    for (int i = 0; i < n && !*out_found; i++) {
        *out_found = passed->ids[i] == id;
        *out = *out_found ? passed->things[i] : *out;
    }
    return SX_OK;
}

sx_status sx_tf_gradient_reads(const sx_tf_op_node *x, function_def *const *functions,
                               int n_functions, sx_tf_passed *out)
{
    outside all = {NULL, 0, 0};
    *out = (sx_tf_passed){.b = x->b};
    for (int f = 0; f < n_functions && x->im->objects != NULL; f++) {
        outside *list = NULL;
        SX_TRY(find_outside(x->im, functions[f], &list));
        for (int i = 0; i < list->n; i++) {
            SX_TRY(add_outside(x->im, &all, list->ids[i]));
        }
    }
    sx_tf_thing *things = sx_arena_array(&x->im->arena, all.n + 1, sx_tf_thing);
    int64_t *ids = sx_arena_array(&x->im->arena, all.n + 1, int64_t);
    if (things == NULL || ids == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < all.n; i++) {
        sx_tf_thing t = {0};
        bool found = false;
        SX_TRY(find_object(x, all.ids[i], &t, &found));
        if (found && t.kind == SX_TF_VALUE && sx_value_is(t.value)) {
            ids[out->n] = all.ids[i];
            things[out->n++] = t;
        }
    }
    out->ids = ids;
    out->things = things;
    return SX_OK;
}

/* What capture k of the gradient function stands for where the node is. */
static sx_status find_capture(const region *r, int k, sx_tf_thing *out)
{
    const sx_tf_op_node *x = r->c->x;
    sx_library_importer *im = x->im;
    const int64_t id = r->saved->bound_inputs[k];
    const Tensorflow__SavedObject *o = captured(im, id);
    bool found = false;
    if (o == NULL) {
        return sx_error(SX_DATA_LOSS, "reads object %lld, which the model does not have",
                        (long long)id);
    }
    SX_TRY(find_object(x, id, out, &found));
    if (found) {
        return SX_OK;
    }
    if (o->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CAPTURED_TENSOR) {
        return sx_tf_unsupported("reads \"%.100s\" of function \"%.100s\", which is no tensor of "
                                 "the function that the node is in",
                                 o->captured_tensor->name, o->captured_tensor->concrete_function);
    }
    if (o->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT) {
        for (size_t i = 0; i < im->n_graph_nodes; i++) {
            if (strcmp(im->nodes[i]->name, o->constant->operation) == 0) {
                sx_tensor value;
                SX_TRY(sx_import_const_value(im->nodes[i], &im->arena, &value));
                SX_TRY(sx_tf_charge_constant(x, sx_host_bytes(&value.type)));
                *out = (sx_tf_thing){.kind = SX_TF_VALUE};
                return sx_tf_constant(x, value.type, value.data, &out->value);
            }
        }
    }
    return sx_tf_unsupported("reads object %lld, which the function that the node is in does not",
                             (long long)id);
}

/* Which inputs of the node the function gives gradients of. */
static sx_status find_gradients(region *r)
{
    const Tensorflow__StructuredValue *s = r->saved->output_signature;
    const sx_tf_op_node *x = r->c->x;
    const bool list = s != NULL && s->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE;
    const bool tuple = s != NULL && s->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE;
    const size_t n = list ? s->list_value->n_values : tuple ? s->tuple_value->n_values : 0;
    r->gradients = sx_arena_array(&x->im->arena, x->n->n_in + 1, int);
    if (r->gradients == NULL) {
        return sx_import_memory();
    }
    if (n != (size_t)x->n->n_in) {
        return sx_error(SX_DATA_LOSS,
                        "gives %zu gradients by its signature, but the node has %d inputs", n,
                        x->n->n_in);
    }
    for (int i = 0; i < x->n->n_in; i++) {
        const Tensorflow__StructuredValue *v =
            list ? s->list_value->values[i] : s->tuple_value->values[i];
        if (v->kind_case != TENSORFLOW__STRUCTURED_VALUE__KIND_NONE_VALUE) {
            r->gradients[r->n_gradients++] = i;
        }
    }
    const size_t given = r->function->signature->n_output_arg;
    return given == (size_t)r->n_gradients
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "gives %zu tensors, but %d by its signature", given,
                          r->n_gradients);
}

/* Imports a gradient function into a region; a node that cannot be imported is an error. */
static sx_status import_function(const sx_tf_op_node *x, function_def *function, sx_builder *b,
                                 const sx_tf_thing *args, int n_args, sx_tf_thing *results)
{
    const int refused = x->im->refused.n;
    sx_status status = sx_tf_import_body(x->im, function, b, args, n_args, results);
    if (x->im->refused.n > refused) {
        const int at = SX_MIN(refused, SX_IMPORT_MAX_REFUSALS - 1);
        const char *why = x->im->refused.items[at].why;
        sx_status_free(status);
        status = sx_tf_unsupported("needs %.100s \"%.200s\"%s%.300s, which cannot be imported",
                                   x->im->refused.items[at].op, x->im->refused.items[at].node,
                                   why[0] != '\0' ? ": " : "", why);
    }
    x->im->refused.n = refused;
    return status;
}

/* The region's nodes: *out, to be destroyed. Results that are gradients of floats are its results;
 * the operands after y are those. */
static sx_status build_region(region *r, sx_graph **out)
{
    custom *c = r->c;
    const sx_tf_op_node *x = c->x;
    sx_arena *arena = &x->im->arena;
    const int n_captures = (int)r->saved->n_bound_inputs;
    sx_tf_thing *results = sx_arena_array(arena, r->n_gradients + 1, sx_tf_thing), unused;
    r->args = sx_arena_array(arena, r->n_grads + n_captures + 1, sx_tf_thing);
    if (results == NULL || r->args == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < c->n_y; i++) { /* the gradients that come in */
        const int k = (int)(c->y[i] - x->n->out);
        if (c->y[i]->kind != SX_TF_VALUE || k >= r->n_grads) {
            return sx_tf_unsupported(
                "takes no gradient of output %d, or one of a complex tensor or "
                "of a list",
                k);
        }
        char name[32];
        snprintf(name, sizeof(name), "dy%d", i);
        const sx_value y = c->y[i]->value;
        r->args[k] = (sx_tf_thing){.kind = SX_TF_VALUE,
                                   .value = sx_input(r->b, name, sx_type_of_value(x->b, y))};
        c->operands[c->n_operands++] = y;
    }
    for (int i = 0; i < r->n_gradients; i++) {
        const sx_tf_thing *in = &x->n->in[r->gradients[i]];
        if (in->kind == SX_TF_COMPLEX || in->kind == SX_TF_LIST || in->kind == SX_TF_HANDLE) {
            return sx_tf_unsupported(
                "gives the gradient of input %d, a complex tensor, a list or a "
                "handle",
                r->gradients[i]);
        }
        if (is_float(x, in)) { /* also where it is a constant: the order counts */
            char name[32];
            snprintf(name, sizeof(name), "x%d", c->n_operands);
            (void)sx_input(r->b, name, sx_type_of_value(x->b, in->value));
            c->operands[c->n_operands++] = in->value;
        }
    }
    for (int i = 0; i < r->n_grads; i++) { /* outputs that nothing reads: zeros */
        const sx_tf_thing *y = &x->n->out[i];
        if (r->args[i].kind != SX_TF_NOTHING) {
            continue;
        }
        if (y->kind != SX_TF_VALUE || sx_type_of_value(x->b, y->value).dtype == SX_STRING) {
            return sx_tf_unsupported("takes a gradient of output %d, which is not a number", i);
        }
        SX_TRY(pass(r, y, &unused));
        r->args[i] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = sx_zeros_like(r->b, unused.value)};
    }
    for (int k = 0; k < n_captures; k++) {
        sx_tf_thing t = {0};
        SX_TRY(find_capture(r, k, &t));
        SX_TRY(pass(r, &t, &r->args[r->n_grads + k]), "capture %d", k);
    }
    SX_TRY(import_function(x, r->function, r->b, r->args, r->n_grads + n_captures, results));
    for (int i = 0; i < r->n_gradients; i++) {
        const sx_tf_thing *in = &x->n->in[r->gradients[i]];
        if (!is_float(x, in)) {
            continue;
        }
        const sx_dtype dtype = sx_type_of_value(x->b, in->value).dtype;
        if (results[i].kind != SX_TF_VALUE ||
            sx_type_of_value(r->b, results[i].value).dtype != dtype) {
            return sx_error(SX_DATA_LOSS, "gives no %s as the gradient of input %d",
                            sx_dtype_name(dtype), r->gradients[i]);
        }
        char name[32];
        snprintf(name, sizeof(name), "dx%d", r->gradients[i]);
        sx_output(r->b, name, results[i].value);
    }
    return sx_builder_finish(r->b, out);
}

/* The node with its registered gradient function. What stands in the way is told as the end of "its
 * gradient function \"f\"". */
static sx_status import_registered(custom *c, region *r)
{
    const sx_tf_op_node *x = c->x;
    const size_t n_args = r->function->signature->n_input_arg, n_bound = r->saved->n_bound_inputs;
    r->n_grads = n_args >= n_bound ? (int)(n_args - n_bound) : -1;
    const bool identity = strcmp(x->n->node->op, "IdentityN") == 0;
    if (r->n_grads < 0 || r->n_grads > x->n->n_out || (identity && r->n_grads != x->n->n_in)) {
        return sx_error(SX_DATA_LOSS, "takes %zu arguments, %zu of which it captures", n_args,
                        n_bound);
    }
    for (const struct sx_tf_active_gradient *a = x->im->active; a != NULL; a = a->outer) {
        if (strcmp(a->type, c->type) == 0) {
            return sx_tf_unsupported("has a node whose gradient is itself");
        }
    }
    SX_TRY(find_gradients(r));
    sx_graph *made = NULL;
    const struct sx_tf_active_gradient here = {c->type, x->im->active};
    SX_TRY(sx_tf_create_builder(x->im, &r->b));
    x->im->active = &here;
    sx_status status = build_region(r, &made);
    status = status != SX_OK ? sx_tf_first_error(r->b, status) : SX_OK;
    x->im->active = here.outer;
    if (status == SX_OK && made->n_results == 0) { /* all None */
        sx_graph_destroy(made);
        sx_builder_destroy(r->b);
        for (int i = 0; i < c->n_y; i++) {
            sx_tf_thing *y = c->y[i];
            y->known = NULL;
            SX_TRY(sx_tf_build(x, &sx_op_stop_gradient, NULL, &y->value, 1, &y->value));
        }
        return SX_OK;
    }
    if (status == SX_OK) {
        status = put_node(c, &sx_op_custom_gradient,
                          &(sx_custom_gradient_attrs){.results = c->n_y, .gradient = made}, c->n_y);
    }
    sx_graph_destroy(made);
    sx_builder_destroy(r->b);
    return status;
}

/* ---- Of models that we exported ---- */

/* An IdentityN with the gradient function that export wrote (names.h): all of its inputs are
 * operands. Errors are as of import_registered(). */
static sx_status import_exported(custom *c, function_def *function)
{
    const sx_tf_op_node *x = c->x;
    const int n = x->n->n_in, n_results = (int)function->signature->n_output_arg;
    const int64_t n_y = sx_tf_read_int(&x->tf.head, SX_TF_GRADIENT_RESULTS, 0);
    sx_tf_thing *args = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    sx_tf_thing *results = sx_arena_array(&x->im->arena, n_results + 1, sx_tf_thing);
    if (args == NULL || results == NULL) {
        return sx_import_memory();
    }
    if (n_y < 1 || n_y > n || n_results > n - n_y ||
        function->signature->n_input_arg != (size_t)n) {
        return sx_error(SX_DATA_LOSS, "takes %zu arguments and gives %d results of %d inputs",
                        function->signature->n_input_arg, n_results, n);
    }
    sx_builder *b = NULL;
    sx_graph *made = NULL;
    SX_TRY(sx_tf_create_builder(x->im, &b));
    sx_status status = SX_OK;
    for (int i = 0; i < n && status == SX_OK; i++) {
        char name[32];
        const sx_tf_thing *in = &x->n->in[i];
        snprintf(name, sizeof(name), i < n_y ? "dy%d" : "x%d", i);
        if (in->kind != SX_TF_VALUE || !sx_value_is(in->value)) {
            status = sx_tf_unsupported("takes input %d, which is no tensor", i);
        } else {
            c->operands[i] = in->value;
            args[i] = (sx_tf_thing){.kind = SX_TF_VALUE,
                                    .value = sx_input(b, name, sx_type_of_value(x->b, in->value))};
        }
    }
    status = status == SX_OK ? import_function(x, function, b, args, n, results) : status;
    for (int i = 0; i < n_results && status == SX_OK; i++) {
        char name[32];
        snprintf(name, sizeof(name), "dx%d", i);
        if (results[i].kind != SX_TF_VALUE) {
            status = sx_error(SX_DATA_LOSS, "gives no tensor as result %d", i);
        } else {
            sx_output(b, name, results[i].value);
        }
    }
    status = status == SX_OK ? sx_builder_finish(b, &made) : sx_tf_first_error(b, status);
    if (status == SX_OK) {
        c->n_operands = n;
        c->n_y = (int)n_y;
        for (int i = 0; i < n_y; i++) {
            c->y[i] = &x->n->out[i];
        }
        status = put_node(c, &sx_op_custom_gradient,
                          &(sx_custom_gradient_attrs){.results = n_y, .gradient = made}, c->n_y);
    }
    sx_graph_destroy(made);
    sx_builder_destroy(b);
    return status;
}

sx_status sx_tf_import_gradient(sx_tf_op_node *x)
{
    custom c = {.x = x};
    const Tensorflow__NodeDef *node = x->n->node;
    const ProtobufCBinaryData *type = type_of(node);
    if (type == NULL || x->im->trials > 0) {
        return SX_OK;
    }
    c.type = sx_arena_strndup(&x->im->arena, (const char *)type->data, type->len);
    if (c.type == NULL) {
        return sx_import_memory();
    }
    SX_TRY(find_outputs(&c));
    if (c.n_y == 0) {
        return SX_OK;
    }
    region r = {.c = &c, .saved = gradient_of(x->im, node)};
    const Tensorflow__RegisteredGradient *registered = registered_of(x->im, node);
    const size_t n_captures = r.saved != NULL ? r.saved->n_bound_inputs : 0;
    const size_t most = 2 * ((size_t)x->n->n_in + (size_t)x->n->n_out + n_captures) + 1;
    c.operands = sx_arena_array(&x->im->arena, most, sx_value);
    if (c.operands == NULL) {
        return sx_import_memory();
    }
    const Tensorflow__AttrValue *exported = sx_tf_node_attr(node, SX_TF_GRADIENT);
    if (registered == NULL && exported == NULL) {
        return is_silu(x)
                   ? SX_OK
                   : refuse(&c, "was not saved; save the model with tf.saved_model.SaveOptions"
                                "(experimental_custom_gradients=True)");
    }
    const char *name = registered != NULL ? registered->gradient_func : "";
    sx_status status = SX_OK;
    if (registered == NULL) {
        status = sx_tf_import_function_of(x->im, node, SX_TF_GRADIENT, &r.function);
        name = status == SX_OK ? r.function->signature->name : name;
        status = status == SX_OK ? import_exported(&c, r.function) : status;
    } else {
        r.function = sx_map_get(&x->im->defs, name);
        status = r.function == NULL || r.saved == NULL
                     ? sx_error(SX_DATA_LOSS, "is not in the model")
                     : import_registered(&c, &r);
    }
    const sx_code code = sx_status_code(status);
    if (code != SX_UNIMPLEMENTED && code != SX_DATA_LOSS && code != SX_INVALID_ARGUMENT) {
        return status;
    }
    const char *why = sx_arena_printf(&x->im->arena, "is not known: its function \"%.100s\" %s",
                                      name, sx_status_message(status));
    sx_status_free(status);
    return why != NULL ? refuse(&c, why) : sx_import_memory();
}
