/* One request to a model server and its answer: the address, TLS, proofs of identity, tries, time.
 * Knows HTTP and gRPC's framing, no model and no message. */
#ifndef SX_CLIENT_CALLER_H
#define SX_CLIENT_CALLER_H

#include <sextant/client.h>

#include "base/buffer.h"

typedef struct sx_caller sx_caller;

/* As sx_client_open(). */
SX_MUST_USE sx_status sx_caller_create(const char *server, const sx_client_options *options,
                                       sx_caller **out_caller);
void sx_caller_destroy(sx_caller *caller); /* NULL is allowed */

/* The address without a slash at its end, as errors name it. */
const char *sx_caller_address(const sx_caller *caller);
size_t sx_caller_max_answer_bytes(const sx_caller *caller);

/* GET, or POST of `body` if that has data, as JSON; `path` follows the address. Whether the request
 * may be sent again although it may have run: `repeatable`. Appends the body of the answer. */
SX_MUST_USE sx_status sx_caller_rest(sx_caller *caller, const char *path, sx_bytes body,
                                     bool repeatable, sx_buf *out);
/* A unary call: `method` is "/package.Service/Method". Appends the message of the answer. */
SX_MUST_USE sx_status sx_caller_grpc(sx_caller *caller, const char *method, sx_bytes message,
                                     bool repeatable, sx_buf *out);

#endif
