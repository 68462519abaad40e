/* Looking things up in a graph, and checking it (ir.h). */
#include <string.h>

#include "base/memory.h"
#include "graph/builder.h"

int sx_graph_find_arg(const sx_graph *g, const char *name)
{
    for (int i = 0; i < g->n_args; i++) {
        if (strcmp(g->args[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int sx_graph_find_output(const sx_graph *g, const char *name)
{
    for (int i = 0; i < g->n_results; i++) {
        if (g->results[i].arg == SX_RESULT_IS_OUTPUT && strcmp(g->results[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

sx_type sx_type_with_batch(sx_type type, int64_t batch)
{
    for (int d = 0; d < type.rank; d++) {
        if (type.dims[d] == SX_BATCH) {
            type.dims[d] = batch;
        }
    }
    return type;
}

static sx_status validate_inputs(const sx_node *n, sx_type *types, const sx_graph *g)
{
    for (int i = 0; i < n->n_inputs; i++) {
        if (!sx_value_is(n->inputs[i]) || n->inputs[i].id >= n->first_output.id) {
            return sx_error(SX_INTERNAL, "input %d does not precede the node", i);
        }
        types[i] = *sx_graph_type(g, n->inputs[i]);
    }
    return SX_OK;
}

static sx_status validate_outputs(const sx_node *n, const sx_type *types, const sx_graph *g)
{
    sx_type inferred[SX_MAX_OUTPUTS] = {0};
    int count = 0;
    SX_TRY(sx_infer_types(n->op, n->attrs, types, n->n_inputs, inferred, &count));
    if (count != n->n_outputs) {
        return sx_error(SX_INTERNAL, "has %d outputs, inference says %d", n->n_outputs, count);
    }
    for (int i = 0; i < count; i++) {
        const sx_type *kept = sx_graph_type(g, sx_node_output(n, i));
        if (!sx_type_equal(kept, &inferred[i])) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INTERNAL, "output %d is %s, inference says %s", i,
                            sx_type_format(kept, a, sizeof(a)),
                            sx_type_format(&inferred[i], b, sizeof(b)));
        }
    }
    return SX_OK;
}

static sx_status validate_node(const sx_graph *g, const sx_node *n)
{
    sx_type *types = sx_alloc((size_t)n->n_inputs + 1, sizeof(sx_type));
    if (types == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    sx_status status = validate_inputs(n, types, g);
    if (status == SX_OK) {
        status = validate_outputs(n, types, g);
    }
    sx_free(types);
    return status;
}

sx_status sx_graph_validate(const sx_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        SX_TRY(validate_node(g, &g->nodes[i]), "%s \"%s\"", g->nodes[i].op->name, g->nodes[i].name);
    }
    for (int i = 0; i < g->n_results; i++) {
        const sx_result *r = &g->results[i];
        if (!sx_value_is(r->value) || r->value.id >= (uint32_t)g->n_values || r->arg >= g->n_args) {
            return sx_error(SX_INTERNAL, "result \"%s\" has no value or no variable", r->name);
        }
        if (r->arg >= 0 &&
            !sx_type_equal(sx_graph_type(g, r->value), sx_graph_type(g, g->args[r->arg].value))) {
            return sx_error(SX_INTERNAL, "result \"%s\" has another type than its variable",
                            r->name);
        }
    }
    return SX_OK;
}
