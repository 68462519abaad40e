/* What the operators share that make images of another size: each pixel along an axis is a weighted
 * sum of some pixels along that axis of the image. */
#ifndef SX_GRAPH_OPS_RESAMPLE_H
#define SX_GRAPH_OPS_RESAMPLE_H

#include "graph/ops/host_ops.h"

/* Pixel i is the sum of weight[k] times pixel at[k], for k in [i * most, (i + 1) * most). */
typedef struct sx_axis_weights {
    int64_t most;
    int64_t *at;
    double *weight;
} sx_axis_weights;

/* Room for `out` pixels of `most` each, zeroed; of the call's arena. */
SX_MUST_USE sx_status sx_axis_weights_make(const sx_kernel_call *c, int64_t out, int64_t most,
                                           sx_axis_weights *w);
/* Output 0, floats [N,H,W,C], from input 0, numbers [N,h,w,C]. */
SX_MUST_USE sx_status sx_resample(const sx_kernel_call *c, const sx_axis_weights *rows,
                                  const sx_axis_weights *columns);

#endif
