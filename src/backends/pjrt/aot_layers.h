/* The memory of an optimized program by arguments, intermediate values and layers.
 *
 * A layer is a prefix of names: the variable "conv2d_1/kernel", its slot "conv2d_1/kernel/Adam" and
 * the values of operators "conv2d_1/…" belong to "conv2d_1". Values of the gradients and the update
 * are counted as activations but belong to no layer. */
#ifndef SX_BACKENDS_PJRT_AOT_LAYERS_H
#define SX_BACKENDS_PJRT_AOT_LAYERS_H

#include "backends/pjrt/aot.h"

/* Sets the sums and rows of *out. `code` is the plugin's optimized program. */
SX_MUST_USE sx_status sx_aot_sum_layouts(const sx_graph *graph, const void *code, size_t size,
                                         sx_aot_result *out);

#endif
