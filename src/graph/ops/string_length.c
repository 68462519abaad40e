/* string_length: the number of bytes, or of UTF-8 characters, of each string.
 *
 *   x        strings
 *   unit     "BYTE" or "UTF8_CHAR": bytes that do not continue a character, whatever they are
 *   returns  int32 of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtype, unit
 * Source   TensorFlow StringLength */
#include <string.h>

#include "graph/ops/host_ops.h"

static const sx_attr_def string_length_attrs[] = {
    SX_ATTR_TF(sx_unit_attrs, unit, SX_ATTR_STRING, .tf_text = "BYTE")};

static sx_status string_length_infer(sx_infer_context *c)
{
    const sx_unit_attrs *attrs = c->attrs;
    SX_TRY(sx_require_name("unit", attrs->unit, (const char *const[]){"BYTE", "UTF8_CHAR", NULL}));
    SX_TRY(sx_infer_string_map(c));
    c->outputs[0].dtype = SX_I32;
    return SX_OK;
}

static sx_status string_length_host(const sx_kernel_call *c)
{
    const sx_unit_attrs *attrs = c->attrs;
    const bool bytes = !sx_string_is(attrs->unit, "UTF8_CHAR");
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        int64_t length = bytes ? (int64_t)s->size : 0;
        for (size_t i = 0; i < s->size && !bytes; i++) {
            length += (((const uint8_t *)s->data)[i] & 0xC0) != 0x80;
        }
        c->out[0].i[k] = length;
    }
    return SX_OK;
}

static void string_length_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_length, "StringLength", SX_TF_NO_ATTRS);
}

static const sx_op_sample string_length_samples[] = {
    SX_SAMPLES_STRING_MAP(.attrs = &(const sx_unit_attrs){.unit = "BYTE"}),
    {.name = "characters",
     .inputs = {SX_SAMPLE_TEXT(SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_unit_attrs){.unit = "UTF8_CHAR"}},
};

const sx_op_def sx_op_string_length = {
    SX_OP_NAMED(string_length),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_unit_attrs, string_length_attrs),
    .infer = string_length_infer,
    .host = string_length_host,
    .to_tf = string_length_to_tf,
    SX_FROM_TF({.op = "StringLength"}),
    SX_OP_SAMPLES(string_length_samples),
};
