/* What others build a preprocess_image node from. */
#ifndef SX_GRAPH_OPS_PREPROCESS_IMAGE_H
#define SX_GRAPH_OPS_PREPROCESS_IMAGE_H

#include "graph/ops/attrs.h"
#include "image/preprocess.h"

/* The evaluation form of `pre`, without augmentation. */
sx_preprocess_image_attrs sx_preprocess_image_attrs_of(const sx_preprocess *pre);

#endif
