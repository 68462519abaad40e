/* random_key_counter: the key and the counter that TensorFlow makes of a stateless operator's seed.
 *
 *   seed      int32[2] or int64[2]
 *   returns   key uint64[1], counter uint64[2]
 *
 *   m = philox(key = (0x3ec8f720, 0x02461e29), counter = (seed[0] low, high, seed[1] low, high))
 *   key = m[1] 2^32 + m[0], counter = (0, m[3] 2^32 + m[2])
 *
 * Errors   INVALID_ARGUMENT  another seed
 * Numbers  exact
 * Source   TensorFlow StatelessRandomGetKeyCounter */
#include "graph/ops/random_stream.h"

static sx_status random_key_counter_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_integers("seed", &c->inputs[0], 1, "[2]"));
    const int64_t n = sx_vector_size(&c->inputs[0]);
    if (n >= 0 && n != 2) {
        return sx_error(SX_INVALID_ARGUMENT, "seed is %s, expected 2 numbers",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = sx_type_of(SX_U64, 1);
    c->outputs[1] = sx_type_of(SX_U64, 2);
    return SX_OK;
}

static sx_status random_key_counter_host(const sx_kernel_call *c)
{
    sx_philox_stream s;
    if (c->in[0].type.dims[0] != 2) {
        return sx_error(SX_INVALID_ARGUMENT, "seed is %s, expected 2 numbers",
                        SX_TEXT(&c->in[0].type));
    }
    sx_random_seed((uint64_t)c->in[0].i[0], (uint64_t)c->in[0].i[1], &s);
    c->out[0].u[0] = (uint64_t)s.key[1] << 32 | s.key[0];
    c->out[1].u[0] = (uint64_t)s.counter[1] << 32 | s.counter[0];
    c->out[1].u[1] = (uint64_t)s.counter[3] << 32 | s.counter[2];
    return SX_OK;
}

static void random_key_counter_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_random_key_counter, "StatelessRandomGetKeyCounter",
               sx_tf_attrs(sx_tf_attr_type("Tseed", (int)op->in_types[0].dtype)));
}

static const double seed[] = {-7, 1234567};
static const sx_op_sample random_key_counter_samples[] = {
    {.name = "int32", .inputs = {SX_SAMPLE_LIST(SX_I32, seed, 2)}, .n_inputs = 1},
    {.name = "int64", .inputs = {SX_SAMPLE_LIST(SX_I64, seed, 2)}, .n_inputs = 1},
};

const sx_op_def sx_op_random_key_counter = {
    SX_OP_NAMED(random_key_counter),
    .n_in = 1,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = random_key_counter_infer,
    .host = random_key_counter_host,
    .to_tf = random_key_counter_to_tf,
    SX_FROM_TF({.op = "StatelessRandomGetKeyCounter"}),
    SX_OP_SAMPLES(random_key_counter_samples),
};
