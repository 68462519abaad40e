/* A batch norm in training whose result elementwise nodes alone read is computed again for each of
 * them: it then is part of their pass over memory, and its result is neither written nor kept until
 * the gradient. Its image is kept anyway, for its own gradient.
 *
 *   t  = batch_norm_train(x, ...)        t  = batch_norm_train(x, ...)
 *   y  = swish(t)                        y  = swish(t)
 *                                        t2 = batch_norm_train(x, ...)
 *   dt = swish_grad(dy, t)               dt = swish_grad(dy, t2)
 *
 * The same of a result that is rounded to bfloat16 first. */
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

typedef struct repeating {
    bool *again; /* [n_nodes]: made where it is read */
    int *made;   /* [n_nodes]: how often, for the names */
} repeating;

/* ---- Which ---- */

static bool is_norm(const sx_graph *g, const sx_node *n)
{
    return n->op->id == SX_OPID_batch_norm_train &&
           sx_graph_type(g, n->first_output)->dtype == SX_F32;
}

static void find(const sx_graph *g, bool *again)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        const bool rounded = n->op->id == SX_OPID_round_bf16;
        again[k] = is_norm(g, n) || (rounded && is_norm(g, sx_graph_maker(g, n->inputs[0])));
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        const bool joins = (n->op->flags & SX_OP_ELEMENTWISE) != 0;
        for (int i = 0; i < n->n_inputs; i++) {
            const sx_node *maker = sx_graph_maker(g, n->inputs[i]);
            const bool whole = joins && sx_type_equal(sx_graph_type(g, n->inputs[i]),
                                                      sx_graph_type(g, n->first_output));
            again[maker - g->nodes] = again[maker - g->nodes] && whole;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        again[sx_graph_maker(g, g->results[i].value) - g->nodes] = false;
    }
}

/* ---- Rewriting ---- */

static void make_node(sx_rewrite *rw, const sx_node *n);

/* Makes those of its operands that are made where they are read. */
static void make_operands(sx_rewrite *rw, const sx_node *n)
{
    const repeating *r = rw->user;
    for (int i = 0; i < n->n_inputs; i++) {
        const sx_node *maker = sx_graph_maker(rw->from, n->inputs[i]);
        const bool before = i > 0 && n->inputs[i].id == n->inputs[i - 1].id;
        if (r->again[maker - rw->from->nodes] && !before && !sx_builder_failed(rw->to)) {
            make_node(rw, maker);
        }
    }
}

static void make_node(sx_rewrite *rw, const sx_node *n)
{
    const int count = ((repeating *)rw->user)->made[n - rw->from->nodes]++;
    make_operands(rw, n);
    if (count == 0) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    sx_value *in = sx_arena_array(sx_builder_arena(rw->to), n->n_inputs, sx_value);
    if (in == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return;
    }
    for (int i = 0; i < n->n_inputs; i++) {
        in[i] = rw->map[n->inputs[i].id];
    }
    rw->map[n->first_output.id] =
        sx_rewrite_beside(rw, n, n->op, n->attrs, in, n->n_inputs, "/again_%d", count);
}

static void repeat_node(sx_rewrite *rw, const sx_node *n)
{
    if (!((repeating *)rw->user)->again[n - rw->from->nodes]) {
        make_operands(rw, n);
        sx_rewrite_keep(rw, n, NULL);
    }
}

sx_status sx_pass_repeat_norms(const sx_graph *g, sx_graph **out)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    repeating r = {.again = sx_arena_array(&arena, g->n_nodes + 1, bool),
                   .made = sx_arena_array(&arena, g->n_nodes + 1, int)};
    sx_status status = SX_OK;
    if (r.again == NULL || r.made == NULL) {
        status = sx_no_memory("rewriting a graph");
    } else {
        find(g, r.again);
        status = sx_rewrite_run(g, 0, repeat_node, &r, out);
    }
    sx_arena_deinit(&arena);
    return status;
}
