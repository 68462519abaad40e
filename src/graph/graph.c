/* Queries and validation of graphs (ir.h). */
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "graph/attr_rows.h"
#include "graph/builder.h"
#include "graph/library.h"

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

/* ---- Copies and comparisons, for regions ---- */

static bool copy_node(sx_arena *arena, const sx_node *n, sx_node *out)
{
    *out = *n;
    out->attrs = sx_attrs_copy(arena, n->op, n->attrs);
    out->inputs = sx_arena_memdup(arena, n->inputs, (size_t)n->n_inputs * sizeof(*n->inputs));
    out->attr_operands = sx_arena_memdup(arena, n->attr_operands,
                                         (size_t)n->n_attr_operands * sizeof(*n->attr_operands));
    out->name = sx_arena_strdup(arena, n->name);
    out->device = sx_arena_strdup(arena, n->device);
    out->file = sx_arena_strdup(arena, n->file);
    return out->attrs != NULL && out->inputs != NULL && out->attr_operands != NULL &&
           out->name != NULL && out->device != NULL && out->file != NULL;
}

sx_graph *sx_graph_copy(sx_arena *arena, const sx_graph *g)
{
    sx_graph *copy = sx_arena_new(arena, sx_graph);
    if (copy == NULL) {
        return NULL;
    }
    *copy = (sx_graph){
        .general = g->general,
        .nodes = sx_arena_array(arena, g->n_nodes + 1, sx_node),
        .n_nodes = g->n_nodes,
        .values = sx_arena_array(arena, g->n_values, sx_value_info),
        .n_values = g->n_values,
        .args = sx_arena_memdup(arena, g->args, (size_t)g->n_args * sizeof(*g->args)),
        .n_args = g->n_args,
        .results = sx_arena_memdup(arena, g->results, (size_t)g->n_results * sizeof(*g->results)),
        .n_results = g->n_results,
    };
    bool copied =
        copy->nodes != NULL && copy->values != NULL && copy->args != NULL && copy->results != NULL;
    for (int i = 1; i < g->n_values && copied; i++) { /* an empty graph has no array */
        copy->values[i] = g->values[i];
    }
    for (int k = 0; k < g->n_nodes && copied; k++) {
        copied = copy_node(arena, &g->nodes[k], &copy->nodes[k]);
    }
    for (int i = 0; i < g->n_args && copied; i++) {
        copied = (copy->args[i].name = sx_arena_strdup(arena, g->args[i].name)) != NULL;
    }
    for (int i = 0; i < g->n_results && copied; i++) {
        copied = (copy->results[i].name = sx_arena_strdup(arena, g->results[i].name)) != NULL;
    }
    return copied ? copy : NULL;
}

static bool equal_nodes(const sx_node *a, const sx_node *b)
{
    bool equal = a->op == b->op && a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs &&
                 a->n_attr_operands == b->n_attr_operands &&
                 sx_attrs_equal(a->op, a->attrs, b->attrs);
    for (int i = 0; i < a->n_inputs && equal; i++) {
        equal = a->inputs[i].id == b->inputs[i].id;
    }
    for (int i = 0; i < a->n_attr_operands && equal; i++) {
        equal = a->attr_operands[i].row == b->attr_operands[i].row &&
                a->attr_operands[i].value.id == b->attr_operands[i].value.id;
    }
    return equal;
}

bool sx_graph_equal(const sx_graph *a, const sx_graph *b)
{
    bool equal = a->general == b->general && a->n_nodes == b->n_nodes &&
                 a->n_values == b->n_values && a->n_args == b->n_args &&
                 a->n_results == b->n_results;
    for (int i = 1; i < a->n_values && equal; i++) {
        equal = sx_type_equal(&a->values[i].type, &b->values[i].type);
    }
    for (int k = 0; k < a->n_nodes && equal; k++) {
        equal = equal_nodes(&a->nodes[k], &b->nodes[k]);
    }
    for (int i = 0; i < a->n_results && equal; i++) {
        equal = a->results[i].value.id == b->results[i].value.id;
    }
    return equal;
}

uint64_t sx_graph_hash(const sx_graph *g)
{
    uint64_t hash = (uint64_t)g->n_values;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        hash = hash * 0x9E3779B97F4A7C15u + sx_attrs_hash(n->op, n->attrs);
        for (int i = 0; i < n->n_inputs; i++) {
            hash = (hash ^ n->inputs[i].id) * 0x9E3779B97F4A7C15u;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        hash = (hash ^ g->results[i].value.id) * 0x9E3779B97F4A7C15u;
    }
    return hash;
}

int sx_graph_nesting(const sx_graph *g)
{
    int deepest = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        for (int row = 0; row < n->op->n_attrs; row++) {
            if (n->op->attrs[row].kind == SX_ATTR_BODY && sx_node_body(n, row) != NULL) {
                deepest = SX_MAX(deepest, 1 + sx_graph_nesting(sx_node_body(n, row)));
            }
        }
    }
    return deepest;
}

/* ---- Validation ---- */

sx_status sx_check_bodies(const sx_op_def *op, const void *attrs, bool general)
{
    for (int row = 0; row < op->n_attrs; row++) {
        if (op->attrs[row].kind != SX_ATTR_BODY) {
            continue;
        }
        const sx_graph *body = sx_node_body(&(sx_node){.op = op, .attrs = attrs}, row);
        const char *name = op->attrs[row].name;
        if (body == NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "its region %s is missing", name);
        }
        if (body->general != general) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "its region %s is a %s, expected a %s like the surrounding graph", name,
                            body->general ? "function's" : "static graph",
                            general ? "function's" : "static graph");
        }
        for (int i = 0; i < body->n_args; i++) {
            if (body->args[i].kind != SX_ARG_INPUT) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "its region %s has variable \"%s\"; pass its value as an operand",
                                name, body->args[i].name);
            }
        }
        if (sx_graph_nesting(body) >= SX_GRAPH_MAX_NESTING) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "regions nest deeper than %d",
                            SX_GRAPH_MAX_NESTING);
        }
    }
    return SX_OK;
}

sx_cost sx_node_cost(const sx_graph *g, const sx_node *n)
{
    return sx_node_cost_at(g, n, 1);
}

sx_cost sx_node_cost_at(const sx_graph *g, const sx_node *n, int64_t batch)
{
    enum { MAX_OPERANDS = 4 }; /* of operators with a formula */
    sx_type in[MAX_OPERANDS] = {0}, out[MAX_OPERANDS] = {0};
    sx_cost cost = {0, 0};
    for (int i = 0; i < n->n_inputs + n->n_outputs; i++) {
        bool is_in = i < n->n_inputs;
        int at = is_in ? i : i - n->n_inputs;
        const sx_value v = is_in ? n->inputs[at] : sx_node_output(n, at);
        const sx_type type = sx_type_with_batch(*sx_graph_type(g, v), batch);
        if (at < MAX_OPERANDS) {
            (is_in ? in : out)[at] = type;
        }
        cost.flops = SX_MAX(cost.flops, (double)sx_type_elems(&type));
        cost.bytes += (double)sx_type_bytes(&type);
    }
    cost.flops = n->op->flops != NULL ? n->op->flops(in, out) : cost.flops;
    cost.bytes = n->op->bytes != NULL ? n->op->bytes(in, out) : cost.bytes;
    return cost;
}

/* Inputs precede the node, its outputs are the next values, and their types are those inferred, or
 * valid declared ones. `types` has room for the types of the inputs. */
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
    for (int row = 0; row < n->op->n_attrs; row++) {
        if (n->op->attrs[row].kind == SX_ATTR_BODY && sx_node_body(n, row) != NULL) {
            SX_TRY(sx_graph_validate(sx_node_body(n, row)), "region %s", n->op->attrs[row].name);
        }
    }
    SX_TRY(sx_check_bodies(n->op, n->attrs, g->general));
    for (int i = 0; i < n->n_attr_operands; i++) {
        const sx_attr_operand *o = &n->attr_operands[i];
        if (!g->general || o->row < 0 || o->row >= n->op->n_attrs ||
            (i > 0 && n->attr_operands[i - 1].row >= o->row) || !sx_value_is(o->value) ||
            o->value.id >= n->first_output.id) {
            return sx_error(SX_INTERNAL, "attribute operand %d is value %u for row %d", i,
                            o->value.id, o->row);
        }
    }
    sx_type inferred[SX_MAX_OUTPUTS];
    int count = 0;
    if (g->general) {
        count = n->n_outputs;
        for (int i = 0; i < SX_MIN(count, SX_MAX_OUTPUTS); i++) {
            inferred[i] = g->values[next_value + (uint32_t)i].type;
        }
        SX_TRY(sx_check_declared(n->op, n->n_inputs, inferred, count));
    } else {
        SX_TRY(sx_infer_types(n->op, n->attrs, types, n->n_inputs, inferred, &count));
    }
    if (count != n->n_outputs) {
        return sx_error(SX_INTERNAL, "it has %d outputs, expected %d", n->n_outputs, count);
    }
    for (int i = 0; i < count; i++) {
        const sx_value_info *v = &g->values[next_value + (uint32_t)i];
        if (v->node != (uint32_t)k || v->output != i) {
            return sx_error(SX_INTERNAL, "output %d is recorded as output %u of node %u", i,
                            v->output, v->node);
        }
        /* of what data decide, more may be known than types say */
        if (n->op->host_types != NULL ? !sx_type_may_be(&v->type, &inferred[i])
                                      : !sx_type_equal(&v->type, &inferred[i])) {
            char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
            return sx_error(SX_INTERNAL, "output %d is %s, expected %s", i,
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
        return sx_no_memory("validating a graph");
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
