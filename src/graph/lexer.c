/* See lexer.h. */
#include "graph/lexer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

static bool is_number_char(char c)
{
    return is_word_char(c) || c == '.' || c == '+' || c == '-';
}

static void skip_space(sx_lexer *l)
{
    while (l->at < l->end &&
           (*l->at == ' ' || *l->at == '\t' || *l->at == '\n' || *l->at == '\r')) {
        l->line += *l->at == '\n';
        l->at++;
    }
}

static void set_token(sx_lexer *l, sx_token_kind kind, const char *begin, const char *end)
{
    l->kind = kind;
    l->begin = begin;
    l->size = (size_t)(end - begin);
    l->at = end;
}

/* Extends the token after its first character by all characters for which `belongs` is true. */
static void lex_run(sx_lexer *l, sx_token_kind kind, bool (*belongs)(char))
{
    const char *p = l->at + 1;
    while (p < l->end && belongs(*p)) {
        p++;
    }
    set_token(l, kind, l->at, p);
}

static void lex_string(sx_lexer *l)
{
    const char *p = l->at + 1;
    while (p < l->end && *p != '"' && *p != '\n') {
        p += *p == '\\' && p + 1 < l->end ? 2 : 1;
    }
    if (p >= l->end || *p != '"') {
        set_token(l, SX_TOKEN_BAD, l->at, p < l->end ? p : l->end);
        return;
    }
    set_token(l, SX_TOKEN_STRING, l->at + 1, p);
    l->at = p + 1;
}

static void lex_value(sx_lexer *l)
{
    lex_run(l, SX_TOKEN_VALUE, is_digit);
    if (l->size < 2 || l->size > 9) {
        l->kind = SX_TOKEN_BAD;
    }
}

void sx_lexer_next(sx_lexer *l)
{
    skip_space(l);
    if (l->at >= l->end) {
        set_token(l, SX_TOKEN_END, l->end, l->end);
        return;
    }
    char c = *l->at;
    if (c == '"') {
        lex_string(l);
    } else if (c == '%') {
        lex_value(l);
    } else if (is_digit(c) || c == '-' || c == '.') {
        lex_run(l, SX_TOKEN_NUMBER, is_number_char);
    } else if (is_word_char(c)) {
        lex_run(l, SX_TOKEN_WORD, is_word_char);
    } else {
        set_token(l, SX_TOKEN_PUNCT, l->at, l->at + 1);
    }
}

void sx_lexer_init(sx_lexer *l, const char *text, size_t size, sx_arena *arena)
{
    *l = (sx_lexer){.at = text, .end = text + size, .line = 1, .arena = arena};
    sx_lexer_next(l);
}

bool sx_lexer_is_punct(const sx_lexer *l, char c)
{
    return l->kind == SX_TOKEN_PUNCT && l->begin[0] == c;
}

bool sx_lexer_is_word(const sx_lexer *l, const char *word)
{
    return l->kind == SX_TOKEN_WORD && l->size == strlen(word) &&
           memcmp(l->begin, word, l->size) == 0;
}

bool sx_lexer_accept(sx_lexer *l, char c)
{
    bool is = sx_lexer_is_punct(l, c);
    if (is) {
        sx_lexer_next(l);
    }
    return is;
}

bool sx_lexer_accept_word(sx_lexer *l, const char *word)
{
    bool is = sx_lexer_is_word(l, word);
    if (is) {
        sx_lexer_next(l);
    }
    return is;
}

sx_status sx_lexer_error(const sx_lexer *l, const char *expected)
{
    if (l->kind == SX_TOKEN_END) {
        return sx_error(SX_INVALID_ARGUMENT, "line %d: expected %s, got the end of the text",
                        l->line, expected);
    }
    return sx_error(SX_INVALID_ARGUMENT, "line %d: expected %s, got \"%.*s\"", l->line, expected,
                    (int)(l->size < 60 ? l->size : 60), l->begin);
}

sx_status sx_lexer_expect(sx_lexer *l, char c)
{
    const char expected[4] = {'\'', c, '\'', 0};
    return sx_lexer_accept(l, c) ? SX_OK : sx_lexer_error(l, expected);
}

static sx_status keep_text(sx_lexer *l, const char *begin, size_t size, const char **out_text)
{
    const char *text = sx_arena_strndup(l->arena, begin, size);
    if (text == NULL) {
        return sx_no_memory("reading line %d", l->line);
    }
    *out_text = text;
    sx_lexer_next(l);
    return SX_OK;
}

sx_status sx_lexer_take_word(sx_lexer *l, const char *what, const char **out_text)
{
    return l->kind == SX_TOKEN_WORD ? keep_text(l, l->begin, l->size, out_text)
                                    : sx_lexer_error(l, what);
}

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Resolves escapes in place, returns the new length. */
static size_t unescape(char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < size) {
            c = text[++i];
            if (c == 'n') {
                c = '\n';
            } else if (c == 'x' && i + 2 < size && hex_digit(text[i + 1]) >= 0 &&
                       hex_digit(text[i + 2]) >= 0) {
                c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
                i += 2;
            }
        }
        text[n++] = c;
    }
    return n;
}

sx_status sx_lexer_take_string(sx_lexer *l, const char *what, const char **out_text)
{
    if (l->kind != SX_TOKEN_STRING) {
        return sx_lexer_error(l, what);
    }
    const char *kept = NULL;
    SX_TRY(keep_text(l, l->begin, l->size, &kept));
    char *text = (char *)kept; /* mutable, in the arena */
    text[unescape(text, strlen(text))] = '\0';
    *out_text = text;
    return SX_OK;
}

/* The current token as a NUL-terminated number text; "" if it is too long to be one. */
static const char *number_text(const sx_lexer *l, char buffer[64])
{
    size_t n = l->size < 63 ? l->size : 0;
    memcpy(buffer, l->begin, n);
    buffer[n] = '\0';
    return buffer;
}

sx_status sx_lexer_take_int(sx_lexer *l, int64_t *out_value)
{
    char buffer[64], *end = buffer;
    errno = 0;
    long long value = l->kind == SX_TOKEN_NUMBER ? strtoll(number_text(l, buffer), &end, 10) : 0;
    if (l->kind != SX_TOKEN_NUMBER || end == buffer || *end != '\0' || errno != 0) {
        return sx_lexer_error(l, "an integer");
    }
    *out_value = value;
    sx_lexer_next(l);
    return SX_OK;
}

sx_status sx_lexer_take_float(sx_lexer *l, double *out_value)
{
    char buffer[64], *end = buffer;
    /* inf and nan are words */
    bool maybe = l->kind == SX_TOKEN_NUMBER || l->kind == SX_TOKEN_WORD;
    double value = maybe ? strtod(number_text(l, buffer), &end) : 0;
    if (!maybe || end == buffer || *end != '\0') {
        return sx_lexer_error(l, "a number");
    }
    *out_value = value;
    sx_lexer_next(l);
    return SX_OK;
}

sx_status sx_lexer_take_value(sx_lexer *l, uint32_t *out_id)
{
    if (l->kind != SX_TOKEN_VALUE) {
        return sx_lexer_error(l, "a value such as %3");
    }
    uint32_t id = 0;
    for (size_t i = 1; i < l->size; i++) {
        id = id * 10 + (uint32_t)(l->begin[i] - '0');
    }
    *out_id = id;
    sx_lexer_next(l);
    return SX_OK;
}

void sx_quoted_print(const char *text, sx_buf *out)
{
    sx_buf_putc(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            sx_buf_putc(out, '\\');
            sx_buf_putc(out, *p);
        } else if (*p == '\n') {
            sx_buf_puts(out, "\\n");
        } else if ((unsigned char)*p < 32) {
            sx_buf_printf(out, "\\x%02x", (unsigned char)*p);
        } else {
            sx_buf_putc(out, *p);
        }
    }
    sx_buf_putc(out, '"');
}
