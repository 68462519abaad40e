/* random_binomial: random numbers of the binomial distribution that are a function of a key and a
 * counter, the same as TensorFlow's. No gradient.
 *
 *   shape, key, counter, alg   as in random_stream.h; shape ends with what counts and probs
 *                              broadcast to
 *   counts    float16, float32 or float64
 *   probs     of counts' dtype
 *   dtype     float16, float32, float64, int32 or int64
 *   returns   dtype [shape]: how many of `counts` trials of probability `probs` succeed
 *
 * With p at most 1/2 (else of 1 - p): where counts p is below 10, how often a geometric number fits
 * into counts; from 10 on, W. Hoermann's transformed rejection.
 *
 * Errors   INVALID_ARGUMENT    dtypes; (running) a shape that does not end with theirs; a count
 *                              that is not finite
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Source   TensorFlow StatelessRandomBinomial; W. Hoermann, "The generation of binomial random
 *          variates" (1993) */
#ifdef SX_ATTRS
typedef struct sx_random_binomial_attrs {
    sx_dtype dtype;
} sx_random_binomial_attrs;
#endif

#include "graph/ops/random_stream.h"

#include <math.h>

/* Groups of four words that an element has, by the method. */
enum { DRAWS_OF_REJECTION = 256, DRAWS_OF_INVERSION = 42, MOST_TRIALS = 1 << 16 };

static const sx_attr_def random_binomial_attrs[] = {
    SX_ATTR_TF(sx_random_binomial_attrs, dtype, SX_ATTR_DTYPE, .tf_number = SX_I64)};

static sx_status random_binomial_infer(sx_infer_context *c)
{
    const sx_random_binomial_attrs *a = c->attrs;
    const sx_dtype d = a->dtype, t = c->inputs[4].dtype;
    if ((d != SX_F16 && d != SX_F32 && d != SX_F64 && d != SX_I32 && d != SX_I64) ||
        (t != SX_F16 && t != SX_F32 && t != SX_F64)) {
        return sx_error(SX_INVALID_ARGUMENT, "counts are %s and dtype is %s, expected a float",
                        SX_TEXT(&c->inputs[4]), sx_dtype_name(d));
    }
    SX_TRY(sx_require_dtype("probs", &c->inputs[5], t));
    return sx_random_infer(c, d);
}

static sx_status random_binomial_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_random_binomial_attrs *a = c->attrs;
    sx_type both;
    SX_TRY(sx_infer_broadcast(&c->in[4].type, &c->in[5].type, &both));
    return sx_random_shaped_type(c, a->dtype, &both, "that of counts and probs", &out_types[0]);
}

static double by_inversion(double count, double p, sx_random_pairs *draws)
{
    double sum = 0;
    for (double n = 0;; n++) {
        sum += ceil(log(sx_random_next_uniform(draws)) / log1p(-p));
        if (sum > count) {
            return n;
        }
    }
}

/* What Stirling's formula leaves of log k! */
static double stirling_rest(double k)
{
    static const double first[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                   0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                   0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                   0.00833056343336287};
    const double square = (k + 1) * (k + 1);
    return k <= 9 ? first[(int)k]
                  : (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

static double by_rejection(double count, double p, sx_random_pairs *draws)
{
    const double deviation = sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation,
                 a = -0.0873 + 0.0248 * b + 0.01 * p, center = count * p + 0.5,
                 quick = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation,
                 m = floor((count + 1) * p);
    for (int trial = 0; trial < MOST_TRIALS; trial++) {
        const double u = sx_random_next_uniform(draws) - 0.5, v = sx_random_next_uniform(draws);
        const double near = 0.5 - fabs(u), k = floor((2 * a / near + b) * u + center);
        if (near >= 0.07 && v <= quick) {
            return k;
        }
        if (k < 0 || k > count) {
            continue;
        }
        const double most = (m + 0.5) * log((m + 1) / (r * (count - m + 1))) +
                            (count + 1) * log((count - m + 1) / (count - k + 1)) +
                            (k + 0.5) * log(r * (count - k + 1) / (k + 1)) + stirling_rest(m) +
                            stirling_rest(count - m) - stirling_rest(k) - stirling_rest(count - k);
        if (log(v * alpha / (a / (near * near) + b)) <= most) {
            return k;
        }
    }
    return NAN;
}

static sx_status random_binomial_host(const sx_kernel_call *c)
{
    const sx_type *counts = &c->in[4].type, *probs = &c->in[5].type;
    const int64_t n = sx_type_elems(&c->out[0].type);
    sx_type both;
    sx_philox_stream first;
    SX_TRY(sx_random_open(c, &first));
    SX_TRY(sx_infer_broadcast(counts, probs, &both));
    const int64_t batches = sx_type_elems(&both), samples = batches > 0 ? n / batches : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t batch = i / samples;
        const double count = c->in[4].f[sx_broadcast_offset(&both, counts, batch)],
                     p = c->in[5].f[sx_broadcast_offset(&both, probs, batch)];
        const bool mirrored = p > 0.5;
        const bool narrow = counts->dtype != SX_F64;
        const double q = !mirrored ? p : narrow ? (double)(float)(1 - p) : 1 - p;
        const double product = narrow ? (double)(float)(count * q) : count * q;
        sx_philox_stream s = first;
        sx_random_pairs draws = {.stream = &s};
        double y;
        if (i % 1024 == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        if (!isfinite(count)) {
            return sx_error(SX_INVALID_ARGUMENT, "count %lld is %g, expected a finite number",
                            (long long)batch, count);
        }
        if (count <= 0 || p <= 0) {
            y = 0;
        } else if (p >= 1) {
            y = count;
        } else if (isnan(p)) {
            y = NAN;
        } else {
            sx_philox_skip(&s,
                           (uint64_t)i * (product >= 10 ? DRAWS_OF_REJECTION : DRAWS_OF_INVERSION));
            y = product >= 10 ? by_rejection(count, q, &draws) : by_inversion(count, q, &draws);
            y = mirrored ? count - y : y;
        }
        sx_host_set(&c->out[0], i % samples * batches + batch, y);
    }
    return SX_OK;
}

const sx_op_def sx_op_random_binomial = {
    SX_OP_NAMED(random_binomial),
    .n_in = 6,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_random_binomial_attrs, random_binomial_attrs),
    .infer = random_binomial_infer,
    .host = random_binomial_host,
    .host_types = random_binomial_host_types,
};
