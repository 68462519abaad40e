/* Removes nodes that no result needs. */
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

static void keep_if_live(sx_rewrite *rw, const sx_node *node)
{
    const bool *live = rw->user; /* by value id of the old graph */
    for (int i = 0; i < node->n_outputs; i++) {
        if (live[sx_node_output(node, i).id]) {
            sx_rewrite_keep(rw, node, NULL);
            return;
        }
    }
}

static void mark_live(const sx_graph *g, bool *live)
{
    for (int i = 0; i < g->n_results; i++) {
        live[g->results[i].value.id] = true;
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < n->n_outputs; i++) {
            any = any || live[sx_node_output(n, i).id];
        }
        for (int i = 0; any && i < n->n_inputs; i++) {
            live[n->inputs[i].id] = true;
        }
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_drop_dead(region, out);
}

sx_status sx_pass_drop_dead(const sx_graph *g, sx_graph **out)
{
    bool *live = sx_alloc((size_t)g->n_values, sizeof(bool));
    if (live == NULL) {
        return sx_no_memory("dropping dead nodes");
    }
    mark_live(g, live);
    sx_status status = sx_rewrite_run_deep(g, 0, keep_if_live, in_region, live, out);
    sx_free(live);
    return status;
}
