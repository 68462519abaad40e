/* The protobuf messages of Predict: requests read in place, straight into typed tensors; outputs
 * straight into bytes. Knows no gRPC.
 *
 *   PredictRequest    model_spec 1, inputs 2 (map of TensorProto), output_filter 3
 *   PredictResponse   outputs 1 (map of TensorProto), model_spec 2
 *   ModelSpec         name 1, version 2 {value 1}, signature_name 3, version_label 4
 *
 * A tensor's content is not copied where its alignment allows; typed lists are read into the arena,
 * short ones extended as TensorFlow extends them. What a request makes the server hold is charged
 * to the arena's budget, and nothing is nested: depth and counts need no limits of their own.
 * Duplicate keys: the last one counts. Source: TensorFlow Serving's prediction service; error
 * messages use its wording where clients match on it. */
#ifndef SX_SERVE_PREDICT_PROTO_H
#define SX_SERVE_PREDICT_PROTO_H

#include <sextant/types.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "serve/model.h"

/* Views of the message. */
typedef struct sx_predict_spec {
    sx_bytes name, label, signature; /* empty if not given */
    int64_t version;                 /* -1 if not given */
} sx_predict_spec;

/* The spec of any request message, whose field 1 it is. INVALID_ARGUMENT: malformed bytes, no spec,
 * or a negative version. */
SX_MUST_USE sx_status sx_predict_spec_read(sx_bytes message, sx_predict_spec *out);
/* Appends the spec as field `number`, with its version, without a label, and without a signature if
 * that is empty. */
void sx_predict_spec_print(const sx_predict_spec *spec, uint32_t number, sx_buf *out);

typedef struct sx_predict_call {
    const sx_serve_signature *signature;
    sx_tensor *inputs; /* [signature->input_count], in the arena; data there or in the message */
    bool *wanted;      /* [signature->output_count]; by the filter */
    /* Values that could be used where they lie in the message if that were aligned; NULL: none */
    const void *unaligned;
} sx_predict_call;

/* Reads the message of a PredictRequest. Errors: FAILED_PRECONDITION: no such signature;
 * INVALID_ARGUMENT: malformed bytes, inputs that the signature does not have or lacks, types and
 * shapes that do not match; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_predict_proto_read(sx_bytes message, const sx_predict_spec *spec,
                                            const sx_serve_signature *signatures, size_t count,
                                            sx_arena *arena, sx_predict_call *out);

/* Appends the response: `outputs`, in typed lists or, with `content`, as tensor_content, and the
 * spec of what was run as field `spec_number`: 2 of PredictResponse. */
SX_MUST_USE sx_status sx_predict_proto_print(const sx_predict_call *call, const sx_tensor *outputs,
                                             const sx_predict_spec *ran, uint32_t spec_number,
                                             bool content, sx_buf *out);

/* Appends one named tensor, as an entry of a map that is field `number`. UNIMPLEMENTED: its dtype
 * has no values in a message. */
SX_MUST_USE sx_status sx_predict_tensor_print(uint32_t number, const char *name,
                                              const sx_tensor *tensor, bool content, sx_buf *out);

#endif
