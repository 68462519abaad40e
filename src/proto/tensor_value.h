/* TensorProto to tensor. */
#ifndef SX_PROTO_TENSOR_VALUE_H
#define SX_PROTO_TENSOR_VALUE_H

#include <sextant/types.h>

#include "base/arena.h"
#include "proto/tensor.pb-c.h"

/* Of a DataType number. TensorFlow's quantized types are the integers with as many bits. */
sx_dtype sx_tf_plain_dtype(int tf_dtype);

/* The dtype and shape. DATA_LOSS: a negative dimension, too many elements; UNIMPLEMENTED: an
 * unsupported dtype or rank. */
SX_MUST_USE sx_status sx_tf_tensor_type(const Tensorflow__TensorProto *message, sx_type *out);

/* A tensor's value in `arena`, typed lists extended as TensorFlow extends them; strings are those
 * of the message. DATA_LOSS: sizes that do not match. UNIMPLEMENTED: an unsupported dtype or rank.
 * RESOURCE_EXHAUSTED: the arena's limit. */
SX_MUST_USE sx_status sx_tf_tensor_value(const Tensorflow__TensorProto *message, sx_arena *arena,
                                         sx_tensor *out_tensor);

#endif
