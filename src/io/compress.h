/* gzip and zlib, streaming, with a cap on what comes out: deflate reaches 1028:1, so every reader
 * of foreign bytes states how much it is willing to take. zlib underneath. */
#ifndef SX_IO_COMPRESS_H
#define SX_IO_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

#include "base/buffer.h"
#include "io/commit.h"

typedef enum sx_codec {
    SX_CODEC_AUTO = 0, /* readers: look at the first bytes; writers: none */
    SX_CODEC_NONE,
    SX_CODEC_ZLIB, /* RFC 1950, window bits 15 */
    SX_CODEC_GZIP, /* RFC 1952; several members follow one another */
} sx_codec;

const char *sx_codec_name(sx_codec codec); /* "GZIP", "ZLIB", "" for none (TensorFlow's names) */
bool sx_codec_parse(const char *name, sx_codec *out_codec); /* any case; "none" and "" too */

/* GZIP by its magic, ZLIB by a valid header pair (method 8, window <= 32 KiB, check, no preset
 * dictionary), else NONE. A guess: plain bytes may look like a zlib header. */
sx_codec sx_codec_guess(sx_bytes head);

/* ---- inflate ------------------------------------------------------------------------------ */

/* Decompresses bytes in memory (a mapped file), piece by piece. */
typedef struct sx_inflate sx_inflate;

/* `codec` is GZIP or ZLIB; `source` stays valid while the stream lives. More than max_bytes out is
 * RESOURCE_EXHAUSTED. `name` (copied) appears in messages. */
SX_MUST_USE sx_status sx_inflate_create(sx_codec codec, sx_bytes source, uint64_t max_bytes,
                                        const char *name, sx_inflate **out_stream);
void sx_inflate_destroy(sx_inflate *stream); /* NULL is fine */

/* Fills `buffer` as far as the stream goes: *out_size < capacity only at its end. DATA_LOSS for
 * corrupt or truncated streams and for bytes after their end; what was decompressed before the
 * error is lost unless `out_size` is looked at: it is set even on failure, to the valid bytes. */
SX_MUST_USE sx_status sx_inflate_read(sx_inflate *stream, void *buffer, size_t capacity,
                                      size_t *out_size);

/* The whole of `source` appended to `out`, at most max_bytes of it; NONE copies. */
SX_MUST_USE sx_status sx_inflate_all(sx_codec codec, sx_bytes source, size_t max_bytes,
                                     const char *name, sx_buf *out);

/* ---- deflate ------------------------------------------------------------------------------ */

/* Compresses into a sink. */
typedef struct sx_deflate sx_deflate;

/* `level` 0..9, -1 = zlib's default; memLevel 9 and no time stamp in the gzip header: the same
 * bytes in give the same bytes out. */
SX_MUST_USE sx_status sx_deflate_create(sx_codec codec, int level, sx_write_fn *sink, void *user,
                                        sx_deflate **out_stream);
void sx_deflate_destroy(sx_deflate *stream); /* NULL is fine */
/* The signature of sx_write_fn. */
SX_MUST_USE sx_status sx_deflate_write(void *deflate, const void *data, size_t size);
/* Ends the stream; nothing may be written after it. */
SX_MUST_USE sx_status sx_deflate_finish(sx_deflate *stream);

/* A sink that appends to an sx_buf. */
SX_MUST_USE sx_status sx_write_to_buf(void *buf, const void *data, size_t size);

#endif
