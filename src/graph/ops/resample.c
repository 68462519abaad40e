/* See resample.h. */
#include "graph/ops/resample.h"

#include "base/checked.h"
#include "base/memory.h"

sx_status sx_infer_resized(const char *what, const sx_type *images, const char *what_size,
                           const sx_type *size, sx_dtype dtype, sx_type *out)
{
    SX_TRY(sx_require_maybe(what, images, images->dtype, 4, "[N,H,W,C]"));
    SX_TRY(sx_require_maybe(what_size, size, SX_I32, 1, "[2]"));
    SX_TRY(sx_require_number(what, images));
    const bool known = images->rank == 4;
    *out = sx_type_of(dtype, known ? images->dims[0] : SX_UNKNOWN_DIM, SX_UNKNOWN_DIM,
                      SX_UNKNOWN_DIM, known ? images->dims[3] : SX_UNKNOWN_DIM);
    return SX_OK;
}

sx_status sx_resized_type(int64_t n, const sx_type *images, const char *what_size,
                          const sx_host_tensor *size, sx_dtype dtype, sx_type *out)
{
    if (sx_type_elems(&size->type) != 2) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected [2]", what_size,
                        SX_TEXT(&size->type));
    }
    if (size->i[0] < 1 || size->i[1] < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "%s is %lldx%lld, expected a height and width above 0",
                        what_size, (long long)size->i[0], (long long)size->i[1]);
    }
    *out = sx_type_of(dtype, n, size->i[0], size->i[1], images->dims[3]);
    return sx_require_made("the result", out);
}

sx_status sx_axis_weights_make(const sx_kernel_call *c, int64_t out, int64_t most,
                               sx_axis_weights *w)
{
    int64_t n;
    *w = (sx_axis_weights){.most = most};
    if (sx_mul_i64(out, most, &n)) {
        w->at = sx_arena_array(c->arena, n, int64_t);
        w->weight = sx_arena_array(c->arena, n, double);
    }
    return w->at != NULL && w->weight != NULL ? SX_OK : sx_no_memory("for the weights of pixels");
}

sx_status sx_resample(const sx_kernel_call *c, const sx_axis_weights *rows,
                      const sx_axis_weights *columns)
{
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t height = y->dims[1], width = y->dims[2], channels = y->dims[3];
    const int64_t pixels = sx_type_elems(x);
    const double *from = c->in[0].f;
    double *to = c->out[0].f;
    if (sx_carrier_of(x->dtype) != SX_CARRIER_F) {
        double *numbers = sx_arena_array(c->arena, pixels, double);
        for (int64_t k = 0; k < pixels && numbers != NULL; k++) {
            numbers[k] = sx_host_get(&c->in[0], k);
        }
        if ((from = numbers) == NULL) {
            return sx_no_memory("for the numbers of images");
        }
    }
    for (int64_t i = 0; i < y->dims[0] * height; i++) {
        const int64_t row = i % height * rows->most;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t column = 0; column < width; column++, to += channels) {
            for (int64_t k = 0; k < channels; k++) {
                to[k] = 0;
            }
            for (int64_t r = 0; r < rows->most; r++) {
                const double *line =
                    from + (i / height * x->dims[1] + rows->at[row + r]) * x->dims[2] * channels;
                for (int64_t q = column * columns->most; q < (column + 1) * columns->most; q++) {
                    const double weight = rows->weight[row + r] * columns->weight[q];
                    if (weight == 0 && !rows->zeros) {
                        continue;
                    }
                    for (int64_t k = 0; k < channels; k++) {
                        to[k] += weight * line[columns->at[q] * channels + k];
                    }
                }
            }
        }
    }
    return SX_OK;
}

sx_status sx_resample_back(const sx_kernel_call *c, const sx_axis_weights *rows,
                           const sx_axis_weights *columns)
{
    const sx_type *x = &c->out[0].type, *y = &c->in[0].type;
    const int64_t height = y->dims[1], width = y->dims[2], channels = y->dims[3];
    const double *from = c->in[0].f;
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < y->dims[0] * height; i++) {
        const int64_t row = i % height * rows->most;
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t column = 0; column < width; column++, from += channels) {
            for (int64_t r = 0; r < rows->most; r++) {
                double *line = c->out[0].f + (i / height * x->dims[1] + rows->at[row + r]) *
                                                 x->dims[2] * channels;
                for (int64_t q = column * columns->most; q < (column + 1) * columns->most; q++) {
                    const double weight = rows->weight[row + r] * columns->weight[q];
                    if (weight == 0) {
                        continue;
                    }
                    for (int64_t k = 0; k < channels; k++) {
                        line[columns->at[q] * channels + k] += weight * from[k];
                    }
                }
            }
        }
    }
    return SX_OK;
}

sx_status sx_infer_resample_grad(sx_infer_context *c)
{
    const sx_type *dy = &c->inputs[0], *x = &c->inputs[1];
    SX_TRY(sx_require_float("dy", dy));
    SX_TRY(sx_require_float("images", x));
    SX_TRY(sx_require_maybe("dy", dy, dy->dtype, 4, "[N,h,w,C]"));
    SX_TRY(sx_require_maybe("images", x, x->dtype, 4, "[N,H,W,C]"));
    c->outputs[0] = *x;
    return SX_OK;
}

sx_status sx_check_resample_grad(const sx_kernel_call *c)
{
    const sx_type *dy = &c->in[0].type, *x = &c->in[1].type;
    const bool fit = dy->dims[0] == x->dims[0] && dy->dims[3] == x->dims[3] && x->dims[1] > 0 &&
                     x->dims[2] > 0 && dy->dims[1] > 0 && dy->dims[2] > 0;
    return fit ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "dy is %s and images are %s, expected pixels, as many images and as many "
                          "channels",
                          SX_TEXT(dy), SX_TEXT(x));
}

sx_value sx_size_of_images(sx_builder *b, sx_value x)
{
    const sx_type type = sx_type_of_value(b, x);
    const int32_t size[] = {(int32_t)type.dims[1], (int32_t)type.dims[2]};
    return sx_constant(b, (sx_tensor){sx_type_of(SX_I32, 2), (void *)size});
}
