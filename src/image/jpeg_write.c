/* Encodes JPEG; see encode.h. Errors arrive by longjmp, as in jpeg_read.c. */
#include <string.h>

#include "image/encode.h"
#include "image/jpeg_error.h"

enum { BLOCK_BYTES = 16 << 10 };

typedef struct encoder {
    struct jpeg_compress_struct info;
    sx_jpeg_error error;
    struct jpeg_destination_mgr target;
    const sx_image *image;
    int quality;
    sx_buf *out;
    JOCTET block[BLOCK_BYTES]; /* filled by libjpeg, then appended */
} encoder;

static void target_init(j_compress_ptr info)
{
    encoder *e = info->client_data;
    e->target.next_output_byte = e->block;
    e->target.free_in_buffer = BLOCK_BYTES;
}

static boolean target_flush(j_compress_ptr info)
{
    encoder *e = info->client_data;
    sx_buf_append(e->out, e->block, BLOCK_BYTES);
    target_init(info);
    return TRUE;
}

static void target_finish(j_compress_ptr info)
{
    encoder *e = info->client_data;
    sx_buf_append(e->out, e->block, BLOCK_BYTES - e->target.free_in_buffer);
}

static void set_parameters(encoder *e)
{
    struct jpeg_compress_struct *info = &e->info;
    info->image_height = (JDIMENSION)e->image->height;
    info->image_width = (JDIMENSION)e->image->width;
    info->input_components = e->image->channels;
    info->in_color_space = e->image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, e->quality, TRUE);
}

/* All code that may longjmp. */
static void encode(encoder *e)
{
    struct jpeg_compress_struct *info = &e->info;
    jpeg_create_compress(info);
    info->client_data = e;
    e->target.init_destination = target_init;
    e->target.empty_output_buffer = target_flush;
    e->target.term_destination = target_finish;
    info->dest = &e->target;
    set_parameters(e);
    jpeg_start_compress(info, TRUE);
    const size_t stride = (size_t)e->image->width * (size_t)e->image->channels;
    while (info->next_scanline < info->image_height) {
        JSAMPROW row = (uint8_t *)e->image->pixels + info->next_scanline * stride;
        jpeg_write_scanlines(info, &row, 1);
    }
    jpeg_finish_compress(info);
}

static sx_status check(const sx_image *image, int quality)
{
    if (image->dtype != SX_U8 || (image->channels != 1 && image->channels != 3)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "JPEG needs uint8 pixels with 1 or 3 channels; got %s with %d",
                        sx_dtype_name(image->dtype), image->channels);
    }
    if (quality < 1 || quality > 100) {
        return sx_error(SX_INVALID_ARGUMENT, "JPEG quality must be 1 to 100; got %d", quality);
    }
    if (image->height > JPEG_MAX_DIMENSION || image->width > JPEG_MAX_DIMENSION) {
        return sx_error(SX_INVALID_ARGUMENT, "JPEG width and height are limited to %ld; got %dx%d",
                        JPEG_MAX_DIMENSION, image->height, image->width);
    }
    return SX_OK;
}

static sx_status run(encoder *e)
{
    if (setjmp(e->error.jump) == 0) {
        encode(e);
        return sx_buf_status(e->out);
    }
    return sx_jpeg_error_status(&e->error, "writing JPEG", "writing a JPEG");
}

sx_status sx_jpeg_encode(const sx_image *image, int quality, sx_buf *out)
{
    SX_TRY(check(image, quality));
    encoder e;
    memset(&e, 0, sizeof(e));
    e.image = image;
    e.quality = quality;
    e.out = out;
    e.info.err = sx_jpeg_error_init(&e.error);
    sx_status status = run(&e);
    jpeg_destroy_compress(&e.info);
    return status;
}
