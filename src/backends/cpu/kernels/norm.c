/* Layer, group, instance and RMS norm as Keras and others write them (graph/norm_form.h), in one
 * pass. A match reads its own values alone: in training the gradient reads some, too, and the parts
 * stay.
 */
#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/norm_form.h"

/* x as [outer, rows, cols], each of `outer` on its own: a row of `cols`, or over the rows groups of
 * `inner` columns. */
typedef struct norm_shape {
    int64_t outer, rows, cols, inner; /* inner 0: a row */
} norm_shape;

typedef struct norm_data {
    norm_shape shape;
    sx_vec_norm norm; /* without gamma and beta: */
    int gamma, beta;  /* operands, 0 = none */
    void (*rows)(const sx_vec_norm *norm, const float *x, int64_t rows, int64_t cols, float *y);
    void (*groups)(const sx_vec_norm *norm, const float *x, int64_t rows, int64_t cols,
                   int64_t inner, float *scratch, float *y);
} norm_data;

/* ---- Matching ---- */

_Static_assert((int)SX_NORM_NODES <= (int)SX_CPU_MAX_NODES, "a match must have room for a norm");

static bool find_shape(const sx_type *x, const sx_ints *axes, norm_shape *out)
{
    int64_t size[4];
    if (!sx_cpu_axis_runs(x, axes, 4, size)) {
        return false;
    }
    *out = size[2] == 1 && size[3] == 1
               ? (norm_shape){size[0], 1, size[1], 0}
               : (norm_shape){size[0], size[1], size[2] * size[3], size[3]};
    return true;
}

/* v, if there is one, repeats in `whole` each `cols` elements. */
static bool repeats(const sx_graph *g, sx_value v, const sx_type *whole, int64_t cols)
{
    if (!sx_value_is(v)) {
        return true;
    }
    const sx_type *t = sx_graph_type(g, v);
    int64_t size = 1;
    for (int i = 1; size < cols; i++) {
        if (i > t->rank || i > whole->rank ||
            t->dims[t->rank - i] != whole->dims[whole->rank - i]) {
            return false;
        }
        size *= t->dims[t->rank - i];
    }
    return t->dtype == SX_F32 && size == cols && sx_type_elems(t) == cols;
}

static bool find_parts(const sx_graph *g, sx_value y, sx_norm_form *out, norm_shape *shape)
{
    if (!sx_find_norm(g, y, out)) {
        return false;
    }
    const sx_type *x = sx_graph_type(g, out->x);
    return x->dtype == SX_F32 && sx_type_elems(x) > 0 &&
           sx_type_elems(x) == sx_type_elems(sx_graph_type(g, y)) &&
           find_shape(x, out->axes, shape) && (shape->inner == 0 || sx_value_is(out->mean)) &&
           repeats(g, out->gamma, out->gamma_type, shape->cols) &&
           repeats(g, out->beta, out->beta_type, shape->cols);
}

static bool match_norm(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    sx_norm_form p;
    norm_shape shape;
    if (!find_parts(g, m->out[0], &p, &shape)) {
        return false;
    }
    for (int i = 1; i < p.n_nodes; i++) {
        const sx_value v = p.nodes[i]->first_output;
        const int k = (int)(p.nodes[i] - g->nodes);
        int reads = 0;
        for (int j = 0; j < p.n_nodes; j++) {
            for (int in = 0; in < p.nodes[j]->n_inputs; in++) {
                reads += p.nodes[j]->inputs[in].id == v.id ? 1 : 0;
            }
        }
        if (m->claimed[k] || m->sharded[k] != m->sharded[m->root] || reads != m->uses[v.id]) {
            return false;
        }
        sx_cpu_claim(m, k);
    }
    const sx_value in[] = {p.x, p.gamma, p.beta};
    m->n_in = 0;
    for (int i = 0; i < 3; i++) {
        if (sx_value_is(in[i])) {
            m->in[m->n_in++] = in[i];
        }
    }
    m->in_place = 1;
    return true;
}

/* ---- Running ---- */

/* A range is of elements: of the rows, or groups, that begin in it. */
static void run_norm(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const norm_shape *s = &d->shape;
    sx_vec_norm norm = d->norm;
    norm.gamma = d->gamma > 0 ? sx_cpu_in(step, call, d->gamma) : NULL;
    norm.beta = d->beta > 0 ? sx_cpu_in(step, call, d->beta) : NULL;
    const float *x = sx_cpu_in(step, call, 0);
    float *y = sx_cpu_out(step, call, 0);
    if (s->inner == 0) {
        const int64_t first = (call->begin + s->cols - 1) / s->cols;
        const int64_t last = (call->end + s->cols - 1) / s->cols;
        d->rows(&norm, x + first * s->cols, last - first, s->cols, y + first * s->cols);
        return;
    }
    for (int64_t i = 0; i < s->outer; i++, x += s->rows * s->cols, y += s->rows * s->cols) {
        d->groups(&norm, x, s->rows, s->cols, s->inner, sx_cpu_at(call, step->scratch), y);
    }
}

static sx_status prepare_norm(const sx_cpu_site *site, sx_cpu_step *step)
{
    norm_data *d = sx_cpu_new(site, norm_data);
    sx_norm_form p;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (norm_data){.rows = site->vec->norm_rows, .groups = site->vec->norm_groups};
    if (!find_parts(site->graph, site->nodes[0]->first_output, &p, &d->shape)) {
        return sx_error(SX_INTERNAL, "a norm has other parts than it was matched with");
    }
    d->norm = (sx_vec_norm){.epsilon = (float)p.epsilon, .centered = sx_value_is(p.mean)};
    d->gamma = sx_value_is(p.gamma) ? 1 : 0;
    d->beta = sx_value_is(p.beta) ? 1 + d->gamma : 0;
    step->run = run_norm;
    step->data = d;
    if (d->shape.inner == 0) {
        step->range = sx_type_elems(&site->out[0]);
    } else {
        step->scratch_bytes = 2 * d->shape.cols * (int64_t)sizeof(float);
    }
    return SX_OK;
}

#define ROW(op_name)                                                             \
    const sx_cpu_kernel sx_cpu_kernel_norm_##op_name = {.name = "norm",          \
                                                        .op = SX_OPID_##op_name, \
                                                        .match = match_norm,     \
                                                        .prepare = prepare_norm, \
                                                        .early = true};
ROW(add)
ROW(mul)
ROW(div)
