/* Reductions over neighbouring axes, and all_finite. */
#include "backends/cpu/kernel.h"

typedef struct reduce_data {
    const sx_cpu_vec *vec;
    int64_t outer, rows, cols;
    void (*loop)(const float *x, int64_t rows, int64_t cols, float *out);
} reduce_data;

/* x seen as [outer, rows, cols] of which the rows are reduced; with cols 1 those are x's last axes.
 * Axes of size 1 count as any. */
static bool as_rows(const sx_type *x, const sx_reduce_attrs *a, reduce_data *d)
{
    bool reduced[SX_MAX_RANK] = {false};
    int64_t part[3] = {1, 1, 1};
    int at = 0;
    for (int i = 0; i < a->axes.n; i++) {
        reduced[a->axes.v[i]] = true;
    }
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1) {
            continue;
        }
        at += (at == 0 && reduced[i]) || (at == 1 && !reduced[i]);
        if (at == 2 && reduced[i]) {
            return false;
        }
        part[at] *= x->dims[i];
    }
    d->outer = part[0];
    d->rows = part[1];
    d->cols = part[2];
    return sx_type_elems(x) > 0;
}

static bool match_reduce(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    reduce_data d;
    return sx_cpu_is_f32(m, m->in[0]) && as_rows(sx_graph_type(m->graph, m->in[0]), n->attrs, &d) &&
           (n->op->id == SX_OPID_reduce_sum || d.cols == 1);
}

/* Rows that end x: each of `outer` is one row of a matrix. */
static void run_trailing(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    d->loop(sx_cpu_in(step, call, 0), d->outer, d->rows, sx_cpu_out(step, call, 0));
}

static void run_leading(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    const float *x = sx_cpu_in(step, call, 0);
    float *out = sx_cpu_out(step, call, 0);
    for (int64_t i = 0; i < d->outer; i++) {
        d->loop(x + i * d->rows * d->cols, d->rows, d->cols, out + i * d->cols);
    }
}

static sx_status prepare_reduce(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *n = site->nodes[0];
    reduce_data *d = sx_cpu_new(site, reduce_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    (void)as_rows(&site->in[0], n->attrs, d);
    step->run = d->cols == 1 ? run_trailing : run_leading;
    d->loop = n->op->id == SX_OPID_reduce_max ? site->vec->max_cols
              : d->cols == 1                  ? site->vec->sum_cols
                                              : site->vec->sum_rows;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_reduce_sum = {.name = "reduce_sum",
                                                .op = SX_OPID_reduce_sum,
                                                .match = match_reduce,
                                                .prepare = prepare_reduce};
const sx_cpu_kernel sx_cpu_kernel_reduce_max = {.name = "reduce_max",
                                                .op = SX_OPID_reduce_max,
                                                .match = match_reduce,
                                                .prepare = prepare_reduce};

/* ---- all_finite ---- */

typedef struct finite_data {
    const sx_cpu_vec *vec;
    const int64_t *elems; /* [n_in] */
} finite_data;

static bool match_finite(sx_cpu_match *m)
{
    for (int i = 0; i < m->n_in; i++) {
        if (!sx_cpu_is_f32(m, m->in[i])) {
            return false;
        }
    }
    return true;
}

static void run_finite(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const finite_data *d = step->data;
    bool ok = true;
    for (int i = 0; i < step->n_in && ok; i++) {
        ok = d->vec->all_finite(sx_cpu_in(step, call, i), d->elems[i]);
    }
    *(uint8_t *)sx_cpu_out(step, call, 0) = ok;
}

static sx_status prepare_finite(const sx_cpu_site *site, sx_cpu_step *step)
{
    finite_data *d = sx_cpu_new(site, finite_data);
    int64_t *elems = sx_arena_array(&site->plan->arena, site->n_in + 1, int64_t);
    if (d == NULL || elems == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < site->n_in; i++) {
        elems[i] = sx_type_elems(&site->in[i]);
    }
    *d = (finite_data){site->vec, elems};
    step->run = run_finite;
    step->data = d;
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_all_finite = {.name = "all_finite",
                                                .op = SX_OPID_all_finite,
                                                .match = match_finite,
                                                .prepare = prepare_finite};
