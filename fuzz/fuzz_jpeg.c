/* JPEG: any bytes give pixels or an error, within the limits, and the probe agrees with the
 * decoder. */
#include <stdlib.h>
#include <string.h>

#include "image/decode.h"
#include "image/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_image_limits limits = {.max_pixels = 1 << 20, .max_bytes = 16 << 20, .max_scans = 20};
    const sx_decode_options options = {.channels = size % 2 == 0 ? 0 : 3, .limits = &limits};
    sx_image image = {0};
    sx_image_info info = {0};
    sx_status probed = sx_image_probe((sx_bytes){data, size}, &info);
    sx_status decoded = sx_jpeg_decode((sx_bytes){data, size}, &options, &image);
    if (probed == SX_OK && decoded == SX_OK &&
        (image.height != info.height || image.width != info.width)) {
        abort();
    }
    sx_status_free(probed);
    sx_status_free(decoded);
    sx_image_deinit(&image);
    return 0;
}
