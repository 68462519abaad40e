/* string_format: a template with tensors in place of its placeholders.
 *
 *   x...          of any dtype
 *   template      has as many placeholders as there are operands
 *   placeholder   what is replaced, in order
 *   summarize     of each dimension the first and the last that are shown; -1 = all
 *   returns       string scalar
 *
 * Tensors are written as tf.print writes them: [[1 2 3 ... 8 9 10]
 *  [...]], strings in quotes.
 *
 * Errors   INVALID_ARGUMENT  another number of placeholders
 * Source   TensorFlow StringFormat (Tensor::SummarizeValue, core/framework/tensor.cc) */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/ops/host_ops.h"

typedef struct sx_string_format_attrs {
    const char *template, *placeholder;
    int64_t summarize;
} sx_string_format_attrs;

static const sx_attr_def string_format_attrs[] = {
    SX_ATTR_TF(sx_string_format_attrs, template, SX_ATTR_STRING, .tf_text = "%s"),
    SX_ATTR_TF(sx_string_format_attrs, placeholder, SX_ATTR_STRING, .tf_text = "%s"),
    SX_ATTR_TF(sx_string_format_attrs, summarize, SX_ATTR_INT, .tf_number = 3),
};

static const char *next_placeholder(const sx_string_format_attrs *a, const char *at)
{
    return a->placeholder != NULL && a->placeholder[0] != '\0' ? strstr(at, a->placeholder) : NULL;
}

static sx_status string_format_infer(sx_infer_context *c)
{
    const sx_string_format_attrs *a = c->attrs;
    int n = 0;
    for (const char *at = a->template != NULL ? a->template : "";
         (at = next_placeholder(a, at)) != NULL; at += strlen(a->placeholder)) {
        n++;
    }
    if (n != c->n_inputs || a->summarize < -1) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands for %d placeholders; summarize is %lld",
                        c->n_inputs, n, (long long)a->summarize);
    }
    c->outputs[0] = sx_scalar_type(SX_STRING);
    return SX_OK;
}

/* As absl::Utf8SafeCEscape. */
static void put_text(sx_buf *out, const sx_bytes *s)
{
    const uint8_t *text = s->data;
    sx_buf_putc(out, '"');
    for (size_t i = 0; i < s->size; i++) {
        switch (text[i]) {
        case '\n':
            sx_buf_puts(out, "\\n");
            break;
        case '\r':
            sx_buf_puts(out, "\\r");
            break;
        case '\t':
            sx_buf_puts(out, "\\t");
            break;
        case '"':
        case '\'':
        case '\\':
            sx_buf_printf(out, "\\%c", text[i]);
            break;
        default:
            if (text[i] >= 0x80 || (text[i] >= ' ' && text[i] < 0x7f)) {
                sx_buf_putc(out, (char)text[i]);
            } else {
                sx_buf_printf(out, "\\%03o", text[i]);
            }
        }
    }
    sx_buf_putc(out, '"');
}

/* With the usual digits if those read back to the same number, else with as many as it takes. */
static void put_float(sx_buf *out, double value, bool is_double)
{
    char text[40];
    if (isnan(value)) {
        sx_buf_puts(out, "nan");
        return;
    }
    snprintf(text, sizeof(text), "%.*g", is_double ? DBL_DIG : FLT_DIG, value);
    if (is_double ? strtod(text, NULL) != value : strtof(text, NULL) != (float)value) {
        snprintf(text, sizeof(text), "%.*g", is_double ? DBL_DIG + 2 : FLT_DIG + 3, value);
    }
    sx_buf_puts(out, text);
}

static void put_element(sx_buf *out, const sx_host_tensor *t, int64_t k)
{
    switch (sx_carrier_of(t->type.dtype)) {
    case SX_CARRIER_S:
        put_text(out, &t->s[k]);
        break;
    case SX_CARRIER_F:
        put_float(out, t->f[k], t->type.dtype == SX_F64);
        break;
    case SX_CARRIER_B:
        sx_buf_puts(out, t->b[k] != 0 ? "1" : "0");
        break;
    case SX_CARRIER_U:
        sx_buf_printf(out, "%llu", (unsigned long long)t->u[k]);
        break;
    default:
        sx_buf_printf(out, "%lld", (long long)t->i[k]);
        break;
    }
}

static void put_spacing(sx_buf *out, int dim, int rank)
{
    for (int i = 0; i < rank - dim - 1; i++) {
        sx_buf_putc(out, '\n');
    }
    for (int i = 0; i <= (dim == rank - 1 ? 0 : dim); i++) {
        sx_buf_putc(out, ' ');
    }
}

/* The part of the tensor from element `at` on, from dimension `dim`; at most SX_MAX_RANK deep. */
static void put_part(sx_buf *out, const sx_host_tensor *t, int64_t ends, int dim, int64_t at)
{
    const int rank = t->type.rank;
    if (dim == rank) {
        put_element(out, t, at);
        return;
    }
    const int64_t n = t->type.dims[dim], each = sx_dims_product(&t->type, dim + 1, rank);
    sx_buf_putc(out, '[');
    for (int64_t k = 0; k < n && out->failed == 0; k++) {
        if (k > 0) {
            put_spacing(out, dim, rank);
        }
        if (k >= ends && k < n - ends) {
            sx_buf_puts(out, "...");
            k = n - ends - 1;
            continue;
        }
        put_part(out, t, ends, dim + 1, at + k * each);
    }
    sx_buf_putc(out, ']');
}

static sx_status string_format_host(const sx_kernel_call *c)
{
    const sx_string_format_attrs *a = c->attrs;
    const char *at = a->template != NULL ? a->template : "";
    sx_buf text = sx_string_buf(c);
    for (int i = 0; i < c->n_in; i++) {
        const char *stop = next_placeholder(a, at);
        sx_buf_append(&text, at, (size_t)(stop - at));
        put_part(&text, &c->in[i], a->summarize < 0 ? INT64_MAX / 2 : a->summarize, 0, 0);
        at = stop + strlen(a->placeholder);
    }
    sx_buf_puts(&text, at);
    sx_status status = sx_string_put(c, 0, 0, &text);
    sx_buf_deinit(&text);
    return status;
}

const sx_op_def sx_op_string_format = {
    SX_OP_NAMED(string_format),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_string_format_attrs, string_format_attrs),
    .infer = string_format_infer,
    .host = string_format_host,
    SX_FROM_TF({.op = "StringFormat"}),
};
