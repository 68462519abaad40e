/* What http_client and http_multi share: a call as options of libcurl's, and its response in
 * memory. For these two files alone. */
#ifndef SX_IO_HTTP_TRANSFER_H
#define SX_IO_HTTP_TRANSFER_H

#include "io/curl_api.h"
#include "io/http_client.h"

typedef struct sx_http_transfer {
    const sx_http_call *call;
    const sx_http_sink *sink;
    CURL *curl;
    sx_status failure; /* of sink->body */
    bool cancelled;
    bool other_connection; /* than was expected: nothing was sent */
    char error_text[CURL_ERROR_SIZE];
} sx_http_transfer;

/* The request's headers; NULL if out of memory. */
struct curl_slist *sx_http_make_headers(const sx_http_call *call);
/* Sets the call's options in t->curl, which keeps pointers to `t`, its sink and the body.
 * `again`: over the plain HTTP/2 connection that the session has. */
CURLcode sx_http_set_options(sx_http_transfer *t, struct curl_slist *headers, bool again);

int sx_http_status_of(CURL *curl);
/* Of a transfer that ended with `rc`, which is not CURLE_OK. */
sx_status sx_http_call_error(const sx_http_transfer *t, CURLcode rc);

/* Where a response is kept; `headers` may be NULL. */
typedef struct sx_http_buffers {
    const char *url;
    sx_buf *body, *headers;
} sx_http_buffers;

sx_http_sink sx_http_keep_in(sx_http_buffers *buffers);

#endif
