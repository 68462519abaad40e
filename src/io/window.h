/* Bytes of a file, or of memory, looked at piece by piece.
 *
 *   file    [ ............|start ....... start + filled|................ ]
 *                          ^ what the buffer holds; look() moves it
 *
 * Files are read with pread() rather than mapped: where another process truncates one, a map raises
 * SIGBUS, and this returns DATA_LOSS. Looks that go forward read larger and larger pieces ahead,
 * others 4 KiB, so that both a pass over a file and hops from header to header are cheap.
 *
 * Life cycle: init (the file or the bytes outlive the window), look..., deinit. One thread at a
 * time. {0} is an empty window. */
#ifndef SX_IO_WINDOW_H
#define SX_IO_WINDOW_H

#include <stdint.h>

#include "io/file.h"

typedef struct sx_window {
    uint64_t size;       /* of the whole, when it was opened */
    const sx_file *file; /* NULL: `bytes` are all there is */
    sx_bytes bytes;
    uint8_t *buffer; /* [capacity]; the window's own */
    size_t capacity, filled;
    uint64_t start;
    size_t ahead; /* bytes that the last look read */
} sx_window;

void sx_window_init(sx_window *window, const sx_file *file);
void sx_window_init_bytes(sx_window *window, sx_bytes bytes);
void sx_window_deinit(sx_window *window);

/* Points *out at the bytes [offset, offset + size), which lie inside the window's size; valid until
 * the next look. The buffer grows to `size`: the caller bounds it. DATA_LOSS: the file has become
 * shorter. */
SX_MUST_USE sx_status sx_window_look(sx_window *window, uint64_t offset, size_t size,
                                     const void **out);

/* The size and CRC-32C of a file. */
SX_MUST_USE sx_status sx_file_crc32c(const char *path, uint64_t *out_size, uint32_t *out_crc);

#endif
