/* The StableHLO text writer: values, operations, regions, constants; see stablehlo.h. The
 * function's header contains the types of its results, so the module is assembled at the end. */
#include "graph/lower/stablehlo/writer.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/host.h"

enum { MAX_OPERANDS = 4096, MAX_VALUES = 1 << 24 };

/* ---- Element types ---- */

static const sx_hlo_dtype dtype_rows[] = {
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

const sx_hlo_dtype *sx_hlo_dtype_of(sx_dtype dtype)
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
    sx_buf_printf(buf, "%s>", sx_hlo_dtype_of(type->dtype)->text);
}

/* ---- Errors and values ---- */

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
    sx_hlo_fail(w, sx_no_memory("for a program's text"));
}

sx_type sx_hlo_type(const sx_hlo_writer *w, sx_hlo v)
{
    return v.id >= 0 && v.id < w->n_types ? w->types[v.id] : sx_scalar_type(SX_F32);
}

bool sx_hlo_is_unsigned(const sx_hlo_writer *w, sx_hlo v)
{
    return strcmp(sx_hlo_dtype_of(sx_hlo_type(w, v).dtype)->compare, "UNSIGNED") == 0;
}

/* The next value; SX_HLO_NONE after an error. */
static sx_hlo new_value(sx_hlo_writer *w, const sx_type *type)
{
    if (sx_hlo_failed(w)) {
        return SX_HLO_NONE;
    }
    if (sx_hlo_dtype_of(type->dtype) == NULL || !sx_type_is_static(type)) {
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

/* ---- Creation and destruction ---- */

sx_status sx_hlo_create(const sx_hlo_options *options, const sx_hlo_arg *args, int n,
                        size_t max_bytes, sx_hlo *out_args, sx_hlo_writer **out)
{
    sx_hlo_writer *w = sx_alloc(1, sizeof(*w));
    sx_hlo_arg *copy = sx_alloc((size_t)n + 1, sizeof(*copy));
    if (w == NULL || copy == NULL) {
        sx_free(w);
        sx_free(copy);
        return sx_no_memory("for a program's text");
    }
    w->options = *options;
    w->args = copy;
    w->reached = SX_HLO_NONE;
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

/* ---- Bounds ---- */

sx_hlo sx_hlo_reached(const sx_hlo_writer *w)
{
    return w->reached;
}

void sx_hlo_set_reached(sx_hlo_writer *w, sx_hlo reached)
{
    w->reached = reached;
}

sx_hlo_bound sx_hlo_bound_of(const sx_hlo_writer *w, int64_t trips)
{
    const int64_t most = w->options.max_trips;
    const bool limit = most > 0 && (trips == 0 || trips > most);
    return (sx_hlo_bound){.trips = limit ? most : trips, .limit = limit};
}

int sx_hlo_add_bound(sx_hlo_writer *w, const char *name, sx_hlo_bound bound)
{
    sx_hlo_bound *grown = sx_realloc(w->bounds, (size_t)w->n_bounds + 1, sizeof(*grown));
    char *copy = grown != NULL ? sx_strdup(name) : NULL;
    w->bounds = grown != NULL ? grown : w->bounds;
    if (copy == NULL) {
        sx_hlo_fail(w, sx_no_memory("for a program's text"));
        return 0;
    }
    bound.name = copy;
    grown[w->n_bounds++] = bound;
    return w->n_bounds;
}

const sx_hlo_bound *sx_hlo_bounds(const sx_hlo_writer *w, int *out_n)
{
    *out_n = w->n_bounds;
    return w->bounds;
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
    for (int i = 0; i < w->n_bounds; i++) {
        sx_free(w->bounds[i].name);
    }
    sx_free(w->bounds);
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
        } else if (w->args[i].donated) {
            sx_buf_puts(m, " {jax.buffer_donor = true}");
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

/* ---- Operations ---- */

void sx_hlo_begin_attr(sx_hlo_writer *w, const char *name)
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
    sx_hlo_begin_attr(w, name);
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
    sx_hlo_begin_attr(w, name);
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
    if (w->attrs.failed != 0) {
        sx_hlo_fail(w, sx_buf_status(&w->attrs));
    }
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

/* ---- Regions ---- */

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
    w->open[w->depth++] = (sx_hlo_open){.in = copy, .n_in = n_in, .first = first, .n_out = n_out};
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
    sx_hlo_open *op = &w->open[w->depth - 1];
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
    if (w->depth == 0) { /* sx_hlo_begin() was called after an error */
        assert(sx_hlo_failed(w));
        return;
    }
    sx_hlo_open op = w->open[--w->depth];
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

/* ---- Constants ---- */

/* A decimal that MLIR reads as a float, with a point. Infinities and NaN are written as bits. */
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
    double v = sx_host_load_element(dtype, bytes);
    uint64_t wide = 0;
    memcpy(&wide, bytes, sx_dtype_bytes(dtype));
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
    sx_hlo_begin_attr(w, "value");
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
}

sx_hlo sx_hlo_constant(sx_hlo_writer *w, const sx_tensor *value)
{
    if (sx_hlo_failed(w)) {
        return SX_HLO_NONE;
    }
    sx_tensor t = *value;
    bool bits = t.type.dtype == SX_BOOL && !is_splat(&t, sx_type_elems(&t.type));
    t.type.dtype = bits ? SX_U8 : t.type.dtype; /* MLIR packs blobs of i1 */
    if (sx_hlo_dtype_of(t.type.dtype) == NULL || sx_type_bytes(&t.type) < 0) {
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
    const sx_hlo_dtype *row = sx_hlo_dtype_of(type.dtype);
    if (sx_hlo_failed(w) || row == NULL) {
        return SX_HLO_NONE;
    }
    uint64_t bytes = 0;
    if (!sx_dtype_is_float(type.dtype)) {
        value = fmin(fmax(value, row->least), row->most);
    }
    sx_host_store_element(type.dtype, value, &bytes);
    sx_hlo_begin_attr(w, "value");
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
