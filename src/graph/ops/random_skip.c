/* random_skip: the state of a generator, tf.random.Generator's, after `delta` numbers are left out.
 *
 *   state     int64[3]: the counter, lowest word first, and the key
 *   delta     uint64, a scalar
 *   returns   int64[3]: the counter is 256 delta higher
 *
 * Errors   INVALID_ARGUMENT  shapes, dtypes
 * Source   TensorFlow RngReadAndSkip (core/kernels/stateful_random_ops.cc) */
#include "graph/ops/random_stream.h"

enum { OF_ONE = 256 };

static sx_status random_skip_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_maybe("state", &c->inputs[0], SX_I64, 1, "[3]"));
    SX_TRY(sx_require_maybe("delta", &c->inputs[1], SX_U64, 0, "a scalar"));
    const int64_t n = sx_vector_size(&c->inputs[0]);
    if (n >= 0 && n != 3) {
        return sx_error(SX_INVALID_ARGUMENT, "state is %s, expected int64[3]",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = sx_type_of(SX_I64, 3);
    return SX_OK;
}

static sx_status random_skip_host(const sx_kernel_call *c)
{
    if (c->in[0].type.dims[0] != 3) {
        return sx_error(SX_INVALID_ARGUMENT, "state is %s, expected int64[3]",
                        SX_TEXT(&c->in[0].type));
    }
    const uint64_t low = (uint64_t)c->in[0].i[0], high = (uint64_t)c->in[0].i[1];
    sx_philox_stream s = {
        .counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    sx_philox_skip(&s, c->in[1].u[0] * OF_ONE);
    c->out[0].i[0] = (int64_t)((uint64_t)s.counter[1] << 32 | s.counter[0]);
    c->out[0].i[1] = (int64_t)((uint64_t)s.counter[3] << 32 | s.counter[2]);
    c->out[0].i[2] = c->in[0].i[2];
    return SX_OK;
}

static const double state[] = {1e9, 17, -5}, delta[] = {3};
static const sx_op_sample random_skip_samples[] = {
    {.name = "three",
     .inputs = {SX_SAMPLE_LIST(SX_I64, state, 3), SX_SAMPLE_ONE(SX_U64, delta)},
     .n_inputs = 2},
};

const sx_op_def sx_op_random_skip = {
    SX_OP_NAMED(random_skip),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = random_skip_infer,
    .host = random_skip_host,
    SX_OP_SAMPLES(random_skip_samples),
};
