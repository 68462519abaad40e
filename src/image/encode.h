/* Encoding of images. The same pixels and options give the same bytes (with the same libjpeg and
 * zlib): the files contain no time, name or version. */
#ifndef SX_IMAGE_ENCODE_H
#define SX_IMAGE_ENCODE_H

#include "base/buffer.h"
#include "image/image.h"

/* Appends a baseline JFIF file to `out`. `image` is uint8 with 1 (gray) or 3 channels (RGB, stored
 * as YCbCr 4:2:0); quality is libjpeg's, 1 to 100.
 * Errors: INVALID_ARGUMENT: dtype, channels, quality, a side above 65500; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_jpeg_encode(const sx_image *image, int quality, sx_buf *out);

/* Appends a PNG file to `out`. `image` is uint8 with 1 to 4 channels (gray, gray + alpha, RGB,
 * RGBA). Lossless. Errors as above. */
SX_MUST_USE sx_status sx_png_encode(const sx_image *image, sx_buf *out);

#endif
