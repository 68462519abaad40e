/* What a gradient is made of should be operators that have gradients of their own: batch norms are
 * found (fuse_norms.c), and x sigmoid(x) becomes swish, whose gradient reads x alone and is one
 * pass over memory. */
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/swish_form.h"

static bool has_swish(const sx_graph *g)
{
    sx_swish_form f;
    bool any = false;
    for (int k = 0; k < g->n_nodes && !any; k++) {
        any = sx_find_swish(g, &g->nodes[k], &f);
    }
    return any;
}

static void fuse_node(sx_rewrite *rw, const sx_node *n)
{
    sx_swish_form f;
    if (!sx_find_swish(rw->from, n, &f)) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    rw->map[n->first_output.id] = sx_rewrite_node(rw, n, &sx_op_swish, NULL, &rw->map[f.x.id], 1);
}

sx_status sx_pass_fuse_forms(const sx_graph *g, sx_graph **out)
{
    sx_graph *norms, *whole = NULL;
    *out = NULL;
    SX_TRY(sx_pass_fuse_norms(g, &norms));
    if (!has_swish(norms != NULL ? norms : g)) {
        *out = norms;
        return SX_OK;
    }
    sx_status status = sx_rewrite_run(norms != NULL ? norms : g, 0, fuse_node, NULL, &whole);
    if (status == SX_OK) {
        status = sx_pass_drop_dead(whole, out);
    }
    sx_graph_destroy(whole);
    sx_graph_destroy(norms);
    return status;
}
