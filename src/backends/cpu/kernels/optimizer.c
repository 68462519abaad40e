/* Updates of variables, in place, one pass each; a withheld one (`ok` false) copies. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernel.h"

typedef struct apply_data {
    const sx_cpu_vec *vec;
    const void *attrs;
} apply_data;

static bool match_apply(sx_cpu_match *m)
{
    m->in_place = (1u << m->n_out) - 1;
    return sx_cpu_is_f32(m, m->in[0]);
}

/* Whether the last input, `ok`, is false: the old values are kept. */
static bool withheld(const sx_cpu_step *step, const sx_cpu_call *call)
{
    if (*(const uint8_t *)sx_cpu_in(step, call, step->n_in - 1) != 0) {
        return false;
    }
    size_t first = (size_t)call->begin * sizeof(float);
    size_t bytes = (size_t)(call->end - call->begin) * sizeof(float);
    for (int i = 0; i < step->n_out; i++) {
        memmove((char *)sx_cpu_out(step, call, i) + first, (char *)sx_cpu_in(step, call, i) + first,
                bytes);
    }
    return true;
}

/* in: var g lr ok */
static void run_sgd(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    if (!withheld(step, call)) {
        d->vec->sgd(*(float *)sx_cpu_in(step, call, 2), sx_cpu_in(step, call, 0),
                    sx_cpu_in(step, call, 1), sx_cpu_out(step, call, 0), call->begin, call->end);
    }
}

/* in: var accum g lr ok */
static void run_momentum(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_momentum_attrs *a = d->attrs;
    sx_vec_momentum v = {.lr = *(float *)sx_cpu_in(step, call, 3),
                         .momentum = (float)a->momentum,
                         .nesterov = a->nesterov};
    if (!withheld(step, call)) {
        d->vec->momentum(&v, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                         sx_cpu_in(step, call, 2), sx_cpu_out(step, call, 0),
                         sx_cpu_out(step, call, 1), call->begin, call->end);
    }
}

/* in: var square [accum] g lr ok */
static void run_rmsprop(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_rmsprop_attrs *a = d->attrs;
    int g = step->n_in - 3;
    bool moves = step->n_out == 3;
    sx_vec_rmsprop v = {.lr = *(float *)sx_cpu_in(step, call, g + 1),
                        .rho = (float)a->rho,
                        .one_minus_rho = (float)(1 - a->rho),
                        .momentum = (float)a->momentum,
                        .epsilon = (float)a->epsilon};
    if (!withheld(step, call)) {
        d->vec->rmsprop(&v, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                        moves ? sx_cpu_in(step, call, 2) : NULL, sx_cpu_in(step, call, g),
                        sx_cpu_out(step, call, 0), sx_cpu_out(step, call, 1),
                        moves ? sx_cpu_out(step, call, 2) : NULL, call->begin, call->end);
    }
}

/* in: var m v g lr step ok */
static void run_adam(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const apply_data *d = step->data;
    const sx_adam_attrs *a = d->attrs;
    double t = (double)(*(int64_t *)sx_cpu_in(step, call, 5) + 1);
    double lr = (double)*(float *)sx_cpu_in(step, call, 4);
    sx_vec_adam v = {.alpha = (float)(lr * sqrt(1 - pow(a->beta2, t)) / (1 - pow(a->beta1, t))),
                     .one_minus_beta1 = (float)(1 - a->beta1),
                     .one_minus_beta2 = (float)(1 - a->beta2),
                     .epsilon = (float)a->epsilon};
    if (!withheld(step, call)) {
        d->vec->adam(&v, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                     sx_cpu_in(step, call, 2), sx_cpu_in(step, call, 3), sx_cpu_out(step, call, 0),
                     sx_cpu_out(step, call, 1), sx_cpu_out(step, call, 2), call->begin, call->end);
    }
}

static sx_status prepare_apply(const sx_cpu_site *site, sx_cpu_step *step, sx_cpu_run_fn *run)
{
    apply_data *d = sx_cpu_new(site, apply_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (apply_data){site->vec, site->nodes[0]->attrs};
    step->run = run;
    step->data = d;
    step->range = sx_type_elems(&site->out[0]);
    return SX_OK;
}

static bool match_rmsprop(sx_cpu_match *m)
{
    const sx_rmsprop_attrs *a = m->graph->nodes[m->root].attrs;
    return match_apply(m) && !a->centered;
}

/* in: var square mean [accum] g lr ok */
static void run_rmsprop_centered(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const sx_rmsprop_attrs *a = ((const apply_data *)step->data)->attrs;
    const int at = step->n_in - 3;
    const bool moves = a->momentum > 0;
    const float *var = sx_cpu_in(step, call, 0), *square = sx_cpu_in(step, call, 1);
    const float *mean = sx_cpu_in(step, call, 2), *accum = sx_cpu_in(step, call, 3);
    const float *g = sx_cpu_in(step, call, at), lr = *(float *)sx_cpu_in(step, call, at + 1);
    float *out_var = sx_cpu_out(step, call, 0), *out_square = sx_cpu_out(step, call, 1);
    float *out_mean = sx_cpu_out(step, call, 2);
    float *out_accum = moves ? sx_cpu_out(step, call, 3) : NULL;
    const float rho = (float)a->rho, rest = (float)(1 - a->rho), momentum = (float)a->momentum;
    if (withheld(step, call)) {
        return;
    }
    for (int64_t i = call->begin; i < call->end; i++) {
        const float s = rho * square[i] + rest * g[i] * g[i], m = rho * mean[i] + rest * g[i];
        float change = lr * g[i] / sqrtf(s - m * m + (float)a->epsilon);
        if (moves) {
            change += momentum * accum[i];
            out_accum[i] = change;
        }
        out_square[i] = s;
        out_mean[i] = m;
        out_var[i] = var[i] - change;
    }
}

static sx_status prepare_rmsprop_centered(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_apply(site, step, run_rmsprop_centered);
}

static sx_status prepare_rmsprop(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_apply(site, step, run_rmsprop);
}
static sx_status prepare_sgd(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_apply(site, step, run_sgd);
}
static sx_status prepare_momentum(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_apply(site, step, run_momentum);
}
static sx_status prepare_adam(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_apply(site, step, run_adam);
}

const sx_cpu_kernel sx_cpu_kernel_apply_sgd = {
    .name = "apply_sgd", .op = SX_OPID_apply_sgd, .match = match_apply, .prepare = prepare_sgd};
const sx_cpu_kernel sx_cpu_kernel_apply_momentum = {.name = "apply_momentum",
                                                    .op = SX_OPID_apply_momentum,
                                                    .match = match_apply,
                                                    .prepare = prepare_momentum};
const sx_cpu_kernel sx_cpu_kernel_apply_adam = {
    .name = "apply_adam", .op = SX_OPID_apply_adam, .match = match_apply, .prepare = prepare_adam};
const sx_cpu_kernel sx_cpu_kernel_apply_rmsprop = {.name = "apply_rmsprop",
                                                   .op = SX_OPID_apply_rmsprop,
                                                   .match = match_rmsprop,
                                                   .prepare = prepare_rmsprop};
const sx_cpu_kernel sx_cpu_kernel_apply_rmsprop_centered = {.name = "apply_rmsprop centered",
                                                            .op = SX_OPID_apply_rmsprop,
                                                            .match = match_apply,
                                                            .prepare = prepare_rmsprop_centered};
