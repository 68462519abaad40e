/* decode_compressed: each string decompressed.
 *
 *   x                 strings
 *   compression_type  "" (as they are), "ZLIB", "GZIP"
 *   returns           strings of x's shape
 *
 * Errors   INVALID_ARGUMENT    another type; (running) a string that is not so compressed
 *          RESOURCE_EXHAUSTED  (running) a result is too large
 * Source   TensorFlow DecodeCompressed */
#include <stdio.h>

#include "graph/ops/host_ops.h"
#include "io/compress.h"

typedef struct sx_decode_compressed_attrs {
    const char *compression_type;
} sx_decode_compressed_attrs;

static const sx_attr_def decode_compressed_attrs[] = {
    SX_ATTR_TF(sx_decode_compressed_attrs, compression_type, SX_ATTR_STRING)};

static sx_status decode_compressed_infer(sx_infer_context *c)
{
    const sx_decode_compressed_attrs *a = c->attrs;
    SX_TRY(sx_require_name("compression_type", a->compression_type,
                           (const char *const[]){"", "ZLIB", "GZIP", NULL}));
    return sx_infer_string_map(c);
}

static sx_status decode_compressed_host(const sx_kernel_call *c)
{
    const sx_decode_compressed_attrs *a = c->attrs;
    const sx_codec codec = sx_string_is(a->compression_type, "ZLIB")   ? SX_CODEC_ZLIB
                           : sx_string_is(a->compression_type, "GZIP") ? SX_CODEC_GZIP
                                                                       : SX_CODEC_NONE;
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && status == SX_OK; k++) {
        char name[48];
        snprintf(name, sizeof(name), "string %lld", (long long)k);
        status = sx_cancel_check(c->cancel);
        if (status == SX_OK) {
            status = sx_inflate_all(codec, c->in[0].s[k], SX_STRING_MAX_BYTES, name, &text);
        }
        if (status != SX_OK && sx_status_code(status) == SX_DATA_LOSS) {
            sx_status refused = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
            sx_status_free(status);
            status = refused;
        }
        status = status == SX_OK ? sx_string_put(c, 0, k, &text) : status;
    }
    sx_buf_deinit(&text);
    return status;
}

static void decode_compressed_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_decode_compressed, "DecodeCompressed", SX_TF_NO_ATTRS);
}

static const sx_op_sample decode_compressed_samples[] = {
    {.name = "as_they_are", .inputs = {SX_SAMPLE_TEXT(SX_BATCH, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_decode_compressed = {
    SX_OP_NAMED(decode_compressed),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_decode_compressed_attrs, decode_compressed_attrs),
    .infer = decode_compressed_infer,
    .host = decode_compressed_host,
    .to_tf = decode_compressed_to_tf,
    SX_FROM_TF({.op = "DecodeCompressed"}),
    SX_OP_SAMPLES(decode_compressed_samples),
};
