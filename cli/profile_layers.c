/* See profile_layers.h. */
#include "profile_layers.h"

#include <string.h>

#include "base/memory.h"

static const char gradients[] = "gradients/";

/* The name without its last component; the whole if it has only one. */
static const char *scope_of(const char *name, size_t size, sx_arena *arena)
{
    size_t end = size;
    while (end > 0 && name[end - 1] != '/') {
        end--;
    }
    return sx_arena_printf(arena, "%.*s", (int)(end > 1 ? end - 1 : size), name);
}

static bool is_gradient(const char *name)
{
    const char *at = strstr(name, gradients);
    return at != NULL && (at == name || at[-1] == '/');
}

/* ---- Layers ---- */

typedef struct reading {
    const sx_graph *g;
    sx_arena *arena;
    const char **of_variable; /* [values]: the layer of the variable; NULL = it is none */
    const char **wanted;      /* [values]: the layer of the variable that it updates */
    const char **layers;      /* [nodes] */
} reading;

static sx_status begin(reading *r)
{
    const sx_graph *g = r->g;
    r->of_variable = sx_arena_array(r->arena, g->n_values + 1, const char *);
    r->wanted = sx_arena_array(r->arena, g->n_values + 1, const char *);
    r->layers = sx_arena_array(r->arena, g->n_nodes + 1, const char *);
    if (r->of_variable == NULL || r->wanted == NULL || r->layers == NULL) {
        return sx_no_memory("for a profile");
    }
    for (int i = 0; i < g->n_args; i++) {
        const sx_arg *arg = &g->args[i];
        if (arg->kind == SX_ARG_VARIABLE &&
            (arg->role == SX_ROLE_WEIGHT || arg->role == SX_ROLE_STATE)) {
            r->of_variable[arg->value.id] = scope_of(arg->name, strlen(arg->name), r->arena);
        }
    }
    return SX_OK;
}

/* From updates of variables back to the nodes that make their gradients. */
static void follow_updates(reading *r)
{
    const sx_graph *g = r->g;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        const char *layer = NULL;
        for (int i = 0; i < n->n_outputs && layer == NULL; i++) {
            layer = r->wanted[sx_node_output(n, i).id];
        }
        if (is_gradient(n->name)) {
            r->layers[k] = layer;
            continue;
        }
        for (int i = 0; i < n->n_inputs && layer == NULL; i++) {
            layer = r->of_variable[n->inputs[i].id];
        }
        for (int i = 0; i < n->n_inputs && layer != NULL; i++) {
            const sx_node *maker = sx_graph_maker(g, n->inputs[i]);
            if (is_gradient(maker->name) && r->wanted[n->inputs[i].id] == NULL) {
                r->wanted[n->inputs[i].id] = layer;
            }
        }
    }
}

static const char *layer_of_gradient(const reading *r, const sx_node *n)
{
    const char *of_model = NULL, *of_gradient = NULL;
    int latest = -1;
    for (int i = 0; i < n->n_inputs; i++) {
        const sx_value v = n->inputs[i];
        const int k = (int)(sx_graph_maker(r->g, v) - r->g->nodes);
        if (r->of_variable[v.id] != NULL) {
            return r->of_variable[v.id];
        }
        if (is_gradient(r->g->nodes[k].name)) {
            of_gradient = r->layers[k];
        } else if (k > latest && (r->g->nodes[k].op->flags & SX_OP_NO_HOST) == 0) {
            latest = k;
            of_model = r->layers[k];
        }
    }
    return of_model != NULL ? of_model : of_gradient;
}

static void name_layers(reading *r)
{
    const sx_graph *g = r->g;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (r->layers[k] == NULL && is_gradient(n->name)) {
            r->layers[k] = layer_of_gradient(r, n);
        }
        if (r->layers[k] == NULL) {
            r->layers[k] = scope_of(n->name, strlen(n->name), r->arena);
        }
    }
}

sx_status sx_profile_nodes_read(const sx_graph *g, int64_t batch, sx_arena *arena,
                                sx_profile_nodes *out)
{
    reading r = {.g = g, .arena = arena};
    *out = (sx_profile_nodes){.items = sx_arena_array(arena, g->n_nodes + 1, sx_profile_node)};
    sx_map_init(&out->by_name);
    SX_TRY(begin(&r));
    follow_updates(&r);
    name_layers(&r);
    for (int k = 0; k < g->n_nodes && out->items != NULL; k++) {
        const sx_node *n = &g->nodes[k];
        if ((n->op->flags & SX_OP_NO_HOST) != 0) { /* a parameter */
            continue;
        }
        const sx_cost cost = sx_node_cost_at(g, n, batch);
        const char *name = sx_arena_strdup(arena, n->name);
        if (name == NULL || r.layers[k] == NULL) {
            return sx_no_memory("for a profile");
        }
        out->items[out->n++] = (sx_profile_node){.name = name,
                                                 .op = n->op->name,
                                                 .layer = r.layers[k],
                                                 .flops = cost.flops,
                                                 .bytes = cost.bytes};
        out->flops += cost.flops;
        SX_TRY(sx_map_put(&out->by_name, name, (void *)(uintptr_t)out->n));
    }
    return out->items != NULL ? SX_OK : sx_no_memory("for a profile");
}

void sx_profile_nodes_deinit(sx_profile_nodes *nodes)
{
    sx_map_deinit(&nodes->by_name);
}

/* ---- Names ---- */

/* By the longest part of it, from its beginning to a slash, that is the name of a node. */
static const sx_profile_node *find_one(const sx_profile_nodes *nodes, const char *name, size_t size)
{
    while (size > 0) {
        const uintptr_t at = (uintptr_t)sx_map_get_bytes(&nodes->by_name, name, size);
        if (at > 0) {
            return &nodes->items[at - 1];
        }
        do {
            size--;
        } while (size > 0 && name[size] != '/');
    }
    return NULL;
}

const sx_profile_node *sx_profile_nodes_find(const sx_profile_nodes *nodes, const char *name)
{
    const sx_profile_node *best = NULL;
    while (nodes->n > 0 && *name != '\0') {
        const size_t size = strcspn(name, "+");
        const sx_profile_node *node = find_one(nodes, name, size);
        best = node != NULL && (best == NULL || node->flops > best->flops) ? node : best;
        name += size + (name[size] == '+');
    }
    return best;
}

const char *sx_profile_layer_of(const sx_profile_nodes *nodes, const char *name, sx_arena *arena)
{
    const sx_profile_node *node = sx_profile_nodes_find(nodes, name);
    return node != NULL    ? node->layer
           : *name == '\0' ? "(none)"
                           : scope_of(name, strcspn(name, "+"), arena);
}
