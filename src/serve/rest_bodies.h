/* Predict over REST with bodies that are not JSON, chosen by the request's Content-Type:
 *
 *   application/x-protobuf, application/protobuf
 *       a PredictRequest; the answer is a PredictResponse. The path names the model, the message's
 *       model_spec at most the signature.
 *   application/x-tensor; dtype=float32; shape=1x28x28x1
 *       the little-endian elements of the one input, row-major; no strings. The answer is the one
 *       output in the same form. The query may have signature_name=NAME and, if there are several
 *       outputs, output=NAME.
 *
 * Errors are {"error": "..."}. */
#ifndef SX_SERVE_REST_BODIES_H
#define SX_SERVE_REST_BODIES_H

#include "serve/rest_call.h"

/* The method for a Content-Type; NULL: JSON's. */
const sx_rest_method *sx_rest_method_of(const sx_http_head *head);

/* Parses "application/x-tensor; dtype=float32; shape=2x3"; false if it is malformed. */
bool sx_rest_tensor_type(sx_http_text content_type, sx_type *out);

#endif
