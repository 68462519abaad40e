/* How many operations a graph is, and whether dividing its batch into shards is worth it. */
#include "backends/cpu/planner.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"
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

/* Rows of a variable are updated: little work, once all shards' rows are there. */
static bool updates_rows(const sx_graph *g, const sx_node *n)
{
    for (int i = 0; i < g->n_results && n->op->id == SX_OPID_tensor_scatter; i++) {
        const sx_result *r = &g->results[i];
        if (r->arg >= 0 && r->value.id == n->first_output.id &&
            g->args[r->arg].value.id == n->inputs[0].id) {
            return true;
        }
    }
    return false;
}

bool sx_cpu_divides_well(const sx_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if (sx_node_division(g, n) == SX_GATHERED && !updates_rows(g, n)) {
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

double sx_cpu_region_flops_of(const sx_graph *g, const sx_node *n)
{
    double once = 0, times = 1;
    if (n->op == &sx_op_while) {
        times = (double)SX_MAX(((const sx_while_attrs *)n->attrs)->trips, 1);
    } else if (n->op == &sx_op_map) {
        times = (double)SX_MAX(sx_graph_type(g, n->first_output)->dims[0], 1);
    }
    for (int row = 0; row < n->op->n_attrs; row++) {
        if (n->op->attrs[row].kind == SX_ATTR_BODY) {
            const sx_graph *body = sx_node_body(n, row);
            once += sx_cpu_graph_flops(body) + sx_cpu_region_flops(body);
        }
    }
    return times * once;
}

double sx_cpu_region_flops(const sx_graph *g)
{
    double sum = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        sum += sx_cpu_region_flops_of(g, &g->nodes[k]);
    }
    return sum;
}
