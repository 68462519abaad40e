/* The JSON of KServe's REST API, with raw tensors behind it:
 *
 *   {"id": "...", "parameters": {"signature_name": "...", "binary_data_output": true},
 *    "inputs":  [{"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]},
 *                {"name": "y", "shape": [1], "datatype": "BYTES",
 *                 "parameters": {"binary_data_size": 9}}],
 *    "outputs": [{"name": "z", "parameters": {"binary_data": true}}]}
 *
 * Only inputs is required. "data" is flat, or nested as the shape is. Raw tensors follow the JSON
 * in the order of the inputs; its size is then in the header Inference-Header-Content-Length. The
 * answer has the same form. 16-bit floats are read and written as float32 numbers; strings in JSON
 * are UTF-8. Unknown members and parameters are ignored, but for shared memory, which is not
 * supported. */
#ifndef SX_SERVE_KSERVE_JSON_H
#define SX_SERVE_KSERVE_JSON_H

#include "base/cancel.h"
#include "serve/kserve.h"
#include "serve/predict_json.h"

/* Reads a request whose JSON is the first `json_size` bytes of `body`. Strings and raw tensors are
 * views of it; numbers are in the slots or the arena, and charged to its budget. INVALID_ARGUMENT
 * says what is wrong; UNIMPLEMENTED: shared memory; FAILED_PRECONDITION: no such signature. */
SX_MUST_USE sx_status sx_kserve_json_read(sx_bytes body, size_t json_size,
                                          const sx_serve_signature *signatures, size_t count,
                                          sx_arena *arena, sx_predict_slots *slots,
                                          sx_kserve_request *out);

/* Appends the answer of a version of `model`: *out_json_size is the size of its JSON if raw
 * tensors follow, else 0. INVALID_ARGUMENT: a string that JSON cannot have. */
SX_MUST_USE sx_status sx_kserve_json_print(const sx_kserve_request *request,
                                           const sx_tensor *outputs, const char *model,
                                           int64_t version, sx_float_format format,
                                           const sx_cancel *cancel, sx_arena *arena, sx_buf *out,
                                           size_t *out_json_size);

/* What a model takes and gives: the metadata of its default signature, and the versions that are
 * served. `signature` may be NULL: it has no default one. */
void sx_kserve_json_print_model(const char *model, const int64_t *versions, size_t version_count,
                                const sx_serve_signature *signature, sx_buf *out);

#endif
