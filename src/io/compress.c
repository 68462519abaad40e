#define ZLIB_CONST
#include "io/compress.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/memory.h"

enum {
    OUT_BYTES = 1 << 16, /* output buffer of the compressor */
    IN_BYTES = 1 << 16,  /* read from the source at a time */
    MEM_LEVEL = 9,
};

static const struct {
    sx_codec codec;
    const char *name;
    int window_bits;
} codecs[] = {
    {SX_CODEC_NONE, "", 0},
    {SX_CODEC_NONE, "none", 0},
    {SX_CODEC_ZLIB, "ZLIB", 15},
    {SX_CODEC_GZIP, "GZIP", 15 + 16},
};

const char *sx_codec_name(sx_codec codec)
{
    for (size_t i = 0; i < SX_COUNT(codecs); i++) {
        if (codecs[i].codec == codec) {
            return codecs[i].name;
        }
    }
    return "";
}

bool sx_codec_parse(const char *name, sx_codec *out_codec)
{
    for (size_t i = 0; i < SX_COUNT(codecs); i++) {
        if (strcasecmp(codecs[i].name, name) == 0) {
            *out_codec = codecs[i].codec;
            return true;
        }
    }
    return false;
}

static int window_bits(sx_codec codec)
{
    for (size_t i = 0; i < SX_COUNT(codecs); i++) {
        if (codecs[i].codec == codec) {
            return codecs[i].window_bits;
        }
    }
    return 0;
}

sx_codec sx_codec_guess(sx_bytes head)
{
    const uint8_t *b = head.data;
    if (head.size >= 3 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8) {
        return SX_CODEC_GZIP;
    }
    bool zlib = head.size >= 2 && (b[0] & 15) == 8 && (b[0] >> 4) <= 7 && (b[1] & 0x20) == 0 &&
                (b[0] * 256 + b[1]) % 31 == 0;
    return zlib ? SX_CODEC_ZLIB : SX_CODEC_NONE;
}

/* ---- Inflate ---- */

struct sx_inflate {
    z_stream z;
    sx_codec codec;
    sx_window own; /* the source if it is in memory */
    sx_window *source;
    uint64_t taken; /* bytes of the source passed to zlib */
    uint64_t produced, max_bytes;
    bool ended;
    char *name;
};

sx_status sx_inflate_create(sx_codec codec, sx_bytes source, uint64_t max_bytes, const char *name,
                            sx_inflate **out_stream)
{
    SX_TRY(sx_inflate_create_over(codec, NULL, max_bytes, name, out_stream));
    sx_window_init_bytes(&(*out_stream)->own, source);
    (*out_stream)->source = &(*out_stream)->own;
    return SX_OK;
}

sx_status sx_inflate_create_over(sx_codec codec, sx_window *source, uint64_t max_bytes,
                                 const char *name, sx_inflate **out_stream)
{
    if (window_bits(codec) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot decompress %s: no compression format given",
                        name);
    }
    sx_inflate *stream = sx_alloc(1, sizeof *stream);
    char *copy = sx_strdup(name);
    if (stream == NULL || copy == NULL || inflateInit2(&stream->z, window_bits(codec)) != Z_OK) {
        sx_free(stream);
        sx_free(copy);
        return sx_no_memory("decompressing %s", name);
    }
    stream->codec = codec;
    stream->source = source;
    stream->max_bytes = max_bytes;
    stream->name = copy;
    *out_stream = stream;
    return SX_OK;
}

void sx_inflate_destroy(sx_inflate *stream)
{
    if (stream != NULL) {
        inflateEnd(&stream->z);
        sx_free(stream->name);
        sx_free(stream);
    }
}

/* Passes the next piece of the source to zlib. */
static sx_status refill(sx_inflate *s)
{
    size_t n = (size_t)SX_MIN(s->source->size - s->taken, (uint64_t)IN_BYTES);
    if (s->z.avail_in == 0 && n > 0) {
        const void *piece;
        SX_TRY(sx_window_look(s->source, s->taken, n, &piece));
        s->z.next_in = piece;
        s->z.avail_in = (uInt)n;
        s->taken += n;
    }
    return SX_OK;
}

/* After the end of a zlib stream: another gzip member, the end of the source, or garbage. */
static sx_status end_of_member(sx_inflate *s)
{
    SX_TRY(refill(s));
    if (s->z.avail_in == 0) {
        s->ended = true;
        return SX_OK;
    }
    if (s->codec == SX_CODEC_GZIP && *s->z.next_in == 0x1f && inflateReset(&s->z) == Z_OK) {
        return SX_OK;
    }
    return sx_error(SX_DATA_LOSS, "%s: %" PRIu64 " unexpected bytes after the end of the %s stream",
                    s->name, s->source->size - s->taken + s->z.avail_in, sx_codec_name(s->codec));
}

static sx_status inflate_error(const sx_inflate *s, int rc)
{
    uint64_t at = s->taken - s->z.avail_in;
    if (rc == Z_MEM_ERROR) {
        return sx_no_memory("decompressing %s", s->name);
    }
    if (rc == Z_BUF_ERROR || rc == Z_OK) {
        return sx_error(SX_DATA_LOSS, "%s: the %s stream is cut off at byte %" PRIu64, s->name,
                        sx_codec_name(s->codec), at);
    }
    return sx_error(SX_DATA_LOSS, "%s: corrupt %s stream near byte %" PRIu64 ": %s", s->name,
                    sx_codec_name(s->codec), at, s->z.msg != NULL ? s->z.msg : "bad data");
}

/* Calls zlib once to fill up to `room` bytes; *out_n is the number of bytes written. */
static sx_status inflate_some(sx_inflate *s, void *buffer, size_t room, size_t *out_n)
{
    *out_n = 0;
    SX_TRY(refill(s));
    uInt want = (uInt)SX_MIN(room, (size_t)1 << 30);
    s->z.next_out = buffer;
    s->z.avail_out = want;
    int rc = inflate(&s->z, Z_NO_FLUSH);
    size_t n = want - s->z.avail_out;
    *out_n = n;
    s->produced += n;
    if (s->produced > s->max_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s decompresses to more than %" PRIu64 " bytes",
                        s->name, s->max_bytes);
    }
    if (rc == Z_STREAM_END) {
        return end_of_member(s);
    }
    bool starved = s->z.avail_in == 0 && s->taken == s->source->size && s->z.avail_out > 0;
    if ((rc != Z_OK && rc != Z_BUF_ERROR) || starved) {
        return inflate_error(s, rc);
    }
    return SX_OK;
}

sx_status sx_inflate_read(sx_inflate *stream, void *buffer, size_t capacity, size_t *out_size)
{
    size_t total = 0;
    sx_status status = SX_OK;
    while (total < capacity && !stream->ended && status == SX_OK) {
        size_t n = 0;
        status = inflate_some(stream, (char *)buffer + total, capacity - total, &n);
        total += n;
    }
    *out_size = total;
    return status;
}

sx_status sx_inflate_rest(sx_inflate *stream, sx_buf *out)
{
    sx_status status = SX_OK;
    /* One byte of room beyond the limit is enough to see that there is more. */
    size_t max_bytes = (size_t)SX_MIN(stream->max_bytes, (uint64_t)SIZE_MAX - 1);
    size_t guess = 4 * (size_t)SX_MIN(stream->source->size, (uint64_t)1 << 20);
    size_t step = SX_MAX((size_t)OUT_BYTES, guess), total = 0, piece = 0, n = 0;
    while (n == piece && status == SX_OK) {
        size_t before = out->size;
        piece = SX_MIN(step, max_bytes - total + 1);
        char *space = sx_buf_extend(out, piece);
        if (space == NULL) {
            status = sx_buf_status(out);
            break;
        }
        status = sx_inflate_read(stream, space, piece, &n);
        total += n;
        out->size = before + n;
        out->data[out->size] = '\0';
    }
    return status;
}

sx_status sx_inflate_all(sx_codec codec, sx_bytes source, size_t max_bytes, const char *name,
                         sx_buf *out)
{
    if (codec == SX_CODEC_NONE) {
        if (source.size > max_bytes) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "%s is larger than %zu bytes", name, max_bytes);
        }
        sx_buf_append(out, source.data, source.size);
        return sx_buf_status(out);
    }
    sx_inflate *stream = NULL;
    SX_TRY(sx_inflate_create(codec, source, max_bytes, name, &stream));
    sx_status status = sx_inflate_rest(stream, out);
    sx_inflate_destroy(stream);
    return status;
}

/* ---- Deflate ---- */

struct sx_deflate {
    z_stream z;
    sx_write_fn *sink;
    void *user;
    bool finished;
    Bytef out[OUT_BYTES];
};

sx_status sx_deflate_create(sx_codec codec, int level, sx_write_fn *sink, void *user,
                            sx_deflate **out_stream)
{
    if (window_bits(codec) == 0 || level < -1 || level > 9) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "cannot compress: need GZIP or ZLIB and a level of -1..9, got '%s' and %d",
                        sx_codec_name(codec), level);
    }
    sx_deflate *stream = sx_alloc(1, sizeof *stream);
    if (stream == NULL || deflateInit2(&stream->z, level, Z_DEFLATED, window_bits(codec), MEM_LEVEL,
                                       Z_DEFAULT_STRATEGY) != Z_OK) {
        sx_free(stream);
        return sx_no_memory("for a compressor");
    }
    stream->sink = sink;
    stream->user = user;
    *out_stream = stream;
    return SX_OK;
}

void sx_deflate_destroy(sx_deflate *stream)
{
    if (stream != NULL) {
        deflateEnd(&stream->z);
        sx_free(stream);
    }
}

/* Runs zlib until it has consumed its input and written all output for `mode`. */
static sx_status deflate_run(sx_deflate *s, int mode)
{
    do {
        s->z.next_out = s->out;
        s->z.avail_out = OUT_BYTES;
        if (deflate(&s->z, mode) == Z_STREAM_ERROR) {
            return sx_error(SX_INTERNAL, "invalid compressor state");
        }
        SX_TRY(s->sink(s->user, s->out, OUT_BYTES - s->z.avail_out));
    } while (s->z.avail_out == 0);
    return SX_OK;
}

sx_status sx_deflate_write(void *deflate, const void *data, size_t size)
{
    sx_deflate *s = deflate;
    if (s->finished) {
        return sx_error(SX_FAILED_PRECONDITION, "cannot write to a finished compressor");
    }
    const Bytef *bytes = data;
    while (size > 0) {
        size_t n = SX_MIN(size, (size_t)1 << 30);
        s->z.next_in = bytes;
        s->z.avail_in = (uInt)n;
        SX_TRY(deflate_run(s, Z_NO_FLUSH));
        bytes += n;
        size -= n;
    }
    return SX_OK;
}

sx_status sx_deflate_finish(sx_deflate *stream)
{
    if (stream->finished) {
        return SX_OK;
    }
    stream->finished = true;
    stream->z.next_in = NULL;
    stream->z.avail_in = 0;
    return deflate_run(stream, Z_FINISH);
}

sx_status sx_write_to_buf(void *buf, const void *data, size_t size)
{
    sx_buf_append(buf, data, size);
    return sx_buf_status(buf);
}
