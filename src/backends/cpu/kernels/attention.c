/* Attention: softmax(q k * scale + mask) v, where scale and mask may be absent. A block of rows of
 * scores at a time, which stays in the second-level cache, so that the matrix of all scores, whose
 * size is quadratic in the length of the text, is never stored. */
#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn2.h"
#include "base/checked.h"
#include "graph/ops/common.h"

enum {
    BLOCK_SCORES = 32 * 1024, /* of one block, twice: before and after softmax */
    BLOCK_ROWS = 16,          /* at least */
    FEW_SCORES = 2048,        /* simpler kernels take as long */
};

/* The parts of a match, from the result back. */
typedef struct parts {
    const sx_node *values, *softmax, *add, *scale, *scores; /* add, scale: or NULL */
    sx_value mask, factor;
} parts;

/* scratch: scores and probabilities of a block */
typedef struct attention_data {
    const sx_cpu_vec *vec;
    bool tk, tv; /* k is [keys, depth]; v is [width, keys] */
    int64_t rows, keys, depth, width, block, products;
    const int64_t *q, *k, *v, *mask; /* [products]: where operands begin; mask NULL: none */
    int64_t mask_row, mask_col;      /* strides of the mask; 0 = repeated */
    int scale;                       /* operand, 0 = none */
} attention_data;

/* ---- Matching ---- */

/* What a value is a view of: nodes that only that view reads. */
static sx_value behind_views(const sx_cpu_match *m, sx_value v)
{
    for (;;) {
        const sx_node *n = sx_graph_maker(m->graph, v);
        if ((n->op->id != SX_OPID_reshape && n->op->id != SX_OPID_identity) || m->uses[v.id] != 1) {
            return v;
        }
        v = n->inputs[0];
    }
}

static const sx_node *claim(sx_cpu_match *m, sx_value v, int op)
{
    const int k = sx_cpu_claimable(m, v, op);
    if (k < 0) {
        return NULL;
    }
    sx_cpu_claim(m, k);
    return &m->graph->nodes[k];
}

/* Whether both are matrices of the same size, and as many. */
static bool same_matrices(const sx_type *a, const sx_type *b)
{
    return a->rank >= 2 && b->rank >= 2 && a->dtype == SX_F32 && b->dtype == SX_F32 &&
           a->dims[a->rank - 1] == b->dims[b->rank - 1] &&
           a->dims[a->rank - 2] == b->dims[b->rank - 2] && sx_type_elems(a) == sx_type_elems(b);
}

/* Which operand of an addition or product is not the scores: those have its type. If both have, a
 * mask may be as large, it is the one that no matmul makes. */
static int beside_scores(const sx_graph *g, const sx_node *n)
{
    const sx_type *y = sx_graph_type(g, n->first_output);
    if (!sx_type_equal(sx_graph_type(g, n->inputs[0]), y)) {
        return 0;
    }
    if (!sx_type_equal(sx_graph_type(g, n->inputs[1]), y)) {
        return 1;
    }
    const int id = sx_graph_maker(g, n->inputs[1])->op->id;
    return id == SX_OPID_matmul || (id == SX_OPID_mul && n->op->id == SX_OPID_add) ? 0 : 1;
}

/* The parts among the nodes, which the match has claimed. */
static void parts_of(const sx_node *const *nodes, int n_nodes, const sx_graph *g, parts *out)
{
    *out = (parts){.values = nodes[0]};
    for (int i = 1; i < n_nodes; i++) {
        const sx_node *n = nodes[i];
        if (n->op->id == SX_OPID_softmax) {
            out->softmax = n;
        } else if (n->op->id == SX_OPID_add) {
            out->add = n;
            out->mask = n->inputs[beside_scores(g, n)];
        } else if (n->op->id == SX_OPID_mul) {
            out->scale = n;
            out->factor = n->inputs[beside_scores(g, n)];
        } else {
            out->scores = n;
        }
    }
}

static bool match_attention(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    const sx_node *root = &g->nodes[m->root], *n;
    const sx_matmul_attrs *attrs = root->attrs;
    const sx_type *p = sx_graph_type(g, root->inputs[0]);
    const sx_node *claimed[SX_CPU_MAX_NODES];
    parts x;
    if (attrs->transpose_a || !sx_cpu_is_f32(m, m->out[0]) ||
        (n = claim(m, behind_views(m, root->inputs[0]), SX_OPID_softmax)) == NULL) {
        return false;
    }
    static const int optional[] = {SX_OPID_add, SX_OPID_mul};
    sx_value v = behind_views(m, n->inputs[0]);
    for (int i = 0; i < 2; i++) {
        if ((n = claim(m, v, optional[i])) != NULL) {
            v = behind_views(m, n->inputs[1 - beside_scores(g, n)]);
        }
    }
    if (claim(m, v, SX_OPID_matmul) == NULL) {
        return false;
    }
    for (int i = 0; i < m->n_nodes; i++) {
        claimed[i] = sx_cpu_node(m, i);
    }
    parts_of(claimed, m->n_nodes, g, &x);
    const sx_type *s = sx_graph_type(g, x.scores->first_output);
    const sx_type *q = sx_graph_type(g, x.scores->inputs[0]);
    const sx_type *y = sx_graph_type(g, root->first_output);
    bool fits = !((const sx_matmul_attrs *)x.scores->attrs)->transpose_a && same_matrices(s, p) &&
                same_matrices(s, sx_graph_type(g, x.softmax->first_output)) &&
                sx_type_elems(y) > 0 && sx_type_elems(q) > 0 &&
                s->dims[s->rank - 1] * s->dims[s->rank - 2] > FEW_SCORES;
    if (x.add != NULL) {
        const sx_type *mask = sx_graph_type(g, x.mask);
        fits = fits && same_matrices(s, sx_graph_type(g, x.add->first_output)) &&
               mask->dtype == SX_F32 && mask->rank >= 1;
    }
    if (x.scale != NULL) {
        fits = fits && same_matrices(s, sx_graph_type(g, x.scale->first_output)) &&
               sx_type_elems(sx_graph_type(g, x.factor)) == 1;
    }
    m->in[0] = x.scores->inputs[0];
    m->in[1] = x.scores->inputs[1];
    m->in[2] = root->inputs[1];
    m->n_in = 3;
    if (x.add != NULL) {
        m->in[m->n_in++] = x.mask;
    }
    if (x.scale != NULL) {
        m->in[m->n_in++] = x.factor;
    }
    return fits;
}

/* ---- Running ---- */

static void run_attention(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const attention_data *d = step->data;
    const float *q = sx_cpu_in(step, call, 0), *k = sx_cpu_in(step, call, 1);
    const float *v = sx_cpu_in(step, call, 2);
    const float *mask = d->mask != NULL ? sx_cpu_in(step, call, 3) : NULL;
    const float *scale = d->scale > 0 ? sx_cpu_in(step, call, d->scale) : NULL;
    float *y = sx_cpu_out(step, call, 0), *scores = sx_cpu_at(call, step->scratch);
    float *probabilities = scores + d->block * d->keys;
    for (int64_t p = 0; p < d->products; p++) {
        for (int64_t first = 0; first < d->rows; first += d->block) {
            const int64_t rows = SX_MIN(d->block, d->rows - first);
            sx_dnn_gemm(false, d->tk, rows, d->keys, d->depth, q + d->q[p] + first * d->depth,
                        k + d->k[p], 0, scores);
            for (int64_t i = 0; i < rows * d->keys && scale != NULL; i++) {
                scores[i] *= *scale;
            }
            for (int64_t i = 0; i < rows && mask != NULL; i++) {
                const float *from = mask + d->mask[p] + (first + i) * d->mask_row;
                float *to = scores + i * d->keys;
                for (int64_t j = 0; j < d->keys && d->mask_col == 1; j++) {
                    to[j] += from[j];
                }
                for (int64_t j = 0; j < d->keys && d->mask_col == 0; j++) {
                    to[j] += *from;
                }
            }
            d->vec->softmax(scores, rows, d->keys, probabilities);
            sx_dnn_gemm(false, d->tv, rows, d->width, d->keys, probabilities, v + d->v[p], 0,
                        y + (p * d->rows + first) * d->width);
        }
    }
}

/* Where the matrix of operand `in` begins for each matrix of `whole`; NULL: out of memory. */
static int64_t *offsets_of(const sx_cpu_site *site, const sx_type *in, const sx_type *whole,
                           int64_t products)
{
    int64_t *at = sx_arena_array(&site->plan->arena, products + 1, int64_t);
    sx_type few = *in, all = *whole;
    int64_t size = 1;
    for (int i = 0; i < 2 && few.rank > 0; i++) {
        size *= few.dims[--few.rank];
    }
    all.rank -= 2;
    for (int64_t p = 0; at != NULL && p < products; p++) {
        at[p] = sx_broadcast_offset(&all, &few, p) * size;
    }
    return at;
}

static sx_status prepare_attention(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_graph *g = site->graph;
    attention_data *d = sx_cpu_new(site, attention_data);
    parts x;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    parts_of(site->nodes, site->n_nodes, g, &x);
    sx_dnn_gemm_prepare();
    const sx_type *s = sx_graph_type(g, x.scores->first_output);
    const sx_type *q = &site->in[0], *k = &site->in[1], *v = &site->in[2], *y = &site->out[0];
    *d = (attention_data){.vec = site->vec,
                          .tk = ((const sx_matmul_attrs *)x.scores->attrs)->transpose_b,
                          .tv = ((const sx_matmul_attrs *)x.values->attrs)->transpose_b,
                          .rows = s->dims[s->rank - 2],
                          .keys = s->dims[s->rank - 1],
                          .depth = q->dims[q->rank - 1],
                          .width = y->dims[y->rank - 1]};
    d->products = sx_type_elems(s) / (d->rows * d->keys);
    d->block = SX_MIN(d->rows, SX_MAX(BLOCK_SCORES / d->keys, (int64_t)BLOCK_ROWS));
    d->q = offsets_of(site, q, s, d->products);
    d->k = offsets_of(site, k, s, d->products);
    d->v = offsets_of(site, v, y, d->products);
    if (x.add != NULL) {
        const sx_type *mask = &site->in[3];
        d->mask = offsets_of(site, mask, sx_graph_type(g, x.add->first_output), d->products);
        d->mask_col = mask->dims[mask->rank - 1] > 1 ? 1 : 0;
        d->mask_row =
            mask->rank > 1 && mask->dims[mask->rank - 2] > 1 ? mask->dims[mask->rank - 1] : 0;
    }
    if (d->q == NULL || d->k == NULL || d->v == NULL || (x.add != NULL && d->mask == NULL)) {
        return sx_cpu_no_memory();
    }
    d->scale = x.scale != NULL ? site->n_in - 1 : 0;
    step->onednn = true;
    step->run = run_attention;
    step->data = d;
    step->scratch_bytes = 2 * d->block * d->keys * (int64_t)sizeof(float);
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_attention = {.name = "attention",
                                               .op = SX_OPID_matmul,
                                               .match = match_attention,
                                               .prepare = prepare_attention};
