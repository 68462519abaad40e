/* HTTP/1.1 requests, strictly: a head parser and a chunk decoder over memory, without any I/O.
 *
 * Anything that two implementations could interpret differently is refused (400, and the caller
 * closes). No bare LF, no NUL or other control byte, no space before a colon, no folded header, one
 * Host, one Content-Length of plain digits, Transfer-Encoding exactly "chunked" and never together
 * with a length. Source: RFC 9110, RFC 9112.
 *
 * Nothing here allocates; a parsed head points into the caller's bytes. Failures are an HTTP status
 * and a static reason instead of an sx_status, so that hostile input does not use memory. */
#ifndef SX_NET_HTTP1_H
#define SX_NET_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum {
    SX_HTTP_MAX_HEADERS = 64,
    SX_HTTP_MAX_TARGET = 4096, /* bytes; beyond it 414 */
};

/* A view of bytes in another buffer; not NUL-terminated. */
typedef struct sx_http_text {
    const char *data;
    size_t size;
} sx_http_text;

bool sx_http_text_is(sx_http_text text, const char *expected);        /* byte for byte */
bool sx_http_text_is_nocase(sx_http_text text, const char *expected); /* ASCII case ignored */
/* Removes a leading `prefix`, ignoring ASCII case; false if it is absent. */
bool sx_http_text_take_nocase(sx_http_text *text, const char *prefix);

typedef struct sx_http_header {
    sx_http_text name;
    sx_http_text value; /* surrounding white space removed */
} sx_http_header;

typedef enum sx_http_coding { SX_HTTP_IDENTITY, SX_HTTP_GZIP } sx_http_coding;

typedef struct sx_http_head {
    sx_http_text method; /* "GET", as sent: methods are case-sensitive */
    sx_http_text target; /* as sent */
    sx_http_text path;   /* of the target, still percent-encoded; "*" for OPTIONS * */
    sx_http_text query;  /* after '?'; empty if none */
    bool http2;          /* came by HTTP/2, and the next is 1 */
    int minor;           /* of HTTP/1.x: 0 or 1 */
    bool keep_alive;
    bool chunked;
    bool expect_continue;
    uint64_t content_length; /* 0 if none was given, or chunked */
    sx_http_coding coding;   /* of the body */
    int header_count;
    sx_http_header headers[SX_HTTP_MAX_HEADERS];
} sx_http_head;

typedef enum sx_http_progress {
    SX_HTTP_DONE,
    SX_HTTP_MORE, /* well-formed so far; needs more bytes */
    SX_HTTP_BAD,
} sx_http_progress;

typedef struct sx_http_failure {
    int status;         /* 400, 413, 414, 415, 417, 429, 431, 505 */
    const char *reason; /* static */
} sx_http_failure;

/* Parses the head of a request at `data`. `*scanned` must be 0 for a new request and is kept
 * between calls on the same growing buffer, so that a head that arrives byte by byte takes linear
 * time. On DONE `*out_size` is the head's size with its empty line. More than `max_bytes` without
 * an end: 431. */
sx_http_progress sx_http_head_parse(const char *data, size_t size, size_t max_bytes,
                                    size_t *scanned, sx_http_head *out_head, size_t *out_size,
                                    sx_http_failure *out_failure);

/* Completes a head that came by HTTP/2, with method, target and headers: checks the target, sets
 * path, query, content_length and coding. False: the failure says why. */
bool sx_http_head_complete(sx_http_head *head, sx_http_failure *out_failure);

/* The value of the first header of that name (ASCII case ignored); data == NULL if absent. */
sx_http_text sx_http_header_get(const sx_http_head *head, const char *name);

/* A chunked body being decoded:  size [;extension] CRLF  bytes CRLF ...  0 CRLF trailers CRLF
 * Trailers are checked and discarded. Bodies that are mostly framing (tiny chunks) are refused. */
typedef struct sx_http_chunks {
    int state;
    int size_digits;
    uint64_t remaining; /* bytes left of the current chunk */
    size_t line_bytes;  /* of the current extension or trailer line */
    size_t trailer_bytes;
    size_t framing_bytes; /* all bytes that were not payload */
    size_t payload_bytes;
} sx_http_chunks;

void sx_http_chunks_init(sx_http_chunks *chunks);

/* Decodes as much of `data` as possible and appends the payload to `body`; 413 beyond its
 * max_bytes. `*out_used` is the number of bytes consumed (on DONE, the rest belongs to the next
 * request). */
sx_http_progress sx_http_chunks_decode(sx_http_chunks *chunks, const char *data, size_t size,
                                       sx_buf *body, size_t *out_used,
                                       sx_http_failure *out_failure);

#endif
