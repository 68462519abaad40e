/* Elementwise operators: a node takes along the elementwise producers that only it reads, and all
 * of them become one pass over memory (the tape of vec.h).
 *
 * A batch norm is elementwise too, once the factors of each channel are known:
 *
 *   batch_norm(_train)            y  = (x - mean) a + offset          a = s scale
 *   batch_norm_train_grad_input   dx = (x - mean) b + c + dy a        b = -a s dscale / M,
 *                                                                     c = -a doffset / M
 *
 * so that batch norm, shortcut and relu of a residual network are one pass. The mean is subtracted
 * first: x a + (offset - mean a) would lose as many digits as |mean| is greater than the deviation.
 * The factors are computed at the start of a call, in scratch; with mean and offset they are the
 * tape's last inputs. */
#include "backends/cpu/kernels/elementwise.h"

#include <math.h>

/* ---- Listing ---- */

typedef enum form { FORM_PLAIN, FORM_NORM, FORM_NORM_GRAD, FORM_REPEAT } form;

/* One row per operator: how many inputs the tape reads element by element, how many vectors of the
 * channels follow them, how many inputs of the tape those become, and in how many operations. */
typedef struct op_row {
    int op;
    form form;
    sx_vec_code code;
    int operands, stats, folded, ops;
} op_row;

static const op_row rows[] = {
#define MAP(name, dtypes, tf, expression) {SX_OPID_##name, FORM_PLAIN, SX_VEC_##name, 1, 0, 0, 1},
#define ZIP(name, dtypes, tf, expression) {SX_OPID_##name, FORM_PLAIN, SX_VEC_##name, 2, 0, 0, 1},
#include "graph/elementwise.def"
#undef MAP
#undef ZIP
    {SX_OPID_batch_norm, FORM_NORM, SX_VEC_NORM, 1, 4, 3, 1},
    {SX_OPID_batch_norm_train, FORM_NORM, SX_VEC_NORM, 1, 4, 3, 1},
    {SX_OPID_batch_norm_train_grad_input, FORM_NORM_GRAD, SX_VEC_NORM_GRAD, 2, 6, 4, 1},
    {SX_OPID_broadcast_to, FORM_REPEAT, SX_VEC_CODES, 1, 0, 0, 0},
};

static const op_row *row_of(const sx_node *n)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == n->op->id) {
            const bool loops =
                rows[i].form != FORM_PLAIN || sx_cpu_vec_best()->loops[rows[i].code] != NULL;
            return loops ? &rows[i] : NULL;
        }
    }
    return NULL;
}

/* How an operand repeats in the output. */
typedef struct access {
    bool possible;
    int64_t period, repeat, block; /* as sx_vec_tape */
} access;

/* `in` is out's last dimensions, again and again, or its first, each element again and again, or it
 * lacks dimensions in between; other broadcasts the tape cannot. */
static access access_of(const sx_type *in, const sx_type *out)
{
    int64_t elems = sx_type_elems(in), total = sx_type_elems(out), tail = 1, head = 1;
    int begin = 0, end = out->rank;
    if (elems == total) {
        return (access){.possible = true};
    }
    if (elems == 0 || total == 0) {
        return (access){.possible = false};
    }
    for (int at = in->rank - 1; end > 0 && at >= 0 && tail != elems; at--, end--) {
        if (in->dims[at] != out->dims[end - 1]) {
            break;
        }
        tail *= in->dims[at];
    }
    if (tail == elems) {
        return (access){.possible = true, .period = elems};
    }
    for (; begin < end && head != elems && in->rank == out->rank; begin++) {
        if (in->dims[begin] != out->dims[begin]) {
            break;
        }
        head *= in->dims[begin];
    }
    if (head == elems) {
        return (access){.possible = true, .repeat = total / elems};
    }
    return (access){.possible = head * tail == elems, .period = tail, .block = total / head};
}

/* ---- Matching ---- */

typedef struct group {
    sx_cpu_match *m;
    int first_node; /* of the match's */
    const sx_type *out;
    sx_value inputs[SX_VEC_INPUTS]; /* of the tape */
    access access[SX_VEC_INPUTS];
    sx_value stats[SX_VEC_INPUTS * 4]; /* what is folded, node after node in order of claiming */
    int n_in, n_stats, n_folded, n_ops;
    int64_t period; /* the one above 1, or 1 */
    int64_t block;  /* or 0 */
} group;

enum { MAX_STATS = SX_VEC_INPUTS * 4 };

static bool set_period(group *g, int64_t period)
{
    if (period > 1 && g->period > 1 && g->period != period) {
        return false;
    }
    g->period = period > 1 ? period : g->period;
    return true;
}

static bool set_block(group *g, int64_t block)
{
    if (block > 0 && g->block > 0 && g->block != block) {
        return false;
    }
    g->block = block > 0 ? block : g->block;
    return true;
}

static bool add_input(group *g, sx_value v)
{
    for (int i = 0; i < g->n_in; i++) {
        if (g->inputs[i].id == v.id) {
            return true;
        }
    }
    access a = access_of(sx_graph_type(g->m->graph, v), g->out);
    if (!a.possible || !sx_cpu_is_f32(g->m, v) || !set_period(g, a.period) ||
        !set_block(g, a.block) || g->n_in + g->n_folded >= SX_VEC_INPUTS) {
        return false;
    }
    g->inputs[g->n_in] = v;
    g->access[g->n_in++] = a;
    return true;
}

/* The node's inputs become the group's; false leaves the group spoilt. */
static bool add_node(group *g, const sx_node *n)
{
    const op_row *row = row_of(n);
    const sx_type *y = row == NULL ? NULL : sx_graph_type(g->m->graph, n->first_output);
    if (row == NULL || y->dtype != SX_F32 || sx_type_elems(y) != sx_type_elems(g->out)) {
        return false;
    }
    g->n_ops += row->ops;
    if (g->n_ops > SX_VEC_TAPE || g->n_stats + row->stats > MAX_STATS) {
        return false;
    }
    for (int i = 0; i < row->operands; i++) {
        if (!add_input(g, n->inputs[i])) {
            return false;
        }
    }
    for (int i = 0; i < row->stats; i++) {
        g->stats[g->n_stats++] = n->inputs[row->operands + i];
    }
    g->n_folded += row->folded;
    return (row->folded == 0 || set_period(g, y->dims[y->rank - 1])) &&
           g->n_in + g->n_folded <= SX_VEC_INPUTS;
}

static bool write_tape(const sx_graph *g, const int *nodes, int n_nodes, const sx_value *in,
                       int n_in, sx_vec_tape *out);

/* The producer of input `at` joins, if all fits; else the group is as before. */
static bool try_join(group *g, int at)
{
    sx_vec_tape tape;
    group saved = *g;
    int k = g->access[at].period != 0 || g->access[at].repeat != 0
                ? -1
                : sx_cpu_claimable(g->m, g->inputs[at], -1);
    if (k < 0) {
        return false;
    }
    g->inputs[at] = g->inputs[--g->n_in];
    g->access[at] = g->access[g->n_in];
    sx_cpu_claim(g->m, k);
    if (add_node(g, &g->m->graph->nodes[k]) &&
        write_tape(g->m->graph, g->m->nodes + g->first_node, g->m->n_nodes - g->first_node,
                   g->inputs, g->n_in, &tape)) {
        return true;
    }
    *g = saved;
    g->m->n_nodes--;
    return false;
}

/* The group of the match's last node. */
static bool gather(sx_cpu_match *m)
{
    const sx_node *root = sx_cpu_node(m, m->n_nodes - 1);
    group g = {.m = m,
               .first_node = m->n_nodes - 1,
               .out = sx_graph_type(m->graph, root->first_output),
               .period = 1};
    if (!add_node(&g, root) || g.n_ops == 0) {
        return false;
    }
    for (int i = 0; i < g.n_in;) {
        i = try_join(&g, i) ? 0 : i + 1;
    }
    for (int i = 0; i < g.n_in; i++) {
        bool whole = g.access[i].period == 0 && g.access[i].repeat == 0;
        m->in_place |= whole ? 1u << m->n_in : 0;
        m->in[m->n_in++] = g.inputs[i];
    }
    for (int i = 0; i < g.n_stats; i++) {
        m->in[m->n_in++] = g.stats[i];
    }
    return true;
}

bool sx_cpu_match_group(sx_cpu_match *m, int k)
{
    sx_cpu_claim(m, k);
    return gather(m);
}

static bool match_elementwise(sx_cpu_match *m)
{
    m->n_in = 0;
    return gather(m);
}

/* ---- The tape ---- */

typedef struct tape_writer {
    const sx_graph *g;
    const sx_value *in;
    int n_in, n_all; /* n_all: with the folded vectors */
    sx_value made[SX_CPU_MAX_NODES];
    int slot[SX_CPU_MAX_NODES]; /* of made[] */
    int n_made;
    bool busy[SX_VEC_TEMPS];
    sx_vec_tape *tape;
    bool failed;
} tape_writer;

static int slot_of(const tape_writer *w, sx_value v)
{
    for (int i = 0; i < w->n_in; i++) {
        if (w->in[i].id == v.id) {
            return i;
        }
    }
    for (int i = 0; i < w->n_made; i++) {
        if (w->made[i].id == v.id) {
            return w->slot[i];
        }
    }
    return -1;
}

/* dst = code(a, b); a and b are free again if they are temporaries (each value of a group has one
 * reader), unless kept. Returns dst. */
static int emit(tape_writer *w, sx_vec_code code, int a, int b, int vectors)
{
    int dst = -1;
    if (a < 0 || b < 0 || w->tape->n_ops == SX_VEC_TAPE) {
        w->failed = true;
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        int s = i == 0 ? a : b;
        if (s >= w->n_all) {
            w->busy[s - w->n_all] = false;
        }
    }
    for (int i = 0; i < SX_VEC_TEMPS && dst < 0; i++) {
        dst = w->busy[i] ? -1 : w->n_all + i;
    }
    if (dst < 0) {
        w->failed = true;
        return -1;
    }
    w->busy[dst - w->n_all] = true;
    w->tape->ops[w->tape->n_ops++] =
        (sx_vec_op){(uint8_t)code, (uint8_t)dst, (uint8_t)a, (uint8_t)b, (uint8_t)vectors};
    return dst;
}

/* `folded`: the slot of the node's first folded vector. */
static void write_node(tape_writer *w, const sx_node *n, int folded)
{
    const op_row *row = row_of(n);
    const int a = slot_of(w, n->inputs[0]);
    const int b = row->operands > 1 ? slot_of(w, n->inputs[1]) : a;
    w->made[w->n_made] = n->first_output;
    w->slot[w->n_made++] = row->form == FORM_REPEAT ? a : emit(w, row->code, a, b, folded);
}

/* Nodes in program order; the folded vectors of nodes[i] lie in the order of nodes[]. */
static bool write_tape(const sx_graph *g, const int *nodes, int n_nodes, const sx_value *in,
                       int n_in, sx_vec_tape *out)
{
    int first[SX_CPU_MAX_NODES], all = n_in;
    for (int i = 0; i < n_nodes; i++) {
        first[i] = all;
        all += row_of(&g->nodes[nodes[i]])->folded;
    }
    *out = (sx_vec_tape){.n_in = all};
    tape_writer w = {.g = g, .in = in, .n_in = n_in, .n_all = all, .tape = out};
    for (int done = -1, count = 0; count < n_nodes && !w.failed; count++) {
        int next = -1;
        for (int i = 0; i < n_nodes; i++) {
            if (nodes[i] > done && (next < 0 || nodes[i] < nodes[next])) {
                next = i;
            }
        }
        done = nodes[next];
        write_node(&w, &g->nodes[done], first[next]);
    }
    return !w.failed;
}

/* ---- Running ---- */

/* stats: scale, offset, mean, variance */
static void fold_norm(const float *const *stat, float epsilon, int64_t channels, float *a)
{
    for (int64_t k = 0; k < channels; k++) {
        a[k] = stat[0][k] / sqrtf(stat[3][k] + epsilon);
    }
}

/* stats: mean, variance, scale, dscale, doffset, count */
static void fold_norm_grad(const float *const *stat, float epsilon, int64_t channels, float *a,
                           float *b, float *c)
{
    float count = stat[5][0];
    for (int64_t k = 0; k < channels; k++) {
        float s = 1 / sqrtf(stat[1][k] + epsilon);
        a[k] = s * stat[2][k];
        b[k] = -a[k] * s * stat[3][k] / count;
        c[k] = -a[k] * stat[4][k] / count;
    }
}

void sx_cpu_begin_group(const sx_cpu_group *g, const sx_cpu_step *step, const sx_cpu_call *call,
                        float *scratch, const float **in)
{
    for (int i = 0; i < g->n_in; i++) {
        in[i] = sx_cpu_in(step, call, g->first_in + i);
    }
    for (int i = 0, at = g->n_in; i < g->n_norms; i++) {
        const sx_cpu_folded *n = &g->norms[i];
        const float *stat[6] = {NULL};
        for (int k = 0; k < (n->gradient ? 6 : 4); k++) {
            stat[k] = sx_cpu_in(step, call, n->stat + k);
        }
        float *a = scratch, *b = a + g->channels, *c = b + g->channels;
        if (!n->gradient) {
            fold_norm(stat, n->epsilon, g->channels, a);
            in[at++] = stat[2];
            in[at++] = a;
            in[at++] = stat[1];
            scratch = b;
        } else {
            fold_norm_grad(stat, n->epsilon, g->channels, a, b, c);
            in[at++] = stat[0];
            in[at++] = b;
            in[at++] = c;
            in[at++] = a;
            scratch = c + g->channels;
        }
    }
}

static void set_access(const sx_cpu_site *site, const sx_type *out, sx_cpu_group *g)
{
    for (int i = 0; i < g->tape.n_in; i++) {
        if (i < g->n_in) {
            access a = access_of(&site->in[g->first_in + i], out);
            g->tape.period[i] = a.period;
            g->tape.repeat[i] = a.repeat;
            g->tape.block[i] = a.block;
            g->tape.narrow[i] = (site->narrow_in >> (g->first_in + i) & 1) != 0;
        } else {
            g->tape.period[i] = g->channels;
        }
    }
}

sx_status sx_cpu_prepare_group(const sx_cpu_site *site, int first_node, int first_in,
                               const sx_type *out, bool narrow, sx_cpu_group *g)
{
    int nodes[SX_CPU_MAX_NODES], stats = 0;
    *g = (sx_cpu_group){.first_in = first_in,
                        .channels = out->rank > 0 ? out->dims[out->rank - 1] : 1,
                        .elems = sx_type_elems(out)};
    for (int i = first_node; i < site->n_nodes; i++) {
        nodes[i] = (int)(site->nodes[i] - site->graph->nodes);
        stats += row_of(site->nodes[i])->stats;
    }
    g->n_in = site->n_in - first_in - stats;
    for (int i = first_node, stat = first_in + g->n_in; i < site->n_nodes; i++) {
        const op_row *row = row_of(site->nodes[i]);
        if (row->stats > 0) {
            const sx_batch_norm_attrs *a = site->nodes[i]->attrs;
            g->norms[g->n_norms++] =
                (sx_cpu_folded){row->form == FORM_NORM_GRAD, stat, (float)a->epsilon};
            stat += row->stats;
        }
    }
    if (!write_tape(site->graph, nodes + first_node, site->n_nodes - first_node,
                    site->values_in + first_in, g->n_in, &g->tape)) {
        return sx_error(SX_INTERNAL, "a fused group does not fit the tape");
    }
    set_access(site, out, g);
    g->tape.narrow_out = narrow;
    sx_vec_tape *t = &g->tape;
    if (narrow && t->n_ops > 1 && t->ops[t->n_ops - 1].code == SX_VEC_round_bf16 &&
        t->ops[t->n_ops - 1].a == t->ops[t->n_ops - 2].dst) {
        t->n_ops--; /* to be written in 2 bytes it is rounded in any case */
    }
    g->scratch_bytes = g->n_norms * 3 * g->channels * (int64_t)sizeof(float);
    return SX_OK;
}

typedef struct elementwise_data {
    const sx_cpu_vec *vec;
    sx_cpu_group group;
} elementwise_data;

static void run_elementwise(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const elementwise_data *d = step->data;
    const bool whole = d->group.n_norms > 0; /* the scratch is one call's */
    const int64_t begin = whole ? 0 : call->begin, end = whole ? d->group.elems : call->end;
    const float *in[SX_VEC_INPUTS];
    sx_cpu_begin_group(&d->group, step, call, whole ? sx_cpu_at(call, step->scratch) : NULL, in);
    d->vec->tape(&d->group.tape, in, sx_cpu_group_at(&d->group, sx_cpu_out(step, call, 0), begin),
                 begin, end);
}

static sx_status prepare_elementwise(const sx_cpu_site *site, sx_cpu_step *step)
{
    elementwise_data *d = sx_cpu_new(site, elementwise_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    SX_TRY(sx_cpu_prepare_group(site, 0, 0, &site->out[0], site->narrow_out, &d->group));
    step->run = run_elementwise;
    step->data = d;
    step->range = d->group.n_norms > 0 ? 0 : d->group.elems;
    step->scratch_bytes = d->group.scratch_bytes;
    return SX_OK;
}

#define ROW(op_name)                                                               \
    const sx_cpu_kernel sx_cpu_kernel_##op_name = {.name = "elementwise",          \
                                                   .op = SX_OPID_##op_name,        \
                                                   .match = match_elementwise,     \
                                                   .prepare = prepare_elementwise, \
                                                   .narrow_in_place = true,        \
                                                   .narrow_out = true};
#define MAP(name, dtypes, tf, expression) ROW(name)
#define ZIP(name, dtypes, tf, expression) ROW(name)
#include "graph/elementwise.def"
#undef MAP
#undef ZIP
ROW(batch_norm)
ROW(batch_norm_train)
ROW(batch_norm_train_grad_input)

/* ---- A broadcast on its own ---- */

/* out [a, b, c] from in [a, 1, c] */
typedef struct broadcast_data {
    int64_t a, b, bytes; /* bytes of c elements */
} broadcast_data;

static bool broadcast_of(const sx_type *in, const sx_type *out, broadcast_data *d)
{
    int64_t part[3] = {1, 1, 1};
    int at = 0; /* which of a, b, c, from the last */
    for (int i = 0; i < out->rank; i++) {
        int k = in->rank - 1 - i;
        int64_t from = k < 0 ? 1 : in->dims[k], to = out->dims[out->rank - 1 - i];
        bool same = from == to;
        if (to != 1 && at == 0 && !same) {
            at = 1;
        } else if (to != 1 && at == 1 && same) {
            at = 2;
        } else if (to != 1 && at == 2 && !same) {
            return false;
        }
        part[at] *= to;
    }
    *d = (broadcast_data){part[2], part[1], part[0] * (int64_t)sx_dtype_bytes(out->dtype)};
    return true;
}

static bool match_broadcast(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    broadcast_data d;
    return broadcast_of(sx_graph_type(m->graph, n->inputs[0]),
                        sx_graph_type(m->graph, n->first_output), &d);
}

static void run_broadcast(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const broadcast_data *d = step->data;
    const char *in = sx_cpu_in(step, call, 0);
    char *out = sx_cpu_out(step, call, 0);
    for (int64_t a = 0; a < d->a; a++, in += d->bytes) {
        if (d->bytes == 4) {
            uint32_t v, *to = (void *)out;
            memcpy(&v, in, sizeof(v));
            for (int64_t b = 0; b < d->b; b++) {
                to[b] = v;
            }
            out += d->b * d->bytes;
            continue;
        }
        if (d->bytes > 0 && d->b > 0) {
            memcpy(out, in, (size_t)d->bytes);
            sx_cpu_repeat(out, (size_t)d->bytes, (size_t)(d->b * d->bytes));
        }
        out += d->b * d->bytes;
    }
}

static sx_status prepare_broadcast(const sx_cpu_site *site, sx_cpu_step *step)
{
    broadcast_data *d = sx_cpu_new(site, broadcast_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    (void)broadcast_of(&site->in[0], &site->out[0], d);
    step->run = run_broadcast;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_broadcast_to = {
    .name = "broadcast",
    .op = SX_OPID_broadcast_to,
    .match = match_broadcast,
    .prepare = prepare_broadcast,
};
