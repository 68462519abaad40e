/* unicode_decode: the characters of each string, as a ragged tensor.
 *
 *   x         strings of any shape
 *   input_encoding, errors, replacement_char, replace_control_characters   as of unicode_transcode
 *   Tsplits   int32 or int64
 *   returns   splits Tsplits [elements of x + 1], characters int32 [k], and the byte of its string
 *             with which each begins, int64 [k]
 *
 * Errors   INVALID_ARGUMENT  dtype, attributes; (running, strict) malformed text
 * Source   TensorFlow UnicodeDecodeWithOffsets, UnicodeDecode (the first two outputs) */
#include "graph/ops/unicode.h"

static const sx_attr_def unicode_decode_attrs[] = {SX_UNICODE_INPUT, SX_UNICODE_ERRORS,
                                                   SX_UNICODE_CONTROLS, SX_UNICODE_SPLITS};

static sx_status unicode_decode_infer(sx_infer_context *c)
{
    const sx_unicode_attrs *attrs = c->attrs;
    SX_TRY(sx_unicode_check(attrs, true, false, true));
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_STRING));
    const int64_t n = c->inputs[0].rank >= 0 ? sx_type_elems(&c->inputs[0]) : -1;
    c->outputs[0] = sx_type_of(attrs->Tsplits, n >= 0 ? n + 1 : SX_UNKNOWN_DIM);
    c->outputs[1] = sx_type_of(SX_I32, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, SX_UNKNOWN_DIM);
    return SX_OK;
}

/* Writes the outputs, unless c->out is NULL; how many characters there are. */
static sx_status decode_all(const sx_kernel_call *c, int64_t *out_count)
{
    int64_t count = 0;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        for (size_t at = 0, size; at < s->size; at += size) {
            int64_t code;
            SX_TRY(sx_unicode_next(c->attrs, (const uint8_t *)s->data + at, s->size - at, &size,
                                   &code));
            if (code >= 0 && c->out != NULL) {
                c->out[1].i[count] = code;
                c->out[2].i[count] = (int64_t)at;
            }
            count += code >= 0;
        }
        if (c->out != NULL) {
            c->out[0].i[k + 1] = count;
        }
    }
    *out_count = count;
    return SX_OK;
}

static sx_status unicode_decode_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_unicode_attrs *attrs = c->attrs;
    int64_t count;
    SX_TRY(decode_all(c, &count));
    out_types[0] = sx_type_of(attrs->Tsplits, sx_type_elems(&c->in[0].type) + 1);
    out_types[1] = sx_type_of(SX_I32, count);
    out_types[2] = sx_type_of(SX_I64, count);
    return sx_require_made("the offsets", &out_types[2]);
}

static sx_status unicode_decode_host(const sx_kernel_call *c)
{
    int64_t count;
    c->out[0].i[0] = 0;
    return decode_all(c, &count);
}

static void unicode_decode_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_unicode_decode, "UnicodeDecodeWithOffsets", SX_TF_NO_ATTRS);
}

static const sx_op_sample unicode_decode_samples[] = {
    {.name = "utf8",
     .inputs = {SX_SAMPLE_TEXT(2, 5)},
     .n_inputs = 1,
     .attrs = &(const sx_unicode_attrs){.input_encoding = "UTF-8",
                                        .errors = "replace",
                                        .replacement_char = 65533,
                                        .Tsplits = SX_I64}},
};

const sx_op_def sx_op_unicode_decode = {
    SX_OP_NAMED(unicode_decode),
    .n_in = 1,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_unicode_attrs, unicode_decode_attrs),
    .infer = unicode_decode_infer,
    .host = unicode_decode_host,
    .host_types = unicode_decode_host_types,
    .to_tf = unicode_decode_to_tf,
    SX_FROM_TF({.op = "UnicodeDecodeWithOffsets"}, {.op = "UnicodeDecode"}),
    SX_OP_SAMPLES(unicode_decode_samples),
};
