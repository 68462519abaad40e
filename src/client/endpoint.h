/* Where requests go and whose they are: the address, TLS, proofs of identity. A request as HTTP,
 * and what its answer says. Sends nothing itself, but for a token. Knows HTTP and gRPC's status, no
 * model and no message. */
#ifndef SX_CLIENT_ENDPOINT_H
#define SX_CLIENT_ENDPOINT_H

#include <sextant/client.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "client/credentials.h"
#include "io/http_client.h"

typedef struct sx_endpoint {
    sx_arena arena;
    const char *address; /* without a slash at its end, as errors name it */
    const char *socket_path;
    sx_client_options options;   /* none is 0 */
    sx_credentials *credentials; /* NULL: none */
    const char *identity;        /* the header of the API key; NULL: none */
} sx_endpoint;

/* As sx_client_open(). */
SX_MUST_USE sx_status sx_endpoint_init(sx_endpoint *e, const char *server,
                                       const sx_client_options *options);
void sx_endpoint_deinit(sx_endpoint *e); /* also of one that is all zeros */

/* A request as HTTP, and what it points at; not to be copied. */
typedef struct sx_endpoint_call {
    sx_http_call http;
    const char *headers[6];
    char timeout[48], authorization[SX_TOKEN_HEADER];
} sx_endpoint_call;

/* `url` and `body`, which gRPC frames, are borrowed. May ask for a token. */
SX_MUST_USE sx_status sx_endpoint_request(sx_endpoint *e, const char *url, sx_bytes body, bool grpc,
                                          int64_t left_ms, sx_endpoint_call *out);

/* What a call that ended with `status` has come to: takes that, and returns it if it is an error,
 * otherwise what the answer says. *out_answer is REST's body or gRPC's message, in `body`. */
SX_MUST_USE sx_status sx_endpoint_answer(const sx_endpoint *e, const char *url, bool grpc,
                                         int64_t deadline_ns, sx_status status, int http_status,
                                         const sx_buf *headers, const sx_buf *body,
                                         sx_bytes *out_answer);

/* A header that is a number, by its name with a colon; -1 if there is none. */
long sx_endpoint_header_number(const sx_buf *headers, const char *name);

#endif
