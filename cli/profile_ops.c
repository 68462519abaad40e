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

/* The operation's name without its number: "fusion" of "fusion.3". */
static const char *kind_of(const char *name, sx_arena *arena)
{
    return sx_arena_printf(arena, "%.*s", (int)strcspn(name, ".0123456789"), name);
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

sx_status sx_profile_ops_group(const sx_profile_ops *ops, const sx_profile_nodes *nodes,
                               int64_t steps, sx_profile_causes *c)
{
    enum { BY_KERNEL, BY_OP, BY_LAYER, GROUPS };
    sx_profile_groups *const all[GROUPS] = {&c->by_kernel, &c->by_op, &c->by_layer};
    sx_map index[GROUPS];
    sx_arena *arena = ops->arena;
    const double scale = (double)steps / (double)ops->steps / ops->devices;
    c->kernels = sx_arena_array(arena, ops->n + 1, sx_profile_kernel);
    bool has_memory = c->kernels != NULL && !ops->is_short_of_memory;
    for (int g = 0; g < GROUPS; g++) {
        sx_map_init_borrowed(&index[g]);
        all[g]->items = sx_arena_array(arena, ops->n + 1, sx_profile_kernel);
        has_memory = has_memory && all[g]->items != NULL;
    }
    sx_status status = has_memory ? SX_OK : sx_no_memory("for a profile");
    for (int i = 0; i < ops->n && status == SX_OK; i++) {
        const sx_profile_op *op = &ops->items[i];
        const sx_profile_node *node = sx_profile_nodes_find(nodes, op->node);
        const double seconds = op->seconds * scale;
        const char *kind = kind_of(op->name, arena);
        const char *const names[GROUPS] = {kind, node != NULL ? node->op : kind,
                                           sx_profile_layer_of(nodes, op->node, arena)};
        c->kernels[c->n++] = (sx_profile_kernel){.kernel = op->name,
                                                 .ops = node != NULL ? node->op : "",
                                                 .node = op->node,
                                                 .count = 1,
                                                 .calls = op->calls,
                                                 .seconds = seconds};
        for (int g = 0; g < GROUPS && status == SX_OK; g++) {
            sx_profile_kernel *group;
            status = names[g] == NULL ? sx_no_memory("for a profile")
                                      : sx_profile_group(all[g], &index[g], names[g], &group);
            if (status == SX_OK) {
                group->count++;
                group->calls += op->calls;
                group->seconds += seconds;
            }
        }
    }
    /* What the program computes: each node once, whatever the device made of it. */
    for (int i = 0; i < nodes->n; i++) {
        const sx_profile_node *node = &nodes->items[i];
        const char *const names[GROUPS] = {[BY_OP] = node->op, [BY_LAYER] = node->layer};
        for (int g = BY_OP; g < GROUPS; g++) {
            const uintptr_t at = (uintptr_t)sx_map_get(&index[g], names[g]);
            if (at > 0) {
                all[g]->items[at - 1].flops += node->flops * (double)steps;
                all[g]->items[at - 1].bytes += node->bytes * (double)steps;
            }
        }
    }
    for (int g = 0; g < GROUPS; g++) {
        sx_map_deinit(&index[g]);
    }
    SX_TRY(status);
    sx_profile_sort(c->kernels, c->n);
    for (int g = 0; g < GROUPS; g++) {
        sx_profile_sort(all[g]->items, all[g]->n);
    }
    double recorded = 0;
    for (int i = 0; i < c->n; i++) {
        recorded += c->kernels[i].seconds;
    }
    c->whole = SX_MAX(c->whole, recorded);
    return add_cost_of_nodes(c, nodes, (double)steps, arena);
}
