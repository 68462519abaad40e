#include "io/array.h"

#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/memory.h"

sx_status sx_array_alloc(const sx_type *type, size_t max_bytes, const char *name,
                         sx_tensor *out_tensor)
{
    int64_t bytes = sx_type_bytes(type);
    char text[SX_TYPE_TEXT];
    if (bytes < 0 || (uint64_t)bytes > max_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: %s is larger than the limit of %zu bytes", name,
                        sx_type_format(type, text, sizeof text), max_bytes);
    }
    void *data = sx_alloc(bytes == 0 ? 1 : (size_t)bytes, 1);
    if (data == NULL) {
        return sx_no_memory("for %s: %s", name, sx_type_format(type, text, sizeof text));
    }
    *out_tensor = (sx_tensor){*type, data};
    return SX_OK;
}

/* What is swapped as a whole. */
static size_t part_bytes(sx_dtype dtype)
{
    return sx_dtype_bytes(dtype) / (sx_dtype_is_complex(dtype) ? 2 : 1);
}

/* `swap` reverses the bytes of each element. */
static void copy(void *out, const void *in, size_t count, size_t elem_bytes, bool swap)
{
    if (!swap || elem_bytes == 1) {
        if (count > 0) {
            memcpy(out, in, count * elem_bytes);
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < elem_bytes; k++) {
            ((char *)out)[i * elem_bytes + k] = ((const char *)in)[(i + 1) * elem_bytes - 1 - k];
        }
    }
}

/* Fills the output in order; `in_at` steps through the input, where the first index is fastest. */
void sx_array_copy_columns(const sx_type *type, void *out, const void *in, bool swap)
{
    const size_t bytes = sx_dtype_bytes(type->dtype), part = part_bytes(type->dtype);
    size_t stride[SX_MAX_RANK], index[SX_MAX_RANK] = {0};
    int64_t count = sx_type_elems(type);
    size_t step = 1, in_at = 0;
    for (int d = 0; d < type->rank; d++) {
        stride[d] = step;
        step *= (size_t)type->dims[d];
    }
    for (int64_t i = 0; i < count; i++) {
        copy((char *)out + (size_t)i * bytes, (const char *)in + in_at * bytes, bytes / part, part,
             swap);
        for (int d = type->rank - 1; d >= 0; d--) {
            in_at += stride[d];
            if (++index[d] < (size_t)type->dims[d]) {
                break;
            }
            in_at -= stride[d] * index[d];
            index[d] = 0;
        }
    }
}

sx_status sx_array_read(sx_window *window, uint64_t offset, const sx_type *type, bool swap,
                        void *out)
{
    enum { PIECE_BYTES = 1 << 18 }; /* a multiple of every element's size */
    size_t elem_bytes = part_bytes(type->dtype), left = (size_t)sx_type_bytes(type);
    for (char *to = out; left > 0;) {
        size_t n = SX_MIN(left, (size_t)PIECE_BYTES);
        const void *piece;
        SX_TRY(sx_window_look(window, offset, n, &piece));
        copy(to, piece, n / elem_bytes, elem_bytes, swap);
        to += n;
        offset += n;
        left -= n;
    }
    return SX_OK;
}
