/* HTTP requests through libcurl (io/curl_api.h). For downloads (io/fetch.h), cloud services and
 * clients of model servers. Calls block. */
#ifndef SX_IO_HTTP_CLIENT_H
#define SX_IO_HTTP_CLIENT_H

#include <stdbool.h>

#include <sextant/types.h>

#include "base/buffer.h"

#define SX_HTTP_NO_TIMEOUT (-1)

/* Connections that are kept from one call to the next. One call at a time. */
typedef struct sx_http_session sx_http_session;

SX_MUST_USE sx_status sx_http_session_create(sx_http_session **out_session);
void sx_http_session_destroy(sx_http_session *session); /* NULL is allowed */
/* Whether the last call failed before its request was sent: host not found, connection refused. */
bool sx_http_session_unsent(const sx_http_session *session);

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
    int max_redirects;        /* 0 = redirects are not followed; they must lead to http or https */
    int connect_timeout_ms;   /* 5 s */
    int timeout_ms;           /* for the whole call: 60 s; SX_HTTP_NO_TIMEOUT */
    int stall_timeout_s;      /* maximum time without receiving a byte; no limit */
    sx_http_session *session; /* a connection for this call alone */
    bool http2;               /* HTTP/2 only: at once on http://, by ALPN on https:// */
    const char *socket_path;  /* a UNIX socket to connect to, instead of the URL's host */
    const char *ca_file;      /* PEM certificates that sign servers'; the system's */
    const char *certificate_file, *key_file; /* the client's own, PEM; none */
} sx_http_call;

/* Receives a response. Functions may be NULL. Trailers are headers after the body. */
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
 * Errors: INVALID_ARGUMENT: malformed URL or other scheme, a file of certificates or of a key that
 * cannot be used; UNAVAILABLE: host not found, connection
 * refused or lost, stalled; DEADLINE_EXCEEDED: the whole call took too long; PERMISSION_DENIED: the
 * certificate cannot be verified; for file://, NOT_FOUND and OUT_OF_RANGE (a range beyond the end);
 * CANCELLED; FAILED_PRECONDITION: libcurl is not installed. */
SX_MUST_USE sx_status sx_http_stream(const sx_http_call *call, const sx_http_sink *sink,
                                     int *out_http_status);

/* The same with the response in buffers: appends its body to `out_body`, within its max_bytes, and
 * its headers to `out_headers`, which may be NULL. Errors: also RESOURCE_EXHAUSTED: over the
 * maximum. */
SX_MUST_USE sx_status sx_http_fetch(const sx_http_call *call, sx_buf *out_body, sx_buf *out_headers,
                                    int *out_http_status);

#endif
