/* decode_base64: the bytes of strings in base64 for URLs (RFC 4648, section 5), padded or not.
 *
 *   x        strings
 *   returns  strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  (running) a string that is no such text
 * Source   TensorFlow DecodeBase64 */
#include "graph/ops/host_ops.h"

int sx_base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '-'             ? 62
           : c == '_'             ? 63
                                  : -1;
}

static sx_status decode_base64_host(const sx_kernel_call *c)
{
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const char *s = c->in[0].s[k].data;
        size_t size = c->in[0].s[k].size;
        for (int pads = 0;
             pads < 2 && size > 0 && c->in[0].s[k].size % 4 == 0 && s[size - 1] == '='; pads++) {
            size--;
        }
        char *text;
        SX_TRY(sx_string_room(c, (int64_t)(size / 4 * 3 + 3), &text));
        size_t at = 0;
        uint32_t word = 0;
        bool sound = size % 4 != 1;
        for (size_t i = 0; i < size && sound; i++) {
            const int digit = sx_base64_digit(s[i]);
            sound = digit >= 0;
            word = word << 6 | (uint32_t)SX_MAX(digit, 0);
            if (i % 4 != 0) { /* its second digit and each that follows complete a byte */
                text[at++] = (char)(word >> (6 - 2 * (i % 4)) & 0xFF);
            }
        }
        if (!sound) {
            return sx_error(SX_INVALID_ARGUMENT, "%s at index %lld is not base64 for URLs",
                            SX_QUOTE(&c->in[0].s[k]), (long long)k);
        }
        c->out[0].s[k] = (sx_bytes){text, at};
    }
    return SX_OK;
}

static void decode_base64_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_decode_base64, "DecodeBase64", SX_TF_NO_ATTRS);
}

static const char *const texts[] = {"", "YQ", "YWI=", "YWJj", "_-8", "AAECAw==", NULL};
static const sx_op_sample decode_base64_samples[] = {
    {.name = "padded_or_not", .inputs = {SX_SAMPLE_TEXTS(texts, SX_BATCH, 2)}, .n_inputs = 1}};

const sx_op_def sx_op_decode_base64 = {
    SX_OP_NAMED(decode_base64),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = sx_infer_string_map,
    .host = decode_base64_host,
    .to_tf = decode_base64_to_tf,
    SX_FROM_TF({.op = "DecodeBase64"}),
    SX_OP_SAMPLES(decode_base64_samples),
};
