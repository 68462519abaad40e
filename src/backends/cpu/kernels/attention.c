/* Attention: softmax(q k * scale + mask) v, where scale and mask may be absent, and one number may
 * stand in place of those scores that a condition leaves out. A block of rows of scores at a time,
 * which stays in the second-level cache, so that the matrix of all scores, whose size is quadratic
 * in the length of the text, is never stored.
 *
 * q, k, v and the result may lie there as projections make and read them, [n, tokens, heads,
 * depth], and be transposed for the products: then they are read and written there, and nothing is
 * moved.
 *
 * Where products may be of bfloat16 and the processor has AMX, what they read is rounded here. */
#include "backends/cpu/amx.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn2.h"
#include "base/checked.h"
#include "graph/ops/common.h"

enum {
    BLOCK_SCORES = 32 * 1024, /* of one block, twice: before and after softmax */
    BLOCK_ROWS = 16,          /* at least */
    FEW_SCORES = 2048,        /* simpler kernels take as long */
    FEW_NUMBERS = 16,         /* in a row: tiles would be empty for the most part */
    GRAIN_FLOPS = 1 << 19,    /* for each worker */
};

enum { Q, K, V, Y, MATRICES };

/* The parts of a match, from the result back. */
typedef struct parts {
    const sx_node *values, *softmax, *select, *add, *scale, *scores; /* the middle ones: or NULL */
    const sx_node *moves[MATRICES];                                  /* transpositions, or NULL */
    sx_value mask, factor;
} parts;

/* A stack of matrices. */
typedef struct stack {
    const int64_t *at; /* [products]: where each begins */
    int64_t row;       /* elements from a row to the next */
} stack;

/* A matrix beside the scores, whose rows and columns may repeat. */
typedef struct beside {
    const int64_t *at; /* [products]: where it begins; NULL: there is none */
    int64_t row, col;  /* strides; 0 = repeated */
    int operand;
} beside;

/* scratch, for each part of a call: scores and probabilities of a block; with `amx`, these and the
 * block's rows of q, rounded, and k and v, packed */
typedef struct attention_data {
    const sx_cpu_vec *vec;
    const sx_amx *amx; /* NULL: products in float32 */
    bool tk, tv;       /* k is [keys, depth]; v is [width, keys] */
    int64_t rows, keys, depth, width, block, products;
    stack stacks[MATRICES];
    beside mask, condition;          /* of numbers, of bools */
    bool keeps;                      /* scores for which the condition holds, else the others */
    int scale, other;                /* operands, 0 = none */
    int64_t rounded_at, part_floats; /* of scratch */
} attention_data;

typedef struct operands {
    const float *q, *k, *v, *mask, *scale, *other; /* the last three: or NULL */
    const uint8_t *condition;                      /* or NULL */
    float *y;
} operands;

static int64_t blocks_of(const attention_data *d)
{
    return (d->rows + d->block - 1) / d->block;
}

/* ---- Matching ---- */

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

/* Which operand of select may be the scores: the other is one number. */
static int kept_by(const sx_graph *g, const sx_node *n)
{
    return sx_type_elems(sx_graph_type(g, n->inputs[1])) > 1 ? 1 : 2;
}

/* The parts among the nodes, which the match has claimed in this order: the products of values and
 * of scores, with what is between them, and transpositions. */
static void parts_of(const sx_node *const *nodes, int n_nodes, const sx_graph *g, parts *out)
{
    *out = (parts){0};
    for (int i = 0; i < n_nodes; i++) {
        const sx_node *n = nodes[i];
        const sx_value y = n->first_output;
        if (n->op->id == SX_OPID_softmax) {
            out->softmax = n;
        } else if (n->op->id == SX_OPID_select) {
            out->select = n;
        } else if (n->op->id == SX_OPID_add) {
            out->add = n;
            out->mask = n->inputs[beside_scores(g, n)];
        } else if (n->op->id == SX_OPID_mul) {
            out->scale = n;
            out->factor = n->inputs[beside_scores(g, n)];
        } else if (n->op->id == SX_OPID_matmul) {
            *(out->values == NULL ? &out->values : &out->scores) = n;
        } else if (out->values == NULL) {
            out->moves[Y] = n;
        } else {
            const int what = y.id == out->values->inputs[1].id   ? V
                             : y.id == out->scores->inputs[0].id ? Q
                                                                 : K;
            out->moves[what] = n;
        }
    }
}

/* Whether `n` is a transposition by which heads and tokens change places: [n, a, b, c] becomes
 * [n, b, a, c], or [n, b, c, a] if `columns`. */
static bool moves_heads(const sx_node *n, bool columns)
{
    const sx_transpose_attrs *attrs = n->attrs;
    const int64_t *p = attrs->perm.v;
    return n->op->id == SX_OPID_transpose && attrs->perm.n == 4 && p[0] == 0 && p[1] == 2 &&
           p[2] == (columns ? 3 : 1) && p[3] == (columns ? 1 : 3);
}

/* Claims the transposition that makes operand `i` of a product; *operand becomes what it reads. */
static void claim_move(sx_cpu_match *m, const sx_node *product, int i, sx_value *operand)
{
    const sx_matmul_attrs *attrs = product->attrs;
    const int k = sx_cpu_claimable(m, product->inputs[i], SX_OPID_transpose);
    const sx_node *n = k < 0 ? NULL : &m->graph->nodes[k];
    *operand = product->inputs[i];
    if (n != NULL &&
        (moves_heads(n, false) || (i == 1 && !attrs->transpose_b && moves_heads(n, true)))) {
        sx_cpu_claim(m, k);
        *operand = n->inputs[0];
    }
}

/* Whether both products are of as many matrices as they make, so that none is read for several. */
static bool one_by_one(const sx_graph *g, const parts *x)
{
    const sx_node *products[] = {x->values, x->scores};
    bool all = true;
    for (int i = 0; i < 2; i++) {
        const sx_type *y = sx_graph_type(g, products[i]->first_output);
        for (int k = 0; k < 2; k++) {
            const sx_type *in = sx_graph_type(g, products[i]->inputs[k]);
            all = all && y->rank == 4 && in->rank == 4 && in->dims[0] == y->dims[0] &&
                  in->dims[1] == y->dims[1];
        }
    }
    return all;
}

/* The product of `values`, a node of the match, and what makes its scores. */
static bool match_product(sx_cpu_match *m, const sx_node *values)
{
    const sx_graph *g = m->graph;
    const sx_node *n;
    const sx_matmul_attrs *attrs = values->attrs;
    const sx_type *p = sx_graph_type(g, values->inputs[0]);
    const sx_node *claimed[SX_CPU_MAX_NODES];
    parts x;
    if (attrs->transpose_a || !sx_cpu_is_f32(m, m->out[0]) ||
        (n = sx_cpu_claim_maker(m, sx_cpu_behind_views(m, values->inputs[0]), SX_OPID_softmax)) ==
            NULL) {
        return false;
    }
    static const int optional[] = {SX_OPID_select, SX_OPID_add, SX_OPID_mul};
    sx_value v = sx_cpu_behind_views(m, n->inputs[0]);
    for (int i = 0; i < (int)SX_COUNT(optional); i++) {
        if ((n = sx_cpu_claim_maker(m, v, optional[i])) == NULL) {
            continue;
        }
        const bool selects = n->op->id == SX_OPID_select;
        v = n->inputs[selects ? kept_by(g, n) : 1 - beside_scores(g, n)];
        v = sx_cpu_behind_views(m, v);
    }
    if (sx_cpu_claim_maker(m, v, SX_OPID_matmul) == NULL) {
        return false;
    }
    for (int i = 0; i < m->n_nodes; i++) {
        claimed[i] = sx_cpu_node(m, i);
    }
    parts_of(claimed, m->n_nodes, g, &x);
    const sx_type *s = sx_graph_type(g, x.scores->first_output);
    const sx_type *q = sx_graph_type(g, x.scores->inputs[0]);
    const sx_type *y = sx_graph_type(g, values->first_output);
    bool fits = !((const sx_matmul_attrs *)x.scores->attrs)->transpose_a && same_matrices(s, p) &&
                same_matrices(s, sx_graph_type(g, x.softmax->first_output)) &&
                sx_type_elems(y) > 0 && sx_type_elems(q) > 0 &&
                s->dims[s->rank - 1] * s->dims[s->rank - 2] > FEW_SCORES;
    if (x.select != NULL) {
        const int kept = kept_by(g, x.select);
        fits = fits && same_matrices(s, sx_graph_type(g, x.select->first_output)) &&
               same_matrices(s, sx_graph_type(g, x.select->inputs[kept])) &&
               sx_type_elems(sx_graph_type(g, x.select->inputs[3 - kept])) == 1 &&
               sx_graph_type(g, x.select->inputs[0])->rank >= 1;
    }
    if (x.add != NULL) {
        const sx_type *mask = sx_graph_type(g, x.mask);
        fits = fits && same_matrices(s, sx_graph_type(g, x.add->first_output)) &&
               mask->dtype == SX_F32 && mask->rank >= 1;
    }
    if (x.scale != NULL) {
        fits = fits && same_matrices(s, sx_graph_type(g, x.scale->first_output)) &&
               sx_type_elems(sx_graph_type(g, x.factor)) == 1;
    }
    m->in[Q] = x.scores->inputs[0];
    m->in[K] = x.scores->inputs[1];
    m->in[V] = values->inputs[1];
    if (fits && one_by_one(g, &x)) {
        claim_move(m, x.scores, 0, &m->in[Q]);
        claim_move(m, x.scores, 1, &m->in[K]);
        claim_move(m, values, 1, &m->in[V]);
    }
    m->n_in = 3;
    if (x.select != NULL) {
        m->in[m->n_in++] = x.select->inputs[0];
        m->in[m->n_in++] = x.select->inputs[3 - kept_by(g, x.select)];
    }
    if (x.add != NULL) {
        m->in[m->n_in++] = x.mask;
    }
    if (x.scale != NULL) {
        m->in[m->n_in++] = x.factor;
    }
    return fits && (x.moves[Y] == NULL || one_by_one(g, &x));
}

static bool match_attention(sx_cpu_match *m)
{
    return match_product(m, sx_cpu_node(m, 0));
}

/* With the transposition of the result. */
static bool match_attention_moved(sx_cpu_match *m)
{
    const sx_node *root = sx_cpu_node(m, 0);
    const sx_node *values =
        moves_heads(root, false) ? sx_cpu_claim_maker(m, root->inputs[0], SX_OPID_matmul) : NULL;
    return values != NULL && match_product(m, values);
}

/* ---- Running ---- */

/* 16-bit numbers of scratch for rounded rows of q or probabilities, and for packed k or v. */
static int64_t rounded_rows(const attention_data *d)
{
    return sx_amx_padded(d->block, SX_AMX_ROWS) *
           sx_amx_padded(SX_MAX(d->depth, d->keys), SX_AMX_DEPTH);
}

static int64_t packed_matrix(const attention_data *d)
{
    const int64_t k = sx_amx_padded(d->keys, SX_AMX_ROWS) * sx_amx_padded(d->depth, SX_AMX_DEPTH),
                  v = sx_amx_padded(d->width, SX_AMX_ROWS) * sx_amx_padded(d->keys, SX_AMX_DEPTH);
    return SX_MAX(k, v);
}

/* Scores of bfloat16 operands. */
static void multiply_rounded(const attention_data *d, const sx_dnn_product *p, uint16_t *rounded)
{
    uint16_t *packed = rounded + rounded_rows(d);
    d->amx->round_rows(p->a, p->a_row, p->m, p->k, p->alpha != NULL ? *p->alpha : 1, rounded);
    d->amx->pack(p->b, p->b_row, p->tb, p->k, p->n, packed);
    d->amx->multiply(rounded, packed, p->m, p->n, p->k, p->c, p->c_row);
}

/* Values of bfloat16 by the softmax of scores; `sums`: scratch for one of each row. */
static void attend_rounded(const attention_data *d, const sx_dnn_product *p, const float *scores,
                           float *sums, uint16_t *rounded)
{
    uint16_t *packed = rounded + rounded_rows(d);
    d->amx->softmax(scores, p->m, p->k, rounded, sums);
    d->amx->pack(p->b, p->b_row, p->tb, p->k, p->n, packed);
    d->amx->multiply(rounded, packed, p->m, p->n, p->k, p->c, p->c_row);
    d->amx->divide(sums, p->m, p->n, p->c, p->c_row);
}

/* Rows [first, first + rows) of matrix p. `scores`: the part's scratch. */
static void attend(const attention_data *d, const operands *o, int64_t p, int64_t first,
                   int64_t rows, float *scores)
{
    const stack *q = &d->stacks[Q], *k = &d->stacks[K], *v = &d->stacks[V], *y = &d->stacks[Y];
    float *probabilities = scores + d->block * d->keys;
    uint16_t *rounded = (uint16_t *)(void *)(scores + d->rounded_at);
    const sx_dnn_product score = {.tb = d->tk,
                                  .m = rows,
                                  .n = d->keys,
                                  .k = d->depth,
                                  .a = o->q + q->at[p] + first * q->row,
                                  .a_row = q->row,
                                  .b = o->k + k->at[p],
                                  .b_row = k->row,
                                  .alpha = o->scale,
                                  .c = scores,
                                  .c_row = d->keys};
    const sx_dnn_product value = {.tb = d->tv,
                                  .m = rows,
                                  .n = d->width,
                                  .k = d->keys,
                                  .a = probabilities,
                                  .a_row = d->keys,
                                  .b = o->v + v->at[p],
                                  .b_row = v->row,
                                  .c = o->y + y->at[p] + first * y->row,
                                  .c_row = y->row};
    if (d->amx != NULL) {
        multiply_rounded(d, &score, rounded);
    } else {
        sx_dnn_gemm_part(&score, 0, rows, 0, d->keys);
    }
    for (int64_t i = 0; i < rows && o->mask != NULL; i++) {
        const float *from = o->mask + d->mask.at[p] + (first + i) * d->mask.row;
        float *to = scores + i * d->keys;
        for (int64_t j = 0; j < d->keys && d->mask.col == 1; j++) {
            to[j] += from[j];
        }
        for (int64_t j = 0; j < d->keys && d->mask.col == 0; j++) {
            to[j] += *from;
        }
    }
    for (int64_t i = 0; i < rows && o->condition != NULL; i++) {
        const uint8_t *from = o->condition + d->condition.at[p] + (first + i) * d->condition.row;
        const float other = *o->other;
        float *to = scores + i * d->keys;
        for (int64_t j = 0; j < d->keys; j++) {
            to[j] = (from[j * d->condition.col] != 0) == d->keeps ? to[j] : other;
        }
    }
    if (d->amx != NULL) {
        attend_rounded(d, &value, scores, probabilities, rounded);
        return;
    }
    d->vec->softmax(scores, rows, d->keys, probabilities);
    sx_dnn_gemm_part(&value, 0, rows, 0, d->width);
}

/* Blocks of rows of all matrices [begin, end). */
static void run_attention(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const attention_data *d = step->data;
    const operands o = {
        .q = sx_cpu_in(step, call, 0),
        .k = sx_cpu_in(step, call, 1),
        .v = sx_cpu_in(step, call, 2),
        .mask = d->mask.at != NULL ? sx_cpu_in(step, call, d->mask.operand) : NULL,
        .condition = d->condition.at != NULL ? sx_cpu_in(step, call, d->condition.operand) : NULL,
        .other = d->other > 0 ? sx_cpu_in(step, call, d->other) : NULL,
        .scale = d->scale > 0 ? sx_cpu_in(step, call, d->scale) : NULL,
        .y = sx_cpu_out(step, call, 0)};
    float *scratch = sx_cpu_at(call, step->scratch);
    const int64_t blocks = blocks_of(d);
    for (int64_t u = call->begin / SX_CPU_SPLIT; u < call->end / SX_CPU_SPLIT; u++) {
        const int64_t first = u % blocks * d->block;
        attend(d, &o, u / blocks, first, SX_MIN(d->block, d->rows - first),
               scratch + call->part * d->part_floats);
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

/* Operand `what`, whose matrices lie one after another and have rows of `row` elements; or, if it
 * has been moved, token by token. */
static sx_status lay_out(const sx_cpu_site *site, const parts *x, int what, const sx_type *type,
                         const sx_type *whole, attention_data *d)
{
    if (x->moves[what] == NULL) {
        d->stacks[what] =
            (stack){offsets_of(site, type, whole, d->products), type->dims[type->rank - 1]};
        return d->stacks[what].at != NULL ? SX_OK : sx_cpu_no_memory();
    }
    int64_t *at = sx_arena_array(&site->plan->arena, d->products + 1, int64_t);
    const int64_t heads = type->dims[2], row = heads * type->dims[3];
    for (int64_t p = 0; p < d->products && at != NULL; p++) {
        at[p] = p / heads * type->dims[1] * row + p % heads * type->dims[3];
    }
    d->stacks[what] = (stack){at, row};
    return at != NULL ? SX_OK : sx_cpu_no_memory();
}

/* Operand `i`, which is beside the scores of a node whose result has type `whole`. */
static sx_status lay_beside(const sx_cpu_site *site, int i, const sx_type *whole, int64_t products,
                            beside *out)
{
    const sx_type *type = &site->in[i];
    *out = (beside){
        .at = offsets_of(site, type, whole, products),
        .row = type->rank > 1 && type->dims[type->rank - 2] > 1 ? type->dims[type->rank - 1] : 0,
        .col = type->dims[type->rank - 1] > 1 ? 1 : 0,
        .operand = i};
    return out->at != NULL ? SX_OK : sx_cpu_no_memory();
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
    const sx_type *y = sx_graph_type(g, x.values->first_output);
    const bool k_by_depth = x.moves[K] != NULL && moves_heads(x.moves[K], true);
    const bool v_by_width = x.moves[V] != NULL && moves_heads(x.moves[V], true);
    *d = (attention_data){
        .vec = site->vec,
        .tk = ((const sx_matmul_attrs *)x.scores->attrs)->transpose_b || k_by_depth,
        .tv = ((const sx_matmul_attrs *)x.values->attrs)->transpose_b || v_by_width,
        .rows = s->dims[s->rank - 2],
        .keys = s->dims[s->rank - 1],
        .depth = site->in[Q].dims[site->in[Q].rank - 1],
        .width = y->dims[y->rank - 1]};
    d->products = sx_type_elems(s) / (d->rows * d->keys);
    d->block = SX_MIN(d->rows, SX_MAX(BLOCK_SCORES / d->keys, (int64_t)BLOCK_ROWS));
    SX_TRY(lay_out(site, &x, Q, &site->in[Q], s, d));
    SX_TRY(lay_out(site, &x, K, &site->in[K], s, d));
    SX_TRY(lay_out(site, &x, V, &site->in[V], y, d));
    SX_TRY(lay_out(site, &x, Y, &site->out[0], y, d));
    if (x.select != NULL) {
        SX_TRY(lay_beside(site, 3, sx_graph_type(g, x.select->first_output), d->products,
                          &d->condition));
        d->keeps = kept_by(g, x.select) == 1;
        d->other = 4;
    }
    if (x.add != NULL) {
        SX_TRY(lay_beside(site, x.select != NULL ? 5 : 3, sx_graph_type(g, x.add->first_output),
                          d->products, &d->mask));
    }
    d->scale = x.scale != NULL ? site->n_in - 1 : 0;
    const int workers = site->plan->team ? site->plan->workers : 1;
    const double flops = 2.0 * (double)d->block * (double)d->keys * (double)(d->depth + d->width);
    step->onednn = workers == 1;
    step->run = run_attention;
    step->data = d;
    step->range = d->products * blocks_of(d) * SX_CPU_SPLIT;
    step->grain = workers > 1 ? (int64_t)(GRAIN_FLOPS / flops * SX_CPU_SPLIT) + 1 : step->range + 1;
    d->amx = site->plan->rounds && SX_MIN(d->depth, d->width) >= FEW_NUMBERS &&
                     SX_MIN(d->rows, d->keys) >= FEW_NUMBERS
                 ? sx_amx_find()
                 : NULL;
    d->rounded_at =
        sx_cpu_round_up(2 * d->block * d->keys * (int64_t)sizeof(float)) / (int64_t)sizeof(float);
    d->part_floats = d->rounded_at;
    if (d->amx != NULL) {
        site->plan->bf16 = step->bf16 = true;
        step->kernel = "attention amx_bf16";
        d->part_floats += (rounded_rows(d) + packed_matrix(d) + 1) / 2;
    }
    d->part_floats =
        sx_cpu_round_up(d->part_floats * (int64_t)sizeof(float)) / (int64_t)sizeof(float);
    step->scratch_bytes = workers * d->part_floats * (int64_t)sizeof(float);
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_attention = {.name = "attention",
                                               .op = SX_OPID_matmul,
                                               .match = match_attention,
                                               .prepare = prepare_attention};
const sx_cpu_kernel sx_cpu_kernel_attention_moved = {.name = "attention",
                                                     .op = SX_OPID_transpose,
                                                     .match = match_attention_moved,
                                                     .prepare = prepare_attention};
