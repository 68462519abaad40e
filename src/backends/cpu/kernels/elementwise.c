/* Elementwise operators: a node takes along the elementwise producers that only it reads, and all
 * of them become one pass over memory (the tape of vec.h). */
#include <string.h>

#include "backends/cpu/kernel.h"

typedef struct code_row {
    int op;
    sx_vec_code code;
    int operands;
} code_row;

static const code_row codes[] = {
#define CODE_ROW(name, operands, expr) {SX_OPID_##name, SX_VEC_##name, operands},
    SX_VEC_OPS(CODE_ROW)
#undef CODE_ROW
};

static const code_row *code_of(const sx_node *n)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].op == n->op->id) {
            return &codes[i];
        }
    }
    return NULL;
}

enum { NO_PERIOD = -1 };

/* How an operand of type `in` repeats in `out`: 0 = it has out's shape, n = it is out's last
 * dimensions, n elements, again and again. NO_PERIOD: otherwise (a column). */
static int64_t period_of(const sx_type *in, const sx_type *out)
{
    int64_t elems = sx_type_elems(in), tail = 1;
    if (elems == sx_type_elems(out)) {
        return 0;
    }
    for (int i = 0; i < in->rank; i++) { /* from the last dimension */
        int64_t a = in->dims[in->rank - 1 - i];
        int64_t b = i < out->rank ? out->dims[out->rank - 1 - i] : 1;
        if (a != b) {
            return tail == elems ? elems : NO_PERIOD;
        }
        tail *= a;
    }
    return elems;
}

/* --- matching ------------------------------------------------------------------------------------
 */

typedef struct group {
    sx_cpu_match *m;
    const sx_type *out;
    sx_value inputs[SX_VEC_INPUTS];
    int64_t period[SX_VEC_INPUTS];
    int n_in;
    int64_t common_period; /* the one above 1, or 1 */
} group;

/* Adds `v` to the inputs, if the tape can read it that way. */
static bool add_input(group *g, sx_value v)
{
    for (int i = 0; i < g->n_in; i++) {
        if (g->inputs[i].id == v.id) {
            return true;
        }
    }
    int64_t period = period_of(sx_graph_type(g->m->graph, v), g->out);
    bool fits = period != NO_PERIOD && sx_cpu_is_f32(g->m, v) && g->n_in < SX_VEC_INPUTS &&
                (period <= 1 || g->common_period == 1 || g->common_period == period);
    if (fits) {
        g->common_period = period > 1 ? period : g->common_period;
        g->inputs[g->n_in] = v;
        g->period[g->n_in++] = period;
    }
    return fits;
}

static bool is_same_shape(const group *g, sx_value v)
{
    const sx_type *t = sx_graph_type(g->m->graph, v);
    return t->dtype == SX_F32 && sx_type_elems(t) == sx_type_elems(g->out);
}

static bool inputs_fit(group *g, const sx_node *n)
{
    for (int i = 0; i < n->n_inputs; i++) {
        if (!add_input(g, n->inputs[i])) {
            return false;
        }
    }
    return true;
}

/* Can producer `k` of input `v` join? Tries, and takes it back if it does not fit. Its value leaves
 * the inputs, its own inputs come in. */
static bool try_join(group *g, int at)
{
    sx_value v = g->inputs[at];
    int k = sx_cpu_claimable(g->m, v, -1);
    if (k < 0 || g->period[at] != 0 || g->m->n_nodes >= SX_VEC_TAPE ||
        code_of(&g->m->graph->nodes[k]) == NULL || !is_same_shape(g, v)) {
        return false;
    }
    group saved = *g;
    g->inputs[at] = g->inputs[--g->n_in];
    g->period[at] = g->period[g->n_in];
    if (!inputs_fit(g, &g->m->graph->nodes[k])) {
        *g = saved;
        return false;
    }
    sx_cpu_claim(g->m, k);
    return true;
}

static bool tape_of(const sx_graph *g, const int *nodes, int n_nodes, const sx_value *in, int n_in,
                    sx_vec_tape *out);

static bool match_elementwise(sx_cpu_match *m)
{
    const sx_node *root = &m->graph->nodes[m->root];
    sx_value y = root->first_output;
    group g = {.m = m, .out = sx_graph_type(m->graph, y), .common_period = 1};
    if (!sx_cpu_is_f32(m, y) || !inputs_fit(&g, root)) {
        return false;
    }
    for (int i = 0; i < g.n_in;) {
        int before = m->n_nodes;
        group saved = g;
        sx_vec_tape tape;
        if (!try_join(&g, i)) {
            i++;
        } else if (!tape_of(m->graph, m->nodes, m->n_nodes, g.inputs, g.n_in, &tape)) {
            g = saved; /* too many temporaries */
            m->n_nodes = before;
            i++;
        } else {
            i = 0;
        }
    }
    m->n_in = g.n_in;
    for (int i = 0; i < g.n_in; i++) {
        m->in[i] = g.inputs[i];
        m->in_place |= g.period[i] == 0 ? 1u << i : 0;
    }
    return true;
}

/* --- the tape ------------------------------------------------------------------------------------
 */

/* Where the values of the group lie while its tape is written. */
typedef struct tape_writer {
    const sx_graph *g;
    const int *order; /* of the nodes, in program order */
    int n;
    const sx_value *in;
    int n_in;
    int slot[SX_CPU_MAX_NODES]; /* of each node's output */
    bool busy[SX_VEC_TEMPS];
} tape_writer;

static int slot_of(const tape_writer *w, sx_value v)
{
    for (int i = 0; i < w->n_in; i++) {
        if (w->in[i].id == v.id) {
            return i;
        }
    }
    for (int i = 0; i < w->n; i++) {
        if (w->g->nodes[w->order[i]].first_output.id == v.id) {
            return w->slot[i];
        }
    }
    return -1;
}

/* Each value of a group has one reader: what is read is free again. */
static void release(tape_writer *w, int slot)
{
    if (slot >= w->n_in) {
        w->busy[slot - w->n_in] = false;
    }
}

static int take_temp(tape_writer *w)
{
    for (int i = 0; i < SX_VEC_TEMPS; i++) {
        if (!w->busy[i]) {
            w->busy[i] = true;
            return w->n_in + i;
        }
    }
    return -1;
}

static bool tape_of(const sx_graph *g, const int *nodes, int n_nodes, const sx_value *in, int n_in,
                    sx_vec_tape *out)
{
    int order[SX_CPU_MAX_NODES];
    for (int i = 0; i < n_nodes; i++) {
        int j = i;
        for (; j > 0 && order[j - 1] > nodes[i]; j--) {
            order[j] = order[j - 1];
        }
        order[j] = nodes[i];
    }
    tape_writer w = {.g = g, .order = order, .n = n_nodes, .in = in, .n_in = n_in};
    *out = (sx_vec_tape){.n_in = n_in, .n_ops = n_nodes};
    for (int i = 0; i < n_nodes; i++) {
        const sx_node *n = &g->nodes[order[i]];
        int a = slot_of(&w, n->inputs[0]);
        int b = n->n_inputs > 1 ? slot_of(&w, n->inputs[1]) : a;
        release(&w, a);
        release(&w, b);
        int dst = take_temp(&w);
        if (a < 0 || b < 0 || dst < 0) {
            return false;
        }
        w.slot[i] = dst;
        out->ops[i] = (sx_vec_op){(uint8_t)code_of(n)->code, (uint8_t)dst, (uint8_t)a, (uint8_t)b};
    }
    return true;
}

/* --- running -------------------------------------------------------------------------------------
 */

typedef struct elementwise_data {
    const sx_cpu_vec *vec;
    sx_vec_tape tape;
} elementwise_data;

static void run_elementwise(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const elementwise_data *d = step->data;
    const float *in[SX_VEC_INPUTS];
    for (int i = 0; i < step->n_in; i++) {
        in[i] = sx_cpu_in(step, call, i);
    }
    d->vec->tape(&d->tape, in, sx_cpu_out(step, call, 0), call->begin, call->end);
}

static sx_status prepare_elementwise(const sx_cpu_site *site, sx_cpu_step *step)
{
    elementwise_data *d = sx_cpu_new(site, elementwise_data);
    int nodes[SX_CPU_MAX_NODES];
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < site->n_nodes; i++) {
        nodes[i] = (int)(site->nodes[i] - site->graph->nodes);
    }
    d->vec = site->vec;
    if (!tape_of(site->graph, nodes, site->n_nodes, site->values_in, site->n_in, &d->tape)) {
        return sx_error(SX_INTERNAL, "a fused group does not fit the tape");
    }
    for (int i = 0; i < site->n_in; i++) {
        d->tape.period[i] = period_of(&site->in[i], &site->out[0]);
    }
    step->run = run_elementwise;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    return SX_OK;
}

#define ROW(op_name, operands, expr)                \
    const sx_cpu_kernel sx_cpu_kernel_##op_name = { \
        .name = "elementwise",                      \
        .op = SX_OPID_##op_name,                    \
        .match = match_elementwise,                 \
        .prepare = prepare_elementwise,             \
    };
SX_VEC_OPS(ROW)

/* A broadcast on its own, of what the tape can repeat: x + nothing. */
static bool match_broadcast(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    return sx_cpu_is_f32(m, n->inputs[0]) &&
           period_of(sx_graph_type(m->graph, n->inputs[0]),
                     sx_graph_type(m->graph, n->first_output)) != NO_PERIOD;
}

static sx_status prepare_broadcast(const sx_cpu_site *site, sx_cpu_step *step)
{
    elementwise_data *d = sx_cpu_new(site, elementwise_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->tape = (sx_vec_tape){.n_in = 1,
                            .n_ops = 1,
                            .period = {period_of(&site->in[0], &site->out[0])},
                            .ops = {{SX_VEC_maximum, 1, 0, 0}}};
    step->run = run_elementwise;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_broadcast_to = {
    .name = "broadcast",
    .op = SX_OPID_broadcast_to,
    .match = match_broadcast,
    .prepare = prepare_broadcast,
};
