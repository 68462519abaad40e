/* Snappy: any bytes unpack or fail, never outside the two buffers. */
#include <stdlib.h>

#include "checkpoint/snappy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_bytes packed = {data, size};
    size_t length = 0;
    sx_status status = sx_snappy_length(packed, &length);
    if (status == SX_OK && length <= 1 << 20) {
        uint8_t *out = malloc(length + 1);
        if (out != NULL) {
            status = sx_snappy_unpack(packed, out, length);
        }
        free(out);
    }
    sx_status_free(status);
    return 0;
}
