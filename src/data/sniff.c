#include "data/sniff.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "image/format.h"
#include "io/compress.h"
#include "io/file.h"
#include "io/tfrecord_frame.h"

enum { HEAD_BYTES = 4096, INSIDE_BYTES = 512 };

/* 00 00, type, rank, then rank sizes that are not all zero bytes. */
static bool is_idx(const uint8_t *p, size_t size)
{
    return size >= 8 && p[0] == 0 && p[1] == 0 && p[3] >= 1 && p[3] <= SX_MAX_RANK &&
           memchr("\x08\x09\x0b\x0c\x0d\x0e", p[2], 6) != NULL;
}

static bool begins(const uint8_t *p, size_t size, size_t at, const char *magic, size_t length)
{
    return size >= at + length && memcmp(p + at, magic, length) == 0;
}

static const struct {
    size_t at, length;
    const char *magic;
    sx_file_kind kind;
} magics[] = {
    {0, 4, "PK\003\004", SX_FILE_ARCHIVE},
    {0, 4, "PK\005\006", SX_FILE_ARCHIVE},
    {257, 5, "ustar", SX_FILE_ARCHIVE},
    {0, 6, "\x93NUMPY", SX_FILE_NPY},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     SX_FILE_ARCHIVE},
    {0, 4, "\x28\xb5\x2f\xfd", SX_FILE_ARCHIVE},
    {0, 3, "BZh", SX_FILE_ARCHIVE},
};

/* No control characters. */
static bool is_text(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (p[i] < ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '\n') {
            return false;
        }
    }
    return true;
}

/* Lines of text, and a comma in the first. JSON and XML are not. */
static bool is_csv(const unsigned char *p, size_t size)
{
    const unsigned char *line = memchr(p, '\n', size);
    const size_t first = line != NULL ? (size_t)(line - p) : size;
    const bool rows = first + 1 < size || first >= INSIDE_BYTES; /* one long line is cut off */
    return rows && memchr(p, ',', first) != NULL && memchr("[{<", p[0], 3) == NULL &&
           is_text(p, size);
}

/* Text whose first line that is not blank begins with a bracket. */
static bool is_json_lines(const unsigned char *p, size_t size)
{
    size_t i = 0;
    while (i < size && memchr(" \t\r\n", p[i], 4) != NULL) {
        i++;
    }
    return i < size && (p[i] == '[' || p[i] == '{') && is_text(p, size);
}

sx_file_kind sx_sniff_bytes(sx_bytes head)
{
    const uint8_t *p = head.data;
    if (head.size == 0) {
        return SX_FILE_EMPTY;
    }
    if (head.size >= SX_TFRECORD_HEADER && sx_tfrecord_header_ok(p)) {
        return SX_FILE_TFRECORD;
    }
    for (size_t i = 0; i < SX_COUNT(magics); i++) {
        if (begins(p, head.size, magics[i].at, magics[i].magic, magics[i].length)) {
            return magics[i].kind;
        }
    }
    if (is_idx(p, head.size)) {
        return SX_FILE_IDX;
    }
    if (sx_image_format_of(head) != SX_FORMAT_UNKNOWN) {
        return SX_FILE_IMAGE;
    }
    const size_t mark = begins(p, head.size, 0, "\xef\xbb\xbf", 3) ? 3 : 0;
    p += mark;
    const size_t size = head.size - mark;
    return is_csv(p, size)          ? SX_FILE_CSV
           : is_json_lines(p, size) ? SX_FILE_JSON_LINES
                                    : SX_FILE_UNKNOWN;
}

/* Detects the contents of a compressed stream. Errors are reported when the file is read. */
static sx_file_kind sniff_inside(sx_codec codec, sx_bytes head, const char *path)
{
    uint8_t inside[INSIDE_BYTES];
    size_t size = 0;
    sx_inflate *stream = NULL;
    sx_status status = sx_inflate_create(codec, head, UINT64_MAX, path, &stream);
    if (status == SX_OK) {
        status = sx_inflate_read(stream, inside, sizeof(inside), &size);
        sx_inflate_destroy(stream);
    }
    sx_status_free(status);
    sx_file_kind kind = size == 0 ? SX_FILE_UNKNOWN : sx_sniff_bytes((sx_bytes){inside, size});
    return kind == SX_FILE_IMAGE ? SX_FILE_UNKNOWN : kind;
}

sx_status sx_sniff_file(const char *path, sx_file_kind *out_kind)
{
    uint8_t head[HEAD_BYTES];
    sx_file *file = NULL;
    SX_TRY(sx_file_open(path, &file));
    size_t size = (size_t)SX_MIN(sx_file_size(file), (uint64_t)sizeof(head));
    sx_status status = sx_file_read_at(file, 0, head, size);
    sx_file_close(file);
    SX_TRY(status);
    sx_bytes bytes = {head, size};
    sx_file_kind kind = sx_sniff_bytes(bytes);
    sx_codec codec = sx_codec_guess(bytes);
    if (kind == SX_FILE_UNKNOWN && codec != SX_CODEC_NONE) {
        kind = sniff_inside(codec, bytes, path);
    }
    *out_kind = kind;
    return SX_OK;
}
