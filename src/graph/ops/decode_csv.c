/* decode_csv: the columns of CSV records.
 *
 *   records       strings, any shape
 *   defaults...   for each column a tensor of its dtype: int32, int64, float32, float64 or string,
 *                 of one element, or of none: the field must be there
 *   field_delim, use_quote_delim   the character between fields; whether fields may be quoted, a
 *                 quote inside of one doubled
 *   na_value      what stands for a missing field, beside nothing
 *   select_cols   the columns that there are defaults for, ascending; none = all
 *   returns       for each column a tensor of the records' shape
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes; (running) another number of fields, a missing one,
 * what is no number, a quote out of place Source   TensorFlow DecodeCSV
 * (core/kernels/decode_csv_op.cc) */
#include "graph/ops/host_ops.h"

typedef struct sx_decode_csv_attrs {
    const char *field_delim, *na_value;
    bool use_quote_delim;
    sx_tensor select_cols; /* int64 [n]; NULL data = all */
} sx_decode_csv_attrs;

static const sx_attr_def decode_csv_attrs[] = {
    SX_ATTR_TF(sx_decode_csv_attrs, field_delim, SX_ATTR_STRING, .tf_text = ","),
    SX_ATTR_TF(sx_decode_csv_attrs, na_value, SX_ATTR_STRING),
    SX_ATTR_TF(sx_decode_csv_attrs, use_quote_delim, SX_ATTR_BOOL, .tf_number = 1),
    SX_ATTR(sx_decode_csv_attrs, select_cols, SX_ATTR_TENSOR),
};

static sx_status decode_csv_infer(sx_infer_context *c)
{
    const sx_decode_csv_attrs *a = c->attrs;
    const int n = c->n_inputs - 1;
    if (n < 1 || n > SX_MAX_OUTPUTS) {
        return sx_error(n < 1 ? SX_INVALID_ARGUMENT : SX_UNIMPLEMENTED,
                        "%d columns, expected 1 to %d", n, SX_MAX_OUTPUTS);
    }
    SX_TRY(sx_require_dtype("records", &c->inputs[0], SX_STRING));
    if (a->field_delim == NULL || strlen(a->field_delim) != 1 ||
        (a->select_cols.data != NULL &&
         (a->select_cols.type.dtype != SX_I64 || sx_type_elems(&a->select_cols.type) != n))) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "the delimiter is \"%.20s\", expected one character; or as many columns are "
            "not selected as there are defaults, %d",
            a->field_delim != NULL ? a->field_delim : "", n);
    }
    for (int i = 0; i < n; i++) {
        const sx_type *t = &c->inputs[1 + i];
        const sx_dtype d = t->dtype;
        if ((d != SX_I32 && d != SX_I64 && d != SX_F32 && d != SX_F64 && d != SX_STRING) ||
            t->rank > 1) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "default %d is %s, expected int32, int64, float32, float64 or string, "
                            "one or none",
                            i, SX_TEXT(t));
        }
        c->outputs[i] = c->inputs[0];
        c->outputs[i].dtype = d;
    }
    c->n_outputs = n;
    return SX_OK;
}

/* The next field of a record from *at on; false at its end. */
static sx_status next_field(const sx_decode_csv_attrs *a, const sx_bytes *record, size_t *at,
                            sx_buf *out, bool *out_any)
{
    const char *text = record->data, delimiter = a->field_delim[0];
    const size_t size = record->size;
    while (*at < size && (text[*at] == '\n' || text[*at] == '\r')) {
        (*at)++;
    }
    *out_any = *at < size;
    sx_buf_reset(out);
    if (!*out_any) {
        return SX_OK;
    }
    if (!a->use_quote_delim || text[*at] != '"') {
        for (; *at < size && text[*at] != delimiter; (*at)++) {
            if ((a->use_quote_delim && text[*at] == '"') || text[*at] == '\n' ||
                text[*at] == '\r') {
                return sx_error(SX_INVALID_ARGUMENT,
                                "byte %zu: a quote or a line break in a field without quotes", *at);
            }
            sx_buf_putc(out, text[*at]);
        }
        (*at)++;
        return SX_OK;
    }
    for (++*at; *at + 1 < size && (text[*at] != '"' || text[*at + 1] != delimiter);) {
        if (text[*at] == '"' && text[*at + 1] != '"') {
            return sx_error(SX_INVALID_ARGUMENT, "byte %zu: a quote in a field is not doubled",
                            *at);
        }
        sx_buf_putc(out, text[*at]);
        *at += text[*at] == '"' ? 2 : 1;
    }
    if (*at >= size || text[*at] != '"') {
        return sx_error(SX_INVALID_ARGUMENT, "a field in quotes does not end with one");
    }
    *at += 2;
    return SX_OK;
}

static sx_status set_field(const sx_kernel_call *c, int column, int64_t k, sx_buf *text)
{
    const sx_decode_csv_attrs *a = c->attrs;
    const sx_host_tensor *otherwise = &c->in[1 + column], *out = &c->out[column];
    const size_t each = sx_carrier_bytes(out->type.dtype);
    SX_TRY(sx_buf_status(text));
    if (text->size == 0 || (a->na_value != NULL && strcmp(sx_buf_text(text), a->na_value) == 0)) {
        if (sx_type_elems(&otherwise->type) != 1) {
            return sx_error(SX_INVALID_ARGUMENT, "it is missing, and required");
        }
        memcpy(out->b + (size_t)k * each, otherwise->b, each);
        return SX_OK;
    }
    if (out->type.dtype == SX_STRING) {
        return sx_string_put(c, column, k, text);
    }
    sx_bytes field = {sx_buf_text(text), text->size};
    const sx_host_tensor in = {.type = sx_scalar_type(SX_STRING), .s = &field};
    const sx_host_tensor one = {.type = sx_scalar_type(out->type.dtype),
                                .b = out->b + (size_t)k * each};
    return sx_host_run_carried(&sx_op_string_to_number,
                               &(sx_string_to_number_attrs){.out_type = out->type.dtype}, &in, 1,
                               &one, 1, c->arena, false);
}

static sx_status decode_record(const sx_kernel_call *c, int64_t k, sx_buf *text)
{
    const sx_decode_csv_attrs *a = c->attrs;
    const sx_bytes *record = &c->in[0].s[k];
    const int64_t *columns = a->select_cols.data;
    size_t at = 0;
    int done = 0;
    bool any = true;
    for (int64_t number = 0; done < c->n_out || columns == NULL; number++) {
        const bool included = columns == NULL || columns[done] == number;
        SX_TRY(next_field(a, record, &at, text, &any));
        if (!any) { /* after a delimiter at the end there is one more, empty */
            const bool open = record->size > 0 && included && done < c->n_out &&
                              ((const char *)record->data)[record->size - 1] == a->field_delim[0];
            if (open) {
                SX_TRY(set_field(c, done, k, text), "field %d", done);
                done++;
            }
            break;
        }
        if (included) {
            SX_TRY(done < c->n_out ? set_field(c, done, k, text) : SX_OK, "field %d", done);
            done++;
        }
    }
    return done == c->n_out
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "it has %d fields, expected %d", done, c->n_out);
}

static sx_status decode_csv_host(const sx_kernel_call *c)
{
    sx_buf text = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && status == SX_OK; k++) {
        status = sx_status_annotate(decode_record(c, k, &text), __FILE__, __LINE__, "record %lld",
                                    (long long)k);
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status csv_from_tf(const sx_tf_node *n, void *out)
{
    sx_decode_csv_attrs *a = out;
    sx_tf_attr columns;
    if (!n->attr(n, "select_cols", &columns) || columns.kind != SX_TF_ATTR_INTS ||
        columns.count == 0) {
        return SX_OK;
    }
    a->select_cols = (sx_tensor){
        sx_type_of(SX_I64, columns.count),
        sx_arena_memdup(n->arena, columns.ints, (size_t)columns.count * sizeof(int64_t))};
    return a->select_cols.data != NULL ? SX_OK : sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
}

const sx_op_def sx_op_decode_csv = {
    SX_OP_NAMED(decode_csv),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_decode_csv_attrs, decode_csv_attrs),
    .infer = decode_csv_infer,
    .host = decode_csv_host,
    SX_FROM_TF({.op = "DecodeCSV", .attrs = csv_from_tf}),
};
