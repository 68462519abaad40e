/* Batch norm of float64, and its gradients. As in elementwise.c, the factors of each channel are
 * computed first, in scratch. */
#include <math.h>

#include "backends/cpu/kernel.h"

typedef struct norm_data {
    const sx_cpu_vec *vec;
    int64_t rows, cols;
    double epsilon;
} norm_data;

static bool match_norm(sx_cpu_match *m)
{
    const sx_type *x = sx_graph_type(m->graph, m->in[0]);
    m->in_place = m->n_out == 1 ? 1 : 0;
    return x->dtype == SX_F64 && sx_type_elems(x) > 0;
}

/* in: x scale offset mean variance */
static void run_norm(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const double *scale = sx_cpu_in(step, call, 1), *variance = sx_cpu_in(step, call, 4);
    double *a = sx_cpu_at(call, step->scratch);
    for (int64_t k = 0; k < d->cols; k++) {
        a[k] = scale[k] / sqrt(variance[k] + d->epsilon);
    }
    const sx_vec_channels_f64 channels = {
        .mean = sx_cpu_in(step, call, 3), .a = a, .b = sx_cpu_in(step, call, 2)};
    d->vec->norm_channels_f64(&channels, sx_cpu_in(step, call, 0), d->rows, d->cols,
                              sx_cpu_out(step, call, 0));
}

/* in: dy x mean variance scale dscale doffset count */
static void run_grad_input(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const double *variance = sx_cpu_in(step, call, 3), *scale = sx_cpu_in(step, call, 4);
    const double *dscale = sx_cpu_in(step, call, 5), *doffset = sx_cpu_in(step, call, 6);
    const double count = *(const double *)sx_cpu_in(step, call, 7);
    double *a = sx_cpu_at(call, step->scratch), *b = a + d->cols, *c = b + d->cols;
    for (int64_t k = 0; k < d->cols; k++) {
        const double s = 1 / sqrt(variance[k] + d->epsilon);
        a[k] = s * scale[k];
        b[k] = -a[k] * s * dscale[k] / count;
        c[k] = -a[k] * doffset[k] / count;
    }
    const sx_vec_channels_f64 channels = {.mean = sx_cpu_in(step, call, 2), .a = a, .b = b, .c = c};
    d->vec->norm_channels_grad_f64(&channels, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                                   d->rows, d->cols, sx_cpu_out(step, call, 0));
}

/* in: dy x mean variance */
static void run_grad_sums(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const double *variance = sx_cpu_in(step, call, 3);
    double *s = sx_cpu_at(call, step->scratch);
    for (int64_t k = 0; k < d->cols; k++) {
        s[k] = 1 / sqrt(variance[k] + d->epsilon);
    }
    const sx_vec_channels_f64 channels = {.mean = sx_cpu_in(step, call, 2), .a = s};
    d->vec->norm_channels_sums_f64(&channels, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                                   d->rows, d->cols, sx_cpu_out(step, call, 0),
                                   sx_cpu_out(step, call, 1));
}

static sx_status prepare_with(const sx_cpu_site *site, sx_cpu_step *step, sx_cpu_run_fn *run)
{
    const sx_type *x = &site->in[0];
    const sx_batch_norm_attrs *attrs = site->nodes[0]->attrs;
    norm_data *d = sx_cpu_new(site, norm_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (norm_data){.vec = site->vec,
                     .rows = sx_type_elems(x) / x->dims[x->rank - 1],
                     .cols = x->dims[x->rank - 1],
                     .epsilon = attrs->epsilon};
    step->run = run;
    step->data = d;
    step->scratch_bytes = sx_cpu_round_up(3 * d->cols * (int64_t)sizeof(double));
    return SX_OK;
}

#define NORM(op_name, run)                                                            \
    static sx_status prepare_##op_name(const sx_cpu_site *site, sx_cpu_step *step)    \
    {                                                                                 \
        return prepare_with(site, step, run);                                         \
    }                                                                                 \
    const sx_cpu_kernel sx_cpu_kernel_##op_name##_f64 = {.name = #op_name " float64", \
                                                         .op = SX_OPID_##op_name,     \
                                                         .match = match_norm,         \
                                                         .prepare = prepare_##op_name};
NORM(batch_norm, run_norm)
NORM(batch_norm_train, run_norm)
NORM(batch_norm_train_grad_input, run_grad_input)
NORM(batch_norm_train_grad_sums, run_grad_sums)
