/* IDX, and the inflater in front of it. */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "io/compress.h"
#include "io/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_bytes bytes = {data, size};
    sx_tensor tensor = {0};
    sx_buf plain;
    sx_buf_init(&plain, 0);
    sx_codec codec = sx_codec_guess(bytes);
    sx_status status = sx_inflate_all(codec, bytes, 1 << 20, "fuzz", &plain);
    if (status == SX_OK) {
        status =
            sx_idx_parse((sx_bytes){sx_buf_text(&plain), plain.size}, 1 << 20, "fuzz", &tensor);
    }
    sx_status_free(status);
    sx_free(tensor.data);
    sx_buf_deinit(&plain);
    return 0;
}
