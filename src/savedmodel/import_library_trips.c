/* What differs from one trip of a loop to the next: values, and shapes. Only the loop's state does,
 * and what is computed from it. An item whose shape may differ makes a list one of tensors of
 * unequal shapes (import_library_uneven.c). */
#include "savedmodel/import_library_regions.h"

/* Whether the shapes of the node's outputs may depend on the values of its inputs. */
static bool shaped_by_data(const sx_op_def *op)
{
    bool regions = false;
    for (int i = 0; i < op->n_attrs; i++) {
        regions = regions || op->attrs[i].kind == SX_ATTR_BODY;
    }
    return regions || op->host_types != NULL || (op->flags & SX_OP_FUNCTION) != 0;
}

bool sx_tf_is_open(const sx_type *type)
{
    bool open = type->rank == SX_UNKNOWN_RANK;
    for (int d = 0; d < type->rank; d++) {
        open = open || (type->dims[d] < 0 && !sx_dim_is_batch(type->dims[d]));
    }
    return open;
}

/* What the node's outputs differ in, of which the shape counts where it is not known. */
static unsigned outputs_differ(const sx_tf_trips *t, const sx_node *node)
{
    unsigned in = 0, sizes = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        in |= t->differs[node->inputs[i].id];
    }
    for (int i = 0; i < node->n_attr_operands; i++) {
        sizes |= t->differs[node->attr_operands[i].value.id];
    }
    if ((node->op->flags & (SX_OP_SHAPE_SOURCE | SX_OP_HOST)) == SX_OP_SHAPE_SOURCE) {
        return (in & SX_TF_DIFFERENT_SHAPE) != 0 ? SX_TF_DIFFERENT_VALUE : 0;
    }
    const bool stirs = (node->op->flags & (SX_OP_STATE | SX_OP_EFFECT)) != 0;
    const bool shape =
        (in & SX_TF_DIFFERENT_SHAPE) != 0 || sizes != 0 || (in != 0 && shaped_by_data(node->op));
    return (in != 0 || sizes != 0 || stirs ? SX_TF_DIFFERENT_VALUE : 0) |
           (shape ? SX_TF_DIFFERENT_SHAPE : 0);
}

/* Looks at the values that were added to the builder since the last time. */
static sx_status catch_up(sx_tf_trips *t)
{
    const sx_graph *g = t->b->graph;
    if (g->n_values > t->capacity) {
        const int capacity = 2 * g->n_values;
        uint8_t *more = sx_arena_array(t->arena, (size_t)capacity, uint8_t);
        if (more == NULL) {
            return sx_import_memory();
        }
        for (int i = 0; i < t->n_values; i++) {
            more[i] = t->differs[i];
        }
        t->differs = more;
        t->capacity = capacity;
    }
    t->n_values = g->n_values;
    for (; t->n_nodes < g->n_nodes; t->n_nodes++) {
        const sx_node *node = &g->nodes[t->n_nodes];
        const unsigned differs = outputs_differ(t, node);
        for (int i = 0; i < node->n_outputs; i++) {
            const sx_value y = sx_node_output(node, i);
            const bool open = sx_tf_is_open(sx_graph_type(g, y));
            t->differs[y.id] = (uint8_t)(open ? differs : differs & SX_TF_DIFFERENT_VALUE);
        }
    }
    return SX_OK;
}

sx_status sx_tf_trips_note(sx_tf_trips *t, sx_value v, unsigned differs)
{
    SX_TRY(catch_up(t));
    t->differs[v.id] |= (uint8_t)differs;
    return SX_OK;
}

sx_status sx_tf_differs(const sx_library_importer *im, const sx_builder *b, sx_value v,
                        unsigned *out)
{
    const sx_type type = sx_type_of_value(b, v);
    *out = 0;
    if (im->trips == NULL) {
        return SX_OK;
    }
    if (im->trips->b !=
        b) { /* of a function that the body calls: nothing is known of its arguments */
        *out = SX_TF_DIFFERENT_VALUE | (sx_tf_is_open(&type) ? SX_TF_DIFFERENT_SHAPE : 0u);
        return SX_OK;
    }
    SX_TRY(catch_up(im->trips));
    *out = im->trips->differs[v.id];
    return SX_OK;
}
