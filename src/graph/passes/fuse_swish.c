/* Swish and its gradient in the nodes as which TensorFlow writes them (swish_form.h) become the
 * operators swish and swish_grad, which read x alone: the sigmoid is neither kept for the gradient
 * nor written. Where something else reads the sigmoid, too, they stay. */
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/swish_form.h"

static bool find(const sx_graph *g, const sx_node *n, sx_swish_form *out)
{
    return sx_find_swish(g, n, out) || sx_find_swish_grad(g, n, out);
}

/* `user`: how many others than the forms that are fused read each value. */
static void fuse_node(sx_rewrite *rw, const sx_node *n)
{
    const int *others = rw->user;
    sx_swish_form f;
    if (!find(rw->from, n, &f) || others[f.s.id] > 0) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    const bool gradient = sx_value_is(f.dy);
    const sx_value in[] = {rw->map[gradient ? f.dy.id : f.x.id], rw->map[f.x.id]};
    rw->map[n->first_output.id] = sx_rewrite_node(
        rw, n, gradient ? &sx_op_swish_grad : &sx_op_swish, NULL, in, gradient ? 2 : 1);
}

sx_status sx_pass_fuse_swish(const sx_graph *g, sx_graph **out)
{
    int *others = sx_alloc((size_t)g->n_values, sizeof(*others));
    if (others == NULL) {
        return sx_no_memory("rewriting a graph");
    }
    sx_rewrite_count_readers(g, others);
    for (int k = 0; k < g->n_nodes; k++) {
        sx_swish_form f;
        if (find(g, &g->nodes[k], &f)) {
            others[f.s.id] -= sx_value_is(f.dy) ? 2 : 1;
        }
    }
    sx_status status = sx_rewrite_run(g, 0, fuse_node, others, out);
    sx_free(others);
    return status;
}
