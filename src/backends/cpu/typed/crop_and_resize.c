/* crop_and_resize: where the columns of a box lie is computed once, and each row of a crop reads
 * two rows of the image. */
#include <math.h>
#include <string.h>

#include "backends/cpu/typed/typed.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/ops/resample.h"

/* A place along an axis: between `low` and `high`, or outside: low < 0. */
typedef struct place {
    int64_t low, high;
    float part; /* of high */
} place;

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    const sx_type *x = &in[0].type;
    return x->rank == 4 && x->dtype != SX_F64 && x->dtype != SX_BOOL && in[1].type.rank == 2 &&
           in[2].type.rank == 1;
}

static place place_at(float v, int64_t size, bool nearest)
{
    if (!(v >= 0 && v <= (float)(size - 1))) {
        return (place){.low = -1};
    }
    const int64_t near = (int64_t)roundf(v);
    return nearest ? (place){near, near, 0}
                   : (place){(int64_t)floorf(v), (int64_t)ceilf(v), v - floorf(v)};
}

static sx_status run(const sx_typed_call *c)
{
    const sx_crop_and_resize_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    const int64_t height = x->dims[1], width = x->dims[2], channels = x->dims[3];
    const int64_t line = width * channels;
    const bool nearest = sx_string_is(attrs->method, "nearest");
    const float outside = (float)attrs->extrapolation_value;
    const float *boxes = c->in[1].data;
    const int32_t *images = c->in[2].data;
    float *to = c->out[0].data;
    sx_arena *arena = c->context->arena;
    place *columns = sx_arena_array(arena, y->dims[2] + 1, place);
    float *above = sx_arena_array(arena, line + 1, float);
    float *below = sx_arena_array(arena, line + 1, float);
    if (columns == NULL || above == NULL || below == NULL) {
        return sx_no_memory("for the rows of images");
    }
    for (int64_t n = 0; n < y->dims[0]; n++) {
        const float *box = boxes + 4 * n;
        for (int64_t i = 0; i < y->dims[2]; i++) {
            columns[i] =
                place_at(sx_crop_place(i, y->dims[2], box[1], box[3], width), width, nearest);
        }
        for (int64_t i = 0; i < y->dims[1]; i++) {
            const place row =
                place_at(sx_crop_place(i, y->dims[1], box[0], box[2], height), height, nearest);
            const float *top = NULL, *bottom = NULL;
            SX_TRY(sx_cancel_check(c->context->cancel));
            if (row.low >= 0) {
                const int64_t image = (int64_t)images[n] * height;
                top = sx_typed_floats(&c->in[0], (image + row.low) * line, line, above);
                bottom = row.high == row.low
                             ? top
                             : sx_typed_floats(&c->in[0], (image + row.high) * line, line, below);
            }
            for (int64_t q = 0; q < y->dims[2]; q++, to += channels) {
                const place *p = &columns[q];
                if (top == NULL || p->low < 0) {
                    for (int64_t k = 0; k < channels; k++) {
                        to[k] = outside;
                    }
                    continue;
                }
                const float *a = top + p->low * channels, *b = top + p->high * channels;
                const float *d = bottom + p->low * channels, *e = bottom + p->high * channels;
                if (nearest) {
                    memcpy(to, a, (size_t)channels * sizeof(float));
                    continue;
                }
                for (int64_t k = 0; k < channels; k++) {
                    const float up = a[k] + (b[k] - a[k]) * p->part;
                    const float down = d[k] + (e[k] - d[k]) * p->part;
                    to[k] = up + (down - up) * row.part;
                }
            }
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_crop_and_resize = {
    .op = SX_OPID_crop_and_resize, .sizes = 1U << 2 | 1U << 3, .takes = takes, .run = run};
