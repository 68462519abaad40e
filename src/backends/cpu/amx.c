/* See amx.h. */
#include "backends/cpu/amx.h"

#include "backends/cpu/onednn2.h"
#include "base/checked.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { ROWS = SX_AMX_ROWS, DEPTH = SX_AMX_DEPTH, TILE = ROWS * DEPTH, ROW_BYTES = 64 };

static __mmask16 first(int64_t n)
{
    return n >= ROWS ? 0xffff : n <= 0 ? 0 : (__mmask16)((1U << n) - 1);
}

/* 32 numbers from x on, of which there are `n`; behind them zeros. */
static __m512i round_32(const float *x, int64_t n, __m512 factor)
{
    const __m512 low = _mm512_maskz_loadu_ps(first(n), x),
                 high = _mm512_maskz_loadu_ps(first(n - ROWS), x + ROWS);
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(high, factor), _mm512_mul_ps(low, factor));
}

static void round_rows(const float *x, int64_t row, int64_t m, int64_t k, float factor, uint16_t *y)
{
    const int64_t width = sx_amx_padded(k, DEPTH);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < width; j += DEPTH) {
            _mm512_storeu_si512(y + i * width + j,
                                round_32(x + i * row + j, k - j, _mm512_set1_ps(factor)));
        }
    }
    memset(y + m * width, 0, (size_t)((sx_amx_padded(m, ROWS) - m) * width) * sizeof(*y));
}

/* Rows of 16 pairs become columns. */
static void transpose(__m512i *r)
{
    __m512i t[ROWS];
    for (int i = 0; i < ROWS; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]),
                      b = _mm512_unpackhi_epi32(r[i], r[i + 1]),
                      c = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]),
                      d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    /* t[4 q + i] has, of rows 4 q to 4 q + 3, columns i, 4 + i, 8 + i and 12 + i. */
    for (int i = 0; i < 4; i++) {
        const __m512i a = _mm512_shuffle_i32x4(t[i], t[4 + i], 0x88),
                      b = _mm512_shuffle_i32x4(t[i], t[4 + i], 0xdd),
                      c = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0x88),
                      d = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0xdd);
        r[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        r[4 + i] = _mm512_shuffle_i32x4(b, d, 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
        r[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

/* A tile of b[k,n] from its first row and column on, of which there are `k` and `n`. */
static void pack_tile(const float *b, int64_t row, int64_t k, int64_t n, uint16_t *to)
{
    static const uint16_t pairs[DEPTH] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                          21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                          11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i order = _mm512_loadu_si512(pairs);
    for (int64_t i = 0; i < DEPTH; i += 2) {
        const __m512 low = _mm512_maskz_loadu_ps(i < k ? first(n) : 0, b + i * row),
                     high = _mm512_maskz_loadu_ps(i + 1 < k ? first(n) : 0, b + (i + 1) * row);
        _mm512_storeu_si512(to + i * ROWS, _mm512_permutexvar_epi16(
                                               order, (__m512i)_mm512_cvtne2ps_pbh(high, low)));
    }
}

/* The same of b[n,k]. */
static void pack_transposed(const float *b, int64_t row, int64_t k, int64_t n, uint16_t *to)
{
    __m512i r[ROWS];
    for (int i = 0; i < ROWS; i++) {
        r[i] = i < n ? round_32(b + i * row, k, _mm512_set1_ps(1)) : _mm512_setzero_si512();
    }
    transpose(r);
    for (int i = 0; i < ROWS; i++) {
        _mm512_storeu_si512(to + (int64_t)i * DEPTH, r[i]);
    }
}

static void pack(const float *b, int64_t row, bool transposed, int64_t k, int64_t n,
                 uint16_t *packed)
{
    for (int64_t j = 0; j < n; j += ROWS) {
        for (int64_t l = 0; l < k; l += DEPTH, packed += TILE) {
            if (transposed) {
                pack_transposed(b + j * row + l, row, k - l, n - j, packed);
            } else {
                pack_tile(b + l * row + j, row, k - l, n - j, packed);
            }
        }
    }
}

/* Palette 1: 8 tiles of 16 rows of 64 bytes. */
static void configure(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = ROW_BYTES;
        config.rows[i] = ROWS;
    }
    _tile_loadconfig(&config);
}

/* The compiler is not told what memory the tiles, and their configuration, are read from and
 * written to. */
#define MEMORY_BARRIER __asm__ volatile("" ::: "memory")

/* Tile `number` is rows i.. and columns j.. of c, of which there may be fewer. */
#define STORE(number, i, j)                                                              \
    if (m - (i) >= ROWS && n - (j) >= ROWS) {                                            \
        _tile_stored(number, c + (i)*row + (j), row * (int64_t)sizeof(*c));              \
    } else {                                                                             \
        _tile_stored(number, edge, ROW_BYTES);                                           \
        MEMORY_BARRIER;                                                                  \
        write_edge(edge, SX_MIN(m - (i), (int64_t)ROWS), SX_MIN(n - (j), (int64_t)ROWS), \
                   c + (i)*row + (j), row);                                              \
    }

static void write_edge(const float *edge, int64_t rows, int64_t columns, float *c, int64_t row)
{
    for (int64_t i = 0; i < rows; i++) {
        memcpy(c + i * row, edge + i * ROWS, (size_t)columns * sizeof(*c));
    }
}

static void multiply(const uint16_t *a, const uint16_t *packed, int64_t m, int64_t n, int64_t k,
                     float *c, int64_t row)
{
    const int64_t width = sx_amx_padded(k, DEPTH), apart = width * (int64_t)sizeof(*a);
    float edge[ROWS * ROWS];
    MEMORY_BARRIER;
    configure();
    for (int64_t j = 0; j < n; j += 2 * ROWS) {
        const uint16_t *b = packed + j * width, *b2 = b + ROWS * width;
        const bool right = j + ROWS < n;
        for (int64_t i = 0; i < m; i += 2 * ROWS) {
            const uint16_t *x = a + i * width, *x2 = x + ROWS * width;
            const bool below = i + ROWS < m;
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
            for (int64_t l = 0; l < width; l += DEPTH) {
                _tile_loadd(4, x + l, apart);
                _tile_loadd(6, b + l * ROWS, ROW_BYTES);
                _tile_dpbf16ps(0, 4, 6);
                if (right) {
                    _tile_loadd(7, b2 + l * ROWS, ROW_BYTES);
                    _tile_dpbf16ps(1, 4, 7);
                }
                if (below) {
                    _tile_loadd(5, x2 + l, apart);
                    _tile_dpbf16ps(2, 5, 6);
                }
                if (below && right) {
                    _tile_dpbf16ps(3, 5, 7);
                }
            }
            STORE(0, i, j)
            if (right) {
                STORE(1, i, j + ROWS)
            }
            if (below) {
                STORE(2, i + ROWS, j)
            }
            if (below && right) {
                STORE(3, i + ROWS, j + ROWS)
            }
        }
    }
    _tile_release();
    MEMORY_BARRIER;
}

/* 2^x, 2^-18 of itself off at most, by Taylor's polynomial of what remains of x beside an integer.
 * Of -inf that is NaN, but scalef(NaN, -inf) is 0: what a mask leaves out depends on it. */
static __m512 power_of_2(__m512 x)
{
    const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 r = _mm512_sub_ps(x, whole);
    __m512 p = _mm512_set1_ps(1.3333558e-3F);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.6181291e-3F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.5504109e-2F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.4022651e-1F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.9314718e-1F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, whole);
}

/* What is no number is passed over: the instruction gives its second operand then. */
static float largest(const float *x, int64_t n)
{
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 all = least;
    for (int64_t j = 0; j < n; j += ROWS) {
        all = _mm512_max_ps(_mm512_mask_loadu_ps(least, first(n - j), x + j), all);
    }
    return _mm512_reduce_max_ps(all);
}

static void softmax(const float *x, int64_t m, int64_t n, uint16_t *y, float *sums)
{
    const int64_t width = sx_amx_padded(n, DEPTH);
    const __m512 per_e = _mm512_set1_ps(1.44269504088896341F);
    for (int64_t i = 0; i < m; i++, x += n, y += width) {
        const __m512 most = _mm512_set1_ps(largest(x, n));
        __m512 sum = _mm512_setzero_ps();
        for (int64_t j = 0; j < width; j += DEPTH) {
            __m512 e[2];
            for (int64_t k = 0; k < 2; k++) {
                const int64_t at = j + k * ROWS;
                const __mmask16 there = first(n - at);
                const __m512 less = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, x + at), most);
                e[k] = _mm512_maskz_mov_ps(there, power_of_2(_mm512_mul_ps(less, per_e)));
                sum = _mm512_add_ps(sum, e[k]);
            }
            _mm512_storeu_si512(y + j, (__m512i)_mm512_cvtne2ps_pbh(e[1], e[0]));
        }
        sums[i] = _mm512_reduce_add_ps(sum);
    }
    memset(y, 0, (size_t)((sx_amx_padded(m, ROWS) - m) * width) * sizeof(*y));
}

static void divide(const float *sums, int64_t m, int64_t n, float *c, int64_t row)
{
    for (int64_t i = 0; i < m; i++, c += row) {
        const __m512 factor = _mm512_set1_ps(1 / sums[i]);
        for (int64_t j = 0; j < n; j += ROWS) {
            const __mmask16 there = first(n - j);
            _mm512_mask_storeu_ps(c + j, there,
                                  _mm512_mul_ps(_mm512_maskz_loadu_ps(there, c + j), factor));
        }
    }
}

const sx_amx *sx_amx_find(void)
{
    static const sx_amx amx = {round_rows, pack, multiply, softmax, divide};
    return sx_dnn_has_amx() ? &amx : NULL; /* oneDNN has asked the kernel for the tiles */
}

#else

const sx_amx *sx_amx_find(void)
{
    return NULL;
}
#endif
