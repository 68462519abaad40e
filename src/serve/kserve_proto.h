/* The protobuf messages of KServe's inference.GRPCInferenceService, read in place. Knows no gRPC.
 *
 *   ModelInferRequest    model_name 1, model_version 2, id 3, parameters 4 (map of
 *                        InferParameter), inputs 5, outputs 6, raw_input_contents 7
 *     InferInputTensor   name 1, datatype 2, shape 3, parameters 4, contents 5
 *     InferParameter     bool 1, int64 2, string 3
 *     contents           bool 1, int32 2, int64 3, uint32 4, uint64 5, float 6, double 7, bytes 8
 *   ModelInferResponse   model_name 1, model_version 2, id 3, outputs 5, raw_output_contents 6
 *
 * Values are all typed or all raw, and so are the answer's; 16-bit floats are only raw, and make
 * the answer so. A tensor's raw bytes are not copied where their alignment allows; typed ones are
 * read into the arena, whose budget they are charged to. Source: KServe's
 * open-inference-protocol. */
#ifndef SX_SERVE_KSERVE_PROTO_H
#define SX_SERVE_KSERVE_PROTO_H

#include "serve/kserve.h"
#include "serve/predict_proto.h"

/* The model that a message names, in its fields 1 and 2. INVALID_ARGUMENT: malformed bytes, or a
 * version that is no number. */
SX_MUST_USE sx_status sx_kserve_spec_read(sx_bytes message, sx_predict_spec *out);

/* Reads a ModelInferRequest. Errors: as sx_kserve_json_read. */
SX_MUST_USE sx_status sx_kserve_proto_read(sx_bytes message, const sx_serve_signature *signatures,
                                           size_t count, sx_arena *arena, sx_kserve_request *out);

/* Appends the ModelInferResponse of a version of `model`. */
SX_MUST_USE sx_status sx_kserve_proto_print(const sx_kserve_request *request,
                                            const sx_tensor *outputs, const char *model,
                                            int64_t version, sx_buf *out);

/* Appends the ModelMetadataResponse; `signature` may be NULL: there is no default one. */
void sx_kserve_proto_print_model(const char *model, const int64_t *versions, size_t version_count,
                                 const sx_serve_signature *signature, sx_buf *out);

#endif
