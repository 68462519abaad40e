/* See scan.h. */
#include "pjrt_ref/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "pjrt_ref/array.h"
#include "pjrt_ref/program.h"

enum { MAX_NAME = 256, MAX_NUMBER = 64, SHOWN = 24 };

static void skip(ref_scan *s)
{
    while (s->at < s->end) {
        if (*s->at == '\n') {
            s->line++;
        } else if (*s->at == '/' && s->at + 1 < s->end && s->at[1] == '/') {
            while (s->at + 1 < s->end && s->at[1] != '\n') {
                s->at++;
            }
        } else if (*s->at != ' ' && *s->at != '\t' && *s->at != '\r') {
            return;
        }
        s->at++;
    }
}

sx_status ref_scan_error(const ref_scan *s, const char *expected)
{
    char shown[SHOWN + 1];
    size_t n = 0;
    for (const char *c = s->at; c < s->end && n < SHOWN && *c != '\n'; c++) {
        shown[n++] = (char)(*c >= ' ' && *c < 0x7f ? *c : '?');
    }
    shown[n] = '\0';
    return sx_error(SX_INVALID_ARGUMENT, "line %d: expected %s, got '%s'", s->line, expected,
                    shown);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool ref_accept(ref_scan *s, const char *text)
{
    size_t n = strlen(text);
    skip(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0) {
        return false;
    }
    if (is_word(text[n - 1]) && s->at + n < s->end && is_word(s->at[n])) {
        return false;
    }
    s->at += n;
    return true;
}

bool ref_next_is(ref_scan *s, char c)
{
    skip(s);
    return s->at < s->end && *s->at == c;
}

bool ref_at_end(ref_scan *s)
{
    skip(s);
    return s->at == s->end;
}

sx_status ref_require(ref_scan *s, const char *text)
{
    char expected[MAX_NAME];
    if (ref_accept(s, text)) {
        return SX_OK;
    }
    size_t n = SX_MIN(strlen(text), sizeof(expected) - 3);
    expected[0] = '\'';
    memcpy(expected + 1, text, n);
    memcpy(expected + 1 + n, "'", 2);
    return ref_scan_error(s, expected);
}

sx_status ref_take_name(ref_scan *s, const char **out)
{
    skip(s);
    const char *c = s->at;
    while (c < s->end && (is_word(*c) || (c > s->at && (*c == '.' || *c == '$' || *c == '-')))) {
        c++;
    }
    size_t n = (size_t)(c - s->at);
    if (n == 0 || n > MAX_NAME || (*s->at >= '0' && *s->at <= '9')) {
        return ref_scan_error(s, "a name");
    }
    *out = sx_arena_strndup(s->arena, s->at, n);
    s->at = c;
    return *out == NULL ? sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program") : SX_OK;
}

sx_status ref_take_string(ref_scan *s, const char **out, size_t *out_size)
{
    SX_TRY(ref_require(s, "\""));
    const char *c = s->at;
    while (c < s->end && *c != '"' && *c != '\n') {
        c += *c == '\\' && c + 1 < s->end ? 2 : 1;
    }
    if (c >= s->end || *c != '"') {
        return ref_scan_error(s, "a string that ends");
    }
    *out = s->at;
    *out_size = (size_t)(c - s->at);
    s->at = c + 1;
    return SX_OK;
}

/* The characters of a number, NUL-terminated for strtod and the like. */
static sx_status take_number(ref_scan *s, char text[MAX_NUMBER])
{
    skip(s);
    size_t n = 0;
    while (s->at + n < s->end && n < MAX_NUMBER - 1 &&
           (is_word(s->at[n]) || s->at[n] == '.' || s->at[n] == '+' || s->at[n] == '-')) {
        text[n] = s->at[n];
        n++;
    }
    text[n] = '\0';
    if (n == 0 || n == MAX_NUMBER - 1) {
        return ref_scan_error(s, "a number");
    }
    s->at += n;
    return SX_OK;
}

/* Decimal, or 0x…; the text of a number that may be unsigned 64-bit. */
static bool parse_integer(const char *text, bool is_signed, uint64_t *out)
{
    char *end = NULL;
    bool hex = text[0] == '0' && text[1] == 'x';
    errno = 0;
    *out =
        is_signed && !hex ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, hex ? 16 : 10);
    return errno == 0 && end != text && *end == '\0' && (is_signed || text[0] != '-');
}

sx_status ref_take_int(ref_scan *s, int64_t *out)
{
    char text[MAX_NUMBER];
    uint64_t v = 0;
    ref_scan before = *s;
    SX_TRY(take_number(s, text));
    if (!parse_integer(text, true, &v)) {
        *s = before;
        return ref_scan_error(s, "an integer");
    }
    *out = (int64_t)v;
    return SX_OK;
}

sx_status ref_take_value(ref_scan *s, int limit, int *out)
{
    int64_t v = 0;
    ref_scan before = *s;
    SX_TRY(ref_require(s, "%"));
    SX_TRY(ref_take_int(s, &v));
    if (v < 0 || v >= limit) {
        *s = before;
        return ref_scan_error(s, "a value's number within bounds");
    }
    *out = (int)v;
    return SX_OK;
}

/* ---- Types ---- */

static const struct {
    const char *text;
    sx_dtype dtype;
} dtypes[] = {{"f32", SX_F32}, {"f64", SX_F64},  {"bf16", SX_BF16}, {"f16", SX_F16},
              {"i8", SX_I8},   {"i16", SX_I16},  {"i32", SX_I32},   {"i64", SX_I64},
              {"ui8", SX_U8},  {"ui16", SX_U16}, {"ui32", SX_U32},  {"ui64", SX_U64},
              {"i1", SX_BOOL}};

const char *ref_dtype_text(sx_dtype dtype)
{
    for (size_t i = 0; i < SX_COUNT(dtypes); i++) {
        if (dtypes[i].dtype == dtype) {
            return dtypes[i].text;
        }
    }
    return NULL;
}

/* "2x": a dimension. */
static bool take_dim(ref_scan *s, int64_t *out)
{
    const char *c = s->at;
    int64_t v = 0;
    while (c < s->end && *c >= '0' && *c <= '9' && v <= REF_MAX_ELEMS) {
        v = 10 * v + (*c++ - '0');
    }
    if (c == s->at || c == s->end || *c != 'x' || v > REF_MAX_ELEMS) {
        return false;
    }
    s->at = c + 1;
    *out = v;
    return true;
}

/* Dimensions of 0 count as 1, so that every product of some of them is bounded too. */
static bool is_bounded(const sx_type *type)
{
    int64_t product = 1;
    for (int i = 0; i < type->rank; i++) {
        if (!sx_mul_i64(product, SX_MAX(type->dims[i], 1), &product) || product > REF_MAX_ELEMS) {
            return false;
        }
    }
    return true;
}

sx_status ref_take_type(ref_scan *s, sx_type *out)
{
    sx_type type = {.dtype = SX_DTYPE_NONE};
    int64_t dim;
    SX_TRY(ref_require(s, "tensor<"));
    while (take_dim(s, &dim)) {
        if (type.rank == SX_MAX_RANK) {
            return ref_scan_error(s, "at most 8 dimensions");
        }
        type.dims[type.rank++] = dim;
    }
    for (size_t i = 0; i < SX_COUNT(dtypes) && type.dtype == SX_DTYPE_NONE; i++) {
        if (ref_accept(s, dtypes[i].text)) {
            type.dtype = dtypes[i].dtype;
        }
    }
    if (type.dtype == SX_DTYPE_NONE) {
        return ref_scan_error(s, "an element type");
    }
    SX_TRY(ref_require(s, ">"));
    if (!is_bounded(&type)) {
        return ref_scan_error(s, "a type of at most 2^40 elements before this");
    }
    *out = type;
    return SX_OK;
}

/* ---- Elements ---- */

/* The little-endian bytes of a number; this machine's. */
static void put_bits(sx_dtype dtype, uint64_t bits, void *bytes)
{
    memcpy(bytes, &bits, sx_dtype_bytes(dtype));
}

static bool take_bool(ref_scan *s, void *bytes)
{
    bool is_true = ref_accept(s, "true");
    if (!is_true && !ref_accept(s, "false")) {
        return false;
    }
    put_bits(SX_BOOL, is_true, bytes);
    return true;
}

sx_status ref_take_element(ref_scan *s, sx_dtype dtype, void *bytes)
{
    char text[MAX_NUMBER], *end = NULL;
    uint64_t bits = 0;
    ref_scan before = *s;
    if (dtype == SX_BOOL && take_bool(s, bytes)) {
        return SX_OK;
    }
    SX_TRY(take_number(s, text));
    bool is_float = sx_dtype_is_float(dtype), hex = strncmp(text, "0x", 2) == 0;
    int width = ref_bits_of(dtype);
    ref_lane v = {.f = is_float && !hex ? strtod(text, &end) : 0};
    if (is_float && !hex && *end == '\0' && strpbrk(text, ".") != NULL) {
        ref_store(dtype, bytes, 0, 1, &v);
        return SX_OK;
    }
    if ((is_float && !hex) || dtype == SX_BOOL ||
        !parse_integer(text, ref_class_of(dtype) == REF_SIGNED, &bits)) {
        *s = before;
        return ref_scan_error(s, "an element (floats have a point)");
    }
    bool fits = ref_class_of(dtype) == REF_SIGNED && !hex
                    ? (int64_t)(bits << (64 - width)) >> (64 - width) == (int64_t)bits
                    : width == 64 || bits >> width == 0;
    put_bits(dtype, bits, bytes);
    return fits ? SX_OK : ref_scan_error(s, "an element within its type's range before this");
}
