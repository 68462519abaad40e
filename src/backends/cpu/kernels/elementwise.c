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
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"

/* ---- Listing ---- */

typedef enum form { FORM_PLAIN, FORM_NORM, FORM_NORM_GRAD } form;

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
    {SX_OPID_batch_norm, FORM_NORM, SX_VEC_mul, 1, 4, 3, 3},
    {SX_OPID_batch_norm_train, FORM_NORM, SX_VEC_mul, 1, 4, 3, 3},
    {SX_OPID_batch_norm_train_grad_input, FORM_NORM_GRAD, SX_VEC_mul, 2, 6, 4, 5},
};

static const op_row *row_of(const sx_node *n)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == n->op->id) {
            return sx_cpu_vec_best()->loops[rows[i].code] != NULL ? &rows[i] : NULL;
        }
    }
    return NULL;
}

/* How an operand repeats in the output. */
typedef struct access {
    bool possible;
    int64_t period, repeat; /* as sx_vec_tape */
} access;

/* `in` is out's last dimensions, again and again, or its first, each element again and again; other
 * broadcasts the tape cannot. */
static access access_of(const sx_type *in, const sx_type *out)
{
    int64_t elems = sx_type_elems(in), total = sx_type_elems(out), tail = 1, head = 1;
    if (elems == total) {
        return (access){true, 0, 0};
    }
    if (elems == 0 || total == 0) {
        return (access){false, 0, 0};
    }
    for (int i = 0; i < out->rank && tail != elems; i++) { /* from the last dimension */
        int at = in->rank - 1 - i;
        if (at < 0 || in->dims[at] != out->dims[out->rank - 1 - i]) {
            break;
        }
        tail *= in->dims[at];
    }
    if (tail == elems) {
        return (access){true, elems, 0};
    }
    for (int i = 0; i < out->rank && head != elems && in->rank == out->rank; i++) {
        if (in->dims[i] != out->dims[i]) {
            break;
        }
        head *= in->dims[i];
    }
    return (access){head == elems, 0, total / elems};
}

/* ---- Matching ---- */

typedef struct group {
    sx_cpu_match *m;
    const sx_type *out;
    sx_value inputs[SX_VEC_INPUTS]; /* of the tape */
    access access[SX_VEC_INPUTS];
    sx_value stats[SX_VEC_INPUTS * 4]; /* what is folded, node after node in order of claiming */
    int n_in, n_stats, n_folded, n_ops;
    int64_t period; /* the one above 1, or 1 */
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

static bool add_input(group *g, sx_value v)
{
    for (int i = 0; i < g->n_in; i++) {
        if (g->inputs[i].id == v.id) {
            return true;
        }
    }
    access a = access_of(sx_graph_type(g->m->graph, v), g->out);
    if (!a.possible || !sx_cpu_is_f32(g->m, v) || !set_period(g, a.period) ||
        g->n_in + g->n_folded >= SX_VEC_INPUTS) {
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
        write_tape(g->m->graph, g->m->nodes, g->m->n_nodes, g->inputs, g->n_in, &tape)) {
        return true;
    }
    *g = saved;
    g->m->n_nodes--;
    return false;
}

static bool match_elementwise(sx_cpu_match *m)
{
    const sx_node *root = &m->graph->nodes[m->root];
    group g = {.m = m, .out = sx_graph_type(m->graph, root->first_output), .period = 1};
    if (!add_node(&g, root)) {
        return false;
    }
    for (int i = 0; i < g.n_in;) {
        i = try_join(&g, i) ? 0 : i + 1;
    }
    m->n_in = 0;
    for (int i = 0; i < g.n_in; i++) {
        bool whole = g.access[i].period == 0 && g.access[i].repeat == 0;
        m->in_place |= whole ? 1u << i : 0;
        m->in[m->n_in++] = g.inputs[i];
    }
    for (int i = 0; i < g.n_stats; i++) {
        m->in[m->n_in++] = g.stats[i];
    }
    return true;
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
static int emit(tape_writer *w, sx_vec_code code, int a, int b)
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
        (sx_vec_op){(uint8_t)code, (uint8_t)dst, (uint8_t)a, (uint8_t)b};
    return dst;
}

/* `folded`: the slot of the node's first folded vector. */
static void write_node(tape_writer *w, const sx_node *n, int folded)
{
    const op_row *row = row_of(n);
    int a = slot_of(w, n->inputs[0]), b = row->operands > 1 ? slot_of(w, n->inputs[1]) : a, y;
    if (row->form == FORM_PLAIN) {
        y = emit(w, row->code, a, b);
    } else if (row->form == FORM_NORM) { /* folded: mean, a, offset */
        y = emit(w, SX_VEC_sub, a, folded);
        y = emit(w, SX_VEC_mul, y, folded + 1);
        y = emit(w, SX_VEC_add, y, folded + 2);
    } else { /* a is dy, b is x; folded: mean, b, c, a */
        int x = emit(w, SX_VEC_sub, b, folded);
        x = emit(w, SX_VEC_mul, x, folded + 1);
        x = emit(w, SX_VEC_add, x, folded + 2);
        y = emit(w, SX_VEC_mul, a, folded + 3);
        y = emit(w, SX_VEC_add, y, x);
    }
    w->made[w->n_made] = n->first_output;
    w->slot[w->n_made++] = y;
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

typedef struct norm {
    form form;
    int stat; /* first of its inputs, in the step's */
    float epsilon;
} norm;

typedef struct elementwise_data {
    const sx_cpu_vec *vec;
    sx_vec_tape tape;
    int n_in; /* of the tape, without folded vectors */
    int n_norms;
    norm norms[SX_VEC_INPUTS];
    int64_t channels, elems;
} elementwise_data;

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

static void fold_all(const elementwise_data *d, const sx_cpu_step *step, const sx_cpu_call *call,
                     const float **in)
{
    float *to = sx_cpu_at(call, step->scratch);
    for (int i = 0, at = d->n_in; i < d->n_norms; i++) {
        const norm *n = &d->norms[i];
        const float *stat[6] = {NULL};
        for (int k = 0; k < (n->form == FORM_NORM ? 4 : 6); k++) {
            stat[k] = sx_cpu_in(step, call, n->stat + k);
        }
        float *a = to, *b = a + d->channels, *c = b + d->channels;
        if (n->form == FORM_NORM) {
            fold_norm(stat, n->epsilon, d->channels, a);
            in[at++] = stat[2];
            in[at++] = a;
            in[at++] = stat[1];
            to = b;
        } else {
            fold_norm_grad(stat, n->epsilon, d->channels, a, b, c);
            in[at++] = stat[0];
            in[at++] = b;
            in[at++] = c;
            in[at++] = a;
            to = c + d->channels;
        }
    }
}

static void run_elementwise(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const elementwise_data *d = step->data;
    const float *in[SX_VEC_INPUTS];
    for (int i = 0; i < d->n_in; i++) {
        in[i] = sx_cpu_in(step, call, i);
    }
    if (d->n_norms > 0) { /* no range: the scratch is one call's */
        fold_all(d, step, call, in);
        d->vec->tape(&d->tape, in, sx_cpu_out(step, call, 0), 0, d->elems);
        return;
    }
    d->vec->tape(&d->tape, in, sx_cpu_out(step, call, 0), call->begin, call->end);
}

static void set_access(elementwise_data *d, const sx_cpu_site *site)
{
    for (int i = 0; i < d->tape.n_in; i++) {
        if (i < d->n_in) {
            access a = access_of(&site->in[i], &site->out[0]);
            d->tape.period[i] = a.period;
            d->tape.repeat[i] = a.repeat;
        } else {
            d->tape.period[i] = d->channels;
        }
    }
}

static sx_status prepare_elementwise(const sx_cpu_site *site, sx_cpu_step *step)
{
    elementwise_data *d = sx_cpu_new(site, elementwise_data);
    int nodes[SX_CPU_MAX_NODES], stats = 0;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->channels = site->out[0].rank > 0 ? site->out[0].dims[site->out[0].rank - 1] : 1;
    for (int i = 0; i < site->n_nodes; i++) {
        nodes[i] = (int)(site->nodes[i] - site->graph->nodes);
        stats += row_of(site->nodes[i])->stats;
    }
    d->n_in = site->n_in - stats;
    for (int i = 0, stat = d->n_in; i < site->n_nodes; i++) {
        const op_row *row = row_of(site->nodes[i]);
        if (row->form != FORM_PLAIN) {
            const sx_batch_norm_attrs *a = site->nodes[i]->attrs;
            d->norms[d->n_norms++] = (norm){row->form, stat, (float)a->epsilon};
            stat += row->stats;
        }
    }
    if (!write_tape(site->graph, nodes, site->n_nodes, site->values_in, d->n_in, &d->tape)) {
        return sx_error(SX_INTERNAL, "a fused group does not fit the tape");
    }
    set_access(d, site);
    for (int i = 0; i < d->n_in; i++) {
        d->tape.narrow[i] = (site->narrow_in >> i & 1) != 0;
    }
    d->tape.narrow_out = site->narrow_out;
    step->run = run_elementwise;
    step->data = d;
    d->elems = sx_type_elems(&site->out[0]);
    step->range = d->n_norms > 0 ? 0 : d->elems;
    step->scratch_bytes = d->n_norms * 3 * d->channels * (int64_t)sizeof(float);
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
