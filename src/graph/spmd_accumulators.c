/* Accumulators of loops (spmd_pass.h): state + partial sum over the batch, from zero. */
#include "graph/spmd_pass.h"

#include "graph/ops/attrs.h"
#include "graph/ops/common.h"

/* How many operands and results of a region are `v`. */
static int count_uses(const sx_graph *g, sx_value v)
{
    int uses = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            uses += g->nodes[k].inputs[i].id == v.id;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        uses += g->results[i].value.id == v.id;
    }
    return uses;
}

/* Whether `v` is a sum of partial sums that nothing else reads. */
static bool is_partial_sum(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    if (count_uses(g, v) != 1 || !sx_dtype_is_float(sx_graph_type(g, v)->dtype)) {
        return false;
    }
    if (n->op == &sx_op_add) {
        return is_partial_sum(g, n->inputs[0]) && is_partial_sum(g, n->inputs[1]);
    }
    return n->op->batch_rule == SX_RULE_SUM && sx_node_division(g, n) == SX_COMBINED;
}

static bool is_zero(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    while (n->op == &sx_op_broadcast_to || n->op == &sx_op_reshape || n->op == &sx_op_identity) {
        n = sx_graph_maker(g, n->inputs[0]);
    }
    if (n->op != &sx_op_constant) {
        return false;
    }
    const sx_tensor *t = &((const sx_constant_attrs *)n->attrs)->value;
    const int64_t bytes = sx_type_bytes(&t->type);
    for (int64_t i = 0; i < bytes; i++) {
        if (((const char *)t->data)[i] != 0) {
            return false;
        }
    }
    return bytes >= 0;
}

void sx_spmd_find_accumulators(const sx_graph *outer, const sx_node *n, bool *out)
{
    const sx_while_attrs *attrs = n->attrs;
    const sx_graph *g = attrs->body;
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_value arg = g->args[i].value, y = g->results[i].value;
        const sx_node *sum = sx_graph_maker(g, y);
        out[i] = !sx_type_has_batch(sx_graph_type(g, y)) && sum->op == &sx_op_add &&
                 sum->inputs[0].id == arg.id && count_uses(g, arg) == 1 && count_uses(g, y) == 1 &&
                 is_partial_sum(g, sum->inputs[1]) &&
                 count_uses(attrs->condition, attrs->condition->args[i].value) == 0 &&
                 is_zero(outer, n->inputs[i]);
    }
}

void sx_spmd_mark_accumulated(const sx_graph *g, sx_value v, bool *marks)
{
    const sx_node *n = sx_graph_maker(g, v);
    marks[v.id] = true;
    for (int i = 0; n->op == &sx_op_add && i < n->n_inputs; i++) {
        if (sx_graph_maker(g, n->inputs[i])->op != &sx_op_parameter) {
            sx_spmd_mark_accumulated(g, n->inputs[i], marks);
        }
    }
}
