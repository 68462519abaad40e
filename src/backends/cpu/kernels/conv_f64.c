/* conv2d of doubles, of which oneDNN has none, and its gradients: the pixels that a row of results
 * reads, side by side (patches), by the filter (vec/product_f64.inc). Where each group has one
 * channel, tap by tap.
 *
 *   y        patches filter
 *   dfilter  patches^T dy, added up over the rows of results
 *   dx       the pixels of dy filter^T, added up where they were read */
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

/* ---- Gradients ---- */

/* What row `oy` of dy[w.out, groups o] adds to the gradients of image and filter, groups of one
 * channel; one of the gradients is NULL. */
static void channel_row_grad(const sx_conv_geometry *g, const double *x, const double *filter,
                             const double *dy, int64_t oy, double *dx, double *dfilter)
{
    const int64_t width = g->groups * g->o;
    for (int64_t ox = 0; ox < g->w.out; ox++, dy += width) {
        for (int64_t tap = 0; tap < g->h.kernel * g->w.kernel; tap++) {
            const int64_t iy = sx_conv_window_at(&g->h, oy, tap / g->w.kernel),
                          ix = sx_conv_window_at(&g->w, ox, tap % g->w.kernel);
            if (iy < 0 || ix < 0) {
                continue;
            }
            const int64_t pixel = (iy * g->w.in + ix) * g->groups;
            for (int64_t k = 0; k < width && dx != NULL; k++) {
                dx[pixel + k / g->o] += dy[k] * filter[tap * width + k];
            }
            for (int64_t k = 0; k < width && dfilter != NULL; k++) {
                dfilter[tap * width + k] += dy[k] * x[pixel + k / g->o];
            }
        }
    }
}

/* Adds patches[w.out, taps] to the pixels that row `oy` reads of a group. */
static void scatter_row(const sx_conv_geometry *g, const double *patches, int64_t group, int64_t oy,
                        double *dx)
{
    for (int64_t ox = 0; ox < g->w.out; ox++) {
        for (int64_t tap = 0; tap < g->h.kernel * g->w.kernel; tap++, patches += g->c) {
            const int64_t iy = sx_conv_window_at(&g->h, oy, tap / g->w.kernel),
                          ix = sx_conv_window_at(&g->w, ox, tap % g->w.kernel);
            double *pixel = dx + ((iy * g->w.in + ix) * g->groups + group) * g->c;
            for (int64_t k = 0; k < g->c && iy >= 0 && ix >= 0; k++) {
                pixel[k] += patches[k];
            }
        }
    }
}

/* in: dy filter. The scratch has patches, and each group's filters as [o, taps]. */
static void run_grad_input_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const conv_f64_data *d = step->data;
    const sx_conv_geometry *g = &d->g;
    const double *dy = sx_cpu_in(step, call, 0), *filter = sx_cpu_in(step, call, 1);
    double *dx = sx_cpu_out(step, call, 0), *patches = sx_cpu_at(call, step->scratch);
    double *turned = patches + g->w.out * taps_of(g);
    const int64_t width = g->groups * g->o, taps = taps_of(g);
    const int64_t image = g->h.in * g->w.in * g->groups * g->c;
    memset(dx, 0, (size_t)(g->n * image) * sizeof(double));
    for (int64_t k = 0; k < width; k++) {
        for (int64_t tap = 0; tap < taps; tap++) {
            turned[k * taps + tap] = filter[tap * width + k];
        }
    }
    for (int64_t row = 0; row < g->n * g->h.out; row++, dy += g->w.out * width) {
        double *to = dx + row / g->h.out * image;
        const int64_t oy = row % g->h.out;
        if (g->c == 1 && g->groups > 1) {
            channel_row_grad(g, NULL, filter, dy, oy, to, NULL);
            continue;
        }
        for (int64_t group = 0; group < g->groups; group++) {
            d->vec->product_f64(&(sx_vec_product_f64){.a = dy + group * g->o,
                                                      .b = turned + group * g->o * taps,
                                                      .c = patches,
                                                      .n = taps,
                                                      .k = g->o,
                                                      .row_a = width,
                                                      .inner_a = 1,
                                                      .last = g->w.out,
                                                      .end = taps});
            scatter_row(g, patches, group, oy, to);
        }
    }
}

/* in: x dy. The scratch has patches, and what a row of results adds to the gradient. */
static void run_grad_filter_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const conv_f64_data *d = step->data;
    const sx_conv_geometry *g = &d->g;
    const double *x = sx_cpu_in(step, call, 0), *dy = sx_cpu_in(step, call, 1);
    double *dfilter = sx_cpu_out(step, call, 0), *patches = sx_cpu_at(call, step->scratch);
    double *part = patches + g->w.out * taps_of(g);
    const int64_t width = g->groups * g->o, taps = taps_of(g);
    const bool channels = g->c == 1 && g->groups > 1;
    memset(dfilter, 0, (size_t)(taps * width) * sizeof(double));
    for (int64_t row = 0; row < g->n * g->h.out; row++, dy += g->w.out * width) {
        const double *image = x + row / g->h.out * g->h.in * g->w.in * g->groups * g->c;
        const int64_t oy = row % g->h.out;
        if (channels) {
            channel_row_grad(g, image, NULL, dy, oy, NULL, dfilter);
        }
        for (int64_t group = 0; group < g->groups && !channels; group++) {
            gather_row(g, image, group, oy, patches);
            d->vec->product_f64(&(sx_vec_product_f64){.a = patches,
                                                      .b = dy,
                                                      .c = part,
                                                      .n = width,
                                                      .k = g->w.out,
                                                      .row_a = 1,
                                                      .inner_a = taps,
                                                      .last = taps,
                                                      .begin = group * g->o,
                                                      .end = (group + 1) * g->o});
        }
        for (int64_t i = 0; i < taps * width && !channels; i++) {
            dfilter[i] += part[i];
        }
    }
}

/* ---- The table ---- */

static bool match_f64(sx_cpu_match *m)
{
    const sx_type *x = sx_graph_type(m->graph, m->in[0]), *y = sx_graph_type(m->graph, m->out[0]);
    return x->dtype == SX_F64 && sx_type_elems(x) > 0 &&
           sx_type_elems(sx_graph_type(m->graph, m->in[1])) > 0 && sx_type_elems(y) > 0;
}

/* `more`: doubles of the scratch behind the patches. */
static sx_status prepare_with(const sx_cpu_site *site, const sx_type *x, const sx_type *filter,
                              sx_cpu_run_fn *run, int64_t more, sx_cpu_step *step)
{
    conv_f64_data *d = sx_cpu_new(site, conv_f64_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    SX_TRY(sx_conv_geometry_of(site->nodes[0]->attrs, x, filter, &d->g));
    step->run = run;
    step->data = d;
    step->scratch_bytes =
        sx_cpu_round_up((d->g.w.out * taps_of(&d->g) + more) * (int64_t)sizeof(double));
    step->kernel = "conv float64";
    return SX_OK;
}

static sx_status prepare_forward(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_with(site, &site->in[0], &site->in[1], run_conv_f64, 0, step);
}

static sx_status prepare_grad_input(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_with(site, &site->out[0], &site->in[1], run_grad_input_f64,
                        sx_type_elems(&site->in[1]), step);
}

static sx_status prepare_grad_filter(const sx_cpu_site *site, sx_cpu_step *step)
{
    return prepare_with(site, &site->in[0], &site->out[0], run_grad_filter_f64,
                        sx_type_elems(&site->out[0]), step);
}

const sx_cpu_kernel sx_cpu_kernel_conv_f64 = {
    .name = "conv_f64", .op = SX_OPID_conv2d, .match = match_f64, .prepare = prepare_forward};
const sx_cpu_kernel sx_cpu_kernel_conv_grad_input_f64 = {.name = "conv_grad_input_f64",
                                                         .op = SX_OPID_conv2d_grad_input,
                                                         .match = match_f64,
                                                         .prepare = prepare_grad_input};
const sx_cpu_kernel sx_cpu_kernel_conv_grad_filter_f64 = {.name = "conv_grad_filter_f64",
                                                          .op = SX_OPID_conv2d_grad_filter,
                                                          .match = match_f64,
                                                          .prepare = prepare_grad_filter};
