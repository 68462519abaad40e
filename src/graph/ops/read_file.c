/* read_file: the bytes of a file of the loaded model.
 *
 *   filename  string scalar: a path below the model's assets, "assets/words.txt"
 *   returns   string scalar
 *
 * Errors   INVALID_ARGUMENT    (running) another path
 *          NOT_FOUND           (running) no such file
 *          RESOURCE_EXHAUSTED  (running) the file is too large for the memory limit
 * Source   TensorFlow ReadFile */
#include "graph/ops/lookup_table.h"

static sx_status read_file_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_maybe("filename", &c->inputs[0], SX_STRING, 0, "a scalar"));
    c->outputs[0] = sx_scalar_type(SX_STRING);
    return SX_OK;
}

static sx_status read_file_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    (void)c;
    out_types[0] = sx_scalar_type(SX_STRING);
    return SX_OK;
}

static sx_status read_file_host(const sx_kernel_call *c)
{
    char *text = NULL;
    size_t size = 0;
    SX_TRY(sx_read_asset(c, "the file", &c->in[0].s[0], "assets/", &text, &size));
    c->out[0].s[0] = (sx_bytes){text, size};
    return SX_OK;
}

/* An effect, so that it is not read when the function is made. */
const sx_op_def sx_op_read_file = {
    SX_OP_NAMED(read_file),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = read_file_infer,
    .host = read_file_host,
    .host_types = read_file_host_types,
    SX_FROM_TF({.op = "ReadFile"}),
};
