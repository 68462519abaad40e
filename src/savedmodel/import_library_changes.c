/* How the signatures of a model, and the functions that they call, change its variables: handles
 * are followed from the nodes that assign, through the arguments of functions, to the nodes of the
 * variables. Initializers and the function that restores a checkpoint are not part of signatures.
 */
#include <string.h>

#include "base/memory.h"
#include "savedmodel/import_library_internal.h"

enum { MAX_STEPS = 100 }; /* from a handle to its variable: of nodes that give it as it is */

/* The nodes of the graph, or of a function. */
typedef struct scope {
    sx_library_importer *im;
    Tensorflow__NodeDef *const *nodes;
    const Tensorflow__FunctionDef *function; /* NULL: the graph */
    sx_map index;                            /* name -> node number + 1 */
    uint8_t *args; /* of a function: sx_tf_change of each argument, then whether it assigns any
                    * variable, also one of its own */
} scope;

static sx_status scope_init(scope *s, size_t n_nodes)
{
    sx_map_init_borrowed(&s->index);
    for (size_t i = 0; i < n_nodes; i++) {
        SX_TRY(sx_map_put(&s->index, s->nodes[i]->name, (void *)(uintptr_t)(i + 1)));
    }
    return SX_OK;
}

/* The node that a reference names; NULL: an argument, or none. */
static const Tensorflow__NodeDef *find_node(const scope *s, const sx_tf_ref *ref)
{
    const uintptr_t i = (uintptr_t)sx_map_get_bytes(&s->index, ref->node, ref->node_bytes);
    return i > 0 ? s->nodes[i - 1] : NULL;
}

/* Notes that the variable to whose handle `text` refers is changed. */
static sx_status note(const scope *s, const char *text, unsigned change)
{
    sx_tf_ref ref;
    const Tensorflow__NodeDef *node = NULL;
    bool parsed = sx_tf_ref_parse(text, &ref);
    for (int steps = 0; parsed && steps < MAX_STEPS; steps++) {
        node = find_node(s, &ref);
        if (node == NULL || node->n_input < 1 ||
            (strcmp(node->op, "Identity") != 0 && strcmp(node->op, "RefIdentity") != 0)) {
            break;
        }
        parsed = sx_tf_ref_parse(node->input[0], &ref);
    }
    const Tensorflow__OpDef *signature = s->function != NULL ? s->function->signature : NULL;
    for (size_t i = 0; parsed && node == NULL && signature != NULL && i < signature->n_input_arg;
         i++) {
        const char *name = signature->input_arg[i]->name;
        const bool is =
            strlen(name) == ref.node_bytes && memcmp(name, ref.node, ref.node_bytes) == 0;
        s->args[i] |= is ? (uint8_t)change : 0;
    }
    if (!parsed || node == NULL || s->function != NULL) {
        return SX_OK;
    }
    const uintptr_t old = (uintptr_t)sx_map_get(&s->im->changed, node->name);
    return sx_map_put(&s->im->changed, node->name, (void *)(old | change));
}

static sx_status changes_of(sx_library_importer *im, const Tensorflow__FunctionDef *function,
                            const uint8_t **out);

/* What a node that calls a function does to its inputs, from number `first` on. */
static sx_status note_call(const scope *s, const Tensorflow__NodeDef *node, const char *name,
                           size_t first)
{
    const Tensorflow__FunctionDef *callee = name != NULL ? sx_map_get(&s->im->defs, name) : NULL;
    const uint8_t *args = NULL;
    if (callee == NULL || callee == s->function || s->im->depth >= s->im->limits.calls) {
        return SX_OK; /* the import says so, if it is too deep */
    }
    s->im->depth++;
    sx_status status = changes_of(s->im, callee, &args);
    s->im->depth--;
    const size_t n_args = callee->signature->n_input_arg;
    if (status == SX_OK && s->function != NULL) {
        s->args[s->function->signature->n_input_arg] |= args[n_args];
    }
    for (size_t i = 0; i < n_args && first + i < node->n_input && status == SX_OK; i++) {
        if (args[i] != 0 && node->input[first + i][0] != '^') {
            status = note(s, node->input[first + i], args[i]);
        }
    }
    return status;
}

static sx_status note_node(const scope *s, const Tensorflow__NodeDef *node)
{
    const bool replaces =
        strcmp(node->op, "AssignVariableOp") == 0 || strcmp(node->op, "Assign") == 0;
    const unsigned change = SX_TF_ASSIGNED | (replaces ? SX_TF_REPLACED : 0);
    const int n_assigned = sx_tf_assigned_inputs(node->op);
    if (n_assigned > 0 && s->function != NULL) {
        s->args[s->function->signature->n_input_arg] = SX_TF_ASSIGNED;
    }
    for (int i = 0; i < n_assigned && (size_t)i < node->n_input; i++) {
        SX_TRY(note(s, node->input[i], change));
    }
    /* the condition, or the number of the branch, is no argument */
    const bool chooses = strcmp(node->op, "If") == 0 || strcmp(node->op, "StatelessIf") == 0 ||
                         strcmp(node->op, "Case") == 0 || strcmp(node->op, "StatelessCase") == 0;
    for (size_t i = 0; i < node->n_attr; i++) {
        const Tensorflow__AttrValue *a = node->attr[i]->value;
        if (a == NULL) {
            continue;
        }
        const bool is_list = a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL;
        if (a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && a->func != NULL) {
            SX_TRY(note_call(s, node, a->func->name, chooses));
        }
        for (size_t k = 0; is_list && k < a->list->n_func; k++) {
            SX_TRY(note_call(s, node, a->list->func[k]->name, chooses));
        }
    }
    return note_call(s, node, node->op, 0); /* a call by its name */
}

/* Of functions that call one another, the first to be asked about knows nothing of its own. */
static sx_status changes_of(sx_library_importer *im, const Tensorflow__FunctionDef *function,
                            const uint8_t **out)
{
    *out = sx_map_get(&im->changes, function->signature->name);
    if (*out != NULL) {
        return SX_OK;
    }
    scope s = {
        .im = im,
        .nodes = function->node_def,
        .function = function,
        .args = sx_arena_array(&im->arena, function->signature->n_input_arg + 1, uint8_t),
    };
    if (s.args == NULL) {
        return sx_import_memory();
    }
    *out = s.args;
    SX_TRY(sx_map_put(&im->changes, function->signature->name, s.args));
    sx_status status = scope_init(&s, function->n_node_def);
    for (size_t i = 0; i < function->n_node_def && status == SX_OK; i++) {
        status = note_node(&s, function->node_def[i]);
    }
    sx_map_deinit(&s.index);
    return status;
}

sx_status sx_tf_assigns(sx_library_importer *im, const Tensorflow__FunctionDef *function, bool *out)
{
    const uint8_t *args = NULL;
    SX_TRY(changes_of(im, function, &args));
    *out = args[function->signature->n_input_arg] != 0;
    return SX_OK;
}

/* Adds the node that a reference names to those that are to be looked at, unless it was. */
static void reach(const scope *s, const char *text, bool *seen, size_t *stack, size_t *depth)
{
    sx_tf_ref ref;
    const uintptr_t i = sx_tf_ref_parse(text, &ref)
                            ? (uintptr_t)sx_map_get_bytes(&s->index, ref.node, ref.node_bytes)
                            : 0;
    if (i > 0 && !seen[i - 1]) {
        seen[i - 1] = true;
        stack[(*depth)++] = i - 1;
    }
}

sx_status sx_tf_find_changes(sx_library_importer *im)
{
    scope s = {.im = im, .nodes = im->nodes};
    size_t n_signatures, depth = 0;
    const sx_signature *signatures = sx_saved_model_signatures(im->model, &n_signatures);
    bool *seen = sx_alloc(im->n_graph_nodes + 1, sizeof(*seen));
    size_t *stack = sx_alloc(im->n_graph_nodes + 1, sizeof(*stack));
    sx_status status = scope_init(&s, im->n_graph_nodes);
    status = status == SX_OK && (seen == NULL || stack == NULL) ? sx_import_memory() : status;
    for (size_t i = 0; i < n_signatures && status == SX_OK; i++) {
        const bool initializes = strcmp(signatures[i].key, SX_INIT_SIGNATURE) == 0;
        for (size_t k = 0; k < signatures[i].n_outputs && !initializes; k++) {
            reach(&s, signatures[i].outputs[k].tensor, seen, stack, &depth);
        }
    }
    while (depth > 0 && status == SX_OK) {
        const Tensorflow__NodeDef *node = im->nodes[stack[--depth]];
        for (size_t i = 0; i < node->n_input; i++) {
            reach(&s, node->input[i], seen, stack, &depth);
        }
        status = note_node(&s, node);
    }
    sx_free(seen);
    sx_free(stack);
    sx_map_deinit(&s.index);
    return status;
}

unsigned sx_tf_changes_of(const sx_library_importer *im, const Tensorflow__NodeDef *node)
{
    return (unsigned)(uintptr_t)sx_map_get(&im->changed, node->name);
}
