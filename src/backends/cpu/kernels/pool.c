/* Pooling over NHWC. The gradient of a max pool whose input was a relu also passes that relu: the
 * gradient arrives only where the pooled value is positive, which is where relu let it through. */
#include "backends/cpu/kernel.h"

typedef struct pool_data {
    const sx_cpu_vec *vec;
    sx_pool_geometry geometry;
    bool relu;
} pool_data;

static bool match_f32(sx_cpu_match *m)
{
    return sx_cpu_is_f32(m, m->out[0]);
}

/* relu_grad(max_pool2d_grad(x, y, dy), x) */
static bool match_grad_relu(sx_cpu_match *m)
{
    const sx_node *relu = &m->graph->nodes[m->root];
    int k = sx_cpu_claimable(m, relu->inputs[0], SX_OPID_max_pool2d_grad);
    if (k < 0 || m->graph->nodes[k].inputs[0].id != relu->inputs[1].id || !match_f32(m)) {
        return false;
    }
    sx_cpu_claim(m, k);
    m->n_in = 3;
    for (int i = 0; i < 3; i++) {
        m->in[i] = m->graph->nodes[k].inputs[i];
    }
    return true;
}

static void run_max(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    d->vec->max_pool(&d->geometry, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0));
}

static void run_max_grad(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    d->vec->max_pool_grad(&d->geometry, d->relu, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                          sx_cpu_in(step, call, 2), sx_cpu_out(step, call, 0));
}

static void run_avg(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    d->vec->avg_pool(&d->geometry, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0));
}

static void run_avg_grad(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    d->vec->avg_pool_grad(&d->geometry, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0));
}

typedef struct pool_row {
    int op;
    sx_cpu_run_fn *run;
    bool grad;     /* the image is the output */
    int pooled_in; /* input of the pooled size; -1: the output */
} pool_row;

static const pool_row rows[] = {
    {SX_OPID_max_pool2d, run_max, false, -1},
    {SX_OPID_max_pool2d_grad, run_max_grad, false, 1},
    {SX_OPID_avg_pool2d, run_avg, false, -1},
    {SX_OPID_avg_pool2d_grad, run_avg_grad, true, 0},
};

static sx_status prepare_pool(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *n = site->nodes[site->n_nodes - 1];
    pool_data *d = sx_cpu_new(site, pool_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->relu = site->n_nodes > 1;
    step->data = d;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == n->op->id) {
            step->run = rows[i].run;
            SX_TRY(sx_pool_geometry_of(n->attrs, rows[i].grad ? &site->out[0] : &site->in[0],
                                       &d->geometry));
            const sx_type *pooled =
                rows[i].pooled_in >= 0 ? &site->in[rows[i].pooled_in] : site->out;
            d->geometry.h.out = pooled->dims[1]; /* perhaps cropped: crop.c */
            d->geometry.w.out = pooled->dims[2];
        }
    }
    return SX_OK;
}

#define POOL_ROW(row_name, op_name, match_fn)        \
    const sx_cpu_kernel sx_cpu_kernel_##row_name = { \
        .name = #row_name, .op = SX_OPID_##op_name, .match = (match_fn), .prepare = prepare_pool}
POOL_ROW(max_pool, max_pool2d, match_f32);
POOL_ROW(max_pool_grad_relu, relu_grad, match_grad_relu);
POOL_ROW(max_pool_grad, max_pool2d_grad, match_f32);
POOL_ROW(avg_pool, avg_pool2d, match_f32);
POOL_ROW(avg_pool_grad, avg_pool2d_grad, match_f32);
