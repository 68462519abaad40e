/* random_integers: random integers in [minval, maxval) that are a function of a key and a counter,
 * the same as TensorFlow's. No gradient.
 *
 *   shape, key, counter, alg   as in random_stream.h
 *   minval, maxval             int32, int64, uint32 or uint64 scalars, minval below maxval
 *   returns                    minval's dtype [shape]: minval + word mod (maxval - minval)
 *
 * A word has the bits of the dtype: four words of the stream give four, or two of 64 bits.
 *
 * Errors   INVALID_ARGUMENT    dtypes; (running) shape, key or counter, minval not below maxval
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Source   TensorFlow StatelessRandomUniformIntV2 (core/lib/random/random_distributions.h) */
#include "graph/ops/random_stream.h"

static sx_status random_integers_infer(sx_infer_context *c)
{
    const sx_dtype d = c->inputs[4].dtype;
    if (d != SX_I32 && d != SX_I64 && d != SX_U32 && d != SX_U64) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "minval is %s, expected int32, int64, uint32 or uint64",
                        SX_TEXT(&c->inputs[4]));
    }
    SX_TRY(sx_require_maybe("minval", &c->inputs[4], d, 0, "a scalar"));
    SX_TRY(sx_require_maybe("maxval", &c->inputs[5], d, 0, "a scalar"));
    return sx_random_infer(c, d);
}

static sx_status random_integers_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_shaped_type("shape", &c->in[0], c->in[4].type.dtype, &out_types[0]);
}

static sx_status random_integers_host(const sx_kernel_call *c)
{
    const sx_dtype d = c->out[0].type.dtype;
    const bool wide = sx_dtype_bytes(d) == 8;
    const int of_four = wide ? 2 : 4;
    const int64_t n = sx_type_elems(&c->out[0].type);
    uint64_t low, high;
    sx_philox_stream s;
    SX_TRY(sx_random_open(c, &s));
    if (d == SX_U64) {
        low = c->in[4].u[0];
        high = c->in[5].u[0];
    } else {
        low = (uint64_t)c->in[4].i[0];
        high = (uint64_t)c->in[5].i[0];
    }
    if (n > 0 && (d == SX_U64 ? low >= high : (int64_t)low >= (int64_t)high)) {
        return d == SX_U64 ? sx_error(SX_INVALID_ARGUMENT, "minval %llu is not below maxval %llu",
                                      (unsigned long long)low, (unsigned long long)high)
                           : sx_error(SX_INVALID_ARGUMENT, "minval %lld is not below maxval %lld",
                                      (long long)low, (long long)high);
    }
    const uint64_t range = high - low;
    for (int64_t i = 0; i < n; i += of_four) {
        if (i % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        uint32_t w[4];
        sx_philox_next(&s, w);
        for (int k = 0; k < of_four && i + k < n; k++) {
            const uint64_t bits = wide ? (uint64_t)w[2 * k + 1] << 32 | w[2 * k] : w[k];
            if (d == SX_U64) {
                c->out[0].u[i + k] = low + bits % range;
            } else {
                c->out[0].i[i + k] = (int64_t)(low + bits % range);
            }
        }
    }
    return SX_OK;
}

static void random_integers_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_random_integers, "StatelessRandomUniformIntV2",
               sx_tf_attrs(sx_tf_attr_type("dtype", (int)op->in_types[4].dtype),
                           sx_tf_attr_type("Tshape", (int)op->in_types[0].dtype)));
}

static const double shape[] = {3, 7}, key[] = {123456789}, counter[] = {5, 17}, alg[] = {1},
                    least[] = {-3}, most[] = {12};
#define INTEGERS(name_, dtype_)                                                        \
    {                                                                                  \
        .name = (name_),                                                               \
        .inputs = {SX_SAMPLE_LIST(SX_I64, shape, 2),   SX_SAMPLE_LIST(SX_U64, key, 1), \
                   SX_SAMPLE_LIST(SX_U64, counter, 2), SX_SAMPLE_ONE(SX_I32, alg),     \
                   SX_SAMPLE_ONE(dtype_, least),       SX_SAMPLE_ONE(dtype_, most)},   \
        .n_inputs = 6                                                                  \
    }
static const sx_op_sample random_integers_samples[] = {
    INTEGERS("int32", SX_I32),
    INTEGERS("int64", SX_I64),
};

const sx_op_def sx_op_random_integers = {
    SX_OP_NAMED(random_integers),
    .n_in = 6,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = random_integers_infer,
    .host = random_integers_host,
    .host_types = random_integers_host_types,
    .to_tf = random_integers_to_tf,
    SX_FROM_TF({.op = "StatelessRandomUniformIntV2"}),
    SX_OP_SAMPLES(random_integers_samples),
};
