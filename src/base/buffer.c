/* sx_buf grows by doubling, up to the maximum; the capacity includes the final NUL. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"

enum { FIRST_CAPACITY = 64 };
static const size_t default_max_bytes = (size_t)1 << 30;

static size_t max_bytes_of(const sx_buf *buf)
{
    return buf->max_bytes == 0 ? default_max_bytes : SX_MIN(buf->max_bytes, SIZE_MAX / 4);
}

void sx_buf_init(sx_buf *buf, size_t max_bytes)
{
    *buf = (sx_buf){.max_bytes = max_bytes};
}

void sx_buf_deinit(sx_buf *buf)
{
    sx_free(buf->data);
    sx_budget_release(buf->budget, buf->capacity);
    *buf = (sx_buf){.max_bytes = buf->max_bytes, .budget = buf->budget};
}

void sx_buf_reset(sx_buf *buf)
{
    buf->size = 0;
    buf->failed = 0;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

static bool fail(sx_buf *buf, sx_code code)
{
    buf->failed = code;
    return false;
}

/* Makes room for `size` more bytes and the NUL; on failure records the code and returns false. */
static bool reserve(sx_buf *buf, size_t size)
{
    size_t total;
    if (buf->failed != 0) {
        return false;
    }
    if (!sx_add_size(buf->size, size, &total) || total > max_bytes_of(buf)) {
        return fail(buf, SX_OUT_OF_RANGE);
    }
    if (total < buf->capacity) {
        return true;
    }
    size_t capacity = SX_MAX(SX_MAX(total + 1, buf->capacity * 2), (size_t)FIRST_CAPACITY);
    capacity = SX_MIN(capacity, max_bytes_of(buf) + 1);
    /* What is needed may fit where twice as much does not. Half of what is left, and half of that,
     * keep the number of copies logarithmic near the limit, too. */
    while (!sx_budget_charge(buf->budget, capacity - buf->capacity)) {
        if (capacity == total + 1) {
            return fail(buf, SX_RESOURCE_EXHAUSTED);
        }
        capacity = total + 1 + (capacity - total - 1) / 2;
    }
    char *data = sx_realloc(buf->data, capacity, 1);
    if (data == NULL) {
        sx_budget_release(buf->budget, capacity - buf->capacity);
        return fail(buf, SX_RESOURCE_EXHAUSTED);
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void *sx_buf_extend(sx_buf *buf, size_t size)
{
    if (!reserve(buf, size)) {
        return NULL;
    }
    char *at = buf->data + buf->size;
    buf->size += size;
    buf->data[buf->size] = '\0';
    return at;
}

void sx_buf_append(sx_buf *buf, const void *data, size_t size)
{
    void *at = sx_buf_extend(buf, size);
    if (at != NULL && size != 0) {
        memcpy(at, data, size);
    }
}

void sx_buf_puts(sx_buf *buf, const char *text)
{
    sx_buf_append(buf, text, strlen(text));
}

void sx_buf_putc(sx_buf *buf, char c)
{
    sx_buf_append(buf, &c, 1);
}

void sx_buf_printf(sx_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    /* Most texts fit into the room that is there; a longer one is formatted once more. */
    const size_t room = buf->failed == 0 && buf->data != NULL ? buf->capacity - buf->size : 0;
    int length = vsnprintf(room == 0 ? NULL : buf->data + buf->size, room, format, args);
    char *at = length < 0 ? NULL : sx_buf_extend(buf, (size_t)length);
    if (at != NULL && (size_t)length >= room) {
        vsnprintf(at, (size_t)length + 1, format, again);
    } else if (at == NULL) {
        buf->failed = buf->failed == 0 ? SX_INVALID_ARGUMENT : buf->failed;
        if (room != 0) {
            buf->data[buf->size] = '\0';
        }
    }
    va_end(again);
    va_end(args);
}

const char *sx_buf_text(const sx_buf *buf)
{
    return buf->data == NULL ? "" : buf->data;
}

char *sx_buf_take(sx_buf *buf, size_t *out_size)
{
    if (!reserve(buf, 0)) {
        return NULL;
    }
    char *data = buf->data;
    data[buf->size] = '\0';
    if (out_size != NULL) {
        *out_size = buf->size;
    }
    *buf = (sx_buf){.max_bytes = buf->max_bytes, .budget = buf->budget};
    return data;
}

sx_status sx_buf_status(const sx_buf *buf)
{
    switch (buf->failed) {
    case 0:
        return SX_OK;
    case SX_OUT_OF_RANGE:
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "buffer of %zu bytes would exceed its maximum of %zu bytes", buf->size,
                        max_bytes_of(buf));
    case SX_RESOURCE_EXHAUSTED:
        return sx_no_memory("for a buffer of more than %zu bytes", buf->size);
    default:
        return sx_error(SX_INVALID_ARGUMENT, "buffer: text could not be formatted");
    }
}

void sx_buf_put_utf8(sx_buf *buf, const void *text, size_t size)
{
    const char *at = text;
    while (size > 0) {
        size_t good = sx_utf8_prefix(at, size);
        sx_buf_append(buf, at, good);
        at += good;
        size -= good;
        if (size > 0) {
            sx_buf_puts(buf, "\xEF\xBF\xBD");
            at++;
            size--;
        }
    }
}

void sx_buf_put_visible(sx_buf *buf, const void *text, size_t size, const char *keep)
{
    const unsigned char *at = text;
    for (size_t i = 0; i < size; i++) {
        /* C0, DEL, and C1 as UTF-8 writes it: c2 80 to c2 9f */
        bool c1 = at[i] == 0xc2 && i + 1 < size && at[i + 1] >= 0x80 && at[i + 1] <= 0x9f;
        bool c0 = at[i] < 0x20 || at[i] == 0x7f;
        bool kept = c0 && at[i] != '\0' && strchr(keep, at[i]) != NULL;
        sx_buf_putc(buf, c1 || (c0 && !kept) ? '?' : (char)at[i]);
        i += c1;
    }
}

void sx_buf_put_html(sx_buf *buf, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            sx_buf_puts(buf, "&amp;");
            break;
        case '<':
            sx_buf_puts(buf, "&lt;");
            break;
        case '>':
            sx_buf_puts(buf, "&gt;");
            break;
        case '"':
            sx_buf_puts(buf, "&quot;");
            break;
        case '\'':
            sx_buf_puts(buf, "&#39;");
            break;
        default:
            if (((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t') || *text == 0x7f) {
                sx_buf_puts(buf, "\xEF\xBF\xBD");
            } else {
                sx_buf_putc(buf, *text);
            }
        }
    }
}

void sx_buf_put_size(sx_buf *buf, double bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    if (bytes == 1) {
        sx_buf_puts(buf, "1 byte");
        return;
    }
    while (bytes >= 1024 && unit + 1 < SX_COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    sx_buf_printf(buf, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}
