/* See csv_file.h. */
#include "data/csv_file.h"

#include <string.h>

#include "base/memory.h"
#include "data/text_file.h"

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
    sx_status status = sx_text_file_read(path, max_bytes, &f.data, &f.text);
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

int64_t sx_csv_file_line(const sx_csv_file *f, const void *at)
{
    return 1 + sx_count_lines(f->text.data, at);
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
        const int64_t line = at->line + sx_count_lines(begin, out_row->data);
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s: line %lld", f->path,
                                    (long long)line);
    }
    at->line += sx_count_lines(begin, begin + next);
    at->at += next;
    return status;
}
