/* Small images for the tests of src/image, made rather than stored. */
#ifndef SX_TESTS_IMAGE_SAMPLES_H
#define SX_TESTS_IMAGE_SAMPLES_H

#include "harness.h"

#include <jpeglib.h>

#include "base/buffer.h"
#include "image/encode.h"
#include "image/image.h"

/* A pattern with edges and slopes, different in each channel. */
static inline sx_image sample_image(int height, int width, int channels)
{
    sx_image image = {0};
    assert_ok(sx_image_reserve(&image, SX_U8, height, width, channels));
    sx_image_set(&image, SX_U8, height, width, channels);
    uint8_t *out = image.pixels;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            for (int c = 0; c < channels; c++) {
                int at = (x * (5 + c) + y * (3 + 2 * c) + (x / 4 + y / 5) % 2 * 40) % 512;
                *out++ = (uint8_t)(at < 256 ? at : 511 - at);
            }
        }
    }
    return image;
}

static inline sx_bytes sample_bytes(const sx_buf *buf)
{
    return (sx_bytes){buf->data, buf->size};
}

static inline sx_buf sample_jpeg(int height, int width, int channels)
{
    sx_image image = sample_image(height, width, channels);
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_ok(sx_jpeg_encode(&image, 90, &out));
    sx_image_deinit(&image);
    return out;
}

static inline sx_buf sample_png(int height, int width, int channels)
{
    sx_image image = sample_image(height, width, channels);
    sx_buf out;
    sx_buf_init(&out, 0);
    assert_ok(sx_png_encode(&image, &out));
    sx_image_deinit(&image);
    return out;
}

/* A kind of JPEG: colours halved by `across` and `down`, four colours, progressive. */
typedef struct sample_kind {
    int channels, across, down;
    bool progressive;
    int restart; /* blocks between restart markers */
} sample_kind;

static inline sx_buf sample_jpeg_of(const sample_kind *k, int height, int width)
{
    sx_image image = sample_image(height, width, k->channels);
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr error;
    uint8_t *data = NULL;
    unsigned long size = 0;
    info.err = jpeg_std_error(&error);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &data, &size);
    info.image_height = (JDIMENSION)height;
    info.image_width = (JDIMENSION)width;
    info.input_components = k->channels;
    info.in_color_space = k->channels == 1 ? JCS_GRAYSCALE : k->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&info);
    info.comp_info[0].h_samp_factor = k->across;
    info.comp_info[0].v_samp_factor = k->down;
    info.restart_interval = (unsigned)k->restart;
    if (k->progressive) {
        jpeg_simple_progression(&info);
    }
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row =
            (uint8_t *)image.pixels + info.next_scanline * (size_t)width * (size_t)k->channels;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    sx_buf out;
    sx_buf_init(&out, 0);
    sx_buf_append(&out, data, size);
    free(data);
    sx_image_deinit(&image);
    return out;
}

static inline sx_buf sample_progressive(int height, int width)
{
    return sample_jpeg_of(&(sample_kind){3, 2, 2, true, 0}, height, width);
}

/* Where marker FF `second` stands first. */
static inline size_t sample_find_marker(const sx_buf *jpeg, uint8_t second)
{
    for (size_t i = 2; i + 1 < jpeg->size; i++) {
        if ((uint8_t)jpeg->data[i] == 0xFF && (uint8_t)jpeg->data[i + 1] == second) {
            return i;
        }
    }
    fail_msg("no marker ff %02x", second);
    return 0;
}

#endif
