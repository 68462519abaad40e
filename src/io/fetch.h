/* Downloads of http, https and file URLs to a file, resumed after an interruption.
 *
 *   NAME.part        the bytes received so far
 *   NAME.part.tag    the server's identifier of that version (ETag or Last-Modified)
 *
 * An interrupted download continues at the end of NAME.part (Range, and If-Range with the tag, so
 * that it starts over if the file has changed; without a tag it only continues if a SHA-256 is
 * given). When the download is complete it is verified, synced and renamed to NAME. Redirects are
 * followed to http and https only. */
#ifndef SX_IO_FETCH_H
#define SX_IO_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/types.h>

/* Called a few times a second; `total` is 0 if unknown. If it returns false the download ends with
 * CANCELLED and can be resumed. */
typedef bool sx_fetch_progress_fn(void *user, uint64_t done, uint64_t total);

typedef struct sx_fetch_request {
    const char *url;
    const char *path;       /* the final name; its directory is created */
    const char *sha256;     /* 64 hexadecimal digits, or NULL */
    uint64_t max_bytes;     /* 0 = 1 TiB */
    int connect_timeout_ms; /* 0 = 5000 */
    int stall_timeout_s;    /* 0 = 30: fail if no byte arrives for this long */
    sx_fetch_progress_fn *progress;
    void *user;
} sx_fetch_request;

/* Errors: UNAVAILABLE: no connection, a stall, or a server error (5xx), may work if retried;
 * NOT_FOUND: 404, 410 or no such file; PERMISSION_DENIED, UNAUTHENTICATED: refused by the server;
 * DATA_LOSS: the SHA-256 differs (the message has both; the part is deleted). */
SX_MUST_USE sx_status sx_fetch(const sx_fetch_request *request);

/* The SHA-256 of a file as 64 lower-case hexadecimal digits and a NUL. */
SX_MUST_USE sx_status sx_file_sha256(const char *path, char out_hex[65]);

#endif
