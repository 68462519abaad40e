/* Streaming gzip and zlib, with a limit on the output: deflate expands up to 1028:1, so every
 * reader of untrusted bytes must state its maximum. */
#ifndef SX_IO_COMPRESS_H
#define SX_IO_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/buffer.h"
#include "io/commit.h"
#include "io/window.h"

typedef enum sx_codec {
    SX_CODEC_AUTO = 0, /* for readers: detect from the first bytes; for writers: none */
    SX_CODEC_NONE,
    SX_CODEC_ZLIB, /* RFC 1950, window bits 15 */
    SX_CODEC_GZIP, /* RFC 1952; several members are read as one stream */
} sx_codec;

const char *sx_codec_name(sx_codec codec); /* "GZIP", "ZLIB", "" for none (TensorFlow's names) */
bool sx_codec_parse(const char *name, sx_codec *out_codec); /* any case; "none" and "" too */

/* GZIP if the bytes start with its magic, ZLIB if they start with a valid header (method 8, window
 * <= 32 KiB, check bits, no preset dictionary), otherwise NONE. Plain bytes can look like a zlib
 * header. */
sx_codec sx_codec_guess(sx_bytes head);

/* ---- Inflate ---- */

/* Decompresses bytes in memory or of a file, piece by piece. */
typedef struct sx_inflate sx_inflate;

/* `codec` is GZIP or ZLIB; `source` must outlive the stream. Output beyond max_bytes is
 * RESOURCE_EXHAUSTED. `name` (copied) is used in messages. */
SX_MUST_USE sx_status sx_inflate_create(sx_codec codec, sx_bytes source, uint64_t max_bytes,
                                        const char *name, sx_inflate **out_stream);
/* The same over a window, which must not be used otherwise meanwhile. */
SX_MUST_USE sx_status sx_inflate_create_over(sx_codec codec, sx_window *source, uint64_t max_bytes,
                                             const char *name, sx_inflate **out_stream);
void sx_inflate_destroy(sx_inflate *stream); /* NULL is fine */

/* Fills `buffer`; *out_size < capacity only at the end of the stream. On failure *out_size is the
 * number of bytes decompressed before the error. DATA_LOSS: a corrupt or truncated stream, or bytes
 * after its end. */
SX_MUST_USE sx_status sx_inflate_read(sx_inflate *stream, void *buffer, size_t capacity,
                                      size_t *out_size);

/* Decompresses the rest of the stream and appends it to `out`. */
SX_MUST_USE sx_status sx_inflate_rest(sx_inflate *stream, sx_buf *out);

/* Appends all of `source`, decompressed, to `out`: at most max_bytes. NONE copies it. */
SX_MUST_USE sx_status sx_inflate_all(sx_codec codec, sx_bytes source, size_t max_bytes,
                                     const char *name, sx_buf *out);

/* ---- Deflate ---- */

/* Compresses bytes and writes them to a sink. */
typedef struct sx_deflate sx_deflate;

/* `level` 0..9, -1 = zlib's default. The output is deterministic: the gzip header has no time
 * stamp. */
SX_MUST_USE sx_status sx_deflate_create(sx_codec codec, int level, sx_write_fn *sink, void *user,
                                        sx_deflate **out_stream);
void sx_deflate_destroy(sx_deflate *stream); /* NULL is fine */
/* An sx_write_fn. */
SX_MUST_USE sx_status sx_deflate_write(void *deflate, const void *data, size_t size);
/* Ends the stream; nothing may be written after it. */
SX_MUST_USE sx_status sx_deflate_finish(sx_deflate *stream);

/* A sink that appends to an sx_buf. */
SX_MUST_USE sx_status sx_write_to_buf(void *buf, const void *data, size_t size);

#endif
