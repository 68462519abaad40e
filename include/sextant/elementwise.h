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

/* sin x */
SX_API sx_value sx_sin_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_sin(b, x) sx_sin_at((b), (x), SX_HERE_)

/* tan x */
SX_API sx_value sx_tan_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_tan(b, x) sx_tan_at((b), (x), SX_HERE_)

/* the angle in [-π/2, π/2] whose sine is x, NaN if |x| > 1 */
SX_API sx_value sx_asin_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_asin(b, x) sx_asin_at((b), (x), SX_HERE_)

/* the angle in [0, π] whose cosine is x, NaN if |x| > 1 */
SX_API sx_value sx_acos_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_acos(b, x) sx_acos_at((b), (x), SX_HERE_)

/* the angle in (-π/2, π/2) whose tangent is x */
SX_API sx_value sx_atan_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_atan(b, x) sx_atan_at((b), (x), SX_HERE_)

/* (eˣ - e⁻ˣ) / 2 */
SX_API sx_value sx_sinh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_sinh(b, x) sx_sinh_at((b), (x), SX_HERE_)

/* (eˣ + e⁻ˣ) / 2 */
SX_API sx_value sx_cosh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_cosh(b, x) sx_cosh_at((b), (x), SX_HERE_)

/* the number whose sinh is x */
SX_API sx_value sx_asinh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_asinh(b, x) sx_asinh_at((b), (x), SX_HERE_)

/* the number whose cosh is x, NaN if x < 1 */
SX_API sx_value sx_acosh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_acosh(b, x) sx_acosh_at((b), (x), SX_HERE_)

/* the number whose tanh is x, NaN if |x| > 1 */
SX_API sx_value sx_atanh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_atanh(b, x) sx_atanh_at((b), (x), SX_HERE_)

/* 2/√π ∫₀ˣ exp(-t²) dt */
SX_API sx_value sx_erf_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_erf(b, x) sx_erf_at((b), (x), SX_HERE_)

/* 1 - erf x, exact where that is small */
SX_API sx_value sx_erfc_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_erfc(b, x) sx_erfc_at((b), (x), SX_HERE_)

/* eˣ - 1, exact near 0 */
SX_API sx_value sx_expm1_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_expm1(b, x) sx_expm1_at((b), (x), SX_HERE_)

/* the least integer not below x, as a float */
SX_API sx_value sx_ceil_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_ceil(b, x) sx_ceil_at((b), (x), SX_HERE_)

/* the nearest integer, of two the even one, as a float */
SX_API sx_value sx_round_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_round(b, x) sx_round_at((b), (x), SX_HERE_)

/* 1 / x */
SX_API sx_value sx_reciprocal_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_reciprocal(b, x) sx_reciprocal_at((b), (x), SX_HERE_)

/* ln(1 + eˣ) */
SX_API sx_value sx_softplus_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_softplus(b, x) sx_softplus_at((b), (x), SX_HERE_)

/* scale x if positive, otherwise scale α (eˣ - 1), where scale = 1.0507… and α = 1.6732… */
SX_API sx_value sx_selu_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_selu(b, x) sx_selu_at((b), (x), SX_HERE_)

/* x Φ(x), where Φ is the normal distribution, x erfc(-x/√2) / 2 */
SX_API sx_value sx_gelu_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_gelu(b, x) sx_gelu_at((b), (x), SX_HERE_)

/* x (1 + tanh u) / 2, where u = √(2/π) (x + 0.044715 x³) */
SX_API sx_value sx_gelu_tanh_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_gelu_tanh(b, x) sx_gelu_tanh_at((b), (x), SX_HERE_)

/* min(max(x + 3, 0), 6) / 6 */
SX_API sx_value sx_hard_sigmoid_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_hard_sigmoid(b, x) sx_hard_sigmoid_at((b), (x), SX_HERE_)

/* x min(max(x + 3, 0), 6) / 6 */
SX_API sx_value sx_hard_swish_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_hard_swish(b, x) sx_hard_swish_at((b), (x), SX_HERE_)

/* whether x is not a number */
SX_API sx_value sx_is_nan_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_is_nan(b, x) sx_is_nan_at((b), (x), SX_HERE_)

/* whether x is infinite */
SX_API sx_value sx_is_inf_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_is_inf(b, x) sx_is_inf_at((b), (x), SX_HERE_)

/* whether x is a number and not infinite */
SX_API sx_value sx_is_finite_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_is_finite(b, x) sx_is_finite_at((b), (x), SX_HERE_)

/* ~x, the complement of each bit */
SX_API sx_value sx_invert_at(sx_builder *b, sx_value x, const char *file, int line);
#define sx_invert(b, x) sx_invert_at((b), (x), SX_HERE_)

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

/* x != y */
SX_API sx_value sx_not_equal_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_not_equal(b, x, y) sx_not_equal_at((b), (x), (y), SX_HERE_)

/* x <= y */
SX_API sx_value sx_less_equal_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_less_equal(b, x, y) sx_less_equal_at((b), (x), (y), SX_HERE_)

/* x >= y */
SX_API sx_value sx_greater_equal_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                    int line);
#define sx_greater_equal(b, x, y) sx_greater_equal_at((b), (x), (y), SX_HERE_)

/* x or y */
SX_API sx_value sx_logical_or_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_logical_or(b, x, y) sx_logical_or_at((b), (x), (y), SX_HERE_)

/* x & y, bit by bit */
SX_API sx_value sx_bitwise_and_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                  int line);
#define sx_bitwise_and(b, x, y) sx_bitwise_and_at((b), (x), (y), SX_HERE_)

/* x | y, bit by bit */
SX_API sx_value sx_bitwise_or_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_bitwise_or(b, x, y) sx_bitwise_or_at((b), (x), (y), SX_HERE_)

/* x ^ y, bit by bit */
SX_API sx_value sx_bitwise_xor_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                  int line);
#define sx_bitwise_xor(b, x, y) sx_bitwise_xor_at((b), (x), (y), SX_HERE_)

/* x / y, rounded down */
SX_API sx_value sx_floor_div_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_floor_div(b, x, y) sx_floor_div_at((b), (x), (y), SX_HERE_)

/* x - y floor(x / y), with the sign of y */
SX_API sx_value sx_floor_mod_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_floor_mod(b, x, y) sx_floor_mod_at((b), (x), (y), SX_HERE_)

/* x / y, rounded towards 0 */
SX_API sx_value sx_truncate_div_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                   int line);
#define sx_truncate_div(b, x, y) sx_truncate_div_at((b), (x), (y), SX_HERE_)

/* x - y trunc(x / y), with the sign of x */
SX_API sx_value sx_truncate_mod_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                   int line);
#define sx_truncate_mod(b, x, y) sx_truncate_mod_at((b), (x), (y), SX_HERE_)

/* (x - y)² */
SX_API sx_value sx_squared_difference_at(sx_builder *b, sx_value x, sx_value y, const char *file,
                                         int line);
#define sx_squared_difference(b, x, y) sx_squared_difference_at((b), (x), (y), SX_HERE_)

/* x / y, 0 where y is 0 */
SX_API sx_value sx_div_no_nan_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_div_no_nan(b, x, y) sx_div_no_nan_at((b), (x), (y), SX_HERE_)

/* x y, 0 where y is 0 even if x is not finite */
SX_API sx_value sx_mul_no_nan_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_mul_no_nan(b, x, y) sx_mul_no_nan_at((b), (x), (y), SX_HERE_)

/* x / y, 0 where x is 0 */
SX_API sx_value sx_xdivy_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_xdivy(b, x, y) sx_xdivy_at((b), (x), (y), SX_HERE_)

/* x ln y, 0 where x is 0 */
SX_API sx_value sx_xlogy_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_xlogy(b, x, y) sx_xlogy_at((b), (x), (y), SX_HERE_)

/* x ln(1 + y), 0 where x is 0 */
SX_API sx_value sx_xlog1py_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line);
#define sx_xlog1py(b, x, y) sx_xlog1py_at((b), (x), (y), SX_HERE_)

#ifdef __cplusplus
}
#endif

#endif
