/* Leaves out the nodes that only say what the gradient of their operands is. */
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

static bool has_any(const sx_graph *g)
{
    bool any = false;
    for (int k = 0; k < g->n_nodes && !any; k++) {
        const sx_node *n = &g->nodes[k];
        any = (n->op->flags & SX_OP_FOR_GRADIENT) != 0;
        for (int row = 0; row < n->op->n_attrs && !any; row++) {
            any = n->op->attrs[row].kind == SX_ATTR_BODY && has_any(sx_node_body(n, row));
        }
    }
    return any;
}

static void pass_node(sx_rewrite *rw, const sx_node *n)
{
    if ((n->op->flags & SX_OP_FOR_GRADIENT) == 0) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        rw->map[sx_node_output(n, i).id] = rw->map[n->inputs[i].id];
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_rewrite_run_deep(region, 0, pass_node, in_region, NULL, out);
}

sx_status sx_pass_drop_gradients(const sx_graph *g, sx_graph **out)
{
    *out = NULL;
    return has_any(g) ? in_region(g, NULL, out) : SX_OK;
}
