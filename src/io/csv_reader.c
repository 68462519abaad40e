#include "io/csv_reader.h"

#include <string.h>

/* Moves *at behind the field that begins there; returns why it is none, or NULL. */
static const char *pass_field(const char *p, size_t size, size_t *at)
{
    size_t i = *at;
    if (i < size && p[i] == '"') {
        for (i++;; i++) {
            const char *quote = i < size ? memchr(p + i, '"', size - i) : NULL;
            if (quote == NULL) {
                return "a quote is not closed";
            }
            i = (size_t)(quote - p) + 1;
            if (i == size || p[i] != '"') {
                break;
            }
        }
        const bool cr = i < size && p[i] == '\r' && (i + 1 == size || p[i + 1] == '\n');
        if (i < size && p[i] != ',' && p[i] != '\n' && !cr) {
            return "text follows the closing quote";
        }
    }
    while (i < size && p[i] != ',' && p[i] != '\n') {
        i++;
    }
    *at = i;
    return NULL;
}

/* Blank: at most a carriage return. */
static size_t pass_blank_lines(const char *p, size_t size)
{
    size_t at = 0;
    while (at < size && (p[at] == '\n' || (p[at] == '\r' && at + 1 < size && p[at + 1] == '\n'))) {
        at += p[at] == '\n' ? 1 : 2;
    }
    return at;
}

sx_status sx_csv_row(sx_bytes text, sx_bytes *out_row, int64_t *out_fields, size_t *out_next)
{
    const char *p = text.data;
    const size_t begin = pass_blank_lines(p, text.size);
    size_t end = begin;
    *out_fields = 0;
    for (bool more = begin < text.size; more;) {
        const char *wrong = pass_field(p, text.size, &end);
        if (wrong == NULL && end - begin > SX_CSV_MAX_ROW_BYTES) {
            wrong = "the row has more than 16 MiB; a quote may be missing";
        }
        ++*out_fields;
        if (wrong != NULL) {
            const char *line = memchr(p + begin, '\n', text.size - begin);
            end = line != NULL ? (size_t)(line - p) : text.size;
            *out_row = (sx_bytes){p + begin, end - begin};
            *out_next = line != NULL ? end + 1 : end;
            return sx_error(SX_INVALID_ARGUMENT, "field %lld: %s", (long long)*out_fields, wrong);
        }
        more = end < text.size && p[end] == ',';
        end += more;
    }
    *out_next = end < text.size ? end + 1 : end;
    if (end > begin && p[end - 1] == '\r') {
        end--;
    }
    *out_row = (sx_bytes){begin < text.size ? p + begin : NULL, end - begin};
    return SX_OK;
}

bool sx_csv_field_next(sx_bytes row, size_t *at, sx_csv_field *out_field)
{
    const char *p = row.data;
    const size_t begin = *at;
    size_t end = begin;
    if (begin > row.size) {
        return false;
    }
    (void)pass_field(p, row.size, &end); /* the row has been checked */
    *at = end + 1;
    *out_field = (sx_csv_field){.text = {p + begin, end - begin}};
    if (end > begin && p[begin] == '"') {
        out_field->quoted = true;
        out_field->text = (sx_bytes){p + begin + 1, end - begin - 2};
        out_field->doubled = memchr(p + begin + 1, '"', end - begin - 2) != NULL;
    }
    return true;
}

size_t sx_csv_field_copy(const sx_csv_field *field, char *out)
{
    const char *p = field->text.data;
    size_t n = 0;
    for (size_t i = 0; i < field->text.size; i++) {
        out[n++] = p[i];
        i += field->doubled && p[i] == '"';
    }
    return n;
}
