/* A tensor as TensorFlow's message TensorProto, for the operators that write and read it. */
#ifndef SX_GRAPH_OPS_TENSOR_PROTO_H
#define SX_GRAPH_OPS_TENSOR_PROTO_H

#include "graph/ops/host_ops.h"

/* Appends the message, byte for byte as TensorFlow's SerializeTensor writes it: numbers as their
 * bytes, strings one by one. */
void sx_tensor_put(const sx_host_tensor *t, sx_buf *out);
/* The same with strings as their sizes and bytes, as SerializeSparse writes them. */
void sx_tensor_put_content(const sx_host_tensor *t, sx_buf *out);
/* The tensor of a message, in its carrier; its memory is the run's. INVALID_ARGUMENT: bytes that
 * are no such message, another dtype; RESOURCE_EXHAUSTED: it is too large. */
SX_MUST_USE sx_status sx_tensor_get(const sx_kernel_call *c, const sx_bytes *bytes, sx_dtype dtype,
                                    sx_host_tensor *out);
/* Only its type. */
SX_MUST_USE sx_status sx_tensor_get_type(const sx_bytes *bytes, sx_dtype dtype, sx_type *out);

#endif
