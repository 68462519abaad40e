/* extract_jpeg_shape: the size of a JPEG, from its header.
 *
 *   contents      string scalar
 *   output_type   int32 or int64
 *   returns       [3]: height, width, channels
 *
 * Errors   INVALID_ARGUMENT  dtypes; (running) what is no JPEG
 * Source   TensorFlow ExtractJpegShape */
#include "graph/ops/host_ops.h"
#include "image/format.h"

typedef struct sx_extract_jpeg_shape_attrs {
    sx_dtype output_type;
} sx_extract_jpeg_shape_attrs;

static const sx_attr_def extract_jpeg_shape_attrs[] = {
    SX_ATTR_TF(sx_extract_jpeg_shape_attrs, output_type, SX_ATTR_DTYPE, .tf_number = SX_I32)};

static sx_status extract_jpeg_shape_infer(sx_infer_context *c)
{
    const sx_extract_jpeg_shape_attrs *attrs = c->attrs;
    SX_TRY(sx_require_maybe("contents", &c->inputs[0], SX_STRING, 0, "a scalar"));
    if (attrs->output_type != SX_I32 && attrs->output_type != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "output_type is %s, expected int32 or int64",
                        sx_dtype_name(attrs->output_type));
    }
    c->outputs[0] = sx_type_of(attrs->output_type, 3);
    return SX_OK;
}

static sx_status extract_jpeg_shape_host(const sx_kernel_call *c)
{
    sx_image_info info = {0};
    sx_status status = sx_image_probe(c->in[0].s[0], &info);
    if (status != SX_OK || info.format != SX_FORMAT_JPEG) {
        sx_status_free(status);
        return sx_error(SX_INVALID_ARGUMENT, "contents have no header of a JPEG");
    }
    c->out[0].i[0] = info.height;
    c->out[0].i[1] = info.width;
    c->out[0].i[2] = info.channels;
    return SX_OK;
}

const sx_op_def sx_op_extract_jpeg_shape = {
    SX_OP_NAMED(extract_jpeg_shape),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_extract_jpeg_shape_attrs, extract_jpeg_shape_attrs),
    .infer = extract_jpeg_shape_infer,
    .host = extract_jpeg_shape_host,
    SX_FROM_TF({.op = "ExtractJpegShape"}),
};
