#include "generated_inputs.h"

#include <string.h>

#include "base/memory.h"
#include "image/encode.h"
#include "image/generate.h"

enum { IMAGE_SIDE = 224, OTHER_SIZE = 32, QUALITY = 90 };

/* ---- The type ---- */

static sx_type close_type(sx_type type, const sx_generated_sizes *sizes)
{
    const int64_t other = sizes->other > 0 ? sizes->other : OTHER_SIZE;
    const int64_t image = sizes->image > 0 ? sizes->image : IMAGE_SIDE;
    type = sx_type_with_batch(type, sizes->batch);
    for (int d = 0; d < type.rank; d++) {
        const bool side = type.rank == 4 && (d == 1 || d == 2);
        if (type.dims[d] < 0) {
            type.dims[d] = d == 0 ? sizes->batch : side ? image : other;
        }
    }
    return type;
}

/* ---- The elements ---- */

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static void fill_numbers(sx_tensor *t, int64_t n)
{
    enum { RANGE = 1 << 24 };
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t random = next(&state);
        switch (t->type.dtype) {
        case SX_F32:
            ((float *)t->data)[i] = (float)random / RANGE;
            break;
        case SX_F64:
            ((double *)t->data)[i] = (double)random / RANGE;
            break;
        case SX_U8:
            ((uint8_t *)t->data)[i] = (uint8_t)random;
            break;
        case SX_BOOL:
            ((uint8_t *)t->data)[i] = 1;
            break;
        default: /* zeros already */
            return;
        }
    }
}

static sx_status draw_flower(sx_arena *arena, sx_bytes *out)
{
    enum { BYTES = IMAGE_SIDE * IMAGE_SIDE * 3 };
    uint8_t *pixels = sx_arena_array(arena, BYTES, uint8_t);
    int label;
    sx_buf file;
    if (pixels == NULL) {
        return sx_no_memory("for generated inputs");
    }
    SX_TRY(sx_flowers_draw(1, 0, IMAGE_SIDE, pixels, &label));
    sx_buf_init(&file, 0);
    const sx_image image = {
        .pixels = pixels, .dtype = SX_U8, .height = IMAGE_SIDE, .width = IMAGE_SIDE, .channels = 3};
    sx_status status = sx_jpeg_encode(&image, QUALITY, &file);
    status = status == SX_OK ? sx_buf_status(&file) : status;
    void *copy = status == SX_OK ? sx_arena_memdup(arena, file.data, file.size) : NULL;
    *out = (sx_bytes){copy, file.size};
    sx_buf_deinit(&file);
    return status == SX_OK && copy == NULL ? sx_no_memory("for generated inputs") : status;
}

static sx_status fill_strings(sx_tensor *t, int64_t n, sx_arena *arena)
{
    sx_bytes flower = {NULL, 0};
    SX_TRY(draw_flower(arena, &flower));
    for (int64_t i = 0; i < n; i++) {
        ((sx_bytes *)t->data)[i] = flower;
    }
    return SX_OK;
}

sx_status sx_generate_input(sx_type type, const sx_generated_sizes *sizes, sx_arena *arena,
                            sx_tensor *out)
{
    const bool strings = type.dtype == SX_STRING;
    type = close_type(type, sizes);
    const int64_t n = sx_type_elems(&type);
    const int64_t each = strings ? (int64_t)sizeof(sx_bytes) : (int64_t)sx_dtype_bytes(type.dtype);
    if (type.rank == SX_UNKNOWN_RANK || n < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "its rank is unknown, so no input can be made up");
    }
    if (n > INT64_MAX / 2 / (each + 1)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "it is too large for a batch of %lld",
                        (long long)sizes->batch);
    }
    *out = (sx_tensor){type, sx_arena_alloc(arena, (size_t)n + 1, (size_t)each)};
    if (out->data == NULL) {
        return sx_no_memory("for generated inputs");
    }
    if (strings) {
        return fill_strings(out, n, arena);
    }
    fill_numbers(out, n);
    return SX_OK;
}
