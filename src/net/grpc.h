/* gRPC over HTTP/2: what stands between an exchange of the server (http_server.h) and the messages
 * of a call. Knows no protobuf.
 *
 *   request    POST /package.Service/Method, content-type application/grpc[+proto],
 *              [grpc-timeout: 100m], [grpc-encoding: gzip]; body: one message
 *   message    1 byte (1: compressed), 4 bytes size, big-endian, then so many bytes
 *   response   status 200; messages; trailers grpc-status, [grpc-message, percent-encoded]
 *
 * A call has no deadline but its own: without grpc-timeout it may take as long as the client waits.
 * A response is compressed if its request was and the client accepts it. Source: gRPC over HTTP2
 * (PROTOCOL-HTTP2.md). */
#ifndef SX_NET_GRPC_H
#define SX_NET_GRPC_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/types.h>

#include "base/buffer.h"
#include "net/http_server.h"

enum {
    SX_GRPC_PREFIX = 5,            /* bytes before a message */
    SX_GRPC_MESSAGE_BYTES = 1024,  /* of an error's text; a longer one is cut, as TensorFlow
                                      Serving does */
    SX_GRPC_INFLATE_RATIO = 100,   /* a compressed message expands at most so many times, */
    SX_GRPC_INFLATE_FREE = 1 << 20 /* or to so many bytes */
};

/* Whether a request is a call: by its content type. */
bool sx_grpc_is_call(const sx_http_head *head);

/* Begins a call in the HTTP handler: checks the request and sets its deadline. An error is to be
 * passed to sx_grpc_respond. */
SX_MUST_USE sx_status sx_grpc_begin(sx_http_exchange *exchange);

/* The request's message: in its body, or decompressed into `inflated`. INTERNAL: the body is not
 * one message; RESOURCE_EXHAUSTED: larger than max_bytes, which `inflated` needs not have as its
 * own. */
SX_MUST_USE sx_status sx_grpc_request(const sx_http_exchange *exchange, size_t max_bytes,
                                      sx_buf *inflated, sx_bytes *out_message);

/* Whether the first message of a body is all there. */
bool sx_grpc_has_message(sx_bytes body);
/* Takes the first message of a body that may have several off it, with its prefix, for
 * sx_grpc_unframe; a truncated one is all the rest. */
sx_bytes sx_grpc_take_message(sx_bytes *body);
/* Whether the messages of a request may be compressed. */
bool sx_grpc_is_gzip(const sx_http_exchange *exchange);

/* Begins a message of a response in `out`; returns where. What is appended then is the message. */
size_t sx_grpc_message_begin(sx_buf *out);
void sx_grpc_message_end(sx_buf *out, size_t at);

/* Ends a call. `out` (may be NULL) has the last messages, and is emptied; they are dropped if the
 * call failed. Takes the status, and `details` (may be empty): an encoded google.rpc.Status. */
void sx_grpc_respond(sx_http_exchange *exchange, sx_status status, sx_bytes details, sx_buf *out);
/* Sends messages of a streaming response, not empty; then the function is called, see
 * sx_http_response. */
void sx_grpc_send(sx_http_exchange *exchange, sx_buf *out,
                  void (*on_sent)(void *user, sx_http_exchange *exchange));

/* The response of the server itself to a call, in place of an HTTP status. */
sx_http_response sx_grpc_refusal(int http_status, const char *reason);

/* ---- Parts ---- */

/* "100m" and the like; false if malformed. */
bool sx_grpc_parse_timeout(sx_http_text text, int64_t *out_ns);
/* See sx_grpc_request. */
SX_MUST_USE sx_status sx_grpc_unframe(sx_bytes body, bool gzip, size_t max_bytes, sx_buf *inflated,
                                      sx_bytes *out_message);
/* Appends the trailers of a status. */
void sx_grpc_put_trailers(sx_buf *out, int code, const char *message, sx_bytes details);

#endif
