/* Writes comma-separated values (RFC 4180): a field with a comma, quote, line break, or leading or
 * trailing space is quoted, and its quotes are doubled. Rows end with a line feed.
 *
 *   sx_csv_text(&buf, "id"); sx_csv_float(&buf, 0.25f); sx_csv_end(&buf);        id,0.25 */
#ifndef SX_IO_CSV_H
#define SX_IO_CSV_H

#include <sextant/types.h>

#include "base/buffer.h"

/* Each appends a field, preceded by a comma unless it is the first of its row. */
void sx_csv_text(sx_buf *out, const char *text);
void sx_csv_bytes(sx_buf *out, sx_bytes text);
void sx_csv_int(sx_buf *out, int64_t value);
/* Prints the shortest text that reads back as the same float. */
void sx_csv_float(sx_buf *out, float value);
void sx_csv_end(sx_buf *out);

#endif
