/* Pooling over NHWC, and the average with its rounding to bfloat16. The gradient of a max pool
 * whose input was a relu also passes that relu: the gradient arrives only where the pooled value is
 * positive, which is where relu let it through. */
#include "backends/cpu/kernel.h"
#include "base/checked.h"

enum {
    MAX_IN = 3,
    BAND_BYTES = 128 << 10, /* of narrow rows in float32: they stay in the second-level cache */
};

typedef struct pool_data pool_data;
typedef void pool_fn(const pool_data *d, const sx_pool_geometry *g, const void *const *in,
                     void *out);

struct pool_data {
    const sx_cpu_vec *vec;
    pool_fn *pool;
    sx_pool_geometry geometry;
    size_t bytes; /* of an element: float32 or float64; of images that are bfloat16 both 2 */
    bool relu;
    bool rounds; /* the results, to bfloat16 */
    unsigned narrow_in;
    bool narrow_out;
    sx_cpu_form forms[MAX_IN + 1];   /* of the inputs, then the output */
    int64_t image_elems[MAX_IN + 1]; /* of the inputs, then the output */
    int64_t band;                    /* forward, narrow: rows of the output at a time, */
    int64_t band_in, band_out;       /* and the elements that these read and are */
};

static bool match_float(sx_cpu_match *m)
{
    const sx_dtype dtype = sx_graph_type(m->graph, m->out[0])->dtype;
    return dtype == SX_F32 || dtype == SX_F64;
}

/* relu_grad(max_pool2d_grad(x, y, dy), x) */
static bool match_grad_relu(sx_cpu_match *m)
{
    const sx_node *relu = &m->graph->nodes[m->root];
    int k = sx_cpu_claimable(m, relu->inputs[0], SX_OPID_max_pool2d_grad);
    if (k < 0 || m->graph->nodes[k].inputs[0].id != relu->inputs[1].id || !match_float(m)) {
        return false;
    }
    sx_cpu_claim(m, k);
    m->n_in = 3;
    for (int i = 0; i < 3; i++) {
        m->in[i] = m->graph->nodes[k].inputs[i];
    }
    return true;
}

/* round_bf16(avg_pool2d(x)) */
static bool match_avg_round(sx_cpu_match *m)
{
    const sx_node *n = sx_cpu_claim_maker(m, sx_cpu_node(m, 0)->inputs[0], SX_OPID_avg_pool2d);
    if (n == NULL || !sx_cpu_is_f32(m, m->out[0])) {
        return false;
    }
    m->in[0] = n->inputs[0];
    return true;
}

static void max_pool(const pool_data *d, const sx_pool_geometry *g, const void *const *in,
                     void *out)
{
    if (d->bytes == sizeof(double)) {
        d->vec->max_pool_f64(g, in[0], out);
    } else if (d->bytes == sizeof(uint16_t)) {
        d->vec->max_pool_bf16(g, in[0], out);
    } else {
        d->vec->max_pool(g, in[0], out);
    }
}

static void max_pool_grad(const pool_data *d, const sx_pool_geometry *g, const void *const *in,
                          void *out)
{
    if (d->bytes == sizeof(double)) {
        d->vec->max_pool_grad_f64(g, d->relu, in[0], in[1], in[2], out);
    } else {
        d->vec->max_pool_grad(g, d->relu, in[0], in[1], in[2], out);
    }
}

static void avg_pool(const pool_data *d, const sx_pool_geometry *g, const void *const *in,
                     void *out)
{
    if (d->bytes == sizeof(double)) {
        d->vec->avg_pool_f64(g, in[0], out);
    } else if (d->bytes == sizeof(uint16_t)) {
        d->vec->avg_pool_bf16(g, in[0], out);
    } else {
        d->vec->avg_pool(g, in[0], out);
        if (d->rounds) {
            d->vec->loops[SX_VEC_round_bf16](out, out, out, g->n * g->h.out * g->w.out * g->c);
        }
    }
}

static void avg_pool_grad(const pool_data *d, const sx_pool_geometry *g, const void *const *in,
                          void *out)
{
    if (d->bytes == sizeof(double)) {
        d->vec->avg_pool_grad_f64(g, in[0], out);
    } else {
        d->vec->avg_pool_grad(g, in[0], out);
    }
}

static void run_pool(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    const void *in[MAX_IN];
    for (int i = 0; i < step->n_in; i++) {
        in[i] = sx_cpu_in(step, call, i);
    }
    d->pool(d, &d->geometry, in, sx_cpu_out(step, call, 0));
}

/* Forward: the rows of the output that begin in elements [begin, end). */
static void run_rows(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    const sx_pool_geometry *g = &d->geometry;
    const char *x = sx_cpu_in(step, call, 0);
    char *y = sx_cpu_out(step, call, 0);
    const int64_t row = g->w.out * g->c, last = (call->end + row - 1) / row;
    for (int64_t at = (call->begin + row - 1) / row, n; at < last; at += n) {
        const int64_t image = at / g->h.out, first = at % g->h.out;
        sx_pool_geometry rows = *g;
        n = SX_MIN(g->h.out - first, last - at);
        rows.n = 1;
        rows.h.out = n;
        rows.h.pad_before -= first * g->h.stride;
        const void *in[] = {x + (size_t)(image * d->image_elems[0]) * d->bytes};
        d->pool(d, &rows, in, y + (size_t)(at * row) * d->bytes);
    }
}

/* The rows of the image that `n` rows of the output from `first` read: the first, and how many. */
static int64_t rows_read(const sx_conv_window *h, int64_t first, int64_t n, int64_t *count)
{
    const int64_t top = first * h->stride - h->pad_before;
    const int64_t bottom = top + (n - 1) * h->stride + (h->kernel - 1) * h->dilation + 1;
    *count = SX_MIN(bottom, h->in) - SX_MAX(top, 0);
    return SX_MAX(top, 0);
}

/* Forward, where the image or the output is narrow: the rows that begin in elements [begin, end),
 * band after band, in float32 in the part's scratch. */
static void run_bands(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    const sx_pool_geometry *g = &d->geometry;
    const sx_cpu_form *from = &d->forms[0], *to = &d->forms[1];
    float *wide = (float *)sx_cpu_at(call, step->scratch) + call->part * (d->band_in + d->band_out);
    const int64_t row = g->w.out * g->c, row_in = g->w.in * g->c;
    const int64_t last = (call->end + row - 1) / row;
    for (int64_t at = (call->begin + row - 1) / row, n; at < last; at += n) {
        const int64_t image = at / g->h.out, first = at % g->h.out;
        sx_pool_geometry rows = *g;
        n = SX_MIN(SX_MIN(g->h.out - first, last - at), d->band);
        const int64_t top = rows_read(&g->h, first, n, &rows.h.in);
        rows.n = 1;
        rows.h.out = n;
        rows.h.pad_before += top - first * g->h.stride;
        const void *in[] = {(char *)sx_cpu_in(step, call, 0) +
                            (image * d->image_elems[0] + top * row_in) * sx_cpu_form_bytes(from)};
        char *out = (char *)sx_cpu_out(step, call, 0) + at * row * sx_cpu_form_bytes(to);
        if (d->narrow_in != 0) {
            sx_cpu_from_form(d->vec, from, in[0], wide, rows.h.in * row_in);
            in[0] = wide;
        }
        d->pool(d, &rows, in, d->narrow_out ? wide + d->band_in : (void *)out);
        if (d->narrow_out) {
            sx_cpu_to_form(d->vec, to, wide + d->band_in, out, n * row);
        }
    }
}

static void prepare_bands(const sx_cpu_site *site, pool_data *d, sx_cpu_step *step)
{
    const sx_pool_geometry *g = &d->geometry;
    const int64_t row_in = g->w.in * g->c;
    int64_t rows = 0;
    for (d->band = 1; d->band < g->h.out; d->band++) {
        (void)rows_read(&g->h, 0, d->band + 1, &rows);
        if ((rows + g->h.pad_before) * row_in * (int64_t)sizeof(float) > BAND_BYTES) {
            break;
        }
    }
    rows = (d->band - 1) * g->h.stride + (g->h.kernel - 1) * g->h.dilation + 1;
    d->band_in = SX_MIN(rows, g->h.in) * row_in;
    d->band_out = d->band * g->w.out * g->c;
    step->run = run_bands;
    step->range = sx_type_elems(site->out);
    step->scratch_bytes = (site->plan->team ? site->plan->workers : 1) *
                          (d->band_in + d->band_out) * (int64_t)sizeof(float);
}

/* Where an operand of a gradient is narrow: image after image, in float32 in scratch. */
static void run_images(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const pool_data *d = step->data;
    float *scratch = sx_cpu_at(call, step->scratch);
    sx_pool_geometry one = d->geometry;
    one.n = 1;
    for (int64_t k = 0; k < d->geometry.n; k++) {
        const void *in[MAX_IN];
        float *to = scratch;
        for (int i = 0; i < step->n_in; i++) {
            const int64_t n = d->image_elems[i];
            if (d->narrow_in >> i & 1) {
                const int64_t at = k * n * sx_cpu_form_bytes(&d->forms[i]);
                sx_cpu_from_form(d->vec, &d->forms[i], (char *)sx_cpu_in(step, call, i) + at, to,
                                 n);
                in[i] = to;
                to += n;
            } else {
                in[i] = (const float *)sx_cpu_in(step, call, i) + k * n;
            }
        }
        const int64_t n = d->image_elems[step->n_in];
        if (d->narrow_out) {
            d->pool(d, &one, in, to);
            const sx_cpu_form *form = &d->forms[step->n_in];
            const int64_t at = k * n * sx_cpu_form_bytes(form);
            sx_cpu_to_form(d->vec, form, to, (char *)sx_cpu_out(step, call, 0) + at, n);
        } else {
            d->pool(d, &one, in, (float *)sx_cpu_out(step, call, 0) + k * n);
        }
    }
}

typedef struct pool_row {
    int op;
    pool_fn *pool;
    bool grad;     /* the image is the output */
    int pooled_in; /* input of the pooled size; -1: the output */
} pool_row;

static const pool_row rows[] = {
    {SX_OPID_max_pool2d, max_pool, false, -1},
    {SX_OPID_max_pool2d_grad, max_pool_grad, false, 1},
    {SX_OPID_avg_pool2d, avg_pool, false, -1},
    {SX_OPID_avg_pool2d_grad, avg_pool_grad, true, 0},
};

static sx_status prepare_pool(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_node *n = site->nodes[site->n_nodes - 1];
    pool_data *d = sx_cpu_new(site, pool_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->bytes = sx_dtype_bytes(site->out[0].dtype);
    d->relu = site->nodes[0]->op->id == SX_OPID_relu_grad;
    d->rounds = site->nodes[0]->op->id == SX_OPID_round_bf16;
    d->narrow_in = site->narrow_in;
    d->narrow_out = site->narrow_out;
    step->data = d;
    step->run = d->narrow_in != 0 || d->narrow_out ? run_images : run_pool;
    for (int i = 0; i <= site->n_in; i++) {
        const sx_type *t = i < site->n_in ? &site->in[i] : site->out;
        const bool narrow = i < site->n_in ? d->narrow_in >> i & 1 : d->narrow_out;
        d->forms[i] = site->forms[i];
        d->image_elems[i] = t->dims[0] > 0 ? sx_type_elems(t) / t->dims[0] : 0;
        step->scratch_bytes += narrow ? d->image_elems[i] * (int64_t)sizeof(float) : 0;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == n->op->id) {
            d->pool = rows[i].pool;
            SX_TRY(sx_pool_geometry_of(n->attrs, rows[i].grad ? &site->out[0] : &site->in[0],
                                       &d->geometry));
            const sx_type *pooled =
                rows[i].pooled_in >= 0 ? &site->in[rows[i].pooled_in] : site->out;
            d->geometry.h.out = pooled->dims[1]; /* perhaps a part: crop.c */
            d->geometry.w.out = pooled->dims[2];
            const bool forward = rows[i].pooled_in < 0 && sx_type_elems(site->out) > 0;
            if (forward && d->forms[0].dtype == SX_BF16 && d->forms[1].dtype == SX_BF16) {
                d->bytes = sizeof(uint16_t);
                step->scratch_bytes = 0;
            }
            if (forward && (step->run == run_pool || d->bytes == sizeof(uint16_t))) {
                step->run = run_rows;
                step->range = sx_type_elems(site->out);
            } else if (forward) {
                prepare_bands(site, d, step);
            }
        }
    }
    return SX_OK;
}

#define POOL_ROW(row_name, op_name, match_fn)                                \
    const sx_cpu_kernel sx_cpu_kernel_##row_name = {.name = #row_name,       \
                                                    .op = SX_OPID_##op_name, \
                                                    .match = (match_fn),     \
                                                    .prepare = prepare_pool, \
                                                    .narrow_in = 7,          \
                                                    .narrow_out = true,      \
                                                    .bytes_in = 7,           \
                                                    .bytes_out = true,       \
                                                    .parts = true}
POOL_ROW(max_pool, max_pool2d, match_float);
POOL_ROW(max_pool_grad_relu, relu_grad, match_grad_relu);
POOL_ROW(max_pool_grad, max_pool2d_grad, match_float);
POOL_ROW(avg_pool, avg_pool2d, match_float);
POOL_ROW(avg_pool_grad, avg_pool2d_grad, match_float);
/* Before elementwise groups, which would take the rounding. */
const sx_cpu_kernel sx_cpu_kernel_avg_pool_round = {.name = "avg_pool_round",
                                                    .op = SX_OPID_round_bf16,
                                                    .match = match_avg_round,
                                                    .prepare = prepare_pool,
                                                    .narrow_in = 1,
                                                    .narrow_out = true,
                                                    .parts = true,
                                                    .early = true};
