#include "numpy_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/shortest.h"
#include "graph/host.h"
#include "python_text.h"

enum {
    LINE_WIDTH = 75,
    EDGE_ITEMS = 3,   /* at each end of a summarized axis */
    THRESHOLD = 1000, /* elements, above which an array is summarized */
    PRECISION = 8,    /* maximum digits after the point */
    WORD = 512,       /* bytes of a number as text: a double may have 309 digits */
};

/* How the elements are printed, which is found from all that are. */
struct printer {
    const sx_tensor *array;
    sx_dtype number; /* of the elements, or of the parts of complex ones */
    int part;        /* of complex elements: 0 = the real one, 1 = the imaginary one */
    bool plus;       /* positive numbers have a sign, too */
    bool summarize;
    double max, min; /* magnitudes of the finite elements that are not 0; max 0: there are none */
    bool nan, inf, negative_inf;
    bool exponent;
    int precision;                   /* digits after the point, with an exponent */
    int exponent_digits;             /* likewise */
    int left, right;                 /* columns before and after the point */
    int width;                       /* of an element */
    const struct printer *imaginary; /* of complex elements: how that part is printed */
    sx_buf *out;
    int column;
};

static double element(const sx_tensor *a, int64_t i)
{
    return sx_host_load_element(a->type.dtype,
                                (const char *)a->data + (size_t)i * sx_dtype_bytes(a->type.dtype));
}

static sx_dtype number_of(const sx_tensor *a)
{
    return a->type.dtype == SX_C64 ? SX_F32 : a->type.dtype == SX_C128 ? SX_F64 : a->type.dtype;
}

/* An element, or the part of a complex one. */
static double number_at(const sx_tensor *a, int64_t i, int part)
{
    const size_t bytes = sx_dtype_bytes(a->type.dtype), size = sx_dtype_bytes(number_of(a));
    return sx_host_load_element(number_of(a),
                                (const char *)a->data + (size_t)i * bytes + (size_t)part * size);
}

/* A number as the dtype keeps it; NumPy compares in the array's dtype. */
static double rounded(sx_dtype dtype, double value)
{
    uint64_t bits = 0;
    sx_host_store_element(dtype, value, &bits);
    return sx_host_load_element(dtype, &bits);
}

/* Calls `see` for each element that is printed. */
static void each(struct printer *p, int axis, int64_t at,
                 void (*see)(struct printer *p, int64_t at))
{
    const sx_type *type = &p->array->type;
    if (axis == type->rank) {
        see(p, at);
        return;
    }
    const int64_t n = type->dims[axis];
    for (int64_t i = 0; i < n; i++) {
        if (p->summarize && n > 2 * EDGE_ITEMS && i == EDGE_ITEMS) {
            i = n - EDGE_ITEMS;
        }
        each(p, axis + 1, at * n + i, see);
    }
}

/* ---- Floats ---- */

/* The shortest decimal that reads back the same: its digits, without zeros at the end, and the
 * exponent of the first. Returns their number; 0 has one digit. */
static int shortest_digits(sx_dtype dtype, double value, char digits[SX_NUMBER_TEXT], int *exponent)
{
    char text[SX_NUMBER_TEXT + 1];
    int n = 0, whole = 0, zeros = 0, power = 0;
    bool after_point = false;
    if (dtype == SX_F16) { /* 11 bits: at most 5 digits */
        for (int p = 0; p < 5; p++) {
            snprintf(text, sizeof(text), "%.*e", p, fabs(value));
            if (rounded(SX_F16, strtod(text, NULL)) == fabs(value)) {
                break;
            }
        }
    } else {
        *(dtype == SX_F64 ? sx_print_f64(text, fabs(value))
                          : sx_print_f32(text, fabsf((float)value))) = '\0';
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == 'e') {
            power = (int)strtol(c + 1, NULL, 10);
            break;
        }
        if (*c == '.') {
            after_point = true;
        } else if (n > 0 || *c != '0') {
            digits[n++] = *c;
            whole += !after_point;
        } else {
            zeros += after_point;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    *exponent = n == 0 ? 0 : power + (whole > 0 ? whole - 1 : -zeros - 1);
    return SX_MAX(n, 1);
}

/* "12.5", "3.": the shortest, but at most PRECISION digits after the point. */
static void put_positional(sx_dtype dtype, double value, bool plus, char out[WORD])
{
    char digits[SX_NUMBER_TEXT];
    int exponent;
    const int n = shortest_digits(dtype, value, digits, &exponent), fraction = n - 1 - exponent;
    snprintf(out, WORD, plus ? "%+#.*f" : "%#.*f",
             fraction < 0 ? 0 : SX_MIN(fraction, (int)PRECISION), value);
    for (char *end = out + strlen(out); end[-1] == '0' && fraction > 0;) { /* left by the cut */
        *--end = '\0';
    }
}

/* The digits after the point that a number with an exponent needs. */
static int scientific_precision(sx_dtype dtype, double value)
{
    char digits[SX_NUMBER_TEXT], text[WORD];
    int exponent;
    const int n = shortest_digits(dtype, value, digits, &exponent);
    if (n - 1 <= PRECISION) {
        return n - 1;
    }
    snprintf(text, sizeof(text), "%.*e", PRECISION, value);
    int precision = PRECISION;
    while (precision > 0 && strchr(text, '.')[precision] == '0') {
        precision--;
    }
    return precision;
}

static void see_range(struct printer *p, int64_t at)
{
    const double value = number_at(p->array, at, p->part), size = fabs(value);
    p->nan |= isnan(value);
    p->inf |= isinf(value);
    p->negative_inf |= isinf(value) && value < 0;
    if (isfinite(value) && value != 0) {
        p->min = p->max == 0 ? size : SX_MIN(p->min, size);
        p->max = SX_MAX(p->max, size);
    }
}

static void see_float(struct printer *p, int64_t at)
{
    const double value = number_at(p->array, at, p->part);
    char text[WORD];
    if (!isfinite(value)) {
        return;
    }
    if (p->exponent) {
        snprintf(text, sizeof(text), "%e", value);
        p->precision = SX_MAX(p->precision, scientific_precision(p->number, value));
        p->exponent_digits = SX_MAX(p->exponent_digits, (int)strlen(strchr(text, 'e') + 2));
        p->left = SX_MAX(p->left, signbit(value) || p->plus ? 2 : 1);
    } else {
        put_positional(p->number, value, p->plus, text);
        const int point = (int)(strchr(text, '.') - text);
        p->left = SX_MAX(p->left, point);
        p->right = SX_MAX(p->right, (int)strlen(text) - point - 1);
    }
}

static void find_float_format(struct printer *p)
{
    const sx_dtype dtype = p->number;
    const double most = dtype == SX_F64 ? 1e8 : dtype == SX_F16 ? 1e3 : 1e6;
    each(p, 0, 0, see_range);
    p->exponent = p->max > 0 && (p->max >= most || p->min < rounded(dtype, 0.0001) ||
                                 rounded(dtype, p->max / p->min) > 1000);
    each(p, 0, 0, see_float);
    if (p->exponent) {
        p->right = p->exponent_digits + 2 + p->precision;
    }
    if (p->nan || p->inf) {
        const int sign = p->negative_inf || p->plus;
        p->left = SX_MAX(p->left, 3 + sign - (p->right + 1));
    }
    p->width = p->left + p->right + 1;
}

static void format_float(const struct printer *p, double value, char out[WORD])
{
    char text[WORD];
    if (!isfinite(value)) {
        snprintf(text, sizeof(text), "%s%s",
                 value < 0 ? "-"
                 : p->plus ? "+"
                           : "",
                 isnan(value) ? "nan" : "inf");
        snprintf(out, WORD, "%*s", p->width, text);
        return;
    }
    if (p->exponent) {
        snprintf(text, sizeof(text), p->plus ? "%+#.*e" : "%#.*e", p->precision, value);
    } else {
        put_positional(p->number, value, p->plus, text);
    }
    const int before = (int)(strchr(text, '.') - text), after = (int)strlen(text) - before - 1;
    snprintf(out, WORD, "%*s%.*s%*s", SX_MAX(p->left - before, 0), "", WORD - 128, text,
             p->exponent ? 0 : p->right - after, "");
}

/* ---- Elements ---- */

static void format_integer(const sx_tensor *a, int64_t at, char out[WORD])
{
    char *end = a->type.dtype == SX_U64   ? sx_print_u64(out, ((const uint64_t *)a->data)[at])
                : a->type.dtype == SX_I64 ? sx_print_i64(out, ((const int64_t *)a->data)[at])
                                          : sx_print_i64(out, (int64_t)element(a, at));
    *end = '\0';
}

static void see_integer(struct printer *p, int64_t at)
{
    char text[WORD];
    format_integer(p->array, at, text);
    p->width = SX_MAX(p->width, (int)strlen(text));
}

/* Appends a word to the row, on a new line if the row would be too wide. */
static void put_word(struct printer *p, const char *word, size_t bytes, int indent)
{
    sx_buf *out = p->out;
    if (p->column + (int)bytes > LINE_WIDTH - indent && p->column > indent) {
        while (out->size > 0 && out->data[out->size - 1] == ' ') {
            out->data[--out->size] = '\0';
        }
        sx_buf_printf(out, "\n%*s", indent, "");
        p->column = indent;
    }
    sx_buf_append(out, word, bytes);
    p->column += (int)bytes;
}

static void put_element(struct printer *p, int64_t at, int indent)
{
    const sx_dtype dtype = p->array->type.dtype;
    char text[WORD], number[WORD];
    if (dtype == SX_STRING) {
        const sx_bytes *s = (const sx_bytes *)p->array->data + at;
        sx_buf word;
        sx_buf_init(&word, 0);
        sx_put_python_bytes(&word, *s);
        put_word(p, sx_buf_text(&word), word.size, indent);
        sx_buf_deinit(&word);
        return;
    }
    if (dtype == SX_BOOL) {
        snprintf(text, sizeof(text), "%s", element(p->array, at) != 0 ? " True" : "False");
    } else if (p->imaginary != NULL) { /* "1. +2.5j": the j stands before what pads the digits */
        char both[2 * WORD + 2];
        format_float(p, number_at(p->array, at, 0), text);
        format_float(p->imaginary, number_at(p->array, at, 1), number);
        int digits = (int)strlen(number);
        while (digits > 0 && number[digits - 1] == ' ') {
            digits--;
        }
        const int n =
            snprintf(both, sizeof(both), "%s%.*sj%s", text, digits, number, number + digits);
        put_word(p, both, (size_t)n, indent);
        return;
    } else if (dtype == SX_BF16) {
        snprintf(text, sizeof(text), "%g", element(p->array, at));
    } else if (sx_dtype_is_float(dtype)) {
        format_float(p, element(p->array, at), text);
    } else {
        format_integer(p->array, at, number);
        snprintf(text, sizeof(text), "%*s", p->width, number);
    }
    put_word(p, text, strlen(text), indent);
}

/* ---- Axes ---- */

/* "[1 2 3]", "[[1 2]\n [3 4]]": what begins a line is one column further in for each axis. */
static void put_axis(struct printer *p, int axis, int64_t at)
{
    const sx_type *type = &p->array->type;
    const int64_t n = type->dims[axis];
    const bool row = axis == type->rank - 1, cut = p->summarize && n > 2 * EDGE_ITEMS;
    const int indent = axis + 1;
    sx_buf_putc(p->out, '[');
    p->column = indent;
    for (int64_t i = 0; i < n; i++) {
        const bool dots = cut && i == EDGE_ITEMS;
        if (i > 0 && row) {
            sx_buf_putc(p->out, ' ');
            p->column++;
        }
        for (int lines = 1; i > 0 && lines < type->rank - axis; lines++) {
            sx_buf_putc(p->out, '\n');
        }
        if (i > 0 && !row) {
            sx_buf_printf(p->out, "%*s", indent, "");
        }
        if (dots && row) {
            put_word(p, "...", 3, indent);
        } else if (dots) {
            sx_buf_puts(p->out, "...");
        } else if (row) {
            put_element(p, at * n + i, indent);
        } else {
            put_axis(p, axis + 1, at * n + i);
        }
        if (dots) {
            i = n - EDGE_ITEMS - 1;
        }
    }
    sx_buf_putc(p->out, ']');
}

/* A finite number, with at least so many digits after the point. */
static void put_float_scalar(sx_buf *out, sx_dtype dtype, double value, int fraction)
{
    const double size = fabs(value), most = dtype == SX_F64 ? 1e16 : dtype == SX_F16 ? 1e3 : 1e6;
    char digits[SX_NUMBER_TEXT];
    int exponent;
    const int n = shortest_digits(dtype, value, digits, &exponent);
    if (value == 0 || (size >= 1e-4 && size < most)) {
        sx_buf_printf(out, "%.*f", SX_MAX(n - 1 - exponent, fraction), value);
    } else {
        sx_buf_printf(out, "%.*e", n - 1, value);
    }
}

/* "(1.5+2j)", or "2j" if the real part is 0 and not -0. */
static void put_complex_scalar(sx_buf *out, const sx_tensor *a)
{
    const double re = number_at(a, 0, 0), im = number_at(a, 0, 1);
    const bool both = re != 0 || signbit(re);
    sx_buf_puts(out, both ? "(" : "");
    for (int part = both ? 0 : 1; part < 2; part++) {
        const double value = part == 0 ? re : im;
        const bool plus = part == 1 && both && !(value < 0 || (value == 0 && signbit(value)));
        sx_buf_puts(out, plus ? "+" : "");
        if (isfinite(value)) {
            put_float_scalar(out, number_of(a), value, 0);
        } else {
            sx_put_python_float(out, value);
        }
    }
    sx_buf_puts(out, both ? "j)" : "j");
}

/* A scalar of NumPy, or the bytes object of a string. */
static void put_scalar(sx_buf *out, const sx_tensor *a)
{
    char text[WORD];
    if (a->type.dtype == SX_STRING) {
        sx_put_python_bytes(out, *(const sx_bytes *)a->data);
    } else if (a->type.dtype == SX_BOOL) {
        sx_buf_puts(out, element(a, 0) != 0 ? "True" : "False");
    } else if (sx_dtype_is_complex(a->type.dtype)) {
        put_complex_scalar(out, a);
    } else if (!sx_dtype_is_float(a->type.dtype)) {
        format_integer(a, 0, text);
        sx_buf_puts(out, text);
    } else if (a->type.dtype == SX_BF16) {
        sx_buf_printf(out, "%g", element(a, 0));
    } else if (!isfinite(element(a, 0))) {
        sx_put_python_float(out, element(a, 0));
    } else {
        put_float_scalar(out, a->type.dtype, element(a, 0), 1);
    }
}

void sx_put_numpy(sx_buf *out, const sx_tensor *array)
{
    const int64_t n = sx_type_elems(&array->type);
    struct printer p = {
        .array = array, .number = number_of(array), .summarize = n > THRESHOLD, .out = out};
    struct printer imaginary = p;
    if (array->type.rank == 0) {
        put_scalar(out, array);
        return;
    }
    if (n == 0) {
        sx_buf_puts(out, "[]");
        return;
    }
    if (sx_dtype_is_complex(array->type.dtype)) {
        imaginary.part = 1;
        imaginary.plus = true;
        find_float_format(&p);
        find_float_format(&imaginary);
        p.imaginary = &imaginary;
    } else if (sx_dtype_is_float(array->type.dtype) && array->type.dtype != SX_BF16) {
        find_float_format(&p);
    } else if (sx_dtype_is_integer(array->type.dtype)) {
        each(&p, 0, 0, see_integer);
    }
    put_axis(&p, 0, 0);
}
