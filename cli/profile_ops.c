/* See profile_ops.h. */
#include "profile_ops.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { MAX_EVENTS = 200000 };

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
    const int at = (int)(uintptr_t)sx_map_get(&ops->by_name, op->name) - 1;
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
    sx_status status = sx_map_put(&ops->by_name, name, (void *)(uintptr_t)(ops->n + 1));
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

static sx_profile_kernel *group_of(sx_profile_groups *groups, const char *name)
{
    int i = 0;
    while (i < groups->n && strcmp(groups->items[i].kernel, name) != 0) {
        i++;
    }
    if (i == groups->n) {
        groups->items[groups->n++] = (sx_profile_kernel){.kernel = name};
    }
    return &groups->items[i];
}

static void add_time(sx_profile_kernel *group, const sx_profile_kernel *k)
{
    group->count++;
    group->calls += k->calls;
    group->seconds += k->seconds;
}

/* The operation's name without its number: "fusion" of "fusion.3". */
static const char *kind_of(const char *name, sx_arena *arena)
{
    return sx_arena_printf(arena, "%.*s", (int)strcspn(name, ".0123456789"), name);
}

/* What the program computes, by operator and by layer: each node once, whatever the device made of
 * it. */
static void add_costs(sx_profile_causes *c, const sx_profile_nodes *nodes, double steps)
{
    for (int i = 0; i < nodes->n; i++) {
        const sx_profile_node *node = &nodes->items[i];
        for (int g = 0; g < c->by_op.n + c->by_layer.n; g++) {
            const bool is_op = g < c->by_op.n;
            sx_profile_kernel *k = is_op ? &c->by_op.items[g] : &c->by_layer.items[g - c->by_op.n];
            if (strcmp(k->kernel, is_op ? node->op : node->layer) == 0) {
                k->flops += node->flops * steps;
                k->bytes += node->bytes * steps;
            }
        }
    }
}

/* A node that one operation was made from costs what it costs; of several, the longest has it. */
static void add_cost_of_nodes(sx_profile_causes *c, const sx_profile_nodes *nodes, double steps)
{
    for (int i = 0; i < c->n; i++) { /* the longest first */
        sx_profile_kernel *k = &c->kernels[i];
        const sx_profile_node *node = sx_profile_nodes_find(nodes, k->node);
        bool is_first = node != NULL;
        for (int before = 0; before < i && is_first; before++) {
            is_first = strcmp(c->kernels[before].node, k->node) != 0;
        }
        if (is_first) {
            k->flops = node->flops * steps;
            k->bytes = node->bytes * steps;
        }
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
    for (int i = 0; i < ops->n; i++) {
        const sx_profile_op *op = &ops->items[i];
        const sx_profile_node *node = sx_profile_nodes_find(nodes, op->node);
        const char *kind = kind_of(op->name, arena);
        const char *layer = sx_profile_layer_of(nodes, op->node, arena);
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
        add_time(group_of(&c->by_kernel, kind), &k);
        add_time(group_of(&c->by_op, node != NULL ? node->op : kind), &k);
        add_time(group_of(&c->by_layer, layer), &k);
    }
    sx_profile_sort(c->kernels, c->n);
    sx_profile_sort(c->by_kernel.items, c->by_kernel.n);
    sx_profile_sort(c->by_op.items, c->by_op.n);
    sx_profile_sort(c->by_layer.items, c->by_layer.n);
    double recorded = 0;
    for (int i = 0; i < c->n; i++) {
        recorded += c->kernels[i].seconds;
    }
    c->whole = SX_MAX(c->whole, recorded);
    add_costs(c, nodes, (double)steps);
    add_cost_of_nodes(c, nodes, (double)steps);
    return SX_OK;
}
