/* GIF and BMP: any bytes give pixels or an error, within the limits. */
#include "image/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_image_limits limits = {.max_pixels = 1 << 18, .max_bytes = 4 << 20, .max_scans = 1};
    sx_image image = {0};
    sx_status_free(sx_gif_decode((sx_bytes){data, size}, &limits, 0, &image));
    sx_status_free(sx_bmp_decode((sx_bytes){data, size}, &limits, &image));
    sx_image_deinit(&image);
    return 0;
}
