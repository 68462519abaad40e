/* UTF-8: checked, measured, written. Well-formed means: no surrogates, no overlong forms, at most
 * U+10FFFF. Source: The Unicode Standard, table 3-7. */
#ifndef SX_BASE_UTF8_H
#define SX_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of the sequence that begins at `text` (size >= 1); 0 if it is malformed or cut off. */
size_t sx_utf8_sequence(const void *text, size_t size);

/* The length of the longest well-formed beginning of the bytes. */
size_t sx_utf8_prefix(const void *text, size_t size);

static inline bool sx_utf8_valid(const void *text, size_t size)
{
    return sx_utf8_prefix(text, size) == size;
}

/* Writes the code point (at most 0x10FFFF) and returns one past its last byte: at most 4 bytes. A
 * surrogate is written as three bytes, which are not well-formed: callers refuse it before. */
char *sx_utf8_put(char *out, uint32_t code);

#endif
