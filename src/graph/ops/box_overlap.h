/* What the operators share that choose among boxes. */
#ifndef SX_GRAPH_OPS_BOX_OVERLAP_H
#define SX_GRAPH_OPS_BOX_OVERLAP_H

#include "graph/ops/host_ops.h"

/* In float32, as TensorFlow's: a box is dropped or kept by what it overlaps with. */
typedef struct sx_box {
    float low[2], high[2]; /* y, x */
    float area;
} sx_box;

/* out[n], from corners y1, x1, y2, x2, each two in any order. */
void sx_boxes_of(const double *corners, int64_t n, sx_box *out);

/* The area that two boxes share, divided by that which they cover; 0 if one has none. */
float sx_box_overlap(const sx_box *a, const sx_box *b);

/* A box and its score. */
typedef struct sx_scored {
    float score;
    int64_t box;
    int64_t checked; /* of the boxes chosen so far: those that it was compared with */
} sx_scored;

/* Higher scores first, then lower boxes: for qsort(). */
int sx_scored_order(const void *a, const void *b);

/* A heap of n in that order, the first at 0: of many boxes, few are ever taken. `order` makes one
 * of any array, `push` needs room for one more, `pop` needs one. */
void sx_scored_heap_order(sx_scored *heap, int64_t n);
void sx_scored_heap_push(sx_scored *heap, int64_t *n, sx_scored one);
sx_scored sx_scored_heap_pop(sx_scored *heap, int64_t *n);

#endif
