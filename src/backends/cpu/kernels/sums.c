/* Sums of what an elementwise group gives, taken while it is in cache:
 *
 *   reduce_sum(y)                                 y is not written at all
 *   batch_norm_train_grad_sums(dy, x, mean, ...)  dy is written, for the gradient of x
 *
 * As many rows are made at a time as stay in cache; their sums are terms of the whole sum, in an
 * order that follows from the number of columns. */
#include <math.h>

#include "backends/cpu/kernels/elementwise.h"
#include "graph/ops/attrs.h"

enum {
    BLOCK = 64,       /* rows, of which the loops over rows make one term */
    LEAST = 16,       /* rows, even if they do not fit */
    CHUNK = 8 * 1024, /* elements that are made at a time, about */
    LARGEST = 16 * CHUNK,
};

static int64_t rows_at_once(int64_t cols)
{
    const int64_t rows = CHUNK / cols;
    return rows >= BLOCK ? rows / BLOCK * BLOCK : SX_MAX(rows, LEAST);
}

/* ---- reduce_sum ---- */

typedef struct sum_data {
    const sx_cpu_vec *vec;
    sx_cpu_group group;
    int64_t outer, rows, cols; /* of y; its rows are summed up */
    int64_t made;              /* elements at a time: some of outer, or some rows of one */
} sum_data;

/* False also where the least rows are too large for a cache. */
static bool as_rows(const sx_type *y, const sx_reduce_attrs *a, sum_data *d)
{
    int64_t sizes[3];
    if (!sx_cpu_axis_runs(y, &a->axes, 3, sizes) || sx_type_elems(y) == 0) {
        return false;
    }
    d->outer = sizes[0];
    d->rows = sizes[1];
    d->cols = sizes[2];
    const int64_t size = d->rows * d->cols;
    d->made = size <= CHUNK ? CHUNK / size * size : rows_at_once(d->cols) * d->cols;
    return d->rows > 1 && d->made <= LARGEST;
}

/* With frozen variables a team may divide a group, but not a sum. */
static bool match_sum(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    const int k = m->frozen ? -1 : sx_cpu_claimable(m, m->in[0], -1);
    sum_data d;
    m->n_in = 0;
    return k >= 0 && as_rows(sx_graph_type(m->graph, n->inputs[0]), n->attrs, &d) &&
           sx_cpu_match_group(m, k);
}

static void sum_up(const sum_data *d, const float *y, int64_t rows, float *out)
{
    if (d->cols == 1) {
        d->vec->sum_cols(y, 1, rows, out);
    } else {
        d->vec->sum_rows(y, rows, d->cols, out);
    }
}

/* Several of `outer` at a time. */
static void run_small(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const sum_data *d = step->data;
    const int64_t size = d->rows * d->cols, elems = d->outer * size;
    float *y = sx_cpu_at(call, step->scratch), *out = sx_cpu_out(step, call, 0);
    const float *in[SX_VEC_INPUTS];
    sx_cpu_begin_group(&d->group, step, call, y + d->made, in);
    for (int64_t at = 0; at < elems; at += d->made) {
        const int64_t end = SX_MIN(at + d->made, elems);
        d->vec->tape(&d->group.tape, in, y, at, end);
        for (int64_t i = at; i < end; i += size, out += d->cols) {
            sum_up(d, y + (i - at), d->rows, out);
        }
    }
}

/* Some rows of one of `outer` at a time. */
static void run_large(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const sum_data *d = step->data;
    const int64_t size = d->rows * d->cols, elems = d->outer * size;
    float *y = sx_cpu_at(call, step->scratch), *out = sx_cpu_out(step, call, 0);
    float *part = y + d->made;
    const float *in[SX_VEC_INPUTS];
    sx_cpu_begin_group(&d->group, step, call, part + d->cols, in);
    memset(out, 0, (size_t)(d->outer * d->cols) * sizeof(float));
    for (int64_t first = 0; first < elems; first += size, out += d->cols) {
        for (int64_t at = first, n; at < first + size; at += n) {
            n = SX_MIN(d->made, first + size - at);
            d->vec->tape(&d->group.tape, in, y, at, at + n);
            sum_up(d, y, n / d->cols, part);
            for (int64_t k = 0; k < d->cols; k++) {
                out[k] += part[k];
            }
        }
    }
}

static sx_status prepare_sum(const sx_cpu_site *site, sx_cpu_step *step)
{
    sum_data *d = sx_cpu_new(site, sum_data);
    const sx_type *y = sx_graph_type(site->graph, site->nodes[0]->inputs[0]);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    (void)as_rows(y, site->nodes[0]->attrs, d);
    SX_TRY(sx_cpu_prepare_group(site, 1, 0, y, false, &d->group));
    step->run = d->rows * d->cols <= CHUNK ? run_small : run_large;
    step->data = d;
    step->scratch_bytes = (d->made + d->cols) * (int64_t)sizeof(float) + d->group.scratch_bytes;
    return SX_OK;
}

/* ---- batch_norm_train_grad_sums ---- */

typedef struct norm_data {
    const sx_cpu_vec *vec;
    sx_cpu_group group;
    int64_t rows, cols, step; /* rows that are made before they are summed up */
    float epsilon;
    bool narrow_x;
} norm_data;

enum { X, MEAN, VARIANCE, GROUP }; /* a step's inputs */

/* Whether v has other readers than node `root`, all of them behind it. */
static bool is_read_later(const sx_cpu_match *m, sx_value v, int root)
{
    int later = 0;
    for (int k = root + 1; k < m->graph->n_nodes; k++) {
        for (int i = 0; i < m->graph->nodes[k].n_inputs; i++) {
            later += m->graph->nodes[k].inputs[i].id == v.id;
        }
    }
    return later > 0 && m->uses[v.id] == 1 + later;
}

/* root: dy x mean variance; dy is the group's, and nobody reads it before. */
static bool match_norm(sx_cpu_match *m)
{
    const sx_node *root = &m->graph->nodes[m->root];
    const sx_value dy = m->in[0];
    const int k = (int)m->graph->values[dy.id].node;
    const sx_type *type = sx_graph_type(m->graph, dy);
    if (type->dtype != SX_F32 || sx_type_elems(type) == 0 || m->claimed[k] ||
        m->sharded[k] != m->sharded[m->root] || m->hidden[k] != 0 ||
        (m->graph->nodes[k].op->flags & SX_OP_ELEMENTWISE) == 0 || !is_read_later(m, dy, m->root)) {
        return false;
    }
    m->in[X] = root->inputs[1];
    m->in[MEAN] = root->inputs[2];
    m->in[VARIANCE] = root->inputs[3];
    m->n_in = GROUP;
    m->out[0] = dy;
    m->out[1] = root->first_output;
    m->out[2] = sx_node_output(root, 1);
    m->n_out = 3;
    return sx_cpu_match_group(m, k);
}

static void run_norm(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const float *variance = sx_cpu_in(step, call, VARIANCE);
    const char *x = sx_cpu_in(step, call, X);
    const int64_t x_bytes = d->narrow_x ? sizeof(uint16_t) : sizeof(float);
    void *dy = sx_cpu_out(step, call, 0);
    float *dscale = sx_cpu_out(step, call, 1), *doffset = sx_cpu_out(step, call, 2);
    const float *in[SX_VEC_INPUTS];
    sx_cpu_begin_group(&d->group, step, call, sx_cpu_at(call, step->scratch), in);
    memset(dscale, 0, (size_t)d->cols * sizeof(float));
    memset(doffset, 0, (size_t)d->cols * sizeof(float));
    for (int64_t r = 0, n; r < d->rows; r += n) {
        const int64_t at = r * d->cols;
        n = SX_MIN(d->step, d->rows - r);
        float *made = sx_cpu_group_at(&d->group, dy, at);
        d->vec->tape(&d->group.tape, in, made, at, at + n * d->cols);
        d->vec->norm_sums((sx_vec_image){made, d->group.tape.narrow_out},
                          (sx_vec_image){x + at * x_bytes, d->narrow_x},
                          sx_cpu_in(step, call, MEAN), n, d->cols, dscale, doffset);
    }
    for (int64_t k = 0; k < d->cols; k++) {
        dscale[k] *= 1 / sqrtf(variance[k] + d->epsilon);
    }
}

static sx_status prepare_norm(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *x = &site->in[X];
    norm_data *d = sx_cpu_new(site, norm_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->cols = x->dims[x->rank - 1];
    d->rows = sx_type_elems(x) / d->cols;
    d->step = rows_at_once(d->cols);
    d->epsilon = (float)((const sx_batch_norm_attrs *)site->nodes[0]->attrs)->epsilon;
    d->narrow_x = (site->narrow_in >> X & 1) != 0;
    SX_TRY(sx_cpu_prepare_group(site, 1, GROUP, &site->out[0], site->narrow_out, &d->group));
    step->run = run_norm;
    step->data = d;
    step->scratch_bytes = SX_MAX(d->group.scratch_bytes, (int64_t)sizeof(float));
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_sum_of_group = {.name = "elementwise, summed up",
                                                  .op = SX_OPID_reduce_sum,
                                                  .match = match_sum,
                                                  .prepare = prepare_sum,
                                                  .narrow_in_place = true};
const sx_cpu_kernel sx_cpu_kernel_norm_sums_of_group = {
    .name = "elementwise, batch_norm_train_grad_sums",
    .op = SX_OPID_batch_norm_train_grad_sums,
    .match = match_norm,
    .prepare = prepare_norm,
    .narrow_in = 1u << X,
    .narrow_in_place = true,
    .narrow_out = true};
