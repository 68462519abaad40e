/* See import_v1_control.h.
 *
 *   loop   the nodes of a frame become two functions over the same list of nodes, which an import
 *          walks from the results only: in both, Merge and Enter are arguments
 *
 *              Enter -> Merge -> Switch -> (body) -> NextIteration -> Merge
 *                         |         \-> Exit
 *                         \-> (condition) -> LoopCond -> Switch
 *
 *          inner loops first. An Exit becomes an output of the While
 *   cond   a Merge becomes an If: what it reads, up to the Switches on its predicate, becomes a
 *          function for each side. Merges that others read come first. What assigns a variable is
 *          in the function of the first Merge that needs it; others run after that one */
#include "savedmodel/import_v1_control.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "savedmodel/import_common.h"
#include "savedmodel/import_library_internal.h"

typedef Tensorflow__NodeDef node_def;

enum { MAX_FRAMES = 10000, MAX_ARGS = 4096, NO_FRAME = -1 };

/* A list of nodes: the graph, or a function that is made. */
typedef struct list {
    node_def **nodes;
    int n, capacity;
    sx_map index; /* name -> number + 1 */
} list;

/* A loop. */
typedef struct frame {
    const char *name;
    int parent, depth; /* parent: -1 = the graph */
} frame;

typedef struct converter {
    sx_v1_functions *made;
    sx_arena *arena;
    int64_t nodes_left, steps_left;
    list graph;
    int *frame_of; /* [graph.n] */
    int n_frame_of;
    frame *frames;
    int n_frames, frame_capacity;
    sx_map assigned_by; /* name of a node that assigns, in a branch -> name of the If */
} converter;

static bool is_op(const node_def *n, const char *op)
{
    const char *name = strncmp(n->op, "Ref", 3) == 0 ? n->op + 3 : n->op;
    return strcmp(name, op) == 0;
}

static sx_status no_memory(void)
{
    return sx_import_memory();
}

/* What is wrong with control flow that no signature needs is no error: it stays, and who reads it
 * is refused. */
static sx_status unless_invalid(sx_status status)
{
    if (sx_status_code(status) == SX_DATA_LOSS || sx_status_code(status) == SX_UNIMPLEMENTED) {
        sx_status_free(status);
        return SX_OK;
    }
    return status;
}

/* ---- Lists ---- */

static sx_status list_add(converter *c, list *l, node_def *node)
{
    if (c->nodes_left-- <= 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "turning control flow into functions makes too many nodes");
    }
    if (l->n == l->capacity) {
        const int capacity = 2 * l->capacity + 64;
        node_def **grown = sx_realloc(l->nodes, (size_t)capacity, sizeof(*grown));
        if (grown == NULL) {
            return no_memory();
        }
        l->nodes = grown;
        l->capacity = capacity;
    }
    l->nodes[l->n++] = node;
    return sx_map_put(&l->index, node->name, (void *)(uintptr_t)l->n);
}

static int list_find(const list *l, const char *text)
{
    sx_tf_ref ref;
    return sx_tf_ref_parse(text, &ref)
               ? (int)(uintptr_t)sx_map_get_bytes(&l->index, ref.node, ref.node_bytes) - 1
               : -1;
}

static void list_deinit(list *l)
{
    sx_map_deinit(&l->index);
    sx_free(l->nodes);
}

static node_def *new_node(converter *c, const char *op, const char *name, int n_inputs)
{
    node_def *n = sx_arena_new(c->arena, node_def);
    if (n == NULL) {
        return NULL;
    }
    tensorflow__node_def__init(n);
    n->op = sx_arena_strdup(c->arena, op);
    n->name = sx_arena_strdup(c->arena, name);
    n->input = sx_arena_array(c->arena, n_inputs + 1, char *);
    return n->op != NULL && n->name != NULL && n->input != NULL ? n : NULL;
}

static sx_status set_function(converter *c, node_def *n, const char *key, const char *function)
{
    Tensorflow__NodeDef__AttrEntry **grown =
        sx_arena_array(c->arena, n->n_attr + 1, Tensorflow__NodeDef__AttrEntry *);
    Tensorflow__NodeDef__AttrEntry *e = sx_arena_new(c->arena, Tensorflow__NodeDef__AttrEntry);
    Tensorflow__AttrValue *value = sx_arena_new(c->arena, Tensorflow__AttrValue);
    Tensorflow__NameAttrList *func = sx_arena_new(c->arena, Tensorflow__NameAttrList);
    if (grown == NULL || e == NULL || value == NULL || func == NULL) {
        return no_memory();
    }
    tensorflow__node_def__attr_entry__init(e);
    tensorflow__attr_value__init(value);
    tensorflow__name_attr_list__init(func);
    func->name = (char *)(uintptr_t)function;
    value->value_case = TENSORFLOW__ATTR_VALUE__VALUE_FUNC;
    value->func = func;
    e->key = sx_arena_strdup(c->arena, key);
    e->value = value;
    if (n->n_attr > 0) {
        memcpy(grown, n->attr, n->n_attr * sizeof(*grown));
    }
    grown[n->n_attr++] = e;
    n->attr = grown;
    return e->key == NULL ? no_memory() : SX_OK;
}

/* A function of n_args arguments "arg:k", spelled so that no node has that name, over `nodes`. */
static sx_status add_function(converter *c, const char *name, int n_args, const list *nodes,
                              char *const *results, int n_results)
{
    Tensorflow__FunctionDef *f = sx_arena_new(c->arena, Tensorflow__FunctionDef);
    Tensorflow__OpDef *s = sx_arena_new(c->arena, Tensorflow__OpDef);
    if (f == NULL || s == NULL) {
        return no_memory();
    }
    tensorflow__function_def__init(f);
    tensorflow__op_def__init(s);
    f->signature = s;
    s->name = (char *)(uintptr_t)name;
    s->n_input_arg = (size_t)n_args;
    s->n_output_arg = f->n_ret = (size_t)n_results;
    s->input_arg = sx_arena_array(c->arena, n_args + 1, Tensorflow__OpDef__ArgDef *);
    s->output_arg = sx_arena_array(c->arena, n_results + 1, Tensorflow__OpDef__ArgDef *);
    f->ret = sx_arena_array(c->arena, n_results + 1, Tensorflow__FunctionDef__RetEntry *);
    f->node_def =
        sx_arena_memdup(c->arena, nodes->nodes, ((size_t)nodes->n + 1) * sizeof(node_def *));
    f->n_node_def = (size_t)nodes->n;
    if (s->input_arg == NULL || s->output_arg == NULL || f->ret == NULL || f->node_def == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n_args + n_results; i++) {
        const bool in = i < n_args;
        const int k = in ? i : i - n_args;
        Tensorflow__OpDef__ArgDef *arg = sx_arena_new(c->arena, Tensorflow__OpDef__ArgDef);
        if (arg == NULL) {
            return no_memory();
        }
        tensorflow__op_def__arg_def__init(arg);
        arg->name = sx_arena_printf(c->arena, in ? " x%d" : " y%d", k);
        *(in ? &s->input_arg[k] : &s->output_arg[k]) = arg;
        if (arg->name == NULL) {
            return no_memory();
        }
        if (!in) {
            Tensorflow__FunctionDef__RetEntry *ret =
                sx_arena_new(c->arena, Tensorflow__FunctionDef__RetEntry);
            if (ret == NULL) {
                return no_memory();
            }
            tensorflow__function_def__ret_entry__init(ret);
            ret->key = arg->name;
            ret->value = results[k];
            f->ret[k] = ret;
        }
    }
    return sx_map_put(c->made->functions, name, f);
}

static char *arg_name(converter *c, int k)
{
    return sx_arena_printf(c->arena, " x%d", k);
}

/* A node of that name that gives argument k, twice: a Switch has two outputs. */
static sx_status add_arg_node(converter *c, list *l, const char *name, int k)
{
    node_def *n = new_node(c, "IdentityN", name, 2);
    if (n == NULL) {
        return no_memory();
    }
    n->input[0] = n->input[1] = arg_name(c, k);
    n->n_input = 2;
    return n->input[0] == NULL ? no_memory() : list_add(c, l, n);
}

/* A copy of a node without the control inputs that `l` does not have. */
static sx_status copy_node(converter *c, const node_def *of, const list *l, node_def **out)
{
    node_def *n = new_node(c, of->op, of->name, (int)of->n_input);
    if (n == NULL) {
        return no_memory();
    }
    n->attr = of->attr;
    n->n_attr = of->n_attr;
    for (size_t i = 0; i < of->n_input; i++) {
        if (of->input[i][0] != '^' || list_find(l, of->input[i]) >= 0) {
            n->input[n->n_input++] = of->input[i];
        }
    }
    *out = n;
    return SX_OK;
}

/* Work is limited: a file may ask for a square of its size. */
static sx_status spend(converter *c, int64_t steps)
{
    c->steps_left -= steps;
    return c->steps_left >= 0 ? SX_OK
                              : sx_error(SX_RESOURCE_EXHAUSTED,
                                         "turning control flow into functions takes too long");
}

/* ---- Frames ---- */

static sx_status find_frame(converter *c, const node_def *enter, int parent, int *out)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(enter, "frame_name");
    const bool named = a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S;
    char *name = named ? sx_arena_strndup(c->arena, (const char *)a->s.data, a->s.len) : NULL;
    if (name == NULL) {
        return named ? no_memory()
                     : sx_error(SX_DATA_LOSS, "Enter \"%.200s\" has no frame_name", enter->name);
    }
    SX_TRY(spend(c, c->n_frames));
    for (int i = 0; i < c->n_frames; i++) {
        if (strcmp(c->frames[i].name, name) == 0 && c->frames[i].parent == parent) {
            *out = i;
            return SX_OK;
        }
    }
    if (c->n_frames == MAX_FRAMES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %d loops", MAX_FRAMES);
    }
    if (c->n_frames == c->frame_capacity) {
        const int capacity = 2 * c->frame_capacity + 16;
        frame *grown = sx_realloc(c->frames, (size_t)capacity, sizeof(*grown));
        if (grown == NULL) {
            return no_memory();
        }
        c->frames = grown;
        c->frame_capacity = capacity;
    }
    c->frames[c->n_frames] = (frame){
        .name = name, .parent = parent, .depth = parent < 0 ? 1 : c->frames[parent].depth + 1};
    *out = c->n_frames++;
    return SX_OK;
}

/* The frame of a node whose inputs' frames are known: the deepest of them. */
static sx_status frame_from_inputs(converter *c, int i)
{
    const node_def *n = c->graph.nodes[i];
    int own = NO_FRAME;
    for (size_t k = 0; k < n->n_input; k++) {
        const int from = list_find(&c->graph, n->input[k]);
        const int f = from < 0 ? NO_FRAME : c->frame_of[from];
        if (f >= 0 && (own < 0 || c->frames[f].depth > c->frames[own].depth)) {
            own = f;
        }
    }
    if (is_op(n, "Enter")) {
        SX_TRY(find_frame(c, n, own, &own));
    } else if (is_op(n, "Exit") && own >= 0) {
        own = c->frames[own].parent;
    }
    c->frame_of[i] = own;
    return SX_OK;
}

/* Visits nodes after their inputs, but for the inputs of Merges from NextIterations, and calls
 * `each`. */
static sx_status walk_in_order(converter *c, list *l,
                               sx_status (*each)(converter *c, list *l, int i))
{
    const int n = l->n;                       /* `each` may add nodes */
    char *state = sx_alloc((size_t)n + 1, 1); /* 1: entered, 2: done */
    int *stack = sx_alloc((size_t)n + 1, sizeof(int)), depth = 0;
    size_t *next = sx_alloc((size_t)n + 1, sizeof(size_t));
    sx_status status = state == NULL || stack == NULL || next == NULL ? no_memory() : SX_OK;
    for (int root = 0; root < n && status == SX_OK; root++) {
        if (state[root] != 0) {
            continue;
        }
        stack[depth++] = root;
        state[root] = 1;
        while (depth > 0 && status == SX_OK) {
            const int at = stack[depth - 1];
            const node_def *node = l->nodes[at];
            if (next[at] < node->n_input) {
                const int from = list_find(l, node->input[next[at]++]);
                const bool back =
                    from >= 0 && is_op(node, "Merge") && is_op(l->nodes[from], "NextIteration");
                if (from >= 0 && from < n && !back && state[from] == 0) {
                    state[from] = 1;
                    stack[depth++] = from;
                } else if (from >= 0 && from < n && !back && state[from] == 1) {
                    status =
                        sx_error(SX_DATA_LOSS, "node \"%.200s\" depends on itself", node->name);
                }
                continue;
            }
            status = each(c, l, at);
            state[at] = 2;
            depth--;
        }
    }
    sx_free(state);
    sx_free(stack);
    sx_free(next);
    return status;
}

static sx_status set_frame(converter *c, list *l, int i)
{
    (void)l;
    return frame_from_inputs(c, i);
}

/* ---- Loops ---- */

static const node_def *find_use(converter *c, const list *l, const char *op, const char *of)
{
    c->steps_left -= l->n;
    for (int i = 0; i < l->n && c->steps_left >= 0; i++) {
        for (size_t k = 0;
             l->nodes[i] != NULL && is_op(l->nodes[i], op) && k < l->nodes[i]->n_input; k++) {
            sx_tf_ref ref;
            if (sx_tf_ref_parse(l->nodes[i]->input[k], &ref) && !ref.control &&
                strlen(of) == ref.node_bytes && memcmp(of, ref.node, ref.node_bytes) == 0) {
                return l->nodes[i];
            }
        }
    }
    return NULL;
}

/* A variable of a loop: what belongs together. */
typedef struct loop_var {
    const node_def *enter, *merge, *next, *switch_, *exit;
} loop_var;

static sx_status convert_conds(converter *c, list *l);

static sx_status read_var(converter *c, const list *inside, const node_def *enter, const list *all,
                          loop_var *v)
{
    *v = (loop_var){.enter = enter, .merge = find_use(c, inside, "Merge", enter->name)};
    for (size_t k = 0; v->merge != NULL && k < v->merge->n_input; k++) {
        const int i = list_find(inside, v->merge->input[k]);
        if (i >= 0 && is_op(inside->nodes[i], "NextIteration")) {
            v->next = inside->nodes[i];
        }
    }
    v->switch_ = v->merge != NULL ? find_use(c, inside, "Switch", v->merge->name) : NULL;
    v->exit = v->switch_ != NULL ? find_use(c, all, "Exit", v->switch_->name) : NULL;
    if (v->merge == NULL || v->next == NULL || v->next->n_input < 1) {
        return sx_error(SX_DATA_LOSS, "loop variable \"%.200s\" has no Merge with a NextIteration",
                        enter->name);
    }
    return SX_OK;
}

/* The functions of a loop over its nodes `inside`; `take` are the results. */
static sx_status loop_function(converter *c, const list *inside, const loop_var *vars, int n_vars,
                               node_def *const *fixed, int n_fixed, const char *name,
                               char *const *results, int n_results)
{
    list l = {0};
    sx_map_init(&l.index);
    sx_status status = SX_OK;
    for (int k = 0; k < n_vars + n_fixed && status == SX_OK; k++) {
        status = add_arg_node(c, &l, k < n_vars ? vars[k].merge->name : fixed[k - n_vars]->name, k);
        if (status == SX_OK && k < n_vars && vars[k].switch_ != NULL) {
            status = add_arg_node(c, &l, vars[k].switch_->name, k);
        }
        if (status == SX_OK && k < n_vars) { /* for control edges */
            status = add_arg_node(c, &l, vars[k].enter->name, k);
        }
    }
    for (int i = 0; i < inside->n && status == SX_OK; i++) {
        node_def *copy = NULL;
        if (sx_map_get(&l.index, inside->nodes[i]->name) == NULL &&
            !is_op(inside->nodes[i], "Enter")) {
            status = copy_node(c, inside->nodes[i], inside, &copy);
            status = status != SX_OK ? status : list_add(c, &l, copy);
        }
    }
    status = status != SX_OK ? status : convert_conds(c, &l);
    status =
        status != SX_OK ? status : add_function(c, name, n_vars + n_fixed, &l, results, n_results);
    list_deinit(&l);
    return status;
}

static sx_status convert_loop(converter *c, int f)
{
    list inside = {0};
    loop_var *vars = sx_arena_array(c->arena, MAX_ARGS, loop_var);
    node_def **fixed = sx_arena_array(c->arena, MAX_ARGS, node_def *);
    char **results = sx_arena_array(c->arena, MAX_ARGS, char *);
    const node_def *condition = NULL;
    int n_vars = 0, n_fixed = 0;
    if (vars == NULL || fixed == NULL || results == NULL) {
        return no_memory();
    }
    sx_map_init(&inside.index);
    sx_status status = SX_OK;
    for (int i = 0; i < c->graph.n && status == SX_OK; i++) {
        if (c->graph.nodes[i] != NULL && c->frame_of[i] == f) {
            status = list_add(c, &inside, c->graph.nodes[i]);
        }
    }
    for (int i = 0; i < inside.n && status == SX_OK; i++) {
        node_def *n = inside.nodes[i];
        condition = is_op(n, "LoopCond") ? n : condition;
        if (!is_op(n, "Enter")) {
            continue;
        }
        const Tensorflow__AttrValue *a = sx_tf_node_attr(n, "is_constant");
        const bool is_fixed = a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_B && a->b;
        if (n->n_input < 1 || n_vars + n_fixed + 1 >= MAX_ARGS) {
            status = sx_error(SX_UNIMPLEMENTED,
                              "Enter \"%.200s\" has no input, or its loop has more "
                              "than %d",
                              n->name, MAX_ARGS);
        } else if (is_fixed) {
            fixed[n_fixed++] = n;
        } else {
            status = read_var(c, &inside, n, &c->graph, &vars[n_vars++]);
        }
    }
    status = status != SX_OK ? status : spend(c, c->graph.n);
    if (status == SX_OK && (condition == NULL || condition->n_input < 1)) {
        status = sx_error(SX_DATA_LOSS, "loop \"%.200s\" has no LoopCond", c->frames[f].name);
    }
    const char *cond_name = sx_arena_printf(c->arena, " cond %d", ++c->made->n_made);
    const char *body_name = sx_arena_printf(c->arena, " body %d", c->made->n_made);
    char *name = sx_arena_printf(c->arena, "%s while %d", c->frames[f].name, f);
    if (status == SX_OK && (cond_name == NULL || body_name == NULL || name == NULL)) {
        status = no_memory();
    }
    if (status == SX_OK) {
        results[0] = condition->input[0];
        status = loop_function(c, &inside, vars, n_vars, fixed, n_fixed, cond_name, results, 1);
    }
    for (int k = 0; k < n_vars + n_fixed && status == SX_OK; k++) {
        results[k] = k < n_vars ? vars[k].next->input[0] : arg_name(c, k);
        status = results[k] == NULL ? no_memory() : SX_OK;
    }
    if (status == SX_OK) {
        status = loop_function(c, &inside, vars, n_vars, fixed, n_fixed, body_name, results,
                               n_vars + n_fixed);
    }
    /* the node, and its outputs in place of the Exits */
    node_def *loop = status == SX_OK ? new_node(c, "While", name, n_vars + n_fixed) : NULL;
    if (status == SX_OK) {
        status = loop == NULL ? no_memory() : set_function(c, loop, "cond", cond_name);
        status = status != SX_OK ? status : set_function(c, loop, "body", body_name);
    }
    for (int k = 0; k < n_vars + n_fixed && status == SX_OK; k++) {
        loop->input[loop->n_input++] = (k < n_vars ? vars[k].enter : fixed[k - n_vars])->input[0];
    }
    for (int k = 0; k < n_vars && status == SX_OK; k++) {
        const int at = vars[k].exit != NULL ? list_find(&c->graph, vars[k].exit->name) : -1;
        node_def *exit = at >= 0 ? new_node(c, "Identity", vars[k].exit->name, 1) : NULL;
        if (at >= 0 && exit == NULL) {
            status = no_memory();
        } else if (at >= 0) {
            exit->input[exit->n_input++] = sx_arena_printf(c->arena, "%s:%d", name, k);
            c->graph.nodes[at] = exit;
            status = exit->input[0] == NULL ? no_memory() : SX_OK;
        }
    }
    for (int i = 0; i < c->graph.n && status == SX_OK; i++) {
        if (c->graph.nodes[i] != NULL && c->frame_of[i] == f) {
            c->graph.nodes[i] = NULL;
        }
    }
    if (status == SX_OK) {
        status = list_add(c, &c->graph, loop);
        int *grown = sx_realloc(c->frame_of, (size_t)c->graph.n + 1, sizeof(int));
        if (grown == NULL) {
            sx_status_free(status);
            status = no_memory();
        } else {
            c->frame_of = grown;
            c->frame_of[c->graph.n - 1] = c->frames[f].parent;
        }
    }
    list_deinit(&inside);
    return status;
}

/* ---- Conds ---- */

/* What one input of a Merge needs, up to Switches. */
typedef struct side {
    int *items;  /* [n] node numbers */
    char *marks; /* [list.n]: REACHED, INSIDE */
    int n;
} side;

enum { REACHED = 1, INSIDE = 2 };

static sx_status reach(converter *c, const list *l, const char *text, side *out)
{
    out->items = sx_alloc((size_t)l->n + 1, sizeof(int));
    out->marks = sx_alloc((size_t)l->n + 1, 1);
    if (out->items == NULL || out->marks == NULL) {
        return no_memory();
    }
    SX_TRY(spend(c, l->n / 64));
    const int root = list_find(l, text);
    if (root >= 0) {
        out->items[out->n++] = root;
        out->marks[root] = REACHED;
    }
    for (int at = 0; at < out->n; at++) {
        const node_def *n = l->nodes[out->items[at]];
        SX_TRY(spend(c, (int64_t)n->n_input + 1));
        for (size_t k = 0; !is_op(n, "Switch") && k < n->n_input; k++) {
            const int from = list_find(l, n->input[k]);
            if (from >= 0 && out->marks[from] == 0) {
                out->marks[from] = REACHED;
                out->items[out->n++] = from;
            }
        }
    }
    return SX_OK;
}

static bool same_tensor(const char *a, const char *b)
{
    sx_tf_ref x, y;
    return sx_tf_ref_parse(a, &x) && sx_tf_ref_parse(b, &y) && x.output == y.output &&
           x.node_bytes == y.node_bytes && memcmp(x.node, y.node, x.node_bytes) == 0;
}

/* A tensor's text without the Identities that it passes through. */
static const char *original(const list *l, const char *text)
{
    for (int hops = 0; hops < 16; hops++) {
        const int i = list_find(l, text);
        if (i < 0 || !is_op(l->nodes[i], "Identity") || l->nodes[i]->n_input < 1) {
            break;
        }
        text = l->nodes[i]->input[0];
    }
    return text;
}

static bool is_switch_on(const list *l, const node_def *n, const char *predicate)
{
    return is_op(n, "Switch") && n->n_input >= 2 &&
           same_tensor(original(l, n->input[1]), predicate);
}

/* Which of a Switch's outputs, bit 0 and 1, the side reads, or `text`, which is what it is for. */
static sx_status sides_read(converter *c, const list *l, const side *s, const char *name,
                            const char *text, int *out)
{
    const size_t length = strlen(name);
    *out = 0;
    for (int at = -1; at < s->n; at++) {
        const node_def *of = at < 0 ? NULL : l->nodes[s->items[at]];
        const size_t n = of == NULL ? 1 : is_op(of, "Switch") ? 0 : of->n_input;
        SX_TRY(spend(c, (int64_t)n));
        for (size_t k = 0; k < n; k++) {
            sx_tf_ref ref;
            if (sx_tf_ref_parse(of == NULL ? text : of->input[k], &ref) && !ref.control &&
                ref.node_bytes == length && memcmp(ref.node, name, length) == 0 && ref.output < 2) {
                *out |= 1 << ref.output;
            }
        }
    }
    return SX_OK;
}

/* The predicate of a Merge: that of Switches of which one input reads output 0, the other 1; NULL:
 * there is none. *out_false is the number of the input for false. */
static sx_status find_predicate(converter *c, const list *l, const node_def *merge,
                                const side sides[2], const char **out, int *out_false)
{
    *out = NULL;
    for (int i = 0; i < sides[0].n; i++) {
        const node_def *a = l->nodes[sides[0].items[i]];
        int reads = 0, others = 0;
        if (!is_op(a, "Switch") || a->n_input < 2) {
            continue;
        }
        SX_TRY(sides_read(c, l, &sides[0], a->name, merge->input[0], &reads));
        for (int k = 0; k < sides[1].n && (reads == 1 || reads == 2); k++) {
            const node_def *b = l->nodes[sides[1].items[k]];
            SX_TRY(spend(c, 1));
            if (!is_switch_on(l, b, original(l, a->input[1]))) {
                continue;
            }
            SX_TRY(sides_read(c, l, &sides[1], b->name, merge->input[1], &others));
            if (others == 3 - reads) {
                *out_false = reads == 1 ? 0 : 1;
                *out = original(l, a->input[1]);
                return SX_OK;
            }
        }
    }
    return SX_OK;
}

/* Marks the nodes that depend on a Switch of the predicate. */
static sx_status find_inside(converter *c, const list *l, const side *s, const char *predicate)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int at = s->n - 1; at >= 0; at--) { /* inputs come after what reads them, mostly */
            const int i = s->items[at];
            const node_def *n = l->nodes[i];
            if (s->marks[i] == INSIDE) {
                continue;
            }
            SX_TRY(spend(c, (int64_t)n->n_input + 1));
            bool in = is_switch_on(l, n, predicate);
            for (size_t k = 0; !is_op(n, "Switch") && !in && k < n->n_input; k++) {
                const int from = list_find(l, n->input[k]);
                in = from >= 0 && s->marks[from] == INSIDE;
            }
            s->marks[i] = in ? INSIDE : REACHED;
            changed = changed || in;
        }
    }
    return SX_OK;
}

/* The tensors that both branches are given. */
typedef struct captures {
    char *texts[MAX_ARGS];
    int n;
} captures;

static sx_status capture(captures *of, char *text, int *out)
{
    for (int i = 0; i < of->n; i++) {
        if (same_tensor(of->texts[i], text)) {
            *out = i;
            return SX_OK;
        }
    }
    if (of->n == MAX_ARGS) {
        return sx_error(SX_UNIMPLEMENTED, "a branch reads more than %d tensors", MAX_ARGS);
    }
    *out = of->n;
    of->texts[of->n++] = text;
    return SX_OK;
}

/* A node in place of one that assigns in the branch of another If: the variable, if it gives one.
 */
static sx_status add_assigned(converter *c, const node_def *n, list *out)
{
    const bool of_handle = strstr(n->op, "Variable") != NULL || strncmp(n->op, "Resource", 8) == 0;
    node_def *copy = new_node(c, of_handle ? "NoOp" : "IdentityN", n->name, 1);
    if (copy == NULL) {
        return no_memory();
    }
    if (!of_handle && n->n_input > 0) {
        copy->input[copy->n_input++] = n->input[0];
    }
    return list_add(c, out, copy);
}

/* The nodes of a branch of `merge` into `out`, what it reads from outside into `of`; in *after the
 * If, or NULL, that assigns what this one needs. */
static sx_status branch_nodes(converter *c, const list *l, const node_def *merge, const side *s,
                              captures *of, list *out, char **after)
{
    for (int item = 0; item < s->n; item++) {
        const node_def *n = l->nodes[s->items[item]];
        int k = 0;
        if (s->marks[s->items[item]] != INSIDE) {
            continue;
        }
        if (is_op(n, "Switch")) {
            SX_TRY(capture(of, n->input[0], &k));
            SX_TRY(add_arg_node(c, out, n->name, k));
            continue;
        }
        char *first = sx_map_get(&c->assigned_by, n->name);
        if (first != NULL && strcmp(first, merge->name) != 0) {
            *after = first;
            SX_TRY(add_assigned(c, n, out));
            continue;
        }
        if (sx_tf_assigned_inputs(n->op) > 0) {
            SX_TRY(sx_map_put(&c->assigned_by, n->name, merge->name));
        }
        node_def *copy = new_node(c, n->op, n->name, (int)n->n_input);
        if (copy == NULL) {
            return no_memory();
        }
        copy->attr = n->attr;
        copy->n_attr = n->n_attr;
        for (size_t at = 0; at < n->n_input; at++) {
            const int from = list_find(l, n->input[at]);
            const bool within = from >= 0 && s->marks[from] == INSIDE;
            char *text = n->input[at];
            if (!within && text[0] == '^') {
                continue;
            }
            if (!within) {
                SX_TRY(capture(of, text, &k));
                text = arg_name(c, k);
            }
            if (text == NULL) {
                return no_memory();
            }
            copy->input[copy->n_input++] = text;
        }
        SX_TRY(list_add(c, out, copy));
    }
    return SX_OK;
}

/* The If in place of a Merge whose sides and predicate are known. */
static sx_status make_if(converter *c, list *l, int at, const side sides[2], const char *predicate,
                         int at_false, captures *of, list branches[2])
{
    const node_def *merge = l->nodes[at];
    const int number = ++c->made->n_made;
    char *results[2], *after[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) { /* false, true */
        const side *s = &sides[i == 0 ? at_false : 1 - at_false];
        SX_TRY(find_inside(c, l, s, predicate));
        SX_TRY(branch_nodes(c, l, merge, s, of, &branches[i], &after[i]));
        results[i] = merge->input[i == 0 ? at_false : 1 - at_false];
        const int maker = list_find(l, results[i]);
        if (maker < 0 || s->marks[maker] != INSIDE) {
            int k = 0;
            SX_TRY(capture(of, results[i], &k));
            results[i] = arg_name(c, k);
        }
    }
    node_def *n = new_node(c, "If", merge->name, of->n + 3);
    if (n == NULL || results[0] == NULL || results[1] == NULL) {
        return no_memory();
    }
    for (int i = 0; i < 2; i++) {
        char *name = sx_arena_printf(c->arena, i == 0 ? " else %d" : " then %d", number);
        if (name == NULL) {
            return no_memory();
        }
        SX_TRY(add_function(c, name, of->n, &branches[i], &results[i], 1));
        SX_TRY(set_function(c, n, i == 0 ? "else_branch" : "then_branch", name));
    }
    n->input[n->n_input++] = (char *)(uintptr_t)predicate;
    for (int k = 0; k < of->n; k++) {
        n->input[n->n_input++] = of->texts[k];
    }
    for (int i = 0; i < 2; i++) {
        char *control = after[i] != NULL ? sx_arena_printf(c->arena, "^%s", after[i]) : NULL;
        if (after[i] != NULL && control == NULL) {
            return no_memory();
        }
        if (control != NULL) {
            n->input[n->n_input++] = control;
        }
    }
    l->nodes[at] = n;
    return SX_OK;
}

static sx_status convert_merge(converter *c, list *l, int at)
{
    const node_def *merge = l->nodes[at];
    if (!is_op(merge, "Merge") || merge->n_input < 2 || merge->input[0][0] == '^' ||
        merge->input[1][0] == '^') {
        return SX_OK;
    }
    captures *of = sx_alloc(1, sizeof(*of));
    list branches[2] = {{0}, {0}};
    side sides[2] = {{0}, {0}};
    const char *predicate = NULL;
    int at_false = 0;
    sx_map_init(&branches[0].index);
    sx_map_init(&branches[1].index);
    sx_status status = of == NULL ? no_memory() : SX_OK;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = reach(c, l, merge->input[i], &sides[i]);
    }
    if (status == SX_OK) {
        status = find_predicate(c, l, merge, sides, &predicate, &at_false);
    }
    if (status == SX_OK && predicate != NULL) {
        status = make_if(c, l, at, sides, predicate, at_false, of, branches);
    }
    for (int i = 0; i < 2; i++) {
        list_deinit(&branches[i]);
        sx_free(sides[i].items);
        sx_free(sides[i].marks);
    }
    sx_free(of);
    return unless_invalid(status);
}

static sx_status convert_conds(converter *c, list *l)
{
    bool some = false;
    for (int i = 0; i < l->n; i++) {
        some = some || is_op(l->nodes[i], "Merge");
    }
    if (!some) {
        return SX_OK;
    }
    sx_map_init(&c->assigned_by);
    sx_status status = walk_in_order(c, l, convert_merge);
    sx_map_deinit(&c->assigned_by);
    return status;
}

/* ---- All ---- */

static sx_status convert(converter *c, node_def *const *nodes, size_t n, node_def ***out,
                         size_t *out_n)
{
    for (size_t i = 0; i < n; i++) {
        SX_TRY(list_add(c, &c->graph, nodes[i]));
    }
    c->frame_of = sx_alloc(n + 1, sizeof(int));
    if (c->frame_of == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < n; i++) {
        c->frame_of[i] = NO_FRAME;
    }
    SX_TRY(walk_in_order(c, &c->graph, set_frame));
    int deepest = 0;
    for (int f = 0; f < c->n_frames; f++) {
        deepest = SX_MAX(deepest, c->frames[f].depth);
    }
    for (int depth = deepest; depth > 0; depth--) {
        for (int f = 0; f < c->n_frames; f++) {
            if (c->frames[f].depth == depth) {
                SX_TRY(unless_invalid(convert_loop(c, f)));
            }
        }
    }
    list left = {0};
    sx_map_init(&left.index);
    sx_status status = SX_OK;
    for (int i = 0; i < c->graph.n && status == SX_OK; i++) {
        if (c->graph.nodes[i] != NULL) {
            status = list_add(c, &left, c->graph.nodes[i]);
        }
    }
    status = status != SX_OK ? status : convert_conds(c, &left);
    if (status == SX_OK) {
        *out = sx_arena_memdup(c->arena, left.nodes, ((size_t)left.n + 1) * sizeof(node_def *));
        *out_n = (size_t)left.n;
        status = *out == NULL ? no_memory() : SX_OK;
    }
    list_deinit(&left);
    return status;
}

sx_status sx_import_v1_control(Tensorflow__NodeDef *const *nodes, size_t n, int64_t max_nodes,
                               sx_arena *arena, sx_v1_functions *made, Tensorflow__NodeDef ***out,
                               size_t *out_n)
{
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        some = some || is_op(nodes[i], "Merge") || is_op(nodes[i], "Enter");
    }
    *out = (Tensorflow__NodeDef **)(uintptr_t)nodes;
    *out_n = n;
    if (!some) {
        return SX_OK;
    }
    converter c = {
        .made = made, .arena = arena, .nodes_left = max_nodes, .steps_left = 256 * max_nodes};
    sx_map_init(&c.graph.index);
    sx_status status = convert(&c, nodes, n, out, out_n);
    list_deinit(&c.graph);
    sx_free(c.frame_of);
    sx_free(c.frames);
    return unless_invalid(status);
}

/* ---- Functions ---- */

/* A reference of a function's body, "node:arg:0", as a graph has it, "node:0". */
static char *graph_reference(const sx_map *nodes, const sx_v1_functions *made, char *text,
                             sx_arena *arena)
{
    sx_tf_ref ref;
    if (!sx_tf_ref_parse(text, &ref) || ref.arg == NULL) {
        return text;
    }
    const node_def *node = sx_map_get_bytes(nodes, ref.node, ref.node_bytes);
    const char *called = node == NULL ? NULL : sx_import_called(node, false);
    const Tensorflow__FunctionDef *function =
        called == NULL ? NULL : sx_map_get(made->functions, called);
    const Tensorflow__OpDef *op = node == NULL || function != NULL || made->model == NULL
                                      ? NULL
                                      : sx_saved_model_find_op(made->model, node->op);
    const int output = node == NULL ? -1 : sx_import_output_of(function, op, node, &ref);
    return output < 0 ? text
                      : sx_arena_printf(arena, "%.*s:%d", (int)ref.node_bytes, ref.node, output);
}

/* The function with its references as graphs have them. */
static sx_status copy_function(const Tensorflow__FunctionDef *of, const sx_map *nodes,
                               const sx_v1_functions *made, sx_arena *arena,
                               Tensorflow__FunctionDef **out)
{
    Tensorflow__FunctionDef *f = sx_arena_memdup(arena, of, sizeof(*f));
    node_def **copies = sx_arena_array(arena, of->n_node_def + 1, node_def *);
    Tensorflow__FunctionDef__RetEntry **ret =
        sx_arena_array(arena, of->n_ret + 1, Tensorflow__FunctionDef__RetEntry *);
    if (f == NULL || copies == NULL || ret == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < of->n_node_def; i++) {
        node_def *n = sx_arena_memdup(arena, of->node_def[i], sizeof(*n));
        char **input = n == NULL ? NULL : sx_arena_array(arena, n->n_input + 1, char *);
        if (input == NULL) {
            return no_memory();
        }
        for (size_t k = 0; k < n->n_input; k++) {
            input[k] = graph_reference(nodes, made, n->input[k], arena);
            if (input[k] == NULL) {
                return no_memory();
            }
        }
        n->input = input;
        copies[i] = n;
    }
    for (size_t i = 0; i < of->n_ret; i++) {
        ret[i] = sx_arena_memdup(arena, of->ret[i], sizeof(*ret[i]));
        if (ret[i] == NULL) {
            return no_memory();
        }
        ret[i]->value = graph_reference(nodes, made, ret[i]->value, arena);
        if (ret[i]->value == NULL) {
            return no_memory();
        }
    }
    f->node_def = copies;
    f->ret = ret;
    *out = f;
    return SX_OK;
}

sx_status sx_import_v1_function(const Tensorflow__FunctionDef *function, int64_t max_nodes,
                                sx_arena *arena, sx_v1_functions *made,
                                const Tensorflow__FunctionDef **out)
{
    bool some = false;
    for (size_t i = 0; i < function->n_node_def; i++) {
        some =
            some || is_op(function->node_def[i], "Merge") || is_op(function->node_def[i], "Enter");
    }
    *out = function;
    if (!some) {
        return SX_OK;
    }
    sx_map nodes;
    Tensorflow__FunctionDef *copy = NULL;
    sx_map_init(&nodes);
    sx_status status = SX_OK;
    for (size_t i = 0; i < function->n_node_def && status == SX_OK; i++) {
        status = sx_map_put(&nodes, function->node_def[i]->name, function->node_def[i]);
    }
    if (status == SX_OK) {
        status = copy_function(function, &nodes, made, arena, &copy);
    }
    if (status == SX_OK) {
        status = sx_import_v1_control(copy->node_def, copy->n_node_def, max_nodes, arena, made,
                                      &copy->node_def, &copy->n_node_def);
        *out = copy;
    }
    sx_map_deinit(&nodes);
    return status;
}
