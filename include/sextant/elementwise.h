/* Elementwise operators of one expression; two inputs broadcast. See ops.h.
 * Written by tools/gen-ops from src/graph/elementwise.def: do not edit. */
#ifndef SEXTANT_ELEMENTWISE_H
#define SEXTANT_ELEMENTWISE_H

#include <sextant/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -x */
SX_API sx_value sx_neg_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_neg(b, x) sx_neg_at((b), (x), SX_HERE_)

/* |x| */
SX_API sx_value sx_abs_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_abs(b, x) sx_abs_at((b), (x), SX_HERE_)

/* -1, 0 or 1 by the sign of x */
SX_API sx_value sx_sign_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_sign(b, x) sx_sign_at((b), (x), SX_HERE_)

/* x² */
SX_API sx_value sx_square_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_square(b, x) sx_square_at((b), (x), SX_HERE_)

/* √x */
SX_API sx_value sx_sqrt_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_sqrt(b, x) sx_sqrt_at((b), (x), SX_HERE_)

/* 1 / √x */
SX_API sx_value sx_rsqrt_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_rsqrt(b, x) sx_rsqrt_at((b), (x), SX_HERE_)

/* eˣ */
SX_API sx_value sx_exp_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_exp(b, x) sx_exp_at((b), (x), SX_HERE_)

/* ln x */
SX_API sx_value sx_ln_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_ln(b, x) sx_ln_at((b), (x), SX_HERE_)

/* ln(1 + x), exact near 0 */
SX_API sx_value sx_log1p_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_log1p(b, x) sx_log1p_at((b), (x), SX_HERE_)

/* cos x */
SX_API sx_value sx_cos_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_cos(b, x) sx_cos_at((b), (x), SX_HERE_)

/* the greatest integer not above x, as a float */
SX_API sx_value sx_floor_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_floor(b, x) sx_floor_at((b), (x), SX_HERE_)

/* tanh x */
SX_API sx_value sx_tanh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_tanh(b, x) sx_tanh_at((b), (x), SX_HERE_)

/* 1 / (1 + e⁻ˣ) */
SX_API sx_value sx_sigmoid_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_sigmoid(b, x) sx_sigmoid_at((b), (x), SX_HERE_)

/* max(x, 0), propagates NaN */
SX_API sx_value sx_relu_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_relu(b, x) sx_relu_at((b), (x), SX_HERE_)

/* min(max(x, 0), 6) */
SX_API sx_value sx_relu6_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_relu6(b, x) sx_relu6_at((b), (x), SX_HERE_)

/* x / (1 + |x|) */
SX_API sx_value sx_softsign_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_softsign(b, x) sx_softsign_at((b), (x), SX_HERE_)

/* x s, where s = 1 / (1 + e⁻ˣ) */
SX_API sx_value sx_swish_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_swish(b, x) sx_swish_at((b), (x), SX_HERE_)

/* not x */
SX_API sx_value sx_logical_not_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_logical_not(b, x) sx_logical_not_at((b), (x), SX_HERE_)

/* x + y */
SX_API sx_value sx_add_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_add(b, x, y) sx_add_at((b), (x), (y), SX_HERE_)

/* x - y */
SX_API sx_value sx_sub_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_sub(b, x, y) sx_sub_at((b), (x), (y), SX_HERE_)

/* x y */
SX_API sx_value sx_mul_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_mul(b, x, y) sx_mul_at((b), (x), (y), SX_HERE_)

/* x / y */
SX_API sx_value sx_div_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_div(b, x, y) sx_div_at((b), (x), (y), SX_HERE_)

/* xʸ */
SX_API sx_value sx_pow_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_pow(b, x, y) sx_pow_at((b), (x), (y), SX_HERE_)

/* the angle of the point (y, x) in (-π, π] */
SX_API sx_value sx_atan2_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_atan2(b, x, y) sx_atan2_at((b), (x), (y), SX_HERE_)

/* max(x, y), NaN if either is */
SX_API sx_value sx_maximum_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_maximum(b, x, y) sx_maximum_at((b), (x), (y), SX_HERE_)

/* min(x, y), NaN if either is */
SX_API sx_value sx_minimum_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_minimum(b, x, y) sx_minimum_at((b), (x), (y), SX_HERE_)

/* y[..., c] = x[..., c] + b[c] */
SX_API sx_value sx_bias_add_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_bias_add(b, x, y) sx_bias_add_at((b), (x), (y), SX_HERE_)

/* x == y */
SX_API sx_value sx_equal_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_equal(b, x, y) sx_equal_at((b), (x), (y), SX_HERE_)

/* x < y */
SX_API sx_value sx_less_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_less(b, x, y) sx_less_at((b), (x), (y), SX_HERE_)

/* x > y */
SX_API sx_value sx_greater_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_greater(b, x, y) sx_greater_at((b), (x), (y), SX_HERE_)

/* x and y */
SX_API sx_value sx_logical_and_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                  int line);
#define sx_logical_and(b, x, y) sx_logical_and_at((b), (x), (y), SX_HERE_)

#ifdef __cplusplus
}
#endif

#endif
