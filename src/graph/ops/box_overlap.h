/* What the operators share that choose among boxes: y1, x1, y2, x2, in any order of corners. */
#ifndef SX_GRAPH_OPS_BOX_OVERLAP_H
#define SX_GRAPH_OPS_BOX_OVERLAP_H

#include "graph/ops/host_ops.h"

/* The area that two boxes share, divided by that which they cover; 0 if one has none. In float32,
 * as TensorFlow's: a box is dropped or kept by it. */
float sx_box_overlap(const double a[4], const double b[4]);

/* A box and its score. */
typedef struct sx_scored {
    float score;
    int64_t box;
    int64_t checked; /* of the boxes chosen so far: those that it was compared with */
} sx_scored;

/* Higher scores first, then lower boxes: for qsort(). */
int sx_scored_order(const void *a, const void *b);

#endif
