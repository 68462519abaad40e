/* all_finite: whether no element of any input is NaN or infinite. A training step checks its loss
 * and gradients with it before it updates variables. No gradient.
 *
 *   x...     one or more tensors, each of a float type, any shapes
 *   returns  bool scalar
 *
 * Over the batch, true if it is for all shards.
 * Errors   INVALID_ARGUMENT  no input, or one is not a float type
 * Numbers  exact
 * Source   TensorFlow tf.debugging.check_numerics, as a value */
#ifdef SX_PUBLIC
/* Whether every element of the n values is finite: a bool scalar. */
sx_value sx_all_finite(sx_builder *b, const sx_value *xs, int n);
#endif

#include "graph/ops/common.h"

static sx_status all_finite_infer(sx_infer_context *c)
{
    if (c->n_inputs < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "no input, expected at least one");
    }
    for (int i = 0; i < c->n_inputs; i++) {
        SX_TRY(sx_require_float("an input", &c->inputs[i]));
    }
    c->outputs[0] = sx_scalar_type(SX_BOOL);
    return SX_OK;
}

static sx_status all_finite_host(const sx_kernel_call *c)
{
    bool finite = true;
    for (int k = 0; k < c->n_in; k++) {
        int64_t n = sx_type_elems(&c->in[k].type);
        for (int64_t i = 0; i < n; i++) {
            finite = finite && isfinite(c->in[k].f[i]);
        }
    }
    c->out[0].b[0] = finite;
    return SX_OK;
}

static const sx_op_sample all_finite_samples[] = {
    {.name = "one", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3)}, .n_inputs = 1},
    {.name = "several",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH)},
     .n_inputs = 3},
    {.name = "batch_inside", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, -2)}, .n_inputs = 1},
};

sx_value sx_all_finite_at(sx_builder *b, const sx_value *xs, int n, const char *file, int line)
{
    return sx_build_at(b, &sx_op_all_finite, NULL, xs, n, file, line);
}

const sx_op_def sx_op_all_finite = {
    SX_OP_NAMED(all_finite),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_AND,
    .bf16 = ~0u,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = all_finite_infer,
    .host = all_finite_host,
    SX_OP_SAMPLES(all_finite_samples),
};
