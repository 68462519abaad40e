/* Updates of variables, in place, one pass each; a withheld one (`ok` false) copies. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"

typedef struct apply_data {
    const sx_vec_updates *updates;
    const void *attrs;
    bool wide; /* float64 */
} apply_data;

static bool match_apply(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->in[0])->dtype;
    m->in_place = (1u << m->n_out) - 1;
    return dtype == SX_F32 || dtype == SX_F64;
}

/* Whether the last input, `ok`, is false: the old values are kept. */
static bool withheld(const sx_cpu_step *step, const sx_cpu_call *call)
{
    if (*(const uint8_t *)sx_cpu_in(step, call, step->n_in - 1) != 0) {
        return false;
    }
    const size_t elem = ((const apply_data *)step->data)->wide ? sizeof(double) : sizeof(float);
    size_t first = (size_t)call->begin * elem;
    size_t bytes = (size_t)(call->end - call->begin) * elem;
    for (int i = 0; i < step->n_out; i++) {
        memmove((char *)sx_cpu_out(step, call, i) + first, (char *)sx_cpu_in(step, call, i) + first,
                bytes);
    }
    return true;
}

/* Operands: the variable, its slots, of which there is a result each, gradient, learning rate. */
static sx_vec_update update_of(const sx_cpu_step *step, const sx_cpu_call *call)
{
    sx_vec_update u = {.var = sx_cpu_in(step, call, 0),
                       .g = sx_cpu_in(step, call, step->n_out),
                       .out_var = sx_cpu_out(step, call, 0),
                       .begin = call->begin,
                       .end = call->end};
    for (int i = 1; i < step->n_out; i++) {
        u.slot[i - 1] = sx_cpu_in(step, call, i);
        u.out_slot[i - 1] = sx_cpu_out(step, call, i);
    }
    return u;
}

static double rate_of(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const void *lr = sx_cpu_in(step, call, step->n_out + 1);
    return ((const apply_data *)step->data)->wide ? *(const double *)lr
                                                  : (double)*(const float *)lr;
}

static void run_sgd(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_vec_update u = update_of(step, call);
    if (!withheld(step, call)) {
        d->updates->sgd(rate_of(step, call), &u);
    }
}

static void run_momentum(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_momentum_attrs *a = d->attrs;
    const sx_vec_update u = update_of(step, call);
    const sx_vec_momentum v = {
        .lr = rate_of(step, call), .momentum = a->momentum, .nesterov = a->nesterov};
    if (!withheld(step, call)) {
        d->updates->momentum(&v, &u);
    }
}

static void run_rmsprop(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_rmsprop_attrs *a = d->attrs;
    const sx_vec_update u = update_of(step, call);
    const sx_vec_rmsprop v = {.lr = rate_of(step, call),
                              .rho = a->rho,
                              .one_minus_rho = 1 - a->rho,
                              .momentum = a->momentum,
                              .epsilon = a->epsilon,
                              .centered = a->centered};
    if (!withheld(step, call)) {
        d->updates->rmsprop(&v, &u);
    }
}

/* `step`, the number of those before, follows the learning rate. */
static void run_adam(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_adam_attrs *a = d->attrs;
    const sx_vec_update u = update_of(step, call);
    const double t = (double)(*(int64_t *)sx_cpu_in(step, call, 5) + 1);
    const double lr = rate_of(step, call);
    const sx_vec_adam v = {.alpha = lr * sqrt(1 - pow(a->beta2, t)) / (1 - pow(a->beta1, t)),
                           .one_minus_beta1 = 1 - a->beta1,
                           .one_minus_beta2 = 1 - a->beta2,
                           .epsilon = a->epsilon};
    if (!withheld(step, call)) {
        d->updates->adam(&v, &u);
    }
}

static sx_status prepare_apply(const sx_cpu_site *site, sx_cpu_step *step, sx_cpu_run_fn *run)
{
    apply_data *d = sx_cpu_new(site, apply_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->wide = site->in[0].dtype == SX_F64;
    d->updates = d->wide ? &site->vec->updates_f64 : &site->vec->updates;
    d->attrs = site->nodes[0]->attrs;
    step->run = run;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    return SX_OK;
}

#define APPLY(name_)                                                                \
    static sx_status prepare_##name_(const sx_cpu_site *site, sx_cpu_step *step)    \
    {                                                                               \
        return prepare_apply(site, step, run_##name_);                              \
    }                                                                               \
    const sx_cpu_kernel sx_cpu_kernel_apply_##name_ = {.name = "apply_" #name_,     \
                                                       .op = SX_OPID_apply_##name_, \
                                                       .match = match_apply,        \
                                                       .prepare = prepare_##name_};
APPLY(sgd)
APPLY(momentum)
APPLY(rmsprop)
APPLY(adam)
