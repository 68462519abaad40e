/* Folds what follows a convolution into its filter and bias, where variables keep their values:
 *
 *   conv(x, w) a + b     ->  conv(x, w a) + b
 *   batch_norm(conv)         a = scale / sqrt(variance + epsilon), b = offset - mean a
 *
 * A chain of such nodes, each the only reader of the one before, is folded as a whole: nodes of it
 * are left out until its last one is reached. */
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

typedef struct freezing {
    bool *frozen; /* [n_values]: follows from variables and constants alone */
    int *readers; /* [n_values]: the node that alone reads it, or -1 */
    int *conv;    /* [n_nodes]: of a node in a chain, the convolution at its start, or -1 */
    int *next;    /* [n_nodes]: in the chain, or -1 */
    int count;    /* of nodes made, for their names */
} freezing;

/* ---- Finding chains ---- */

void sx_mark_frozen(const sx_graph *g, bool *frozen)
{
    for (int i = 0; i < g->n_args; i++) {
        frozen[g->args[i].value.id] = g->args[i].kind == SX_ARG_VARIABLE;
    }
    for (int i = 0; i < g->n_results; i++) {
        if (g->results[i].arg >= 0) {
            frozen[g->args[g->results[i].arg].value.id] = false;
        }
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        bool all = n->op->id == SX_OPID_constant ||
                   (n->n_inputs > 0 && !sx_op_has_regions(n->op) &&
                    (n->op->flags & (SX_OP_BY_REPLICA | SX_OP_EFFECT)) == 0);
        for (int i = 0; i < n->n_inputs; i++) {
            all = all && frozen[n->inputs[i].id];
        }
        for (int i = 0; i < n->n_outputs && n->op->id != SX_OPID_parameter; i++) {
            frozen[sx_node_output(n, i).id] = all;
        }
    }
}

static void find_readers(const sx_graph *g, int *readers)
{
    enum { NONE = -1, MANY = -2 };
    for (int i = 0; i < g->n_values; i++) {
        readers[i] = NONE;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs; i++) {
            int *reader = &readers[g->nodes[k].inputs[i].id];
            *reader = *reader == NONE ? k : MANY;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        readers[g->results[i].value.id] = MANY;
    }
}

bool sx_is_channels(const sx_graph *g, sx_value v, int64_t channels)
{
    const sx_type *t = sx_graph_type(g, v);
    return t->dtype == SX_F32 && t->rank >= 1 && t->rank <= 4 && t->dims[t->rank - 1] == channels &&
           sx_type_elems(t) == channels;
}

/* Whether node `n`, which reads `v` of a chain, continues it. */
static bool continues(const sx_graph *g, const freezing *f, const sx_node *n, sx_value v)
{
    const sx_type *t = sx_graph_type(g, v);
    const int64_t channels = t->dims[t->rank - 1];
    if (!sx_type_equal(t, sx_graph_type(g, n->first_output))) {
        return false;
    }
    switch (n->op->id) {
    case SX_OPID_bias_add:
    case SX_OPID_batch_norm:
        for (int i = 1; i < n->n_inputs; i++) {
            if (!f->frozen[n->inputs[i].id] || !sx_is_channels(g, n->inputs[i], channels)) {
                return false;
            }
        }
        return n->inputs[0].id == v.id;
    case SX_OPID_add:
    case SX_OPID_mul: {
        const sx_value other = n->inputs[n->inputs[0].id == v.id];
        return f->frozen[other.id] && sx_is_channels(g, other, channels);
    }
    case SX_OPID_sub:
        return n->inputs[0].id == v.id && f->frozen[n->inputs[1].id] &&
               sx_is_channels(g, n->inputs[1], channels);
    default:
        return false;
    }
}

static void find_chains(const sx_graph *g, freezing *f)
{
    for (int k = 0; k < g->n_nodes; k++) {
        f->conv[k] = f->next[k] = -1;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        const sx_type *y = n->n_outputs > 0 ? sx_graph_type(g, n->first_output) : NULL;
        if (n->op->id != SX_OPID_conv2d || y->dtype != SX_F32 || !f->frozen[n->inputs[1].id] ||
            ((const sx_conv2d_attrs *)n->attrs)->bf16_operands) {
            continue;
        }
        for (int at = k;;) {
            const sx_value v = g->nodes[at].first_output;
            const int reader = f->readers[v.id];
            if (reader < 0 || !continues(g, f, &g->nodes[reader], v)) {
                break;
            }
            f->next[at] = reader;
            f->conv[reader] = k;
            at = reader;
        }
    }
}

/* ---- Writing ---- */

static sx_value beside(sx_rewrite *rw, const sx_node *n, const sx_op_def *op, const void *attrs,
                       const sx_value *inputs, int n_inputs)
{
    freezing *f = rw->user;
    return sx_rewrite_beside(rw, n, op, attrs, inputs, n_inputs, ".frozen%d", f->count++);
}

static sx_value two(sx_rewrite *rw, const sx_node *n, const sx_op_def *op, sx_value x, sx_value y)
{
    return sx_value_is(x) ? beside(rw, n, op, NULL, (const sx_value[]){x, y}, 2) : y;
}

/* A vector of the channels as [C]. */
static sx_value vector(sx_rewrite *rw, const sx_node *n, sx_value old)
{
    const sx_type *t = sx_graph_type(rw->from, old);
    sx_shape_attrs *attrs = sx_arena_new(sx_builder_arena(rw->to), sx_shape_attrs);
    if (t->rank == 1 || attrs == NULL) {
        return rw->map[old.id];
    }
    attrs->shape = (sx_ints){1, {t->dims[t->rank - 1]}};
    return beside(rw, n, &sx_op_reshape, attrs, &rw->map[old.id], 1);
}

/* y = x factor + bias: the factor and bias so far, or none, become those behind node `n`. */
static void fold(sx_rewrite *rw, const sx_node *n, sx_value *factor, sx_value *bias, sx_value from)
{
    const sx_op_id id = (sx_op_id)n->op->id;
    sx_value scale = SX_NO_VALUE, shift = SX_NO_VALUE;
    if (id == SX_OPID_batch_norm) { /* scale, offset, mean, variance */
        const sx_batch_norm_attrs *a = n->attrs;
        const float epsilon = (float)a->epsilon;
        sx_constant_attrs constant = {
            {sx_scalar_type(SX_F32), sx_arena_memdup(sx_builder_arena(rw->to), &epsilon, 4)}};
        if (constant.value.data == NULL) {
            sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
            return;
        }
        sx_value eps = beside(rw, n, &sx_op_constant, &constant, NULL, 0);
        sx_value shifted = two(rw, n, &sx_op_add, vector(rw, n, n->inputs[4]), eps);
        sx_value s = beside(rw, n, &sx_op_rsqrt, NULL, &shifted, 1);
        scale = two(rw, n, &sx_op_mul, s, vector(rw, n, n->inputs[1]));
        sx_value moved = two(rw, n, &sx_op_mul, vector(rw, n, n->inputs[3]), scale);
        shift = two(rw, n, &sx_op_sub, vector(rw, n, n->inputs[2]), moved);
    } else {
        const sx_value other = vector(rw, n, n->inputs[n->inputs[0].id == from.id]);
        scale = id == SX_OPID_mul ? other : SX_NO_VALUE;
        shift = id == SX_OPID_mul   ? SX_NO_VALUE
                : id == SX_OPID_sub ? beside(rw, n, &sx_op_neg, NULL, &other, 1)
                                    : other;
    }
    if (sx_value_is(scale)) {
        *factor = two(rw, n, &sx_op_mul, *factor, scale);
        *bias = sx_value_is(*bias) ? two(rw, n, &sx_op_mul, *bias, scale) : *bias;
    }
    if (sx_value_is(shift)) {
        *bias = two(rw, n, &sx_op_add, *bias, shift);
    }
}

/* `last` ends a chain: the convolution with all of it. */
static void write_chain(sx_rewrite *rw, const sx_node *last)
{
    const freezing *f = rw->user;
    const sx_graph *g = rw->from;
    const int end = (int)(last - g->nodes), conv = f->conv[end];
    const sx_node *n = &g->nodes[conv];
    sx_value factor = SX_NO_VALUE, bias = SX_NO_VALUE;
    for (int at = conv; at != end; at = f->next[at]) {
        fold(rw, &g->nodes[f->next[at]], &factor, &bias, g->nodes[at].first_output);
    }
    sx_value in[2] = {rw->map[n->inputs[0].id], rw->map[n->inputs[1].id]};
    if (sx_value_is(factor)) {
        in[1] = two(rw, n, &sx_op_mul, in[1], factor);
    }
    sx_value y = beside(rw, n, n->op, n->attrs, in, 2);
    if (sx_value_is(bias)) {
        y = two(rw, last, &sx_op_bias_add, y, bias);
    }
    rw->map[last->first_output.id] = y;
}

static void freeze_node(sx_rewrite *rw, const sx_node *n)
{
    const freezing *f = rw->user;
    const int k = (int)(n - rw->from->nodes);
    if (f->next[k] >= 0) {
        return; /* its chain's last node writes it */
    }
    if (f->conv[k] >= 0) {
        write_chain(rw, n);
    } else {
        sx_rewrite_keep(rw, n, NULL);
    }
}

sx_status sx_pass_freeze(const sx_graph *g, sx_graph **out)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    freezing f = {.frozen = sx_arena_array(&arena, g->n_values + 1, bool),
                  .readers = sx_arena_array(&arena, g->n_values + 1, int),
                  .conv = sx_arena_array(&arena, g->n_nodes + 1, int),
                  .next = sx_arena_array(&arena, g->n_nodes + 1, int)};
    sx_status status = SX_OK;
    if (f.frozen == NULL || f.readers == NULL || f.conv == NULL || f.next == NULL) {
        status = sx_no_memory("rewriting a graph");
    } else {
        sx_mark_frozen(g, f.frozen);
        find_readers(g, f.readers);
        find_chains(g, &f);
        status = sx_rewrite_run(g, 0, freeze_node, &f, out);
    }
    sx_arena_deinit(&arena);
    return status;
}
