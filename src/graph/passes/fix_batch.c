/* SX_BATCH becomes a count. Types follow by inference from the inputs'; the only other places are
 * attributes that are shapes (SX_ATTR_SHAPE). */
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* Attributes with the batch put in, or NULL if there is none to put. */
static void *attrs_with_batch(sx_rewrite *rw, const sx_node *node, int64_t batch)
{
    char *copy = NULL;
    for (int i = 0; i < node->op->n_attrs; i++) {
        const sx_attr_def *def = &node->op->attrs[i];
        const sx_ints *shape = (const void *)((const char *)node->attrs + def->offset);
        bool has_batch = def->kind == SX_ATTR_SHAPE && shape->n > 0 && shape->v[0] == SX_BATCH;
        if (has_batch && copy == NULL) {
            copy = sx_arena_memdup(sx_builder_arena(rw->to), node->attrs, node->op->attrs_bytes);
        }
        if (has_batch && copy != NULL) {
            ((sx_ints *)(void *)(copy + def->offset))->v[0] = batch;
        }
    }
    return copy;
}

static void fix_node(sx_rewrite *rw, const sx_node *node)
{
    sx_rewrite_keep(rw, node, attrs_with_batch(rw, node, *(const int64_t *)rw->user));
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    return sx_pass_fix_batch(region, *(const int64_t *)user, out);
}

sx_status sx_pass_fix_batch(const sx_graph *g, int64_t batch, sx_graph **out)
{
    return sx_rewrite_run_deep(g, batch, fix_node, in_region, &batch, out);
}
