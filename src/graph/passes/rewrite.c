/* See rewrite.h. */
#include "graph/passes/rewrite.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/ops/attrs.h"

/* The attributes with the pass's regions; `made` are to be destroyed once the node has copied
 * them. */
static sx_status rewrite_regions(sx_rewrite *rw, const sx_op_def *op, const void *attrs,
                                 void **out_attrs, sx_graph **made)
{
    char *copy = sx_arena_memdup(sx_builder_arena(rw->to), attrs, op->attrs_bytes);
    if (copy == NULL) {
        return sx_no_memory("rewriting a graph");
    }
    for (int row = 0; row < op->n_attrs; row++) {
        const sx_graph *body = NULL;
        if (op->attrs[row].kind != SX_ATTR_BODY) {
            continue;
        }
        memcpy(&body, copy + op->attrs[row].offset, sizeof(body));
        SX_TRY(rw->regions(body, rw->user, &made[row]), "region %s", op->attrs[row].name);
        memcpy(copy + op->attrs[row].offset, &made[row], sizeof(made[row]));
    }
    *out_attrs = copy;
    return SX_OK;
}

void sx_rewrite_keep(sx_rewrite *rw, const sx_node *node, const void *attrs)
{
    enum { MOST_ROWS = 32 };
    sx_graph *made[MOST_ROWS] = {NULL};
    void *deep = NULL;
    sx_value *inputs = sx_arena_array(sx_builder_arena(rw->to), node->n_inputs + 1, sx_value);
    if (inputs == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        inputs[i] = rw->map[node->inputs[i].id];
    }
    attrs = attrs != NULL ? attrs : node->attrs;
    if (rw->regions != NULL && sx_op_has_regions(node->op)) {
        sx_status status = rewrite_regions(rw, node->op, attrs, &deep, made);
        if (status != SX_OK) {
            sx_builder_fail(rw->to, sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"",
                                                       node->op->name, node->name));
        }
    }
    sx_type types[SX_MAX_OUTPUTS];
    bool known = node->op->host_types != NULL; /* what data decide */
    for (int i = 0; i < node->n_outputs && known; i++) {
        types[i] = *sx_graph_type(rw->from, sx_node_output(node, i));
        known = sx_type_is_static(&types[i]);
    }
    sx_value first = sx_build_node(rw->to, &(sx_node_spec){.op = node->op,
                                                           .attrs = deep != NULL ? deep : attrs,
                                                           .inputs = inputs,
                                                           .n_inputs = node->n_inputs,
                                                           .types = known ? types : NULL,
                                                           .n_types = node->n_outputs,
                                                           .name = node->name,
                                                           .device = node->device,
                                                           .file = node->file,
                                                           .line = node->line});
    for (int i = 0; i < node->n_outputs; i++) {
        rw->map[sx_node_output(node, i).id] = sx_output_of(first, i);
    }
    for (int row = 0; row < MOST_ROWS; row++) {
        sx_graph_destroy(made[row]);
    }
}

static sx_value append(sx_rewrite *rw, const sx_node *node, const char *name, const sx_op_def *op,
                       const void *attrs, const sx_value *inputs, int n_inputs)
{
    return sx_build_node(rw->to, &(sx_node_spec){.op = op,
                                                 .attrs = attrs,
                                                 .inputs = inputs,
                                                 .n_inputs = n_inputs,
                                                 .name = name,
                                                 .device = node->device,
                                                 .file = node->file,
                                                 .line = node->line});
}

sx_value sx_rewrite_node(sx_rewrite *rw, const sx_node *node, const sx_op_def *op,
                         const void *attrs, const sx_value *inputs, int n_inputs)
{
    return append(rw, node, node->name, op, attrs, inputs, n_inputs);
}

sx_value sx_rewrite_beside(sx_rewrite *rw, const sx_node *node, const sx_op_def *op,
                           const void *attrs, const sx_value *inputs, int n_inputs,
                           const char *suffix, ...)
{
    char text[64];
    va_list args;
    va_start(args, suffix);
    vsnprintf(text, sizeof(text), suffix, args);
    va_end(args);
    const char *name = sx_arena_printf(sx_builder_arena(rw->to), "%s%s", node->name, text);
    if (name == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return SX_NO_VALUE;
    }
    return append(rw, node, name, op, attrs, inputs, n_inputs);
}

void sx_rewrite_constant(sx_rewrite *rw, const sx_node *node, int k, const sx_tensor *value)
{
    const sx_constant_attrs attrs = {.value = *value};
    rw->map[sx_node_output(node, k).id] =
        k == 0 ? sx_rewrite_node(rw, node, &sx_op_constant, &attrs, NULL, 0)
               : sx_rewrite_beside(rw, node, &sx_op_constant, &attrs, NULL, 0, "/%d", k);
}

static void copy_arg(sx_rewrite *rw, const sx_arg *arg, int64_t batch)
{
    sx_type type = *sx_graph_type(rw->from, arg->value);
    const sx_node *node = sx_graph_maker(rw->from, arg->value);
    sx_builder_at(rw->to, node->file, node->line);
    if (rw->hooks.arg == NULL || !rw->hooks.arg(rw, arg)) {
        rw->map[arg->value.id] = sx_build_arg_on(
            rw->to, arg, batch > 0 ? sx_type_with_batch(type, batch) : type, node->device);
    }
}

static void copy_results(sx_rewrite *rw)
{
    for (int i = 0; i < rw->from->n_results; i++) {
        const sx_result *r = &rw->from->results[i];
        if (r->arg == SX_RESULT_IS_OUTPUT) {
            sx_output(rw->to, r->name, rw->map[r->value.id]);
        } else {
            sx_assign(rw->to, r->name, rw->map[r->value.id]);
        }
    }
}

static sx_status run(sx_rewrite rw, int64_t batch, sx_graph **out)
{
    const sx_graph *from = rw.from;
    SX_TRY(sx_builder_create_like(from, &rw.to));
    sx_status status = SX_OK;
    rw.map = sx_alloc((size_t)from->n_values, sizeof(sx_value));
    if (rw.map == NULL) {
        status = sx_no_memory("rewriting a graph");
        goto done;
    }
    for (int k = 0, arg = 0; k < from->n_nodes && !sx_builder_failed(rw.to); k++) {
        bool is_arg =
            arg < from->n_args && from->args[arg].value.id == from->nodes[k].first_output.id;
        if (is_arg) {
            copy_arg(&rw, &from->args[arg++], batch);
        } else {
            rw.hooks.node(&rw, &from->nodes[k]);
        }
    }
    if (rw.hooks.end != NULL && !sx_builder_failed(rw.to)) {
        rw.hooks.end(&rw);
    }
    copy_results(&rw);
    status = sx_builder_finish(rw.to, out);
done:
    sx_free(rw.map);
    sx_builder_destroy(rw.to);
    return status;
}

sx_status sx_rewrite_run(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn, void *user,
                         sx_graph **out)
{
    return run((sx_rewrite){.from = from, .hooks.node = fn, .user = user}, batch, out);
}

sx_status sx_rewrite_run_deep(const sx_graph *from, int64_t batch, sx_rewrite_fn *fn,
                              sx_region_pass *regions, void *user, sx_graph **out)
{
    return run((sx_rewrite){.from = from, .hooks.node = fn, .regions = regions, .user = user},
               batch, out);
}

sx_status sx_rewrite_run_hooks(const sx_graph *from, const sx_rewrite_hooks *hooks, void *user,
                               sx_graph **out)
{
    return run((sx_rewrite){.from = from, .hooks = *hooks, .user = user}, 0, out);
}

void sx_rewrite_count_readers(const sx_graph *g, int *readers)
{
    for (int i = 0; i < g->n_results; i++) {
        readers[g->results[i].value.id]++;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            readers[g->nodes[k].inputs[i].id]++;
        }
    }
}

const sx_node *sx_rewrite_find_like(const sx_graph *g, const sx_node *n, const uint32_t *like,
                                    int *at)
{
    for (int tried = 0; tried < g->n_nodes && n->op != &sx_op_parameter; tried++) {
        const sx_node *m = &g->nodes[*at];
        bool equal = m->op == n->op && m->n_inputs == n->n_inputs && m->n_outputs == n->n_outputs &&
                     strcmp(m->device, n->device) == 0;
        *at = (*at + 1) % g->n_nodes;
        for (int i = 0; i < n->n_inputs && equal; i++) {
            equal = like[n->inputs[i].id] == m->inputs[i].id;
        }
        if (equal && sx_attrs_equal(n->op, n->attrs, m->attrs)) {
            return m;
        }
    }
    return NULL;
}
