/* Sets own_moments on the batch norms of a training graph. */
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

static void set_own_moments(sx_rewrite *rw, const sx_node *n)
{
    sx_batch_norm_attrs attrs = {0};
    const bool is_norm = n->op->id == SX_OPID_batch_norm_train ||
                         n->op->id == SX_OPID_batch_norm_train_grad_sums ||
                         n->op->id == SX_OPID_batch_norm_train_grad_input;
    if (is_norm) {
        attrs = *(const sx_batch_norm_attrs *)n->attrs;
        attrs.own_moments = true;
    }
    sx_rewrite_keep(rw, n, is_norm ? &attrs : NULL);
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_own_moments(region, out);
}

sx_status sx_pass_own_moments(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run_deep(g, 0, set_own_moments, in_region, NULL, out);
}
