/* The loops over numbers, compiled once for each instruction set and chosen when the program
 * starts.
 *
 *   base   what the compiler assumes (x86-64: SSE2; others: plain C)
 *   v3     AVX2, FMA
 *   v4     AVX-512 F, BW, CD, DQ, VL
 *
 * The bodies are plain C (*.inc) that compilers vectorize; vec_base.c, vec_v3.c, vec_v4.c include
 * them under different flags. No function depends on where a range begins or ends: element i of a
 * result is the same bits whatever range it was computed in. Reductions have one order, which is
 * part of the function. */
#ifndef SX_BACKENDS_CPU_VEC_H
#define SX_BACKENDS_CPU_VEC_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/ops/conv_geometry.h"
#include "graph/special_functions.h"

/* ---- The elementwise tape ---- */

/* One code for each elementwise row; then batch norm and its gradient, of the tape alone. */
typedef enum sx_vec_code {
#define MAP(name, dtypes, tf, expression) SX_VEC_##name,
#define ZIP(name, dtypes, tf, expression) SX_VEC_##name,
#include "graph/elementwise.def"
#undef MAP
#undef ZIP
    SX_VEC_CODES,
    SX_VEC_NORM = SX_VEC_CODES, /* (a - v0) v1 + v2, of the slots from `vectors` on */
    SX_VEC_NORM_GRAD,           /* a v3 + ((b - v0) v1 + v2) */
} sx_vec_code;
/* dst[i] = the row's expression of a[i], b[i]; dst may be a or b. */
typedef void sx_vec_loop(float *dst, const float *a, const float *b, int64_t n);

/* The same, giving bools. */
typedef void sx_vec_test(uint8_t *dst, const float *a, const float *b, int64_t n);

/* y[i] = the special function of x[i]; y may be x */
typedef void sx_vec_special(const float *x, float *y, int64_t n);

/* z[i] = x[i] shifted by y[i], which is limited to 0 .. bits - 1; all of one type of integer */
typedef void sx_vec_shift(const void *x, const void *y, void *z, int64_t n);
typedef struct sx_vec_shifts {
    sx_vec_shift *left, *right;
} sx_vec_shifts;

/* y[i] = how many bits of x[i] are 1 */
typedef void sx_vec_count(const void *x, uint8_t *y, int64_t n);

enum {
    SX_VEC_CHUNK = 512,
    SX_VEC_TEMPS = 8,
    SX_VEC_INPUTS = 14,
    SX_VEC_TAPE = 48,
    SX_VEC_ROWS = 4,
    SX_VEC_CACHED_BYTES = 512 * 1024, /* of a matrix that stays in the second-level cache */
};

/* dst = code(a, b). Slots: [0, n_in) inputs, [n_in, n_in + SX_VEC_TEMPS) temporaries; the last
 * operation's dst is the output. */
typedef struct sx_vec_op {
    uint8_t code, dst, a, b, vectors;
} sx_vec_op;

typedef struct sx_vec_tape {
    int n_in, n_ops;
    /* Element e of the output reads element e of input i, or with a period e % period[i] (all
     * periods above 1 are equal), or with a repeat e / repeat[i]. 0 = neither. With blocks, which
     * are whole periods and all equal, the next `period` elements are read from each block on:
     * e / block[i] * period[i] + e % period[i]. */
    int64_t period[SX_VEC_INPUTS], repeat[SX_VEC_INPUTS], block[SX_VEC_INPUTS];
    bool narrow[SX_VEC_INPUTS]; /* input i is bfloat16; neither period nor repeat */
    bool narrow_out;
    sx_vec_op ops[SX_VEC_TAPE];
} sx_vec_tape;

/* ---- The table ---- */

/* Updates of variables, in the operator's order. Results may be the operands. */
typedef struct sx_vec_update {
    const void *var, *slot[3], *g;
    void *out_var, *out_slot[3];
    int64_t begin, end; /* elements */
} sx_vec_update;

typedef struct sx_vec_momentum {
    double lr, momentum;
    bool nesterov;
} sx_vec_momentum;

/* Slots: the mean of squares, of gradients if `centered`, the momentum's if it is not 0. */
typedef struct sx_vec_rmsprop {
    double lr, rho, one_minus_rho, momentum, epsilon;
    bool centered;
} sx_vec_rmsprop;

typedef struct sx_vec_adam {
    double alpha, one_minus_beta1, one_minus_beta2, epsilon;
} sx_vec_adam;

/* Of one dtype, to which the factors are rounded. */
typedef struct sx_vec_updates {
    void (*sgd)(double lr, const sx_vec_update *u);
    void (*momentum)(const sx_vec_momentum *a, const sx_vec_update *u);
    void (*rmsprop)(const sx_vec_rmsprop *a, const sx_vec_update *u);
    void (*adam)(const sx_vec_adam *a, const sx_vec_update *u);
} sx_vec_updates;

typedef struct sx_vec_dropout {
    uint32_t key[2], step, threshold;
    double scale;
    int64_t first_example, examples, elems; /* elems of one example */
} sx_vec_dropout;

/* Numbers that lie there as float32 or as bfloat16. */
typedef struct sx_vec_image {
    const void *data;
    bool narrow; /* bfloat16 */
} sx_vec_image;

/* Layer, group and RMS norm; gamma, beta: one for each column, or NULL. */
typedef struct sx_vec_norm {
    const float *gamma, *beta;
    float epsilon;
    bool centered; /* less the mean; RMS norm is not */
} sx_vec_norm;

/* Vectors of the channels of a batch norm of doubles; what a loop reads of them:
 * batch_norm_f64.inc. */
typedef struct sx_vec_channels_f64 {
    const double *mean, *a, *b, *c;
} sx_vec_channels_f64;

/* A network's first convolution (stem.inc), NHWC by HWIO. offset[t]: where tap t of a pixel lies
 * from its first, in the padded image; taps = kernel height, width and channels. */
typedef struct sx_vec_stem {
    int64_t n, h, w, c, o; /* images, and filters */
    int64_t top, left, padded_h, padded_w;
    int64_t stride_h, stride_w;
    int64_t out_h, out_w;   /* of the convolution */
    int64_t pool_h, pool_w; /* of 2x2 windows; 0 without a pool */
    int64_t taps;
    const int64_t *offset;
} sx_vec_stem;

/* A convolution of 3x3 in tiles of m x m results (winograd.inc), NHWC by HWIO. */
typedef struct sx_vec_winograd {
    int m; /* 2 or 4 */
    int64_t n, c, o;
    int64_t in_h, in_w, out_h, out_w;
    int64_t top, left;        /* padding */
    int64_t tiles_h, tiles_w; /* of an image */
    int64_t block;            /* tiles that are computed together */
    float low, high;          /* results are clipped to them */
} sx_vec_winograd;

/* What is done to a sum before it is written. */
typedef enum sx_vec_act { SX_VEC_CLIP, SX_VEC_SWISH, SX_VEC_GELU } sx_vec_act;

/* y = act(x[m,k] b[k,n] + bias + added) of a packed matrix b (dense.inc). */
typedef struct sx_vec_dense {
    int64_t m, k, n;
    int64_t panels;  /* dense_panels(n) */
    int64_t block;   /* rows that go through all panels together */
    bool transposed; /* b is [n,k] before it is packed */
    sx_vec_act act;
    float low, high; /* SX_VEC_CLIP: results are clipped to them; else infinite */
} sx_vec_dense;

typedef struct sx_vec_dense_args {
    const float *x, *packed;
    const float *bias;  /* [n] */
    const float *added; /* NULL: none; may be y */
    float *y;
    float *scratch; /* dense_scratch(), of this call alone */
} sx_vec_dense_args;

/* y = x scale + shift, or relu of it, rounded to bfloat16: rows of n channels. */
typedef struct sx_vec_affine {
    const void *x; /* rows side by side */
    bool narrow;   /* bfloat16; else float32 */
    bool relu;
    int64_t rows, n;            /* n > 0 */
    const float *scale, *shift; /* [n] */
    void *y;
    bool wide;     /* y is float32; else bfloat16 */
    int64_t y_row; /* numbers from a row to the next */
} sx_vec_affine;

/* c[m,n] = a[m,k] b[k,n] of doubles, k > 0: rows [first, last), columns [begin, end)
 * (product_f64.inc). */
typedef struct sx_vec_product_f64 {
    const double *a, *b;
    double *c;
    int64_t n, k;
    int64_t row_a, inner_a; /* from a row of a, and from a column, to the next */
    bool transpose_b;       /* b is [n,k] */
    int64_t first, last, begin, end;
} sx_vec_product_f64;

/* y = act(conv(x) + bias + added) by groups of `width` channels, each with as many results
 * (grouped.inc). */
typedef struct sx_vec_grouped {
    sx_conv_window h, w;
    int64_t c; /* of all groups */
    int width;
    const float *filter;       /* [h.kernel, w.kernel, width, c] */
    const float *bias, *added; /* [c], as y, which it may be; NULL: none */
    sx_vec_act act;            /* but SX_VEC_GELU */
    float low, high;           /* SX_VEC_CLIP: results are clipped to them */
} sx_vec_grouped;

/* The gradient of a depthwise filter, of n images: [h.kernel, w.kernel, c]. */
typedef struct sx_vec_depthwise_filter {
    sx_conv_window h, w;
    int64_t n, c;
} sx_vec_depthwise_filter;

/* y = act(conv(x) + bias) of a depthwise convolution whose image is of bfloat16
 * (depthwise_bf16.inc). */
typedef struct sx_vec_depthwise {
    sx_conv_window h, w;
    int64_t c;
    bool rounds;     /* results are rounded to bfloat16, */
    bool narrow;     /* and lie there so; else as float32 */
    sx_vec_act act;  /* but SX_VEC_GELU */
    float low, high; /* SX_VEC_CLIP: results are clipped to them; else infinite */
} sx_vec_depthwise;

typedef struct sx_vec_depthwise_args {
    const uint16_t *x;
    const float *packed; /* by depthwise_pack() of a filter of numbers of bfloat16 */
    const float *bias;   /* [c]; NULL: none */
    void *y;
} sx_vec_depthwise_args;

/* Pixel i of a row is the sum of weight[k] times the pixel that begins at x[at[k]], for count[i] k
 * from i * most on. */
typedef struct sx_vec_taps {
    int64_t n, most, channels;
    int64_t *at, *count;
    float *weight;
} sx_vec_taps;

typedef struct sx_cpu_vec {
    const char *name;
    sx_vec_loop *const *loops; /* [SX_VEC_CODES]; NULL: a word of the row has no vector form */
    sx_vec_test *const *tests; /* [SX_VEC_CODES]; NULL: the row gives no bools */
    sx_vec_loop *atan2;
    sx_vec_special *const *specials; /* [SX_SPECIAL_FUNCTIONS]; NULL: it has no vector form */
    const sx_vec_shifts *unsigned_shifts, *signed_shifts; /* [4]: of 1, 2, 4, 8 bytes */
    sx_vec_count *const *bit_counts;                      /* [4] likewise */
    void (*clip)(const float *x, float *y, int64_t n, float low, float high);
    void (*leaky_relu)(const float *x, float *y, int64_t n, float alpha);
    void (*elu)(const float *x, float *y, int64_t n, float alpha);
    void (*select_4)(const uint8_t *condition, const uint32_t *x, const uint32_t *y, uint32_t *z,
                     int64_t n);
    /* Elements [begin, end), of which the first becomes out's. */
    void (*tape)(const sx_vec_tape *t, const float *const *in, float *out, int64_t begin,
                 int64_t end);

    /* rounds to nearest even */
    void (*to_bf16)(const float *x, uint16_t *y, int64_t n);
    void (*from_bf16)(const uint16_t *x, float *y, int64_t n);
    /* y[i] = x[i] inverse, rounded to the nearest even integer that the dtype has; and back */
    void (*to_u8)(const float *x, float inverse, uint8_t *y, int64_t n);
    void (*to_s8)(const float *x, float inverse, int8_t *y, int64_t n);
    void (*from_u8)(const uint8_t *x, float step, float *y, int64_t n);
    void (*from_s8)(const int8_t *x, float step, float *y, int64_t n);
    /* rounds to nearest even */
    void (*to_f16)(const float *x, uint16_t *y, int64_t n);
    void (*from_f16)(const uint16_t *x, float *y, int64_t n);

    /* out[i] = the sum over parts[k][i], as a balanced tree over k */
    void (*sum_parts)(float *out, const float *const *parts, int n, int64_t begin, int64_t end);
    void (*sum_parts_f64)(double *out, const double *const *parts, int n, int64_t begin,
                          int64_t end);
    /* x [rows, cols] -> out[cols]: sum over rows, in blocks of 64 */
    void (*sum_rows)(const float *x, int64_t rows, int64_t cols, float *out);
    void (*sum_rows_bf16)(const uint16_t *x, int64_t rows, int64_t cols, float *out);
    /* x [rows, cols] -> out[rows] */
    void (*sum_cols)(const float *x, int64_t rows, int64_t cols, float *out);
    void (*max_cols)(const float *x, int64_t rows, int64_t cols, float *out);
    /* x [rows, cols] -> mean[cols], variance[cols], in blocks that Chan's formula joins */
    void (*moments)(sx_vec_image x, int64_t rows, int64_t cols, float *mean, float *variance);
    /* dy, x [rows, cols]: dscale += sum dy (x - mean), doffset += sum dy */
    void (*norm_sums)(sx_vec_image dy, sx_vec_image x, const float *mean, int64_t rows,
                      int64_t cols, float *dscale, float *doffset);
    void (*norm_channels_f64)(const sx_vec_channels_f64 *k, const double *x, int64_t rows,
                              int64_t cols, double *y);
    void (*norm_channels_grad_f64)(const sx_vec_channels_f64 *k, const double *dy, const double *x,
                                   int64_t rows, int64_t cols, double *dx);
    void (*norm_channels_sums_f64)(const sx_vec_channels_f64 *k, const double *dy, const double *x,
                                   int64_t rows, int64_t cols, double *dscale, double *doffset);
    /* y = (x - mean) / sqrt(variance + epsilon) gamma + beta, of each row; y may be x */
    void (*norm_rows)(const sx_vec_norm *norm, const float *x, int64_t rows, int64_t cols,
                      float *y);
    /* the same of each group of `inner` columns over all rows; scratch [2 cols] */
    void (*norm_groups)(const sx_vec_norm *norm, const float *x, int64_t rows, int64_t cols,
                        int64_t inner, float *scratch, float *y);
    bool (*all_finite)(const float *x, int64_t n);
    bool (*all_finite_f64)(const double *x, int64_t n);

    /* c[m,n] = a[m,k] b[k,n], columns [begin, end), for m of 1 to SX_VEC_ROWS and k > 0; the bits
     * of an element depend on its row of a and its column of b alone */
    void (*product)(const float *a, int64_t m, int64_t k, const float *b, int64_t n, float *c,
                    int64_t begin, int64_t end);

    void (*product_f64)(const sx_vec_product_f64 *p);

    /* Columns are divided into panels, and work into blocks of rows by panels, those of a block
     * following one another: [begin, end) of them. An element's bits depend on its row of x and its
     * column of b alone. */
    int64_t (*dense_panels)(int64_t n);
    int64_t (*dense_packed)(const sx_vec_dense *d);  /* floats of b */
    int64_t (*dense_scratch)(const sx_vec_dense *d); /* floats */
    void (*dense_pack)(const sx_vec_dense *d, const float *b, float *packed);
    void (*dense)(const sx_vec_dense *d, const sx_vec_dense_args *a, int64_t begin, int64_t end);

    /* Rows [begin, end) of the results of all images; groups of 1, 2, 4, … up to grouped_width
     * channels. */
    void (*grouped)(const sx_vec_grouped *d, const float *x, float *y, int64_t begin, int64_t end);
    int grouped_width;
    int64_t (*depthwise_packed)(const sx_vec_depthwise *d); /* floats of a packed filter */
    void (*depthwise_pack)(const sx_vec_depthwise *d, const float *filter, float *packed);
    /* Rows [begin, end) of the results of all images. */
    void (*depthwise)(const sx_vec_depthwise *d, const sx_vec_depthwise_args *a, int64_t begin,
                      int64_t end);
    void (*depthwise_filter)(const sx_vec_depthwise_filter *d, const float *x, const float *dy,
                             float *dw, int64_t begin, int64_t end); /* channels */

    /* y = scale (rows[0] weight[0] + rows[1] weight[1] + ...); y = a + (b - a) share */
    void (*weigh_rows)(const float *const *rows, const float *weight, int64_t count, float scale,
                       float *y, int64_t n);
    void (*blend_rows)(const float *a, const float *b, float share, float *y, int64_t n);
    /* Of a row x, behind which there is room for 3 floats. blend_pixels: of two each, by the second
     * one's share, which is its weight. */
    void (*weigh_pixels)(const sx_vec_taps *t, const float *x, float *y);
    void (*blend_pixels)(const sx_vec_taps *t, const float *x, float *y);

    /* x [rows, cols] */
    void (*softmax)(const float *x, int64_t rows, int64_t cols, float *y);
    void (*log_softmax)(const float *x, int64_t rows, int64_t cols, float *y);
    void (*softmax_f64)(const double *x, int64_t rows, int64_t cols, double *y);
    void (*log_softmax_f64)(const double *x, int64_t rows, int64_t cols, double *y);
    /* label[i] outside [0, cols): NaN */
    void (*softmax_xent)(const float *x, const int64_t *label, int64_t rows, int64_t cols,
                         float *loss, float *backprop);

    void (*dropout)(const sx_vec_dropout *d, const float *x, float *y);
    void (*dropout_f64)(const sx_vec_dropout *d, const double *x, double *y);

    void (*max_pool)(const sx_pool_geometry *g, const float *x, float *y);
    /* relu: the gradient also passes a relu whose output x is */
    void (*max_pool_grad)(const sx_pool_geometry *g, bool relu, const float *x, const float *y,
                          const float *dy, float *dx);
    void (*avg_pool)(const sx_pool_geometry *g, const float *x, float *y);
    void (*avg_pool_grad)(const sx_pool_geometry *g, const float *dy, float *dx);
    void (*affine_rows)(const sx_vec_affine *a);
    void (*max_pool_bf16)(const sx_pool_geometry *g, const uint16_t *x, uint16_t *y);
    void (*avg_pool_bf16)(const sx_pool_geometry *g, const uint16_t *x, uint16_t *y);
    void (*max_pool_f64)(const sx_pool_geometry *g, const double *x, double *y);
    void (*max_pool_grad_f64)(const sx_pool_geometry *g, bool relu, const double *x,
                              const double *y, const double *dy, double *dx);
    void (*avg_pool_f64)(const sx_pool_geometry *g, const double *x, double *y);
    void (*avg_pool_grad_f64)(const sx_pool_geometry *g, const double *dy, double *dx);

    /* o must be a multiple of stem_width. `padded` is an image's room, NULL without padding. */
    int stem_width;
    void (*stem_forward)(const sx_vec_stem *s, const float *x, const float *filter,
                         const float *bias, float *y, uint8_t *index, float *padded);
    /* index NULL: no pool behind; dy is the convolution's own */
    void (*stem_backward)(const sx_vec_stem *s, const float *x, const float *y, const float *dy,
                          const uint8_t *index, float *dfilter, float *dbias, float *padded);

    int winograd_width; /* filters of a panel; work is divided into blocks of tiles, by panels */
    int64_t (*winograd_packed)(const sx_vec_winograd *w);  /* floats of packed filters */
    int64_t (*winograd_scratch)(const sx_vec_winograd *w); /* floats */
    /* The filters' channels [begin, end). */
    void (*winograd_pack)(const sx_vec_winograd *w, const float *filter, float *packed,
                          int64_t begin, int64_t end);
    /* Blocks and panels [begin, end) of y = clip(conv(x, filter) + bias + added); panels of a block
     * follow one another. bias, added: NULL without; added may be y. */
    void (*winograd)(const sx_vec_winograd *w, const float *x, const float *packed,
                     const float *bias, const float *added, float *y, float *scratch, int64_t begin,
                     int64_t end);
    int64_t (*winograd_filter_scratch)(const sx_vec_winograd *w); /* floats */
    /* The gradient of the filter, of x and the gradient of the results (winograd_filter.inc). */
    void (*winograd_filter)(const sx_vec_winograd *w, const float *x, const float *dy,
                            float *filter, float *scratch);

    sx_vec_updates updates, updates_f64;
} sx_cpu_vec;

/* What this processor runs best. SEXTANT_CPU_VEC=base|v3|v4 asks for a lesser one (tests). */
const sx_cpu_vec *sx_cpu_vec_best(void);
extern const sx_cpu_vec sx_cpu_vec_base;
#if defined(__x86_64__)
extern const sx_cpu_vec sx_cpu_vec_v3, sx_cpu_vec_v4;
#endif

#endif
