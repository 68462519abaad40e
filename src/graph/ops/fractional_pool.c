/* fractional_pool: the greatest, or the mean, of windows whose sizes differ by one, so that images
 * become smaller by a ratio that is no whole number.
 *
 * Which windows are the larger ones is a function of the seeds: `pseudo_random`, the ends of the
 * windows are ceil(alpha (i + u)), alpha = size / windows, for one number u; otherwise the sizes
 * are shuffled.
 *
 *   x            [N, height, width, channels], float32, float64, int32 or int64
 *   height_ratio, width_ratio   1 or more; floor(size / ratio), in float32, windows
 *   seed, seed2
 *   average      the mean; of integers, cut off
 *   overlapping  a window has the first row, or column, of the next, too
 *   returns      x's dtype [N, rows, columns, channels]; int64 [rows + 1] and [columns + 1]: where
 *                the windows begin, and the size
 *
 * Errors   INVALID_ARGUMENT  dtype, rank, ratios; (running) an image that is smaller than a ratio
 * Source   TensorFlow FractionalMaxPool, FractionalAvgPool, with seeds and `deterministic`;
 *          B. Graham, Fractional Max-Pooling, 2014 */
#ifdef SX_ATTRS
/* fractional_pool; fractional_pool_grad: average, overlapping */
typedef struct sx_fractional_pool_attrs {
    double height_ratio, width_ratio;
    int64_t seed, seed2;
    bool average, pseudo_random, overlapping;
} sx_fractional_pool_attrs;
#endif

#include <math.h>

#include "graph/ops/random_stream.h"

static const sx_attr_def fractional_pool_attrs[] = {
    SX_ATTR(sx_fractional_pool_attrs, height_ratio, SX_ATTR_FLOAT),
    SX_ATTR(sx_fractional_pool_attrs, width_ratio, SX_ATTR_FLOAT),
    SX_ATTR_TF(sx_fractional_pool_attrs, seed, SX_ATTR_INT),
    SX_ATTR_TF(sx_fractional_pool_attrs, seed2, SX_ATTR_INT),
    SX_ATTR(sx_fractional_pool_attrs, average, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_fractional_pool_attrs, pseudo_random, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_fractional_pool_attrs, overlapping, SX_ATTR_BOOL),
};

static int64_t windows_of(int64_t size, double ratio)
{
    return (int64_t)floorf((float)size / (float)ratio);
}

static sx_status fractional_pool_infer(sx_infer_context *c)
{
    const sx_fractional_pool_attrs *a = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (x->dtype != SX_F32 && x->dtype != SX_F64 && x->dtype != SX_I32 && x->dtype != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected float32, float64, int32 or int64",
                        SX_TEXT(x));
    }
    SX_TRY(sx_require_maybe("x", x, x->dtype, 4, "[N, height, width, channels]"));
    if (!(a->height_ratio >= 1 && a->width_ratio >= 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "the ratios are %g and %g, expected 1 or more",
                        a->height_ratio, a->width_ratio);
    }
    c->outputs[0] = x->rank == 4 ? *x
                                 : sx_type_of(x->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM,
                                              SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    for (int d = 1; d <= 2; d++) {
        const int64_t size = x->rank == 4 && x->dims[d] >= 0
                                 ? windows_of(x->dims[d], d == 1 ? a->height_ratio : a->width_ratio)
                                 : SX_UNKNOWN_DIM;
        c->outputs[0].dims[d] = size;
        c->outputs[d] = sx_type_of(SX_I64, size >= 0 ? size + 1 : SX_UNKNOWN_DIM);
    }
    return SX_OK;
}

static void fractional_pool_gradient(sx_grad *g)
{
    if (sx_value_is(g->dy[0])) {
        g->dx[0] = sx_build_op(g->b, fractional_pool_grad, g->attrs, g->x[0], g->y[0], g->dy[0],
                               g->y[1], g->y[2]);
    }
}

static sx_status fractional_pool_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    SX_TRY(sx_host_types_inferred(c, fractional_pool_infer, 3, out_types));
    return out_types[0].dims[1] > 0 && out_types[0].dims[2] > 0
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "images of %s are smaller than the ratios",
                          SX_TEXT(&c->in[0].type));
}

/* Where `n` windows of `size` elements begin, and at[n] = size. Takes the words that it draws off
 * the stream, in fours. */
static void place_windows(const sx_fractional_pool_attrs *a, int64_t size, int64_t n,
                          sx_philox_stream *stream, int64_t *at)
{
    sx_random_words r = {.stream = *stream};
    const int64_t least = size / n;
    at[0] = 0;
    if (a->pseudo_random) {
        const double alpha = (double)size / (double)n;
        const double most = fmin((double)(least + 2) / alpha - 1,
                                 (double)(size + 1 - least) / alpha - (double)(n - 1));
        const uint32_t first = sx_random_word(&r), second = sx_random_word(&r);
        const double u = sx_random_double(first, second) * most;
        for (int64_t i = 1; i < n; i++) {
            at[i] = (int64_t)ceil(alpha * ((double)i + u)) - 1;
        }
        at[n] = size;
        sx_philox_skip(stream, 1);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        at[i + 1] = least + (i < size % n);
    }
    for (int64_t i = 0; i + 1 < n; i++) {
        const int64_t other = i + (int64_t)(sx_random_word(&r) % (uint64_t)(n - i));
        const int64_t swapped = at[other + 1];
        at[other + 1] = at[i + 1];
        at[i + 1] = swapped;
    }
    for (int64_t i = 0; i < n; i++) {
        at[i + 1] += at[i];
    }
    sx_philox_skip(stream, (uint64_t)(n + 3) / 4);
}

static sx_status fractional_pool_host(const sx_kernel_call *c)
{
    const sx_fractional_pool_attrs *a = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t *rows = c->out[1].i, *columns = c->out[2].i;
    const bool is_float = sx_carrier_of(x->dtype) == SX_CARRIER_F;
    sx_philox_stream stream = {
        .key = {(uint32_t)a->seed, (uint32_t)((uint64_t)a->seed >> 32)},
        .counter = {0, 0, (uint32_t)a->seed2, (uint32_t)((uint64_t)a->seed2 >> 32)}};
    place_windows(a, x->dims[1], y->dims[1], &stream, c->out[1].i);
    place_windows(a, x->dims[2], y->dims[2], &stream, c->out[2].i);
    for (int64_t k = 0, n = sx_type_elems(y); k < n; k++) {
        int64_t to[SX_MAX_RANK];
        sx_unravel(y, k, to);
        const int64_t bottom = SX_MIN(rows[to[1] + 1] + a->overlapping, x->dims[1]),
                      right = SX_MIN(columns[to[2] + 1] + a->overlapping, x->dims[2]);
        int64_t count = 0;
        double f = 0;
        int64_t i = 0;
        if (k % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        for (int64_t h = rows[to[1]]; h < bottom; h++) {
            for (int64_t w = columns[to[2]]; w < right; w++, count++) {
                const int64_t from =
                    ((to[0] * x->dims[1] + h) * x->dims[2] + w) * x->dims[3] + to[3];
                if (is_float) {
                    const double v = c->in[0].f[from];
                    f = a->average ? f + v : count == 0 || v > f ? v : f;
                } else {
                    const int64_t v = c->in[0].i[from];
                    i = a->average ? SX_WRAP(i, +, v) : count == 0 || v > i ? v : i;
                }
            }
        }
        if (is_float) {
            c->out[0].f[k] = a->average ? f / (double)count : f;
        } else {
            c->out[0].i[k] = a->average ? i / count : i;
        }
    }
    return SX_OK;
}

static sx_status from_tf(const sx_tf_node *n, bool average, void *out)
{
    sx_fractional_pool_attrs *a = out;
    sx_tf_attr ratios;
    if (!n->attr(n, "pooling_ratio", &ratios) || ratios.kind != SX_TF_ATTR_FLOATS ||
        ratios.count != 4 || ratios.floats[0] != 1 || ratios.floats[3] != 1) {
        return sx_error(SX_UNIMPLEMENTED, "pooling_ratio is not four numbers, 1 but for height "
                                          "and width");
    }
    if (!sx_tf_read_bool(n, "deterministic", false) || (a->seed == 0 && a->seed2 == 0)) {
        return sx_error(SX_UNIMPLEMENTED, "its windows are other ones at each call, without "
                                          "`deterministic` and a seed");
    }
    a->height_ratio = (double)ratios.floats[1];
    a->width_ratio = (double)ratios.floats[2];
    a->average = average;
    return SX_OK;
}

static sx_status max_from_tf(const sx_tf_node *n, void *out)
{
    return from_tf(n, false, out);
}

static sx_status average_from_tf(const sx_tf_node *n, void *out)
{
    return from_tf(n, true, out);
}

static const sx_op_sample fractional_pool_samples[] = {
    {.name = "max",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 2, 9, 7, 2)},
     .n_inputs = 1,
     .attrs =
         &(const sx_fractional_pool_attrs){.height_ratio = 1.5, .width_ratio = 1.3, .seed = 3}},
    {.name = "average_overlapping",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 9, 7, 2)},
     .n_inputs = 1,
     .attrs = &(const sx_fractional_pool_attrs){1.7, 1.3, 3, 4, true, true, true}},
};

const sx_op_def sx_op_fractional_pool = {
    SX_OP_NAMED(fractional_pool),
    .n_in = 1,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_fractional_pool_attrs, fractional_pool_attrs),
    .infer = fractional_pool_infer,
    .grad = fractional_pool_gradient,
    .host = fractional_pool_host,
    .host_types = fractional_pool_host_types,
    SX_FROM_TF({.op = "FractionalMaxPool", .attrs = max_from_tf},
               {.op = "FractionalAvgPool", .attrs = average_from_tf}),
    SX_OP_SAMPLES(fractional_pool_samples),
};
