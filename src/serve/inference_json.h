/* The JSON of REST classify and regress: examples straight into serialized tf.Examples, results
 * straight to text.
 *
 *   request    {"signature_name": "...", "context": {...}, "examples": [{...}, ...]}
 *   response   {"results": [[["label", score], ...], ...]} or {"results": [value, ...]}
 *
 * A feature is a value or a list of values of one kind: integers and booleans become int64s, other
 * numbers floats (NaN and infinities are numbers), strings and {"b64": "..."} bytes. The context's
 * features are those of every example that does not have them itself. Source: TensorFlow Serving's
 * RESTful API; error messages use its wording. In addition, trailing bytes and members that are
 * given twice are refused. */
#ifndef SX_SERVE_INFERENCE_JSON_H
#define SX_SERVE_INFERENCE_JSON_H

#include "base/arena.h"
#include "serve/inference.h"
#include "serve/predict_json.h"

typedef struct sx_inference_request {
    sx_bytes signature; /* empty if not given */
    sx_tensor examples; /* strings [N] */
} sx_inference_request;

/* Parses `body` into memory of the arena, or views of it. INVALID_ARGUMENT: syntax, mixed kinds, no
 * examples; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_inference_parse(sx_bytes body, sx_arena *arena, sx_inference_request *out);

/* Appends the response. `cancel` (may be NULL) is checked periodically. */
SX_MUST_USE sx_status sx_inference_print_json(const sx_inference_result *result,
                                              sx_float_format format, const sx_cancel *cancel,
                                              sx_buf *out);

#endif
