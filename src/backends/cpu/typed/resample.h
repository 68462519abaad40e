/* Images of another size, of weighted sums along the rows and the columns. */
#ifndef SX_BACKENDS_CPU_TYPED_RESAMPLE_H
#define SX_BACKENDS_CPU_TYPED_RESAMPLE_H

#include "backends/cpu/typed/typed.h"
#include "graph/ops/resample.h"

typedef struct sx_resampling {
    const sx_axis_weights *rows, *columns;
    double row_scale, column_scale; /* the weights are multiplied by them, */
    float scale;                    /* and the sums by this */
    bool rows_first;
    bool blend; /* of two pixels a and b: a + (b - a) share, which is b's weight */
} sx_resampling;

/* Output 0, float32 [N,H,W,C], from input 0, numbers [N,h,w,C]. */
SX_MUST_USE sx_status sx_typed_resample(const sx_typed_call *c, const sx_resampling *r);

#endif
