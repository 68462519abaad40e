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

/* Sets stays[] of the values that others read than the forms, which are fused, do. */
static sx_status mark_read(const sx_graph *g, bool *stays)
{
    int *readers = sx_rewrite_count_readers(g);
    if (readers == NULL) {
        return sx_no_memory("rewriting a graph");
    }
    for (int k = 0; k < g->n_nodes; k++) {
        sx_swish_form f;
        if (find(g, &g->nodes[k], &f)) {
            readers[f.s.id] -= sx_value_is(f.dy) ? 2 : 1;
        }
    }
    for (int i = 0; i < g->n_values; i++) {
        stays[i] = readers[i] > 0;
    }
    sx_free(readers);
    return SX_OK;
}

static void fuse_node(sx_rewrite *rw, const sx_node *n)
{
    const bool *stays = rw->user;
    sx_swish_form f;
    if (!find(rw->from, n, &f) || stays[f.s.id]) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    const bool gradient = sx_value_is(f.dy);
    const sx_value in[] = {rw->map[gradient ? f.dy.id : f.x.id], rw->map[f.x.id]};
    rw->map[n->first_output.id] =
        sx_build_node(rw->to, &(sx_node_spec){.op = gradient ? &sx_op_swish_grad : &sx_op_swish,
                                              .inputs = in,
                                              .n_inputs = gradient ? 2 : 1,
                                              .name = n->name,
                                              .device = n->device,
                                              .file = n->file,
                                              .line = n->line});
}

sx_status sx_pass_fuse_swish(const sx_graph *g, sx_graph **out)
{
    bool *stays = sx_alloc((size_t)g->n_values, sizeof(*stays));
    sx_status status = stays != NULL ? mark_read(g, stays) : sx_no_memory("rewriting a graph");
    if (status == SX_OK) {
        status = sx_rewrite_run(g, 0, fuse_node, stays, out);
    }
    sx_free(stays);
    return status;
}
