/* The gradient of a depthwise convolution's filter (vec/depthwise.inc), channels in vectors: row by
 * row of the results; the taps of a row of the filter are summed together. Blocks of channels are
 * what workers divide. oneDNN 2.6 has a kernel for 3x3 only, and takes ten times as long for 5x5.
 */
#include "backends/cpu/kernels/conv.h"
#include "base/checked.h"

enum {
    GRAIN_FLOPS = 1 << 17, /* for each worker */
    BLOCK = 16,            /* channels */
};

typedef struct filter_data {
    sx_vec_depthwise_filter shape;
    const sx_cpu_vec *vec;
} filter_data;

static bool match_grad_filter(sx_cpu_match *m)
{
    sx_conv_geometry g;
    sx_status status = sx_cpu_conv_geometry(m->graph, &m->graph->nodes[m->root], &g);
    const bool fits = status == SX_OK && g.groups > 1 && g.c == 1 && g.o == 1 &&
                      sx_cpu_is_f32(m, m->in[0]) && sx_cpu_is_f32(m, m->out[0]);
    sx_status_free(status);
    return fits;
}

/* in: x, dy */
static void run_grad_filter(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const filter_data *d = step->data;
    const int64_t begin = call->begin / SX_CPU_SPLIT * BLOCK;
    const int64_t end = SX_MIN(call->end / SX_CPU_SPLIT * BLOCK, d->shape.c);
    d->vec->depthwise_filter(&d->shape, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                             sx_cpu_out(step, call, 0), begin, end);
}

static sx_status prepare_grad_filter(const sx_cpu_site *site, sx_cpu_step *step)
{
    sx_conv_geometry g;
    filter_data *d = sx_cpu_new(site, filter_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(sx_cpu_conv_geometry(site->graph, site->nodes[0], &g));
    d->vec = site->vec;
    d->shape = (sx_vec_depthwise_filter){.h = g.h, .w = g.w, .n = g.n, .c = g.groups};
    const double taps = (double)(g.h.kernel * g.w.kernel) * (double)(g.h.out * g.w.out);
    step->run = run_grad_filter;
    step->data = d;
    step->range = (g.groups + BLOCK - 1) / BLOCK * SX_CPU_SPLIT;
    step->grain =
        (int64_t)(GRAIN_FLOPS / SX_MAX(2.0 * BLOCK * taps * (double)g.n, 1) * SX_CPU_SPLIT) + 1;
    step->kernel = "conv2d_grad_filter depthwise";
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_depthwise_grad_filter = {.name = "depthwise_grad_filter",
                                                           .op = SX_OPID_conv2d_grad_filter,
                                                           .match = match_grad_filter,
                                                           .prepare = prepare_grad_filter};
