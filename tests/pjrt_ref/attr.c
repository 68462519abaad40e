/* Attributes: see attr.h. */
#include "pjrt_ref/attr.h"

#include <string.h>

#include "base/checked.h"

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a program");
}

static sx_status take_value(ref_scan *s, int depth, ref_attr *a);

/* ---- Numbers ---- */

static sx_status add_int(ref_scan *s, ref_attr *a, int *room, int64_t v)
{
    if (a->n_ints == *room) {
        int more = *room == 0 ? 4 : 4 * *room;
        int64_t *ints = more > REF_MAX_OPERANDS ? NULL : sx_arena_array(s->arena, more, int64_t);
        if (ints == NULL) {
            return ref_scan_error(s, "fewer numbers in a list");
        }
        memcpy(ints, a->ints == NULL ? &v : a->ints, (size_t)a->n_ints * sizeof(*ints));
        a->ints = ints;
        *room = more;
    }
    a->ints[a->n_ints++] = v;
    return SX_OK;
}

static bool accept_bool(ref_scan *s, int64_t *out)
{
    *out = ref_accept(s, "true");
    return *out != 0 || ref_accept(s, "false");
}

/* array<i64: 1, 2>, array<i1: false>, array<i64> */
static sx_status take_array(ref_scan *s, ref_attr *a)
{
    int room = 0;
    const char *type;
    a->kind = REF_INTS;
    SX_TRY(ref_take_name(s, &type));
    if (ref_accept(s, ":")) {
        do {
            int64_t v = 0;
            if (!accept_bool(s, &v)) {
                SX_TRY(ref_take_int(s, &v));
            }
            SX_TRY(add_int(s, a, &room, v));
        } while (ref_accept(s, ","));
    }
    return ref_require(s, ">");
}

/* 3 : i64; the type is not looked at */
static sx_status take_number(ref_scan *s, ref_attr *a)
{
    int room = 0;
    int64_t v = 0;
    const char *type;
    a->kind = REF_INTS;
    if (!accept_bool(s, &v)) {
        SX_TRY(ref_take_int(s, &v));
        if (ref_accept(s, ":")) {
            SX_TRY(ref_take_name(s, &type));
        }
    }
    return add_int(s, a, &room, v);
}

/* [1, 2] or [anything, …]: numbers are kept if there is nothing else. */
static sx_status take_list(ref_scan *s, int depth, ref_attr *a)
{
    int room = 0;
    a->kind = REF_INTS;
    while (!ref_next_is(s, ']')) {
        ref_attr item = {.name = ""};
        SX_TRY(take_value(s, depth + 1, &item));
        if (item.kind == REF_INTS && item.n_ints == 1) {
            SX_TRY(add_int(s, a, &room, item.ints[0]));
        } else {
            a->kind = REF_LIST;
        }
        if (!ref_accept(s, ",")) {
            break;
        }
    }
    return ref_require(s, "]");
}

/* ---- dense<…> : tensor<…> ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "0x…": the elements' bytes. */
static sx_status take_blob(ref_scan *s, ref_attr *a)
{
    const char *text;
    size_t size, bytes = (size_t)sx_type_bytes(&a->type);
    SX_TRY(ref_take_string(s, &text, &size));
    if (size != 2 + 2 * bytes || memcmp(text, "0x", 2) != 0 || a->type.dtype == SX_BOOL) {
        return ref_scan_error(s, "a string of as many bytes as the tensor has before this");
    }
    uint8_t *data = sx_arena_alloc(s->arena, bytes + 1, 1);
    if (data == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < bytes; i++) {
        int high = digit_of(text[2 + 2 * i]), low = digit_of(text[3 + 2 * i]);
        if (high < 0 || low < 0) {
            return ref_scan_error(s, "hexadecimal digits before this");
        }
        data[i] = (uint8_t)(high << 4 | low);
    }
    a->data = data;
    return SX_OK;
}

/* [[1, 2], [3, 4]], from dimension `axis` on; *done elements are there. */
static sx_status take_nested(ref_scan *s, const ref_attr *a, int axis, char *data, int64_t *done)
{
    size_t size = sx_dtype_bytes(a->type.dtype);
    if (axis == a->type.rank) {
        return ref_take_element(s, a->type.dtype, data + (size_t)(*done)++ * size);
    }
    SX_TRY(ref_require(s, "["));
    for (int64_t i = 0; i < a->type.dims[axis]; i++) {
        if (i > 0) {
            SX_TRY(ref_require(s, ","));
        }
        SX_TRY(take_nested(s, a, axis + 1, data, done));
    }
    return ref_require(s, "]");
}

static sx_status take_elements(ref_scan *s, ref_attr *a)
{
    int64_t done = 0, n = sx_type_elems(&a->type);
    a->is_splat = !ref_next_is(s, '[');
    if (!a->is_splat && n > REF_MAX_OPERANDS) {
        return ref_scan_error(s, "a list of few numbers");
    }
    char *data = sx_arena_alloc(s->arena, a->is_splat ? 1 : (size_t)n + 1, 8);
    if (data == NULL) {
        return no_memory();
    }
    a->data = data;
    return a->is_splat ? ref_take_element(s, a->type.dtype, data)
                       : take_nested(s, a, 0, data, &done);
}

/* Lists of i64 serve as numbers too. */
static sx_status numbers_of_dense(ref_scan *s, ref_attr *a)
{
    int64_t n = sx_type_elems(&a->type);
    if (a->type.dtype != SX_I64 || n == 0 || n > REF_MAX_OPERANDS || a->data == NULL) {
        return SX_OK;
    }
    a->ints = sx_arena_array(s->arena, n, int64_t);
    if (a->ints == NULL) {
        return no_memory();
    }
    a->n_ints = (int)n;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&a->ints[i], (const char *)a->data + (a->is_splat ? 0 : 8 * i), 8);
    }
    return SX_OK;
}

static sx_status take_contents(ref_scan *s, ref_attr *a)
{
    if (ref_at_end(s)) {
        return sx_type_elems(&a->type) == 0 ? SX_OK : ref_scan_error(s, "elements");
    }
    SX_TRY(ref_next_is(s, '"') ? take_blob(s, a) : take_elements(s, a));
    return ref_at_end(s) ? numbers_of_dense(s, a) : ref_scan_error(s, "'>'");
}

/* The type comes after the elements: they are found first, and read then. */
static sx_status take_dense(ref_scan *s, ref_attr *a)
{
    ref_scan contents = *s;
    while (s->at < s->end && *s->at != '>' && *s->at != '\n') {
        s->at++;
    }
    contents.end = s->at;
    a->kind = REF_DENSE;
    SX_TRY(ref_require(s, ">"));
    SX_TRY(ref_require(s, ":"));
    SX_TRY(ref_take_type(s, &a->type));
    return take_contents(&contents, a);
}

/* ---- #stablehlo… ---- */

/* #stablehlo<kind WORD> */
static sx_status take_word(ref_scan *s, ref_attr *a)
{
    const char *kind;
    a->kind = REF_WORD;
    SX_TRY(ref_take_name(s, &kind));
    SX_TRY(ref_take_name(s, &a->word));
    return ref_require(s, ">");
}

/* #stablehlo.conv<raw name = value, …> */
static sx_status take_record(ref_scan *s, int depth, ref_attr *a)
{
    const char *what;
    SX_TRY(ref_take_name(s, &what));
    SX_TRY(ref_require(s, "<"));
    ref_accept(s, "raw");
    a->kind = REF_RECORD;
    return ref_take_attrs(s, depth + 1, ">", &a->fields, &a->n_fields);
}

static sx_status take_value(ref_scan *s, int depth, ref_attr *a)
{
    if (depth > REF_MAX_DEPTH) {
        return ref_scan_error(s, "less depth");
    }
    if (ref_accept(s, "unit")) {
        a->kind = REF_UNIT;
        return SX_OK;
    }
    return ref_accept(s, "array<")        ? take_array(s, a)
           : ref_accept(s, "dense<")      ? take_dense(s, a)
           : ref_accept(s, "#stablehlo<") ? take_word(s, a)
           : ref_accept(s, "#stablehlo.") ? take_record(s, depth, a)
           : ref_accept(s, "[")           ? take_list(s, depth, a)
                                          : take_number(s, a);
}

sx_status ref_take_attrs(ref_scan *s, int depth, const char *close, ref_attr **out, int *out_n)
{
    ref_attr attrs[REF_MAX_ATTRS];
    int n = 0;
    while (!ref_accept(s, close)) {
        if (n == REF_MAX_ATTRS) {
            return ref_scan_error(s, "fewer attributes");
        }
        if (n > 0) {
            SX_TRY(ref_require(s, ","));
        }
        attrs[n] = (ref_attr){.kind = REF_UNIT};
        SX_TRY(ref_take_name(s, &attrs[n].name));
        if (ref_accept(s, "=")) {
            SX_TRY(take_value(s, depth, &attrs[n]), "%s", attrs[n].name);
        }
        n++;
    }
    *out = sx_arena_memdup(s->arena, attrs, (size_t)n * sizeof(attrs[0]) + (n == 0));
    *out_n = n;
    return *out == NULL ? no_memory() : SX_OK;
}
