/* A small HTTP client on libcurl: one request, one bounded answer. For `sextant query` and for
 * fetching; not for the server's own traffic. */
#ifndef SX_NET_HTTP_CLIENT_H
#define SX_NET_HTTP_CLIENT_H

#include <stdbool.h>

#include <sextant/types.h>

#include "base/buffer.h"

/* A zero takes the default in the comment. */
typedef struct sx_http_call {
    const char *url;          /* http:// or https://; redirects are not followed */
    const char *method;       /* POST with a body, GET without */
    const char *content_type; /* application/json */
    sx_bytes body;
    const char *const *headers; /* more of them, "Name: value", NULL-terminated; none */
    bool direct;                /* through no proxy, whatever the environment says */
    sx_buf *out_headers;        /* gets the answer's head as it came; nobody wants it */
    int connect_timeout_ms;     /* 5 s */
    int timeout_ms;             /* 60 s, all in all */
} sx_http_call;

/* Appends the answer's body to `out_body` (its max_bytes is the cap) and sets the HTTP status; an
 * answer of any status is a success of this call. Blocks.
 * Errors: INVALID_ARGUMENT (malformed URL, other scheme), UNAVAILABLE (name not found, refused,
 * reset), DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (answer over the cap). */
SX_MUST_USE sx_status sx_http_fetch(const sx_http_call *call, sx_buf *out_body,
                                    int *out_http_status);

#endif
