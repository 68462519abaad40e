/* Which values are cut along the batch, and whether a graph may be cut at all. */
#include <string.h>

#include "backends/cpu/planner.h"
#include "graph/ops/common.h"

static bool value_has_batch(const sx_graph *g, sx_value v)
{
    return sx_type_has_batch(sx_graph_type(g, v));
}

static bool reads_batch(const sx_graph *g, const sx_node *n)
{
    for (int i = 0; i < n->n_inputs; i++) {
        if (value_has_batch(g, n->inputs[i])) {
            return true;
        }
    }
    return false;
}

/* `size` of a batch is known when compiling; it is no step. */
static bool is_size(const sx_node *n)
{
    return n->op->id == SX_OPID_size;
}

static bool node_can_shard(const sx_graph *g, const sx_node *n)
{
    bool in = reads_batch(g, n), out = false, common_out = false;
    for (int i = 0; i < n->n_outputs; i++) {
        bool batch = value_has_batch(g, sx_node_output(n, i));
        out |= batch;
        common_out |= !batch;
    }
    if (!(in || out) || is_size(n) || (n->op->flags & SX_OP_NO_HOST)) {
        return true;
    }
    if (n->op->flags & SX_OP_COUPLES_BATCH) {
        return false;
    }
    if ((n->op->flags & SX_OP_RANDOM) &&
        (n->op->id != SX_OPID_dropout || sx_graph_type(g, n->inputs[0])->dtype != SX_F32)) {
        return false; /* its host kernel does not know the place of a shard in the batch */
    }
    return !common_out || n->op->combine != SX_COMBINE_NONE;
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

/* Multiplies and adds of the operators where they matter; for the others, one for each element. */
double sx_cpu_node_flops(const sx_graph *g, const sx_node *n)
{
    const sx_type *out = sx_graph_type(g, sx_node_output(n, 0));
    const sx_type *in0 = n->n_inputs > 0 ? sx_graph_type(g, n->inputs[0]) : out;
    const sx_type *in1 = n->n_inputs > 1 ? sx_graph_type(g, n->inputs[1]) : out;
    const sx_type *filter = n->op->id == SX_OPID_conv2d_grad_filter ? out : in1;
    const sx_type *image = n->op->id == SX_OPID_conv2d               ? out
                           : n->op->id == SX_OPID_conv2d_grad_filter ? in1
                                                                     : in0;
    double elems = (double)sx_type_elems(out);
    switch (n->op->id) {
    case SX_OPID_conv2d:
    case SX_OPID_conv2d_grad_input:
    case SX_OPID_conv2d_grad_filter:
        return 2.0 * (double)sx_type_elems(image) * (double)filter->dims[0] *
               (double)filter->dims[1] * (double)filter->dims[2];
    case SX_OPID_matmul: {
        double rows = (double)out->dims[out->rank - 2];
        return 2.0 * elems * ((double)sx_type_elems(in0) / rows);
    }
    default:
        for (int i = 0; i < n->n_inputs; i++) {
            double e = (double)sx_type_elems(sx_graph_type(g, n->inputs[i]));
            elems = e > elems ? e : elems;
        }
        return elems;
    }
}

double sx_cpu_graph_flops(const sx_graph *g)
{
    double sum = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (!(g->nodes[k].op->flags & SX_OP_NO_HOST)) {
            sum += sx_cpu_node_flops(g, &g->nodes[k]);
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
        const sx_node *n = &g->nodes[k];
        bool out = n->n_outputs > 0 && value_has_batch(g, sx_node_output(n, 0));
        sharded[k] = !shard || ((out || reads_batch(g, n)) && !is_size(n));
    }
}
