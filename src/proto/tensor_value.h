/* TensorProto to tensor. */
#ifndef SX_PROTO_TENSOR_VALUE_H
#define SX_PROTO_TENSOR_VALUE_H

#include <stdbool.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "proto/tensor.pb-c.h"

/* Of a DataType number. TensorFlow's quantized types are the integers with as many bits. */
sx_dtype sx_tf_plain_dtype(int tf_dtype);

enum { SX_TF_DTYPE_TEXT = 32 };
/* "float32", "float8_e5m2"; "float32_ref" of a reference type; "type 77" of a number that is none.
 */
const char *sx_tf_dtype_text(int tf_dtype, char text[SX_TF_DTYPE_TEXT]);

enum { SX_TF_TYPE_TEXT = SX_TF_DTYPE_TEXT + SX_TYPE_TEXT };
/* "float8_e5m2[N,3]", also if `type`, of the shape, has no dtype; "float8_e5m2" if it is NULL. */
const char *sx_tf_type_text(int tf_dtype, const sx_type *type, char text[SX_TF_TYPE_TEXT]);

/* Whether it is a type of TensorFlow's later versions, float8_e5m2 and those after it: no tensor,
 * operator or variable of these is supported. */
bool sx_tf_dtype_is_new(int tf_dtype);

/* The dtype and shape. DATA_LOSS: a negative dimension, no rank, too many elements; UNIMPLEMENTED:
 * an unsupported dtype or rank. */
SX_MUST_USE sx_status sx_tf_tensor_type(const Tensorflow__TensorProto *message, sx_type *out);

/* A tensor's value in `arena`, typed lists extended as TensorFlow extends them; strings are those
 * of the message. DATA_LOSS: sizes that do not match. UNIMPLEMENTED: an unsupported dtype or rank.
 * RESOURCE_EXHAUSTED: the arena's limit. */
SX_MUST_USE sx_status sx_tf_tensor_value(const Tensorflow__TensorProto *message, sx_arena *arena,
                                         sx_tensor *out_tensor);

#endif
