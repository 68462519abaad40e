/* See text_file.h. */
#include "data/text_file.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "io/compress.h"
#include "io/file.h"

sx_status sx_text_file_read(const char *path, size_t max_bytes, char **out_data, sx_bytes *out_text)
{
    char *data = NULL;
    size_t size = 0;
    SX_TRY(sx_file_read(path, max_bytes, &data, &size));
    const sx_codec codec = sx_codec_guess((sx_bytes){data, size});
    if (codec == SX_CODEC_GZIP || codec == SX_CODEC_ZLIB) {
        sx_buf plain;
        sx_buf_init(&plain, max_bytes);
        sx_status status = sx_inflate_all(codec, (sx_bytes){data, size}, max_bytes, path, &plain);
        sx_free(data);
        data = status == SX_OK ? sx_buf_take(&plain, &size) : NULL;
        sx_buf_deinit(&plain);
        SX_TRY(status);
    }
    const size_t mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *out_data = data;
    *out_text = (sx_bytes){data + mark, size - mark};
    return SX_OK;
}

int64_t sx_count_lines(const void *begin, const void *end)
{
    int64_t lines = 0;
    const char *p = begin;
    while ((p = memchr(p, '\n', (size_t)((const char *)end - p))) != NULL) {
        lines++;
        p++;
    }
    return lines;
}
