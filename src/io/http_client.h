/* HTTP requests through libcurl: the only code that uses libcurl. For downloads (io/fetch.h), cloud
 * services and `sextant query`. Calls block. */
#ifndef SX_IO_HTTP_CLIENT_H
#define SX_IO_HTTP_CLIENT_H

#include <stdbool.h>

#include <sextant/types.h>

#include "base/buffer.h"

#define SX_HTTP_NO_TIMEOUT (-1)

/* A field that is 0 takes its default. */
typedef struct sx_http_call {
    const char *url;          /* http://, https:// or, with allow_files, file:// */
    const char *method;       /* POST with a body, otherwise GET */
    const char *content_type; /* of the body: application/json */
    sx_bytes body;
    const char *range;          /* of bytes to request: "1000-"; everything */
    const char *const *headers; /* additional headers, "Name: value", NULL-terminated; none */
    bool direct;                /* ignore proxies set in the environment */
    bool allow_files;
    int max_redirects;      /* 0 = redirects are not followed; they must lead to http or https */
    int connect_timeout_ms; /* 5 s */
    int timeout_ms;         /* for the whole call: 60 s; SX_HTTP_NO_TIMEOUT */
    int stall_timeout_s;    /* maximum time without receiving a byte; no limit */
} sx_http_call;

/* Receives a response. Functions may be NULL. */
typedef struct sx_http_sink {
    /* A piece of the body; `http_status` is 0 for file://. An error ends the call, which returns
     * it. */
    sx_status (*body)(void *user, int http_status, const void *data, size_t size);
    /* A header line, including its line end; redirects have headers, too. */
    void (*header)(void *user, const char *line, size_t size);
    /* Called a few times a second; `total` is 0 if unknown. False ends the call with CANCELLED. */
    bool (*progress)(void *user, uint64_t received, uint64_t total);
    void *user;
} sx_http_sink;

/* Makes a request and passes the response to `sink`. Sets *out_http_status (0 without a response,
 * and for file://), also on failure; a response with any HTTP status is a success.
 * Errors: INVALID_ARGUMENT: malformed URL or other scheme; UNAVAILABLE: host not found, connection
 * refused or lost, stalled; DEADLINE_EXCEEDED: the whole call took too long; PERMISSION_DENIED: the
 * certificate cannot be verified; for file://, NOT_FOUND and OUT_OF_RANGE (a range beyond the end);
 * CANCELLED. */
SX_MUST_USE sx_status sx_http_stream(const sx_http_call *call, const sx_http_sink *sink,
                                     int *out_http_status);

/* The same with the response in buffers: appends its body to `out_body`, within its max_bytes, and
 * its headers to `out_headers`, which may be NULL. Errors: also RESOURCE_EXHAUSTED: over the
 * maximum. */
SX_MUST_USE sx_status sx_http_fetch(const sx_http_call *call, sx_buf *out_body, sx_buf *out_headers,
                                    int *out_http_status);

#endif
