/* What the operators share that read colors: the last dimension is red, green, blue, or hue,
 * saturation, value. */
#ifndef SX_GRAPH_OPS_COLOR_H
#define SX_GRAPH_OPS_COLOR_H

#include "graph/builder.h"
#include "graph/ops/host_ops.h"

/* Hue in [0, 1), 0 of a grey; saturation 0 of black. */
void sx_rgb_to_hsv(const double rgb[3], double hsv[3]);
void sx_hsv_to_rgb(const double hsv[3], double rgb[3]);

/* Input 0 is floats [..., 3], further ones float32 scalars; the output has its type. */
SX_MUST_USE sx_status sx_infer_colors(sx_infer_context *c);
/* INVALID_ARGUMENT: the last dimension of input 0 is not 3. */
SX_MUST_USE sx_status sx_require_colors(const sx_kernel_call *c);

/* Of gradients: one channel of x [...,3], [...,1]; three of them together; the two functions of
 * colors as nodes. */
sx_value sx_channel(sx_builder *b, sx_value x, int channel);
sx_value sx_channels(sx_builder *b, sx_value first, sx_value second, sx_value third);
sx_value sx_formula_of_hsv(sx_builder *b, sx_value rgb);
sx_value sx_formula_of_rgb(sx_builder *b, sx_value hsv);

#endif
