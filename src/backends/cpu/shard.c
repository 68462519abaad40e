/* Which values are cut along the batch, and whether a graph may be cut at all. */
#include <string.h>

#include "backends/cpu/planner.h"
#include "graph/ops/common.h"
#include "graph/spmd.h"

static bool node_can_shard(const sx_graph *g, const sx_node *n)
{
    if (n->op->batch_rule == SX_RULE_ROWS && sx_graph_type(g, n->inputs[0])->dtype != SX_F32) {
        return !sx_reads_batch(g, n); /* the host kernel does not know where its rows are */
    }
    if (n->op->batch_rule == SX_RULE_REGIONS) {
        return sx_node_division(g, n) == SX_COMMON;
    }
    return sx_node_division(g, n) != SX_GATHERED;
}

/* A shard's piece of an argument or result is a range of its bytes: no dimension before the batch
 * is longer than 1. */
static bool end_can_shard(const sx_type *type)
{
    int axis = sx_batch_axis(type);
    return axis < 0 || sx_dims_product(type, 0, axis) == 1;
}

bool sx_cpu_can_shard(const sx_graph *g)
{
    bool any = false;
    for (int i = 0; i < g->n_args + g->n_results; i++) {
        sx_value v = i < g->n_args ? g->args[i].value : g->results[i - g->n_args].value;
        if (!end_can_shard(sx_graph_type(g, v))) {
            return false;
        }
    }
    for (int k = 0; k < g->n_nodes; k++) {
        if (!node_can_shard(g, &g->nodes[k])) {
            return false;
        }
    }
    for (int i = 1; i < g->n_values; i++) {
        any |= sx_type_has_batch(&g->values[i].type);
    }
    return any;
}

double sx_cpu_graph_flops(const sx_graph *g)
{
    double sum = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (!(g->nodes[k].op->flags & SX_OP_NO_HOST)) {
            sum += sx_node_flops(g, &g->nodes[k]);
        }
    }
    return sum;
}

/* `g` has the symbolic batch. With one shard all is one piece, and every node that shard's. */
void sx_cpu_mark_batched(const sx_graph *g, bool shard, bool *batched, bool *sharded)
{
    for (int i = 1; i < g->n_values; i++) {
        batched[i] = shard && sx_type_has_batch(&g->values[i].type);
    }
    for (int k = 0; k < g->n_nodes; k++) {
        sharded[k] = !shard || sx_node_division(g, &g->nodes[k]) != SX_COMMON;
    }
}
