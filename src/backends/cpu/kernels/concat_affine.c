/* A concat along the channels, scaled and shifted, with or without relu, and rounded to bfloat16,
 * in frozen graphs:
 *
 *     round_bf16(relu(concat(parts) scale + shift))
 *
 * as a DenseNet's batch norms read it: parts are read where they lie, and the concat is not
 * written. sx_pass_join_concats() has made parts of concats of concats. */
#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"

enum {
    SCALE,
    SHIFT,
    PARTS,      /* the first one */
    FORMS = 32, /* operands that may be bfloat16 */
    BLOCK_ROWS = 64,
    GRAIN_ELEMS = 1 << 15, /* for each worker */
};

typedef struct concat_data {
    const sx_cpu_vec *vec;
    const int64_t *channels; /* [parts] */
    unsigned narrow_in;
    bool relu, wide;
    int64_t all; /* channels */
} concat_data;

/* Which operand of `n` has one number for each of the channels; -1: none. */
static int vector_of(const sx_graph *g, const sx_node *n)
{
    const sx_type *y = sx_graph_type(g, n->first_output);
    for (int i = 1; i >= 0 && y->rank > 1; i--) {
        if (sx_is_channels(g, n->inputs[i], y->dims[y->rank - 1]) &&
            sx_type_equal(sx_graph_type(g, n->inputs[1 - i]), y)) {
            return i;
        }
    }
    return -1;
}

static bool match(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    const sx_node *n = m->frozen ? sx_cpu_claim_maker(m, sx_cpu_node(m, 0)->inputs[0], -1) : NULL;
    if (n != NULL && n->op->id == SX_OPID_relu) {
        n = sx_cpu_claim_maker(m, n->inputs[0], SX_OPID_add);
    }
    const int shift = n != NULL && n->op->id == SX_OPID_add ? vector_of(g, n) : -1;
    const sx_node *mul =
        shift < 0 ? NULL : sx_cpu_claim_maker(m, n->inputs[1 - shift], SX_OPID_mul);
    const int scale = mul == NULL ? -1 : vector_of(g, mul);
    const sx_node *concat =
        scale < 0 ? NULL : sx_cpu_claim_maker(m, mul->inputs[1 - scale], SX_OPID_concat);
    if (concat == NULL || concat->n_inputs + PARTS > SX_CPU_MAX_VALUES) {
        return false;
    }
    const sx_type *y = sx_graph_type(g, concat->first_output);
    if (((const sx_axis_attrs *)concat->attrs)->axis != y->rank - 1) {
        return false;
    }
    m->in[SCALE] = mul->inputs[scale];
    m->in[SHIFT] = n->inputs[shift];
    m->n_in = PARTS + concat->n_inputs;
    bool fits = sx_cpu_is_f32(m, m->out[0]);
    for (int i = 0; i < concat->n_inputs; i++) {
        m->in[PARTS + i] = concat->inputs[i];
        fits = fits && sx_cpu_is_f32(m, concat->inputs[i]) &&
               sx_type_elems(sx_graph_type(g, concat->inputs[i])) > 0;
    }
    return fits;
}

/* The pixels that begin in elements [begin, end). */
static void run_concat(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const concat_data *d = step->data;
    const int64_t last = (call->end + d->all - 1) / d->all;
    char *out = sx_cpu_out(step, call, 0);
    const int64_t bytes = d->wide ? (int64_t)sizeof(float) : 2;
    for (int64_t at = (call->begin + d->all - 1) / d->all; at < last; at += BLOCK_ROWS) {
        char *y = out + at * d->all * bytes;
        sx_vec_affine a = {.relu = d->relu,
                           .rows = SX_MIN(last - at, (int64_t)BLOCK_ROWS),
                           .scale = sx_cpu_in(step, call, SCALE),
                           .shift = sx_cpu_in(step, call, SHIFT),
                           .wide = d->wide,
                           .y_row = d->all};
        for (int i = PARTS; i < step->n_in; i++) {
            a.n = d->channels[i - PARTS];
            a.narrow = i < FORMS && (d->narrow_in >> i & 1) != 0;
            a.x = (const char *)sx_cpu_in(step, call, i) +
                  at * a.n * (a.narrow ? 2 : (int64_t)sizeof(float));
            a.y = y;
            d->vec->affine_rows(&a);
            a.scale += a.n;
            a.shift += a.n;
            y += a.n * bytes;
        }
    }
}

static sx_status prepare(const sx_cpu_site *site, sx_cpu_step *step)
{
    concat_data *d = sx_cpu_new(site, concat_data);
    int64_t *channels = sx_arena_array(&site->plan->arena, site->n_in + 1, int64_t);
    if (d == NULL || channels == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (concat_data){.vec = site->vec,
                       .channels = channels,
                       .narrow_in = site->narrow_in,
                       .relu = site->nodes[1]->op->id == SX_OPID_relu,
                       .wide = !site->narrow_out,
                       .all = site->out[0].dims[site->out[0].rank - 1]};
    for (int i = PARTS; i < site->n_in; i++) {
        channels[i - PARTS] = site->in[i].dims[site->in[i].rank - 1];
    }
    step->run = run_concat;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    step->grain = GRAIN_ELEMS;
    return SX_OK;
}

/* Before elementwise groups, which would take the rounding. */
const sx_cpu_kernel sx_cpu_kernel_concat_affine = {.name = "concat_affine",
                                                   .op = SX_OPID_round_bf16,
                                                   .match = match,
                                                   .prepare = prepare,
                                                   .narrow_in = ~0U << PARTS,
                                                   .narrow_out = true,
                                                   .early = true};
