/* Encodes PNG; see encode.h. Errors arrive by longjmp, as in png_read.c. */
#include <string.h>

#include "base/memory.h"
#include "image/encode.h"
#include "image/png_error.h"

typedef struct encoder {
    png_structp png;
    png_infop info;
    sx_png_error error;
    const sx_image *image;
    sx_buf *out;
} encoder;

static void append(png_structp png, png_bytep data, size_t size)
{
    encoder *e = png_get_io_ptr(png);
    sx_buf_append(e->out, data, size);
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* All code that may longjmp. */
static void encode(encoder *e)
{
    static const int colours[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    const sx_image *image = e->image;
    png_set_write_fn(e->png, e, append, flush_nothing);
    png_set_compression_level(e->png, 6);
    png_set_IHDR(e->png, e->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 colours[image->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(e->png, e->info);
    const size_t stride = (size_t)image->width * (size_t)image->channels;
    for (int y = 0; y < image->height; y++) {
        png_write_row(e->png, (uint8_t *)image->pixels + (size_t)y * stride);
    }
    png_write_end(e->png, NULL);
}

static sx_status run(encoder *e)
{
    e->png = sx_png_create_write(&e->error);
    e->info = e->png != NULL ? png_create_info_struct(e->png) : NULL;
    if (e->info == NULL) {
        return sx_no_memory("for a PNG encoder");
    }
    if (setjmp(e->error.jump) == 0) {
        encode(e);
        return sx_buf_status(e->out);
    }
    if (e->error.no_memory) {
        return sx_no_memory("writing a PNG");
    }
    return sx_error(SX_INTERNAL, "writing PNG: %s", e->error.message);
}

sx_status sx_png_encode(const sx_image *image, sx_buf *out)
{
    if (image->dtype != SX_U8 || image->channels < 1 || image->channels > 4) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "PNG needs uint8 pixels with 1 to 4 channels; got %s with %d",
                        sx_dtype_name(image->dtype), image->channels);
    }
    encoder e;
    memset(&e, 0, sizeof(e));
    e.image = image;
    e.out = out;
    sx_status status = run(&e);
    png_destroy_write_struct(&e.png, &e.info);
    return status;
}
