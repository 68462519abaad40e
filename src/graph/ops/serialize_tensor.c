/* serialize_tensor: a tensor as the bytes of TensorFlow's message TensorProto.
 *
 *   x        of any dtype and shape
 *   returns  string scalar
 *
 * Errors   RESOURCE_EXHAUSTED  (running) it is too large
 * Source   TensorFlow SerializeTensor */
#include "graph/ops/tensor_proto.h"

static sx_status serialize_tensor_infer(sx_infer_context *c)
{
    if (sx_carrier_of(c->inputs[0].dtype) == SX_CARRIER_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s", SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = sx_scalar_type(SX_STRING);
    return SX_OK;
}

static sx_status serialize_tensor_host(const sx_kernel_call *c)
{
    sx_buf text = sx_string_buf(c);
    sx_tensor_put(&c->in[0], &text);
    sx_status status = sx_string_put(c, 0, 0, &text);
    sx_buf_deinit(&text);
    return status;
}

static void serialize_tensor_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_serialize_tensor, "SerializeTensor",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const sx_op_sample serialize_tensor_samples[] = {
    {.name = "floats", .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 5)}, .n_inputs = 1},
    {.name = "texts", .inputs = {SX_SAMPLE_TEXT(7)}, .n_inputs = 1},
};

const sx_op_def sx_op_serialize_tensor = {
    SX_OP_NAMED(serialize_tensor),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = serialize_tensor_infer,
    .host = serialize_tensor_host,
    .to_tf = serialize_tensor_to_tf,
    SX_FROM_TF({.op = "SerializeTensor"}),
    SX_OP_SAMPLES(serialize_tensor_samples),
};
