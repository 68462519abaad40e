/* unicode_encode: strings of the characters of each row of a ragged tensor.
 *
 *   values    int32 [k]
 *   splits    int32 or int64 [rows + 1]
 *   output_encoding            UTF-8, UTF-16-BE, UTF-32-BE
 *   errors, replacement_char   of numbers that are no characters, as of unicode_transcode
 *   returns   strings [rows]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks, attributes; (running) splits that do not ascend from 0
 *                            to k, or (strict) a number that is no character
 * Source   TensorFlow UnicodeEncode */
#include "graph/ops/unicode.h"

static const sx_attr_def unicode_encode_attrs[] = {SX_UNICODE_OUTPUT, SX_UNICODE_ERRORS};

static sx_status unicode_encode_infer(sx_infer_context *c)
{
    SX_TRY(sx_unicode_check(c->attrs, false, true, false));
    SX_TRY(sx_require_maybe("values", &c->inputs[0], SX_I32, 1, "[k]"));
    SX_TRY(sx_require_integers("splits", &c->inputs[1], 1, "[rows + 1]"));
    const int64_t n = sx_vector_size(&c->inputs[1]);
    if (n == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "splits are empty, expected [rows + 1]");
    }
    c->outputs[0] = sx_type_of(SX_STRING, n > 0 ? n - 1 : SX_UNKNOWN_DIM);
    return SX_OK;
}

static sx_status unicode_encode_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    out_types[0] = sx_type_of(SX_STRING, c->in[1].type.dims[0] - 1);
    return SX_OK;
}

static bool is_character(int64_t code)
{
    return code >= 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static sx_status unicode_encode_host(const sx_kernel_call *c)
{
    const sx_unicode_attrs *attrs = c->attrs;
    const int64_t rows = c->out[0].type.dims[0], n = c->in[0].type.dims[0];
    const int64_t *splits = c->in[1].i;
    if (!sx_splits_are_sound(&c->in[1], n)) {
        return sx_error(SX_INVALID_ARGUMENT, "splits do not ascend from 0 to %lld, the values",
                        (long long)n);
    }
    sx_buf buf = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t row = 0; row < rows && status == SX_OK; row++) {
        for (int64_t k = splits[row]; k < splits[row + 1] && status == SX_OK; k++) {
            const int64_t code = c->in[0].i[k];
            if (is_character(code)) {
                sx_unicode_put(attrs, (uint32_t)code, &buf);
            } else if (sx_string_is(attrs->errors, "strict")) {
                status = sx_error(SX_INVALID_ARGUMENT, "value %lld is %lld, which is no character",
                                  (long long)k, (long long)code);
            } else if (sx_string_is(attrs->errors, "replace")) {
                sx_unicode_put(attrs, (uint32_t)attrs->replacement_char, &buf);
            }
        }
        status = status == SX_OK ? sx_string_put(c, 0, row, &buf) : status;
    }
    sx_buf_deinit(&buf);
    return status;
}

static void unicode_encode_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_unicode_encode, "UnicodeEncode",
               sx_tf_attrs(sx_tf_attr_type("Tsplits", (int)op->in_types[1].dtype)));
}

static const double codes[] = {72, 233, 0x65E5, 0x1F600, 0xD800, -1}, splits[] = {0, 2, 2, 6};
static const sx_op_sample unicode_encode_samples[] = {
    {.name = "utf8",
     .inputs = {SX_SAMPLE_LIST(SX_I32, codes, 6), SX_SAMPLE_LIST(SX_I64, splits, 4)},
     .n_inputs = 2,
     .attrs = &(const sx_unicode_attrs){.output_encoding = "UTF-8",
                                        .errors = "replace",
                                        .replacement_char = 65533}},
};

const sx_op_def sx_op_unicode_encode = {
    SX_OP_NAMED(unicode_encode),
    .n_in = 2,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_unicode_attrs, unicode_encode_attrs),
    .infer = unicode_encode_infer,
    .host = unicode_encode_host,
    .host_types = unicode_encode_host_types,
    .to_tf = unicode_encode_to_tf,
    SX_FROM_TF({.op = "UnicodeEncode"}),
    SX_OP_SAMPLES(unicode_encode_samples),
};
