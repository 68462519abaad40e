/* The StableHLO text writer: see stablehlo.h.
 *
 *   body     the function's lines so far
 *   attrs    "name = value, …" staged for the next operation
 *   types    of every value, by SSA number
 *   open     operations whose regions are being written; their types are printed by sx_hlo_end()
 *
 * The header of the function names its results' types, so the module is put together at the end. */
#include "graph/lower/stablehlo.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "graph/eval.h"

enum { MAX_OPERANDS = 4096, MAX_VALUES = 1 << 24 };

/* An operation whose regions are open. */
typedef struct open_op {
    sx_hlo *in; /* owned */
    int n_in;
    sx_hlo first;
    int n_out;
    int regions;
} open_op;

struct sx_hlo_writer {
    sx_hlo_options options;
    sx_buf body, attrs, module;
    sx_type *types;
    int n_types, max_types;
    sx_hlo_arg *args;
    int n_args;
    open_op open[SX_HLO_MAX_DEPTH];
    int depth;
    int channels; /* collectives so far: each has its own number */
    const char *name;
    sx_status error;
};

/* --- Element types --------------------------------------------------------------------------- */

typedef struct dtype_row {
    const char *text;
    const char *compare; /* comparison_type */
    double least, most;  /* what a double is clamped to; integers only */
} dtype_row;

static const dtype_row dtype_rows[] = {
    [SX_F32] = {"f32", "FLOAT", 0, 0},
    [SX_F64] = {"f64", "FLOAT", 0, 0},
    [SX_BF16] = {"bf16", "FLOAT", 0, 0},
    [SX_F16] = {"f16", "FLOAT", 0, 0},
    [SX_I8] = {"i8", "SIGNED", INT8_MIN, INT8_MAX},
    [SX_I16] = {"i16", "SIGNED", INT16_MIN, INT16_MAX},
    [SX_I32] = {"i32", "SIGNED", INT32_MIN, INT32_MAX},
    [SX_I64] = {"i64", "SIGNED", -0x1p63, 0x1.fffffffffffffp62},
    [SX_U8] = {"ui8", "UNSIGNED", 0, UINT8_MAX},
    [SX_U16] = {"ui16", "UNSIGNED", 0, UINT16_MAX},
    [SX_U32] = {"ui32", "UNSIGNED", 0, UINT32_MAX},
    [SX_U64] = {"ui64", "UNSIGNED", 0, 0x1.fffffffffffffp63},
    [SX_BOOL] = {"i1", "UNSIGNED", 0, 1},
};

static const dtype_row *row_of(sx_dtype dtype)
{
    return (size_t)dtype < sizeof(dtype_rows) / sizeof(dtype_rows[0]) &&
                   dtype_rows[dtype].text != NULL
               ? &dtype_rows[dtype]
               : NULL;
}

static void put_type(sx_buf *buf, const sx_type *type)
{
    sx_buf_puts(buf, "tensor<");
    for (int i = 0; i < type->rank; i++) {
        sx_buf_printf(buf, "%lldx", (long long)type->dims[i]);
    }
    sx_buf_printf(buf, "%s>", row_of(type->dtype)->text);
}

static bool is_narrow_float(sx_dtype dtype)
{
    return dtype == SX_BF16 || dtype == SX_F16;
}

/* --- Errors, values -------------------------------------------------------------------------- */

void sx_hlo_fail(sx_hlo_writer *w, sx_status status)
{
    if (w->error == SX_OK) {
        w->error = status;
    } else {
        sx_status_free(status);
    }
}

bool sx_hlo_failed(const sx_hlo_writer *w)
{
    return w->error != SX_OK;
}

static void fail_memory(sx_hlo_writer *w)
{
    sx_hlo_fail(w, sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program's text"));
}

sx_type sx_hlo_type(const sx_hlo_writer *w, sx_hlo v)
{
    return v.id >= 0 && v.id < w->n_types ? w->types[v.id] : sx_scalar_type(SX_F32);
}

bool sx_hlo_is_unsigned(const sx_hlo_writer *w, sx_hlo v)
{
    return strcmp(row_of(sx_hlo_type(w, v).dtype)->compare, "UNSIGNED") == 0;
}

/* The next value; SX_HLO_NONE after an error. */
static sx_hlo new_value(sx_hlo_writer *w, const sx_type *type)
{
    if (sx_hlo_failed(w)) {
        return SX_HLO_NONE;
    }
    if (row_of(type->dtype) == NULL || !sx_type_is_static(type)) {
        char text[SX_TYPE_TEXT];
        sx_hlo_fail(w, sx_error(SX_UNIMPLEMENTED,
                                "%s: a value of type %s; device programs hold "
                                "numbers of static shape",
                                w->name == NULL ? "program" : w->name,
                                sx_type_format(type, text, sizeof(text))));
        return SX_HLO_NONE;
    }
    if (w->n_types == w->max_types) {
        int more = w->max_types == 0 ? 256 : 2 * w->max_types;
        sx_type *types =
            more > MAX_VALUES ? NULL : sx_realloc(w->types, (size_t)more, sizeof(*types));
        if (types == NULL) {
            fail_memory(w);
            return SX_HLO_NONE;
        }
        w->types = types;
        w->max_types = more;
    }
    w->types[w->n_types] = *type;
    return (sx_hlo){w->n_types++};
}

/* --- Life ------------------------------------------------------------------------------------ */

sx_status sx_hlo_create(const sx_hlo_options *options, const sx_hlo_arg *args, int n,
                        size_t max_bytes, sx_hlo *out_args, sx_hlo_writer **out)
{
    sx_hlo_writer *w = sx_alloc(1, sizeof(*w));
    sx_hlo_arg *copy = sx_alloc((size_t)n + 1, sizeof(*copy));
    if (w == NULL || copy == NULL) {
        sx_free(w);
        sx_free(copy);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program's text");
    }
    w->options = *options;
    w->args = copy;
    w->n_args = n;
    sx_buf_init(&w->body, max_bytes);
    sx_buf_init(&w->attrs, max_bytes);
    sx_buf_init(&w->module, max_bytes);
    for (int i = 0; i < n; i++) {
        copy[i] = args[i];
        out_args[i] = new_value(w, &args[i].type);
    }
    *out = w;
    return SX_OK;
}

void sx_hlo_destroy(sx_hlo_writer *w)
{
    if (w == NULL) {
        return;
    }
    for (int i = 0; i < w->depth; i++) {
        sx_free(w->open[i].in);
    }
    sx_buf_deinit(&w->body);
    sx_buf_deinit(&w->attrs);
    sx_buf_deinit(&w->module);
    sx_free(w->types);
    sx_free(w->args);
    sx_status_free(w->error);
    sx_free(w);
}

void sx_hlo_at(sx_hlo_writer *w, const char *name)
{
    w->name = name;
}

static void put_list(sx_buf *buf, const sx_hlo *values, int n)
{
    for (int i = 0; i < n; i++) {
        sx_buf_printf(buf, "%s%%%d", i > 0 ? ", " : "", values[i].id);
    }
}

static void put_types(const sx_hlo_writer *w, sx_buf *buf, const sx_hlo *values, int n)
{
    for (int i = 0; i < n; i++) {
        sx_buf_puts(buf, i > 0 ? ", " : "");
        put_type(buf, &w->types[values[i].id]);
    }
}

static void put_header(sx_hlo_writer *w, const sx_hlo *results, int n)
{
    sx_buf *m = &w->module;
    sx_buf_puts(m, "module @sextant {\n  func.func public @main(");
    for (int i = 0; i < w->n_args; i++) {
        sx_buf_printf(m, "%s%%%d: ", i > 0 ? ", " : "", i);
        put_type(m, &w->args[i].type);
        if (w->args[i].alias >= 0) {
            sx_buf_printf(m, " {tf.aliasing_output = %d : i32}", w->args[i].alias);
        }
    }
    sx_buf_puts(m, ") -> (");
    put_types(w, m, results, n);
    sx_buf_puts(m, ") {\n");
}

sx_status sx_hlo_finish(sx_hlo_writer *w, const sx_hlo *results, int n, const char **out_text,
                        size_t *out_size)
{
    assert(w->depth == 0 && "every region is ended");
    for (int i = 0; i < n && !sx_hlo_failed(w); i++) {
        if (!sx_hlo_is(results[i])) {
            sx_hlo_fail(w, sx_error(SX_INTERNAL, "result %d of a program was never lowered", i));
        }
    }
    if (!sx_hlo_failed(w)) {
        put_header(w, results, n);
        sx_buf_append(&w->module, sx_buf_text(&w->body), w->body.size);
        sx_buf_puts(&w->module, n > 0 ? "    func.return " : "    func.return");
        put_list(&w->module, results, n);
        sx_buf_puts(&w->module, n > 0 ? " : " : "");
        put_types(w, &w->module, results, n);
        sx_buf_puts(&w->module, "\n  }\n}\n");
        sx_hlo_fail(w, sx_buf_status(&w->module));
    }
    if (w->error != SX_OK) {
        sx_status error = w->error;
        w->error = SX_OK;
        return error;
    }
    *out_text = sx_buf_text(&w->module);
    *out_size = w->module.size;
    return SX_OK;
}

/* --- Operations ------------------------------------------------------------------------------ */

static void begin_attr(sx_hlo_writer *w, const char *name)
{
    sx_buf_printf(&w->attrs, "%s%s = ", w->attrs.size > 0 ? ", " : "", name);
}

void sx_hlo_attr(sx_hlo_writer *w, const char *name, const char *format, ...)
{
    char value[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    assert(n >= 0 && n < (int)sizeof(value) && "attributes are short");
    (void)n;
    begin_attr(w, name);
    sx_buf_puts(&w->attrs, value);
}

static void put_i64s(sx_buf *buf, int n, const int64_t *values)
{
    for (int i = 0; i < n; i++) {
        sx_buf_printf(buf, "%s%lld", i > 0 ? ", " : "", (long long)values[i]);
    }
}

void sx_hlo_attr_i64s(sx_hlo_writer *w, const char *name, int n, const int64_t *values)
{
    begin_attr(w, name);
    sx_buf_puts(&w->attrs, n > 0 ? "array<i64: " : "array<i64");
    put_i64s(&w->attrs, n, values);
    sx_buf_putc(&w->attrs, '>');
}

char *sx_hlo_numbers(int first, int last, char buffer[SX_HLO_NUMBERS])
{
    int used = 0;
    buffer[0] = '\0';
    for (int i = first; i < last; i++) {
        used += snprintf(buffer + used, (size_t)(SX_HLO_NUMBERS - used), "%s%d",
                         i > first ? ", " : "", i);
        assert(used < SX_HLO_NUMBERS);
    }
    return buffer;
}

static void put_indent(sx_hlo_writer *w)
{
    for (int i = 0; i < 2 + w->depth; i++) {
        sx_buf_puts(&w->body, "  ");
    }
}

/* %5, %6 = "stablehlo.op"(%1, %2) */
static sx_hlo put_call(sx_hlo_writer *w, const char *op, const sx_hlo *in, int n_in,
                       const sx_type *out_types, int n_out)
{
    for (int i = 0; i < n_in; i++) {
        if (!sx_hlo_is(in[i]) || in[i].id >= w->n_types) {
            sx_hlo_fail(
                w, sx_error(SX_INTERNAL, "operand %d of stablehlo.%s was never lowered", i, op));
        }
    }
    sx_hlo first = SX_HLO_NONE;
    put_indent(w);
    for (int i = 0; i < n_out; i++) {
        sx_hlo v = new_value(w, &out_types[i]);
        first = i == 0 ? v : first;
        sx_buf_printf(&w->body, "%s%%%d", i > 0 ? ", " : "", v.id);
    }
    sx_buf_printf(&w->body, "%s\"stablehlo.%s\"(", n_out > 0 ? " = " : "", op);
    put_list(&w->body, in, n_in);
    sx_buf_putc(&w->body, ')');
    return sx_hlo_failed(w) ? SX_HLO_NONE : first;
}

/* {attributes} : (types) -> types loc("name") */
static void put_tail(sx_hlo_writer *w, const sx_hlo *in, int n_in, sx_hlo first, int n_out)
{
    if (w->attrs.size > 0) {
        sx_buf_printf(&w->body, " {%s}", sx_buf_text(&w->attrs));
        sx_buf_reset(&w->attrs);
    }
    sx_buf_puts(&w->body, " : (");
    put_types(w, &w->body, in, n_in);
    sx_buf_puts(&w->body, n_out == 1 ? ") -> " : ") -> (");
    for (int i = 0; i < n_out; i++) {
        sx_hlo v = {first.id + i};
        sx_buf_puts(&w->body, i > 0 ? ", " : "");
        put_types(w, &w->body, &v, 1);
    }
    sx_buf_puts(&w->body, n_out == 1 ? "" : ")");
    if (w->name != NULL) {
        sx_buf_puts(&w->body, " loc(\"");
        for (const char *c = w->name; *c != '\0'; c++) {
            bool plain = *c >= ' ' && *c != '"' && *c != '\\' && *c != 0x7f;
            sx_buf_putc(&w->body, plain ? *c : '_');
        }
        sx_buf_puts(&w->body, "\")");
    }
    sx_buf_putc(&w->body, '\n');
    if (w->body.failed != 0) {
        sx_hlo_fail(w, sx_buf_status(&w->body));
    }
}

sx_hlo sx_hlo_emit(sx_hlo_writer *w, const char *op, const sx_hlo *in, int n_in,
                   const sx_type *out_types, int n_out)
{
    if (sx_hlo_failed(w)) {
        return SX_HLO_NONE;
    }
    sx_hlo first = put_call(w, op, in, n_in, out_types, n_out);
    if (!sx_hlo_failed(w)) {
        put_tail(w, in, n_in, first, n_out);
    }
    return sx_hlo_failed(w) ? SX_HLO_NONE : first;
}

/* --- Regions --------------------------------------------------------------------------------- */

sx_hlo sx_hlo_begin(sx_hlo_writer *w, const char *op, const sx_hlo *in, int n_in,
                    const sx_type *out_types, int n_out)
{
    if (sx_hlo_failed(w)) {
        return SX_HLO_NONE;
    }
    assert(w->depth < SX_HLO_MAX_DEPTH && n_in <= MAX_OPERANDS);
    sx_hlo *copy = sx_alloc((size_t)n_in + 1, sizeof(*copy));
    if (copy == NULL) {
        fail_memory(w);
        return SX_HLO_NONE;
    }
    for (int i = 0; i < n_in; i++) {
        copy[i] = in[i];
    }
    sx_hlo first = put_call(w, op, in, n_in, out_types, n_out);
    sx_buf_puts(&w->body, " (");
    w->open[w->depth++] = (open_op){.in = copy, .n_in = n_in, .first = first, .n_out = n_out};
    return first;
}

void sx_hlo_region(sx_hlo_writer *w, const sx_type *arg_types, int n, sx_hlo *out_args)
{
    for (int i = 0; i < n; i++) {
        out_args[i] = new_value(w, &arg_types[i]);
    }
    if (sx_hlo_failed(w)) {
        return;
    }
    open_op *op = &w->open[w->depth - 1];
    sx_buf_puts(&w->body, op->regions++ > 0 ? ", {\n" : "{\n");
    put_indent(w);
    sx_buf_puts(&w->body, "^bb0(");
    for (int i = 0; i < n; i++) {
        sx_buf_printf(&w->body, "%s%%%d: ", i > 0 ? ", " : "", out_args[i].id);
        put_type(&w->body, &arg_types[i]);
    }
    sx_buf_puts(&w->body, "):\n");
}

void sx_hlo_region_end(sx_hlo_writer *w, const sx_hlo *results, int n)
{
    sx_hlo_emit(w, "return", results, n, NULL, 0);
    if (!sx_hlo_failed(w)) {
        put_indent(w);
        sx_buf_putc(&w->body, '}');
    }
}

void sx_hlo_end(sx_hlo_writer *w)
{
    if (w->depth == 0) { /* sx_hlo_begin() came after an error */
        assert(sx_hlo_failed(w));
        return;
    }
    open_op op = w->open[--w->depth];
    if (!sx_hlo_failed(w)) {
        sx_buf_putc(&w->body, ')');
        put_tail(w, op.in, op.n_in, op.first, op.n_out);
    }
    sx_free(op.in);
}

void sx_hlo_region_binary(sx_hlo_writer *w, const char *op, sx_dtype dtype)
{
    sx_type scalars[2] = {sx_scalar_type(dtype), sx_scalar_type(dtype)};
    sx_hlo args[2] = {SX_HLO_NONE, SX_HLO_NONE};
    sx_hlo_region(w, scalars, 2, args);
    sx_hlo result = sx_hlo_binary(w, op, args[0], args[1]);
    sx_hlo_region_end(w, &result, 1);
}

/* --- Constants ------------------------------------------------------------------------------- */

/* A decimal that MLIR reads as a float: with a point. Infinities and NaN as bits. */
static void put_float(sx_buf *buf, double v, int digits, const void *bytes, size_t size)
{
    char text[64];
    if (!isfinite(v)) {
        uint64_t bits = 0;
        memcpy(&bits, bytes, size);
        sx_buf_printf(buf, "0x%0*llX", (int)size * 2, (unsigned long long)bits);
        return;
    }
    snprintf(text, sizeof(text), "%.*g", digits, v);
    if (strpbrk(text, ".") != NULL) {
        sx_buf_puts(buf, text);
        return;
    }
    char *e = strchr(text, 'e');
    sx_buf_append(buf, text, e == NULL ? strlen(text) : (size_t)(e - text));
    sx_buf_printf(buf, ".0%s", e == NULL ? "" : e);
}

static void put_element(sx_buf *buf, sx_dtype dtype, const void *bytes)
{
    double v = 0;
    uint64_t wide = 0;
    memcpy(&wide, bytes, sx_dtype_bytes(dtype));
    sx_ref_load(&(sx_ref_tensor){sx_scalar_type(dtype), &v}, bytes);
    if (sx_dtype_is_float(dtype)) {
        put_float(buf, v, dtype == SX_F64 ? 17 : 9, bytes, sx_dtype_bytes(dtype));
    } else if (dtype == SX_BOOL) {
        sx_buf_puts(buf, v != 0 ? "true" : "false");
    } else if (dtype == SX_U64) {
        sx_buf_printf(buf, "%llu", (unsigned long long)wide);
    } else {
        sx_buf_printf(buf, "%lld", dtype == SX_I64 ? (long long)wide : (long long)v);
    }
}

static bool is_splat(const sx_tensor *t, int64_t n)
{
    size_t size = sx_dtype_bytes(t->type.dtype);
    for (int64_t i = 1; i < n; i++) {
        if (memcmp(t->data, (const char *)t->data + (size_t)i * size, size) != 0) {
            return false;
        }
    }
    return n > 0;
}

/* dense<"0x…">: the bytes in order, little-endian as this machine is. */
static void put_blob(sx_buf *buf, const void *data, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    const uint8_t *bytes = data;
    char *to = sx_buf_extend(buf, 2 * size);
    for (size_t i = 0; to != NULL && i < size; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
}

static void stage_value(sx_hlo_writer *w, const sx_tensor *t)
{
    int64_t n = sx_type_elems(&t->type);
    begin_attr(w, "value");
    sx_buf_puts(&w->attrs, "dense<");
    if (is_splat(t, n)) {
        put_element(&w->attrs, t->type.dtype, t->data);
    } else if (n > 0) {
        sx_buf_puts(&w->attrs, "\"0x");
        put_blob(&w->attrs, t->data, (size_t)sx_type_bytes(&t->type));
        sx_buf_putc(&w->attrs, '"');
    }
    sx_buf_puts(&w->attrs, "> : ");
    put_type(&w->attrs, &t->type);
    if (w->attrs.failed != 0) {
        sx_hlo_fail(w, sx_buf_status(&w->attrs));
    }
}

sx_hlo sx_hlo_constant(sx_hlo_writer *w, const sx_tensor *value)
{
    if (sx_hlo_failed(w)) {
        return SX_HLO_NONE;
    }
    sx_tensor t = *value;
    bool bits = t.type.dtype == SX_BOOL && !is_splat(&t, sx_type_elems(&t.type));
    t.type.dtype = bits ? SX_U8 : t.type.dtype; /* MLIR packs blobs of i1 */
    if (row_of(t.type.dtype) == NULL || sx_type_bytes(&t.type) < 0) {
        sx_hlo_fail(w, sx_error(SX_UNIMPLEMENTED, "a constant of %s in a device program",
                                sx_dtype_name(t.type.dtype)));
        return SX_HLO_NONE;
    }
    stage_value(w, &t);
    sx_hlo v = sx_hlo_emit(w, "constant", NULL, 0, &t.type, 1);
    return bits ? sx_hlo_convert(w, v, SX_BOOL) : v;
}

sx_hlo sx_hlo_splat(sx_hlo_writer *w, sx_type type, double value)
{
    const dtype_row *row = row_of(type.dtype);
    if (sx_hlo_failed(w) || row == NULL) {
        return SX_HLO_NONE;
    }
    uint64_t bytes = 0;
    if (!sx_dtype_is_float(type.dtype)) {
        value = fmin(fmax(value, row->least), row->most);
    }
    sx_ref_store(&(sx_ref_tensor){sx_scalar_type(type.dtype), &value}, &bytes);
    begin_attr(w, "value");
    sx_buf_puts(&w->attrs, "dense<");
    if (sx_type_elems(&type) != 0) {
        put_element(&w->attrs, type.dtype, &bytes);
    }
    sx_buf_puts(&w->attrs, "> : ");
    put_type(&w->attrs, &type);
    return sx_hlo_emit(w, "constant", NULL, 0, &type, 1);
}

sx_hlo sx_hlo_scalar(sx_hlo_writer *w, sx_dtype dtype, double value)
{
    return sx_hlo_splat(w, sx_scalar_type(dtype), value);
}

sx_hlo sx_hlo_like(sx_hlo_writer *w, sx_hlo v, double value)
{
    return sx_hlo_splat(w, sx_hlo_type(w, v), value);
}

/* --- Elementwise ----------------------------------------------------------------------------- */

sx_hlo sx_hlo_unary(sx_hlo_writer *w, const char *op, sx_hlo x)
{
    sx_type type = sx_hlo_type(w, x);
    return sx_hlo_emit(w, op, &x, 1, &type, 1);
}

sx_hlo sx_hlo_binary(sx_hlo_writer *w, const char *op, sx_hlo x, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, x);
    return sx_hlo_emit(w, op, (const sx_hlo[]){x, y}, 2, &type, 1);
}

sx_hlo sx_hlo_compare(sx_hlo_writer *w, const char *direction, sx_hlo x, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo_attr(w, "comparison_direction", "#stablehlo<comparison_direction %s>", direction);
    sx_hlo_attr(w, "compare_type", "#stablehlo<comparison_type %s>", row_of(type.dtype)->compare);
    type.dtype = SX_BOOL;
    return sx_hlo_emit(w, "compare", (const sx_hlo[]){x, y}, 2, &type, 1);
}

sx_hlo sx_hlo_select(sx_hlo_writer *w, sx_hlo cond, sx_hlo x, sx_hlo y)
{
    sx_type type = sx_hlo_type(w, x);
    return sx_hlo_emit(w, "select", (const sx_hlo[]){cond, x, y}, 3, &type, 1);
}

sx_hlo sx_hlo_convert(sx_hlo_writer *w, sx_hlo x, sx_dtype dtype)
{
    sx_type type = sx_hlo_type(w, x);
    if (type.dtype == dtype) {
        return x;
    }
    type.dtype = dtype;
    return sx_hlo_emit(w, "convert", &x, 1, &type, 1);
}

sx_hlo sx_hlo_widen(sx_hlo_writer *w, sx_hlo x)
{
    return is_narrow_float(sx_hlo_type(w, x).dtype) ? sx_hlo_convert(w, x, SX_F32) : x;
}

sx_hlo sx_hlo_with(sx_hlo_writer *w, const char *op, sx_hlo x, double value)
{
    return sx_hlo_binary(w, op, x, sx_hlo_like(w, x, value));
}

sx_hlo sx_hlo_clamp(sx_hlo_writer *w, sx_hlo x, double low, double high)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo limits[2] = {sx_hlo_scalar(w, type.dtype, low), sx_hlo_scalar(w, type.dtype, high)};
    return sx_hlo_emit(w, "clamp", (const sx_hlo[]){limits[0], x, limits[1]}, 3, &type, 1);
}

/* --- Shapes ---------------------------------------------------------------------------------- */

static bool same_dims(const sx_type *a, const sx_type *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

sx_hlo sx_hlo_broadcast_in(sx_hlo_writer *w, sx_hlo x, const sx_type *to, const int64_t *map)
{
    sx_type from = sx_hlo_type(w, x), type = *to;
    type.dtype = from.dtype;
    sx_hlo_attr_i64s(w, "broadcast_dimensions", from.rank, map);
    return sx_hlo_emit(w, "broadcast_in_dim", &x, 1, &type, 1);
}

sx_hlo sx_hlo_broadcast_to(sx_hlo_writer *w, sx_hlo x, const sx_type *to)
{
    sx_type from = sx_hlo_type(w, x);
    int64_t map[SX_MAX_RANK];
    if (same_dims(&from, to)) {
        return x;
    }
    for (int i = 0; i < from.rank; i++) {
        map[i] = to->rank - from.rank + i;
    }
    return sx_hlo_broadcast_in(w, x, to, map);
}

sx_hlo sx_hlo_repeat(sx_hlo_writer *w, sx_hlo x, const sx_type *to, int axis)
{
    int64_t map[SX_MAX_RANK];
    for (int i = 0; i + 1 < to->rank; i++) {
        map[i] = i < axis ? i : i + 1;
    }
    return sx_hlo_broadcast_in(w, x, to, map);
}

sx_hlo sx_hlo_reshape(sx_hlo_writer *w, sx_hlo x, const sx_type *to)
{
    sx_type from = sx_hlo_type(w, x), type = *to;
    type.dtype = from.dtype;
    return same_dims(&from, &type) ? x : sx_hlo_emit(w, "reshape", &x, 1, &type, 1);
}

sx_hlo sx_hlo_transpose(sx_hlo_writer *w, sx_hlo x, const int64_t *perm)
{
    sx_type from = sx_hlo_type(w, x), type = from;
    bool moves = false;
    for (int i = 0; i < from.rank; i++) {
        type.dims[i] = from.dims[perm[i]];
        moves = moves || perm[i] != i;
    }
    if (!moves) {
        return x;
    }
    sx_hlo_attr_i64s(w, "permutation", from.rank, perm);
    return sx_hlo_emit(w, "transpose", &x, 1, &type, 1);
}

sx_hlo sx_hlo_reverse(sx_hlo_writer *w, sx_hlo x, int n, const int64_t *axes)
{
    sx_hlo_attr_i64s(w, "dimensions", n, axes);
    return sx_hlo_unary(w, "reverse", x);
}

sx_hlo sx_hlo_slice(sx_hlo_writer *w, sx_hlo x, const int64_t *begin, const int64_t *size)
{
    sx_type from = sx_hlo_type(w, x), type = from;
    int64_t limits[SX_MAX_RANK], ones[SX_MAX_RANK];
    for (int i = 0; i < from.rank; i++) {
        type.dims[i] = size[i];
        limits[i] = begin[i] + size[i];
        ones[i] = 1;
    }
    if (same_dims(&from, &type)) {
        return x;
    }
    sx_hlo_attr_i64s(w, "start_indices", from.rank, begin);
    sx_hlo_attr_i64s(w, "limit_indices", from.rank, limits);
    sx_hlo_attr_i64s(w, "strides", from.rank, ones);
    return sx_hlo_emit(w, "slice", &x, 1, &type, 1);
}

sx_hlo sx_hlo_pad(sx_hlo_writer *w, sx_hlo x, double value, const int64_t *low, const int64_t *high,
                  const int64_t *interior)
{
    static const int64_t zeros[SX_MAX_RANK];
    sx_type from = sx_hlo_type(w, x), type = from;
    interior = interior == NULL ? zeros : interior;
    for (int i = 0; i < from.rank; i++) {
        int64_t between = from.dims[i] > 1 ? (from.dims[i] - 1) * interior[i] : 0;
        type.dims[i] = low[i] + from.dims[i] + between + high[i];
    }
    if (same_dims(&from, &type) && memcmp(low, zeros, (size_t)from.rank * sizeof(*low)) == 0) {
        return x;
    }
    sx_hlo with[2] = {x, sx_hlo_scalar(w, from.dtype, value)};
    sx_hlo_attr_i64s(w, "edge_padding_low", from.rank, low);
    sx_hlo_attr_i64s(w, "edge_padding_high", from.rank, high);
    sx_hlo_attr_i64s(w, "interior_padding", from.rank, interior);
    return sx_hlo_emit(w, "pad", with, 2, &type, 1);
}

sx_hlo sx_hlo_concat(sx_hlo_writer *w, const sx_hlo *xs, int n, int axis)
{
    sx_type type = sx_hlo_type(w, xs[0]);
    for (int i = 1; i < n; i++) {
        type.dims[axis] += sx_hlo_type(w, xs[i]).dims[axis];
    }
    if (n == 1) {
        return xs[0];
    }
    sx_hlo_attr(w, "dimension", "%d : i64", axis);
    return sx_hlo_emit(w, "concatenate", xs, n, &type, 1);
}

sx_hlo sx_hlo_iota(sx_hlo_writer *w, sx_type type, int axis)
{
    sx_hlo_attr(w, "iota_dimension", "%d : i64", axis);
    return sx_hlo_emit(w, "iota", NULL, 0, &type, 1);
}

/* --- Reductions ------------------------------------------------------------------------------ */

/* What changes nothing under `op`. */
static double neutral_of(const char *op)
{
    return strcmp(op, "maximum") == 0 ? -INFINITY : strcmp(op, "and") == 0 ? 1 : 0;
}

sx_hlo sx_hlo_reduce(sx_hlo_writer *w, const char *op, sx_hlo x, int n, const int64_t *axes,
                     bool kept)
{
    if (sx_hlo_failed(w)) { /* x has no shape then */
        return SX_HLO_NONE;
    }
    sx_type from = sx_hlo_type(w, x), type = {.rank = 0}, with_ones = from;
    bool reduced[SX_MAX_RANK] = {false};
    sx_hlo wide = strcmp(op, "add") == 0 ? sx_hlo_widen(w, x) : x;
    for (int i = 0; i < n; i++) {
        reduced[axes[i]] = true;
        with_ones.dims[axes[i]] = 1;
    }
    for (int i = 0; i < from.rank; i++) {
        if (!reduced[i]) {
            type.dims[type.rank++] = from.dims[i];
        }
    }
    type.dtype = sx_hlo_type(w, wide).dtype;
    if (n > 0) {
        sx_hlo in[2] = {wide, sx_hlo_scalar(w, type.dtype, neutral_of(op))};
        wide = sx_hlo_begin(w, "reduce", in, 2, &type, 1);
        sx_hlo_region_binary(w, op, type.dtype);
        sx_hlo_attr_i64s(w, "dimensions", n, axes);
        sx_hlo_end(w);
    }
    sx_hlo y = sx_hlo_convert(w, wide, from.dtype);
    return kept ? sx_hlo_reshape(w, y, &with_ones) : y;
}

sx_hlo sx_hlo_reduce_last(sx_hlo_writer *w, const char *op, sx_hlo x)
{
    const int64_t last = sx_hlo_type(w, x).rank - 1;
    return sx_hlo_reduce(w, op, x, 1, &last, true);
}

void sx_hlo_attr_window(sx_hlo_writer *w, const sx_hlo_window *window)
{
    const int64_t size[4] = {1, window->size[0], window->size[1], 1};
    const int64_t strides[4] = {1, window->strides[0], window->strides[1], 1};
    sx_hlo_attr_i64s(w, "window_dimensions", 4, size);
    sx_hlo_attr_i64s(w, "window_strides", 4, strides);
    sx_hlo_attr(w, "padding",
                "dense<[[0, 0], [%lld, %lld], [%lld, %lld], [0, 0]]> : tensor<4x2xi64>",
                (long long)window->pads[0][0], (long long)window->pads[0][1],
                (long long)window->pads[1][0], (long long)window->pads[1][1]);
}

sx_hlo sx_hlo_reduce_window(sx_hlo_writer *w, const char *op, sx_hlo x, const sx_hlo_window *window,
                            const sx_type *out)
{
    sx_type type = *out;
    sx_dtype dtype = sx_hlo_type(w, x).dtype;
    sx_hlo wide = strcmp(op, "add") == 0 ? sx_hlo_widen(w, x) : x;
    type.dtype = sx_hlo_type(w, wide).dtype;
    sx_hlo in[2] = {wide, sx_hlo_scalar(w, type.dtype, neutral_of(op))};
    sx_hlo y = sx_hlo_begin(w, "reduce_window", in, 2, &type, 1);
    sx_hlo_region_binary(w, op, type.dtype);
    sx_hlo_attr_window(w, window);
    sx_hlo_end(w);
    return sx_hlo_convert(w, y, dtype);
}

/* --- Products -------------------------------------------------------------------------------- */

/* The operand as the options want it. */
static sx_hlo product_operand(sx_hlo_writer *w, sx_hlo x)
{
    bool narrow = w->options.bf16_products && sx_hlo_type(w, x).dtype == SX_F32;
    x = narrow ? sx_hlo_convert(w, x, SX_BF16) : x;
    return w->options.wide_products ? sx_hlo_widen(w, x) : x;
}

/* bf16 operands are exact in one pass. */
static void attr_precision(sx_hlo_writer *w, sx_hlo operand)
{
    const char *asked = w->options.precision != NULL ? w->options.precision : "HIGHEST";
    const char *p = is_narrow_float(sx_hlo_type(w, operand).dtype) ? "DEFAULT" : asked;
    sx_hlo_attr(w, "precision_config", "[#stablehlo<precision %s>, #stablehlo<precision %s>]", p,
                p);
}

sx_hlo sx_hlo_matmul(sx_hlo_writer *w, sx_hlo a, bool transpose_a, sx_hlo b, bool transpose_b)
{
    sx_type ta = sx_hlo_type(w, a), tb = sx_hlo_type(w, b);
    sx_type type = sx_type_of(ta.dtype == SX_F64 ? SX_F64 : SX_F32, ta.dims[transpose_a],
                              tb.dims[!transpose_b]);
    sx_hlo in[2] = {product_operand(w, a), product_operand(w, b)};
    sx_hlo_attr(w, "dot_dimension_numbers",
                "#stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
                "lhs_contracting_dimensions = [%d], rhs_contracting_dimensions = [%d]>",
                transpose_a ? 0 : 1, transpose_b ? 1 : 0);
    attr_precision(w, in[0]);
    return sx_hlo_emit(w, "dot_general", in, 2, &type, 1);
}

/* Negative pads cut the dilated image, before the convolution: few implementations take them. */
static sx_hlo cut_image(sx_hlo_writer *w, sx_hlo x, sx_hlo_conv *conv)
{
    int64_t low[4] = {0}, high[4] = {0}, interior[4] = {0};
    bool cut = false;
    for (int i = 0; i < 2; i++) {
        cut = cut || conv->pads[i][0] < 0 || conv->pads[i][1] < 0;
    }
    for (int i = 0; i < 2 && cut; i++) {
        low[1 + i] = conv->pads[i][0] < 0 ? conv->pads[i][0] : 0;
        high[1 + i] = conv->pads[i][1] < 0 ? conv->pads[i][1] : 0;
        interior[1 + i] = conv->x_dilation[i] - 1;
        conv->pads[i][0] -= low[1 + i];
        conv->pads[i][1] -= high[1 + i];
        conv->x_dilation[i] = 1;
    }
    return cut ? sx_hlo_pad(w, x, 0, low, high, interior) : x;
}

static int64_t conv_extent(const sx_hlo_conv *c, int i, int64_t in, int64_t kernel)
{
    int64_t span = (kernel - 1) * c->filter_dilation[i] + 1;
    int64_t room = (in - 1) * c->x_dilation[i] + 1 + c->pads[i][0] + c->pads[i][1] - span;
    return room / c->strides[i] + 1;
}

sx_hlo sx_hlo_convolution(sx_hlo_writer *w, sx_hlo x, sx_hlo filter, const sx_hlo_conv *conv)
{
    sx_hlo_conv c = *conv;
    x = cut_image(w, x, &c);
    sx_type tx = sx_hlo_type(w, x), tf = sx_hlo_type(w, filter);
    sx_type type = sx_type_of(tx.dtype == SX_F64 ? SX_F64 : SX_F32, tx.dims[0],
                              conv_extent(&c, 0, tx.dims[1], tf.dims[0]),
                              conv_extent(&c, 1, tx.dims[2], tf.dims[1]), tf.dims[3]);
    sx_hlo in[2] = {product_operand(w, x), product_operand(w, filter)};
    sx_hlo_attr_i64s(w, "window_strides", 2, c.strides);
    sx_hlo_attr(w, "padding", "dense<[[%lld, %lld], [%lld, %lld]]> : tensor<2x2xi64>",
                (long long)c.pads[0][0], (long long)c.pads[0][1], (long long)c.pads[1][0],
                (long long)c.pads[1][1]);
    sx_hlo_attr_i64s(w, "lhs_dilation", 2, c.x_dilation);
    sx_hlo_attr_i64s(w, "rhs_dilation", 2, c.filter_dilation);
    sx_hlo_attr(w, "window_reversal", "array<i1: false, false>");
    sx_hlo_attr(w, "dimension_numbers",
                "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, "
                "input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, "
                "kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], "
                "output_batch_dimension = 0, output_feature_dimension = 3, "
                "output_spatial_dimensions = [1, 2]>");
    sx_hlo_attr(w, "feature_group_count", "%lld : i64", (long long)c.groups);
    sx_hlo_attr(w, "batch_group_count", "1 : i64");
    attr_precision(w, in[0]);
    return sx_hlo_emit(w, "convolution", in, 2, &type, 1);
}

/* --- Replicas -------------------------------------------------------------------------------- */

sx_hlo sx_hlo_all_reduce(sx_hlo_writer *w, const char *op, sx_hlo x, int n)
{
    sx_type type = sx_hlo_type(w, x);
    sx_hlo y = sx_hlo_begin(w, "all_reduce", &x, 1, &type, 1);
    sx_hlo_region_binary(w, op, type.dtype);
    begin_attr(w, "replica_groups");
    sx_buf_puts(&w->attrs, "dense<[[");
    for (int i = 0; i < n; i++) {
        sx_buf_printf(&w->attrs, "%s%d", i > 0 ? ", " : "", i);
    }
    sx_buf_printf(&w->attrs, "]]> : tensor<1x%dxi64>", n);
    sx_hlo_attr(w, "channel_handle", "#stablehlo.channel_handle<handle = %d, type = 0>",
                ++w->channels);
    sx_hlo_attr(w, "use_global_device_ids", "unit");
    sx_hlo_end(w);
    return y;
}
