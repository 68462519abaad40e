/* How a node is computed in parts of the batch, and whether a value is cut into them (spmd.h). */
#include "graph/spmd.h"

#include "graph/ops/common.h"

bool sx_reads_batch(const sx_graph *g, const sx_node *n)
{
    for (int i = 0; i < n->n_inputs; i++) {
        if (sx_type_has_batch(sx_graph_type(g, n->inputs[i]))) {
            return true;
        }
    }
    return false;
}

sx_division sx_node_division(const sx_graph *g, const sx_node *n)
{
    bool reads = sx_reads_batch(g, n), makes = false, loses = false;
    for (int i = 0; i < n->n_outputs; i++) {
        bool batch = sx_type_has_batch(sx_graph_type(g, sx_node_output(n, i)));
        makes = makes || batch;
        loses = loses || !batch;
    }
    loses = loses && reads;
    if (!(reads || makes) || n->op->batch_rule == SX_RULE_TYPES) {
        return SX_COMMON;
    }
    if (n->op->batch_rule == SX_RULE_NONE) {
        return SX_GATHERED;
    }
    if (n->op->batch_rule == SX_RULE_REGIONS) {
        return SX_DIVIDED;
    }
    if (!loses) {
        return SX_DIVIDED;
    }
    return n->op->batch_rule >= SX_RULE_SUM ? SX_COMBINED : SX_GATHERED;
}

bool sx_spmd_is_byte_range(const sx_type *type)
{
    const int axis = sx_batch_axis(type);
    return axis >= 0 && sx_dims_product(type, 0, axis) == 1;
}
