/* Where the bytes of an optimised program belong: arguments, values in between, layers.
 *
 * A layer is a prefix of names: variable "conv2d_1/kernel", its slot "conv2d_1/kernel/Adam" and the
 * values of operators "conv2d_1/…" belong to "conv2d_1". Values of the gradients and of the update
 * count as activations in the sums, but belong to no layer. */
#ifndef SX_BACKENDS_PJRT_AOT_LAYERS_H
#define SX_BACKENDS_PJRT_AOT_LAYERS_H

#include "backends/pjrt/aot.h"

/* Fills in the sums and rows of *out. `code`: the plugin's optimised program. */
SX_MUST_USE sx_status sx_aot_sum_layouts(const sx_graph *graph, const void *code, size_t size,
                                         sx_aot_result *out);

#endif
