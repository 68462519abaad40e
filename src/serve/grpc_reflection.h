/* gRPC's reflection service (grpc.reflection.v1 and v1alpha): which services there are, and the
 * descriptors of their messages, which the build makes of src/serve/api. See grpc_services.h.
 *
 *   ServerReflectionRequest   host 1, file_by_filename 3, file_containing_symbol 4,
 *                             file_containing_extension 5, all_extension_numbers_of_type 6,
 *                             list_services 7
 *   ServerReflectionResponse  valid_host 1, original_request 2, file_descriptor_response 4,
 *                             list_services_response 6, error_response 7
 *
 * A stream's requests are answered as they come. */
#ifndef SX_SERVE_GRPC_REFLECTION_H
#define SX_SERVE_GRPC_REFLECTION_H

#include <stdbool.h>

#include "base/buffer.h"
#include "net/http_server.h"

/* Whether a request is a stream of the service: the handler has to be called for each part. */
bool sx_grpc_reflection_is_stream(const sx_http_head *head);
/* Answers what has come of a stream, if the request is one; false if it is not. */
bool sx_grpc_reflection_handle(sx_http_exchange *exchange);

/* Appends the response to one request. INVALID_ARGUMENT: malformed bytes. */
SX_MUST_USE sx_status sx_grpc_reflect(sx_bytes request, sx_buf *out);

#endif
