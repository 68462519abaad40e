/* See profile_ops.h. */
#include "profile_ops.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { MAX_EVENTS = 200000, MAX_KEY = 1 << 14 };

void sx_profile_ops_init(sx_profile_ops *ops, sx_arena *arena)
{
    *ops = (sx_profile_ops){.arena = arena, .devices = 1};
    sx_map_init(&ops->by_name);
}

void sx_profile_ops_deinit(sx_profile_ops *ops)
{
    sx_map_deinit(&ops->by_name);
    sx_free(ops->items);
    sx_free(ops->events);
}

/* ---- Adding ---- */

/* The index of the operation, added if it is new; -1: out of memory. */
static int find_op(sx_profile_ops *ops, const sx_device_op *op)
{
    char key[MAX_KEY];
    snprintf(key, sizeof(key), "%s\n%s", op->name, op->node);
    const int at = (int)(uintptr_t)sx_map_get(&ops->by_name, key) - 1;
    if (at >= 0) {
        return at;
    }
    if (ops->n == ops->max) {
        const int most = 2 * ops->max + 64;
        sx_profile_op *more = sx_realloc(ops->items, (size_t)most, sizeof(*more));
        if (more == NULL) {
            return -1;
        }
        ops->items = more;
        ops->max = most;
    }
    const char *name = sx_arena_strdup(ops->arena, op->name);
    const char *node = sx_arena_strdup(ops->arena, op->node);
    if (name == NULL || node == NULL) {
        return -1;
    }
    sx_status status = sx_map_put(&ops->by_name, key, (void *)(uintptr_t)(ops->n + 1));
    if (status != SX_OK) {
        sx_status_free(status);
        return -1;
    }
    ops->items[ops->n] = (sx_profile_op){.name = name, .node = node};
    return ops->n++;
}

/* The index of the line; of too many, the last. */
static int find_line(sx_profile_ops *ops, const char *line)
{
    int i = 0;
    while (i < ops->n_lines && strcmp(ops->lines[i], line) != 0) {
        i++;
    }
    if (i == ops->n_lines && i < SX_PROFILE_LINES) {
        const char *copy = sx_arena_strdup(ops->arena, line);
        ops->lines[ops->n_lines++] = copy != NULL ? copy : "";
    }
    return i < SX_PROFILE_LINES ? i : SX_PROFILE_LINES - 1;
}

static void keep_event(sx_profile_ops *ops, int at, const sx_device_op *op)
{
    if (ops->n_events == ops->max_events && ops->max_events < MAX_EVENTS) {
        const int most = 2 * ops->max_events + 256;
        sx_profile_op_event *more = sx_realloc(ops->events, (size_t)most, sizeof(*more));
        ops->max_events = more != NULL ? most : ops->max_events;
        ops->events = more != NULL ? more : ops->events;
    }
    if (ops->n_events < ops->max_events) {
        ops->events[ops->n_events++] = (sx_profile_op_event){.op = at,
                                                             .line = find_line(ops, op->line),
                                                             .start_ns = op->start_ns,
                                                             .seconds = op->seconds};
    }
}

void sx_profile_ops_add(void *user, const sx_device_op *op)
{
    sx_profile_ops *ops = user;
    const int at = find_op(ops, op);
    if (at < 0) {
        ops->is_short_of_memory = true;
        return;
    }
    ops->items[at].calls++;
    ops->items[at].seconds += op->seconds;
    keep_event(ops, at, op);
}

/* ---- Tables ---- */

static sx_status add_time(sx_profile_groups *groups, sx_map *index, const char *name,
                          const sx_profile_kernel *k)
{
    sx_profile_kernel *group;
    SX_TRY(sx_profile_group(groups, index, name, &group));
    group->count++;
    group->calls += k->calls;
    group->seconds += k->seconds;
    return SX_OK;
}

/* The operation's name without its number: "fusion" of "fusion.3". */
static const char *kind_of(const char *name, sx_arena *arena)
{
    return sx_arena_printf(arena, "%.*s", (int)strcspn(name, ".0123456789"), name);
}

static void add_cost(sx_profile_groups *groups, const sx_map *index, const char *name,
                     const sx_profile_node *node, double steps)
{
    const uintptr_t at = (uintptr_t)sx_map_get(index, name);
    if (at > 0) {
        groups->items[at - 1].flops += node->flops * steps;
        groups->items[at - 1].bytes += node->bytes * steps;
    }
}

/* A node that operations were made from costs what it costs: the longest of them has it, whatever
 * parts of the node's they are called by. */
static sx_status add_cost_of_nodes(sx_profile_causes *c, const sx_profile_nodes *nodes,
                                   double steps, sx_arena *arena)
{
    bool *seen = sx_arena_array(arena, nodes->n + 1, bool);
    if (seen == NULL) {
        return sx_no_memory("for a profile");
    }
    for (int i = 0; i < c->n; i++) { /* the longest first */
        sx_profile_kernel *k = &c->kernels[i];
        const sx_profile_node *node = sx_profile_nodes_find(nodes, k->node);
        if (node != NULL && !seen[node - nodes->items]) {
            seen[node - nodes->items] = true;
            k->flops = node->flops * steps;
            k->bytes = node->bytes * steps;
        }
    }
    return SX_OK;
}

/* The tables' rows, whose names `index` finds until they are sorted. */
typedef struct grouping {
    const sx_profile_ops *ops;
    const sx_profile_nodes *nodes;
    sx_profile_causes *c;
    sx_map by_kernel, by_op, by_layer;
} grouping;

static sx_status group_times(grouping *g, double scale)
{
    sx_profile_causes *c = g->c;
    for (int i = 0; i < g->ops->n; i++) {
        const sx_profile_op *op = &g->ops->items[i];
        const sx_profile_node *node = sx_profile_nodes_find(g->nodes, op->node);
        const char *kind = kind_of(op->name, g->ops->arena);
        const char *layer = sx_profile_layer_of(g->nodes, op->node, g->ops->arena);
        if (kind == NULL || layer == NULL) {
            return sx_no_memory("for a profile");
        }
        const sx_profile_kernel k = {.kernel = op->name,
                                     .ops = node != NULL ? node->op : "",
                                     .node = op->node,
                                     .count = 1,
                                     .calls = op->calls,
                                     .seconds = op->seconds * scale};
        c->kernels[c->n++] = k;
        SX_TRY(add_time(&c->by_kernel, &g->by_kernel, kind, &k));
        SX_TRY(add_time(&c->by_op, &g->by_op, node != NULL ? node->op : kind, &k));
        SX_TRY(add_time(&c->by_layer, &g->by_layer, layer, &k));
    }
    return SX_OK;
}

/* What the program computes, by operator and by layer: each node once, whatever the device made of
 * it. */
static void group_costs(grouping *g, double steps)
{
    for (int i = 0; i < g->nodes->n; i++) {
        const sx_profile_node *node = &g->nodes->items[i];
        add_cost(&g->c->by_op, &g->by_op, node->op, node, steps);
        add_cost(&g->c->by_layer, &g->by_layer, node->layer, node, steps);
    }
}

sx_status sx_profile_ops_group(const sx_profile_ops *ops, const sx_profile_nodes *nodes,
                               int64_t steps, sx_profile_causes *c)
{
    sx_arena *arena = ops->arena;
    const double scale = (double)steps / (double)ops->steps / ops->devices;
    c->kernels = sx_arena_array(arena, ops->n + 1, sx_profile_kernel);
    c->by_kernel.items = sx_arena_array(arena, ops->n + 1, sx_profile_kernel);
    c->by_op.items = sx_arena_array(arena, ops->n + 1, sx_profile_kernel);
    c->by_layer.items = sx_arena_array(arena, ops->n + 1, sx_profile_kernel);
    if (c->kernels == NULL || c->by_kernel.items == NULL || c->by_op.items == NULL ||
        c->by_layer.items == NULL || ops->is_short_of_memory) {
        return sx_no_memory("for a profile");
    }
    grouping g = {.ops = ops, .nodes = nodes, .c = c};
    sx_map_init_borrowed(&g.by_kernel);
    sx_map_init_borrowed(&g.by_op);
    sx_map_init_borrowed(&g.by_layer);
    sx_status status = group_times(&g, scale);
    group_costs(&g, (double)steps);
    sx_map_deinit(&g.by_kernel);
    sx_map_deinit(&g.by_op);
    sx_map_deinit(&g.by_layer);
    SX_TRY(status);
    sx_profile_sort(c->kernels, c->n);
    sx_profile_sort(c->by_kernel.items, c->by_kernel.n);
    sx_profile_sort(c->by_op.items, c->by_op.n);
    sx_profile_sort(c->by_layer.items, c->by_layer.n);
    double recorded = 0;
    for (int i = 0; i < c->n; i++) {
        recorded += c->kernels[i].seconds;
    }
    c->whole = SX_MAX(c->whole, recorded);
    return add_cost_of_nodes(c, nodes, (double)steps, arena);
}
