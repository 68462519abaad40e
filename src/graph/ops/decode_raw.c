/* decode_raw: the bytes of each string as numbers, along a last dimension.
 *
 *   x               strings; without `fixed` all of one size
 *   fixed           int32 scalar: so many bytes of each, cut, or filled up with zeros
 *   out_type        bool, an integer or a float; the number of bytes is a multiple of its size
 *   little_endian   the order of its bytes
 *   returns         out_type, x's shape and the numbers of a string
 *
 * Errors   INVALID_ARGUMENT  dtypes; (running) sizes that differ or are no multiple
 * Numbers  exact
 * Source   TensorFlow DecodeRaw, DecodePaddedRaw */
#include "graph/ops/host_ops.h"

typedef struct sx_decode_raw_attrs {
    sx_dtype out_type;
    bool little_endian;
} sx_decode_raw_attrs;

static const sx_attr_def decode_raw_attrs[] = {
    SX_ATTR_TF(sx_decode_raw_attrs, out_type, SX_ATTR_DTYPE),
    SX_ATTR_TF(sx_decode_raw_attrs, little_endian, SX_ATTR_BOOL, .tf_number = 1),
};

static sx_status decode_raw_infer(sx_infer_context *c)
{
    const sx_decode_raw_attrs *attrs = c->attrs;
    const sx_type *x = c->inputs;
    if (c->n_inputs != 1 && c->n_inputs != 2) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected 1 or 2", c->n_inputs);
    }
    SX_TRY(sx_require_dtype("x", x, SX_STRING));
    if (c->n_inputs == 2) {
        SX_TRY(sx_require_maybe("fixed", &c->inputs[1], SX_I32, 0, "a scalar"));
    }
    if (attrs->out_type == SX_STRING || sx_carrier_of(attrs->out_type) == SX_CARRIER_NONE ||
        x->rank >= SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "out_type is %s, and x %s",
                        sx_dtype_name(attrs->out_type), SX_TEXT(x));
    }
    c->outputs[0] = *x;
    c->outputs[0].dtype = attrs->out_type;
    if (x->rank >= 0) {
        c->outputs[0].dims[c->outputs[0].rank++] = SX_UNKNOWN_DIM;
    }
    return SX_OK;
}

static sx_status decode_raw_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_decode_raw_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int64_t n = sx_type_elems(x), each = (int64_t)sx_dtype_bytes(attrs->out_type);
    int64_t bytes = c->n_in == 2 ? c->in[1].i[0] : n > 0 ? (int64_t)c->in[0].s[0].size : 0;
    for (int64_t k = 0; k < n && c->n_in == 1; k++) {
        if ((int64_t)c->in[0].s[k].size != bytes) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "string %lld has %lld bytes and the first %lld; expected one size",
                            (long long)k, (long long)c->in[0].s[k].size, (long long)bytes);
        }
    }
    if (bytes < 0 || bytes % each != 0 || (c->n_in == 2 && bytes == 0)) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld bytes are no multiple of %s's %lld",
                        (long long)bytes, sx_dtype_name(attrs->out_type), (long long)each);
    }
    out_types[0] = *x;
    out_types[0].dtype = attrs->out_type;
    out_types[0].dims[out_types[0].rank++] = bytes / each;
    return sx_require_made("the result", &out_types[0]);
}

static sx_status decode_raw_host(const sx_kernel_call *c)
{
    const sx_decode_raw_attrs *attrs = c->attrs;
    const sx_type *y = &c->out[0].type;
    const int64_t width = y->dims[y->rank - 1], n = sx_type_elems(&c->in[0].type);
    const size_t each = sx_dtype_bytes(attrs->out_type), bytes = (size_t)width * each,
                 carried = sx_carrier_bytes(attrs->out_type);
    uint8_t *row = sx_arena_alloc(c->arena, bytes + 1, 1);
    if (row == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        memset(row, 0, bytes);
        if (s->size > 0) {
            memcpy(row, s->data, SX_MIN(s->size, bytes));
        }
        for (size_t at = 0; at < bytes && !attrs->little_endian; at += each) {
            for (size_t i = 0; i < each / 2; i++) {
                const uint8_t b = row[at + i];
                row[at + i] = row[at + each - 1 - i];
                row[at + each - 1 - i] = b;
            }
        }
        sx_host_load(
            &(sx_host_tensor){.type = sx_type_of(attrs->out_type, width),
                              .data = (char *)c->out[0].data + (size_t)(k * width) * carried},
            row);
    }
    return SX_OK;
}

static void decode_raw_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const char *name = op->n_in == 2 ? "DecodePaddedRaw" : "DecodeRaw";
    sx_tf_same(w, op, &sx_op_decode_raw, name, SX_TF_NO_ATTRS);
}

static const char *const eights[] = {"abcdefgh", "\x01\x02\x03\x04\x05\x06\x07\x08", "12345678",
                                     NULL};
static const double twelve[] = {12};
static const sx_op_sample decode_raw_samples[] = {
    {.name = "int16",
     .inputs = {SX_SAMPLE_TEXTS(eights, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_decode_raw_attrs){.out_type = SX_I16, .little_endian = true}},
    {.name = "big_endian",
     .inputs = {SX_SAMPLE_TEXTS(eights, 3, 1)},
     .n_inputs = 1,
     .attrs = &(const sx_decode_raw_attrs){.out_type = SX_F32}},
    {.name = "padded",
     .inputs = {SX_SAMPLE_TEXT(10), SX_SAMPLE_ONE(SX_I32, twelve)},
     .n_inputs = 2,
     .attrs = &(const sx_decode_raw_attrs){.out_type = SX_I32, .little_endian = true}},
};

const sx_op_def sx_op_decode_raw = {
    SX_OP_NAMED(decode_raw),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_decode_raw_attrs, decode_raw_attrs),
    .infer = decode_raw_infer,
    .host = decode_raw_host,
    .host_types = decode_raw_host_types,
    .to_tf = decode_raw_to_tf,
    SX_FROM_TF({.op = "DecodeRaw"}, {.op = "DecodePaddedRaw"}),
    SX_OP_SAMPLES(decode_raw_samples),
};
