/* encode_base64: the bytes of each string in base64 for URLs (RFC 4648, section 5).
 *
 *   x        strings
 *   pad      "=" at the end, up to a multiple of four characters
 *   returns  strings of x's shape
 *
 * Source   TensorFlow EncodeBase64 */
#include "graph/ops/host_ops.h"

typedef struct sx_encode_base64_attrs {
    bool pad;
} sx_encode_base64_attrs;

static const sx_attr_def encode_base64_attrs[] = {
    SX_ATTR_TF(sx_encode_base64_attrs, pad, SX_ATTR_BOOL)};

static sx_status encode_base64_host(const sx_kernel_call *c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const sx_encode_base64_attrs *attrs = c->attrs;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const uint8_t *s = c->in[0].s[k].data;
        const size_t size = c->in[0].s[k].size;
        char *text;
        SX_TRY(sx_string_room(c, (int64_t)(size / 3 * 4 + 4), &text));
        size_t at = 0;
        for (size_t i = 0; i < size; i += 3) {
            const size_t there = SX_MIN(size - i, 3);
            const uint32_t word = (uint32_t)s[i] << 16 | (uint32_t)(there > 1 ? s[i + 1] : 0) << 8 |
                                  (uint32_t)(there > 2 ? s[i + 2] : 0);
            for (size_t d = 0; d < 4; d++) {
                if (d <= there) {
                    text[at++] = digits[word >> (18 - 6 * d) & 63];
                } else if (attrs->pad) {
                    text[at++] = '=';
                }
            }
        }
        c->out[0].s[k] = (sx_bytes){text, at};
    }
    return SX_OK;
}

static void encode_base64_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_encode_base64, "EncodeBase64", SX_TF_NO_ATTRS);
}

static const sx_op_sample encode_base64_samples[] = {
    SX_SAMPLES_STRING_MAP(),
    {.name = "padded",
     .inputs = {SX_SAMPLE_TEXT(SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_encode_base64_attrs){.pad = true}},
};

const sx_op_def sx_op_encode_base64 = {
    SX_OP_NAMED(encode_base64),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_encode_base64_attrs, encode_base64_attrs),
    .infer = sx_infer_string_map,
    .host = encode_base64_host,
    .to_tf = encode_base64_to_tf,
    SX_FROM_TF({.op = "EncodeBase64"}),
    SX_OP_SAMPLES(encode_base64_samples),
};
