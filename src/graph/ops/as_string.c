/* as_string: numbers written as text.
 *
 *   x           numbers, bool or strings
 *   precision   digits after the point of floats; -1: 6; the most bytes of strings with a width
 *   scientific  floats as 1.5e+01; shortest: whichever form is shorter, without zeros at the end
 *   width       at least so many characters; -1: as many as there are; not of bool
 *   fill        "": blanks before; " ": the same, at least one before a number not negative;
 *               "0": zeros before; "-": blanks after; "+": a sign;
 *               "#": a point even without digits after it, zeros at the end of the shortest form;
 *               of strings only "-" counts
 *   returns     strings of x's shape
 *
 * Errors   INVALID_ARGUMENT  attributes, what is of floats for integers or bool, a width or
 *                            precision above 4096
 * Source   TensorFlow AsString */
#include <stdio.h>
#include <string.h>

#include "graph/ops/host_ops.h"

typedef struct sx_as_string_attrs {
    int64_t precision, width; /* -1: none */
    bool scientific, shortest;
    const char *fill;
} sx_as_string_attrs;

enum { WIDEST = 4096 };

static const sx_attr_def as_string_attrs[] = {
    SX_ATTR_TF(sx_as_string_attrs, precision, SX_ATTR_INT, .tf_number = -1),
    SX_ATTR_TF(sx_as_string_attrs, scientific, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_as_string_attrs, shortest, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_as_string_attrs, width, SX_ATTR_INT, .tf_number = -1),
    SX_ATTR_TF(sx_as_string_attrs, fill, SX_ATTR_STRING),
};

static sx_status as_string_infer(sx_infer_context *c)
{
    const sx_as_string_attrs *attrs = c->attrs;
    const sx_dtype dtype = c->inputs[0].dtype;
    if (sx_carrier_of(dtype) == SX_CARRIER_NONE) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected numbers, bool or strings",
                        SX_TEXT(&c->inputs[0]));
    }
    SX_TRY(sx_require_name("fill", attrs->fill,
                           (const char *const[]){"", " ", "0", "-", "+", "#", NULL}));
    if (attrs->scientific && attrs->shortest) {
        return sx_error(SX_INVALID_ARGUMENT, "scientific and shortest exclude each other");
    }
    if ((attrs->precision >= 0 || attrs->scientific || attrs->shortest) &&
        !sx_dtype_is_float(dtype) && dtype != SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is of floats, but x is %s",
                        attrs->precision >= 0 ? "precision"
                        : attrs->scientific   ? "scientific"
                                              : "shortest",
                        sx_dtype_name(dtype));
    }
    if (attrs->precision > WIDEST || attrs->width > WIDEST) {
        return sx_error(SX_INVALID_ARGUMENT, "precision and width are limited to %d", WIDEST);
    }
    c->outputs[0] = c->inputs[0];
    c->outputs[0].dtype = SX_STRING;
    return SX_OK;
}

/* A string, which its width cuts to the precision and fills with blanks. */
static sx_status pad_string(const sx_kernel_call *c, const sx_as_string_attrs *a,
                            const sx_bytes *from, sx_bytes *out)
{
    char text[WIDEST];
    const size_t width = a->width > 0 ? (size_t)a->width : 0;
    const size_t size =
        a->width >= 0 && a->precision >= 0 ? SX_MIN(from->size, (size_t)a->precision) : from->size;
    if (size >= width) {
        return sx_string_copy(c, from->data, size, out);
    }
    const bool left = a->fill != NULL && a->fill[0] == '-';
    memset(text, ' ', width);
    if (size > 0) {
        memcpy(text + (left ? 0 : width - size), from->data, size);
    }
    return sx_string_copy(c, text, width, out);
}

static sx_status as_string_host(const sx_kernel_call *c)
{
    const sx_as_string_attrs *a = c->attrs;
    const sx_dtype dtype = c->in[0].type.dtype;
    const sx_carrier carrier = sx_carrier_of(dtype);
    const bool is_unsigned =
        carrier == SX_CARRIER_U || dtype == SX_U8 || dtype == SX_U16 || dtype == SX_U32;
    const char *kind = is_unsigned               ? "llu" /* which have no sign to write */
                       : carrier == SX_CARRIER_I ? "lld"
                       : a->scientific           ? "e"
                       : a->shortest             ? "g"
                                                 : "f";
    char width[32] = "", precision[32] = "", format[96];
    /* the text of the greatest float64 with all digits of its precision */
    char text[2 * WIDEST + 512];
    if (a->width >= 0) {
        snprintf(width, sizeof(width), "%s%lld", a->fill != NULL ? a->fill : "",
                 (long long)a->width);
    } else if (a->fill != NULL) {
        snprintf(width, sizeof(width), "%s", a->fill);
    }
    if (a->precision >= 0) {
        snprintf(precision, sizeof(precision), ".%lld", (long long)a->precision);
    }
    snprintf(format, sizeof(format), "%%%s%s%s", width, precision, kind);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const sx_host_tensor *x = &c->in[0];
        int size = 0;
        switch (carrier) {
        case SX_CARRIER_S:
            SX_TRY(pad_string(c, a, &x->s[k], &c->out[0].s[k]));
            continue;
        case SX_CARRIER_B:
            size = snprintf(text, sizeof(text), "%s", x->b[k] != 0 ? "true" : "false");
            break;
        case SX_CARRIER_I:
            size = snprintf(text, sizeof(text), format, (long long)x->i[k]);
            break;
        case SX_CARRIER_U:
            size = snprintf(text, sizeof(text), format, (unsigned long long)x->u[k]);
            break;
        default:
            size = snprintf(text, sizeof(text), format, x->f[k]);
            break;
        }
        SX_TRY(sx_string_copy(c, text, (size_t)size, &c->out[0].s[k]));
    }
#pragma GCC diagnostic pop
    return SX_OK;
}

static void as_string_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_as_string, "AsString",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {0, -1, 1.5, 123456789, 1e-7, 3e38};
#define AS(...) (&(const sx_as_string_attrs){__VA_ARGS__})
static const sx_op_sample as_string_samples[] = {
    {.name = "floats",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = AS(.precision = -1, .width = -1)},
    {.name = "scientific",
     .inputs = {SX_SAMPLE_LIST(SX_F64, numbers, 6)},
     .n_inputs = 1,
     .attrs = AS(.precision = 3, .scientific = true, .width = 12, .fill = "0")},
    {.name = "shortest",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 6)},
     .n_inputs = 1,
     .attrs = AS(.precision = -1, .shortest = true, .width = 12, .fill = "-")},
    {.name = "integers",
     .inputs = {SX_SAMPLE_I32(1000, SX_BATCH)},
     .n_inputs = 1,
     .attrs = AS(.precision = -1, .width = 6, .fill = "0")},
    {.name = "point",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 6)},
     .n_inputs = 1,
     .attrs = AS(.precision = -1, .shortest = true, .width = -1, .fill = "#")},
    {.name = "strings",
     .inputs = {SX_SAMPLE_TEXT(SX_BATCH)},
     .n_inputs = 1,
     .attrs = AS(.precision = 4, .width = 6, .fill = "-")},
    {.name = "bool",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH)},
     .n_inputs = 1,
     .attrs = AS(.precision = -1, .width = -1)},
};

const sx_op_def sx_op_as_string = {
    SX_OP_NAMED(as_string),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_as_string_attrs, as_string_attrs),
    .infer = as_string_infer,
    .host = as_string_host,
    .to_tf = as_string_to_tf,
    SX_FROM_TF({.op = "AsString"}),
    SX_OP_SAMPLES(as_string_samples),
};
