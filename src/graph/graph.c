/* Looking things up in a graph, and checking it (ir.h). */
#include <string.h>

#include "base/checked.h"
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

/* Inputs precede the node, its outputs are the next values, and their types are what inference
 * says. `types` has room for the inputs'. */
static sx_status validate_node(const sx_graph *g, int k, uint32_t next_value, sx_type *types)
{
    const sx_node *n = &g->nodes[k];
    if (n->first_output.id != next_value || n->n_outputs < 1 ||
        n->n_outputs > g->n_values - (int)next_value) {
        return sx_error(SX_INTERNAL, "its outputs are not values %u to %u of %d", next_value,
                        next_value + (uint32_t)n->n_outputs - 1, g->n_values);
    }
    for (int i = 0; i < n->n_inputs; i++) {
        if (!sx_value_is(n->inputs[i]) || n->inputs[i].id >= n->first_output.id) {
            return sx_error(SX_INTERNAL, "input %d is value %u, which does not precede the node", i,
                            n->inputs[i].id);
        }
        types[i] = *sx_graph_type(g, n->inputs[i]);
    }
    sx_type inferred[SX_MAX_OUTPUTS] = {0};
    int count = 0;
    SX_TRY(sx_infer_types(n->op, n->attrs, types, n->n_inputs, inferred, &count));
    if (count != n->n_outputs) {
        return sx_error(SX_INTERNAL, "it has %d outputs, inference says %d", n->n_outputs, count);
    }
    for (int i = 0; i < count; i++) {
        const sx_value_info *v = &g->values[next_value + (uint32_t)i];
        if (v->node != (uint32_t)k || v->output != i) {
            return sx_error(SX_INTERNAL, "output %d is recorded as output %u of node %u", i,
                            v->output, v->node);
        }
        if (!sx_type_equal(&v->type, &inferred[i])) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INTERNAL, "output %d is %s, inference says %s", i,
                            sx_type_format(&v->type, a, sizeof(a)),
                            sx_type_format(&inferred[i], b, sizeof(b)));
        }
    }
    return SX_OK;
}

static sx_status validate_nodes(const sx_graph *g)
{
    int most_inputs = 1;
    uint32_t next_value = 1;
    for (int k = 0; k < g->n_nodes; k++) {
        most_inputs = SX_MAX(most_inputs, g->nodes[k].n_inputs);
    }
    sx_type *types = sx_alloc((size_t)most_inputs, sizeof(sx_type));
    if (types == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory validating a graph");
    }
    sx_status status = SX_OK;
    for (int k = 0; k < g->n_nodes && status == SX_OK; k++) {
        const sx_node *n = &g->nodes[k];
        status = sx_status_annotate(validate_node(g, k, next_value, types), __FILE__, __LINE__,
                                    "%s \"%s\"", n->op->name, n->name);
        next_value += (uint32_t)n->n_outputs;
    }
    sx_free(types);
    if (status == SX_OK && next_value != (uint32_t)g->n_values) {
        return sx_error(SX_INTERNAL, "the nodes make %u values, the graph has %d", next_value - 1,
                        g->n_values - 1);
    }
    return status;
}

/* Arguments are the parameter nodes, in order; results are values, of their variable's type. */
static sx_status validate_ends(const sx_graph *g)
{
    int arg = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (g->nodes[k].op != &sx_op_parameter) {
            continue;
        }
        if (arg == g->n_args || g->args[arg].value.id != g->nodes[k].first_output.id) {
            return sx_error(SX_INTERNAL, "parameter \"%s\" is not argument %d", g->nodes[k].name,
                            arg);
        }
        arg++;
    }
    if (arg != g->n_args) {
        return sx_error(SX_INTERNAL, "argument \"%s\" has no parameter node", g->args[arg].name);
    }
    for (int i = 0; i < g->n_results; i++) {
        const sx_result *r = &g->results[i];
        if (!sx_value_is(r->value) || r->value.id >= (uint32_t)g->n_values || r->arg >= g->n_args) {
            return sx_error(SX_INTERNAL, "result \"%s\" has no value or no variable", r->name);
        }
        if (r->arg >= 0 &&
            !sx_type_equal(sx_graph_type(g, r->value), sx_graph_type(g, g->args[r->arg].value))) {
            return sx_error(SX_INTERNAL, "result \"%s\" is not of its variable's type", r->name);
        }
    }
    return SX_OK;
}

sx_status sx_graph_validate(const sx_graph *g)
{
    SX_TRY(validate_nodes(g));
    return validate_ends(g);
}
