/* See csv_file.h. */
#include "data/csv_file.h"

#include <string.h>

#include "base/memory.h"
#include "io/compress.h"
#include "io/file.h"

static sx_status load(const char *path, size_t max_bytes, sx_csv_file *f)
{
    size_t size = 0;
    SX_TRY(sx_file_read(path, max_bytes, &f->data, &size));
    const sx_codec codec = sx_codec_guess((sx_bytes){f->data, size});
    if (codec == SX_CODEC_GZIP || codec == SX_CODEC_ZLIB) {
        sx_buf plain;
        sx_buf_init(&plain, max_bytes);
        sx_status status =
            sx_inflate_all(codec, (sx_bytes){f->data, size}, max_bytes, path, &plain);
        if (status == SX_OK) {
            sx_free(f->data);
            f->data = sx_buf_take(&plain, &size);
        }
        sx_buf_deinit(&plain);
        SX_TRY(status);
    }
    const bool marked = size >= 3 && memcmp(f->data, "\xef\xbb\xbf", 3) == 0;
    f->text = (sx_bytes){f->data + (marked ? 3 : 0), size - (marked ? 3 : 0)};
    return SX_OK;
}

static sx_status read_header(sx_csv_file *f, sx_arena *arena)
{
    sx_bytes row;
    sx_csv_field field;
    size_t at = 0;
    int64_t n = 0, k = 0;
    SX_TRY(sx_csv_row(f->text, &row, &n, &f->first), "%s: line 1", f->path);
    if (row.size == 0 || n > SX_CSV_MAX_COLUMNS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: expected the names of 1 to %d columns in the first row", f->path,
                        (int)SX_CSV_MAX_COLUMNS);
    }
    const char **names = sx_arena_array(arena, n, const char *);
    if (names == NULL) {
        return sx_no_memory("reading %s", f->path);
    }
    while (sx_csv_field_next(row, &at, &field)) {
        char *name = sx_arena_alloc(arena, field.text.size + 1, 1);
        if (name == NULL) {
            return sx_no_memory("reading %s", f->path);
        }
        name[sx_csv_field_copy(&field, name)] = '\0';
        if (name[0] == '\0') {
            return sx_error(SX_INVALID_ARGUMENT, "%s: line 1: column %lld has no name", f->path,
                            (long long)k + 1);
        }
        names[k++] = name;
    }
    f->names = names;
    f->n_names = n;
    return SX_OK;
}

sx_status sx_csv_file_read(const char *path, size_t max_bytes, sx_arena *arena,
                           sx_csv_file *out_file)
{
    sx_csv_file f = {.path = path};
    sx_status status = load(path, max_bytes, &f);
    if (status == SX_OK) {
        status = read_header(&f, arena);
    }
    if (status != SX_OK) {
        sx_csv_file_deinit(&f);
        return status;
    }
    *out_file = f;
    return SX_OK;
}

void sx_csv_file_deinit(sx_csv_file *file)
{
    sx_free(file->data);
    *file = (sx_csv_file){0};
}

static int64_t count_lines(const char *p, const char *end)
{
    int64_t lines = 0;
    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        lines++;
        p++;
    }
    return lines;
}

int64_t sx_csv_file_line(const sx_csv_file *f, const void *at)
{
    return 1 + count_lines(f->text.data, at);
}

sx_csv_place sx_csv_file_begin(const sx_csv_file *f)
{
    return (sx_csv_place){f->first, sx_csv_file_line(f, (const char *)f->text.data + f->first)};
}

sx_status sx_csv_file_row(const sx_csv_file *f, sx_csv_place *at, sx_bytes *out_row)
{
    const char *begin = (const char *)f->text.data + at->at;
    int64_t fields = 0;
    size_t next = 0;
    sx_status status =
        sx_csv_row((sx_bytes){begin, f->text.size - at->at}, out_row, &fields, &next);
    if (status == SX_OK && out_row->size > 0 && fields != f->n_names) {
        status = sx_error(SX_INVALID_ARGUMENT, "%lld field%s, expected %lld, as in the header",
                          (long long)fields, fields == 1 ? "" : "s", (long long)f->n_names);
    }
    if (status != SX_OK) {
        const int64_t line = at->line + count_lines(begin, out_row->data);
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s: line %lld", f->path,
                                    (long long)line);
    }
    at->line += count_lines(begin, begin + next);
    at->at += next;
    return status;
}
