/* random_gamma: random numbers of the gamma distribution with scale 1 that are a function of a key
 * and a counter, the same as TensorFlow's.
 *
 *   shape, key, counter, alg   as in random_stream.h; shape ends with alpha's
 *   alpha                      a float16, float32 or float64, above 0
 *   returns                    alpha's dtype [shape]
 *
 * Marsaglia and Tsang's transformation: with d = alpha - 1/3, c = 1 / (3 sqrt d), x normal and u
 * uniform, d (1 + c x)^3 is accepted if log u < x^2 / 2 + d - d v + d log v, v = (1 + c x)^3. For
 * alpha below 1, that of alpha + 1 times uniform^(1 / alpha); for alpha 1, -log(1 - u). The draws
 * of an element come from 1024 words of its own.
 *
 * Errors   INVALID_ARGUMENT    dtype; (running) shape that does not end with alpha's, no alpha
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Source   TensorFlow StatelessRandomGammaV3; G. Marsaglia, W. Tsang, "A simple method for
 *          generating gamma variables", ACM TOMS 26 (2000) */
#include "graph/ops/random_stream.h"

#include <math.h>

enum { DRAWS_OF_ONE = 256 }; /* of four words */

static sx_status random_gamma_infer(sx_infer_context *c)
{
    const sx_dtype d = c->inputs[4].dtype;
    if (!sx_dtype_is_float(d)) {
        return sx_error(SX_INVALID_ARGUMENT, "alpha is %s, expected a float",
                        SX_TEXT(&c->inputs[4]));
    }
    return sx_random_infer(c, d);
}

static void random_gamma_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_value alpha = g->x[4], y = g->y[0];
    const sx_value slope = sx_gamma_slope(b, alpha, y);
    g->dx[4] = sx_unbroadcast(b, sx_build_op(b, mul, NULL, g->dy[0], slope), alpha);
}

static sx_status random_gamma_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *alpha = &c->in[4].type;
    return sx_random_shaped_type(c, alpha->dtype, alpha, "alpha's", &out_types[0]);
}

static sx_status random_gamma_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type), alphas = sx_type_elems(&c->in[4].type);
    sx_philox_stream first;
    SX_TRY(sx_random_open(c, &first));
    if (n > 0 && alphas == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "alpha is %s, without elements",
                        SX_TEXT(&c->in[4].type));
    }
    for (int64_t i = 0; i < n; i++) {
        const double alpha = c->in[4].f[i / (n / alphas)];
        const double d = alpha + (alpha < 1 ? 2. / 3 : -1. / 3), scale = 1. / 3 / sqrt(d);
        double *y = &c->out[0].f[i % (n / alphas) * alphas + i / (n / alphas)];
        sx_philox_stream s = first;
        sx_random_pairs normals = {.stream = &s}, uniforms = {.stream = &s};
        if (i % 1024 == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        sx_philox_skip(&s, (uint64_t)i * DRAWS_OF_ONE);
        if (alpha == 1) {
            *y = -log1p(-sx_random_next_uniform(&uniforms));
            continue;
        }
        *y = NAN; /* of an alpha that is not above 0 */
        for (int draw = 0; draw < DRAWS_OF_ONE && d > 0; draw++) {
            const double x = sx_random_next_normal(&normals);
            double v = 1 + scale * x;
            if (v <= 0) {
                continue;
            }
            v = v * v * v;
            const double u = sx_random_next_uniform(&uniforms);
            if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
                *y = d * v;
                if (alpha < 1) {
                    *y *= pow(sx_random_next_uniform(&uniforms), 1 / alpha);
                }
                break;
            }
        }
    }
    return SX_OK;
}

static void random_gamma_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_random_gamma, "StatelessRandomGammaV3",
               sx_tf_attrs(sx_tf_attr_type("dtype", (int)op->in_types[4].dtype),
                           sx_tf_attr_type("shape_dtype", (int)op->in_types[0].dtype)));
}

static const double shape[] = {5, 3}, key[] = {123456789}, counter[] = {5, 17}, alg[] = {1},
                    alpha[] = {0.3, 1, 2.5};
static const sx_op_sample random_gamma_samples[] = {
    {.name = "below_and_above_1",
     .inputs = {SX_SAMPLE_LIST(SX_I32, shape, 2), SX_SAMPLE_LIST(SX_U64, key, 1),
                SX_SAMPLE_LIST(SX_U64, counter, 2), SX_SAMPLE_ONE(SX_I32, alg),
                SX_SAMPLE_LIST(SX_F32, alpha, 3)},
     .n_inputs = 5,
     .no_grad_check =
         true}, /* the gradient follows the distribution, not the draws that are refused */
};

const sx_op_def sx_op_random_gamma = {
    SX_OP_NAMED(random_gamma),
    .n_in = 5,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = random_gamma_infer,
    .grad = random_gamma_gradient,
    .host = random_gamma_host,
    .host_types = random_gamma_host_types,
    .to_tf = random_gamma_to_tf,
    SX_FROM_TF({.op = "StatelessRandomGammaV3"}),
    SX_OP_SAMPLES(random_gamma_samples),
};
