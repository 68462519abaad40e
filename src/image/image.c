/* See image.h. */
#include "image/image.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

const sx_image_limits sx_image_limits_default = {
    .max_pixels = INT64_C(128) << 20, .max_bytes = INT64_C(512) << 20, .max_scans = 500};
const sx_image_limits sx_image_limits_untrusted = {
    .max_pixels = INT64_C(32) << 20, .max_bytes = INT64_C(100) << 20, .max_scans = 100};

sx_image sx_image_view(const uint8_t *pixels, int height, int width, int channels)
{
    return (sx_image){.pixels = (void *)(uintptr_t)pixels,
                      .dtype = SX_U8,
                      .height = height,
                      .width = width,
                      .channels = channels};
}

static bool shape_bytes(sx_dtype dtype, int height, int width, int channels, size_t *out)
{
    size_t bytes = sx_dtype_bytes(dtype);
    return height > 0 && width > 0 && channels > 0 && bytes > 0 &&
           sx_mul_size(bytes, (size_t)channels, &bytes) &&
           sx_mul_size(bytes, (size_t)width, &bytes) && sx_mul_size(bytes, (size_t)height, out);
}

sx_status sx_image_reserve(sx_image *image, sx_dtype dtype, int height, int width, int channels)
{
    size_t bytes = 0;
    if (!shape_bytes(dtype, height, width, channels, &bytes)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "invalid image size %dx%dx%d %s: every dimension must be positive", height,
                        width, channels, sx_dtype_name(dtype));
    }
    if (bytes <= image->capacity_bytes) {
        return SX_OK;
    }
    void *pixels = sx_alloc_aligned(bytes, 64);
    if (pixels == NULL) {
        return sx_no_memory("for an image of %dx%dx%d %s (%zu bytes)", height, width, channels,
                            sx_dtype_name(dtype), bytes);
    }
    sx_image_deinit(image);
    image->pixels = pixels;
    image->capacity_bytes = bytes;
    return SX_OK;
}

void sx_image_set(sx_image *image, sx_dtype dtype, int height, int width, int channels)
{
    size_t bytes = 0;
    bool valid = shape_bytes(dtype, height, width, channels, &bytes);
    assert(valid && bytes <= image->capacity_bytes);
    (void)valid;
    image->dtype = dtype;
    image->height = height;
    image->width = width;
    image->channels = channels;
}

size_t sx_image_elems(const sx_image *image)
{
    return (size_t)image->height * (size_t)image->width * (size_t)image->channels;
}

void sx_image_deinit(sx_image *image)
{
    if (image->capacity_bytes > 0) {
        sx_free_aligned(image->pixels);
    }
    memset(image, 0, sizeof(*image));
}

sx_image_limits sx_image_limits_resolve(const sx_image_limits *limits)
{
    sx_image_limits resolved = limits != NULL ? *limits : sx_image_limits_default;
    if (resolved.max_pixels == 0) {
        resolved.max_pixels = sx_image_limits_default.max_pixels;
    }
    if (resolved.max_bytes == 0) {
        resolved.max_bytes = sx_image_limits_default.max_bytes;
    }
    if (resolved.max_scans == 0) {
        resolved.max_scans = sx_image_limits_default.max_scans;
    }
    return resolved;
}

sx_status sx_image_limits_check(const sx_image_limits *limits, int64_t height, int64_t width,
                                int64_t bytes)
{
    if (height > limits->max_pixels / SX_MAX(width, 1)) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "image of %lldx%lld pixels is larger than the limit of %lld pixels",
                        (long long)height, (long long)width, (long long)limits->max_pixels);
    }
    if (bytes > limits->max_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "decoding an image of %lldx%lld pixels takes %lld bytes; the limit is %lld",
                        (long long)height, (long long)width, (long long)bytes,
                        (long long)limits->max_bytes);
    }
    return SX_OK;
}
