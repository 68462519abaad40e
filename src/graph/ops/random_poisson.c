/* random_poisson: random numbers of the Poisson distribution that are a function of a key and a
 * counter, the same as TensorFlow's. No gradient.
 *
 *   shape, key, counter, alg   as in random_stream.h; shape ends with rate's
 *   rate      float16, float32, float64, int32 or int64
 *   dtype     float16, float32, float64, int32 or int64
 *   returns   dtype [shape]
 *
 * Below 10: how many uniform numbers it takes until their product is at most exp(-rate), less 1
 * (Knuth). From 10 on: W. Hoermann's transformed rejection of pairs of uniform numbers. The draws
 * of an element come from 1024 words of its own.
 *
 * Errors   INVALID_ARGUMENT    dtypes; (running) a rate that is not finite, or too large; shape
 *                              that does not end with rate's
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Source   TensorFlow StatelessRandomPoisson; D. Knuth, TAOCP 2, 3.4.1; W. Hoermann, "The
 *          transformed rejection method for generating Poisson random variables" (1993) */
#ifdef SX_ATTRS
typedef struct sx_random_poisson_attrs {
    sx_dtype dtype;
} sx_random_poisson_attrs;
#endif

#include "graph/ops/random_stream.h"

#include <math.h>

enum { DRAWS_OF_ONE = 256, MOST_TRIALS = 1 << 16 };

static const sx_attr_def random_poisson_attrs[] = {
    SX_ATTR_TF(sx_random_poisson_attrs, dtype, SX_ATTR_DTYPE, .tf_number = SX_I64)};

static bool is_real(sx_dtype d)
{
    return d == SX_F16 || d == SX_F32 || d == SX_F64 || d == SX_I32 || d == SX_I64;
}

static sx_status random_poisson_infer(sx_infer_context *c)
{
    const sx_random_poisson_attrs *a = c->attrs;
    if (!is_real(c->inputs[4].dtype) || !is_real(a->dtype)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "rate is %s and dtype %s, expected float16, float32, float64, int32 or "
                        "int64",
                        SX_TEXT(&c->inputs[4]), sx_dtype_name(a->dtype));
    }
    return sx_random_infer(c, a->dtype);
}

static sx_status random_poisson_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_random_poisson_attrs *a = c->attrs;
    return sx_random_shaped_type(c, a->dtype, &c->in[4].type, "rate's", &out_types[0]);
}

/* -1: no number was accepted. */
static double poisson(double rate, sx_random_pairs *draws)
{
    if (rate < 10) {
        const double least = exp(-rate);
        double product = 1;
        for (double x = 0;; x++) {
            product *= sx_random_next_uniform(draws);
            if (product <= least) {
                return x;
            }
        }
    }
    const double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b,
                 scale = 1.1239 + 1.1328 / (b - 3.4);
    for (int trial = 0; trial < MOST_TRIALS; trial++) {
        const double u = sx_random_next_uniform(draws) - 0.5, v = sx_random_next_uniform(draws),
                     near = 0.5 - fabs(u), k = floor((2 * a / near + b) * u + rate + 0.43);
        if (near >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) {
            return k;
        }
        if (k < 0 || (near < 0.013 && v > near)) {
            continue;
        }
        if (log(v * scale / (a / (near * near) + b)) <= -rate + k * log_rate - lgamma(k + 1)) {
            return k;
        }
    }
    return -1;
}

static sx_status random_poisson_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type), rates = sx_type_elems(&c->in[4].type);
    sx_philox_stream first;
    SX_TRY(sx_random_open(c, &first));
    if (n > 0 && rates == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "rate is %s, without elements",
                        SX_TEXT(&c->in[4].type));
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t samples = n / rates;
        const double rate = sx_host_get(&c->in[4], i / samples);
        sx_philox_stream s = first;
        sx_random_pairs draws = {.stream = &s};
        if (i % 1024 == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        sx_philox_skip(&s, (uint64_t)i * DRAWS_OF_ONE);
        const double y = isfinite(rate) ? poisson(rate, &draws) : -1;
        if (y < 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "rate %lld is %g, expected a finite number that is not too large",
                            (long long)(i / samples), rate);
        }
        sx_host_set(&c->out[0], i % samples * rates + i / samples, y);
    }
    return SX_OK;
}

const sx_op_def sx_op_random_poisson = {
    SX_OP_NAMED(random_poisson),
    .n_in = 5,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_random_poisson_attrs, random_poisson_attrs),
    .infer = random_poisson_infer,
    .host = random_poisson_host,
    .host_types = random_poisson_host_types,
};
