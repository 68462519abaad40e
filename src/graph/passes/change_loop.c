/* See change_loop.h. */
#include "graph/passes/change_loop.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/ops/regions.h"

/* The region as sx_region_inline() reads it: old args, then the new ones, whose values follow the
 * region's; rows in the place of their nodes; old results, then what is put and where. */
static bool extend(sx_arena *arena, const sx_graph *region, const sx_loop_change *c, bool body,
                   sx_graph *out)
{
    static const sx_row_attrs attrs[] = {{.checked = false}, {.checked = true}};
    const int n_rows = body ? c->n_rows : 0, n_puts = body && c->puts != NULL ? c->n_added : 0;
    *out = *region;
    out->n_args += c->n_added;
    out->n_values += c->n_added;
    out->n_results += 2 * n_puts;
    sx_arg *args = sx_arena_array(arena, out->n_args + 1, sx_arg);
    sx_node *nodes = sx_arena_array(arena, out->n_nodes + 1, sx_node);
    sx_result *results = sx_arena_array(arena, out->n_results + 1, sx_result);
    sx_value *inputs = sx_arena_array(arena, 2 * n_rows + 1, sx_value);
    if (args == NULL || nodes == NULL || results == NULL || inputs == NULL) {
        return false;
    }
    memcpy(args, region->args, (size_t)region->n_args * sizeof(*args));
    memcpy(nodes, region->nodes, (size_t)region->n_nodes * sizeof(*nodes));
    memcpy(results, region->results, (size_t)region->n_results * sizeof(*results));
    for (int i = 0; i < c->n_added; i++) {
        args[region->n_args + i].value = (sx_value){(uint32_t)(region->n_values + i)};
    }
    for (int i = 0; i < n_rows; i++) {
        const sx_loop_row *row = &c->rows[i];
        inputs[2 * i] = args[region->n_args + row->arg].value;
        inputs[2 * i + 1] = row->index;
        nodes[row->node].op = &sx_op_take_row;
        nodes[row->node].attrs = &attrs[row->checked];
        nodes[row->node].inputs = inputs + 2 * i;
        nodes[row->node].n_inputs = 2;
    }
    for (int i = 0; i < n_puts; i++) {
        results[region->n_results + 2 * i].value = c->puts[i].value;
        results[region->n_results + 2 * i + 1].value = c->puts[i].index;
    }
    out->args = args;
    out->nodes = nodes;
    out->results = results;
    return true;
}

/* `to`: the builder of the graph that has the loop; the new args come before the old one `place`.
 */
static sx_status change_region(sx_builder *to, const sx_graph *region, const sx_loop_change *c,
                               bool body, int place, sx_graph **out)
{
    sx_builder *b;
    sx_graph wide;
    char name[32];
    SX_TRY(sx_builder_create(&b));
    sx_arena *arena = sx_builder_arena(b);
    sx_value *given = sx_arena_array(arena, region->n_args + c->n_added + 1, sx_value);
    sx_value *made = sx_arena_array(arena, region->n_results + 2 * c->n_added + 1, sx_value);
    if (given == NULL || made == NULL || !extend(arena, region, c, body, &wide)) {
        sx_builder_destroy(b);
        return sx_no_memory("changing a loop");
    }
    sx_value *added = given + region->n_args;
    for (int i = 0; i < wide.n_args; i++) {
        const int next = i - place, old = i < place ? i : i - c->n_added;
        const bool is_new = next >= 0 && next < c->n_added;
        const sx_type type = is_new ? sx_type_of_value(to, c->added[next])
                                    : *sx_graph_type(region, region->args[old].value);
        snprintf(name, sizeof(name), "x%d", i);
        *(is_new ? &added[next] : &given[old]) = sx_input(b, name, type);
    }
    sx_region_inline(b, &wide, given, made);
    for (int i = region->n_results; i < wide.n_results; i += 2) {
        const int k = (i - region->n_results) / 2;
        made[region->n_results + k] = sx_build_op(b, put_row, NULL, added[k], made[i], made[i + 1]);
    }
    for (int i = 0; i < (region->n_results + wide.n_results) / 2; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, made[i]);
    }
    sx_status status = sx_builder_finish(b, out);
    sx_builder_destroy(b);
    return status;
}

sx_status sx_rewrite_loop(sx_rewrite *rw, const sx_node *loop, const sx_loop_change *c,
                          sx_value *out_first)
{
    const sx_while_attrs *a = loop->attrs;
    const sx_graph *of[2] = {a->condition, a->body};
    sx_graph *part[2] = {NULL}, *made[2] = {NULL};
    const int place = c->puts != NULL ? loop->n_outputs : loop->n_inputs;
    const int n_inputs = loop->n_inputs + c->n_added;
    sx_value *inputs = sx_arena_array(sx_builder_arena(rw->to), n_inputs + 1, sx_value);
    if (inputs == NULL) {
        return sx_no_memory("changing a loop");
    }
    for (int i = 0; i < loop->n_inputs; i++) {
        inputs[i < place ? i : i + c->n_added] = rw->map[loop->inputs[i].id];
    }
    for (int i = 0; i < c->n_added; i++) {
        inputs[place + i] = c->added[i];
    }
    sx_status status = SX_OK;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = change_region(rw->to, of[i], c, i == 1, place, &part[i]);
        status = status == SX_OK ? rw->regions(part[i], rw->user, &made[i]) : status;
    }
    if (status == SX_OK) {
        const sx_while_attrs attrs = {.condition = made[0], .body = made[1], .trips = a->trips};
        *out_first = sx_rewrite_node(rw, loop, loop->op, &attrs, inputs, n_inputs);
        for (int i = 0; i < loop->n_outputs; i++) {
            rw->map[sx_node_output(loop, i).id] = sx_output_of(*out_first, i);
        }
    }
    for (int i = 0; i < 2; i++) {
        sx_graph_destroy(part[i]);
        sx_graph_destroy(made[i]);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "while \"%s\"", loop->name);
}
