/* Softmax, its logarithm, and its loss with integer labels and with a probability of each class. */
#include <math.h>

#include "backends/cpu/kernel.h"

typedef struct softmax_data {
    const sx_cpu_vec *vec;
    int64_t rows, cols;
    bool narrow; /* int32 labels */
    void (*loop)(const float *x, int64_t rows, int64_t cols, float *y);
    void (*loop_f64)(const double *x, int64_t rows, int64_t cols, double *y);
} softmax_data;

static bool match_float(sx_cpu_match *m)
{
    const sx_type *x = sx_graph_type(m->graph, m->in[0]);
    return (x->dtype == SX_F32 || x->dtype == SX_F64) && x->rank >= 1;
}

static void run_softmax_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const softmax_data *d = step->data;
    d->loop_f64(sx_cpu_in(step, call, 0), d->rows, d->cols, sx_cpu_out(step, call, 0));
}

static void run_softmax(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const softmax_data *d = step->data;
    d->loop(sx_cpu_in(step, call, 0), d->rows, d->cols, sx_cpu_out(step, call, 0));
}

static void run_loss(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const softmax_data *d = step->data;
    const int32_t *narrow = sx_cpu_in(step, call, 1);
    const int64_t *labels = sx_cpu_in(step, call, 1);
    if (d->narrow) {
        int64_t *wide = sx_cpu_at(call, step->scratch);
        for (int64_t i = 0; i < d->rows; i++) {
            wide[i] = narrow[i];
        }
        labels = wide;
    }
    d->vec->softmax_xent(sx_cpu_in(step, call, 0), labels, d->rows, d->cols,
                         sx_cpu_out(step, call, 0), sx_cpu_out(step, call, 1));
}

/* The scratch holds a row's log softmax. */
static void run_loss_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const softmax_data *d = step->data;
    const double *x = sx_cpu_in(step, call, 0);
    const int32_t *narrow = sx_cpu_in(step, call, 1);
    const int64_t *labels = sx_cpu_in(step, call, 1);
    double *loss = sx_cpu_out(step, call, 0), *back = sx_cpu_out(step, call, 1);
    double *logs = sx_cpu_at(call, step->scratch);
    for (int64_t i = 0; i < d->rows; i++, x += d->cols, back += d->cols) {
        const int64_t label = d->narrow ? narrow[i] : labels[i];
        const bool known = label >= 0 && label < d->cols;
        d->vec->softmax_f64(x, 1, d->cols, back);
        d->vec->log_softmax_f64(x, 1, d->cols, logs);
        loss[i] = known ? -logs[label] : NAN;
        for (int64_t k = 0; k < d->cols && !known; k++) {
            back[k] = NAN;
        }
        if (known) {
            back[label] -= 1;
        }
    }
}

static sx_status prepare_softmax(const sx_cpu_site *site, sx_cpu_step *step)
{
    int op = site->nodes[0]->op->id;
    const sx_type *x = &site->in[0];
    softmax_data *d = sx_cpu_new(site, softmax_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->cols = x->dims[x->rank - 1];
    d->rows = d->cols > 0 ? sx_type_elems(x) / d->cols : 0;
    d->loop = op == SX_OPID_softmax ? site->vec->softmax : site->vec->log_softmax;
    d->loop_f64 = op == SX_OPID_softmax ? site->vec->softmax_f64 : site->vec->log_softmax_f64;
    step->run = x->dtype == SX_F64 ? run_softmax_f64 : run_softmax;
    step->data = d;
    if (op == SX_OPID_sparse_softmax_cross_entropy) {
        d->narrow = site->in[1].dtype == SX_I32;
        step->run = x->dtype == SX_F64 ? run_loss_f64 : run_loss;
        step->scratch_bytes = x->dtype == SX_F64 ? d->cols * (int64_t)sizeof(double)
                              : d->narrow        ? d->rows * (int64_t)sizeof(int64_t)
                                                 : 0;
    }
    return SX_OK;
}

#define SOFTMAX_ROW(op_name)                                                \
    const sx_cpu_kernel sx_cpu_kernel_##op_name = {.name = #op_name,        \
                                                   .op = SX_OPID_##op_name, \
                                                   .match = match_float,    \
                                                   .prepare = prepare_softmax}
SOFTMAX_ROW(softmax);
SOFTMAX_ROW(log_softmax);
SOFTMAX_ROW(sparse_softmax_cross_entropy);

/* The scratch holds a row's log softmax. */
static void run_soft_loss(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const softmax_data *d = step->data;
    const float *x = sx_cpu_in(step, call, 0), *z = sx_cpu_in(step, call, 1);
    float *loss = sx_cpu_out(step, call, 0), *back = sx_cpu_out(step, call, 1);
    float *logs = sx_cpu_at(call, step->scratch);
    for (int64_t i = 0; i < d->rows; i++, x += d->cols, z += d->cols, back += d->cols) {
        double sum = 0;
        d->vec->log_softmax(x, 1, d->cols, logs);
        d->vec->loops[SX_VEC_exp](back, logs, logs, d->cols);
        for (int64_t k = 0; k < d->cols; k++) {
            sum -= (double)z[k] * (double)logs[k];
        }
        for (int64_t k = 0; k < d->cols; k++) {
            back[k] = back[k] - z[k];
        }
        loss[i] = (float)sum;
    }
}

static void run_soft_loss_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const softmax_data *d = step->data;
    const double *x = sx_cpu_in(step, call, 0), *z = sx_cpu_in(step, call, 1);
    double *loss = sx_cpu_out(step, call, 0), *back = sx_cpu_out(step, call, 1);
    double *logs = sx_cpu_at(call, step->scratch);
    for (int64_t i = 0; i < d->rows; i++, x += d->cols, z += d->cols, back += d->cols) {
        double sum = 0;
        d->vec->log_softmax_f64(x, 1, d->cols, logs);
        d->vec->softmax_f64(x, 1, d->cols, back);
        for (int64_t k = 0; k < d->cols; k++) {
            sum -= z[k] * logs[k];
        }
        for (int64_t k = 0; k < d->cols; k++) {
            back[k] = back[k] - z[k];
        }
        loss[i] = sum;
    }
}

static sx_status prepare_soft_loss(const sx_cpu_site *site, sx_cpu_step *step)
{
    SX_TRY(prepare_softmax(site, step));
    step->run = site->in[0].dtype == SX_F64 ? run_soft_loss_f64 : run_soft_loss;
    step->scratch_bytes =
        sx_cpu_round_up(site->in[0].dims[1] * (int64_t)sx_dtype_bytes(site->in[0].dtype));
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_softmax_cross_entropy = {.name = "softmax_cross_entropy",
                                                           .op = SX_OPID_softmax_cross_entropy,
                                                           .match = match_float,
                                                           .prepare = prepare_soft_loss};
