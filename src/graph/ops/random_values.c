/* random_values: random numbers that are a function of a key and a counter, the same as
 * TensorFlow's. No gradient.
 *
 *   shape, key, counter, alg   as in random_stream.h
 *   distribution  uniform           in [0, 1)
 *                 normal            mean 0, deviation 1
 *                 truncated_normal  the same; numbers beyond 2 deviations are drawn again
 *                 bits              any integer
 *   dtype         a float; int32, int64, uint32 or uint64 for `bits`
 *   returns       dtype[shape]
 *
 * Four words of the stream give four numbers, or two of float64, int64 and uint64. An element of
 * truncated_normal has 256 words of its own, so that its value does not depend on the others.
 *
 * Errors   INVALID_ARGUMENT    dtype; (running) shape, key or counter
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Numbers  uniform and bits exact; normal to the accuracy of the dtype's log, sin and cos
 * Source   TensorFlow StatelessRandomUniformV2, StatelessRandomNormalV2,
 * StatelessTruncatedNormalV2, StatelessRandomUniformFullIntV2
 * (core/lib/random/random_distributions.h) */
#ifdef SX_ATTRS
enum { SX_VALUES_UNIFORM, SX_VALUES_NORMAL, SX_VALUES_TRUNCATED_NORMAL, SX_VALUES_BITS };
typedef struct sx_random_values_attrs {
    int32_t distribution; /* SX_VALUES_ */
    sx_dtype dtype;
} sx_random_values_attrs;
#endif

#include "graph/ops/random_stream.h"

#include <math.h>

enum { WORDS_OF_ONE = 256 };

static const char *const distributions[] = {"uniform", "normal", "truncated_normal", "bits", NULL};
static const char *const tf_ops[] = {"StatelessRandomUniformV2", "StatelessRandomNormalV2",
                                     "StatelessTruncatedNormalV2",
                                     "StatelessRandomUniformFullIntV2"};

static const sx_attr_def random_values_attrs[] = {
    SX_ATTR_NAMES(sx_random_values_attrs, distribution, distributions),
    SX_ATTR(sx_random_values_attrs, dtype, SX_ATTR_DTYPE),
};

static sx_status random_values_infer(sx_infer_context *c)
{
    const sx_random_values_attrs *attrs = c->attrs;
    const sx_dtype d = attrs->dtype;
    const bool fits = attrs->distribution == SX_VALUES_BITS
                          ? d == SX_I32 || d == SX_I64 || d == SX_U32 || d == SX_U64
                          : sx_dtype_is_float(d);
    if (!fits) {
        return sx_error(SX_INVALID_ARGUMENT, "there are no random numbers %s of %s",
                        distributions[attrs->distribution], sx_dtype_name(d));
    }
    return sx_random_infer(c, d);
}

static sx_status random_values_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_shaped_type("shape", &c->in[0], ((const sx_random_values_attrs *)c->attrs)->dtype,
                          &out_types[0]);
}

/* The numbers that four words give: two, or four. */
static void group_of(const sx_random_values_attrs *attrs, const uint32_t w[4], double y[4])
{
    const bool is_double = attrs->dtype == SX_F64;
    if (attrs->distribution == SX_VALUES_NORMAL && is_double) {
        sx_random_normal_doubles(w, y);
    } else if (attrs->distribution == SX_VALUES_NORMAL) {
        sx_random_normal_floats(w, y);
        sx_random_normal_floats(w + 2, y + 2);
    } else if (is_double) {
        y[0] = sx_random_double(w[0], w[1]);
        y[1] = sx_random_double(w[2], w[3]);
    } else {
        const uint32_t one = attrs->dtype == SX_F16    ? 1 << 10
                             : attrs->dtype == SX_BF16 ? 1 << 7
                                                       : 1 << 23;
        for (int k = 0; k < 4; k++) {
            y[k] = (double)(w[k] & (one - 1)) / one;
        }
    }
}

/* `count` numbers within 2 deviations. */
static void truncated_of(const sx_random_values_attrs *attrs, sx_philox_stream at, int count,
                         double *y)
{
    sx_random_words r = {.stream = at};
    for (int n = 0; n < count;) {
        uint32_t w[4];
        double pair[2];
        for (int k = 0; k < (attrs->dtype == SX_F64 ? 4 : 2); k++) {
            w[k] = sx_random_word(&r);
        }
        if (attrs->dtype == SX_F64) {
            sx_random_normal_doubles(w, pair);
        } else {
            sx_random_normal_floats(w, pair);
        }
        for (int k = 0; k < 2 && n < count; k++) {
            if (fabs(pair[k]) < 2) {
                y[n++] = pair[k];
            }
        }
    }
}

static sx_status random_values_host(const sx_kernel_call *c)
{
    const sx_random_values_attrs *attrs = c->attrs;
    const bool wide = sx_dtype_bytes(attrs->dtype) == 8;
    const int of_four = wide ? 2 : 4;
    const int64_t n = sx_type_elems(&c->out[0].type);
    sx_philox_stream s;
    SX_TRY(sx_random_open(c, &s));
    for (int64_t i = 0; i < n; i += of_four) {
        if (i % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        uint32_t w[4];
        double y[4];
        if (attrs->distribution == SX_VALUES_TRUNCATED_NORMAL) {
            truncated_of(attrs, s, of_four, y);
            sx_philox_skip(&s, (uint64_t)(of_four * WORDS_OF_ONE / 4));
        } else {
            sx_philox_next(&s, w);
            if (attrs->distribution != SX_VALUES_BITS) {
                group_of(attrs, w, y);
            }
        }
        for (int k = 0; k < of_four && i + k < n; k++) {
            const uint64_t bits = wide ? (uint64_t)w[2 * k + 1] << 32 | w[2 * k] : w[k];
            if (attrs->distribution != SX_VALUES_BITS) {
                c->out[0].f[i + k] = y[k];
            } else if (attrs->dtype == SX_U64) {
                c->out[0].u[i + k] = bits;
            } else {
                c->out[0].i[i + k] = (int64_t)bits;
            }
        }
    }
    return SX_OK;
}

static void random_values_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_random_values_attrs *attrs = op->attrs;
    sx_tf_same(w, op, &sx_op_random_values, tf_ops[attrs->distribution],
               sx_tf_attrs(sx_tf_attr_type("dtype", (int)attrs->dtype),
                           sx_tf_attr_type("Tshape", (int)op->in_types[0].dtype)));
}

static sx_status read_attrs(const sx_tf_node *n, int32_t distribution, void *out)
{
    sx_random_values_attrs *attrs = out;
    attrs->distribution = distribution;
    attrs->dtype = sx_tf_read_dtype(n, "dtype", distribution == SX_VALUES_BITS ? SX_U64 : SX_F32);
    return SX_OK;
}

static sx_status uniform_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, SX_VALUES_UNIFORM, out);
}

static sx_status normal_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, SX_VALUES_NORMAL, out);
}

static sx_status truncated_normal_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, SX_VALUES_TRUNCATED_NORMAL, out);
}

static sx_status bits_from_tf(const sx_tf_node *n, void *out)
{
    return read_attrs(n, SX_VALUES_BITS, out);
}

static const double shape[] = {3, 7}, key[] = {123456789}, counter[] = {4294967295., 17},
                    alg[] = {1};
#define VALUES(name_, distribution_, dtype_)                                                 \
    {                                                                                        \
        .name = (name_),                                                                     \
        .inputs = {SX_SAMPLE_LIST(SX_I32, shape, 2), SX_SAMPLE_LIST(SX_U64, key, 1),         \
                   SX_SAMPLE_LIST(SX_U64, counter, 2), SX_SAMPLE_ONE(SX_I32, alg)},          \
        .n_inputs = 4, .attrs = (&(const sx_random_values_attrs){(distribution_), (dtype_)}) \
    }
static const sx_op_sample random_values_samples[] = {
    VALUES("uniform", SX_VALUES_UNIFORM, SX_F32),
    VALUES("normal", SX_VALUES_NORMAL, SX_F64),
    VALUES("truncated_normal", SX_VALUES_TRUNCATED_NORMAL, SX_F32),
    VALUES("bits", SX_VALUES_BITS, SX_I32),
};

const sx_op_def sx_op_random_values = {
    SX_OP_NAMED(random_values),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_random_values_attrs, random_values_attrs),
    .infer = random_values_infer,
    .host = random_values_host,
    .host_types = random_values_host_types,
    .to_tf = random_values_to_tf,
    SX_FROM_TF({.op = "StatelessRandomUniformV2", .attrs = uniform_from_tf},
               {.op = "StatelessRandomNormalV2", .attrs = normal_from_tf},
               {.op = "StatelessTruncatedNormalV2", .attrs = truncated_normal_from_tf},
               {.op = "StatelessRandomUniformFullIntV2", .attrs = bits_from_tf}),
    SX_OP_SAMPLES(random_values_samples),
};
