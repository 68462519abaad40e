/* Replaces the batch N with a count, and c*N with c times that. Types are inferred from those of
 * the inputs; apart from them, only attributes that are shapes (SX_ATTR_SHAPE) have it. */
#include "base/checked.h"
#include "base/memory.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* Attributes with the batch replaced, or NULL if they do not contain it. */
static void *attrs_with_batch(sx_rewrite *rw, const sx_node *node, int64_t batch)
{
    char *copy = NULL;
    for (int i = 0; i < node->op->n_attrs; i++) {
        const sx_attr_def *def = &node->op->attrs[i];
        const sx_ints *shape = (const void *)((const char *)node->attrs + def->offset);
        for (int d = 0; def->kind == SX_ATTR_SHAPE && d < shape->n; d++) {
            if (!sx_dim_is_batch(shape->v[d])) {
                continue;
            }
            if (copy == NULL) {
                copy =
                    sx_arena_memdup(sx_builder_arena(rw->to), node->attrs, node->op->attrs_bytes);
            }
            if (copy == NULL) {
                sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
                return NULL;
            }
            /* no overflow: check_sizes() */
            ((sx_ints *)(void *)(copy + def->offset))->v[d] = -shape->v[d] * batch;
        }
    }
    return copy;
}

/* Every c*N of the graph is in the type of a value; attributes have no others. */
static sx_status check_sizes(const sx_graph *g, int64_t batch)
{
    for (int i = 1; i < g->n_values; i++) {
        const sx_type *type = &g->values[i].type;
        int axis = sx_batch_axis(type);
        int64_t size;
        if (axis >= 0 && !sx_mul_i64(-type->dims[axis], batch, &size)) {
            char text[SX_TYPE_TEXT];
            const sx_node *n = &g->nodes[g->values[i].node];
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "%s \"%s\" is %s, which is too large for a batch of %lld", n->op->name,
                            n->name, sx_type_format(type, text, sizeof(text)), (long long)batch);
        }
    }
    return SX_OK;
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
    SX_TRY(check_sizes(g, batch));
    return sx_rewrite_run_deep(g, batch, fix_node, in_region, &batch, out);
}
