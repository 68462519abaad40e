/* See reflections.h. */
#include "graph/ops/reflections.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clones.h"
#include "graph/ops/matrix_loops.h"

enum {
    BLOCK = SX_REFLECTIONS_BLOCK,
    SMALL = 12, /* rows or columns: reflections are applied one by one */
};

int64_t sx_reflections_room(int64_t columns)
{
    return BLOCK * BLOCK + 2 * BLOCK * columns;
}

double sx_reflection(double *x, int64_t n, double *out_to)
{
    const double begin = x[0], rest = sx_row_dot(x + 1, x + 1, n - 1);
    const double norm = sqrt(begin * begin + rest), to = begin >= 0 ? -norm : norm;
    x[0] = 1;
    if (rest <= DBL_MIN) {
        memset(x + 1, 0, (size_t)(n - 1) * sizeof(*x));
        *out_to = begin;
        return 0;
    }
    for (int64_t i = 1; i < n; i++) {
        x[i] /= begin - to;
    }
    *out_to = to;
    return (to - begin) / to;
}

/* t [BLOCK,BLOCK] of reflections [first, last). */
static void make_triangle(const sx_reflections *r, int64_t first, int64_t last, double *t)
{
    for (int64_t j = first; j < last; j++) {
        const double *v = r->v + j * r->length, factor = r->factors[j];
        const int64_t own = j + r->begin;
        double dots[BLOCK];
        for (int64_t i = first; i < j; i++) {
            dots[i - first] = sx_row_dot(r->v + i * r->length + own, v + own, r->length - own);
        }
        for (int64_t i = first; i < j; i++) {
            double sum = 0;
            for (int64_t l = i; l < j; l++) {
                sum += t[(i - first) * BLOCK + l - first] * dots[l - first];
            }
            t[(i - first) * BLOCK + j - first] = -factor * sum;
        }
        t[(j - first) * BLOCK + j - first] = factor;
        for (int64_t i = j + 1; i < last; i++) {
            t[(i - first) * BLOCK + j - first] = 0;
        }
    }
}

/* The reflection of v[rows], applied to a [rows,columns]; w [columns]. */
SX_CLONES static void reflect_one(const double *restrict v, double factor, double *restrict a,
                                  int64_t row_a, int64_t rows, int64_t columns, double *restrict w)
{
    for (int64_t j = 0; j < columns; j++) {
        w[j] = 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            w[j] += v[i] * a[i * row_a + j];
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        const double v_factor = factor * v[i];
        for (int64_t j = 0; j < columns; j++) {
            a[i * row_a + j] -= v_factor * w[j];
        }
    }
}

/* Reflections [first, last), at most BLOCK, of a, which begins at the first row that they change.
 */
static void reflect_block(const sx_reflections *r, int64_t first, int64_t last, bool transposed,
                          double *a, int64_t row_a, int64_t columns, double *room)
{
    const int64_t count = last - first, rows = r->length - first - r->begin;
    const double *v = r->v + first * r->length + first + r->begin;
    double *t = room, *w = t + BLOCK * BLOCK, *turned = w + BLOCK * columns;
    for (int64_t k = 0; k < count && (rows < SMALL || columns < SMALL); k++) {
        const int64_t i = transposed ? k : count - 1 - k;
        reflect_one(v + i * r->length + i, r->factors[first + i], a + i * row_a, row_a, rows - i,
                    columns, w);
    }
    if (rows < SMALL || columns < SMALL) {
        return;
    }
    make_triangle(r, first, last, t);
    memset(w, 0, (size_t)(2 * BLOCK * columns) * sizeof(*w));
    sx_matrix_add_product(w, columns, count, columns, rows, 1, (sx_matrix_view){v, r->length, 1},
                          (sx_matrix_view){a, row_a, 1});
    sx_matrix_add_product(turned, columns, count, columns, count, 1,
                          (sx_matrix_view){t, transposed ? 1 : BLOCK, transposed ? BLOCK : 1},
                          (sx_matrix_view){w, columns, 1});
    sx_matrix_add_product(a, row_a, rows, columns, count, -1, (sx_matrix_view){v, 1, r->length},
                          (sx_matrix_view){turned, columns, 1});
}

void sx_reflect(const sx_reflections *r, bool transposed, double *a, int64_t row_a, int64_t columns,
                double *room)
{
    const int64_t blocks = (r->count + BLOCK - 1) / BLOCK;
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t first = BLOCK * (transposed ? k : blocks - 1 - k);
        reflect_block(r, first, SX_MIN(first + BLOCK, r->count), transposed,
                      a + (first + r->begin) * row_a, row_a, columns, room);
    }
}

void sx_reflections_product(const sx_reflections *r, double *a, int64_t columns, double *room)
{
    memset(a, 0, (size_t)(r->length * columns) * sizeof(*a));
    for (int64_t i = 0; i < SX_MIN(r->length, columns); i++) {
        a[i * columns + i] = 1;
    }
    for (int64_t first = (r->count - 1) / BLOCK * BLOCK; first >= 0 && r->count > 0;
         first -= BLOCK) {
        /* the columns before are still those of 1 */
        const int64_t from = SX_MIN(first + r->begin, columns);
        reflect_block(r, first, SX_MIN(first + BLOCK, r->count), false,
                      a + (first + r->begin) * columns + from, columns, columns - from, room);
    }
}
