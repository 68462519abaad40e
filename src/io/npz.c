/* See npz.h. */
#include "io/npz.h"

#include "io/npy.h"

static sx_status too_large(const char *name, uint64_t bytes, uint64_t most)
{
    sx_buf has, limit;
    sx_buf_init(&has, 64);
    sx_buf_init(&limit, 64);
    sx_buf_put_size(&has, (double)bytes);
    sx_buf_put_size(&limit, (double)most);
    sx_status status = sx_error(SX_RESOURCE_EXHAUSTED,
                                "%s is an array of %s by its header, expected at most %s; what "
                                "compresses so well can be saved as .npy",
                                name, sx_buf_text(&has), sx_buf_text(&limit));
    sx_buf_deinit(&limit);
    sx_buf_deinit(&has);
    return status;
}

static sx_status read_bytes(sx_archive *archive, uint64_t most, const char *name, sx_buf *bytes)
{
    uint64_t size = 0;
    SX_TRY(sx_archive_read_some(archive, SX_NPY_MAX_HEAD, bytes));
    SX_TRY(sx_npy_size((sx_bytes){bytes->data, bytes->size}, name, &size));
    if (size > most) {
        return too_large(name, size, most);
    }
    /* one more shows that there is more than the header says */
    return size < bytes->size
               ? SX_OK
               : sx_archive_read_some(archive, (size_t)(size - bytes->size) + 1, bytes);
}

sx_status sx_npz_read(sx_archive *archive, const char *name, sx_tensor *out_tensor)
{
    const uint64_t most = sx_archive_room(archive);
    sx_buf bytes;
    sx_buf_init(&bytes, 0);
    sx_status status = read_bytes(archive, most, name, &bytes);
    if (status == SX_OK) {
        status = sx_npy_parse((sx_bytes){bytes.data, bytes.size}, (size_t)most, name, out_tensor);
    }
    sx_buf_deinit(&bytes);
    return status;
}
