/* See resample.h. The order of sums is part of the result:
 *
 *   columns first   each row of the image is made as wide as the result once, and kept while rows
 *                   of the result need it
 *   rows first      rows of the image, as floats, become one of the result's, which is then made as
 *                   wide
 *
 * A row of the result needs `most` lines that follow one another, so that they have places of their
 * own among most + 1, by number. */
#include "backends/cpu/typed/resample.h"

#include <string.h>

#include "backends/cpu/vec/vec.h"
#include "base/checked.h"
#include "base/memory.h"

enum { BEHIND = 3 /* floats, as vec.h asks */ };

typedef struct work {
    const sx_typed_call *c;
    const sx_resampling *r;
    const sx_cpu_vec *vec;
    sx_vec_taps rows, columns;
    int64_t height, line, made; /* of the image; floats of its rows, of the result's */
    int64_t places, *held;      /* of kept lines: which row of all images each is, or -1 */
    int64_t kept;               /* floats of one */
    float *lines, *row;
    const float **taken; /* of a row of the result */
} work;

static sx_status no_memory(void)
{
    return sx_no_memory("for the rows of images");
}

/* Weights of zero are left out, but where two pixels are blended or such weights count. */
static sx_status make_taps(const work *w, const sx_axis_weights *from, double scale, int64_t n,
                           int64_t channels, sx_vec_taps *to)
{
    sx_arena *arena = w->c->context->arena;
    *to = (sx_vec_taps){.n = n, .most = from->most, .channels = channels};
    to->at = sx_arena_array(arena, n * from->most + 1, int64_t);
    to->count = sx_arena_array(arena, n + 1, int64_t);
    to->weight = sx_arena_array(arena, n * from->most + 1, float);
    if (to->at == NULL || to->count == NULL || to->weight == NULL) {
        return no_memory();
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = i * from->most; k < (i + 1) * from->most; k++) {
            const int64_t place = i * from->most + to->count[i];
            if (from->weight[k] != 0 || w->r->blend || from->zeros) {
                to->at[place] = from->at[k] * channels;
                to->weight[place] = (float)(from->weight[k] * scale);
                to->count[i]++;
            }
        }
    }
    return SX_OK;
}

/* Row `row` of all images as floats; in `room`, unless it lies so and is only read to its end. */
static const float *read_row(const work *w, int64_t row, float *room, bool beyond)
{
    const sx_tensor *x = &w->c->in[0];
    const float *floats = sx_typed_floats(x, row * w->line, w->line, room);
    if (floats != room && beyond && (row + 1) * w->line + BEHIND > sx_type_elems(&x->type)) {
        memcpy(room, floats, (size_t)w->line * sizeof(float));
        return room;
    }
    return floats;
}

static void widen(const work *w, const float *x, float *y)
{
    (w->r->blend ? w->vec->blend_pixels : w->vec->weigh_pixels)(&w->columns, x, y);
}

/* Row `at` of image `image`, in its place. */
static const float *take_line(work *w, int64_t image, int64_t at)
{
    const int64_t row = image * w->height + at, place = at % w->places;
    float *line = w->lines + place * w->kept;
    if (w->r->rows_first && w->c->in[0].type.dtype == SX_F32) {
        return read_row(w, row, line, false);
    }
    if (w->held[place] != row) {
        w->held[place] = row;
        if (w->r->rows_first) {
            read_row(w, row, line, false);
        } else {
            widen(w, read_row(w, row, w->row, true), line);
        }
    }
    return line;
}

static void make_row(work *w, int64_t image, int64_t i, float *y)
{
    const int64_t first = i * w->rows.most, count = w->rows.count[i];
    const float *weight = w->rows.weight + first;
    float *sums = w->r->rows_first ? w->row : y;
    for (int64_t k = 0; k < count; k++) {
        w->taken[k] = take_line(w, image, w->rows.at[first + k]);
    }
    if (w->r->blend) {
        w->vec->blend_rows(w->taken[0], w->taken[1], weight[1], sums, w->kept);
    } else {
        w->vec->weigh_rows(w->taken, weight, count, w->r->scale, sums, w->kept);
    }
    if (w->r->rows_first) {
        widen(w, sums, y);
    }
}

sx_status sx_typed_resample(const sx_typed_call *c, const sx_resampling *r)
{
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    sx_arena *arena = c->context->arena;
    work w = {.c = c, .r = r, .vec = sx_cpu_vec_best(), .height = x->dims[1]};
    int64_t floats;
    w.line = x->dims[2] * x->dims[3];
    w.made = y->dims[2] * y->dims[3];
    w.kept = r->rows_first ? w.line : w.made;
    w.places = SX_MIN(r->rows->most + 1, w.height);
    SX_TRY(make_taps(&w, r->rows, r->row_scale, y->dims[1], 1, &w.rows));
    SX_TRY(make_taps(&w, r->columns, r->column_scale, y->dims[2], x->dims[3], &w.columns));
    w.held = sx_arena_array(arena, w.places + 1, int64_t);
    w.row = sx_arena_array(arena, w.line + BEHIND, float);
    w.taken = sx_arena_array(arena, r->rows->most + 1, const float *);
    if (sx_mul_i64(w.places, w.kept, &floats)) {
        w.lines = sx_arena_array(arena, floats + 1, float);
    }
    if (w.held == NULL || w.row == NULL || w.taken == NULL || w.lines == NULL) {
        return no_memory();
    }
    for (int64_t i = 0; i < w.places; i++) {
        w.held[i] = -1;
    }
    for (int64_t i = 0; i < y->dims[0] * y->dims[1]; i++) {
        SX_TRY(sx_cancel_check(c->context->cancel));
        make_row(&w, i / y->dims[1], i % y->dims[1], (float *)c->out[0].data + i * w.made);
    }
    return SX_OK;
}
