/* PNG: any bytes give pixels or an error, within the limits, and what was decoded survives being
 * written and read again. */
#include <stdlib.h>
#include <string.h>

#include "image/decode.h"
#include "image/encode.h"

static void check_round_trip(const sx_image *image)
{
    sx_image again = {0};
    sx_buf file;
    sx_buf_init(&file, 0);
    sx_status status = sx_png_encode(image, &file);
    if (status == SX_OK) {
        status = sx_image_decode((sx_bytes){file.data, file.size}, NULL, &again);
    }
    if (status != SX_OK || sx_image_elems(&again) != sx_image_elems(image) ||
        memcmp(again.pixels, image->pixels, sx_image_elems(image)) != 0) {
        abort();
    }
    sx_buf_deinit(&file);
    sx_image_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_image_limits limits = {.max_pixels = 1 << 18, .max_bytes = 4 << 20, .max_scans = 1};
    const sx_decode_options options = {.channels = (int)(size % 5), .limits = &limits};
    sx_image image = {0};
    sx_status status = sx_png_decode((sx_bytes){data, size}, &options, &image);
    if (status == SX_OK) {
        check_round_trip(&image);
    }
    sx_status_free(status);
    sx_image_deinit(&image);
    return 0;
}
