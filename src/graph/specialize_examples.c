/* See specialize_examples.h. */
#include "graph/specialize_examples.h"

#include "base/map.h"
#include "base/memory.h"
#include "graph/host.h"
#include "graph/spmd.h"

/* Whether every example of a device's graph is computed by itself, in its regions too. */
static bool graph_is_by_example(const sx_graph *g)
{
    bool alone = true;
    for (int k = 0; k < g->n_nodes && alone; k++) {
        const sx_node *n = &g->nodes[k];
        const sx_division division = sx_node_division(g, n);
        alone = division == SX_COMMON ? n->op->batch_rule != SX_RULE_TYPES || !sx_reads_batch(g, n)
                                      : division == SX_DIVIDED && n->op->batch_rule != SX_RULE_ROWS;
        for (int i = 0; i < n->op->n_attrs && alone; i++) {
            alone = n->op->attrs[i].kind != SX_ATTR_BODY || graph_is_by_example(sx_node_body(n, i));
        }
    }
    return alone;
}

static bool host_step_is_by_example(const sx_specialized *s, const sx_step *step)
{
    bool reads = false, loses = false, makes = false;
    for (int i = 0; i < step->n_in; i++) {
        reads = reads || sx_type_has_batch(&s->slots[step->in[i]].type);
    }
    for (int i = 0; i < step->n_out; i++) {
        const bool batch = sx_type_has_batch(&s->slots[step->out[i]].type);
        makes = makes || batch;
        loses = loses || !batch;
    }
    const bool examples = step->node->op->batch_rule == SX_RULE_EXAMPLES;
    return !(reads || makes) || (examples && !(reads && loses));
}

/* Whether its rows are ranges of bytes, and their number is all that is unknown. */
static bool has_rows(const sx_type *type)
{
    const sx_type one = sx_type_with_batch(*type, 1);
    return type->dtype == SX_RESOURCE ||
           (type->rank != SX_UNKNOWN_RANK && sx_batch_axis(type) <= 0 && sx_type_is_static(&one) &&
            sx_host_bytes(&one) >= 0);
}

static bool is_by_example(const sx_specialized *s, int *out_device)
{
    int n_device = 0;
    bool alone = !s->writes;
    *out_device = s->n_steps;
    for (int k = 0; k < s->n_steps && alone; k++) {
        const sx_step *step = &s->steps[k];
        if (step->kind == SX_STEP_DEVICE) {
            *out_device = k;
            n_device++;
            alone = graph_is_by_example(step->graph);
        } else {
            alone = step->kind == SX_STEP_HOST && host_step_is_by_example(s, step);
        }
    }
    for (int i = 0; i < s->n_slots && alone; i++) {
        alone = has_rows(&s->slots[i].type);
    }
    return alone && n_device <= 1;
}

/* Names the device graph's inputs and outputs as the function's, where they are the same. */
static sx_status name_ports(const sx_specialized *s, const sx_graph *body, const sx_step *step)
{
    sx_graph *g = (sx_graph *)(uintptr_t)step->graph;            /* one of s->graphs */
    int *port = sx_alloc((size_t)s->n_slots + 1, sizeof(*port)); /* of a slot: its result + 1 */
    sx_map names; /* of arguments -> the argument that has it; NULL: none any more */
    sx_map_init_borrowed(&names);
    sx_status status = port == NULL ? sx_no_memory("specializing a function") : SX_OK;
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        status = sx_map_put(&names, g->args[i].name, &g->args[i]);
    }
    for (int i = 0, in = 0; i < g->n_args && status == SX_OK; i++) {
        if (g->args[i].kind != SX_ARG_INPUT) {
            continue;
        }
        const int slot = step->in[in++];
        const char *name = slot < body->n_args ? body->args[slot].name : NULL;
        if (name != NULL && sx_map_get(&names, name) == NULL) {
            status = sx_map_put(&names, g->args[i].name, NULL);
            status = status != SX_OK ? status : sx_map_put(&names, name, &g->args[i]);
            g->args[i].name = name;
        }
    }
    for (int k = s->n_results; k-- > 0 && status == SX_OK;) { /* the first that it is */
        port[s->results[k]] = k + 1;
    }
    for (int i = 0; i < g->n_results && i < step->n_out && status == SX_OK; i++) {
        const int k = port[step->out[i]];
        g->results[i].name = k > 0 ? body->results[k - 1].name : g->results[i].name;
    }
    sx_map_deinit(&names);
    sx_free(port);
    return status;
}

sx_status sx_specialize_examples(const sx_library *library, const sx_function *function,
                                 const sx_specialize_limits *limits, sx_specialized **out,
                                 int *out_device)
{
    const sx_graph *body = function->body;
    sx_specialized *made = NULL;
    bool fits = true;
    *out = NULL;
    for (int i = 0; i < library->n_functions && fits; i++) {
        fits = !library->functions[i].writes;
    }
    sx_tensor *args = sx_alloc((size_t)body->n_args + 1, sizeof(*args));
    if (args == NULL) {
        return sx_no_memory("specializing a function");
    }
    for (int i = 0; i < body->n_args && fits; i++) {
        sx_type *type = &args[i].type;
        *type = *sx_graph_type(body, body->args[i].value);
        for (int d = 0; d < type->rank; d++) {
            type->dims[d] = sx_dim_is_symbol(type->dims[d]) ? SX_BATCH : type->dims[d];
        }
        fits = has_rows(type);
    }
    sx_status status =
        fits ? sx_specialize(library, body, &(sx_binding){.args = args, .n_args = body->n_args},
                             limits, &made)
             : SX_OK;
    sx_free(args);
    SX_TRY(status);
    if (!fits || !is_by_example(made, out_device)) {
        sx_specialized_destroy(made);
        return SX_OK;
    }
    if (*out_device < made->n_steps) {
        status = name_ports(made, body, &made->steps[*out_device]);
    }
    if (status != SX_OK) {
        sx_specialized_destroy(made);
        return status;
    }
    *out = made;
    return SX_OK;
}
