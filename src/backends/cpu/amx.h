/* Products of bfloat16 in the tiles of Intel's AMX: for matrices that are made and multiplied in
 * one run, which oneDNN 2.6 would pack and plan anew (attention).
 *
 *     c[m,n] = a[m,k] b[k,n]
 *
 * a lies in rows of padded k; b is packed, tile by tile: 16 pairs of k by 16 columns, each pair
 * beside the next. Sums are float32, over k in order, whatever rows are computed together. */
#ifndef SX_BACKENDS_CPU_AMX_H
#define SX_BACKENDS_CPU_AMX_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SX_AMX_ROWS = 16,  /* m and n are padded to a multiple of it, */
    SX_AMX_DEPTH = 32, /* and k of this */
};

static inline int64_t sx_amx_padded(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

typedef struct sx_amx {
    /* Rounds x[m,k] * factor; rows of x are `row` floats apart. y: [padded m, padded k] */
    void (*round_rows)(const float *x, int64_t row, int64_t m, int64_t k, float factor,
                       uint16_t *y);
    /* Rounds and packs b[k,n], or b[n,k] if `transposed`; rows are `row` floats apart.
     * packed: [padded n, padded k] */
    void (*pack)(const float *b, int64_t row, bool transposed, int64_t k, int64_t n,
                 uint16_t *packed);
    /* Rows of c are `row` floats apart. */
    void (*multiply)(const uint16_t *a, const uint16_t *packed, int64_t m, int64_t n, int64_t k,
                     float *c, int64_t row);
    /* softmax of x[m,n] = y / sums, where y is rounded and the sums are not.
     * y: [padded m, padded n for k]; sums: [m] */
    void (*softmax)(const float *x, int64_t m, int64_t n, uint16_t *y, float *sums);
    /* c[i] /= sums[i], of m rows of n that are `row` apart */
    void (*divide)(const float *sums, int64_t m, int64_t n, float *c, int64_t row);
} sx_amx;

/* NULL: this processor has none, or may not use it (ONEDNN_MAX_CPU_ISA). */
const sx_amx *sx_amx_find(void);

#endif
