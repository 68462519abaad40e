/* Computes in float32 what devices have no float16 kernels for, and rounds every result to float16:
 *
 *   %3 = conv2d(%1, %2) float16      %3 = cast(conv2d(cast(%1), cast(%2)))
 *
 * float32 has more than twice float16's digits, so that sums, products, quotients and square roots
 * of two numbers are those that float16 rounds to. What only moves elements stays as it is. */
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

static bool is_f16(const sx_graph *g, sx_value v)
{
    return sx_graph_type(g, v)->dtype == SX_F16;
}

/* Nodes that move elements of any size, or convert them. An attribute that is float16 says what is
 * computed, random bits say, and stays. */
static bool keeps_f16(const sx_node *n)
{
    const sx_op_def *op = n->op;
    const bool moves = op->moved != 0 && (op->flags & SX_OP_BY_REPLICA) == 0;
    bool typed = false;
    for (int i = 0; i < op->n_attrs; i++) {
        const void *attr = (const char *)n->attrs + op->attrs[i].offset;
        typed = typed || (op->attrs[i].kind == SX_ATTR_DTYPE && *(const sx_dtype *)attr == SX_F16);
    }
    return moves || typed || op == &sx_op_cast || sx_op_has_regions(op) ||
           (op->flags & (SX_OP_VIEW | SX_OP_HOST)) != 0;
}

static void widen_node(sx_rewrite *rw, const sx_node *n)
{
    bool any = false;
    for (int i = 0; i < n->n_inputs; i++) {
        any = any || is_f16(rw->from, n->inputs[i]);
    }
    if (!any || keeps_f16(n)) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    sx_value *inputs = sx_arena_array(sx_builder_arena(rw->to), n->n_inputs + 1, sx_value);
    if (inputs == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return;
    }
    for (int i = 0; i < n->n_inputs; i++) {
        inputs[i] = rw->map[n->inputs[i].id];
        if (is_f16(rw->from, n->inputs[i])) {
            inputs[i] = sx_rewrite_beside(rw, n, &sx_op_cast, &(sx_cast_attrs){.dtype = SX_F32},
                                          &inputs[i], 1, ".wide%d", i);
        }
    }
    const sx_value first = sx_rewrite_node(rw, n, n->op, n->attrs, inputs, n->n_inputs);
    for (int k = 0; k < n->n_outputs; k++) {
        const sx_value old = sx_node_output(n, k), made = sx_output_of(first, k);
        rw->map[old.id] =
            is_f16(rw->from, old)
                ? sx_rewrite_beside(rw, n, &sx_op_cast, &(sx_cast_attrs){.dtype = SX_F16}, &made, 1,
                                    ".narrow%d", k)
                : made;
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_widen_f16(region, out);
}

sx_status sx_pass_widen_f16(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run_deep(g, 0, widen_node, in_region, NULL, out);
}
