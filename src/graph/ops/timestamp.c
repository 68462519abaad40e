/* timestamp: the time when the run comes to it, in the order of the program's effects. No gradient.
 *
 *   returns  float64 scalar: seconds since 1970-01-01 00:00 UTC
 *
 * Source   TensorFlow tf.timestamp */
#include "base/clock.h"
#include "graph/ops/common.h"

static sx_status timestamp_infer(sx_infer_context *c)
{
    c->outputs[0] = sx_scalar_type(SX_F64);
    return SX_OK;
}

static sx_status timestamp_host(const sx_kernel_call *c)
{
    c->out[0].f[0] = sx_wall_seconds();
    return SX_OK;
}

const sx_op_def sx_op_timestamp = {
    SX_OP_NAMED(timestamp),
    .n_in = 0,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = timestamp_infer,
    .host = timestamp_host,
};
