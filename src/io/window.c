#include "io/window.h"

#include "base/checked.h"
#include "base/memory.h"
#include "io/crc32c.h"

enum { LEAST_BYTES = 1 << 12, MOST_BYTES = 1 << 18 };

void sx_window_init(sx_window *window, const sx_file *file)
{
    *window = (sx_window){.size = sx_file_size(file), .file = file};
}

void sx_window_init_bytes(sx_window *window, sx_bytes bytes)
{
    *window = (sx_window){.size = bytes.size, .bytes = bytes};
}

void sx_window_deinit(sx_window *window)
{
    sx_free(window->buffer);
    *window = (sx_window){0};
}

/* Reads [offset, offset + n), at least `size` bytes of it, into the buffer. */
static sx_status fill(sx_window *w, uint64_t offset, size_t size)
{
    bool forward = offset >= w->start && offset - w->start <= w->filled + w->ahead;
    size_t ahead = forward ? SX_MIN(2 * w->ahead, (size_t)MOST_BYTES) : 0;
    ahead = SX_MAX(ahead, (size_t)LEAST_BYTES);
    size_t n = (size_t)SX_MIN((uint64_t)SX_MAX(size, ahead), w->size - offset);
    if (n > w->capacity) {
        sx_free(w->buffer);
        w->filled = w->capacity = 0;
        w->buffer = sx_alloc(n, 1);
        if (w->buffer == NULL) {
            return sx_no_memory("reading %zu bytes of %s", n, sx_file_path(w->file));
        }
        w->capacity = n;
    }
    w->filled = 0;
    SX_TRY(sx_file_read_at(w->file, offset, w->buffer, n));
    w->start = offset;
    w->filled = n;
    w->ahead = ahead;
    return SX_OK;
}

sx_status sx_window_look(sx_window *w, uint64_t offset, size_t size, const void **out)
{
    if (w->file == NULL) {
        *out = w->bytes.data != NULL ? (const char *)w->bytes.data + offset : "";
        return SX_OK;
    }
    if (offset < w->start || offset - w->start > w->filled ||
        size > w->filled - (size_t)(offset - w->start)) {
        SX_TRY(fill(w, offset, size));
    }
    *out = w->buffer != NULL ? w->buffer + (offset - w->start) : (const uint8_t *)"";
    return SX_OK;
}

sx_status sx_file_crc32c(const char *path, uint64_t *out_size, uint32_t *out_crc)
{
    sx_file *file;
    sx_window window;
    uint32_t crc = 0;
    SX_TRY(sx_file_open(path, &file));
    sx_window_init(&window, file);
    sx_status status = SX_OK;
    for (uint64_t offset = 0; offset < window.size && status == SX_OK;) {
        size_t n = (size_t)SX_MIN(window.size - offset, (uint64_t)MOST_BYTES);
        const void *piece = NULL;
        status = sx_window_look(&window, offset, n, &piece);
        crc = status == SX_OK ? sx_crc32c(crc, piece, n) : crc;
        offset += n;
    }
    *out_size = window.size;
    *out_crc = crc;
    sx_window_deinit(&window);
    sx_file_close(file);
    return status;
}
