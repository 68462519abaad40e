/* A cursor over JSON text; see json_scan.h. */
#include "serve/json_scan.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "serve/decimal.h"

void sx_json_init(sx_json *json, sx_bytes text, sx_arena *arena)
{
    const char *begin = text.size > 0 ? text.data : "";
    *json = (sx_json){.begin = begin, .end = begin + text.size, .p = begin, .arena = arena};
}

sx_status sx_json_error(const sx_json *json, const char *what)
{
    return sx_error(SX_INVALID_ARGUMENT, "JSON Parse error: %s at offset: %zu", what,
                    (size_t)(json->p - json->begin));
}

/* ---- Strings ---- */

static inline uint64_t load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

/* A byte of `word` that ends plain text: a quote, a backslash, or below 0x20. Uses the
 * has-zero-byte trick; a false positive only means a slower check. */
static inline bool has_special(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    const uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    return (((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
            ((word - ones * 0x20) & ~word)) &
           highs;
}

static inline bool is_special(char c)
{
    return c == '"' || c == '\\' || (unsigned char)c < 0x20;
}

static const char *skip_plain(const char *p, const char *end)
{
    while (end - p >= 8 && !has_special(load8(p))) {
        p += 8;
    }
    while (p < end && !is_special(*p)) {
        p++;
    }
    return p;
}

/* The end of the string whose first byte is at p; *escaped: whether it has escapes. */
static sx_status find_string_end(sx_json *json, const char **out_end, bool *out_escaped)
{
    const char *p = json->p;
    bool escaped = false;
    for (;;) {
        p = skip_plain(p, json->end);
        if (p < json->end && *p == '\\') {
            escaped = true;
            p += 2;
            if (p <= json->end) {
                continue;
            }
            p = json->end;
        }
        if (p == json->end) {
            return sx_json_error(json, "Missing a closing quotation mark in string.");
        }
        if (*p != '"') {
            json->p = p;
            return sx_json_error(json, "Invalid control character in string.");
        }
        *out_end = p;
        *out_escaped = escaped;
        return SX_OK;
    }
}

static bool read_hex4(const char *p, const char *end, unsigned *out)
{
    unsigned value = 0;
    if (end - p < 4) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        const int digit = sx_hex_digit(p[i]);
        if (digit < 0) {
            return false;
        }
        value = value * 16 + (unsigned)digit;
    }
    *out = value;
    return true;
}

/* The code point of \uXXXX (and \uXXXX of its other half); `*p` is after the u. */
static bool read_code_point(const char **p, const char *end, unsigned *out)
{
    unsigned high, low;
    if (!read_hex4(*p, end, &high)) {
        return false;
    }
    *p += 4;
    *out = high;
    if (high < 0xD800 || high > 0xDFFF) {
        return true;
    }
    if (high > 0xDBFF || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u' ||
        !read_hex4(*p + 2, end, &low) || low < 0xDC00 || low > 0xDFFF) {
        return false;
    }
    *p += 6;
    *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

/* Decodes one escape; `*p` is after the backslash. NULL if it is invalid. */
static char *put_escape(const char **p, const char *end, char *out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char c = *(*p)++;
    if (c == 'u') {
        unsigned code;
        return read_code_point(p, end, &code) ? sx_utf8_put(out, code) : NULL;
    }
    const char *found = c ? strchr(from, c) : NULL;
    if (found == NULL) {
        return NULL;
    }
    *out++ = to[found - from];
    return out;
}

/* Decodes the string up to `end`; `out_bytes` of NULL only checks it. */
static sx_status unescape(sx_json *json, const char *end, sx_bytes *out_bytes)
{
    char one[8];                           /* a decoded character, where none are kept */
    char *text = out_bytes == NULL ? one : /* decoded text is never longer */
                     sx_arena_alloc(json->arena, (size_t)(end - json->p), 1);
    char *out = text;
    if (text == NULL) {
        return sx_no_memory("for a JSON string of %zu bytes", (size_t)(end - json->p));
    }
    while (json->p < end) {
        const char *slash = memchr(json->p, '\\', (size_t)(end - json->p));
        const size_t plain = (size_t)((slash != NULL ? slash : end) - json->p);
        if (out_bytes != NULL) {
            memcpy(out, json->p, plain);
            out += plain;
        }
        json->p += plain;
        if (slash != NULL) {
            const char *p = slash + 1;
            out = put_escape(&p, end, out_bytes != NULL ? out : one);
            if (out == NULL) {
                return sx_json_error(json, "Invalid escape character or surrogate in string.");
            }
            json->p = p;
        }
    }
    if (out_bytes != NULL) {
        *out_bytes = (sx_bytes){text, (size_t)(out - text)};
    }
    return SX_OK;
}

sx_status sx_json_string(sx_json *json, sx_bytes *out_bytes)
{
    const char *end = NULL;
    bool escaped = false;
    if (!sx_json_take(json, '"')) {
        return sx_json_error(json, "Expected a string.");
    }
    SX_TRY(find_string_end(json, &end, &escaped));
    const size_t size = (size_t)(end - json->p);
    const size_t valid = sx_utf8_prefix(json->p, size);
    if (valid < size) {
        json->p += valid;
        return sx_json_error(json, "Invalid UTF-8 in string.");
    }
    if (escaped) {
        SX_TRY(unescape(json, end, out_bytes));
    } else if (out_bytes != NULL) {
        *out_bytes = (sx_bytes){json->p, size};
    }
    json->p = end + 1;
    return SX_OK;
}

/* ---- Literals ---- */

static bool take_word(sx_json *json, const char *word)
{
    const size_t size = strlen(word);
    if ((size_t)(json->end - json->p) < size || memcmp(json->p, word, size) != 0) {
        return false;
    }
    json->p += size;
    return true;
}

sx_status sx_json_bool(sx_json *json, bool *out_value)
{
    sx_json_peek(json);
    const bool yes = take_word(json, "true");
    if (!yes && !take_word(json, "false")) {
        return sx_json_error(json, "Invalid value.");
    }
    *out_value = yes;
    return SX_OK;
}

bool sx_json_special(sx_json *json, double *out_value)
{
    static const struct {
        const char *word;
        double value;
    } specials[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        if (take_word(json, specials[i].word)) {
            *out_value = specials[i].value;
            return true;
        }
    }
    return false;
}

/* ---- Structure ---- */

sx_status sx_json_enter(sx_json *json, char open)
{
    if (!sx_json_take(json, open)) {
        return sx_json_error(json, open == '[' ? "Expected a list." : "Expected an object.");
    }
    if (++json->depth > SX_JSON_MAX_DEPTH) {
        return sx_json_error(json, "Nested deeper than 64 levels.");
    }
    return SX_OK;
}

void sx_json_leave(sx_json *json)
{
    json->depth--;
}

sx_status sx_json_next(sx_json *json, char close, bool *out_more)
{
    if (sx_json_take(json, ',')) {
        *out_more = true;
        return SX_OK;
    }
    if (sx_json_take(json, close)) {
        sx_json_leave(json);
        *out_more = false;
        return SX_OK;
    }
    return sx_json_error(json, close == ']' ? "Missing a comma or ] after an array element."
                                            : "Missing a comma or } after an object member.");
}

sx_status sx_json_key(sx_json *json, sx_bytes *out_key)
{
    if (sx_json_peek(json) != '"') {
        return sx_json_error(json, "Missing a name for object member.");
    }
    SX_TRY(sx_json_string(json, out_key));
    if (!sx_json_take(json, ':')) {
        return sx_json_error(json, "Missing a colon after a name of object member.");
    }
    return SX_OK;
}

static sx_status skip_scalar(sx_json *json)
{
    static const char *const words[] = {"true", "false", "null"};
    sx_decimal number;
    double special;
    if (sx_json_peek(json) == '"') {
        return sx_json_string(json, NULL);
    }
    if (sx_decimal_scan(json->p, json->end, &number)) {
        json->p = number.end;
        return SX_OK;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (take_word(json, words[i])) {
            return SX_OK;
        }
    }
    return sx_json_special(json, &special) ? SX_OK : sx_json_error(json, "Invalid value.");
}

/* Takes an opening bracket and, if the container is empty, its closing one. */
static sx_status skip_open(sx_json *json, char open, bool *out_empty)
{
    const char close = open == '[' ? ']' : '}';
    SX_TRY(sx_json_enter(json, open));
    *out_empty = sx_json_take(json, close);
    if (*out_empty) {
        sx_json_leave(json);
    }
    return SX_OK;
}

/* Without recursion: `closers` is the stack of open brackets. */
sx_status sx_json_skip(sx_json *json)
{
    char closers[SX_JSON_MAX_DEPTH];
    int open = 0;
    do {
        bool value_done = true;
        const char c = sx_json_peek(json);
        if (c == '[' || c == '{') {
            bool empty;
            SX_TRY(skip_open(json, c, &empty));
            if (!empty) {
                closers[open++] = c == '[' ? ']' : '}';
                value_done = false;
            }
        } else {
            SX_TRY(skip_scalar(json));
        }
        bool more = !value_done;
        while (open > 0 && !more) {
            SX_TRY(sx_json_next(json, closers[open - 1], &more));
            open -= !more;
        }
        if (open > 0 && closers[open - 1] == '}') {
            SX_TRY(sx_json_key(json, NULL));
        }
    } while (open > 0);
    return SX_OK;
}

sx_status sx_json_finish(sx_json *json)
{
    sx_json_peek(json);
    if (json->p != json->end) {
        return sx_json_error(json, "The document root must not be followed by other values.");
    }
    return SX_OK;
}
