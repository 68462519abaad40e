/* Merges equal nodes: same operator, attributes, device and (mapped) inputs. Random operators are
 * functions of their inputs and key attributes, so the same rule applies to them. */
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* An open-addressed set of the kept old nodes, hashed by the properties that are compared. */
typedef struct node_set {
    const sx_node **slots;
    size_t mask;
} node_set;

static uint64_t hash_node(const sx_rewrite *rw, const sx_node *n)
{
    uint64_t h = sx_attrs_hash(n->op, n->attrs);
    for (int i = 0; i < n->n_inputs; i++) {
        h = (h ^ rw->map[n->inputs[i].id].id) * 0x9E3779B97F4A7C15u;
    }
    return h ^ h >> 32;
}

static bool equal_nodes(const sx_rewrite *rw, const sx_node *a, const sx_node *b)
{
    if (a->op != b->op || a->n_inputs != b->n_inputs || strcmp(a->device, b->device) != 0 ||
        !sx_attrs_equal(a->op, a->attrs, b->attrs)) {
        return false;
    }
    for (int i = 0; i < a->n_inputs; i++) {
        if (rw->map[a->inputs[i].id].id != rw->map[b->inputs[i].id].id) {
            return false;
        }
    }
    return true;
}

static void merge_node(sx_rewrite *rw, const sx_node *n)
{
    node_set *set = rw->user;
    size_t slot = hash_node(rw, n) & set->mask;
    while (set->slots[slot] != NULL && !equal_nodes(rw, set->slots[slot], n)) {
        slot = (slot + 1) & set->mask;
    }
    const sx_node *same = set->slots[slot];
    if (same == NULL) {
        set->slots[slot] = n;
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        rw->map[sx_node_output(n, i).id] = rw->map[sx_node_output(same, i).id];
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_merge_equal(region, out);
}

sx_status sx_pass_merge_equal(const sx_graph *g, sx_graph **out)
{
    node_set set = {.mask = 63};
    while (set.mask < 2 * (size_t)g->n_nodes) {
        set.mask = set.mask * 2 + 1;
    }
    set.slots = sx_alloc(set.mask + 1, sizeof(*set.slots));
    if (set.slots == NULL) {
        return sx_no_memory("merging equal nodes");
    }
    sx_status status = sx_rewrite_run_deep(g, 0, merge_node, in_region, &set, out);
    sx_free(set.slots);
    return status;
}
