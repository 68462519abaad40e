/* The evaluation form of preprocessing as TensorFlow nodes (image/preprocess.h): encoded images in,
 * the model's input out, decode and resize inside the graph.
 *
 *   image_bytes [N] string
 *      └─ TensorListFromTensor ─┐
 *         TensorListReserve ────┤
 *                        StatelessWhile: for each image
 *                               │    TensorListGetItem, DecodeJpeg, ExpandDims, Resize…,
 *                               │    [Cast], [Slice], Reshape, TensorListSetItem
 *         TensorListStack ──────┘
 *      └─ [Mul], [AddV2]        the scale, over the whole batch
 *   [N, H, W, C] float32 */
#ifndef SX_SAVEDMODEL_IMAGE_NODES_H
#define SX_SAVEDMODEL_IMAGE_NODES_H

#include "graph/lower/tf_writer.h"
#include "image/preprocess.h"

/* Writes those nodes in the scope "preprocess" and returns the float32 batch. `pre` must have
 * passed sx_preprocess_check. */
sx_tf_value sx_tf_preprocess_images(sx_tf_writer *w, sx_tf_value image_bytes,
                                    const sx_preprocess *pre);

#endif
