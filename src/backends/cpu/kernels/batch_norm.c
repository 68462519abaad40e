/* The sums of batch norm: moments of x, and the gradients of scale and offset. Its elementwise part
 * is in elementwise.c. */
#include <math.h>

#include "backends/cpu/kernel.h"

typedef struct norm_data {
    const sx_cpu_vec *vec;
    int64_t rows, cols;
    float epsilon;
    unsigned narrow_in;
} norm_data;

static sx_vec_image image_at(const sx_cpu_step *step, const sx_cpu_call *call, int i)
{
    const norm_data *d = step->data;
    return (sx_vec_image){sx_cpu_in(step, call, i), (d->narrow_in >> i & 1) != 0};
}

/* All axes but the last. */
static bool match_moments(sx_cpu_match *m)
{
    const sx_axes_attrs *a = m->graph->nodes[m->root].attrs;
    const sx_type *x = sx_graph_type(m->graph, m->in[0]);
    bool leading =
        x->dtype == SX_F32 && x->rank >= 2 && a->axes.n == x->rank - 1 && sx_type_elems(x) > 0;
    for (int i = 0; i < a->axes.n; i++) {
        leading = leading && a->axes.v[i] == i;
    }
    return leading;
}

static bool match_sums(sx_cpu_match *m)
{
    const sx_type *x = sx_graph_type(m->graph, m->in[0]);
    return x->dtype == SX_F32 && sx_type_elems(x) > 0;
}

static void run_moments(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    d->vec->moments(image_at(step, call, 0), d->rows, d->cols, sx_cpu_out(step, call, 0),
                    sx_cpu_out(step, call, 1));
}

/* in: dy x mean variance */
static void run_sums(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const float *variance = sx_cpu_in(step, call, 3);
    float *dscale = sx_cpu_out(step, call, 0), *doffset = sx_cpu_out(step, call, 1);
    memset(dscale, 0, (size_t)d->cols * sizeof(float));
    memset(doffset, 0, (size_t)d->cols * sizeof(float));
    d->vec->norm_sums(image_at(step, call, 0), image_at(step, call, 1), sx_cpu_in(step, call, 2),
                      d->rows, d->cols, dscale, doffset);
    for (int64_t k = 0; k < d->cols; k++) {
        dscale[k] *= 1 / sqrtf(variance[k] + d->epsilon);
    }
}

static sx_status prepare_norm(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *x = &site->in[0];
    norm_data *d = sx_cpu_new(site, norm_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->narrow_in = site->narrow_in;
    d->cols = x->dims[x->rank - 1];
    d->rows = sx_type_elems(x) / d->cols;
    step->run = run_moments;
    step->data = d;
    if (site->nodes[0]->op->id == SX_OPID_batch_norm_train_grad_sums) {
        d->epsilon = (float)((const sx_batch_norm_attrs *)site->nodes[0]->attrs)->epsilon;
        step->run = run_sums;
    }
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_moments = {.name = "moments",
                                             .op = SX_OPID_moments,
                                             .match = match_moments,
                                             .prepare = prepare_norm,
                                             .narrow_in = 1};
const sx_cpu_kernel sx_cpu_kernel_batch_norm_train_grad_sums = {
    .name = "batch_norm_train_grad_sums",
    .op = SX_OPID_batch_norm_train_grad_sums,
    .match = match_sums,
    .prepare = prepare_norm,
    .narrow_in = 3};
