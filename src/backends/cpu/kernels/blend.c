/* Pixels that lie between two along an axis, as bilinear resizing to a known size makes them:
 *
 *   a + (b - a) share    a, b: gathered from x along the axis by constants; share: one number each
 *
 * in one pass over x, without a and b. */
#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"
#include "graph/ops/common.h"

enum { MOST_CHANNELS = 16, BEHIND = 3 /* floats that blend_pixels may read behind a row */ };

typedef struct blend_data {
    const sx_cpu_vec *vec;
    sx_vec_taps taps; /* a pixel of the result: two of x, and the second one's share */
    int64_t outer;    /* lines of x and of the result, */
    int64_t line, made;
    bool wide; /* a pixel has so many numbers that it is computed as a row */
} blend_data;

/* The parts of a match. */
typedef struct blend_parts {
    const sx_node *mul, *sub, *a, *b;
    const sx_tensor *low, *high, *share;
} blend_parts;

static const sx_node *made_by(const sx_graph *g, sx_value v, int op)
{
    const sx_node *n = sx_graph_maker(g, v);
    return n->op->id == op ? n : NULL;
}

static const sx_tensor *constant_of(const sx_graph *g, sx_value v)
{
    const sx_node *n = made_by(g, v, SX_OPID_constant);
    return n != NULL ? &((const sx_constant_attrs *)n->attrs)->value : NULL;
}

static int64_t axis_of(const blend_parts *p)
{
    return ((const sx_gather_attrs *)p->a->attrs)->axis;
}

/* n places of an axis of that size. */
static bool are_places(const sx_tensor *t, int64_t size)
{
    if (t == NULL || t->type.dtype != SX_I64 || t->type.rank != 1) {
        return false;
    }
    for (int64_t i = 0; i < t->type.dims[0]; i++) {
        const int64_t place = ((const int64_t *)t->data)[i];
        if (place < 0 || place >= size) {
            return false;
        }
    }
    return true;
}

/* Whether y is such a sum, whose operand i is a. */
static bool find_parts(const sx_graph *g, const sx_node *add, int i, blend_parts *p)
{
    const sx_type *y = sx_graph_type(g, add->first_output);
    const sx_value a = add->inputs[i];
    *p = (blend_parts){.mul = made_by(g, add->inputs[1 - i], SX_OPID_mul),
                       .a = made_by(g, a, SX_OPID_gather)};
    if (p->mul == NULL || p->a == NULL ||
        (p->sub = made_by(g, p->mul->inputs[0], SX_OPID_sub)) == NULL ||
        (p->b = made_by(g, p->sub->inputs[0], SX_OPID_gather)) == NULL ||
        p->sub->inputs[1].id != a.id || p->b->inputs[0].id != p->a->inputs[0].id) {
        return false;
    }
    const sx_gather_attrs *first = p->a->attrs, *second = p->b->attrs;
    const sx_type *x = sx_graph_type(g, p->a->inputs[0]);
    p->low = constant_of(g, p->a->inputs[1]);
    p->high = constant_of(g, p->b->inputs[1]);
    p->share = constant_of(g, p->mul->inputs[1]);
    if (x->dtype != SX_F32 || first->batch_dims != 0 || second->batch_dims != 0 ||
        first->axis != second->axis || x->rank != y->rank || p->share == NULL ||
        !are_places(p->low, x->dims[first->axis]) || !are_places(p->high, x->dims[first->axis])) {
        return false;
    }
    const int64_t n = p->low->type.dims[0];
    return p->high->type.dims[0] == n && sx_type_elems(&p->share->type) == n &&
           p->share->type.rank == y->rank - first->axis && p->share->type.dims[0] == n;
}

static bool match_blend(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    blend_parts p;
    const sx_node *add = &g->nodes[m->root];
    if (!find_parts(g, add, 0, &p) && !find_parts(g, add, 1, &p)) {
        return false;
    }
    const sx_node *const nodes[] = {p.mul, p.sub, p.a, p.b};
    for (int i = 0; i < 4; i++) {
        const int k = (int)(nodes[i] - g->nodes);
        if (m->claimed[k] || m->sharded[k] != m->sharded[m->root] ||
            m->uses[nodes[i]->first_output.id] != (nodes[i] == p.a ? 2 : 1)) {
            return false;
        }
    }
    for (int i = 0; i < 4; i++) {
        sx_cpu_claim(m, (int)(nodes[i] - g->nodes));
    }
    m->in[0] = p.a->inputs[0];
    m->n_in = 1;
    return true;
}

/* A range is of elements: of the lines, or wide pixels, that begin in it. */
static void run_blend(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const blend_data *d = step->data;
    const sx_vec_taps *t = &d->taps;
    const float *x = sx_cpu_in(step, call, 0);
    float *y = sx_cpu_out(step, call, 0);
    const int64_t row = d->wide ? t->channels : d->made;
    const int64_t first = (call->begin + row - 1) / row, last = (call->end + row - 1) / row;
    for (int64_t i = first; i < last; i++) {
        if (d->wide) {
            const float *from = x + i / t->n * d->line;
            const int64_t *at = t->at + 2 * (i % t->n);
            d->vec->blend_rows(from + at[0], from + at[1], t->weight[2 * (i % t->n) + 1],
                               y + i * row, row);
            continue;
        }
        const float *from = x + i * d->line;
        if (i + 1 == d->outer) { /* nothing lies behind it */
            from = memcpy(sx_cpu_at(call, step->scratch), from, (size_t)d->line * sizeof(float));
        }
        d->vec->blend_pixels(t, from, y + i * row);
    }
}

static sx_status prepare_blend(const sx_cpu_site *site, sx_cpu_step *step)
{
    blend_parts p;
    if (!find_parts(site->graph, site->nodes[0], 0, &p) &&
        !find_parts(site->graph, site->nodes[0], 1, &p)) {
        return sx_error(SX_INTERNAL, "pixels have other parts than they were matched with");
    }
    const sx_type *x = &site->in[0];
    const int axis = (int)axis_of(&p);
    const int64_t n = p.low->type.dims[0];
    blend_data *d = sx_cpu_new(site, blend_data);
    int64_t *at = sx_arena_array(&site->plan->arena, 2 * n + 1, int64_t);
    float *weight = sx_arena_array(&site->plan->arena, 2 * n + 1, float);
    if (d == NULL || at == NULL || weight == NULL) {
        return sx_cpu_no_memory();
    }
    const int64_t channels = sx_dims_product(x, axis + 1, x->rank);
    *d = (blend_data){.vec = site->vec,
                      .taps = {.n = n, .channels = channels, .at = at, .weight = weight},
                      .outer = sx_dims_product(x, 0, axis),
                      .line = x->dims[axis] * channels,
                      .made = n * channels,
                      .wide = channels > MOST_CHANNELS};
    for (int64_t i = 0; i < n; i++) {
        at[2 * i] = ((const int64_t *)p.low->data)[i] * channels;
        at[2 * i + 1] = ((const int64_t *)p.high->data)[i] * channels;
        weight[2 * i + 1] = ((const float *)p.share->data)[i];
    }
    step->run = run_blend;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    step->scratch_bytes =
        d->wide ? 0 : sx_cpu_round_up((d->line + BEHIND) * (int64_t)sizeof(float));
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_blend = {.name = "blend",
                                           .op = SX_OPID_add,
                                           .match = match_blend,
                                           .prepare = prepare_blend,
                                           .early = true};
