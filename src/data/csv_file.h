/* A CSV file with a header: the names of its columns in the first row. In memory, decompressed. */
#ifndef SX_DATA_CSV_FILE_H
#define SX_DATA_CSV_FILE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "io/csv_reader.h"

enum { SX_CSV_MAX_COLUMNS = 1 << 16 };

typedef struct sx_csv_file {
    const char *path;         /* borrowed */
    char *data;               /* owned */
    sx_bytes text;            /* of it: without a byte order mark */
    const char *const *names; /* [n_names], in the arena */
    int64_t n_names;
    size_t first; /* offset in `text` of what follows the header */
} sx_csv_file;

/* Reads a file, gzip or zlib or not, of at most max_bytes. Errors: INVALID_ARGUMENT: no header, a
 * column without a name; RESOURCE_EXHAUSTED; DATA_LOSS. A name may occur twice. */
SX_MUST_USE sx_status sx_csv_file_read(const char *path, size_t max_bytes, sx_arena *arena,
                                       sx_csv_file *out_file);
void sx_csv_file_deinit(sx_csv_file *file); /* zero is fine */

/* A place between rows. */
typedef struct sx_csv_place {
    size_t at;    /* offset in the text */
    int64_t line; /* that begins there, from 1 */
} sx_csv_place;

/* Before the first row. */
sx_csv_place sx_csv_file_begin(const sx_csv_file *file);
/* The row at a place, which is moved behind it; empty at the end. INVALID_ARGUMENT, naming file and
 * line: as sx_csv_row(), or another number of fields than the header's; *at is then the next line.
 */
SX_MUST_USE sx_status sx_csv_file_row(const sx_csv_file *file, sx_csv_place *at, sx_bytes *out_row);
/* The line, from 1, that holds the text's byte `at`. */
int64_t sx_csv_file_line(const sx_csv_file *file, const void *at);

#endif
