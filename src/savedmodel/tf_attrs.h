/* The attributes of a TensorFlow node (types, shapes, numbers, tensors, functions) as protobuf-c
 * messages. */
#ifndef SX_SAVEDMODEL_TF_ATTRS_H
#define SX_SAVEDMODEL_TF_ATTRS_H

#include "base/arena.h"
#include "graph/lower/tf_writer.h"
#include "proto/graph.pb-c.h"

/* A shape message in `arena`: what is no count is -1, rank SX_UNKNOWN_RANK has no dims.
 * NULL when out of memory. */
Tensorflow__TensorShapeProto *sx_tf_shape_message(sx_arena *arena, const sx_type *type);

/* Sets the node's attributes, sorted by name, so that maps are written in a fixed order. Copies are
 * in `arena`; false if it is full. */
bool sx_tf_set_attrs(sx_arena *arena, Tensorflow__NodeDef *node, sx_tf_attr_list attrs);

#endif
