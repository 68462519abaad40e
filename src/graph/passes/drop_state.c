/* Removes from loops the state that nothing needs: no node reads it after the loop, the condition
 * does not, and other state does not depend on it. So the stack of all outputs of a recurrent layer
 * is not filled if only the last one is read, and the loop that keeps states for a gradient keeps
 * those that the gradient reads. Operands that no region reads any more go, too. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/ops/regions.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* Marks the values of a region that its results i with wanted[i] depend on; NULL: all of them. */
static void mark(const sx_graph *g, const bool *wanted, bool *live)
{
    memset(live, 0, (size_t)g->n_values);
    for (int i = 0; i < g->n_results; i++) {
        live[g->results[i].value.id] |= wanted == NULL || wanted[i];
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < n->n_outputs; i++) {
            any = any || live[sx_node_output(n, i).id];
        }
        for (int i = 0; any && i < n->n_inputs; i++) {
            live[n->inputs[i].id] = true;
        }
    }
}

/* The region without the args, and if `results` without the results, that keep[] does not name. */
static sx_status reduce_region(const sx_graph *region, const bool *keep, bool results,
                               sx_graph **out)
{
    sx_graph part = *region, *live = NULL;
    sx_builder *b = NULL;
    char name[32];
    sx_result *left = sx_alloc((size_t)region->n_results + 1, sizeof(*left));
    sx_value *values =
        sx_alloc((size_t)region->n_args + (size_t)region->n_results + 1, sizeof(*values));
    sx_status status = left == NULL || values == NULL ? sx_no_memory("dropping state") : SX_OK;
    part.n_results = 0;
    part.results = left;
    for (int i = 0; i < region->n_results && status == SX_OK; i++) {
        if (!results || keep[i]) {
            left[part.n_results++] = region->results[i];
        }
    }
    status = status == SX_OK ? sx_pass_drop_dead(&part, &live) : status;
    status = status == SX_OK ? sx_builder_create(&b) : status;
    for (int i = 0; status == SX_OK && i < region->n_args; i++) {
        if (keep[i]) {
            snprintf(name, sizeof(name), "x%d", i);
            values[i] = sx_input(b, name, *sx_graph_type(live, live->args[i].value));
        }
    }
    if (status == SX_OK) {
        sx_value *made = values + region->n_args;
        sx_region_inline(b, live, values, made);
        for (int i = 0; i < live->n_results; i++) {
            snprintf(name, sizeof(name), "y%d", i);
            sx_output(b, name, made[i]);
        }
        status = sx_builder_finish(b, out);
    }
    sx_builder_destroy(b);
    sx_graph_destroy(live);
    sx_free(left);
    sx_free(values);
    return status;
}

/* keep[] of a loop's operands, state first: those that are needed. Returns how many are not. */
static int find_needed(const sx_node *n, const bool *read, bool *live, bool *keep)
{
    const sx_while_attrs *a = n->attrs;
    int dropped = 0;
    mark(a->condition, NULL, live);
    for (int i = 0; i < n->n_inputs; i++) {
        keep[i] = live[a->condition->args[i].value.id] ||
                  (i < n->n_outputs && read[sx_node_output(n, i).id]);
    }
    keep[0] = keep[0] || memchr(keep, true, (size_t)n->n_outputs) == NULL;
    for (bool grows = true; grows;) {
        grows = false;
        mark(a->body, keep, live);
        for (int i = 0; i < n->n_inputs; i++) {
            if (!keep[i] && live[a->body->args[i].value.id]) {
                keep[i] = true;
                grows = i < n->n_outputs || grows;
            }
        }
    }
    for (int i = 0; i < n->n_inputs; i++) {
        dropped += !keep[i];
    }
    return dropped;
}

static sx_status drop_from_loop(sx_rewrite *rw, const sx_node *n, const bool *keep)
{
    const sx_while_attrs *a = n->attrs;
    sx_while_attrs attrs = *a;
    sx_graph *part[2] = {NULL}, *made[2] = {NULL};
    sx_value *inputs = sx_arena_array(sx_builder_arena(rw->to), n->n_inputs + 1, sx_value);
    int n_in = 0, n_out = 0;
    sx_status status = inputs == NULL ? sx_no_memory("dropping state")
                                      : reduce_region(a->condition, keep, false, &part[0]);
    status = status == SX_OK ? reduce_region(a->body, keep, true, &part[1]) : status;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = sx_pass_drop_state(part[i], &made[i]);
    }
    attrs.condition = made[0];
    attrs.body = made[1];
    for (int i = 0; i < n->n_inputs && status == SX_OK; i++) {
        if (keep[i]) {
            inputs[n_in++] = rw->map[n->inputs[i].id];
        }
    }
    if (status == SX_OK) {
        const sx_value first = sx_rewrite_node(rw, n, n->op, &attrs, inputs, n_in);
        for (int i = 0; i < n->n_outputs; i++) {
            if (keep[i]) {
                rw->map[sx_node_output(n, i).id] = sx_output_of(first, n_out++);
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        sx_graph_destroy(part[i]);
        sx_graph_destroy(made[i]);
    }
    return status;
}

/* Whether a node or a result reads a value, by its id; loops only read the operands that they need:
 * the loop that keeps states comes before the one that reads some of them. */
static sx_status find_read(const sx_graph *g, bool *read)
{
    for (int i = 0; i < g->n_results; i++) {
        read[g->results[i].value.id] = true;
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        const sx_while_attrs *a = n->attrs;
        bool any = false, *live = NULL, *keep = NULL;
        for (int i = 0; i < n->n_outputs; i++) {
            any = any || read[sx_node_output(n, i).id];
        }
        if (any && n->op == &sx_op_while) {
            live = sx_alloc((size_t)SX_MAX(a->condition->n_values, a->body->n_values), 1);
            keep = sx_alloc((size_t)n->n_inputs + 1, 1);
            if (live == NULL || keep == NULL) {
                sx_free(live);
                sx_free(keep);
                return sx_no_memory("dropping state");
            }
            (void)find_needed(n, read, live, keep);
        }
        for (int i = 0; any && i < n->n_inputs; i++) {
            read[n->inputs[i].id] |= keep == NULL || keep[i];
        }
        sx_free(live);
        sx_free(keep);
    }
    return SX_OK;
}

/* `user`: read[] of the old graph. */
static void drop_from_node(sx_rewrite *rw, const sx_node *n)
{
    const sx_while_attrs *a = n->attrs;
    if (n->op != &sx_op_while) {
        sx_rewrite_keep(rw, n, NULL);
        return;
    }
    bool *live = sx_alloc((size_t)SX_MAX(a->condition->n_values, a->body->n_values), sizeof(bool));
    bool *keep = sx_alloc((size_t)n->n_inputs + 1, sizeof(bool));
    if (live == NULL || keep == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("dropping state"));
    } else if (find_needed(n, rw->user, live, keep) == 0) {
        sx_rewrite_keep(rw, n, NULL);
    } else {
        sx_status status = drop_from_loop(rw, n, keep);
        if (status != SX_OK) {
            sx_builder_fail(
                rw->to, sx_status_annotate(status, __FILE__, __LINE__, "while \"%s\"", n->name));
        }
    }
    sx_free(live);
    sx_free(keep);
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_drop_state(region, out);
}

sx_status sx_pass_drop_state(const sx_graph *g, sx_graph **out)
{
    bool *read = sx_alloc((size_t)g->n_values, sizeof(bool));
    if (read == NULL) {
        return sx_no_memory("dropping state");
    }
    sx_status status = find_read(g, read);
    status =
        status != SX_OK ? status : sx_rewrite_run_deep(g, 0, drop_from_node, in_region, read, out);
    sx_free(read);
    return status;
}
