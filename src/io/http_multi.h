/* HTTP/1.1 calls that are under way at once, all on one thread: for load generators and others that
 * do not wait for an answer before the next request. Through libcurl, as http_client.h. */
#ifndef SX_IO_HTTP_MULTI_H
#define SX_IO_HTTP_MULTI_H

#include "io/http_client.h"

/* Connections to one server and the calls over them. Used by one thread. */
typedef struct sx_http_multi sx_http_multi;

/* Up to `connections` connections, which are opened when they are needed, kept, and opened again if
 * they are lost; one has one call at a time. */
SX_MUST_USE sx_status sx_http_multi_create(int connections, sx_http_multi **out_multi);
/* Ends the calls under way; their functions are not called. NULL is allowed. */
void sx_http_multi_destroy(sx_http_multi *multi);

/* Whether a connection has room for a call: otherwise it would wait within its time. */
bool sx_http_multi_has_room(const sx_http_multi *multi);

/* Receives what came of a call, and owns the status: as that of sx_http_stream. The buffers are
 * valid until it returns. It starts no calls. */
typedef void sx_http_done(void *user, sx_status status, int http_status, const sx_buf *headers,
                          const sx_buf *body);

/* Begins a call, whose answer has up to `max_bytes`; `session` is not used. The URL and the body
 * stay until `done` is called, by sx_http_multi_wait, which it always is unless this fails. A call
 * that is not answered in time loses its connection. */
SX_MUST_USE sx_status sx_http_multi_start(sx_http_multi *multi, const sx_http_call *call,
                                          size_t max_bytes, sx_http_done *done, void *user);

/* Sends and receives until a call has ended, a signal has come, or until this time of sx_now_ns():
 * without waiting if it has passed. */
SX_MUST_USE sx_status sx_http_multi_wait(sx_http_multi *multi, int64_t until_ns);

#endif
