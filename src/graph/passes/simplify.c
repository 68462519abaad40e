/* Removes nodes whose result follows from types alone: copies of their input (identity, a cast or
 * reshape to the same type), and counts of elements once the batch is fixed. One row per operator.
 */
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* Sets the node's output in the map; false if the node must stay. */
typedef bool simplify_fn(sx_rewrite *rw, const sx_node *n);

static bool copy_input(sx_rewrite *rw, const sx_node *n)
{
    rw->map[n->first_output.id] = rw->map[n->inputs[0].id];
    return true;
}

static bool copy_if_same_type(sx_rewrite *rw, const sx_node *n)
{
    return sx_type_equal(sx_graph_type(rw->from, n->inputs[0]),
                         sx_graph_type(rw->from, n->first_output)) &&
           copy_input(rw, n);
}

static bool count_elements(sx_rewrite *rw, const sx_node *n)
{
    const sx_axes_attrs *attrs = n->attrs;
    const sx_type *x = sx_graph_type(rw->from, n->inputs[0]),
                  *y = sx_graph_type(rw->from, n->first_output);
    double count = 1;
    for (int i = 0; i < attrs->axes.n; i++) {
        int64_t dim = x->dims[attrs->axes.v[i]];
        if (dim < 0) {
            return false;
        }
        count *= (double)dim;
    }
    float count_f32 = (float)count;
    void *data = y->dtype == SX_F64 ? (void *)&count : &count_f32;
    sx_rewrite_constant(rw, n, 0, &(sx_tensor){*y, data});
    return true;
}

static simplify_fn *const rows[SX_OPID_COUNT] = {
    [SX_OPID_identity] = copy_input,
    [SX_OPID_stop_gradient] = copy_input,
    [SX_OPID_cast] = copy_if_same_type,
    [SX_OPID_reshape] = copy_if_same_type,
    [SX_OPID_broadcast_to] = copy_if_same_type,
    [SX_OPID_size] = count_elements,
};

static void simplify_node(sx_rewrite *rw, const sx_node *n)
{
    simplify_fn *fn = rows[n->op->id];
    if (fn == NULL || !fn(rw, n)) {
        sx_rewrite_keep(rw, n, NULL);
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_simplify(region, out);
}

sx_status sx_pass_simplify(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run_deep(g, 0, simplify_node, in_region, NULL, out);
}
