/* Reads comma-separated values (RFC 4180) in memory. Rows end with a line feed, which may follow a
 * carriage return, or with the text; blank lines are no rows. A field that begins with a quote ends
 * with one, may hold commas and line breaks, and has its quotes doubled; in other fields a quote is
 * a character like any other. */
#ifndef SX_IO_CSV_READER_H
#define SX_IO_CSV_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

enum { SX_CSV_MAX_ROW_BYTES = 1 << 24 };

/* Sets *out_row to the first row of `text` that is not blank, without its end, and *out_next to the
 * offset behind it; *out_row is empty at the end of the text. INVALID_ARGUMENT: a quote that is not
 * closed, text behind a closing one, a row of more than 16 MiB; then *out_row is the first line of
 * the row and *out_next the offset of the next line. */
SX_MUST_USE sx_status sx_csv_row(sx_bytes text, sx_bytes *out_row, int64_t *out_fields,
                                 size_t *out_next);

typedef struct sx_csv_field {
    sx_bytes text;        /* between the quotes, if it is quoted */
    bool quoted, doubled; /* doubled: it holds quotes, still doubled */
} sx_csv_field;

/* The field of a row from sx_csv_row() at *at, which begins at 0 and is moved to the next one.
 * False behind the last field. */
bool sx_csv_field_next(sx_bytes row, size_t *at, sx_csv_field *out_field);
/* Writes the field's text, quotes no longer doubled: at most text.size bytes; returns their number.
 */
size_t sx_csv_field_copy(const sx_csv_field *field, char *out);

#endif
