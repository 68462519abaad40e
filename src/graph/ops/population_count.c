/* population_count: how many bits of x are 1, the sign's among them. No gradient.
 *
 *   x        any shape, any integer
 *   returns  uint8, x's shape
 *
 * Errors   INVALID_ARGUMENT  x is not an integer type
 * Numbers  exact
 * Source   TensorFlow tf.raw_ops.PopulationCount */
#ifdef SX_PUBLIC
/* How many bits of each integer are 1; uint8. */
sx_value sx_population_count(sx_builder *b, sx_value x);
#endif

#include "graph/ops/common.h"

static sx_status population_count_infer(sx_infer_context *c)
{
    SX_TRY(sx_infer_map_integer(c));
    c->outputs[0].dtype = SX_U8;
    return SX_OK;
}

static sx_status population_count_host(const sx_kernel_call *c)
{
    const sx_host_tensor *x = &c->in[0];
    const uint64_t own_bits = UINT64_MAX >> (64 - 8 * sx_dtype_bytes(x->type.dtype));
    for (int64_t i = 0, n = sx_type_elems(&x->type); i < n; i++) {
        int64_t count = 0;
        for (uint64_t rest = x->u[i] & own_bits; rest != 0; rest &= rest - 1) {
            count++;
        }
        c->out[0].i[i] = count;
    }
    return SX_OK;
}

static void population_count_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "PopulationCount");
}

static const double ends[] = {-2147483648.0, -1, 5, 2147483647, 77, 0, 1};
static const sx_op_sample population_count_samples[] = {
    {.name = "batch", .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7)}, .n_inputs = 1},
    {.name = "ends", .inputs = {SX_SAMPLE_LIST(SX_I32, ends, 7)}, .n_inputs = 1},
    {.name = "bytes",
     .inputs = {{.type = SX_TYPE_LITERAL_(SX_U8, 3, 5), .fill = SX_FILL_INDEX, .limit = 256}},
     .n_inputs = 1},
};

sx_value sx_population_count_at(sx_builder *b, sx_value x, const char *file, int line)
{
    return sx_build_at(b, &sx_op_population_count, NULL, &x, 1, file, line);
}

const sx_op_def sx_op_population_count = {
    SX_OP_NAMED(population_count),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = population_count_infer,
    .host = population_count_host,
    .to_tf = population_count_to_tf,
    SX_FROM_TF({.op = "PopulationCount"}),
    SX_OP_SAMPLES(population_count_samples),
};
