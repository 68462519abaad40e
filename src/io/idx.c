#include "io/idx.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "io/array.h"
#include "io/compress.h"
#include "io/file.h"

enum { HEADER_BYTES = 4 };

static const sx_dtype dtypes[256] = {
    [0x08] = SX_U8,  [0x09] = SX_I8,  [0x0b] = SX_I16,
    [0x0c] = SX_I32, [0x0d] = SX_F32, [0x0e] = SX_F64,
};

static uint32_t load_big_u32(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool is_plain(sx_bytes bytes)
{
    const uint8_t *b = bytes.data;
    return bytes.size >= HEADER_BYTES && b[0] == 0 && b[1] == 0 && dtypes[b[2]] != SX_DTYPE_NONE &&
           b[3] <= SX_MAX_RANK;
}

bool sx_idx_is(sx_bytes head)
{
    if (sx_codec_guess(head) != SX_CODEC_GZIP) {
        return is_plain(head);
    }
    uint8_t first[HEADER_BYTES];
    size_t n = 0;
    sx_inflate *stream = NULL;
    sx_status status = sx_inflate_create(SX_CODEC_GZIP, head, UINT64_MAX, "", &stream);
    if (status == SX_OK) {
        status = sx_inflate_read(stream, first, sizeof first, &n);
    }
    sx_status_free(status);
    sx_inflate_destroy(stream);
    return is_plain((sx_bytes){first, n});
}

sx_status sx_idx_parse(sx_bytes bytes, size_t max_bytes, const char *name, sx_tensor *out_tensor)
{
    if (!is_plain(bytes)) {
        return sx_error(SX_DATA_LOSS,
                        "%s is not an IDX file: it does not start with 00 00, type, rank <= %d",
                        name, SX_MAX_RANK);
    }
    const uint8_t *b = bytes.data;
    sx_type type = {.dtype = dtypes[b[2]], .rank = b[3]};
    size_t header = HEADER_BYTES + 4 * (size_t)type.rank;
    if (bytes.size < header) {
        return sx_error(SX_DATA_LOSS, "%s: truncated IDX header", name);
    }
    for (int d = 0; d < type.rank; d++) {
        type.dims[d] = load_big_u32(b + HEADER_BYTES + 4 * d);
    }
    int64_t size = sx_type_bytes(&type);
    char text[SX_TYPE_TEXT];
    if (size < 0 || (uint64_t)size != bytes.size - header) {
        return sx_error(SX_DATA_LOSS, "%s: IDX %s needs %lld bytes, the file has %zu", name,
                        sx_type_format(&type, text, sizeof text), (long long)size,
                        bytes.size - header);
    }
    SX_TRY(
        sx_array_alloc(&type, max_bytes == 0 ? SX_ARRAY_DEFAULT_MAX : max_bytes, name, out_tensor));
    sx_array_copy(out_tensor->data, b + header, (size_t)sx_type_elems(&type),
                  sx_dtype_bytes(type.dtype), true);
    return SX_OK;
}

sx_status sx_idx_read(const char *path, size_t max_bytes, sx_tensor *out_tensor)
{
    sx_file_map map = {0};
    sx_buf plain;
    size_t limit = (max_bytes == 0 ? SX_ARRAY_DEFAULT_MAX : max_bytes) + 4 + 4 * SX_MAX_RANK;
    sx_buf_init(&plain, limit + 1);
    SX_TRY(sx_file_map_open(path, SX_ACCESS_SEQUENTIAL, &map));
    sx_bytes bytes = map.view;
    sx_status status = SX_OK;
    if (sx_codec_guess(bytes) == SX_CODEC_GZIP) {
        status = sx_inflate_all(SX_CODEC_GZIP, bytes, limit, path, &plain);
        bytes = (sx_bytes){plain.data, plain.size};
    }
    if (status == SX_OK) {
        status = sx_idx_parse(bytes, max_bytes, path, out_tensor);
    }
    sx_buf_deinit(&plain);
    sx_file_map_close(&map);
    return status;
}
