/* The part of a graph that some of its outputs need. */
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

sx_status sx_pass_keep_outputs(const sx_graph *g, const bool *keep, sx_graph **out)
{
    sx_rewrite rw = {.from = g};
    bool *live = sx_alloc((size_t)g->n_values, sizeof(bool));
    rw.map = sx_alloc((size_t)g->n_values, sizeof(sx_value));
    sx_status status = live == NULL || rw.map == NULL ? sx_no_memory("cutting a graph") : SX_OK;
    status = status == SX_OK ? sx_builder_create_like(g, &rw.to) : status;
    if (status != SX_OK) {
        goto done;
    }
    for (int i = 0; i < g->n_results; i++) {
        live[g->results[i].value.id] |= keep[i];
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
    for (int k = 0, arg = 0; k < g->n_nodes && !sx_builder_failed(rw.to); k++) {
        const sx_node *n = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < n->n_outputs; i++) {
            any = any || live[sx_node_output(n, i).id];
        }
        if (arg < g->n_args && g->args[arg].value.id == n->first_output.id) {
            sx_builder_at(rw.to, n->file, n->line);
            if (any) {
                rw.map[n->first_output.id] = sx_build_arg_on(
                    rw.to, &g->args[arg], *sx_graph_type(g, n->first_output), n->device);
            }
            arg++;
        } else if (any) {
            sx_rewrite_keep(&rw, n, NULL);
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        if (keep[i]) {
            sx_output(rw.to, g->results[i].name, rw.map[g->results[i].value.id]);
        }
    }
    status = sx_builder_finish(rw.to, out);
done:
    sx_builder_destroy(rw.to);
    sx_free(rw.map);
    sx_free(live);
    return status;
}
