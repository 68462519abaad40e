/* The access log: a line of JSON for each request that was answered, in a file or on standard
 * output.
 *
 *   {"time": "2026-11-28T10:46:28.123456Z", "remote": "10.0.0.7:51234", "peer": "CN of its
 *    certificate", "protocol": "HTTP/1.1", "method": "POST", "path": "/v1/models/m:predict",
 *    "model": "m", "version": 3, "status": 200, "grpc_status": 0, "request_bytes": 25,
 *    "response_bytes": 80, "duration_us": 412.3, "trace_id": "32 digits", "span_id": "16 digits",
 *    "parent_id": "16 digits"}
 *
 * Members that a request does not have are left out. The trace is that of the request's header
 * traceparent (W3C Trace Context), with a span of its own, or a new one. Keys, tokens and what a
 * query says are not logged. */
#ifndef SX_SERVE_ACCESS_LOG_H
#define SX_SERVE_ACCESS_LOG_H

#include "net/http_server.h"
#include "serve/log_writer.h"

typedef struct sx_access_log sx_access_log;

/* `path` of "-" is standard output. Errors: of opening the file. */
SX_MUST_USE sx_status sx_access_log_create(const char *path, sx_log_writer *writer,
                                           sx_access_log **out);
void sx_access_log_destroy(sx_access_log *log); /* NULL is allowed */

/* One request and its last response. Any thread; never waits for the disk. */
void sx_access_log_add(sx_access_log *log, const sx_http_exchange *exchange,
                       const sx_http_response *response);

#endif
