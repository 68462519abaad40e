/* conv2d of doubles, of which oneDNN has none: the pixels that a row of results reads, side by
 * side, by the filter (vec/product_f64.inc). Where each group has one channel, tap by tap. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/conv_geometry.h"

typedef struct conv_f64_data {
    const sx_cpu_vec *vec;
    sx_conv_geometry g;
} conv_f64_data;

static int64_t taps_of(const sx_conv_geometry *g)
{
    return g->h.kernel * g->w.kernel * g->c;
}

/* Row `oy` of a result y[w.out, groups o], of image x, groups of one channel. */
static void channel_row(const sx_conv_geometry *g, const double *x, const double *filter,
                        int64_t oy, double *y)
{
    const int64_t width = g->groups * g->o;
    memset(y, 0, (size_t)(g->w.out * width) * sizeof(double));
    for (int64_t ox = 0; ox < g->w.out; ox++, y += width) {
        for (int64_t tap = 0; tap < g->h.kernel * g->w.kernel; tap++) {
            const int64_t iy = sx_conv_window_at(&g->h, oy, tap / g->w.kernel),
                          ix = sx_conv_window_at(&g->w, ox, tap % g->w.kernel);
            if (iy < 0 || ix < 0) {
                continue;
            }
            const double *pixel = x + (iy * g->w.in + ix) * g->groups, *f = filter + tap * width;
            for (int64_t k = 0; k < width && g->o == 1; k++) {
                y[k] += pixel[k] * f[k];
            }
            for (int64_t k = 0; k < width && g->o != 1; k++) {
                y[k] += pixel[k / g->o] * f[k];
            }
        }
    }
}

/* What row `oy` of the results reads of a group: patches[w.out, taps]. */
static void gather_row(const sx_conv_geometry *g, const double *x, int64_t group, int64_t oy,
                       double *patches)
{
    const size_t bytes = (size_t)g->c * sizeof(double);
    for (int64_t ox = 0; ox < g->w.out; ox++) {
        for (int64_t tap = 0; tap < g->h.kernel * g->w.kernel; tap++, patches += g->c) {
            const int64_t iy = sx_conv_window_at(&g->h, oy, tap / g->w.kernel),
                          ix = sx_conv_window_at(&g->w, ox, tap % g->w.kernel);
            if (iy < 0 || ix < 0) {
                memset(patches, 0, bytes);
            } else {
                memcpy(patches, x + ((iy * g->w.in + ix) * g->groups + group) * g->c, bytes);
            }
        }
    }
}

static void run_conv_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const conv_f64_data *d = step->data;
    const sx_conv_geometry *g = &d->g;
    const double *x = sx_cpu_in(step, call, 0), *filter = sx_cpu_in(step, call, 1);
    double *y = sx_cpu_out(step, call, 0), *patches = sx_cpu_at(call, step->scratch);
    for (int64_t row = 0; row < g->n * g->h.out; row++, y += g->w.out * g->groups * g->o) {
        const double *image = x + row / g->h.out * g->h.in * g->w.in * g->groups * g->c;
        const int64_t oy = row % g->h.out;
        if (g->c == 1 && g->groups > 1) {
            channel_row(g, image, filter, oy, y);
            continue;
        }
        for (int64_t group = 0; group < g->groups; group++) {
            gather_row(g, image, group, oy, patches);
            d->vec->product_f64(&(sx_vec_product_f64){.a = patches,
                                                      .b = filter,
                                                      .c = y,
                                                      .n = g->groups * g->o,
                                                      .k = taps_of(g),
                                                      .row_a = taps_of(g),
                                                      .inner_a = 1,
                                                      .last = g->w.out,
                                                      .begin = group * g->o,
                                                      .end = (group + 1) * g->o});
        }
    }
}

static bool match_conv_f64(sx_cpu_match *m)
{
    const sx_type *filter = sx_graph_type(m->graph, m->in[1]);
    return filter->dtype == SX_F64 && sx_type_elems(filter) > 0;
}

static sx_status prepare_conv_f64(const sx_cpu_site *site, sx_cpu_step *step)
{
    conv_f64_data *d = sx_cpu_new(site, conv_f64_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    SX_TRY(sx_conv_geometry_of(site->nodes[0]->attrs, &site->in[0], &site->in[1], &d->g));
    step->run = run_conv_f64;
    step->data = d;
    step->scratch_bytes = sx_cpu_round_up(d->g.w.out * taps_of(&d->g) * (int64_t)sizeof(double));
    step->kernel = "conv float64";
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_conv_f64 = {
    .name = "conv_f64", .op = SX_OPID_conv2d, .match = match_conv_f64, .prepare = prepare_conv_f64};
