/* fake_quant, quantize_dequantize and the gradient of the former. The grid of each channel is
 * computed at the start of a call, in scratch: vectors that the tape of vec.h reads beside x.
 *
 *   fake_quant            floor((clip(x) - low) inverse - zero + 1/2) scale
 *   quantize_dequantize   round(clip(x) scale) inverse */
#include <math.h>

#include "backends/cpu/kernel.h"
#include "graph/ops/quantize.h"

enum {
    MOST_FACTORS = 6,
    LANES = 16, /* of a sum over all elements */
};

typedef struct quantize_data {
    const sx_cpu_vec *vec;
    sx_cpu_form form; /* of the result; SX_F32: as it is */
    const void *attrs;
    sx_vec_tape tape;
    int64_t outer, channels, inner; /* x [outer, channels, inner] */
} quantize_data;

/* ---- Forward ---- */

typedef void factors_fn(const quantize_data *d, const float *low, const float *high, float *to);

static void emit(sx_vec_tape *t, sx_vec_code code, int a, int b)
{
    const uint8_t temp = (uint8_t)t->n_in; /* each operation but the first reads the one before */
    t->ops[t->n_ops++] = (sx_vec_op){(uint8_t)code, temp, (uint8_t)a, (uint8_t)b, 0};
}

/* Inputs of the tape: x, low, high, inverse, zero, scale, 1/2. */
static void fake_quant_factors(const quantize_data *d, const float *low, const float *high,
                               float *to)
{
    const int64_t n = d->channels;
    for (int64_t k = 0; k < n; k++) {
        sx_fake_quant_grid q;
        sx_fake_quant_grid_of(d->attrs, low[k], high[k], &q);
        to[k] = q.low;
        to[n + k] = q.high;
        to[2 * n + k] = q.inverse;
        to[3 * n + k] = q.zero;
        to[4 * n + k] = q.scale;
        to[5 * n + k] = 0.5f;
    }
}

static void fake_quant_tape(sx_vec_tape *t)
{
    *t = (sx_vec_tape){.n_in = 7};
    const int y = t->n_in;
    emit(t, SX_VEC_minimum, 0, 2);
    emit(t, SX_VEC_maximum, y, 1);
    emit(t, SX_VEC_sub, y, 1);
    emit(t, SX_VEC_mul, y, 3);
    emit(t, SX_VEC_sub, y, 4);
    emit(t, SX_VEC_add, y, 6);
    emit(t, SX_VEC_floor, y, y);
    emit(t, SX_VEC_mul, y, 5);
}

/* Inputs of the tape: x, low, high, scale, inverse, 1/2. */
static void quantize_factors(const quantize_data *d, const float *low, const float *high, float *to)
{
    const int64_t n = d->channels;
    for (int64_t k = 0; k < n; k++) {
        sx_quantize_grid q;
        sx_quantize_grid_of(d->attrs, false, (double)low[k], (double)high[k], &q);
        to[k] = (float)q.low;
        to[n + k] = (float)q.high;
        to[2 * n + k] = (float)q.scale;
        to[3 * n + k] = (float)q.inverse;
        to[4 * n + k] = 0.5f;
    }
}

static void quantize_tape(sx_vec_tape *t, const sx_quantize_dequantize_attrs *attrs)
{
    *t = (sx_vec_tape){.n_in = 6};
    const int y = t->n_in;
    if (attrs->range_given) {
        emit(t, SX_VEC_minimum, 0, 2);
        emit(t, SX_VEC_maximum, y, 1);
    }
    emit(t, SX_VEC_mul, attrs->range_given ? y : 0, 3);
    if (attrs->half_up) {
        emit(t, SX_VEC_add, y, 5);
        emit(t, SX_VEC_floor, y, y);
    } else {
        emit(t, SX_VEC_round, y, y);
    }
    emit(t, SX_VEC_mul, y, 4);
}

static void run_tape(const quantize_data *d, const float *x, const float *factors, float *y)
{
    const float *in[SX_VEC_INPUTS] = {x};
    if (d->inner == 1) { /* the tape repeats the factors */
        for (int i = 1; i < d->tape.n_in; i++) {
            in[i] = factors + (i - 1) * d->channels;
        }
        d->vec->tape(&d->tape, in, y, 0, d->outer * d->channels);
        return;
    }
    for (int64_t row = 0; row < d->outer * d->channels; row++) {
        in[0] = x + row * d->inner;
        for (int i = 1; i < d->tape.n_in; i++) {
            in[i] = factors + (i - 1) * d->channels + row % d->channels;
        }
        d->vec->tape(&d->tape, in, y + row * d->inner, 0, d->inner);
    }
}

/* A range for all of x: elements [begin, end), block by block where they become bytes. */
static void run_elements(const quantize_data *d, const float *x, const float *factors, char *y,
                         int64_t begin, int64_t end)
{
    enum { BLOCK = 1024 };
    float block[BLOCK];
    const float *in[SX_VEC_INPUTS] = {x};
    for (int k = 1; k < d->tape.n_in; k++) {
        in[k] = factors + k - 1;
    }
    if (d->form.dtype == SX_F32) {
        d->vec->tape(&d->tape, in, (float *)(void *)y + begin, begin, end);
        return;
    }
    for (int64_t i = begin; i < end; i += BLOCK) {
        const int64_t n = SX_MIN(end - i, (int64_t)BLOCK);
        in[0] = x + i;
        d->vec->tape(&d->tape, in, block, 0, n);
        sx_cpu_to_form(d->vec, &d->form, block, y + i * sx_cpu_form_bytes(&d->form), n);
    }
}

static void run_forward(const sx_cpu_step *step, const sx_cpu_call *call, factors_fn *make)
{
    const quantize_data *d = step->data;
    const float *x = sx_cpu_in(step, call, 0), *low = sx_cpu_in(step, call, 1),
                *high = sx_cpu_in(step, call, 2);
    float few[MOST_FACTORS];
    if (step->range > 0) {
        make(d, low, high, few);
        run_elements(d, x, few, sx_cpu_out(step, call, 0), call->begin, call->end);
    } else {
        float *factors = sx_cpu_at(call, step->scratch);
        make(d, low, high, factors);
        run_tape(d, x, factors, sx_cpu_out(step, call, 0));
    }
}

static void run_fake_quant(const sx_cpu_step *step, const sx_cpu_call *call)
{
    run_forward(step, call, fake_quant_factors);
}

static void run_quantize(const sx_cpu_step *step, const sx_cpu_call *call)
{
    run_forward(step, call, quantize_factors);
}

/* All integers of bytes, halves to the even one: beyond the range, an element is clipped to them.
 */
static void run_bytes(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const quantize_data *d = step->data;
    const float *x = sx_cpu_in(step, call, 0), *low = sx_cpu_in(step, call, 1),
                *high = sx_cpu_in(step, call, 2);
    const int64_t begin = call->begin, n = call->end - call->begin;
    sx_quantize_grid q;
    sx_quantize_grid_of(d->attrs, false, (double)*low, (double)*high, &q);
    if (d->form.dtype == SX_U8) {
        d->vec->to_u8(x + begin, (float)q.scale, (uint8_t *)sx_cpu_out(step, call, 0) + begin, n);
    } else {
        d->vec->to_s8(x + begin, (float)q.scale, (int8_t *)sx_cpu_out(step, call, 0) + begin, n);
    }
}

/* ---- Gradient ---- */

/* Rows of `width` elements, each with its own bounds and sums: the channels, or lanes of all. */
static void run_fake_quant_grad(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const quantize_data *d = step->data;
    const float *dy = sx_cpu_in(step, call, 0), *x = sx_cpu_in(step, call, 1);
    const float *low = sx_cpu_in(step, call, 2), *high = sx_cpu_in(step, call, 3);
    float *dx = sx_cpu_out(step, call, 0);
    float *dlow = sx_cpu_out(step, call, 1), *dhigh = sx_cpu_out(step, call, 2);
    const int64_t width = d->channels == 1 ? LANES : d->channels, n = d->outer * d->channels;
    double *below = sx_cpu_at(call, step->scratch), *above = below + width;
    float *first = (float *)(void *)(above + width), *last = first + width;
    for (int64_t k = 0; k < width; k++) {
        const int64_t own = d->channels == 1 ? 0 : k;
        sx_fake_quant_grid q;
        sx_fake_quant_grid_of(d->attrs, low[own], high[own], &q);
        below[k] = above[k] = 0;
        first[k] = q.empty ? -INFINITY : q.low;
        last[k] = q.empty ? INFINITY : q.high;
    }
    for (int64_t i = 0; i < n; i += width) {
        const int64_t row = SX_MIN(width, n - i);
        for (int64_t k = 0; k < row; k++) {
            const float v = x[i + k], g = dy[i + k];
            dx[i + k] = v >= first[k] && v <= last[k] ? g : 0;
            below[k] += (double)(v < first[k] ? g : 0);
            above[k] += (double)(v > last[k] ? g : 0);
        }
    }
    if (d->channels == 1) {
        for (int64_t k = 1; k < width; k++) {
            below[0] += below[k];
            above[0] += above[k];
        }
    }
    for (int64_t k = 0; k < d->channels; k++) {
        dlow[k] = (float)below[k];
        dhigh[k] = (float)above[k];
    }
}

/* ---- Preparing ---- */

static bool match_f32(sx_cpu_match *m)
{
    return sx_cpu_is_f32(m, m->in[0]);
}

static quantize_data *make_data(const sx_cpu_site *site, const sx_type *low, int64_t axis)
{
    const sx_type *x = &site->out[0];
    quantize_data *d = sx_cpu_new(site, quantize_data);
    if (d != NULL) {
        *d = (quantize_data){.vec = site->vec,
                             .form = site->forms[site->n_in],
                             .attrs = site->nodes[0]->attrs,
                             .outer = sx_type_elems(x),
                             .channels = 1,
                             .inner = 1};
        if (low->rank > 0) {
            d->outer = sx_dims_product(x, 0, (int)axis);
            d->channels = x->dims[axis];
            d->inner = sx_dims_product(x, (int)axis + 1, x->rank);
        }
    }
    return d;
}

/* With one range, any elements can be computed by themselves. */
static void set_forward(quantize_data *d, const sx_type *low, sx_cpu_step *step)
{
    for (int i = 1; i < d->tape.n_in; i++) {
        d->tape.period[i] = d->inner == 1 ? SX_MAX(d->channels, 1) : 1;
    }
    step->data = d;
    if (low->rank == 0) {
        step->range = d->outer;
    } else {
        step->scratch_bytes = sx_cpu_round_up(MOST_FACTORS * d->channels * (int64_t)sizeof(float));
    }
}

static sx_status prepare_fake_quant(const sx_cpu_site *site, sx_cpu_step *step)
{
    quantize_data *d = make_data(site, &site->in[1], site->in[0].rank - 1);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    fake_quant_tape(&d->tape);
    set_forward(d, &site->in[1], step);
    step->run = run_fake_quant;
    return SX_OK;
}

static sx_status prepare_quantize(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_quantize_dequantize_attrs *attrs = site->nodes[0]->attrs;
    quantize_data *d = make_data(site, &site->in[1], attrs->axis);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    quantize_tape(&d->tape, attrs);
    set_forward(d, &site->in[1], step);
    step->run = sx_cpu_form_is_bytes(&d->form) && d->form.full && !attrs->half_up ? run_bytes
                                                                                  : run_quantize;
    return SX_OK;
}

/* ---- quantize_dequantize of float64 ---- */

/* The scratch has a grid for each channel. */
static void run_quantize_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const quantize_data *d = step->data;
    const sx_quantize_dequantize_attrs *attrs = d->attrs;
    const double *x = sx_cpu_in(step, call, 0), *low = sx_cpu_in(step, call, 1),
                 *high = sx_cpu_in(step, call, 2);
    double *y = sx_cpu_out(step, call, 0);
    sx_quantize_grid *grids = sx_cpu_at(call, step->scratch);
    for (int64_t k = 0; k < d->channels; k++) {
        sx_quantize_grid_of(attrs, true, low[k], high[k], &grids[k]);
        if (!attrs->range_given) {
            grids[k].low = -INFINITY;
            grids[k].high = INFINITY;
        }
    }
    for (int64_t row = 0; row < d->outer * d->channels; row++, x += d->inner, y += d->inner) {
        const sx_quantize_grid q = grids[row % d->channels];
        for (int64_t i = 0; i < d->inner; i++) {
            const double below = x[i] > q.high ? q.high : x[i];
            const double v = (below < q.low ? q.low : below) * q.scale;
            y[i] = (attrs->half_up ? floor(v + 0.5) : rint(v)) * q.inverse;
        }
    }
}

static bool match_f64(sx_cpu_match *m)
{
    return sx_graph_type(m->graph, m->in[0])->dtype == SX_F64;
}

static sx_status prepare_quantize_f64(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_quantize_dequantize_attrs *attrs = site->nodes[0]->attrs;
    quantize_data *d = make_data(site, &site->in[1], attrs->axis);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    if (site->in[1].rank == 0) { /* one range for all */
        d->inner = d->outer;
        d->outer = 1;
    }
    step->run = run_quantize_f64;
    step->data = d;
    step->scratch_bytes =
        sx_cpu_round_up(SX_MAX(d->channels, 1) * (int64_t)sizeof(sx_quantize_grid));
    return SX_OK;
}

static sx_status prepare_fake_quant_grad(const sx_cpu_site *site, sx_cpu_step *step)
{
    quantize_data *d = make_data(site, &site->in[2], site->in[1].rank - 1);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    const int64_t width = d->channels == 1 ? LANES : d->channels;
    step->run = run_fake_quant_grad;
    step->data = d;
    step->scratch_bytes = sx_cpu_round_up(2 * width * (int64_t)(sizeof(double) + sizeof(float)));
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_fake_quant = {.name = "fake_quant",
                                                .op = SX_OPID_fake_quant,
                                                .match = match_f32,
                                                .prepare = prepare_fake_quant,
                                                .bytes_out = true};
const sx_cpu_kernel sx_cpu_kernel_fake_quant_grad = {.name = "fake_quant_grad",
                                                     .op = SX_OPID_fake_quant_grad,
                                                     .match = match_f32,
                                                     .prepare = prepare_fake_quant_grad};
const sx_cpu_kernel sx_cpu_kernel_quantize_dequantize = {.name = "quantize_dequantize",
                                                         .op = SX_OPID_quantize_dequantize,
                                                         .match = match_f32,
                                                         .prepare = prepare_quantize,
                                                         .bytes_out = true};
const sx_cpu_kernel sx_cpu_kernel_quantize_dequantize_f64 = {.name = "quantize_dequantize float64",
                                                             .op = SX_OPID_quantize_dequantize,
                                                             .match = match_f64,
                                                             .prepare = prepare_quantize_f64};
