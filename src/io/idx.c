#include "io/idx.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/byte_order.h"
#include "base/checked.h"
#include "base/memory.h"
#include "io/array.h"
#include "io/compress.h"
#include "io/file.h"

enum { HEADER_BYTES = 4, MOST_HEADER_BYTES = HEADER_BYTES + 4 * SX_MAX_RANK };

static const sx_dtype dtypes[256] = {
    [0x08] = SX_U8,  [0x09] = SX_I8,  [0x0b] = SX_I16,
    [0x0c] = SX_I32, [0x0d] = SX_F32, [0x0e] = SX_F64,
};

static bool is_plain(sx_bytes bytes)
{
    const uint8_t *b = bytes.data;
    return bytes.size >= HEADER_BYTES && b[0] == 0 && b[1] == 0 && dtypes[b[2]] != SX_DTYPE_NONE &&
           b[3] <= SX_MAX_RANK;
}

/* The array's type, and the bytes of the header that says so. */
static sx_status parse_header(sx_bytes head, const char *name, sx_type *out_type,
                              size_t *out_header_bytes)
{
    if (!is_plain(head)) {
        return sx_error(SX_DATA_LOSS,
                        "%s is not an IDX file: it does not start with 00 00, type, rank <= %d",
                        name, SX_MAX_RANK);
    }
    const uint8_t *b = head.data;
    sx_type type = {.dtype = dtypes[b[2]], .rank = b[3]};
    size_t header = HEADER_BYTES + 4 * (size_t)type.rank;
    if (head.size < header) {
        return sx_error(SX_DATA_LOSS, "%s: truncated IDX header", name);
    }
    for (int d = 0; d < type.rank; d++) {
        type.dims[d] = sx_load_be32(b + HEADER_BYTES + 4 * d);
    }
    if (sx_type_bytes(&type) < 0) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_DATA_LOSS, "%s: IDX %s is larger than any file", name,
                        sx_type_format(&type, text, sizeof text));
    }
    *out_type = type;
    *out_header_bytes = header;
    return SX_OK;
}

static sx_status parse(sx_window *window, size_t max_bytes, const char *name, sx_tensor *out_tensor)
{
    sx_bytes head = {NULL, (size_t)SX_MIN(window->size, (uint64_t)MOST_HEADER_BYTES)};
    sx_type type;
    size_t header;
    SX_TRY(sx_window_look(window, 0, head.size, &head.data));
    SX_TRY(parse_header(head, name, &type, &header));
    uint64_t left = window->size - header;
    if ((uint64_t)sx_type_bytes(&type) != left) {
        char text[SX_TYPE_TEXT];
        return sx_error(SX_DATA_LOSS, "%s: IDX %s needs %lld bytes, the file has %" PRIu64, name,
                        sx_type_format(&type, text, sizeof text), (long long)sx_type_bytes(&type),
                        left);
    }
    sx_tensor tensor = {.data = NULL};
    SX_TRY(sx_array_alloc(&type, max_bytes == 0 ? SX_ARRAY_DEFAULT_MAX : max_bytes, name, &tensor));
    sx_status status = sx_array_read(window, header, &type, true, tensor.data);
    if (status != SX_OK) {
        sx_free(tensor.data);
        return status;
    }
    *out_tensor = tensor;
    return SX_OK;
}

sx_status sx_idx_parse(sx_bytes bytes, size_t max_bytes, const char *name, sx_tensor *out_tensor)
{
    sx_window window;
    sx_window_init_bytes(&window, bytes);
    return parse(&window, max_bytes, name, out_tensor);
}

/* Decompresses the file into `plain`, as far as its header says, and makes `out_window` one over
 * that: a small file must not expand to gigabytes before its size is compared. */
static sx_status unpack(sx_window *packed, size_t max_bytes, const char *path, sx_buf *plain,
                        sx_window *out_window)
{
    uint8_t head[MOST_HEADER_BYTES];
    size_t n = 0, header;
    sx_type type;
    sx_inflate *stream = NULL;
    SX_TRY(sx_inflate_create_over(SX_CODEC_GZIP, packed, MOST_HEADER_BYTES, path, &stream));
    sx_status status = sx_inflate_read(stream, head, sizeof head, &n);
    sx_inflate_destroy(stream);
    SX_TRY(status);
    SX_TRY(parse_header((sx_bytes){head, n}, path, &type, &header));
    char text[SX_TYPE_TEXT];
    size_t bytes = (size_t)sx_type_bytes(&type);
    sx_type_format(&type, text, sizeof text);
    if (bytes > max_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: %s is larger than the limit of %zu bytes", path,
                        text, max_bytes);
    }
    SX_TRY(sx_inflate_create_over(SX_CODEC_GZIP, packed, header + bytes, path, &stream));
    status = sx_inflate_rest(stream, plain);
    sx_inflate_destroy(stream);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && plain->size > header + bytes) {
        sx_status_free(status);
        return sx_error(SX_DATA_LOSS, "%s: IDX %s needs %zu bytes, the file has more", path, text,
                        bytes);
    }
    sx_window_init_bytes(out_window, (sx_bytes){plain->data, plain->size});
    return status;
}

sx_status sx_idx_read(const char *path, size_t max_bytes, sx_tensor *out_tensor)
{
    sx_file *file = NULL;
    sx_window on_disk, unpacked;
    sx_buf plain;
    max_bytes = max_bytes == 0 ? SX_ARRAY_DEFAULT_MAX : max_bytes;
    SX_TRY(sx_file_open(path, &file));
    sx_window_init(&on_disk, file);
    sx_buf_init(&plain, max_bytes + MOST_HEADER_BYTES + 1);
    sx_bytes head = {NULL, (size_t)SX_MIN(on_disk.size, (uint64_t)HEADER_BYTES)};
    sx_status status = sx_window_look(&on_disk, 0, head.size, &head.data);
    bool packed = status == SX_OK && sx_codec_guess(head) == SX_CODEC_GZIP;
    if (packed) {
        status = unpack(&on_disk, max_bytes, path, &plain, &unpacked);
    }
    if (status == SX_OK) {
        status = parse(packed ? &unpacked : &on_disk, max_bytes, path, out_tensor);
    }
    sx_buf_deinit(&plain);
    sx_window_deinit(&on_disk);
    sx_file_close(file);
    return status;
}
