/* string_to_number: numbers written in decimal, or floats also in hexadecimal, "inf" and "nan".
 *
 *   x         strings; ASCII white space around the number is left out
 *   out_type  float32, float64, int32, int64, uint32, uint64
 *   returns   numbers of x's shape
 *
 * Errors   INVALID_ARGUMENT  dtype; (running) a string that is no such number, an integer out of
 *                            range
 * Numbers  rounded once
 * Source   TensorFlow StringToNumber */
#include <stdlib.h>

#include "graph/ops/host_ops.h"

static const sx_attr_def string_to_number_attrs[] = {
    SX_ATTR_TF(sx_string_to_number_attrs, out_type, SX_ATTR_DTYPE, .tf_number = SX_F32)};

static sx_status string_to_number_infer(sx_infer_context *c)
{
    const sx_string_to_number_attrs *attrs = c->attrs;
    const sx_dtype d = attrs->out_type;
    if (d != SX_F32 && d != SX_F64 && d != SX_I32 && d != SX_I64 && d != SX_U32 && d != SX_U64) {
        return sx_error(SX_INVALID_ARGUMENT, "out_type is %s, expected a 32-bit or 64-bit number",
                        sx_dtype_name(d));
    }
    SX_TRY(sx_infer_string_map(c));
    c->outputs[0].dtype = d;
    return SX_OK;
}

/* Decimal digits after an optional sign; false: others, none, or out of range. */
static bool read_integer(const char *text, sx_dtype dtype, uint64_t *out)
{
    const bool is_signed = dtype == SX_I32 || dtype == SX_I64, minus = *text == '-';
    const uint64_t most = dtype == SX_U64 ? UINT64_MAX
                          : dtype == SX_U32
                              ? UINT32_MAX
                              : (dtype == SX_I64 ? INT64_MAX : INT32_MAX) + (uint64_t)minus;
    uint64_t value = 0;
    text += is_signed && (minus || *text == '+');
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        const uint64_t digit = (uint64_t)(uint8_t)*text - '0';
        if (digit > 9 || value > (most - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = is_signed && minus ? 0 - value : value;
    return true;
}

/* What the C library reads, and nothing after it. */
static bool read_float(const char *text, sx_dtype dtype, double *out)
{
    char *end;
    *out = dtype == SX_F32 ? (double)strtof(text, &end) : strtod(text, &end);
    return *end == '\0' && end != text;
}

static sx_status string_to_number_host(const sx_kernel_call *c)
{
    enum { LONGEST = 4096 }; /* more than any number has that is not padded */
    const sx_dtype dtype = c->out[0].type.dtype;
    char text[LONGEST];
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        const char *from = s->data;
        size_t size = s->size;
        while (size > 0 && sx_is_ascii_space((uint8_t)from[0])) {
            from++;
            size--;
        }
        while (size > 0 && sx_is_ascii_space((uint8_t)from[size - 1])) {
            size--;
        }
        bool read = size > 0 && size < LONGEST && memchr(from, '\0', size) == NULL;
        if (read) {
            memcpy(text, from, size);
            text[size] = '\0';
            read = sx_dtype_is_float(dtype) ? read_float(text, dtype, &c->out[0].f[k])
                                            : read_integer(text, dtype, &c->out[0].u[k]);
        }
        if (!read) {
            return sx_error(SX_INVALID_ARGUMENT, "%s at index %lld is no %s", SX_QUOTE(s),
                            (long long)k, sx_dtype_name(dtype));
        }
    }
    return SX_OK;
}

static void string_to_number_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_to_number, "StringToNumber", SX_TF_NO_ATTRS);
}

static const char *const floats[] = {"1", " -2.5e3\n", "+0x1F", "inf", "-INF", "1e-45", ".5", NULL};
static const char *const integers[] = {"0", " 7\t", "2147483647", "0012", NULL};
#define TO(dtype) (&(const sx_string_to_number_attrs){.out_type = (dtype)})
static const sx_op_sample string_to_number_samples[] = {
    {.name = "float32",
     .inputs = {SX_SAMPLE_TEXTS(floats, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = TO(SX_F32)},
    {.name = "float64", .inputs = {SX_SAMPLE_TEXTS(floats, 7)}, .n_inputs = 1, .attrs = TO(SX_F64)},
    {.name = "int32",
     .inputs = {SX_SAMPLE_TEXTS(integers, SX_BATCH)},
     .n_inputs = 1,
     .attrs = TO(SX_I32)},
    {.name = "int64",
     .inputs = {SX_SAMPLE_TEXTS(integers, 2, 2)},
     .n_inputs = 1,
     .attrs = TO(SX_I64)},
};

const sx_op_def sx_op_string_to_number = {
    SX_OP_NAMED(string_to_number),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_string_to_number_attrs, string_to_number_attrs),
    .infer = string_to_number_infer,
    .host = string_to_number_host,
    .to_tf = string_to_number_to_tf,
    SX_FROM_TF({.op = "StringToNumber"}),
    SX_OP_SAMPLES(string_to_number_samples),
};
