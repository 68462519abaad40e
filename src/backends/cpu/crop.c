/* Drops the borders of values that no kernel needs.
 *
 *   p' = max_pool2d(..)   [13,13]  only [12,12] is read
 *   r  = relu(conv2d 3x3) [11,11]  only [10,10] is read
 *   p  = max_pool2d 2x2   [5,5]
 *
 * A VALID pool that does not divide its input ignores a border; the convolution before it need not
 * compute that border, nor the pool before that the elements only needed for it. In the backward
 * pass, the gradients of these elements are zero and not needed. This saves a sixth of mnist_cnn's
 * second convolution.
 *
 * Each operator says what it needs (sx_op_def.parts). From the results back, the part of a value is
 * the union of what its readers need of it. The nodes stay as they are, the types of their values
 * become those of the parts: what infer says of smaller operands is as good as any node. Where
 * parts do not agree they are enlarged, up to the whole, until all do. Some nodes may have parts
 * that infer refuses (sx_op_def.parts_fit), such as a pool of which a part is read: their kernels
 * must take sizes from types (sx_cpu_kernel.parts). If another kernel would get such a node, the
 * planner plans again without this pass. */
#include "backends/cpu/planner.h"
#include "base/checked.h"
#include "graph/builder.h"

typedef struct extent {
    sx_type part;    /* what readers need of the value; at the end its type */
    sx_type least;   /* of `part`, so that it agrees with the other operands of a node */
    sx_type nonzero; /* elements beyond are zero */
    bool read;
} extent;

typedef struct crop {
    const sx_graph *g;
    extent *extents;                       /* [n_values] */
    sx_type *in, *in_nonzero, *in_used;    /* of a node */
    sx_type *out, *out_nonzero, *out_used; /* likewise */
} crop;

/* Raises the dimensions of `to` to those of `from`; whether one was less. */
static bool enlarge(sx_type *to, const sx_type *from)
{
    bool less = false;
    for (int i = 0; i < to->rank; i++) {
        less |= to->dims[i] < from->dims[i];
        to->dims[i] = SX_MAX(to->dims[i], from->dims[i]);
    }
    return less;
}

static void elementwise_parts(const sx_node *n, const sx_parts *p)
{
    const sx_type *y = &p->out[0];
    for (int i = 0; i < n->n_inputs; i++) {
        for (int d = 1; d <= p->in[i].rank; d++) { /* from the last axis */
            int at = p->in[i].rank - d, to = y->rank - d;
            if (p->in[i].dims[at] != y->dims[to]) {
                continue; /* repeated along it */
            }
            p->in_used[i].dims[at] = p->out_used[0].dims[to];
            if (n->op->zero_of >> i & 1) {
                p->out_nonzero[0].dims[to] =
                    SX_MIN(p->out_nonzero[0].dims[to], p->in_nonzero[i].dims[at]);
            }
        }
    }
}

/* Fills c->in_used and c->out_nonzero from c->out_used and the operands' extents. */
static void parts_of(crop *c, const sx_node *n)
{
    sx_parts p = {.attrs = n->attrs,
                  .n_inputs = n->n_inputs,
                  .in = c->in,
                  .out = c->out,
                  .in_nonzero = c->in_nonzero,
                  .out_used = c->out_used,
                  .in_used = c->in_used,
                  .out_nonzero = c->out_nonzero};
    for (int i = 0; i < n->n_inputs; i++) {
        c->in[i] = c->in_used[i] = *sx_graph_type(c->g, n->inputs[i]);
        c->in_nonzero[i] = c->extents[n->inputs[i].id].nonzero;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        c->out[i] = c->out_nonzero[i] = *sx_graph_type(c->g, sx_node_output(n, i));
    }
    if (n->op->parts != NULL) {
        n->op->parts(&p);
    } else if (n->op->flags & SX_OP_ELEMENTWISE) {
        elementwise_parts(n, &p);
    }
    for (int i = 0; i < n->n_inputs; i++) {
        for (int d = 0; d < c->in[i].rank; d++) {
            const int64_t used = SX_MAX(c->in_used[i].dims[d], 1);
            c->in_used[i].dims[d] = SX_MIN(used, c->in[i].dims[d]);
        }
    }
}

static void find_zeros(crop *c)
{
    for (int k = 0; k < c->g->n_nodes; k++) {
        const sx_node *n = &c->g->nodes[k];
        for (int i = 0; i < n->n_outputs; i++) {
            c->out_used[i] = *sx_graph_type(c->g, sx_node_output(n, i));
        }
        parts_of(c, n);
        for (int i = 0; i < n->n_outputs; i++) {
            c->extents[sx_node_output(n, i).id].nonzero = c->out_nonzero[i];
        }
    }
}

/* The parts that readers need, from the results back. Whether a value is not needed whole. */
static bool find_parts(crop *c)
{
    const sx_graph *g = c->g;
    bool cropped = false;
    for (int i = 1; i < g->n_values; i++) {
        c->extents[i].part = c->extents[i].least;
        c->extents[i].read = false;
    }
    for (int i = 0; i < g->n_results; i++) {
        c->extents[g->results[i].value.id].part = *sx_graph_type(g, g->results[i].value);
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        const bool whole = n->op->parts == NULL && !(n->op->flags & SX_OP_ELEMENTWISE);
        for (int i = 0; i < n->n_outputs; i++) {
            const sx_value v = sx_node_output(n, i);
            extent *e = &c->extents[v.id];
            if (whole || !e->read) {
                e->part = *sx_graph_type(g, v);
            }
            c->out_used[i] = e->part;
            cropped |= !sx_type_equal(&e->part, sx_graph_type(g, v));
        }
        parts_of(c, n);
        for (int i = 0; i < n->n_inputs; i++) {
            extent *e = &c->extents[n->inputs[i].id];
            enlarge(&e->part, &c->in_used[i]);
            e->read = true;
        }
    }
    return cropped;
}

static sx_value operand(const sx_node *n, int i)
{
    return i < n->n_inputs ? n->inputs[i] : sx_node_output(n, i - n->n_inputs);
}

/* Whether the operands of one type are parts of one type, which many operators require; those that
 * are not are enlarged. */
static bool same_of_equals(crop *c, const sx_node *n)
{
    bool same = true;
    for (int i = 0; i < n->n_inputs + n->n_outputs; i++) {
        for (int j = 0; j < n->n_inputs + n->n_outputs; j++) {
            const sx_value a = operand(n, i), b = operand(n, j);
            if (sx_type_equal(sx_graph_type(c->g, a), sx_graph_type(c->g, b))) {
                same &= !enlarge(&c->extents[a.id].part, &c->extents[b.id].part);
                enlarge(&c->extents[a.id].least, &c->extents[a.id].part);
            }
        }
    }
    return same;
}

typedef enum fit { FITS, FITS_TYPES /* only: parts_fit() */, FITS_NOT } fit;

static fit fit_of(crop *c, const sx_node *n)
{
    sx_type inferred[SX_MAX_OUTPUTS];
    int count = 0;
    for (int i = 0; i < n->n_inputs; i++) {
        c->in[i] = c->extents[n->inputs[i].id].part;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        c->out[i] = c->extents[sx_node_output(n, i).id].part;
    }
    sx_status status = sx_infer_types(n->op, n->attrs, c->in, n->n_inputs, inferred, &count);
    bool inferable = status == SX_OK && count == n->n_outputs;
    for (int i = 0; i < n->n_outputs && inferable; i++) {
        inferable = sx_type_equal(&inferred[i], &c->out[i]);
    }
    sx_status_free(status);
    if (inferable) {
        return FITS;
    }
    bool fits = n->op->parts_fit != NULL && n->op->parts_fit(n->attrs, c->in, c->out);
    return fits ? FITS_TYPES : FITS_NOT;
}

/* Whether the parts of all nodes agree; those that do not are enlarged. */
static bool agree(crop *c, bool *cropped)
{
    bool all = true;
    for (int k = c->g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &c->g->nodes[k];
        bool whole = true;
        for (int i = 0; i < n->n_inputs + n->n_outputs; i++) {
            const sx_value v = operand(n, i);
            whole &= sx_type_equal(&c->extents[v.id].part, sx_graph_type(c->g, v));
        }
        if (whole) {
            continue;
        }
        if (!same_of_equals(c, n)) {
            all = false;
            continue;
        }
        const fit found = fit_of(c, n);
        cropped[k] = found == FITS_TYPES;
        for (int i = 0; i < n->n_inputs + n->n_outputs && found == FITS_NOT; i++) {
            extent *e = &c->extents[operand(n, i).id];
            e->part = e->least = *sx_graph_type(c->g, operand(n, i));
            all = false;
        }
    }
    return all;
}

enum { MAX_ROUNDS = 100 /* of enlarging; more are not worth the time */ };

/* Marks the nodes whose operands' types infer would refuse. */
sx_status sx_cpu_crop(sx_graph *g, sx_arena *scratch, bool *cropped)
{
    int most = 1;
    for (int k = 0; k < g->n_nodes; k++) {
        most = SX_MAX(most, SX_MAX(g->nodes[k].n_inputs, g->nodes[k].n_outputs));
    }
    crop *c = sx_arena_new(scratch, crop);
    extent *extents = sx_arena_array(scratch, g->n_values + 1, extent);
    sx_type *types = sx_arena_array(scratch, 6 * (size_t)most, sx_type);
    bool *marked = sx_arena_array(scratch, g->n_nodes + 1, bool);
    if (c == NULL || extents == NULL || types == NULL || marked == NULL) {
        return sx_cpu_no_memory();
    }
    *c = (crop){.g = g,
                .extents = extents,
                .in = types,
                .in_nonzero = types + most,
                .in_used = types + 2 * most,
                .out = types + 3 * most,
                .out_nonzero = types + 4 * most,
                .out_used = types + 5 * most};
    for (int i = 1; i < g->n_values; i++) {
        extents[i].nonzero = extents[i].least = g->values[i].type;
        memset(extents[i].least.dims, 0, (size_t)extents[i].least.rank * sizeof(int64_t));
    }
    find_zeros(c);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        if (!find_parts(c)) {
            return SX_OK;
        }
        memset(marked, 0, (size_t)g->n_nodes * sizeof(*marked));
        if (!agree(c, marked)) {
            continue;
        }
        for (int i = 1; i < g->n_values; i++) {
            g->values[i].type = extents[i].part;
        }
        for (int k = 0; k < g->n_nodes; k++) {
            cropped[k] |= marked[k];
        }
        return SX_OK;
    }
    return SX_OK;
}
