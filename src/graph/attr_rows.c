/* See attr_rows.h. One row per kind of attribute has its functions. */
#include "graph/attr_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"
#include "base/map.h"
#include "base/memory.h"
#include "graph/host.h"

typedef struct kind_row {
    bool (*is_zero)(const void *field);
    bool (*equal)(const void *a, const void *b);
    uint64_t (*hash)(const void *field);
    bool (*copy)(sx_arena *arena, void *dst, const void *src);
    void (*print)(const sx_attr_def *def, const void *field, sx_buf *out);
    sx_status (*parse)(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *field);
} kind_row;

static sx_status dtype_token_parse(sx_lexer *l, sx_dtype *out_dtype)
{
    char name[16] = "";
    if (l->kind == SX_TOKEN_WORD && l->size < sizeof(name)) {
        memcpy(name, l->begin, l->size);
    }
    if (!sx_dtype_parse(name, out_dtype)) {
        return sx_lexer_error(l, "a dtype");
    }
    sx_lexer_next(l);
    return SX_OK;
}

/* ---- Integers ---- */

static bool int_is_zero(const void *f)
{
    return *(const int64_t *)f == 0;
}
static bool int_equal(const void *a, const void *b)
{
    return *(const int64_t *)a == *(const int64_t *)b;
}
static uint64_t int_hash(const void *f)
{
    return sx_hash64(f, sizeof(int64_t));
}
static bool int_copy(sx_arena *arena, void *dst, const void *src)
{
    (void)arena;
    memcpy(dst, src, sizeof(int64_t));
    return true;
}
static void int_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    sx_buf_printf(out, "%" PRId64, *(const int64_t *)f);
}
static sx_status int_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)def, (void)arena;
    return sx_lexer_take_int(l, f);
}

/* ---- Floats: as integers but for their text; −0.0 is thus not the default ---- */

static void float_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    sx_buf_printf(out, "%.17g", *(const double *)f);
}
static sx_status float_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)def, (void)arena;
    return sx_lexer_take_float(l, f);
}

/* ---- Booleans ---- */

static bool bool_is_zero(const void *f)
{
    return !*(const bool *)f;
}
static bool bool_equal(const void *a, const void *b)
{
    return *(const bool *)a == *(const bool *)b;
}
static uint64_t bool_hash(const void *f)
{
    return *(const bool *)f;
}
static bool bool_copy(sx_arena *arena, void *dst, const void *src)
{
    (void)arena;
    *(bool *)dst = *(const bool *)src;
    return true;
}
static void bool_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    sx_buf_puts(out, *(const bool *)f ? "true" : "false");
}
static sx_status bool_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)def, (void)arena;
    if (!sx_lexer_is_word(l, "true") && !sx_lexer_is_word(l, "false")) {
        return sx_lexer_error(l, "true or false");
    }
    *(bool *)f = sx_lexer_is_word(l, "true");
    sx_lexer_next(l);
    return SX_OK;
}

/* ---- Enumerations and dtypes: 32-bit, printed by name ---- */

static bool enum_is_zero(const void *f)
{
    return *(const int32_t *)f == 0;
}
static bool enum_equal(const void *a, const void *b)
{
    return *(const int32_t *)a == *(const int32_t *)b;
}
static uint64_t enum_hash(const void *f)
{
    return sx_hash64(f, sizeof(int32_t));
}
static bool enum_copy(sx_arena *arena, void *dst, const void *src)
{
    (void)arena;
    memcpy(dst, src, sizeof(int32_t));
    return true;
}
static void enum_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    sx_buf_puts(out, def->names[*(const int32_t *)f]);
}
static sx_status enum_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)arena;
    for (int32_t i = 0; def->names[i] != NULL; i++) {
        if (sx_lexer_is_word(l, def->names[i])) {
            *(int32_t *)f = i;
            sx_lexer_next(l);
            return SX_OK;
        }
    }
    return sx_lexer_error(l, def->name);
}
static void dtype_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    sx_buf_puts(out, sx_dtype_name(*(const sx_dtype *)f));
}
static sx_status dtype_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)def, (void)arena;
    return dtype_token_parse(l, f);
}

/* ---- Short lists of integers ---- */

static bool ints_is_zero(const void *f)
{
    return ((const sx_ints *)f)->n == 0;
}
static bool ints_equal(const void *a, const void *b)
{
    const sx_ints *x = a, *y = b;
    return x->n == y->n && memcmp(x->v, y->v, (size_t)x->n * sizeof(int64_t)) == 0;
}
static uint64_t ints_hash(const void *f)
{
    const sx_ints *x = f;
    return sx_hash64(x->v, (size_t)x->n * sizeof(int64_t)) + (uint64_t)x->n;
}
static bool ints_copy(sx_arena *arena, void *dst, const void *src)
{
    (void)arena;
    *(sx_ints *)dst = *(const sx_ints *)src;
    return true;
}
static void ints_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    const sx_ints *x = f;
    sx_buf_putc(out, '[');
    for (int i = 0; i < x->n; i++) {
        sx_buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", x->v[i]);
    }
    sx_buf_putc(out, ']');
}
static sx_status ints_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)def, (void)arena;
    sx_ints x = {0};
    SX_TRY(sx_lexer_expect(l, '['));
    while (!sx_lexer_is_punct(l, ']')) {
        if (x.n == SX_MAX_RANK) {
            return sx_lexer_error(l, "at most 8 integers");
        }
        if (x.n > 0) {
            SX_TRY(sx_lexer_expect(l, ','));
        }
        SX_TRY(sx_lexer_take_int(l, &x.v[x.n++]));
    }
    *(sx_ints *)f = x;
    return sx_lexer_expect(l, ']');
}

/* ---- Strings ---- */

static const char *string_of(const void *f)
{
    const char *s = *(const char *const *)f;
    return s != NULL ? s : "";
}
static bool string_is_zero(const void *f)
{
    return string_of(f)[0] == '\0';
}
static bool string_equal(const void *a, const void *b)
{
    return strcmp(string_of(a), string_of(b)) == 0;
}
static uint64_t string_hash(const void *f)
{
    return sx_hash64(string_of(f), strlen(string_of(f)));
}
static bool string_copy(sx_arena *arena, void *dst, const void *src)
{
    const char *copy = sx_arena_strdup(arena, string_of(src));
    memcpy(dst, &copy, sizeof(copy));
    return copy != NULL;
}
static void string_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    sx_quoted_print(string_of(f), out);
}
static sx_status string_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)arena;
    return sx_lexer_take_string(l, def->name, (const char **)f);
}

/* ---- Constant tensors: tensor(float32[2] 0000803f00000040), bytes in hexadecimal ---- */

static bool tensor_is_zero(const void *f)
{
    return ((const sx_tensor *)f)->data == NULL;
}
static bool tensor_equal(const void *a, const void *b)
{
    const sx_tensor *x = a, *y = b;
    if (x->data == NULL || y->data == NULL) {
        return x->data == y->data;
    }
    if (!sx_type_equal(&x->type, &y->type)) {
        return false;
    }
    if (x->type.dtype != SX_STRING) {
        return memcmp(x->data, y->data, (size_t)sx_host_bytes(&x->type)) == 0;
    }
    const sx_bytes *s = x->data, *t = y->data;
    for (int64_t i = 0, n = sx_type_elems(&x->type); i < n; i++) {
        if (s[i].size != t[i].size ||
            (s[i].size > 0 && memcmp(s[i].data, t[i].data, s[i].size) != 0)) {
            return false;
        }
    }
    return true;
}
static uint64_t tensor_hash(const void *f)
{
    const sx_tensor *x = f;
    if (x->data == NULL || x->type.dtype != SX_STRING) {
        return x->data == NULL ? 0 : sx_hash64(x->data, (size_t)sx_host_bytes(&x->type));
    }
    uint64_t hash = 1;
    const sx_bytes *s = x->data;
    for (int64_t i = 0, n = sx_type_elems(&x->type); i < n; i++) {
        hash = hash * 0x9E3779B97F4A7C15u + sx_hash64(s[i].data, s[i].size);
    }
    return hash;
}
static bool tensor_copy(sx_arena *arena, void *dst, const void *src)
{
    sx_tensor t = *(const sx_tensor *)src;
    if (t.data != NULL) {
        t.data = sx_arena_memdup(arena, t.data, (size_t)sx_host_bytes(&t.type));
        if (t.data == NULL) {
            return false;
        }
        sx_bytes *s = t.data;
        for (int64_t i = 0; t.type.dtype == SX_STRING && i < sx_type_elems(&t.type); i++) {
            s[i].data = sx_arena_memdup(arena, s[i].data, s[i].size);
            if (s[i].data == NULL) {
                return false;
            }
        }
    }
    *(sx_tensor *)dst = t;
    return true;
}
static void hex_print(const void *data, size_t size, sx_buf *out)
{
    sx_buf_puts(out, " \"");
    char *hex = sx_buf_extend(out, 2 * size);
    if (hex != NULL) {
        sx_hex_put(hex, data, size);
    }
    sx_buf_putc(out, '"');
}
static void tensor_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def;
    const sx_tensor *t = f;
    sx_buf_puts(out, "tensor(");
    sx_type_print(&t->type, out);
    if (t->type.dtype == SX_STRING) {
        const sx_bytes *s = t->data;
        for (int64_t i = 0, n = sx_type_elems(&t->type); i < n; i++) {
            hex_print(s[i].data, s[i].size, out);
        }
    } else {
        hex_print(t->data, (size_t)sx_host_bytes(&t->type), out);
    }
    sx_buf_putc(out, ')');
}
static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
/* Parses the current token as `bytes` bytes in hexadecimal. */
static sx_status hex_parse(sx_lexer *l, size_t bytes, unsigned char *out)
{
    if (l->kind != SX_TOKEN_STRING || l->size / 2 != bytes || l->size % 2 != 0) {
        return sx_lexer_error(l, "the bytes of a static tensor in hexadecimal, in quotes");
    }
    for (size_t i = 0; i < bytes; i++) {
        int high = nibble(l->begin[2 * i]), low = nibble(l->begin[2 * i + 1]);
        if (high < 0 || low < 0) {
            return sx_lexer_error(l, "hexadecimal digits");
        }
        out[i] = (unsigned char)(high * 16 + low);
    }
    sx_lexer_next(l);
    return SX_OK;
}
/* Each element's bytes in quotes. Each element has at least three characters, so the text bounds
 * the array. */
static sx_status strings_parse(sx_lexer *l, sx_arena *arena, sx_tensor *t)
{
    const int64_t n = sx_type_elems(&t->type);
    if (n < 0 || n > l->end - l->begin) {
        return sx_lexer_error(l, "as many strings as the type has elements");
    }
    sx_bytes *s = sx_arena_array(arena, n + 1, sx_bytes);
    for (int64_t i = 0; s != NULL && i < n; i++) {
        const size_t bytes = l->kind == SX_TOKEN_STRING ? l->size / 2 : 0;
        unsigned char *data = sx_arena_alloc(arena, bytes + 1, 1);
        if (data == NULL) {
            s = NULL;
            break;
        }
        SX_TRY(hex_parse(l, bytes, data));
        s[i] = (sx_bytes){data, bytes};
    }
    t->data = s;
    return s != NULL ? SX_OK : sx_no_memory("for a constant of %lld strings", (long long)n);
}
static sx_status tensor_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    sx_tensor t = {0};
    if (!sx_lexer_accept_word(l, "tensor")) {
        return sx_lexer_error(l, def->name);
    }
    SX_TRY(sx_lexer_expect(l, '('));
    SX_TRY(sx_type_parse(l, &t.type));
    if (t.type.dtype == SX_STRING) {
        SX_TRY(strings_parse(l, arena, &t));
        *(sx_tensor *)f = t;
        return sx_lexer_expect(l, ')');
    }
    const int64_t bytes = sx_type_bytes(&t.type);
    if (bytes < 0) {
        return sx_lexer_error(l, "the bytes of a static tensor in hexadecimal, in quotes");
    }
    /* the text contains the bytes, so it bounds them */
    t.data = sx_arena_alloc(arena, l->size / 2 + 1, 1);
    if (t.data == NULL) {
        return sx_no_memory("for a constant of %zu bytes", l->size / 2);
    }
    SX_TRY(hex_parse(l, (size_t)bytes, t.data));
    *(sx_tensor *)f = t;
    return sx_lexer_expect(l, ')');
}

/* ---- Regions: printed and parsed as lines of their own (print.c, parse.c) ---- */

static const sx_graph *body_of(const void *f)
{
    return *(const sx_graph *const *)f;
}
static bool body_is_zero(const void *f)
{
    (void)f;
    return true;
}
static bool body_equal(const void *a, const void *b)
{
    const sx_graph *x = body_of(a), *y = body_of(b);
    return x == y || (x != NULL && y != NULL && sx_graph_equal(x, y));
}
static uint64_t body_hash(const void *f)
{
    return body_of(f) != NULL ? sx_graph_hash(body_of(f)) : 0;
}
static bool body_copy(sx_arena *arena, void *dst, const void *src)
{
    const sx_graph *copy = body_of(src) != NULL ? sx_graph_copy(arena, body_of(src)) : NULL;
    memcpy(dst, &copy, sizeof(copy));
    return copy != NULL || body_of(src) == NULL;
}
static void body_print(const sx_attr_def *def, const void *f, sx_buf *out)
{
    (void)def, (void)f, (void)out;
}
static sx_status body_parse(const sx_attr_def *def, sx_lexer *l, sx_arena *arena, void *f)
{
    (void)arena, (void)f;
    return sx_error(SX_INVALID_ARGUMENT, "line %d: region %s must be on separate lines", l->line,
                    def->name);
}

/* ---- The rows ---- */

static const kind_row kinds[] = {
    [SX_ATTR_INT] = {int_is_zero, int_equal, int_hash, int_copy, int_print, int_parse},
    [SX_ATTR_FLOAT] = {int_is_zero, int_equal, int_hash, int_copy, float_print, float_parse},
    [SX_ATTR_BOOL] = {bool_is_zero, bool_equal, bool_hash, bool_copy, bool_print, bool_parse},
    [SX_ATTR_ENUM] = {enum_is_zero, enum_equal, enum_hash, enum_copy, enum_print, enum_parse},
    [SX_ATTR_DTYPE] = {enum_is_zero, enum_equal, enum_hash, enum_copy, dtype_print, dtype_parse},
    [SX_ATTR_INTS] = {ints_is_zero, ints_equal, ints_hash, ints_copy, ints_print, ints_parse},
    [SX_ATTR_SHAPE] = {ints_is_zero, ints_equal, ints_hash, ints_copy, ints_print, ints_parse},
    [SX_ATTR_STRING] = {string_is_zero, string_equal, string_hash, string_copy, string_print,
                        string_parse},
    [SX_ATTR_TENSOR] = {tensor_is_zero, tensor_equal, tensor_hash, tensor_copy, tensor_print,
                        tensor_parse},
    [SX_ATTR_BODY] = {body_is_zero, body_equal, body_hash, body_copy, body_print, body_parse},
};

static const void *field_of(const sx_attr_def *def, const void *attrs)
{
    return (const char *)attrs + def->offset;
}

void *sx_attrs_copy(sx_arena *arena, const sx_op_def *op, const void *attrs)
{
    char *copy = sx_arena_alloc(arena, 1, op->attrs_bytes > 0 ? op->attrs_bytes : 1);
    for (int i = 0; copy != NULL && attrs != NULL && i < op->n_attrs; i++) {
        const sx_attr_def *def = &op->attrs[i];
        if (!kinds[def->kind].copy(arena, copy + def->offset, field_of(def, attrs))) {
            return NULL;
        }
    }
    return copy;
}

bool sx_attrs_equal(const sx_op_def *op, const void *a, const void *b)
{
    for (int i = 0; i < op->n_attrs; i++) {
        const sx_attr_def *def = &op->attrs[i];
        if (!kinds[def->kind].equal(field_of(def, a), field_of(def, b))) {
            return false;
        }
    }
    return true;
}

uint64_t sx_attrs_hash(const sx_op_def *op, const void *attrs)
{
    uint64_t hash = sx_hash64(op->name, strlen(op->name));
    for (int i = 0; i < op->n_attrs; i++) {
        const sx_attr_def *def = &op->attrs[i];
        hash = hash * 0x9E3779B97F4A7C15u + kinds[def->kind].hash(field_of(def, attrs));
    }
    return hash;
}

void sx_attrs_print(const sx_op_def *op, const void *attrs, const sx_attr_operand *operands,
                    int n_operands, sx_buf *out)
{
    const char *before = " {";
    for (int i = 0, k = 0; i < op->n_attrs; i++) {
        const sx_attr_def *def = &op->attrs[i];
        const void *field = field_of(def, attrs);
        if (k < n_operands && operands[k].row == i) {
            sx_buf_printf(out, "%s%s=%%%u", before, def->name, operands[k++].value.id);
            before = ", ";
        } else if (!kinds[def->kind].is_zero(field)) {
            sx_buf_printf(out, "%s%s=", before, def->name);
            kinds[def->kind].print(def, field, out);
            before = ", ";
        }
    }
    if (before[0] == ',') {
        sx_buf_putc(out, '}');
    }
}

static int find_row(const sx_op_def *op, const char *name)
{
    for (int i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Whether an operand may give the attribute: numbers and lists of numbers. */
static bool may_be_operand(sx_attr_kind kind)
{
    return kind == SX_ATTR_INT || kind == SX_ATTR_FLOAT || kind == SX_ATTR_BOOL ||
           kind == SX_ATTR_INTS || kind == SX_ATTR_SHAPE;
}

sx_status sx_attrs_parse(const sx_op_def *op, sx_lexer *l, sx_arena *arena, void *attrs,
                         sx_attr_operand *operands, int *out_n)
{
    *out_n = 0;
    if (!sx_lexer_accept(l, '{')) {
        return SX_OK;
    }
    do {
        const char *name;
        SX_TRY(sx_lexer_take_word(l, "an attribute", &name));
        const int row = find_row(op, name);
        if (row < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "line %d: operator %s has no attribute \"%s\"",
                            l->line, op->name, name);
        }
        const sx_attr_def *def = &op->attrs[row];
        SX_TRY(sx_lexer_expect(l, '='));
        if (l->kind != SX_TOKEN_VALUE) {
            SX_TRY(kinds[def->kind].parse(def, l, arena, (char *)attrs + def->offset));
            continue;
        }
        if (operands == NULL || !may_be_operand(def->kind) ||
            (*out_n > 0 && operands[*out_n - 1].row >= row)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "line %d: attribute %s cannot be an operand here: only numbers and "
                            "lists of them can, in functions, in the order of the operator's "
                            "attributes",
                            l->line, name);
        }
        operands[*out_n].row = row;
        SX_TRY(sx_lexer_take_value(l, &operands[*out_n].value.id));
        ++*out_n;
    } while (sx_lexer_accept(l, ','));
    return sx_lexer_expect(l, '}');
}

/* ---- Types: float32[N,28,2*N,?] ---- */

void sx_type_print(const sx_type *type, sx_buf *out)
{
    char text[SX_TYPE_TEXT];
    sx_buf_puts(out, sx_type_format(type, text, sizeof(text)));
}

static sx_status dim_parse(sx_lexer *l, int64_t *out_dim)
{
    if (sx_lexer_accept_word(l, "N")) {
        *out_dim = SX_BATCH;
        return SX_OK;
    }
    bool unknown = sx_lexer_accept(l, '?');
    if (unknown && l->kind != SX_TOKEN_NUMBER) {
        *out_dim = SX_UNKNOWN_DIM;
        return SX_OK;
    }
    int64_t number;
    SX_TRY(sx_lexer_take_int(l, &number));
    if (unknown) {
        if (number < 0 || number >= SX_MAX_SYMBOLS) {
            return sx_lexer_error(l, "the number of a symbol, from 0 to 65535");
        }
        *out_dim = SX_UNKNOWN_DIM + 1 + number;
        return SX_OK;
    }
    if (sx_lexer_accept(l, '*')) {
        if (number <= 0 || !sx_dim_is_batch(-number) || !sx_lexer_accept_word(l, "N")) {
            return sx_lexer_error(l, "a multiple of the batch: 2*N");
        }
        *out_dim = -number;
        return SX_OK;
    }
    *out_dim = number;
    return number >= 0 ? SX_OK : sx_lexer_error(l, "a non-negative dimension");
}

sx_status sx_type_parse(sx_lexer *l, sx_type *out_type)
{
    sx_type type = {0};
    SX_TRY(dtype_token_parse(l, &type.dtype));
    SX_TRY(sx_lexer_expect(l, '['));
    if (sx_lexer_accept(l, '*')) {
        type.rank = SX_UNKNOWN_RANK;
        *out_type = type;
        return sx_lexer_expect(l, ']');
    }
    while (!sx_lexer_is_punct(l, ']')) {
        if (type.rank == SX_MAX_RANK) {
            return sx_lexer_error(l, "at most 8 dimensions");
        }
        if (type.rank > 0) {
            SX_TRY(sx_lexer_expect(l, ','));
        }
        SX_TRY(dim_parse(l, &type.dims[type.rank++]));
    }
    *out_type = type;
    return sx_lexer_expect(l, ']');
}
