/* REST predict outputs as JSON; see predict_json.h.
 *
 * The layout is TensorFlow Serving's: four spaces, each element of "predictions" on one line,
 *
 *   {                                        {
 *       "predictions": [[0.1, 0.9], [1.0, 0.0]      "predictions": [
 *       ]                                               {
 *   }                                                       "classes": "rose",
 *                                                           "scores": [0.1, 0.9]
 *     one output                                        }
 *                                                       ]
 *                                                   }      several outputs
 *
 * "outputs" (column form) is written on one line for each output. */
#include "serve/predict_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/shortest.h"
#include "base/utf8.h"
#include "serve/base64.h"
#include "serve/json_scan.h"

enum { RUN_ELEMS = 256 }; /* numbers printed per reservation of the buffer */

/* ---- Strings ---- */

static void print_escape(sx_buf *out, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *found = c ? strchr(from, c) : NULL;
    if (found != NULL) {
        const char text[2] = {'\\', to[found - from]};
        sx_buf_append(out, text, 2);
    } else {
        sx_buf_printf(out, "\\u%04x", c);
    }
}

void sx_json_print_string(sx_buf *out, const char *text, size_t size)
{
    size_t plain = 0; /* start of the bytes that need no escapes */
    sx_buf_putc(out, '"');
    for (size_t i = 0; i < size;) {
        const unsigned char c = (unsigned char)text[i];
        const size_t length = sx_utf8_sequence(text + i, size - i);
        if (length > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += length;
            continue;
        }
        sx_buf_append(out, text + plain, i - plain);
        if (length > 0) {
            print_escape(out, c);
        } else {
            sx_buf_puts(out, "\xEF\xBF\xBD");
        }
        plain = ++i;
    }
    sx_buf_append(out, text + plain, size - plain);
    sx_buf_putc(out, '"');
}

static void print_base64(sx_buf *out, sx_bytes bytes)
{
    sx_buf_puts(out, "{\"b64\": \"");
    char *at = sx_buf_extend(out, SX_BASE64_ENCODED(bytes.size));
    if (at != NULL) {
        sx_base64_encode(bytes.data, bytes.size, at);
    }
    sx_buf_puts(out, "\"}");
}

/* ---- Runs of scalars ---- */

/* An output being printed. */
struct printer {
    sx_buf *out;
    const sx_cancel *cancel;
    const sx_tensor *tensor;
    sx_float_format format;
    bool as_base64;
    char *(*number)(const struct printer *p, char *at, size_t index); /* NULL for strings */
};

/* %.6g if it is exact, else the digits that always are; adds ".0" if the text looks like an
 * integer. */
static char *print_like_tfs(char *at, double value, int digits, bool reads_back)
{
    const int size = snprintf(at, SX_NUMBER_TEXT, "%.*g", reads_back ? 6 : digits, value);
    char *end = at + size;
    if (memchr(at, '.', (size_t)size) == NULL && memchr(at, 'e', (size_t)size) == NULL) {
        memcpy(end, ".0", 2);
        end += 2;
    }
    return end;
}

char *sx_json_print_f32(char *at, float value, sx_float_format format)
{
    if (format == SX_FLOAT_SHORTEST || !isfinite(value)) {
        return sx_print_f32(at, value);
    }
    snprintf(at, SX_NUMBER_TEXT, "%.6g", (double)value);
    return print_like_tfs(at, (double)value, 9, strtof(at, NULL) == value);
}

static char *number_f32(const struct printer *p, char *at, size_t index)
{
    return sx_json_print_f32(at, ((const float *)p->tensor->data)[index], p->format);
}

static char *number_f64(const struct printer *p, char *at, size_t index)
{
    const double value = ((const double *)p->tensor->data)[index];
    if (p->format == SX_FLOAT_SHORTEST || !isfinite(value)) {
        return sx_print_f64(at, value);
    }
    snprintf(at, SX_NUMBER_TEXT, "%.6g", value);
    return print_like_tfs(at, value, 17, strtod(at, NULL) == value);
}

#define INTEGER_PRINTER(name, type, print)                             \
    static char *name(const struct printer *p, char *at, size_t index) \
    {                                                                  \
        return print(at, ((const type *)p->tensor->data)[index]);      \
    }

INTEGER_PRINTER(number_i8, int8_t, sx_print_i64)
INTEGER_PRINTER(number_i16, int16_t, sx_print_i64)
INTEGER_PRINTER(number_i32, int32_t, sx_print_i64)
INTEGER_PRINTER(number_i64, int64_t, sx_print_i64)
INTEGER_PRINTER(number_u8, uint8_t, sx_print_u64)
INTEGER_PRINTER(number_u16, uint16_t, sx_print_u64)
INTEGER_PRINTER(number_u32, uint32_t, sx_print_u64)
INTEGER_PRINTER(number_u64, uint64_t, sx_print_u64)

static char *number_bool(const struct printer *p, char *at, size_t index)
{
    const bool value = ((const unsigned char *)p->tensor->data)[index] != 0;
    const size_t size = value ? 4 : 5;
    memcpy(at, value ? "true" : "false", size);
    return at + size;
}

static const struct {
    sx_dtype dtype;
    char *(*number)(const struct printer *p, char *at, size_t index);
} number_printers[] = {
    {SX_F32, number_f32}, {SX_F64, number_f64}, {SX_I8, number_i8},     {SX_I16, number_i16},
    {SX_I32, number_i32}, {SX_I64, number_i64}, {SX_U8, number_u8},     {SX_U16, number_u16},
    {SX_U32, number_u32}, {SX_U64, number_u64}, {SX_BOOL, number_bool},
};

static void print_string(const struct printer *p, size_t index)
{
    const sx_bytes bytes = ((const sx_bytes *)p->tensor->data)[index];
    if (p->as_base64 || sx_utf8_prefix(bytes.data, bytes.size) < bytes.size) {
        print_base64(p->out, bytes);
    } else {
        sx_json_print_string(p->out, bytes.data, bytes.size);
    }
}

/* `count` numbers from `index` on, separated by ", ". */
static void print_numbers(const struct printer *p, size_t index, size_t count)
{
    while (count > 0 && !sx_cancel_requested(p->cancel)) {
        const size_t run = SX_MIN(count, (size_t)RUN_ELEMS);
        const size_t before = p->out->size;
        char *at = sx_buf_extend(p->out, run * (SX_NUMBER_TEXT + 2));
        if (at == NULL) {
            return;
        }
        const char *begin = at;
        for (size_t i = 0; i < run; i++) {
            at = p->number(p, at, index + i);
            at[0] = ',';
            at[1] = ' ';
            at += 2;
        }
        count -= run;
        index += run;
        p->out->size = before + (size_t)(at - begin) - (count == 0 ? 2 : 0);
        p->out->data[p->out->size] = '\0';
    }
}

static void print_run(const struct printer *p, size_t index, size_t count)
{
    if (p->number != NULL) {
        print_numbers(p, index, count);
        return;
    }
    for (size_t i = 0; i < count && !sx_cancel_requested(p->cancel); i++) {
        if (i > 0) {
            sx_buf_puts(p->out, ", ");
        }
        print_string(p, index + i);
    }
}

/* ---- Tensors ---- */

/* The elements under dimension `dim`, of which the first is number `*index`; advances it. */
static void print_elements(const struct printer *p, int dim, size_t *index)
{
    const sx_type *type = &p->tensor->type;
    if (dim == type->rank) {
        print_run(p, (*index)++, 1);
        return;
    }
    const size_t count = (size_t)type->dims[dim];
    sx_buf_putc(p->out, '[');
    if (dim == type->rank - 1) {
        print_run(p, *index, count);
        *index += count;
    } else {
        for (size_t i = 0; i < count && !p->out->failed && !sx_cancel_requested(p->cancel); i++) {
            if (i > 0) {
                sx_buf_puts(p->out, ", ");
            }
            print_elements(p, dim + 1, index);
        }
    }
    sx_buf_putc(p->out, ']');
}

static sx_status make_printer(const sx_serve_tensor *info, const sx_tensor *tensor,
                              sx_float_format format, const sx_cancel *cancel, sx_buf *out,
                              struct printer *printer)
{
    *printer = (struct printer){.out = out, .cancel = cancel, .tensor = tensor, .format = format};
    printer->as_base64 = sx_serve_holds_bytes(info->name);
    for (size_t i = 0; i < SX_COUNT(number_printers); i++) {
        if (number_printers[i].dtype == tensor->type.dtype) {
            printer->number = number_printers[i].number;
        }
    }
    if (sx_type_elems(&tensor->type) < 0) {
        return sx_error(SX_INTERNAL, "output \"%s\": the model returned no static shape",
                        info->name);
    }
    if (sx_dtype_is_complex(tensor->type.dtype)) { /* TensorFlow Serving's words and code */
        return sx_error(SX_INVALID_ARGUMENT,
                        "output \"%s\": Failed to write JSON value for tensor type: %s", info->name,
                        sx_dtype_name(tensor->type.dtype));
    }
    if (printer->number == NULL && tensor->type.dtype != SX_STRING) {
        return sx_error(SX_UNIMPLEMENTED, "output \"%s\": type %s has no JSON representation",
                        info->name, sx_dtype_name(tensor->type.dtype));
    }
    return SX_OK;
}

static sx_status check_rows(const sx_serve_signature *signature, const sx_tensor *outputs,
                            size_t *out_rows)
{
    for (size_t i = 0; i < signature->output_count; i++) {
        if (outputs[i].type.rank == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "Tensor name: %s has no shape information, so it cannot be written in "
                            "row form; use \"inputs\" instead of \"instances\"",
                            signature->outputs[i].name);
        }
        if (outputs[i].type.dims[0] != outputs[0].type.dims[0]) {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "Tensor name: %s has inconsistent batch size: %" PRId64 " expecting: %" PRId64,
                signature->outputs[i].name, outputs[i].type.dims[0], outputs[0].type.dims[0]);
        }
    }
    *out_rows = (size_t)outputs[0].type.dims[0];
    return SX_OK;
}

/* "predictions" of one output: all rows on one line. */
static void print_rows(const struct printer *printer, size_t rows, sx_buf *out)
{
    size_t index = 0;
    for (size_t row = 0; row < rows && !out->failed && !sx_cancel_requested(printer->cancel);
         row++) {
        if (row > 0) {
            sx_buf_puts(out, ", ");
        }
        print_elements(printer, 1, &index);
    }
}

/* "predictions" with names: an object for each row. */
static void print_row_objects(const sx_serve_signature *signature, const struct printer *printers,
                              size_t rows, sx_buf *out)
{
    const sx_cancel *cancel = printers[0].cancel;
    for (size_t row = 0; row < rows && !out->failed && !sx_cancel_requested(cancel); row++) {
        sx_buf_puts(out, row > 0 ? ",\n        {" : "\n        {");
        for (size_t i = 0; i < signature->output_count; i++) {
            const int64_t elems = sx_type_elems(&printers[i].tensor->type);
            size_t index = row * ((size_t)elems / rows);
            sx_buf_puts(out, i > 0 ? ",\n            " : "\n            ");
            sx_json_print_string(out, signature->outputs[i].name,
                                 strlen(signature->outputs[i].name));
            sx_buf_puts(out, ": ");
            print_elements(&printers[i], 1, &index);
        }
        sx_buf_puts(out, "\n        }");
    }
}

static void print_columns(const sx_serve_signature *signature, const struct printer *printers,
                          sx_buf *out)
{
    const bool object = signature->output_count > 1;
    sx_buf_puts(out, object ? "{" : "");
    for (size_t i = 0; i < signature->output_count; i++) {
        size_t index = 0;
        if (object) {
            sx_buf_puts(out, i > 0 ? ",\n        " : "\n        ");
            sx_json_print_string(out, signature->outputs[i].name,
                                 strlen(signature->outputs[i].name));
            sx_buf_puts(out, ": ");
        }
        print_elements(&printers[i], 0, &index);
    }
    sx_buf_puts(out, object ? "\n    }" : "");
}

enum { MAX_OUTPUTS = 256 };

sx_status sx_predict_print(const sx_serve_signature *signature, const sx_tensor *outputs,
                           sx_predict_form form, sx_float_format format, const sx_cancel *cancel,
                           sx_buf *out)
{
    const bool row = form != SX_COLUMNS;
    struct printer printers[MAX_OUTPUTS];
    size_t rows = 0;
    if (signature->output_count == 0 || signature->output_count > MAX_OUTPUTS) {
        return sx_error(SX_UNIMPLEMENTED, "signature \"%s\": %zu outputs, expected 1 to %d",
                        signature->name, signature->output_count, (int)MAX_OUTPUTS);
    }
    for (size_t i = 0; i < signature->output_count; i++) {
        SX_TRY(
            make_printer(&signature->outputs[i], &outputs[i], format, cancel, out, &printers[i]));
    }
    if (row) {
        SX_TRY(check_rows(signature, outputs, &rows));
    }
    sx_buf_puts(out, row ? "{\n    \"predictions\": [" : "{\n    \"outputs\": ");
    if (!row) {
        print_columns(signature, printers, out);
    } else if (signature->output_count == 1 && form == SX_ROWS) {
        print_rows(&printers[0], rows, out);
    } else {
        print_row_objects(signature, printers, rows, out);
    }
    sx_buf_puts(out, row ? "\n    ]\n}" : "\n}");
    return sx_cancel_requested(cancel) ? sx_cancel_check(cancel) : sx_buf_status(out);
}

sx_status sx_predict_print_row(const sx_serve_signature *signature, const sx_tensor *outputs,
                               int64_t row, sx_buf *out)
{
    size_t rows = 0;
    SX_TRY(check_rows(signature, outputs, &rows));
    sx_buf_puts(out, signature->output_count > 1 ? "{" : "");
    for (size_t i = 0; i < signature->output_count; i++) {
        struct printer printer;
        SX_TRY(make_printer(&signature->outputs[i], &outputs[i], SX_FLOAT_SHORTEST, NULL, out,
                            &printer));
        size_t index = (size_t)row * ((size_t)sx_type_elems(&outputs[i].type) / rows);
        if (signature->output_count > 1) {
            sx_buf_puts(out, i > 0 ? ", " : "");
            sx_json_print_string(out, signature->outputs[i].name,
                                 strlen(signature->outputs[i].name));
            sx_buf_puts(out, ": ");
        }
        print_elements(&printer, 1, &index);
    }
    sx_buf_puts(out, signature->output_count > 1 ? "}" : "");
    return sx_buf_status(out);
}

sx_status sx_predict_print_numbers(const sx_tensor *tensor, sx_float_format format,
                                   const sx_cancel *cancel, sx_buf *out)
{
    struct printer printer;
    const sx_serve_tensor info = {.name = ""};
    SX_TRY(make_printer(&info, tensor, format, cancel, out, &printer));
    sx_buf_putc(out, '[');
    print_numbers(&printer, 0, (size_t)sx_type_elems(&tensor->type));
    sx_buf_putc(out, ']');
    return sx_cancel_requested(cancel) ? sx_cancel_check(cancel) : sx_buf_status(out);
}
