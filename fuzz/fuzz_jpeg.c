/* JPEG: any bytes give pixels or an error, within the limits, and the probe agrees with the
 * decoder; decoded row by row, the same pixels or an error, too. */
#include <stdlib.h>
#include <string.h>

#include "image/decode.h"
#include "image/format.h"

static sx_status want_middle(void *user, const sx_image *image, sx_image_window *out_wanted)
{
    (void)user;
    const int top = image->height / 3, left = image->width / 3;
    *out_wanted =
        (sx_image_window){top, left, (image->height - top + 1) / 2, (image->width - left + 1) / 2};
    return SX_OK;
}

static sx_status want_all(void *user, const sx_image *image, sx_image_window *out_wanted)
{
    (void)user;
    *out_wanted = (sx_image_window){0, 0, image->height, image->width};
    return SX_OK;
}

struct rows {
    const sx_image *image; /* that the rows are of; NULL = any */
    int row;
};

static void check_row(void *user, const uint8_t *pixels)
{
    struct rows *rows = user;
    if (rows->image != NULL) {
        const size_t bytes = (size_t)rows->image->width * (size_t)rows->image->channels;
        const uint8_t *want = (const uint8_t *)rows->image->pixels + (size_t)rows->row++ * bytes;
        if (memcmp(want, pixels, bytes) != 0) {
            abort();
        }
    }
}

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
    struct rows all = {decoded == SX_OK ? &image : NULL, 0}, middle = {NULL, 0};
    sx_status by_row = sx_jpeg_decode_rows((sx_bytes){data, size}, &options,
                                           &(sx_image_sink){want_all, check_row, &all});
    if (sx_status_code(by_row) != sx_status_code(decoded)) {
        abort();
    }
    sx_status_free(by_row);
    sx_status_free(sx_jpeg_decode_rows((sx_bytes){data, size}, &options,
                                       &(sx_image_sink){want_middle, check_row, &middle}));
    sx_status_free(probed);
    sx_status_free(decoded);
    sx_image_deinit(&image);
    return 0;
}
