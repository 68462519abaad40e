/* random_truncated_normal: random numbers of normal distributions, each within bounds of its own,
 * that are a function of a key and a counter, the same as TensorFlow's.
 *
 *   shape, key, counter, alg   as in random_stream.h; shape ends with that of the parameters
 *   means, stddevs, minvals, maxvals   float32 or float64; they broadcast. stddevs above 0, minvals
 *              below maxvals, one of them finite
 *   returns    means' dtype [shape]
 *
 * With a = (minval - mean) / stddev and b = (maxval - mean) / stddev, mirrored where minval is -∞
 * or maxval below the mean, z in [a, b] is drawn and gives mean + stddev z:
 *
 *   a < -1.3, b >= 0, or b > 1.3, a <= 0   normal; those outside of the bounds are drawn again
 *   b - a is small                         uniform, accepted with probability
 *                                          e^((max(a, 0)^2 - z^2) / 2)
 *   else                                   a + exponential of rate r = (a + sqrt(a^2 + 4)) / 2,
 *                                          accepted with probability e^(-x^2 / 2), x = r - z or,
 *                                          where a >= r, a - r
 *
 * The numbers of one set of parameters are drawn one after the other, then those of the next.
 * TensorFlow gives each of its threads, of which there are more for more numbers, a stream of its
 * own; these are the numbers of one thread.
 *
 * Errors   INVALID_ARGUMENT    dtypes; (running) parameters; shape that does not end with theirs
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) too many numbers, or draws for one of them
 * Source   TensorFlow StatelessParameterizedTruncatedNormal; C. P. Robert, "Simulation of truncated
 *          normal variables", Statistics and Computing 5 (1995) */
#include "graph/ops/random_stream.h"

#include <math.h>

enum { PARAMETERS = 4, MOST_DRAWS = 1000 };

static sx_status random_truncated_normal_infer(sx_infer_context *c)
{
    const sx_dtype d = c->inputs[PARAMETERS].dtype;
    for (int i = PARAMETERS; i < 2 * PARAMETERS; i++) {
        if ((d != SX_F32 && d != SX_F64) || c->inputs[i].dtype != d) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "means are %s and parameter %d is %s, expected float32 or float64, "
                            "the same for all",
                            SX_TEXT(&c->inputs[PARAMETERS]), i - PARAMETERS,
                            SX_TEXT(&c->inputs[i]));
        }
    }
    return sx_random_infer(c, d);
}

/* The shape that the four parameters broadcast to. */
static sx_status shape_of_all(const sx_kernel_call *c, sx_type *out)
{
    *out = c->in[PARAMETERS].type;
    for (int i = PARAMETERS + 1; i < 2 * PARAMETERS; i++) {
        SX_TRY(sx_infer_broadcast(out, &c->in[i].type, out));
    }
    return SX_OK;
}

static sx_status random_truncated_normal_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    sx_type all;
    SX_TRY(shape_of_all(c, &all));
    return sx_random_shaped_type(c, all.dtype, &all, "the parameters'", &out_types[0]);
}

/* ---- Draws of one set of parameters ---- */

typedef struct sampler {
    sx_philox_stream *stream;
    bool wide;           /* float64: four words give two numbers, else four */
    double low, high;    /* a, b */
    double mean, stddev; /* below 0 where the distribution is mirrored */
    double *out;
    int64_t step, left; /* out[k step], of which so many are missing */
    int draws;          /* for the next */
} sampler;

/* v as the dtype has it. */
static double as(const sampler *s, double v)
{
    return s->wide ? v : (double)(float)v;
}

/* Takes z as the next number, or not; true: more are missing. */
static bool offer(sampler *s, double z, bool accepted)
{
    s->draws = accepted ? 0 : s->draws + 1;
    if (accepted) {
        *s->out = as(s, z * s->stddev) + s->mean;
        s->out += s->step;
        s->left--;
    }
    return s->left > 0;
}

/* Uniform, or normal, numbers of the next four words; how many. */
static int draw(sampler *s, bool normal, double v[4])
{
    uint32_t w[4];
    sx_philox_next(s->stream, w);
    if (s->wide && normal) {
        sx_random_normal_doubles(w, v);
    } else if (normal) {
        sx_random_normal_floats(w, v);
        sx_random_normal_floats(w + 2, v + 2);
    } else if (s->wide) {
        v[0] = sx_random_double(w[0], w[1]);
        v[1] = sx_random_double(w[2], w[3]);
    } else {
        for (int k = 0; k < 4; k++) {
            v[k] = sx_random_float(w[k]);
        }
    }
    return s->wide ? 2 : 4;
}

static void draw_normal(sampler *s)
{
    double v[4];
    const int n = draw(s, true, v);
    for (int k = 0; k < n; k++) {
        if (!offer(s, v[k], v[k] >= s->low && v[k] <= s->high)) {
            return;
        }
    }
}

static void draw_uniform(sampler *s)
{
    const double most = s->low < 0 ? 0 : s->low * s->low;
    double v[4], u[4];
    const int n = draw(s, false, v);
    (void)draw(s, false, u);
    for (int k = 0; k < n; k++) {
        const double z = as(s, as(s, v[k] * as(s, s->high - s->low)) + s->low);
        if (!offer(s, z, u[k] <= exp((most - z * z) / 2))) {
            return;
        }
    }
}

static void draw_exponential(sampler *s)
{
    const double rate = as(s, (s->low + sqrt(s->low * s->low + 4)) / 2);
    double v[4];
    const int n = draw(s, false, v);
    for (int k = 0; k < n; k += 2) {
        const double z = as(s, as(s, -log(v[k]) / rate) + s->low);
        const double x = s->low < rate ? rate - z : s->low - rate;
        if (!offer(s, z, v[k + 1] <= exp(-x * x / 2) && z < s->high)) {
            return;
        }
    }
}

static sx_status draw_all(sampler *s, const sx_cancel *cancel)
{
    const double most_inside = s->wide ? 1.3 : (double)1.3f;
    const double root = sqrt(s->low * s->low + 4);
    const double narrow = 2 * exp(0.5 + s->low * (s->low - root) / 4) / (s->low + root);
    const bool normal =
        (s->low < -most_inside && s->high >= 0) || (s->high > most_inside && s->low <= 0);
    for (int64_t k = 0; s->left > 0; k++) {
        if (k % 1024 == 0) {
            SX_TRY(sx_cancel_check(cancel));
        }
        if (s->draws >= MOST_DRAWS) {
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "none of %d numbers was within bounds %g and %g of a mean of %g",
                            MOST_DRAWS, s->low, s->high, s->mean);
        }
        if (normal) {
            draw_normal(s);
        } else if (s->high - s->low < narrow) {
            draw_uniform(s);
        } else {
            draw_exponential(s);
        }
    }
    return SX_OK;
}

static sx_status random_truncated_normal_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type);
    const bool wide = c->out[0].type.dtype == SX_F64;
    sx_type all;
    sx_philox_stream stream;
    SX_TRY(sx_random_open(c, &stream));
    SX_TRY(shape_of_all(c, &all));
    const int64_t sets = sx_type_elems(&all);
    for (int64_t i = 0; i < sets && n > 0; i++) {
        double p[PARAMETERS];
        for (int k = 0; k < PARAMETERS; k++) {
            const sx_host_tensor *t = &c->in[PARAMETERS + k];
            p[k] = t->f[sx_broadcast_offset(&all, &t->type, i)];
        }
        double low = p[2], high = p[3];
        if (!(p[1] > 0) || !(low < high) || (!isfinite(low) && !isfinite(high))) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "set %lld of parameters has stddev %g, minval %g and maxval %g, "
                            "expected a stddev above 0, a minval below maxval, one of them finite",
                            (long long)i, p[1], low, high);
        }
        sampler s = {.stream = &stream,
                     .wide = wide,
                     .mean = p[0],
                     .stddev = p[1],
                     .out = &c->out[0].f[i],
                     .step = sets,
                     .left = n / sets};
        if ((isinf(low) && low < 0) || high < s.mean) {
            low = p[3];
            high = p[2];
            s.stddev = -s.stddev;
        }
        s.low = as(&s, as(&s, low - s.mean) / s.stddev);
        s.high = as(&s, as(&s, high - s.mean) / s.stddev);
        SX_TRY(draw_all(&s, c->cancel));
    }
    return SX_OK;
}

const sx_op_def sx_op_random_truncated_normal = {
    SX_OP_NAMED(random_truncated_normal),
    .n_in = 8,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_TF | SX_OP_REFUSES_GRAD,
    .infer = random_truncated_normal_infer,
    .host = random_truncated_normal_host,
    .host_types = random_truncated_normal_host_types,
};
