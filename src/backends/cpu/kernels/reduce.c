/* Reductions over leading or over trailing axes, and all_finite. */
#include "backends/cpu/kernel.h"

typedef struct reduce_data {
    const sx_cpu_vec *vec;
    int64_t rows, cols;
    void (*loop)(const float *x, int64_t rows, int64_t cols, float *out);
} reduce_data;

/* x seen as [rows, cols] of which all rows (leading axes) or all columns (trailing) are summed;
 * axes of size 1 count as either. */
static bool as_matrix(const sx_type *x, const sx_reduce_attrs *a, int64_t *rows, int64_t *cols,
                      bool *leading)
{
    bool reduced[SX_MAX_RANK] = {false};
    int64_t in = 1, out = 1;
    int changes = 0, last = -1, first = -1;
    for (int i = 0; i < a->axes.n; i++) {
        reduced[a->axes.v[i]] = true;
    }
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1) {
            continue;
        }
        *(reduced[i] ? &in : &out) *= x->dims[i];
        first = first < 0 ? reduced[i] : first;
        changes += last >= 0 && last != (int)reduced[i];
        last = reduced[i];
    }
    *leading = first == 1 && changes == 1;
    *rows = *leading ? in : out;
    *cols = *leading ? out : in;
    return changes <= 1 && in > 0 && out > 0;
}

static bool match_reduce(sx_cpu_match *m)
{
    const sx_node *n = &m->graph->nodes[m->root];
    int64_t rows, cols;
    bool leading;
    return sx_cpu_is_f32(m, m->in[0]) &&
           as_matrix(sx_graph_type(m->graph, m->in[0]), n->attrs, &rows, &cols, &leading) &&
           (n->op->id == SX_OPID_reduce_sum || !leading);
}

static void run_reduce(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const reduce_data *d = step->data;
    d->loop(sx_cpu_in(step, call, 0), d->rows, d->cols, sx_cpu_out(step, call, 0));
}

static sx_status prepare_reduce(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *n = site->nodes[0];
    reduce_data *d = sx_cpu_new(site, reduce_data);
    bool leading;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    (void)as_matrix(&site->in[0], n->attrs, &d->rows, &d->cols, &leading);
    d->loop = n->op->id == SX_OPID_reduce_max ? site->vec->max_cols
              : leading                       ? site->vec->sum_rows
                                              : site->vec->sum_cols;
    step->run = run_reduce;
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

/* --- all_finite ----------------------------------------------------------------------------------
 */

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
