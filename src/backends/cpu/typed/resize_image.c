/* resize_image: nearest copies pixels, others are weighted sums (resample.h). */
#include <string.h>

#include "backends/cpu/typed/resample.h"
#include "graph/ops/attrs.h"

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    const sx_type *x = &in[0].type;
    return x->rank == 4 && sx_dtype_bytes(x->dtype) > 0 && x->dtype != SX_BOOL;
}

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

/* In the order of TensorFlow's sums, whose weights of areas are not divided by the scales. */
static sx_status run(const sx_typed_call *c)
{
    const sx_resize_image_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const sx_kernel_call call = {.attrs = attrs, .arena = c->context->arena};
    sx_axis_weights rows, columns;
    if (sx_resize_image_copies(attrs, x, y)) {
        const int64_t n = sx_type_elems(y);
        const float *floats = sx_typed_floats(&c->in[0], 0, n, c->out[0].data);
        if (floats != c->out[0].data) {
            memcpy(c->out[0].data, floats, (size_t)n * sizeof(float));
        }
        return SX_OK;
    }
    SX_TRY(sx_resize_image_weights(&call, x->dims[1], y->dims[1], &rows));
    SX_TRY(sx_resize_image_weights(&call, x->dims[2], y->dims[2], &columns));
    if (attrs->method == SX_RESIZED_NEAREST) {
        return copy_nearest(c, &rows, &columns);
    }
    sx_resampling r = {.rows = &rows,
                       .columns = &columns,
                       .row_scale = 1,
                       .column_scale = 1,
                       .scale = 1,
                       .rows_first = attrs->method == SX_RESIZED_BICUBIC,
                       .blend = attrs->method == SX_RESIZED_BILINEAR};
    if (attrs->method == SX_RESIZED_AREA) {
        const float down = sx_resize_image_scale(attrs, x->dims[1], y->dims[1]),
                    across = sx_resize_image_scale(attrs, x->dims[2], y->dims[2]);
        r.row_scale = down;
        r.column_scale = across;
        r.scale = (float)(1.0 / (double)(down * across));
    }
    return sx_typed_resample(c, &r);
}

const sx_typed_kernel sx_typed_resize_image = {
    .op = SX_OPID_resize_image, .sizes = 1U << 1, .takes = takes, .run = run};
