/* sx_buf: a growing byte buffer with a maximum size; also the string builder.
 *
 * Invariants: data[0 .. size) is valid, data[size] is a NUL (not counted), size <= max_bytes.
 * After the first failure (out of memory, over the maximum) appends do nothing and sx_buf_status()
 * returns the error, so callers append without checks and check once at the end. */
#ifndef SX_BASE_BUFFER_H
#define SX_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sextant/types.h>

#include "base/budget.h"

typedef struct sx_buf {
    char *data; /* NULL until the first append */
    size_t size;
    size_t capacity;
    size_t max_bytes;  /* 0 = 1 GiB */
    int failed;        /* the sx_code of the first failure, or 0 */
    sx_budget *budget; /* charged for `capacity` bytes; NULL = none */
} sx_buf;

void sx_buf_init(sx_buf *buf, size_t max_bytes);
void sx_buf_deinit(sx_buf *buf);
void sx_buf_reset(sx_buf *buf); /* empties the buffer and clears a failure; keeps the memory */

void sx_buf_append(sx_buf *buf, const void *data, size_t size);
void sx_buf_puts(sx_buf *buf, const char *text);
void sx_buf_putc(sx_buf *buf, char c);
void sx_buf_printf(sx_buf *buf, const char *format, ...) SX_PRINTF(2, 3);
/* Text from outside: each byte that is not part of well-formed UTF-8 becomes U+FFFD. */
void sx_buf_put_utf8(sx_buf *buf, const void *text, size_t size);
/* Text from outside for a terminal: control characters, which could command it, become '?', except
 * those in `keep` ("\n\t"). */
void sx_buf_put_visible(sx_buf *buf, const void *text, size_t size, const char *keep);
/* Text from outside for HTML's elements and quoted attributes. Control characters, which HTML
 * forbids, become U+FFFD. */
void sx_buf_put_html(sx_buf *buf, const char *text);
void sx_buf_put_size(sx_buf *buf, double bytes); /* "12.3 MiB" */
/* Appends `size` uninitialized bytes and returns a pointer to them; NULL after a failure. */
void *sx_buf_extend(sx_buf *buf, size_t size);

/* The contents as text, "" if nothing was appended; borrowed until the next append. */
const char *sx_buf_text(const sx_buf *buf);
/* Returns the bytes, which the caller frees with sx_free, and empties the buffer; NULL after a
 * failure. Their charge stays in the budget. */
char *sx_buf_take(sx_buf *buf, size_t *out_size);
SX_MUST_USE sx_status sx_buf_status(const sx_buf *buf);

/* ---- Bytes ---- */

static inline bool sx_bytes_is(sx_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

/* <0, 0, >0 if a is less than, equal to, greater than b: compares unsigned bytes; a prefix is less.
 */
static inline int sx_bytes_compare(sx_bytes a, sx_bytes b)
{
    const size_t common = a.size < b.size ? a.size : b.size;
    const int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

#endif
