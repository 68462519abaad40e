/* UTF-8 validation and encoding. Well-formed text has no surrogates, no overlong forms and no code
 * point above U+10FFFF. Source: The Unicode Standard, table 3-7. */
#ifndef SX_BASE_UTF8_H
#define SX_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of the sequence at `text` (size >= 1); 0 if it is malformed or truncated. */
size_t sx_utf8_sequence(const void *text, size_t size);

/* The length of the longest well-formed prefix. */
size_t sx_utf8_prefix(const void *text, size_t size);

static inline bool sx_utf8_valid(const void *text, size_t size)
{
    return sx_utf8_prefix(text, size) == size;
}

/* The code point at `text` (size >= 1), and the size of its sequence. What is malformed gives
 * SX_UTF8_MALFORMED for its longest part that could begin a sequence, or one byte: as many times as
 * Unicode recommends U+FFFD. */
#define SX_UTF8_MALFORMED UINT32_MAX
size_t sx_utf8_decode(const void *text, size_t size, uint32_t *out_code);

/* Writes a code point (at most 0x10FFFF) as at most 4 bytes and returns the end of the text. A
 * surrogate is written as three bytes that are not well-formed; callers must reject it. */
char *sx_utf8_put(char *out, uint32_t code);

#endif
