/* See matrix_loops.h. */
#include "graph/ops/matrix_loops.h"

#include <string.h>

#include "base/clones.h"

enum {
    LANES = 4,   /* of a vector */
    ROWS = 4,    /* of a tile, whose sums stay in registers */
    VECTORS = 2, /* of a row of a tile */
    WIDTH = LANES * VECTORS,
    DEPTH = 128,       /* rows of b that are packed at a time */
    STRIP = 4 * LANES, /* columns of rows that are rotated at a time */
};

typedef double vector __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* c [rows, WIDTH] += a panel, both of `depth` terms. */
INLINE void tile(const int rows, double *c, int64_t row_c, const double *a, int64_t row_a,
                 int64_t column_a, const double *panel, int64_t depth)
{
    vector sums[ROWS][VECTORS];
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < VECTORS; v++) {
            sums[i][v] = *(const vector *)(c + i * row_c + v * LANES);
        }
    }
    for (int64_t l = 0; l < depth; l++, panel += WIDTH, a += column_a) {
        for (int i = 0; i < rows; i++) {
            for (int v = 0; v < VECTORS; v++) {
                sums[i][v] += a[i * row_a] * *(const vector *)(panel + v * LANES);
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < VECTORS; v++) {
            *(vector *)(c + i * row_c + v * LANES) = sums[i][v];
        }
    }
}

/* The same of a panel whose last columns are zeros and not c's. */
INLINE void edge_tile(const int rows, double *c, int64_t row_c, int64_t columns, const double *a,
                      int64_t row_a, int64_t column_a, const double *panel, int64_t depth)
{
    double room[ROWS * WIDTH];
    if (columns == WIDTH) {
        tile(rows, c, row_c, a, row_a, column_a, panel, depth);
        return;
    }
    for (int i = 0; i < rows; i++) {
        for (int64_t j = 0; j < WIDTH; j++) {
            room[i * WIDTH + j] = j < columns ? c[i * row_c + j] : 0;
        }
    }
    tile(rows, room, WIDTH, a, row_a, column_a, panel, depth);
    for (int i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            c[i * row_c + j] = room[i * WIDTH + j];
        }
    }
}

SX_CLONES static void add_packed(double *c, int64_t row_c, int64_t m, int64_t columns,
                                 const double *a, int64_t row_a, int64_t column_a,
                                 const double *panel, int64_t depth)
{
    int64_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        edge_tile(ROWS, c + i * row_c, row_c, columns, a + i * row_a, row_a, column_a, panel,
                  depth);
    }
    for (; i < m; i++) {
        edge_tile(1, c + i * row_c, row_c, columns, a + i * row_a, row_a, column_a, panel, depth);
    }
}

void sx_matrix_add_product(double *c, int64_t row_c, int64_t m, int64_t n, int64_t k, double factor,
                           sx_matrix_view a, sx_matrix_view b)
{
    double panel[DEPTH * WIDTH];
    for (int64_t j = 0; j < n; j += WIDTH) {
        const int64_t columns = n - j < WIDTH ? n - j : WIDTH;
        for (int64_t l = 0; l < k; l += DEPTH) {
            const int64_t depth = k - l < DEPTH ? k - l : DEPTH;
            for (int64_t r = 0; r < depth; r++) {
                const double *from = b.at + (l + r) * b.row + j * b.column;
                for (int64_t w = 0; w < WIDTH; w++) {
                    panel[r * WIDTH + w] = w < columns ? factor * from[w * b.column] : 0;
                }
            }
            add_packed(c + j, row_c, m, columns, a.at + l * a.column, a.row, a.column, panel,
                       depth);
        }
    }
}

SX_CLONES static double row_dot(const double *x, const double *y, int64_t n)
{
    vector sums[4] = {{0}};
    int64_t i = 0;
    for (; i + STRIP <= n; i += STRIP) {
        for (int v = 0; v < 4; v++) {
            sums[v] += *(const vector *)(x + i + v * LANES) * *(const vector *)(y + i + v * LANES);
        }
    }
    for (; i + LANES <= n; i += LANES) {
        sums[0] += *(const vector *)(x + i) * *(const vector *)(y + i);
    }
    const vector sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (; i < n; i++) {
        all += x[i] * y[i];
    }
    return all;
}

double sx_row_dot(const double *x, const double *y, int64_t n)
{
    return row_dot(x, y, n);
}

SX_CLONES static void row_add(double *restrict y, double factor, const double *restrict x,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] += factor * x[i];
    }
}

void sx_row_add(double *restrict y, double factor, const double *restrict x, int64_t n)
{
    row_add(y, factor, x, n);
}

SX_CLONES static void row_add_rows(double *restrict y, const double *factors,
                                   const double *restrict x, int64_t row_x, int64_t rows, int64_t n)
{
    int64_t k = 0;
    for (; k + 4 <= rows; k += 4, x += 4 * row_x) {
        const double *f = factors + k;
        for (int64_t i = 0; i < n; i++) {
            y[i] = (((y[i] + f[0] * x[i]) + f[1] * x[row_x + i]) + f[2] * x[2 * row_x + i]) +
                   f[3] * x[3 * row_x + i];
        }
    }
    for (; k < rows; k++, x += row_x) {
        for (int64_t i = 0; i < n; i++) {
            y[i] += factors[k] * x[i];
        }
    }
}

void sx_row_add_rows(double *restrict y, const double *factors, const double *restrict x,
                     int64_t row_x, int64_t rows, int64_t n)
{
    row_add_rows(y, factors, x, row_x, rows, n);
}

SX_CLONES static void row_rotate(double *restrict x, double *restrict y, int64_t n, double cosine,
                                 double sine)
{
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i], b = y[i];
        x[i] = cosine * a + sine * b;
        y[i] = cosine * b - sine * a;
    }
}

void sx_row_rotate(double *restrict x, double *restrict y, int64_t n, double cosine, double sine)
{
    row_rotate(x, y, n, cosine, sine);
}

/* Columns [0, STRIP) of a sweep. */
INLINE void rotate_strip(double *a, int64_t row_a, const sx_row_sweep *sweep)
{
    vector x[STRIP / LANES];
    double *row = a + sweep->first * row_a;
    for (int v = 0; v < STRIP / LANES; v++) {
        x[v] = *(const vector *)(row + v * LANES);
    }
    for (int64_t k = sweep->first; k < sweep->last; k++, row += row_a) {
        const double c = sweep->cosines[k], s = sweep->sines[k];
        for (int v = 0; v < STRIP / LANES; v++) {
            const vector y = *(const vector *)(row + row_a + v * LANES);
            *(vector *)(row + v * LANES) = c * x[v] + s * y;
            x[v] = c * y - s * x[v];
        }
    }
    for (int v = 0; v < STRIP / LANES; v++) {
        *(vector *)(row + v * LANES) = x[v];
    }
}

SX_CLONES static void rows_rotate(double *a, int64_t row_a, int64_t n, const sx_row_sweep *sweeps,
                                  int count)
{
    int64_t j = 0;
    for (; j + STRIP <= n; j += STRIP) {
        for (int i = 0; i < count; i++) {
            rotate_strip(a + j, row_a, &sweeps[i]);
        }
    }
    for (int i = 0; i < count && j < n; i++) {
        for (int64_t k = sweeps[i].first; k < sweeps[i].last; k++) {
            const double c = sweeps[i].cosines[k], s = sweeps[i].sines[k];
            double *row = a + k * row_a;
            for (int64_t l = j; l < n; l++) {
                const double x = row[l], y = row[row_a + l];
                row[l] = c * x + s * y;
                row[row_a + l] = c * y - s * x;
            }
        }
    }
}

void sx_rows_rotate(double *a, int64_t row_a, int64_t n, const sx_row_sweep *sweeps, int count)
{
    rows_rotate(a, row_a, n, sweeps, count);
}

SX_CLONES static void symmetric_row_update(double *restrict row, const double *restrict v,
                                           const double *restrict w, const double *restrict x,
                                           double *restrict y, int64_t n)
{
    const double v0 = v[0], w0 = w[0], x0 = x[0];
    vector sums[2] = {{0}};
    int64_t i = 1;
    row[0] -= 2 * v0 * w0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        for (int part = 0; part < 2; part++) {
            const int64_t j = i + part * LANES;
            const vector a = *(const vector *)(row + j) -
                             (v0 * *(const vector *)(w + j) + w0 * *(const vector *)(v + j));
            *(vector *)(row + j) = a;
            sums[part] += a * *(const vector *)(x + j);
            *(vector *)(y + j) += x0 * a;
        }
    }
    const vector sum = sums[0] + sums[1];
    double all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (; i < n; i++) {
        row[i] -= v0 * w[i] + w0 * v[i];
        all += row[i] * x[i];
        y[i] += x0 * row[i];
    }
    y[0] += row[0] * x0 + all;
}

void sx_symmetric_row_update(double *restrict row, const double *restrict v,
                             const double *restrict w, const double *restrict x, double *restrict y,
                             int64_t n)
{
    symmetric_row_update(row, v, w, x, y, n);
}

void sx_matrix_transpose(double *to, int64_t row_to, const double *from, int64_t row_from,
                         int64_t m, int64_t n)
{
    enum { BLOCK = 8 }; /* a cache line of each */
    for (int64_t i = 0; i < m; i += BLOCK) {
        for (int64_t j = 0; j < n; j += BLOCK) {
            for (int64_t k = i; k < i + BLOCK && k < m; k++) {
                for (int64_t l = j; l < j + BLOCK && l < n; l++) {
                    to[l * row_to + k] = from[k * row_from + l];
                }
            }
        }
    }
}
