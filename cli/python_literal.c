#include "python_literal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"

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

/* Blanks, line ends, also escaped ones, and comments. */
static void skip_blanks(struct parser *p)
{
    for (;;) {
        p->at += strspn(p->at, " \t\r\n\f");
        if (*p->at == '#') {
            p->at += strcspn(p->at, "\n");
        } else if (p->at[0] == '\\' && p->at[1] == '\n') {
            p->at += 2;
        } else {
            return;
        }
    }
}

static bool take(struct parser *p, char c)
{
    skip_blanks(p);
    const bool found = *p->at == c;
    p->at += found;
    return found;
}

static bool take_word(struct parser *p, const char *word)
{
    const size_t n = strlen(word);
    skip_blanks(p);
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

/* How a string is written: b'', r'', """ """ */
struct quoting {
    bool bytes, raw;
    char quote;
    int quotes; /* 1 or 3 */
};

/* The prefix and the quotes that begin a string; false: none begins here. */
static bool take_quotes(struct parser *p, struct quoting *out)
{
    struct quoting q = {0};
    const char *at = p->at;
    bool unicode = false;
    for (; *at != '\0' && strchr("bBrRuU", *at) != NULL && at - p->at < 2; at++) {
        q.bytes = q.bytes || tolower(*at) == 'b';
        q.raw = q.raw || tolower(*at) == 'r';
        unicode = unicode || tolower(*at) == 'u';
    }
    const bool twice = at - p->at == 2 && (unicode || !q.bytes || !q.raw); /* of "bb", "ur" */
    if ((*at != '\'' && *at != '"') || twice) {
        return false;
    }
    q.quote = *at;
    q.quotes = at[1] == *at && at[2] == *at ? 3 : 1;
    p->at = at + q.quotes;
    *out = q;
    return true;
}

static bool at_end_quotes(const char *at, const struct quoting *q)
{
    return *at == q->quote && (q->quotes == 1 || (at[1] == q->quote && at[2] == q->quote));
}

/* The code point of "xHH", "uHHHH", "UHHHHHHHH" or of octal digits; sets *out_size to its
 * characters, 0 if it is none of these. */
static uint32_t read_code(const char *text, bool bytes, size_t *out_size)
{
    const size_t wanted = *text == 'x' ? 2 : bytes ? 0 : *text == 'u' ? 4 : *text == 'U' ? 8 : 0;
    char digits[9] = {0};
    if (*text >= '0' && *text <= '7') {
        memcpy(digits, text, SX_MIN(strspn(text, "01234567"), (size_t)3));
        *out_size = strlen(digits);
        return (uint32_t)strtoul(digits, NULL, 8);
    }
    for (size_t k = 0; k < wanted && isxdigit((unsigned char)text[1 + k]); k++) {
        digits[k] = text[1 + k];
    }
    *out_size = wanted > 0 && strlen(digits) == wanted ? 1 + wanted : 0;
    return (uint32_t)strtoul(digits, NULL, 16);
}

/* The escape at p->at, in place of which *end gets its characters. Those that Python does not know
 * stand for themselves. */
static sx_status parse_escape(struct parser *p, bool bytes, char **end)
{
    static const char escapes[] = "n\nt\tr\ra\ab\bf\fv\v\\\\''\"\"";
    const char c = p->at[1];
    size_t size = 0, k = 0;
    const uint32_t code = read_code(p->at + 1, bytes, &size);
    if (size > 0 && (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))) {
        return expected(p, "the code of a character, at most \\U0010ffff and no surrogate,");
    }
    if (size > 0) {
        if (bytes || code < 0x80) {
            *(*end)++ = (char)code;
        } else {
            *end = sx_utf8_put(*end, code);
        }
        p->at += 1 + size;
        return SX_OK;
    }
    if (c == 'x' || (!bytes && (c == 'u' || c == 'U' || c == 'N'))) {
        return expected(p, "the digits of a character (\\xHH, \\uHHHH, \\UHHHHHHHH)");
    }
    if (c == '\n') { /* the string goes on in the next line */
        p->at += 2;
        return SX_OK;
    }
    while (k + 1 < sizeof(escapes) && escapes[k] != c) {
        k += 2;
    }
    if (k + 1 < sizeof(escapes)) {
        *(*end)++ = escapes[k + 1];
    } else {
        *(*end)++ = '\\';
        *(*end)++ = c;
    }
    p->at += 2;
    return SX_OK;
}

/* Appends the characters of one string to *end. */
static sx_status parse_quoted(struct parser *p, const struct quoting *q, char **end)
{
    while (!at_end_quotes(p->at, q)) {
        if (*p->at == '\0') {
            return expected(p, "the end of the string");
        }
        if (q->bytes && (unsigned char)*p->at >= 0x80) {
            return expected(p, "an ASCII character, or \\xHH, in bytes");
        }
        if (*p->at != '\\' || p->at[1] == '\0') {
            *(*end)++ = *p->at++;
        } else if (q->raw) {
            *(*end)++ = *p->at++;
            *(*end)++ = *p->at++;
        } else {
            SX_TRY(parse_escape(p, q->bytes, end));
        }
    }
    p->at += q->quotes;
    return SX_OK;
}

/* Strings that follow one another are one. *out_is: whether there is any. */
static sx_status parse_text(struct parser *p, bool *out_is, sx_literal *out)
{
    struct quoting q;
    skip_blanks(p);
    *out_is = take_quotes(p, &q);
    if (!*out_is) {
        return SX_OK;
    }
    char *text = sx_arena_alloc(p->arena, strlen(p->at) + 1, 1), *end = text; /* escapes shrink */
    const bool bytes = q.bytes;
    if (text == NULL) {
        return sx_no_memory("for a literal");
    }
    do {
        if (q.bytes != bytes) {
            return expected(p, "strings that are all bytes or all text");
        }
        SX_TRY(parse_quoted(p, &q, &end));
        skip_blanks(p);
    } while (take_quotes(p, &q));
    *out = (sx_literal){.kind = SX_LITERAL_TEXT, .text = {text, (size_t)(end - text)}};
    return SX_OK;
}

/* ---- Numbers ---- */

enum { MAX_DIGITS = 800 }; /* no double needs more */

/* The characters of a number, without the "_" between its digits. */
static bool take_digits(struct parser *p, const char *allowed, char digits[MAX_DIGITS])
{
    size_t n = 0;
    for (const char *c = p->at;; c++) {
        const bool inside =
            *c == '_' && n > 0 && isxdigit((unsigned char)c[-1]) && isxdigit((unsigned char)c[1]);
        const bool sign = (*c == '+' || *c == '-') && n > 0 && tolower(c[-1]) == 'e';
        if (inside) {
            continue;
        }
        if (n + 1 == MAX_DIGITS || *c == '\0' || (strchr(allowed, *c) == NULL && !sign)) {
            p->at = c;
            break;
        }
        digits[n++] = *c;
    }
    digits[n] = '\0';
    return n > 0;
}

static sx_status parse_real(struct parser *p, sx_literal *out)
{
    static const struct {
        char letter;
        int base;
        const char *digits;
    } bases[] = {{'x', 16, "0123456789abcdefABCDEF"}, {'o', 8, "01234567"}, {'b', 2, "01"}};
    const bool negative = take(p, '-');
    if (!negative) {
        (void)take(p, '+');
    }
    skip_blanks(p);
    const char *start = p->at;
    char digits[MAX_DIGITS], *end = digits;
    size_t row = 0;
    while (row < SX_COUNT(bases) && (*start != '0' || tolower(start[1]) != bases[row].letter)) {
        row++;
    }
    const bool based = row < SX_COUNT(bases);
    p->at += based ? 2 + (start[2] == '_') : 0;
    if ((!based && !isdigit((unsigned char)*start) && *start != '.') ||
        !take_digits(p, based ? bases[row].digits : "0123456789.eE", digits)) {
        p->at = start;
        return expected(p, "a value");
    }
    const bool integer = based || digits[strcspn(digits, ".eE")] == '\0';
    const double number = based ? 0 : strtod(digits, &end);
    errno = 0;
    const unsigned long long whole =
        integer ? strtoull(digits, NULL, based ? bases[row].base : 10) : 0;
    const bool fits =
        integer && errno == 0 && (!negative || whole <= (unsigned long long)INT64_MAX + 1);
    const bool zeros = !based && integer && digits[0] == '0' && whole > 0; /* 01 */
    if ((!based && *end != '\0') || zeros || (based && errno != 0) ||
        (strchr("jJ", *p->at) == NULL && (isalnum((unsigned char)*p->at) || *p->at == '_'))) {
        p->at = start;
        return expected(p, "a number");
    }
    if (fits) {
        *out = (sx_literal){.kind = SX_LITERAL_INT,
                            .above = whole > (unsigned long long)INT64_MAX && !negative,
                            .integer = (int64_t)(negative ? 0 - whole : whole)};
    } else {
        *out = (sx_literal){.kind = SX_LITERAL_FLOAT, .number = negative ? -number : number};
    }
    return SX_OK;
}

double sx_literal_number(const sx_literal *v)
{
    return v->kind == SX_LITERAL_FLOAT ? v->number
           : v->above                  ? (double)(uint64_t)v->integer
                                       : (double)v->integer;
}

/* A real number, an imaginary one, or the sum or difference of both. */
static sx_status parse_number(struct parser *p, sx_literal *out)
{
    SX_TRY(parse_real(p, out));
    if (*p->at == 'j' || *p->at == 'J') {
        const double imaginary =
            sx_literal_number(out); /* the sign is that of both parts, as in Python */
        *out = (sx_literal){.kind = SX_LITERAL_COMPLEX,
                            .number = signbit(imaginary) ? -0.0 : 0.0,
                            .imaginary = imaginary};
        p->at++;
        return SX_OK;
    }
    struct parser next = *p;
    sx_literal second;
    skip_blanks(&next);
    if (*next.at != '+' && *next.at != '-') {
        return SX_OK;
    }
    sx_status status = parse_real(&next, &second);
    if (status != SX_OK || (*next.at != 'j' && *next.at != 'J')) { /* the sign is out of place */
        sx_status_free(status);
        return SX_OK;
    }
    *out = (sx_literal){.kind = SX_LITERAL_COMPLEX,
                        .number = sx_literal_number(out),
                        .imaginary = sx_literal_number(&second)};
    p->at = next.at + 1;
    return SX_OK;
}

bool sx_literal_is_number(const sx_literal *v)
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
    const double from = n > 1 ? sx_literal_number(&args[0]) : 0,
                 to = sx_literal_number(&args[n > 1 ? 1 : 0]),
                 step = n > 2 ? sx_literal_number(&args[2]) : 1, count = ceil((to - from) / step);
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

/* ---- NumPy's arrays of another shape ---- */

/* Appends the elements of nested lists to `flat`, or counts them if it is NULL. */
static int64_t flatten(const sx_literal *v, sx_literal *flat, int64_t n)
{
    if (v->kind != SX_LITERAL_LIST) {
        if (flat != NULL) {
            flat[n] = *v;
        }
        return n + 1;
    }
    for (int i = 0; i < v->n; i++) {
        n = flatten(&v->items[i], flat, n);
    }
    return n;
}

/* Nested lists of these sizes, of the elements from *at on. */
static sx_status nest(struct parser *p, const int64_t *dims, int rank, sx_literal **at,
                      sx_literal *out)
{
    if (rank == 0) {
        *out = *(*at)++;
        return SX_OK;
    }
    *out = (sx_literal){.kind = SX_LITERAL_LIST, .n = (int)dims[0]};
    if (rank == 1) { /* they are one after the other already */
        out->items = *at;
        *at += dims[0];
        return SX_OK;
    }
    out->items = sx_arena_array(p->arena, dims[0] + 1, sx_literal);
    if (out->items == NULL) {
        return sx_no_memory("for an array");
    }
    for (int i = 0; i < out->n; i++) {
        SX_TRY(nest(p, dims + 1, rank - 1, at, &out->items[i]));
    }
    return SX_OK;
}

/* What follows "reshape(": sizes, or a list of them, one of which may be -1. */
static sx_status parse_reshape(struct parser *p, sx_literal *value)
{
    const char *start = p->at;
    int64_t dims[SX_MAX_RANK], known = 1;
    const int64_t n = flatten(value, NULL, 0);
    int rank = 0, open = -1;
    sx_literal shape;
    SX_TRY(parse_items(p, ')', &shape));
    const int n_sizes =
        shape.kind == SX_LITERAL_LIST && shape.n == 1 && shape.items[0].kind == SX_LITERAL_LIST
            ? shape.items[0].n
            : -1;
    const sx_literal one = shape;
    const sx_literal *sizes = n_sizes >= 0                    ? shape.items[0].items
                              : shape.kind == SX_LITERAL_LIST ? shape.items
                                                              : &one;
    const int count = n_sizes >= 0 ? n_sizes : shape.kind == SX_LITERAL_LIST ? shape.n : 1;
    bool fits = count <= SX_MAX_RANK;
    for (; rank < count && fits; rank++) {
        dims[rank] = sizes[rank].kind == SX_LITERAL_INT ? sizes[rank].integer : -2;
        const bool guess = dims[rank] == -1;
        fits = dims[rank] >= 0 || (guess && open < 0);
        open = guess ? rank : open;
        fits = fits && (guess || sx_mul_i64(known, dims[rank], &known));
    }
    if (fits && open >= 0) {
        fits = known > 0 && n % known == 0;
        dims[open] = fits ? n / known : 0;
        known = fits ? n : known;
    }
    if (!fits || known != n) {
        p->at = start;
        return sx_error(SX_INVALID_ARGUMENT,
                        "\"%.200s\": reshape at character %zu: %lld elements do not fill the shape",
                        p->text, (size_t)(start - p->text) + 1, (long long)n);
    }
    SX_TRY(count_items(p, n));
    sx_literal *flat = sx_arena_array(p->arena, n + 1, sx_literal), *at = flat;
    if (flat == NULL) {
        return sx_no_memory("for an array");
    }
    (void)flatten(value, flat, 0);
    return nest(p, dims, rank, &at, value);
}

/* ---- NumPy's constructors ---- */

/* "np.float32", "float" or "'f4'", which has no effect: arrays get the dtype of their input. */
static sx_status parse_dtype(struct parser *p)
{
    sx_literal ignored;
    bool text = false;
    const bool numpy = (take_word(p, "np") || take_word(p, "numpy")) && take(p, '.');
    if (!numpy) {
        SX_TRY(parse_text(p, &text, &ignored));
    }
    if (text) {
        return SX_OK;
    }
    if (!isalpha((unsigned char)*p->at)) {
        return expected(p, "a dtype or \")\"");
    }
    p->at += strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return SX_OK;
}

typedef enum constructor { ARRAY, ZEROS, ONES, FULL, ARANGE } constructor;

static const struct {
    const char *name;
    constructor makes;
    int min, max;         /* arguments */
    const char *named[3]; /* their names */
} constructors[] = {
    {"array", ARRAY, 1, 1, {"object"}},
    {"asarray", ARRAY, 1, 1, {"a"}},
    {"zeros", ZEROS, 1, 1, {"shape"}},
    {"ones", ONES, 1, 1, {"shape"}},
    {"full", FULL, 2, 2, {"shape", "fill_value"}},
    {"arange", ARANGE, 1, 3, {NULL}},
};

/* Numbers of NumPy, and its types, which make a number of one: np.float32(1). */
static const struct {
    const char *name;
    double value;
} numbers[] = {{"nan", NAN}, {"inf", INFINITY}, {"pi", M_PI}, {"e", M_E}};

static const char *const types[] = {"float16", "float32", "float64",   "int8",      "int16",
                                    "int32",   "int64",   "uint8",     "uint16",    "uint32",
                                    "uint64",  "bool_",   "complex64", "complex128"};

/* The arguments of a constructor. As for NumPy, a dtype has its name or follows the others. */
static sx_status parse_arguments(struct parser *p, size_t row, sx_literal args[3], int *out_n)
{
    int n = 0;
    while (!take(p, ')')) {
        struct parser name = *p;
        bool dtype = take_word(p, "dtype");
        if (dtype && !take(p, '=')) {
            return expected(p, "\"=\"");
        }
        dtype = dtype || n == constructors[row].max;
        if (!dtype && constructors[row].named[n] != NULL &&
            take_word(&name, constructors[row].named[n]) && take(&name, '=')) {
            p->at = name.at;
        }
        if (dtype) {
            SX_TRY(parse_dtype(p));
        } else {
            SX_TRY(parse_value(p, &args[n++]));
        }
        if (!take(p, ',') && *p->at != ')') {
            return expected(p, "\",\" or \")\"");
        }
    }
    if (n < constructors[row].min) {
        p->at--;
        return expected(p, constructors[row].min == 1 ? "an argument" : "two arguments");
    }
    *out_n = n;
    return SX_OK;
}

static sx_status construct(struct parser *p, constructor makes, const sx_literal *args, int n,
                           sx_literal *out)
{
    const sx_literal zero = {.kind = SX_LITERAL_FLOAT},
                     one = {.kind = SX_LITERAL_FLOAT, .number = 1};
    if (makes == FULL && args[1].kind == SX_LITERAL_LIST) {
        return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": np.full takes one value", p->text);
    }
    for (int i = 0; i < n && makes == ARANGE; i++) {
        if (!sx_literal_is_number(&args[i])) {
            return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": np.arange takes numbers", p->text);
        }
    }
    switch (makes) {
    case ARRAY:
        *out = args[0];
        return SX_OK;
    case ZEROS:
        return fill(p, &args[0], 0, 1, &zero, out);
    case ONES:
        return fill(p, &args[0], 0, 1, &one, out);
    case FULL:
        return fill(p, &args[0], 0, 1, &args[1], out);
    case ARANGE:
        return make_range(p, args, n, out);
    }
    return SX_OK;
}

/* What follows "np.". */
static sx_status parse_numpy(struct parser *p, sx_literal *out)
{
    sx_literal args[3];
    size_t row = 0;
    int n = 0;
    for (size_t i = 0; i < SX_COUNT(numbers); i++) {
        if (take_word(p, numbers[i].name)) {
            *out = (sx_literal){.kind = SX_LITERAL_FLOAT, .number = numbers[i].value};
            return SX_OK;
        }
    }
    for (size_t i = 0; i < SX_COUNT(types); i++) {
        if (take_word(p, types[i])) {
            if (!take(p, '(')) {
                return expected(p, "\"(\" and a number");
            }
            SX_TRY(parse_value(p, out));
            return take(p, ')') ? SX_OK : expected(p, "\")\"");
        }
    }
    if (take_word(p, "random")) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "\"%.200s\": no random numbers are drawn here; write them to a file with "
                        "numpy.save, and name that with --inputs",
                        p->text);
    }
    while (row < SX_COUNT(constructors) && !take_word(p, constructors[row].name)) {
        row++;
    }
    if (row == SX_COUNT(constructors) || !take(p, '(')) {
        return expected(p, "np.array, np.zeros, np.ones, np.full or np.arange with arguments");
    }
    SX_TRY(parse_arguments(p, row, args, &n));
    SX_TRY(construct(p, constructors[row].makes, args, n, out));
    while (take(p, '.')) {
        const bool reshape = take_word(p, "reshape"), astype = !reshape && take_word(p, "astype");
        if ((!reshape && !astype) || !take(p, '(')) {
            return expected(p, "reshape or astype, with arguments");
        }
        SX_TRY(reshape ? parse_reshape(p, out) : parse_dtype(p));
        if (astype && !take(p, ')')) {
            return expected(p, "\")\"");
        }
    }
    return SX_OK;
}

/* "-np.inf" */
static sx_status parse_signed(struct parser *p, sx_literal *out)
{
    struct parser next = *p;
    const bool negative = take(&next, '-');
    if ((!negative && !take(&next, '+')) ||
        !(take_word(&next, "np") || take_word(&next, "numpy"))) {
        return parse_number(p, out);
    }
    const char *start = p->at;
    p->at = next.at;
    SX_TRY(take(p, '.') ? parse_numpy(p, out) : expected(p, "\".\""));
    if (!sx_literal_is_number(out)) {
        p->at = start;
        return expected(p, "a number after the sign");
    }
    *out =
        negative ? (sx_literal){.kind = SX_LITERAL_FLOAT, .number = -sx_literal_number(out)} : *out;
    return SX_OK;
}

/* ---- Values ---- */

static sx_status parse_value(struct parser *p, sx_literal *out)
{
    bool is_text = false;
    skip_blanks(p);
    const char c = *p->at;
    if (c == '[' || c == '(' || c == '{') {
        p->at++;
        return parse_items(p, c == '[' ? ']' : c == '(' ? ')' : '}', out);
    }
    SX_TRY(parse_text(p, &is_text, out));
    if (is_text) {
        return SX_OK;
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
        return parse_numpy(p, out);
    }
    return parse_signed(p, out);
}

sx_status sx_literal_parse(const char *text, sx_arena *arena, sx_literal *out)
{
    struct parser p = {.text = text, .at = text, .arena = arena};
    SX_TRY(parse_value(&p, out));
    skip_blanks(&p);
    return *p.at == '\0' ? SX_OK : expected(&p, "the end");
}
