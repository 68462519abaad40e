/* Decodes PNG to 8-bit pixels with libpng; see decode.h.
 *
 * As in jpeg_read.c, libpng's errors arrive by longjmp (png_error.h) and all state is in one
 * struct.
 */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "image/decode.h"
#include "image/format.h"
#include "image/png_error.h"

enum {
    MAX_CHUNK_BYTES = 8 << 20, /* decompressed size of an ancillary chunk */
    MAX_CACHED_CHUNKS = 128,
};

typedef struct decoder {
    png_structp png;
    png_infop info;
    sx_png_error error;
    const sx_decode_options *options;
    sx_bytes encoded;
    size_t at; /* bytes read */
    sx_image *image;
    int height, width, channels, passes;
    sx_dtype dtype;   /* of the result */
    sx_status status; /* an error found outside libpng */
} decoder;

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    decoder *d = png_get_io_ptr(png);
    if (count > d->encoded.size - d->at) {
        png_error(png, "image is truncated");
    }
    memcpy(out, (const uint8_t *)d->encoded.data + d->at, count);
    d->at += count;
}

/* Handles alpha as tf.io.decode_png does: with 2 or 4 channels it is kept, or added as opaque. */
static void transform_alpha(decoder *d, int colour, int depth)
{
    bool has_alpha = (colour & PNG_COLOR_MASK_ALPHA) != 0;
    bool has_key = png_get_valid(d->png, d->info, PNG_INFO_tRNS) != 0;
    if (d->channels % 2 != 0) {
        if (has_alpha || has_key) {
            png_set_strip_alpha(d->png);
        }
    } else if (!has_alpha && has_key) {
        png_set_tRNS_to_alpha(d->png);
    } else if (!has_alpha) {
        png_set_add_alpha(d->png, (1U << depth) - 1, PNG_FILLER_AFTER);
    }
}

static void transform_colour(decoder *d, int colour, int depth)
{
    bool is_gray = (colour & PNG_COLOR_MASK_COLOR) == 0;
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_palette_to_rgb(d->png);
    }
    if (is_gray && depth < 8) {
        png_set_expand_gray_1_2_4_to_8(d->png);
    }
    if (d->channels < 3 && !is_gray) {
        png_set_rgb_to_gray(d->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    } else if (d->channels >= 3 && is_gray) {
        png_set_gray_to_rgb(d->png);
    }
}

static void set_transforms(decoder *d, int colour, int depth)
{
    transform_alpha(d, colour, depth);
    if (depth > 8 && d->options->wide) {
        png_set_swap(d->png); /* the file has the high byte first */
        d->dtype = SX_U16;
    } else if (depth > 8) {
        png_set_strip_16(d->png);
    }
    png_set_packing(d->png);
    d->passes = png_set_interlace_handling(d->png);
    transform_colour(d, colour, depth);
    png_read_update_info(d->png, d->info);
}

/* The file's number of channels; that of a palette depends on its colours. */
static int file_channels(decoder *d, int colour)
{
    if (colour != PNG_COLOR_TYPE_PALETTE) {
        return png_get_channels(d->png, d->info);
    }
    return png_get_valid(d->png, d->info, PNG_INFO_tRNS) != 0 ? 4 : 3;
}

/* Ignores texts and suggested palettes: they do not change pixels and can expand to megabytes.
 * (Colour profiles are kept because libpng, as used by TensorFlow, considers them when converting
 * to gray.) */
static void skip_texts(decoder *d)
{
    static const png_byte names[] = "tEXt\0zTXt\0iTXt\0sPLT\0eXIf";
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, names, sizeof(names) / 5);
}

static void read_header(decoder *d)
{
    png_uint_32 width = 0, height = 0;
    int depth = 0, colour = 0;
    png_set_read_fn(d->png, d, read_bytes);
    png_set_chunk_malloc_max(d->png, MAX_CHUNK_BYTES);
    png_set_chunk_cache_max(d->png, MAX_CACHED_CHUNKS);
    skip_texts(d);
    png_read_info(d->png, d->info);
    png_get_IHDR(d->png, d->info, &width, &height, &depth, &colour, NULL, NULL, NULL);
    d->width = (int)width;
    d->height = (int)height;
    d->channels = d->options->channels != 0 ? d->options->channels : file_channels(d, colour);
    set_transforms(d, colour, depth);
}

static void read_pixels(decoder *d)
{
    const size_t stride = (size_t)d->width * (size_t)d->channels * sx_dtype_bytes(d->dtype);
    if (png_get_rowbytes(d->png, d->info) != stride) {
        png_error(d->png, "unexpected row size");
    }
    for (int pass = 0; pass < d->passes; pass++) {
        uint8_t *row = d->image->pixels;
        for (int y = 0; y < d->height; y++, row += stride) {
            png_read_row(d->png, row, NULL);
        }
    }
    png_read_end(d->png, NULL);
}

/* All code that may longjmp. */
static void decode(decoder *d)
{
    read_header(d);
    int64_t bytes = (int64_t)d->height * d->width * d->channels * (int64_t)sx_dtype_bytes(d->dtype);
    SX_TRY_GOTO(d->status, sx_image_limits_check(d->options->limits, d->height, d->width, bytes),
                done);
    SX_TRY_GOTO(d->status, sx_image_reserve(d->image, d->dtype, d->height, d->width, d->channels),
                done);
    read_pixels(d);
    sx_image_set(d->image, d->dtype, d->height, d->width, d->channels);
    d->image->warnings = 0;
done:
    return;
}

static sx_status run(decoder *d)
{
    d->png = sx_png_create_read(&d->error);
    d->info = d->png != NULL ? png_create_info_struct(d->png) : NULL;
    if (d->info == NULL) {
        return sx_no_memory("for a PNG decoder");
    }
    if (setjmp(d->error.jump) == 0) {
        decode(d);
        return d->status;
    }
    if (d->error.no_memory) {
        return sx_no_memory("reading a PNG");
    }
    return sx_error(SX_DATA_LOSS, "PNG: %s (at byte %zu of %zu)", d->error.message, d->at,
                    d->encoded.size);
}

sx_status sx_png_decode(sx_bytes encoded, const sx_decode_options *options, sx_image *image)
{
    if (options->channels < 0 || options->channels > 4) {
        return sx_error(SX_INVALID_ARGUMENT, "a PNG can be decoded to 1 to 4 channels, not %d",
                        options->channels);
    }
    decoder d;
    memset(&d, 0, sizeof(d));
    d.options = options;
    d.dtype = SX_U8;
    d.encoded = encoded;
    d.image = image;
    sx_status status = run(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    return status;
}
