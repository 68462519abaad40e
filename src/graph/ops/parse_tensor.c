/* parse_tensor: the tensor of which serialize_tensor made bytes: any TensorProto.
 *
 *   x         string scalar
 *   out_type  its dtype
 *   returns   the tensor
 *
 * Errors   INVALID_ARGUMENT    (running) bytes that are no such message, another dtype
 *          RESOURCE_EXHAUSTED  (running) it is too large
 * Source   TensorFlow ParseTensor */
#include "graph/ops/tensor_proto.h"

typedef struct sx_parse_tensor_attrs {
    sx_dtype out_type;
} sx_parse_tensor_attrs;

static const sx_attr_def parse_tensor_attrs[] = {
    SX_ATTR_TF(sx_parse_tensor_attrs, out_type, SX_ATTR_DTYPE)};

static sx_status parse_tensor_infer(sx_infer_context *c)
{
    const sx_parse_tensor_attrs *a = c->attrs;
    SX_TRY(sx_require_maybe("x", &c->inputs[0], SX_STRING, 0, "a scalar"));
    if (sx_carrier_of(a->out_type) == SX_CARRIER_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "out_type is %s", sx_dtype_name(a->out_type));
    }
    c->outputs[0] = sx_unknown_shape(a->out_type);
    return SX_OK;
}

static sx_status parse_tensor_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_parse_tensor_attrs *a = c->attrs;
    return sx_tensor_get_type(&c->in[0].s[0], a->out_type, &out_types[0]);
}

static sx_status parse_tensor_host(const sx_kernel_call *c)
{
    const sx_parse_tensor_attrs *a = c->attrs;
    sx_host_tensor t;
    SX_TRY(sx_tensor_get(c, &c->in[0].s[0], a->out_type, &t));
    memcpy(c->out[0].data, t.data, (size_t)sx_type_elems(&t.type) * sx_carrier_bytes(a->out_type));
    return SX_OK;
}

const sx_op_def sx_op_parse_tensor = {
    SX_OP_NAMED(parse_tensor),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_parse_tensor_attrs, parse_tensor_attrs),
    .infer = parse_tensor_infer,
    .host = parse_tensor_host,
    .host_types = parse_tensor_host_types,
    SX_FROM_TF({.op = "ParseTensor"}),
};
