/* Shared by the operators that round to a grid of so many bits, and by their kernels: the grid that
 * a range of numbers has. Every number here is rounded to the operand's dtype, step by step as
 * TensorFlow's kernels do, so that the same elements fall on the same side of a step. */
#ifndef SX_GRAPH_OPS_QUANTIZE_H
#define SX_GRAPH_OPS_QUANTIZE_H

#include "graph/ops/common.h"

/* fake_quant: the range moved so that 0 is on the grid. A range [0, 0] has no steps: `scale` is 0.
 */
typedef struct sx_fake_quant_grid {
    float low, high; /* nudged */
    float scale, inverse, zero;
    bool empty; /* of the range [0, 0] */
} sx_fake_quant_grid;

void sx_fake_quant_grid_of(const sx_fake_quant_attrs *attrs, float low, float high,
                           sx_fake_quant_grid *out);

/* quantize_dequantize: the scale at which the range fits into the integers, and the part of it that
 * these cover; in float64 if `wide`, otherwise numbers of float32. */
typedef struct sx_quantize_grid {
    double low, high, scale, inverse;
} sx_quantize_grid;

void sx_quantize_grid_of(const sx_quantize_dequantize_attrs *attrs, bool wide, double low,
                         double high, sx_quantize_grid *out);

/* The results of a quantizer of the range, low and high included: `step` times the integers from
 * `first` to `last`. */
typedef struct sx_quantize_steps {
    float step;
    int first, last;
} sx_quantize_steps;

/* fake_quant or quantize_dequantize */
bool sx_is_quantizer(const sx_node *n);
/* `n`: a quantizer of up to 16 bits with a given range, of float32; false for
 * any other, and if there is no step: the range [0, 0], NaN. */
bool sx_quantize_steps_of(const sx_node *n, float low, float high, sx_quantize_steps *out);

/* low and high of x: scalars, or vectors as long as the axis; of x's dtype. axis -1: scalars. */
SX_MUST_USE sx_status sx_infer_quantize_range(const sx_type *x, const sx_type *low,
                                              const sx_type *high, int64_t axis);
/* Of element i of x: its place in low and high. */
int64_t sx_quantize_channel(const sx_type *x, const sx_type *low, int64_t axis, int64_t i);

#endif
