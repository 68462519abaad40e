/* HTTP/2 calls that are under way at once, all on one thread: the client's side of gRPC for load
 * generators. A call costs less than half of what it does through libcurl (io/http_multi.h, the
 * same for HTTP/1.1). nghttp2 knows the frames and HPACK. */
#ifndef SX_NET_HTTP2_CALLS_H
#define SX_NET_HTTP2_CALLS_H

#include "io/http_multi.h"

/* Connections to one server and the calls over them. Used by one thread. */
typedef struct sx_http2_calls sx_http2_calls;

/* Up to `connections` connections, which are opened when they are needed, kept, and opened again if
 * they are lost; one has up to 100 calls at once, or as many as the server allows. `call` says
 * where to: its url, http:// (HTTP/2 without TLS) or https://, socket_path, ca_file,
 * certificate_file and key_file. Proxies are not used. Looks the host up, which blocks. Errors:
 * INVALID_ARGUMENT: another URL, a file that cannot be used; UNAVAILABLE: host not found. */
SX_MUST_USE sx_status sx_http2_calls_create(const sx_http_call *call, int connections,
                                            sx_http2_calls **out_calls);
/* Ends the calls under way; their functions are not called. NULL is allowed. */
void sx_http2_calls_destroy(sx_http2_calls *calls);

/* Whether a connection has room for a call. */
bool sx_http2_calls_has_room(const sx_http2_calls *calls);

/* Begins a POST to the URL's path, if there is room: of the call its body, which is borrowed until
 * `done` is called, content_type, headers and timeout_ms count. As sx_http_multi_start(); a call
 * that is not answered in time is cancelled, and its connection kept. */
SX_MUST_USE sx_status sx_http2_calls_start(sx_http2_calls *calls, const sx_http_call *call,
                                           size_t max_bytes, sx_http_done *done, void *user);

/* As sx_http_multi_wait(). */
SX_MUST_USE sx_status sx_http2_calls_wait(sx_http2_calls *calls, int64_t until_ns);

#endif
