#include "python_literal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "graph/host.h"
#include "proto/example.h"

enum { MAX_DEPTH = 32, MAX_ITEMS = 16 << 20 };

struct parser {
    const char *text, *at;
    sx_arena *arena;
    int depth;
    int64_t items; /* in all */
};

static sx_status parse_value(struct parser *p, sx_literal *out);

static sx_status expected(const struct parser *p, const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": expected %s at character %zu, got %s%.20s%s",
                    p->text, what, (size_t)(p->at - p->text) + 1, *p->at != '\0' ? "\"" : "the end",
                    p->at, *p->at != '\0' ? "\"" : "");
}

static bool take(struct parser *p, char c)
{
    p->at += strspn(p->at, " \t\n");
    const bool found = *p->at == c;
    p->at += found;
    return found;
}

static bool take_word(struct parser *p, const char *word)
{
    const size_t n = strlen(word);
    p->at += strspn(p->at, " \t\n");
    const bool found =
        strncmp(p->at, word, n) == 0 && !isalnum((unsigned char)p->at[n]) && p->at[n] != '_';
    p->at += found ? n : 0;
    return found;
}

/* ---- Lists ---- */

static sx_status too_many(const struct parser *p)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "\"%.200s\" has more than %d items", p->text, MAX_ITEMS);
}

static sx_status count_items(struct parser *p, int64_t n)
{
    p->items += n;
    return p->items <= MAX_ITEMS ? SX_OK : too_many(p);
}

/* The items up to `close`; of a dict, with their keys. A parenthesized value without a comma is
 * the value itself. */
static sx_status parse_items(struct parser *p, char close, sx_literal *out)
{
    int room = 0;
    bool comma = true;
    *out = (sx_literal){.kind = close == '}' ? SX_LITERAL_DICT : SX_LITERAL_LIST};
    if (++p->depth > MAX_DEPTH) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "\"%.200s\" is nested more than %d deep", p->text,
                        MAX_DEPTH);
    }
    while (!take(p, close)) {
        if (!comma) {
            return expected(p, close == ']'   ? "\",\" or \"]\""
                               : close == ')' ? "\",\" or \")\""
                                              : "\",\" or \"}\"");
        }
        if (out->n == room) {
            room = room == 0 ? 8 : 2 * room;
            sx_literal *items = sx_arena_array(p->arena, room, sx_literal),
                       *keys = close == '}' ? sx_arena_array(p->arena, room, sx_literal) : NULL;
            if (items == NULL || (close == '}' && keys == NULL)) {
                return sx_no_memory("for a literal");
            }
            for (int i = 0; i < out->n; i++) {
                items[i] = out->items[i];
                if (keys != NULL) {
                    keys[i] = out->keys[i];
                }
            }
            out->items = items;
            out->keys = keys;
        }
        SX_TRY(count_items(p, 1));
        if (close == '}') {
            SX_TRY(parse_value(p, &out->keys[out->n]));
            if (!take(p, ':')) {
                return expected(p, "\":\"");
            }
        }
        SX_TRY(parse_value(p, &out->items[out->n++]));
        comma = take(p, ',');
    }
    p->depth--;
    if (close == ')' && out->n == 1 && !comma) {
        const sx_literal value = out->items[0];
        *out = value;
    }
    return SX_OK;
}

/* ---- Strings ---- */

static sx_status parse_text(struct parser *p, bool bytes, sx_literal *out)
{
    const char quote = *p->at++, *end = p->at;
    while (*end != '\0' && *end != quote) {
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    }
    char *text = sx_arena_alloc(p->arena, (size_t)(end - p->at) + 1, 1); /* escapes only shrink */
    size_t n = 0;
    if (text == NULL) {
        return sx_no_memory("for a literal");
    }
    while (*p->at != quote) {
        static const char escapes[] = "n\nt\tr\r0\0\\\\'\'\"\"";
        if (*p->at == '\0') {
            return expected(p, "the end of the string");
        }
        if (*p->at != '\\') {
            text[n++] = *p->at++;
            continue;
        }
        const char c = p->at[1];
        if (c == 'x' && isxdigit((unsigned char)p->at[2]) && isxdigit((unsigned char)p->at[3])) {
            const char hex[] = {p->at[2], p->at[3], '\0'};
            const uint32_t code = (uint32_t)strtoul(hex, NULL, 16);
            if (bytes || code < 0x80) {
                text[n++] = (char)code;
            } else {
                n = (size_t)(sx_utf8_put(text + n, code) - text);
            }
            p->at += 4;
            continue;
        }
        size_t k = 0;
        while (k + 1 < sizeof(escapes) && escapes[k] != c) {
            k += 2;
        }
        if (k + 1 >= sizeof(escapes)) {
            return expected(p, "an escape (\\n \\t \\r \\0 \\\\ \\' \\\" \\xHH)");
        }
        text[n++] = escapes[k + 1];
        p->at += 2;
    }
    p->at++;
    *out = (sx_literal){.kind = SX_LITERAL_TEXT, .text = {text, n}};
    return SX_OK;
}

/* ---- Numbers ---- */

static sx_status parse_real(struct parser *p, sx_literal *out)
{
    const bool negative = take(p, '-');
    if (!negative) {
        (void)take(p, '+');
    }
    char *end_integer, *end_float;
    p->at += strspn(p->at, " \t\n");
    if (!isdigit((unsigned char)*p->at) && *p->at != '.') {
        return expected(p, "a value");
    }
    errno = 0;
    const bool hex = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');
    const unsigned long long integer = strtoull(p->at, &end_integer, hex ? 16 : 10);
    const bool fits = errno == 0 && integer <= (unsigned long long)INT64_MAX + negative;
    const double number = strtod(p->at, &end_float);
    if (end_float > end_integer || !fits) {
        *out = (sx_literal){.kind = SX_LITERAL_FLOAT, .number = negative ? -number : number};
    } else {
        *out = (sx_literal){.kind = SX_LITERAL_INT,
                            .integer = (int64_t)(negative ? 0 - integer : integer)};
    }
    p->at = SX_MAX(end_float, end_integer);
    return SX_OK;
}

static double number_of(const sx_literal *v)
{
    return v->kind == SX_LITERAL_FLOAT ? v->number : (double)v->integer;
}

/* A real number, an imaginary one, or the sum or difference of both. */
static sx_status parse_number(struct parser *p, sx_literal *out)
{
    SX_TRY(parse_real(p, out));
    if (*p->at == 'j' || *p->at == 'J') {
        const double imaginary = number_of(out); /* the sign is that of both parts, as in Python */
        *out = (sx_literal){.kind = SX_LITERAL_COMPLEX,
                            .number = signbit(imaginary) ? -0.0 : 0.0,
                            .imaginary = imaginary};
        p->at++;
        return SX_OK;
    }
    struct parser next = *p;
    sx_literal second;
    next.at += strspn(next.at, " \t\n");
    if (*next.at != '+' && *next.at != '-') {
        return SX_OK;
    }
    sx_status status = parse_real(&next, &second);
    if (status != SX_OK || (*next.at != 'j' && *next.at != 'J')) { /* the sign is out of place */
        sx_status_free(status);
        return SX_OK;
    }
    *out = (sx_literal){
        .kind = SX_LITERAL_COMPLEX, .number = number_of(out), .imaginary = number_of(&second)};
    p->at = next.at + 1;
    return SX_OK;
}

static bool is_number(const sx_literal *v)
{
    return v->kind == SX_LITERAL_INT || v->kind == SX_LITERAL_FLOAT || v->kind == SX_LITERAL_BOOL;
}

/* ---- NumPy's constructors ---- */

/* Nested lists of the axes of `shape` from `axis` on, each element `value`: one of `lists` that are
 * equal and share their memory, but not that of the tensor. */
static sx_status fill(struct parser *p, const sx_literal *shape, int axis, int64_t lists,
                      const sx_literal *value, sx_literal *out)
{
    const int n = shape->kind == SX_LITERAL_LIST ? shape->n : 1;
    if (axis == n) {
        *out = *value;
        return SX_OK;
    }
    const sx_literal *size = shape->kind == SX_LITERAL_LIST ? &shape->items[axis] : shape;
    if (n > SX_MAX_RANK || size->kind != SX_LITERAL_INT || size->integer < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "\"%.200s\": a shape is a size or a list of at most %d sizes", p->text,
                        SX_MAX_RANK);
    }
    if (size->integer > MAX_ITEMS) {
        return too_many(p);
    }
    *out = (sx_literal){.kind = SX_LITERAL_LIST, .n = (int)size->integer};
    SX_TRY(count_items(p, lists * size->integer));
    const int made = lists > 0 && out->n > 0 ? out->n : 1; /* in an empty one, for the shape */
    out->items = sx_arena_array(p->arena, made, sx_literal);
    if (out->items == NULL) {
        return sx_no_memory("for an array");
    }
    SX_TRY(fill(p, shape, axis + 1, lists * size->integer, value, &out->items[0]));
    for (int i = 1; i < made; i++) {
        out->items[i] = out->items[0];
    }
    return SX_OK;
}

static sx_status make_range(struct parser *p, const sx_literal *args, int n, sx_literal *out)
{
    const double from = n > 1 ? number_of(&args[0]) : 0, to = number_of(&args[n > 1 ? 1 : 0]),
                 step = n > 2 ? number_of(&args[2]) : 1, count = ceil((to - from) / step);
    bool integers = true;
    for (int i = 0; i < n; i++) {
        integers = integers && args[i].kind == SX_LITERAL_INT;
    }
    if (step == 0 || !isfinite(count)) {
        return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": np.arange has no end", p->text);
    }
    if (count > MAX_ITEMS) {
        return too_many(p);
    }
    *out = (sx_literal){.kind = SX_LITERAL_LIST, .n = count > 0 ? (int)count : 0};
    SX_TRY(count_items(p, out->n));
    out->items = out->n == 0 ? NULL : sx_arena_array(p->arena, out->n, sx_literal);
    if (out->n > 0 && out->items == NULL) {
        return sx_no_memory("for an array");
    }
    for (int i = 0; i < out->n; i++) {
        const double value = from + i * step;
        out->items[i] = (sx_literal){.kind = integers ? SX_LITERAL_INT : SX_LITERAL_FLOAT,
                                     .integer = integers ? (int64_t)value : 0,
                                     .number = value};
    }
    return SX_OK;
}

/* "np.float32", "float" or "'f4'", which has no effect: arrays get the dtype of their input. */
static sx_status parse_dtype(struct parser *p)
{
    sx_literal ignored;
    const bool numpy = (take_word(p, "np") || take_word(p, "numpy")) && take(p, '.');
    if (!numpy && (*p->at == '\'' || *p->at == '"')) {
        return parse_text(p, false, &ignored);
    }
    if (!isalpha((unsigned char)*p->at)) {
        return expected(p, "a dtype or \")\"");
    }
    p->at += strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return SX_OK;
}

/* What follows "np.". As for NumPy, a dtype has its name or follows the other arguments. */
static sx_status parse_constructor(struct parser *p, sx_literal *out)
{
    static const struct {
        const char *name;
        int min, max; /* arguments */
    } rows[] = {{"array", 1, 1}, {"zeros", 1, 1}, {"ones", 1, 1}, {"full", 2, 2}, {"arange", 1, 3}};
    size_t row = 0;
    while (row < SX_COUNT(rows) && !take_word(p, rows[row].name)) {
        row++;
    }
    if (row == SX_COUNT(rows) || !take(p, '(')) {
        return expected(p, "np.array, np.zeros, np.ones, np.full or np.arange with arguments");
    }
    sx_literal args[3];
    int n = 0;
    while (!take(p, ')')) {
        const bool named = take_word(p, "dtype");
        if (named && !take(p, '=')) {
            return expected(p, "\"=\"");
        }
        if (named || n == rows[row].max) {
            SX_TRY(parse_dtype(p));
        } else {
            SX_TRY(parse_value(p, &args[n++]));
        }
        if (!take(p, ',') && *p->at != ')') {
            return expected(p, "\",\" or \")\"");
        }
    }
    if (n < rows[row].min) {
        p->at--;
        return expected(p, rows[row].min == 1 ? "an argument" : "two arguments");
    }
    const sx_literal zero = {.kind = SX_LITERAL_FLOAT},
                     one = {.kind = SX_LITERAL_FLOAT, .number = 1};
    if (row == 3 && args[1].kind == SX_LITERAL_LIST) {
        return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": np.full takes one value", p->text);
    }
    switch (row) {
    case 0:
        *out = args[0];
        return SX_OK;
    case 1:
        return fill(p, &args[0], 0, 1, &zero, out);
    case 2:
        return fill(p, &args[0], 0, 1, &one, out);
    case 3:
        return fill(p, &args[0], 0, 1, &args[1], out);
    default:
        break;
    }
    for (int i = 0; i < n; i++) {
        if (!is_number(&args[i])) {
            return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": np.arange takes numbers", p->text);
        }
    }
    return make_range(p, args, n, out);
}

/* ---- Values ---- */

static sx_status parse_value(struct parser *p, sx_literal *out)
{
    p->at += strspn(p->at, " \t\n");
    const char c = *p->at;
    if (c == '[' || c == '(' || c == '{') {
        p->at++;
        return parse_items(p, c == '[' ? ']' : c == '(' ? ')' : '}', out);
    }
    if (c == '\'' || c == '"') {
        return parse_text(p, false, out);
    }
    if (c == 'b' && (p->at[1] == '\'' || p->at[1] == '"')) {
        p->at++;
        return parse_text(p, true, out);
    }
    if (take_word(p, "True") || take_word(p, "False")) {
        *out = (sx_literal){.kind = SX_LITERAL_BOOL, .integer = c == 'T'};
        return SX_OK;
    }
    if (take_word(p, "None")) {
        *out = (sx_literal){.kind = SX_LITERAL_NONE};
        return SX_OK;
    }
    if ((take_word(p, "np") || take_word(p, "numpy")) && take(p, '.')) {
        return parse_constructor(p, out);
    }
    return parse_number(p, out);
}

sx_status sx_literal_parse(const char *text, sx_arena *arena, sx_literal *out)
{
    struct parser p = {.text = text, .at = text, .arena = arena};
    SX_TRY(parse_value(&p, out));
    p.at += strspn(p.at, " \t\n");
    return *p.at == '\0' ? SX_OK : expected(&p, "the end");
}

/* ---- Tensors ---- */

/* Stores the elements of a literal of this shape in row-major order from *at on. */
static sx_status store(const sx_literal *v, const sx_type *type, int axis, char **at)
{
    if (axis < type->rank) {
        if (v->kind != SX_LITERAL_LIST || v->n != type->dims[axis]) {
            return sx_error(SX_INVALID_ARGUMENT, "lists of different lengths do not make an array");
        }
        for (int i = 0; i < v->n; i++) {
            SX_TRY(store(&v->items[i], type, axis + 1, at));
        }
        return SX_OK;
    }
    if (type->dtype == SX_STRING) {
        if (v->kind != SX_LITERAL_TEXT) {
            return sx_error(SX_INVALID_ARGUMENT, "expected strings");
        }
        memcpy(*at, &v->text, sizeof(v->text));
        *at += sizeof(sx_bytes);
        return SX_OK;
    }
    const bool of_complex = sx_dtype_is_complex(type->dtype);
    if (!is_number(v) && !(of_complex && v->kind == SX_LITERAL_COMPLEX)) {
        return sx_error(SX_INVALID_ARGUMENT, v->kind == SX_LITERAL_LIST
                                                 ? "lists of different depths do not make an array"
                                             : v->kind == SX_LITERAL_COMPLEX
                                                 ? "expected numbers that are not complex"
                                                 : "expected numbers");
    }
    if (of_complex) {
        const sx_dtype part = type->dtype == SX_C64 ? SX_F32 : SX_F64;
        const bool both = v->kind == SX_LITERAL_COMPLEX;
        sx_host_store_element(part, both ? v->number : number_of(v), *at);
        sx_host_store_element(part, both ? v->imaginary : 0, *at + sx_dtype_bytes(part));
        *at += sx_dtype_bytes(type->dtype);
        return SX_OK;
    }
    const bool whole = v->kind != SX_LITERAL_FLOAT; /* a double does not hold all of them */
    if (whole && (type->dtype == SX_I64 || (type->dtype == SX_U64 && v->integer >= 0))) {
        memcpy(*at, &v->integer, sizeof(v->integer));
    } else {
        const double value = sx_dtype_is_integer(type->dtype) ? trunc(number_of(v)) : number_of(v);
        sx_host_store_element(type->dtype, value, *at);
        if (sx_dtype_is_integer(type->dtype) && sx_host_load_element(type->dtype, *at) != value) {
            return sx_error(SX_INVALID_ARGUMENT, "%g is not in the range of %s", value,
                            sx_dtype_name(type->dtype));
        }
    }
    *at += sx_dtype_bytes(type->dtype);
    return SX_OK;
}

sx_status sx_literal_tensor(const sx_literal *literal, sx_dtype dtype, sx_arena *arena,
                            sx_tensor *out)
{
    sx_type type = sx_scalar_type(dtype);
    for (const sx_literal *v = literal; v != NULL && v->kind == SX_LITERAL_LIST; v = v->items) {
        if (type.rank == SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT, "an array of more than %d dimensions",
                            SX_MAX_RANK);
        }
        type.dims[type.rank++] = v->n;
    }
    const size_t each = dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(dtype);
    const int64_t n = sx_type_elems(&type);
    char *data = n < 0 ? NULL : sx_arena_alloc(arena, (size_t)n * each + 1, 16), *at = data;
    if (data == NULL) {
        return sx_no_memory("for an array");
    }
    *out = (sx_tensor){type, data};
    return store(literal, &type, 0, &at);
}

/* ---- Examples ---- */

static sx_status add_feature(sx_example_writer *writer, const char *name, const sx_literal *list,
                             sx_arena *arena)
{
    sx_tensor values;
    const bool text = list->n > 0 && list->items[0].kind == SX_LITERAL_TEXT,
               floats = list->n > 0 && list->items[0].kind == SX_LITERAL_FLOAT;
    SX_TRY(sx_literal_tensor(list,
                             text     ? SX_STRING
                             : floats ? SX_F32
                                      : SX_I64,
                             arena, &values),
           "feature \"%s\"", name);
    if (text) {
        sx_example_add_bytes(writer, name, values.data, (size_t)list->n);
    } else if (floats) {
        sx_example_add_floats(writer, name, values.data, (size_t)list->n);
    } else {
        sx_example_add_ints(writer, name, values.data, (size_t)list->n);
    }
    return SX_OK;
}

static sx_status write_example(const sx_literal *example, sx_arena *arena, sx_bytes *out)
{
    sx_example_writer writer;
    sx_buf bytes;
    sx_status status = SX_OK;
    sx_example_writer_init(&writer);
    sx_buf_init(&bytes, 0);
    for (int i = 0; i < example->n && status == SX_OK; i++) {
        const sx_literal *key = &example->keys[i];
        const char *name = key->kind == SX_LITERAL_TEXT
                               ? sx_arena_strndup(arena, key->text.data, key->text.size)
                               : NULL;
        if (name == NULL || example->items[i].kind != SX_LITERAL_LIST) {
            status = sx_error(SX_INVALID_ARGUMENT,
                              "feature %d of an example: expected a name and a list of values", i);
        } else {
            status = add_feature(&writer, name, &example->items[i], arena);
        }
    }
    if (status == SX_OK) {
        status = sx_example_finish(&writer, &bytes);
    }
    if (status == SX_OK) {
        char *copy = sx_arena_alloc(arena, bytes.size + 1, 1);
        if (copy == NULL) {
            status = sx_no_memory("for an Example");
        } else {
            memcpy(copy, sx_buf_text(&bytes), bytes.size);
            *out = (sx_bytes){copy, bytes.size};
        }
    }
    sx_buf_deinit(&bytes);
    sx_example_writer_deinit(&writer);
    return status;
}

sx_status sx_literal_examples(const sx_literal *literal, sx_arena *arena, sx_tensor *out)
{
    if (literal->kind != SX_LITERAL_LIST) {
        return sx_error(SX_INVALID_ARGUMENT, "expected a list of dicts: [{\"x\": [1.0]}]");
    }
    sx_bytes *rows = sx_arena_array(arena, literal->n + 1, sx_bytes);
    if (rows == NULL) {
        return sx_no_memory("for Examples");
    }
    for (int i = 0; i < literal->n; i++) {
        if (literal->items[i].kind != SX_LITERAL_DICT) {
            return sx_error(SX_INVALID_ARGUMENT, "item %d: expected a dict: {\"x\": [1.0]}", i);
        }
        SX_TRY(write_example(&literal->items[i], arena, &rows[i]), "item %d", i);
    }
    *out = (sx_tensor){sx_type_of(SX_STRING, literal->n), rows};
    return SX_OK;
}
