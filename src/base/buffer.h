/* sx_buf: bytes that grow, up to a stated maximum; also the string builder.
 *
 * Invariants: data[0 .. size) is valid, data[size] is a NUL (not counted), size <= max_bytes.
 * The first failure (memory, maximum) is kept: later appends are no-ops, and sx_buf_status() tells.
 * So a printer appends freely and asks once at the end. */
#ifndef SX_BASE_BUFFER_H
#define SX_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/budget.h"

typedef struct sx_buf {
    char *data; /* NULL until the first append */
    size_t size;
    size_t capacity;
    size_t max_bytes;  /* 0 = 1 GiB */
    int failed;        /* an sx_code, 0 while all is well */
    sx_budget *budget; /* charged for `capacity` bytes; NULL = none */
} sx_buf;

void sx_buf_init(sx_buf *buf, size_t max_bytes);
void sx_buf_deinit(sx_buf *buf);
void sx_buf_reset(sx_buf *buf); /* empty again, memory kept, failure forgotten */

void sx_buf_append(sx_buf *buf, const void *data, size_t size);
void sx_buf_puts(sx_buf *buf, const char *text);
void sx_buf_putc(sx_buf *buf, char c);
void sx_buf_printf(sx_buf *buf, const char *format, ...) SX_PRINTF(2, 3);
void sx_buf_put_size(sx_buf *buf, double bytes); /* "12.3 MiB" */
/* Room for `size` more bytes, counted in at once: the caller fills them. NULL after a failure. */
void *sx_buf_extend(sx_buf *buf, size_t size);

/* The text so far, "" if nothing was appended; borrowed until the next append. */
const char *sx_buf_text(const sx_buf *buf);
/* Hands the bytes over (free with sx_free) and empties the buffer; NULL after a failure. What they
 * were charged stays with the budget. */
char *sx_buf_take(sx_buf *buf, size_t *out_size);
SX_MUST_USE sx_status sx_buf_status(const sx_buf *buf);

#endif
