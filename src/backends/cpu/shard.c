/* How many operations a graph is, and whether dividing its batch into shards is worth it. */
#include "backends/cpu/planner.h"
#include "graph/spmd.h"

bool sx_cpu_has_batch(const sx_graph *g)
{
    for (int i = 1; i < g->n_values; i++) {
        if (sx_type_has_batch(&g->values[i].type)) {
            return true;
        }
    }
    return false;
}

bool sx_cpu_divides_well(const sx_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        if (sx_node_division(g, &g->nodes[k]) == SX_GATHERED) {
            return false;
        }
    }
    return true;
}

double sx_cpu_graph_flops(const sx_graph *g)
{
    double sum = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (!(g->nodes[k].op->flags & SX_OP_NO_HOST)) {
            sum += sx_node_cost(g, &g->nodes[k]).flops;
        }
    }
    return sum;
}
