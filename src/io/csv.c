#include "io/csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/shortest.h"

static void separate(sx_buf *out)
{
    if (out->size > 0 && out->data[out->size - 1] != '\n') {
        sx_buf_putc(out, ',');
    }
}

static bool needs_quotes(sx_bytes text)
{
    const char *c = text.data;
    if (text.size == 0 || c[0] == ' ' || c[text.size - 1] == ' ') {
        return true; /* otherwise a row with a single empty field would be an empty line */
    }
    for (size_t i = 0; i < text.size; i++) {
        if (c[i] == ',' || c[i] == '"' || c[i] == '\n' || c[i] == '\r') {
            return true;
        }
    }
    return false;
}

void sx_csv_bytes(sx_buf *out, sx_bytes text)
{
    separate(out);
    if (!needs_quotes(text)) {
        sx_buf_append(out, text.data, text.size);
        return;
    }
    sx_buf_putc(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        char c = ((const char *)text.data)[i];
        if (c == '"') {
            sx_buf_putc(out, '"');
        }
        sx_buf_putc(out, c);
    }
    sx_buf_putc(out, '"');
}

void sx_csv_text(sx_buf *out, const char *text)
{
    sx_csv_bytes(out, (sx_bytes){text, strlen(text)});
}

void sx_csv_int(sx_buf *out, int64_t value)
{
    separate(out);
    sx_buf_printf(out, "%" PRId64, value);
}

void sx_csv_float(sx_buf *out, float value)
{
    char text[SX_NUMBER_TEXT];
    char *end = sx_print_f32(text, value);
    separate(out);
    sx_buf_append(out, text, (size_t)(end - text));
}

void sx_csv_end(sx_buf *out)
{
    sx_buf_putc(out, '\n');
}
