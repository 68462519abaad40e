/* Turns graph nodes into units. From the end of the graph to its start, each unclaimed node goes to
 * the first row of kernels.def that matches; views (such as reshape) do not become units, and
 * all_reduce becomes units that combine. */
#include <string.h>

#include "backends/cpu/planner.h"
#include "graph/ops/attrs.h"

sx_status sx_cpu_add_value(sx_cpu_planner *p, const sx_cpu_pvalue *v, int *out_index)
{
    if (p->n_values == p->max_values) {
        int max = 2 * p->max_values + 64;
        sx_cpu_pvalue *values = sx_arena_array(&p->scratch, max, sx_cpu_pvalue);
        if (values == NULL) {
            return sx_cpu_no_memory();
        }
        if (p->n_values > 0) {
            memcpy(values, p->values, (size_t)p->n_values * sizeof(*values));
        }
        p->values = values;
        p->max_values = max;
    }
    *out_index = p->n_values;
    p->values[p->n_values] = *v;
    p->values[p->n_values].root = p->n_values;
    p->n_values++;
    return SX_OK;
}

sx_status sx_cpu_add_unit(sx_cpu_planner *p, const sx_cpu_unit *u, int n_in, int n_out,
                          sx_cpu_unit **out_unit)
{
    if (p->n_units == p->max_units) {
        int max = 2 * p->max_units + 64;
        sx_cpu_unit *units = sx_arena_array(&p->scratch, max, sx_cpu_unit);
        if (units == NULL) {
            return sx_cpu_no_memory();
        }
        if (p->n_units > 0) {
            memcpy(units, p->units, (size_t)p->n_units * sizeof(*units));
        }
        p->units = units;
        p->max_units = max;
    }
    sx_cpu_unit *unit = &p->units[p->n_units];
    *unit = *u;
    unit->n_in = n_in;
    unit->n_out = n_out;
    unit->in = sx_arena_array(&p->scratch, n_in + 1, int);
    unit->out = sx_arena_array(&p->scratch, n_out + 1, int);
    if (unit->in == NULL || unit->out == NULL) {
        return sx_cpu_no_memory();
    }
    p->n_units++;
    *out_unit = unit;
    return SX_OK;
}

/* ---- Values ---- */

static bool is_constant(const sx_op_def *op)
{
    return op->id == SX_OPID_constant || op->batch_rule == SX_RULE_TYPES;
}

/* Sums of a few thousand sizes up to this one do not overflow, in doubles either. */
static const int64_t max_value_bytes = (int64_t)1 << 46;

static sx_status make_values(sx_cpu_planner *p)
{
    const sx_graph *g = p->g;
    int index;
    SX_TRY(sx_cpu_add_value(p, &(sx_cpu_pvalue){.maker = -1}, &index));
    for (int i = 1; i < g->n_values; i++) {
        int64_t bytes = sx_type_bytes(&g->values[i].type);
        const sx_node *n = &g->nodes[g->values[i].node];
        if (!sx_type_is_static(&g->values[i].type)) {
            return sx_error(SX_UNIMPLEMENTED, "cpu: %s \"%s\" has a value of unknown size",
                            n->op->name, n->name);
        }
        if (bytes < 0 || bytes > max_value_bytes) {
            return sx_cpu_too_large(sx_cpu_describe_value(p, i));
        }
        SX_TRY(sx_cpu_add_value(
            p,
            &(sx_cpu_pvalue){.bytes = bytes,
                             .lesser = sx_type_bytes(
                                 &p->plan->variants[p->plan->n_variants - 1]->values[i].type),
                             .own = p->own[i],
                             .constant = is_constant(n->op),
                             .maker = -1},
            &index));
    }
    for (int i = 0; i < g->n_args; i++) {
        sx_cpu_pvalue *v = &p->values[g->args[i].value.id];
        v->at = (sx_cpu_operand){SX_CPU_ARGS + i, 0};
        v->placed = true;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        if ((g->nodes[k].op->flags & SX_OP_VIEW) != 0) {
            p->values[g->nodes[k].first_output.id].root = (int)g->nodes[k].inputs[0].id;
        }
    }
    return SX_OK;
}

/* ---- Matching ---- */

static void count_uses(const sx_cpu_planner *p, int *uses, int *readers)
{
    const sx_graph *g = p->g;
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            uses[g->nodes[k].inputs[i].id]++;
            readers[g->nodes[k].inputs[i].id] = k;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        uses[g->results[i].value.id]++;
        readers[g->results[i].value.id] = -1;
    }
}

int sx_cpu_claimable(const sx_cpu_match *m, sx_value v, int op)
{
    int k = (int)m->graph->values[v.id].node;
    const sx_node *n = &m->graph->nodes[k];
    if ((op >= 0 && n->op->id != op) || m->claimed[k] || m->uses[v.id] != 1 ||
        m->sharded[k] != m->sharded[m->root] || m->n_nodes == SX_CPU_MAX_NODES ||
        (n->op->flags & SX_OP_NO_HOST) || is_constant(n->op)) {
        return -1;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        sx_value o = sx_node_output(n, i);
        if (o.id != v.id && m->uses[o.id] > 0) {
            return -1;
        }
    }
    return k;
}

void sx_cpu_claim(sx_cpu_match *m, int node)
{
    m->nodes[m->n_nodes++] = node;
}

const sx_node *sx_cpu_claim_maker(sx_cpu_match *m, sx_value v, int op)
{
    const int k = sx_cpu_claimable(m, v, op);
    if (k < 0) {
        return NULL;
    }
    sx_cpu_claim(m, k);
    return &m->graph->nodes[k];
}

sx_value sx_cpu_behind_views(const sx_cpu_match *m, sx_value v)
{
    for (;;) {
        const sx_node *n = sx_graph_maker(m->graph, v);
        if ((n->op->flags & SX_OP_VIEW) == 0 || m->uses[v.id] != 1 ||
            sx_graph_type(m->graph, n->inputs[0])->dtype != sx_graph_type(m->graph, v)->dtype) {
            return v;
        }
        v = n->inputs[0];
    }
}

bool sx_cpu_match_sized(sx_cpu_match *m)
{
    return sx_dtype_bytes(sx_graph_type(m->graph, m->out[0])->dtype) > 0;
}

static void preset(sx_cpu_match *m, int k)
{
    const sx_node *n = &m->graph->nodes[k];
    m->root = k;
    m->nodes[0] = k;
    m->n_nodes = 1;
    m->in_place = 0;
    m->hidden_node = -1;
    m->n_in = n->n_inputs;
    m->n_out = n->n_outputs;
    for (int i = 0; i < n->n_inputs; i++) {
        m->in[i] = n->inputs[i];
    }
    for (int i = 0; i < n->n_outputs; i++) {
        m->out[i] = sx_node_output(n, i);
    }
}

/* NULL: only `early` rows were asked, and none matches. */
static const sx_cpu_kernel *choose(sx_cpu_match *m, int k, bool early)
{
    const sx_node *n = &m->graph->nodes[k];
    for (int i = 0; i < sx_cpu_kernel_count; i++) {
        const sx_cpu_kernel *row = sx_cpu_kernels[i];
        if (row->op == n->op->id && row->early == early) {
            preset(m, k);
            if (row->match(m)) {
                return row;
            }
        }
    }
    if (early) {
        return NULL;
    }
    preset(m, k);
    return sx_cpu_kernel_strided.match(m) ? &sx_cpu_kernel_strided : &sx_cpu_kernel_host;
}

bool sx_cpu_has_kernel(const sx_op_def *op)
{
    for (int i = 0; i < sx_cpu_kernel_count; i++) {
        if (sx_cpu_kernels[i]->op == op->id) {
            return true;
        }
    }
    return (op->flags & (SX_OP_ELEMENTWISE | SX_OP_VIEW)) != 0 || is_constant(op);
}

/* A unit for each operand of an all_reduce; mean and variance are combined together. */
static sx_status add_combines(sx_cpu_planner *p, int k)
{
    const sx_node *n = &p->g->nodes[k];
    const sx_all_reduce_attrs *attrs = n->attrs;
    const int count = attrs->how == SX_COMBINE_MOMENTS ? 2 : 1;
    int *node = sx_arena_memdup(&p->scratch, &k, sizeof(k));
    if (node == NULL) {
        return sx_cpu_no_memory();
    }
    for (int first = 0; first < n->n_inputs; first += count) {
        const sx_cpu_unit proto = {
            .kind = SX_CPU_UNIT_COMBINE, .nodes = node, .n_nodes = 1, .node = k};
        sx_cpu_unit *join;
        SX_TRY(sx_cpu_add_unit(p, &proto, count, count, &join));
        for (int i = 0; i < count; i++) {
            join->in[i] = (int)n->inputs[first + i].id;
            join->out[i] = (int)sx_node_output(n, first + i).id;
            p->values[join->out[i]].maker = p->n_units - 1;
        }
    }
    return SX_OK;
}

/* Adds the value that the unit reads besides its inputs or writes besides its outputs
 * (sx_cpu_match.hidden). */
static sx_status add_hidden(sx_cpu_planner *p, const sx_cpu_match *m, sx_cpu_unit *u)
{
    if (m->hidden_node >= 0) {
        sx_cpu_pvalue v = {.bytes = m->hidden_bytes,
                           .lesser = m->hidden_bytes,
                           .own = p->plan->shards > 1,
                           .maker = -1};
        SX_TRY(sx_cpu_add_value(p, &v, &p->hidden[m->hidden_node]));
        u->in[u->n_in++] = p->hidden[m->hidden_node];
    }
    if (p->hidden[m->root] != 0) {
        p->values[p->hidden[m->root]].maker = p->n_units - 1;
        u->out[u->n_out++] = p->hidden[m->root];
    }
    return SX_OK;
}

static sx_status add_kernel_unit(sx_cpu_planner *p, const sx_cpu_match *m, const sx_cpu_kernel *row)
{
    sx_cpu_unit proto = {.kind = SX_CPU_UNIT_KERNEL,
                         .kernel = row,
                         .n_nodes = m->n_nodes,
                         .in_place = m->in_place,
                         .sharded = p->sharded[m->root]};
    proto.nodes = sx_arena_memdup(&p->scratch, m->nodes, (size_t)m->n_nodes * sizeof(int));
    if (proto.nodes == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < m->n_nodes; i++) {
        proto.node = m->nodes[i] > proto.node ? m->nodes[i] : proto.node;
    }
    sx_cpu_unit *u;
    SX_TRY(sx_cpu_add_unit(p, &proto, m->n_in + 1, m->n_out + 1, &u));
    u->n_in = m->n_in;
    u->n_out = m->n_out;
    for (int i = 0; i < m->n_in; i++) {
        u->in[i] = (int)m->in[i].id;
    }
    for (int i = 0; i < m->n_out; i++) {
        u->out[i] = (int)m->out[i].id;
        p->values[u->out[i]].maker = p->n_units - 1;
    }
    return add_hidden(p, m, u);
}

/* The node and those that the match claimed become a unit. */
static sx_status add_matched(sx_cpu_planner *p, const sx_cpu_match *m, const sx_cpu_kernel *row,
                             bool *claimed)
{
    const sx_node *n = &p->g->nodes[m->root];
    for (int i = 0; i < m->n_nodes; i++) {
        claimed[m->nodes[i]] = true;
        p->crop_failed |= p->cropped[m->nodes[i]] && !row->parts;
    }
    return sx_status_annotate(add_kernel_unit(p, m, row), __FILE__, __LINE__, "planning %s \"%s\"",
                              n->op->name, n->name);
}

static bool needs_unit(const sx_cpu_match *m, const sx_node *n)
{
    bool used = false;
    for (int i = 0; i < n->n_outputs; i++) {
        used |= m->uses[sx_node_output(n, i).id] > 0;
    }
    return used && !is_constant(n->op) && (n->op->flags & (SX_OP_VIEW | SX_OP_NO_HOST)) == 0;
}

sx_status sx_cpu_make_units(sx_cpu_planner *p)
{
    const sx_graph *g = p->g;
    int *uses = sx_arena_array(&p->scratch, g->n_values, int);
    int *readers = sx_arena_array(&p->scratch, g->n_values, int);
    bool *claimed = sx_arena_array(&p->scratch, g->n_nodes + 1, bool);
    p->hidden = sx_arena_array(&p->scratch, g->n_nodes + 1, int);
    if (uses == NULL || readers == NULL || claimed == NULL || p->hidden == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(make_values(p));
    count_uses(p, uses, readers);
    sx_cpu_match m = {.graph = g,
                      .uses = uses,
                      .readers = readers,
                      .claimed = claimed,
                      .sharded = p->sharded,
                      .hidden = p->hidden,
                      .vec = p->vec,
                      .shards = p->plan->shards,
                      .examples = p->plan->shard_max,
                      .frozen = p->plan->frozen,
                      .region = p->plan->region,
                      .integers = p->plan->integers};
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const bool open = !claimed[k] && needs_unit(&m, &g->nodes[k]);
        const sx_cpu_kernel *row = open ? choose(&m, k, true) : NULL;
        if (row != NULL) {
            SX_TRY(add_matched(p, &m, row, claimed));
        }
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        if (n->op->flags & SX_OP_HOST) {
            return sx_error(
                SX_UNIMPLEMENTED,
                "cpu: %s \"%s\" runs on the host and cannot be part of a device program",
                n->op->name, n->name);
        }
        if (claimed[k] || !needs_unit(&m, n)) {
            continue;
        }
        if (n->op->id == SX_OPID_all_reduce && p->plan->shards > 1) {
            SX_TRY(add_combines(p, k), "planning %s \"%s\"", n->op->name, n->name);
            continue;
        }
        const sx_cpu_kernel *row = choose(&m, k, false);
        SX_TRY(m.error);
        SX_TRY(add_matched(p, &m, row, claimed));
    }
    return SX_OK;
}
