/* unicode_transcode: text in another encoding.
 *
 *   x                 strings in input_encoding
 *   input_encoding    UTF-8, UTF-16-BE, UTF-32-BE, US-ASCII, ISO-8859-1
 *   output_encoding   UTF-8, UTF-16-BE, UTF-32-BE
 *   errors            of malformed text: "strict", "replace" by replacement_char, "ignore"
 *   replace_control_characters   U+0000 to U+001F count as malformed
 *   returns           strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtype, attributes; (running, strict) malformed text
 * Source   TensorFlow UnicodeTranscode */
#include "graph/ops/unicode.h"

static const sx_attr_def unicode_transcode_attrs[] = {SX_UNICODE_INPUT, SX_UNICODE_OUTPUT,
                                                      SX_UNICODE_ERRORS, SX_UNICODE_CONTROLS};

static sx_status unicode_transcode_infer(sx_infer_context *c)
{
    SX_TRY(sx_unicode_check(c->attrs, true, true, false));
    return sx_infer_string_map(c);
}

static sx_status unicode_transcode_host(const sx_kernel_call *c)
{
    sx_buf buf = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && status == SX_OK; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        for (size_t at = 0, size; at < s->size && status == SX_OK; at += size) {
            int64_t code;
            status = sx_unicode_next(c->attrs, (const uint8_t *)s->data + at, s->size - at, &size,
                                     &code);
            if (status == SX_OK && code >= 0) {
                sx_unicode_put(c->attrs, (uint32_t)code, &buf);
            }
        }
        status = status == SX_OK ? sx_string_put(c, 0, k, &buf) : status;
    }
    sx_buf_deinit(&buf);
    return status;
}

static void unicode_transcode_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_unicode_transcode, "UnicodeTranscode", SX_TF_NO_ATTRS);
}

static const sx_op_sample unicode_transcode_samples[] = {
    {.name = "utf16",
     .inputs = {SX_SAMPLE_TEXT(SX_BATCH, 2)},
     .n_inputs = 1,
     .attrs = &(const sx_unicode_attrs){.input_encoding = "UTF-8",
                                        .output_encoding = "UTF-16-BE",
                                        .errors = "replace",
                                        .replacement_char = 65533}},
    {.name = "latin1",
     .inputs = {SX_SAMPLE_TEXT(10)},
     .n_inputs = 1,
     .attrs = &(const sx_unicode_attrs){.input_encoding = "ISO-8859-1",
                                        .output_encoding = "UTF-8",
                                        .errors = "ignore",
                                        .replacement_char = 63,
                                        .replace_control_characters = true}},
};

const sx_op_def sx_op_unicode_transcode = {
    SX_OP_NAMED(unicode_transcode),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_unicode_attrs, unicode_transcode_attrs),
    .infer = unicode_transcode_infer,
    .host = unicode_transcode_host,
    .to_tf = unicode_transcode_to_tf,
    SX_FROM_TF({.op = "UnicodeTranscode"}),
    SX_OP_SAMPLES(unicode_transcode_samples),
};
