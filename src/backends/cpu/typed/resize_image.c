/* resize_image: along the rows first, each row of the image once, then down the columns.
 *
 *   lines    the last rows of the image that were made as wide as the result; a row of the result
 *            needs `most` that follow one another, so that they have places of their own among
 *            most + 1, by number
 *
 * nearest copies pixels. */
#include <string.h>

#include "backends/cpu/typed/typed.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/ops/resample.h"

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    const sx_type *x = &in[0].type;
    return x->rank == 4 && sx_dtype_bytes(x->dtype) > 0 && x->dtype != SX_BOOL;
}

/* ---- Nearest ---- */

static void copy_pixels(const char *line, const int64_t *at, int64_t width, size_t bytes, char *to)
{
#define COPY(size)                                             \
    case size:                                                 \
        for (int64_t i = 0; i < width; i++, to += (size)) {    \
            memcpy(to, line + (size_t)at[i] * (size), (size)); \
        }                                                      \
        break;
    switch (bytes) {
        COPY(1)
        COPY(2)
        COPY(3)
        COPY(4)
        COPY(8)
        COPY(12)
        COPY(16)
    default:
        for (int64_t i = 0; i < width; i++, to += bytes) {
            memcpy(to, line + (size_t)at[i] * bytes, bytes);
        }
        break;
    }
#undef COPY
}

static sx_status copy_nearest(const sx_typed_call *c, const sx_axis_weights *rows,
                              const sx_axis_weights *columns)
{
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const size_t pixel = (size_t)x->dims[3] * sx_dtype_bytes(x->dtype);
    const size_t line = pixel * (size_t)x->dims[2], made = pixel * (size_t)y->dims[2];
    const char *from = c->in[0].data;
    char *to = c->out[0].data;
    for (int64_t i = 0; i < y->dims[0] * y->dims[1]; i++, to += made) {
        const int64_t row = i % y->dims[1];
        SX_TRY(sx_cancel_check(c->context->cancel));
        if (row > 0 && rows->at[row] == rows->at[row - 1]) {
            memcpy(to, to - made, made);
        } else {
            const int64_t source = i / y->dims[1] * x->dims[1] + rows->at[row];
            copy_pixels(from + (size_t)source * line, columns->at, y->dims[2], pixel, to);
        }
    }
    return SX_OK;
}

/* ---- Weighted sums ---- */

/* One row of the image as wide as the result. */
static void widen(const float *x, const sx_axis_weights *columns, int64_t width, int64_t channels,
                  float *y)
{
    const int64_t most = columns->most;
#define WIDEN(n)                                                           \
    for (int64_t i = 0; i < width; i++, y += (n)) {                        \
        for (int64_t k = 0; k < (n); k++) {                                \
            y[k] = 0;                                                      \
        }                                                                  \
        for (int64_t q = i * most; q < (i + 1) * most; q++) {              \
            const float weight = (float)columns->weight[q];                \
            const float *pixel = x + columns->at[q] * (n);                 \
            for (int64_t k = 0; k < (n) && columns->weight[q] != 0; k++) { \
                y[k] += weight * pixel[k];                                 \
            }                                                              \
        }                                                                  \
    }
    switch (channels) { /* counts that the compiler knows */
    case 1:
        WIDEN(1)
        break;
    case 3:
        WIDEN(3)
        break;
    case 4:
        WIDEN(4)
        break;
    default:
        WIDEN(channels)
        break;
    }
#undef WIDEN
}

static sx_status sum_weighted(const sx_typed_call *c, const sx_axis_weights *rows,
                              const sx_axis_weights *columns)
{
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t height = x->dims[1], line = x->dims[2] * x->dims[3];
    const int64_t width = y->dims[2], channels = y->dims[3], made = width * channels;
    const int64_t places = SX_MIN(rows->most + 1, height);
    int64_t elems;
    float *lines = NULL;
    float *converted = sx_arena_array(c->context->arena, line + 1, float);
    int64_t *held = sx_arena_array(c->context->arena, places + 1, int64_t);
    if (sx_mul_i64(places, made, &elems)) {
        lines = sx_arena_array(c->context->arena, elems + 1, float);
    }
    if (lines == NULL || converted == NULL || held == NULL) {
        return sx_no_memory("for the rows of images");
    }
    for (int64_t i = 0; i < places; i++) {
        held[i] = -1;
    }
    float *to = c->out[0].data;
    for (int64_t i = 0; i < y->dims[0] * y->dims[1]; i++, to += made) {
        const int64_t image = i / y->dims[1] * height, first = i % y->dims[1] * rows->most;
        SX_TRY(sx_cancel_check(c->context->cancel));
        memset(to, 0, (size_t)made * sizeof(float));
        for (int64_t r = first; r < first + rows->most; r++) {
            const int64_t row = image + rows->at[r], place = rows->at[r] % places;
            const float weight = (float)rows->weight[r];
            float *from = lines + place * made;
            if (rows->weight[r] == 0) {
                continue;
            }
            if (held[place] != row) {
                widen(sx_typed_floats(&c->in[0], row * line, line, converted), columns, width,
                      channels, from);
                held[place] = row;
            }
            for (int64_t k = 0; k < made; k++) {
                to[k] += weight * from[k];
            }
        }
    }
    return SX_OK;
}

static sx_status run(const sx_typed_call *c)
{
    const sx_resize_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const sx_kernel_call call = {.attrs = attrs, .arena = c->context->arena};
    sx_axis_weights rows, columns;
    SX_TRY(sx_resize_image_weights(&call, x->dims[1], y->dims[1], &rows));
    SX_TRY(sx_resize_image_weights(&call, x->dims[2], y->dims[2], &columns));
    return attrs->method == SX_RESIZED_NEAREST ? copy_nearest(c, &rows, &columns)
                                               : sum_weighted(c, &rows, &columns);
}

const sx_typed_kernel sx_typed_resize_image = {
    .op = SX_OPID_resize_image, .sizes = 1U << 1, .takes = takes, .run = run};
