/* Sets the attribute that makes nodes compute with the statistics of their replica's part
 * (op_def.h: own_part) wherever an operator has it. */
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

static void set_own_part(sx_rewrite *rw, const sx_node *n)
{
    void *attrs = NULL;
    if (n->op->own_part != NULL) {
        attrs = sx_arena_memdup(sx_builder_arena(rw->to), n->attrs, n->op->attrs_bytes);
        if (attrs == NULL) {
            sx_builder_fail(rw->to, sx_no_memory("for a graph"));
            return;
        }
        *(bool *)((char *)attrs + n->op->own_part->offset) = true;
    }
    sx_rewrite_keep(rw, n, attrs);
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_own_moments(region, out);
}

sx_status sx_pass_own_moments(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run_deep(g, 0, set_own_part, in_region, NULL, out);
}
