/* The protobuf messages of GetModelMetadata. Knows no gRPC.
 *
 *   GetModelMetadataRequest    model_spec 1, metadata_field 2: "signature_def"
 *   GetModelMetadataResponse   model_spec 1, metadata 2: map to Any {type_url 1, value 2}
 *   SignatureDefMap            signature_def 1: map to SignatureDef {inputs 1, outputs 2,
 *                              method_name 3}, whose maps are to TensorInfo {name 1, dtype 2,
 *                              tensor_shape 3} */
#ifndef SX_SERVE_METADATA_PROTO_H
#define SX_SERVE_METADATA_PROTO_H

#include "base/buffer.h"
#include "serve/model.h"
#include "serve/predict_proto.h"

/* INVALID_ARGUMENT: malformed bytes, no field of metadata, one that there is not. */
SX_MUST_USE sx_status sx_metadata_request_check(sx_bytes request);
/* Appends the response; `spec` has the name and version. */
void sx_metadata_print(const sx_predict_spec *spec, const sx_serve_signature *signatures,
                       size_t count, sx_buf *out);

#endif
