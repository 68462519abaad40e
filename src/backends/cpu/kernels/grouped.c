/* Convolutions by groups of 2 or 4 channels, with AVX-512 also 8, and as many results
 * (vec/grouped.inc), as ResNeXt has:
 *
 *     y = act(conv(x) + bias + added)
 *
 * where bias, added and act may be absent; and depthwise ones, groups of 1, with bias and swish.
 * The filter is read as it lies. Rows of results are what workers divide. For groups narrower than
 * a vector oneDNN 2.6 multiplies matrices of so few columns, at 5 % of the processor's rate. */
#include <math.h>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/dense.h"
#include "base/checked.h"

enum { GRAIN_FLOPS = 1 << 17 /* for each worker */ };

typedef struct grouped_data {
    sx_vec_grouped shape;
    const sx_cpu_vec *vec;
} grouped_data;

bool sx_cpu_conv_is_grouped(const sx_cpu_site *site, const sx_node *conv)
{
    sx_conv_geometry g;
    sx_status status = sx_cpu_conv_geometry(site->graph, conv, &g);
    const bool swish = site->n_in == 3 && sx_cpu_act_of(site->nodes[0]) == SX_DNN_SWISH;
    const bool fits = status == SX_OK && conv->op->id == SX_OPID_conv2d && g.groups > 1 &&
                      g.c == g.o && ((g.c == 1 && swish) || g.c == 2 || g.c == 4 || g.c == 8) &&
                      g.c <= site->vec->grouped_width && site->narrow_in == 0 &&
                      !sx_cpu_conv_in_bf16(conv);
    sx_status_free(status);
    return fits;
}

static void run_grouped(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const grouped_data *d = step->data;
    sx_vec_grouped shape = d->shape;
    shape.filter = sx_cpu_in(step, call, 1);
    shape.bias = step->n_in > 2 ? sx_cpu_in(step, call, 2) : NULL;
    shape.added = step->n_in > 3 ? sx_cpu_in(step, call, 3) : NULL;
    d->vec->grouped(&shape, sx_cpu_in(step, call, 0), sx_cpu_out(step, call, 0),
                    call->begin / SX_CPU_SPLIT, call->end / SX_CPU_SPLIT);
}

sx_status sx_cpu_prepare_grouped(const sx_cpu_site *site, const sx_node *conv, sx_cpu_step *step)
{
    const sx_cpu_dense_act *act = sx_cpu_dense_act_of(site->nodes[0]);
    sx_conv_geometry g;
    grouped_data *d = sx_cpu_new(site, grouped_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(sx_cpu_conv_geometry(site->graph, conv, &g));
    d->vec = site->vec;
    d->shape = (sx_vec_grouped){.h = g.h,
                                .w = g.w,
                                .c = g.groups * g.c,
                                .width = (int)g.c,
                                .act = act != NULL ? act->act : SX_VEC_CLIP,
                                .low = act != NULL ? act->low : -INFINITY,
                                .high = act != NULL ? act->high : INFINITY};
    const double taps = (double)(g.h.kernel * g.w.kernel * g.c);
    const double flops = 2.0 * taps * (double)(g.w.out * d->shape.c);
    step->run = run_grouped;
    step->data = d;
    step->range = g.n * g.h.out * SX_CPU_SPLIT;
    step->grain = (int64_t)(GRAIN_FLOPS / SX_MAX(flops, 1) * SX_CPU_SPLIT) + 1;
    step->kernel = g.c == 1 ? "conv2d depthwise" : "conv2d grouped";
    return SX_OK;
}
