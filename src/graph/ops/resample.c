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
                    if (weight == 0) {
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
